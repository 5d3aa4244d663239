"""Kernels that do some turns of their outermost loop, and steps that threads share."""

# Made from chapters/27_threads_upper.md by `make chapter`;
# edit the chapter, not this file.

import math
from typing import NamedTuple

from minijax.cpu_backend.backend import write_launch
from minijax.cpu_backend.program_codegen import typed
from minijax.jitting.stages import nbytes
from minijax.kernels.ir import Loop, operations, traffic
from minijax.kernels.loop_nests import Node
from minijax.kernels.lowering import Launch, step_kinds
from minijax.llvm.compiler import make_known
from minijax.llvm.instructions import LLVMFunction, type_of
from minijax.llvm.targets import schedule, scheduled
from minijax.matmul.gemm import tile_of
from minijax.matmul.lowering import (
    Product,
    arguments,
    known_product,
    write_one,
    write_product_step,
)
from minijax.matmul.packing import reckon
from minijax.memory.buffer_assignment import rounded
from minijax.threads.pool import place_of_share
from minijax.threads.split_reductions import ROOM, in_two
from minijax.vectorization.row_schedules import Stream, may_have_strips

# Kernels as functions that do some turns of their outermost loop.

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


# Steps that the threads of the pool share, in the text of programs.

# What takes longer is shared; and what a part takes at least; in nanoseconds.
LONG, SHORT = 80_000, 20_000


def may_share(time):
    """Return whether a step of so many nanoseconds is shared; if so, LLVM knows how."""
    place = place_of_share() if time >= LONG else None
    if place:
        make_known("minijax_share", place)
    return bool(place)


def in_shares(step, target):
    """Return launches that do what one does, and share the first; none if it is whole.

    The sums of columns are cut along what they add up, if that leaves little.
    """
    loop = outermost(step.kernel, target)
    if loop and not is_stream((*getattr(loop, "body", []), loop)[0]):
        return [step]
    steps = in_two(step, room=max(ROOM, sum(traffic(step.kernel)) // 32))
    if steps and outermost(steps[0].kernel, target):
        return steps
    return [step] if loop else []


def write_shared_launch(f, step):
    """Write the call of a kernel; a long one is shared, or at least its folds are."""
    time = time_of_kernel(step.kernel, f.program.target)
    steps = may_share(time) and in_shares(step, f.program.target)
    if not steps:
        return write_launch(f, step)
    first, *others = steps
    start = 0
    for buffer in [buffer for buffer in first.writes if buffer not in step.writes]:
        end = start + rounded(nbytes(buffer))
        f.addresses[buffer] = f.offset(f.in_turn("partials", end), start)
        start = end
    write_parts(f, first, time)
    for each in others:
        write_launch(f, each)


def cut(step, target):
    """Return the axis along which a product is cut, and what parts are multiples of."""
    count, m, n, _ = step.sizes
    tile = tile_of(step.out.dtype, target)
    if count >= 8:
        return 0, 1
    return (2, tile.columns) if n >= m else (1, tile.rows)


PARTS = 4  # of a kernel, for each thread
PANELS = 2  # of a product, for each thread


def write_task(program, name, body, count):
    """Add a task to a program; `body` writes it, and is given what the table holds."""
    t, addresses = LLVMFunction(), []
    for number in range(count):
        place = t.emit(f"getelementptr i8*, i8** %args, i64 {number}", "t")
        addresses.append(t.emit(f"load i8*, i8** {place}", "t"))
    body(t, addresses)
    head = f"define internal i64 @{name}(i8** %args, i64 %lo, i64 %hi, i8* %space)"
    lines = [f"{head} nounwind noinline {{", "entry:", *t.lines, "  ret i64 0", "}"]
    program.functions.append("\n".join(lines))


class Task(NamedTuple):
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


def write_share(f, task, addresses, space="null"):
    """Write how a program has a task done: a table of addresses, and a call."""
    f.declare(f"declare i64 @minijax_share({', '.join(['i64'] * 7)})")
    table = f.emit(f"ptrtoint i8** {f.table(addresses)} to i64", "p")
    args = [
        f"i64 ptrtoint (i64 (i8**, i64, i64, i8*)* @{task.name} to i64)",
        f"i64 {table}",
        *[f"i64 {number}" for number in (task.size, task.unit)],
        f"i64 {f.emit(f'ptrtoint i8* {space} to i64', 'p')}",
        *[f"i64 {number}" for number in (task.each, int(task.time / SHORT))],
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
            args = [typed(t, address, parameter.dtype) for address, parameter in pairs]
            t.line(f"call void @{name}({', '.join(args)}, i64 %lo, i64 %hi)")

        write_task(program, f"{name}_task", body, len(kernel.parameters))
        program.kernels[text] = f"{name}_task"
    return program.kernels[text]


def write_parts(f, step, time):
    """Write how a kernel is done in parts."""
    loop = outermost(step.kernel, f.program.target)
    size, unit = step.kernel.sizes[loop.axis], unit_of(loop)
    task = Task(kernel_task(f.program, step.kernel, unit), time, size, unit, PARTS)
    write_share(f, task, list(map(f.address, step.buffers)))


# Which operands of a product move along batch, rows and columns; and their strides.
MOVING = ((0, 1, 2), -3), ((0, 2), -2), ((1, 2), -1)


def write_part(t, step, addresses, which, callee):
    """Write the call that does some batches, rows or columns of a product."""
    views, starts = (step.lhs, step.rhs, step.out), []
    operands, axis = MOVING[which]
    kind = type_of(step.out.dtype)
    for number, (buffer, view) in enumerate(zip(addresses, views)):
        start = t.at(kind, t.cast("i8", buffer, kind), view.offset)
        if number in operands:
            start = t.at(kind, start, reckon(t, "mul", "%lo", view.strides[axis]))
        starts.append(start)
    numbers = arguments(step, starts)
    numbers[which] = reckon(t, "sub", "%hi", "%lo")
    write_one(t, callee, step.out.dtype, "%space", numbers)


def write_shared_product(f, step):
    """Write the call of a product; a long one is shared."""
    target, dtype = f.program.target, step.out.dtype
    time = math.prod(step.sizes) / (4 * target.lanes(dtype))
    which, unit = cut(step, target)
    size = step.sizes[which]
    if size < 2 * unit or len(step.out.shape) > 3 or not may_share(time):
        return write_product_step(f, step)
    callee = known_product(f, step)
    name = f"product{len(f.program.functions)}_task"
    write_task(f.program, name, lambda t, xs: write_part(t, step, xs, which, callee), 3)
    buffers = [f.address(buffer) for buffer in (*step.reads, *step.writes)]
    space = f.offset("%arena", f.program.locations.workspaces.get(id(step), 0))
    return write_share(f, Task(name, time, size, unit, PANELS), buffers, space)


step_kinds.write_by(Launch, write_shared_launch, instead_of=write_launch)
step_kinds.write_by(Product, write_shared_product, instead_of=write_product_step)
