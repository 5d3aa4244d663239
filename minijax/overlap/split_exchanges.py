"""Exchanges in two steps: one begins them, and one waits until they are done.

Reference: ``MPI_Iallreduce``; XLA's pairs of ``all-reduce-start`` and
``all-reduce-done``.
"""

# Made from chapters/37_machines_rest.md by `make chapter`;
# edit the chapter, not this file.

from collections import Counter

from minijax.kernels.program_steps import StepKind, cost_of_moving, step_kinds
from minijax.teams.exchange_steps import write_call
from minijax.teams.joint_exchanges import (
    JointExchange,
    joined_in_python,
    write_joint_exchange,
)
from minijax.teams.labels import label_for


class ExchangeBegin(JointExchange):
    """A step: begin to fold arrays of one dtype with the replicas along some axes.

    Between it and its `ExchangeEnd` no other step may use what it writes, or write what
    it reads.
    """

    @property
    def label(self):
        """What is exchanged, and that it begins."""
        return f"the beginning of {super().label}"

    def __str__(self):
        return f"begin {super().__str__()}"


class ExchangeEnd(JointExchange):
    """A step: wait for the fold that was begun first among those not waited for."""

    @property
    def label(self):
        """What was exchanged, and that it ends."""
        return f"the end of {super().label}"

    def __str__(self):
        return f"end {' '.join(map(str, self.writes))}"


def write_end(f, step):
    """Write the call that waits; it has no arrays, since the beginning had them."""
    entry = f.emit(f"ptrtoint i8* {f.asked(step.names)} to i64")
    write_call(f, "exchange_folds", [entry, 0, 0, label_for(step)])


step_kinds[ExchangeBegin] = StepKind(
    joined_in_python, cost_of_moving, write_joint_exchange
)
step_kinds[ExchangeEnd] = StepKind(
    lambda program, step: lambda memory: None, lambda step: Counter(), write_end
)
