"""Checks of what users give to functions of arrays: operands, axes, shapes, dtypes.

Each names the function or the argument in its error, and what would have been right.
JAX has no public module of this kind.
"""

# Made from chapters/02_arrays_ground.md by `make chapter`;
# edit the chapter, not this file.

from minijax._lazy import namespace

__getattr__, __dir__ = namespace(__name__)
