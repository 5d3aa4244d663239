"""Joint exchanges: sums, maxima and minima of several arrays at one meeting.

Reference: gradient bucketing of PyTorch's ``DistributedDataParallel``, and the
``all-reduce-combiner`` of XLA.
"""

# Made from chapters/36_replicas_rest.md by `make chapter`;
# edit the chapter, not this file.

from typing import NamedTuple

import numpy as np

from minijax.batching.collectives import pmax_p, pmin_p, psum_p
from minijax.kernels.backends import as_bytes
from minijax.kernels.program_steps import (
    StepKind,
    cost_of_moving,
    kernel_rules,
    step_kinds,
)
from minijax.mesh_maps.workers import replica_here
from minijax.teams.exchange_steps import (
    COMBINATIONS,
    SIZES,
    Exchange,
    folding,
    write_call,
)
from minijax.teams.labels import label_for


class JointExchange(NamedTuple):
    """A step: fold several arrays with the replicas along some axes, at one meeting.

    Attributes:
      parts: the `Exchange` of each array; all are folds along the same axes.
    """

    parts: tuple

    @property
    def programs(self):
        """The programs within the step: none."""
        return ()

    @property
    def reads(self):
        """The buffers that the step reads."""
        return list(dict.fromkeys(part.x for part in self.parts))

    @property
    def writes(self):
        """The buffers that the step writes to."""
        return [part.out for part in self.parts]

    @property
    def names(self):
        """Who meets: the same for all parts."""
        return self.parts[0].names

    @property
    def line(self):
        """Where the user has asked for the first of them."""
        return self.parts[0].line

    @property
    def label(self):
        """What is exchanged."""
        return "; ".join(part.label for part in self.parts)

    def __str__(self):
        outs, xs = (" ".join(map(str, each)) for each in (self.writes, self.reads))
        how = ", ".join(dict.fromkeys(p.combining.kernel.name for p in self.parts))
        names = "|".join(map(str, self.names))
        return f"{outs} = exchange {xs} along {names}: fold by {how}, together"


MEETS = Exchange, JointExchange


def joining(rule):
    """Return a kernel rule whose exchange joins one before it, where it can."""

    def joined(lowering, eqn, x):
        results = rule(lowering, eqn, x)
        lowering.steps[:] = _with_partner(lowering.steps)
        return results

    return joined


def _with_partner(steps):
    """Return steps whose last one, a fold, has taken in the last meeting before it."""
    *before, last = steps
    read = {*last.reads}
    for i, step in reversed([*enumerate(before)]):
        if type(step) in MEETS:
            parts = step.parts if type(step) is JointExchange else (step,)
            fits = parts[0].how == "fold" and step.names == last.names
            if fits and not read & {*step.writes}:
                joint = JointExchange((*parts, last))
                return [*before[:i], *before[i + 1 :], joint]
            return steps
        if step.programs:  # there may be a meeting in it
            return steps
        read |= {*step.reads}
    return steps


def joined_in_python(program, step):
    """Return a function of the memory that does the step at a `Meeting`."""

    def combine(rows):
        columns = zip(step.parts, zip(*rows))
        return [*zip(*[COMBINATIONS["fold"](*column) for column in columns])]

    def run(memory):
        replica = replica_here(step.names[0])
        meeting = replica.run.meeting(replica.rank, step.names)
        xs = [memory[part.x].view(part.x.dtype) for part in step.parts]
        found = meeting.exchange(replica.rank, step.label, xs, combine)
        for part, x in zip(step.parts, found):
            memory[part.out] = as_bytes(np.array(x))

    return run


def write_joint_exchange(f, step):
    """Write the table of the arrays, and the call of their exchange."""
    entry = f.emit(f"ptrtoint i8* {f.asked(step.names)} to i64")
    count = len(step.parts)
    table = f.in_turn("rows", 48 * count)
    rows = f.first(f"bitcast i8* {table} to i64*", "l")
    for i, part in enumerate(step.parts):
        ends = [f"ptrtoint i8* {f.address(x)} to i64" for x in (part.x, part.out)]
        for j, x in enumerate([*map(f.emit, ends), *SIZES["fold"](f, part)]):
            place = f.emit(f"getelementptr i64, i64* {rows}, i64 {6 * i + j}", "p")
            f.line(f"store i64 {x}, i64* {place}")
    start = f.emit(f"ptrtoint i64* {rows} to i64")
    label = label_for(step)
    write_call(f, "exchange_folds", [entry, start, count, label])


_folds = zip((psum_p, pmax_p, pmin_p), map(folding, ("add", "max", "min")))
kernel_rules.update({primitive: joining(rule) for primitive, rule in _folds})
step_kinds[JointExchange] = StepKind(
    joined_in_python, cost_of_moving, write_joint_exchange
)
