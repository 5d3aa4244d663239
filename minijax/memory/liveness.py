"""Liveness analysis: from when until when the buffers of a program are needed."""

# Made from chapters/20_memory.md by `make chapter`;
# edit the chapter, not this file.

from typing import NamedTuple


class Lifetime(NamedTuple):
    """The steps between which a buffer holds something that is needed.

    Attributes:
      start: number of the step that first writes to it; -1 if it is there before all.
      end: number of the last step that uses it; the number of steps if it has to be
        there after all.
    """

    start: int
    end: int


def lifetimes(program):
    """Return the `Lifetime` of each buffer of a program.

    Those of the programs within its steps have lifetimes of their own.
    """
    given = [*program.inputs, *[buffer for buffer, _ in program.constants]]
    found = dict.fromkeys(given, Lifetime(-1, -1))
    for number, step in enumerate(program.steps):
        for buffer in [*step.reads, *step.writes]:
            first = found.get(buffer, Lifetime(number, number))
            found[buffer] = first._replace(end=number)
    for buffer in program.outputs:
        first = found.get(buffer, Lifetime(-1, -1))
        found[buffer] = first._replace(end=len(program.steps))
    return found


def captured(program):
    """Return the buffers of others that a program within a step reads."""
    own = {*program.inputs, *[buffer for buffer, _ in program.constants]}
    own.update(buffer for step in program.steps for buffer in step.writes)
    used = [buffer for step in program.steps for buffer in step.reads]
    return [buffer for buffer in dict.fromkeys(used) if buffer not in own]


def temporaries(program):
    """Return the buffers that are neither inputs, nor constants, nor outputs."""
    known = {*program.inputs, *program.outputs, *captured(program)}
    known.update(buffer for buffer, _ in program.constants)
    return [buffer for buffer in lifetimes(program) if buffer not in known]
