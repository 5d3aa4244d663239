"""New shapes for old elements: reshape, transpose, broadcast, squeeze.

Reference: ``jax.numpy``.
"""

# Made from chapters/03_numpy_rest.md by `make chapter`;
# edit the chapter, not this file.

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import lax
from minijax.arrays.interchange import promised
from minijax.arrays.numerics import (
    canonicalize_axis,
    canonicalize_int_tuple,
    non_integer_message,
)
from minijax.arrays.out_sharding import with_out_sharding
from minijax.core import Array
from minijax.lax.reductions import check_arraylike
from minijax.numpy.operands import as_array, broadcast_to_shape
from minijax.typing import ArrayLike


def as_arraylike(name: str, x: Any) -> Any:
    """Return `x` as an array, or raise a TypeError that names the function."""
    x = promised(x)
    check_arraylike(name, x)
    return as_array(x)


def canonicalize_shape(shape: Any) -> tuple:
    """Return a shape, given as an integer or a sequence of integers, as a tuple.

    Raises:
      TypeError: if a size is not an integer with a known value.
    """
    try:
        sizes = np.asarray(shape) if hasattr(shape, "dtype") else shape
        sizes = tuple(sizes) if np.iterable(sizes) else (sizes,)
        return canonicalize_int_tuple(sizes, "Shapes")
    except TypeError:
        raise TypeError(non_integer_message("Shapes", shape)) from None


def complete_shape(old, new):
    """Return the shape `new` with the size that stands for -1 filled in."""
    if -1 not in new:
        return new
    if new.count(-1) > 1:
        raise TypeError(
            f"can only specify one unknown axis size with a `-1` value, got {new}"
        )
    size, known = math.prod(old), -math.prod(new)
    if known == 0 or size % known:
        raise TypeError(
            f"cannot reshape array of shape {old} (size {size}) into shape {new} "
            f"because the product of specified axis sizes ({known}) does not evenly "
            f"divide {size}"
        )
    return tuple(size // known if n == -1 else n for n in new)


def canonical_axis(axis, ndim):
    """Return an axis as an integer counted from the front.

    Raises:
      ValueError: if there is no such axis.
    """
    return canonicalize_axis(axis, ndim)


def canonical_axes(axis, ndim):
    """Return an axis, a sequence of axes, or None for all, as a tuple of integers.

    Raises:
      ValueError: if an axis is out of bounds, or named twice.
    """
    if axis is None:
        return tuple(range(ndim))
    several = isinstance(axis, Sequence) or getattr(axis, "ndim", 0) == 1
    given = tuple(axis) if several else (axis,)
    axes = tuple(canonical_axis(one, ndim) for one in given)
    if len(set(axes)) != len(axes):
        raise ValueError(f"repeated axis, a duplicate value in 'axis': {given}")
    return axes


@with_out_sharding
def reshape(
    a: ArrayLike,
    shape: int | Sequence[int],
    order: str = "C",
    *,
    copy: bool | None = None,
    out_sharding: Any = None,
) -> Array:
    """Give the elements of `a` a new shape.

    Args:
      a: array of any shape.
      shape: an integer or a sequence; one size may be -1, and is then computed.
      order: ``"C"``, the last axis runs fastest, or ``"F"``, the first one does.
      copy: accepted as in NumPy; it makes no difference to immutable arrays.

    Raises:
      TypeError: if the sizes do not multiply to the number of elements.

    Reference: ``jax.numpy.reshape``.
    """
    a = as_arraylike("reshape", a)
    sizes = complete_shape(a.shape, canonicalize_shape(shape))
    if order == "F":
        return transpose(lax.reshape(transpose(a), sizes[::-1]))
    if order != "C":
        raise NotImplementedError(f"order must be 'C' or 'F', got {order!r}.")
    return lax.reshape(a, sizes)


def ravel(a: ArrayLike, order: str = "C", *, out_sharding: Any = None) -> Array:
    """Return the elements of `a` as a vector.

    Reference: ``jax.numpy.ravel``.
    """
    a = as_arraylike("ravel", a)
    return reshape(a, (a.size,), order, out_sharding=out_sharding)


def transpose(a: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """Reorder the axes: axis i of the result is axis ``axes[i]`` of `a`.

    Args:
      a: array of any shape.
      axes: a permutation of the axes; None reverses them.

    Reference: ``jax.numpy.transpose``.
    """
    a = as_arraylike("transpose", a)
    order = range(a.ndim)[::-1] if axes is None else axes
    return lax.transpose(a, tuple(canonical_axis(axis, a.ndim) for axis in order))


def matrix_transpose(x: ArrayLike, /) -> Array:
    """Exchange the last two axes.

    Raises:
      ValueError: if `x` has fewer than two axes.

    Reference: ``jax.numpy.matrix_transpose``.
    """
    x = as_arraylike("matrix_transpose", x)
    if x.ndim < 2:
        raise ValueError(
            f"x must be at least two-dimensional for matrix_transpose; got {x.ndim=}"
        )
    return swapaxes(x, -1, -2)


def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Array:
    """Exchange two axes.

    Reference: ``jax.numpy.swapaxes``.
    """
    a = as_arraylike("swapaxes", a)
    i, j = canonical_axis(axis1, a.ndim), canonical_axis(axis2, a.ndim)
    return lax.transpose(a, [{i: j, j: i}.get(axis, axis) for axis in range(a.ndim)])


def moveaxis(
    a: ArrayLike, source: int | Sequence[int], destination: int | Sequence[int]
) -> Array:
    """Move axes to new places; the others keep their order.

    Reference: ``jax.numpy.moveaxis``.
    """
    a = as_arraylike("moveaxis", a)
    sources = canonical_axes(source, a.ndim)
    places = canonical_axes(destination, a.ndim)
    if len(sources) != len(places):
        raise ValueError(
            "moveaxis needs as many destinations as sources, got "
            f"{len(places)} and {len(sources)}"
        )
    order = [axis for axis in range(a.ndim) if axis not in sources]
    for place, axis in sorted(zip(places, sources)):
        order.insert(place, axis)
    return lax.transpose(a, order)


def squeeze(a: ArrayLike, axis: int | Sequence[int] | None = None) -> Array:
    """Drop axes of size 1: the given ones, or all of them.

    Raises:
      ValueError: if a given axis has another size.

    Reference: ``jax.numpy.squeeze``.
    """
    a = as_arraylike("squeeze", a)
    if axis is None:
        axis = tuple(i for i, size in enumerate(a.shape) if size == 1)
    return lax.squeeze(a, canonical_axes(axis, a.ndim))


def expand_dims(a: ArrayLike, axis: int | Sequence[int]) -> Array:
    """Insert axes of size 1, at places counted in the result.

    Reference: ``jax.numpy.expand_dims``.
    """
    a = as_arraylike("expand_dims", a)
    new = len(axis) if isinstance(axis, Sequence) else 1
    return lax.expand_dims(a, canonical_axes(axis, a.ndim + new))


broadcast_shapes = lax.broadcast_shapes


@with_out_sharding
def broadcast_to(
    array: ArrayLike, shape: int | Sequence[int], *, out_sharding: Any = None
) -> Array:
    """Stretch axes of size 1, and add leading axes, until `array` has `shape`.

    Raises:
      ValueError: if an axis has another size than 1 and the wanted one.

    Reference: ``jax.numpy.broadcast_to``.
    """
    return broadcast_to_shape(
        as_arraylike("broadcast_to", array), canonicalize_shape(shape)
    )


def broadcast_arrays(*args: ArrayLike) -> list[Array]:
    """Stretch arrays to the shape that they broadcast to, and return them as a list.

    Reference: ``jax.numpy.broadcast_arrays``.
    """
    arrays = [as_arraylike("broadcast_arrays", arg) for arg in args]
    shape = broadcast_shapes(*(array.shape for array in arrays))
    return [broadcast_to_shape(array, shape) for array in arrays]


def atleast_1d(*arys: ArrayLike) -> Any:
    """Give arrays at least one axis.

    Reference: ``jax.numpy.atleast_1d``.
    """
    return _each(lambda a: a if a.ndim else expand_dims(a, 0), "atleast_1d", arys)


def atleast_2d(*arys: ArrayLike) -> Any:
    """Give arrays at least two axes, by new axes in front.

    Reference: ``jax.numpy.atleast_2d``.
    """
    return _each(_as_matrix, "atleast_2d", arys)


def _as_matrix(a):
    return broadcast_to_shape(a, (1,) * (2 - a.ndim) + a.shape)


def atleast_3d(*arys: ArrayLike) -> Any:
    """Give arrays at least three axes: a vector becomes ``(1, n, 1)``.

    Reference: ``jax.numpy.atleast_3d``.
    """
    new = {0: (0, 1, 2), 1: (0, 2), 2: (2,)}
    return _each(lambda a: expand_dims(a, new.get(a.ndim, ())), "atleast_3d", arys)


def _each(function, name, arrays):
    results = [function(as_arraylike(name, array)) for array in arrays]
    return results[0] if len(results) == 1 else results
