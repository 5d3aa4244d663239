"""Sums, means, variances, extremes and running totals along axes.

Reference: ``jax.numpy``.
"""

# Made from chapters/03_numpy_rest.md by `make chapter`;
# edit the chapter, not this file.

import builtins
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import lax
from minijax.arrays.dtypes import (
    canonicalize_dtype,
    check_dtype,
    dtype_kind,
    is_inexact,
)
from minijax.arrays.numerics import sum_accumulator_dtype
from minijax.core import Array
from minijax.lax.arithmetic import astype as as_type
from minijax.lax.reductions import (
    check_arraylike,
    max_of_dtype,
    min_of_dtype,
    promote_dtypes_inexact,
    to_inexact_dtype,
)
from minijax.lax.shapes import wrap_to_dtype as as_wrapped
from minijax.numpy.array_creation import diagonal, eye, full_like
from minijax.numpy.operands import (
    array_kind,
    broadcast_to_shape,
    is_nonzero,
    literal_like,
)
from minijax.numpy.shapes import (
    as_arraylike,
    canonical_axes,
    canonical_axis,
    expand_dims,
    moveaxis,
    ravel,
)
from minijax.numpy.ufuncs import sqrt, where_mask
from minijax.typing import ArrayLike

# Sums, means, extremes and running totals along axes.


def reduce_axes(function, a, axis, keepdims):
    """Apply a function of lax from an array and axes, and keep the axes if asked."""
    axes = canonical_axes(axis, a.ndim)
    result = function(a, axes)
    return lax.expand_dims(result, axes) if keepdims else result


def raise_if_out(name, out):
    """Raise if a result was to be written into an array: arrays are immutable."""
    if out is not None:
        raise NotImplementedError(f"The 'out' argument to jnp.{name} is not supported.")


def combine_initial(combine, initial, result):
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
    kind = dtype_kind(dtype)
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


def sum_or_prod(
    name, a, axis, dtype, out, keepdims, initial, where, promote_integers=True
):
    """Return the sum or the product of elements; arguments as in `sum`."""
    raise_if_out(name, out)
    a = as_arraylike(name, a)
    dtype = total_dtype(name, a.dtype, dtype, promote_integers)
    table = TOTALS_OF_BOOLS if dtype_kind(dtype) == "b" else TOTALS
    function, combine, identity = table[name]
    a = where_mask(as_type(a, sum_accumulator_dtype(dtype)), where, identity)
    result = combine_initial(combine, initial, reduce_axes(function, a, axis, keepdims))
    return as_type(result, dtype)


EXTREMES = {
    "max": (lax.reduce_max, lax.max, min_of_dtype),
    "min": (lax.reduce_min, lax.min, max_of_dtype),
}


def max_or_min(name, a, axis=None, out=None, keepdims=False, initial=None, where=None):
    """Return the greatest or the least of elements; arguments as in `sum`."""
    raise_if_out(name, out)
    function, combine, last = EXTREMES[name]
    a = as_arraylike(name, a)
    a = as_type(a, a.dtype)
    empty = builtins.any(a.shape[axis] == 0 for axis in canonical_axes(axis, a.ndim))
    if initial is None and empty:
        raise ValueError(f"zero-size array to reduction {name}, which has no identity")
    if initial is None and where is not None:
        check_arraylike(name, where)
        raise ValueError(f"{name} has no identity: with where, pass initial too")
    if where is not None:
        a = where_mask(a, where, np.asarray(last(a.dtype)).item())
    return combine_initial(combine, initial, reduce_axes(function, a, axis, keepdims))


def truth_of(name, function, identity, a, axis, out, keepdims, where):
    """Return whether any or all elements are not 0; arguments as in `sum`."""
    raise_if_out(name, out)
    a = as_arraylike(name, a)
    a = lax.real(a) if array_kind(a) == "c" else a  # as JAX, unlike NumPy
    a = where_mask(as_type(a, np.dtype(np.bool_)), where, identity)
    return reduce_axes(function, a, axis, keepdims)


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
    return sum_or_prod(
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
    return sum_or_prod(
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
    return max_or_min("max", a, axis, out, keepdims, initial, where)


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
    return max_or_min("min", a, axis, out, keepdims, initial, where)


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
    return sum(
        is_nonzero(as_arraylike("count_nonzero", a)), axis, int, keepdims=keepdims
    )


def ptp(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: Any = None,
    keepdims: bool = False,
) -> Array:
    """Return the distance from the least to the greatest element along axes.

    Reference: ``jax.numpy.ptp``.
    """
    raise_if_out("ptp", out)
    return lax.sub(max(a, axis, None, keepdims), min(a, axis, None, keepdims))


amax, amin, _sum, _all = max, min, sum, all


REDUCTION_METHODS = {
    "sum": sum,
    "prod": prod,
    "max": max,
    "min": min,
    "any": any,
    "all": all,
    "ptp": ptp,
}


# Means, variances, places of extremes and running totals along axes.


def inexact_dtype(name, a, dtype):
    """Return the dtype that was given, or that of `a`, as inexact numbers."""
    return to_inexact_dtype(a.dtype) if dtype is None else check_dtype(dtype, name)


def masked_sum(a, axis, keepdims, where):
    """Return the sum of the elements that count, in their own dtype."""
    a = where_mask(as_type(a, a.dtype), where, 0)
    return reduce_axes(lax.reduce_sum, a, axis, keepdims)


def number_of(a, axis, keepdims, where):
    """Return how many elements count, as a literal or as an array."""
    if where is None:
        count = math.prod(a.shape[i] for i in canonical_axes(axis, a.ndim))
        whole = array_kind(a) in "iu"
        return literal_like(
            a, int(as_wrapped(count, a.dtype)) if whole else float(count)
        )
    counted = broadcast_to_shape(as_type(is_nonzero(where), a.dtype), a.shape)
    return reduce_axes(lax.reduce_sum, counted, axis, keepdims)


def var_dtype(a, dtype):
    """Return the dtype in which to compute a variance, and that of the result."""
    if dtype is None:
        dtype = to_inexact_dtype(a.dtype)
        return sum_accumulator_dtype(dtype), np.zeros((), dtype).real.dtype
    dtype = check_dtype(dtype, "var")
    if array_kind(a) == "c" and dtype.kind != "c":
        raise ValueError(
            f"jax.numpy.var does not yet support real dtype parameters, such as {dtype}"
            ", when computing the variance of an array of complex values. Take its "
            "real part, or leave dtype away."
        )
    return sum_accumulator_dtype(dtype), dtype


def degrees_lost(ddof, correction):
    """Return what to subtract from the number of elements of a variance."""
    if correction is None:
        return ddof
    if not isinstance(ddof, int) or ddof != 0:
        raise ValueError("ddof and correction can't be provided simultaneously.")
    return correction


def abs_squared(x):
    """Return the square of the absolute value of each element."""
    if array_kind(x) == "c":
        return lax.real(lax.mul(x, lax.conj(x)))
    return lax.square(x)


def arg_extremum_of(name, function, a, axis, out, keepdims):
    """Return the index of an element that `function` of lax chooses."""
    raise_if_out(name, out)
    a = as_arraylike(name, a)
    axes = (
        canonical_axes(None, a.ndim)
        if axis is None
        else (canonical_axis(axis, a.ndim),)
    )
    flat, place = (ravel(a), 0) if axis is None else (a, axes[0])
    result = function(flat, place, canonicalize_dtype(int))
    return expand_dims(result, axes) if keepdims else result


def running_sums(name, function, a, axis, dtype, out):
    """Return what `function` of lax accumulates along an axis."""
    raise_if_out(name, out)
    a = as_arraylike(name, a)
    if axis is None or (a.ndim == 0 and a.aval.weak_type):  # numbers have one axis
        a, axis = ravel(a), 0 if axis is None else axis
    axis, default = canonical_axis(axis, a.ndim), canonicalize_dtype(int)
    if array_kind(a) != "b":
        default = a.dtype
    dtype = default if dtype is None else check_dtype(dtype, name)
    if dtype_kind(dtype) == "b":
        a, default = is_nonzero(a), np.dtype("int32")
        return as_type(function(as_type(a, default), axis), dtype)
    return function(as_type(a, dtype), axis)


def mean(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    *,
    where: Any = None,
) -> Array:
    """Return the mean of the elements along axes; arguments as in `sum`.

    Reference: ``jax.numpy.mean``.
    """
    raise_if_out("mean", out)
    a = as_arraylike("mean", a)
    dtype = inexact_dtype("mean", a, dtype)
    a = as_type(a, sum_accumulator_dtype(dtype))
    how = axis, keepdims, where
    return as_type(lax.div(masked_sum(a, *how), number_of(a, *how)), dtype)


def var(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: Any = None,
    out: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Any = None,
    mean: ArrayLike | None = None,
    correction: float | None = None,
) -> Array:
    """Return the variance of the elements along axes; arguments as in `sum`, and these.

    Args:
      ddof, correction: what to subtract from the number of elements; one of the two.
      mean: the means, with the folded axes kept, if they are known already.

    Reference: ``jax.numpy.var``.
    """
    raise_if_out("var", out)
    a, lost = as_arraylike("var", a), degrees_lost(ddof, correction)
    computing, dtype = var_dtype(a, dtype)
    a = as_type(a, computing)
    if mean is not None:
        a, mean = promote_dtypes_inexact(a, mean)
    else:
        whole = None if is_inexact(computing) else computing
        mean = _mean(a, axis, whole, keepdims=True, where=where)
    squares = abs_squared(lax.sub(a, mean))
    count = number_of(squares, axis, keepdims, where)
    count = lax.sub(count, literal_like(count, lost))
    ratio = lax.div(masked_sum(squares, axis, keepdims, where), count)
    if dtype.kind in "iu":  # there is no integer for "not a number"
        ratio = as_type(ratio, canonicalize_dtype(float), True)
    result = where_mask(ratio, lax.gt(count, literal_like(count, 0)), np.nan)
    return result if dtype.kind in "iu" else as_type(result, dtype)


_mean = mean


def std(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: Any = None,
    out: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Any = None,
    mean: ArrayLike | None = None,
    correction: float | None = None,
) -> Array:
    """Return the standard deviation along axes; arguments as in `var`.

    Reference: ``jax.numpy.std``.
    """
    if dtype is not None and not is_inexact(check_dtype(dtype, "std")):
        raise ValueError(f"dtype argument to jnp.std must be inexact; got {dtype}")
    options = {"where": where, "mean": mean, "correction": correction}
    return sqrt(var(a, axis, dtype, out, ddof, keepdims, **options))


def argmax(
    a: ArrayLike, axis: int | None = None, out: Any = None, keepdims: bool | None = None
) -> Array:
    """Return the index of the first greatest element along an axis; NaN is greatest.

    Args:
      a: array.
      axis: an axis, or None for the vector of all elements.
      keepdims: whether the axis stays, with size 1.

    Reference: ``jax.numpy.argmax``.
    """
    return arg_extremum_of("argmax", lax.argmax, a, axis, out, keepdims)


def argmin(
    a: ArrayLike, axis: int | None = None, out: Any = None, keepdims: bool | None = None
) -> Array:
    """Return the index of the first least element along an axis; NaN is least.

    Arguments are as in `argmax`. Reference: ``jax.numpy.argmin``.
    """
    return arg_extremum_of("argmin", lax.argmin, a, axis, out, keepdims)


def cumsum(
    a: ArrayLike, axis: int | None = None, dtype: Any = None, out: Any = None
) -> Array:
    """Return the running sums along an axis; without one, of all elements.

    Reference: ``jax.numpy.cumsum``.
    """
    return running_sums("cumsum", lax.cumsum, a, axis, dtype, out)


def cumprod(
    a: ArrayLike, axis: int | None = None, dtype: Any = None, out: Any = None
) -> Array:
    """Return the running products along an axis; without one, of all elements.

    Reference: ``jax.numpy.cumprod``.
    """
    return running_sums("cumprod", lax.cumprod, a, axis, dtype, out)


def trace(
    a: ArrayLike,
    offset: Any = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: Any = None,
    out: Any = None,
) -> Array:
    """Add the elements on a diagonal, which is as in `diagonal`.

    Args:
      a: array with at least two axes.
      offset: which diagonal, as in `eye`; it may be traced.
      axis1, axis2: the axes of the matrices.
      dtype: the type of the result.
      out: must be None, since arrays do not change.

    Raises:
      ValueError: if the axes are out of bounds, or the same.

    Reference: ``jax.numpy.trace``.
    """
    a = as_arraylike("trace", a)
    if canonical_axis(axis1, a.ndim) == canonical_axis(axis2, a.ndim):
        raise ValueError(f"axis1 and axis2 can not be same: {axis1} and {axis2}.")
    if not isinstance(offset, Array):
        elements = diagonal(a, offset, axis1, axis2)
        return sum_or_prod("sum", elements, -1, dtype, out, False, None, None)
    a = moveaxis(a, (axis1, axis2), (-2, -1))
    rows, columns = a.shape[-2:]
    mask = eye(rows, columns, offset, bool)
    elements = lax.select(broadcast_to_shape(mask, a.shape), a, full_like(a, 0))
    return sum_or_prod("sum", elements, (-2, -1), dtype, out, False, None, None)


STATISTICS = {
    "mean": mean,
    "var": var,
    "std": std,
    "argmax": argmax,
    "argmin": argmin,
    "cumsum": cumsum,
    "cumprod": cumprod,
    "trace": trace,
}
