"""The stages between a function and its result.

Reference: ``jax.stages``.
"""

# Made from chapters/12_jit_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax._lazy import namespace

__getattr__, __dir__ = namespace(__name__)
