# Made from chapters/25_matmul.md by `make chapter`;
# edit the chapter, not this file.
"""Cache blocking (gemm): products of blocks, made of panels, made of tiles.

Reference: F. Van Zee and R. van de Geijn, *BLIS: a framework for rapidly instantiating
BLAS functionality* (ACM Transactions on Mathematical Software, 2015).
"""

import functools
from typing import NamedTuple

from minijax.arrays.dtypes import short_name
from minijax.llvm.kernel_text import FunctionText, module_text
from minijax.llvm.lanes import on_stack
from minijax.llvm.targets import TargetLibrary
from minijax.llvm.types import pointer_to, type_of
from minijax.llvm.writing import LLVMFunction
from minijax.matmul.edges import any_operands, any_tile_function, name_of_any, parts_of
from minijax.matmul.packing import name_of_pack, pack_function
from minijax.matmul.sizes import (
    BOOL,
    both,
    holds,
    reckon,
    times,
    write_panels,
    write_parts,
)
from minijax.matmul.tiles import function_text, name_of, tile_function, tile_of


class Limits(NamedTuple):
    """How many terms of the sums, rows and columns a block has at most."""

    depth: int = 512
    rows: int = 96
    columns: int = 1024


LIMITS = Limits()


def workspace(sizes, dtype, limits=LIMITS):
    """Return how many bytes the packed panels of a product take, on any target."""
    _, m, n, k = sizes
    rows = min(m, limits.rows) + 12
    columns = min(n, limits.columns) + 2 * (128 // dtype.itemsize)
    return (rows + columns) * min(k, limits.depth) * dtype.itemsize


class Side(NamedTuple):
    """How an operand is divided: into panels of rows, of the right one of columns.

    Attributes:
      width: the rows in a panel.
      row, column: the distance of rows, and that of the numbers in a row.
      stays: whether panels may stay where they are...
      unit: ...if the number of their rows is a multiple of this.
    """

    width: int
    row: str
    column: str
    stays: str
    unit: int


def sides(f, tile):
    """Write which operands may stay where they are; return the two `Side`."""
    few = holds(f, "le", "%m", 2 * tile.rows)
    a, b = holds(f, "le", "%n", 4 * tile.columns), holds(f, "eq", "%b_column", 1)
    wide, b = tile.columns, both(f, few, b)
    left = Side(tile.rows, "%a_row", "%a_column", a, 4)
    return left, Side(wide, "%b_column", "%b_row", b, wide)


class Block(NamedTuple):
    """A block of an operand: where it is, its depth, and where it is packed."""

    side: Side
    kind: str
    source: str
    depth: str
    packed: str

    def addresses(self, f, start):
        """Write where a panel is in memory, and where it is when it is packed."""
        places = (reckon(f, "mul", start, by) for by in (self.side.row, self.depth))
        pairs = zip((self.source, self.packed), places)
        return [f.at(self.kind, base, place) for base, place in pairs]

    def stays(self, f, count):
        """Write whether a panel of so many rows stays where it is."""
        rest = reckon(f, "rem", count, self.side.unit)
        return both(f, self.side.stays, holds(f, "eq", rest, 0))

    def panel(self, f, start, count):
        """Write where a panel is read: its address, and two distances."""
        stays, (source, packed) = self.stays(f, count), self.addresses(f, start)
        address = f.choose(stays, source, packed, pointer_to(self.kind))
        row = f.choose(stays, self.side.row, 1)
        return address, row, f.choose(stays, self.side.column, self.side.width)


def write_packing(f, dtype, block, size):
    """Write the packing of the panels that do not stay where they are."""
    width, row, column, *_ = block.side
    pointer = pointer_to(block.kind)

    def panel(start, count):
        source, packed = block.addresses(f, start)
        sizes = [("i64", x) for x in (count, block.depth, row, column)]
        args = [*sizes, (pointer, source), (pointer, packed)]
        moves = f.operation("not", [block.stays(f, count)], BOOL, BOOL)
        name = name_of_pack(dtype, width)
        f.when(moves, lambda: f.call("void", name, *args, own=True))

    write_panels(f, size, width, panel)


def write_tiles(f, dtype, left, right, c, sizes, more):
    """Write the tiles of a block of the result."""
    kinds, _ = zip(*any_operands(dtype))

    def columns(column, wide):
        b, _, b_row = right.panel(f, column, wide)

        def rows(row, high):
            a = left.panel(f, row, high)
            place = f.at(left.kind, c, reckon(f, "mul", row, "%c_row"), column)
            there = (place, "%c_row", more, "%apart")
            args = zip(kinds, (high, wide, left.depth, *a, b, b_row, *there))
            f.call("void", name_of_any(dtype), *args, own=True)

        write_panels(f, sizes[0], left.side.width, rows)

    write_panels(f, sizes[1], right.side.width, columns)


def write_product(f, tile, limits, both_sides, space, a, b, c):
    """Write the product of two matrices: columns, terms and rows, block by block."""
    left_side, right_side = both_sides
    dtype, kind = tile.dtype, type_of(tile.dtype)

    def columns(column, n):
        write_parts(f, "%k", limits.depth, 4, lambda k, d: terms(column, n, k, d))

    def terms(column, n, term, depth):
        source = f.at(kind, b, reckon(f, "mul", term, "%b_row"))
        source = f.at(kind, source, reckon(f, "mul", column, "%b_column"))
        right = Block(right_side, kind, source, depth, space)
        write_packing(f, dtype, right, n)
        used = reckon(f, "mul", reckon(f, "add", n, tile.columns), depth)
        behind, more = f.at(kind, space, used), holds(f, "ne", term, 0)
        begin = reckon(f, "mul", term, "%a_column")

        def rows(row, m):
            source = f.at(kind, a, begin, reckon(f, "mul", row, "%a_row"))
            left = Block(left_side, kind, source, depth, behind)
            write_packing(f, dtype, left, m)
            place = f.at(kind, c, reckon(f, "mul", row, "%c_row"), column)
            write_tiles(f, dtype, left, right, place, (m, n), more)

        write_parts(f, "%m", limits.rows, tile.rows, rows)

    write_parts(f, "%n", limits.columns, tile.columns, columns)


def write_gemm(f, tile, limits):
    """Write the product of matrices, one pair of them after the other."""
    kind = type_of(tile.dtype)
    f.lines += on_stack("%apart", kind, tile.rows * tile.columns * tile.dtype.itemsize)
    space, both_sides = f.cast("i8", "%workspace", kind), sides(f, tile)

    def pair(index):
        distances = [reckon(f, "mul", index, f"%{x}_batch") for x in "abc"]
        starts = [f.at(kind, f"%{x}", place) for x, place in zip("abc", distances)]
        write_product(f, tile, limits, both_sides, space, *starts)

    times(f, "%batch", pair)


def parameters(dtype):
    """Return the parameters: sizes, addresses, and distances in numbers."""
    kinds = {letter: pointer_to(type_of(dtype)) for letter in "abc"}
    kinds["workspace"] = pointer_to("i8")
    names = "batch m n k a a_batch a_row a_column b b_batch b_row b_column"
    names = f"{names} c c_batch c_row workspace".split()
    return [(kinds.get(name, "i64"), f"%{name}") for name in names]


@functools.cache
def function(dtype, target, limits=LIMITS):
    """Return the `FunctionText` of products of any size: ``gemm_f32`` and its like.

    Its parameters are those of `parameters`. The columns of c lie side by side;
    ``%workspace`` has as many bytes as `workspace` says.
    """
    tile, f = tile_of(dtype, target), LLVMFunction()
    write_gemm(f, tile, limits)
    made, whole = any_tile_function(tile), name_of_any(dtype)
    called = {**f.needed, **made.needed, whole: made.text}
    for part in parts_of(tile):
        made = tile_function(part)
        called |= made.needed | {name_of(part): made.text}
    for width in (tile.rows, tile.columns):
        called[name_of_pack(dtype, width)] = pack_function(dtype, width, tile.lanes)
    made = function_text(f, name_of_gemm(dtype), parameters(dtype), linkage="")
    return FunctionText(made.text, called)


def name_of_gemm(dtype):
    """Return the name of the function for a dtype."""
    return f"gemm_{short_name(dtype)}"


_kept: list = []  # two threads may make the same one, and programs call both


@functools.cache
def library(dtype, target):
    """Return the machine code of `function`, which stays as long as the process."""
    made = TargetLibrary(module_text([function(dtype, target)]), target)
    _kept.append(made)
    return made


def address(dtype, target):
    """Return the address of the machine code of `function`."""
    return library(dtype, target).engine.get_function_address(name_of_gemm(dtype))
