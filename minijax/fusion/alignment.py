"""Loop alignment: the order of the loops that two parts share, and whether it pays."""

# Made from chapters/19_fusion_rest.md by `make chapter`;
# edit the chapter, not this file.

import functools
import math

from minijax.fusion.index_maps import elements, found_at, unit
from minijax.fusion.loops import Link, common_loops, in_other_loops


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


def in_same_loops(first, second, links):
    """Return two parts in loops that both can have, in an order that all folds allow.

    Args:
      first, second: the parts.
      links: between them, if the first makes what the second reads.

    Returns:
      A `Candidate`; or None.
    """
    both = common_loops(first, second, links or shared_reads(first, second))
    if both is None or all(outer < inner for outer, inner in both.orders):
        return both
    sizes = both.first.sizes
    order = sorted_axes([*range(len(sizes))], both.orders)
    if order is None:
        return None
    units, sizes = unit(len(order)), tuple([sizes[axis] for axis in order])
    new = tuple([units[order.index(axis)] for axis in range(len(order))])
    return in_other_loops(both.first, both.second, new, new, sizes)


def sorted_axes(axes, orders):
    """Return axes so that all orders hold, else as they are; or None."""
    left, found = [*axes], []
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
        and stays_in_rows(both, target)
        and all(is_worth_it(both, link, target) for link in both.links)
        and is_straight(both, target)
    )


def itemsize(access):
    """Return the bytes of what is loaded, or stored."""
    return access.parameter.dtype.itemsize


def is_near(both, target):
    """Return whether what is walked again after it was folded is near, and cheap."""
    if not both.folds:
        return True
    first, sizes = both.first, both.first.sizes
    walks = [(folded, after) for folded, _, after in both.folds if after]
    near = both.near(target)
    if any(elements(sizes, x) > near for walk in walks for x in walk):
        return False
    again = set().union(*[folded.intersection(after) for folded, after in walks])
    made = [x.buffer for x in both.links if again.intersection(x.made.place.axes)]
    limit = target.again
    return all(first.cost(buffer, target, limit) <= limit for buffer in made)


def stays_in_rows(both, target):
    """Return whether a large array whose rows are folded is read row after row still.

    Axes that only the second part folds are inside of those that it keeps; rows that
    lay one behind the other would be read far apart, each for one turn.
    """
    if not both.folds:
        return True
    then = both.second.fold_axes - both.first.fold_axes
    places = [x.place for _, x in both.first.loads] if then else []
    return not any(
        abs(place.strides[axis]) < abs(place.strides[inner])
        for place in places
        if elements(both.first.sizes, place.axes) > 16 * target.near
        for inner in then.intersection(place.axes)
        for axis in place.axes
        if axis < inner
    )


def is_worth_it(both, link, target):
    """Return whether to compute elements more often than once costs less than to store
    them, to load them, and to start a kernel for that."""
    first, sizes, read, made = both.first, both.first.sizes, link.read, link.made.place
    if link.is_plain and all(made.strides):
        return True
    count, around = elements(sizes, made.axes), range(max((-1, *read.place.axes)) + 1)
    more = elements(sizes, both.second.loops.intersection(around)) - count
    if not link.is_plain:
        found = found_at(read.place, read.guards, sizes, made, sizes)
        if first.folding([link.buffer]) or not found:
            return False
        more = elements(sizes, read.place.axes)
    if more <= 0:
        return True
    saved = 2 * target.byte * link.made.parameter.dtype.itemsize * count + target.launch
    return more * first.cost(link.buffer, target, saved / more) <= saved


VECTOR = 16  # numbers that are worth loads of neighbours


def grains(places, sizes, small):
    """Return the axes along which the elements of matrices are neighbours."""
    few = math.prod(sizes) <= small
    return set() if few else {grain(at, sizes, small) for at in places} - {None}


def few_numbers(reads, target):
    """Return how few numbers have no direction, if there are so many reads of them."""
    return target.small if reads <= target.near else 4 * VECTOR


@functools.lru_cache(2**12)
def grain(place, sizes, small):
    """Return the axis along which the elements of a large matrix are neighbours."""
    steps = {axis: abs(place.strides[axis]) for axis in place.axes}
    matrix = len(steps) > 1 and elements(sizes, steps) > small
    return min(steps, key=steps.__getitem__) if matrix else None


def is_straight(both, target):
    """Return whether all matrices that folds go through lie in the same direction."""
    first, second, sizes = both.first, both.second, both.first.sizes
    reads = math.prod(sizes)
    if not both.orders or reads <= target.small:
        return True
    one, other = [[load.place for _, load in part.loads] for part in (first, second)]
    places = one + [load.place for x, load in second.loads if x not in first.made]
    few = few_numbers(reads, target)
    found, *alone = [len(grains(each, sizes, few)) for each in (places, one, other)]
    if found > max(1, *alone):
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
        return set()
    pairs = [(x, a.place, b.place) for (x, a), (_, b) in zip(part.stores, moved.stores)]
    return {
        buffer
        for buffer, old, new in pairs
        if grain(new, moved.sizes, target.near) not in (None, *new.axes[-1:])
        and grain(old, part.sizes, target.near) in old.axes[-1:]
    }
