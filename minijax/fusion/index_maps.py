"""Where an element was made: the indices of one loop nest as numbers of another."""

# Made from chapters/19_fusion_ground.md by `make chapter`;
# edit the chapter, not this file.

import functools
import math

from minijax.kernels.parts import Affine


@functools.cache
def unit(rank):
    """Return the index along each of so many axes, as a tuple of `Affine`."""
    return tuple(
        Affine(0, tuple(int(k == axis) for k in range(rank))) for axis in range(rank)
    )


@functools.lru_cache(2**12)
def seen_along(place, maps, rank):
    """Return a place along other axes.

    Args:
      place: an `Affine`.
      maps: for each of its axes, the `Affine` along the other ones.
      rank: how many of these there are.
    """
    if maps == unit(rank) and len(place.strides) == rank:
        return place
    offset, strides = place.offset, [0] * rank
    for stride, at in zip(place.strides, maps):
        if stride:
            offset += stride * at.offset
            for axis, step in enumerate(at.strides):
                strides[axis] += stride * step
    return Affine(offset, tuple(strides))


def elements(sizes, axes):
    """Return how many indices there are along some axes."""
    return math.prod([sizes[axis] for axis in axes])


def _wheels(stored, limits):
    """Return pairs of a value of a place and its axis, the highest first."""
    moving = [axis for axis in stored.axes if limits[axis] > 1]
    return sorted([(abs(stored.strides[axis]), axis) for axis in moving], reverse=True)


def _digits(number, wheels):
    found = []
    for value, _ in wheels:
        digit, number = divmod(number, value)
        found.append(digit)
    return None if number else found


def digits(place, sizes, stored, limits):
    """Return the indices at which `stored` is the number that `place` is.

    They are the digits of the number if the strides of `stored` are taken for the
    values of the places. Those of the first element and of its neighbours along each
    axis tell how the digits change along the axes.

    Args:
      place: an `Affine` along axes of `sizes`.
      stored: an `Affine` along axes of `limits`, no number twice.

    Returns:
      An `Affine` along the axes of `place` for each axis of `stored`, None for axes
      along which it does not move; or None if there are no such indices.
    """
    wheels, least = _wheels(stored, limits), stored.bounds(limits)[0]
    first = _digits(place.offset - least, wheels)
    steps = [(0,) * len(wheels)] * len(sizes)
    for axis in place.axes:
        following = _digits(place.offset - least + place.strides[axis], wheels)
        if first is None or following is None:
            return None
        steps[axis] = [b - a for a, b in zip(first, following)]
    return None if first is None else _along(first, steps, wheels, stored, limits)


def _along(first, steps, wheels, stored, limits):
    found = [None] * len(limits)
    for number, (_, axis) in enumerate(wheels):
        at = Affine(first[number], tuple(step[number] for step in steps))
        if stored.strides[axis] < 0:  # it is walked backwards
            at = Affine(limits[axis] - 1 - at.offset, tuple(-n for n in at.strides))
        found[axis] = at
    return found


def overflow(found, sizes, limits):
    """Return whether digits leave their limits, and what can be done about it.

    Returns:
      None if they stay inside; else a pair of an axis and the size of the inner one of
      the two axes into which it should be split, or False if that is no help.
    """
    for at, limit in zip(found, limits):
        if at is not None:
            least, most = at.bounds(sizes)
            if least < 0 or most >= limit:
                return _cut(at, sizes, limit)
    return None


def _cut(at, sizes, limit):
    for axis in at.axes:
        inner, rest = divmod(limit, abs(at.strides[axis]))
        if not rest and 1 < inner < sizes[axis] and not sizes[axis] % inner:
            return axis, inner
    return False


@functools.lru_cache(2**12)
def indices(place, sizes, stored, limits):
    """Return the `digits` if they stay inside of their limits.

    Returns:
      A pair: what `digits` returns, or None; and what `overflow` says.
    """
    if place == stored and sizes == limits:
        units = unit(len(sizes))
        if all(place.strides):
            return units, None
        return [at if n else None for at, n in zip(units, place.strides)], None
    found = digits(place, sizes, stored, limits)
    cut = None if found is None else overflow(found, sizes, limits)
    return (found if cut is None else None), cut


def found_at(place, guards, sizes, stored, limits):
    """Return the indices at which `stored` is where a guarded load reads, or None."""
    rank = len(sizes)
    if guards:
        place, sizes = _unguarded(place, guards, sizes)
    found, _ = indices(place, sizes, stored, limits)
    if found and guards:
        axes = (*unit(rank), *[guard.place for guard in guards])
        found = [at and seen_along(at, axes, rank) for at in found]
    return found


def _unguarded(place, guards, sizes):
    """Return a place along axes behind which there is one for each guard's number."""
    factors = []
    for (offset, strides), _ in guards:
        ratios = [a // b for a, b in zip(place.strides, strides) if b]
        factor = min(ratios, key=abs, default=0)
        left = [a - factor * b for a, b in zip(place.strides, strides)]
        place = Affine(place.offset - factor * offset, tuple(left))
        factors.append(factor)
    limits = [guard.limit for guard in guards]
    return Affine(place.offset, (*place.strides, *factors)), (*sizes, *limits)


def split_axis(axis, inner, sizes):
    """Return the index along each of some axes, along those with two for one, and the
    sizes of these."""
    sizes = (*sizes[:axis], sizes[axis] // inner, inner, *sizes[axis + 1 :])
    maps = [*unit(len(sizes))]
    outer, last = maps.pop(axis), maps[axis]
    both = [inner * a + b for a, b in zip(outer.strides, last.strides)]
    maps[axis] = Affine(0, tuple(both))
    return tuple(maps), sizes
