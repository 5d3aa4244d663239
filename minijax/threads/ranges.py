"""Kernels as functions that do some turns of their outermost loop."""

# Made from chapters/27_threads_upper.md by `make chapter`;
# edit the chapter, not this file.

from minijax.kernels.kernel import Node
from minijax.kernels.parts import Loop, operations, traffic
from minijax.llvm.schedules import schedule, scheduled
from minijax.vectors.streaming import Stream, may_have_strips

PIECES = 16  # of a matrix whose columns are added up, at least


def shared_nest(kernel, target):
    """Return a kernel's nest; strips of columns are short enough for many threads."""
    *before, last = schedule.value(kernel, target) or [None]
    if isinstance(last, Loop) and last.strip and isinstance(last.body[0], Stream):
        piece = kernel.sizes[last.axis] // PIECES
        unit = unit_of(last.body[0])
        last = last._replace(strip=min(last.strip, -(-piece // unit) * unit))
    return [*before, last]


def is_stream(step):
    """Return whether a step is a stream of columns that need nothing of each other."""
    return isinstance(step, Stream) and may_have_strips(step)


def outermost(kernel, target):
    """Return the one loop or stream of a kernel that can be cut, or None."""
    *before, loop = shared_nest(kernel, target)
    if isinstance(loop, Loop) and (loop.folds or loop.unrolled):
        return None
    if not isinstance(loop, Loop) and not is_stream(loop):
        return None
    if not all(isinstance(step, Node) for step in before):
        return None
    updates = [store.update for store in kernel.stores if store.update]
    if not all(update.distinct for update in updates):
        return None
    return loop if kernel.sizes[loop.axis] >= 4 * unit_of(loop) else None


def unit_of(loop):
    """Return of what a part of a loop has to be a multiple."""
    if isinstance(loop, Stream):
        return 8 * loop.lanes  # fewer columns at a time are slow to read
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
    *before, loop = shared_nest(kernel, target)
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
