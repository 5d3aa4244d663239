"""Parts of a program: launches in the same loops, and what fusion asks of them."""

# Made from chapters/19_fusion_ground.md by `make chapter`;
# edit the chapter, not this file.

import itertools
import math

from minijax.fusion.index_maps import elements, unit
from minijax.fusion.merging import NO_WORK, Merger
from minijax.kernels.parts import is_affine


def walked(node):
    """Return the axes along which a node is computed: with those that it folds."""
    if node.op != "fold":
        return node.level
    return tuple({*node.args[0].level, *node.detail.axes})


class Part(Merger):
    """One or more launches in the same loops, as one kernel that grows.

    Attributes:
      orders: pairs of axes, the first of which has to be outside of the second: a fold
        keeps the first, and folds the second or goes on along it.
      solid: axes along which a place is sought, so that they must stay whole.
      gone: buffers that it makes and need not store.
    """

    orders = solid = gone = frozenset()

    def take(self, other, maps=None):
        """Write all of another part at these indices, by default its own."""
        if other.folded:
            orders, solid = other.orders, other.solid
            if maps is not None:
                axes = [at.axes for at in maps]
                pairs = [itertools.product(axes[a], axes[b]) for a, b in orders]
                orders = frozenset().union(*pairs)
                solid = frozenset().union(*[axes[axis] for axis in solid])
            self.orders, self.solid = self.orders | orders, self.solid | solid
        if other.gone:
            self.gone |= other.gone
        return super().take(other, maps)

    def along(self, home, sizes):
        """Return the part in other loops, where its indices are those of `home`."""
        same = sizes == self.sizes and home == unit(len(sizes))
        return self if same else Part(sizes).take(self, home)

    @property
    def stores(self):
        """Pairs of a buffer and a `Store`, but for those that are gone."""
        made = [(x, stores) for x, stores in self.made.items() if x not in self.gone]
        return [(buffer, x) for buffer, stores in made for x in stores]

    @property
    def loads(self):
        """Pairs of a buffer and a `Load`."""
        return [(buffer, node.detail) for node, buffer in self.sources.items()]

    def folding(self, buffers):
        """Return from buffers to the axes that are folded on the way to a store."""
        found = {}
        for buffer in buffers if self.folded else ():  # two stores of a complex number
            stores = self.made.get(buffer, ())
            axes = [self.folded[x.node] for x in stores if x.node in self.folded]
            if axes:
                found[buffer] = frozenset().union(*axes)
        return found

    @property
    def loops(self):
        """The loops along which at least one of the launches goes."""
        axes = [walked(node) for node in self.nodes]
        return set().union(*axes, *[store.place.axes for _, store in self.stores])

    def makes_little(self, few):
        """Return whether it makes one array, with no fold and few operations."""
        return self.ops <= few and len(self.stores) == 1 and not self.folded

    def behind(self):
        """Return from nodes the axes along which the part goes on with them."""
        found = {node: set() for node in self.nodes}
        for _, store in self.stores:
            found[store.node].update(store.place.axes)
        for node in reversed(self.nodes):
            for arg in node.args:
                found[arg].update(walked(node), found[node])
        return found

    def cost(self, buffer, target, most=math.inf):
        """Return what an element of a buffer costs, from what the part loads.

        What is found to cost more than `most` is not followed any further.
        """
        [store, *_], total = self.made[buffer], 0
        count = elements(self.sizes, store.place.axes)
        left, seen = [store.node], {store.node}
        while left and total <= most * count:
            node = left.pop()
            if node.op not in NO_WORK:
                total += target.price(node.op) * elements(self.sizes, walked(node))
            left += [arg for arg in {*node.args} if arg not in seen]
            seen.update(node.args)
        return total / count


def part_of(launch):
    """Return a launch as a part; None if it has nothing to do, along an axis of size 0,
    or has a computed place."""
    kernel, buffers = launch
    if 0 in kernel.sizes or not is_affine(kernel):
        return None
    part, at = Part(kernel.sizes), dict(zip(kernel.parameters, buffers))
    part.nodes = nodes = kernel.nodes
    loads = [node for node in nodes if node.op == "load"]
    part.sources = {node: at[node.detail.parameter] for node in loads}
    part.ops = len([node for node in nodes if node.op not in NO_WORK])
    for store in kernel.stores:
        part.made.setdefault(at[store.parameter], []).append(store)
        part.names[store.node, kernel.name] = None
    folds = [node for node in nodes if node.op == "fold"]
    if folds:
        [*map(part.note_folds, nodes)]
        behind = part.behind()
        after = [behind[x].difference(x.level).union(x.detail.axes) for x in folds]
        pairs = [itertools.product(x.level, axes) for x, axes in zip(folds, after)]
        part.orders = frozenset().union(*pairs)
        sought = [x.detail.axes for x in folds if x.detail.how[:3] == "arg"]
        part.solid = frozenset().union(*sought)
    return part


class Candidate:
    """Two parts in the same loops, which may become one.

    Attributes:
      first, second: the parts.
      links: what the first one hands over to the second, a list of `Link`.
      folds: of what the first part folds and the second one reads, the axes that are
        folded, those of the place, and those along which the second part goes on.
      orders: pairs of loops of which the first has to be outside of the second.
    """

    def __init__(self, first, second, links=()):
        self.first, self.second, self.links, self.folds = first, second, links, []
        self.orders = first.orders | second.orders
        folding = first.folding(second.sources.values())
        if folding:
            behind = second.behind()
            for node, buffer in second.sources.items():
                if buffer in folding:
                    kept = first.made[buffer][0].place.axes
                    after = behind[node].difference(kept)
                    self.folds.append((folding[buffer], kept, after))
                    self.orders = self.orders.union(itertools.product(kept, after))

    def near(self, target):
        """Return how many numbers as long as what is handed over stay near."""
        itemsizes = [link.made.parameter.dtype.itemsize for link in self.links]
        return 8 * target.near // max([4, *itemsizes])

    def part(self, gone=()):
        """Return the part of both, which is the first one grown if that was written.

        It is None if the first one makes an element at a place that cannot be told.

        Args:
          gone: buffers that need not be stored any more.
        """
        first, apart = self.first, [x.buffer for x in self.links if not x.is_plain]
        if apart or not first.known:
            first = Part(first.sizes).take(first)
        both = first.take(self.second)
        if not {*apart}.isdisjoint(both.sources.values()):
            return None
        both.orders = self.orders
        both.gone = both.gone.union(gone)
        return both


def joined(first, second):
    """Return the part of two that are in the same loops."""
    return Candidate(first, second).part()
