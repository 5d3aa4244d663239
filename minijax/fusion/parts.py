# Made from chapters/19_fusion.md by `make chapter`;
# edit the chapter, not this file.
"""What a launch does: what it loads and stores, folds and costs, in which order."""

import dataclasses
import functools
import math

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


@dataclasses.dataclass(eq=False)
class Part:
    """A launch that may become one with others, and what its kernel does.

    What is known of the kernel is found out when it is first asked for, and kept.

    Attributes:
      kernel: what it runs.
      loads: pairs of a buffer and the node of a load.
      stores: pairs of a buffer and a `Store`.
      names: of the operations that it is made of.
      ops: the number of scalar operations.
      folds: its nodes that fold.
      known: its nodes, by what makes two of them equal, if more is to be taken in.
    """

    kernel: Kernel
    loads: list
    stores: list
    names: tuple
    ops: int
    folds: list
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
        return self._folded.get(store.node, frozenset())

    @functools.cached_property
    def _folded(self):
        found = {}
        for node in self.kernel.nodes if self.folds else ():
            axes = [found[arg] for arg in node.args if arg in found]
            if node.op == "fold":
                axes.append(frozenset(node.detail.axes))
            if axes:
                found[node] = axes[0] if len(axes) == 1 else frozenset().union(*axes)
        return found

    @functools.cached_property
    def solid(self):
        """Axes along which a place is sought, so that they must stay whole."""
        sought = [node.detail for node in self.folds if node.detail.how[:3] == "arg"]
        return frozenset([axis for detail in sought for axis in detail.axes])

    @functools.cached_property
    def orders(self):
        """Pairs of axes, the first of which has to be outside of the second: a fold
        keeps the first, and folds the second or goes on along it."""
        found = set()
        for node in self.folds:
            after = self.behind(node).difference(node.level).union(node.detail.axes)
            found.update([(kept, axis) for kept in node.level for axis in after])
        return frozenset(found)

    def cost(self, store, target):
        """Return what an element of a store costs, from what the kernel loads."""
        sizes, total = self.kernel.sizes, 0
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
    own = dict(zip(kernel.parameters, buffers))
    loads = [node for node in kernel.nodes if node.op == "load"]
    folds = [node for node in kernel.nodes if node.op == "fold"]
    work = [node for node in kernel.nodes if node.op not in ("load", "constant")]
    return Part(
        kernel,
        [(own[node.detail.parameter], node) for node in loads],
        [(own[store.parameter], store) for store in kernel.stores],
        (kernel.name,),
        len(work),
        folds,
    )
