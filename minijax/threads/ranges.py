# Made from chapters/27_threads_upper.md by `make chapter`;
# edit the chapter, not this file.
"""Kernels as functions that do some turns of their outermost loop."""

from minijax.kernels.kernel import Node
from minijax.kernels.parts import Loop, Store, operations, traffic
from minijax.llvm.schedules import schedule, scheduled
from minijax.vectors.loops import everything


def outermost(kernel, target):
    """Return the one loop of a kernel that can be cut, or None."""
    *before, loop = schedule.value(kernel, target) or [None]
    if not isinstance(loop, Loop) or loop.folds or loop.unrolled:
        return None
    if not all(isinstance(step, Node) for step in before):
        return None
    stores = [step for step in everything(loop.body) if isinstance(step, Store)]
    if any(store.update and not store.update.distinct for store in stores):
        return None
    return loop if kernel.sizes[loop.axis] >= 4 * unit_of(loop) else None


def unit_of(loop):
    """Return of what a part of a loop has to be a multiple."""
    return loop.lanes or loop.together or loop.strip or 1


def range_function(kernel, name, target, unit):
    """Return the `FunctionText` of a kernel with ``i64 %lo, i64 %hi`` at its end.

    Args:
      kernel: a `Kernel` that has an `outermost` loop.
      name: of the function.
      target: the processor.
      unit: of what the parts are multiples, but for the end of the last one.

    Raises:
      ValueError: the loop does another number of turns at once, so that such a part
        would end inside of them.
    """
    *before, loop = schedule.value(kernel, target)
    if unit % unit_of(loop):
        raise ValueError(
            f"Parts of {unit} turns would cut {kernel.label}, which does "
            f"{unit_of(loop)} turns at once: let parts be multiples of that."
        )
    steps = [*before, loop._replace(parallel=True)]
    more = ("i64", "%lo"), ("i64", "%hi")
    return scheduled(kernel, name, steps, "noinline", target, more)


def time_of_kernel(kernel, target):
    """Return about how many nanoseconds one thread takes for a kernel."""
    counts, lanes = operations(kernel), target.vector_bytes // 4
    work = counts["flops"] + 10 * counts["transcendentals"]
    return sum(traffic(kernel)) / target.bandwidth + work / (2 * lanes)
