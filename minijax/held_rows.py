# Made from chapters/19_vectors.md by `make chapter`;
# edit the chapter, not this file.
"""Numbers that one sweep over a row has computed, kept for the next."""

import math
from typing import NamedTuple

from minijax.kernels import Affine, Node, Store
from minijax.loop_nests import Combine
from minijax.vector_kernels import nest_changes, step_writers
from minijax.vector_memory import read_own, write_own
from minijax.vector_nests import VectorLoop, everything, is_function, is_loop


class Row(NamedTuple):
    """What is kept of a node: a number for each index along some axes."""

    node: Node
    axes: tuple


class Keep(NamedTuple):
    """A step of a nest: a number is put into a row."""

    row: Row


class Recall(NamedTuple):
    """A step of a nest: a number is taken from a row."""

    row: Row


ROW_BYTES = 2**16


def hold_rows(kernel, steps, target=None, moving=(), lanes=1):
    """Return the steps of a nest in which later sweeps take up what earlier ones found.

    Args:
      kernel: a `Kernel`.
      steps: those of its nest, or of a loop in it.
      target: not needed.
      moving: the axes of the loops around them.
      lanes: how many numbers stand for one, if vectors lie along one of these axes.
    """
    done, kept, result = {}, set(), []
    for step in steps:
        if is_loop(step):
            for row in rows_for(kernel, step, done, moving, lanes):
                if row not in kept:
                    first = done[row.node]
                    result[first] = _with_keep(result[first], row)
                    kept.add(row)
                step = _with_recall(step, row)
            for node in nodes_in(step):
                done.setdefault(node, len(result))
        result.append(step)
    return [_inside(kernel, step, moving, lanes) for step in result]


def _inside(kernel, step, moving, lanes):
    if not is_loop(step):
        return step
    lanes = step.lanes if isinstance(step, VectorLoop) else lanes
    body = hold_rows(kernel, step.body, None, (*moving, step.axis), lanes)
    return step._replace(body=body)


def nodes_in(loop):
    """Return the nodes that are computed in a loop."""
    return [step for step in everything(loop.body) if isinstance(step, Node)]


def rows_for(kernel, loop, done, moving, lanes):
    """Return rows for what a loop computes again, if that takes long."""
    nodes = nodes_in(loop)
    again = {node for node in nodes if node in done}
    others = [step for step in everything(loop.body) if not isinstance(step, Node)]
    others += [node for node in nodes if node not in again]
    edge = {node for step in others for node in _uses(step)}
    rows = []
    for node in [node for node in dict.fromkeys(nodes) if node in again & edge]:
        axes = tuple(axis for axis in node.level if axis not in moving)
        size = math.prod(kernel.sizes[axis] for axis in axes)
        short = size * lanes * node.dtype.itemsize <= ROW_BYTES
        if short and any(is_function(found) for found in _behind(node, again)):
            rows.append(Row(node, axes))
    return rows


def _uses(step):
    """Return the nodes that a step needs."""
    if isinstance(step, Node):
        return step.args if step.op != "fold" else ()
    if isinstance(step, Combine):
        return step.fold.args
    return (step.node,) if isinstance(step, Store) else ()


def _behind(node, among):
    """Return a node and those it is computed from, as far as they are among some."""
    found, open_ends = set(), [node]
    while open_ends:
        node = open_ends.pop()
        if node in among and node not in found:
            found.add(node)
            open_ends.extend(_uses(node))
    return found


def _with_keep(loop, row):
    """Return a loop that keeps a node where it is first computed."""
    for place, step in enumerate(loop.body):
        if step is row.node:
            return _with_body(loop, place, [step, Keep(row)])
        if is_loop(step) and row.node in nodes_in(step):
            return _with_body(loop, place, [_with_keep(step, row)])
    return loop


def _with_body(loop, place, new):
    """Return a loop with other steps in the place of one."""
    return loop._replace(body=[*loop.body[:place], *new, *loop.body[place + 1 :]])


def _with_recall(loop, row):
    """Return a loop that recalls a node, and leaves out what only that one needed."""
    steps = [step for step in everything(loop.body) if not isinstance(step, Node)]
    needed, open_ends = set(), [node for step in steps for node in _uses(step)]
    while open_ends:
        node = open_ends.pop()
        if node not in needed:
            needed.add(node)
            open_ends.extend(() if node is row.node else _uses(node))
    return _only(loop, needed, row)


def _only(loop, needed, row):
    body = []
    for step in loop.body:
        if step is row.node:
            body.append(Recall(row))
        elif is_loop(step):
            body.append(_only(step, needed, row))
        elif not isinstance(step, Node) or step in needed:
            body.append(step)
    return loop._replace(body=body)


def place_in(row, kernel, lanes):
    """Return where in a row a number is: one after the other, the last axis fastest."""
    strides, stride = [0] * len(kernel.sizes), lanes
    for axis in reversed(row.axes):
        strides[axis] = stride
        stride *= kernel.sizes[axis]
    return Affine(0, tuple(strides)), stride


def write_keep(f, step):
    """Write the store of a number, or a vector, into a row."""
    row = step.row
    place, size = place_in_row(f, row)
    x, lanes = f.names[row.node], f.lanes_of(row.node)
    write_own(f, row, row.node.dtype, place, size, x, lanes)


def write_recall(f, step):
    """Write the load of a number, or a vector, from a row."""
    row, (place, size) = step.row, place_in_row(f, step.row)
    lanes = f.lanes_of(row.node)
    x = read_own(f, row, row.node.dtype, place, size, lanes)
    f.names[row.node] = x


def place_in_row(f, row):
    """Return where in a row a number is, and the size of the row.

    Where vectors lie along another axis, the numbers of all lanes stand together.
    """
    together = f.lanes_of(row.node) and f.axis not in row.axes
    return place_in(row, f.kernel, f.lanes if together else 1)


nest_changes.append(hold_rows)
step_writers.update({Keep: write_keep, Recall: write_recall})
