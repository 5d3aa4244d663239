# Made from chapters/20_fusion.md by `make chapter`;
# edit the chapter, not this file.
"""Groups of kernels that are to become one, and what is handed over between two."""

import math
from typing import NamedTuple

from minijax.fusion.index_maps import indices, seen_along, unit
from minijax.fusion.merging import same_bits
from minijax.fusion.parts import elements
from minijax.kernels.kernel import Affine, Guard


class Group:
    """Launches that are to become one.

    Attributes:
      sizes: of the loops around all of them, from the outermost inwards.
      parts: by their numbers.
      homes: from the numbers of parts to the indices at which they are computed: an
        `Affine` along the axes of the group for each axis of the part.
      made: from slots to pairs of a part and its store.
      reads: from slots to pairs of a part and its load.
      folded: from slots to the axes that were folded on the way to them.
      flops: from slots to what an element costs, beginning with what the group loads.
      counts: from slots to how many elements are made.
      orders: pairs of axes of which the first has to be outside of the second.
      solid: axes that must not be split.
      ops: the number of scalar operations.
      order: the place among the groups.
      needs, users: the groups that have to come before and behind.
    """

    def __init__(self, part, order):
        self.sizes, self.order = part.sizes, order
        self.parts = {part.number: part}
        self.homes = {part.number: unit(len(part.sizes))}
        self.made, self.reads = {}, {}
        self.folded, self.flops, self.counts = {}, {}, {}
        for slot, node in part.loads:
            self.reads.setdefault(slot, []).append((part, node))
        work, total = part.work, part.work.flops * math.prod(part.sizes)
        for slot, store, count in zip(part.writes, work.stores, work.counts):
            self.made.setdefault(slot, []).append((part, store))
            self.folded[slot] = frozenset(work.folded)
            self.counts[slot], self.flops[slot] = count, total / count
        self.orders, self.solid = work.orders, frozenset(work.solid)
        self.ops, self.needs, self.users = work.ops, set(), set()

    def along(self, part, place):
        """Return a place of a part along the axes of the group."""
        return seen_along(place, self.homes[part.number], len(self.sizes))

    def rewrite(self, maps, sizes):
        """Take other axes: `maps` says what each old one is along the new ones."""
        rank, self.sizes = len(sizes), tuple(sizes)
        for number, home in self.homes.items():
            self.homes[number] = tuple(seen_along(at, maps, rank) for at in home)
        self.folded = {slot: moved(axes, maps) for slot, axes in self.folded.items()}
        self.solid = moved(self.solid, maps)
        self.orders = moved_orders(self.orders, maps)


def dependents(group, slot):
    """Return the slots that a group makes of another one, and the axes along which
    the parts go that do it."""
    if len(group.parts) == 1:
        return group.made.keys(), range(len(group.sizes))
    slots, axes = {slot}, set()
    for number in sorted(group.parts):
        part = group.parts[number]
        if not slots.isdisjoint(part.reads):
            slots.update(part.writes)
            axes.update(axis for at in group.homes[number] for axis in at.axes)
    return slots - {slot}, axes


def moved(axes, maps):
    """Return the new axes that stand for old ones."""
    return frozenset(new for axis in axes for new in maps[axis].axes)


def moved_orders(orders, maps):
    """Return pairs of new axes for pairs of old ones."""
    return {(a, b) for x, y in orders for a in maps[x].axes for b in maps[y].axes}


def split(group, axis, inner):
    """Make two axes of one of a group's; return whether that can be done."""
    if axis in group.solid:
        return False
    sizes = [*group.sizes]
    sizes[axis : axis + 1] = [sizes[axis] // inner, inner]
    maps = [*unit(len(sizes))]
    outer, last = maps.pop(axis), maps[axis]
    both = [inner * a + b for a, b in zip(outer.strides, last.strides)]
    maps[axis] = Affine(0, tuple(both))
    group.rewrite(maps, sizes)
    return True


class Link(NamedTuple):
    """What one group makes and another one reads.

    Attributes:
      slot: where it is handed over.
      made: its place along the axes of the first group.
      read: its place along those of the second.
      guards: of the load.
      maker, store: the part that makes it, and its store.
    """

    slot: object
    made: Affine
    read: Affine
    guards: tuple
    maker: object
    store: object


def links_between(first, second):
    """Return the links from the first to the second group; None if one is broken."""
    found = []
    for slot, loads in second.reads.items():
        for reader, node in loads if slot in first.made else ():
            found.append(_link(first, second, slot, reader, node))
    return None if None in found else found


def _link(first, second, slot, reader, node):
    buffer, place, guards, *_ = node.detail
    place = second.along(reader, place)
    for maker, store in first.made[slot]:
        made = first.along(maker, store.place)
        if _meet(made, place) and same_bits(store.buffer.dtype, buffer.dtype):
            guards = [Guard(second.along(reader, at), limit) for at, limit in guards]
            return Link(slot, made, place, tuple(guards), maker, store)
    return None


def _meet(made, place):
    """Return whether two places can be one: real parts never are imaginary ones."""
    gap = abs(place.offset - made.offset)
    return not gap or not gap % (math.gcd(*place.strides, *made.strides) or gap + 1)


def matched(first, second, links_of):
    """Return the links between two groups, and their axes as the links tell.

    Returns:
      A pair of the links and, for each axis of the second group, of what it is along
      those of the first, or None if no link tells. Axes of the first group are split
      where that is needed. Or None, if there are no links.
    """
    while True:
        links = links_of(first, second)
        if not links:
            return None
        maps, cut = _matched(first, second, links)
        if not cut:
            return None if maps is None else (links, maps)
        if not split(first, *cut):
            return None


def _matched(first, second, links):
    maps, met = [None] * len(second.sizes), False
    for link in links:
        found, cut = _same_element(first.sizes, second.sizes, link)
        if cut:
            return None, cut
        if found is not None and _agree(maps, found):
            maps, met = [a or b for a, b in zip(maps, found)], True
    whole = all(_is_axis(maps[axis]) for axis in second.solid)
    return (maps if met and whole else None), None


def _is_axis(at):
    """Return whether an index, if it is known, is just that along another axis."""
    return at is None or at in unit(len(at.strides))


def _same_element(sizes, limits, link):
    """Return the reader's indices along the maker's axes, or where to split these."""
    count = elements(sizes, link.made.axes)
    if link.guards or count != elements(limits, link.read.axes):
        return None, None
    return indices(link.made, sizes, link.read, limits)


def _agree(maps, found):
    """Return whether two lists of indices can be one, and no axis serves twice."""
    if any(a and b and a != b for a, b in zip(maps, found)):
        return False
    axes = [axis for a, b in zip(maps, found) if a or b for axis in (a or b).axes]
    return len(axes) == len(set(axes))


def shared_reads(first, second):
    """Return links for what two groups read that do not need each other."""
    if first.made.keys() & second.reads.keys():
        return []
    found = []
    for slot, loads in second.reads.items():
        for reader, node in loads[:1] if slot in first.reads else ():
            other, seen = first.reads[slot][0]
            made = first.along(other, seen.detail.place)
            read = second.along(reader, node.detail.place)
            guarded = seen.detail.guards or node.detail.guards
            if not guarded and _full(first, made) and _full(second, read):
                found.append(Link(slot, made, read, (), None, None))
    return found


def _full(group, place):
    """Return whether a place moves along all axes of a group."""
    return len(place.axes) == len(group.sizes)
