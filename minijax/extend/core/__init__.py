"""Jaxprs and their parts, for those who write programs that read programs.

Reference: ``jax.extend.core``.
"""

# Made from chapters/07_jaxprs_ground.md by `make chapter`;
# edit the chapter, not this file.

from minijax._lazy import namespace

__getattr__, __dir__ = namespace(__name__)
