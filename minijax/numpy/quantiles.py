"""Medians and other quantiles.

Reference: ``jax.numpy.quantile``.
"""

# Made from chapters/29_sorting_rest.md by `make chapter`;
# edit the chapter, not this file.

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import lax
from minijax.arrays.array import typeof
from minijax.arrays.dtypes import canonicalize_dtype
from minijax.arrays.out_sharding import with_out_sharding
from minijax.core import Array
from minijax.lax.arithmetic import astype as as_type
from minijax.lax.reductions import promote_dtypes_inexact
from minijax.numpy.array_methods import where as choose
from minijax.numpy.operands import array_kind
from minijax.numpy.reductions import _all, _sum, cumsum
from minijax.numpy.reductions import any as _any
from minijax.numpy.shapes import as_arraylike, canonical_axes, expand_dims
from minijax.typing import ArrayLike

METHODS = "linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf"


def element_at(a, places):
    """Return the elements of rows at places, which have an axis less at their end."""
    numbers = lax.iota(places.dtype, a.shape[-1])
    chosen = lax.eq(*_stretched(expand_dims(places, -1), numbers))
    return _sum(choose(chosen, a, lax.full((), 0, a.dtype)), axis=-1, dtype=a.dtype)


def _stretched(x, y):
    shape = lax.broadcast_shapes(x.shape, y.shape)
    rank = len(shape)
    return [lax.broadcast_in_dim(z, shape, range(rank - z.ndim, rank)) for z in (x, y)]


def merge_axes_to_end(a, axes):
    """Return an array with some axes joined to one, at its end."""
    kept = [axis for axis in range(a.ndim) if axis not in axes]
    shape = [a.shape[axis] for axis in kept]
    a = lax.transpose(a, [*kept, *axes])
    return lax.reshape(a, (*shape, math.prod(a.shape[len(kept) :])))


def _check(name, a, q, method, weights, axes, axis):
    if method not in METHODS:
        *words, last = map(repr, METHODS)
        raise ValueError(f"method can only be {', '.join(words)} or {last}")
    if array_kind(a) == "c":
        raise ValueError(
            f"{name} does not support complex input, as the operation is poorly "
            "defined."
        )
    if q.ndim > 1:
        raise ValueError(f"q must be have rank <= 1, got shape {q.shape}")
    if weights is not None:
        _check_weights(a, method, weights, axes, axis)


def _check_weights(a, method, weights, axes, axis):
    if array_kind(weights) == "c":
        raise ValueError("Weights cannot be complex types.")
    if method != "inverted_cdf":
        raise NotImplementedError(
            f"{method} doesn't support weights. Only method 'inverted_cdf' supports "
            "weights."
        )
    if weights.shape == a.shape:
        return
    if axis is None:
        raise ValueError("Weights shape must match 'a' shape when axis is None.")
    expected = tuple(a.shape[i] for i in axes)
    if weights.shape != expected:
        raise ValueError(
            f"Weights shape {weights.shape} must match reduction axes {expected}"
        )


def _quantile(name, a, q, axis, method, keepdims, skip_nan, weights):
    a, q = as_arraylike(name, a), as_arraylike(name, q)
    axes = canonical_axes(tuple(axis) if isinstance(axis, list) else axis, a.ndim)
    weights = None if weights is None else as_arraylike(name, weights)
    _check(name, a, q, method, weights, axes, axis)
    [a, *more] = promote_dtypes_inexact(a, *([] if weights is None else [weights]))
    shape = [1 if i in axes else size for i, size in enumerate(a.shape)]
    rows = merge_axes_to_end(a, axes)
    more = [
        merge_axes_to_end(w, axes) if w.shape == a.shape else _repeated(w, rows.shape)
        for w in more
    ]
    if not rows.shape[-1] and (not skip_nan or math.prod(rows.shape[:-1])):
        raise TypeError(f"{name} of no elements: {typeof(a)} along {axes}.")
    missing = lax.ne(rows, rows)
    if not skip_nan:
        missing = _any(missing, axis=-1, keepdims=True)
    rows = choose(missing, lax.full((), np.nan, a.dtype), rows)
    rows, *more = lax.sort((rows, *more), dimension=rows.ndim - 1)
    find = _by_weight if method == "inverted_cdf" else _between
    result = find(rows, q, method, skip_nan, *more)
    result = lax.reshape(result, (*q.shape, *shape)) if keepdims else result
    return as_type(result, a.dtype)


def _repeated(weights, shape):
    """Return weights of the folded axes, in their order, for each of the rows."""
    flat = lax.reshape(weights, (weights.size,))
    return lax.broadcast_in_dim(flat, shape, [len(shape) - 1])


def _number_of(rows, dtype, skip_nan):
    """Return how many elements of each row count."""
    if not skip_nan:
        return lax.full(rows.shape[:-1], rows.shape[-1], dtype)
    return _sum(as_type(lax.eq(rows, rows), dtype), axis=-1, dtype=dtype)


def _for_each(q, x):
    """Return quantiles and numbers of rows, both with all axes of the result."""
    shape = (*q.shape, *x.shape)
    q = lax.broadcast_in_dim(q, shape, range(q.ndim))
    return q, lax.broadcast_in_dim(x, shape, range(q.ndim - x.ndim, q.ndim))


def _between(rows, q, method, skip_nan):
    """Return what lies at the quantiles, between two neighbours."""
    q, last = _for_each(q, _number_of(rows, q.dtype, skip_nan) - 1)
    q, zero = lax.mul(q, last), lax.full_like(q, 0)
    low, high = lax.floor(q), lax.ceil(q)
    above = lax.sub(q, low)
    below = lax.sub(lax.full_like(above, 1), above)
    places = [lax.max(zero, lax.min(x, last)) for x in (low, high)]
    places = [lax.convert_element_type(x, canonicalize_dtype(int)) for x in places]
    low, high = (element_at(rows, place) for place in places)
    if method == "linear":
        low, high = as_type(low, q.dtype), as_type(high, q.dtype)
        return lax.add(lax.mul(low, below), lax.mul(high, above))
    if method == "midpoint":
        return lax.mul(lax.add(low, high), lax.full_like(low, 0.5))
    if method == "nearest":
        return lax.select(lax.le(above, lax.full_like(above, 0.5)), low, high)
    return low if method == "lower" else high


def _by_weight(rows, q, method, skip_nan, weights=None):
    """Return the first elements up to which the weights add up to the quantiles."""
    weights = lax.full_like(rows, 1) if weights is None else weights
    missing, zero = lax.ne(rows, rows), lax.full_like(weights, 0)
    wrong = lax.bitwise_or(lax.lt(weights, zero), lax.ne(weights, weights))
    used = lax.select(lax.bitwise_or(wrong, missing), zero, weights)
    sums = cumsum(used, axis=-1)
    wanted, total = _for_each(q, lax.index_in_dim(sums, -1, axis=-1, keepdims=False))
    wanted = expand_dims(lax.mul(wanted, as_type(total, wanted.dtype)), -1)
    sums, wanted = _stretched(sums, wanted)
    places = _sum(lax.lt(sums, wanted), axis=-1)
    last = as_type(_number_of(rows, q.dtype, skip_nan) - 1, places.dtype)
    _, last = _for_each(q, last)
    result = element_at(rows, lax.max(lax.full_like(places, 0), lax.min(places, last)))
    fold = _all if skip_nan else _any
    bad = lax.bitwise_or(_any(wrong, axis=-1), fold(missing, axis=-1))
    return choose(bad, lax.full((), np.nan, rows.dtype), result)


_Axis = int | Sequence[int] | None


def quantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: _Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """Return the numbers below which a part `q` of the elements lies.

    Args:
      a: an array of real numbers; a row with NaN has the quantile NaN.
      q: a float between 0 and 1, or an array of them, which becomes the first axis.
      axis: one axis, several, or None for all.
      out, overwrite_input: refused.
      method: what to do between two elements: ``"linear"``, ``"lower"``, ``"higher"``,
        ``"midpoint"`` or ``"nearest"``; or ``"inverted_cdf"``.
      keepdims: whether the axes stay, with size 1.
      weights: of the elements, for ``"inverted_cdf"``.

    Reference: ``jax.numpy.quantile``.
    """
    _refuse_buffers("quantile", out, overwrite_input)
    return _quantile("quantile", a, q, axis, method, keepdims, False, weights)


def nanquantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: _Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """Return quantiles of what is not NaN; see `quantile`.

    Reference: ``jax.numpy.nanquantile``.
    """
    _refuse_buffers("nanquantile", out, overwrite_input)
    return _quantile("nanquantile", a, q, axis, method, keepdims, True, weights)


@with_out_sharding
def percentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: _Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
    out_sharding: Any = None,
) -> Array:
    """Return quantiles for `q` in percent; see `quantile`.

    Reference: ``jax.numpy.percentile``.
    """
    q = _hundredth("percentile", q)
    return quantile(a, q, axis, out, overwrite_input, method, keepdims, weights=weights)


def nanpercentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: _Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """Return percentiles of what is not NaN; see `quantile`.

    Reference: ``jax.numpy.nanpercentile``.
    """
    q = _hundredth("nanpercentile", q)
    return nanquantile(
        a, q, axis, out, overwrite_input, method, keepdims, weights=weights
    )


def median(
    a: ArrayLike,
    axis: _Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:
    """Return the middle one of the elements in order, or the mean of the middle two.

    Reference: ``jax.numpy.median``.
    """
    return quantile(a, 0.5, axis, out, overwrite_input, "midpoint", keepdims)


def nanmedian(
    a: ArrayLike,
    axis: _Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:
    """Return the median of what is not NaN.

    Reference: ``jax.numpy.nanmedian``.
    """
    return nanquantile(a, 0.5, axis, out, overwrite_input, "midpoint", keepdims)


def _refuse_buffers(name: str, out: Any, overwrite_input: Any) -> None:
    if overwrite_input or out is not None:
        raise ValueError(
            f"jax.numpy.{name} does not support overwrite_input=True or out != None"
        )


def _hundredth(name: str, q: ArrayLike) -> Array:
    [q] = promote_dtypes_inexact(as_arraylike(name, q))
    return lax.div(q, lax.full_like(q, 100))
