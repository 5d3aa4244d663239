# Made from chapters/02b_numpy.md by `make chapter`;
# edit the chapter, not this file.
"""Elements around an array.

Reference: ``jax.numpy.pad``.
"""

import numpy as np

from minijax import lax
from minijax.lax.conversion import astype as as_type
from minijax.numpy.creation import from_object
from minijax.numpy.shapes import arraylike, stretch


def pad(array, pad_width, mode="constant", *, constant_values=0):
    """Put elements around an array.

    Args:
      array: array of n axes.
      pad_width: how many: one number, one pair ``(before, after)``, or n such pairs.
      mode: what to put there: ``"constant"`` values, copies of the ``"edge"``, or
        elements in the order in which they ``"reflect"`` (without the edge),
        ``"symmetric"`` (with it) or ``"wrap"`` around.
      constant_values: in mode constant, the values, of the same form as `pad_width`.

    Reference: ``jax.numpy.pad``.
    """
    operand = arraylike("pad", array)
    widths = _pad_widths(pad_width, operand.ndim)
    if mode in ("edge", "reflect", "symmetric", "wrap"):
        return _pad_by_indices(operand, widths, mode)
    if mode != "constant":
        raise NotImplementedError(
            "pad knows the modes 'constant', 'edge', 'reflect', 'symmetric' and "
            f"'wrap', not {mode!r}."
        )
    values = from_object(constant_values, None)
    values = as_type(values, operand.dtype, operand.weak_type)
    if not values.ndim:
        return lax.pad(operand, values, [(low, high, 0) for low, high in widths])
    return _pad_sides(operand, widths, stretch(values, (operand.ndim, 2)))


def _pad_widths(pad_width, ndim):
    given = np.asarray(pad_width)
    try:
        widths = np.broadcast_to(given, (ndim, 2)).tolist()
    except ValueError:
        raise ValueError(
            f"pad_width of shape {given.shape} does not fit an array with {ndim} axes: "
            f"valid shapes are ({ndim}, 2), (1, 2), (2,), (1,) and ()."
        ) from None
    if (given < 0).any():
        raise ValueError(f"pad_width can't contain negative values, got {pad_width}")
    return widths


def _pad_sides(operand, widths, values):
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
    shape = list(operand.shape)
    shape[axis] = len(run)
    return piece if run[0] < run[-1] else stretch(piece, shape)
