# Made from chapters/16_kernels.md by `make chapter`;
# edit the chapter, not this file.
"""Kernels run by NumPy: what every machine has to agree with.

A node becomes an array that has size 1 along the axes over which it does not vary.
"""

import numpy as np

from minijax.scalar_ops import foldings, in_registers, recastings, scalar_ops


def interpret(kernel, memory):
    """Run a kernel.

    Args:
      kernel: a `Kernel`.
      memory: from the names of its buffers to flat NumPy arrays, of which those that
        the kernel stores into are changed.
    """
    indices = np.indices(kernel.sizes, sparse=True, dtype=np.int64)
    values = {}
    with np.errstate(all="ignore"):
        for node in kernel.nodes:
            args = [values[arg] for arg in node.args]
            values[node] = _value(node, args, indices, kernel.sizes, memory)
        for buffer, place, node in kernel.stores:
            _store(memory[buffer.name], place, values[node], indices)


def _value(node, args, indices, sizes, memory):
    if node.op == "constant":
        return np.full((1,) * len(sizes), node.detail)
    if node.op == "index":
        return indices[node.detail]
    if node.op == "load":
        return _load(node.detail, indices, memory)
    if node.op == "fold":
        return _fold(node.detail, args[0], sizes)
    if node.op in recastings:
        return recastings[node.op](args[0], node.dtype)
    return scalar_ops[node.op].numpy(*args).astype(node.dtype, copy=False)


def _load(detail, indices, memory):
    buffer, place, guards, other = detail
    ones = np.ones((1,) * len(indices), np.int64)
    address = place.at(indices) * ones
    inside = ones == 1
    for guard in guards:
        at = guard.place.at(indices)
        inside = inside & (at >= 0) & (at < guard.limit)
    if not inside.any():
        return np.full(np.broadcast(address, inside).shape, other)
    found = memory[buffer.name][np.where(inside, address, 0)]
    return np.where(inside, found.astype(in_registers(buffer.dtype)), other)


def _fold(detail, arg, sizes):
    shape = list(arg.shape)
    for axis in detail.axes:
        shape[axis] = sizes[axis]
    folding = foldings[detail.how]
    start = folding.start(arg.dtype)
    return folding.numpy(np.broadcast_to(arg, shape), detail.axes, start)


def _store(elements, place, value, indices):
    address = np.asarray(place.at(indices))
    shape = np.broadcast_shapes(address.shape, value.shape)
    elements[np.broadcast_to(address, shape)] = value
