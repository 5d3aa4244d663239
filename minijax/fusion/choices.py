# Made from chapters/19_fusion_rest.md by `make chapter`;
# edit the chapter, not this file.
"""The cost model of fusion: whether loops should be shared, elements computed again."""

import functools
import math

from minijax.fusion.merging import Merger, loaded
from minijax.fusion.parts import elements


def grains(places, sizes, target):
    """Return the axes along which the elements of matrices are neighbours."""
    few = math.prod(sizes) <= target.small
    return set() if few else {grain(at, sizes, target.small) for at in places} - {None}


@functools.lru_cache(2**12)
def grain(place, sizes, small):
    """Return the axis along which the elements of a large matrix are neighbours."""
    steps = {axis: abs(place.strides[axis]) for axis in place.axes}
    matrix = len(steps) > 1 and elements(sizes, steps) > small
    return min(steps, key=steps.__getitem__) if matrix else None


def accepted(found, links, stored, target):
    """Return what `arranged` found if that is worth it, or None.

    Args:
      found: what `arranged` returns.
      links: what is handed over.
      stored: the buffers that have to be stored.
      target: the prices.
    """
    pair, turned = found or (None, ())
    if not pair or not pays(pair, links, target):
        return None
    in_rows = is_in_rows(pair, turned, stored, target)
    return pair if in_rows and is_straight(pair, links, target) else None


def pays(pair, links, target):
    """Return whether two parts in the same loops are better than two kernels.

    Args:
      pair: a `Pair`.
      links: what is handed over.
      target: the prices.
    """
    if not is_near(pair, links, target):
        return False
    for link in links:
        cost = cost_again(pair, link, target)
        if cost and cost > saved(pair, link, target):
            return False
    return True


def is_near(pair, links, target):
    """Return whether what is walked again after it was folded is near, and cheap."""
    again = set()
    for link in links:
        folded = pair.axes(0, pair.first.folded(link.made))
        after = pair.behind(link) if folded else ()
        counts = [elements(pair.sizes, axes) for axes in (folded, after)]
        if after and max(counts) > target.near:
            return False
        again |= folded.intersection(after)
    made = [link.made for link in links]
    made = [x for x in made if again.intersection(pair.at(0, x.place).axes)]
    return not any(pair.first.cost(x, target) > target.again for x in made)


def cost_again(pair, link, target):
    """Return what it costs to compute elements more often than once."""
    sizes, guards = pair.sizes, link.read.detail.guards
    made, read = pair.at(0, link.made.place), pair.at(1, link.read.detail.place)
    if read == made and not guards and all(read.strides):
        return 0
    cost = pair.first.cost(link.made, target)
    if read != made or guards:
        found = not pair.first.folded(link.made) and is_made(pair, link)
        return elements(sizes, read.axes) * cost if found else math.inf
    loops = pair.axes(1, range(len(pair.homes[1])))
    around = [axis for axis in range(max(read.axes, default=-1) + 1) if axis in loops]
    return (elements(sizes, around) - elements(sizes, made.axes)) * cost


def is_made(pair, link):
    """Return whether the first part can make what is read at other indices than its
    own: on trial, nothing that it makes may be left to be loaded."""
    k = Merger(pair.sizes, [(pair.first, pair.homes[0])])
    loaded(k, link.buffer, link.read.detail, pair.homes[1], ())
    return all(
        (buffer, s.parameter.dtype) not in k.parameters
        for buffer, s in pair.first.stores
    )


def saved(pair, link, target):
    """Return what it costs to store the elements of a link, to load them, and to start
    a kernel for that."""
    count = elements(pair.sizes, pair.at(0, link.made.place).axes)
    return 2 * target.byte * link.made.parameter.dtype.itemsize * count + target.launch


VECTOR = 16  # numbers that are worth loads of neighbours


def is_straight(pair, links, target):
    """Return whether all matrices that folds go through lie in the same direction."""
    if math.prod(pair.sizes) <= target.small or not pair.orders(links):
        return True
    places, linked = [], [link.read for link in links]
    for which, (part, _) in enumerate(pair.placed):
        found = [node for _, node in part.loads if node not in linked]
        places += [pair.at(which, node.detail.place) for node in found]
    found = grains(places, pair.sizes, target)
    return len(found) <= 1 or any(
        pair.sizes[axis] >= VECTOR
        and all(abs(place.strides[axis]) < 2 for place in places)
        for axis in found
    )


def is_in_rows(pair, turned, buffers, target):
    """Return whether the large ones of some buffers are stored in order."""
    if math.prod(pair.sizes) <= target.near:
        return True
    for which in turned:
        stores = [store for buffer, store in pair[which].stores if buffer in buffers]
        for store in stores:
            place = pair.at(which, store.place)
            steps = [abs(place.strides[axis]) for axis in place.axes]
            many = elements(pair.sizes, place.axes) > target.near
            if many and steps[-1] != min(steps):
                return False
    return True


def cheap_buffers(uses, target):
    """Return the buffers that are better computed wherever they are read than stored.

    Returns:
      From buffers to the part that makes them.
    """
    cheap, taken, visits = {}, {}, {}
    for part in uses.parts.values():
        for buffer, node in part.loads:
            visits[buffer] = visits.get(buffer, 0) + visited(part, node)
    for part in uses.parts.values():
        buffer, store = part.stores[0]
        if len(part.stores) == 1 and buffer not in uses.kept and not part.folded(store):
            work = [node.op for node in part.kernel.nodes]
            work = [op for op in work if op not in ("load", "constant")]
            flops, ops, moved = sum(map(target.price, work)), len(work), 0
            for read, node in part.loads:
                size = elements(part.sizes, node.level) * node.detail[0].dtype.itemsize
                more = taken.get(read, (0, 0, size))
                flops, ops, moved = flops + more[0], ops + more[1], moved + more[2]
            if ops <= 16 and _is_cheap(
                visits.get(buffer, 0), target, part, flops, moved
            ):
                taken[buffer], cheap[buffer] = (flops, ops, moved), part
    return cheap


def visited(part, load):
    """Return how often the loops around a load come by."""
    return math.prod(part.sizes[: max(load.level, default=-1) + 1])


def _is_cheap(reads, target, part, flops, moved):
    """Return whether the elements of a part cost less than to store and load them."""
    [(_, store)], sizes = part.stores, part.sizes
    count, byte = (
        elements(sizes, store.place.axes),
        target.byte * store.parameter.dtype.itemsize,
    )
    each = flops + target.byte * moved / count
    if reads * each > count * (each + byte) + reads * byte + target.launch:
        return False
    places = [store.place, *[node.detail.place for _, node in part.loads]]
    return len(grains(places, sizes, target)) <= 1
