"""Loop fusion: one kernel of several; what is made in it need not be loaded."""

# Made from chapters/19_fusion_ground.md by `make chapter`;
# edit the chapter, not this file.

import numpy as np

from minijax.arrays.dtypes import short_name
from minijax.fusion.index_maps import found_at, seen_along, unit
from minijax.kernels.building import NodeWriter, new_name
from minijax.kernels.kernel import Kernel, Node, index, needed
from minijax.kernels.parts import Affine, Fold, Guard, Load, Parameter, Store, union
from minijax.kernels.program_steps import Launch
from minijax.kernels.scalar_ops import in_registers
from minijax.kernels.views import collapse


def same_bits(made, read):
    """Return whether what is stored as one dtype can be read as another."""
    if made == read:
        return True
    plain = all(in_registers(d) == d and d.kind != "b" for d in (made, read))
    return plain and made.itemsize == read.itemsize


def through_memory(k, x, made, read):
    """Return what a number becomes when it is stored as one dtype, read as another."""
    if made.dtype != in_registers(made.dtype):
        return _roundings[short_name(made.dtype)](k, x)
    return x if made.dtype == read.dtype else k.bitcast(x, read.dtype)


def _as_bfloat16(k, x):
    """Return a float with 16 bits less, rounded to even."""
    pattern = k.bitcast(x, np.dtype(np.uint32))
    odd = k.apply("and", k.shift_right(pattern, 16), 1)
    above = k.add(k.add(pattern, odd), 2**15 - 1)
    rounded = k.bitcast(k.apply("and", above, 2**32 - 2**16), x.dtype)
    return k.select(k.ne(x, x), x, rounded)


_roundings = {"bf16": _as_bfloat16, "f16": lambda k, x: k.as_float16(x)}


NO_WORK = {"load", "constant"}  # nodes that are no operations


class Merger(NodeWriter):
    """A kernel that grows: of one launch, or of several in the same loops.

    Args:
      sizes: of the loops.
      cheap: from buffers of other launches whose elements are made here, and not
        loaded, to the `Merger` of the launch.

    Attributes:
      sources: from the nodes of loads to their buffers.
      made: from buffers to lists of `Store`.
      names: pairs of a node that a launch stored and the name of its kernel, in order.
      ops: the number of scalar operations and of folds.
      folded: from nodes to the axes that are folded on the way to them, if any are.
      fold_axes: all of these axes.
      known: what has been written, so that equal nodes are one; nothing of a launch
        that was read only.
      parameters: from pairs of a buffer and a dtype to parameters.
      instances: what was made at other indices than its own.
    """

    def __init__(self, sizes, cheap=None):
        self.sizes, self.cheap, self.nodes, self.ops = sizes, cheap or {}, [], 0
        self.sources, self.made, self.names, self.folded = {}, {}, {}, {}
        self.fold_axes = frozenset()
        self.known, self.parameters, self.instances = {}, {}, {}

    def __str__(self):
        return str(merged(self, self.made).kernel)

    def write(self, node):
        """Put a node behind the others, and return it; equal ones are one."""
        op, detail = node.op, node.detail
        if op == "constant":
            detail = detail.tobytes()
        elif op == "load":
            detail = (*detail[:3], detail.guards and detail.other.tobytes())
        key = (op, node.dtype, detail, node.args)
        if key not in self.known:
            self.known[key] = node
            self.nodes.append(node)
            self.ops += op not in NO_WORK
            if op == "fold" or self.folded:
                self.note_folds(node)
        return self.known[key]

    def note_folds(self, node):
        """Note which axes are folded on the way to a node."""
        axes = [self.folded[arg] for arg in node.args if arg in self.folded]
        axes += [node.detail.axes] if node.op == "fold" else []
        if axes:
            self.folded[node] = frozenset().union(*axes)
            self.fold_axes = self.fold_axes.union(*axes)

    def take(self, other, maps=None):
        """Write all of another kernel at these indices, by default its own."""
        new, rank = copies(self, other, other.nodes, maps), len(self.sizes)
        for buffer, stores in other.made.items():
            for parameter, place, node, _ in stores:
                place = place if maps is None else seen_along(place, maps, rank)
                store = Store(parameter, place, new[node])
                self.made.setdefault(buffer, []).append(store)
        return self


def at_indices(k, node, args, maps):
    """Write a node that is no load at other indices, and return it."""
    if node.op == "constant":
        return k.write(node)
    if node.op == "index":
        return k.write(node) if maps is None else number_at(k, maps[node.detail])
    if node.op != "fold":
        level = args[0].level if len(args) == 1 else union([x.level for x in args])
        return k.write(Node(node.op, args, node.dtype, level))
    axes = node.detail.axes
    if maps is not None:
        axes = union([maps[axis].axes for axis in axes])
    level = tuple([axis for axis in args[0].level if axis not in axes])
    detail = Fold(node.detail.how, axes)
    return k.write(Node("fold", args, node.dtype, level, detail))


def number_at(k, place):
    """Return the node of an affine number of the indices."""
    total = None
    for axis in place.axes:
        term, stride = k.write(index(axis)), place.strides[axis]
        term = term if stride == 1 else k.mul(term, stride)
        total = term if total is None else k.add(total, term)
    if total is None:
        return k.constant(place.offset, np.dtype(np.int64))
    return k.add(total, place.offset) if place.offset else total


def _open(k, guards):
    """Return the guards that do not always hold; None if one never does."""
    found = []
    for place, limit in dict.fromkeys(guards):
        least, most = place.bounds(k.sizes)
        if most < 0 or least >= limit:
            return None
        if least < 0 or most >= limit:
            found.append(Guard(place, limit))
    return tuple(found)


def _guarded(k, x, guards, other):
    """Return the node that is another number where a guard says outside."""
    inside = None
    for place, limit in guards:
        least, most = place.bounds(k.sizes)
        tests = [k.ge(number_at(k, place), 0)] if least < 0 else []
        tests += [k.lt(number_at(k, place), limit)] if most >= limit else []
        for test in tests:
            inside = test if inside is None else k.apply("and", inside, test)
    return x if inside is None else k.select(inside, x, other.item())


def named(parameters, buffer, like, written=False):
    """Return the parameter of a buffer, from a table or new there."""
    key = buffer, like.dtype
    if key not in parameters:
        name = new_name(parameters.values(), written)
        parameters[key] = Parameter(name, like.dtype, like.size)
    return parameters[key]


def copies(k, other, nodes, maps, guards=()):
    """Write nodes of another kernel at these indices; return them by its own.

    Args:
      k: the `Merger` in which they are written.
      other, nodes: from which one, and which of its nodes.
      maps: the index along each of its axes; None if both have the same loops.
      guards: where the nodes are of interest.
    """
    new = {}
    for node in nodes:
        if node.op == "load":
            new[node] = element(k, other.sources[node], node, maps, guards)
        else:
            new[node] = at_indices(k, node, tuple([new[x] for x in node.args]), maps)
    names = [(new[node], name) for node, name in other.names if node in new]
    k.names.update(dict.fromkeys(names))
    return new


def element(k, buffer, node, maps, guards):
    """Return the node of an element: of what is made here, or of a load.

    Args:
      k: a `Merger`.
      buffer: from which the element is loaded.
      node: its load in another kernel.
      maps, guards: as for `copies`.
    """
    like, place, own, other, _ = node.detail
    if maps is not None:
        rank = len(k.sizes)
        place = seen_along(place, maps, rank)
        own = [(seen_along(at, maps, rank), limit) for at, limit in own]
    if own or guards:
        guards = _open(k, [*own, *guards])
        if guards is None:
            return k.constant(other, in_registers(like.dtype))
    maker = k if buffer in k.made else k.cheap.get(buffer)
    for store in maker.made[buffer] if maker else ():
        if same_bits(store.parameter.dtype, like.dtype):
            x = instance(k, maker, store, place, guards)
            if x is not None:
                x = through_memory(k, x, store.parameter, like)
                return _guarded(k, x, own, other) if own else x
    level = place.axes
    if guards:
        level = union([level, *[at.axes for at, _ in guards]])
    read = Load(named(k.parameters, buffer, like), place, guards, other)
    found = k.write(Node("load", (), node.dtype, level, read))
    k.sources[found] = buffer
    return found


def instance(k, maker, store, place, guards):
    """Return the node that a kernel stores at a place, written for these indices."""
    if maker is k and store.place == place and not guards:
        return store.node
    found = found_at(place, guards, k.sizes, store.place, maker.sizes)
    if found is None:
        return None
    rank = len(k.sizes)
    home = unit(rank) if maker is k else [Affine(0, (0,) * rank)] * len(found)
    maps = tuple([a or b for a, b in zip(found, home)])
    key = id(maker), store.node, maps, guards
    if key not in k.instances:
        wanted = needed([store.node])
        nodes = [node for node in maker.nodes if node in wanted]
        k.instances[key] = copies(k, maker, nodes, maps, guards)[store.node]
    return k.instances[key]


def merged(part, wanted, cheap=None):
    """Return the launch of a kernel that has grown.

    Args:
      part: the `Merger`.
      wanted: the buffers that have to be stored.
      cheap: as in a `Merger`.
    """
    k = part
    if cheap or not part.known:
        k = Merger(part.sizes, cheap).take(part)
    parameters, outs = {**k.parameters}, {}
    for buffer in [buffer for buffer in k.made if buffer in wanted]:
        for like, place, node, _ in k.made[buffer]:
            parameter = named(parameters, buffer, like, written=True)
            outs[Store(parameter, place, node)] = None
    kept = needed([store.node for store in outs])
    nodes = tuple([node for node in k.nodes if node in kept])
    used = {node.detail.parameter for node in nodes if node.op == "load"}
    used.update([store.parameter for store in outs])
    buffers = {x: buffer for (buffer, _), x in parameters.items() if x in used}
    names = [*dict.fromkeys([name for node, name in k.names if node in kept])]
    name = "_".join(names[:4]) + "_etc" * (len(names) > 4)
    kernel = Kernel(name, k.sizes, (*buffers,), nodes, (*outs,))
    return Launch(collapse(kernel), [*buffers.values()])
