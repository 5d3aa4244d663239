"""The fusion pass: kernels merged where that saves memory traffic; loop alignment."""

# Made from chapters/19_fusion_rest.md by `make chapter`;
# edit the chapter, not this file.

import functools
import math
from typing import NamedTuple

from minijax.fusion.greedy import (
    ProducerConsumerEdge,
    fuse_different_loops,
    fuse_in_common_loops,
    producer_consumer_edges,
)
from minijax.fusion.merging import (
    FREE_OPS,
    delinearize_guarded,
    extent_product,
    fused_launch,
    fusion_group_of,
)
from minijax.kernels.builder import identity_map
from minijax.kernels.checker import check_kernel
from minijax.kernels.lowering import Launch
from minijax.llvm.targets import current_target

# Loop alignment: the order of the loops that two parts share, and whether it pays.


def shared_reads(first, second):
    """Return links for what two parts read that do not need each other."""
    known, others = dict(reversed(first.loads)), dict(reversed(second.loads))
    if not others.keys().isdisjoint(first.made):
        return []
    found = []
    for buffer, read in others.items():
        made = known.get(buffer)
        if made and not made.guards + read.guards + made.terms + read.terms:
            full = all(made.place.strides) and all(read.place.strides)
            found += [ProducerConsumerEdge(buffer, made, read)] if full else []
    return found


def fuse_same_loops(first, second, links):
    """Return two parts in loops that both can have, in an order that all folds allow.

    Args:
      producer, consumer: the parts.
      links: between them, if the first makes what the second reads.

    Returns:
      A `FusionCandidate`; or None.
    """
    both = fuse_in_common_loops(first, second, links or shared_reads(first, second))
    if both is None or all(outer < inner for outer, inner in both.axis_orders):
        return both
    sizes = both.producer.sizes
    order = common_axis_order([*range(len(sizes))], both.axis_orders)
    if order is None:
        return None
    units, sizes = identity_map(len(order)), tuple([sizes[axis] for axis in order])
    new = tuple([units[order.index(axis)] for axis in range(len(order))])
    return fuse_different_loops(both.producer, both.consumer, new, new, sizes)


def common_axis_order(axes, orders):
    """Return axes so that all orders hold, else as they are; or None."""
    left, found = [*axes], []
    while left:
        free = [b for b in left if not any((a, b) in orders for a in left)]
        if not free:
            return None
        found.append(free[0])
        left.remove(free[0])
    return found


def is_profitable(both, target):
    """Return whether two parts in the same loops are better than two kernels.

    Args:
      both: a `FusionCandidate`.
      target: the prices.
    """
    return (
        is_near(both, target)
        and stays_in_rows(both, target)
        and all(is_worth_it(both, link, target) for link in both.edges)
        and is_straight(both, target)
        and gathers_in_rows(both)
    )


def gathers_in_rows(both):
    """Return whether no fold goes from row to row for columns that are gathered.

    Those are better put side by side before.
    """
    then = both.consumer.fold_axes
    if not then:
        return True
    for node in [x for x in both.producer.nodes if x.op == "load" and x.args]:
        moving = {axis for number in node.args for axis in number.level}
        steps = [abs(node.detail.place.strides[axis]) for axis in then - moving]
        if moving - then and max(steps, default=0) > 1:
            return False
    return True


def access_itemsize(access):
    """Return the bytes of what is loaded, or stored."""
    return access.parameter.dtype.itemsize


def is_near(both, target):
    """Return whether what is walked again after it was folded is near, and cheap."""
    if not both.folds:
        return True
    first, sizes = both.producer, both.producer.sizes
    walks = [(folded, after) for folded, _, after in both.folds if after]
    near = both.cache_elements(target)
    if any(extent_product(sizes, x) > near for walk in walks for x in walk):
        return False
    again = set().union(*[folded.intersection(after) for folded, after in walks])
    made = [x.buffer for x in both.edges if again.intersection(x.store.place.axes)]
    limit = target.recompute_cost
    return all(first.cost(buffer, target, limit) <= limit for buffer in made)


def stays_in_rows(both, target):
    """Return whether a large array whose rows are folded is read row after row still.

    Axes that only the second part folds are inside of those that it keeps; rows that
    lay one behind the other would be read far apart, each for one iteration.
    """
    if not both.folds:
        return True
    then = both.consumer.fold_axes - both.producer.fold_axes
    places = [x.place for _, x in both.producer.loads] if then else []
    return not any(
        abs(place.strides[axis]) < abs(place.strides[inner])
        for place in places
        if extent_product(both.producer.sizes, place.axes) > 16 * target.cache_elements
        for inner in then.intersection(place.axes)
        for axis in place.axes
        if axis < inner
    )


def is_worth_it(both, link, target):
    """Return whether to compute elements more often than once costs less than to store
    them, to load them, and to start a kernel for that."""
    first, sizes = both.producer, both.producer.sizes
    read, made = link.load, link.store.place
    if link.is_identity and all(made.strides):
        return True
    count = extent_product(sizes, made.axes)
    around = range(max((-1, *read.place.axes)) + 1)
    more = extent_product(sizes, both.consumer.loops.intersection(around)) - count
    if not link.is_identity:
        found = delinearize_guarded(read.place, read.guards, sizes, made, sizes)
        if first.folding([link.buffer]) or not found:
            return False
        more = extent_product(sizes, read.place.axes)
    if more <= 0:
        return True
    itemsize = link.store.parameter.dtype.itemsize
    saved = 2 * target.byte_cost * itemsize * count + target.launch_cost
    return more * first.cost(link.buffer, target, saved / more) <= saved


VECTOR = 16  # numbers that are worth loads of neighbours


def contiguous_axes(places, sizes, small):
    """Return the axes along which the elements of matrices are neighbours."""
    few = math.prod(sizes) <= small
    return set() if few else {grain(at, sizes, small) for at in places} - {None}


def min_grain_elements(reads, target):
    """Return how few numbers have no direction, if there are so many reads of them."""
    return target.broadcast_elements if reads <= target.cache_elements else 4 * VECTOR


@functools.lru_cache(2**12)
def grain(place, sizes, small):
    """Return the axis along which the elements of a large matrix are neighbours."""
    steps = {axis: abs(place.strides[axis]) for axis in place.axes}
    matrix = len(steps) > 1 and extent_product(sizes, steps) > small
    return min(steps, key=steps.__getitem__) if matrix else None


def is_straight(both, target):
    """Return whether all matrices that folds go through lie in the same direction."""
    first, second, sizes = both.producer, both.consumer, both.producer.sizes
    reads = math.prod(sizes)
    if not both.axis_orders or reads <= target.broadcast_elements:
        return True
    one, other = [[load.place for _, load in part.loads] for part in (first, second)]
    places = one + [load.place for x, load in second.loads if x not in first.made]
    few = min_grain_elements(reads, target)
    found, *alone = [
        len(contiguous_axes(each, sizes, few)) for each in (places, one, other)
    ]
    if found > max(1, *alone):
        return False
    found = contiguous_axes(places, sizes, target.broadcast_elements)
    return len(found) <= 1 or any(
        sizes[axis] >= VECTOR and all(abs(at.strides[axis]) < 2 for at in places)
        for axis in found
    )


def loses_contiguity(part, moved, target):
    """Return the large buffers that were stored in order, and are not any more.

    Args:
      part, moved: a part in its own loops, and in others.
      target: the `Target`.
    """
    if part is moved or math.prod(moved.sizes) <= target.cache_elements:
        return set()
    pairs = [(x, a.place, b.place) for (x, a), (_, b) in zip(part.stores, moved.stores)]
    return {
        buffer
        for buffer, old, new in pairs
        if grain(new, moved.sizes, target.cache_elements) not in (None, *new.axes[-1:])
        and grain(old, part.sizes, target.cache_elements) in old.axes[-1:]
    }


# The fusion pass: kernels of a program merged where that saves memory traffic.


class BufferUses(NamedTuple):
    """Which steps of a program use which buffers.

    Attributes:
      groups: those of its launches that may become one with others, by their numbers.
      producers: from buffers that one such launch writes to its number.
      consumers: from buffers to the numbers of the steps that read them.
      live_out: the buffers that must be stored: of results, for other steps, shared.
      multiply_written: the buffers that several steps write to.
      predecessors, successors: for each step the numbers of those that must come
        before it, and after it; less those of which other steps tell.
    """

    groups: dict
    producers: dict
    consumers: dict
    live_out: set
    multiply_written: set
    predecessors: list
    successors: list


def buffer_uses(program):
    """Return the `BufferUses` of a program."""
    kept, readers, writers, needs = {*program.outputs}, {}, {}, []
    users, parts, since = [set() for _ in program.steps], {}, {}
    for number, step in enumerate(program.steps):
        part = fusion_group_of(step) if isinstance(step, Launch) else None
        if part:
            parts[number], writes = part, part.made
            reads = dict.fromkeys(part.sources.values())
        else:
            reads, writes = {*step.reads}, {*step.writes}
            kept.update(reads)
        before = {n for buffer in reads for n in writers.get(buffer, ())[-1:]}
        for buffer in writes:  # what came before the last writer comes before it
            before.update(writers.get(buffer, ())[-1:], since.pop(buffer, ()))
            writers.setdefault(buffer, []).append(number)
        for buffer in reads:
            readers.setdefault(buffer, []).append(number)
            since.setdefault(buffer, []).append(number)
        for other in before:
            users[other].add(number)
        needs.append(before)
    shared = {buffer for buffer, numbers in writers.items() if len(numbers) > 1}
    alone = {buffer: n for buffer, [n, *_] in writers.items() if buffer not in shared}
    makers = {buffer: n for buffer, n in alone.items() if n in parts}
    return BufferUses(parts, makers, readers, kept | shared, shared, needs, users)


MAX_RECOMPUTE_OPS = 16  # operations that may be done again


class FusionPass:
    """Launches of a program that become one.

    Args:
      program: the program.
      target: the `Target` whose prices count.

    Attributes:
      uses: what the program does with its buffers.
      recomputable: from buffers to the part of a launch that makes one and nothing
        else, with few operations and no fold, so that others may make the buffer again.
      recomputed: those of them that are made again wherever they are read.
      groups: from the first number of those that became one to the `FusionGroup`.
      group_steps: from such numbers to all numbers of the group.
      leader: for each step, the number by which its group is found.
      position: by such numbers, where the group stands among the steps.
      predecessors, successors: by such numbers, what must come before and after.
      refused: what is known of pairs of launches that are better two, by `pair_key`.
    """

    def __init__(self, program, target):
        self.program, self.target, self.uses = program, target, buffer_uses(program)
        parts, kept = self.uses.groups, self.uses.live_out
        alone = {x: parts[n] for x, n in self.uses.producers.items() if x not in kept}
        self.recomputable = {
            x: part
            for x, part in alone.items()
            if part.is_recomputable(MAX_RECOMPUTE_OPS)
        }
        self.groups, self.recomputed, self.leader = {}, {}, [*range(len(program.steps))]
        self.refused = set()
        self.position, self.group_steps = [*self.leader], [[n] for n in self.leader]
        around = [[{*n} for n in found] for found in self.uses[-2:]]
        self.predecessors, self.successors = around
        for number, part in self.uses.groups.items():
            self.groups[number] = part
            self.fuse_producers(number)
        for numbers in self.uses.consumers.values():
            if len(numbers) > 1:
                self.fuse_consumers(numbers)
        for buffer in self.uses.producers:
            if buffer in self.recomputable and self.is_materialized(buffer):
                self.recomputed |= self.recompute(buffer)

    def __str__(self):
        order = sorted(self.groups, key=self.position.__getitem__)
        return "\n".join([str(self.launch(number).kernel) for number in order])

    def launch(self, number):
        """Return the launch of a part, with all that it makes."""
        part = self.groups[number]
        return fused_launch(part, {buffer for buffer, _ in part.stores})

    def leaders(self, numbers):
        """Return the parts of some launches by their numbers, the last one first."""
        found = {self.leader[number] for number in numbers}
        return sorted(found, key=self.position.__getitem__, reverse=True)

    def fuse_producers(self, number):
        """Join a launch with the parts that make what it reads."""
        makers = self.uses.producers
        found = [makers[b] for b in self.groups[number].sources.values() if b in makers]
        for other in self.leaders(found):
            self.merge(other, self.leader[number])

    def fuse_consumers(self, numbers):
        """Join parts that walk over the same array."""
        found = self.leaders([n for n in numbers if n in self.uses.groups])[::-1]
        for first, other in zip(found, found[1:]):  # the one that grows comes first
            self.merge(self.leader[first], other, linked=False)

    def merge(self, a, b, linked=True):
        """Put the second part into the first, an earlier one, if that can be and pays.

        The first one makes what the second reads, or reads it too.
        """
        first, second = self.groups[a], self.groups[b]
        place = self.merged_position(a, b)
        few = first.ops + second.ops <= self.target.max_fused_ops
        if place is not None and few and not self.would_form_cycle(first, second):
            both = self.fuse_pair(a, b, linked)
            if both:
                self.groups[a], self.position[a] = both, place
                self.replace_group(b, a)

    def replace_group(self, b, a):
        """Let the first part of two stand for the second as well."""
        around = self.predecessors, self.successors
        for before, after in (around, around[::-1]):
            for other in before[b]:
                after[other].discard(b)
                after[other].add(a)
            before[a] |= before[b]
            before[a] -= {a, b}
        for number in self.group_steps[b]:
            self.leader[number] = a
        self.group_steps[a] += self.group_steps[b]
        del self.groups[b]

    def merged_position(self, a, b):
        """Return where two parts can stand as one, or None."""
        place, early, late = self.position, self.position[a], self.position[b]
        if not [n for n in self.successors[a] if n != b and place[n] < late]:
            return late
        waits = [n for n in self.predecessors[b] if n != a and place[n] > early]
        return None if waits else early

    def would_form_cycle(self, first, second):
        """Return whether two parts write to one buffer, or read what the other writes
        to when it is not whole."""
        if not self.uses.multiply_written:
            return False
        used = [{*x.sources.values(), *x.made} for x in (first, second)]
        both = (first.made.keys() & used[1]) | (used[0] & second.made.keys())
        return not self.uses.multiply_written.isdisjoint(both)

    def fuse_pair(self, a, b, linked):
        """Return the part of two, or None."""
        first, second, key = self.groups[a], self.groups[b], self.pair_key(a, b, linked)
        if key in self.refused:
            return None
        links = producer_consumer_edges(first, second) if linked else []
        both = fuse_same_loops(first, second, links) if links or not linked else None
        if not both or not is_profitable(both, self.target):
            self.refused |= {key} - {None}
            return None
        turned = loses_contiguity(first, both.producer, self.target)
        turned |= loses_contiguity(second, both.consumer, self.target)
        gone = {x.buffer for x in links if not self.is_read_outside(x.buffer, (a, b))}
        if not all(x in gone or x in self.recomputable for x in turned):
            return None
        return both.as_group(gone)

    def pair_key(self, a, b, linked):
        """Return what decides about two launches: their kernels, and which of their
        buffers are one. None for longer parts."""
        if len(self.group_steps[a]) + len(self.group_steps[b]) > 2:
            return None
        first, second = self.program.steps[a], self.program.steps[b]
        places = {buffer: place for place, buffer in enumerate(first.buffers)}
        same = tuple([places.get(buffer) for buffer in second.buffers])
        return first.kernel, second.kernel, same, linked

    def is_read_outside(self, buffer, leaders):
        """Return whether a buffer is needed by others than some parts."""
        if buffer in self.uses.live_out:
            return True
        readers = self.uses.consumers.get(buffer, ())
        return not all(self.leader[n] in leaders for n in readers)

    def is_materialized(self, buffer):
        """Return whether one part stores a buffer and other ones load it."""
        if buffer in self.uses.live_out or buffer in self.recomputed:
            return False
        return self.is_read_outside(buffer, [self.leader[self.uses.producers[buffer]]])

    def recompute(self, buffer):
        """Return the launches that make a buffer from what is stored, by what each of
        them makes, if that is better than to store it and to load it; else {}."""
        found, left, ops = {}, [buffer], 0
        for name in left:
            part = found[name] = self.recomputable[name]
            ops += part.ops
            if ops > MAX_RECOMPUTE_OPS:
                return {}
            more = [x for x in part.sources.values() if x in self.recomputable]
            left += [x for x in more if not self.is_materialized(x)]
        return (
            found
            if self.is_recompute_profitable(
                buffer, [self.recomputable[x] for x in left]
            )
            else {}
        )

    def is_recompute_profitable(self, buffer, launches):
        """Return whether elements that some launches make cost less than to store and
        to load them."""
        target, part, reads, flops, moved = self.target, launches[0], 0, 0, 0
        for reader in [self.uses.groups[n] for n in self.uses.consumers[buffer]]:
            axes = [x.level for x, source in reader.sources.items() if source == buffer]
            ends = [max(each, default=-1) + 1 for each in axes]
            reads += sum([math.prod(reader.sizes[:end]) for end in ends])
        made = {buffer for each in launches for buffer in each.made}
        for each in launches:
            done = [x.op for x in each.nodes if x.op not in FREE_OPS]
            flops += sum(map(target.price, done))
            loads = [x for x, source in each.sources.items() if source not in made]
            sizes = [
                extent_product(each.sizes, x.level) * access_itemsize(x.detail)
                for x in loads
            ]
            moved += sum(sizes)
        [(_, store)] = part.stores
        count = extent_product(part.sizes, store.place.axes)
        byte, cost = (
            target.byte_cost * access_itemsize(store),
            flops + target.byte_cost * moved / count,
        )
        if reads * cost > count * (cost + byte) + reads * byte + target.launch_cost:
            return False
        places = [store.place, *[load.place for _, load in part.loads]]
        return (
            len(contiguous_axes(places, part.sizes, min_grain_elements(reads, target)))
            <= 1
        )

    def steps(self):
        """Return the steps of all parts, less those that are not needed."""
        wanted, steps = {*self.uses.live_out}, []
        for number in self.leaders(self.leader):
            step = self.step(number, wanted)
            if step is not None:
                steps.append(step)
                wanted.update(step.reads)
        return steps[::-1]

    def step(self, number, wanted):
        """Return the step of a part, or None if what it makes is not needed."""
        step = self.program.steps[number]
        if number not in self.groups:
            inner = [fuse(program, self.target) for program in step.programs]
            return step.with_programs(inner) if inner else step
        part = self.groups[number]
        if wanted.isdisjoint(part.made):
            return None
        again = not self.recomputed.keys().isdisjoint(part.sources.values())
        if len(self.group_steps[number]) == 1 and not again:
            return step
        return fused_launch(part, wanted, self.recomputed if again else None)


def fuse(program, target=None):
    """Return a program of the same results with fewer kernels.

    Kernels are merged where that saves memory traffic; steps that are no launches stay
    as they are, and their programs are fused.

    Args:
      program: a `LoweredProgram`.
      target: the `Target` whose prices count, by default the current one.
    """
    target = target or current_target()
    return program._replace(steps=FusionPass(program, target).steps())


def check_fusion(fusion):
    """Raise a `ValueError` if a launch is in no part or in two, if the loops of a part
    are in a wrong order, or if a part stands in front of a step that it needs."""
    members, place, leader = fusion.group_steps, fusion.position, fusion.leader
    seen = [n for number in fusion.groups for n in members[number]]
    if sorted(seen) != sorted(fusion.uses.groups):
        raise ValueError("A launch is in no part, or in two.")
    for number, part in fusion.groups.items():
        launch = fusion.launch(number)
        before = fusion.uses.predecessors
        needs = {leader[n] for m in members[number] for n in before[m]}
        late = [n for n in needs - {number} if place[n] >= place[number]]
        if late or any(
            a >= b for a, b in part.axis_orders | fusion_group_of(launch).axis_orders
        ):
            raise ValueError(f"Loops or steps {late} are in a wrong order:\n{launch}")
        check_kernel(launch.kernel)
