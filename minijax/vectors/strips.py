"""Strip-mining: the ends of rows, done by vectors for a strip of rows at a time.

Reference: M. Wolfe, *More iteration space tiling* (Supercomputing, 1989).
"""

# Made from chapters/24_vectors_rest.md by `make chapter`;
# edit the chapter, not this file.

import math

from minijax.vectors.held_rows import SMALL, Keep, Recall, cut
from minijax.vectors.loops import everything, is_function, is_loop
from minijax.vectors.nests import cheapest

STRIP = 64  # rows, a multiple of the lanes of any vector
LARGE = SMALL + 1  # indices of a kernel in strips


def with_strips(kernel, steps, target):
    """Return the steps of a large nest, with the functions of folds in strips."""
    if math.prod(kernel.sizes) < LARGE:
        return steps
    return [in_strips(kernel, x, target) if is_loop(x) else x for x in steps]


def in_strips(kernel, loop, target):
    """Return a loop, in strips if that lets vectors compute functions of its folds."""
    free = not (loop.lanes or loop.folds)
    if free and kernel.sizes[loop.axis] > 2 * STRIP:
        for last in (0, -1):
            sweeps = two_sweeps(kernel, loop, target, last)
            if sweeps:
                return loop._replace(body=sweeps, strip=STRIP)
    return loop._replace(body=with_strips(kernel, loop.body, target))


def two_sweeps(kernel, loop, target, last):
    """Return a loop as one that keeps folds and one that recalls them, or None.

    Args:
      kernel, loop, target: those of `in_strips`.
      last: which of the loops' axes is the last one of the rows, 0 or -1.
    """
    around, inner = [loop], loop
    while len(inner.body) == 1 and is_loop(inner.body[0]) and not inner.body[0].folds:
        [inner] = inner.body
        around.append(inner)
    first, second = cut(inner)
    recalled = [step.row for step in second.body if isinstance(step, Recall)]
    own = all(row.axes == (inner.axis,) for row in recalled)
    if inner.lanes or not (first.body and own and any(map(is_function, second.body))):
        return None
    axes = [each.axis for each in around]
    axes.append(axes.pop(last))
    kept = {row: row._replace(axes=tuple(axes)) for row in recalled}
    sweeps = [wrapped(around[:-1], with_rows(each, kept)) for each in (first, second)]
    sweeps[1] = cheapest(kernel, sweeps[1], target)[1]
    wide = {x.axis for x in everything(sweeps[1:]) if is_loop(x) and x.lanes}
    return sweeps if wide == {axes[-1]} else None


def wrapped(around, body):
    """Return a loop inside of others, the first of which is the outermost."""
    for loop in reversed(around):
        body = loop._replace(body=[body])
    return body


def with_rows(loop, kept):
    """Return a loop with others in the place of its rows."""
    body = [
        step._replace(row=kept.get(step.row, step.row))
        if isinstance(step, Keep | Recall)
        else step
        for step in loop.body
    ]
    return loop._replace(body=body)
