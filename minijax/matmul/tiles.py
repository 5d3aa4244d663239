"""Register tiling: a part of a product whose sums stay in registers.

Reference: K. Goto and R. van de Geijn, *Anatomy of high-performance matrix
multiplication* (ACM Transactions on Mathematical Software, 2008).
"""

# Made from chapters/25_matmul.md by `make chapter`;
# edit the chapter, not this file.

import itertools
from typing import NamedTuple

import numpy as np

from minijax.arrays.dtypes import short_name
from minijax.llvm.kernel_text import FunctionText
from minijax.llvm.types import pointer_to, type_of, vector_type
from minijax.llvm.writing import LLVMFunction
from minijax.matmul.pairs import multiply_add_pairs
from minijax.matmul.sizes import distances_of_rows, reckon


def multiply_add(f, dtype, x, y, z, lanes):
    """Write ``x * y + z``: one instruction, where the processor has it."""
    xy = f.operation("mul", [x, y], dtype, dtype, lanes, "contract ")
    return f.operation("add", [xy, z], dtype, dtype, lanes, "contract ")


def function_text(f, name, params, linkage="internal "):
    """Return the `FunctionText` of what has been written."""
    text = f.definition(name, params, "nounwind noinline", linkage=linkage)
    return FunctionText(text, f.needed)


class Tile(NamedTuple):
    """A part of a matrix: so many rows, with so many vectors of numbers in each.

    If it is one of `pairs`, each number of an operand stands for two short integers.
    """

    rows: int
    vectors: int
    lanes: int
    dtype: np.dtype
    pairs: bool = False

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

    The function has the parameters of `operands`.
    """
    kind, lanes = type_of(tile.dtype), tile.lanes
    multiply = multiply_add_pairs if tile.pairs else multiply_add
    distances = distances_of_rows(f, tile.rows)

    def body(_, values):
        a, b, *sums = values
        y = [f.load(kind, f.at(kind, b, v * lanes), lanes) for v in range(tile.vectors)]
        x = [f.load(kind, f.at(kind, a, distance)) for distance in distances]
        x = [f.wide(kind, number, lanes) for number in x]
        factors = [(x[row], y[number]) for row, number in tile.places]
        terms = zip(factors, sums)
        sums = [multiply(f, tile.dtype, *pair, z, lanes) for pair, z in terms]
        return [f.at(kind, a, "%a_column"), f.at(kind, b, "%b_row"), *sums]

    zeros = [(vector_type(kind, lanes), "zeroinitializer")] * len(tile.places)
    starts = [(pointer_to(kind), "%a"), (pointer_to(kind), "%b")]
    return f.loop("%k", [*starts, *zeros], body)[2:]


def write_tile(f, tile, finish=None):
    """Write a tile of a product: rows of the left times columns of the right.

    Where ``%more`` is true, they are added to what is there.

    Args:
      f: the `LLVMFunction`, with the parameters of `operands`.
      tile: a `Tile`.
      finish: what becomes of a vector of sums before it is stored: a function of f,
        the vector's row and its number in the row, and its name.
    """
    places = tile_addresses(f, tile)
    sums = write_more(f, tile, write_sums(f, tile), places)
    for (row, number), x, address in zip(tile.places, sums, places):
        x = finish(f, row, number, x) if finish else x
        f.store(type_of(tile.dtype), x, address, tile.lanes)


def tile_addresses(f, tile):
    """Write where the vectors of a tile of the result are."""
    kind, lanes = type_of(tile.dtype), tile.lanes
    starts = [reckon(f, "mul", "%c_row", row) for row in range(tile.rows)]
    rows = [f.at(kind, "%c", start) for start in starts]
    return [f.at(kind, rows[row], number * lanes) for row, number in tile.places]


def write_more(f, tile, sums, addresses):
    """Write what is added where there is more; return the names of the totals."""
    kind = vector_type(type_of(tile.dtype), tile.lanes)

    def added():
        pairs = zip(sums, addresses)
        return [write_addition(f, tile.dtype, *pair, tile.lanes) for pair in pairs]

    return f.when("%more", added, [(kind, x) for x in sums])


def write_addition(f, dtype, x, address, lanes):
    """Write the sum of numbers and those that are in memory."""
    there = f.load(type_of(dtype), address, lanes)
    return f.operation("add", [there, x], dtype, dtype, lanes)


def operands(dtype):
    """Return the parameters of a function that computes a tile."""
    names = "%k %a %a_row %a_column %b %b_row %c %c_row %more".split()
    kinds = {name: pointer_to(type_of(dtype)) for name in ("%a", "%b", "%c")}
    return [((kinds | {"%more": "i1"}).get(name, "i64"), name) for name in names]


def tile_function(tile, finish=None):
    """Return the `FunctionText` of a tile."""
    f = LLVMFunction()
    write_tile(f, tile, finish)
    return function_text(f, name_of(tile), operands(tile.dtype))


def name_of(tile):
    """Return the name of the function for a tile."""
    return f"{name_of_any(tile)}_{tile.rows}_{tile.vectors}"


def name_of_any(tile):
    """Return the name of the function for tiles and parts of them."""
    return f"tile_{short_name(tile.dtype)}{'_pairs' * tile.pairs}"


class Matrix(NamedTuple):
    """Where a matrix lies: an address, and the distances of its rows and columns."""

    kind: str  # LLVM's type of a number
    address: str
    row: object
    column: object = 1

    def part(self, f, row, column=0):
        """Write where the part lies that begins at a row and a column."""
        steps = [(row, self.row), (column, self.column)]
        places = [
            count if step == 1 else reckon(f, "mul", count, step)
            for count, step in steps
            if count != 0
        ]
        return self._replace(address=f.at(self.kind, self.address, *places))

    def transposed(self):
        """Return the matrix with rows and columns exchanged."""
        return self._replace(row=self.column, column=self.row)


class TileCall(NamedTuple):
    """What the function of a tile is given."""

    k: object  # how many terms
    a: Matrix  # a panel of the left operand
    b: Matrix  # a panel of the right one, whose columns lie side by side
    c: Matrix  # the tile's place in the result, in which they do as well
    more: str  # whether the sums are added to what is there

    @property
    def numbers(self):
        """The arguments, in the order of `operands`."""
        return self.k, *self.a[1:], *self.b[1:3], *self.c[1:3], self.more


def write_tile_call(f, tile, call):
    """Write the call of a tile's function."""
    kinds, _ = zip(*operands(tile.dtype))
    f.call("void", name_of(tile), *zip(kinds, call.numbers), own=True)


def tile_of(dtype, target):
    """Return the `Tile` that fills the registers of a target, but for a few."""
    lanes = target.lanes(dtype)
    if target.vector_bytes == 64:
        return Tile(12, 2, lanes, dtype)
    return Tile(target.registers // 4, 3 if lanes > 2 else 2, lanes, dtype)
