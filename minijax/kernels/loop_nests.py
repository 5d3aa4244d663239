"""The loops of a kernel: which are opened when, and what is computed where."""

# Made from chapters/17_kernels.md by `make chapter`;
# edit the chapter, not this file.

from minijax.kernels.kernel import needed
from minijax.kernels.parts import Combine, Loop, Start, Store, names_of, nest_text, runs


def loop_nest(kernel, moving=()):
    """Return the steps of a kernel: nodes, stores, and `Start`, `Combine`, `Loop`.

    A node is computed as soon as all of its axes move, in every loop that needs it.
    What goes along one axis and does not have to wait for the other shares a loop.
    The steps stand inside of loops along the axes `moving`, if there are any.
    """
    return _steps(kernel, kernel.stores, frozenset(moving), set())


def _steps(kernel, goals, moving, done):
    """Return the steps that lead to some goals, each a `Store` or a `Combine`."""
    steps, leading = [], needed([x for goal in goals for x in _wanted(goal)], done)
    while goals:
        nodes, folds, waiting = _computed(kernel, leading, moving, done)
        ready = [goal for goal in goals if waiting.isdisjoint(_wanted(goal))]
        goals = [goal for goal in goals if not waiting.isdisjoint(_wanted(goal))]
        steps += [*nodes, *map(Start, folds)]
        for axis, group in _by_axis([*map(Combine, folds), *ready], moving).items():
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
                nodes.append(Combine(node) if node.op == "running" else node)
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
    folds = [goal.fold for goal in goals if isinstance(goal, Combine)]
    inside = [step.fold for step in body if isinstance(step, Combine)]
    ours = [each for each in inside if runs(each) and axis in each.detail.axes]
    return [*map(Start, ours), Loop(axis, body, (*folds, *ours))]


def print_nest(kernel, steps=None):
    """Return the text of a kernel's loops; `steps` are its nest, if it is another."""
    return "\n".join("  " * depth + text for depth, text in nest_lines(kernel, steps))


def nest_lines(kernel, steps=None):
    """Return the steps of a kernel's loops as pairs of a depth and a text."""
    return nest_text(steps or loop_nest(kernel), kernel, names_of(kernel))
