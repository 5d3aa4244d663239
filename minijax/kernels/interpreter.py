# Made from chapters/17_kernels.md by `make chapter`;
# edit the chapter, not this file.
"""The reference interpreter of kernels, in NumPy, and a checker of their types.

A node becomes an array that has size 1 along the axes over which it does not vary.
"""

import numpy as np

from minijax.kernels.kernel import Affine, union
from minijax.kernels.scalar_ops import foldings, in_registers, recastings, scalar_ops


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


class KernelError(TypeError):
    """A kernel that no machine should run."""


def check_kernel(kernel):
    """Raise a `KernelError` unless a kernel is well formed; return it.

    Every node comes after its arguments and has the dtype and level that follow from
    them; every element that is read or written lies inside its buffer; no element is
    written twice by one store; no buffer is both read and written, and no two have
    one name.
    """
    seen = set()
    for place, node in enumerate(kernel.nodes):
        with _mentioning(kernel, f"node {place}, {node.op}"):
            _require(seen.issuperset(node.args), "it comes before its arguments")
            _check_node(node, kernel)
        seen.add(node)
    for store in kernel.stores:
        with _mentioning(kernel, f"the store into {store.buffer.name}"):
            _require(store.node in seen, "it stores what is no node of the kernel")
            _check_store(store, kernel)
    read = {node.detail.buffer for node in kernel.nodes if node.op == "load"}
    written = {store.buffer for store in kernel.stores}
    names = [buffer.name for buffer in kernel.buffers]
    with _mentioning(kernel, "the buffers"):
        _require(not read & written, "one is both read and written")
        _require(read | written <= {*kernel.buffers}, "one is not in the list")
        _require(len({*names}) == len(names), f"two have one name: {' '.join(names)}")
    return kernel


class _mentioning:
    """Say of a complaint inside a ``with`` block where in which kernel it arose."""

    def __init__(self, kernel, what):
        self.kernel, self.what = kernel, what

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        if kind is KernelError:
            raise KernelError(f"{self.what}: {error}\n\n{self.kernel}") from None


def _require(condition, complaint):
    if not condition:
        raise KernelError(complaint)


def _check_node(node, kernel):
    if node.op == "load":
        return _check_load(node, kernel)
    if node.op == "fold":
        return _check_fold(node, kernel)
    if node.op == "index":
        return _require(node.detail < len(kernel.sizes), "there is no such axis")
    if node.op != "constant":
        level = union(arg.level for arg in node.args)
        _require(node.level == level, "its level is not that of its arguments")
        return _check_operation(node)


def _check_operation(node):
    dtypes = [arg.dtype for arg in node.args]
    if node.op in recastings:
        wide = node.dtype.itemsize == dtypes[0].itemsize or node.op == "convert"
        return _require(wide, "a bitcast keeps the number of bits")
    _require(node.op in scalar_ops, "there is no such operation")
    row = scalar_ops[node.op]
    _require(row.arity == len(dtypes), f"it takes {row.arity} operands")
    if node.op == "select":
        _require(dtypes.pop(0).kind == "b", "it selects by a bool")
    _require(len(set(dtypes)) == 1, f"its operands have dtypes {dtypes}")
    _require(dtypes[0].kind in row.kinds, f"it is not for {dtypes[0]}")
    _require(node.dtype == (row.result or dtypes[0]), "its dtype is wrong")


def _check_fold(node, kernel):
    [arg], (how, axes) = node.args, node.detail
    _require(how in foldings, "there is no such way to fold")
    accepts = foldings[how].accepts
    _require(arg.dtype.kind in accepts, f"it is not for {arg.dtype}")
    _require(set(axes) <= set(range(len(kernel.sizes))), "there are no such axes")
    if how.startswith("arg"):
        _require(len(axes) == 1 and kernel.sizes[axes[0]] > 0, "it folds one axis")
    kept = tuple(axis for axis in arg.level if axis not in axes)
    _require(node.level == kept, "its level is wrong")
    order = [*kept, *axes]
    _require(axes and order == sorted(order), "it keeps axes behind those it folds")


def _check_load(node, kernel):
    buffer, place, guards, _ = node.detail
    _require(node.dtype == in_registers(buffer.dtype), "its dtype is wrong")
    level = union([place.axes, *[guard.place.axes for guard in guards]])
    _require(node.level == level, "its level is wrong")
    limits = [kernel.sizes[axis] for axis in level] + [limit for _, limit in guards]
    if all(limits):
        _check_bounds(buffer, place, guards, kernel.sizes)


def _check_bounds(buffer, place, guards, sizes):
    """Compare the elements that are reached with the size of a buffer.

    Where a guard's number enters the place as a multiple, its limits hold.
    """
    reach = [0, 0]
    for (offset, strides), limit in guards:
        factor = _multiple(place.strides, strides)
        end = factor * (limit - 1)
        reach = [reach[0] + min(end, 0), reach[1] + max(end, 0)]
        left = [a - factor * b for a, b in zip(place.strides, strides)]
        place = Affine(place.offset - factor * offset, tuple(left))
    least, most = (end + more for end, more in zip(place.bounds(sizes), reach))
    complaint = f"it reaches elements {least} to {most} of {buffer}"
    _require(least >= 0 and most < buffer.size, complaint)


def _multiple(strides, guarded):
    """Return how many times a guard's number is part of a place."""
    ratios = [a // b for a, b in zip(strides, guarded) if b]
    return ratios[0] if ratios else 0


def _check_store(store, kernel):
    buffer, place, node = store
    _require(node.dtype == in_registers(buffer.dtype), "its dtype is wrong")
    _require({*node.level} <= {*place.axes}, "the scalar varies over further axes")
    if all(kernel.sizes[axis] for axis in place.axes):
        _check_bounds(buffer, place, (), kernel.sizes)
        _check_distinct(place, kernel.sizes)


def _check_distinct(place, sizes):
    """Require that different indices are different places: each stride is a leap."""
    reach = 0
    for stride, size in sorted((abs(place.strides[k]), sizes[k]) for k in place.axes):
        _require(stride > reach or size == 1, "two indices store into one element")
        reach += stride * (size - 1)
