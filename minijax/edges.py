# Made from chapters/19b_matmul.md by `make chapter`;
# edit the chapter, not this file.
"""Edges: tiles of a result that has fewer rows or columns left than fit."""

from minijax.dtypes import short_name
from minijax.matrix_text import MatrixText, function_text, write_times
from minijax.tiles import Tile, name_of, operands, write_addition


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
