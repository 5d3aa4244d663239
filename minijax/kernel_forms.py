# Made from chapters/16_kernels.md by `make chapter`;
# edit the chapter, not this file.
"""Kernels rewritten: fewer axes, the same elements."""

from minijax.kernels import (
    Affine,
    Guard,
    Kernel,
    Store,
    apply,
    constant,
    fold,
    index,
    load,
)
from minijax.scalar_ops import recastings


def collapse(kernel):
    """Return a kernel that computes the same with as few axes as possible.

    Axes of size 1 vanish. Two neighbours become one axis where every place moves along
    them as along one, and no node needs their indices.
    """
    for axis in reversed(range(len(kernel.sizes))):
        if kernel.sizes[axis] == 1:
            kernel = without_axis(kernel, axis, kernel.sizes)
        elif axis + 1 < len(kernel.sizes) and _walked_as_one(kernel, axis):
            sizes = list(kernel.sizes)
            sizes[axis + 1] *= sizes[axis]
            kernel = without_axis(kernel, axis, sizes)
    return kernel


def _walked_as_one(kernel, axis):
    size = kernel.sizes[axis + 1]
    pair = {axis, axis + 1}
    for node in kernel.nodes:
        if node.op == "index" and node.detail in pair:
            return False
        if node.op == "fold" and len(pair.intersection(node.detail.axes)) == 1:
            return False
    strides = [place.strides for place in places(kernel)]
    return all(s[axis] == s[axis + 1] * size for s in strides)


def places(kernel):
    """Return all `Affine` of a kernel: of loads, guards and stores."""
    loads = [node.detail for node in kernel.nodes if node.op == "load"]
    guards = [guard for detail in loads for guard in detail.guards]
    return [found.place for found in [*loads, *guards, *kernel.stores]]


def without_axis(kernel, axis, sizes):
    """Return a kernel in which one axis does not move; its number goes to no other."""
    new = {}

    def still(place):
        return Affine(place.offset, drop(place.strides))

    def drop(items):
        return (*items[:axis], *items[axis + 1 :])

    for node in kernel.nodes:
        new[node] = _moved(node, [new[arg] for arg in node.args], axis, still)
    nodes = dict.fromkeys(new.values())
    stores = [Store(buffer, still(at), new[node]) for buffer, at, node in kernel.stores]
    sizes = drop(tuple(sizes))
    return Kernel(kernel.name, sizes, kernel.buffers, (*nodes,), (*stores,))


def _moved(node, args, axis, still):
    if node.op == "constant":
        return node
    if node.op == "index":
        place = node.detail - (node.detail > axis)
        return constant(0, node.dtype) if node.detail == axis else index(place)
    if node.op == "load":
        buffer, place, guards, other = node.detail
        guards = [Guard(still(guard.place), guard.limit) for guard in guards]
        return load(buffer, still(place), guards, other)
    if node.op == "fold":
        how, axes = node.detail
        axes = [k - (k > axis) for k in axes if k != axis]
        if not axes:
            return constant(0, node.dtype) if how.startswith("arg") else args[0]
        return fold(how, axes, *args)
    return apply(node.op, *args, dtype=node.dtype if node.op in recastings else None)
