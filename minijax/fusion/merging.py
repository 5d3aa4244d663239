# Made from chapters/19_fusion_ground.md by `make chapter`;
# edit the chapter, not this file.
"""Loop fusion: one kernel of several; what is made in it need not be loaded."""

import numpy as np

from minijax.arrays.dtypes import short_name
from minijax.fusion.index_maps import found_at
from minijax.fusion.parts import seen_along
from minijax.kernels.building import NodeWriter, new_name
from minijax.kernels.kernel import Kernel, Node, index, load, needed
from minijax.kernels.parts import Affine, Fold, Guard, Parameter, Store, union
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


class Merger(NodeWriter):
    """Writes a kernel of several launches.

    Args:
      sizes: of its axes.
      homes: pairs of the part of a launch and the indices at which it is computed, in
        order.
      cheap: from buffers of other launches whose elements are made here, and not
        loaded, to their part.

    Attributes:
      parameters: from pairs of a buffer and a dtype to parameters.
      makers: from buffers to the part that makes them here, and its home.
      instances: from a part, indices and guards to the new nodes by the part's.
      names: of the operations that the kernel is made of.
    """

    def __init__(self, sizes, homes, cheap):
        super().__init__()
        self.sizes, self.homes, self.cheap = sizes, homes, cheap
        self.names = {part.table.kernel.name: None for part, _ in homes}
        self.known, self.parameters, self.instances = {}, {}, {}
        self.makers = {buffer: pair for pair in homes for buffer in pair[0].made}

    def write(self, node):
        """Put a node behind the others, and return it; equal ones are one."""
        detail = node.detail
        if node.op == "constant":
            detail = detail.tobytes()
        elif node.op == "load":
            detail = (*detail[:3], detail.other.tobytes())
        key = (node.op, node.dtype, detail, *map(id, node.args))
        if key not in self.known:
            self.known[key] = node
            self.nodes.append(node)
        return self.known[key]

    def maker(self, buffer):
        """Return the part that makes a buffer here, and its home; or two None."""
        return self.makers.get(buffer) or (self.cheap.get(buffer), None)

    def parameter(self, buffer, like, written=False):
        """Return the parameter of a buffer."""
        if (buffer, like.dtype) not in self.parameters:
            name = new_name(self.parameters.values(), written)
            self.parameters[buffer, like.dtype] = Parameter(name, like.dtype, like.size)
        return self.parameters[buffer, like.dtype]


def at_indices(k, node, args, maps):
    """Write a node that is no load at other indices, and return it."""
    if node.op == "constant":
        return k.write(node)
    if node.op == "index":
        return number_at(k, maps[node.detail])
    if node.op != "fold":
        return k.write(
            Node(node.op, (*args,), node.dtype, union([x.level for x in args]))
        )
    axes = union([maps[axis].axes for axis in node.detail.axes])
    level = tuple([axis for axis in args[0].level if axis not in axes])
    detail = Fold(node.detail.how, axes)
    return k.write(Node("fold", (*args,), node.dtype, level, detail))


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


def merged(part, wanted, cheap=None):
    """Return the launch of one kernel in the place of several.

    Args:
      part: all of them, in the same loops.
      wanted: the buffers that have to be stored.
      cheap: as in a `Merger`.
    """
    outs, live, homes = {}, set(wanted), []
    for launch, home in reversed(part.homes):
        if not live.isdisjoint(launch.made):
            live.update([buffer for buffer, _ in launch.loads])
            homes.append((launch, home))
    k = Merger(part.sizes, homes[::-1], cheap or {})
    for launch, home in k.homes:
        new = instance(k, launch, home)
        for buffer, store in launch.stores:
            if buffer in wanted:
                place = seen_along(store.place, home, len(k.sizes))
                parameter = k.parameter(buffer, store.parameter, written=True)
                outs[Store(parameter, place, new[store.node])] = buffer
    kept = needed([store.node for store in outs])
    nodes = tuple([node for node in k.nodes if node in kept])
    used = {node.detail.parameter for node in nodes if node.op == "load"}
    used.update([store.parameter for store in outs])
    buffers = {x: buffer for (buffer, _), x in k.parameters.items() if x in used}
    name = "_".join([*k.names][:4]) + "_etc" * (len(k.names) > 4)
    kernel = Kernel(name, k.sizes, (*buffers,), nodes, (*outs,))
    return Launch(collapse(kernel), [*buffers.values()])


def instance(k, part, maps, guards=()):
    """Write the nodes of a part at some indices, once; return them by its own."""
    key = (id(part), maps, guards)
    if key not in k.instances:
        new = k.instances[key] = {}
        k.names[part.table.kernel.name] = None
        buffers = iter(part.loads)
        for node in part.table.kernel.nodes:
            if node.op == "load":
                buffer, detail = next(buffers)
                new[node] = loaded(k, buffer, detail, maps, guards)
            else:
                new[node] = at_indices(k, node, [new[arg] for arg in node.args], maps)
    return k.instances[key]


def maps_for(place, guards, parameter, sizes, part, home, store):
    """Return the indices at which a part makes what is loaded, or None."""
    if not same_bits(store.parameter.dtype, parameter.dtype):
        return None
    if home and not guards and seen_along(store.place, home, len(sizes)) == place:
        return home
    found = found_at(place, guards, sizes, store.place, part.sizes)
    if found is None or None not in found:
        return None if found is None else tuple(found)
    still = Affine(0, (0,) * len(sizes))
    folded = home and part.table.folding.get(store.node, ())
    told = enumerate(found)
    return tuple([at or (home[axis] if axis in folded else still) for axis, at in told])


def loaded(k, buffer, detail, maps, guards):
    """Return the node of an element: of what is made here, or of a load.

    Args:
      k: a `Merger`.
      buffer: from which a launch loads the element.
      detail: how, a `Load`.
      maps: the indices of the launch along the axes of the kernel.
      guards: where the element is of interest.
    """
    place = seen_along(detail.place, maps, len(k.sizes))
    own = [(seen_along(at, maps, len(k.sizes)), n) for at, n in detail.guards]
    guards = _open(k, [*own, *guards])
    if guards is None:
        return k.constant(detail.other, in_registers(detail.parameter.dtype))
    part, home = k.maker(buffer)
    for store in part.made[buffer] if part else ():
        found = maps_for(place, guards, detail.parameter, k.sizes, part, home, store)
        if found is not None:
            x = instance(k, part, found, guards)[store.node]
            x = through_memory(k, x, store.parameter, detail.parameter)
            return _guarded(k, x, own, detail.other)
    parameter = k.parameter(buffer, detail.parameter)
    return k.write(load(parameter, place, guards, detail.other))
