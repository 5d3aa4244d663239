# Made from chapters/16_kernels.md by `make chapter`;
# edit the chapter, not this file.
"""The loops of a kernel: which are opened when, and what is computed where."""

from typing import NamedTuple

from minijax.kernels import AXES, Node, Store, names_of, right_hand_side, spell
from minijax.scalar_ops import foldings


class Start(NamedTuple):
    """A step of a nest: the running value of a fold begins."""

    fold: Node


class Combine(NamedTuple):
    """A step of a nest: one more number enters the running value of a fold."""

    fold: Node


class Loop(NamedTuple):
    """A step of a nest: do the steps of `body` for each index along an axis.

    The running value of `fold`, if there is one, goes through the loop.
    """

    axis: int
    body: list
    fold: Node | None


def loop_nest(kernel):
    """Return the steps of a kernel: nodes, stores, and `Start`, `Combine`, `Loop`.

    A node is computed as soon as all of its axes move, in every loop that needs it.
    """
    return _around(kernel, kernel.stores, frozenset(), set())


def _around(kernel, stores, moving, done):
    """Return the steps of some stores and of the loops around them."""
    steps = _computed(kernel, [store.node for store in stores], moving, done)
    groups = {}
    for store in stores:
        still = [axis for axis in store.place.axes if axis not in moving]
        groups.setdefault(still[0] if still else None, []).append(store)
    steps += groups.pop(None, [])
    for axis, group in groups.items():
        body = _around(kernel, group, moving | {axis}, set(done))
        steps.append(Loop(axis, body, None))
    return steps


def _computed(kernel, wanted, moving, done):
    """Return the steps of all nodes that can be computed now, and note them as done."""
    needed, steps = _needed(wanted, done), []
    for node in kernel.nodes:
        if node in needed and moving.issuperset(node.level):
            fold = node.op == "fold"
            steps += _folded(kernel, node, moving, done) if fold else [node]
            done.add(node)
    return steps


def _needed(wanted, done):
    """Return the nodes that are on the way to others, and not done."""
    found, open_ends = set(), [*wanted]
    while open_ends:
        node = open_ends.pop()
        if node not in done and node not in found:
            found.add(node)
            open_ends.extend(node.args)
    return found


def _folded(kernel, fold, moving, done):
    """Return the steps of a fold: a loop for each of its axes."""

    def inside(axes, moving, done):
        steps = _computed(kernel, fold.args, moving, done)
        if not axes:
            return [*steps, Combine(fold)]
        body = inside(axes[1:], moving | {axes[0]}, set(done))
        return [*steps, Loop(axes[0], body, fold)]

    return [Start(fold), *inside(fold.detail.axes, moving, set(done))]


def print_nest(kernel):
    """Return the text of a kernel's loops."""
    return "\n".join("  " * depth + text for depth, text in nest_lines(kernel))


def nest_lines(kernel):
    """Return the steps of a kernel's loops as pairs of a depth and a text."""
    return _lines(loop_nest(kernel), kernel, names_of(kernel), 0)


def _lines(steps, kernel, names, depth):
    lines = []
    for step in steps:
        if isinstance(step, Loop):
            axis = step.axis
            lines.append((depth, f"for {AXES[axis]} < {kernel.sizes[axis]}:"))
            lines += _lines(step.body, kernel, names, depth + 1)
        elif not isinstance(step, Node) or step.op != "constant":
            lines.append((depth, _line(step, names)))
    return lines


def _line(step, names):
    if isinstance(step, Store):
        return spell(step, names)
    if isinstance(step, Node):
        return f"{names[step]} = {right_hand_side(step, names)}"
    [arg], how, name = step.fold.args, step.fold.detail.how, names[step.fold]
    if isinstance(step, Start):
        return f"{name} = {foldings[how].start(arg.dtype).item()}"
    return f"{name} = {how} {name} {spell(arg, names)}"
