# Made from chapters/19_fusion.md by `make chapter`;
# edit the chapter, not this file.
"""Greedy loop fusion: each consumer takes in the producers of its operands."""

import math

from minijax.fusion.index_maps import indices, split_axis
from minijax.fusion.merging import merged
from minijax.fusion.parts import elements, joined, part_of, unit
from minijax.kernels.program_steps import Launch
from minijax.llvm.targets import current_target


def feeds(producer, consumer):
    """Return whether two steps are launches, and the second reads from the first."""
    launches = isinstance(producer, Launch) and isinstance(consumer, Launch)
    return launches and not {*producer.writes}.isdisjoint(consumer.reads)


def may_wait(producer, between, others):
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
    if not may_wait(steps[pair[0]], between, others.values()):
        return None
    wanted = {*outputs}.union(*[step.reads for step in others.values()])
    return substitute(steps[pair[0]], steps[pair[1]], wanted, target)


def walked_again(found, limits, sizes):
    """Return indices with a loop of the same size for each axis that was folded."""
    found, index_along = [*found], unit(len(sizes))
    used = {axis for at in found if at is not None for axis in at.axes}
    for folded in [axis for axis, at in enumerate(found) if at is None]:
        same = [axis for axis, size in enumerate(sizes) if size == limits[folded]]
        free = [axis for axis in same if axis not in used]
        if not free:
            return None
        innermost = free[-1]
        found[folded] = index_along[innermost]
        used.add(innermost)
    return tuple(found)


def handovers(producer, consumer):
    """Return what a part loads of another one: pairs of a `Load` and its `Store`."""
    loads = [(buffer, x) for buffer, x in consumer.loads if buffer in producer.made]
    return [(x, producer.made[buffer][0]) for buffer, x in loads]


def is_plain(read, store):
    """Return whether an element is read as what it was stored, and always there."""
    return store.parameter.dtype == read.parameter.dtype and not read.guards


def common_loops(producer, consumer):
    """Return where the consumer's loops find all that the producer makes, or None.

    Returns:
      The index along each loop of the producer, in the loops of the consumer; and the
      consumer, of which an axis may be split in two. None if there are no such indices.
    """
    asked, sizes = set(), consumer.sizes
    for read, store in handovers(producer, consumer):
        found, cut = indices(read.place, sizes, store.place, producer.sizes)
        if cut:
            axis, inner = cut
            split = consumer.along(*split_axis(axis, inner, sizes))
            return common_loops(producer, split)
        fits = found is not None and is_plain(read, store)
        asked.add(walked_again(found, producer.sizes, sizes) if fits else None)
    agreed = len(asked) == 1 and None not in asked
    return (asked.pop(), consumer) if agreed else None


def paired(producer, consumer):
    """Return a producer, the same in its consumer's loops, and both; None if it fails.

    All three are parts of launches.
    """
    first, second = part_of(producer), part_of(consumer)
    found = first and second and common_loops(first, second)
    if not found:
        return None
    at, second = found
    moved = first.along(at, second.sizes)
    return first, moved, joined(moved, second)


def objections(first, moved, both, target):
    """Return what speaks against one kernel of the parts of a pair: a list of texts."""
    made, wanted = math.prod(first.sizes), math.prod(both.sizes)
    row = elements(both.sizes, set().union(*moved.folding.values()))
    checks = {
        f"{made} indices, and not {wanted}": made != wanted,
        f"{row} numbers walked again, {target.near} stay near": row > target.near,
        f"{both.ops} operations, wide is {target.wide}": both.ops > target.wide,
    }
    for outer, inner in both.orders:
        checks[f"loop {outer} should be outside of loop {inner}"] = outer >= inner
    return [text for text, against in checks.items() if against]


def substituted(producer, consumer, wanted, target):
    """Return the launch of both in the loops of the consumer, or None.

    It is None if there are no such loops, or if anything speaks against one kernel.
    """
    parts = paired(producer, consumer)
    if parts is None:
        return None
    first, moved, both = parts
    refused = objections(first, moved, both, target)
    return None if refused else merged(both, wanted)


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
    return fused_by(substituted, program._replace(steps=steps), target)
