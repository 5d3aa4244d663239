"""The reference interpreter of kernels, in NumPy.

A node becomes an array that has size 1 along the axes over which it does not vary.
"""

# Made from chapters/17_kernels.md by `make chapter`;
# edit the chapter, not this file.

import numpy as np

from minijax.kernels.scalar_ops import foldings, in_registers, recastings, scalar_ops


def interpret(kernel, memory):
    """Run a kernel.

    Args:
      kernel: a `Kernel`.
      memory: from the names of its parameters to flat NumPy arrays, of which those that
        the kernel stores into are changed.
    """
    indices = np.indices(kernel.sizes, sparse=True, dtype=np.int64)
    values = {}
    with np.errstate(all="ignore"):
        for node in kernel.nodes:
            args = [values[arg] for arg in node.args]
            values[node] = _value(node, args, indices, kernel.sizes, memory)
        for store in kernel.stores:
            args = [values[arg] for arg in store.args]
            write = _update if store.update else _store
            write(memory[store.parameter.name], store, args, indices, kernel.sizes)


def _value(node, args, indices, sizes, memory):
    if node.op == "constant":
        return np.full((1,) * len(sizes), node.detail)
    if node.op == "index":
        return indices[node.detail]
    if node.op == "load":
        return _load(node.detail, args, indices, memory)
    if node.op in ("fold", "running"):
        return _fold(node, args[0], sizes)
    if node.op in recastings:
        return recastings[node.op](args[0], node.dtype)
    return scalar_ops[node.op].numpy(*args).astype(node.dtype, copy=False)


def _load(detail, args, indices, memory):
    parameter, place, guards, other, terms = detail
    address, inside = _address(place, args, terms, indices)
    for guard in guards:
        at = guard.place.at(indices)
        inside = inside & (at >= 0) & (at < guard.limit)
    if not inside.any():
        return np.full(np.broadcast(address, inside).shape, other)
    found = memory[parameter.name][np.where(inside, address, 0)]
    return np.where(inside, found.astype(in_registers(parameter.dtype)), other)


def _fold(node, arg, sizes):
    shape, (how, axes) = list(arg.shape), node.detail
    for axis in axes:
        shape[axis] = sizes[axis]
    folding, arg = foldings[how], np.broadcast_to(arg, shape)
    if node.op == "running":
        return folding.running(arg, *axes)
    return folding.numpy(arg, axes, folding.start(arg.dtype))


def _store(elements, store, args, indices, sizes):
    address, [value] = np.asarray(store.place.at(indices)), args
    shape = np.broadcast_shapes(address.shape, value.shape)
    elements[np.broadcast_to(address, shape)] = value


def _address(place, numbers, terms, indices):
    """Return a place for all indices, and whether all numbers keep their limits."""
    ones = np.ones((1,) * len(indices), np.int64)
    address, inside = place.at(indices) * ones, ones == 1
    for number, (stride, limit) in zip(numbers, terms):
        within = (number >= 0) & (number < limit)
        address = address + stride * np.where(within, number, 0)
        inside = inside & within
    return address, inside


def _update(elements, store, args, indices, sizes):
    """Store at computed places, one index after the other."""
    how, _, terms, axes, _ = store.update
    value, *numbers = args
    address, inside = _address(store.place, numbers, terms, indices)
    shape = [n if axis in axes else 1 for axis, n in enumerate(sizes)]
    columns = [np.broadcast_to(x, shape).ravel() for x in (address, inside, value)]
    for place, fits, x in zip(*columns):
        if fits and how != "set":
            old = elements[place : place + 1].astype(x.dtype)
            x = scalar_ops[how].numpy(old, x)[0]
        if fits:
            elements[place] = x
