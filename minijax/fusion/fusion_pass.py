# Made from chapters/19_fusion_rest.md by `make chapter`;
# edit the chapter, not this file.
"""The fusion pass: kernels of a program merged where that saves memory traffic."""

from minijax.fusion.alignment import (
    aligned,
    arranged,
    grown,
    in_same_loops,
    is_plain,
    links_between,
    may_grow,
    shared_reads,
)
from minijax.fusion.choices import accepted, cheap_buffers
from minijax.fusion.dependences import uses_of
from minijax.fusion.index_maps import unit
from minijax.fusion.merging import Merger, merged
from minijax.kernels.interpreter import check_kernel
from minijax.llvm.targets import current_target


class Fusion:
    """Launches of a program that become one.

    Args:
      program: the program.
      target: the `Target` whose prices count.

    Attributes:
      uses: what the program does with its buffers.
      parts: from the first number of those that became one to the `Part`.
      members: from such numbers to all numbers of the part.
      leader: for each step, the number by which its part is found.
      place: by such numbers, where the part stands among the steps.
    """

    def __init__(self, program, target):
        self.program, self.target = program, target
        self.uses = uses_of(program)
        self.cheap = cheap_buffers(self.uses, target)
        self.parts, self.leader = {}, [*range(len(program.steps))]
        self.place = [*self.leader]
        self.members = [{number} for number in self.leader]
        for number, part in self.uses.parts.items():
            self.parts[number] = part
            self.settle(number)
        for numbers in self.uses.readers.values():
            if len(numbers) > 1:
                self.settle_beside(numbers)

    def __str__(self):
        order = sorted(self.parts, key=self.place.__getitem__)
        return "\n".join([str(self.parts[number].kernel) for number in order])

    def leaders(self, numbers):
        """Return the parts of some launches by their numbers, the last one first."""
        found = {self.leader[number] for number in numbers}
        return sorted(found, key=self.place.__getitem__, reverse=True)

    def settle(self, number):
        """Join a launch with the parts that make what it reads."""
        makers = [
            self.uses.makers.get(buffer) for buffer, _ in self.parts[number].loads
        ]
        for other in self.leaders([maker for maker in makers if maker is not None]):
            self.join(other, self.leader[number])

    def settle_beside(self, numbers):
        """Join parts that walk over the same array."""
        found = self.leaders(
            [number for number in numbers if number in self.uses.parts]
        )
        for last, other in zip(found, found[1:]):
            self.join(other, self.leader[last], linked=False)

    def join(self, a, b, linked=True):
        """Put the second part into the first, an earlier one, if that can be and pays.

        The first one makes what the second reads, or reads it too.
        """
        first, second = self.parts[a], self.parts[b]
        order = self.place_of_both(a, b)
        if order is None or first.ops + second.ops > self.target.wide:
            return
        links = links_between(first, second) if linked else shared_reads(first, second)
        if not links or self.collide(first, second):
            return
        members = self.members[a] | self.members[b]
        both = self.attempt(links, first, second, members, linked)
        if both:
            self.parts[a], self.place[a] = both, order
            self.members[a] = members
            for number in self.members[b]:
                self.leader[number] = a
            del self.parts[b]

    def place_of_both(self, a, b):
        """Return where two parts can stand as one, or None."""
        uses, place, leader = self.uses, self.place, self.leader
        users = {leader[n] for m in self.members[a] for n in uses.users[m]} - {a, b}
        needs = {leader[n] for m in self.members[b] for n in uses.needs[m]} - {a, b}
        if min([place[n] for n in users], default=place[b]) >= place[b]:
            return place[b]
        return (
            place[a] if max([place[n] for n in needs], default=-1) <= place[a] else None
        )

    def collide(self, first, second):
        """Return whether two parts write to one buffer, or read what the other writes
        to when it is not whole."""
        if not self.uses.shared:
            return False
        parts = first, second
        written = [{buffer for buffer, _ in part.stores} for part in parts]
        used = [{buffer for buffer, _ in (*part.loads, *part.stores)} for part in parts]
        both = (written[0] & used[1]) | (used[0] & written[1])
        return not self.uses.shared.isdisjoint(both)

    def attempt(self, links, first, second, members, linked):
        """Return the part of two, or None."""
        left = self.left(first, second, members)
        if linked and is_plain(first, second, links):
            pair = in_same_loops(first, second)
        else:
            pair = aligned(first, second, links)
            links = links if linked else []
            stored = left.difference(self.cheap)
            found = pair and arranged(pair, links)
            pair = accepted(found, links, stored, self.target)
        if pair is None:
            return None
        k = Merger(pair.sizes, pair.placed, final=False)
        return may_grow(k, links, left) and grown(k, left) or merged(k, left)

    def left(self, first, second, members):
        """Return the buffers of two parts that others read, or compute again."""
        made = {buffer for part in (first, second) for buffer, _ in part.stores}
        found = [buffer for buffer in made if self.uses.outside(buffer, members)]
        for buffer in found:
            loads = self.cheap[buffer].loads if buffer in self.cheap else ()
            found += [read for read, _ in loads if read in made and read not in found]
        return {*found}

    def steps(self):
        """Return the steps of all parts, less those that are not needed."""
        needed, steps = {*self.uses.kept}, []
        for number in sorted({*self.leader}, key=self.place.__getitem__, reverse=True):
            step = self.step(number, needed)
            if step is not None:
                steps.append(step)
                needed.update(step.reads)
        return steps[::-1]

    def step(self, number, needed):
        """Return the step of a part, or None if what it makes is not needed."""
        step = self.program.steps[number]
        if number not in self.parts:
            inner = [fuse(program, self.target) for program in step.programs]
            return step.with_programs(inner) if inner else step
        part = self.parts[number]
        if needed.isdisjoint([buffer for buffer, _ in part.stores]):
            return None
        reads = [buffer for buffer, _ in part.loads]
        if part.known is None and self.cheap.keys().isdisjoint(reads):
            return part.launch
        sizes = part.kernel.sizes
        k = Merger(sizes, [(part, unit(len(sizes)))], self.cheap)
        return merged(k, needed).launch


def fuse(program, target=None):
    """Return a program of the same results with fewer kernels.

    Kernels are merged where that saves memory traffic; steps that are no launches stay
    as they are, and their programs are fused.

    Args:
      program: a `LoweredProgram`.
      target: the `Target` whose prices count, by default the current one.
    """
    target = target or current_target()
    return program._replace(steps=Fusion(program, target).steps())


def check_fusion(fusion):
    """Raise a `ValueError` if a launch is in no part or in two, if the loops of a part
    are in a wrong order, or if a part stands in front of a step that it needs."""
    members, place, leader = fusion.members, fusion.place, fusion.leader
    seen = [n for number in fusion.parts for n in members[number]]
    if sorted(seen) != sorted(fusion.uses.parts):
        raise ValueError("A launch is in no part, or in two.")
    for number, part in fusion.parts.items():
        needs = {leader[n] for m in members[number] for n in fusion.uses.needs[m]}
        late = [n for n in needs - {number} if place[n] >= place[number]]
        if late or any(a >= b for a, b in part.orders):
            raise ValueError(f"Loops or steps {late} are in a wrong order:\n{part}")
        check_kernel(part.kernel)
