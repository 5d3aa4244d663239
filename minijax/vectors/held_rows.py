"""Rows held in a buffer between the sweeps over them, and the folds at their ends."""

# Made from chapters/24_vectors_rest.md by `make chapter`;
# edit the chapter, not this file.

import functools
import math
from typing import NamedTuple

from minijax.kernels.checking import step_checks
from minijax.kernels.jamming import jammers
from minijax.kernels.kernel import Node
from minijax.kernels.parts import Affine, Combine, Loop, Start, Store, runs
from minijax.llvm.kernel_text import step_writers
from minijax.llvm.loads_and_stores import read_own, write_own
from minijax.vectors.loops import everything, is_function, is_loop
from minijax.vectors.nests import cheapest


class Row(NamedTuple):
    """What is kept of a node: a number for each index along some axes.

    Neighbours along the last of these axes stand side by side, and behind all of them
    there is room for lanes that do not count.
    """

    node: Node
    axes: tuple
    room: int


class Keep(NamedTuple):
    """A step of a nest: a number is put into a row.

    Attributes:
      row: the `Row`.
      turns: if it is one of several side by side, the `Turn` that it belongs to, of
        each of these loops.
    """

    row: Row
    turns: tuple = ()

    @property
    def node(self):
        """The node of the number."""
        return functools.reduce(lambda x, turn: turn.node(x), self.turns, self.row.node)


class Recall(NamedTuple):
    """A step of a nest: a number is taken from a row."""

    row: Row

    @property
    def node(self):
        """The node of the number."""
        return self.row.node


def row_bytes(target):
    """Return how many bytes a row may have: it is read again while it is near."""
    return max(2 * target.caches[0], target.caches[:2][-1] // 4)


def hold_rows(kernel, steps, target, moving=(), lanes=1):
    """Return the steps of a nest in which later sweeps take up what earlier ones found.

    Args:
      kernel: a `Kernel`.
      steps: those of its nest, or of a loop in it.
      target: the `Target` that it is meant for.
      moving: the axes of the loops around them.
      lanes: how many numbers stand for one, if vectors lie along one of these axes.
    """
    done, kept, result = {}, set(), []
    for step in steps:
        if is_loop(step):
            firsts = {node: result[place] for node, place in done.items()}
            most = row_bytes(target) // lanes
            rows = rows_for(kernel, step, firsts, moving, most)
            for row in [row for row in rows if row not in kept]:
                first = done[row.node]
                result[first] = _with_keep(result[first], row)
                kept.add(row)
            step = _with_recall(step, rows) if rows else step
            for node in nodes_in(step):
                done.setdefault(node, len(result))
        result.append(step)
    return [_inside(kernel, step, target, moving, lanes) for step in result]


def _inside(kernel, step, target, moving, lanes):
    if not is_loop(step):
        return step
    lanes = step.lanes or lanes
    body = hold_rows(kernel, step.body, target, (*moving, step.axis), lanes)
    return step._replace(body=body)


def nodes_in(loop):
    """Return the nodes that are computed in a loop, folds that begin in it too."""
    steps = [*everything(loop.body)]
    begun = [step.fold for step in steps if isinstance(step, Start)]
    folds = [fold for fold in begun if not runs(fold)]
    return [*folds, *[step for step in steps if isinstance(step, Node)]]


def lying(loop, node):
    """Return the axes along which vectors of a node lie in a loop, and their lanes."""
    steps = [step for step in everything([loop]) if is_loop(step) and step.lanes]
    return {step.axis: step.lanes for step in steps if node in nodes_in(step)}


def rows_for(kernel, loop, firsts, moving, most):
    """Return rows for what a loop computes again, if that takes long.

    Vectors have to lie along the same axis where a number is kept and recalled.

    Args:
      kernel, moving: those of `hold_rows`.
      loop: the loop.
      firsts: from nodes to the earlier loops that compute them first.
      most: how many bytes a row has at most.
    """
    nodes = nodes_in(loop)
    again = {node for node in nodes if node in firsts}
    others = [*_goals(loop, again), *[node for node in nodes if node not in again]]
    edge, rows = inputs_of(others), []
    for node in [node for node in dict.fromkeys(nodes) if node in again & edge]:
        axes = {*node.level} - {*moving}
        here = lying(firsts[node], node)
        along = axes & {*here, *lying(loop, node)}
        size = math.prod(kernel.sizes[axis] for axis in axes)
        fits = len(along) < 2 and size * node.dtype.itemsize <= most
        if fits and any(map(takes_long, leading_to([node], again))):
            room = sum(-kernel.sizes[axis] % here.get(axis, 1) for axis in along)
            rows.append(Row(node, (*sorted(axes - along), *along), room))
    return rows


def takes_long(node):
    """Return whether it takes long to compute a node."""
    return node.op == "fold" or is_function(node)


def _goals(loop, among):
    """Return what a loop is there for: all but nodes, and some of its own folds."""
    steps = [step for step in everything(loop.body) if not isinstance(step, Node)]
    own = {step.fold for step in steps if isinstance(step, Start)} & among
    return [step for step in steps if getattr(step, "fold", None) not in own]


def used_by(step):
    """Return the nodes that a step needs."""
    if isinstance(step, Node):
        return step.args
    if isinstance(step, Combine):
        return step.fold.args
    if isinstance(step, Keep):
        return (step.row.node,)
    return (step.node,) if isinstance(step, Store) else ()


def inputs_of(steps):
    """Return the nodes that some steps need."""
    return {node for step in steps for node in used_by(step)}


def leading_to(goals, own, ends=()):
    """Return some nodes and those they are computed from, among those of a loop.

    What the nodes in `ends` are computed from does not matter, nor what those are that
    an earlier loop has left.
    """
    found, open_ends = set(), [*goals]
    while open_ends:
        node = open_ends.pop()
        if node in own and node not in found:
            found.add(node)
            open_ends.extend(() if node in ends else node.args)
    return found


def _with_keep(loop, row):
    """Return a loop that keeps a node where it is first computed."""
    for place, step in enumerate(loop.body):
        ends = is_loop(step) and row.node in step.folds
        if step is row.node or (ends and row.node not in nodes_in(step)):
            return _with_body(loop, place, [step, Keep(row)])
        if is_loop(step) and row.node in nodes_in(step):
            return _with_body(loop, place, [_with_keep(step, row)])
    return loop


def _with_body(loop, place, new):
    """Return a loop with other steps in the place of one."""
    return loop._replace(body=[*loop.body[:place], *new, *loop.body[place + 1 :]])


def _with_recall(loop, rows):
    """Return a loop that recalls nodes, and leaves out what only those needed."""
    kept, own = {row.node: row for row in rows}, {*nodes_in(loop)}
    needed = leading_to(inputs_of(_goals(loop, own)), own, kept)
    return _only(loop, needed - kept.keys(), own, kept)


def _only(loop, needed, own, kept):
    """Return a loop without its own nodes that are not needed, some of them kept."""
    body = []
    for step in loop.body:
        node = step if isinstance(step, Node) else getattr(step, "fold", None)
        if node in kept and not isinstance(step, Combine):
            body.append(Recall(kept[node]))
        elif is_loop(step):
            inner = _only(step, needed, own, kept)
            body += [inner] if inner.body else []
        elif node not in own or node in needed:
            body.append(step)
    folds = [fold for fold in loop.folds if fold not in own or fold in needed]
    return loop._replace(body=body, folds=tuple(folds))


def place_in_row(f, row):
    """Return where in a row a number is, and the size of the row.

    Numbers stand one after the other, and the last axis is the fastest. Where vectors
    lie along another axis, the numbers of all lanes stand together.
    """
    together = f.lanes_of(row.node) and f.axis not in row.axes
    strides, stride = [0] * len(f.kernel.sizes), f.lanes if together else 1
    room = row.room
    for axis in reversed(row.axes):
        strides[axis] = stride
        stride, room = stride * (f.extent(axis) + room), 0
    return Affine(0, tuple(strides)), stride


def write_keep(f, step):
    """Write the store of a number, or a vector, into a row."""
    row = step.row
    place, size = place_in_row(f, row)
    for turn in step.turns:
        place = turn.place(place)
    x, lanes = f.names[step.node], f.lanes_of(step.node)
    with f.within_strips():
        write_own(f, row, row.node.dtype, place, size, x, lanes)


def write_recall(f, step):
    """Write the load of a number, or a vector, from a row."""
    row, (place, size) = step.row, place_in_row(f, step.row)
    lanes = f.lanes_of(row.node)
    with f.within_strips():
        x = read_own(f, row, row.node.dtype, place, size, lanes)
    f.names[row.node] = x


def jammed_keep(keep, turns):
    """Return what several turns side by side put into a row."""
    return [keep._replace(turns=(*keep.turns, turn)) for turn in turns]


jammers[Keep] = jammed_keep
step_writers.update({Keep: write_keep, Recall: write_recall})


def check_keep(walk, keep):
    """Check that what is put into a row is known, and the row's axes move."""
    walk.require(keep.node in walk.known, keep, "there is no number to keep")
    walk.kept[keep.row] = [*walk.loops]
    check_axes(walk, keep)


def check_recall(walk, recall):
    """Check that there is a row to take a number from, and its axes move."""
    row, around = recall.row, walk.kept.get(recall.row)
    walk.require(around is not None, recall, "nothing was kept")
    same = [a.axis for a, b in zip(walk.loops, around) if a is b]
    whole = {*row.node.level} <= {*row.axes, *same}
    walk.require(whole, recall, "the row has one place for several numbers")
    walk.known.add(recall.node)
    check_axes(walk, recall)


def check_axes(walk, step):
    """Check that the axes of a step's row move."""
    moving = {*step.row.axes} <= walk.axes
    walk.require(moving, step, "an axis of the row does not move")


step_checks.update({Keep: check_keep, Recall: check_recall})


SMALL, ENOUGH = 2**17, 4  # numbers that no threads share; steps that are worth a sweep


def with_row_ends(kernel, steps, target):
    """Return the steps of a nest in which small loops around folds are cut in two.

    Args:
      kernel: a `Kernel`.
      steps: those of its nest, or of a loop in it.
      target: the `Target` that it is meant for.
    """
    if math.prod(kernel.sizes) > SMALL:
        return steps
    return [part for step in steps for part in _sweeps(kernel, step, target)]


def _sweeps(kernel, loop, target):
    """Return a step, or the two sweeps that do the same."""
    if not is_loop(loop) or loop.lanes:
        return [loop]
    loop = loop._replace(body=with_row_ends(kernel, loop.body, target))
    first, second = cut(loop)
    work = sum(isinstance(step, Node) for step in second.body)
    little = (first.body and work < ENOUGH) or not any(map(is_goal, second.body))
    if little or kernel.sizes[loop.axis] <= 16:
        return [loop]
    rows = [step.row for step in second.body if isinstance(step, Keep | Recall)]
    short = row_bytes(target) // kernel.sizes[loop.axis]
    own = all(row.axes == (loop.axis,) for row in rows)
    if not own or any(row.node.dtype.itemsize > short for row in rows):
        return [loop]
    ends = cheapest(kernel, second, target)[1]
    if not ends.lanes:
        return [loop]
    return [first, ends] if first.body else [ends]


def cut(loop):
    """Return a loop with the loops in its body, and one with the steps beside these.

    The second computes again what it needs of the first, but recalls folds.
    """
    goals = [step for step in loop.body if is_goal(step)]
    folds = [step.fold for step in loop.body if isinstance(step, Start)]
    recalled = [step.row.node for step in loop.body if isinstance(step, Recall)]
    own, ends = {*nodes_in(loop), *recalled}, {*folds, *recalled}
    after = leading_to(inputs_of(goals), own, ends)
    rows = [Row(fold, (loop.axis,), 0) for fold in folds if fold in after]
    again = [step for step in loop.body if is_goal(step) or _found(step) in after]
    ended = [step.fold for step in goals if isinstance(step, Combine)]
    second = Loop(loop.axis, [*map(Recall, rows), *again], tuple(ended))
    left = tuple(fold for fold in loop.folds if fold not in ended)
    return Loop(loop.axis, _with_keeps(loop.body, rows), left), second


def is_goal(step):
    """Return whether a step is one for which others are done."""
    return isinstance(step, Store | Combine | Keep)


def _found(step):
    """Return the node that a step computes, or recalls, or None."""
    node = step.row.node if isinstance(step, Recall) else step
    return node if isinstance(node, Node) else None


def _with_keeps(body, rows):
    """Return the loops of a body, and what they need, and that folds are kept."""
    body = [step for step in body if not is_goal(step)]
    nodes = filter(None, map(_found, everything(body)))
    needed = leading_to(inputs_of(filter(is_goal, everything(body))), {*nodes})
    kept, loops = [], any(map(is_loop, body))
    for step in body if loops else ():
        if _found(step) is None or _found(step) in needed:
            kept.append(step)
            ended = step.folds if is_loop(step) else ()
            kept += [Keep(row) for row in rows if row.node in ended]
    return kept
