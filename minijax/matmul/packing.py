"""Packing: the numbers of a matrix in the order in which a tile reads them.

Reference: K. Goto and R. van de Geijn, *Anatomy of high-performance matrix
multiplication* (ACM Transactions on Mathematical Software, 2008).
"""

# Made from chapters/25_matmul_ground.md by `make chapter`;
# edit the chapter, not this file.

from minijax.arrays.dtypes import short_name
from minijax.llvm.types import pointer_to, type_of
from minijax.llvm.writing import LLVMFunction
from minijax.matmul.sizes import both, holds, reckon, times
from minijax.vectors.transposing import turned


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
