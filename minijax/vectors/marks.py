"""Marks of loops: vectors where they are best, turns written out, sums in blocks."""

# Made from chapters/24_vectors_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax.functions import elementary
from minijax.kernels.jamming import fits_masks
from minijax.kernels.kernel import Node
from minijax.llvm.kernel_text import is_rounded
from minijax.vectors.loops import everything, is_loop, is_short
from minijax.vectors.nests import cheapest, cost


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


def with_marks(kernel, steps, target, beside=1):
    """Return the steps of a nest with loops marked as they are to be written.

    Each step is written `beside` times, for turns of loops around that are done side
    by side.
    """
    return [
        marked(kernel, step, target, beside) if is_loop(step) else step
        for step in steps
    ]


def marked(kernel, loop, target, beside):
    """Return a loop with marks: a short one is written out, a long sum in blocks."""
    return loop._replace(
        body=with_marks(kernel, loop.body, target, beside * max(1, loop.together)),
        unrolled=not loop.lanes and is_short(kernel, loop, beside),
        blocked=any(map(is_rounded, loop.folds)),
        masked=is_masked(kernel, loop, target),
    )


LONG = 32  # costs of a body that is rather done with masks than written twice


def is_masked(kernel, loop, target):
    """Return whether the vectors of a loop should have masks: its body is written once.

    AVX-512 has registers for masks. A fold, or a function with a part for rare
    arguments, would have to ask in each turn which lanes count.
    """
    size = kernel.sizes[loop.axis]
    if not loop.lanes or size % loop.lanes == 0 or size >= 2**31:
        return False
    if target.vector_bytes < 64 or not fits_masks(loop):
        return False
    long = sum(cost(step, loop.axis, loop.lanes) for step in loop.body) >= LONG
    return long and not any(map(_asks_for_lanes, loop.body))


def _asks_for_lanes(step):
    if not isinstance(step, Node) or not step.args:
        return False
    function = elementary.function(step.op, step.args[-1].dtype)
    return function is not None and function.rare is not None
