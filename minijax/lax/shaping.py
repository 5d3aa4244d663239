# Made from chapters/02_arrays.md by `make chapter`;
# edit the chapter, not this file.
"""Primitives that rearrange elements without computing.

Buffers never change, so that most results share the buffer of their operand.

Reference: ``jax.lax``.
"""

import builtins
import math
from collections.abc import Sequence
from typing import Any

from minijax.arrays.array import primitive_rules
from minijax.arrays.avals import typeof
from minijax.core import Array, Primitive
from minijax.typing import ArrayLike


def canonicalize_axis(axis, ndim):
    """Return `axis` counted from the front.

    Raises:
      ValueError: if there is no such axis among `ndim`.
    """
    if not -ndim <= axis < ndim:
        raise ValueError(f"axis {axis} is out of bounds for array of dimension {ndim}")
    return int(axis) % ndim


def integers(numbers):
    """Return a parameter: a tuple of Python ints."""
    return tuple(map(int, numbers))


def without(items, axes):
    """Return `items` as a tuple that lacks the places `axes`."""
    return tuple(item for place, item in enumerate(items) if place not in axes)


broadcast_in_dim_p = Primitive("broadcast_in_dim")


def _broadcast_shape(x, shape, broadcast_dimensions):
    places = dict(zip(broadcast_dimensions, x.shape))
    rising = sorted(places) == [*broadcast_dimensions]
    fits = all(
        0 <= place < len(shape) and size in (1, shape[place])
        for place, size in places.items()
    )
    if (
        len(places) != x.ndim
        or not (rising and fits)
        or builtins.min(shape, default=0) < 0
    ):
        raise TypeError(
            "broadcast_in_dim puts each axis of the operand, in order, on an axis of "
            "the result with the same size (or stretches it, if its size is 1): got "
            f"operand shape {x.shape}, shape {shape} and broadcast_dimensions "
            f"{broadcast_dimensions}."
        )
    return [x.update(shape=shape)]


def _broadcast(xp, x, shape, broadcast_dimensions):
    sizes = [1] * len(shape)
    for place, size in zip(broadcast_dimensions, x.shape):
        sizes[place] = size
    return xp.broadcast_to(x.reshape(sizes), shape)


primitive_rules(broadcast_in_dim_p, _broadcast_shape, _broadcast)


def broadcast_in_dim(
    operand: ArrayLike, shape: Sequence[int], broadcast_dimensions: Sequence[int]
) -> Array:
    """Stretch `operand` to `shape`.

    Args:
      operand: an array; axis i becomes axis ``broadcast_dimensions[i]`` of the result.
      shape: the result's shape; an axis of size 1 stretches, other axes are new.
      broadcast_dimensions: increasing, one for each axis of `operand`.

    Reference: ``jax.lax.broadcast_in_dim``.
    """
    if isinstance(operand, Array) and operand.ndim == len(shape) == 0:
        return operand
    places = integers(broadcast_dimensions)
    [result] = broadcast_in_dim_p.bind(
        operand, shape=integers(shape), broadcast_dimensions=places
    )
    return result


def broadcast(operand: ArrayLike, sizes: Sequence[int]) -> Array:
    """Repeat `operand` along new leading axes of `sizes`.

    Reference: ``jax.lax.broadcast``.
    """
    shape = (*sizes, *typeof(operand).shape)
    return broadcast_in_dim(operand, shape, range(len(sizes), len(shape)))


def expand_dims(array: Any, dimensions: Sequence[int]) -> Array:
    """Insert axes of size 1 at the places `dimensions` of the result.

    Reference: ``jax.lax.expand_dims``.
    """
    shape = typeof(array).shape
    ndim = len(shape) + len(dimensions)
    new = {canonicalize_axis(axis, ndim) for axis in dimensions}
    if len(new) < len(dimensions):
        raise ValueError(f"repeated axis in expand_dims: {tuple(dimensions)}")
    if not new:
        return array
    kept = without(range(ndim), new)
    sizes = dict(zip(kept, shape))
    return broadcast_in_dim(array, [sizes.get(axis, 1) for axis in range(ndim)], kept)


def broadcast_to_rank(x, rank):
    """Put axes of size 1 in front, until there are `rank` axes.

    Reference: ``jax.lax.broadcast_to_rank``.
    """
    return expand_dims(x, range(rank - typeof(x).ndim))


reshape_p = Primitive("reshape")


def _reshape_shape(x, new_sizes):
    if builtins.min(new_sizes, default=0) < 0 or math.prod(new_sizes) != x.size:
        raise TypeError(
            f"cannot reshape array of shape {x.shape} (size {x.size}) into shape "
            f"{new_sizes} (size {math.prod(new_sizes)})"
        )
    return [x.update(shape=new_sizes)]


primitive_rules(
    reshape_p, _reshape_shape, lambda xp, x, new_sizes: x.reshape(new_sizes)
)


def reshape(
    operand: ArrayLike,
    new_sizes: Sequence[int],
    dimensions: Sequence[int] | None = None,
) -> Array:
    """Give the elements, in row-major order, a new shape.

    Args:
      operand: an array.
      new_sizes: its new shape (no -1 here), or one size.
      dimensions: an order of the axes in which to read the elements.

    Reference: ``jax.lax.reshape``.
    """
    new_sizes = integers(new_sizes if hasattr(new_sizes, "__iter__") else (new_sizes,))
    if dimensions is not None:
        operand = transpose(operand, dimensions)
    if isinstance(operand, Array) and operand.shape == new_sizes:
        return operand
    [result] = reshape_p.bind(operand, new_sizes=new_sizes)
    return result


def collapse(
    operand: ArrayLike, start_dimension: int, stop_dimension: int | None = None
) -> Array:
    """Merge the axes from `start_dimension` up to `stop_dimension` into one.

    Reference: ``jax.lax.collapse``.
    """
    shape = operand.shape
    start, stop, _ = builtins.slice(start_dimension, stop_dimension).indices(len(shape))
    merged = math.prod(shape[start:stop])
    return reshape(operand, (*shape[:start], merged, *shape[stop:]))


transpose_p = Primitive("transpose")


def _transpose_shape(x, permutation):
    if sorted(permutation) != [*range(x.ndim)]:
        raise TypeError(
            "transpose permutation isn't a permutation of operand dimensions, got "
            f"permutation {permutation} for operand shape {x.shape}."
        )
    return [x.update(shape=[x.shape[axis] for axis in permutation])]


primitive_rules(
    transpose_p, _transpose_shape, lambda xp, x, permutation: x.transpose(permutation)
)


def transpose(operand: ArrayLike, permutation: Sequence[int]) -> Array:
    """Reorder the axes: axis i of the result is axis ``permutation[i]`` of `operand`.

    Reference: ``jax.lax.transpose``.
    """
    permutation = integers(permutation)
    if isinstance(operand, Array) and permutation == (*range(operand.ndim),):
        return operand
    [result] = transpose_p.bind(operand, permutation=permutation)
    return result


squeeze_p = Primitive("squeeze")


def _squeeze_shape(x, dimensions):
    if any(x.shape[axis] != 1 for axis in dimensions):
        raise ValueError(
            "cannot select an axis to squeeze out which has size not equal to one, "
            f"got shape={x.shape} and dimensions={dimensions}"
        )
    return [x.update(shape=without(x.shape, dimensions))]


primitive_rules(
    squeeze_p, _squeeze_shape, lambda xp, x, dimensions: xp.squeeze(x, dimensions)
)


def squeeze(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Drop the axes `dimensions`, which have size 1.

    Reference: ``jax.lax.squeeze``.
    """
    ndim = typeof(array).ndim
    axes = tuple(canonicalize_axis(axis, ndim) for axis in dimensions)
    if len({*axes}) < len(axes):
        raise ValueError(f"dimensions are not unique: {axes}")
    if not axes and isinstance(array, Array):
        return array
    [result] = squeeze_p.bind(array, dimensions=axes)
    return result


rev_p = Primitive("rev")


def _rev_shape(x, dimensions):
    if len({*dimensions}) < len(dimensions) or not {*dimensions} <= {*range(x.ndim)}:
        raise TypeError(
            f"rev dimensions must be unique axes from 0 to {x.ndim - 1}, got "
            f"{dimensions} for operand shape {x.shape}."
        )
    return [x]


primitive_rules(rev_p, _rev_shape, lambda xp, x, dimensions: xp.flip(x, dimensions))


def rev(operand: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Reverse the order of the elements along the axes `dimensions`.

    Reference: ``jax.lax.rev``.
    """
    [result] = rev_p.bind(operand, dimensions=integers(dimensions))
    return result
