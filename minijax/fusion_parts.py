# Made from chapters/18_fusion.md by `make chapter`;
# edit the chapter, not this file.
"""What fusion has to know of a kernel, and the prices."""

import math

from minijax.scalar_ops import scalar_ops

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


class Part:
    """A launch, and what it reads and makes.

    Attributes:
      number: its place among the steps.
      kernel, sizes, slots: of the launch; `slots` from buffers.
      loads: pairs of a slot and a load.
      stores: pairs of a slot and a store.
      folded: the axes that it folds.
      orders: pairs of axes: one that a fold keeps, and one that it folds.
      solid: axes along which a place is sought, so that they must stay whole.
      ops: the number of its scalar operations.
      flops: what they cost for one index.
    """

    def __init__(self, number, launch):
        self.number, self.launch = number, launch
        self.kernel, self.sizes = launch.kernel, launch.kernel.sizes
        self.slots = dict(zip(launch.kernel.buffers, launch.slots))
        self.stores = [(self.slots[s.buffer], s) for s in launch.kernel.stores]
        self.loads, self.orders, self.ops, self.flops = [], set(), 0, 0
        self.folded, self.solid = set(), set()
        for node in launch.kernel.nodes:
            if node.op == "load":
                self.loads.append((self.slots[node.detail.buffer], node))
            elif node.op != "constant":
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
