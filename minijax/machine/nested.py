# Made from chapters/21_machine.md by `make chapter`;
# edit the chapter, not this file.
"""Loops as steps: a step with a schedule in it, how it is run, and what it costs.

A nested program has as `inputs` and `outputs` slots whose memory the step hands in
when it runs it; the outputs are distinct, and written inside. What it reads otherwise,
and does not write itself, it has captured from the schedule around it.
"""

from collections import Counter
from typing import NamedTuple

from minijax.kernels.program_steps import LoweredProgram
from minijax.kernels.steps import StepKind, cost_of_program, step_kinds
from minijax.memory.liveness import captured


def text_of_repeat(step):
    """Return a loop as text: its first line, and the steps of its body."""
    order = " backwards" if step.reverse else ""
    head = f"{names_of([*step.results, *step.ys])} = repeat {step.length}{order} "
    return inner_text(head + names_of([*step.starts, *step.xs]), step.programs)


def inner_text(head, schedules):
    """Return the text of a step with schedules in it."""
    return "\n".join([head, *map(_body, schedules)])


def _body(schedule):
    ends = [" ".join(map(str, slots)) for slots in (schedule.inputs, schedule.outputs)]
    lines = [f"in {ends[0]}", *map(str, schedule.steps), f"out {ends[1]}"]
    return "    " + "\n".join(lines).replace("\n", "\n    ")


def names_of(slots):
    """Return the names of slots, as text."""
    return " ".join(slot.name for slot in slots)


class Repeat(NamedTuple):
    """A step: run a schedule a number of times.

    Attributes:
      length: how often.
      reverse: whether rows are taken from the last one to the first.
      body: the `LoweredProgram` of one time, from states and rows of xs to next states
        and rows of ys.
      starts: list of the slots of the states at first; the step overwrites them.
      results: list of the slots of the states in the end.
      xs, ys: lists of the slots whose rows are read, and written.
    """

    length: int
    reverse: bool
    body: LoweredProgram
    starts: list
    results: list
    xs: list
    ys: list

    @property
    def programs(self):
        """The schedules in the step."""
        return (self.body,)

    @property
    def reads(self):
        """The slots that the step reads."""
        return [*self.starts, *self.xs, *captured(self.body)]

    @property
    def writes(self):
        """The slots that the step writes to."""
        return [*self.starts, *self.results, *self.ys]

    def with_programs(self, new):  # the step with another body
        return self._replace(body=new[0])

    def __str__(self):
        return text_of_repeat(self)


def runner(program, schedule):
    """Return a function of the memory that runs a nested program once.

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


def cost_of_repeat(step):
    """Return the costs of a loop: as often those of its body."""
    costs = cost_of_program(step.body)
    return Counter({name: step.length * count for name, count in costs.items()})


step_kinds[Repeat] = StepKind(repeated, cost_of_repeat)
