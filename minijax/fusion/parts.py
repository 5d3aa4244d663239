# Made from chapters/19_fusion_ground.md by `make chapter`;
# edit the chapter, not this file.
"""What kernels do, as tables: loads, stores, folds, orders of loops, and costs."""

import functools
import itertools
import math

from minijax.kernels.parts import Affine, Guard, Load, Store, is_affine


@functools.cache
def unit(rank):
    """Return the index along each of so many axes, as a tuple of `Affine`."""
    return tuple(
        Affine(0, tuple(int(k == axis) for k in range(rank))) for axis in range(rank)
    )


@functools.lru_cache(2**12)
def seen_along(place, maps, rank):
    """Return a place along other axes.

    Args:
      place: an `Affine`.
      maps: for each of its axes, the `Affine` along the other ones.
      rank: how many of these there are.
    """
    if maps == unit(rank) and len(place.strides) == rank:
        return place
    offset, strides = place.offset, [0] * rank
    for stride, at in zip(place.strides, maps):
        if stride:
            offset += stride * at.offset
            for axis, step in enumerate(at.strides):
                strides[axis] += stride * step
    return Affine(offset, tuple(strides))


def elements(sizes, axes):
    """Return how many indices there are along some axes."""
    return math.prod([sizes[axis] for axis in axes])


def walked(node):
    """Return the axes along which a node is computed: with those that it folds."""
    if node.op != "fold":
        return node.level
    return tuple({*node.args[0].level, *node.detail.axes})


class Table:
    """What a kernel does, on whatever buffers it runs.

    Attributes:
      kernel: the kernel.
      loads, stores: pairs of the position of a parameter and a node, or a `Store`.
      scalars, ops: the nodes of scalar operations and of folds, and their number.
      folding: from nodes to the axes that are folded on the way to them, if any are.
      orders: pairs of axes, the first of which has to be outside of the second: a fold
        keeps the first, and folds the second or goes on along it.
      solid: axes along which a place is sought, so that they must stay whole.
    """

    def __init__(self, kernel):
        position = {parameter: n for n, parameter in enumerate(kernel.parameters)}
        nodes, self.kernel = kernel.nodes, kernel
        loads = [node for node in nodes if node.op == "load"]
        folds = [node for node in nodes if node.op == "fold"]
        self.loads = [(position[node.detail.parameter], node) for node in loads]
        self.stores = [(position[store.parameter], store) for store in kernel.stores]
        self.scalars = [x for x in nodes if x.op not in ("load", "constant")]
        self.ops = len(self.scalars)
        self.folding = self._folding() if folds else {}
        sought = [node.detail.axes for node in folds if node.detail.how[:3] == "arg"]
        self.solid = frozenset().union(*sought)
        self.orders = frozenset().union(*map(self._orders, folds))

    def _folding(self):
        found = {}
        for node in self.kernel.nodes:
            axes = [found[arg] for arg in node.args if arg in found]
            axes += [node.detail.axes] if node.op == "fold" else []
            if axes:
                found[node] = frozenset().union(*axes)
        return found

    def _orders(self, fold):
        after = self.behind[fold].difference(fold.level).union(fold.detail.axes)
        return {*itertools.product(fold.level, after)}

    @functools.cached_property
    def behind(self):
        """From nodes to the axes along which the kernel goes on with them."""
        found = {node: set() for node in self.kernel.nodes}
        for _, store in self.stores:
            found[store.node].update(store.place.axes)
        for node in reversed(self.kernel.nodes):
            for arg in node.args:
                found[arg].update(walked(node), found[node])
        return found

    @functools.cached_property
    def counts(self):
        """Pairs of an operation and how often it is done."""
        return [(x.op, elements(self.kernel.sizes, walked(x))) for x in self.scalars]

    def work(self, target):
        """Return what all operations cost."""
        return sum([target.price(op) * count for op, count in self.counts])


class Part:
    """One or more launches in the same loops.

    Attributes:
      sizes: of the loops.
      loads: pairs of a buffer and a `Load`.
      made: from buffers to lists of `Store`.
      ops, orders, solid: as in a `Table`.
      folding: from buffers to the axes that are folded on the way to a store.
      others: what `homes` are; nothing for one launch in its own loops, which would
        hold itself.
      table: of the kernel, if it is one launch in its own loops.
    """

    def __init__(self, sizes, loads, made, ops, folding, orders, solid, homes, table=0):
        self.sizes, self.loads, self.made, self.ops = sizes, loads, made, ops
        self.folding, self.orders, self.solid = folding, orders, solid
        self.others, self.table = homes, table

    @property
    def homes(self):
        """Pairs of a launch, a `Part` as well, and its indices along the loops."""
        return self.others or [(self, unit(len(self.sizes)))]

    @property
    def stores(self):
        """Pairs of a buffer and a `Store`."""
        return [(buffer, x) for buffer, found in self.made.items() for x in found]

    def makes_little(self, few):
        """Return whether it makes one array, with no fold and few operations."""
        return self.ops <= few and len(self.stores) == 1 and not self.folding

    @functools.cached_property
    def computed(self):
        """All buffers that its launches make, stored or not."""
        return {buffer for launch, _ in self.homes for buffer in launch.made}

    @property
    def loops(self):
        """The loops along which at least one of the launches goes."""
        return {axis for _, home in self.homes for at in home for axis in at.axes}

    def along(self, home, sizes):
        """Return the part in other loops, where its indices are those of `home`."""
        if sizes == self.sizes and home == unit(len(sizes)):
            return self

        def at(place):
            return seen_along(place, home, len(sizes))

        def moved(parameter, place, guards, other, terms):
            guards = tuple([Guard(at(x), limit) for x, limit in guards])
            return Load(parameter, at(place), guards, other, terms)

        made = {
            buffer: [Store(x.parameter, at(x.place), x.node) for x in found]
            for buffer, found in self.made.items()
        }
        loads = [(buffer, moved(*x)) for buffer, x in self.loads]
        folding = {buffer: _axes(axes, home) for buffer, axes in self.folding.items()}
        pairs = [itertools.product(home[a].axes, home[b].axes) for a, b in self.orders]
        orders, solid = frozenset().union(*pairs), _axes(self.solid, home)
        homes = [(part, tuple([at(x) for x in own])) for part, own in self.homes]
        return Part(sizes, loads, made, self.ops, folding, orders, solid, homes)

    @functools.cached_property
    def behind(self):
        """From buffers to the axes along which the part goes on with what it reads."""
        found = {}
        for part, home in reversed(self.homes):
            on = set().union(*[found.get(buffer, ()) for buffer in part.made])
            for (buffer, _), (_, node) in zip(part.loads, part.table.loads):
                axes = _axes(part.table.behind[node], home)
                found[buffer] = axes.union(on, found.get(buffer, ()))
        return found

    def cost(self, buffer, target):
        """Return what an element of a buffer costs, from what the part loads."""
        wanted, total = {buffer}, 0
        for part, _ in reversed(self.homes):
            if not wanted.isdisjoint(part.made):
                total += part.table.work(target)
                wanted.update([read for read, _ in part.loads])
        [maker] = [part for part, _ in self.homes if buffer in part.made]
        return total / elements(maker.sizes, maker.made[buffer][0].place.axes)


def _axes(own, home):
    return frozenset([new for axis in own for new in home[axis].axes])


def part_of(launch, tables=None):
    """Return a launch as a part; None if it has nothing to do, along an axis of size 0,
    or has a computed place.

    Args:
      launch: the `Launch`.
      tables: from kernels to what is known of them, a `Table` or None.
    """
    kernel, buffers = launch
    tables = {} if tables is None else tables
    if kernel not in tables:
        usual = 0 not in kernel.sizes and is_affine(kernel)
        tables[kernel] = Table(kernel) if usual else None
    table = tables[kernel]
    if table is None:
        return None
    made, folding = {}, {}
    loads = [(buffers[n], node.detail) for n, node in table.loads]
    for n, store in table.stores:
        made.setdefault(buffers[n], []).append(store)
        if store.node in table.folding:
            folding[buffers[n]] = table.folding[store.node]
    rest = table.ops, folding, table.orders, table.solid, ()
    return Part(kernel.sizes, loads, made, *rest, table)


class Candidate:
    """Two parts in the same loops, which may become one.

    Attributes:
      first, second: the parts.
      links: what is handed over, if it is known.
      folds: what the first part folds and the second one reads: from buffers to pairs
        of the axes of the place, and of those along which the second part goes on.
      orders: pairs of loops of which the first has to be outside of the second.
    """

    def __init__(self, first, second, links=()):
        self.first, self.second, self.links, self.folds = first, second, links, {}
        self.orders = first.orders | second.orders if second.orders else first.orders
        read = dict(second.loads) if first.folding else ()
        for buffer in [buffer for buffer in read if buffer in first.folding]:
            kept = first.made[buffer][0].place.axes
            self.folds[buffer] = kept, second.behind[buffer].difference(kept)
            self.orders = self.orders.union(itertools.product(*self.folds[buffer]))

    def part(self, gone=()):
        """Return the part of both; the buffers `gone` need not be stored any more."""
        first, second = self.first, self.second
        made, folding = {**first.made, **second.made}, first.folding
        if second.folding:
            folding = {**folding, **second.folding}
        if self.folds:
            axes = frozenset().union(*[first.folding[buffer] for buffer in self.folds])
            more = {x: axes.union(folding.get(x, ())) for x in second.made}
            folding = {**folding, **more}
        for buffer in gone:
            del made[buffer]
        loads = [*first.loads, *[x for x in second.loads if x[0] not in first.made]]
        ops, solid = first.ops + second.ops, first.solid | second.solid
        homes = [*first.homes, *second.homes]
        return Part(first.sizes, loads, made, ops, folding, self.orders, solid, homes)


def joined(first, second):
    """Return the part of two that are in the same loops."""
    return Candidate(first, second).part()
