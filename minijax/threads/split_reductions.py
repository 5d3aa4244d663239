"""Long folds in two kernels: one folds parts of an axis, one what is left of the parts.

The parts depend on sizes alone, so the results do not depend on who does them.
"""

# Made from chapters/27_threads_ground.md by `make chapter`;
# edit the chapter, not this file.

from typing import NamedTuple

from minijax.jitting.stages import nbytes
from minijax.kernels.builder import Buffer, collapse_axes, with_args
from minijax.kernels.ir import (
    Affine,
    Guard,
    IndirectTerm,
    Parameter,
    Store,
    Update,
    fold_ops,
    is_affine,
    trip_count,
)
from minijax.kernels.loop_nests import (
    Kernel,
    backward_slice,
    constant_node,
    fold_node,
    index_node,
    load_node,
    op_node,
)
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
    for axis in axes_to_cut(kernel) if is_affine(kernel) else ():
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


class AxisSplit:
    """What becomes of an axis in parts: places, loads, what is folded, and stores.

    Args:
      kernel: the `Kernel` whose axis is cut; the parts are a new axis, in front.
      axis: which one.
      parts: how many there are.
      first, size: where they begin along the axis, and how many indices all have.

    Attributes:
      length: how many indices there are in a part.
      number: the node of the index that the axis had, if the last parts are shorter.
      nodes: those that are needed for that.
    """

    def __init__(self, kernel, axis, parts, first=0, size=None):
        self.axis, self.first = axis, first
        self.size = kernel.sizes[axis] if size is None else size
        self.length = -(-self.size // parts)
        self.number, self.nodes = None, []
        if self.length * parts != self.size:
            self.length = PART_ALIGNMENT * -(-self.length // PART_ALIGNMENT)
            part, index = index_node(0), index_node(1 + axis)
            length, size = (
                constant_node(x, part.dtype) for x in (self.length, self.size)
            )
            first = op_node("mul", part, length)
            self.number = op_node("add", first, index)
            self.inside = op_node("lt", self.number, size)
            self.nodes = [part, length, first, index, self.number, size, self.inside]
        self.sizes = [parts, *kernel.sizes]
        self.sizes[1 + axis] = self.length

    def place(self, place):
        """Return a place in the kernel with the new axis."""
        stride = place.strides[self.axis]
        strides = stride * self.length, *place.strides
        return Affine(place.offset + stride * self.first, strides)

    def guards(self, place):
        """Return the guards that a load needs because of shorter parts, a list."""
        if not self.number or not place.strides[self.axis]:
            return []
        ones = [int(axis == self.axis) for axis in range(len(place.strides))]
        return [Guard(self.place(Affine(0, (*ones,))), self.size)]

    def entering(self, fold, x):
        """Return nodes, the last of which enters a fold in the place of `x`."""
        if not self.number:
            return [x]
        start = constant_node(fold_ops[fold.detail.how].start(x.dtype), x.dtype)
        return [start, op_node("select", self.inside, x, start)]

    def store(self, store, node):
        """Return a store along the axis, of the given node."""
        place, axes = self.place(store.place), [axis + 1 for axis in store.axes]
        if not self.number:
            return store._replace(place=place, node=node)
        term = IndirectTerm(store.place.strides[self.axis], self.size)
        strides = [*place.strides]
        strides[0] = strides[1 + self.axis] = 0
        update = Update("set", (self.number,), (term,), (0, *axes), distinct=True)
        return Store(store.parameter, Affine(place.offset, (*strides,)), node, update)


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
    late, new = nodes_after_folds(kernel.nodes, cut.partial_nodes), {}
    early = [store for store in kernel.stores if store.node not in late]
    folded = [each.args[0] for each in cut.partial_nodes]
    kept = backward_slice([*folded, *[store.node for store in early]])
    made = [*spread.nodes]
    for node in [node for node in kernel.nodes if node in kept]:
        new[node] = remap_split_node(node, [new[arg] for arg in node.args], spread)
        made.append(new[node])
    for each in cut.partial_nodes:
        made += spread.entering(each, new[each.args[0]])
        new[each] = remap_split_node(each, made[-1:], spread)
        made.append(new[each])
    stores = [spread.store(store, new[store.node]) for store in early]
    for each, parameter in cut.partial_nodes.items():
        strides, size = row_strides(kernel, each)
        place = Affine(row * size, (size, *strides))
        stores.append(Store(parameter, place, new[each]))
    return assemble_kernel(kernel.name, spread.sizes, made, stores)


def remap_split_node(node, args, spread):
    """Return a node in a kernel with one axis more, in front."""
    if node.op == "constant":
        return node
    if node.op == "index":
        return index_node(node.detail + 1)
    if node.op == "load":
        parameter, place, guards, other, _ = node.detail
        guards = [Guard(spread.place(guard.place), guard.limit) for guard in guards]
        guards += spread.guards(place)
        return load_node(parameter, spread.place(place), guards, other)
    if node.op == "fold":
        return fold_node(
            node.detail.how, [axis + 1 for axis in node.detail.axes], *args
        )
    return with_args(node, args)


def assemble_kernel(name, sizes, nodes, stores):
    """Return a kernel with the parameters that occur in it."""
    nodes = tuple(dict.fromkeys(nodes))
    parameters = [node.detail.parameter for node in nodes if node.op == "load"]
    parameters = dict.fromkeys([*parameters, *[store.parameter for store in stores]])
    return Kernel(name, tuple(sizes), tuple(parameters), nodes, tuple(stores))


def final_fold_kernel(kernel, cut):
    """Return the kernel that folds what is left of the parts, and does the rest."""
    late, new = nodes_after_folds(kernel.nodes, cut.partial_nodes), {}
    stores = [store for store in kernel.stores if store.node in late]
    nodes = []
    kept = backward_slice([store.node for store in stores], cut.partial_nodes)
    for node in [node for node in kernel.nodes if node in kept]:
        args = [new[arg] for arg in node.args if arg in new]
        if node in cut.partial_nodes:
            strides, size = row_strides(kernel, node)
            strides[cut.axis] = size
            nodes.append(load_node(cut.partial_nodes[node], Affine(0, tuple(strides))))
            new[node] = fold_node(node.detail.how, (cut.axis,), nodes[-1])
        elif node in late:
            new[node] = with_args(node, args)
        else:
            new[node] = node
        nodes.append(new[node])
    stores = [store.with_nodes(new) for store in stores]
    axes = {axis for node in nodes for axis in node.level}
    axes.update(axis for store in stores for axis in store.place.axes)
    sizes = [size if axis in axes else 1 for axis, size in enumerate(kernel.sizes)]
    sizes[cut.axis] = cut.parts + (cut.remainder > 0)
    return collapse_axes(assemble_kernel(kernel.name, sizes, nodes, stores))


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
