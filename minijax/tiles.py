# Made from chapters/19b_matmul.md by `make chapter`;
# edit the chapter, not this file.
"""Tiles: the part of a matrix product that stays in registers.

Reference: K. Goto and R. van de Geijn, *Anatomy of high-performance matrix
multiplication* (ACM Transactions on Mathematical Software, 2008).
"""

import itertools
from typing import NamedTuple

from minijax.dtypes import short_name
from minijax.llvm_text import write_loop
from minijax.matrix_text import MatrixText, function_text, multiply_add, spread


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
    return write_loop(f, "%k", carried, body)[2:]


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
    x86 = target.triple.startswith(("x86_64", "amd64"))  # 16 registers, elsewhere 32
    return Tile(4 if x86 else 8, 3 if lanes > 2 else 2, lanes)
