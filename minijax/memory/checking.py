# Made from chapters/20_memory_rest.md by `make chapter`;
# edit the chapter, not this file.
"""A check of memory plans: nothing is written over while a step needs it."""

from minijax.jitting.costs import nbytes
from minijax.memory.arenas import ALIGNMENT
from minijax.memory.assignment import Place
from minijax.memory.in_place import may_overwrite
from minijax.memory.liveness import captured, lifetimes


class PlanError(TypeError):
    """A plan under which a program would read what is not there."""


class Contents:
    """Which slots are found in memory at a moment, and where.

    Attributes:
      plan: a `MemoryPlan`.
      found: from slots to stretches: what they are part of, where they start and end.
    """

    def __init__(self, plan):
        self.plan, self.found = plan, {}
        schedule = plan.schedule
        for slot in [*schedule.inputs, *[slot for slot, _ in schedule.constants]]:
            self.found[slot] = self.stretch(slot)
        self.outside = {*captured(schedule)}

    def stretch(self, slot):
        """Return the memory of a slot."""
        if slot not in self.plan.places:
            return slot, 0, nbytes(slot)
        kind, number = self.plan.places[slot]
        if kind == "arena":
            return self.in_arena(number, nbytes(slot), slot)
        return self.plan.places[slot], 0, nbytes(slot)

    def in_arena(self, start, size, what):
        """Return a stretch of the arena."""
        if start % ALIGNMENT or start + size > self.plan.arena:
            raise PlanError(f"{what} is at {start} of {self.plan.arena} bytes")
        return "arena", start, start + size

    def need(self, slot, who):
        """Raise unless a slot is where it should be."""
        if nbytes(slot) and slot not in self.found and slot not in self.outside:
            raise PlanError(f"{who} needs {slot}, which is not there")

    def clear(self, stretch):
        """Forget what is found in a stretch; return it."""
        lost = [slot for slot, other in self.found.items() if _meet(stretch, other)]
        for slot in lost:
            del self.found[slot]
        return lost


def _meet(a, b):
    return a[0] == b[0] and a[1] < b[2] and b[1] < a[2]


def check_plan(plan):
    """Raise a `PlanError` unless a plan is right; return it.

    The steps are played through, with the names of slots in place of numbers: each
    operand has to be there when a step needs it, and the results in the end.
    """
    for slot in lifetimes(plan.schedule):
        if slot not in plan.places:
            raise PlanError(f"{slot} has no place")
    _play(plan)
    return plan


def _play(plan):
    memory = Contents(plan)
    for number, step in enumerate(plan.schedule.steps):
        for slot in step.reads:
            memory.need(slot, f"step {number}")
        _work(memory, number, step)
        _write(memory, number, step)
        for inner in plan.nested.get(number, ()):
            _play(inner)
    for slot in plan.schedule.outputs:
        memory.need(slot, "the caller")


def _work(memory, number, step):
    """Clear what a step has for itself; none of its operands may be there."""
    plan, lost = memory.plan, []
    block = max([each.arena for each in plan.nested.get(number, ())], default=0)
    wanted = (plan.workspaces, getattr(step, "workspace", 0)), (plan.blocks, block)
    for offsets, size in wanted:
        if size:
            lost += memory.clear(memory.in_arena(offsets[number], size, "workspace"))
    for slot in {*lost}.intersection([*step.reads, *step.writes]):
        raise PlanError(f"step {number} works where its operand {slot} is")


def _write(memory, number, step):
    """Put what a step writes into its place."""
    fresh, pairs = [], memory.plan.in_place.get(number, ())
    for slot in dict.fromkeys(step.writes):
        stretch = memory.stretch(slot)
        _permit(memory.plan, slot, stretch[0])
        if slot in memory.found or not nbytes(slot):
            continue
        for old in memory.clear(stretch):
            agreed = (old, slot) in pairs and may_overwrite(step, old, slot)
            if old in fresh or old in step.reads and not agreed:
                raise PlanError(f"step {number} may not write {slot} over {old}")
        memory.found[slot] = stretch
        fresh.append(slot)


def _permit(plan, slot, part):
    """Raise if memory is not ours to write to."""
    allowed = {Place("input", i) for i, given in enumerate(plan.donated) if given}
    if isinstance(part, Place) and part.kind != "output" and part not in allowed:
        raise PlanError(f"{slot} is written into {part}, which is not ours")
