"""Checks of derivatives.

Reference: ``jax.test_util``.
"""

# Made from chapters/10_reverse_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax._lazy import namespace

__getattr__, __dir__ = namespace(__name__)
