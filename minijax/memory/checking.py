"""A check of memory plans: nothing is written over while a step needs it."""

# Made from chapters/20_memory_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax.jitting.costs import nbytes
from minijax.memory.arenas import ALIGNMENT
from minijax.memory.in_place import may_overwrite
from minijax.memory.liveness import captured, lifetimes
from minijax.memory.places import Place


class PlanError(TypeError):
    """A plan under which a program would read what is not there."""


class Contents:
    """Which buffers are found in memory at a moment, and where.

    Attributes:
      plan: a `MemoryPlan`.
      found: from buffers to stretches: what they are part of, where they start and end.
    """

    def __init__(self, plan):
        self.plan, self.found = plan, {}
        program = plan.program
        for buffer in [*program.inputs, *[buffer for buffer, _ in program.constants]]:
            self.found[buffer] = self.stretch(buffer)
        self.outside = {*captured(program)}

    def stretch(self, buffer):
        """Return the memory of a buffer."""
        if buffer not in self.plan.places:
            return buffer, 0, nbytes(buffer)
        kind, number = self.plan.places[buffer]
        if kind == "arena":
            return self.in_arena(number, nbytes(buffer), buffer)
        return self.plan.places[buffer], 0, nbytes(buffer)

    def in_arena(self, start, size, what):
        """Return a stretch of the arena."""
        if start % ALIGNMENT or start + size > self.plan.arena:
            raise PlanError(f"{what} is at {start} of {self.plan.arena} bytes")
        return "arena", start, start + size

    def need(self, buffer, who):
        """Raise unless a buffer is where it should be."""
        if nbytes(buffer) and buffer not in self.found and buffer not in self.outside:
            raise PlanError(f"{who} needs {buffer}, which is not there")

    def clear(self, stretch):
        """Forget what is found in a stretch; return it."""
        lost = [buffer for buffer, other in self.found.items() if _meet(stretch, other)]
        for buffer in lost:
            del self.found[buffer]
        return lost


def _meet(a, b):
    return a[0] == b[0] and a[1] < b[2] and b[1] < a[2]


def check_plan(plan):
    """Raise a `PlanError` unless a plan is right; return it.

    The steps are played through, with the names of buffers in place of numbers: each
    operand has to be there when a step needs it, and the results in the end.
    """
    for buffer in lifetimes(plan.program):
        if buffer not in plan.places:
            raise PlanError(f"{buffer} has no place")
    _play(plan)
    return plan


def _play(plan):
    memory = Contents(plan)
    for number, step in enumerate(plan.program.steps):
        for buffer in step.reads:
            memory.need(buffer, f"step {number}")
        _work(memory, number, step)
        _write(memory, number, step)
        for inner in plan.nested.get(number, ()):
            _play(inner)
    for buffer in plan.program.outputs:
        memory.need(buffer, "the caller")


def _work(memory, number, step):
    """Clear what a step has for itself; none of its operands may be there."""
    plan, lost = memory.plan, []
    block = max([each.arena for each in plan.nested.get(number, ())], default=0)
    wanted = (plan.workspaces, getattr(step, "workspace", 0)), (plan.blocks, block)
    for offsets, size in wanted:
        if size:
            lost += memory.clear(memory.in_arena(offsets[number], size, "workspace"))
    for buffer in {*lost}.intersection([*step.reads, *step.writes]):
        raise PlanError(f"step {number} works where its operand {buffer} is")


def _write(memory, number, step):
    """Put what a step writes into its place."""
    fresh, pairs = [], memory.plan.in_place.get(number, ())
    for buffer in dict.fromkeys(step.writes):
        stretch = memory.stretch(buffer)
        _permit(memory.plan, buffer, stretch[0])
        if buffer in memory.found or not nbytes(buffer):
            continue
        for old in memory.clear(stretch):
            agreed = (old, buffer) in pairs and may_overwrite(step, old, buffer)
            if old in fresh or old in step.reads and not agreed:
                raise PlanError(f"step {number} may not write {buffer} over {old}")
        memory.found[buffer] = stretch
        fresh.append(buffer)


def _permit(plan, buffer, part):
    """Raise if memory is not ours to write to."""
    allowed = {Place("input", i) for i, given in enumerate(plan.donated) if given}
    if isinstance(part, Place) and part.kind != "output" and part not in allowed:
        raise PlanError(f"{buffer} is written into {part}, which is not ours")
