# Made from chapters/20_fusion.md by `make chapter`;
# edit the chapter, not this file.
"""Whether two groups should be one, and which loops they then have."""

import math
from typing import NamedTuple

from minijax.fusion.groups import dependents, moved, moved_orders
from minijax.fusion.index_maps import found_at, seen_along, unit
from minijax.fusion.parts import AGAIN, BYTE, LAUNCH, NEAR, SMALL, elements, grains
from minijax.kernels.kernel import Affine, Guard


class Plan(NamedTuple):
    """How two groups get axes in common.

    Attributes:
      sizes: of the axes.
      maps: what the axes of the first and of the second group are along them.
      orders: pairs of axes of which the first has to be outside of the second.
      links: what is handed over.
    """

    sizes: tuple
    maps: tuple
    orders: set
    links: list


class Draft:
    """Two groups with axes in common, those of the first one in front.

    Args:
      first, second: groups.
      links: what is handed over.
      maps: what `matched` has found.

    Attributes:
      sizes: of the axes.
      places: for each axis, a number that grows from the outermost inwards.
      maps: what the axes of the second group are along these.
      loops: the axes along which the second group goes.
      behind: for each link of something folded, those of them along which it goes on
        with it, and which were not there when it was folded.
      orders: pairs of axes of which the first has to be outside of the second.
    """

    def __init__(self, first, second, links, maps):
        self.first, self.second, self.links = first, second, links
        self.sizes, self.places = [*first.sizes], [*range(len(first.sizes))]
        ends = self.ends(maps)
        units = unit(len(self.sizes))
        self.maps = [
            units[end] if at is None else self.padded(at) for at, end in zip(maps, ends)
        ]
        self.loops = {axis for at in self.maps for axis in at.axes}
        self.orders = first.orders | moved_orders(second.orders, self.maps)
        self.behind = {}
        for link in self.links:
            if first.folded[link.slot]:
                _, axes = dependents(second, link.slot)
                behind = moved(axes, self.maps).difference(link.made.axes)
                self.behind[link.slot] = behind
                self.orders |= {(a, b) for a in link.made.axes for b in behind}

    def ends(self, maps):
        """Return axes for those that no link tells about: free ones, or new ones."""
        used = {axis for at in maps if at for axis in at.axes}
        free = [axis for axis in range(len(self.sizes)) if axis not in used]
        ends = [None] * len(maps)
        for axis in reversed(range(len(maps))):
            if maps[axis] is None:
                size = self.second.sizes[axis]
                alike = [old for old in free if self.sizes[old] == size]
                ends[axis] = alike[-1] if alike else self.new(size, maps[axis:])
                free = [old for old in free if old != ends[axis]]
        return ends

    def new(self, size, following):
        """Return a new axis; it stands in front of those that follow it."""
        later = [min(at.axes) for at in following if at and at.axes]
        rank, count = len(self.first.sizes), len(self.sizes)
        self.places.append(min(later, default=rank) - 1 / (2 + count))
        self.sizes.append(size)
        return count

    def padded(self, at):
        """Return a place along the new axes as well; it does not move along them."""
        more = len(self.sizes) - len(at.strides)
        return Affine(at.offset, (*at.strides, *(0,) * more)) if more else at

    def sorted_axes(self):
        """Return the axes so that all orders hold, or None; else the places decide."""
        left, found = sorted(range(len(self.places)), key=self.places.__getitem__), []
        while left:
            free = [b for b in left if not any((a, b) in self.orders for a in left)]
            if not free:
                return None
            found.append(free[0])
            left.remove(free[0])
        return found

    def plan(self, order):
        """Return the `Plan` with axes in this order."""
        total, rank = len(order), len(self.first.sizes)
        sizes = tuple(self.sizes[axis] for axis in order)
        if order == [*range(total)]:
            maps = (unit(total)[:rank], tuple(self.maps))
            return Plan(sizes, maps, self.orders, self.links)
        new = [unit(total)[order.index(axis)] for axis in range(total)]
        second = [seen_along(at, new, total) for at in self.maps]
        orders = moved_orders(self.orders, new)
        return Plan(sizes, (tuple(new[:rank]), tuple(second)), orders, self.links)


def pays(draft, link, order):
    """Return whether to compute the elements of a link here is cheaper than to store
    and load them."""
    total, flops = len(draft.sizes), draft.first.flops[link.slot]
    read = seen_along(link.read, draft.maps, total)
    count = elements(draft.sizes, link.made.axes)
    if read == draft.padded(link.made) and not link.guards:
        if len(read.axes) == total:
            return True
        last = max(map(order.index, read.axes), default=-1)
        around = [axis for axis in order[: last + 1] if axis in draft.loops]
        more = elements(draft.sizes, around) - count
    elif draft.first.folded[link.slot] or not _is_made(draft, link, read):
        return False
    else:
        more = elements(draft.sizes, read.axes)
    width = link.store.buffer.dtype.itemsize
    return more * flops <= 2 * BYTE * width * count + LAUNCH


def _is_made(draft, link, read):
    """Return whether the first group can make what is read at other indices than its
    own: all that it is made of in the group has to be found there as well."""
    sizes, rank = tuple(draft.sizes), len(draft.sizes)
    guards = [Guard(seen_along(at, draft.maps, rank), n) for at, n in link.guards]
    open_ends, seen = [(link.slot, read, tuple(guards))], set()
    while open_ends:
        slot, place, guards = open_ends.pop()
        part, maps = _maker_at(draft.first.made[slot], place, guards, sizes)
        if part is None:
            return False
        if (slot, maps, guards) not in seen:
            seen.add((slot, maps, guards))
            for read, node in part.loads:
                if read in draft.first.made:
                    open_ends.append((read, *_moved_load(node, maps, guards, rank)))
    return True


def _moved_load(node, maps, guards, rank):
    """Return the place and all guards of a load of a part at other indices."""
    _, place, own, *_ = node.detail
    own = [Guard(seen_along(at, maps, rank), limit) for at, limit in own]
    return seen_along(place, maps, rank), (*own, *guards)


def _maker_at(makers, place, guards, sizes):
    """Return the part that makes an element, and at which indices; or Nones."""
    nowhere = Affine(0, (0,) * len(sizes))
    for part, store in makers:
        found = found_at(place, guards, sizes, store.place, part.sizes)
        if found is not None:
            return part, tuple(at or nowhere for at in found)
    return None, None


def near(draft):
    """Return whether what is walked again after it was folded is near, and cheap."""
    again = set()
    for slot, behind in draft.behind.items():
        folded = draft.first.folded[slot]
        if behind:
            counts = [elements(draft.sizes, axes) for axes in (folded, behind)]
            if max(counts) > NEAR:
                return False
            again |= folded & behind
    return not any(
        draft.first.flops[link.slot] > AGAIN and again.intersection(link.made.axes)
        for link in draft.links
    )


def along_one_grain(first, second, plan):
    """Return whether all matrices that folds go through lie in the same direction."""
    if not plan.orders or math.prod(plan.sizes) <= SMALL:
        return True
    pairs = zip((first, second), plan.maps)
    axes = [_grains(group, maps, plan.sizes, first.made) for group, maps in pairs]
    return len(axes[0] | axes[1]) <= 1


def _grains(group, maps, sizes, made):
    """Return the axes along which the elements of what a group loads are neighbours."""
    places = [
        seen_along(group.along(part, node.detail.place), maps, len(sizes))
        for slot, loads in group.reads.items()
        if slot not in made and slot not in group.made
        for part, node in loads
    ]
    return grains(places, sizes)


def in_rows(first, second, plan, stays):
    """Return whether large arrays are still stored element after element."""
    if math.prod(plan.sizes) <= NEAR:
        return True
    for group, maps in zip((first, second), plan.maps):
        axes = [axis for at in maps for axis in at.axes]
        if axes != sorted(axes) and not _stored_in_rows(group, maps, plan.sizes, stays):
            return False
    return True


def _stored_in_rows(group, maps, sizes, stays):
    for slot, makers in group.made.items():
        for part, store in makers if stays(slot) else ():
            place = seen_along(group.along(part, store.place), maps, len(sizes))
            steps = [abs(place.strides[axis]) for axis in place.axes]
            if elements(sizes, place.axes) > NEAR and steps[-1] != min(steps):
                return False
    return True


def arranged(first, second, links, maps, stays):
    """Return the `Plan` to join two groups, or None if that should not be.

    Args:
      first, second: groups.
      links, maps: what `matched` has found; no links if nothing is handed over.
      stays: function from slots to whether somebody else reads them.
    """
    draft = Draft(first, second, links, maps)
    order = draft.sorted_axes()
    if order is None or not near(draft):
        return None
    if not all(pays(draft, link, order) for link in draft.links):
        return None
    plan = draft.plan(order)
    right = along_one_grain(first, second, plan) and in_rows(first, second, plan, stays)
    return plan if right else None


def walk_alike(first, second, links):
    """Return whether two groups have the same loops and no folds between them: then
    there is nothing to arrange."""
    return (
        first.sizes == second.sizes
        and not second.orders
        and all(
            link.made == link.read
            and not (link.guards or first.folded[link.slot])
            and len(link.made.axes) == len(first.sizes)
            for link in links
        )
    )
