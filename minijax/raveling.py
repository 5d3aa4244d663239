# Made from chapters/04_pytrees.md by `make chapter`;
# edit the chapter, not this file.
"""A tree of arrays as one long vector, and back.

Reference: ``jax.flatten_util``.
"""

import itertools

from minijax import lax
from minijax.avals import typeof
from minijax.promotion import promote_dtypes
from minijax.treedefs import tree_flatten


def ravel_pytree(pytree):
    """Lay all numbers of a tree of arrays in a row.

    Args:
      pytree: a tree of arrays and scalars.

    Returns:
      A vector of the dtype that the leaves have together, and a function that turns a
      vector of this shape back into a tree of the same structure, shapes and dtypes.

    Reference: ``jax.flatten_util.ravel_pytree``.
    """
    leaves, treedef = tree_flatten(pytree)
    avals = [typeof(leaf) for leaf in leaves]
    if not leaves:
        return lax.full((0,), 0.0, float), lambda vector: treedef.unflatten([])
    rows = [lax.reshape(x, (typeof(x).size,)) for x in promote_dtypes(*leaves)]
    vector = lax.concatenate(rows, 0)
    dtype = typeof(vector).dtype
    return vector, lambda row: treedef.unflatten(_unravel(row, avals, dtype))


def _unravel(vector, avals, dtype):
    """Return the arrays that `avals` describe, cut from a vector in order."""
    given, mixed = typeof(vector), any(aval.dtype != dtype for aval in avals)
    ends = list(itertools.accumulate(aval.size for aval in avals))
    if given.shape != (ends[-1],):
        raise ValueError(
            f"The tree takes a vector of {ends[-1]} numbers, one for each element of "
            f"its leaves, but got an array of shape {given.shape}."
        )
    if mixed and given.dtype != dtype:
        raise TypeError(
            f"The leaves of the tree have several dtypes, and its vector has to be of "
            f"dtype {dtype.name}, which holds them all; got {given.dtype.name}."
        )
    starts = [end - aval.size for end, aval in zip(ends, avals)]
    rows = [lax.slice(vector, [start], [end]) for start, end in zip(starts, ends)]
    leaves = [lax.reshape(row, aval.shape) for row, aval in zip(rows, avals)]
    return [_cast(x, aval.dtype) for x, aval in zip(leaves, avals)] if mixed else leaves


def _cast(x, dtype):
    if typeof(x).dtype.kind == "c" and dtype.kind != "c":
        x = lax.real(x)
    return lax.convert_element_type(x, dtype)
