"""Loops as steps: a step with a program in it, how it is run, and what it costs.

A nested program has as `inputs` and `outputs` buffers whose memory the step hands in
when it runs it; the outputs are distinct, and written inside. What it reads otherwise,
and does not write itself, it has captured from the program around it.
"""

# Made from chapters/21_machine_ground.md by `make chapter`;
# edit the chapter, not this file.

from collections import Counter
from typing import NamedTuple

from minijax.kernels.program_steps import (
    LoweredProgram,
    StepKind,
    cost_of_program,
    step_kinds,
)
from minijax.memory.liveness import captured


def runner(program, inner):
    """Return a function of the memory that runs a nested program once.

    What it writes besides its outputs is gone when it runs again.
    """
    steps = [program.prepare(step) for step in inner.steps]
    written = {buffer for step in inner.steps for buffer in step.writes}

    def run(memory):
        for buffer in written:
            memory.pop(buffer, None)
        for step in steps:
            step(memory)
        return [memory[buffer] for buffer in inner.outputs]

    return run


def repeated(program, step):
    """Return a function of the memory that runs a program a number of times."""
    body, count = runner(program, step.body), len(step.starts)
    states, rows = step.body.inputs[:count], step.body.inputs[count:]
    numbers = range(step.length)[:: -1 if step.reverse else 1]

    def run(memory):
        memory.update(zip(states, [memory[buffer] for buffer in step.starts]))
        for number in numbers:
            for x, row in zip(step.xs, rows):
                memory[row] = _row_of(memory[x], number, step.length)
            found = body(memory)
            memory.update(zip(states, found))
            for y, row in zip(step.ys, found[count:]):
                _row_of(memory[y], number, step.length)[:] = row
        memory.update(zip(step.results, [memory[buffer] for buffer in states]))

    return run


def _row_of(data, number, length):
    size = len(data) // length
    return data[number * size : (number + 1) * size]


def cost_of_repeat(step):
    """Return the costs of a loop: as often those of its body."""
    costs = cost_of_program(step.body)
    return Counter({name: step.length * count for name, count in costs.items()})


def text_of_repeat(step):
    """Return a loop as text: its first line, and the steps of its body."""
    order = " backwards" if step.reverse else ""
    head = f"{buffer_names([*step.results, *step.ys])} = repeat {step.length}{order} "
    return inner_text(head + buffer_names([*step.starts, *step.xs]), step.programs)


def inner_text(head, programs):
    """Return the text of a step with programs in it."""
    return "\n".join([head, *map(_body, programs)])


def _body(program):
    ends = [" ".join(map(str, each)) for each in (program.inputs, program.outputs)]
    lines = [f"in {ends[0]}", *map(str, program.steps), f"out {ends[1]}"]
    return "    " + "\n".join(lines).replace("\n", "\n    ")


def buffer_names(buffers):
    """Return the names of buffers, as text."""
    return " ".join(buffer.name for buffer in buffers)


class Repeat(NamedTuple):
    """A step: run a program a number of times.

    Attributes:
      length: how often.
      reverse: whether rows are taken from the last one to the first.
      body: the `LoweredProgram` of one time, from states and rows of xs to next states
        and rows of ys.
      starts: list of the buffers of the states at first; the step overwrites them.
      results: list of the buffers of the states in the end.
      xs, ys: lists of the buffers whose rows are read, and written.
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
        """The programs in the step."""
        return (self.body,)

    @property
    def reads(self):
        """The buffers that the step reads."""
        return [*self.starts, *self.xs, *captured(self.body)]

    @property
    def writes(self):
        """The buffers that the step writes to."""
        return [*self.starts, *self.results, *self.ys]

    def with_programs(self, new):  # the step with another body
        return self._replace(body=new[0])

    def __str__(self):
        return text_of_repeat(self)


step_kinds[Repeat] = StepKind(repeated, cost_of_repeat)
