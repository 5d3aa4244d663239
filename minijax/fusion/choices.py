# Made from chapters/19_fusion_rest.md by `make chapter`;
# edit the chapter, not this file.
"""The cost model of fusion: whether loops should be shared, elements computed again."""

import math

from minijax.fusion.groups import behind, made_at, read_at
from minijax.fusion.merging import Merger, loaded
from minijax.fusion.parts import elements


def grains(places, sizes, target):
    """Return the axes along which the elements of matrices are neighbours."""
    found = set()
    for place in places if math.prod(sizes) > target.small else ():
        steps = {axis: abs(place.strides[axis]) for axis in place.axes}
        if len(steps) > 1 and elements(sizes, steps) > target.small:
            found.add(min(steps, key=steps.__getitem__))
    return found


def pays(first, second, links, uses, target):
    """Return whether two groups in the same loops are better than two kernels.

    Args:
      first, second: groups along the same axes.
      links: what is handed over.
      uses: of their program.
      target: the prices.
    """
    if not is_near(first, second, links, uses, target):
        return False
    for link in links:
        cost = cost_again(first, second, link, uses)
        if cost and cost > saved(first, link, target):
            return False
    return True


def is_near(first, second, links, uses, target):
    """Return whether what is walked again after it was folded is near, and cheap."""
    again = set()
    for link in links:
        folded = first.folded.get(link.buffer, frozenset())
        after = behind(first, second, link, uses) if folded else ()
        counts = [elements(first.sizes, axes) for axes in (folded, after)]
        if after and max(counts) > target.near:
            return False
        again |= folded.intersection(after)
    dear = [link for link in links if first.flops[link.buffer] > target.again]
    return again.isdisjoint(
        [axis for link in dear for axis in made_at(first, link).axes]
    )


def cost_again(first, second, link, uses):
    """Return what it costs to compute elements more often than once."""
    sizes, flops = first.sizes, first.flops[link.buffer]
    made, read = made_at(first, link), read_at(second, link)
    if read != made or link.read.guards:
        found = link.buffer not in first.folded and is_made(first, second, link, uses)
        return elements(sizes, read.axes) * flops if found else math.inf
    if all(read.strides):
        return 0
    loops = {axis for home in second.homes.values() for at in home for axis in at.axes}
    around = [axis for axis in range(max(read.axes, default=-1) + 1) if axis in loops]
    return (elements(sizes, around) - elements(sizes, made.axes)) * flops


def is_made(first, second, link, uses):
    """Return whether the first group can make what is read at other indices than its
    own: on trial, nothing that it makes may be left to be loaded."""
    k = Merger(first.sizes, first.homes, uses)
    loaded(k, link.buffer, link.read, second.homes[link.reader], ())
    return not any(uses.maker(buffer) in first.homes for buffer, _ in k.parameters)


def saved(first, link, target):
    """Return what it costs to store the elements of a link, to load them, and to start
    a kernel for that."""
    count = elements(first.sizes, made_at(first, link).axes)
    return 2 * target.byte * link.made.parameter.dtype.itemsize * count + target.launch


VECTOR = 16  # numbers that are worth loads of neighbours


def is_straight(group, target):
    """Return whether all matrices that folds go through lie in the same direction."""
    if not group.orders or math.prod(group.sizes) <= target.small:
        return True
    loads = [pair for pairs in group.reads.values() for pair in pairs]
    places = [group.along(number, node.detail.place) for number, node in loads]
    found = grains(places, group.sizes, target)
    return len(found) <= 1 or any(
        group.sizes[axis] >= VECTOR
        and all(abs(place.strides[axis]) < 2 for place in places)
        for axis in found
    )


def is_in_rows(group, buffers, uses, target):
    """Return whether the large ones of some buffers are stored in order."""
    for buffer in buffers if math.prod(group.sizes) > target.near else ():
        for part, store in uses.makers.get(buffer, ()):
            place = group.along(part.number, store.place)
            steps = [abs(place.strides[axis]) for axis in place.axes]
            many = elements(group.sizes, place.axes) > target.near
            if many and steps[-1] != min(steps):
                return False
    return True


def cheap_buffers(uses, target):
    """Return the buffers that are better computed wherever they are read than stored.

    Returns:
      From buffers to what an element takes: flops, operations, bytes to load for all.
    """
    cheap = {}
    for part in uses.parts.values():
        buffer, facts = part.stores[0][0], part.facts
        if len(part.stores) == 1 and buffer not in uses.kept and not facts.folded:
            flops, ops, moved = facts.flops, facts.ops, 0
            for (read, _), size in zip(part.loads, facts.moved):
                more = cheap.get(read, (0, 0, size))
                flops, ops, moved = flops + more[0], ops + more[1], moved + more[2]
            if ops <= 16 and _is_cheap(uses, target, part, flops, moved):
                cheap[buffer] = flops, ops, moved
    return cheap


def _is_cheap(uses, target, part, flops, moved):
    """Return whether the elements of a part cost less than to store and load them."""
    [(buffer, store)], [count] = part.stores, part.facts.counts
    byte = target.byte * store.parameter.dtype.itemsize
    reads = uses.visits.get(buffer, 0)
    each = flops + target.byte * moved / count
    if reads * each > count * (each + byte) + reads * byte + target.launch:
        return False
    places = [store.place, *[node.detail.place for _, node in part.loads]]
    return len(grains(places, part.kernel.sizes, target)) <= 1
