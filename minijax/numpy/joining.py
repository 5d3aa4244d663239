"""Arrays made of pieces of arrays: joined, split, repeated, padded, turned around.

Reference: ``jax.numpy``.
"""

# Made from chapters/03_numpy_rest.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import lax
from minijax.arrays.checks import as_integer, refuse_sharding, size_along
from minijax.arrays.dtypes import check_dtype
from minijax.arrays.interchange import promised
from minijax.core import Array, Tracer
from minijax.errors import ConcretizationTypeError
from minijax.lax.promotion import check_arraylike, promote_dtypes
from minijax.numpy.creation import full
from minijax.numpy.shapes import (
    arraylike,
    as_axes,
    as_axis,
    as_shape,
    atleast_1d,
    atleast_2d,
    expand_dims,
    ravel,
    reshape,
)
from minijax.operators.entries import known_value
from minijax.operators.operands import as_array, stretch
from minijax.switches.promotion import check_dtypes
from minijax.typing import ArrayLike


def as_operands(name, arrays, dtype=None):
    """Return a sequence of arrays, or the rows of an array, in one dtype."""
    if not len(arrays):
        raise ValueError(f"Need at least one array to {name}.")
    arrays = [promised(each) for each in arrays]
    check_arraylike(name, *arrays)
    if dtype is None:
        check_dtypes(name, arrays)
        return [as_array(each) for each in promote_dtypes(*arrays)]
    dtype = check_dtype(dtype, name)
    return [lax.convert_element_type(as_array(each), dtype) for each in arrays]


def concatenate(arrays: Any, axis: int | None = 0, dtype: Any = None) -> Array:
    """Join arrays along an axis that they have; ``axis=None`` joins all elements.

    Args:
      arrays: sequence of arrays whose other axes agree in size.
      axis: where to join.
      dtype: dtype of the result; by default the one that the arrays promote to.

    Raises:
      ValueError: for no arrays, or arrays without axes.
      TypeError: if the other axes differ.

    Reference: ``jax.numpy.concatenate``.
    """
    if axis is None:
        return concatenate([ravel(each) for each in arrays], 0, dtype)
    operands = as_operands("concatenate", arrays, dtype)
    if not operands[0].ndim:
        raise ValueError("Zero-dimensional arrays cannot be concatenated; stack them.")
    return lax.concatenate(operands, as_axis(axis, operands[0].ndim))


def stack(arrays: Any, axis: int = 0, out: Any = None, dtype: Any = None) -> Array:
    """Join arrays of one shape along a new axis.

    Raises:
      ValueError: for no arrays, or if their shapes differ.

    Reference: ``jax.numpy.stack``.
    """
    if out is not None:
        raise NotImplementedError("The 'out' argument to jnp.stack is not supported.")
    operands = as_operands("stack", arrays, dtype)
    shapes = [each.shape for each in operands]
    if len(set(shapes)) > 1:
        listed = ", ".join(map(str, shapes))
        raise ValueError(f"All input arrays must have the same shape. Got {listed}.")
    axis = as_axis(axis, len(shapes[0]) + 1)
    return lax.concatenate([expand_dims(each, axis) for each in operands], axis)


def vstack(tup: Any, dtype: Any = None) -> Array:
    """Join arrays along the first of at least two axes: vectors become rows.

    Reference: ``jax.numpy.vstack``.
    """
    return concatenate([atleast_2d(each) for each in tup], 0, dtype)


def hstack(tup: Any, dtype: Any = None) -> Array:
    """Join arrays along the second axis, vectors along their only one.

    Reference: ``jax.numpy.hstack``.
    """
    arrays = [atleast_1d(each) for each in tup]
    return concatenate(arrays, 1 if arrays and arrays[0].ndim > 1 else 0, dtype)


def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Array:
    """Join two arrays along an axis; without one, all their elements.

    Reference: ``jax.numpy.append``.
    """
    return concatenate([arr, values], axis)


def array_split(ary: ArrayLike, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """Cut an array into pieces along an axis.

    Args:
      ary: array.
      indices_or_sections: the places to cut at, or the number of pieces, whose sizes
        then differ by at most one.
      axis: the axis to cut.

    Returns:
      A list of arrays.

    Reference: ``jax.numpy.array_split``.
    """
    ary = arraylike("array_split", ary)
    axis = as_axis(axis, ary.ndim)
    places = _places(ary.shape[axis], indices_or_sections)
    return [
        lax.slice_in_dim(ary, start, stop, axis=axis)
        for start, stop in zip(places, places[1:])
    ]


def _places(size, indices_or_sections):
    if np.ndim(indices_or_sections):
        places = [0, *as_shape(indices_or_sections), size]
        if places != sorted(places):
            raise ValueError(
                f"places to cut at must increase from 0 to {size}: {places}"
            )
        return places
    sections = as_integer(indices_or_sections, "the number of pieces")
    share, rest = size // sections, size % sections
    return [i * share + (i if i < rest else rest) for i in range(sections + 1)]


def split(ary: ArrayLike, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """Cut an array into pieces along an axis, as `array_split`.

    Raises:
      ValueError: if the number of pieces does not divide the size of the axis.

    Reference: ``jax.numpy.split``.
    """
    size = size_along(arraylike("split", ary), axis)
    if not np.ndim(indices_or_sections):
        rest = size % as_integer(indices_or_sections, "the number of pieces")
        if rest:
            raise ValueError(
                f"array split does not result in an equal division: rest is {rest}"
            )
    return array_split(ary, indices_or_sections, axis)


def tile(A: ArrayLike, reps: Any) -> Array:
    """Repeat an array as a whole, ``reps[i]`` times along axis i.

    Reference: ``jax.numpy.tile``.
    """
    A, reps = arraylike("tile", A), as_shape(reps)
    A = stretch(A, (1,) * (len(reps) - A.ndim) + A.shape)
    reps = (1,) * (A.ndim - len(reps)) + reps
    doubled = tuple(size for pair in zip(reps, A.shape) for size in pair)
    spread = lax.broadcast_in_dim(A, doubled, range(1, 2 * A.ndim, 2))
    return reshape(spread, tuple(rep * size for rep, size in zip(reps, A.shape)))


def repeat(
    a: ArrayLike,
    repeats: Any,
    axis: int | None = None,
    *,
    total_repeat_length: int | None = None,
    out_sharding: Any = None,
) -> Array:
    """Repeat each element along an axis; without one, each of all elements.

    Args:
      a: array.
      repeats: an integer, or one for each place along the axis, with known values.
      axis: where to repeat.
      total_repeat_length: size of the axis in the result: what is too much is cut off,
        and the last element makes up for what is missing.

    Raises:
      ConcretizationTypeError: if the values of `repeats` are not known, and neither
        is the size of the result.

    Reference: ``jax.numpy.repeat``.
    """
    refuse_sharding("repeat", out_sharding)
    a, repeats = promised(a), _known_repeats(promised(repeats), total_repeat_length)
    check_arraylike("repeat", a, repeats)
    if total_repeat_length is not None:
        total_repeat_length = as_integer(total_repeat_length, "total_repeat_length")
    if axis is None:
        return repeat(ravel(a), repeats, 0, total_repeat_length=total_repeat_length)
    a = as_array(a) if np.ndim(a) else ravel(a)
    axis = as_axis(axis, a.ndim)
    if not np.ndim(repeats) and total_repeat_length is None:
        return _repeat_all(a, as_integer(repeats, "repeats"), axis)
    if isinstance(repeats, Tracer):
        return _look_up(a, repeats, axis, total_repeat_length)
    counts = _repeat_counts(a.shape[axis], np.asarray(repeats), total_repeat_length)
    pieces = [lax.slice_in_dim(a, i, i + 1, axis=axis) for i in range(a.shape[axis])]
    repeated = [_repeat_all(each, n, axis) for each, n in zip(pieces, counts) if n]
    return concatenate(repeated or [lax.slice_in_dim(a, 0, 0, axis=axis)], axis)


def _known_repeats(repeats, total):
    if not isinstance(repeats, Tracer):
        return repeats
    value = known_value(repeats)
    if value is None and total is None:
        raise ConcretizationTypeError(
            "Abstract tracer value encountered where concrete value is expected: "
            f"{repeats!r}. When jit-compiling jnp.repeat, the total number of repeats "
            "must be static. To fix this, either specify a static value for `repeats`, "
            "or pass a static value to `total_repeat_length`."
        )
    return repeats if value is None else value


def _look_up(a, repeats, axis, total):
    """Take each element as often as it is repeated, where that is computed."""
    size = a.shape[axis]
    if not size or not total:
        return a if total else lax.slice_in_dim(a, 0, 0, axis=axis)
    ends = lax.cumsum(lax.broadcast_in_dim(ravel(repeats), (size,), (0,)))
    places = full((total,), 0, np.int32).at[ends[:-1]].add(1)
    return a.take(lax.cumsum(places), axis)


def _repeat_all(a, repeats, axis):
    shape = (*a.shape[: axis + 1], repeats, *a.shape[axis + 1 :])
    spread = lax.broadcast_in_dim(
        a, shape, [i for i in range(a.ndim + 1) if i != axis + 1]
    )
    return reshape(spread, (*shape[:axis], shape[axis] * repeats, *shape[axis + 2 :]))


def _repeat_counts(size, repeats, total):
    places = np.repeat(np.arange(size), repeats)
    if total is not None:
        missing = total - places.size if size else 0  # nothing has no last element
        rest = np.full(missing if missing > 0 else 0, size - 1)
        places = np.concatenate([places[:total], rest])
    return np.bincount(places, minlength=size).tolist()


def flip(m: ArrayLike, axis: int | Sequence[int] | None = None) -> Array:
    """Reverse the order of elements along the given axes, or along all.

    Reference: ``jax.numpy.flip``.
    """
    m = arraylike("flip", m)
    return lax.rev(m, as_axes(axis, m.ndim))
