"""Sums, means, extremes and running totals along axes.

Reference: ``jax.numpy``.
"""

# Made from chapters/03_numpy_rest.md by `make chapter`;
# edit the chapter, not this file.

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import lax
from minijax.arrays.dtypes import canonicalize_dtype, check_dtype, kind_of
from minijax.arrays.numerics import wide
from minijax.core import Array
from minijax.lax.conversion import astype as as_type
from minijax.lax.promotion import check_arraylike
from minijax.lax.reductions import highest, lowest
from minijax.numpy.selection import masked
from minijax.numpy.shapes import arraylike, as_axes
from minijax.operators.operands import as_bool, kind
from minijax.typing import ArrayLike


def fold(function, a, axis, keepdims):
    """Apply a function of lax from an array and axes, and keep the axes if asked."""
    axes = as_axes(axis, a.ndim)
    result = function(a, axes)
    return lax.expand_dims(result, axes) if keepdims else result


def refuse_out(name, out):
    """Raise if a result was to be written into an array: arrays are immutable."""
    if out is not None:
        raise NotImplementedError(f"The 'out' argument to jnp.{name} is not supported.")


def with_initial(combine, initial, result):
    """Combine a result with the value that the fold was to start from, if any."""
    if initial is None:
        return result
    check_arraylike("initial", initial)
    if np.ndim(initial):
        raise ValueError(
            f"initial value must be a scalar. Got array of shape {np.shape(initial)}"
        )
    return combine(as_type(initial, result.dtype), result)


def total_dtype(name, dtype, given, promote_integers):
    """Return the dtype of a sum or product of elements of `dtype`."""
    if given is not None:
        return check_dtype(given, name)
    kind = kind_of(dtype)
    if kind == "b" or (kind in "iu" and promote_integers):
        default = canonicalize_dtype("uint64" if kind == "u" else "int64")
        return default if default.itemsize > dtype.itemsize else dtype
    return dtype


TOTALS = {
    "sum": (lax.reduce_sum, lax.add, 0),
    "prod": (lax.reduce_prod, lax.mul, 1),
}
TOTALS_OF_BOOLS = {
    "sum": (lax.reduce_or, lax.bitwise_or, False),
    "prod": (lax.reduce_and, lax.bitwise_and, True),
}


def accumulate(
    name, a, axis, dtype, out, keepdims, initial, where, promote_integers=True
):
    """Return the sum or the product of elements; arguments as in `sum`."""
    refuse_out(name, out)
    a = arraylike(name, a)
    dtype = total_dtype(name, a.dtype, dtype, promote_integers)
    table = TOTALS_OF_BOOLS if dtype.kind == "b" else TOTALS
    function, combine, identity = table[name]
    a = masked(as_type(a, wide(dtype)), where, identity)
    result = with_initial(combine, initial, fold(function, a, axis, keepdims))
    return as_type(result, dtype)


EXTREMES = {
    "max": (lax.reduce_max, lax.max, lowest),
    "min": (lax.reduce_min, lax.min, highest),
}


def extreme(name, a, axis=None, out=None, keepdims=False, initial=None, where=None):
    """Return the greatest or the least of elements; arguments as in `sum`."""
    refuse_out(name, out)
    function, combine, last = EXTREMES[name]
    a = arraylike(name, a)
    a = as_type(a, a.dtype)
    empty = builtins.any(a.shape[axis] == 0 for axis in as_axes(axis, a.ndim))
    if initial is None and empty:
        raise ValueError(f"zero-size array to reduction {name}, which has no identity")
    if initial is None and where is not None:
        check_arraylike(name, where)
        raise ValueError(f"{name} has no identity: with where, pass initial too")
    if where is not None:
        a = masked(a, where, np.asarray(last(a.dtype)).item())
    return with_initial(combine, initial, fold(function, a, axis, keepdims))


def truth_of(name, function, identity, a, axis, out, keepdims, where):
    """Return whether any or all elements are not 0; arguments as in `sum`."""
    refuse_out(name, out)
    a = arraylike(name, a)
    a = lax.real(a) if kind(a) == "c" else a  # as JAX, unlike NumPy
    a = masked(as_type(a, np.dtype(np.bool_)), where, identity)
    return fold(function, a, axis, keepdims)


def sum(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
    promote_integers: bool = True,
) -> Array:
    """Add the elements along axes.

    Args:
      a: array.
      axis: an axis, a tuple of axes, or None for all.
      dtype: dtype to add in; by default that of `a`, but at least 32 bits for integers.
      out: not supported, as arrays are immutable.
      keepdims: whether folded axes stay, with size 1.
      initial: a number to start from.
      where: array of bools that broadcasts to `a`: which elements count.
      promote_integers: whether narrow integers are widened.

    Reference: ``jax.numpy.sum``.
    """
    return accumulate(
        "sum", a, axis, dtype, out, keepdims, initial, where, promote_integers
    )


def prod(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
    promote_integers: bool = True,
) -> Array:
    """Multiply the elements along axes; arguments as in `sum`.

    Reference: ``jax.numpy.prod``.
    """
    return accumulate(
        "prod", a, axis, dtype, out, keepdims, initial, where, promote_integers
    )


def max(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Array:
    """Return the greatest elements along axes; arguments as in `sum`.

    Raises:
      ValueError: if there is no element to choose, and no `initial`.

    Reference: ``jax.numpy.max``.
    """
    return extreme("max", a, axis, out, keepdims, initial, where)


def min(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Array:
    """Return the least elements along axes; arguments as in `sum`.

    Raises:
      ValueError: if there is no element to choose, and no `initial`.

    Reference: ``jax.numpy.min``.
    """
    return extreme("min", a, axis, out, keepdims, initial, where)


def any(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: Any = None,
    keepdims: bool = False,
    *,
    where: Any = None,
) -> Array:
    """Return whether an element along the axes is not 0; arguments as in `sum`.

    Reference: ``jax.numpy.any``.
    """
    return truth_of("any", lax.reduce_or, False, a, axis, out, keepdims, where)


def all(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: Any = None,
    keepdims: bool = False,
    *,
    where: Any = None,
) -> Array:
    """Return whether no element along the axes is 0; arguments as in `sum`.

    Reference: ``jax.numpy.all``.
    """
    return truth_of("all", lax.reduce_and, True, a, axis, out, keepdims, where)


def count_nonzero(
    a: ArrayLike, axis: int | Sequence[int] | None = None, keepdims: bool = False
) -> Array:
    """Count the elements along axes that are not 0.

    Reference: ``jax.numpy.count_nonzero``.
    """
    return sum(as_bool(arraylike("count_nonzero", a)), axis, int, keepdims=keepdims)


def ptp(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: Any = None,
    keepdims: bool = False,
) -> Array:
    """Return the distance from the least to the greatest element along axes.

    Reference: ``jax.numpy.ptp``.
    """
    refuse_out("ptp", out)
    return lax.sub(max(a, axis, None, keepdims), min(a, axis, None, keepdims))


amax, amin, _sum, _all = max, min, sum, all


REDUCTIONS = {
    "sum": sum,
    "prod": prod,
    "max": max,
    "min": min,
    "any": any,
    "all": all,
    "ptp": ptp,
}
