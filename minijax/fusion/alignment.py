# Made from chapters/19_fusion_rest.md by `make chapter`;
# edit the chapter, not this file.
"""Loop alignment: the loops that two launches have in common, and what they share."""

import math
from typing import NamedTuple

from minijax.fusion.index_maps import indices, seen_along, split_axis, unit
from minijax.fusion.merging import instance, one_name, same_bits
from minijax.fusion.parts import Part, elements
from minijax.kernels.kernel import Affine, Kernel, Store, needed
from minijax.kernels.views import row_major


class Link(NamedTuple):
    """An element that two parts have to do with.

    Attributes:
      buffer: in which it is.
      made: the `Store` of the first part, or a load if both read it.
      read: the node of the second part that loads it.
    """

    buffer: object
    made: object
    read: object


def links_between(first, second):
    """Return the links from the first to the second part; None if one is broken."""
    found = []
    for buffer, node in second.loads:
        makers = [store for made, store in first.stores if made == buffer]
        if makers:
            made = [store for store in makers if _match(store, node.detail)]
            if not made:
                return None
            found.append(Link(buffer, made[0], node))
    return found


def _match(store, read):
    """Return whether what is stored can be what is read."""
    meet = _meet(store.place, read.place)
    return meet and same_bits(store.parameter.dtype, read.parameter.dtype)


def _meet(made, place):
    """Return whether two places can be one: real parts never are imaginary ones."""
    gap = abs(place.offset - made.offset)
    return not gap or not gap % (math.gcd(*place.strides, *made.strides) or gap + 1)


def shared_reads(first, second):
    """Return links for what two parts read that do not need each other."""
    known, others = dict(reversed(first.loads)), dict(reversed(second.loads))
    if not others.keys().isdisjoint([buffer for buffer, _ in first.stores]):
        return []
    found = []
    for buffer, read in others.items():
        made = known.get(buffer)
        if made and not made.detail.guards + read.detail.guards:
            full = all(made.detail.place.strides) and all(read.detail.place.strides)
            found += [Link(buffer, made.detail, read)] if full else []
    return found


class Alignment(NamedTuple):
    """Two parts in the same loops.

    Attributes:
      first, second: the parts.
      sizes: of the loops.
      homes: for each of the two its indices along the loops: an `Affine` for each axis.
    """

    first: object
    second: object
    sizes: tuple
    homes: tuple

    @property
    def placed(self):
        """Both parts, each with its indices."""
        return [*zip((self.first, self.second), self.homes)]

    def at(self, which, place):
        """Return a place of one of the parts, by 0 or 1, along the loops."""
        return seen_along(place, self.homes[which], len(self.sizes))

    def axes(self, which, own):
        """Return the loops along which axes of one of the parts go."""
        home = self.homes[which]
        return frozenset([new for axis in own for new in home[axis].axes])

    def behind(self, link):
        """Return the loops along which the second part goes on with what was folded."""
        after = self.axes(1, self.second.behind(link.read))
        return after.difference(self.at(0, link.made.place).axes)

    def orders(self, links):
        """Return pairs of loops of which the first has to be outside of the second."""
        found = set()
        for which, (part, _) in enumerate(self.placed):
            loops = [at.axes for at in self.homes[which]] if part.orders else []
            for a, b in part.orders:
                found.update([(x, y) for x in loops[a] for y in loops[b]])
        for link in links:
            if self.first.folded(link.made):
                kept, after = self.at(0, link.made.place).axes, self.behind(link)
                found.update([(a, b) for a in kept for b in after])
        return found


def aligned(first, second, links):
    """Return a pair of parts with the loops of the first, split where that is needed.

    The indices of the second are None along axes of which no link tells. If there is
    no such pair, the result is None.
    """
    pair = Alignment(
        first, second, first.kernel.sizes, (unit(len(first.kernel.sizes)), ())
    )
    while True:
        maps, cut = _maps(pair, links)
        if not cut:
            known = pair._replace(homes=(pair.homes[0], maps))
            return None if maps is None else known
        if cut[0] in pair.axes(0, first.solid):
            return None
        split, sizes = split_axis(cut[0], cut[1], pair.sizes)
        home = tuple([seen_along(at, split, len(sizes)) for at in pair.homes[0]])
        pair = pair._replace(sizes=sizes, homes=(home, ()))


def _maps(pair, links):
    second = pair.second
    maps, met = [None] * len(second.kernel.sizes), False
    for link in links:
        found, cut = _same_element(pair, link)
        if cut:
            return None, cut
        if found is not None and _agree(maps, found):
            maps, met = [a or b for a, b in zip(maps, found)], True
    units = unit(len(pair.sizes))
    whole = all(maps[axis] is None or maps[axis] in units for axis in second.solid)
    return (tuple(maps) if met and whole else None), None


def _same_element(pair, link):
    """Return the reader's indices along the maker's axes, or where to split these."""
    made, read = pair.at(0, link.made.place), link.read.detail
    sizes = pair.second.kernel.sizes
    count = elements(pair.sizes, made.axes)
    if read.guards or count != elements(sizes, read.place.axes):
        return None, None
    return indices(made, pair.sizes, read.place, sizes)


def _agree(maps, found):
    """Return whether two lists of indices can be one, and no axis serves twice."""
    if any(a and b and a != b for a, b in zip(maps, found)):
        return False
    axes = [axis for a, b in zip(maps, found) if a or b for axis in (a or b).axes]
    return len(axes) == len(set(axes))


def is_plain(first, second, links):
    """Return whether two parts have the same loops, and nothing is folded between them:
    then there is nothing to arrange, and nothing to weigh."""
    if first.folds or second.orders or first.kernel.sizes != second.kernel.sizes:
        return False
    reads = [(link.made.place, link.read.detail) for link in links]
    return all(
        made == read.place and not read.guards and all(made.strides)
        for made, read in reads
    )


def in_same_loops(first, second):
    """Return a pair of parts that have the same loops."""
    whole = unit(len(first.kernel.sizes))
    return Alignment(first, second, first.kernel.sizes, (whole, whole))


def may_grow(k, links, wanted):
    """Return whether the first part of a `Merger` can take in the second one with all
    nodes of both: none is left over, and no fewer axes are enough afterwards."""
    (first, _), (second, home) = k.homes
    if k.known is not first.known or any(b not in wanted for b, _ in second.stores):
        return False
    read, rows = set(), row_major(k.sizes)
    for _, made, node in links:
        place = seen_along(node.detail.place, home, len(k.sizes))
        if place == made.place and not node.detail.guards:
            read.add(id(made))
    for buffer, store in first.stores:
        if buffer not in wanted and (id(store) not in read or store.place[1] != rows):
            return False
    ends = [store.node for _, store in second.stores]
    return len(needed(ends)) == len(second.kernel.nodes)


def grown(k, wanted):
    """Return the part of two where the first one `may_grow`: the nodes of the second
    are put behind its own, and these stay. The result is None if elements are computed
    again for that."""
    (first, _), (second, home) = k.homes
    new, count = instance(k, second, home), len(first.kernel.nodes)
    if len(k.instances) > 2:
        return None
    stores = [pair for pair in first.stores if pair[0] in wanted]
    for buffer, (like, place, node, _) in second.stores:
        place = seen_along(place, home, len(k.sizes))
        parameter = k.parameter(buffer, like, written=True)
        stores.append((buffer, Store(parameter, place, new[node])))
    buffers = {parameter: buffer for (buffer, _), parameter in k.parameters.items()}
    more, names = k.nodes[count:], tuple(k.names)
    more_loads = [(buffers[x.detail.parameter], x) for x in more if x.op == "load"]
    loads, folds = first.loads + more_loads, [x for x in more if x.op == "fold"]
    parameters = dict.fromkeys([x.detail.parameter for _, x in loads])
    parameters.update(dict.fromkeys([store.parameter for _, store in stores]))
    kept, ends = tuple(k.nodes), tuple([store for _, store in stores])
    kernel = Kernel(one_name(names), k.sizes, tuple(parameters), kept, ends)
    ops, folds = first.ops + second.ops, first.folds + folds
    return Part(kernel, loads, stores, names, ops, folds, k.known)


def arranged(pair, links):
    """Return a pair in an order of loops that all folds allow, or None.

    Returns:
      The pair; and those of 0 and 1 whose loops are now in another order.
    """
    sizes, places, maps = _with_new_axes(pair)
    units, rank = unit(len(sizes)), len(sizes)
    if rank > len(pair.sizes):
        more = (0,) * (rank - len(pair.sizes))
        home = [Affine(at.offset, (*at.strides, *more)) for at in pair.homes[0]]
        pair = pair._replace(sizes=sizes, homes=(tuple(home), maps))
    elif maps != pair.homes[1]:
        pair = pair._replace(homes=(pair.homes[0], maps))
    order = sorted_axes(places, pair.orders(links))
    if order is None:
        return None
    homes = pair.homes
    if order != [*range(rank)]:
        new = [units[order.index(axis)] for axis in range(rank)]
        homes = [tuple([seen_along(at, new, rank) for at in home]) for home in homes]
        sizes = tuple([sizes[axis] for axis in order])
    moved = [[axis for at in home for axis in at.axes] for home in homes]
    turned = [which for which, axes in enumerate(moved) if axes != sorted(axes)]
    return pair._replace(sizes=sizes, homes=(*homes,)), turned


def _with_new_axes(pair):
    """Return the loops of a pair, and new ones for axes of which no link tells.

    Returns:
      Their sizes; numbers that grow from the outermost inwards; and what the axes of
      the second part are along them.
    """
    sizes, maps, ends = [*pair.sizes], pair.homes[1], {}
    places, rank = [*range(len(sizes))], len(sizes)
    if None not in maps:
        return pair.sizes, places, maps
    used = {axis for at in maps if at for axis in at.axes}
    for axis in reversed([axis for axis, at in enumerate(maps) if at is None]):
        size = pair.second.kernel.sizes[axis]
        free = [a for a in range(rank) if sizes[a] == size and a not in used]
        ends[axis] = free[-1] if free else len(sizes)
        used.add(ends[axis])
        if not free:  # it stands in front of the axes that follow it
            later = [min(at.axes) for at in maps[axis:] if at and at.axes]
            places.append(min(later, default=rank) - 1 / (2 + len(sizes)))
            sizes.append(size)
    units, more = unit(len(sizes)), (0,) * (len(sizes) - rank)
    found = [
        units[ends[axis]] if at is None else Affine(at.offset, (*at.strides, *more))
        for axis, at in enumerate(maps)
    ]
    return tuple(sizes), places, tuple(found)


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
