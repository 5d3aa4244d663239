# Made from chapters/20_memory.md by `make chapter`;
# edit the chapter, not this file.
"""Liveness analysis: from when until when the slots of a schedule are needed."""

from typing import NamedTuple


class Lifetime(NamedTuple):
    """The steps between which a slot holds something that is needed.

    Attributes:
      start: number of the step that first writes to it; -1 if it is there before all.
      end: number of the last step that uses it; the number of steps if it has to be
        there after all.
    """

    start: int
    end: int


def lifetimes(schedule):
    """Return the `Lifetime` of each slot of a schedule.

    Those of the schedules within its steps have lifetimes of their own.
    """
    given = [*schedule.inputs, *[slot for slot, _ in schedule.constants]]
    found = dict.fromkeys(given, Lifetime(-1, -1))
    for number, step in enumerate(schedule.steps):
        for slot in [*step.reads, *step.writes]:
            first = found.get(slot, Lifetime(number, number))
            found[slot] = first._replace(end=number)
    for slot in schedule.outputs:
        first = found.get(slot, Lifetime(-1, -1))
        found[slot] = first._replace(end=len(schedule.steps))
    return found


def captured(schedule):
    """Return the slots of others that a schedule within a step reads."""
    own = {*schedule.inputs, *[slot for slot, _ in schedule.constants]}
    own.update(slot for step in schedule.steps for slot in step.writes)
    used = [slot for step in schedule.steps for slot in step.reads]
    return [slot for slot in dict.fromkeys(used) if slot not in own]


def temporaries(schedule):
    """Return the slots that are neither inputs, nor constants, nor outputs."""
    known = {*schedule.inputs, *schedule.outputs, *captured(schedule)}
    known.update(slot for slot, _ in schedule.constants)
    return [slot for slot in lifetimes(schedule) if slot not in known]
