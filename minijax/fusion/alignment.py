# Made from chapters/19_fusion_rest.md by `make chapter`;
# edit the chapter, not this file.
"""Loop alignment: the loops that two launches have in common, and what they share."""

import functools
import math
from typing import NamedTuple

from minijax.fusion.index_maps import found_at, indices, split_axis
from minijax.fusion.merging import same_bits
from minijax.fusion.parts import Candidate, elements, seen_along, unit
from minijax.kernels.parts import Affine


class Link(NamedTuple):
    """An element that two parts have to do with.

    Attributes:
      buffer: in which it is.
      made: the `Store` of the first part, or its `Load` if both read it.
      read: the `Load` of the second part.
    """

    buffer: object
    made: object
    read: object

    @property
    def is_plain(self):
        """Whether the element is read where it was made."""
        return self.made.place == self.read.place and not self.read.guards


def links_between(first, second):
    """Return the links from the first to the second part; None if one is broken."""
    found = []
    for buffer, read in second.loads:
        if buffer in first.made:
            made = [x for x in first.made[buffer] if _match(x, read)]
            if not made:
                return None
            found.append(Link(buffer, made[0], read))
    return found


def _match(store, read):
    """Return whether what is stored can be what is read."""
    meet = store.place == read.place or _meet(store.place, read.place)
    return meet and same_bits(store.parameter.dtype, read.parameter.dtype)


def _meet(made, place):
    """Return whether two places can be one: real parts never are imaginary ones."""
    gap = abs(place.offset - made.offset)
    return not gap or not gap % (math.gcd(*place.strides, *made.strides) or gap + 1)


def shared_reads(first, second):
    """Return links for what two parts read that do not need each other."""
    known, others = dict(reversed(first.loads)), dict(reversed(second.loads))
    if not others.keys().isdisjoint(first.made):
        return []
    found = []
    for buffer, read in others.items():
        made = known.get(buffer)
        if made and not made.guards + read.guards:
            full = all(made.place.strides) and all(read.place.strides)
            found += [Link(buffer, made, read)] if full else []
    return found


def aligned(first, second, links):
    """Return the loops of the first of two parts, split where that is needed.

    Returns:
      Their sizes, and the indices of both parts along them. Those of the second are
      None along axes of which no link tells. If there are no such loops: None.
    """
    sizes, home = first.sizes, unit(len(first.sizes))
    while True:
        maps, cut = _maps(first, second, links, sizes, home)
        if not cut:
            return None if maps is None else (sizes, home, maps)
        if any(cut[0] in home[axis].axes for axis in first.solid):
            return None
        split, sizes = split_axis(cut[0], cut[1], sizes)
        home = tuple([seen_along(at, split, len(sizes)) for at in home])


def _maps(first, second, links, sizes, home):
    maps, met = [None] * len(second.sizes), False
    for link in links:
        made, read = seen_along(link.made.place, home, len(sizes)), link.read
        count = elements(sizes, made.axes)
        if read.guards or count != elements(second.sizes, read.place.axes):
            continue
        found, cut = indices(made, sizes, read.place, second.sizes)
        if cut:
            return None, cut
        if found is not None and _agree(maps, found):
            maps, met = [a or b for a, b in zip(maps, found)], True
    units = unit(len(sizes))
    whole = all(maps[axis] is None or maps[axis] in units for axis in second.solid)
    return (maps if met and whole else None), None


def _agree(maps, found):
    """Return whether two lists of indices can be one, and no axis serves twice."""
    if any(a and b and a != b for a, b in zip(maps, found)):
        return False
    axes = [axis for a, b in zip(maps, found) if a or b for axis in (a or b).axes]
    return len(axes) == len(set(axes))


def in_same_loops(first, second, links):
    """Return two parts in loops that both can have, in an order that all folds allow.

    Args:
      first, second: the parts.
      links: between them, if the first makes what the second reads.

    Returns:
      A `Candidate`; or None.
    """
    shared = links or shared_reads(first, second)
    same = [x.is_plain and all(x.made.place.strides) for x in shared]
    if same and all(same) and first.sizes == second.sizes:
        both, places = Candidate(first, second, links), range(len(first.sizes))
    elif found := aligned(first, second, shared):
        homes, sizes, places = with_new_axes(second.sizes, *found)
        both = moved((first, second), links, homes, sizes)
    else:
        return None
    order = sorted_axes(places, both.orders)
    if order is None or order == [*range(len(order))]:
        return None if order is None else both
    units, sizes = unit(len(order)), tuple([both.first.sizes[axis] for axis in order])
    new = tuple([units[order.index(axis)] for axis in range(len(order))])
    return moved((both.first, both.second), links, (new, new), sizes)


def moved(pair, links, homes, sizes):
    """Return the `Candidate` of two parts in other loops, from their indices there."""
    first, second = [part.along(home, sizes) for part, home in zip(pair, homes)]
    return Candidate(first, second, links and links_between(first, second))


def with_new_axes(limits, sizes, home, maps):
    """Return loops with new ones for axes of which no link tells.

    Args:
      limits: the sizes of the second part's own axes.
      sizes, home, maps: as `aligned` returns them.

    Returns:
      What the axes of both parts are along them, their sizes, and numbers that grow
      from the outermost inwards.
    """
    if None not in maps:
        return (home, tuple(maps)), sizes, range(len(sizes))
    rank, sizes, ends = len(sizes), [*sizes], {}
    places, used = [*range(rank)], {axis for at in maps if at for axis in at.axes}
    for axis in reversed([axis for axis, at in enumerate(maps) if at is None]):
        size = limits[axis]
        free = [a for a in range(rank) if sizes[a] == size and a not in used]
        ends[axis] = free[-1] if free else len(sizes)
        used.add(ends[axis])
        if not free:  # it stands in front of the axes that follow it
            later = [min(at.axes) for at in maps[axis:] if at and at.axes]
            places.append(min(later, default=rank) - 1 / (2 + len(sizes)))
            sizes.append(size)
    units, more = unit(len(sizes)), (0,) * (len(sizes) - rank)
    home = tuple([Affine(offset, (*strides, *more)) for offset, strides in home])
    maps = [
        units[ends[axis]] if at is None else Affine(at.offset, (*at.strides, *more))
        for axis, at in enumerate(maps)
    ]
    return (home, tuple(maps)), tuple(sizes), places


def sorted_axes(places, orders):
    """Return the axes so that all orders hold, or None; else the places decide."""
    left, found = sorted(range(len(places)), key=places.__getitem__), []
    if not orders:
        return left
    while left:
        free = [b for b in left if not any((a, b) in orders for a in left)]
        if not free:
            return None
        found.append(free[0])
        left.remove(free[0])
    return found


def is_better(both, target):
    """Return whether two parts in the same loops are better than two kernels.

    Args:
      both: a `Candidate`.
      target: the prices.
    """
    return (
        is_near(both, target)
        and all(is_worth_it(both, link, target) for link in both.links)
        and is_straight(both, target)
    )


def is_near(both, target):
    """Return whether what is walked again after it was folded is near, and cheap."""
    first, again = both.first, set()
    for buffer, (_, after) in both.folds.items():
        folded = first.folding[buffer]
        if after:
            counts = [elements(first.sizes, axes) for axes in (folded, after)]
            if max(counts) > target.near:
                return False
            again |= folded.intersection(after)
    read = {buffer for buffer, _ in both.second.loads} if again else ()
    for buffer in first.made if again else ():
        moves = again.intersection(first.made[buffer][0].place.axes)
        if moves and buffer in read and first.cost(buffer, target) > target.again:
            return False
    return True


def is_worth_it(both, link, target):
    """Return whether to compute elements more often than once costs less than to store
    them, to load them, and to start a kernel for that."""
    made, read = link.made.place, link.read.place
    if link.is_plain and all(made.strides):
        return True
    first, loops, sizes = both.first, both.second.loops, both.first.sizes
    if not link.is_plain and link.buffer in first.folding:
        return False
    if not link.is_plain and not found_at(read, link.read.guards, sizes, made, sizes):
        return False
    count = elements(sizes, made.axes)
    around = [axis for axis in range(max(read.axes, default=-1) + 1) if axis in loops]
    often = elements(sizes, around) - count
    more = often if link.is_plain else elements(sizes, read.axes)
    stored = 2 * target.byte * link.made.parameter.dtype.itemsize * count
    return more * first.cost(link.buffer, target) <= stored + target.launch


VECTOR = 16  # numbers that are worth loads of neighbours


def grains(places, sizes, small):
    """Return the axes along which the elements of matrices are neighbours."""
    few = math.prod(sizes) <= small
    return set() if few else {grain(at, sizes, small) for at in places} - {None}


def few_numbers(reads, target):
    """Return how few numbers have no direction, if there are so many reads of them."""
    return target.small if reads <= target.near else 4 * VECTOR


def is_turned(both, places, target):
    """Return whether two parts read, over and over, in more directions than either."""
    sizes = both.first.sizes
    few = few_numbers(math.prod(sizes), target)
    parts = [[x.place for _, x in part.loads] for part in (both.first, both.second)]
    found, *alone = (len(grains(each, sizes, few)) for each in (places, *parts))
    return found > max(1, *alone)


@functools.lru_cache(2**12)
def grain(place, sizes, small):
    """Return the axis along which the elements of a large matrix are neighbours."""
    steps = {axis: abs(place.strides[axis]) for axis in place.axes}
    matrix = len(steps) > 1 and elements(sizes, steps) > small
    return min(steps, key=steps.__getitem__) if matrix else None


def is_straight(both, target):
    """Return whether all matrices that folds go through lie in the same direction."""
    first, second, sizes = both.first, both.second, both.first.sizes
    if not both.orders or math.prod(sizes) <= target.small:
        return True
    loads = [*first.loads, *[x for x in second.loads if x[0] not in first.made]]
    places = [load.place for _, load in loads]
    if is_turned(both, places, target):
        return False
    found = grains(places, sizes, target.small)
    return len(found) <= 1 or any(
        sizes[axis] >= VECTOR and all(abs(at.strides[axis]) < 2 for at in places)
        for axis in found
    )


def out_of_rows(part, moved, target):
    """Return the large buffers that were stored in order, and are not any more.

    Args:
      part, moved: a part in its own loops, and in others.
      target: the `Target`.
    """
    if part is moved or math.prod(moved.sizes) <= target.near:
        return []
    pairs = [(b, a.place, x.place) for (b, a), (_, x) in zip(part.stores, moved.stores)]
    turned = [
        (buffer, elements(moved.sizes, new.axes))
        for buffer, old, new in pairs
        if not _in_rows(new) and len(old.axes) > 1 and _in_rows(old)
    ]
    return [buffer for buffer, count in turned if count > target.near]


def _in_rows(place):
    steps = [abs(place.strides[axis]) for axis in place.axes]
    return not steps or steps[-1] == min(steps)
