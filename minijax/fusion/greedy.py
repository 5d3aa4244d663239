"""Greedy loop fusion: each consumer takes in the producers of its operands."""

# Made from chapters/19_fusion.md by `make chapter`;
# edit the chapter, not this file.

import math
from typing import NamedTuple

from minijax.fusion.merging import (
    FusionCandidate,
    delinearize_in_bounds,
    extent_product,
    fused_launch,
    fusion_group_of,
    is_bitcastable,
    split_loop_axis,
)
from minijax.kernels.builder import compose_place, identity_map
from minijax.kernels.lowering import Launch
from minijax.llvm.targets import current_target


def feeds(producer, consumer):
    """Return whether two steps are launches, and the second reads from the first."""
    launches = isinstance(producer, Launch) and isinstance(consumer, Launch)
    return launches and not {*producer.writes}.isdisjoint(consumer.reads)


def may_reorder(producer, between, others):
    """Return whether a launch may run after the steps in between."""
    made, read = {*producer.writes}, {*producer.reads}
    needed_before = any(not made.isdisjoint(step.reads) for step in between)
    overwritten = any(not read.isdisjoint(step.writes) for step in between)
    in_pieces = any(not made.isdisjoint(step.writes) for step in others)
    return not (needed_before or overwritten or in_pieces)


def fused_by(substitute, program, target):
    """Return a program in which consumers have taken in their producers.

    Args:
      substitute: a function of a producer, a consumer, the buffers that other steps
        read, and a target, which returns the launch of both, or None.
      program: a `LoweredProgram`.
      target: the `Target`.
    """
    steps = dict(enumerate(program.steps))
    for consumer in [*steps]:
        for producer in [number for number in steps if number < consumer]:
            if feeds(steps[producer], steps[consumer]):
                pair = producer, consumer
                both = one_launch(substitute, steps, pair, program.outputs, target)
                if both:
                    steps[consumer] = both
                    del steps[producer]
    return program._replace(steps=[*steps.values()])


def one_launch(substitute, steps, pair, outputs, target):
    """Return what is substituted for a pair of steps, by their numbers, or None."""
    others = {number: step for number, step in steps.items() if number not in pair}
    between = [step for n, step in others.items() if pair[0] < n < pair[1]]
    if not may_reorder(steps[pair[0]], between, others.values()):
        return None
    wanted = {*outputs}.union(*[step.reads for step in others.values()])
    return substitute(steps[pair[0]], steps[pair[1]], wanted, target)


# Common loops: loops in which two parts can be one, and what they share there.


def seen(indices, maps, rank):
    """Return indices along so many other axes; None for None."""
    return tuple([at and compose_place(at, maps, rank) for at in indices])


def _agree(maps, found):
    """Return whether two lists of indices can be one, and no axis serves twice."""
    if any(a and b and a != b for a, b in zip(maps, found)):
        return False
    axes = [axis for a, b in zip(maps, found) if a or b for axis in (a or b).axes]
    return len(axes) == len(set(axes))


def add_broadcast_loops(limits, home, maps, sizes):
    """Return indices and sizes with a loop for each axis of which no place tells.

    It is a loop of the same size along which the first part does not go yet, the
    innermost one; or a new one, outside of those of the axes that follow.

    Args:
      limits: the sizes of the loops of the first part.
      home: its digits, an index for each of its loops, or None.
      maps: the same for the loops of the second part, which a new loop moves as well.
      sizes: the sizes of the loops of the second part.
    """
    for axis in reversed([axis for axis, at in enumerate(home) if at is None]):
        used = {loop for at in home if at for loop in at.axes}
        same = [loop for loop, size in enumerate(sizes) if size == limits[axis]]
        free = [loop for loop in same if loop not in used]
        inner = [loop for at in home[axis:] if at for loop in at.axes]
        loop = free[-1] if free else min(inner, default=len(sizes))
        if not free:
            sizes = (*sizes[:loop], limits[axis], *sizes[loop:])
            others = [x for x in identity_map(len(sizes)) if not x.strides[loop]]
            home, maps = [seen(x, (*others,), len(sizes)) for x in (home, maps)]
        home = (*home[:axis], identity_map(len(sizes))[loop], *home[axis + 1 :])
    return home, maps, sizes


class ProducerConsumerEdge(NamedTuple):
    """An element that two parts have to do with.

    Attributes:
      buffer: in which it is.
      store: the `Store` of the first part, or its `Load` if both read it.
      load: the `Load` of the second part.
    """

    buffer: object
    store: object
    load: object

    @property
    def is_identity(self):
        """Whether the element is read where it was made."""
        return self.store.place == self.load.place and not self.load.guards


def producer_consumer_edges(first, second):
    """Return the links from the first to the second part; None if one is broken."""
    found = []
    for node, buffer in second.sources.items():
        if buffer in first.made:
            read = node.detail
            made = [x for x in first.made[buffer] if _match(x, read)]
            if not made or read.terms:
                return None
            found.append(ProducerConsumerEdge(buffer, made[0], read))
    return found


def _match(store, read):
    """Return whether what is stored can be what is read."""
    meet = store.place == read.place or _may_alias(store.place, read.place)
    return meet and is_bitcastable(store.parameter.dtype, read.parameter.dtype)


def _may_alias(made, place):
    """Return whether two places can be one: real parts never are imaginary ones."""
    gap = abs(place.offset - made.offset)
    return not gap or not gap % (math.gcd(*place.strides, *made.strides) or gap + 1)


def _as_many(made, first_sizes, read, second_sizes):
    """Return whether two places have equally many numbers, and each number once.

    A window that overlaps may read as many as the array has, some of them twice.
    """
    pairs = (made, first_sizes), (read, second_sizes)
    counts = {extent_product(sizes, place.axes) for place, sizes in pairs}
    apart = made == read or all(_apart(place, sizes) for place, sizes in pairs)
    return len(counts) == 1 and apart


def _apart(place, sizes):
    """Return whether a place surely never is the same number for two indices."""
    reach = 0
    for step, axis in sorted([(abs(place.strides[k]), k) for k in place.axes]):
        if step <= reach:
            return False
        reach += step * (sizes[axis] - 1)
    return True


def fuse_different_loops(first, second, home, maps, sizes):
    """Return the `FusionCandidate` of parts in other loops, by their indices there."""
    first, second = first.along(home, sizes), second.along(maps, sizes)
    return FusionCandidate(first, second, producer_consumer_edges(first, second))


def align_loops(first, second, places):
    """Return the indices of two parts in the loops of the second, and their sizes.

    A loop is split where that is needed. Indices are None along axes of the first part
    of which no pair of places tells. If there are no such loops, the result is None.
    """
    met, home = False, (None,) * len(first.sizes)
    maps, sizes = identity_map(len(second.sizes)), second.sizes
    for made, read in places:
        cut = _as_many(made, first.sizes, read, second.sizes)
        while cut:
            place = compose_place(read, maps, len(sizes))
            found, cut = delinearize_in_bounds(place, sizes, made, first.sizes)
            if cut:
                split, sizes = split_loop_axis(cut[0], cut[1], sizes)
                home, maps = [seen(x, split, len(sizes)) for x in (home, maps)]
            elif found is not None and _agree(home, found):
                met, home = True, tuple([a or b for a, b in zip(home, found)])
    solid = [home[axis] for axis in first.unsplittable_axes] + [
        maps[axis] for axis in second.unsplittable_axes
    ]
    whole = {*solid}.issubset((None, *identity_map(len(sizes))))
    return (home, maps, sizes) if met and whole else None


def fuse_in_common_loops(first, second, links):
    """Return two parts in the same loops, a `FusionCandidate`; or None.

    The loops are those of the second part, or of the first if that goes along more
    indices; they are split, or more of them, where the other part needs that.
    """
    plain = [link.is_identity and all(link.store.place.strides) for link in links]
    if plain and all(plain) and first.sizes == second.sizes:
        return FusionCandidate(
            first, second, [x for x in links if x.buffer in first.made]
        )
    # The first of a pair goes into the loops of the second. If the producer has more
    # indices, the two change roles: turn is -1, and what has two sides is turned round.
    pair, turn = (first, second), 1
    if math.prod(first.sizes) > math.prod(second.sizes):
        pair, turn = (second, first), -1
    told = [(x.store.place, x.load.place)[::turn] for x in links if not x.load.guards]
    found = align_loops(*pair, told)
    if found is None:
        return None
    home, maps, sizes = add_broadcast_loops(pair[0].sizes, *found)
    home, maps = (home, maps)[::turn]
    return fuse_different_loops(first, second, home, maps, sizes)


def fusion_pair(producer, consumer):
    """Return the parts of two launches, and both in common loops; None without such."""
    first, second = fusion_group_of(producer), fusion_group_of(consumer)
    links = first and second and producer_consumer_edges(first, second)
    both = fuse_in_common_loops(first, second, links) if links else None
    return both and (first, second, both)


def objections(first, second, both, target):
    """Return what speaks against one kernel of two parts: a list of texts.

    Parts know the axes that they fold, by buffers (`folding`), and how many operations
    they have (`ops`). The `axis_orders` of a candidate are pairs of loops, of which the
    first should be outside. `extent_product` counts the numbers along some axes.
    """
    sizes, ops = both.producer.sizes, first.ops + second.ops
    made, read, loops = map(math.prod, (first.sizes, second.sizes, sizes))
    row = extent_product(
        sizes, set().union(*both.producer.folding(both.producer.made).values())
    )
    near = both.cache_elements(target)
    checks = {
        f"{made} and {read} indices, and {loops} in common": not made == read == loops,
        f"{row} numbers walked again, {near} stay near": row > near,
        f"{ops} operations, at most {target.max_fused_ops}": ops > target.max_fused_ops,
    }
    for link in both.edges:
        places = f"made at {link.store.place}, read at {link.load.place}"
        checks[places] = not link.is_identity
    for outer, inner in both.axis_orders:
        checks[f"loop {outer} should be outside of loop {inner}"] = outer >= inner
    return [text for text, against in checks.items() if against]


def substitute_producer(producer, consumer, wanted, target):
    """Return the launch of both in the loops of the consumer, or None.

    It is None if there are no such loops, or if anything speaks against one kernel.
    """
    found = fusion_pair(producer, consumer)
    if not found:
        return None
    first, second, both = found
    refused = objections(first, second, both, target)
    return None if refused else fused_launch(both.as_group(), wanted)


def fuse_greedily(program, target=None):
    """Return a program of the same results with fewer kernels.

    Args:
      program: a `LoweredProgram`.
      target: the `Target` that says how long a row may be, by default the current one.
    """
    target, steps = target or current_target(), []
    for step in program.steps:
        inner = [fuse_greedily(each, target) for each in step.programs]
        steps.append(step.with_programs(inner) if inner else step)
    return fused_by(substitute_producer, program._replace(steps=steps), target)
