# Made from chapters/19b_matmul.md by `make chapter`;
# edit the chapter, not this file.
"""Packing: panels of a matrix, copied to where they are read one after the other."""

from minijax.dtypes import short_name
from minijax.matrix_text import MatrixText, function_text, shuffle, write_times


def write_pack(f, width, lanes):
    """Write the packing of a panel of `width` rows: first numbers, second numbers, ...

    There are ``%count`` rows, ``%row`` apart, of ``%depth`` numbers, ``%column`` apart.
    Where there are fewer rows than `width`, the others are zeros.
    """
    whole = f.emit(f"icmp uge i64 %count, {width}")
    close = f.emit("icmp eq i64 %row, 1")
    both = f.emit(f"and i1 {whole}, {close}")
    depth = f.choose(both, "%depth", 0)
    write_times(f, depth, lambda i: write_copy(f, i, width, lanes))
    groups = f.choose(both, 0, width // 4)
    write_times(f, groups, lambda i: write_group(f, f.i64("mul", i, 4), width))


def write_copy(f, i, width, lanes):
    """Write the copy of numbers that lie side by side, one of each row."""
    lanes = lanes if width % lanes == 0 else 4
    source = f.at("%x", f.i64("mul", i, "%column"))
    place = f.at("%to", f.i64("mul", i, width))
    for start in range(0, width, lanes):
        f.store(f.load(f.at(source, start), lanes), f.at(place, start), lanes)


def write_group(f, first, width):
    """Write the packing of four rows: in blocks of four by four, then one by one."""
    left, place = f.i64("sub", "%count", first), f.at("%to", first)
    whole, some = (f.emit(f"icmp sge i64 {left}, {rows}") for rows in (4, 1))
    along = f.emit("icmp eq i64 %column, 1")
    depth = f.choose(f.emit(f"and i1 {whole}, {along}"), "%depth", 0)
    blocks = f.i64("lshr", depth, 2)
    done = f.i64("mul", blocks, 4)

    def singles(i):
        column = f.i64("add", i, done)
        for row in range(4):
            x = write_number(f, row, column, first, left)
            f.store(x, f.at(place, f.i64("mul", column, width), row))

    def zeros(i):
        f.store("zeroinitializer", f.at(place, f.i64("mul", i, width)), 4)

    write_times(f, blocks, lambda i: write_block(f, i, first, place, width))
    write_times(f, f.choose(some, f.i64("sub", "%depth", done), 0), singles)
    write_times(f, f.choose(some, 0, "%depth"), zeros)


def write_number(f, row, column, first, left):
    """Write the load of one number; behind the last row it is a zero."""
    there = f.emit(f"icmp sgt i64 {left}, {row}")
    row = f.choose(there, f.i64("add", first, row), 0)
    start = f.at("%x", f.i64("mul", row, "%row"))
    x = f.load(f.at(start, f.i64("mul", column, "%column")))
    return f.choose(there, x, "0" if f.kind.startswith("i") else "0.0", f.kind)


def write_block(f, i, first, place, width):
    """Write how a block of four by four is loaded, transposed and stored."""
    source = f.at("%x", f.i64("mul", first, "%row"), f.i64("mul", i, 4))
    rows = [f.at(source, f.i64("mul", "%row", row)) for row in range(4)]
    a, b, c, d = (f.load(row, 4) for row in rows)
    orders = [0, 4, 1, 5], [2, 6, 3, 7]
    low, high = ([shuffle(f, x, y, o, 4) for x, y in ((a, c), (b, d))] for o in orders)
    columns = [shuffle(f, x, y, o, 4) for x, y in (low, high) for o in orders]
    start = f.at(place, f.i64("mul", i, 4 * width))
    for number, column in enumerate(columns):
        f.store(column, f.at(start, number * width), 4)


def pack_function(dtype, width, lanes):
    """Return the `FunctionText` that packs a panel."""
    f = MatrixText(dtype)
    write_pack(f, width, lanes)
    params = f"i64 %depth, {f.pointer} %x, i64 %row, i64 %column, {f.pointer} %to"
    return function_text(f, name_of_pack(dtype, width), f"i64 %count, {params}")


def name_of_pack(dtype, width):
    """Return the name of the function that packs a panel."""
    return f"pack_{short_name(dtype)}_{width}"
