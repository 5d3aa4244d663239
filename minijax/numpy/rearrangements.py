"""Arrays turned, split and put together.

Reference: ``jax.numpy``.
"""

# Made from chapters/03_numpy_rest.md by `make chapter`;
# edit the chapter, not this file.

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import lax
from minijax.arrays.array import typeof
from minijax.arrays.config import check_dtypes
from minijax.arrays.interchange import promised
from minijax.arrays.numerics import canonicalize_axis, operator_index
from minijax.core import Array
from minijax.errors import ConcretizationTypeError
from minijax.lax.reductions import check_arraylike
from minijax.numpy.array_creation import asarray, astype, diag, from_object, zeros
from minijax.numpy.array_methods import multiply
from minijax.numpy.joining import concatenate, flip, split, tile
from minijax.numpy.operands import as_array, broadcast_to_shape, promote_factors
from minijax.numpy.shapes import (
    as_arraylike,
    atleast_2d,
    atleast_3d,
    broadcast_to,
    canonical_axis,
    canonicalize_shape,
    moveaxis,
    ravel,
    reshape,
    swapaxes,
    transpose,
)
from minijax.numpy.ufuncs import remainder
from minijax.typing import ArrayLike


def fliplr(m: ArrayLike) -> Array:
    """Turn the second axis around.

    Reference: ``jax.numpy.fliplr``.
    """
    return flip(as_arraylike("fliplr", m), 1)


def flipud(m: ArrayLike) -> Array:
    """Turn the first axis around.

    Reference: ``jax.numpy.flipud``.
    """
    return flip(as_arraylike("flipud", m), 0)


def rot90(m: Any, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """Rotate by `k` right angles, from the first of two axes towards the second.

    Reference: ``jax.numpy.rot90``.
    """
    m = as_arraylike("rot90", m)
    if m.ndim < 2:
        raise ValueError(
            "rot90 requires its first argument to have ndim at least two, but got "
            f"first argument of shape {m.shape}, which has ndim {m.ndim}"
        )
    first, second = (canonicalize_axis(axis, m.ndim) for axis in axes)
    if first == second:
        raise ValueError("Axes must be different")
    for _ in range(operator_index(k, "k of rot90") % 4):
        m = swapaxes(flip(m, second), first, second)
    return m


def rollaxis(a: ArrayLike, axis: int, start: int = 0) -> Array:
    """Move an axis to before the place `start`.

    Reference: ``jax.numpy.rollaxis``.
    """
    a = as_arraylike("rollaxis", a)
    axis, start = canonicalize_axis(axis, a.ndim), operator_index(start, "start")
    if not -a.ndim <= start <= a.ndim:
        raise ValueError(f"{start=} must satisfy {-a.ndim}<=start<={a.ndim}")
    start += a.ndim * (start < 0)
    return moveaxis(a, axis, start - (start > axis))


def permute_dims(a: ArrayLike, /, axes: tuple[int, ...]) -> Array:
    """Permute the axes of an array.

    Reference: ``jax.numpy.permute_dims``.
    """
    return lax.transpose(as_arraylike("permute_dims", a), axes)


def concat(arrays: Sequence[ArrayLike], /, *, axis: int | None = 0) -> Array:
    """Join arrays along an axis.

    Reference: ``jax.numpy.concat``.
    """
    return concatenate(arrays, axis)


def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Array, ...]:
    """Return the slices along an axis, without that axis.

    Reference: ``jax.numpy.unstack``.
    """
    x = as_arraylike("unstack", x)
    if not x.ndim:
        raise ValueError("unstack requires arrays with rank > 0, got a scalar.")
    axis = canonicalize_axis(axis, x.ndim)
    places = range(x.shape[axis])
    return tuple([lax.index_in_dim(x, place, axis, keepdims=False) for place in places])


def dstack(tup: Any, dtype: Any = None) -> Array:
    """Join arrays along a third axis.

    Reference: ``jax.numpy.dstack``.
    """
    tup = [promised(each) for each in tup]
    check_arraylike("dstack", *tup)
    return concatenate([atleast_3d(each) for each in tup], 2, dtype)


def column_stack(tup: Any) -> Array:
    """Join matrices, and vectors as columns.

    Reference: ``jax.numpy.column_stack``.
    """
    tup = [promised(each) for each in tup]
    check_arraylike("column_stack", *tup)
    columns = [as_array(each) for each in tup]
    return concatenate(
        [transpose(atleast_2d(each)) if each.ndim < 2 else each for each in columns], 1
    )


def vsplit(ary: ArrayLike, indices_or_sections: Any) -> list[Array]:
    """Split along the first axis.

    Reference: ``jax.numpy.vsplit``.
    """
    return split(ary, indices_or_sections, 0)


def hsplit(ary: ArrayLike, indices_or_sections: Any) -> list[Array]:
    """Split along the second axis, or the only one.

    Reference: ``jax.numpy.hsplit``.
    """
    ary = as_arraylike("hsplit", ary)
    return split(ary, indices_or_sections, 0 if ary.ndim == 1 else 1)


def dsplit(ary: ArrayLike, indices_or_sections: Any) -> list[Array]:
    """Split along the third axis.

    Reference: ``jax.numpy.dsplit``.
    """
    return split(ary, indices_or_sections, 2)


def block(arrays: Any) -> Array:
    """Join blocks that nested lists arrange.

    Reference: ``jax.numpy.block``.
    """
    return _block(arrays)[0]


def _block(blocks):
    """Return the joined blocks, and the depth of the lists plus one."""
    if isinstance(blocks, tuple):
        raise ValueError(f"jax.numpy.block does not allow tuples, got {blocks}")
    if not isinstance(blocks, list):
        return asarray(blocks), 1
    if not blocks:
        raise ValueError("jax.numpy.block does not allow empty list arguments")
    parts, depths = zip(*map(_block, blocks))
    if len({*depths}) > 1:
        raise ValueError("Mismatched list depths in jax.numpy.block")
    rank = np.max([depths[0], *(part.ndim for part in parts)])
    parts = [lax.expand_dims(part, range(rank - part.ndim)) for part in parts]
    return concatenate(parts, -depths[0]), depths[0] + 1


def resize(a: ArrayLike, new_shape: int | Sequence[int]) -> Array:
    """Return an array of a new shape, filled with the elements again and again.

    Reference: ``jax.numpy.resize``.
    """
    a, shape = ravel(as_arraylike("resize", a)), canonicalize_shape(new_shape)
    size = math.prod(shape)
    if np.min([0, *shape]) < 0:
        raise ValueError("all elements of `new_shape` must be non-negative")
    if not a.size or not size:
        return zeros(shape, a.dtype)
    return reshape(lax.slice_in_dim(tile(a, -(-size // a.size)), 0, size), shape)


def kron(a: ArrayLike, b: ArrayLike) -> Array:
    """Return the Kronecker product: a copy of `b` times each element of `a`.

    Reference: ``jax.numpy.kron``.
    """
    check_arraylike("kron", a, b)
    check_dtypes("kron", (a, b))
    a, b = map(as_array, promote_factors(a, b))
    rank = np.maximum(a.ndim, b.ndim)
    a, b = (lax.expand_dims(each, range(rank - each.ndim)) for each in (a, b))
    shape = np.multiply(a.shape, b.shape).tolist()
    wide = lax.expand_dims(a, range(1, 2 * rank, 2))
    narrow = lax.expand_dims(b, range(0, 2 * rank, 2))
    return reshape(multiply(wide, narrow), shape)


def diagflat(v: ArrayLike, k: int = 0) -> Array:
    """Return a matrix with all elements of `v` on a diagonal.

    Reference: ``jax.numpy.diagflat``.
    """
    v = ravel(as_arraylike("diagflat", v))
    if typeof(v).weak_type:
        v = lax.convert_element_type(v, v.dtype)
    return diag(v, k)


def delete(
    arr: ArrayLike,
    obj: Any,
    axis: int | None = None,
    *,
    assume_unique_indices: bool = False,
) -> Array:
    """Leave out the slices at places that are known: an integer, a slice, a mask.

    Args:
      arr: an array.
      obj: the places. While tracing, they are numbers, and integers that are traced
        only if they are distinct.
      axis: along which; by default all elements are one axis.
      assume_unique_indices: whether the caller promises that an array of integers
        names no slice twice. Then the result has one slice less for each of them.

    Raises:
      ConcretizationTypeError: for traced places without that promise.

    Reference: ``jax.numpy.delete``.
    """
    arr, axis = _as_line("delete", arr, axis)
    if assume_unique_indices and _is_integer_array(obj := promised(obj)):
        return _without_distinct(arr, obj, axis)
    places, stays = _known_places("delete", obj), np.ones(arr.shape[axis], "bool")
    if np.ndim(places) == 0 and not isinstance(obj, slice):
        places = canonicalize_axis(places.item(), stays.size)
    elif not isinstance(obj, slice) and places.dtype.kind not in "biu":
        raise ValueError(f"delete takes integers, a slice or a mask, not {obj}.")
    stays[places] = False
    return _taken(arr, np.flatnonzero(stays), axis)


def _is_integer_array(obj):
    number = hasattr(obj, "dtype") and obj.dtype.kind in "iu"
    return number and (obj.ndim > 0 or _is_traced(obj))


def _is_traced(obj):
    return hasattr(obj, "concrete") and obj.concrete() is None


def _without_distinct(arr, places, axis):
    """Leave out slices at distinct places, of which only the number must be known."""
    size, places = arr.shape[axis], astype(ravel(places), np.int32)
    places = _gaps(places, size)
    earlier = lax.lt(lax.expand_dims(places, [0]), lax.expand_dims(places, [1]))
    before = places - _row_counts(earlier)  # how many that stay are before each
    stays = np.arange(max(size - len(places), 0), dtype=np.int32)
    left_out = lax.le(lax.expand_dims(before, [0]), lax.expand_dims(stays, [1]))
    return arr[(slice(None),) * axis + (_row_counts(left_out) + stays,)]


def _row_counts(true):
    return lax.reduce_sum(astype(true, np.int32), axes=(1,))


def insert(
    arr: ArrayLike, obj: Any, values: ArrayLike, axis: int | None = None
) -> Array:
    """Put values in front of the slices at some places.

    Args:
      arr: an array.
      obj: the places, an integer, a slice or several integers, which may be traced.
      values: what to put there; it is broadcast.
      axis: along which; by default all elements are one axis.

    Reference: ``jax.numpy.insert``.
    """
    arr, axis = _as_line("insert", arr, axis)
    values = as_arraylike("insert", values)
    size, values = arr.shape[axis], astype(values, arr.dtype)
    traced = _is_integer_array(obj) and _is_traced(obj)
    places = obj if traced else _known_places("insert", obj)
    places = np.arange(size)[places] if isinstance(obj, slice) else places
    if places.ndim > 1 or places.dtype.kind not in "iu":
        raise ValueError(f"insert wants integers along one axis as places, got {obj}")
    values = lax.expand_dims(values, range(arr.ndim - values.ndim))
    if places.ndim == 0:
        values = moveaxis(values, 0, axis)
    count = values.shape[axis] if places.size == 1 else places.size
    shape = [*arr.shape[:axis], count, *arr.shape[axis + 1 :]]
    both = concatenate([arr, broadcast_to(values, shape)], axis)
    if traced:
        places = broadcast_to(ravel(astype(places, np.int32)), (count,))
        return both[(slice(None),) * axis + (_order_of_traced(places, size),)]
    places = np.broadcast_to(np.where(places < 0, places + size, places), (count,))
    after = np.concatenate([np.arange(size), np.clip(places, 0, size) - 0.5])
    return _taken(both, np.argsort(after, kind="stable"), axis)


def _gaps(places, size):
    """Return places, which may be negative, as numbers from 0 to `size`."""
    return lax.clamp(0, lax.select(places < 0, places + size, places), size)


def _order_of_traced(places, size):
    """Return an order of old slices and new ones, where the new ones' places are."""
    new = np.arange(len(places), dtype=np.int32)
    places = _gaps(places, size)
    row, column = lax.expand_dims(places, [0]), lax.expand_dims(places, [1])
    earlier = lax.lt(row, column) | lax.eq(row, column) & (new[None] < new[:, None])
    row = lax.expand_dims(places + _row_counts(earlier), [0])
    out = np.arange(size + len(new), dtype=np.int32)
    here = lax.eq(row, out[:, None])
    which = lax.reduce_sum(astype(here, np.int32) * new[None], axes=(1,))
    old = out - _row_counts(lax.lt(row, out[:, None]))
    return lax.select(_row_counts(here) > 0, size + which, old)


def _as_line(name, arr, axis):
    arr = as_arraylike(name, arr)
    if axis is None:
        return ravel(arr), 0
    return arr, canonicalize_axis(axis, arr.ndim)


def _known_places(name, obj):
    if isinstance(obj, slice):
        return obj
    obj = promised(obj)
    check_arraylike(name, obj)
    known = obj.concrete() if hasattr(obj, "concrete") else obj
    if known is None:
        raise ConcretizationTypeError(
            f"jnp.{name} needs places that are known while tracing, got {obj!r}."
        )
    places = np.asarray(known)
    return places if places.size else places.astype(int)


def _taken(a, places, axis):
    """Return the slices of an array at known places, joined from runs of them."""
    cuts = np.flatnonzero(np.diff(places) != 1) + 1
    runs = [run for run in np.split(places, cuts) if run.size]
    pieces = [lax.slice_in_dim(a, run[0], run[-1] + 1, axis=axis) for run in runs]
    pieces = pieces or [lax.slice_in_dim(a, 0, 0, axis=axis)]
    return lax.concatenate(pieces, axis)


def roll(a: Any, shift: Any, axis: int | Sequence[int] | None = None) -> Array:
    """Move elements `shift` places on; those that fall off come back in front.

    Args:
      a: array.
      shift: an integer, or one for each axis; they may be traced.
      axis: the axes; without one, all elements are a single row.

    Reference: ``jax.numpy.roll``.
    """
    a = as_arraylike("roll", a)
    if axis is None:
        return reshape(roll(ravel(a), shift, 0), a.shape)
    axes = axis if isinstance(axis, Sequence) else (axis,)
    axes = tuple(operator_index(each, "an axis") for each in axes)
    for step, place in _steps(shift, axes):
        move = _roll_by_bits if isinstance(step, Array) else _roll
        a = move(a, step, canonical_axis(place, a.ndim))
    return a


def _steps(shift, axes):
    """Return pairs of an amount, an integer or a traced one, and an axis."""
    try:
        return list(np.broadcast(canonicalize_shape(shift), axes))
    except TypeError:
        shift = astype(from_object(shift, None), np.int32)
    if shift.ndim > 1:
        raise ValueError(
            "'shift' and 'axis' arguments to roll should be scalars or 1D arrays"
        )
    steps = broadcast_to_shape(
        ravel(shift), np.broadcast_shapes((shift.size,), (len(axes),))
    )
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
