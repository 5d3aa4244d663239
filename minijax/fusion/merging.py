# Made from chapters/20_fusion.md by `make chapter`;
# edit the chapter, not this file.
"""Loop fusion: one kernel of several; what is made in it need not be loaded."""

import heapq

import numpy as np

from minijax.arrays.dtypes import short_name
from minijax.fusion.index_maps import found_at, seen_along
from minijax.kernels.building import NodeWriter, new_name
from minijax.kernels.kernel import (
    Affine,
    Buffer,
    Fold,
    Guard,
    Kernel,
    Node,
    Store,
    index,
    load,
    needed,
    union,
)
from minijax.kernels.layouts import collapse
from minijax.kernels.scalar_ops import in_registers


def same_bits(made, read):
    """Return whether what is stored as one dtype can be read as another."""
    if made == read:
        return True
    plain = all(in_registers(d) == d and d.kind != "b" for d in (made, read))
    return plain and made.itemsize == read.itemsize


def through_memory(k, x, made, read):
    """Return what a number becomes when it is stored in one buffer, read as another."""
    if made.dtype != in_registers(made.dtype):
        return _roundings[short_name(made.dtype)](k, x)
    return x if made.dtype == read.dtype else k.bitcast(x, read.dtype)


def _chopped(k, x, bits):
    """Return a float with so many bits less, rounded to even."""
    pattern = k.bitcast(x, np.dtype(np.uint32))
    odd = k.apply("and", k.shift_right(pattern, bits), 1)
    above = k.add(k.add(pattern, odd), 2 ** (bits - 1) - 1)
    return k.bitcast(k.apply("and", above, 2**32 - 2**bits), x.dtype)


def _as_bfloat16(k, x):
    return k.select(k.ne(x, x), x, _chopped(k, x, 16))


def _as_float16(k, x):
    usual, size = _chopped(k, x, 13), k.abs(x)
    large = k.select(k.ge(size, 65520), np.inf, k.abs(usual))
    small = k.sub(k.add(size, 0.5), 0.5)  # the last bit of 0.5 is that of all of these
    size = k.select(k.lt(size, 2**-14), small, large)
    return k.select(k.ne(x, x), x, k.copysign(size, x))


_roundings = {"bf16": _as_bfloat16, "f16": _as_float16}


class Instance:
    """A part, computed at certain indices.

    Attributes:
      number: of the part.
      maps: for each of its axes, the `Affine` along those of the new kernel.
      guards: conditions under which it is of interest.
      sources: from its loads to the instance and the store that make the element.
      values: from its nodes to those of the new kernel.
    """

    def __init__(self, number, maps, guards):
        self.number, self.maps, self.guards = number, maps, guards
        self.sources, self.values = {}, {}


class Merger(NodeWriter):
    """Writes a kernel of several parts.

    Args:
      sizes: of its axes.
      parts: the parts by their numbers; what they read is made by smaller numbers.
      makers: from slots to pairs of a part and a store: whence an element can be had
        without loading it, if the part is at home or the slot in `anywhere`.
      anywhere: slots whose elements may be made again wherever they are read.
      homes: from the numbers of the parts at home to their maps.

    Attributes:
      buffers: from pairs of a slot and a dtype to buffers.
    """

    def __init__(self, sizes, parts, makers, anywhere, homes):
        super().__init__()
        self.sizes, self.parts, self.homes = tuple(sizes), parts, homes
        self.makers, self.anywhere = makers, anywhere
        self.known, self.buffers = {}, {}

    def write(self, node):
        """Put a node behind the others, and return it; equal ones are one."""
        detail = node.detail
        if node.op == "constant":
            detail = detail.tobytes()
        elif node.op == "load":
            detail = (*detail[:3], detail.other.tobytes(), detail.terms)
        key = (node.op, node.dtype, detail, *map(id, node.args))
        if key not in self.known:
            self.known[key] = node
            self.nodes.append(node)
        return self.known[key]

    def buffer(self, slot, like, written=False):
        """Return the buffer of a slot."""
        if (slot, like.dtype) not in self.buffers:
            name = new_name(self.buffers.values(), written)
            self.buffers[slot, like.dtype] = Buffer(name, like.dtype, like.size)
        return self.buffers[slot, like.dtype]

    def along(self, instance, place):
        """Return a place of an instance along the axes of the kernel."""
        return seen_along(place, instance.maps, len(self.sizes))


def wanted(k, roots):
    """Return the instances that are needed, each before those that it reads.

    Returns:
      A list of them, and those of the roots, which are at home, by their numbers.
    """
    waiting, numbers, order = {}, [], []

    def instance(number, maps, guards=()):
        if number not in waiting:
            waiting[number] = {}
            heapq.heappush(numbers, -number)
        new = Instance(number, maps, guards)
        return waiting[number].setdefault((maps, guards), new)

    found = {number: instance(number, k.homes[number]) for number in roots}
    while numbers:
        for reader in waiting.pop(-heapq.heappop(numbers)).values():
            order.append(reader)
            for node, made, store in sources_of(k, reader):
                reader.sources[node] = instance(*made), store
    return order, found


def sources_of(k, instance):
    """Return who makes what an instance loads.

    Returns:
      For each load of what is made here: the load; the number, the maps and the guards
      of the instance that makes the element; and the store that it would go through.
    """
    found = []
    for slot, node in k.parts[instance.number].loads:
        for part, store in k.makers.get(slot, ()):
            if part.number in k.homes or slot in k.anywhere:
                place, guards = place_of(k, instance, node)
                buffer = node.detail.buffer
                maps = maps_for(k, place, guards, buffer, part, store)
                if maps is not None:
                    found.append((node, (part.number, maps, guards), store))
                    break
    return found


def maps_for(k, place, guards, buffer, part, store):
    """Return the indices at which a part makes what is loaded, or None."""
    if guards is None or not same_bits(store.buffer.dtype, buffer.dtype):
        return None
    found = found_at(place, guards, k.sizes, store.place, part.sizes)
    return None if found is None else _completed(k, found, part)


def place_of(k, instance, node):
    """Return the place and the guards of a load, along the axes of the kernel.

    Guards that always say inside are left out; None if one always says outside.
    """
    _, place, own, *_ = node.detail
    if not own and not instance.guards:
        return k.along(instance, place), ()
    ours = [Guard(k.along(instance, at), limit) for at, limit in own]
    guards = []
    for guard in dict.fromkeys([*ours, *instance.guards]):
        least, most = guard.place.bounds(k.sizes)
        if most < 0 or least >= guard.limit:
            return place, None
        guards += [] if least >= 0 and most < guard.limit else [guard]
    return k.along(instance, place), (*guards,)


def _completed(k, found, part):
    """Return maps for all axes of a part: folded ones are where they always are."""
    if None not in found:
        return tuple(found)
    home, nowhere = k.homes.get(part.number), Affine(0, (0,) * len(k.sizes))
    return tuple(
        at or (home[axis] if home and axis in part.work.folded else nowhere)
        for axis, at in enumerate(found)
    )


def build(k, instance):
    """Write the nodes of an instance."""
    new = instance.values
    for node in k.parts[instance.number].kernel.nodes:
        new[node] = rewritten(k, instance, node, [new[arg] for arg in node.args])


def rewritten(k, instance, node, args):
    """Write a node of an instance, and return it."""
    if node.op == "constant":
        return k.write(node)
    if node.op == "index":
        return number_at(k, instance.maps[node.detail])
    if node.op == "load":
        return loaded(k, instance, node)
    if node.op == "fold":
        axes = union([instance.maps[axis].axes for axis in node.detail.axes])
        level = tuple(axis for axis in args[0].level if axis not in axes)
        detail = Fold(node.detail.how, axes)
        return k.write(Node("fold", (*args,), node.dtype, level, detail))
    level = union([arg.level for arg in args])
    return k.write(Node(node.op, (*args,), node.dtype, level))


def loaded(k, instance, node):
    """Return the node of an element: of what is made here, or of a load."""
    buffer, _, guards, other, _ = node.detail
    if node not in instance.sources:
        place, guards = place_of(k, instance, node)
        if guards is None:
            return k.constant(other, node.dtype)
        slot = k.parts[instance.number].slot(buffer)
        return k.write(load(k.buffer(slot, buffer), place, guards, other))
    found, store = instance.sources[node]
    x = through_memory(k, found.values[store.node], store.buffer, buffer)
    inside = None
    for guard in guards:
        for test in _tests(k, k.along(instance, guard.place), guard.limit):
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


def stored(k, instance, slot, store):
    """Return a store of an instance, along the axes of the kernel."""
    buffer = k.buffer(slot, store.buffer, written=True)
    return Store(buffer, k.along(instance, store.place), instance.values[store.node])


def _tests(k, place, limit):
    """Return the comparisons that a guard needs."""
    least, most = place.bounds(k.sizes)
    tests = [k.ge(number_at(k, place), 0)] if least < 0 else []
    return [*tests, k.lt(number_at(k, place), limit)] if most >= limit else tests


def merged(k, stores):
    """Return a kernel and the slots of its buffers.

    Args:
      k: a `Merger`.
      stores: triples of a part's number, a slot and the `Store` into it.
    """
    instances, roots = wanted(k, {number for number, *_ in stores})
    for instance in reversed(instances):
        build(k, instance)
    outs = [stored(k, roots[number], slot, store) for number, slot, store in stores]
    kept = needed([store.node for store in outs])
    nodes = [node for node in k.nodes if node in kept]
    used = {node.detail.buffer for node in nodes if node.op == "load"}
    used.update(store.buffer for store in outs)
    pairs = [(slot, b) for (slot, _), b in k.buffers.items() if b in used]
    numbers = sorted({instance.number for instance in instances})
    name = _named([k.parts[number].kernel.name for number in numbers])
    buffers = tuple(buffer for _, buffer in pairs)
    kernel = Kernel(name, k.sizes, buffers, (*nodes,), (*outs,))
    return collapse(kernel), [slot for slot, _ in pairs]


def _named(names):
    """Return a name for a kernel of several."""
    distinct = [*dict.fromkeys(names)]
    return "_".join(distinct[:4]) + ("_etc" if len(distinct) > 4 else "")
