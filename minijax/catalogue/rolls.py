# Made from chapters/03_numpy_rest.md by `make chapter`;
# edit the chapter, not this file.
"""Elements moved on in a circle, by amounts that are known or traced.

Reference: ``jax.numpy.roll``.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import lax
from minijax.core import Array
from minijax.numpy.arithmetic import remainder
from minijax.numpy.creation import astype, from_object
from minijax.numpy.shapes import arraylike, as_axis, as_shape, ravel, reshape
from minijax.numpy.ufuncs import stretch


def roll(a: Any, shift: Any, axis: int | Sequence[int] | None = None) -> Array:
    """Move elements `shift` places on; those that fall off come back in front.

    Args:
      a: array.
      shift: an integer, or one for each axis; they may be traced.
      axis: the axes; without one, all elements are a single row.

    Reference: ``jax.numpy.roll``.
    """
    a = arraylike("roll", a)
    if axis is None:
        return reshape(roll(ravel(a), shift, 0), a.shape)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    for step, place in _steps(shift, axes):
        move = _roll_by_bits if isinstance(step, Array) else _roll
        a = move(a, step, as_axis(place, a.ndim))
    return a


def _steps(shift, axes):
    """Return pairs of an amount, an integer or a traced one, and an axis."""
    try:
        return list(np.broadcast(as_shape(shift), axes))
    except TypeError:
        shift = astype(from_object(shift, None), np.int32)
    if shift.ndim > 1:
        raise ValueError(
            "'shift' and 'axis' arguments to roll should be scalars or 1D arrays"
        )
    steps = stretch(ravel(shift), np.broadcast_shapes((shift.size,), (len(axes),)))
    each = [lax.index_in_dim(steps, i, keepdims=False) for i in range(steps.size)]
    return list(zip(each, np.broadcast_to(axes, steps.shape)))


def _roll_by_bits(a, shift, axis):
    """Roll by an amount whose value is not known: for each of its bits, or not."""
    size = a.shape[axis]
    places = remainder(shift, size or 1)
    for bit in range((size - 1).bit_length() if size else 0):
        is_set = lax.ne(lax.bitwise_and(places, np.int32(1 << bit)), np.int32(0))
        a = lax.select(is_set, _roll(a, 1 << bit, axis), a)
    return a


def _roll(a, shift, axis):
    size = a.shape[axis]
    if not size or not shift % size:
        return a
    start = size - int(shift) % size
    ends = (start, size), (0, start)
    parts = [lax.slice_in_dim(a, i, j, axis=axis) for i, j in ends]
    return lax.concatenate(parts, axis)
