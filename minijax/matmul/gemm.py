"""Matrix products: register tiles, cache blocking, remainder tiles (gemm).

References: K. Goto and R. van de Geijn, *Anatomy of high-performance matrix
multiplication* (ACM Transactions on Mathematical Software, 2008), F. Van Zee and R.
van de Geijn, *BLIS: a framework for rapidly instantiating BLAS functionality* (ACM
Transactions on Mathematical Software, 2015).
"""

# Made from chapters/25_matmul.md by `make chapter`;
# edit the chapter, not this file.

import itertools
from typing import NamedTuple

import numpy as np

from minijax.arrays.dtypes import short_dtype_name
from minijax.llvm.codegen import FunctionIR, module_ir
from minijax.llvm.instructions import (
    FunctionBuilder,
    cached_until_redefined,
    llvm_type,
    pointer_type,
    vector_type,
)
from minijax.llvm.targets import TargetLibrary
from minijax.llvm.vectors import (
    emit_alloca,
    emit_masked_load,
    emit_masked_store,
    step_vector,
)
from minijax.matmul.packing import (
    BOOL_DTYPE,
    emit_and,
    emit_ceil_div,
    emit_compare,
    emit_even_blocks,
    emit_fma_pairs,
    emit_for,
    emit_int_op,
    emit_panel_loop,
    pack_function,
    pack_name,
    row_offsets,
)
from minijax.rematerialization.caching import memoize

# Register tiling: a part of a product whose sums stay in registers.


def emit_fma(f, dtype, x, y, z, lanes):
    """Write ``x * y + z``: one instruction, where the processor has it."""
    xy = f.operation("mul", [x, y], dtype, dtype, lanes, "contract ")
    return f.operation("add", [xy, z], dtype, dtype, lanes, "contract ")


def function_ir(f, name, params, linkage="internal "):
    """Return the `FunctionIR` of what has been written."""
    text = f.definition(name, params, "nounwind noinline", linkage=linkage)
    return FunctionIR(text, f.needed)


class MicroTile(NamedTuple):
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


def emit_sums(f, tile):
    """Write the loop over the terms of the sums; return the names of the sums.

    The function has the parameters of `microkernel_parameters`.
    """
    kind, lanes = llvm_type(tile.dtype), tile.lanes
    multiply = emit_fma_pairs if tile.pairs else emit_fma
    distances = row_offsets(f, tile.rows)

    def body(_, values):
        a, b, *sums = values
        y = [f.load(kind, f.at(kind, b, v * lanes), lanes) for v in range(tile.vectors)]
        x = [f.load(kind, f.at(kind, a, distance)) for distance in distances]
        x = [f.splat(kind, number, lanes) for number in x]
        factors = [(x[row], y[number]) for row, number in tile.places]
        terms = zip(factors, sums)
        sums = [multiply(f, tile.dtype, *pair, z, lanes) for pair, z in terms]
        return [f.at(kind, a, "%a_column"), f.at(kind, b, "%b_row"), *sums]

    zeros = [(vector_type(kind, lanes), "zeroinitializer")] * len(tile.places)
    starts = [(pointer_type(kind), "%a"), (pointer_type(kind), "%b")]
    return f.loop("%k", [*starts, *zeros], body)[2:]


def emit_tile(f, tile, finish=None):
    """Write a tile of a product: rows of the left times columns of the right.

    Where ``%more`` is true, they are added to what is there.

    Args:
      f: the `FunctionBuilder`, with the parameters of `microkernel_parameters`.
      tile: a `MicroTile`.
      finish: what becomes of a vector of sums before it is stored: a function of f,
        the vector's row and its number in the row, and its name.
    """
    places = emit_tile_addresses(f, tile)
    sums = emit_accumulate(f, tile, emit_sums(f, tile), places)
    for (row, number), x, address in zip(tile.places, sums, places):
        x = finish(f, row, number, x) if finish else x
        f.store(llvm_type(tile.dtype), x, address, tile.lanes)


def emit_tile_addresses(f, tile):
    """Write where the vectors of a tile of the result are."""
    kind, lanes = llvm_type(tile.dtype), tile.lanes
    starts = [emit_int_op(f, "mul", "%c_row", row) for row in range(tile.rows)]
    rows = [f.at(kind, "%c", start) for start in starts]
    return [f.at(kind, rows[row], number * lanes) for row, number in tile.places]


def emit_accumulate(f, tile, sums, addresses):
    """Write what is added where there is more; return the names of the totals."""
    kind = vector_type(llvm_type(tile.dtype), tile.lanes)

    def added():
        pairs = zip(sums, addresses)
        return [emit_addition(f, tile.dtype, *pair, tile.lanes) for pair in pairs]

    return f.if_then("%more", added, [(kind, x) for x in sums])


def emit_addition(f, dtype, x, address, lanes):
    """Write the sum of numbers and those that are in memory."""
    there = f.load(llvm_type(dtype), address, lanes)
    return f.operation("add", [there, x], dtype, dtype, lanes)


def microkernel_parameters(dtype):
    """Return the parameters of a function that computes a tile."""
    names = "%k %a %a_row %a_column %b %b_row %c %c_row %more".split()
    kinds = {name: pointer_type(llvm_type(dtype)) for name in ("%a", "%b", "%c")}
    return [((kinds | {"%more": "i1"}).get(name, "i64"), name) for name in names]


def microkernel_function(tile, finish=None):
    """Return the `FunctionIR` of a tile."""
    f = FunctionBuilder()
    emit_tile(f, tile, finish)
    return function_ir(f, microkernel_name(tile), microkernel_parameters(tile.dtype))


def microkernel_name(tile):
    """Return the name of the function for a tile."""
    return f"{edge_tile_name(tile)}_{tile.rows}_{tile.vectors}"


def edge_tile_name(tile):
    """Return the name of the function for tiles and parts of them."""
    return f"tile_{short_dtype_name(tile.dtype)}{'_pairs' * tile.pairs}"


class StridedMatrix(NamedTuple):
    """Where a matrix lies: an address, and the distances of its rows and columns."""

    kind: str  # LLVM's type of a number
    address: str
    row: object
    column_stride: object = 1

    def part(self, f, row, column=0):
        """Write where the part lies that begins at a row and a column."""
        steps = [(row, self.row), (column, self.column_stride)]
        places = [
            count if step == 1 else emit_int_op(f, "mul", count, step)
            for count, step in steps
            if count != 0
        ]
        return self._replace(address=f.at(self.kind, self.address, *places))

    def transposed(self):
        """Return the matrix with rows and columns exchanged."""
        return self._replace(row=self.column_stride, column_stride=self.row)


class MicrokernelCall(NamedTuple):
    """What the function of a tile is given."""

    k: object  # how many terms
    a: StridedMatrix  # a panel of the left operand
    b: StridedMatrix  # a panel of the right one, whose columns lie side by side
    c: StridedMatrix  # the tile's place in the result, in which they do as well
    more: str  # whether the sums are added to what is there

    @property
    def numbers(self):
        """The arguments, in the order of `microkernel_parameters`."""
        return self.k, *self.a[1:], *self.b[1:3], *self.c[1:3], self.more


def emit_microkernel_call(f, tile, call):
    """Write the call of a tile's function."""
    kinds, _ = zip(*microkernel_parameters(tile.dtype))
    f.call("void", microkernel_name(tile), *zip(kinds, call.numbers), own=True)


def micro_tile_for(dtype, target):
    """Return the `MicroTile` that fills the registers of a target, but for a few."""
    lanes = target.lanes(dtype)
    if target.vector_bytes == 64:
        return MicroTile(12, 2, lanes, dtype)
    return MicroTile(target.registers // 4, 3 if lanes > 2 else 2, lanes, dtype)


# Cache blocking (gemm): products of blocks, made of panels, made of tiles.


class BlockSizes(NamedTuple):
    """How many terms of the sums, rows and columns a block has at most."""

    depth: int = 512
    rows: int = 96
    columns: int = 1024


BLOCK_SIZES = BlockSizes()


def packed_panel_bytes(sizes, dtype, limits=BLOCK_SIZES):
    """Return how many bytes the packed panels of a product take, on any target."""
    _, m, n, k = sizes
    rows = min(m, limits.rows) + 12
    columns = min(n, limits.columns) + 2 * (128 // dtype.itemsize)
    return (rows + columns) * min(k, limits.depth) * dtype.itemsize


# Remainder tiles: what is computed where a whole tile does not fit.


def edge_tiles(tile):
    """Return the tiles that are computed instead where a smaller one is enough."""
    return [
        tile._replace(rows=rows, vectors=vectors)
        for rows in range(4, tile.rows + 1, 4)
        for vectors in range(1, tile.vectors + 1)
    ]


def emit_any_tile(f, tile):
    """Write a tile of ``%rows`` rows and ``%columns`` columns, as many as fit or fewer.

    The smallest tile that holds them is computed. If they do not fill it, it is
    computed apart, and what belongs to the result is copied.
    """
    kind, lanes = llvm_type(tile.dtype), tile.lanes
    fours, vectors = emit_ceil_div(f, "%rows", 4), emit_ceil_div(f, "%columns", lanes)
    even = emit_compare(f, "eq", emit_int_op(f, "mul", fours, 4), "%rows")
    filled = emit_compare(f, "eq", emit_int_op(f, "mul", vectors, lanes), "%columns")
    whole = emit_and(f, even, filled)
    c = f.select(whole, "%c", "%apart", pointer_type(kind))
    result = StridedMatrix(kind, c, f.select(whole, "%c_row", tile.columns))
    panels = (
        StridedMatrix(kind, "%a", "%a_row", "%a_column"),
        StridedMatrix(kind, "%b", "%b_row"),
    )
    call = MicrokernelCall("%k", *panels, result, emit_and(f, whole, "%more"))
    for part in edge_tiles(tile):
        counts = (fours, part.rows // 4), (vectors, part.vectors)
        fits = [emit_compare(f, "eq", *pair) for pair in counts]
        f.if_then(
            emit_and(f, *fits), lambda part=part: emit_microkernel_call(f, part, call)
        )
    rest = f.select(whole, 0, "%rows")
    emit_for(f, rest, lambda row: emit_row_back(f, row, tile))


def emit_row_back(f, row, tile):
    """Write the copy of a row of the tile that was computed apart."""
    kind, lanes = llvm_type(tile.dtype), tile.lanes
    vector, dtype = vector_type(kind, lanes), tile.dtype
    source = f.at(kind, "%apart", emit_int_op(f, "mul", row, tile.columns))
    place = f.at(kind, "%c", emit_int_op(f, "mul", row, "%c_row"))

    def copy(start, count):
        mask = emit_mask(f, count, lanes)
        x = f.load(kind, f.at(kind, source, start), lanes)
        there = f.cast(kind, f.at(kind, place, start), vector)

        def added():
            old = emit_masked_load(f, kind, there, lanes, mask)
            return [f.operation("add", [old, x], dtype, dtype, lanes)]

        [total] = f.if_then("%more", added, [(vector, x)])
        emit_masked_store(f, kind, there, total, lanes, mask)

    emit_panel_loop(f, "%columns", lanes, copy)


def emit_mask(f, count, lanes):
    """Write the mask of the first lanes, so many."""
    limit = f.splat("i32", f.emit(f"trunc i64 {count} to i32"), lanes)
    return f.emit(f"icmp ult <{lanes} x i32> {step_vector('i32', lanes)}, {limit}")


def edge_tile_function(tile):
    """Return the `FunctionIR` of a tile, or of a part of one."""
    f = FunctionBuilder()
    emit_any_tile(f, tile)
    return function_ir(f, edge_tile_name(tile), any_operands(tile.dtype))


def any_operands(dtype):
    """Return the parameters of `edge_tile_function`."""
    sizes = ("i64", "%rows"), ("i64", "%columns")
    return [
        *sizes,
        *microkernel_parameters(dtype),
        (pointer_type(llvm_type(dtype)), "%apart"),
    ]


def emit_edge_tile_call(f, tile, rows, columns, call):
    """Write the call of the function for any tile; `call` is a `MicrokernelCall`."""
    kinds, _ = zip(*any_operands(tile.dtype))
    numbers = rows, columns, *call.numbers, "%apart"
    f.call("void", edge_tile_name(tile), *zip(kinds, numbers), own=True)


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


class PackedBlock(NamedTuple):
    """A block of an operand, with panels of its rows; that of b is transposed.

    Attributes:
      panels: the `Panels`.
      matrix: where the block lies.
      depth: how many terms it has.
      packed: the address of its packed panels.
    """

    panels: Panels
    matrix: StridedMatrix
    depth: str
    packed: str

    def places(self, f, start):
        """Write where a panel lies, and where it lies when it is packed."""
        here = self.matrix.part(f, start)
        place = emit_int_op(f, "mul", start, self.depth)
        packed = f.at(here.kind, self.packed, place)
        return here, StridedMatrix(here.kind, packed, 1, self.panels.width)

    def stays(self, f, count):
        """Write whether a panel of so many rows stays where it is."""
        rest = emit_int_op(f, "rem", count, self.panels.unit)
        return emit_and(f, self.panels.stays, emit_compare(f, "eq", rest, 0))

    def panel(self, f, start, count):
        """Write where the tiles read a panel; return the `StridedMatrix`."""
        stays, (here, packed) = self.stays(f, count), self.places(f, start)
        address = f.select(stays, here.address, packed.address, pointer_type(here.kind))
        pairs = zip(here[2:], packed[2:])
        return StridedMatrix(
            here.kind, address, *[f.select(stays, *pair) for pair in pairs]
        )


class Blocking(NamedTuple):
    """How a product is divided.

    Attributes:
      tile, limits: the `MicroTile`, and the `BlockSizes` of blocks.
      left, right: the `Panels` of the operands.
      space: the address of the memory for packed panels.
    """

    tile: MicroTile
    limits: BlockSizes
    left: Panels
    right: Panels
    space: str


def emit_packing(f, dtype, block, size):
    """Write the packing of the panels that do not stay where they are."""
    pointer, width = pointer_type(block.matrix.kind), block.panels.width

    def panel(start, count):
        here, packed = block.places(f, start)
        sizes = [("i64", x) for x in (count, block.depth, here.row, here.column_stride)]
        args = [*sizes, (pointer, here.address), (pointer, packed.address)]
        moves = f.operation("not", [block.stays(f, count)], BOOL_DTYPE, BOOL_DTYPE)
        name = pack_name(dtype, width)
        f.if_then(moves, lambda: f.call("void", name, *args, own=True))

    emit_panel_loop(f, size, width, panel)


def emit_macrokernel(f, tile, left, right, c, sizes, more):
    """Write loops 4 and 5: the tiles of two blocks, `left` of a and `right` of b."""
    m, n = sizes

    def across(column, wide):  # loop 4: panels of b
        b = right.panel(f, column, wide).transposed()

        def down(row, high):  # loop 5: panels of a
            a, there = left.panel(f, row, high), c.part(f, row, column)
            call = MicrokernelCall(left.depth, a, b, there, more)
            emit_edge_tile_call(f, tile, high, wide, call)

        emit_panel_loop(f, m, left.panels.width, down)

    emit_panel_loop(f, n, right.panels.width, across)


def emit_product(f, blocking, a, b, c):
    """Write the product of two matrices: loops 1 to 3, and what is in them."""
    tile, limits, dtype = blocking.tile, blocking.limits, blocking.tile.dtype

    def columns(column, n):  # loop 1: blocks of columns
        emit_even_blocks(
            f, "%k", limits.depth, 4, lambda *part: terms(column, n, *part)
        )

    def terms(column, n, term, depth):  # loop 2: blocks of terms
        source = b.part(f, term, column).transposed()
        right = PackedBlock(blocking.right, source, depth, blocking.space)
        emit_packing(f, dtype, right, n)
        # The packed panels of b come first, and take `used` numbers; then those of a.
        used = emit_int_op(f, "mul", emit_int_op(f, "add", n, tile.columns), depth)
        behind = f.at(b.kind, blocking.space, used)
        more = emit_compare(f, "ne", term, 0)

        def rows(row, m):  # loop 3: blocks of rows
            left = PackedBlock(blocking.left, a.part(f, row, term), depth, behind)
            emit_packing(f, dtype, left, m)
            there = c.part(f, row, column)
            emit_macrokernel(f, tile, left, right, there, (m, n), more)

        emit_even_blocks(f, "%m", limits.rows, tile.rows, rows)

    emit_even_blocks(f, "%n", limits.columns, tile.columns, columns)


def panels_of(f, tile):
    """Write which operands may stay where they are; return their `Panels`."""
    few = emit_compare(f, "le", "%m", 2 * tile.rows)
    a = emit_compare(f, "le", "%n", 4 * tile.columns)
    b = emit_compare(f, "eq", "%b_column", 1)
    wide, b = tile.columns, emit_and(f, few, b)
    return Panels(tile.rows, a, 4), Panels(wide, b, wide)


def emit_gemm(f, tile, limits):
    """Write the product of matrices, one pair of them after the other."""
    kind = llvm_type(tile.dtype)
    f.lines += emit_alloca(
        "%apart", kind, tile.rows * tile.columns * tile.dtype.itemsize
    )
    space = f.cast("i8", "%workspace", kind)
    left, right = panels_of(f, tile)
    blocking = Blocking(tile, limits, left, right, space)

    def pair(index):
        emit_product(f, blocking, *[in_batch(f, kind, x, index) for x in "abc"])

    emit_for(f, "%batch", pair)


def in_batch(f, kind, name, index):
    """Write where a matrix of a batch lies; return the `StridedMatrix`."""
    start = f.at(kind, f"%{name}", emit_int_op(f, "mul", index, f"%{name}_batch"))
    column = 1 if name == "c" else f"%{name}_column"
    return StridedMatrix(kind, start, f"%{name}_row", column)


def gemm_parameters(dtype):
    """Return the parameters: sizes, addresses, and distances in numbers."""
    kinds = {letter: pointer_type(llvm_type(dtype)) for letter in "abc"}
    kinds["workspace"] = pointer_type("i8")
    names = "batch m n k a a_batch a_row a_column b b_batch b_row b_column"
    names = f"{names} c c_batch c_row workspace".split()
    return [(kinds.get(name, "i64"), f"%{name}") for name in names]


@cached_until_redefined
def gemm_function(dtype, target, limits=BLOCK_SIZES, pairs=False):
    """Return the `FunctionIR` of products of any size: ``gemm_f32`` and its like.

    Its parameters are those of `gemm_parameters`. The columns of c lie side by side;
    ``%packed_panel_bytes`` has as many bytes as `packed_panel_bytes` says. With
    `pairs`, the numbers of the operands are pairs of short integers
    (`minijax.matmul.packing`).
    """
    tile, f = micro_tile_for(dtype, target)._replace(pairs=pairs), FunctionBuilder()
    emit_gemm(f, tile, limits)
    made, whole = edge_tile_function(tile), edge_tile_name(tile)
    called = {**f.needed, **made.needed, whole: made.text}
    for part in edge_tiles(tile):
        made = microkernel_function(part)
        called |= made.needed | {microkernel_name(part): made.text}
    for width in (tile.rows, tile.columns):
        called[pack_name(dtype, width)] = pack_function(dtype, width, tile.lanes)
    name = gemm_name(dtype, pairs)
    made = function_ir(f, name, gemm_parameters(dtype), linkage="")
    return FunctionIR(made.text, called)


def gemm_name(dtype, pairs=False):
    """Return the name of the function for a dtype."""
    return f"gemm_{short_dtype_name(dtype)}{'_pairs' * pairs}"


@memoize
def gemm_library(dtype, target, pairs=False):
    """Return the machine code of `gemm_function`; it stays as long as the process."""
    made = module_ir([gemm_function(dtype, target, pairs=pairs)])
    return TargetLibrary(made, target)


def gemm_address(dtype, target, pairs=False):
    """Return the address of the machine code of `gemm_function`."""
    engine = gemm_library(dtype, target, pairs).engine
    return engine.get_function_address(gemm_name(dtype, pairs))
