"""Arrays made of pieces of arrays: joined, split, repeated, padded, turned around.

References: ``jax.numpy``, ``jax.numpy.pad``.
"""

# Made from chapters/03_numpy_rest.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from minijax import lax
from minijax.arrays.config import check_dtypes
from minijax.arrays.dtypes import check_dtype
from minijax.arrays.interchange import check_room, promised
from minijax.arrays.numerics import dim_size_along, operator_index
from minijax.arrays.out_sharding import with_out_sharding
from minijax.core import Array, Tracer
from minijax.errors import ConcretizationTypeError
from minijax.lax.arithmetic import astype as as_type
from minijax.lax.reductions import check_arraylike, promote_dtypes
from minijax.numpy.array_creation import from_object, full
from minijax.numpy.operands import (
    array_kind,
    as_array,
    broadcast_to_shape,
    concrete_or_none,
)
from minijax.numpy.ranges import linspace
from minijax.numpy.shapes import (
    as_arraylike,
    atleast_1d,
    atleast_2d,
    canonical_axes,
    canonical_axis,
    canonicalize_shape,
    expand_dims,
    ravel,
    reshape,
)
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
    return lax.concatenate(operands, canonical_axis(axis, operands[0].ndim))


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
    axis = canonical_axis(axis, len(shapes[0]) + 1)
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
    ary = as_arraylike("array_split", ary)
    axis = canonical_axis(axis, ary.ndim)
    places = _places(ary.shape[axis], indices_or_sections)
    return [
        lax.slice_in_dim(ary, start, stop, axis=axis)
        for start, stop in zip(places, places[1:])
    ]


def _places(size, indices_or_sections):
    if np.ndim(indices_or_sections):
        places = [0, *canonicalize_shape(indices_or_sections), size]
        if places != sorted(places):
            raise ValueError(
                f"places to cut at must increase from 0 to {size}: {places}"
            )
        return places
    sections = operator_index(indices_or_sections, "the number of pieces")
    if sections < 1:
        raise ValueError(f"the number of pieces must be positive, got {sections}.")
    check_room(f"{sections} pieces", sections, 64)  # an array has some 500 bytes
    share, rest = size // sections, size % sections
    return [i * share + (i if i < rest else rest) for i in range(sections + 1)]


def split(ary: ArrayLike, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """Cut an array into pieces along an axis, as `array_split`.

    Raises:
      ValueError: if the number of pieces does not divide the size of the axis.

    Reference: ``jax.numpy.split``.
    """
    size = dim_size_along(as_arraylike("split", ary), axis)
    if not np.ndim(indices_or_sections):
        sections = operator_index(indices_or_sections, "the number of pieces")
        rest = size % sections if sections > 0 else 0
        if rest:
            raise ValueError(
                f"array split does not result in an equal division: rest is {rest}"
            )
    return array_split(ary, indices_or_sections, axis)


def tile(A: ArrayLike, reps: Any) -> Array:
    """Repeat an array as a whole, ``reps[i]`` times along axis i.

    Reference: ``jax.numpy.tile``.
    """
    A, reps = as_arraylike("tile", A), canonicalize_shape(reps)
    A = broadcast_to_shape(A, (1,) * (len(reps) - A.ndim) + A.shape)
    reps = (1,) * (A.ndim - len(reps)) + reps
    doubled = tuple(size for pair in zip(reps, A.shape) for size in pair)
    spread = lax.broadcast_in_dim(A, doubled, range(1, 2 * A.ndim, 2))
    return reshape(spread, tuple(rep * size for rep, size in zip(reps, A.shape)))


@with_out_sharding
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
    a, repeats = promised(a), _known_repeats(promised(repeats), total_repeat_length)
    check_arraylike("repeat", a, repeats)
    if total_repeat_length is not None:
        total_repeat_length = operator_index(total_repeat_length, "total_repeat_length")
        if total_repeat_length < 0:
            told = f"must be nonnegative, got {total_repeat_length}."
            raise TypeError(f"total_repeat_length of repeat {told}")
    if axis is None:
        return repeat(ravel(a), repeats, 0, total_repeat_length=total_repeat_length)
    a = as_array(a) if np.ndim(a) else ravel(a)
    axis = canonical_axis(axis, a.ndim)
    if not np.ndim(repeats) and total_repeat_length is None:
        return _repeat_all(a, operator_index(repeats, "repeats"), axis)
    if isinstance(repeats, Tracer):
        return _look_up(a, repeats, axis, total_repeat_length)
    counts = _repeat_counts(a.shape[axis], np.asarray(repeats), total_repeat_length)
    pieces = [lax.slice_in_dim(a, i, i + 1, axis=axis) for i in range(a.shape[axis])]
    repeated = [_repeat_all(each, n, axis) for each, n in zip(pieces, counts) if n]
    return concatenate(repeated or [lax.slice_in_dim(a, 0, 0, axis=axis)], axis)


def _known_repeats(repeats, total):
    if not isinstance(repeats, Tracer):
        return repeats
    value = concrete_or_none(repeats)
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
    if not np.ndim(repeats):
        repeats = operator_index(repeats, "repeats")
    np.repeat(np.empty(size), np.minimum(repeats, 1))  # NumPy refuses what it cannot do
    counts = np.broadcast_to(repeats, (size,)).astype(int)
    if total is not None and size:  # nothing has no last element
        ends = np.cumsum(np.minimum(counts, total))
        ends = np.append(np.minimum(ends[:-1], total), total)
        counts = np.diff(ends, prepend=0)
    return counts.tolist()


def flip(m: ArrayLike, axis: int | Sequence[int] | None = None) -> Array:
    """Reverse the order of elements along the given axes, or along all.

    Reference: ``jax.numpy.flip``.
    """
    m = as_arraylike("flip", m)
    return lax.rev(m, canonical_axes(axis, m.ndim))


# Padding: elements around an array.

_OF_THE_EDGE = "maximum", "minimum", "mean", "median"
_PAD_OPTIONS = {
    "constant": "constant_values", "linear_ramp": "end_values", "empty": None,
    "reflect": "reflect_type", "symmetric": "reflect_type", "edge": None, "wrap": None,
    **dict.fromkeys(_OF_THE_EDGE, "stat_length"),
}  # fmt: skip


def pad(
    array: ArrayLike, pad_width: Any, mode: str | Callable = "constant", **kwargs: Any
) -> Array:
    """Put elements around an array.

    Args:
      array: array of n axes.
      pad_width: how many: one number, one pair ``(before, after)``, or n such pairs.
      mode: what to put there: ``"literal_like"`` values, copies of the ``"edge"``, or
        elements in the order in which they ``"reflect"`` (without the edge),
        ``"symmetric"`` (with it) or ``"wrap"`` around; the ``"maximum"``,
        ``"minimum"``, ``"mean"`` or ``"median"`` along the axis, a ``"linear_ramp"``
        from the edge to an end value, or zeros (``"empty"``). Or a function of a row
        with zeros around it, its pair of widths, the axis, and the other keywords as
        a dictionary; it returns the row that it has filled.
      **kwargs: ``constant_values`` and ``end_values``, numbers of the same form as
        `pad_width`, by default 0; ``stat_length``, of the same form: of how many
        elements from the edge the statistic is, by default of all; ``reflect_type``:
        ``"even"``, or ``"odd"``, which subtracts what is reflected from twice the edge.

    Raises:
      ValueError: for widths that do not fit the axes or are negative, an option of
        another mode, or an axis of no elements that nothing can be put around.

    Reference: ``jax.numpy.pad``.
    """
    operand = as_arraylike("pad", array)
    widths = _pad_widths(pad_width, operand.ndim)
    if callable(mode):
        return _pad_by_function(operand, widths, mode, kwargs)
    if mode not in _PAD_OPTIONS:
        raise NotImplementedError(
            f"Unimplemented padding mode '{mode}' for np.pad; there are "
            f"{', '.join(_PAD_OPTIONS)}."
        )
    if not {*kwargs} <= {_PAD_OPTIONS[mode]}:
        raise ValueError(
            f"unsupported keyword arguments for mode {mode!r}: {sorted(kwargs)}; it "
            f"has {_PAD_OPTIONS[mode] or 'none'}."
        )
    option = kwargs.get(_PAD_OPTIONS[mode] or "")
    if not operand.ndim:
        return operand
    if mode == "constant":
        return _pad_constant(operand, widths, 0 if option is None else option)
    if mode in ("edge", "reflect", "symmetric", "wrap") and option in (None, "even"):
        return _pad_by_indices(operand, widths, mode)
    return _pad_by_pieces(operand, widths, mode, option)


def _known_widths(given):
    if isinstance(given, Sequence) and not isinstance(given, str):
        return [*map(_known_widths, given)]
    unknown = isinstance(given, Tracer) and concrete_or_none(given) is None
    return operator_index(given, "pad_width") if unknown else given


def _pad_widths(pad_width, ndim, name="pad_width"):
    given = np.asarray(_known_widths(pad_width))
    try:
        widths = np.broadcast_to(given, (ndim, 2)).tolist()
    except ValueError:
        raise ValueError(
            f"{name} of shape {given.shape} does not fit an array with {ndim} axes: "
            f"valid shapes are ({ndim}, 2), (1, 2), (2,), (1,) and ()."
        ) from None
    if (given < 0).any():
        raise ValueError(f"{name} can't contain negative values, got {pad_width}")
    return widths


def _pad_constant(operand, widths, values):
    values = from_object(values, None)
    values = as_type(values, operand.dtype, operand.weak_type)
    if not values.ndim:
        return lax.pad(operand, values, [(low, high, 0) for low, high in widths])
    values = broadcast_to_shape(values, (operand.ndim, 2))
    for axis, width in enumerate(widths):
        for side in (0, 1):
            config = [(0, 0, 0)] * operand.ndim
            config[axis] = (width[0], 0, 0) if side == 0 else (0, width[1], 0)
            corner = lax.slice(values, (axis, side), (axis + 1, side + 1))
            operand = lax.pad(operand, lax.squeeze(corner, (0, 1)), config)
    return operand


def _pad_by_indices(operand, widths, mode):
    for axis, width in enumerate(widths):
        places = np.pad(np.arange(operand.shape[axis]), width, mode)
        runs = [_run(operand, run, axis) for run in _runs(places.tolist())]
        operand = lax.concatenate(runs, axis) if runs else operand
    return operand


def _runs(places):
    """Cut integers into the longest runs that rise by one, fall by one or stay."""
    runs = []
    for place in places:
        last = runs[-1] if runs else []
        step = place - last[-1] if last else 0
        fits = len(last) == 1 or (last and step == last[1] - last[0])
        if fits and step in (-1, 0, 1):
            last.append(place)
        else:
            runs.append([place])
    return runs


def _run(operand, run, axis):
    """Return the elements of `operand` whose places along `axis` are a run."""
    low, high = sorted((run[0], run[-1]))
    piece = lax.slice_in_dim(operand, low, high + 1, axis=axis)
    if run[0] > run[-1]:
        return lax.rev(piece, (axis,))
    return piece if run[0] < run[-1] else _copies(piece, len(run), axis)


def _copies(piece, count, axis):
    """Return so many copies of a piece of size 1 along an axis."""
    return broadcast_to_shape(
        piece, (*piece.shape[:axis], count, *piece.shape[axis + 1 :])
    )


def _pad_by_pieces(operand, widths, mode, option):
    """Put pieces in front of each axis and behind it, which a function makes."""
    if mode in _OF_THE_EDGE:
        full = [(size, size) for size in operand.shape]
        given = full if option is None else option
        options = _pad_widths(given, operand.ndim, "stat_length")
        if option is not None and 0 in np.ravel(options):
            raise ValueError("stat_length of 0 yields no value for padding")
    elif mode == "linear_ramp":
        ends = from_object(0 if option is None else option, None)
        ends = broadcast_to_shape(ends, (operand.ndim, 2))
        options = [(ends[axis, 0], ends[axis, 1]) for axis in range(operand.ndim)]
    else:
        options = [(option, option)] * operand.ndim
    piece_of = {"linear_ramp": _ramp, "empty": _no_values}.get(mode, _statistic)
    piece_of = _reflected if _PAD_OPTIONS[mode] == "reflect_type" else piece_of
    for axis, pair in enumerate(widths):
        if not any(pair):
            continue
        if mode != "empty" and not operand.shape[axis]:
            raise ValueError(f"cannot apply {mode!r} padding to the empty axis {axis}")
        first, last = [
            piece_of(operand, axis, count, side, options[axis][side], mode)
            for side, count in enumerate(pair)
        ]
        operand = lax.concatenate([first, operand, last], axis)
    return operand


def _no_values(operand, axis, count, side, option, mode):
    shape = (*operand.shape[:axis], count, *operand.shape[axis + 1 :])
    return lax.full_like(operand, 0, shape=shape)


def _edge(operand, axis, count, side):
    """Return so many elements from the beginning of an axis (side 0) or its end."""
    size = operand.shape[axis]
    first = size - min(count, size) if side else 0
    return lax.slice_in_dim(operand, first, first + min(count, size), axis=axis)


def _statistic(operand, axis, count, side, length, mode):
    """Return copies of a statistic of the elements at an edge.

    Functions of later floors are looked up when they are needed: a median is sorted.
    """
    names = {"maximum": "max", "minimum": "min"}
    statistic = getattr(import_module("minijax.numpy"), names.get(mode, mode))
    found = statistic(_edge(operand, axis, length, side), axis, keepdims=True)
    if array_kind(operand) in "iu" and array_kind(found) == "f":
        found = lax.round(found, lax.RoundingMethod.TO_NEAREST_EVEN)
    found = as_type(found, operand.dtype, operand.weak_type)
    return _copies(found, count, axis)


def _ramp(operand, axis, count, side, end, mode):
    """Return numbers that lead from the end value to the edge, without the edge."""
    edge = lax.squeeze(_edge(operand, axis, 1, side), (axis,))
    ramp = linspace(end, edge, count, endpoint=False, dtype=operand.dtype, axis=axis)
    ramp = as_type(ramp, operand.dtype, operand.weak_type)
    return lax.rev(ramp, (axis,)) if side else ramp


def _reflected(operand, axis, count, side, how, mode):
    """Return what an odd reflection puts at an edge, by as many turns as it takes."""
    if how != "odd":
        raise ValueError(f"reflect_type is 'even' or 'odd', got {how!r}.")
    size, whole = operand.shape[axis], operand
    skip = int(mode == "reflect" and size > 1)
    edge, left = _edge(operand, axis, 1, side), count
    while left:
        step = min(left, size - skip)
        near = _edge(whole, axis, step + skip, side)
        far = lax.rev(_edge(near, axis, step, 1 - side), (axis,))
        piece = 2 * edge - far
        whole = lax.concatenate([whole, piece][:: 1 if side else -1], axis)
        edge = _edge(piece, axis, 1, side) if size > 1 else edge
        left -= step
    return _edge(whole, axis, count, side)


def _pad_by_function(operand, widths, function, options):
    """Put zeros around an array, and let a function fill them, row by row."""
    along = import_module("minijax.numpy").apply_along_axis
    padded = _pad_constant(operand, widths, 0)
    for axis, width in enumerate(widths):
        padded = along(function, axis, padded, tuple(width), axis, options)
    return padded
