"""Sparse matrices as lists of numbers and places.

Reference: ``jax.experimental.sparse``.
"""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax._lazy import namespace

__getattr__, __dir__ = namespace(__name__)
