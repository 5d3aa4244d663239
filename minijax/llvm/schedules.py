"""The function of a kernel for a target, with the schedule that higher floors hand in.

Reference: J. Ragan-Kelley and others, "Halide" (PLDI 2013): what is computed, and a
schedule that says how.
"""

# Made from chapters/18_llvm_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax.jaxprs.latest import Latest
from minijax.kernels.loop_nests import loop_nest
from minijax.llvm.kernel_text import KernelText, function_of

# A function of a kernel and a target that returns the steps of the kernel's nest.
schedule = Latest(lambda kernel, target: loop_nest(kernel))

# What writes the call of an elementary function (see `KernelText`), or None.
function_writer = Latest(None)


def kernel_function(kernel, name, target):
    """Return the `FunctionText` of a kernel: its arguments are addresses of buffers.

    Args:
      kernel: a `Kernel`.
      name: of the function.
      target: the `Target` that it is meant for. Callers contain it where all axes are
        short.
    """
    short = all(size <= 16 for size in kernel.sizes)
    where = "alwaysinline" if short else "noinline"
    return scheduled(kernel, name, schedule.value(kernel, target), where, target)


def scheduled(kernel, name, steps, where, target, more=()):
    """Return the `FunctionText` of a kernel's steps; `more` are further parameters."""
    f = KernelText(kernel, function_writer.value)
    f.halves = target.halves
    return function_of(f, name, steps, attributes(where, target), more)


def attributes(where, target):
    """Return what LLVM is told of a function: where it stands, how wide vectors are."""
    return f'nounwind {where} "prefer-vector-width"="{8 * target.vector_bytes}"'
