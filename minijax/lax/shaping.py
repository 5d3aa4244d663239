"""Reshape, transpose and their kin: primitives that rearrange and do not compute.

Buffers never change, so that most results share the buffer of their operand.

Reference: ``jax.lax``.
"""

# Made from chapters/02_arrays_rest.md by `make chapter`;
# edit the chapter, not this file.

import builtins
import math
from collections.abc import Sequence
from typing import Any

from minijax.arrays.array import asarray_impl, primitive_rules
from minijax.arrays.avals import typeof
from minijax.arrays.checks import canonicalize_axis, integers, refuse_sharding, without
from minijax.core import Array, Primitive
from minijax.lax.broadcasting import broadcast_in_dim
from minijax.typing import ArrayLike


def broadcast(
    operand: ArrayLike, sizes: Sequence[int], *, out_sharding: Any = None
) -> Array:
    """Repeat `operand` along new leading axes of `sizes`.

    Reference: ``jax.lax.broadcast``.
    """
    refuse_sharding("broadcast", out_sharding)
    shape = (*sizes, *typeof(operand).shape)
    if len(sizes) == 0 and not isinstance(operand, Array):
        return asarray_impl(operand)
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
    *,
    out_sharding: Any = None,
) -> Array:
    """Give the elements, in row-major order, a new shape.

    Args:
      operand: an array.
      new_sizes: its new shape (no -1 here), or one size.
      dimensions: an order of the axes in which to read the elements.

    Reference: ``jax.lax.reshape``.
    """
    refuse_sharding("reshape", out_sharding)
    if not hasattr(new_sizes, "__iter__"):
        new_sizes = (new_sizes,)
    new_sizes = integers(new_sizes, "Shapes")
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
    shape = typeof(operand).shape
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
