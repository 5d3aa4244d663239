# Made from chapters/24_vectors.md by `make chapter`;
# edit the chapter, not this file.
"""How loops without vectors are written: turn by turn, or in blocks."""

from minijax.llvm.kernel_text import is_rounded
from minijax.vectors.nests import is_loop, is_short


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
