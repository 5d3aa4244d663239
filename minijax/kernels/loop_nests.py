"""Kernels: loop nests over scalar expressions, and their reference interpreter.

A kernel says what is computed for each index, and in which element of which
parameter it is found or left. It knows nothing of vectors, threads or addresses,
so that one kernel serves every machine.

A node becomes an array that has size 1 along the axes over which it does not vary.
"""

# Made from chapters/17_kernels.md by `make chapter`;
# edit the chapter, not this file.

import dataclasses
import re

import numpy as np

from minijax.arrays.devices import ignore_float_errors
from minijax.kernels.ir import (
    Fold,
    FoldCombine,
    FoldInit,
    Load,
    Loop,
    Store,
    cast_ops,
    compute_dtype,
    fold_ops,
    is_scan,
    nest_text,
    node_names,
    print_kernel,
    scalar_ops,
    sha256,
    union_of_levels,
)

# The kernel IR: loop nests over scalar expressions, as data.


@dataclasses.dataclass(eq=False, slots=True)
class Node:
    """A scalar for each index: one line of a kernel.

    Attributes:
      op: "constant", "index", "load", "fold", "running", or the name of a scalar
        operation.
      args: the nodes that it is computed from.
      dtype: of the scalar.
      level: the axes along which it varies, a tuple.
      detail: a number for "constant", an axis for "index", a `Load` or a `Fold`.
    """

    op: str
    args: tuple
    dtype: np.dtype
    level: tuple
    detail: object = None


def constant_node(value, dtype):
    """Return the node of a number."""
    dtype = compute_dtype(dtype)
    return Node("constant", (), dtype, (), dtype.type(value))


def index_node(axis):
    """Return the node of the index along an axis."""
    return Node("index", (), np.dtype(np.int64), (axis,), axis)


def op_node(op, *args, dtype=None):
    """Return the node of a scalar operation, by its name in a table.

    A name in `cast_ops` needs the dtype of the result besides the nodes `args`.
    """
    if dtype is None:
        dtype = scalar_ops[op].result or args[-1].dtype
    return Node(
        op, args, compute_dtype(dtype), union_of_levels([arg.level for arg in args])
    )


def load_node(parameter, place, guards=(), other=0, computed=()):
    """Return the node of an element of a parameter.

    Args:
      parameter, place, guards, other: as in a `Load`.
      computed: pairs of a node of int64 and an `IndirectTerm`, which are added to the
        place.
    """
    args, terms = zip(*computed) if computed else ((), ())
    dtype = compute_dtype(parameter.dtype)
    levels = [place.axes, *[guard.place.axes for guard in guards]]
    detail = Load(parameter, place, tuple(guards), dtype.type(other), terms)
    return Node(
        "load",
        args,
        dtype,
        union_of_levels([*levels, *[x.level for x in args]]),
        detail,
    )


def fold_node(how, axes, arg):
    """Return the node of what remains of another when `axes` are folded away."""
    level = tuple(axis for axis in arg.level if axis not in axes)
    dtype = np.dtype(np.int64) if how.startswith("arg") else arg.dtype
    return Node("fold", (arg,), dtype, level, Fold(how, tuple(axes)))


@dataclasses.dataclass(eq=False, slots=True)
class Kernel:
    """A loop nest.

    Attributes:
      name: of the operation that it is made from.
      sizes: the size of each axis.
      parameters: what is read, then what is written.
      nodes: list of `Node`, each after those that it is computed from.
      stores: list of `Store`.
      facts: what has been computed of it, by `once_per_kernel`.
    """

    name: str
    sizes: tuple
    parameters: tuple
    nodes: tuple
    stores: tuple
    facts: dict = dataclasses.field(default_factory=dict, init=False, repr=False)

    @property
    def label(self):
        """A name that hardly any other text has: it ends with a hash."""
        name = re.sub(r"\W", "_", self.name, flags=re.ASCII)
        return f"{name}_{sha256(str(self).encode()).hexdigest()[:6]}"

    def __str__(self):
        return print_kernel(self)


def backward_slice(goals, ends=()):
    """Return the set of goals and all they are made of; the walk stops at `ends`."""
    found, open_ends = set(), [*goals]
    while open_ends:
        node = open_ends.pop()
        if node not in found:
            found.add(node)
            open_ends.extend(() if node in ends else node.args)
    return found


# The loops of a kernel: which are opened when, and what is computed where.


def loop_nest(kernel, moving=()):
    """Return the steps of a kernel: nodes, stores, `FoldInit`, `FoldCombine`, `Loop`.

    A node is computed as soon as all of its axes move, in every loop that needs it.
    What goes along one axis and does not have to wait for the other shares a loop.
    The steps stand inside of loops along the axes `moving`, if there are any.
    """
    return _steps(kernel, kernel.stores, frozenset(moving), set())


def _steps(kernel, goals, moving, done):
    """Return the steps that lead to some goals, each a `Store` or a `FoldCombine`."""
    steps = []
    leading = backward_slice([x for goal in goals for x in _wanted(goal)], done)
    while goals:
        nodes, folds, waiting = _computed(kernel, leading, moving, done)
        ready = [goal for goal in goals if waiting.isdisjoint(_wanted(goal))]
        goals = [goal for goal in goals if not waiting.isdisjoint(_wanted(goal))]
        steps += [*nodes, *map(FoldInit, folds)]
        for axis, group in _by_axis([*map(FoldCombine, folds), *ready], moving).items():
            loop = axis is not None
            steps += _loop(kernel, axis, group, moving, done) if loop else group
        done.update(folds)
    return steps


def _wanted(goal):
    """Return the nodes that a store needs, or the one that enters a fold."""
    return goal.args if isinstance(goal, Store) else goal.fold.args


def _computed(kernel, leading, moving, done):
    """Return what can be done where some axes move, and note nodes as done.

    Returns:
      The nodes that are computed now; the folds that can begin; and all nodes that
      have to wait for one of these.
    """
    nodes, folds, waiting = [], [], set()
    for node in kernel.nodes:
        if node in leading and node not in done:
            here = moving.issuperset(node.level)
            if not waiting.isdisjoint(node.args):
                waiting.add(node)
            elif here and node.op == "fold":
                folds.append(node)
                waiting.add(node)
            elif here:
                nodes.append(FoldCombine(node) if node.op == "running" else node)
                done.add(node)
    return nodes, folds, waiting


def _by_axis(goals, moving):
    """Return the goals by the next axis that has to move for them, or None."""
    groups = {}
    for goal in goals:
        axes = goal.axes if isinstance(goal, Store) else goal.fold.detail.axes
        still = [axis for axis in axes if axis not in moving]
        groups.setdefault(still[0] if still else None, []).append(goal)
    return groups


def _loop(kernel, axis, goals, moving, done):
    """Return a loop, behind the first values of the folds that run along its axis."""
    body = _steps(kernel, goals, moving | {axis}, set(done))
    folds = [goal.fold for goal in goals if isinstance(goal, FoldCombine)]
    inside = [step.fold for step in body if isinstance(step, FoldCombine)]
    ours = [each for each in inside if is_scan(each) and axis in each.detail.axes]
    return [*map(FoldInit, ours), Loop(axis, body, (*folds, *ours))]


def print_nest(kernel, steps=None):
    """Return the text of a kernel's loops; `steps` are its nest, if it is another."""
    return "\n".join("  " * depth + text for depth, text in nest_lines(kernel, steps))


def nest_lines(kernel, steps=None):
    """Return the steps of a kernel's loops as pairs of a depth and a text."""
    return nest_text(steps or loop_nest(kernel), kernel, node_names(kernel))


# The reference interpreter of kernels, in NumPy.


@ignore_float_errors
def interpret(kernel, memory):
    """Run a kernel.

    Args:
      kernel: a `Kernel`.
      memory: from the names of its parameters to flat NumPy arrays, of which those that
        the kernel stores into are changed.
    """
    indices = np.indices(kernel.sizes, sparse=True, dtype=np.int64)
    values = {}
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
    if node.op in cast_ops:
        return cast_ops[node.op](args[0], node.dtype)
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
    return np.where(inside, found.astype(compute_dtype(parameter.dtype)), other)


def _fold(node, arg, sizes):
    shape, (how, axes) = list(arg.shape), node.detail
    for axis in axes:
        shape[axis] = sizes[axis]
    folding, arg = fold_ops[how], np.broadcast_to(arg, shape)
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
