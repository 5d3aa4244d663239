"""Greedy loop fusion: each consumer takes in the producers of its operands."""

# Made from chapters/19_fusion.md by `make chapter`;
# edit the chapter, not this file.

import math

from minijax.fusion.index_maps import elements
from minijax.fusion.loops import common_loops, links_between
from minijax.fusion.merging import merged
from minijax.fusion.parts import part_of
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


def paired(producer, consumer):
    """Return the parts of two launches, and both in common loops; None without such."""
    first, second = part_of(producer), part_of(consumer)
    links = first and second and links_between(first, second)
    both = common_loops(first, second, links) if links else None
    return both and (first, second, both)


def objections(first, second, both, target):
    """Return what speaks against one kernel of two parts: a list of texts."""
    sizes, ops = both.first.sizes, first.ops + second.ops
    made, read, loops = map(math.prod, (first.sizes, second.sizes, sizes))
    row = elements(sizes, set().union(*both.first.folding(both.first.made).values()))
    near = both.near(target)
    checks = {
        f"{made} and {read} indices, and {loops} in common": not made == read == loops,
        f"{row} numbers walked again, {near} stay near": row > near,
        f"{ops} operations, wide is {target.wide}": ops > target.wide,
    }
    for link in both.links:
        places = f"made at {link.made.place}, read at {link.read.place}"
        checks[places] = not link.is_plain
    for outer, inner in both.orders:
        checks[f"loop {outer} should be outside of loop {inner}"] = outer >= inner
    return [text for text, against in checks.items() if against]


def substituted(producer, consumer, wanted, target):
    """Return the launch of both in the loops of the consumer, or None.

    It is None if there are no such loops, or if anything speaks against one kernel.
    """
    found = paired(producer, consumer)
    if not found:
        return None
    first, second, both = found
    refused = objections(first, second, both, target)
    return None if refused else merged(both.part(), wanted)


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
