"""Slices, and updates of slices, whose corner is computed by the program.

Reference: ``jax.lax.dynamic_slice``, ``jax.lax.dynamic_update_slice``.
"""

# Made from chapters/28_indexing_ground.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import lax
from minijax.arrays.array import primitive_rules
from minijax.arrays.avals import typeof
from minijax.arrays.checks import (
    as_integer,
    canonicalize_axis,
    check_same_dtype,
    integers,
)
from minijax.arrays.dtypes import kind_of
from minijax.core import Array, Primitive
from minijax.typing import ArrayLike

INT64 = np.dtype(np.int64)


def check_starts(name, starts, box, shape):
    """Raise unless starts are integers of one dtype, and a box fits into a shape."""
    if any(start.shape for start in starts):
        raise TypeError(
            f"start_indices arguments to {name} must be scalars, got indices {starts}"
        )
    if len({start.dtype for start in starts}) > 1 or any(
        kind_of(start.dtype) not in "iu" for start in starts
    ):
        names = ", ".join(start.dtype.name for start in starts)
        raise TypeError(
            f"index arguments to {name} must be integers of the same type, got: {names}"
        )
    if len(box) != len(shape) or not all(0 <= a <= b for a, b in zip(box, shape)):
        raise TypeError(
            f"{name} slice_sizes must be less than or equal to operand shape, got "
            f"slice_sizes {tuple(box)} for operand shape {shape}."
        )


def _slice_shape(x, *starts, slice_sizes):
    check_starts("dynamic_slice", starts, slice_sizes, x.shape)
    return [x.update(shape=slice_sizes)]


def _update_shape(x, update, *starts):
    check_same_dtype("dynamic_update_slice", [x, update])
    check_starts("dynamic_update_slice", starts, update.shape, x.shape)
    return [x]


def box_at(starts, box, shape):
    """Return slices for a box of some size, moved inside of an array."""
    most = [whole - size for size, whole in zip(box, shape)]
    corner = [min(max(int(start), 0), last) for start, last in zip(starts, most)]
    return tuple([slice(a, a + size) for a, size in zip(corner, box)])


def _slice(xp, x, *starts, slice_sizes):
    return x[box_at(starts, slice_sizes, x.shape)]


def _update(xp, x, update, *starts):
    result = xp.array(x)  # x.copy() of an array without axes is a number in NumPy
    result[box_at(starts, update.shape, x.shape)] = update
    return result


dynamic_slice_p = Primitive("dynamic_slice")
dynamic_update_slice_p = Primitive("dynamic_update_slice")
primitive_rules(dynamic_slice_p, _slice_shape, _slice)
primitive_rules(dynamic_update_slice_p, _update_shape, _update)


def from_the_end(start, size, allowed):
    """Return an index, with the size of the axis added if it is negative."""
    if kind_of(typeof(start).dtype) == "u":
        return start
    if isinstance(start, int | np.integer):
        if start < 0 and not allowed:
            raise ValueError(
                f"Index {start} is out of bounds for dimension {size} if "
                "allow_negative_indices=False"
            )
        dtype = typeof(start).dtype
        return lax.convert_element_type(start + size if start < 0 else start, dtype)
    if not allowed:
        return start
    dtype = typeof(start).dtype
    zero, size = (np.asarray(value).astype(dtype) for value in (0, size))
    return lax.select(lax.lt(start, zero), lax.add(start, size), start)


def _starts(operand, starts, allowed):
    shape = typeof(operand).shape
    if len(starts) != len(shape):
        raise ValueError(
            "Length of slice indices must match number of operand dimensions "
            f"({len(starts)} vs {shape})"
        )
    allowed = [allowed] * len(shape) if isinstance(allowed, bool) else allowed
    return list(map(from_the_end, starts, shape, allowed))


def dynamic_slice(
    operand: ArrayLike,
    start_indices: Sequence[ArrayLike] | Array,
    slice_sizes: Sequence[int],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """Cut out a box whose corner the program computes.

    Args:
      operand: an array.
      start_indices: an integer for each axis; what would stick out is moved inside.
      slice_sizes: the shape of the box.
      allow_negative_indices: whether negative starts count from the end; for all axes
        or for each.

    Reference: ``jax.lax.dynamic_slice``.
    """
    starts = _starts(operand, start_indices, allow_negative_indices)
    sizes = integers(slice_sizes, "Shapes")
    return dynamic_slice_p.bind(operand, *starts, slice_sizes=sizes)[0]


def dynamic_update_slice(
    operand: ArrayLike,
    update: ArrayLike,
    start_indices: Sequence[ArrayLike] | Array,
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """Put an array in the place of a box whose corner the program computes.

    The arguments are those of `dynamic_slice`; the box has the shape of `update`.

    Reference: ``jax.lax.dynamic_update_slice``.
    """
    starts = _starts(operand, start_indices, allow_negative_indices)
    return dynamic_update_slice_p.bind(operand, update, *starts)[0]


def dynamic_slice_in_dim(
    operand: Any,
    start_index: ArrayLike,
    slice_size: int,
    axis: int = 0,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Cut out a slice along one axis, from a start that the program computes.

    Reference: ``jax.lax.dynamic_slice_in_dim``.
    """
    shape = typeof(operand).shape
    starts, allowed = _along(axis, start_index, len(shape), allow_negative_indices)
    sizes = [*shape]
    sizes[as_integer(axis, "an axis")] = as_integer(slice_size, "slice_size")
    return dynamic_slice(operand, starts, sizes, allow_negative_indices=allowed)


def _along(axis, start, rank, allowed):
    starts, flags = [_zero_like(start)] * rank, [False] * rank
    axis = canonicalize_axis(axis, rank)
    starts[axis], flags[axis] = start, allowed
    return starts, flags


def _zero_like(start):
    return 0 if isinstance(start, int) else np.zeros((), typeof(start).dtype)[()]


def dynamic_index_in_dim(
    operand: Any,
    index: ArrayLike,
    axis: int = 0,
    keepdims: bool = True,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Take one index along one axis, which the program computes.

    Reference: ``jax.lax.dynamic_index_in_dim``.
    """
    allowed = {"allow_negative_indices": allow_negative_indices}
    result = dynamic_slice_in_dim(operand, index, 1, axis, **allowed)
    return result if keepdims else lax.squeeze(result, (axis,))


def dynamic_update_slice_in_dim(
    operand: Any,
    update: ArrayLike,
    start_index: ArrayLike,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Replace a slice along one axis, from a start that the program computes.

    Reference: ``jax.lax.dynamic_update_slice_in_dim``.
    """
    rank = typeof(operand).ndim
    starts, allowed = _along(axis, start_index, rank, allow_negative_indices)
    return dynamic_update_slice(operand, update, starts, allow_negative_indices=allowed)


def dynamic_update_index_in_dim(
    operand: Any,
    update: ArrayLike,
    index: ArrayLike,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Replace what is at one index along one axis, which the program computes.

    Reference: ``jax.lax.dynamic_update_index_in_dim``.
    """
    if typeof(update).ndim != typeof(operand).ndim:
        update = lax.expand_dims(update, (axis,))
    allowed = {"allow_negative_indices": allow_negative_indices}
    return dynamic_update_slice_in_dim(operand, update, index, axis, **allowed)
