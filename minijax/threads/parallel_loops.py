"""Kernels that do a part of their outermost loop, and steps that threads share."""

# Made from chapters/27_threads_upper.md by `make chapter`;
# edit the chapter, not this file.

import math
from typing import NamedTuple

from minijax.cpu_backend.backend import emit_launch
from minijax.cpu_backend.program_codegen import typed_argument
from minijax.jitting.stages import nbytes
from minijax.kernels.ir import Loop, bytes_accessed, flops_and_transcendentals
from minijax.kernels.loop_nests import Node
from minijax.kernels.lowering import Launch, step_kinds
from minijax.llvm.compiler import add_symbol
from minijax.llvm.instructions import FunctionBuilder, llvm_type
from minijax.llvm.targets import emit_scheduled_kernel, scheduler
from minijax.matmul.gemm import micro_tile_for
from minijax.matmul.lowering import (
    Matmul,
    emit_gemm_call,
    emit_matmul,
    gemm_arguments,
    runtime_gemm,
)
from minijax.matmul.packing import emit_int_op
from minijax.memory.buffer_assignment import align_up
from minijax.threads.pool import parallel_for_address
from minijax.threads.split_reductions import MAX_PARTIAL_BYTES, two_stage_fold
from minijax.vectorization.loop_splitting import split_loop
from minijax.vectorization.row_schedules import Stream, is_strip_minable

# Kernels as functions that do some iterations of their outermost loop.

PIECES = 16  # of a matrix whose columns are added up, at least


def parallel_nest(kernel, target):
    """Return a kernel's nest; strips of columns are short enough for many threads."""
    *before, last = scheduler.value(kernel, target) or [None]
    if isinstance(last, Loop) and last.strip and isinstance(last.body[0], Stream):
        piece = kernel.sizes[last.axis] // PIECES
        unit = grain_unit(last.body[0])
        last = split_loop(last.body, min(last.count, -(-piece // unit) * unit), "strip")
    return [*before, last]


def is_stream(step):
    """Return whether a step is a stream of columns that need nothing of each other."""
    return isinstance(step, Stream) and is_strip_minable(step)


def adds_columns(loop):
    """Return whether a loop or stream, or what is in its strips, adds up columns."""
    return is_stream((*getattr(loop, "body", []), loop)[0])


def parallel_loop(kernel, target):
    """Return the one loop or stream of a kernel that can be cut, or None."""
    *before, loop = parallel_nest(kernel, target)
    if isinstance(loop, Loop) and (loop.folds or loop.kind == "unrolled"):
        return None
    if not isinstance(loop, Loop) and not is_stream(loop):
        return None
    if not all(isinstance(step, Node) for step in before):
        return None
    updates = [store.update for store in kernel.stores if store.update]
    if not all(update.distinct for update in updates):
        return None
    return loop if kernel.sizes[loop.axis] >= 4 * grain_unit(loop) else None


def grain_unit(loop):
    """Return of what a part of a loop has to be a multiple."""
    if isinstance(loop, Stream):
        return 8 * loop.lanes  # fewer columns at a time are slow to read
    return loop.lanes or loop.together or loop.strip or 1


def range_function(kernel, name, target, unit):
    """Return the `FunctionIR` of a kernel with ``i64 %lo, i64 %hi`` at its end.

    Args:
      kernel: a `Kernel` that has a `parallel_loop` loop.
      name: of the function.
      target: the processor.
      unit: of what the parts are multiples, but for the end of the last one.

    Raises:
      ValueError: the loop does another number of iterations at once, so such a part
        would end inside of them.
    """
    *before, loop = parallel_nest(kernel, target)
    if unit % grain_unit(loop):
        raise ValueError(
            f"Parts of {unit} iterations would cut {kernel.label}, which does "
            f"{grain_unit(loop)} iterations at once: let parts be multiples of that."
        )
    steps = [*before, loop._replace(parallel=True)]
    more = ("i64", "%lo"), ("i64", "%hi")
    return emit_scheduled_kernel(kernel, name, steps, "noinline", target, more)


def estimate_kernel_time(kernel, target):
    """Return about how many nanoseconds one thread takes for a kernel."""
    counts, lanes = flops_and_transcendentals(kernel), target.vector_bytes // 4
    work = counts["flops"] + 10 * counts["transcendentals"]
    return sum(bytes_accessed(kernel)) / target.bandwidth + work / (2 * lanes)


# Steps that the threads of the pool share, in the text of programs.

# What takes longer is shared; and what a part takes at least; in nanoseconds.
MIN_PARALLEL_NS, MIN_PART_NS = 80_000, 20_000


def is_worth_sharing(time):
    """Return whether a step of so many nanoseconds is shared; if so, LLVM knows how."""
    place = parallel_for_address() if time >= MIN_PARALLEL_NS else None
    if place:
        add_symbol("minijax_share", place)
    return bool(place)


def parallel_launches(step, target):
    """Return launches that do what one does, and share the first; none if it is whole.

    The sums of columns are cut along what they add up, if that leaves little.
    """
    loop = parallel_loop(step.kernel, target)
    if loop and not adds_columns(loop):
        return [step]
    most = max(MAX_PARTIAL_BYTES, sum(bytes_accessed(step.kernel)) // 32)
    steps = two_stage_fold(step, room=most)
    if steps and parallel_loop(steps[0].kernel, target):
        return steps
    return [step] if loop else []


def product_split(step, target):
    """Return the axis along which a product is cut, and what parts are multiples of."""
    count, m, n, _ = step.sizes
    tile = micro_tile_for(step.out.dtype, target)
    if count >= 8:
        return 0, 1
    return (2, tile.columns) if n >= m else (1, tile.rows)


PARTS_PER_THREAD = 4  # of a kernel, for each thread
PANELS_PER_THREAD = 2  # of a product, for each thread


def emit_task(program, name, body, count):
    """Add a task to a program; `body` writes it, and is given what the table holds."""
    t, addresses = FunctionBuilder(), []
    for number in range(count):
        place = t.emit(f"getelementptr i8*, i8** %args, i64 {number}", "t")
        addresses.append(t.emit(f"load i8*, i8** {place}", "t"))
    body(t, addresses)
    head = f"define internal i64 @{name}(i8** %args, i64 %lo, i64 %hi, i8* %space)"
    lines = [f"{head} nounwind noinline {{", "entry:", *t.lines, "  ret i64 0", "}"]
    program.functions.append("\n".join(lines))


class ParallelTask(NamedTuple):
    """What is shared.

    Attributes:
      name: of its function.
      time: how long one thread takes, in nanoseconds.
      size, unit: of what is done in parts; and what each part is a multiple of.
      each: how many parts there are for each thread.
    """

    name: str
    time: float
    size: int
    unit: int
    each: int


def emit_share(f, task, addresses, space="null"):
    """Write how a program has a task done: a table of addresses, and a call."""
    f.declare(f"declare i64 @minijax_share({', '.join(['i64'] * 7)})")
    table = f.emit(f"ptrtoint i8** {f.table(addresses)} to i64", "p")
    args = [
        f"i64 ptrtoint (i64 (i8**, i64, i64, i8*)* @{task.name} to i64)",
        f"i64 {table}",
        *[f"i64 {number}" for number in (task.size, task.unit)],
        f"i64 {f.emit(f'ptrtoint i8* {space} to i64', 'p')}",
        *[f"i64 {number}" for number in (task.each, int(task.time / MIN_PART_NS))],
    ]
    name = f.name("v")
    f.line(f"{name} = call i64 @minijax_share({', '.join(args)})")


def kernel_task(program, kernel, unit):
    """Return the name of a kernel's task; the same text is written once."""
    text = f"{kernel} in parts"
    if text not in program.kernels:
        name = f"{kernel.label}_{len(program.kernels)}_part"
        made = range_function(kernel, name, program.target, unit)
        program.needed |= made.needed
        program.functions.append(made.text.replace("define", "define internal", 1))

        def body(t, addresses):
            pairs = zip(addresses, kernel.parameters)
            args = [
                typed_argument(t, address, parameter.dtype)
                for address, parameter in pairs
            ]
            t.line(f"call void @{name}({', '.join(args)}, i64 %lo, i64 %hi)")

        emit_task(program, f"{name}_task", body, len(kernel.parameters))
        program.kernels[text] = f"{name}_task"
    return program.kernels[text]


def emit_parallel_parts(f, step, time):
    """Write how a kernel is done in parts."""
    loop = parallel_loop(step.kernel, f.program.target)
    size, unit = step.kernel.sizes[loop.axis], grain_unit(loop)
    task = ParallelTask(
        kernel_task(f.program, step.kernel, unit), time, size, unit, PARTS_PER_THREAD
    )
    emit_share(f, task, list(map(f.address, step.buffers)))


def emit_shared_launch(f, step):
    """Write the call of a kernel; a long one is shared, or at least its folds are.

    The partial sums are needed for this step only, so they lie in bytes that all steps
    use one after the other, a second array of them behind the first.
    """
    time = estimate_kernel_time(step.kernel, f.program.target)
    steps = is_worth_sharing(time) and parallel_launches(step, f.program.target)
    if not steps:
        return emit_launch(f, step)
    first, *others = steps
    start = 0
    for buffer in [buffer for buffer in first.writes if buffer not in step.writes]:
        end = start + align_up(nbytes(buffer))
        f.addresses[buffer] = f.offset(f.emit_sequence("partials", end), start)
        start = end
    emit_parallel_parts(f, first, time)
    for each in others:
        emit_launch(f, each)


# Which operands of a product move along batch, rows and columns; and their strides.
MOVING = ((0, 1, 2), -3), ((0, 2), -2), ((1, 2), -1)


def emit_parallel_part(t, step, addresses, which, callee):
    """Write the call that does some batches, rows or columns of a product."""
    views, starts = (step.lhs, step.rhs, step.out), []
    operands, axis = MOVING[which]
    kind = llvm_type(step.out.dtype)
    for number, (buffer, view) in enumerate(zip(addresses, views)):
        start = t.at(kind, t.cast("i8", buffer, kind), view.offset)
        if number in operands:
            start = t.at(kind, start, emit_int_op(t, "mul", "%lo", view.strides[axis]))
        starts.append(start)
    numbers = gemm_arguments(step, starts)
    numbers[which] = emit_int_op(t, "sub", "%hi", "%lo")
    emit_gemm_call(t, callee, step.out.dtype, "%space", numbers)


def emit_shared_product(f, step):
    """Write the call of a product; a long one is shared."""
    target, dtype = f.program.target, step.out.dtype
    time = math.prod(step.sizes) / (4 * target.lanes(dtype))
    which, unit = product_split(step, target)
    size = step.sizes[which]
    if size < 2 * unit or len(step.out.shape) > 3 or not is_worth_sharing(time):
        return emit_matmul(f, step)
    callee = runtime_gemm(f, step)
    name = f"product{len(f.program.functions)}_task"
    emit_task(
        f.program, name, lambda t, xs: emit_parallel_part(t, step, xs, which, callee), 3
    )
    buffers = [f.address(buffer) for buffer in (*step.reads, *step.writes)]
    space = f.offset("%arena", f.program.locations.workspaces.get(id(step), 0))
    return emit_share(
        f, ParallelTask(name, time, size, unit, PANELS_PER_THREAD), buffers, space
    )


step_kinds.write_by(Launch, emit_shared_launch, instead_of=emit_launch)
step_kinds.write_by(Matmul, emit_shared_product, instead_of=emit_matmul)
