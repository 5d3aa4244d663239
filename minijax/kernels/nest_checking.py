# Made from chapters/17_kernels_rest.md by `make chapter`;
# edit the chapter, not this file.
"""A checker for the loops of a kernel."""

import dataclasses
from collections import Counter
from contextlib import contextmanager

from minijax.kernels.kernel import (
    Node,
    Store,
    apart,
    item_text,
    names_of,
    right_hand_side,
)
from minijax.kernels.loop_nests import Combine, Loop, Start, runs


class NestError(TypeError):
    """Loops that do not do what their kernel says."""


@dataclasses.dataclass
class Walk:
    """How far a check has come.

    Attributes:
      kernel: the `Kernel`.
      loops: those that are open, from the outermost inwards.
      known: the nodes that have been computed and are at hand.
      entered: the folds that numbers have entered.
      kept: the rows that later sweeps may take numbers from.
      stored: how often each store was met.
    """

    kernel: object
    loops: list
    known: set
    entered: set = dataclasses.field(default_factory=set)
    kept: set = dataclasses.field(default_factory=set)
    stored: Counter = dataclasses.field(default_factory=Counter)

    @property
    def axes(self):
        """The axes of the open loops; one in strips moves in the loops inside."""
        return {loop.axis for loop in self.loops if not loop.strip}

    def require(self, condition, step, complaint):
        """Raise a `NestError` about a step unless a condition is true."""
        if not condition:
            names = names_of(self.kernel)
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
    walk = Walk(kernel, [], set())
    check_steps(walk, steps)
    for store in kernel.stores:
        walk.require(walk.stored[store] == 1, store, "it is not done once")
    return steps


def check_steps(walk, steps):
    """Check steps, one after the other."""
    for step in steps:
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
    for loop in walk.loops:
        inner = loop is walk.loops[-1] and apart(store, loop.axis)
        wide = loop.lanes or loop.together
        walk.require(inner or not wide, store, "two lanes may meet")


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
    walk.entered.add(fold)
    if runs(fold):
        walk.require({*fold.level} <= walk.axes, combine, "an axis does not move")
        inner = walk.loops[-1].axis in fold.detail.axes
        walk.require(inner, combine, "it runs along another loop")
        walk.known.add(fold)


def _visit_loop(walk, loop):
    size, wide = walk.kernel.sizes[loop.axis], [o for o in walk.loops if o.lanes]
    walk.require(not (loop.lanes and wide), loop, "vectors lie along another axis")
    walk.require(loop.lanes <= max(size, 1), loop, "it has more lanes than indices")
    own_turns = loop.parallel or loop.together
    walk.require(not (own_turns and loop.folds), loop, "its turns depend on others")
    turns = loop.lanes and any(map(runs, loop.folds))
    walk.require(not turns, loop, "a fold that runs along it has no lanes")
    carried = {fold for outer in walk.loops for fold in outer.folds}
    own = {*loop.folds} - carried
    walk.entered -= own
    _check_strip(walk, loop)
    with walk.inside(loop):
        check_steps(walk, loop.body)
    walk.require(own <= walk.entered, loop, "nothing enters one of its folds")
    walk.known |= {fold for fold in own if not runs(fold)}


def _check_strip(walk, loop):
    """Check that a strip is done by loops along its axis, and by nothing else."""
    inner = all(getattr(step, "axis", None) == loop.axis for step in loop.body)
    plain = not (loop.lanes or loop.together or loop.folds)
    walk.require(not loop.strip or (inner and plain), loop, "its strips are no loops")


# From types of steps to functions of a `Walk` and a step.
step_checks: dict = {
    Node: _visit_node,
    Store: _visit_store,
    Start: _visit_start,
    Combine: _visit_combine,
    Loop: _visit_loop,
}
