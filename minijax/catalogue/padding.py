"""Padding: elements around an array.

Reference: ``jax.numpy.pad``.
"""

# Made from chapters/03_numpy_rest.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from minijax import lax
from minijax.arrays.checks import as_integer
from minijax.catalogue.ranges import linspace
from minijax.core import Array, Tracer
from minijax.lax.conversion import astype as as_type
from minijax.numpy.creation import from_object
from minijax.numpy.shapes import arraylike
from minijax.operators.entries import known_value
from minijax.operators.operands import kind, stretch
from minijax.typing import ArrayLike

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
      mode: what to put there: ``"constant"`` values, copies of the ``"edge"``, or
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
    operand = arraylike("pad", array)
    widths = _pad_widths(pad_width, operand.ndim)
    if callable(mode):
        return _pad_by_function(operand, widths, mode, kwargs)
    if mode not in _PAD_OPTIONS:
        raise NotImplementedError(f"pad has no mode {mode!r}, only {[*_PAD_OPTIONS]}.")
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
    if isinstance(given, (tuple, list)):
        return [*map(_known_widths, given)]
    unknown = isinstance(given, Tracer) and known_value(given) is None
    return as_integer(given, "pad_width") if unknown else given


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
    values = stretch(values, (operand.ndim, 2))
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
    return stretch(piece, (*piece.shape[:axis], count, *piece.shape[axis + 1 :]))


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
        ends = stretch(ends, (operand.ndim, 2))
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
    if kind(operand) in "iu" and kind(found) == "f":
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
