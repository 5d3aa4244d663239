# Made from chapters/19_fusion_ground.md by `make chapter`;
# edit the chapter, not this file.
"""What a launch does: what it loads and stores, folds and costs, in which order."""

import dataclasses
import functools
import math
from typing import Any

from minijax.kernels.kernel import is_affine, needed
from minijax.kernels.program_steps import Launch


def elements(sizes, axes):
    """Return how many indices there are along some axes."""
    return math.prod([sizes[axis] for axis in axes])


def walked(node):
    """Return the axes along which a node is computed: with those that it folds."""
    if node.op != "fold":
        return node.level
    return tuple({*node.args[0].level, *node.detail.axes})


@dataclasses.dataclass(eq=False)
class Part:
    """A launch that may become one with others, and what its kernel does.

    Attributes:
      kernel: what it runs; None if that has not been written yet.
      sizes: of its loops.
      loads: pairs of a buffer and the node of a load.
      made: from buffers to lists of `Store`.
      ops: the number of scalar operations.
      folding: from nodes to the axes that are folded on the way to them, if any are.
      orders: pairs of axes, the first of which has to be outside of the second: a fold
        keeps the first, and folds the second or goes on along it.
      solid: axes along which a place is sought, so that they must stay whole.
      names: of the operations that it is made of.
      homes: the parts that it is to be written of, with their indices.
      known: its nodes, by what makes two of them equal, if more is to be taken in.
    """

    kernel: Any
    sizes: tuple
    loads: list
    made: dict
    ops: int
    folding: dict
    orders: frozenset = frozenset()
    solid: frozenset = frozenset()
    names: tuple = ()
    homes: tuple = ()
    known: dict | None = None

    @property
    def stores(self):
        """Pairs of a buffer and a `Store`."""
        return [(buffer, x) for buffer, found in self.made.items() for x in found]

    @property
    def launch(self):
        """The step."""
        pairs = [(load.detail.parameter, buffer) for buffer, load in self.loads]
        buffers = dict([*pairs, *[(x.parameter, buffer) for buffer, x in self.stores]])
        return Launch(self.kernel, [buffers[x] for x in self.kernel.parameters])

    def folded(self, store):
        """Return the axes that are folded on the way to a store."""
        return self.folding.get(store.node, frozenset())

    def note(self, folds):
        """Note what some nodes fold, and what that says of the loops."""
        for node in self.kernel.nodes:
            axes = [self.folding[arg] for arg in node.args if arg in self.folding]
            axes += [frozenset(node.detail.axes)] if node.op == "fold" else []
            if axes:
                union = axes[0] if len(axes) == 1 else frozenset().union(*axes)
                self.folding[node] = union
        sought = [node.detail for node in folds if node.detail.how[:3] == "arg"]
        self.solid = frozenset([axis for detail in sought for axis in detail.axes])
        orders = set()
        for node in folds if len(self.sizes) > 1 else ():
            after = self.behind(node).difference(node.level).union(node.detail.axes)
            orders.update([(kept, axis) for kept in node.level for axis in after])
        self.orders = frozenset(orders)

    def cost(self, store, target):
        """Return what an element of a store costs, from what the kernel loads."""
        sizes, total = self.sizes, 0
        for node in needed([store.node]):
            if node.op not in ("load", "constant"):
                total += target.price(node.op) * elements(sizes, walked(node))
        return total / elements(sizes, store.place.axes)

    def behind(self, node):
        """Return the axes along which the kernel goes on with one of its nodes."""
        return self._behind[node]

    @functools.cached_property
    def _behind(self):
        found = {node: set() for node in self.kernel.nodes}
        for _, store in self.stores:
            found[store.node].update(store.place.axes)
        for node in reversed(self.kernel.nodes):
            for arg in node.args:
                found[arg].update(walked(node), found[node])
        return found


def part_of(launch):
    """Return a launch as a part; None if it has nothing to do, along an axis of size 0,
    or has a computed place."""
    usual = 0 not in launch.kernel.sizes and is_affine(launch.kernel)
    return affine_part(*launch) if usual else None


def affine_part(kernel, buffers):
    """Return a kernel without computed places as a part, with its buffers."""
    own, made = dict(zip(kernel.parameters, buffers)), {}
    loads = [node for node in kernel.nodes if node.op == "load"]
    folds = [node for node in kernel.nodes if node.op == "fold"]
    constants = [node for node in kernel.nodes if node.op == "constant"]
    for store in kernel.stores:
        made.setdefault(own[store.parameter], []).append(store)
    ops = len(kernel.nodes) - len(loads) - len(constants)
    loads = [(own[node.detail.parameter], node) for node in loads]
    part = Part(kernel, kernel.sizes, loads, made, ops, {}, names=(kernel.name,))
    if folds:
        part.note(folds)
    return part
