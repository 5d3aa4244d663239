"""Primitives of linear algebra: factors of matrices, and triangular systems.

Reference: ``jax.lax.linalg``.
"""

# Made from chapters/31_linear_algebra_ground.md by `make chapter`;
# edit the chapter, not this file.

from minijax._lazy import namespace

__getattr__, __dir__ = namespace(__name__)
