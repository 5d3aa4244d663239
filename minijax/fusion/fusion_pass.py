# Made from chapters/20_fusion.md by `make chapter`;
# edit the chapter, not this file.
"""The fusion pass: kernels of a schedule merged where that saves memory traffic."""

from minijax.fusion.groups import (
    Group,
    dependents,
    links_between,
    matched,
    shared_reads,
)
from minijax.fusion.index_maps import unit
from minijax.fusion.merging import Merger, merged
from minijax.fusion.parts import BYTE, LAUNCH, LIMIT, Uses, parts_among
from minijax.fusion.plans import Plan, arranged, walk_alike
from minijax.kernels.program_steps import Launch


def order_of_both(first, second):
    """Return where a group of two can stand, or None."""
    if all(user is second or user.order > second.order for user in first.users):
        return second.order
    if all(need is first or need.order < first.order for need in second.needs):
        return first.order
    return None


def replace(old, new):
    """Put one group in the place of another among the groups that need each other."""
    new.needs |= old.needs
    new.users |= old.users
    for other in old.needs:
        other.users.discard(old)
        other.users.add(new)
    for other in old.users:
        other.needs.discard(old)
        other.needs.add(new)
    new.needs -= {new, old}
    new.users -= {new, old}


def absorb(first, second, plan):
    """Put the parts of the second group into the first."""
    if plan.sizes != first.sizes or plan.maps[0] != unit(len(plan.sizes)):
        first.rewrite(plan.maps[0], plan.sizes)
    if plan.sizes != second.sizes or plan.maps[1] != unit(len(plan.sizes)):
        second.rewrite(plan.maps[1], plan.sizes)
    first.parts.update(second.parts)
    first.homes.update(second.homes)
    first.made.update(second.made)
    first.folded.update(second.folded)
    first.flops.update(second.flops)
    first.counts.update(second.counts)
    for link in {link.slot: link for link in plan.links}.values():
        _hand_on(first, second, link)
    for slot, loads in second.reads.items():
        first.reads.setdefault(slot, []).extend(loads)
    first.orders, first.solid = plan.orders, first.solid | second.solid
    first.ops += second.ops


def _hand_on(first, second, link):
    """Note for what is made of a slot what was folded and computed on the way."""
    folded, flops = first.folded[link.slot], first.flops[link.slot]
    for slot in dependents(second, link.slot)[0]:
        share = first.counts[link.slot] / first.counts[slot]
        first.flops[slot] += flops * share if share >= 1 else 0
        if folded:
            first.folded[slot] |= folded


class Fusion:
    """Sorts the steps of a schedule into groups.

    Attributes:
      groups: the group of each step, by their numbers.
      parts: the launches by their numbers.
      uses: what the schedule does with slots.
      makers: from slots to pairs of a part and a store.
      cheap: slots that are made anew wherever they are read, with what that takes.
    """

    def __init__(self, schedule):
        self.parts = parts_among(schedule.steps)
        self.uses, self.groups = Uses(schedule, self.parts), {}
        self.makers, self.cheap = {}, {}

    def add(self, number, step):
        """Put the next step into a group."""
        part = self.parts.get(number)
        if part and 0 not in part.sizes:
            group = Group(part, number)
            self.note_makers(part, group)
        else:
            group = Alone(_nested(step), number)
        self.groups[number] = group
        before = self.uses.before(number, part or step)
        group.needs = {self.groups[other] for other in before}
        for other in group.needs:
            other.users.add(group)
        if isinstance(group, Group):
            self.settle(group)

    def settle(self, group):
        """Join a group with those that make what it reads."""
        slots = [slot for slot in group.reads if slot in self.makers]
        makers = {self.groups[self.makers[slot][0][0].number] for slot in slots}
        for other in sorted(makers, key=lambda found: -found.order):
            if self.join(other, group):
                group = other

    def settle_beside(self):
        """Join groups that walk over the same array."""
        for numbers in self.uses.readers.values():
            found = {self.groups[number] for number in numbers}
            groups = [group for group in found if isinstance(group, Group)]
            groups.sort(key=lambda group: -group.order)
            for last, other in zip(groups, groups[1:]):
                self.join(other, last, linked=False)

    def join(self, first, second, linked=True):
        """Put the parts of a group into an earlier one, if that can be and pays.

        The earlier one makes what the other reads, or reads it too.
        """
        order = order_of_both(first, second)
        too_large = first.ops + second.ops > LIMIT
        if order is None or too_large or self.uses.collide(first, second):
            return False
        plan = self.plan(first, second, linked)
        if plan is None:
            return False
        absorb(first, second, plan)
        replace(second, first)
        first.order = order
        self.groups.update(dict.fromkeys(second.homes, first))
        return True

    def plan(self, first, second, linked):
        """Return the `Plan` to join two groups, or None."""
        links = links_between(first, second) if linked else None
        if links and walk_alike(first, second, links):
            units = unit(len(first.sizes))
            return Plan(first.sizes, (units, units), first.orders, links)
        found = matched(first, second, links_between if linked else shared_reads)
        if found is None:
            return None

        def stays(slot):
            read = self.uses.outside(slot, {*first.homes, *second.homes})
            return read and slot not in self.cheap

        links, maps = found
        return arranged(first, second, links if linked else [], maps, stays)

    def note_makers(self, part, group):
        """Remember who makes a slot, and whether it is cheap to make again."""
        for slot, store in part.stores:
            if slot not in self.uses.shared:
                self.makers[slot] = group.made[slot]
                if len(part.writes) == 1 and not part.work.folded:
                    self.note_price(part, slot, store)

    def note_price(self, part, slot, store):
        """Note a slot that is better computed wherever it is read than stored."""
        if slot in self.uses.kept:
            return
        work, [count] = part.work, part.work.counts
        flops, ops, moved = work.flops, work.ops, 0
        for read, size in zip(part.reads, work.moved):
            more = self.cheap.get(read, (0, 0, size))
            flops, ops, moved = flops + more[0], ops + more[1], moved + more[2]
        reads, width = self.uses.reads.get(slot, 0), store.buffer.dtype.itemsize
        each = flops + BYTE * moved / count
        stored = count * (each + BYTE * width) + reads * BYTE * width + LAUNCH
        dear = reads * each > stored or ops > 16
        if work.straight and not dear:
            self.cheap[slot] = flops, ops, moved

    def steps(self):
        """Return the steps of all groups, less those that nobody needs."""
        groups = sorted({*self.groups.values()}, key=lambda group: -group.order)
        needed, steps = {*self.uses.kept}, []
        for group in groups:
            alone = isinstance(group, Alone)
            step = group.step if alone else self.launch(group, needed)
            if step is not None:
                steps.append(step)
                needed.update(step.reads)
        return steps[::-1]

    def launch(self, group, needed):
        """Return the launch of a group, or None if nobody needs what it makes."""
        stores = [
            (number, slot, store)
            for number in group.homes
            for slot, store in self.parts[number].stores
            if slot in needed
        ]
        if not stores:
            return None
        if len(group.homes) == 1 and not self.cheap.keys() & group.reads.keys():
            return self.parts[stores[0][0]].launch
        tables = self.parts, self.makers, self.cheap, group.homes
        return Launch(*merged(Merger(group.sizes, *tables), stores))


class Alone:
    """A step that stays as it is.

    Attributes:
      order: its place among the groups.
      needs, users: the groups that have to come before and behind.
    """

    def __init__(self, step, order):
        self.step, self.order = step, order
        self.needs, self.users = set(), set()


def _nested(step):
    """Return a step whose schedules are fused."""
    if not step.schedules:
        return step
    return step.with_schedules([fuse(schedule) for schedule in step.schedules])


def fuse(schedule):
    """Return a schedule of the same results with fewer kernels.

    Kernels are merged where that saves memory traffic; steps that are no launches stay
    as they are, and their schedules are fused.
    """
    fusion = Fusion(schedule)
    for number, step in enumerate(schedule.steps):
        fusion.add(number, step)
    fusion.settle_beside()
    return schedule._replace(steps=fusion.steps())
