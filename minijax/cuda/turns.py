"""Loops and branches that the host drives, whose states lie in two places in turn."""

# Made from chapters/35_device_ground.md by `make chapter`;
# edit the chapter, not this file.

from typing import NamedTuple

from minijax.arrays.placement import host_device
from minijax.cuda.cublas import library_calls
from minijax.cuda.driver import Answers
from minijax.cuda.launched_steps import launched
from minijax.jitting.compilation import on_device_of
from minijax.jitting.costs import BYTES, FLOPS
from minijax.kernels.backends import Memory
from minijax.kernels.program_steps import cost_of_program, step_kinds
from minijax.machine.choices import Branch, While
from minijax.machine.nested import Repeat

LONGEST = 1024  # launches of a loop that is recorded as a whole
EARLY = {BYTES: 2**24, FLOPS: 2**28}  # of a turn that may be one too many


class HandOver(NamedTuple):
    """A step: what a turn has made are the states from now on.

    Attributes:
      made, states: lists of buffers.
    """

    made: list
    states: list
    programs: tuple = ()
    writes: tuple = ()

    @property
    def reads(self):
        """What has been made: a graph of what follows has its addresses."""
        return self.made


def handed_over(program, step):
    """Return a function of the memory that hands the states over."""

    def do(memory):
        memory.update(zip(step.states, [memory[x] for x in step.made]))

    return do


def launches_of(program, step):
    """Return how many launches a step is; None if the host has a part in it."""
    if type(step) is HandOver:
        return 0
    if type(step) is not Repeat:
        return 1 if program.is_launched(step) else None
    counts = [launches_of(program, each) for each in step.body.steps]
    count = None if None in counts else step.length * sum(counts)
    return count if count is not None and count <= LONGEST else None


def places(memory, buffers):
    """Return the bytes of buffers, a list."""
    return [memory[buffer] for buffer in buffers]


def settle(memory, step, here):
    """Copy the last states to the results of a loop, if they are not there."""
    for result, data in zip(places(memory, step.results), here):
        result[:] = data


def row_of(whole, number, length):
    """Return the bytes of a row."""
    size = len(whole) // length
    return whole[number * size : (number + 1) * size]


def in_turns(program, step):
    """Return a function of the memory that does a `Repeat`."""
    body, count = step.body, len(step.starts)
    rows = [*zip(step.xs, body.inputs[count:]), *zip(step.ys, body.outputs[count:])]
    whole = launches_of(program, step) is not None
    alone = whole or rows  # recorded with what is around it, or never the same
    acts = list(map(program.prepare, body.steps)) if alone else []
    acts = acts or program.series(body.steps)
    numbers = range(step.length)[:: -1 if step.reverse else 1]

    def run(memory):
        here, there = places(memory, step.starts), places(memory, step.results)
        wholes = [(memory[x], row) for x, row in rows]
        for number in numbers:
            memory.update(zip(body.inputs, here))
            memory.update(zip(body.outputs, there))
            memory.update([(y, row_of(x, number, step.length)) for x, y in wholes])
            for act in acts:
                act(memory)
            here, there = there, here
        settle(memory, step, here)

    return run


def may_go_ahead(program, step):
    """Return whether a turn of a `While` may be done before its answer is known."""
    inside = [x for each in step.programs for x in each.walk()]
    loops = [getattr(each, "loop", each) for each in inside]
    counts = [launches_of(program, each) for each in inside]
    costs = cost_of_program(step.body)
    return (
        None not in counts
        and not any(getattr(each, "open_ended", False) for each in loops)
        and all(costs[name] <= most for name, most in EARLY.items())
    )


def while_in_turns(program, step):
    """Return a function of the memory that does a `While`."""
    states, made, [going] = step.body.inputs, step.body.outputs, step.test.outputs
    first = program.series(step.test.steps)
    hand_over = HandOver(made, states)
    acts = program.series([*step.body.steps, hand_over, *step.test.steps])
    early, pool = may_go_ahead(program, step), program.card.answers

    def run(memory):
        here, there = places(memory, step.starts), places(memory, step.results)
        answers = pool.pop() if pool else Answers(program.card)

        def do(acts):
            for act in acts:
                act(memory)
            answers.ask(memory[going].address)

        def turn():
            memory.update(zip(states, here))
            memory.update(zip(made, there))
            do(acts)

        memory.update(zip(states, here))
        do(first)
        while True:
            if early:
                turn()
            if not answers.answer():
                break
            if not early:
                turn()
            here, there = there, here
        answers.close()
        settle(memory, step, here)

    return run


def chosen(program, step):
    """Return a function of the memory that does a `Branch`; it waits for the number."""
    branches = [program.series(branch.steps) for branch in step.branches]

    def run(memory):
        [index] = memory[step.index].view(step.index.dtype)
        results = places(memory, step.results)
        memory.update(zip(step.branches[index].outputs, results))
        for act in branches[index]:
            act(memory)

    return run


def on_the_host(program, step):
    """Return a function of the memory that has the host do a step, on copies."""
    run = step_kinds[type(step)].run(program, step)

    def do(memory):
        copies = Memory({x: memory[x].fetch() for x in step.reads})
        with on_device_of(host_device().uncommitted):
            run(copies)
        for x in step.writes:
            memory[x].fill(copies[x])

    return do


# From types of steps to functions of a program and a step that return a function of
# the memory; the host does its part in each.
by_the_host = {
    Repeat: in_turns,
    While: while_in_turns,
    Branch: chosen,
    HandOver: handed_over,
}


def prepared(program, step):
    """Return a function of the memory that does a step of a program."""
    if id(step) in program.launches:
        return launched(program, program.launches[id(step)])
    if type(step) in library_calls:
        return library_calls[type(step)](program, step)
    if type(step) in by_the_host:
        return by_the_host[type(step)](program, step)
    return on_the_host(program, step)


class CardSteps:
    """The steps of a program as work for a card, and for the host."""

    def prepare(self, step):
        """Return a function of the memory that does a step."""
        return prepared(self, step)

    def series(self, steps):
        """Return functions of the memory that do steps, one after the other."""
        return list(map(self.prepare, steps))

    def is_launched(self, step):
        """Return whether a step is work for the card alone."""
        return id(step) in self.launches or type(step) in library_calls

    def start(self, memory):
        """Go through the steps; what is the card's work is done later."""
        for step in self.steps:
            step(memory)
