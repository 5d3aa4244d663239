"""Folds that pass over NaN.

Reference: ``jax.numpy.nansum`` and the functions beside it.
"""

# Made from chapters/03_numpy_rest.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import lax
from minijax.arrays.dtypes import check_dtype
from minijax.core import Array
from minijax.lax.conversion import astype as as_type
from minijax.numpy.reductions import _all, _sum, amax, amin, prod, refuse_out
from minijax.numpy.shapes import arraylike
from minijax.numpy.statistics import (
    argmax,
    argmin,
    cumprod,
    cumsum,
    mean,
    squared_size,
    var_dtype,
)
from minijax.numpy.ufuncs import subtract
from minijax.numpy.ufuncs import where as choose
from minijax.operators.operands import as_array, constant, kind
from minijax.typing import ArrayLike

_Axis = int | Sequence[int] | None


def _without_nan(name, a, instead):
    """Return an array, the same with another number for NaN, and where NaN was."""
    a = arraylike(name, a)
    if kind(a) not in "fc":
        return a, a, None
    missing = lax.ne(a, a)
    return a, choose(missing, constant(a, instead), a), missing


def _extreme(name, fold, instead, a, axis, out, keepdims, initial, where_):
    a, present, missing = _without_nan(name, a, instead)
    how = {"axis": axis, "out": out, "keepdims": keepdims}
    result = fold(present, **how, initial=initial, where=where_)
    if missing is None or initial is not None:
        return result
    none = _all(missing, axis=axis, keepdims=keepdims)
    return choose(none, constant(result, np.nan), result)


def nanmin(
    a: ArrayLike,
    axis: _Axis = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Array:
    """Return the smallest element that is not NaN.

    Reference: ``jax.numpy.nanmin``.
    """
    return _extreme("nanmin", amin, np.inf, a, axis, out, keepdims, initial, where)


def nanmax(
    a: ArrayLike,
    axis: _Axis = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Array:
    """Return the largest element that is not NaN.

    Reference: ``jax.numpy.nanmax``.
    """
    return _extreme("nanmax", amax, -np.inf, a, axis, out, keepdims, initial, where)


def nansum(
    a: ArrayLike,
    axis: _Axis = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Array:
    """Return the sum of what is not NaN.

    Reference: ``jax.numpy.nansum``.
    """
    present = _without_nan("nansum", a, 0)[1]
    return _sum(present, axis, dtype, out, keepdims, initial, where)


def nanprod(
    a: ArrayLike,
    axis: _Axis = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Array:
    """Return the product of what is not NaN.

    Reference: ``jax.numpy.nanprod``.
    """
    present = _without_nan("nanprod", a, 1)[1]
    return prod(present, axis, dtype, out, keepdims, initial, where)


def nanmean(
    a: ArrayLike,
    axis: _Axis = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    where: Any = None,
) -> Array:
    """Return the mean of what is not NaN.

    Reference: ``jax.numpy.nanmean``.
    """
    refuse_out("nanmean", out)
    a, present, missing = _without_nan("nanmean", a, 0)
    if missing is None:
        return mean(a, axis, dtype, None, keepdims, where=where)
    dtype = a.dtype if dtype is None else check_dtype(dtype, "mean")
    count = _sum(lax.bitwise_not(missing), axis, dtype, None, keepdims, where=where)
    return lax.div(_sum(present, axis, dtype, None, keepdims, where=where), count)


def nanvar(
    a: ArrayLike,
    axis: _Axis = None,
    dtype: Any = None,
    out: Any = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: Any = None,
    mean: Any = None,
) -> Array:
    """Return the variance of what is not NaN.

    Reference: ``jax.numpy.nanvar``.
    """
    refuse_out("nanvar", out)
    computed, dtype = var_dtype(arraylike("nanvar", a), dtype)
    a = lax.convert_element_type(as_array(a), computed)
    if mean is None:
        mean = nanmean(a, axis, computed, None, True, where)
    distance = subtract(a, as_type(mean, computed))
    distance = choose(lax.ne(a, a), constant(a, 0), distance)
    count = _sum(lax.eq(a, a), axis, None, None, keepdims, where=where)
    count = subtract(count, ddof)  # a `ddof` of 1.5 makes it a float
    none = lax.le(count, constant(count, 0))
    total = _sum(squared_size(distance), axis, None, None, keepdims, where=where)
    total = choose(none, constant(total, np.nan), total)
    count = choose(none, constant(count, 1), count)
    return lax.convert_element_type(lax.div(total, as_type(count, total.dtype)), dtype)


def nanstd(
    a: ArrayLike,
    axis: _Axis = None,
    dtype: Any = None,
    out: Any = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: Any = None,
    mean: Any = None,
) -> Array:
    """Return the standard deviation of what is not NaN.

    Reference: ``jax.numpy.nanstd``.
    """
    refuse_out("nanstd", out)
    return lax.sqrt(nanvar(a, axis, dtype, None, ddof, keepdims, where, mean))


def nancumsum(
    a: ArrayLike, axis: int | None = None, dtype: Any = None, out: Any = None
) -> Array:
    """Return running sums of what is not NaN.

    Reference: ``jax.numpy.nancumsum``.
    """
    return cumsum(_without_nan("nancumsum", a, 0)[1], axis, dtype, out)


def nancumprod(
    a: ArrayLike, axis: int | None = None, dtype: Any = None, out: Any = None
) -> Array:
    """Return running products of what is not NaN.

    Reference: ``jax.numpy.nancumprod``.
    """
    return cumprod(_without_nan("nancumprod", a, 1)[1], axis, dtype, out)


def _place(name, find, instead, a, axis, out, keepdims):
    refuse_out(name, out)
    a, present, missing = _without_nan(name, a, instead)
    place = find(present, axis, None, keepdims)
    if missing is None:
        return place
    none = _all(missing, axis=axis, keepdims=keepdims)
    return choose(none, constant(place, -1), place)


def nanargmax(
    a: ArrayLike, axis: int | None = None, out: Any = None, keepdims: bool | None = None
) -> Array:
    """Return the place of the largest element that is not NaN; -1 if there is none.

    Reference: ``jax.numpy.nanargmax``.
    """
    return _place("nanargmax", argmax, -np.inf, a, axis, out, keepdims or False)


def nanargmin(
    a: ArrayLike, axis: int | None = None, out: Any = None, keepdims: bool | None = None
) -> Array:
    """Return the place of the smallest element that is not NaN; -1 if there is none.

    Reference: ``jax.numpy.nanargmin``.
    """
    return _place("nanargmin", argmin, np.inf, a, axis, out, keepdims or False)
