# Made from chapters/19_fusion.md by `make chapter`;
# edit the chapter, not this file.
"""What a launch does: what it loads and stores, folds and costs, in which order."""

import math
from typing import NamedTuple

from minijax.kernels.kernel import Kernel, is_affine, needed
from minijax.kernels.program_steps import Launch


def elements(sizes, axes):
    """Return how many indices there are along some axes."""
    return math.prod([sizes[axis] for axis in axes])


def walked(node):
    """Return the axes along which a node is computed: with those that it folds."""
    if node.op != "fold":
        return node.level
    return tuple({*node.args[0].level, *node.detail.axes})


class Part(NamedTuple):
    """A launch that may become one with others, and what its kernel does.

    Attributes:
      kernel: what it runs.
      loads: pairs of a buffer and the node of a load.
      stores: pairs of a buffer and a `Store`.
      names: of the operations that it is made of.
      ops: the number of scalar operations.
      folds: its nodes that fold.
      orders: pairs of axes of which the first has to be outside of the second: a fold
        keeps the first, and folds the second or goes on along it.
      solid: axes along which a place is sought, so that they must stay whole.
      known: its nodes, by what makes two of them equal, if more is to be taken in.
    """

    kernel: Kernel
    loads: list
    stores: list
    names: tuple
    ops: int
    folds: list
    orders: frozenset
    solid: frozenset
    known: dict | None = None

    @property
    def parameters(self):
        """Pairs of a buffer and its parameter."""
        pairs = [(buffer, load.detail.parameter) for buffer, load in self.loads]
        return [*pairs, *[(buffer, store.parameter) for buffer, store in self.stores]]

    @property
    def launch(self):
        """The step."""
        buffers = {parameter: buffer for buffer, parameter in self.parameters}
        return Launch(self.kernel, [buffers[x] for x in self.kernel.parameters])

    def folded(self, store):
        """Return the axes that are folded on the way to a store."""
        if not self.folds:
            return frozenset()
        folds = needed([store.node]).intersection(self.folds)
        return frozenset([axis for node in folds for axis in node.detail.axes])

    def cost(self, store, target):
        """Return what an element of a store costs, from what the kernel loads."""
        sizes, total = self.kernel.sizes, 0
        for node in needed([store.node]):
            if node.op not in ("load", "constant"):
                total += target.price(node.op) * elements(sizes, walked(node))
        return total / elements(sizes, store.place.axes)

    def behind(self, nodes):
        """Return the axes along which a kernel goes on with some of its nodes."""
        found, axes = {*nodes}, set()
        for node in self.kernel.nodes:
            if not found.isdisjoint(node.args):
                found.add(node)
                axes.update(walked(node))
        for _, store in self.stores:
            axes.update(store.place.axes if store.node in found else ())
        return axes


def part_of(launch):
    """Return a launch as a part; None if it has nothing to do, along an axis of size 0,
    or has a computed place."""
    kernel, buffers = launch
    if 0 in kernel.sizes or not is_affine(kernel):
        return None
    own = dict(zip(kernel.parameters, buffers))
    loads = [node for node in kernel.nodes if node.op == "load"]
    folds = [node for node in kernel.nodes if node.op == "fold"]
    work = [node for node in kernel.nodes if node.op not in ("load", "constant")]
    part = Part(
        kernel,
        [(own[node.detail.parameter], node) for node in loads],
        [(own[store.parameter], store) for store in kernel.stores],
        (kernel.name,),
        len(work),
        folds,
        frozenset(),
        frozenset(
            [x for n in folds if n.detail.how[:3] == "arg" for x in n.detail.axes]
        ),
    )
    orders = set()
    for node in folds:
        after = {*node.detail.axes} | part.behind([node]).difference(node.level)
        orders.update([(kept, axis) for kept in node.level for axis in after])
    return part._replace(orders=frozenset(orders)) if orders else part
