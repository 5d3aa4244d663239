"""Products of vectors, matrices and tensors; norms.

References: ``jax.numpy``, ``jax.numpy.linalg``.
"""

# Made from chapters/03_numpy_rest.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import lax
from minijax._registry import Registry
from minijax.arrays.array import typeof
from minijax.arrays.config import check_dtypes
from minijax.arrays.interchange import promised
from minijax.arrays.numerics import canonicalize_int_tuple, operator_index
from minijax.arrays.out_sharding import with_out_sharding
from minijax.core import Array
from minijax.lax.arithmetic import astype as as_type
from minijax.lax.reductions import check_arraylike, promote_dtypes_inexact
from minijax.numpy.array_methods import multiply
from minijax.numpy.operands import array_kind, as_array, is_nonzero, promote_factors
from minijax.numpy.reductions import abs_squared, masked_sum, max_or_min
from minijax.numpy.shapes import as_arraylike, broadcast_shapes, canonical_axes, ravel
from minijax.numpy.ufuncs import absolute, conjugate, power, real, sqrt
from minijax.typing import ArrayLike

# Products of vectors, matrices and tensors: all of them one primitive.

# Axes of a product, in their order: batches by their distance from the end, then these.
ROW_AXIS, COLUMN = 0, 1


def _batches(a, b):
    """Drop batch axes of size 1 that broadcast; return the places of the others."""
    shapes = a.shape[:-2], b.shape[:-2]
    if shapes == ((), ()):
        return a, b, [], []
    try:
        broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(
            f"Incompatible types for matmul arguments: {typeof(a)} and {typeof(b)}"
        ) from None
    a_sizes, b_sizes = (
        {i - len(shape): n for i, n in enumerate(shape)} for shape in shapes
    )
    a_thin = [place for place in a_sizes if a_sizes[place] == 1 and place in b_sizes]
    b_thin = [
        place
        for place in b_sizes
        if b_sizes[place] == 1 and place in a_sizes and place not in a_thin
    ]
    a = lax.squeeze(a, [place + len(a_sizes) for place in a_thin])
    b = lax.squeeze(b, [place + len(b_sizes) for place in b_thin])
    return a, b, _without(a_sizes, a_thin), _without(b_sizes, b_thin)


def _without(items, others):
    return [item for item in items if item not in others]


def operands(name, *args):
    """Return the factors of a product, in one dtype if no bools choose."""
    args = [promised(arg) for arg in args]
    check_arraylike(name, *args)
    check_dtypes(name, args)
    return [as_array(arg) for arg in promote_factors(*args)]


def contract(a, b, axes, precision, preferred_element_type, batch=((), ())):
    """Multiply and sum over pairs of axes: `dot_general` on two factors."""
    dtype = preferred_element_type
    if dtype is None:
        dtype = (b if a.dtype == bool else a).dtype
    return lax.dot_general(a, b, (axes, batch), precision, dtype)


@with_out_sharding
def dot(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Sum products over the last axis of `a` and the second-last (or only) one of `b`.

    Args:
      a, b: arrays; with a scalar among them, this is `multiply`.
      precision: as in ``minijax.lax.dot_general``.
      preferred_element_type: dtype of the result.

    Returns:
      An array with the other axes of `a`, then those of `b`.

    Reference: ``jax.numpy.dot``.
    """
    a, b = operands("dot", a, b)
    axes = (a.ndim - 1,), (b.ndim - 2 if b.ndim > 1 else 0,)
    axes = axes if a.ndim and b.ndim else ((), ())
    return contract(a, b, axes, precision, preferred_element_type)


@with_out_sharding
def matmul(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Multiply matrices; axes in front of the last two are batches and broadcast.

    Args:
      a, b: arrays with at least one axis; a vector is a row on the left, a column on
        the right, and that axis is gone in the result.
      precision: as in ``minijax.lax.dot_general``.
      preferred_element_type: dtype of the result.

    Raises:
      ValueError: for scalars, or batches that do not broadcast.
      TypeError: if the axes to sum over differ in size.

    Reference: ``jax.numpy.matmul``.
    """
    a, b = operands("matmul", a, b)
    for position, ndim in enumerate((a.ndim, b.ndim)):
        if not ndim:
            raise ValueError(
                f"matmul input operand {position} must have ndim at least 1, but it "
                "has ndim 0"
            )
    a, b, a_places, b_places = _batches(a, b)
    summed = (a.ndim - 1,), (len(b_places),)
    both = [place for place in a_places if place in b_places]
    batch = [[places.index(place) for place in both] for places in (a_places, b_places)]
    result = contract(a, b, summed, precision, preferred_element_type, batch)
    rows = [ROW_AXIS] * (a.ndim - 1 - len(a_places))
    columns = [COLUMN] * (b.ndim - 1 - len(b_places))
    labels = both + _without(a_places, both) + rows + _without(b_places, both) + columns
    return lax.transpose(result, sorted(range(len(labels)), key=labels.__getitem__))


def vdot(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """Sum the products of all elements, those of `a` conjugated.

    Reference: ``jax.numpy.vdot``.
    """
    a, b = operands("vdot", a, b)
    a, b = ravel(conjugate(a)), ravel(b)
    return contract(a, b, ((0,), (0,)), precision, preferred_element_type)


def inner(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """Sum products over the last axis of both arrays.

    Reference: ``jax.numpy.inner``.
    """
    a, b = operands("inner", a, b)
    if not a.ndim or not b.ndim:
        if preferred_element_type is not None:
            a, b = (x.astype(preferred_element_type) for x in (a, b))
        return multiply(a, b)
    axes = (a.ndim - 1,), (b.ndim - 1,)
    return contract(a, b, axes, precision, preferred_element_type)


def outer(a: ArrayLike, b: ArrayLike, out: Any = None) -> Array:
    """Multiply each element of `a` by each of `b`, both taken as vectors.

    Reference: ``jax.numpy.outer``.
    """
    a, b = operands("outer", a, b)
    a, b = ravel(a), ravel(b)
    return multiply(lax.expand_dims(a, (1,)), lax.expand_dims(b, (0,)))


@with_out_sharding
def tensordot(
    a: ArrayLike,
    b: ArrayLike,
    axes: Any = 2,
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Sum products over pairs of axes.

    Args:
      a, b: arrays.
      axes: how many axes, the last of `a` with the first of `b`; or two sequences,
        the axes of `a` and those of `b`.

    Returns:
      An array with the other axes of `a`, then those of `b`.

    Reference: ``jax.numpy.tensordot``.
    """
    a, b = operands("tensordot", a, b)
    pairs = _pairs(axes, a, b)
    return contract(a, b, pairs, precision, preferred_element_type)


def _known_axes(given):
    several = isinstance(given, Sequence)
    return canonicalize_int_tuple(given) if several else given


def _pairs(axes, a, b):
    if isinstance(axes, Sequence):
        if len(axes) != 2:
            raise TypeError(f"tensordot axes are a number or a pair, not {axes!r}.")
        first, second = map(_known_axes, axes)
        counts = [len(x) if isinstance(x, tuple) else None for x in (first, second)]
        if counts[0] != counts[1]:
            raise TypeError(
                "tensordot takes as many axes of a as of b, both in sequences or both "
                f"as integers; got {axes[0]!r} and {axes[1]!r}."
            )
        return canonical_axes(first, a.ndim), canonical_axes(second, b.ndim)
    count = operator_index(axes, "the number of axes")
    if count > a.ndim or count > b.ndim:
        raise TypeError(
            f"Number of tensordot axes (axes {count}) exceeds input ranks "
            f"({a.shape} and {b.shape})"
        )
    return tuple(range(a.ndim - count, a.ndim)), tuple(range(count))


# Lengths of vectors and sizes of matrices.


def root_of_squares(x, axes, keepdims):
    """Return the root of the sum of squared absolute values."""
    squares = abs_squared(x) if array_kind(x) == "c" else lax.mul(x, x)
    return sqrt(masked_sum(squares, axes, keepdims, None))


def extreme_size(ord, sizes, axes, keepdims):
    """Return the greatest of sizes, of none 0, or the least for a negative order."""
    if ord < 0:
        return max_or_min("min", sizes, axes, keepdims=keepdims)
    return max_or_min("max", sizes, axes, keepdims=keepdims, initial=0)


def vector_norm(x, ord, axes, keepdims):
    """Return the norm of vectors along one axis."""
    if ord is None or ord == 2:
        return root_of_squares(x, axes, keepdims)
    if isinstance(ord, str):
        raise ValueError(f"Invalid order {ord!r} for vector norm.")
    if ord == 0:
        counted = as_type(is_nonzero(x), real(x).dtype)
        return masked_sum(counted, axes, keepdims, None)
    sizes = absolute(x)
    if ord in (np.inf, -np.inf):
        return extreme_size(ord, sizes, axes, keepdims)
    if ord == 1:
        return masked_sum(sizes, axes, keepdims, None)
    return power(masked_sum(power(sizes, float(ord)), axes, keepdims, None), 1 / ord)


# From orders to functions of arrays, two axes and `keepdims`, which return norms.
norm_orders: dict = Registry()


def matrix_norm(x, ord, axes, keepdims):
    """Return the norm of matrices along two axes."""
    if ord is None or ord == "fro":
        return root_of_squares(x, axes, keepdims)
    if ord in norm_orders:
        return norm_orders[ord](x, axes, keepdims)
    if ord in ("nuc", 2, -2):
        raise NotImplementedError(
            f"The order {ord!r} needs singular values: linear algebra is to come. In "
            "the whole package minijax.numpy.linalg.norm brings it along."
        )
    if ord not in (1, -1, np.inf, -np.inf):
        raise ValueError(f"Invalid order '{ord}' for matrix norm.")
    rows, columns = axes
    summed, chosen = (rows, columns) if ord in (1, -1) else (columns, rows)
    totals = masked_sum(absolute(x), summed, True, None)
    result = extreme_size(ord, totals, chosen, True)
    return result if keepdims else lax.squeeze(result, axes)


def norm(
    x: ArrayLike,
    ord: Any = None,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> Array:
    """Return the norm of vectors or matrices.

    Args:
      x: array.
      ord: for vectors a number p, 2 by default: the p-th root of the sum of p-th powers
        (``inf`` and ``-inf`` are the greatest and least size, 0 counts); for matrices
        ``"fro"`` by default, 1, -1, ``inf`` or ``-inf``; of singular values the
        greatest, the least, or the sum: 2, -2, ``"nuc"``.
      axis: the axis of the vectors, or the two of the matrices; with neither `axis` nor
        `ord`, the root of the sum of all squares.
      keepdims: whether folded axes stay, with size 1.

    Raises:
      ValueError: for an order that there is not, or more than two axes.

    Reference: ``jax.numpy.linalg.norm``.
    """
    [x] = promote_dtypes_inexact(as_arraylike("norm", x))
    if axis is None and ord is None:
        return root_of_squares(x, None, keepdims)
    axes = canonical_axes(axis, x.ndim)
    if len(axes) > 2 or not axes:
        raise ValueError(
            f"Improper number of axes for norm: {axis=}. Pass one axis to compute a "
            "vector-norm, or two axes to compute a matrix-norm."
        )
    return (vector_norm if len(axes) == 1 else matrix_norm)(x, ord, axes, keepdims)
