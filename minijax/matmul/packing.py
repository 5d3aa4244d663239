"""Packing: a matrix in the order in which a tile reads it; sizes known at run time.

References: the LLVM Language Reference, https://llvm.org/docs/LangRef.html, K. Goto
and R. van de Geijn, *Anatomy of high-performance matrix multiplication* (ACM
Transactions on Mathematical Software, 2008), the instruction ``pmaddwd``, in Intel's
Software Developer's Manual.
"""

# Made from chapters/25_matmul_ground.md by `make chapter`;
# edit the chapter, not this file.

import numpy as np

from minijax.arrays.dtypes import short_dtype_name
from minijax.llvm.instructions import (
    FunctionBuilder,
    llvm_type,
    pointer_type,
    vector_type,
)
from minijax.vectorization.schedules import emit_transpose

# Sizes that are known when a function runs: arithmetic on them, and loops over parts.

SIZE_DTYPE, BOOL_DTYPE = np.dtype("uint64"), np.dtype(bool)


def emit_int_op(f, op, x, y):
    """Write an operation on two sizes, ints or names; return the result's name."""
    return f.operation(op, [x, y], SIZE_DTYPE, SIZE_DTYPE)


def emit_compare(f, op, x, y):
    """Write a comparison of two sizes."""
    return f.operation(op, [x, y], SIZE_DTYPE, BOOL_DTYPE)


def emit_and(f, x, y):
    """Write whether two bools are true."""
    return f.operation("and", [x, y], BOOL_DTYPE, BOOL_DTYPE)


def row_offsets(f, count):
    """Write how far the rows of a panel of a are from the first one.

    An empty instruction of the assembler hides from LLVM what every fourth one is.
    Otherwise LLVM finds each address in the loop by adding to the one before, and a
    tile of one vector spends more time on these sums than on its own.
    """
    found = [emit_int_op(f, "mul", "%a_row", row) for row in range(count)]
    for row in range(4, count, 4):
        found[row] = f.emit(f'call i64 asm "", "=r,0"(i64 {found[row]})')
    return found


def emit_ceil_div(f, size, unit):
    """Write how many units cover a size."""
    return emit_int_op(f, "div", emit_int_op(f, "add", size, unit - 1), unit)


def emit_for(f, count, body):
    """Write a loop that may have no iterations; `body` is a function of the index."""

    def iteration(index, _):
        body(index)
        return []

    f.if_then(emit_compare(f, "ne", count, 0), lambda: f.loop(count, [], iteration))


def emit_even_blocks(f, size, limit, unit, body):
    """Write a loop over parts of a size: about equal, and whole units but for the last.

    Args:
      size: the name of a number.
      limit: what no part is longer than, unless it is one unit.
      unit: a number.
      body: a function of the start and the length of a part.
    """
    count = emit_ceil_div(f, size, max(limit - limit % unit, unit))
    before = emit_int_op(f, "add", emit_int_op(f, "sub", size, 1), count)
    step = emit_int_op(
        f, "mul", emit_ceil_div(f, emit_int_op(f, "div", before, count), unit), unit
    )
    emit_steps_of(f, size, count, step, body)


def emit_panel_loop(f, size, width, body):
    """Write a loop over panels; `body` is a function of the start and the width."""
    emit_steps_of(f, size, emit_ceil_div(f, size, width), width, body)


def emit_steps_of(f, size, count, step, body):
    """Write a loop over parts of a size; the last one is what is left."""

    def part(index):
        start = emit_int_op(f, "mul", index, step)
        left = emit_int_op(f, "sub", size, start)
        body(start, emit_int_op(f, "min", left, step))

    emit_for(f, count, part)


# Packing: the numbers of a matrix in the order in which a tile reads them.


def emit_pack(f, kind, width, lanes):
    """Write the packing of a panel of `width` rows: first numbers, second numbers, ...

    There are ``%count`` rows, ``%row`` apart, of ``%depth`` numbers, ``%column`` apart.
    Where there are fewer rows than `width`, the others are zeros.
    """
    whole = emit_compare(f, "ge", "%count", width)
    close = emit_compare(f, "eq", "%row", 1)
    copied = emit_and(f, whole, close)
    depth = f.select(copied, "%depth", 0)
    emit_for(f, depth, lambda i: emit_interleaved_copy(f, kind, i, width, lanes))
    groups = f.select(copied, 0, width // 4)
    emit_for(
        f, groups, lambda i: emit_group(f, kind, emit_int_op(f, "mul", i, 4), width)
    )


def emit_interleaved_copy(f, kind, i, width, lanes):
    """Write the copy of numbers that lie side by side, one of each row."""
    lanes = lanes if width % lanes == 0 else 4
    source = f.at(kind, "%x", emit_int_op(f, "mul", i, "%column"))
    place = f.at(kind, "%to", emit_int_op(f, "mul", i, width))
    for start in range(0, width, lanes):
        x = f.load(kind, f.at(kind, source, start), lanes)
        f.store(kind, x, f.at(kind, place, start), lanes)


def emit_group(f, kind, first, width):
    """Write the packing of four rows: in blocks of four by four, then one by one."""
    place = f.at(kind, "%to", first)
    last, some = emit_int_op(f, "add", first, 4), emit_compare(f, "lt", first, "%count")
    square = emit_and(
        f, emit_compare(f, "le", last, "%count"), emit_compare(f, "eq", "%column", 1)
    )
    blocks = emit_int_op(f, "div", f.select(square, "%depth", 0), 4)
    done = emit_int_op(f, "mul", blocks, 4)

    def singles(i):
        column = emit_int_op(f, "add", i, done)
        there = f.at(kind, place, emit_int_op(f, "mul", column, width))
        for row in range(4):
            x = emit_number(f, kind, emit_int_op(f, "add", first, row), column)
            f.store(kind, x, f.at(kind, there, row))

    def zeros(i):
        there = f.at(kind, place, emit_int_op(f, "mul", i, width))
        f.store(kind, "zeroinitializer", there, 4)

    emit_for(f, blocks, lambda i: emit_packed_4x4(f, kind, i, first, width))
    emit_for(f, f.select(some, emit_int_op(f, "sub", "%depth", done), 0), singles)
    emit_for(f, f.select(some, 0, "%depth"), zeros)


def emit_number(f, kind, row, column):
    """Write the load of one number; behind the last row it is a zero."""
    there = emit_compare(f, "lt", row, "%count")
    start = f.at(kind, "%x", emit_int_op(f, "mul", f.select(there, row, 0), "%row"))
    x = f.load(kind, f.at(kind, start, emit_int_op(f, "mul", column, "%column")))
    return f.select(there, x, "0" if kind.startswith("i") else "0.0", kind)


def emit_packed_4x4(f, kind, i, first, width):
    """Write how a block of four by four is loaded, transposed and stored."""
    places = emit_int_op(f, "mul", first, "%row"), emit_int_op(f, "mul", i, 4)
    source = f.at(kind, "%x", *places)
    rows = [f.at(kind, source, emit_int_op(f, "mul", "%row", row)) for row in range(4)]
    start = f.at(kind, "%to", first, emit_int_op(f, "mul", i, 4 * width))
    columns = emit_transpose(f, kind, [f.load(kind, row, 4) for row in rows])
    for number, column in enumerate(columns):
        f.store(kind, column, f.at(kind, start, number * width), 4)


def pack_function(dtype, width, lanes):
    """Return the text of the function that packs a panel."""
    f, kind = FunctionBuilder(), llvm_type(dtype)
    emit_pack(f, kind, width, lanes)
    sizes = [("i64", name) for name in ("%count", "%depth", "%row", "%column")]
    params = [*sizes, (pointer_type(kind), "%x"), (pointer_type(kind), "%to")]
    return f.definition(pack_name(dtype, width), params, "nounwind noinline")


def pack_name(dtype, width):
    """Return the name of the function that packs a panel."""
    return f"pack_{short_dtype_name(dtype)}_{width}"


# Pairs of short integers in one number: two products and their sum at once.

PAIR_INT16, PAIR_INT32 = np.dtype("int16"), np.dtype("int32")


def emit_fma_pairs(f, dtype, x, y, z, lanes):
    """Write `z` and the products of the low and of the high halves of two numbers.

    LLVM knows these instructions as one, where the processor has it.
    """
    factors = [emit_halves(f, number, lanes) for number in (x, y)]
    xy = f.operation("mul", factors, PAIR_INT32, PAIR_INT32, 2 * lanes)
    orders = range(0, 2 * lanes, 2), range(1, 2 * lanes, 2)
    parts = [f.shuffle("i32", xy, "undef", order, 2 * lanes) for order in orders]
    both = f.operation("add", parts, PAIR_INT32, PAIR_INT32, lanes)
    return f.operation("add", [both, z], PAIR_INT32, PAIR_INT32, lanes)


def emit_halves(f, x, lanes):
    """Write the halves of numbers, low and high in turn, as numbers of their size."""
    old, new = vector_type("i32", lanes), vector_type("i16", 2 * lanes)
    short = f.emit(f"bitcast {old} {x} to {new}")
    return f.operation("convert", [short], PAIR_INT16, PAIR_INT32, 2 * lanes)
