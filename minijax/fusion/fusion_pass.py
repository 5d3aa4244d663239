# Made from chapters/19_fusion_rest.md by `make chapter`;
# edit the chapter, not this file.
"""The fusion pass: kernels of a program merged where that saves memory traffic."""

from minijax.fusion.alignment import (
    aligned,
    arranged,
    in_same_loops,
    is_plain,
    joined,
    links_between,
    shared_reads,
    written,
)
from minijax.fusion.choices import accepted, cheap_buffers, is_straight
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
      cheap: from buffers that are computed again wherever they are read to their part.
      again: from buffers to the cheap ones that are computed from them.
      parts: from the first number of those that became one to the `Part`.
      members: from such numbers to all numbers of the part.
      leader: for each step, the number by which its part is found.
      place: by such numbers, where the part stands among the steps.
      needs, users: by such numbers, those of what has to come before and after.
    """

    def __init__(self, program, target):
        self.program, self.target = program, target
        self.uses = uses_of(program)
        self.cheap, self.again = cheap_buffers(self.uses, target), {}
        for buffer, part in self.cheap.items():
            for read, _ in part.loads:
                self.again.setdefault(read, set()).add(buffer)
        self.parts, self.leader = {}, [*range(len(program.steps))]
        self.place = [*self.leader]
        self.members = [[number] for number in self.leader]
        self.needs, self.users = [[{*n} for n in found] for found in self.uses[-2:]]
        for number, part in self.uses.parts.items():
            self.parts[number] = part
            self.settle(number)
        for numbers in self.uses.readers.values():
            if len(numbers) > 1:
                self.settle_beside(numbers)

    def __str__(self):
        order = sorted(self.parts, key=self.place.__getitem__)
        return "\n".join([str(self.written(number).kernel) for number in order])

    def written(self, number):
        """Return the part of a number, with its kernel."""
        part = self.parts[number] = written(self.parts[number])
        return part

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
        both = None if self.collide(first, second) else self.attempt(a, b, linked)
        if both:
            self.parts[a], self.place[a] = both, order
            self.replace(b, a)

    def replace(self, b, a):
        """Let the first part of two stand for the second as well."""
        for before, after in ((self.needs, self.users), (self.users, self.needs)):
            for other in before[b]:
                after[other].discard(b)
                after[other].add(a)
            before[a] |= before[b]
        for found in (self.needs[a], self.users[a]):
            found -= {a, b}
        for number in self.members[b]:
            self.leader[number] = a
        self.members[a] += self.members[b]
        del self.parts[b]

    def place_of_both(self, a, b):
        """Return where two parts can stand as one, or None."""
        early, late = self.place[a], self.place[b]
        if all(n == b or self.place[n] >= late for n in self.users[a]):
            return late
        waits = any(n != a and self.place[n] > early for n in self.needs[b])
        return None if waits else early

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

    def attempt(self, a, b, linked):
        """Return the part of two, or None."""
        first, second = self.parts[a], self.parts[b]
        links = links_between(first, second) if linked else shared_reads(first, second)
        if not links:
            return None
        gone, pair = self.gone(a, b), linked and in_same_loops(first, second, links)
        pair, links = pair or aligned(first, second, links), links if linked else []
        if pair and is_plain(pair, links):
            orders = pair.orders(())
            if all(outer < inner for outer, inner in orders):
                straight = is_straight(pair, links, self.target)
                return joined(pair, links, orders, gone) if straight else None
        if pair and not (first.kernel and second.kernel):
            self.written(a), self.written(b)
            return self.attempt(a, b, linked)
        left = {buffer for part in (first, second) for buffer in part.made} - gone
        stored = left.difference(self.cheap)
        found = pair and arranged(pair, links)
        pair = accepted(found, links, stored, self.target)
        k = pair and Merger(pair.sizes, pair.placed, final=False)
        return k and merged(k, left)

    def gone(self, a, b):
        """Return the buffers that only two parts read, and nothing computes again."""
        made, second = self.parts[a].made, self.parts[b]
        read = {buffer for buffer, _ in second.loads if buffer in made}
        found = {buffer for buffer in read if not self.outside(buffer, (a, b))}
        own = made.keys() | second.made.keys() if self.again and found else set()
        while back := {x for x in found if self.again.get(x, set()) & own - found}:
            found -= back
        return found

    def outside(self, buffer, pair):
        """Return whether a buffer is needed by others than these two parts."""
        readers, leader = self.uses.readers.get(buffer, ()), self.leader
        return buffer in self.uses.kept or any(leader[n] not in pair for n in readers)

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
        if needed.isdisjoint(part.made):
            return None
        reads = [buffer for buffer, _ in part.loads]
        if len(self.members[number]) == 1 and self.cheap.keys().isdisjoint(reads):
            return part.launch
        homes = part.homes or [(part, unit(len(part.sizes)))]
        return merged(Merger(part.sizes, homes, self.cheap), needed).launch


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
        whole = written(part)
        needs = {leader[n] for m in members[number] for n in fusion.uses.needs[m]}
        late = [n for n in needs - {number} if place[n] >= place[number]]
        if late or any(a >= b for a, b in part.orders | whole.orders):
            raise ValueError(f"Loops or steps {late} are in a wrong order:\n{part}")
        check_kernel(whole.kernel)
