# Made from chapters/19_fusion_rest.md by `make chapter`;
# edit the chapter, not this file.
"""The fusion pass: kernels of a program merged where that saves memory traffic."""

from minijax.fusion.choices import cheap_buffers, is_in_rows, is_straight, pays
from minijax.fusion.groups import (
    arranged,
    group_of,
    joined,
    links_between,
    matched,
    same_loops,
    shared_reads,
)
from minijax.fusion.merging import Merger, merged
from minijax.fusion.parts import uses_of
from minijax.llvm.targets import current_target


class Fusion:
    """Which launches of a program are to become one.

    Args:
      program: the program.
      target: the `Target` whose prices count.

    Attributes:
      uses: what the program does with its buffers.
      cheap: buffers that are made anew wherever they are read, with what that takes.
      groups: from the number of a launch in each group to the `Group`.
      leader: for each step, the number by which its group is found.
      place: by such numbers, where the group stands among the steps.
    """

    def __init__(self, program, target):
        self.program, self.target = program, target
        self.uses = uses_of(program, target)
        self.cheap = cheap_buffers(self.uses, target)
        self.groups, self.leader = {}, [*range(len(program.steps))]
        self.place = [*self.leader]
        for number, part in self.uses.parts.items():
            self.groups[number] = group_of(part, self.uses)
            self.settle(number)
        for numbers in self.uses.readers.values():
            if len(numbers) > 1:
                self.settle_beside(numbers)

    def __str__(self):
        groups = sorted(self.groups.values(), key=lambda group: group.order)
        return "\n".join(map(str, groups))

    def leaders(self, numbers):
        """Return the groups of some launches by their numbers, the last one first."""
        found = {self.leader[number] for number in numbers}
        return sorted(found, key=self.place.__getitem__, reverse=True)

    def settle(self, number):
        """Join the group of a launch with those that make what it reads."""
        makers = [self.uses.maker(buffer) for buffer in self.groups[number].reads]
        for other in self.leaders([maker for maker in makers if maker is not None]):
            self.join(other, self.leader[number])

    def settle_beside(self, numbers):
        """Join groups that walk over the same array."""
        found = self.leaders(
            [number for number in numbers if number in self.uses.parts]
        )
        for last, other in zip(found, found[1:]):
            self.join(other, self.leader[last], linked=False)

    def join(self, a, b, linked=True):
        """Put the second group into the first, an earlier one, if that can be and pays.

        The first one makes what the second reads, or reads it too. Axes that are split
        for that stay split: elements of cheap buffers are found along them.
        """
        first, second = self.groups[a], self.groups[b]
        order = self.order_of_both(first, second)
        wide = first.ops + second.ops > self.target.wide
        if order is None or wide or self.collide(first, second):
            return
        self.groups[a], group = self.attempt(first, second, order, linked)
        if group:
            self.groups[a], self.place[a] = group, order
            del self.groups[b]
            for number in second.homes:
                self.leader[number] = a

    def order_of_both(self, first, second):
        """Return where a group of two can stand, or None."""
        place, leader = self.place, self.leader
        users = [place[leader[n]] for n in first.users]
        if min(users, default=second.order) >= second.order:
            return second.order
        needs = [place[leader[n]] for n in second.needs]
        return first.order if max(needs, default=-1) <= first.order else None

    def collide(self, first, second):
        """Return whether two groups write to one buffer, or read what the other writes
        to when it is not whole."""
        buffers = self.uses.shared and [*second.flops, *second.reads]
        shared = [buffer for buffer in buffers if buffer in self.uses.shared]
        return any(buffer in first.flops or buffer in first.reads for buffer in shared)

    def attempt(self, first, second, order, linked):
        """Return the first group, its axes split where the second wants it, and the
        group of both, or None."""
        if linked:
            links = links_between(first, second, self.uses)
        else:
            links = shared_reads(first, second)
        if not links:
            return first, None
        if linked and same_loops(first, second, links):
            return first, joined(first, second, links, self.uses, order)
        first, maps = matched(first, second, links)
        if maps is None:
            return first, None
        links = links if linked else []
        found = arranged(first, second, links, maps, self.uses)
        return first, found and self.worth_it(found, links, order)

    def worth_it(self, found, links, order):
        """Return the group of two that have axes in common, or None."""
        first, second, turned = found
        if not pays(first, second, links, self.uses, self.target):
            return None
        group = joined(first, second, links, self.uses, order)
        for each in turned:
            own = [buffer for buffer in each.flops if self.stays(buffer, group)]
            if not is_in_rows(each, own, self.uses, self.target):
                return None
        return group if is_straight(group, self.target) else None

    def stays(self, buffer, group):
        """Return whether a group stores one of its buffers."""
        made = buffer in group.flops and buffer not in self.cheap
        return made and self.uses.outside(buffer, group.homes)

    def steps(self):
        """Return the steps of all groups, less those that are not needed."""
        needed, steps = {*self.uses.kept}, []
        for number in sorted({*self.leader}, key=self.place.__getitem__, reverse=True):
            step = self.step(number, needed)
            if step is not None:
                steps.append(step)
                needed.update(step.reads)
        return steps[::-1]

    def step(self, number, needed):
        """Return the step of a group, or None if what it makes is not needed."""
        step, uses = self.program.steps[number], self.uses
        if number not in self.groups:
            inner = [fuse(program, self.target) for program in step.programs]
            return step.with_programs(inner) if inner else step
        group = self.groups[number]
        made = [buffer for n in group.homes for buffer, _ in uses.parts[n].stores]
        if needed.isdisjoint(made):
            return None
        if len(group.homes) == 1 and self.cheap.keys().isdisjoint(group.reads):
            return step
        return merged(Merger(group.sizes, group.homes, uses, self.cheap), needed)


def fuse(program, target=None):
    """Return a program of the same results with fewer kernels.

    Kernels are merged where that saves memory traffic; steps that are no launches stay
    as they are, and their programs are fused.

    Args:
      program: a `LoweredProgram`.
      target: the `Target` whose prices count, by default the current one.
    """
    return program._replace(steps=Fusion(program, target or current_target()).steps())


def check_fusion(fusion):
    """Raise a `ValueError` if groups do not fit together: if a launch is in no group or
    in two, computed outside of its sizes, folded too early, or behind its users."""
    seen = [number for group in fusion.groups.values() for number in group.homes]
    if sorted(seen) != sorted(fusion.uses.parts):
        raise ValueError("A launch is in no group, or in two.")
    for group in fusion.groups.values():
        late = [n for n in group.needs if fusion.place[fusion.leader[n]] >= group.order]
        if late or any(a >= b for a, b in group.orders):
            raise ValueError(f"Loops or steps {late} are in a wrong order:\n{group}")
        for number, home in group.homes.items():
            for at, limit in zip(home, fusion.uses.parts[number].kernel.sizes):
                least, most = at.bounds(group.sizes)
                if least < 0 or most >= limit:
                    raise ValueError(f"Step {number} is computed at {at}:\n{group}")
