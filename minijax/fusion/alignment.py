# Made from chapters/19_fusion_rest.md by `make chapter`;
# edit the chapter, not this file.
"""Loop alignment: the loops that two launches have in common, and what they share."""

import math
from typing import NamedTuple

from minijax.fusion.index_maps import indices, seen_along, split_axis, unit
from minijax.fusion.merging import Merger, merged, same_bits
from minijax.fusion.parts import Part, elements
from minijax.kernels.kernel import Affine, Guard, load


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
        if buffer in first.made:
            made = [x for x in first.made[buffer] if _match(x, node.detail)]
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
    if not others.keys().isdisjoint(first.made):
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
        for part, home in self.placed:
            for a, b in part.orders:
                found.update([(x, y) for x in home[a].axes for y in home[b].axes])
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
    pair = Alignment(first, second, first.sizes, (unit(len(first.sizes)), ()))
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
    maps, met = [None] * len(second.sizes), False
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
    sizes = pair.second.sizes
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


def in_same_loops(first, second, links):
    """Return a pair of parts that have the same loops, and read what they make there;
    None if they do not."""
    whole = unit(len(first.sizes))
    pair = Alignment(first, second, first.sizes, (whole, whole))
    same = first.sizes == second.sizes and all(map(_same_place, links))
    return pair if same else None


def _same_place(link):
    """Return whether an element is read, once, where it was made."""
    made, read = link.made.place, link.read.detail
    return made == read.place and not read.guards and all(made.strides)


def is_plain(pair, links):
    """Return whether the loops of two parts are those of the first, and all that is
    handed over varies along all of them: then there is nothing to arrange, and little
    to weigh."""
    rank, (first, second) = len(pair.sizes), pair.homes
    if first != unit(rank) or pair.sizes != pair.first.sizes or None in second:
        return False
    axes = [axis for at in second for axis in at.axes]
    if second != first:
        links = [x._replace(read=_seen(x.read, second, rank)) for x in links]
    if axes != sorted(axes) or not all(map(_same_place, links)):
        return False
    alone = len(pair.second.stores) == 1 or not pair.first.folding
    return alone or not any(pair.first.folded(link.made) for link in links)


def _seen(node, home, rank):
    """Return the node of a load along other axes."""
    parameter, place, guards, other, _ = node.detail
    guards = [Guard(seen_along(at, home, rank), limit) for at, limit in guards]
    return load(parameter, seen_along(place, home, rank), guards, other)


def joined(pair, links, orders, gone):
    """Return the part of a pair that is plain, to be written later.

    Args:
      pair: the parts, and the loops.
      links: between them.
      orders: of the loops.
      gone: the buffers that need not be stored any more.
    """
    first, second = pair.first, pair.second
    loads, made, folding, homes = second.loads, second.made, second.folding, []
    rank, home = len(pair.sizes), pair.homes[1]
    if home != pair.homes[0]:
        loads = [(buffer, _seen(node, home, rank)) for buffer, node in loads]
        made = {
            b: [x._replace(place=seen_along(x.place, home, rank)) for x in found]
            for b, found in made.items()
        }
        folding = {node: pair.axes(1, axes) for node, axes in folding.items()}
    before = [first.folded(link.made) for link in links] if first.folding else ()
    if any(before):
        [[(node, *_)]] = [[x[2:] for x in found] for found in made.values()]
        folding = {node: frozenset().union(folding.get(node, ()), *before)}
    for part, own in second.homes or [(second, unit(len(second.sizes)))]:
        homes.append((part, tuple([seen_along(at, home, rank) for at in own])))
    made = first.made | made
    for buffer in gone:
        del made[buffer]
    return Part(
        None,
        pair.sizes,
        first.loads + [(b, node) for b, node in loads if b not in first.made],
        made,
        first.ops + second.ops,
        {**first.folding, **folding} if folding else first.folding,
        orders,
        first.solid | pair.axes(1, second.solid),
        homes=(*(first.homes or [(first, pair.homes[0])]), *homes),
    )


def written(part):
    """Return a part with a kernel."""
    if part.kernel:
        return part
    return merged(Merger(part.sizes, part.homes, final=False), part.made)


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
        size = pair.second.sizes[axis]
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
