# Made from chapters/19_fusion_rest.md by `make chapter`;
# edit the chapter, not this file.
"""Loop alignment: groups of launches with loops in common, and what they hand over."""

import math
from typing import NamedTuple

from minijax.fusion.greedy import split_axis
from minijax.fusion.index_maps import indices, seen_along, unit
from minijax.fusion.merging import same_bits
from minijax.fusion.parts import elements
from minijax.kernels.kernel import AXES, Affine


class Group(NamedTuple):
    """Launches that are to become one.

    Attributes:
      sizes: of the loops around all of them, from the outermost inwards.
      homes: from the numbers of launches to the indices at which they are computed: an
        `Affine` along the axes of the group for each axis of the launch.
      reads: from buffers that others make to pairs of a number and a load.
      flops: from the buffers that it makes for others to what an element costs,
        beginning with what the group loads.
      folded: from buffers to the axes that were folded on the way to them, if any were.
      orders: pairs of axes of which the first has to be outside of the second.
      solid: axes that must not be split, since a place along them is sought.
      ops: the number of scalar operations.
      order: the place among the steps.
      needs, users: the numbers of other steps that come before, and behind.
    """

    sizes: tuple
    homes: dict
    reads: dict
    flops: dict
    folded: dict
    orders: frozenset
    solid: frozenset
    ops: int
    order: int
    needs: set
    users: set

    def along(self, number, place):
        """Return a place of one of the launches along the axes of the group."""
        return seen_along(place, self.homes[number], len(self.sizes))

    def __str__(self):
        loops = [f"{AXES[axis]} < {size}" for axis, size in enumerate(self.sizes)]
        lines = [f"group at {self.order} for {', '.join(loops)}" if loops else "group"]
        for number, home in sorted(self.homes.items()):
            lines.append(f"  step {number} at ({', '.join(map(str, home))})")
        return "\n".join(lines)


def group_of(part, uses):
    """Return the group of a single launch."""
    number, kernel, facts, loads, stores = part
    makes, reads = [buffer for buffer, _ in stores], {}
    for buffer, node in loads:
        reads[buffer] = (*reads.get(buffer, ()), (number, node))
    flops = dict(zip(makes, facts.costs))
    folded = dict.fromkeys(makes, facts.folded) if facts.folded else {}
    home, order = {number: unit(len(kernel.sizes))}, (facts.orders, facts.solid)
    needs, users = uses.needs[number], uses.users[number]
    return Group(
        kernel.sizes,
        home,
        reads,
        flops,
        folded,
        *order,
        facts.ops,
        number,
        needs,
        users,
    )


def renested(group, maps, sizes):
    """Return a group along other axes: `maps` says what each old one is along them."""
    rank = len(sizes)
    if group.sizes == sizes and tuple(maps) == unit(rank):
        return group

    def moved(axes):
        return frozenset([new for axis in axes for new in maps[axis].axes])

    pairs = [(maps[x].axes, maps[y].axes) for x, y in group.orders]
    return group._replace(
        sizes=tuple(sizes),
        homes={
            number: tuple([seen_along(at, maps, rank) for at in home])
            for number, home in group.homes.items()
        },
        folded={buffer: moved(axes) for buffer, axes in group.folded.items()},
        orders=frozenset([(a, b) for xs, ys in pairs for a in xs for b in ys]),
        solid=moved(group.solid),
    )


class Link(NamedTuple):
    """An element that two groups have to do with.

    Attributes:
      buffer: in which it is.
      maker: the number of the launch of the first group.
      made: its `Store`, or a `Load` if both read it.
      reader: the number of the launch of the second group.
      read: its `Load`.
    """

    buffer: object
    maker: int
    made: object
    reader: int
    read: object


def made_at(first, link):
    """Return the place of a link along the axes of the first group."""
    return first.along(link.maker, link.made.place)


def read_at(second, link):
    """Return the place of a link along the axes of the second group."""
    return second.along(link.reader, link.read.place)


def links_between(first, second, uses):
    """Return the links from the first to the second group; None if one is broken."""
    found = []
    for buffer, loads in second.reads.items():
        for reader, node in loads if buffer in first.flops else ():
            makers, read = uses.makers[buffer], node.detail
            made = [pair for pair in makers if _match(pair[1], read)]
            if not made:
                return None
            found.append(Link(buffer, made[0][0].number, made[0][1], reader, read))
    return found


def _match(store, read):
    """Return whether what is stored can be what is read."""
    same = same_bits(store.parameter.dtype, read.parameter.dtype)
    return same and _meet(store.place, read.place)


def _meet(made, place):
    """Return whether two places can be one: real parts never are imaginary ones."""
    gap = abs(place.offset - made.offset)
    return not gap or not gap % (math.gcd(*place.strides, *made.strides) or gap + 1)


def shared_reads(first, second):
    """Return links for what two groups read that do not need each other."""
    if first.flops.keys() & second.reads.keys():
        return []
    found = []
    for buffer in [buffer for buffer in second.reads if buffer in first.reads]:
        (maker, seen), (reader, node) = first.reads[buffer][0], second.reads[buffer][0]
        link = Link(buffer, maker, seen.detail, reader, node.detail)
        full = all(made_at(first, link).strides) and all(read_at(second, link).strides)
        found += [link] if full and not link.made.guards + link.read.guards else []
    return found


def matched(first, second, links):
    """Return what the axes of the second group are along those of the first.

    Returns:
      The first group, its axes split where that is needed; and for each axis of the
      second one an `Affine`, or None if no link tells; or None if there is no such.
    """
    while True:
        maps, cut = _matched(first, second, links)
        if not cut:
            return first, maps
        if cut[0] in first.solid:
            return first, None
        first = renested(first, *split_axis(cut[0], cut[1], first.sizes))


def _matched(first, second, links):
    maps, met = [None] * len(second.sizes), False
    for link in links:
        found, cut = _same_element(first, second, link)
        if cut:
            return None, cut
        if found is not None and _agree(maps, found):
            maps, met = [a or b for a, b in zip(maps, found)], True
    units = unit(len(first.sizes))
    whole = all(maps[axis] is None or maps[axis] in units for axis in second.solid)
    return (maps if met and whole else None), None


def _same_element(first, second, link):
    """Return the reader's indices along the maker's axes, or where to split these."""
    made, read = made_at(first, link), read_at(second, link)
    count = elements(first.sizes, made.axes)
    if link.read.guards or count != elements(second.sizes, read.axes):
        return None, None
    return indices(made, first.sizes, read, second.sizes)


def _agree(maps, found):
    """Return whether two lists of indices can be one, and no axis serves twice."""
    if any(a and b and a != b for a, b in zip(maps, found)):
        return False
    axes = [axis for a, b in zip(maps, found) if a or b for axis in (a or b).axes]
    return len(axes) == len(set(axes))


def dependents(group, buffer, uses):
    """Return the buffers that a group makes of another one, and the axes along which
    the launches go that do it."""
    buffers, axes = {buffer}, set()
    for number in sorted(group.homes):
        part = uses.parts[number]
        if any(read in buffers for read, _ in part.loads):
            buffers.update([made for made, _ in part.stores])
            axes.update([axis for at in group.homes[number] for axis in at.axes])
    return buffers - {buffer}, axes


def behind(first, second, link, uses):
    """Return the axes along which the second group goes on with what was folded."""
    below = dependents(second, link.buffer, uses)[1]
    return below.difference(made_at(first, link).axes)


def arranged(first, second, links, maps, uses):
    """Return two groups along common axes, in an order that all folds allow, or None.

    Args:
      first, second: groups.
      links: what is handed over.
      maps: what the axes of the second are along those of the first, where known.
      uses: of their program.

    Returns:
      The groups, and a list of those whose loops are now in another order.
    """
    sizes, places, maps = _with_new_axes(first, second, maps)
    units, rank = unit(len(sizes)), len(first.sizes)
    first, second = renested(first, units[:rank], sizes), renested(second, maps, sizes)
    orders = first.orders | second.orders
    for link in links:
        if link.buffer in first.folded:
            after = behind(first, second, link, uses)
            orders |= {(a, b) for a in made_at(first, link).axes for b in after}
    order = sorted_axes(places, orders)
    if order is None:
        return None
    new = [units[order.index(axis)] for axis in range(len(sizes))]
    sizes = tuple([sizes[axis] for axis in order])
    pair = (
        renested(first._replace(orders=orders), new, sizes),
        renested(second, new, sizes),
    )
    loops = new[:rank], [seen_along(at, new, len(sizes)) for at in maps]
    turned = [[axis for at in each for axis in at.axes] for each in loops]
    return *pair, [g for g, axes in zip(pair, turned) if axes != sorted(axes)]


def _with_new_axes(first, second, maps):
    """Return the axes of the first group and new ones for those of the second of which
    no link tells.

    Returns:
      Their sizes; numbers that grow from the outermost inwards; and what the axes of
      the second group are along them.
    """
    sizes, places, ends = [*first.sizes], [*range(len(first.sizes))], {}
    used = {axis for at in maps if at for axis in at.axes}
    for axis in reversed([axis for axis, at in enumerate(maps) if at is None]):
        size, later = (
            second.sizes[axis],
            [min(at.axes) for at in maps[axis:] if at and at.axes],
        )
        free = [
            a for a in range(len(first.sizes)) if sizes[a] == size and a not in used
        ]
        ends[axis] = free[-1] if free else len(sizes)
        used.add(ends[axis])
        if not free:  # it stands in front of the axes that follow it
            places.append(min(later, default=len(first.sizes)) - 1 / (2 + len(sizes)))
            sizes.append(size)
    units, more = unit(len(sizes)), (0,) * (len(sizes) - len(first.sizes))
    found = [
        units[ends[axis]] if at is None else Affine(at.offset, (*at.strides, *more))
        for axis, at in enumerate(maps)
    ]
    return tuple(sizes), places, found


def sorted_axes(places, orders):
    """Return the axes so that all orders hold, or None; else the places decide."""
    left, found = sorted(range(len(places)), key=places.__getitem__), []
    while left:
        free = [b for b in left if not any((a, b) in orders for a in left)]
        if not free:
            return None
        found.append(free[0])
        left.remove(free[0])
    return found


def same_loops(first, second, links):
    """Return whether two groups have the same loops and no folds between them: then
    there is nothing to arrange."""
    if first.sizes != second.sizes or second.orders:
        return False
    for link in links:
        read = read_at(second, link)
        if (
            link.read.guards
            or link.buffer in first.folded
            or made_at(first, link) != read
        ):
            return False
        if not all(read.strides):
            return False
    return True


def joined(first, second, links, uses, order):
    """Return the group of the launches of two, which have their axes in common."""
    homes, reads = {**first.homes, **second.homes}, {**first.reads}
    flops, folded = {**first.flops, **second.flops}, {**first.folded, **second.folded}
    for buffer in dict.fromkeys([link.buffer for link in links]):
        before = first.folded.get(buffer, frozenset())
        for later in dependents(second, buffer, uses)[0] & second.flops.keys():
            known = later in uses.makers
            share = uses.count(buffer) / uses.count(later) if known else 0
            flops[later] += first.flops[buffer] * share if share >= 1 else 0
            if before:
                folded[later] = before | folded.get(later, frozenset())
        if not uses.outside(buffer, homes):
            del flops[buffer]
    for buffer, loads in second.reads.items():
        if buffer not in first.flops:
            reads[buffer] = (*reads.get(buffer, ()), *loads)
    needs = second.needs.difference(first.homes)
    users = first.users.difference(second.homes)
    needs |= first.needs
    users |= second.users
    orders, solid = first.orders | second.orders, first.solid | second.solid
    return Group(
        first.sizes, homes, reads, flops, folded, orders, solid,
        first.ops + second.ops, order, needs, users,
    )  # fmt: skip
