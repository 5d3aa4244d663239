# Made from chapters/23_matmul.md by `make chapter`;
# edit the chapter, not this file.
"""Cache blocking (gemm): products of blocks, made of panels, made of tiles.

Reference: F. Van Zee and R. van de Geijn, *BLIS: a framework for rapidly instantiating
BLAS functionality* (ACM Transactions on Mathematical Software, 2015).
"""

import functools
from typing import NamedTuple

from minijax.arrays.dtypes import short_name
from minijax.llvm.kernel_text import FunctionText, module_text
from minijax.llvm.targets import TargetLibrary
from minijax.llvm.types import pointer_to
from minijax.matmul.text import MatrixText, function_text, write_times
from minijax.matmul.tiles import (
    any_tile_function,
    name_of,
    name_of_pack,
    pack_function,
    parts_of,
    quotient,
    tile_function,
    tile_of,
)


class Limits(NamedTuple):
    """How many terms of the sums, rows and columns a block has at most."""

    depth: int = 512
    rows: int = 96
    columns: int = 1024


LIMITS = Limits()


def write_parts(f, size, limit, unit, body):
    """Write a loop over parts of a size: about equal, and whole units but for the last.

    Args:
      size: the name of a number.
      limit: what no part is longer than, unless it is one unit.
      unit: a number.
      body: a function of the start and the length of a part.
    """
    count = quotient(f, size, max(limit - limit % unit, unit))
    fair = f.i64("udiv", f.i64("add", f.i64("sub", size, 1), count), count)
    step = f.i64("mul", quotient(f, fair, unit), unit)

    def part(index):
        start = f.i64("mul", index, step)
        body(start, least(f, f.i64("sub", size, start), step))

    write_times(f, count, part)


def write_panels(f, size, width, body):
    """Write a loop over panels; `body` is a function of the start and the width."""

    def panel(index):
        start = f.i64("mul", index, width)
        body(start, least(f, f.i64("sub", size, start), width))

    write_times(f, quotient(f, size, width), panel)


def least(f, x, y):
    """Write the smaller one of two sizes."""
    return f.choose(f.emit(f"icmp ult i64 {x}, {y}"), x, y)


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


def sides(tile):
    """Return the two sides of a product."""
    left = Side(tile.rows, "%a_row", "%a_column", "%a_stays", 4)
    return left, Side(tile.columns, "%b_column", "%b_row", "%b_stays", tile.columns)


class Block(NamedTuple):
    """A block of an operand: where it is, its depth, and where it is packed."""

    side: Side
    source: str
    depth: str
    packed: str

    def addresses(self, f, start):
        """Write where a panel is in memory, and where it is when it is packed."""
        source = f.at(self.source, f.i64("mul", start, self.side.row))
        return source, f.at(self.packed, f.i64("mul", start, self.depth))

    def stays(self, f, count):
        """Write whether a panel of so many rows stays where it is."""
        rest = f.i64("urem", count, self.side.unit)
        return f.emit(f"and i1 {self.side.stays}, {f.emit(f'icmp eq i64 {rest}, 0')}")

    def panel(self, f, start, count):
        """Write where a panel is read: its address, and two distances."""
        stays, (source, packed) = self.stays(f, count), self.addresses(f, start)
        address = f.choose(stays, source, packed, f.pointer)
        row = f.choose(stays, self.side.row, 1)
        return address, row, f.choose(stays, self.side.column, self.side.width)


def write_packing(f, block, size):
    """Write the packing of the panels that do not stay where they are."""
    width, row, column, *_ = block.side

    def panel(start, count):
        source, packed = block.addresses(f, start)
        args = f"i64 {count}, i64 {block.depth}, {f.pointer} {source}, "
        args += f"i64 {row}, i64 {column}, {f.pointer} {packed}"
        moves = f.emit(f"xor i1 {block.stays(f, count)}, true")
        call = f"call void @{name_of_pack(f.dtype, width)}({args})"
        f.when(moves, lambda: f.line(call))

    write_panels(f, size, width, panel)


def write_tiles(f, left, right, c, sizes, more):
    """Write the tiles of a block of the result."""
    p, (m, n) = f.pointer, sizes

    def columns(column, wide):
        b, _, b_row = right.panel(f, column, wide)

        def rows(row, high):
            a, a_row, a_column = left.panel(f, row, high)
            place = f.at(c, f.i64("mul", row, "%c_row"), column)
            args = f"i64 {high}, i64 {wide}, i64 {left.depth}, "
            args += f"{p} {a}, i64 {a_row}, i64 {a_column}, {p} {b}, i64 {b_row}, "
            args += f"{p} {place}, i64 %c_row, i1 {more}, {p} %apart"
            f.line(f"call void @tile_{short_name(f.dtype)}({args})")

        write_panels(f, m, left.side.width, rows)

    write_panels(f, n, right.side.width, columns)


def write_product(f, tile, limits, a, b, c):
    """Write the product of two matrices: columns, terms and rows, block by block."""
    left_side, right_side = sides(tile)

    def columns(column, n):
        write_parts(f, "%k", limits.depth, 4, lambda k, d: terms(column, n, k, d))

    def terms(column, n, term, depth):
        source = f.at(b, f.i64("mul", term, "%b_row"))
        source = f.at(source, f.i64("mul", column, "%b_column"))
        right = Block(right_side, source, depth, "%space")
        write_packing(f, right, n)
        wide = f.i64("add", n, tile.columns)
        space = f.at("%space", f.i64("mul", wide, depth))
        more, begin = f.emit(f"icmp ne i64 {term}, 0"), f.i64("mul", term, "%a_column")

        def rows(row, m):
            source = f.at(a, begin, f.i64("mul", row, "%a_row"))
            left = Block(left_side, source, depth, space)
            write_packing(f, left, m)
            place = f.at(c, f.i64("mul", row, "%c_row"), column)
            write_tiles(f, left, right, place, (m, n), more)

        write_parts(f, "%m", limits.rows, tile.rows, rows)

    write_parts(f, "%n", limits.columns, tile.columns, columns)


def write_gemm(f, tile, limits):
    """Write the product of matrices, one pair of them after the other."""
    numbers = tile.rows * tile.columns
    apart = f.emit(f"alloca {f.kind}, i64 {numbers}, align 64", "p")
    f.line(f"%apart = getelementptr {f.kind}, {f.pointer} {apart}, i64 0")
    f.line(f"%space = bitcast {pointer_to('i8')} %workspace to {f.pointer}")
    few = f.emit(f"icmp ule i64 %m, {2 * tile.rows}")
    f.line(f"%b_stays = and i1 {few}, {f.emit('icmp eq i64 %b_column, 1')}")
    f.line(f"%a_stays = icmp ule i64 %n, {4 * tile.columns}")

    def pair(index):
        starts = [f.at(f"%{x}", f.i64("mul", index, f"%{x}_batch")) for x in "abc"]
        write_product(f, tile, limits, *starts)

    write_times(f, "%batch", pair)


def parameters(f):
    """Return the parameters: sizes, addresses, and distances in numbers."""
    p = f.pointer
    return (
        "i64 %batch, i64 %m, i64 %n, i64 %k, "
        f"{p} %a, i64 %a_batch, i64 %a_row, i64 %a_column, "
        f"{p} %b, i64 %b_batch, i64 %b_row, i64 %b_column, "
        f"{p} %c, i64 %c_batch, i64 %c_row, {pointer_to('i8')} %workspace"
    )


def workspace(sizes, dtype, limits=LIMITS):
    """Return how many bytes the packed panels of a product take, on any target."""
    _, m, n, k = sizes
    rows = min(m, limits.rows) + 12
    columns = min(n, limits.columns) + 2 * (128 // dtype.itemsize)
    return (rows + columns) * min(k, limits.depth) * dtype.itemsize


@functools.cache
def function(dtype, target, limits=LIMITS):
    """Return the `FunctionText` of products of any size: ``gemm_f32`` and its like.

    Its parameters are those of `parameters`. The columns of c lie side by side;
    ``%workspace`` has as many bytes as `workspace` says.
    """
    tile, f = tile_of(dtype, target), MatrixText(dtype)
    write_gemm(f, tile, limits)
    called = {f"tile_{short_name(dtype)}": any_tile_function(dtype, tile)}
    for part in parts_of(tile):
        called[name_of(dtype, part)] = tile_function(dtype, part)
    for width in (tile.rows, tile.columns):
        name = name_of_pack(dtype, width)
        called[name] = pack_function(dtype, width, tile.lanes)
    needed = {}
    for name, made in called.items():
        needed |= made.needed | {name: made.text}
    made = function_text(f, name_of_gemm(dtype), parameters(f), linkage="")
    return FunctionText(made.text, needed)


def name_of_gemm(dtype):
    """Return the name of the function for a dtype."""
    return f"gemm_{short_name(dtype)}"


@functools.cache
def library(dtype, target):
    """Return the machine code of `function`; it is made once."""
    return TargetLibrary(module_text([function(dtype, target)]), target)


def address(dtype, target):
    """Return the address of the machine code of `function`."""
    return library(dtype, target).engine.get_function_address(name_of_gemm(dtype))
