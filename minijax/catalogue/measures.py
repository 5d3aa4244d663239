"""Differences, averages and integrals; products of many vectors.

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
from minijax.arrays.checks import as_integer, canonicalize_axis, check_rank, size_along
from minijax.arrays.interchange import promised
from minijax.catalogue.ranges import linspace
from minijax.core import Array
from minijax.lax.promotion import (
    check_arraylike,
    promote_dtypes,
    promote_dtypes_inexact,
    to_inexact_dtype,
)
from minijax.numpy.arithmetic import power
from minijax.numpy.creation import asarray, astype, full, zeros, zeros_like
from minijax.numpy.elementwise import conjugate, log10, sign
from minijax.numpy.joining import concatenate, stack
from minijax.numpy.products import matmul
from minijax.numpy.reductions import _sum
from minijax.numpy.scalar_types import result_type
from minijax.numpy.shapes import (
    arraylike,
    as_axes,
    broadcast_shapes,
    broadcast_to,
    expand_dims,
    moveaxis,
    ravel,
    squeeze,
)
from minijax.numpy.statistics import cumprod, cumsum, mean
from minijax.numpy.ufuncs import add, divide, multiply, not_equal, subtract
from minijax.operators.operands import as_array, constant, kind
from minijax.typing import ArrayLike


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
    a, n = arraylike("diff", a), as_integer(n, "the order of differences")
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
    step = not_equal if kind(a) == "b" else subtract
    for _ in range(builtins.min(n, a.shape[axis])):  # then nothing is left
        a = step(*_neighbours(a, axis))
    return a


def _slab(x, shape):
    x = arraylike("diff", x)
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
    ary = ravel(arraylike("ediff1d", ary))
    pieces = [to_begin, subtract(*_neighbours(ary, 0)), to_end]
    pieces = [ravel(astype(each, ary.dtype)) for each in pieces if each is not None]
    return concatenate(pieces)


def trapezoid(y: Any, x: Any = None, dx: ArrayLike = 1.0, axis: int = -1) -> Array:
    """Integrate along an axis: trapezoids over the intervals of `x`, or of width `dx`.

    Reference: ``jax.numpy.trapezoid``.
    """
    if x is None:
        check_arraylike("trapezoid", y)
        [y] = map(as_array, promote_dtypes_inexact(y))
        width = asarray(dx)
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
    a = arraylike("average", a)
    axes = as_axes(axis, a.ndim)
    if weights is None:
        result = mean(a, axis, keepdims=keepdims)
        count = math.prod(a.shape[place] for place in axes)
        weight = full((), count, result.dtype)
    else:
        check_arraylike("average", weights)
        weights = _along(as_array(weights), a, axis, axes)  # truths stay truths, which
        a, numbers = map(as_array, promote_dtypes_inexact(a, weights))  # choose from a
        weight = _sum(numbers, axis, keepdims=keepdims)
        result = divide(_sum(multiply(a, weights), axis, keepdims=keepdims), weight)
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
    x = arraylike(name, x)
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
    x = arraylike("cumulative_sum", x)
    if dtype is None and kind(x) in "biu":  # small integers are added up in larger ones
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
    if size_along(x1, axis) != size_along(x2, axis):
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
    x = arraylike("vander", x)
    if x.ndim != 1:
        raise ValueError("x must be a one-dimensional array")
    count = x.shape[0] if N is None else as_integer(N, "the number of columns")
    if count < 0:
        raise ValueError("N must be nonnegative")
    powers = lax.iota(x.dtype, count)
    powers = powers if increasing else lax.sub(constant(powers, count - 1), powers)
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
    p, x = map(as_array, promote_dtypes(p, x))
    check_rank("polyval", 1, p)
    shape = broadcast_shapes(p.shape[1:], x.shape)
    result = zeros(shape, x.dtype)
    for place in range(p.shape[0]):
        coefficient = lax.index_in_dim(p, place, keepdims=False)
        result = add(multiply(result, x), coefficient)
    return result


def polyder(p: Any, m: int = 1) -> Array:
    """Return the coefficients of the `m`-th derivative of a polynomial.

    Reference: ``jax.numpy.polyder``.
    """
    check_arraylike("polyder", p)
    [p], m = map(as_array, promote_dtypes_inexact(p)), as_integer(m, "m of polyder")
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
