"""Cache blocking (gemm): products of blocks, made of panels, made of tiles.

Reference: F. Van Zee and R. van de Geijn, *BLIS: a framework for rapidly instantiating
BLAS functionality* (ACM Transactions on Mathematical Software, 2015).
"""

# Made from chapters/25_matmul.md by `make chapter`;
# edit the chapter, not this file.

from typing import NamedTuple

from minijax.arrays.dtypes import short_name
from minijax.forgetting.remembering import made_once
from minijax.llvm.instructions import made_of_instructions
from minijax.llvm.kernel_text import FunctionText, module_text
from minijax.llvm.lanes import on_stack
from minijax.llvm.targets import TargetLibrary
from minijax.llvm.types import pointer_to, type_of
from minijax.llvm.writing import LLVMFunction
from minijax.matmul.edges import any_tile_function, parts_of, write_any_call
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
from minijax.matmul.tiles import (
    Matrix,
    Tile,
    TileCall,
    function_text,
    name_of,
    name_of_any,
    tile_function,
    tile_of,
)


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


class Panels(NamedTuple):
    """How an operand is divided into panels.

    Attributes:
      width: the rows in a panel.
      stays: whether panels may stay where they are...
      unit: ...if the number of their rows is a multiple of this.
    """

    width: int
    stays: str
    unit: int


class Block(NamedTuple):
    """A block of an operand, with panels of its rows; that of b is transposed.

    Attributes:
      panels: the `Panels`.
      matrix: where the block lies.
      depth: how many terms it has.
      packed: the address of its packed panels.
    """

    panels: Panels
    matrix: Matrix
    depth: str
    packed: str

    def places(self, f, start):
        """Write where a panel lies, and where it lies when it is packed."""
        here, place = self.matrix.part(f, start), reckon(f, "mul", start, self.depth)
        packed = f.at(here.kind, self.packed, place)
        return here, Matrix(here.kind, packed, 1, self.panels.width)

    def stays(self, f, count):
        """Write whether a panel of so many rows stays where it is."""
        rest = reckon(f, "rem", count, self.panels.unit)
        return both(f, self.panels.stays, holds(f, "eq", rest, 0))

    def panel(self, f, start, count):
        """Write where the tiles read a panel; return the `Matrix`."""
        stays, (here, packed) = self.stays(f, count), self.places(f, start)
        address = f.choose(stays, here.address, packed.address, pointer_to(here.kind))
        pairs = zip(here[2:], packed[2:])
        return Matrix(here.kind, address, *[f.choose(stays, *pair) for pair in pairs])


class Blocking(NamedTuple):
    """How a product is divided.

    Attributes:
      tile, limits: the `Tile`, and the `Limits` of blocks.
      left, right: the `Panels` of the operands.
      space: the address of the memory for packed panels.
    """

    tile: Tile
    limits: Limits
    left: Panels
    right: Panels
    space: str


def write_packing(f, dtype, block, size):
    """Write the packing of the panels that do not stay where they are."""
    pointer, width = pointer_to(block.matrix.kind), block.panels.width

    def panel(start, count):
        here, packed = block.places(f, start)
        sizes = [("i64", x) for x in (count, block.depth, here.row, here.column)]
        args = [*sizes, (pointer, here.address), (pointer, packed.address)]
        moves = f.operation("not", [block.stays(f, count)], BOOL, BOOL)
        name = name_of_pack(dtype, width)
        f.when(moves, lambda: f.call("void", name, *args, own=True))

    write_panels(f, size, width, panel)


def write_tiles(f, tile, left, right, c, sizes, more):
    """Write loops 4 and 5: the tiles of two blocks, `left` of a and `right` of b."""
    m, n = sizes

    def across(column, wide):  # loop 4: panels of b
        b = right.panel(f, column, wide).transposed()

        def down(row, high):  # loop 5: panels of a
            a, there = left.panel(f, row, high), c.part(f, row, column)
            call = TileCall(left.depth, a, b, there, more)
            write_any_call(f, tile, high, wide, call)

        write_panels(f, m, left.panels.width, down)

    write_panels(f, n, right.panels.width, across)


def write_product(f, blocking, a, b, c):
    """Write the product of two matrices: loops 1 to 3, and what is in them."""
    tile, limits, dtype = blocking.tile, blocking.limits, blocking.tile.dtype

    def columns(column, n):  # loop 1: blocks of columns
        write_parts(f, "%k", limits.depth, 4, lambda *part: terms(column, n, *part))

    def terms(column, n, term, depth):  # loop 2: blocks of terms
        source = b.part(f, term, column).transposed()
        right = Block(blocking.right, source, depth, blocking.space)
        write_packing(f, dtype, right, n)
        used = reckon(f, "mul", reckon(f, "add", n, tile.columns), depth)
        behind, more = f.at(b.kind, blocking.space, used), holds(f, "ne", term, 0)

        def rows(row, m):  # loop 3: blocks of rows
            left = Block(blocking.left, a.part(f, row, term), depth, behind)
            write_packing(f, dtype, left, m)
            there = c.part(f, row, column)
            write_tiles(f, tile, left, right, there, (m, n), more)

        write_parts(f, "%m", limits.rows, tile.rows, rows)

    write_parts(f, "%n", limits.columns, tile.columns, columns)


def panels_of(f, tile):
    """Write which operands may stay where they are; return their `Panels`."""
    few = holds(f, "le", "%m", 2 * tile.rows)
    a, b = holds(f, "le", "%n", 4 * tile.columns), holds(f, "eq", "%b_column", 1)
    wide, b = tile.columns, both(f, few, b)
    return Panels(tile.rows, a, 4), Panels(wide, b, wide)


def write_gemm(f, tile, limits):
    """Write the product of matrices, one pair of them after the other."""
    kind = type_of(tile.dtype)
    f.lines += on_stack("%apart", kind, tile.rows * tile.columns * tile.dtype.itemsize)
    space = f.cast("i8", "%workspace", kind)
    left, right = panels_of(f, tile)
    blocking = Blocking(tile, limits, left, right, space)

    def pair(index):
        write_product(f, blocking, *[in_batch(f, kind, x, index) for x in "abc"])

    times(f, "%batch", pair)


def in_batch(f, kind, name, index):
    """Write where a matrix of a batch lies; return the `Matrix`."""
    start = f.at(kind, f"%{name}", reckon(f, "mul", index, f"%{name}_batch"))
    column = 1 if name == "c" else f"%{name}_column"
    return Matrix(kind, start, f"%{name}_row", column)


def parameters(dtype):
    """Return the parameters: sizes, addresses, and distances in numbers."""
    kinds = {letter: pointer_to(type_of(dtype)) for letter in "abc"}
    kinds["workspace"] = pointer_to("i8")
    names = "batch m n k a a_batch a_row a_column b b_batch b_row b_column"
    names = f"{names} c c_batch c_row workspace".split()
    return [(kinds.get(name, "i64"), f"%{name}") for name in names]


@made_of_instructions
def function(dtype, target, limits=LIMITS, pairs=False):
    """Return the `FunctionText` of products of any size: ``gemm_f32`` and its like.

    Its parameters are those of `parameters`. The columns of c lie side by side;
    ``%workspace`` has as many bytes as `workspace` says. With `pairs`, the numbers of
    the operands are pairs of short integers (`minijax.matmul.pairs`).
    """
    tile, f = tile_of(dtype, target)._replace(pairs=pairs), LLVMFunction()
    write_gemm(f, tile, limits)
    made, whole = any_tile_function(tile), name_of_any(tile)
    called = {**f.needed, **made.needed, whole: made.text}
    for part in parts_of(tile):
        made = tile_function(part)
        called |= made.needed | {name_of(part): made.text}
    for width in (tile.rows, tile.columns):
        called[name_of_pack(dtype, width)] = pack_function(dtype, width, tile.lanes)
    name = name_of_gemm(dtype, pairs)
    made = function_text(f, name, parameters(dtype), linkage="")
    return FunctionText(made.text, called)


def name_of_gemm(dtype, pairs=False):
    """Return the name of the function for a dtype."""
    return f"gemm_{short_name(dtype)}{'_pairs' * pairs}"


@made_once
def library(dtype, target, pairs=False):
    """Return the machine code of `function`, which stays as long as the process."""
    made = module_text([function(dtype, target, pairs=pairs)])
    return TargetLibrary(made, target)


def address(dtype, target, pairs=False):
    """Return the address of the machine code of `function`."""
    engine = library(dtype, target, pairs).engine
    return engine.get_function_address(name_of_gemm(dtype, pairs))
