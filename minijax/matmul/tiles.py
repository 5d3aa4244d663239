# Made from chapters/23_matmul.md by `make chapter`;
# edit the chapter, not this file.
"""Register tiling: packed panels, tiles that stay in registers, remainder tiles.

Reference: K. Goto and R. van de Geijn, *Anatomy of high-performance matrix
multiplication* (ACM Transactions on Mathematical Software, 2008).
"""

import itertools
from typing import NamedTuple

from minijax.arrays.dtypes import short_name
from minijax.matmul.text import (
    MatrixText,
    function_text,
    multiply_add,
    shuffle,
    spread,
    write_times,
)


class Tile(NamedTuple):
    """A part of a matrix: so many rows, with so many vectors of numbers in each."""

    rows: int
    vectors: int
    lanes: int

    @property
    def columns(self):
        """Numbers in a row."""
        return self.vectors * self.lanes

    @property
    def places(self):
        """The row and the number in it of each vector."""
        return [*itertools.product(range(self.rows), range(self.vectors))]


def write_sums(f, tile):
    """Write the loop over the terms of the sums; return the names of the sums.

    Args:
      f: the `MatrixText`, of a function with the parameters of `operands`.
      tile: a `Tile`.
    """
    steps = [f.i64("mul", "%a_row", row) for row in range(tile.rows)]

    def body(_, values):
        a, b, *sums = values
        y = [f.load(f.at(b, v * tile.lanes), tile.lanes) for v in range(tile.vectors)]
        x = [spread(f, f.load(f.at(a, step)), tile.lanes) for step in steps]
        sums = [
            multiply_add(f, x[row], y[number], total, tile.lanes)
            for (row, number), total in zip(tile.places, sums)
        ]
        return [f.at(a, "%a_column"), f.at(b, "%b_row"), *sums]

    zeros = [(f.vector(tile.lanes), "zeroinitializer")] * len(tile.places)
    carried = [(f.pointer, "%a"), (f.pointer, "%b"), *zeros]
    return f.loop("%k", carried, body)[2:]


def write_tile(f, tile, finish=None):
    """Write a tile of a product: rows of the left times columns of the right.

    Where ``%more`` is true, they are added to what is there.

    Args:
      f: the `MatrixText`, of a function with the parameters of `operands`.
      tile: a `Tile`.
      finish: what becomes of a vector of sums before it is stored: a function of f,
        the vector's row and its number in the row, and its name.
    """
    places = tile_addresses(f, tile)
    sums = write_more(f, tile, write_sums(f, tile), places)
    for (row, number), x, address in zip(tile.places, sums, places):
        x = finish(f, row, number, x) if finish else x
        f.store(x, address, tile.lanes)


def tile_addresses(f, tile):
    """Write where the vectors of a tile of the result are."""
    rows = [f.at("%c", f.i64("mul", "%c_row", row)) for row in range(tile.rows)]
    return [f.at(rows[row], number * tile.lanes) for row, number in tile.places]


def write_more(f, tile, sums, addresses):
    """Write what is added where there is more; return the names of the totals."""
    kind, before = f.vector(tile.lanes), f.block
    f.line("br i1 %more, label %add, label %end")
    f.start("add")
    totals = [write_addition(f, *pair, tile.lanes) for pair in zip(sums, addresses)]
    f.line("br label %end")
    f.start("end")
    return [
        f.emit(f"phi {kind} [ {x}, %{before} ], [ {total}, %add ]")
        for x, total in zip(sums, totals)
    ]


def write_addition(f, x, address, lanes):
    """Write the sum of numbers and those that are in memory."""
    add = "add" if f.kind.startswith("i") else "fadd"
    return f.emit(f"{add} {f.vector(lanes)} {f.load(address, lanes)}, {x}")


def operands(f):
    """Return the parameters of a function that computes a tile."""
    p = f.pointer
    return (
        f"i64 %k, {p} %a, i64 %a_row, i64 %a_column, {p} %b, i64 %b_row, "
        f"{p} %c, i64 %c_row, i1 %more"
    )


def tile_function(dtype, tile, finish=None):
    """Return the `FunctionText` of a tile."""
    f = MatrixText(dtype)
    write_tile(f, tile, finish)
    return function_text(f, name_of(dtype, tile), operands(f))


def name_of(dtype, tile):
    """Return the name of the function for a tile."""
    return f"tile_{short_name(dtype)}_{tile.rows}_{tile.vectors}"


def tile_of(dtype, target):
    """Return the `Tile` that fills the registers of a target, but for a few."""
    lanes = target.lanes(dtype)
    if target.vector_bytes == 64:
        return Tile(12, 2, lanes)
    return Tile(target.registers // 4, 3 if lanes > 2 else 2, lanes)


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


def parts_of(tile):
    """Return the tiles that are computed instead where a smaller one is enough."""
    return [
        Tile(rows, vectors, tile.lanes)
        for rows in range(4, tile.rows + 1, 4)
        for vectors in range(1, tile.vectors + 1)
    ]


def write_any_tile(f, tile):
    """Write a tile of ``%rows`` rows and ``%columns`` columns, as many as fit or fewer.

    The smallest tile that holds them is computed. If they do not fill it, it is
    computed apart, and what belongs to the result is copied.
    """
    fours, vectors = quotient(f, "%rows", 4), quotient(f, "%columns", tile.lanes)
    even = f.emit(f"icmp eq i64 {f.i64('mul', fours, 4)}, %rows")
    filled = f.emit(f"icmp eq i64 {f.i64('mul', vectors, tile.lanes)}, %columns")
    whole = f.emit(f"and i1 {even}, {filled}")
    c = f.choose(whole, "%c", "%apart", f.pointer)
    c_row = f.choose(whole, "%c_row", tile.columns)
    more = f.emit(f"and i1 {whole}, %more")
    write_choice(f, tile, fours, vectors, f"{f.pointer} {c}, i64 {c_row}, i1 {more}")
    rest = f.choose(whole, 0, "%rows")
    write_times(f, rest, lambda row: write_row_back(f, row, tile))


def quotient(f, size, unit):
    """Write how many units cover a size."""
    return f.i64("udiv", f.i64("add", size, unit - 1), unit)


def write_choice(f, tile, fours, vectors, result):
    """Write the call for a tile of so many times four rows, and so many vectors."""
    p, parts = f.pointer, parts_of(tile)
    above = f.i64("mul", f.i64("sub", fours, 1), tile.vectors)
    case = f.i64("add", above, f.i64("sub", vectors, 1))
    cases = " ".join(f"i64 {k}, label %case{k}" for k in range(len(parts)))
    f.line(f"switch i64 {case}, label %case0 [ {cases} ]")
    left, right = f"{p} %a, i64 %a_row, i64 %a_column", f"{p} %b, i64 %b_row"
    for number, part in enumerate(parts):
        f.start(f"case{number}")
        args = f"i64 %k, {left}, {right}, {result}"
        f.line(f"call void @{name_of(f.dtype, part)}({args})")
        f.line("br label %computed")
    f.start("computed")


def write_row_back(f, row, tile):
    """Write the copy of a row of the tile that was computed apart."""
    source = f.at("%apart", f.i64("mul", row, tile.columns))
    place = f.at("%c", f.i64("mul", row, "%c_row"))

    def copy(start, lanes):
        x, there = f.load(f.at(source, start), lanes), f.at(place, start)
        both = write_addition(f, x, there, lanes)
        f.store(f.choose("%more", both, x, f.vector(lanes)), there, lanes)

    lanes = tile.lanes
    vectors = f.i64("udiv", "%columns", lanes)
    done = f.i64("mul", vectors, lanes)
    write_times(f, vectors, lambda i: copy(f.i64("mul", i, lanes), lanes))
    rest = f.i64("sub", "%columns", done)
    write_times(f, rest, lambda i: copy(f.i64("add", i, done), 1))


def any_tile_function(dtype, tile):
    """Return the `FunctionText` of a tile, or of a part of one."""
    f = MatrixText(dtype)
    write_any_tile(f, tile)
    params = f"i64 %rows, i64 %columns, {operands(f)}, {f.pointer} %apart"
    return function_text(f, f"tile_{short_name(dtype)}", params)
