"""The order of schedules on a processor with vectors: from nest to nest.

Reference: J. Ragan-Kelley and others, "Halide" (PLDI 2013): what is computed, and a
schedule that says how.
"""

# Made from chapters/24_vectors_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax.kernels.loop_nests import loop_nest
from minijax.llvm.schedules import function_writer, schedule
from minijax.vectors.functions import write_function_call
from minijax.vectors.held_rows import hold_rows, with_row_ends
from minijax.vectors.marks import with_marks, with_vectors
from minijax.vectors.register_blocking import with_blocks
from minijax.vectors.streaming import with_streams
from minijax.vectors.strips import with_strips
from minijax.vectors.transposing import with_tiles

# Functions of a kernel, the steps of its nest, and a target, which return other steps.
PASSES = (
    with_tiles, with_vectors, hold_rows, with_row_ends, with_strips, with_streams,
    with_blocks, with_marks,
)  # fmt: skip


def vector_nest(kernel, target, passes=None):
    """Return the steps of a kernel as a target does them best."""
    steps = loop_nest(kernel)
    for change in PASSES if passes is None else passes:
        steps = change(kernel, steps, target)
    return steps


schedule.value, function_writer.value = vector_nest, write_function_call
