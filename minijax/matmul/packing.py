"""Packing: a matrix in the order in which a tile reads it; sizes known at run time.

References: the LLVM Language Reference, https://llvm.org/docs/LangRef.html, K. Goto
and R. van de Geijn, *Anatomy of high-performance matrix multiplication* (ACM
Transactions on Mathematical Software, 2008), the instruction ``pmaddwd``, in Intel's
Software Developer's Manual.
"""

# Made from chapters/25_matmul_ground.md by `make chapter`;
# edit the chapter, not this file.

import numpy as np

from minijax.arrays.dtypes import short_name
from minijax.llvm.instructions import LLVMFunction, pointer_to, type_of, vector_type
from minijax.vectorization.schedules import turned

# Sizes that are known when a function runs: arithmetic on them, and loops over parts.

SIZE, BOOL = np.dtype("uint64"), np.dtype(bool)


def reckon(f, op, x, y):
    """Write an operation on two sizes, ints or names; return the result's name."""
    return f.operation(op, [x, y], SIZE, SIZE)


def holds(f, op, x, y):
    """Write a comparison of two sizes."""
    return f.operation(op, [x, y], SIZE, BOOL)


def both(f, x, y):
    """Write whether two bools are true."""
    return f.operation("and", [x, y], BOOL, BOOL)


def distances_of_rows(f, count):
    """Write how far the rows of a panel of a are from the first one.

    An empty instruction of the assembler hides from LLVM what every fourth one is.
    Otherwise LLVM finds each address in the loop by adding to the one before, and a
    tile of one vector spends more time on these sums than on its own.
    """
    found = [reckon(f, "mul", "%a_row", row) for row in range(count)]
    for row in range(4, count, 4):
        found[row] = f.emit(f'call i64 asm "", "=r,0"(i64 {found[row]})')
    return found


def quotient(f, size, unit):
    """Write how many units cover a size."""
    return reckon(f, "div", reckon(f, "add", size, unit - 1), unit)


def times(f, count, body):
    """Write a loop that may have no turns; `body` is a function of the index."""

    def turn(index, _):
        body(index)
        return []

    f.when(holds(f, "ne", count, 0), lambda: f.loop(count, [], turn))


def write_parts(f, size, limit, unit, body):
    """Write a loop over parts of a size: about equal, and whole units but for the last.

    Args:
      size: the name of a number.
      limit: what no part is longer than, unless it is one unit.
      unit: a number.
      body: a function of the start and the length of a part.
    """
    count = quotient(f, size, max(limit - limit % unit, unit))
    before = reckon(f, "add", reckon(f, "sub", size, 1), count)
    step = reckon(f, "mul", quotient(f, reckon(f, "div", before, count), unit), unit)
    write_steps_of(f, size, count, step, body)


def write_panels(f, size, width, body):
    """Write a loop over panels; `body` is a function of the start and the width."""
    write_steps_of(f, size, quotient(f, size, width), width, body)


def write_steps_of(f, size, count, step, body):
    """Write a loop over parts of a size; the last one is what is left."""

    def part(index):
        start = reckon(f, "mul", index, step)
        left = reckon(f, "sub", size, start)
        body(start, reckon(f, "min", left, step))

    times(f, count, part)


# Packing: the numbers of a matrix in the order in which a tile reads them.


def write_pack(f, kind, width, lanes):
    """Write the packing of a panel of `width` rows: first numbers, second numbers, ...

    There are ``%count`` rows, ``%row`` apart, of ``%depth`` numbers, ``%column`` apart.
    Where there are fewer rows than `width`, the others are zeros.
    """
    whole, close = holds(f, "ge", "%count", width), holds(f, "eq", "%row", 1)
    copied = both(f, whole, close)
    depth = f.choose(copied, "%depth", 0)
    times(f, depth, lambda i: write_copy(f, kind, i, width, lanes))
    groups = f.choose(copied, 0, width // 4)
    times(f, groups, lambda i: write_group(f, kind, reckon(f, "mul", i, 4), width))


def write_copy(f, kind, i, width, lanes):
    """Write the copy of numbers that lie side by side, one of each row."""
    lanes = lanes if width % lanes == 0 else 4
    source = f.at(kind, "%x", reckon(f, "mul", i, "%column"))
    place = f.at(kind, "%to", reckon(f, "mul", i, width))
    for start in range(0, width, lanes):
        x = f.load(kind, f.at(kind, source, start), lanes)
        f.store(kind, x, f.at(kind, place, start), lanes)


def write_group(f, kind, first, width):
    """Write the packing of four rows: in blocks of four by four, then one by one."""
    place = f.at(kind, "%to", first)
    last, some = reckon(f, "add", first, 4), holds(f, "lt", first, "%count")
    square = both(f, holds(f, "le", last, "%count"), holds(f, "eq", "%column", 1))
    blocks = reckon(f, "div", f.choose(square, "%depth", 0), 4)
    done = reckon(f, "mul", blocks, 4)

    def singles(i):
        column = reckon(f, "add", i, done)
        there = f.at(kind, place, reckon(f, "mul", column, width))
        for row in range(4):
            x = write_number(f, kind, reckon(f, "add", first, row), column)
            f.store(kind, x, f.at(kind, there, row))

    def zeros(i):
        there = f.at(kind, place, reckon(f, "mul", i, width))
        f.store(kind, "zeroinitializer", there, 4)

    times(f, blocks, lambda i: write_block(f, kind, i, first, width))
    times(f, f.choose(some, reckon(f, "sub", "%depth", done), 0), singles)
    times(f, f.choose(some, 0, "%depth"), zeros)


def write_number(f, kind, row, column):
    """Write the load of one number; behind the last row it is a zero."""
    there = holds(f, "lt", row, "%count")
    start = f.at(kind, "%x", reckon(f, "mul", f.choose(there, row, 0), "%row"))
    x = f.load(kind, f.at(kind, start, reckon(f, "mul", column, "%column")))
    return f.choose(there, x, "0" if kind.startswith("i") else "0.0", kind)


def write_block(f, kind, i, first, width):
    """Write how a block of four by four is loaded, transposed and stored."""
    places = reckon(f, "mul", first, "%row"), reckon(f, "mul", i, 4)
    source = f.at(kind, "%x", *places)
    rows = [f.at(kind, source, reckon(f, "mul", "%row", row)) for row in range(4)]
    start = f.at(kind, "%to", first, reckon(f, "mul", i, 4 * width))
    columns = turned(f, kind, [f.load(kind, row, 4) for row in rows])
    for number, column in enumerate(columns):
        f.store(kind, column, f.at(kind, start, number * width), 4)


def pack_function(dtype, width, lanes):
    """Return the text of the function that packs a panel."""
    f, kind = LLVMFunction(), type_of(dtype)
    write_pack(f, kind, width, lanes)
    sizes = [("i64", name) for name in ("%count", "%depth", "%row", "%column")]
    params = [*sizes, (pointer_to(kind), "%x"), (pointer_to(kind), "%to")]
    return f.definition(name_of_pack(dtype, width), params, "nounwind noinline")


def name_of_pack(dtype, width):
    """Return the name of the function that packs a panel."""
    return f"pack_{short_name(dtype)}_{width}"


# Pairs of short integers in one number: two products and their sum at once.

SHORT, LONG = np.dtype("int16"), np.dtype("int32")


def multiply_add_pairs(f, dtype, x, y, z, lanes):
    """Write `z` and the products of the low and of the high halves of two numbers.

    LLVM knows these instructions as one, where the processor has it.
    """
    factors = [halves(f, number, lanes) for number in (x, y)]
    xy = f.operation("mul", factors, LONG, LONG, 2 * lanes)
    orders = range(0, 2 * lanes, 2), range(1, 2 * lanes, 2)
    parts = [f.shuffle("i32", xy, "undef", order, 2 * lanes) for order in orders]
    both = f.operation("add", parts, LONG, LONG, lanes)
    return f.operation("add", [both, z], LONG, LONG, lanes)


def halves(f, x, lanes):
    """Write the halves of numbers, low and high in turn, as numbers of their size."""
    old, new = vector_type("i32", lanes), vector_type("i16", 2 * lanes)
    short = f.emit(f"bitcast {old} {x} to {new}")
    return f.operation("convert", [short], SHORT, LONG, 2 * lanes)
