"""Places where a condition holds, elements that stand there, and counts.

Reference: ``jax.numpy.nonzero``, ``jax.numpy.compress``, ``jax.numpy.bincount``.
"""

# Made from chapters/28_indexing_rest.md by `make chapter`;
# edit the chapter, not this file.

import math
from typing import Any

import numpy as np

from minijax.arrays.avals import typeof
from minijax.arrays.checks import as_integer, refuse_sharding
from minijax.arrays.dtypes import kind_of
from minijax.catalogue.ranges import arange
from minijax.core import Array
from minijax.errors import ConcretizationTypeError
from minijax.numpy.creation import astype, zeros
from minijax.numpy.joining import stack
from minijax.numpy.reductions import _sum
from minijax.numpy.selection import clip
from minijax.numpy.shapes import arraylike, atleast_1d, expand_dims, moveaxis, ravel
from minijax.numpy.statistics import cumsum
from minijax.numpy.ufuncs import where
from minijax.operators.entries import known_value
from minijax.operators.operands import as_bool
from minijax.typing import ArrayLike

SIZE_OF_NONZERO = (
    "The size argument of jnp.nonzero must be statically specified to use jnp.nonzero "
    "within JAX transformations."
)


def nonzero(
    a: ArrayLike, *, size: int | None = None, fill_value: Any = None
) -> tuple[Array, ...]:
    """Return the places of the elements that are not zero, an array for each axis.

    Args:
      a: an array with an axis at least.
      size: how many places to return; by default all, which have to be known.
      fill_value: what stands behind them if there are fewer; 0 by default. A number, or
        one for each axis.

    Raises:
      ValueError: for an array without axes.
      ConcretizationTypeError: if neither the elements are known nor `size` is given.

    Reference: ``jax.numpy.nonzero``.
    """
    x = arraylike("nonzero", a)
    if not x.ndim:
        raise ValueError(
            "Calling nonzero on 0d arrays is not allowed. Use "
            "jnp.atleast_1d(scalar).nonzero() instead."
        )
    mask = as_bool(x)
    found = _sum(mask)
    size = as_integer(found if size is None else size, "size", SIZE_OF_NONZERO)
    if not x.size or not size:
        return tuple(zeros(size, int) for _ in x.shape)
    numbers = bincount(cumsum(mask.reshape(-1)), length=size)
    places = _split_up(cumsum(numbers), x.shape)
    return _filled(places, fill_value, arange(size) >= found)


def _split_up(flat, shape):
    """Return places in a row as places along each axis."""
    steps = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    return tuple(flat // step % size for step, size in zip(steps, shape))


def _filled(places, fill_value, missing):
    """Put a fill value where places are missing."""
    if fill_value is None:
        return places
    several = isinstance(fill_value, tuple)
    fills = fill_value if several else (fill_value,) * len(places)
    if any(np.shape(fill) for fill in fills):
        raise ValueError(
            f"fill_value must be a scalar or a tuple of length {len(places)}; got "
            f"{fill_value}"
        )
    pairs = zip(fills, places, strict=True)
    return tuple(where(missing, fill, place) for fill, place in pairs)


def bincount(
    x: ArrayLike,
    weights: ArrayLike | None = None,
    minlength: int = 0,
    *,
    length: int | None = None,
    out_sharding: Any = None,
) -> Array:
    """Count how often each number occurs, or sum the weights of each.

    Args:
      x: a row of integers; negative ones count as 0.
      weights: what each counts; 1 by default.
      minlength: how many counts there are at least.
      length: how many there are; larger numbers are left out. It is needed where `x` is
        not known.

    Reference: ``jax.numpy.bincount``.
    """
    refuse_sharding("bincount", out_sharding)
    x = arraylike("bincount", x)
    x = astype(x, np.int32) if kind_of(x.dtype) == "b" else x
    if kind_of(x.dtype) not in "iu":
        raise TypeError(
            f"x argument to bincount must have an integer type; got {x.dtype}"
        )
    if x.ndim != 1:
        raise ValueError("only 1-dimensional input supported.")
    weights = np.asarray(1, int_dtype()) if weights is None else weights
    if np.ndim(weights) and np.shape(weights) != x.shape:
        raise ValueError(
            f"shape of weights must match shape of x, got {np.shape(weights)} and "
            f"{x.shape}"
        )
    length = _length_of_counts(x, minlength) if length is None else length
    length = as_integer(length, "the argument 'length' of jnp.bincount")
    counts = zeros(length, typeof(weights).dtype)
    return counts.at[clip(x, 0)].add(weights, mode="drop")


def int_dtype():
    """Return the dtype of Python's integers."""
    return typeof(0).dtype


def _length_of_counts(x, minlength):
    """Return one more than the largest number of a row, which has to be known."""
    known = known_value(x)
    if known is None:
        raise ConcretizationTypeError(
            "Abstract tracer value encountered where concrete value is expected: "
            f"{x!r}. The error occurred because of argument 'x' of jnp.bincount. To "
            "avoid this error, pass a static `length` argument."
        )
    known = np.asarray(known)
    return max(minlength, known.size and int(max(0, known.max())) + 1)


def flatnonzero(
    a: ArrayLike, *, size: int | None = None, fill_value: Any = None
) -> Array:
    """Return the places of the elements that are not zero, counted in a row.

    Reference: ``jax.numpy.flatnonzero``.
    """
    return nonzero(ravel(a), size=size, fill_value=fill_value)[0]


def argwhere(
    a: ArrayLike, *, size: int | None = None, fill_value: Any = None
) -> Array:
    """Return the places of the elements that are not zero, a row for each.

    Reference: ``jax.numpy.argwhere``.
    """
    a = arraylike("argwhere", a)
    rows = stack(nonzero(atleast_1d(a), size=size, fill_value=fill_value), 1)
    return rows if a.ndim else rows[:, :0]


def compress(
    condition: ArrayLike,
    a: ArrayLike,
    axis: int | None = None,
    *,
    size: int | None = None,
    fill_value: ArrayLike = 0,
    out: None = None,
) -> Array:
    """Return the slices along an axis for which a condition holds.

    Args:
      condition: a row of bools, known unless `size` is given.
      a: an array.
      axis: along which; None for all elements in a row.
      size: how many slices to return.
      fill_value: what stands behind them if there are fewer.
      out: must be None.

    Reference: ``jax.numpy.compress``.
    """
    if out is not None:
        raise NotImplementedError(
            "The 'out' argument to jnp.compress is not supported."
        )
    holds = as_bool(arraylike("compress", condition))
    if holds.ndim != 1:
        raise ValueError("condition must be a 1D array")
    x = arraylike("compress", a)
    x, axis = (ravel(x), 0) if axis is None else (moveaxis(x, axis, 0), axis)
    chosen, extra = holds[: x.shape[0]], holds[x.shape[0] :]
    x = x[: chosen.shape[0]]
    if size is None:
        if extra.any():
            raise ValueError("condition contains entries that are out of bounds")
        return moveaxis(x[chosen], 0, axis)
    if not 0 <= size <= x.shape[0]:
        raise ValueError(
            "size must be positive and not greater than the size of the array axis; "
            f"got {size=} for a.shape[axis]={x.shape[0]}"
        )
    [places] = nonzero(chosen, size=size)
    there = expand_dims(arange(size) < _sum(chosen), tuple(range(1, x.ndim)))
    return moveaxis(where(there, x[places], astype(fill_value, x.dtype)), 0, axis)


def extract(
    condition: ArrayLike,
    arr: ArrayLike,
    *,
    size: int | None = None,
    fill_value: ArrayLike = 0,
) -> Array:
    """Return the elements for which a condition holds, in a row.

    Reference: ``jax.numpy.extract``.
    """
    condition, row = ravel(condition), ravel(arr)
    return compress(condition, row, size=size, fill_value=fill_value)
