# Made from chapters/24_vectors_rest.md by `make chapter`;
# edit the chapter, not this file.
"""Marks of loops: vectors where they are best, turns written out, sums in blocks."""

from minijax.llvm.kernel_text import is_rounded
from minijax.vectors.loops import everything, is_loop, is_short
from minijax.vectors.nests import cheapest


def with_vectors(kernel, steps, target):
    """Return the steps of a nest with vectors in some of the loops."""
    return [
        step
        if any(is_loop(inner) and inner.lanes for inner in everything([step]))
        else cheapest(kernel, step, target)[1]
        if is_loop(step)
        else step
        for step in steps
    ]


def with_marks(kernel, steps, target):
    """Return the steps of a nest with loops marked as they are to be written."""
    return [marked(kernel, step, target) if is_loop(step) else step for step in steps]


def marked(kernel, loop, target):
    """Return a loop with marks: a short one is written out, a long sum in blocks."""
    return loop._replace(
        body=with_marks(kernel, loop.body, target),
        unrolled=not loop.lanes and is_short(kernel, loop),
        blocked=any(map(is_rounded, loop.folds)),
    )
