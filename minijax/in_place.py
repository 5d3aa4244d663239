# Made from chapters/18b_memory.md by `make chapter`;
# edit the chapter, not this file.
"""Kernels that write their result over an operand."""

import dataclasses
import math

from minijax.kernel_steps import Launch
from minijax.kernels import Kernel, Store


def may_overwrite(step, old, new):
    """Return whether a step may write its result `new` where its operand `old` is.

    It may, if it is a kernel that reads each element of `old` at the place where it
    writes one of `new`, and before. Nobody else must need `old` any more.
    """
    if type(step) is not Launch or (old.dtype, old.size) != (new.dtype, new.size):
        return False
    sources, targets = _buffers(step, old), _buffers(step, new)
    if len(sources) != 1 or len(targets) != 1:
        return False
    return _element_by_element(step.kernel, sources[0], targets[0])


def _buffers(step, slot):
    pairs = zip(step.kernel.buffers, step.slots)
    return [buffer for buffer, owner in pairs if owner is slot]


def _element_by_element(kernel, source, target):
    loads = [n for n in kernel.nodes if n.op == "load" and n.detail.buffer == source]
    stores = [store for store in kernel.stores if store.buffer == target]
    places = {store.place for store in stores}
    if source.dtype != target.dtype or not loads or not _apart(places):
        return False
    if any(load.detail.guards or load.detail.place not in places for load in loads):
        return False
    return _in_one_sweep(kernel, loads, stores)


def _apart(places):
    """Return whether places never meet: the same strides, from different offsets."""
    strides = {place.strides for place in places}
    if len(strides) != 1:
        return False
    step = math.gcd(*strides.pop())
    return len({place.offset % step if step else 0 for place in places}) == len(places)


def _in_one_sweep(kernel, loads, stores):
    """Return whether what depends on `loads` is stored in the loops of `stores`.

    Folds of them have to be finished before: the nodes that are stored depend on them.
    """
    dependent = set(loads)
    for node in kernel.nodes:
        if not dependent.isdisjoint(node.args):
            dependent.add(node)
    folds = {node for node in dependent if node.op == "fold"}
    axes = stores[0].place.axes
    return all(
        store.place.axes == axes for store in kernel.stores if store.node in dependent
    ) and all(folds <= _before(store.node) for store in stores)


def _before(node):
    """Return a node and all nodes that it depends on."""
    found, open_ends = {node}, [node]
    while open_ends:
        args = [arg for arg in open_ends.pop().args if arg not in found]
        found.update(args)
        open_ends += args
    return found


def in_one_buffer(launch, pairs):
    """Return a `Launch` that finds operands where it puts results.

    Args:
      launch: a `Launch`.
      pairs: pairs of slots, of an operand and of the result that takes its place.
    """
    kernel, new = launch.kernel, {}
    buffers = {_buffers(launch, a)[0]: _buffers(launch, b)[0] for a, b in pairs}
    for node in kernel.nodes:
        detail = node.detail
        if node.op == "load" and detail.buffer in buffers:
            detail = detail._replace(buffer=buffers[detail.buffer])
        args = tuple([new[arg] for arg in node.args])
        new[node] = dataclasses.replace(node, args=args, detail=detail)
    stores = [Store(buffer, place, new[node]) for buffer, place, node in kernel.stores]
    pairs = zip(kernel.buffers, launch.slots)
    kept, slots = zip(*[pair for pair in pairs if pair[0] not in buffers])
    nodes = tuple(new.values())
    kernel = Kernel(kernel.name, kernel.sizes, kept, nodes, (*stores,))
    return Launch(kernel, [*slots])
