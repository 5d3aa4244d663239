"""Remainder tiles: what is computed where a whole tile does not fit.

Reference: F. Van Zee and R. van de Geijn, *BLIS: a framework for rapidly instantiating
BLAS functionality* (ACM Transactions on Mathematical Software, 2015).
"""

# Made from chapters/25_matmul.md by `make chapter`;
# edit the chapter, not this file.

from minijax.llvm.lanes import steps
from minijax.llvm.loads_and_stores import read_some, write_some
from minijax.llvm.types import pointer_to, type_of, vector_type
from minijax.llvm.writing import LLVMFunction
from minijax.matmul.sizes import both, holds, quotient, reckon, times, write_panels
from minijax.matmul.tiles import (
    Matrix,
    TileCall,
    function_text,
    name_of_any,
    operands,
    write_tile_call,
)


def parts_of(tile):
    """Return the tiles that are computed instead where a smaller one is enough."""
    return [
        tile._replace(rows=rows, vectors=vectors)
        for rows in range(4, tile.rows + 1, 4)
        for vectors in range(1, tile.vectors + 1)
    ]


def write_any_tile(f, tile):
    """Write a tile of ``%rows`` rows and ``%columns`` columns, as many as fit or fewer.

    The smallest tile that holds them is computed. If they do not fill it, it is
    computed apart, and what belongs to the result is copied.
    """
    kind, lanes = type_of(tile.dtype), tile.lanes
    fours, vectors = quotient(f, "%rows", 4), quotient(f, "%columns", lanes)
    even = holds(f, "eq", reckon(f, "mul", fours, 4), "%rows")
    filled = holds(f, "eq", reckon(f, "mul", vectors, lanes), "%columns")
    whole = both(f, even, filled)
    c = f.choose(whole, "%c", "%apart", pointer_to(kind))
    result = Matrix(kind, c, f.choose(whole, "%c_row", tile.columns))
    panels = Matrix(kind, "%a", "%a_row", "%a_column"), Matrix(kind, "%b", "%b_row")
    call = TileCall("%k", *panels, result, both(f, whole, "%more"))
    for part in parts_of(tile):
        counts = (fours, part.rows // 4), (vectors, part.vectors)
        fits = [holds(f, "eq", *pair) for pair in counts]
        f.when(both(f, *fits), lambda part=part: write_tile_call(f, part, call))
    rest = f.choose(whole, 0, "%rows")
    times(f, rest, lambda row: write_row_back(f, row, tile))


def write_row_back(f, row, tile):
    """Write the copy of a row of the tile that was computed apart."""
    kind, lanes = type_of(tile.dtype), tile.lanes
    vector, dtype = vector_type(kind, lanes), tile.dtype
    source = f.at(kind, "%apart", reckon(f, "mul", row, tile.columns))
    place = f.at(kind, "%c", reckon(f, "mul", row, "%c_row"))

    def copy(start, count):
        mask = write_mask(f, count, lanes)
        x = f.load(kind, f.at(kind, source, start), lanes)
        there = f.cast(kind, f.at(kind, place, start), vector)

        def added():
            old = read_some(f, kind, there, lanes, mask)
            return [f.operation("add", [old, x], dtype, dtype, lanes)]

        [total] = f.when("%more", added, [(vector, x)])
        write_some(f, kind, there, total, lanes, mask)

    write_panels(f, "%columns", lanes, copy)


def write_mask(f, count, lanes):
    """Write the mask of the first lanes, so many."""
    limit = f.wide("i32", f.emit(f"trunc i64 {count} to i32"), lanes)
    return f.emit(f"icmp ult <{lanes} x i32> {steps('i32', lanes)}, {limit}")


def any_tile_function(tile):
    """Return the `FunctionText` of a tile, or of a part of one."""
    f = LLVMFunction()
    write_any_tile(f, tile)
    return function_text(f, name_of_any(tile), any_operands(tile.dtype))


def any_operands(dtype):
    """Return the parameters of `any_tile_function`."""
    sizes = ("i64", "%rows"), ("i64", "%columns")
    return [*sizes, *operands(dtype), (pointer_to(type_of(dtype)), "%apart")]


def write_any_call(f, tile, rows, columns, call):
    """Write the call of the function for any tile; `call` is a `TileCall`."""
    kinds, _ = zip(*any_operands(tile.dtype))
    numbers = rows, columns, *call.numbers, "%apart"
    f.call("void", name_of_any(tile), *zip(kinds, numbers), own=True)
