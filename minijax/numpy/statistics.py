"""Folds that pass over NaN, averages, differences, integrals and covariances.

References: ``jax.numpy.nansum`` and the functions beside it, ``jax.numpy``,
``jax.numpy.gradient``, ``jax.numpy.cov``, ``jax.numpy.polymul``.
"""

# Made from chapters/03_numpy_rest.md by `make chapter`;
# edit the chapter, not this file.

import builtins
import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import lax
from minijax.arrays.devices import ignore_float_errors
from minijax.core import Array
from minijax.extend.arguments import (
    canonicalize_axis,
    check_arraylike,
    check_dtype,
    check_rank,
    check_room,
    dim_size_along,
    operator_index,
    promised,
)
from minijax.extend.dtypes import is_inexact, to_inexact_dtype
from minijax.extend.promotion import astype as as_type
from minijax.extend.promotion import promote_dtypes, promote_dtypes_inexact, promoting
from minijax.numpy.array_creation import (
    array,
    asarray,
    astype,
    diag,
    full,
    zeros,
    zeros_like,
)
from minijax.numpy.array_methods import add, divide, multiply, not_equal, subtract
from minijax.numpy.array_methods import where as choose
from minijax.numpy.joining import concatenate, stack
from minijax.numpy.operands import array_kind, as_array, literal_like, promote_factors
from minijax.numpy.ranges import linspace
from minijax.numpy.reductions import (
    _all,
    _sum,
    abs_squared,
    amax,
    amin,
    argmax,
    argmin,
    cumprod,
    cumsum,
    mean,
    prod,
    raise_if_out,
    var_dtype,
)
from minijax.numpy.scalar_types import result_type
from minijax.numpy.shapes import (
    as_arraylike,
    atleast_1d,
    atleast_2d,
    broadcast_shapes,
    broadcast_to,
    canonical_axes,
    expand_dims,
    moveaxis,
    ravel,
    reshape,
    squeeze,
)
from minijax.numpy.tensor_contractions import dot, matmul
from minijax.numpy.ufuncs import (
    absolute,
    clip,
    conjugate,
    imag,
    log10,
    power,
    real,
    sign,
    sqrt,
)
from minijax.typing import ArrayLike

# Folds that pass over NaN.

_Axis = int | Sequence[int] | None


def _without_nan(name, a, instead):
    """Return an array, the same with another number for NaN, and where NaN was."""
    a = as_arraylike(name, a)
    if array_kind(a) not in "fc":
        return a, a, None
    missing = lax.ne(a, a)
    return a, choose(missing, literal_like(a, instead), a), missing


def _extreme(name, fold, instead, a, axis, out, keepdims, initial, where_):
    a, present, missing = _without_nan(name, a, instead)
    how = {"axis": axis, "out": out, "keepdims": keepdims}
    result = fold(present, **how, initial=initial, where=where_)
    if missing is None or initial is not None:
        return result
    none = _all(missing, axis=axis, keepdims=keepdims)
    return choose(none, literal_like(result, np.nan), result)


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
    raise_if_out("nanmean", out)
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
    raise_if_out("nanvar", out)
    computed, dtype = var_dtype(as_arraylike("nanvar", a), dtype)
    a = lax.convert_element_type(as_array(a), computed)
    if mean is None:
        mean = nanmean(a, axis, computed, None, True, where)
    distance = subtract(a, as_type(mean, computed))
    distance = choose(lax.ne(a, a), literal_like(a, 0), distance)
    count = _sum(lax.eq(a, a), axis, None, None, keepdims, where=where)
    count = subtract(count, ddof)  # a `ddof` of 1.5 makes it a float
    none = lax.le(count, literal_like(count, 0))
    total = _sum(abs_squared(distance), axis, None, None, keepdims, where=where)
    total = choose(none, literal_like(total, np.nan), total)
    count = choose(none, literal_like(count, 1), count)
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
    raise_if_out("nanstd", out)
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
    raise_if_out(name, out)
    a, present, missing = _without_nan(name, a, instead)
    place = find(present, axis, None, keepdims)
    if missing is None:
        return place
    none = _all(missing, axis=axis, keepdims=keepdims)
    return choose(none, literal_like(place, -1), place)


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


# Differences, averages and integrals; products of many vectors.


def diff(
    a: Any,
    n: int = 1,
    axis: int = -1,
    prepend: ArrayLike | None = None,
    append: ArrayLike | None = None,
) -> Array:
    """Subtract each element from the next one, `n` times.

    Args:
      a: an array.
      n: how often.
      axis: along which.
      prepend, append: arrays to join to `a` first; a number stands for one slice.

    Reference: ``jax.numpy.diff``.
    """
    a, n = as_arraylike("diff", a), operator_index(n, "the order of differences")
    if n == 0:
        return a
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n}")
    if not a.ndim:
        raise ValueError(
            f"diff requires input that is at least one dimensional; got {a}"
        )
    axis = canonicalize_axis(axis, a.ndim)
    slab = [1 if place == axis else size for place, size in enumerate(a.shape)]
    pieces = [_slab(piece, slab) for piece in (prepend, a, append) if piece is not None]
    a = concatenate(pieces, axis) if len(pieces) > 1 else a
    step = not_equal if array_kind(a) == "b" else subtract
    for _ in range(builtins.min(n, a.shape[axis])):  # then nothing is left
        a = step(*_neighbours(a, axis))
    return a


def _slab(x, shape):
    x = as_arraylike("diff", x)
    return x if x.ndim else broadcast_to(x, shape)


def _neighbours(a, axis):
    """Return all slices but the first, and all but the last."""
    size = a.shape[axis]
    later = lax.slice_in_dim(a, 1 if size else 0, size, axis=axis)
    return later, lax.slice_in_dim(a, 0, later.shape[axis], axis=axis)


def ediff1d(
    ary: ArrayLike, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None
) -> Array:
    """Return the differences of all neighbours, with more in front and behind.

    Reference: ``jax.numpy.ediff1d``.
    """
    ary = ravel(as_arraylike("ediff1d", ary))
    pieces = [to_begin, subtract(*_neighbours(ary, 0)), to_end]
    pieces = [ravel(astype(each, ary.dtype)) for each in pieces if each is not None]
    return concatenate(pieces)


@promoting
def trapezoid(y: Any, x: Any = None, dx: ArrayLike = 1.0, axis: int = -1) -> Array:
    """Integrate along an axis: trapezoids over the intervals of `x`, or of width `dx`.

    Reference: ``jax.numpy.trapezoid``.
    """
    if x is None:
        check_arraylike("trapezoid", y)
        [y] = map(as_array, promote_dtypes_inexact(y))
        width = asarray(dx)
        if width.ndim:  # as wide as `y` has axes, whose neighbours it is between
            rank = max(y.ndim - width.ndim, 0)
            width = moveaxis(lax.expand_dims(width, range(rank)), axis, -1)
    else:
        check_arraylike("trapezoid", y, x)
        y, x = map(as_array, promote_dtypes_inexact(y, x))
        width = diff(x) if x.ndim == 1 else moveaxis(diff(x, axis=axis), axis, -1)
    later, earlier = _neighbours(moveaxis(y, axis, -1), y.ndim - 1)
    return multiply(0.5, _sum(multiply(width, add(later, earlier)), -1))


def average(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    weights: ArrayLike | None = None,
    returned: bool = False,
    keepdims: bool = False,
) -> Any:
    """Return the mean, each element counted with its weight.

    Args:
      a: an array.
      axis: along which; by default all.
      weights: an array of the shape of `a`, or of the sizes along `axis`.
      returned: whether to return the sum of the weights too.
      keepdims: whether reduced axes stay, with size 1.

    Reference: ``jax.numpy.average``.
    """
    a = as_arraylike("average", a)
    axes = canonical_axes(axis, a.ndim)
    if weights is None:
        result = mean(a, axis, keepdims=keepdims)
        count = math.prod(a.shape[place] for place in axes)
        weight = full((), count, result.dtype)
    else:
        check_arraylike("average", weights)
        given = as_array(weights)  # a product with bools is a choice
        a, weights = map(as_array, promote_dtypes_inexact(a, given))
        given, weights = (_along(each, a, axis, axes) for each in (given, weights))
        weight = _sum(weights, axis, keepdims=keepdims)
        result = divide(_sum(multiply(a, given), axis, keepdims=keepdims), weight)
    return (result, broadcast_to(weight, result.shape)) if returned else result


def _along(weights, a, axis, axes):
    if a.shape == weights.shape:
        return weights
    if axis is None:
        raise ValueError("_Axis must be specified when shapes of a and weights differ.")
    if weights.shape != tuple(a.shape[place] for place in axes):
        raise ValueError(
            "Shape of weights must be consistent with shape of a along specified axis."
        )
    ordered = lax.transpose(weights, np.argsort(axes).tolist())
    return lax.expand_dims(ordered, [i for i in range(a.ndim) if i not in axes])


def _running(name, function, start, x, axis, dtype, include_initial):
    x = as_arraylike(name, x)
    if not x.ndim or (axis is None and x.ndim > 1):
        raise ValueError(
            f"The input of {name} has rank {x.ndim}: it has to be an array with one "
            "axis, or the axis has to be given."
        )
    axis = canonicalize_axis(0 if axis is None else axis, x.ndim)
    result = function(x, axis, dtype)
    if not include_initial:
        return result
    shape = [1 if place == axis else size for place, size in enumerate(x.shape)]
    return concatenate([full(shape, start, result.dtype), result], axis)


def cumulative_sum(
    x: ArrayLike,
    /,
    *,
    axis: int | None = None,
    dtype: Any = None,
    include_initial: bool = False,
) -> Array:
    """Return running sums, with the sum of nothing in front if that is wanted.

    Reference: ``jax.numpy.cumulative_sum``.
    """
    x = as_arraylike("cumulative_sum", x)
    if (
        dtype is None and array_kind(x) in "biu"
    ):  # small integers are added up in larger ones
        dtype = _sum(zeros((0,), x.dtype)).dtype
    return _running("cumulative_sum", cumsum, 0, x, axis, dtype, include_initial)


def cumulative_prod(
    x: ArrayLike,
    /,
    *,
    axis: int | None = None,
    dtype: Any = None,
    include_initial: bool = False,
) -> Array:
    """Return running products, with the product of nothing in front if wanted.

    Reference: ``jax.numpy.cumulative_prod``.
    """
    return _running("cumulative_prod", cumprod, 1, x, axis, dtype, include_initial)


def vecdot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axis: int = -1,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """Multiply vectors along an axis, the first conjugated; other axes broadcast.

    Reference: ``jax.numpy.vecdot``.
    """
    x1, x2 = promised(x1), promised(x2)
    check_arraylike("vecdot", x1, x2)
    x1, x2 = as_array(x1), as_array(x2)
    if dim_size_along(x1, axis) != dim_size_along(x2, axis):
        raise ValueError(
            f"axes must match; got shapes {x1.shape} and {x2.shape} with axis={axis}"
        )
    row = expand_dims(conjugate(moveaxis(x1, axis, -1)), -2)
    column = expand_dims(moveaxis(x2, axis, -1), -1)
    how = {"precision": precision, "preferred_element_type": preferred_element_type}
    return squeeze(matmul(row, column, **how), (-2, -1))


def matvec(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Multiply matrices and vectors; the axes in front of both broadcast.

    Reference: ``jax.numpy.matvec``.
    """
    check_arraylike("matvec", x1, x2)
    if np.ndim(x1) < 2 or np.ndim(x2) < 1:
        shapes = f"{np.shape(x1)} and {np.shape(x2)}"
        raise ValueError(f"matvec takes matrices and vectors, got shapes {shapes}.")
    return squeeze(matmul(x1, expand_dims(x2, -1)), -1)


def vecmat(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Multiply vectors, conjugated, and matrices; the axes in front of both broadcast.

    Reference: ``jax.numpy.vecmat``.
    """
    check_arraylike("vecmat", x1, x2)
    return squeeze(matmul(expand_dims(conjugate(x1), -2), x2), -2)


def cross(
    a: ArrayLike,
    b: ArrayLike,
    axisa: int = -1,
    axisb: int = -1,
    axisc: int = -1,
    axis: int | None = None,
) -> Array:
    """Return the cross products of vectors of size 3, or 2.

    Reference: ``jax.numpy.cross``.
    """
    check_arraylike("cross", a, b)
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = moveaxis(asarray(a), axisa, -1), moveaxis(asarray(b), axisb, -1)
    if not {a.shape[-1], b.shape[-1]} <= {2, 3}:
        raise ValueError("Dimension must be either 2 or 3 for cross product")
    flat = a.shape[-1] == b.shape[-1] == 2
    (ax, ay, az), (bx, by, bz) = _coordinates(a), _coordinates(b)
    z = subtract(multiply(ax, by), multiply(ay, bx))
    if flat:
        return z
    x = subtract(multiply(ay, bz), multiply(az, by))
    y = subtract(multiply(az, bx), multiply(ax, bz))
    return moveaxis(stack([x, y, z]), 0, axisc)


def _coordinates(a):
    parts = [lax.index_in_dim(a, i, -1, keepdims=False) for i in range(a.shape[-1])]
    return parts if len(parts) == 3 else [*parts, zeros_like(parts[0])]


def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Array:
    """Return the powers of each number, as a row: the matrix of Vandermonde.

    Reference: ``jax.numpy.vander``.
    """
    x = as_arraylike("vander", x)
    if x.ndim != 1:
        raise ValueError("x must be a one-dimensional array")
    count = x.shape[0] if N is None else operator_index(N, "the number of columns")
    if count < 0:
        raise ValueError("N must be nonnegative")
    powers = lax.iota(x.dtype, count)
    powers = powers if increasing else lax.sub(literal_like(powers, count - 1), powers)
    return power(expand_dims(x, -1), expand_dims(powers, 0))


def polyval(p: ArrayLike, x: ArrayLike, *, unroll: int = 16) -> Array:
    """Evaluate a polynomial whose highest coefficient comes first.

    Args:
      p: the coefficients, along the first axis.
      x: where; an array.
      unroll: makes no difference here, as there is one step for each coefficient.

    Reference: ``jax.numpy.polyval``.
    """
    check_arraylike("polyval", p, x)
    factors = promote_factors(p, x)
    p, x = as_array(promote_dtypes(p, x)[0]), as_array(factors[1])
    check_rank("polyval", 1, p)
    shape = broadcast_shapes(p.shape[1:], x.shape)
    result = zeros(shape, p.dtype)
    for place in range(p.shape[0]):
        coefficient = lax.index_in_dim(p, place, keepdims=False)
        result = add(multiply(result, x), coefficient)
    return result


def polyder(p: Any, m: int = 1) -> Array:
    """Return the coefficients of the `m`-th derivative of a polynomial.

    Reference: ``jax.numpy.polyder``.
    """
    check_arraylike("polyder", p)
    [p], m = map(as_array, promote_dtypes_inexact(p)), operator_index(m, "m of polyder")
    check_rank("polyder", 1, p)
    if m < 0:
        raise ValueError("Order of derivative must be positive")
    if m == 0:
        return p
    degrees = np.arange(p.shape[0])[::-1][:-m]
    steps = range(builtins.min(m, p.shape[0]))
    factors = np.prod([degrees - step for step in steps], axis=0)
    kept = lax.slice_in_dim(p, 0, builtins.max(p.shape[0] - m, 0))
    return multiply(kept, factors.astype(p.dtype))


def geomspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    dtype: Any = None,
    axis: int = 0,
) -> Array:
    """Return `num` numbers with equal ratios from `start` to `stop`.

    Real numbers cannot change their sign on the way: they are NaN then. Complex ones
    turn.

    Reference: ``jax.numpy.geomspace``.
    """
    given = [start, stop] if dtype is None else [dtype]
    inexact = to_inexact_dtype(result_type(*given))
    dtype = inexact if dtype is None else dtype
    first, last = (astype(asarray(x), inexact) for x in (start, stop))
    turn = sign(first)
    powers = linspace(log10(first / turn), log10(last / turn), num, endpoint=endpoint)
    return astype(moveaxis(turn * power(10.0, powers), 0, axis), dtype)


def logspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    base: ArrayLike = 10.0,
    dtype: Any = None,
    axis: int = 0,
) -> Array:
    """Return `base` to the power of `num` numbers from `start` to `stop`.

    Reference: ``jax.numpy.logspace``.
    """
    dtype = to_inexact_dtype(result_type(start, stop)) if dtype is None else dtype
    powers = linspace(start, stop, num, endpoint=endpoint, axis=axis)
    return astype(power(base, powers), dtype)


# Samples: their slopes and covariances; polynomials as rows of coefficients.


def gradient(
    f: ArrayLike,
    *varargs: ArrayLike,
    axis: int | Sequence[int] | None = None,
    edge_order: int | None = None,
) -> Any:
    """Return slopes of a function from its values, by differences of neighbours.

    Args:
      f: the values, with two or more along each axis.
      *varargs: the distance of neighbours, or a vector with the places, for all axes
        or one for each; 1 by default.
      axis: along which; by default all, and the result is a list then.
      edge_order: must be None: at both ends one neighbour counts.

    Reference: ``jax.numpy.gradient``.
    """
    if edge_order is not None:
        raise NotImplementedError(
            "The 'edge_order' argument to jnp.gradient is not supported."
        )
    check_arraylike("gradient", f, *varargs)
    f, *places = map(as_array, promote_dtypes_inexact(f, *varargs))
    axes = canonical_axes(axis, f.ndim)
    if not axes:
        return []
    if builtins.min([f.shape[each] for each in axes]) < 2:
        raise ValueError(
            "Shape of array too small to calculate a numerical gradient, at least 2 "
            "elements are required."
        )
    if len(places) not in (0, 1, len(axes)):
        count = len(places)
        raise TypeError(f"Invalid number of spacing arguments {count} for {axis=}")
    places = (places or [1.0]) * (1 if len(places) == len(axes) else len(axes))
    found = [_slopes(f, place, each) for each, place in zip(axes, places)]
    return found[0] if len(axes) == 1 else found


def _slopes(f, place, axis):
    """Return slopes along an axis, for a distance or for the places."""
    if np.ndim(place) > 1:
        raise ValueError("Spacing arrays must be 1D arrays or scalars.")
    size = f.shape[axis]
    if np.ndim(place) and place.shape[0] != size:
        raise ValueError(
            "Spacing arrays must have the same length as the dimension along which "
            "the gradient is calculated."
        )
    if not np.ndim(place):  # what is between two neighbours does not count
        cut = functools.partial(lax.slice_in_dim, f, axis=axis)
        inner = (cut(2, size) - cut(0, size - 2)) * 0.5 / place
        steps = (cut(i + 1, i + 2) - cut(i, i + 1) for i in (0, size - 2))
        first, last = (step / place for step in steps)
        return concatenate([first, inner, last], axis)
    widths = place[1:] - place[:-1]
    widths = reshape(widths, [-1 if i == axis else 1 for i in range(f.ndim)])
    slopes = lax.slice_in_dim(f, 1, size, axis=axis)
    slopes = (slopes - lax.slice_in_dim(f, 0, size - 1, axis=axis)) / widths
    (first, later), (left, right) = (
        [lax.slice_in_dim(x, start, start + size - 2, axis=axis) for start in (0, 1)]
        for x in (slopes, widths)
    )
    inner = (right * first + left * later) / (left + right)
    ends = (lax.slice_in_dim(slopes, i, i + 1, axis=axis) for i in (0, size - 2))
    return concatenate([next(ends), inner, next(ends)], axis)


def cov(
    m: ArrayLike,
    y: ArrayLike | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: ArrayLike | None = None,
    aweights: ArrayLike | None = None,
    dtype: Any = None,
) -> Array:
    """Return the covariances of variables, a matrix.

    Args:
      m: a matrix with a row for each variable, and a column for each observation.
      y: more variables, of the same form.
      rowvar: False if columns are variables.
      bias: whether to divide by the number of observations, and not by one less.
      ddof: what to subtract from that number instead.
      fweights: how often each observation is to be counted, integers.
      aweights: how much it weighs.
      dtype: in which to compute.

    Reference: ``jax.numpy.cov``.
    """
    given = [m] if y is None else [m, y]
    check_arraylike("cov", *given)
    given = [*map(as_array, promote_dtypes_inexact(*given))]
    if len(given) == 2 and given[1].ndim > 2:
        raise ValueError("y has more than 2 dimensions")
    if given[0].ndim > 2:
        raise ValueError("m has more than 2 dimensions")
    _check_inexact("cov", dtype)
    parts = [_variables(x, rowvar, first=x is given[0]) for x in given]
    if not parts[0].shape[0]:
        return reshape(array([]), (0, 0))
    rows: Any = concatenate(parts, 0)
    if not rows.shape[1]:
        count = rows.shape[0]
        return full(() if count == 1 else (count, count), np.nan, rows.dtype)
    ddof = (0 if bias else 1) if ddof is None else ddof
    weights, of_each = _weights_of_observations(rows.shape[1], fweights, aweights)
    if dtype is not None:
        rows = astype(rows, dtype)
        weights = weights if weights is None else astype(weights, dtype)
    return _covariance(rows, weights, of_each, ddof)


def _check_inexact(name, dtype):
    """Raise unless a dtype, if there is one, is that of floats or complex numbers."""
    if dtype is not None and not is_inexact(np.dtype(dtype)):
        raise ValueError(
            f"{name}: dtype must be a subclass of float or complex; got {dtype=}"
        )


def _variables(x, rowvar, first):
    """Return variables as rows."""
    rows = atleast_2d(x)
    single = x.ndim == 1 if first else rows.shape[0] == 1
    return rows if rowvar or single else rows.T


def _weights_of_observations(count, fweights, aweights):
    """Return the weight of each observation; and the part of it by `aweights`."""
    for name, each in (("fweights", fweights), ("aweights", aweights)):
        if each is None:
            continue
        each = as_arraylike("cov", each)
        if each.ndim > 1:
            raise RuntimeError(f"cannot handle multidimensional {name}")
        if each.shape != (count,):
            raise RuntimeError(f"incompatible numbers of samples and {name}")
        if name == "fweights" and array_kind(each) not in "iu":
            raise TypeError("fweights must be integer.")
    often, much = [
        None if each is None else absolute(asarray(each))
        for each in (fweights, aweights)
    ]
    if often is None or much is None:
        return much if often is None else often, much
    return often * much, much


def _covariance(rows, weights, of_each, ddof):
    means, total = average(rows, axis=1, weights=weights, returned=True)
    total = total[0]
    if weights is None:
        count = rows.shape[1] - ddof
    elif ddof == 0:
        count = total
    elif of_each is None:
        count = total - ddof
    else:
        count = total - ddof * _sum(weights * of_each) / total
    rows = rows - expand_dims(means, 1)
    columns = rows.T if weights is None else (rows * expand_dims(weights, 0)).T
    return squeeze(divide(dot(rows, conjugate(columns)), count))


def corrcoef(
    x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, dtype: Any = None
) -> Array:
    """Return the correlations of variables, a matrix; the arguments are those of `cov`.

    Reference: ``jax.numpy.corrcoef``.
    """
    check_arraylike("corrcoef", x)
    _check_inexact("corrcoef", dtype)
    found = cov(x, y, rowvar, dtype=dtype)
    if not found.ndim:
        return divide(found, found)
    deviation = astype(sqrt(real(diag(found))), found.dtype)
    found = found / expand_dims(deviation, 1) / expand_dims(deviation, 0)
    limited = clip(real(found), -1, 1)
    if array_kind(found) != "c":
        return limited
    return lax.complex(limited, clip(imag(found), -1, 1))


def polyadd(a1: Any, a2: Any) -> Array:
    """Add polynomials whose highest coefficients come first.

    Coefficients may be rows of numbers: the shorter one is added to the last rows.

    Reference: ``jax.numpy.polyadd``.
    """
    check_arraylike("polyadd", a1, a2)
    a1, a2 = map(as_array, promote_dtypes(a1, a2))
    check_rank("polyadd", 1, a1, a2)
    short, long = sorted((a1, a2), key=lambda p: p.shape[0])
    gap = long.shape[0] - short.shape[0]
    return concatenate([long[:gap], long[gap:] + short])


def polysub(a1: Any, a2: Any) -> Array:
    """Subtract a polynomial from another one.

    Reference: ``jax.numpy.polysub``.
    """
    check_arraylike("polysub", a1, a2)
    a1, a2 = map(as_array, promote_dtypes(a1, a2))
    check_rank("polysub", 1, a1, a2)
    return polyadd(a1, -a2)


def polymul(a1: Any, a2: Any, *, trim_leading_zeros: bool = False) -> Array:
    """Multiply polynomials.

    Args:
      a1, a2: their coefficients, the highest first.
      trim_leading_zeros: whether to drop zeros in front before; the coefficients have
        to be known then.

    Reference: ``jax.numpy.polymul``.
    """
    a1, a2 = promised(a1), promised(a2)
    check_arraylike("polymul", a1, a2)
    a1, a2 = map(as_array, promote_factors(a1, a2, promote_dtypes_inexact))
    check_rank("polymul", 1, a1, a2)
    if trim_leading_zeros and builtins.max(a1.shape[0], a2.shape[0]) > 1:
        a1, a2 = (
            p[np.size(p) - np.trim_zeros(np.asarray(p), "f").size :] for p in (a1, a2)
        )
    a1, a2 = (p if len(p) else zeros(1, p.dtype) for p in (a1, a2))
    if a1.ndim != 1 or a2.ndim != 1:
        raise ValueError("convolve() only support 1-dimensional inputs.")
    return _sums_of_diagonals(multiply(expand_dims(a1, 1), expand_dims(a2, 0)))


def _sums_of_diagonals(x):
    """Return for each sum i + j the sum of the elements of a matrix there.

    Rows that are one element longer than the result has room for move, when they are
    written as one, each one place further than the row before.
    """
    rows, columns = x.shape
    size = rows + columns - 1
    x = lax.pad(x, asarray(0, x.dtype), [(0, 0, 0), (0, rows, 0)])
    return _sum(reshape(reshape(x, (-1,))[: rows * size], (rows, size)), 0)


def polyint(p: Any, m: int = 1, k: Any | None = None) -> Array:
    """Integrate a polynomial `m` times.

    Args:
      p: its coefficients, the highest first.
      m: how often.
      k: the constants that are added, one for each time or one for all; 0 by default.

    Reference: ``jax.numpy.polyint``.
    """
    m, k = operator_index(m, "m of polyint"), 0 if k is None else k
    check_arraylike("polyint", p, k)
    p, k = map(as_array, promote_dtypes_inexact(p, k))
    check_rank("polyint", 1, p)
    if m < 0:
        raise ValueError("Order of integral must be positive (see polyder)")
    k = atleast_1d(k)
    if k.shape == (1,):
        k = full((m,), k[0])
    if k.shape != (m,):
        raise ValueError("k must be a scalar or a rank-1 array of length 1 or m.")
    if not m:
        return p
    factors = asarray(_rising(p.shape[0], m)[::-1], p.dtype)
    return divide(concatenate([p, k]), factors)


@ignore_float_errors
def _rising(count, m):
    """Return what divides each coefficient, of the constants first, as doubles."""
    check_room(f"{m} constants of polyint", m, 64)
    constants, others = np.cumprod(np.maximum(np.arange(m), 1.0)), np.ones(count)
    for step in range(1, m + 1):
        others *= np.arange(step, step + count)
    return np.concatenate([constants, others])
