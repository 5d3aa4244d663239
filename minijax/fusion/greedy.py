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


def common_loops(first, second):
    """Return two parts in the loops of the second, of which axes may be split in two;
    None if there are no indices at which the first makes all that is read, each once.

    Args:
      first, second: parts, of which the second reads what the first makes.
    """
    found, sizes = set(), second.sizes
    for buffer, read in [x for x in second.loads if x[0] in first.made]:
        store = first.made[buffer][0]
        maps, cut = indices(read.place, sizes, store.place, first.sizes)
        if cut:
            split = split_axis(cut[0], cut[1], sizes)
            return common_loops(first, second.along(*split))
        same_dtype = store.parameter.dtype == read.parameter.dtype
        is_plain = maps is not None and same_dtype and not read.guards
        found.add(walked_again(maps, first.sizes, sizes) if is_plain else None)
    agreed = len(found) == 1 and None not in found
    return (first.along(found.pop(), sizes), second) if agreed else None


def walked_again(maps, limits, sizes):
    """Return indices with a loop of the same size for each axis that was folded."""
    maps, used = [*maps], {axis for at in maps if at for axis in at.axes}
    for axis in [axis for axis, at in enumerate(maps) if at is None]:
        free = [k for k, n in enumerate(sizes) if n == limits[axis] and k not in used]
        if not free:
            return None
        maps[axis] = unit(len(sizes))[free[-1]]
        used.add(free[-1])
    return tuple(maps)


def substituted(producer, consumer, wanted, target):
    """Return the launch of two in the loops of the consumer; None if that cannot be, or
    if a row that is walked again is too long."""
    first, second = part_of(producer), part_of(consumer)
    found = first and second and common_loops(first, second)
    if not found or math.prod(first.sizes) != math.prod(second.sizes):
        return None
    both = joined(*found)
    folded = frozenset().union(*found[0].folding.values())
    is_near = elements(both.sizes, folded) <= target.near
    in_order = all(outer < inner for outer, inner in both.orders)
    good = is_near and in_order and both.ops <= target.wide
    return merged(both, wanted) if good else None


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
