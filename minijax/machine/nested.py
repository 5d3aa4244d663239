# Made from chapters/24_machine.md by `make chapter`;
# edit the chapter, not this file.
"""Nested schedules: loops and choices as steps, with schedules in them.

A nested schedule has as `inputs` and `outputs` slots whose memory the step hands in
when it runs it; the outputs are distinct, and written inside. What it reads otherwise,
and does not write itself, it has captured from the schedule around it.
"""

from typing import NamedTuple

from minijax.kernels.layouts import Slot
from minijax.kernels.program_steps import Schedule


def captured(schedule):
    """Return the slots that a nested schedule reads from around it."""
    own = {*schedule.inputs}
    own.update(slot for step in schedule.steps for slot in step.writes)
    read = [slot for step in schedule.steps for slot in step.reads]
    return [slot for slot in dict.fromkeys(read) if slot not in own]


def _indented(head, schedules):
    return "\n".join([head, *map(_body, schedules)])


def _body(schedule):
    ends = [" ".join(map(str, slots)) for slots in (schedule.inputs, schedule.outputs)]
    lines = [f"in {ends[0]}", *map(str, schedule.steps), f"out {ends[1]}"]
    return "    " + "\n".join(lines).replace("\n", "\n    ")


def _names(slots):
    return " ".join(slot.name for slot in slots)


class Branch(NamedTuple):
    """A step: run one of several schedules.

    Attributes:
      index: the slot of the number of the branch.
      branches: list of `Schedule`, without inputs.
      results: list of the slots that their outputs are.
    """

    index: Slot
    branches: list
    results: list

    @property
    def schedules(self):
        """The schedules in the step."""
        return tuple(self.branches)

    @property
    def writes(self):
        """The slots that the step writes to."""
        return self.results

    @property
    def reads(self):
        """The slots that the step reads."""
        inside = [slot for branch in self.branches for slot in captured(branch)]
        return [self.index, *inside]

    def with_schedules(self, new):
        """Return the step with other schedules in it."""
        return self._replace(branches=list(new))

    def __str__(self):
        return _indented(
            f"{_names(self.results)} = branch {self.index.name}", self.branches
        )


class Repeat(NamedTuple):
    """A step: run a schedule a number of times.

    Attributes:
      length: how often.
      reverse: whether rows are taken from the last one to the first.
      body: the `Schedule` of one time; from states and rows of xs to the next states
        and rows of ys.
      starts: list of the slots of the states at first; the step overwrites them.
      results: list of the slots of the states in the end.
      xs, ys: lists of the slots whose rows are read, and written.
    """

    length: int
    reverse: bool
    body: Schedule
    starts: list
    results: list
    xs: list
    ys: list

    @property
    def schedules(self):
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

    def with_schedules(self, new):
        """Return the step with another schedule in it."""
        return self._replace(body=new[0])

    def __str__(self):
        order = " backwards" if self.reverse else ""
        head = f"{_names([*self.results, *self.ys])} = repeat {self.length}{order} "
        return _indented(head + _names([*self.starts, *self.xs]), self.schedules)


class While(NamedTuple):
    """A step: run a schedule as long as another one says so.

    Attributes:
      test: a `Schedule` from states to a bool.
      body: a `Schedule` from states to the next states.
      starts: list of the slots of the states at first; the step overwrites them.
      results: list of the slots of the states in the end.
    """

    test: Schedule
    body: Schedule
    starts: list
    results: list

    @property
    def schedules(self):
        """The schedules in the step."""
        return self.test, self.body

    @property
    def writes(self):
        """The slots that the step writes to."""
        return [*self.starts, *self.results]

    @property
    def reads(self):
        """The slots that the step reads."""
        inside = [slot for part in self.schedules for slot in captured(part)]
        return [*self.starts, *inside]

    def with_schedules(self, new):
        """Return the step with other schedules in it."""
        return self._replace(test=new[0], body=new[1])

    def __str__(self):
        head = f"{_names(self.results)} = while {_names(self.starts)}"
        return _indented(head, self.schedules)
