"""Slices, padding, concatenation: primitives that cut, enlarge and join arrays.

Reference: ``jax.lax``.
"""

# Made from chapters/02_arrays_rest.md by `make chapter`;
# edit the chapter, not this file.

import builtins
from collections.abc import Sequence
from typing import Any

from minijax.arrays.array import primitive_rules
from minijax.arrays.avals import ShapedArray, typeof
from minijax.arrays.checks import (
    all_weak,
    as_integer,
    canonicalize_axis,
    check_same_dtype,
    integers,
    listing,
    without,
)
from minijax.core import Array, Primitive
from minijax.lax.factories import unify
from minijax.lax.shaping import squeeze
from minijax.typing import ArrayLike

slice_p = Primitive("slice")


def _slice_shape(x, start_indices, limit_indices, strides):
    steps = strides or (1,) * x.ndim
    if not x.ndim == len(start_indices) == len(limit_indices) == len(steps):
        raise TypeError(
            f"slice needs one start, one limit and one stride for each axis of shape "
            f"{x.shape}, got start_indices {start_indices}, limit_indices "
            f"{limit_indices} and strides {strides}."
        )
    boxes = [*zip(start_indices, limit_indices, x.shape, steps)]
    if not all(0 <= a <= b <= size and step > 0 for a, b, size, step in boxes):
        raise TypeError(
            "slice requires 0 <= start <= limit <= size and stride > 0 along each "
            f"axis, got start_indices {start_indices}, limit_indices {limit_indices}, "
            f"strides {strides} for operand shape {x.shape}."
        )
    return [x.update(shape=[-((a - b) // step) for a, b, _, step in boxes])]


def _slice(xp, x, start_indices, limit_indices, strides):
    steps = strides or (1,) * x.ndim
    return x[tuple(map(builtins.slice, start_indices, limit_indices, steps))]


primitive_rules(slice_p, _slice_shape, _slice)


def slice(
    operand: ArrayLike,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> Array:
    """Cut out a box.

    Args:
      operand: an array.
      start_indices, limit_indices: one for each axis, limits excluded.
      strides: one for each axis; by default, every element is taken.

    Reference: ``jax.lax.slice``.
    """
    steps = integers(() if strides is None else strides)
    steps = None if {*steps} <= {1} else steps
    starts, limits = integers(start_indices), integers(limit_indices)
    [result] = slice_p.bind(
        operand, start_indices=starts, limit_indices=limits, strides=steps
    )
    return result


def slice_in_dim(
    operand: ArrayLike,
    start_index: int | None,
    limit_index: int | None,
    stride: int = 1,
    axis: int = 0,
) -> Array:
    """Slice along one axis; negative indices count from the end.

    Reference: ``jax.lax.slice_in_dim``.
    """
    shape = typeof(operand).shape
    axis = canonicalize_axis(axis, len(shape))
    size = shape[axis]
    starts, limits, strides = [0] * len(shape), [*shape], [1] * len(shape)
    start = 0 if start_index is None else as_integer(start_index, "start_index")
    limit = size if limit_index is None else as_integer(limit_index, "limit_index")
    starts[axis] = start + size if start < 0 else start
    limits[axis] = limit + size if limit < 0 else limit
    strides[axis] = as_integer(stride, "stride")
    return slice(operand, starts, limits, strides)


def index_in_dim(
    operand: ArrayLike, index: int, axis: int = 0, keepdims: bool = True
) -> Array:
    """Take one index along one axis.

    Reference: ``jax.lax.index_in_dim``.
    """
    shape = typeof(operand).shape
    axis, index = canonicalize_axis(axis, len(shape)), as_integer(index, "an index")
    if not -shape[axis] <= index < shape[axis]:
        raise IndexError(
            f"index {index} is out of bounds for axis {axis} with size {shape[axis]}"
        )
    index = index % shape[axis]
    result = slice_in_dim(operand, index, index + 1, axis=axis)
    return result if keepdims else squeeze(result, (axis,))


pad_p = Primitive("pad")


def _pad_shape(x, value, padding_config):
    check_same_dtype("pad", [x, value])
    if value.shape:
        raise ValueError(f"padding_value must be a scalar, got shape {value.shape}")
    if len(padding_config) != x.ndim:
        raise ValueError(
            "padding_config needs (low, high, interior) for each axis, got "
            f"{padding_config} for operand shape {x.shape}"
        )
    sizes = [_padded(size, *padding) for size, padding in zip(x.shape, padding_config)]
    if any(size < 0 for size in sizes):
        raise ValueError(
            f"Dimension size after padding is not at least 0, got {tuple(sizes)} for "
            f"padding_config {padding_config} and operand shape {x.shape}"
        )
    if any(interior < 0 for _, _, interior in padding_config):
        raise ValueError(f"interior padding must be nonnegative, got {padding_config}")
    return [x.update(shape=sizes, weak_type=all_weak([x, value]))]


def _padded(size, low, high, interior):
    return low + high + size + builtins.max(size - 1, 0) * interior


def _pad(xp, x, value, padding_config):
    grown = [
        (builtins.max(low, 0), builtins.max(high, 0), gap)
        for low, high, gap in padding_config
    ]
    result = xp.full([*map(_padded, x.shape, *zip(*grown))], value, x.dtype)
    spread = [
        builtins.slice(low, low + _padded(size, 0, 0, gap), gap + 1)
        for size, (low, _, gap) in zip(x.shape, grown)
    ]
    result[tuple(spread)] = x
    cut = [
        builtins.slice(builtins.max(-low, 0), size - builtins.max(-high, 0))
        for size, (low, high, _) in zip(result.shape, padding_config)
    ]
    return result[tuple(cut)]


primitive_rules(pad_p, _pad_shape, _pad)


def pad(operand: ArrayLike, padding_value: ArrayLike, padding_config: Any) -> Array:
    """Put a value around the elements and between them.

    Args:
      operand: an array.
      padding_value: a scalar of the same dtype.
      padding_config: ``(low, high, interior)`` for each axis: how many to put in
        front, behind, and between neighbours. Negative `low` and `high` cut off.

    Reference: ``jax.lax.pad``.
    """
    config = tuple(integers(padding) for padding in padding_config)
    [result] = pad_p.bind(*unify(operand, padding_value), padding_config=config)
    return result


concatenate_p = Primitive("concatenate")


def _concatenate_shape(*xs, dimension):
    check_same_dtype("concatenate", xs)
    shapes = [x.shape for x in xs]
    if len({*map(len, shapes)}) > 1:
        raise TypeError(
            "Cannot concatenate arrays with different numbers of dimensions: got "
            f"{listing(shapes)}."
        )
    if not 0 <= dimension < xs[0].ndim:
        raise TypeError(
            f"concatenate dimension out of bounds: dimension {dimension} for shapes "
            f"{listing(shapes)}."
        )
    if len({without(shape, [dimension]) for shape in shapes}) > 1:
        raise TypeError(
            "Cannot concatenate arrays with shapes that differ in dimensions other "
            f"than the one being concatenated: concatenating along dimension "
            f"{dimension} for shapes {listing(shapes)}."
        )
    joined = [*shapes[0]]
    joined[dimension] = sum(shape[dimension] for shape in shapes)
    return [ShapedArray(joined, xs[0].dtype, all_weak(xs))]


primitive_rules(
    concatenate_p,
    _concatenate_shape,
    lambda xp, *xs, dimension: xp.concatenate(xs, dimension),
)


def concatenate(operands: Sequence[ArrayLike], dimension: int) -> Array:
    """Join arrays of one dtype along an axis.

    Args:
      operands: arrays whose shapes agree apart from the axis `dimension`.
      dimension: an axis, counted from the front.

    Reference: ``jax.lax.concatenate``.
    """
    operands = [*operands]
    if not operands:
        raise ValueError("concatenate requires a non-empty sequence of arrays")
    if len(operands) == 1 and isinstance(operands[0], Array):
        return operands[0]
    dimension = as_integer(dimension, "dimension of concatenate")
    [result] = concatenate_p.bind(*operands, dimension=dimension)
    return result
