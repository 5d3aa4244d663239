# Made from chapters/28_indexing_rest.md by `make chapter`;
# edit the chapter, not this file.
"""Sums, products and extremes over segments of an array.

Reference: ``jax.ops``.
"""

from minijax._lazy import namespace

__getattr__, __dir__ = namespace(__name__)
