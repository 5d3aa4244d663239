"""Sliding windows: sizes, strides, padding and dilations; how many windows there are.

Reference: ``jax.lax.padtype_to_pads``, ``jax.lax.reduce_window_shape_tuple``.
"""

# Made from chapters/30_windows_ground.md by `make chapter`;
# edit the chapter, not this file.

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

from minijax.arrays.checks import integers


def dilated(size, dilation):
    """Return how long an axis is when gaps are put between its elements."""
    return (size - 1) * dilation + 1 if size else 0


class Sliding(NamedTuple):
    """How windows slide over an array: tuples with an entry for each axis.

    Attributes:
      sizes: of a window.
      strides: by how much a window moves.
      padding: pairs: how many elements are put in front of the axis, and behind it;
        negative numbers take elements away.
      base_dilation, window_dilation: distances of neighbours in the array, and in a
        window, in elements.
    """

    sizes: tuple
    strides: tuple
    padding: tuple
    base_dilation: tuple
    window_dilation: tuple

    def room(self, shape):
        """Return the sizes of an array with its gaps and its padding."""
        pairs = zip(shape, self.base_dilation, self.padding)
        return tuple(max(dilated(n, gap) + sum(pads), 0) for n, gap, pads in pairs)

    def counts(self, shape):
        """Return how many windows there are along each axis."""
        widths = map(dilated, self.sizes, self.window_dilation)
        triples = zip(self.room(shape), widths, self.strides)
        return tuple(max((n - width) // step + 1, 0) for n, width, step in triples)

    def behind(self, count):
        """Return how windows slide that do not extend along so many axes in front."""
        ones = (1,) * count
        fronts = ones, ones, ((0, 0),) * count, ones, ones
        return Sliding(*[(*front, *part) for front, part in zip(fronts, self)])


def integers_or(numbers, default):
    """Return a parameter as Python ints, or `default` where it is None."""
    return default if numbers is None else integers(numbers)


def full_sliding(
    sizes, strides=None, padding=None, base_dilation=None, window_dilation=None
):
    """Return a `Sliding` in which what is not given changes nothing."""
    ones = (1,) * len(sizes)
    pads = [(0, 0)] * len(sizes) if padding is None else padding
    pairs = tuple(map(integers, pads))
    rest = [integers_or(x, ones) for x in (strides, base_dilation, window_dilation)]
    return Sliding(integers(sizes), rest[0], pairs, *rest[1:])


def spread(xp, x, sliding, fill=0):
    """Return an array with its gaps and its padding, which hold one number."""
    result = xp.full(sliding.room(x.shape), fill, x.dtype)
    taken, places = [], []
    axes = zip(x.shape, sliding.base_dilation, sliding.padding, result.shape)
    for size, gap, (low, _), room in axes:
        first, end = max(0, -(low // gap)), min(size, -((low - room) // gap))
        count, start = max(0, end - first), max(0, low + first * gap)
        taken.append(slice(first, first + count))
        places.append(slice(start, start + max(0, count * gap - gap + 1), gap))
    result[tuple(places)] = x[tuple(taken)]
    return result


def padtype_to_pads(
    in_shape: Sequence[int],
    window_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str,
) -> list[tuple[int, int]]:
    """Return how much is padded on both sides of each axis, for a padding by name.

    Args:
      in_shape, window_shape, window_strides: an entry for each axis; gaps count.
      padding: ``"VALID"``, ``"SAME"`` or ``"SAME_LOWER"``.

    Raises:
      RuntimeError: if there is no padding of that name.
      TypeError: if it is no name.

    Reference: ``jax.lax.padtype_to_pads``.
    """
    if not isinstance(padding, str):
        raise TypeError(f"Unknown padding type: {padding}.")
    if padding.upper() not in ("VALID", "SAME", "SAME_LOWER"):
        raise RuntimeError(
            "Unrecognized padding type: expected 'VALID', 'SAME' or 'SAME_LOWER', got "
            f"{padding!r}. A sequence of (low, high) pairs says it in numbers."
        )
    if padding.upper() == "VALID":
        return [(0, 0)] * len(in_shape)
    axes = zip(*map(integers, (in_shape, window_shape, window_strides)))
    totals = [max((-(-n // by) - 1) * by + width - n, 0) for n, width, by in axes]
    halves = [(total // 2, total - total // 2) for total in totals]
    return halves if padding.upper() == "SAME" else [(b, a) for a, b in halves]


def reduce_window_shape_tuple(
    operand_shape: Sequence[int],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> tuple[int, ...]:
    """Return how many windows there are along each axis.

    Reference: ``jax.lax.reduce_window_shape_tuple``.
    """
    how = window_strides, padding, base_dilation, window_dilation
    return full_sliding(window_dimensions, *how).counts(integers(operand_shape))


def lengths(sliding, shape):
    """Return, axis by axis: the array, the window and the result, with their gaps."""
    lhs = map(dilated, shape, sliding.base_dilation)
    rhs = map(dilated, sliding.sizes, sliding.window_dilation)
    out = map(dilated, sliding.counts(shape), sliding.strides)
    return zip(lhs, rhs, out, sliding.padding)


class Phase(NamedTuple):
    """Some windows of an axis, and those of their elements that are no gaps.

    Window ``first + step * i`` reads, for its element ``tap + tap_step * j``, the
    element ``place + move * i + tap_move * j`` of the array, if there is one.
    """

    first: int
    step: int
    count: int
    tap: int
    tap_step: int
    taps: int
    place: int
    move: int
    tap_move: int

    def reach(self):
        """Return the least and the greatest place that is read."""
        ends = self.place + self.move * (self.count - 1)
        return self.place, ends + self.tap_move * (self.taps - 1)


def phases_along(sliding, axis, size):
    """Return the phases of an axis of an array of so many elements."""
    window, stride, (low, high), base, gap = [part[axis] for part in sliding]
    [count] = Sliding(*[(part[axis],) for part in sliding]).counts((size,))
    step, tap_step = base // math.gcd(stride, base), base // math.gcd(gap, base)
    phases = []
    for first in range(min(step, count)):
        start = first * stride - low
        taps = [
            t for t in range(min(tap_step, window)) if (start + t * gap) % base == 0
        ]
        tap = taps[0] if taps else window
        moves = stride * step // base, gap * tap_step // base
        here = (
            -(-(count - first) // step),
            tap,
            tap_step,
            -(-(window - tap) // tap_step),
        )
        phases.append(Phase(first, step, *here, (start + tap * gap) // base, *moves))
    return phases


def phases_of(sliding, shape):
    """Return tuples of phases, one for each axis, that together are all windows."""
    axes = [phases_along(sliding, axis, size) for axis, size in enumerate(shape)]
    return [*itertools.product(*axes)]
