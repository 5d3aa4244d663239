# Made from chapters/22_vectors.md by `make chapter`;
# edit the chapter, not this file.
"""Kernels as functions of a processor: their nests, pass by pass, and their text.

Reference: J. Ragan-Kelley and others, "Halide" (PLDI 2013): what is computed, and a
schedule that says how.
"""

from minijax.kernels.loop_nests import loop_nest
from minijax.llvm.kernel_text import KernelText, function_of
from minijax.vectors.functions import write_function_call
from minijax.vectors.held_rows import hold_rows, with_row_ends
from minijax.vectors.marks import with_marks
from minijax.vectors.nests import with_vectors
from minijax.vectors.streaming import with_streams
from minijax.vectors.transposing import with_tiles

# Functions of a kernel, the steps of its nest, and a target, which return other steps.
PASSES = (
    with_tiles, with_vectors, hold_rows, with_row_ends, with_streams, with_marks,
)  # fmt: skip


def vector_nest(kernel, target, passes=None):
    """Return the steps of a kernel as a target does them best."""
    steps = loop_nest(kernel)
    for change in PASSES if passes is None else passes:
        steps = change(kernel, steps, target)
    return steps


def kernel_function(kernel, name, target, inline=None, passes=None):
    """Return the `FunctionText` of a kernel: its arguments are addresses of buffers.

    Args:
      kernel: a `Kernel`.
      name: of the function.
      target: the `Target` that it is meant for.
      inline: whether callers should contain it; by default, where all axes are short.
      passes: what is done to its nest; by default, all of `PASSES`.
    """
    short = all(size <= 16 for size in kernel.sizes) if inline is None else inline
    where = attributes("alwaysinline" if short else "noinline", target)
    f = KernelText(kernel, write_function_call)
    return function_of(f, name, vector_nest(kernel, target, passes), where)


def attributes(where, target):
    """Return what LLVM is told of a function: where it stands, how wide vectors are."""
    return f'{where} "prefer-vector-width"="{8 * target.vector_bytes}" '
