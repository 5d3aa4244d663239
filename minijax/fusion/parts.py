# Made from chapters/19_fusion.md by `make chapter`;
# edit the chapter, not this file.
"""Dependence analysis: what each launch does, and who uses its buffers."""

import math
from typing import NamedTuple

from minijax.kernels.kernel import is_affine
from minijax.kernels.program_steps import Launch


class Facts(NamedTuple):
    """What a kernel does, whatever buffers it is launched on.

    Attributes:
      loads: pairs of the number of a parameter and a load from it.
      stores: pairs of the number of a parameter and a `Store` into it.
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
    sizes, number = kernel.sizes, kernel.parameters.index
    loads = [node for node in kernel.nodes if node.op == "load"]
    folds = [node for node in kernel.nodes if node.op == "fold"]
    pairs = [(node, axis) for node in folds for axis in node.detail.axes]
    work = [node for node in kernel.nodes if node.op not in ("load", "constant")]
    counts = [elements(sizes, store.place.axes) for store in kernel.stores]
    flops = sum([target.price(node.op) for node in work])
    return Facts(
        tuple([(number(node.detail.parameter), node) for node in loads]),
        tuple([(number(store.parameter), store) for store in kernel.stores]),
        tuple([math.prod(sizes[: max(n.level, default=-1) + 1]) for n in loads]),
        tuple(
            [elements(sizes, n.level) * n.detail[0].dtype.itemsize for n in loads]
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
    """A launch among the steps of a program.

    Attributes:
      number: its place among the steps.
      kernel: what it runs.
      facts: the `Facts` of the kernel.
      loads: pairs of a buffer and a load.
      stores: pairs of a buffer and a `Store`.
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
        kernel, buffers = step
        if kernel not in facts:
            facts[kernel] = facts_of(kernel, target) if is_affine(kernel) else None
        known = facts[kernel]
        if known:
            loads = [(buffers[parameter], node) for parameter, node in known.loads]
            stores = [(buffers[parameter], store) for parameter, store in known.stores]
            parts[number] = Part(number, kernel, known, loads, stores)
    return parts


class Uses(NamedTuple):
    """What a program does with its buffers.

    Attributes:
      parts: its launches, by their numbers.
      makers: from buffers that one launch writes to pairs of the part and its store.
      readers: from buffers to the numbers of the steps that read them.
      visits: from buffers to how often launches load an element, loops counted in.
      kept: the buffers that have to be stored: of results, for other steps, shared.
      shared: the buffers that several steps write to.
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

    def maker(self, buffer):
        """Return the number of the only launch that writes a buffer, or None."""
        return self.makers[buffer][0][0].number if buffer in self.makers else None

    def count(self, buffer):
        """Return how many elements of a buffer its launch stores."""
        return self.makers[buffer][0][0].facts.counts[0]

    def outside(self, buffer, numbers):
        """Return whether a buffer is needed by others than these launches."""
        if buffer in self.kept:
            return True
        return any(reader not in numbers for reader in self.readers.get(buffer, ()))


def uses_of(program, target):
    """Return the `Uses` of a program."""
    parts = parts_among(program.steps, target)
    kept, readers, writers, needs = {*program.outputs}, {}, {}, []
    users = [set() for _ in program.steps]
    for number, step in enumerate(program.steps):
        reads, writes = _ends(step, parts.get(number))
        kept.update(() if number in parts else reads)
        before = {n for buffer in (*reads, *writes) for n in writers.get(buffer, ())}
        before.update([n for buffer in writes for n in readers.get(buffer, ())])
        for buffer in reads:
            readers.setdefault(buffer, []).append(number)
        for buffer in {*writes}:
            writers.setdefault(buffer, []).append(number)
        for other in before:
            users[other].add(number)
        needs.append(before)
    shared = {buffer for buffer, numbers in writers.items() if len(numbers) > 1}
    makers, visits = {}, {}
    for part in parts.values():
        for buffer, store in part.stores:
            if buffer not in shared:
                makers.setdefault(buffer, []).append((part, store))
        for (buffer, _), count in zip(part.loads, part.facts.visits):
            visits[buffer] = visits.get(buffer, 0) + count
    return Uses(parts, makers, readers, visits, kept | shared, shared, needs, users)


def _ends(step, part):
    """Return the buffers that a step reads, and those that it writes to."""
    if part is None:
        return step.reads, step.writes
    return [buffer for buffer, _ in part.loads], [buffer for buffer, _ in part.stores]
