# Made from chapters/19_fusion.md by `make chapter`;
# edit the chapter, not this file.
"""Dependence analysis: what each launch does, and who uses its slots."""

import math
from typing import NamedTuple

from minijax.kernels.kernel import is_affine
from minijax.kernels.program_steps import Launch


class Facts(NamedTuple):
    """What a kernel does, whatever slots it is launched on.

    Attributes:
      loads: pairs of the number of a buffer and a load from it.
      stores: pairs of the number of a buffer and a `Store` into it.
      visits: for each load, how often the loops around it come by.
      moved: for each load, how many bytes it needs.
      counts: for each store, how many elements it stores.
      folded: the axes that it folds.
      orders: pairs of axes, one that a fold keeps, and one that it folds.
      solid: axes along which a place is sought, so that they must stay whole.
      ops: the number of scalar operations.
      flops: what they cost for one index.
      costs: for each store, what an element of it costs.
    """

    loads: tuple
    stores: tuple
    visits: tuple
    moved: tuple
    counts: tuple
    folded: frozenset
    orders: frozenset
    solid: frozenset
    ops: int
    flops: float
    costs: tuple


def facts_of(kernel, target):
    """Return the `Facts` of a kernel, at the prices of a target."""
    sizes, number = kernel.sizes, kernel.buffers.index
    loads = [node for node in kernel.nodes if node.op == "load"]
    folds = [node for node in kernel.nodes if node.op == "fold"]
    pairs = [(node, axis) for node in folds for axis in node.detail.axes]
    work = [node for node in kernel.nodes if node.op not in ("load", "constant")]
    counts = [elements(sizes, store.place.axes) for store in kernel.stores]
    flops = sum([target.price(node.op) for node in work])
    return Facts(
        tuple([(number(node.detail.buffer), node) for node in loads]),
        tuple([(number(store.buffer), store) for store in kernel.stores]),
        tuple([math.prod(sizes[: max(n.level, default=-1) + 1]) for n in loads]),
        tuple(
            [elements(sizes, n.level) * n.detail.buffer.dtype.itemsize for n in loads]
        ),
        tuple(counts),
        frozenset([axis for _, axis in pairs]),
        frozenset([(kept, axis) for node, axis in pairs for kept in node.level]),
        frozenset([axis for node, axis in pairs if node.detail.how[:3] == "arg"]),
        len(work),
        flops,
        tuple([flops * math.prod(sizes) / count for count in counts]),
    )


def elements(sizes, axes):
    """Return how many indices there are along some axes."""
    return math.prod([sizes[axis] for axis in axes])


class Part(NamedTuple):
    """A launch among the steps of a schedule.

    Attributes:
      number: its place among the steps.
      kernel: what it runs.
      facts: the `Facts` of the kernel.
      loads: pairs of a slot and a load.
      stores: pairs of a slot and a `Store`.
    """

    number: int
    kernel: object
    facts: Facts
    loads: list
    stores: list


def parts_among(steps, target):
    """Return the launches among some steps as parts, by their numbers.

    Those that have nothing to do, along an axis of size 0, are none, and neither are
    those with computed places.
    """
    facts, parts = {}, {}
    for number, step in enumerate(steps):
        if not isinstance(step, Launch) or 0 in step.kernel.sizes:
            continue
        kernel, slots = step
        if kernel not in facts:
            facts[kernel] = facts_of(kernel, target) if is_affine(kernel) else None
        known = facts[kernel]
        if known:
            loads = [(slots[buffer], node) for buffer, node in known.loads]
            stores = [(slots[buffer], store) for buffer, store in known.stores]
            parts[number] = Part(number, kernel, known, loads, stores)
    return parts


class Uses(NamedTuple):
    """What a schedule does with its slots.

    Attributes:
      parts: its launches, by their numbers.
      makers: from slots that one launch writes to pairs of the part and its store.
      readers: from slots to the numbers of the steps that read them.
      visits: from slots to how often launches load an element, loops around counted in.
      kept: the slots that have to be stored: of results, for other steps, shared ones.
      shared: the slots that several steps write to.
      needs, users: for each step the numbers of those that have to come before it, and
        of those that have to come after it.
    """

    parts: dict
    makers: dict
    readers: dict
    visits: dict
    kept: set
    shared: set
    needs: list
    users: list

    def maker(self, slot):
        """Return the number of the only launch that writes a slot, or None."""
        return self.makers[slot][0][0].number if slot in self.makers else None

    def count(self, slot):
        """Return how many elements of a slot its launch stores."""
        return self.makers[slot][0][0].facts.counts[0]

    def outside(self, slot, numbers):
        """Return whether a slot is needed by others than these launches."""
        if slot in self.kept:
            return True
        return any(reader not in numbers for reader in self.readers.get(slot, ()))


def uses_of(schedule, target):
    """Return the `Uses` of a schedule."""
    parts = parts_among(schedule.steps, target)
    kept, readers, writers, needs = {*schedule.outputs}, {}, {}, []
    users = [set() for _ in schedule.steps]
    for number, step in enumerate(schedule.steps):
        reads, writes = _ends(step, parts.get(number))
        kept.update(() if number in parts else reads)
        before = {n for slot in (*reads, *writes) for n in writers.get(slot, ())}
        before.update([n for slot in writes for n in readers.get(slot, ())])
        for slot in reads:
            readers.setdefault(slot, []).append(number)
        for slot in {*writes}:
            writers.setdefault(slot, []).append(number)
        for other in before:
            users[other].add(number)
        needs.append(before)
    shared = {slot for slot, numbers in writers.items() if len(numbers) > 1}
    makers, visits = {}, {}
    for part in parts.values():
        for slot, store in part.stores:
            if slot not in shared:
                makers.setdefault(slot, []).append((part, store))
        for (slot, _), count in zip(part.loads, part.facts.visits):
            visits[slot] = visits.get(slot, 0) + count
    return Uses(parts, makers, readers, visits, kept | shared, shared, needs, users)


def _ends(step, part):
    """Return the slots that a step reads, and those that it writes to."""
    if part is None:
        return step.reads, step.writes
    return [slot for slot, _ in part.loads], [slot for slot, _ in part.stores]
