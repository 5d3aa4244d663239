# Made from chapters/17_kernels.md by `make chapter`;
# edit the chapter, not this file.
"""The reference interpreter of kernels, in NumPy, and a checker of their types.

A node becomes an array that has size 1 along the axes over which it does not vary.
"""

import math

import numpy as np

from minijax.kernels.kernel import Affine, union
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


class KernelError(TypeError):
    """A kernel that no machine should run."""


def check_kernel(kernel):
    """Raise a `KernelError` unless a kernel is well formed; return it.

    Every node comes after its arguments and has the dtype and level that follow from
    them; every element that is read or written lies inside its parameter; no element is
    written twice by one store; no parameter is both read and written, and no two have
    one name.
    """
    seen = set()
    for place, node in enumerate(kernel.nodes):
        with _mentioning(kernel, f"node {place}, {node.op}"):
            _require(seen.issuperset(node.args), "it comes before its arguments")
            _check_node(node, kernel)
        seen.add(node)
    for store in kernel.stores:
        with _mentioning(kernel, f"the store into {store.parameter.name}"):
            known = seen.issuperset(store.args)
            _require(known, "it stores what is no node of the kernel")
            _check_store(store, kernel)
    read = {node.detail.parameter for node in kernel.nodes if node.op == "load"}
    written = {store.parameter for store in kernel.stores}
    names = [parameter.name for parameter in kernel.parameters]
    with _mentioning(kernel, "the parameters"):
        _require(not read & written, "one is both read and written")
        _require(read | written <= {*kernel.parameters}, "one is not in the list")
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
    if node.op in ("fold", "running"):
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
    order = [*kept, *axes]
    _require(axes and order == sorted(order), "it keeps axes behind those it folds")
    if node.op == "running":
        _require(len(axes) == 1 and foldings[how].running, "it runs along one axis")
    level = kept if node.op == "fold" else (*kept, *axes)
    _require(node.level == level, "its level is wrong")


def _check_load(node, kernel):
    parameter, place, guards, _, terms = node.detail
    _require(node.dtype == in_registers(parameter.dtype), "its dtype is wrong")
    levels = [*[guard.place.axes for guard in guards], *[x.level for x in node.args]]
    level = union([place.axes, *levels])
    _require(node.level == level, "its level is wrong")
    _check_terms(node.args, terms)
    limits = [kernel.sizes[axis] for axis in level] + [limit for _, limit in guards]
    if all(limits):
        _check_bounds(parameter, place, guards, terms, kernel.sizes)


def _check_terms(numbers, terms):
    _require(len(numbers) == len(terms), "each computed number needs a limit")
    whole = all(number.dtype == np.int64 for number in numbers)
    _require(whole, "a computed place is not int64")


def _check_bounds(parameter, place, guards, terms, sizes):
    """Compare the elements that are reached with the size of a parameter.

    Where a guard's number enters the place as a multiple, its limits hold. So do those
    of the terms, whatever their numbers are; a limit of 0 lets nothing through.
    """
    if not all(limit > 0 for _, limit in terms):
        return
    ends = [stride * (limit - 1) for stride, limit in terms]
    reach = [sum(min(end, 0) for end in ends), sum(max(end, 0) for end in ends)]
    for (offset, strides), limit in guards:
        factor = _multiple(place.strides, strides)
        end = factor * (limit - 1)
        reach = [reach[0] + min(end, 0), reach[1] + max(end, 0)]
        left = [a - factor * b for a, b in zip(place.strides, strides)]
        place = Affine(place.offset - factor * offset, tuple(left))
    least, most = (end + more for end, more in zip(place.bounds(sizes), reach))
    complaint = f"it reaches elements {least} to {most} of {parameter}"
    _require(least >= 0 and most < parameter.size, complaint)


def _multiple(strides, guarded):
    """Return how many times a guard's number is part of a place."""
    ratios = [a // b for a, b in zip(strides, guarded) if b]
    return ratios[0] if ratios else 0


def _check_store(store, kernel):
    parameter, place, node, update = store
    _require(node.dtype == in_registers(parameter.dtype), "its dtype is wrong")
    if update:
        _check_update(store, kernel)
    _require({*node.level} <= {*store.axes}, "the scalar varies over further axes")
    if all(kernel.sizes[axis] for axis in store.axes):
        terms = update.terms if update else ()
        _check_bounds(parameter, place, (), terms, kernel.sizes)
        _check_distinct(store, kernel.sizes)


def _check_update(store, kernel):
    how, at, terms, axes, _ = store.update
    known = how == "set" or (how in foldings and foldings[how].running)
    _require(known, "there is no such way to store")
    dtype = in_registers(store.parameter.dtype)
    kinds = dtype.kind if how == "set" else foldings[how].accepts
    _require(dtype.kind in kinds, f"it is not for {dtype}")
    _check_terms(at, terms)
    known = axes == tuple(sorted({*axes} & {*range(len(kernel.sizes))}))
    _require(known, "its axes are not those of the kernel, in order")
    moving = {*store.place.axes, *union([number.level for number in at])}
    _require(moving <= {*axes}, "its place moves along further axes")
    for other in kernel.stores:
        apart = other is store or other.parameter != store.parameter
        apart = apart or _never_meet(store, other)
        _require(apart, "another store has the same parameter")


def _never_meet(store, other):
    """Whether two stores have no place in common, as the parts of complex numbers."""
    terms = [*store.update.terms, *(other.update.terms if other.update else ())]
    strides = [*store.place.strides, *other.place.strides, *[t.stride for t in terms]]
    distance, step = store.place.offset - other.place.offset, math.gcd(*strides)
    return bool(distance % step if step else distance)


def _check_distinct(store, sizes):
    """Require that different indices are different places: each stride is a leap.

    Along axes where the place is computed there is a promise instead, or places may
    meet.
    """
    place, update, reach = store.place, store.update, 0
    if update and not update.distinct:
        return
    computed = union([number.level for number in update.at]) if update else ()
    axes = [axis for axis in store.axes if axis not in computed]
    for stride, size in sorted((abs(place.strides[k]), sizes[k]) for k in axes):
        _require(stride > reach or size == 1, "two indices store into one element")
        reach += stride * (size - 1)
