# Made from chapters/20_fusion.md by `make chapter`;
# edit the chapter, not this file.
"""The cost model of fusion: what a kernel costs, and who uses its slots."""

import math

from minijax.kernels.kernel import is_affine
from minijax.kernels.program_steps import Launch
from minijax.kernels.scalar_ops import scalar_ops

PRICES = {"flops": 1, "transcendentals": 20, "": 0}
BYTE = 2  # moving a byte takes as long as this many flops
LAUNCH = 1000  # and starting a kernel as long as these
NEAR = 2**14  # so many numbers stay near the processor
SMALL = 2**10  # so few have no direction in which they lie
AGAIN = 250  # flops for a number, to have it again in another sweep
LIMIT = 150  # operations in one kernel


def elements(sizes, axes):
    """Return how many indices there are along some axes."""
    return math.prod([sizes[axis] for axis in axes])


def grains(places, sizes):
    """Return the axes along which the elements of matrices are neighbours."""
    found = set()
    for place in places if math.prod(sizes) > SMALL else ():
        steps = {axis: abs(place.strides[axis]) for axis in place.axes}
        if len(steps) > 1 and elements(sizes, steps) > SMALL:
            found.add(min(steps, key=lambda axis: steps[axis]))
    return found


class Work:
    """What a kernel does, whatever slots it is launched on.

    Attributes:
      loads: list of loads.
      often: how often each of them loads an element, loops around counted in.
      moved: how many bytes each of them needs.
      stores: list of stores.
      counts: of the elements that each of them stores.
      read, written: for each load, and for each store, the number of its buffer.
      straight: whether matrices lie in one direction, if there are any.
      folded: the axes that it folds.
      orders: pairs of axes: one that a fold keeps, and one that it folds.
      solid: axes along which a place is sought, so that they must stay whole.
      ops: the number of its scalar operations.
      flops: what they cost for one index.
    """

    def __init__(self, kernel):
        sizes, number = kernel.sizes, kernel.buffers.index
        self.loads = [node for node in kernel.nodes if node.op == "load"]
        self.read = [number(node.detail.buffer) for node in self.loads]
        ends = [max(node.level, default=-1) + 1 for node in self.loads]
        self.often = [math.prod(sizes[:end]) for end in ends]
        self.moved = [
            elements(sizes, node.level) * node.detail.buffer.dtype.itemsize
            for node in self.loads
        ]
        self.stores = kernel.stores
        self.written = [number(store.buffer) for store in self.stores]
        self.counts = [elements(sizes, store.place.axes) for store in self.stores]
        places = [store.place for store in self.stores]
        places += [node.detail.place for node in self.loads]
        self.straight = len(grains(places, sizes)) <= 1
        self.orders, self.ops, self.flops = set(), 0, 0
        self.folded, self.solid = set(), set()
        for node in kernel.nodes:
            if node.op not in ("load", "constant"):
                self.note(node)

    def note(self, node):
        """Take account of an operation."""
        self.ops += 1
        self.flops += PRICES[scalar_ops[node.op].cost] if node.op in scalar_ops else 1
        if node.op == "fold":
            how, axes = node.detail
            self.folded.update(axes)
            self.orders.update((kept, axis) for kept in node.level for axis in axes)
            self.solid.update(axes if how.startswith("arg") else ())


class Part:
    """A launch, and what it reads and makes.

    Attributes:
      number: its place among the steps.
      launch, kernel, sizes: the launch, its kernel, and the sizes of this.
      work: the `Work` of the kernel.
      reads, writes: for each load, and for each store, the slot.
    """

    def __init__(self, number, launch, work):
        self.number, self.launch, self.work = number, launch, work
        self.kernel, slots = launch
        self.sizes = self.kernel.sizes
        self.reads = [slots[buffer] for buffer in work.read]
        self.writes = [slots[buffer] for buffer in work.written]

    @property
    def loads(self):
        """Pairs of a slot and a load."""
        return zip(self.reads, self.work.loads)

    @property
    def stores(self):
        """Pairs of a slot and a store."""
        return zip(self.writes, self.work.stores)

    def slot(self, buffer):
        """Return the slot that a buffer of the kernel stands for."""
        return self.launch.slots[self.kernel.buffers.index(buffer)]


def parts_among(steps):
    """Return the launches among some steps as parts, by their numbers."""
    works, parts = {}, {}
    for number, step in enumerate(steps):
        if isinstance(step, Launch) and is_affine(step.kernel):
            work = works.get(step.kernel) or Work(step.kernel)
            parts[number] = Part(number, step, works.setdefault(step.kernel, work))
    return parts


class Uses:
    """What a schedule does with its slots.

    Args:
      schedule: the schedule.
      parts: its launches, by their numbers.

    Attributes:
      kept: the slots that have to be stored: of results, and for other steps.
      shared: the slots that several steps write to.
      readers, writers: from slots to the numbers of the steps that read them, and of
        those that write to them.
      reads: from slots to how often launches load an element, loops around counted in.
    """

    def __init__(self, schedule, parts):
        self.kept, self.shared = {*schedule.outputs}, set()
        self.readers, self.writers, self.reads = {}, {}, {}
        for number, step in enumerate(schedule.steps):
            if number not in parts:
                self.kept.update(step.reads)
            self.note(number, parts.get(number, step))
        for part in parts.values():
            for slot, count in zip(part.reads, part.work.often):
                self.reads[slot] = self.reads.get(slot, 0) + count

    def note(self, number, step):
        """Take account of a step, or of the part that it is."""
        for slot in step.reads:
            self.readers.setdefault(slot, []).append(number)
        for slot in {*step.writes}:
            if slot in self.writers:
                self.shared.add(slot)
            self.writers.setdefault(slot, []).append(number)

    def before(self, number, step):
        """Return the numbers of the steps that have to come before one."""
        found = []
        for slot in (*step.reads, *step.writes):
            found += self.writers.get(slot, ())
        for slot in step.writes:
            found += self.readers.get(slot, ())
        return {other for other in found if other < number}

    def collide(self, first, second):
        """Return whether two groups write to one slot, or read what the other writes
        to when it is not whole."""
        return any(
            slot in first.made or slot in first.reads
            for slot in (*second.made, *second.reads)
            if slot in self.shared
        )

    def outside(self, slot, numbers):
        """Return whether a slot is read by others than these launches."""
        return slot in self.kept or not numbers.issuperset(self.readers.get(slot, ()))
