"""Checkers: is a kernel well formed, and do its loops do what it says?"""

# Made from chapters/17_kernels_rest.md by `make chapter`;
# edit the chapter, not this file.

import math
from collections import Counter
from contextlib import contextmanager

import numpy as np

from minijax._registry import Registry
from minijax.kernels.builder import check_loop_annotations, has_jammed_loop
from minijax.kernels.ir import (
    Affine,
    FoldCombine,
    FoldInit,
    Loop,
    Store,
    cast_ops,
    compute_dtype,
    fold_ops,
    is_scan,
    item_text,
    node_names,
    right_hand_side,
    scalar_ops,
    union_of_levels,
)
from minijax.kernels.loop_nests import Node


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
        level = union_of_levels(arg.level for arg in node.args)
        _require(node.level == level, "its level is not that of its arguments")
        return _check_operation(node)


def _check_operation(node):
    dtypes = [arg.dtype for arg in node.args]
    if node.op in cast_ops:
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
    _require(how in fold_ops, "there is no such way to fold")
    accepts = fold_ops[how].kinds
    _require(arg.dtype.kind in accepts, f"it is not for {arg.dtype}")
    _require(set(axes) <= set(range(len(kernel.sizes))), "there are no such axes")
    if how.startswith("arg"):
        _require(len(axes) == 1 and kernel.sizes[axes[0]] > 0, "it folds one axis")
    kept = tuple(axis for axis in arg.level if axis not in axes)
    order = [*kept, *axes]
    _require(axes and order == sorted(order), "it keeps axes behind those it folds")
    if node.op == "running":
        _require(len(axes) == 1 and fold_ops[how].running, "it runs along one axis")
    level = kept if node.op == "fold" else (*kept, *axes)
    _require(node.level == level, "its level is wrong")


def _check_load(node, kernel):
    parameter, place, guards, _, terms = node.detail
    _require(node.dtype == compute_dtype(parameter.dtype), "its dtype is wrong")
    levels = [*[guard.place.axes for guard in guards], *[x.level for x in node.args]]
    level = union_of_levels([place.axes, *levels])
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
    of the terms, whatever their numbers are; a limit of 0 lets nothing through, nor
    does a guard that never holds.
    """
    if not all(limit > 0 for _, limit in terms):
        return
    if any(not any(x) and not 0 <= at < limit for (at, x), limit in guards):
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
    _require(node.dtype == compute_dtype(parameter.dtype), "its dtype is wrong")
    if update:
        _check_update(store, kernel)
    _require({*node.level} <= {*store.axes}, "the scalar varies over further axes")
    if all(kernel.sizes[axis] for axis in store.axes):
        terms = update.terms if update else ()
        _check_bounds(parameter, place, (), terms, kernel.sizes)
        _check_distinct(store, kernel.sizes)


def _check_update(store, kernel):
    how, at, terms, axes, _ = store.update
    known = how == "set" or (how in fold_ops and fold_ops[how].running)
    _require(known, "there is no such way to store")
    dtype = compute_dtype(store.parameter.dtype)
    kinds = dtype.kind if how == "set" else fold_ops[how].kinds
    _require(dtype.kind in kinds, f"it is not for {dtype}")
    _check_terms(at, terms)
    known = axes == tuple(sorted({*axes} & {*range(len(kernel.sizes))}))
    _require(known, "its axes are not those of the kernel, in order")
    moving = {*store.place.axes, *union_of_levels([number.level for number in at])}
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
    computed = union_of_levels([number.level for number in update.at]) if update else ()
    axes = [axis for axis in store.axes if axis not in computed]
    for stride, size in sorted((abs(place.strides[k]), sizes[k]) for k in axes):
        _require(stride > reach or size == 1, "two indices store into one element")
        reach += stride * (size - 1)


class NestError(TypeError):
    """Loops that do not do what their kernel says."""


class NestCheckState:
    """How far a check has come.

    Attributes:
      kernel: the `Kernel`.
      loops: those that are open, from the outermost inwards.
      known: the nodes that have been computed and are at hand.
      entered: the folds that numbers have entered.
      kept: from rows that later sweeps may take numbers from to the loops around.
      stored: how often each store was met.
    """

    def __init__(self, kernel, loops, known):
        self.kernel, self.loops, self.known = kernel, loops, known
        self.entered, self.kept, self.stored = set(), {}, Counter()

    @property
    def axes(self):
        """The axes of the open loops; one in strips moves in the loops inside."""
        return {loop.axis for loop in self.loops if not loop.strip}

    def require(self, condition, step, complaint):
        """Raise a `NestError` about a step unless a condition is true."""
        if not condition:
            names = node_names(self.kernel)
            text = f"{complaint}: {_about(step, names)}"
            raise NestError(f"{text}, in the loops of\n\n{self.kernel}")

    @contextmanager
    def inside(self, loop):
        """Let a loop be open; what is computed in it is gone when it is left."""
        self.require(loop.axis not in self.axes, loop, "this axis moves already")
        known, self.known = self.known, {*self.known}
        self.loops.append(loop)
        yield
        self.known = known
        self.loops.pop()


def _about(step, names):
    if isinstance(step, Node):
        return f"{names.get(step, 'a constant')} = {right_hand_side(step, names)}"
    if isinstance(step, Store):
        return item_text(step, names)
    name = type(step).__name__.lower()
    return f"{name} {names[step.fold]}" if hasattr(step, "fold") else f"the {name}"


def check_nest(kernel, steps):
    """Raise a `NestError` unless steps do what a kernel says; return them.

    What a step needs is at hand, each axis moves in one loop at a time, folds end
    before they are used, and each store is done once for each of its indices.
    """
    walk = NestCheckState(kernel, [], set())
    check_steps(walk, steps)
    for shared in [step for step in steps if getattr(step, "parallel", False)]:
        alone = all(step is shared or isinstance(step, Node) for step in steps)
        walk.require(alone, shared, "other loops are done by many as well")
    for store in kernel.stores:
        walk.require(walk.stored[store] == 1, store, "it is not done once")
    return steps


def check_steps(walk, steps):
    """Check steps, one after the other."""
    for step in steps:
        aside = any(loop.together for loop in walk.loops)
        walk.require(
            has_jammed_loop(step) or not aside, step, "it is not done side by side"
        )
        step_checks[type(step)](walk, step)


def _visit_node(walk, node):
    walk.require(walk.known.issuperset(node.args), node, "an operand is missing")
    walk.require(node.op not in ("fold", "running"), node, "a fold needs a loop")
    if node.op != "constant":
        walk.require(walk.axes.issuperset(node.level), node, "an axis does not move")
    walk.known.add(node)


def _visit_store(walk, store):
    walk.require(walk.known.issuperset(store.args), store, "its number is missing")
    moving = {axis for axis in walk.axes if walk.kernel.sizes[axis] > 1}
    walk.require(store in walk.kernel.stores, store, "the kernel has no such store")
    exact = moving <= {*store.axes} <= walk.axes
    walk.require(exact, store, "other axes move than those of its place")
    if store.update and not store.update.distinct:
        _require_order(walk, store)
    walk.stored[store] += 1


def _require_order(walk, store):
    """Require that one index comes after the other where places may meet."""
    axes = [loop.axis for loop in walk.loops if walk.kernel.sizes[loop.axis] > 1]
    walk.require(axes == sorted(axes), store, "its indices come in another order")
    shared = any(loop.parallel for loop in walk.loops)
    walk.require(not shared, store, "two threads may meet")


def _visit_start(walk, start):
    level = {*start.fold.level} - {*start.fold.detail.axes}
    walk.require(level <= walk.axes, start, "an axis does not move")
    apart = walk.axes.isdisjoint(start.fold.detail.axes)
    walk.require(apart, start, "an axis that is folded moves already")


def _visit_combine(walk, combine):
    fold = combine.fold
    walk.require(fold.args[0] in walk.known, combine, "its number is missing")
    along = {loop.axis for loop in walk.loops if fold in loop.folds}
    walk.require(along == {*fold.detail.axes}, combine, "loops do not carry it")
    walk.require(fold not in walk.entered, combine, "a number enters it twice")
    walk.entered.add(fold)
    if is_scan(fold):
        walk.require({*fold.level} <= walk.axes, combine, "an axis does not move")
        inner = walk.loops[-1].axis in fold.detail.axes
        walk.require(inner, combine, "it runs along another loop")
        walk.known.add(fold)


def _visit_loop(walk, loop):
    check_loop_annotations(walk, loop)
    size, wide = walk.kernel.sizes[loop.axis], [o for o in walk.loops if o.lanes]
    walk.require(not (loop.lanes and wide), loop, "vectors lie along another axis")
    walk.require(loop.lanes <= max(size, 1), loop, "it has more lanes than indices")
    carried = {fold for outer in walk.loops for fold in outer.folds}
    own = {*loop.folds} - carried
    walk.entered -= own
    whole = all(outer.axis != loop.axis for outer in walk.loops)  # of no strip
    fits = loop.kind != "masked" or (whole and size < 2**31)
    walk.require(fits, loop, "a mask is not enough for its steps")
    with walk.inside(loop):
        check_steps(walk, loop.body)
    walk.require(own <= walk.entered, loop, "nothing enters one of its folds")
    walk.known |= {fold for fold in own if not is_scan(fold)}


# From types of steps to functions of a `NestCheckState` and a step.
step_checks: dict = Registry(
    {
        Node: _visit_node,
        Store: _visit_store,
        FoldInit: _visit_start,
        FoldCombine: _visit_combine,
        Loop: _visit_loop,
    }
)
