"""Where the steps of a program find their buffers: one answer for all nested plans."""

# Made from chapters/21_machine_ground.md by `make chapter`;
# edit the chapter, not this file.

from collections import Counter

from minijax.kernels.program_steps import LoweredProgram
from minijax.memory.places import Place


def walk(steps):
    """Yield steps, and all those within them."""
    return LoweredProgram([], [], [], steps).walk()


FEW = 3  # buffers of a call; LLVM is slow where many addresses are known at once


def calls(step):
    """Return how many calls it takes to do a step; one of many buffers is as many."""
    simple = [inner for inner in walk([step]) if not inner.programs]
    return sum([max(1, len({*x.reads, *x.writes}) // FEW) for x in simple])


class Locations:
    """Where a program finds its buffers.

    Args:
      plan: a `MemoryPlan`.

    Attributes:
      places: from buffers to places; those in the arena count from its beginning, also
        for programs within steps.
      first: from buffers that are written over others to the first one there.
      workspaces: from the ids of steps to offsets in the arena.
    """

    def __init__(self, plan):
        self.places, self.first, self.workspaces = {}, {}, {}
        self._add(plan, 0)
        over = dict(self.first)  # in any order of steps; a chain is one place
        for new in over:
            while self.first[new] in over:
                self.first[new] = over[self.first[new]]

    def _add(self, plan, start):
        for buffer, (kind, number) in plan.places.items():
            number += start if kind == "arena" else 0
            self.places[buffer] = Place(kind, number)
        for pairs in plan.in_place.values():
            self.first.update((new, old) for old, new in pairs)
        for number, offset in plan.workspaces.items():
            self.workspaces[id(plan.steps[number])] = start + offset
        for number, plans in plan.nested.items():
            for each in plans:
                self._add(each, start + plan.blocks.get(number, 0))

    def uses(self, steps):
        """Return how often steps name each buffer, or one that is written over it."""
        named = [buffer for s in walk(steps) for buffer in (*s.reads, *s.writes)]
        return Counter(self.first.get(buffer, buffer) for buffer in named)
