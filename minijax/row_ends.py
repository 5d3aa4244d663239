# Made from chapters/19_vectors.md by `make chapter`;
# edit the chapter, not this file.
"""What is done with the folds of rows, done by vectors in a sweep of its own."""

import math

from minijax.held_rows import ROW_BYTES, Keep, Recall, Row, leading_to
from minijax.kernels import Node, Store
from minijax.loop_nests import Combine, Loop, Start
from minijax.vector_kernels import nest_changes
from minijax.vector_nests import cheapest, everything, is_loop

SMALL, ENOUGH = 2**17, 4


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
    if not isinstance(loop, Loop):
        return [loop]
    loop = loop._replace(body=with_row_ends(kernel, loop.body, target))
    first, second = cut(loop)
    work = sum(isinstance(step, Node) for step in second.body)
    little = (first.body and work < ENOUGH) or not any(map(is_goal, second.body))
    if little or kernel.sizes[loop.axis] <= 16:
        return [loop]
    rows = [step.row for step in second.body if isinstance(step, Keep | Recall)]
    short = ROW_BYTES // kernel.sizes[loop.axis]
    own = all(row.axes == (loop.axis,) for row in rows)
    if not own or any(row.node.dtype.itemsize > short for row in rows):
        return [loop]
    ends = cheapest(kernel, second, target)[1]
    if isinstance(ends, Loop):
        return [loop]
    return [first, ends] if first.body else [ends]


def cut(loop):
    """Return a loop with the loops in its body, and one with the steps beside these.

    The second computes again what it needs of the first, but recalls folds.
    """
    goals = [step for step in loop.body if is_goal(step)]
    folds = [step.fold for step in loop.body if isinstance(step, Start)]
    after = leading_to(goals, folds)
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
    needed = leading_to([step for step in everything(body) if is_goal(step)], ())
    kept, loops = [], any(map(is_loop, body))
    for step in body if loops else ():
        if not isinstance(step, Node) or step in needed:
            kept.append(step)
            ended = step.folds if is_loop(step) else ()
            kept += [Keep(row) for row in rows if row.node in ended]
    return kept


nest_changes["row ends"] = with_row_ends
