"""Long folds in two kernels: one folds parts of an axis, one what is left of the parts.

The parts depend on sizes alone, so the results do not depend on who does them.
"""

# Made from chapters/27_threads_ground.md by `make chapter`;
# edit the chapter, not this file.

import dataclasses
from typing import NamedTuple

from minijax.jitting.stages import nbytes
from minijax.kernels.builder import (
    Buffer,
    NodeBuilder,
    at_indices,
    collapse_axes,
    identity_map,
    number_at,
    rewritten,
    store_at,
)
from minijax.kernels.ir import (
    Affine,
    Guard,
    IndirectTerm,
    Parameter,
    Store,
    Update,
    fold_ops,
    stores_are_affine,
    trip_count,
)
from minijax.kernels.loop_nests import Kernel, backward_slice, fold_node, load_node
from minijax.kernels.lowering import Launch

# How many parts there may be: more than a loop has that may stand in the text in full.
COUNTS = range(64, 16, -1)
MAX_PARTIAL_BYTES = 2**14  # for what is left of the parts, in bytes
PART_ALIGNMENT = (
    32  # numbers; where parts are not even, each of them begins at a multiple
)


class FoldSplit(NamedTuple):
    """How the folds of a kernel are cut.

    Attributes:
      axis: which one is cut.
      parts: how many there are.
      partial_nodes: from folds to parameters for what is left of the parts.
      remainder: how many indices are behind the parts; what is left of them comes
        last.
    """

    axis: int
    parts: int
    partial_nodes: dict
    remainder: int = 0


def nodes_after_folds(nodes, folds):
    """Return some folds among nodes, and what is computed from them."""
    found = set()
    for node in nodes:
        if node in folds or not found.isdisjoint(node.args):
            found.add(node)
    return found


def split_of_folds(kernel, counts=COUNTS, room=MAX_PARTIAL_BYTES, uneven=False):
    """Return the `FoldSplit` of a kernel, or None if it has no folds or cannot be cut.

    Args:
      kernel: a `Kernel`.
      counts: how many parts there may be, the best first; those that leave no rest
        are better.
      room: for what is left of the parts, in bytes.
      uneven: whether the last parts may be shorter than the others, or empty, so that
        there is no rest.
    """
    for axis in axes_to_cut(kernel) if stores_are_affine(kernel) else ():
        folds = folds_along(kernel, axis)
        if not can_be_cut(kernel, axis, folds):
            continue
        size = kernel.sizes[axis]
        rests = [0 if uneven else size % parts for parts in counts]
        for rest, parts in sorted(zip(rests, counts), key=lambda pair: pair[0] > 0):
            parameters = partial_parameters(kernel, folds, parts + (rest > 0))
            if parts <= size and sum(map(nbytes, parameters)) <= room:
                return FoldSplit(axis, parts, dict(zip(folds, parameters)), rest)
    return None


def axes_to_cut(kernel):
    """Return the axes of folds whose indices are not asked for, the longest first."""
    folds = [node for node in kernel.nodes if node.op == "fold"]
    along = {axis for each in folds for axis in each.detail.axes}
    indices = {node.detail for node in kernel.nodes if node.op == "index"}
    return sorted(along - indices, key=lambda axis: -kernel.sizes[axis])


def folds_along(kernel, axis):
    """Return the folds that go along an axis."""
    folds = [node for node in kernel.nodes if node.op == "fold"]
    return [each for each in folds if axis in each.detail.axes]


def can_be_cut(kernel, axis, folds):
    """Return whether folds along an axis, and what waits for them, can be cut off.

    No fold needs another fold along the axis; and each store waits for the whole axis,
    or else it goes along it.
    """
    late = nodes_after_folds(kernel.nodes, folds)
    later = [node for node in late if node.op == "fold" and node.args[0] in late]
    if later or any(each.detail.how.startswith("arg") for each in folds):
        return False
    waiting = [store for store in kernel.stores if store.node in late]
    first = {store.parameter for store in kernel.stores if store.node not in late}
    read = {
        node.detail.parameter
        for node in backward_slice([store.node for store in waiting], folds)
        if node.op == "load"
    }
    return read.isdisjoint(first) and all(
        (axis in store.place.axes) == (store not in waiting) for store in kernel.stores
    )


def partial_parameters(kernel, folds, parts):
    """Return a parameter for what is left of the parts of each fold."""
    sizes = [parts * trip_count(kernel, each.level) for each in folds]
    numbers = range(len(folds))
    return [
        Parameter(f"partial{number}", each.dtype, size)
        for number, each, size in zip(numbers, folds, sizes)
    ]


def row_strides(kernel, node):
    """Return strides along the axes of a node, in rows; and the size of all."""
    strides, stride = [0] * len(kernel.sizes), 1
    for axis in reversed(node.level):
        strides[axis] = stride
        stride *= kernel.sizes[axis]
    return strides, stride


class AxisSplit(NodeBuilder):
    """Writes nodes of a kernel whose axis is in parts; these are a new axis, in front.

    Args:
      kernel: the `Kernel`.
      axis: the one that is cut.
      parts: how many there are.
      first, size: where they begin along the axis, and how many indices all have.

    Attributes:
      sizes: of the axes of what is written.
      maps: the indices of the kernel there, as for `rewritten`.
      old_index: the node of the index that the axis had, if the last parts are shorter.
      inside: that of whether there is such an index.
    """

    def __init__(self, kernel, axis, parts, first=0, size=None):
        super().__init__()
        self.axis, self.old_index = axis, None
        self.size = kernel.sizes[axis] if size is None else size
        length = -(-self.size // parts)
        uneven = length * parts != self.size
        if uneven:
            length = PART_ALIGNMENT * -(-length // PART_ALIGNMENT)
        self.sizes = [parts, *kernel.sizes]
        self.sizes[1 + axis] = length
        maps = [*identity_map(len(self.sizes))[1:]]
        maps[axis] = Affine(first, (length, *maps[axis].strides[1:]))
        self.maps = tuple(maps)
        if uneven:
            self.old_index = number_at(self, maps[axis])
            self.inside = self.lt(self.old_index, self.size)

    def guarded(self, node, args):
        """Write a load with the guard that shorter parts need; None for other nodes."""
        needs = self.old_index and node.op == "load"
        if not needs or not node.detail.place.strides[self.axis]:
            return None
        guard = Guard(identity_map(len(self.maps))[self.axis], self.size)
        detail = node.detail._replace(guards=(*node.detail.guards, guard))
        node = dataclasses.replace(node, detail=detail)
        return at_indices(self, node, args, self.maps, len(self.sizes))

    def entering(self, fold, x):
        """Write what enters a fold in the place of `x`."""
        if not self.old_index:
            return x
        start = fold_ops[fold.detail.how].start(x.dtype)
        return self.select(self.inside, x, self.constant(start, x.dtype))

    def store(self, store, node):
        """Return a store along the axis, of the given node."""
        moved = store_at(store, {store.node: node}, self.maps, len(self.sizes))
        if not self.old_index:
            return moved
        term = IndirectTerm(store.place.strides[self.axis], self.size)
        strides, axes = [*moved.place.strides], [axis + 1 for axis in store.axes]
        strides[0] = strides[1 + self.axis] = 0
        update = Update("set", (self.old_index,), (term,), (0, *axes), distinct=True)
        place = Affine(moved.place.offset, (*strides,))
        return moved._replace(place=place, update=update)


def partial_fold_kernel(kernel, cut):
    """Return the kernel that folds the parts; the first of its axes counts them."""
    size = kernel.sizes[cut.axis] - cut.remainder
    return folding_kernel(kernel, cut, AxisSplit(kernel, cut.axis, cut.parts, 0, size))


def remainder_fold_kernel(kernel, cut):
    """Return the kernel that folds what is behind the parts, as one more part."""
    size = kernel.sizes[cut.axis] - cut.remainder
    spread = AxisSplit(kernel, cut.axis, 1, size, cut.remainder)
    return collapse_axes(folding_kernel(kernel, cut, spread, cut.parts))


def folding_kernel(kernel, cut, spread, row=0):
    """Return a kernel that folds some parts; what is left is written from a row on."""
    late = nodes_after_folds(kernel.nodes, cut.partial_nodes)
    early = [store for store in kernel.stores if store.node not in late]
    folded = [each.args[0] for each in cut.partial_nodes]
    kept = backward_slice([*folded, *[store.node for store in early]])
    nodes = [node for node in kernel.nodes if node in kept]
    new = rewritten(spread, nodes, spread.maps, len(spread.sizes), spread.guarded)
    for each in cut.partial_nodes:
        x, axes = spread.entering(each, new[each.args[0]]), each.detail.axes
        fold = fold_node(each.detail.how, [axis + 1 for axis in axes], x)
        new[each] = spread.write(fold)
    stores = [spread.store(store, new[store.node]) for store in early]
    for each, parameter in cut.partial_nodes.items():
        strides, size = row_strides(kernel, each)
        place = Affine(row * size, (size, *strides))
        stores.append(Store(parameter, place, new[each]))
    return assemble_kernel(kernel.name, spread.sizes, spread.nodes, stores)


def assemble_kernel(name, sizes, nodes, stores):
    """Return a kernel with the parameters that occur in it."""
    nodes = tuple(dict.fromkeys(nodes))
    parameters = [node.detail.parameter for node in nodes if node.op == "load"]
    parameters = dict.fromkeys([*parameters, *[store.parameter for store in stores]])
    return Kernel(name, tuple(sizes), tuple(parameters), nodes, tuple(stores))


def stage_kernel(kernel, stores, ends, sizes=()):
    """Return the kernel of some stores; its axes are those that are needed.

    Args:
      kernel, stores: the `Kernel`, and some of its stores.
      ends: from nodes to what is written in the place of each, nodes of which the last
        stands for it.
      sizes: pairs of an axis and its size, where it is another than in the kernel.
    """
    k, kept = NodeBuilder(), backward_slice([store.node for store in stores], ends)

    def end(node, args):
        return [*map(k.write, ends[node])][-1] if node in ends else None

    new = rewritten(k, [node for node in kernel.nodes if node in kept], instead=end)
    stores = [store.with_nodes(new) for store in stores]
    axes = {axis for node in k.nodes for axis in node.level}
    axes.update(axis for store in stores for axis in store.axes)
    known = {axis: kernel.sizes[axis] for axis in axes} | dict(sizes)
    sizes = [known.get(axis, 1) for axis in range(len(kernel.sizes))]
    return collapse_axes(assemble_kernel(kernel.name, sizes, k.nodes, stores))


def final_fold_kernel(kernel, cut):
    """Return the kernel that folds what is left of the parts, and does the rest."""
    late, ends = nodes_after_folds(kernel.nodes, cut.partial_nodes), {}
    for fold, parameter in cut.partial_nodes.items():
        strides, size = row_strides(kernel, fold)
        strides[cut.axis] = size
        x = load_node(parameter, Affine(0, tuple(strides)))
        ends[fold] = x, fold_node(fold.detail.how, (cut.axis,), x)
    stores = [store for store in kernel.stores if store.node in late]
    parts = cut.axis, cut.parts + (cut.remainder > 0)
    return stage_kernel(kernel, stores, ends, [parts])


def two_stage_fold(step, **wishes):
    """Return two launches for one, or None; `wishes` as for `split_of_folds`.

    Between the two is a third one, if the parts leave a rest.
    """
    cut = split_of_folds(step.kernel, **wishes)
    if cut is None:
        return None
    owners = dict(zip(step.kernel.parameters, step.buffers))
    for name, dtype, size in cut.partial_nodes.values():
        buffer = Buffer(f"{step.buffers[-1].name}_{name}", dtype, size)
        owners[Parameter(name, dtype, size)] = buffer
    rest = [remainder_fold_kernel] if cut.remainder else []
    makers = partial_fold_kernel, *rest, final_fold_kernel
    kernels = [make(step.kernel, cut) for make in makers]
    return [
        Launch(kernel, [owners[parameter] for parameter in kernel.parameters])
        for kernel in kernels
    ]
