# Made from chapters/24_machine.md by `make chapter`;
# edit the chapter, not this file.
"""Loops and choices run by Python, step by step: the clear way; and what they cost."""

from collections import Counter
from functools import reduce
from operator import or_

from minijax.kernels.steps import StepKind, cost_of_schedule, step_kinds
from minijax.machine.nested import Branch, Repeat, While


def runner(program, schedule):
    """Return a function of the memory that runs a nested schedule once.

    What it writes besides its outputs is gone when it runs again.
    """
    steps = [program.prepare(step) for step in schedule.steps]
    written = {slot for step in schedule.steps for slot in step.writes}

    def run(memory):
        for slot in written:
            memory.pop(slot, None)
        for step in steps:
            step(memory)
        return [memory[slot] for slot in schedule.outputs]

    return run


def branched(program, step):
    """Return a function of the memory that runs one of several schedules."""
    branches = [runner(program, branch) for branch in step.branches]

    def run(memory):
        [index] = memory[step.index].view(step.index.dtype)
        memory.update(zip(step.results, branches[int(index)](memory)))

    return run


def repeated(program, step):
    """Return a function of the memory that runs a schedule a number of times."""
    body, count = runner(program, step.body), len(step.starts)
    states, rows = step.body.inputs[:count], step.body.inputs[count:]
    numbers = range(step.length)[:: -1 if step.reverse else 1]

    def run(memory):
        memory.update(zip(states, [memory[slot] for slot in step.starts]))
        for number in numbers:
            for x, row in zip(step.xs, rows):
                memory[row] = _row_of(memory[x], number, step.length)
            found = body(memory)
            memory.update(zip(states, found))
            for y, row in zip(step.ys, found[count:]):
                _row_of(memory[y], number, step.length)[:] = row
        memory.update(zip(step.results, [memory[slot] for slot in states]))

    return run


def _row_of(data, number, length):
    size = len(data) // length
    return data[number * size : (number + 1) * size]


def repeated_while(program, step):
    """Return a function of the memory that runs a schedule while a condition holds."""
    test, body = runner(program, step.test), runner(program, step.body)
    states = step.body.inputs

    def run(memory):
        memory.update(zip(states, [memory[slot] for slot in step.starts]))
        while test(memory)[0][0]:
            memory.update(zip(states, body(memory)))
        memory.update(zip(step.results, [memory[slot] for slot in states]))

    return run


def cost_of_repeat(step):
    """Return the costs of a loop: as often those of its body."""
    costs = cost_of_schedule(step.body)
    return Counter({name: step.length * count for name, count in costs.items()})


def cost_of_while(step):
    """Return the costs of one turn of a loop, as the number of turns is not known."""
    return cost_of_schedule(step.test) + cost_of_schedule(step.body)


def cost_of_branch(step):
    """Return, of each cost, that of the branch where it is largest."""
    return reduce(or_, map(cost_of_schedule, step.branches))


step_kinds[Branch] = StepKind(branched, cost_of_branch)
step_kinds[Repeat] = StepKind(repeated, cost_of_repeat)
step_kinds[While] = StepKind(repeated_while, cost_of_while)
