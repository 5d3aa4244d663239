"""Sets: arrays in which each value stands once.

Reference: ``jax.numpy.unique``.
"""

# Made from chapters/33_library.md by `make chapter`;
# edit the chapter, not this file.

import math
from typing import Any

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.arrays.numerics import canonicalize_axis, operator_index
from minijax.numpy.shapes import as_arraylike
from minijax.typing import ArrayLike


def sorted_rows(rows: Any, equal_nan: bool) -> Any:
    """Sort the rows of a matrix; return them, which are new, and where they were."""
    if rows.shape[1]:
        places = jnp.lexsort(rows.T[::-1])
    else:
        places = jnp.zeros(min(1, len(rows)), int)  # rows of nothing are all equal
    rows = rows[places]
    differs = rows[1:] != rows[:-1]
    if equal_nan:
        nan = jnp.isnan(rows)
        differs = differs & jnp.logical_not(nan[1:] & nan[:-1])
    first = jnp.ones(min(1, len(rows)), bool)
    return rows, jnp.concatenate([first, differs.any(1)]), places


def unique(
    ar: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> Any:
    """Return each value once, in ascending order.

    Args:
      ar: an array.
      return_index: whether to return where each value stands first.
      return_inverse: whether to return which of the values each element has.
      return_counts: whether to return how often each value occurs.
      axis: compare the slices along this axis; by default all elements are compared.
      equal_nan: whether NaN counts as one value.
      size: how many values to return; by default all, which have to be known.
      fill_value: what stands behind them if there are fewer; the first by default.
      sorted: accepted, since the values are sorted in any case.

    Returns:
      The values, or a tuple of the values and what has been asked for, in that order.

    Raises:
      ConcretizationTypeError: if neither the elements are known nor `size` is given.
      ValueError: if an empty array has nothing to fill `size` places with.

    Reference: ``jax.numpy.unique``.
    """
    x = as_arraylike("unique", ar)
    shape = x.shape
    along = None if axis is None else canonicalize_axis(axis, x.ndim)
    x = x.reshape(-1) if along is None else jnp.moveaxis(x, along, 0)
    if not len(x) and size and fill_value is None:
        raise ValueError(
            "jnp.unique: for zero-sized input with nonzero size argument, fill_value "
            "must be specified"
        )
    fill = None if size is None else fill_value  # there is nothing to be filled
    values, index, inverse, counts = unique_slices(x, equal_nan, size, fill)
    values = values if along is None else jnp.moveaxis(values, 0, along)
    inverse = inverse.reshape(shape) if along is None else inverse
    wanted = [values] + [index] * return_index + [inverse] * return_inverse
    wanted += [counts] * return_counts
    return tuple(wanted) if len(wanted) > 1 else values


UNIQUE_SIZE_MESSAGE = (
    "The error arose for the first argument of jnp.unique(). In order to use this "
    "function in transformations, specify the `size` argument."
)


def unique_slices(x, equal_nan=True, size=None, fill_value=None):
    """Return the slices of `x` once, where they are first, which each is, how often."""
    n, rest = len(x), x.shape[1:]
    rows = x.reshape(n, math.prod(rest))
    if jnp.issubdtype(x.dtype, np.complexfloating):  # either part may be the NaN
        rows = jnp.where(jnp.isnan(rows), jnp.nan, rows)
    inexact = jnp.issubdtype(x.dtype, np.inexact)
    rows, new, places = sorted_rows(rows, equal_nan and inexact)
    size = operator_index(
        new.sum() if size is None else size, "size", UNIQUE_SIZE_MESSAGE
    )
    inverse = jnp.zeros(n, int).at[places].set(jnp.cumsum(new) - 1)
    if not n:
        values = jnp.full((size, *rest), 0 if fill_value is None else fill_value)
        nowhere = jnp.zeros(size, int)
        return values.astype(x.dtype), nowhere, inverse, nowhere
    [starts] = jnp.nonzero(new, size=size + 1, fill_value=n)
    [found] = jnp.nonzero(new, size=size)
    values = rows[found].reshape(size, *rest)
    if fill_value is not None:
        there = lax.expand_dims(jnp.arange(size) < new.sum(), range(1, values.ndim))
        values = jnp.where(there, values, jnp.asarray(fill_value).astype(x.dtype))
    return values, places[found], inverse, jnp.diff(starts)
