"""Register tiling of convolutions: tiles whose sums over taps stay in registers.

Reference: E. Georganas et al., *Anatomy of high-performance deep learning convolutions
on SIMD architectures* (SC 2018).
"""

# Made from chapters/30_windows_ground.md by `make chapter`;
# edit the chapter, not this file.

import math
from collections import Counter
from typing import NamedTuple

import numpy as np

from minijax.arrays.dtypes import short_name
from minijax.forgetting.remembering import made_once
from minijax.jitting.costs import FLOPS
from minijax.kernels.backends import array_of
from minijax.kernels.parts import sha256
from minijax.kernels.program_steps import StepKind, cost_of_moving, step_kinds
from minijax.kernels.views import View, whole
from minijax.llvm.compiler import make_known
from minijax.llvm.kernel_text import module_text
from minijax.llvm.targets import TargetLibrary
from minijax.llvm.types import pointer_to, type_of, vector_type
from minijax.llvm.writing import LLVMFunction
from minijax.matmul.sizes import reckon
from minijax.matmul.tiles import (
    Tile,
    function_text,
    multiply_add,
    tile_addresses,
    write_more,
)

UNIT = 64  # bytes


def columns_in_unit(dtype):
    """Return how many numbers a unit of columns has."""
    return UNIT // dtype.itemsize


def tap_tile(dtype, target, units):
    """Return the tallest `Tile` of so many units of columns that fits in registers."""
    lanes = target.lanes(dtype)
    vectors = units * columns_in_unit(dtype) // lanes
    return Tile(max(target.registers * 3 // 4 // vectors, 1), vectors, lanes, dtype)


def units_at_once(dtype, target):
    """Return how many units of columns a tile has."""
    return 2 if target.vector_bytes == UNIT else 1


def tap_parameters(dtype):
    """Return the parameters of a tile's function: numbers, addresses, distances."""
    kinds = {letter: pointer_to(type_of(dtype)) for letter in "abc"}
    kinds |= {"table": pointer_to("i32"), "more": "i1"}
    names = "taps table k a a_row a_column b b_row b_unit c c_row more".split()
    return [(kinds.get(name, "i64"), f"%{name}") for name in names]


def write_taps(f, tile):
    """Write the loops over taps and over the numbers of one; return the sums."""
    kind, lanes = type_of(tile.dtype), tile.lanes
    unit = columns_in_unit(tile.dtype)
    rows = [reckon(f, "mul", "%a_row", row) for row in range(tile.rows)]
    starts = [divmod(v * lanes, unit) for v in range(tile.vectors)]
    units = [reckon(f, "mul", "%b_unit", number) for number, _ in starts]

    def term(_, values):
        a, b, *sums = values
        places = [f.at(kind, b, u, rest) for u, (_, rest) in zip(units, starts)]
        y = [f.load(kind, place, lanes) for place in places]
        x = [f.wide(kind, f.load(kind, f.at(kind, a, row)), lanes) for row in rows]
        pairs = [(x[row], y[number]) for row, number in tile.places]
        sums = [multiply_add(f, tile.dtype, *p, s, lanes) for p, s in zip(pairs, sums)]
        return [f.at(kind, a, "%a_column"), f.at(kind, b, "%b_row"), *sums]

    def tap(index, sums):
        place = reckon(f, "mul", index, 2)
        there = [f.at("i32", "%table", place, number) for number in range(2)]
        a, b = [f.emit(f"sext i32 {f.load('i32', x)} to i64") for x in there]
        pointers = [f.at(kind, "%a", a), f.at(kind, "%b", b)]
        carried = [(pointer_to(kind), pointer) for pointer in pointers]
        return f.loop("%k", [*carried, *zip(vectors, sums)], term)[2:]

    vectors = [vector_type(kind, lanes)] * len(tile.places)
    return f.loop("%taps", [(x, "zeroinitializer") for x in vectors], tap)


def write_tap_tile(f, tile):
    """Write a tile; where ``%more`` is true, it is added to what is there."""
    places = tile_addresses(f, tile)
    sums = write_more(f, tile, write_taps(f, tile), places)
    for x, address in zip(sums, places):
        f.store(type_of(tile.dtype), x, address, tile.lanes)


@made_once
def tap_library(tile, target):
    """Return a tile's function, known to LLVM by its name, and that name."""
    which = sha256(target.key.encode()).hexdigest()[:8]
    name = f"taps_{short_name(tile.dtype)}_{tile.rows}_{tile.vectors}_{which}"
    f = LLVMFunction()
    write_tap_tile(f, tile)
    made = function_text(f, name, tap_parameters(tile.dtype), linkage="")
    library = TargetLibrary(module_text([made]), target)
    make_known(name, library.engine.get_function_address(name))
    return library, name


DEPTH = 1024  # terms that are summed before the next tile begins


class Loop(NamedTuple):
    """So many turns, and how far each moves in the array, the window, the result."""

    count: int
    a: int
    b: int
    c: int


class TapProduct(NamedTuple):
    """A step: tiles of a convolution.

    Attributes:
      image, weights, out: views of the array, of the numbers of the window with the
        features of the result in units, and of the result with its features last.
      table: view of int32 with a row for each tap: where it is in the array, and in
        the numbers of the window.
      outer: tuple of `Loop`, around the tiles.
      rows, terms: the `Loop` of the rows of a tile, and of the numbers within a tap.
      unit: the distance of two units of features in the numbers of the window.
    """

    image: View
    weights: View
    out: View
    table: View
    outer: tuple
    rows: Loop
    terms: Loop
    unit: int

    @property
    def programs(self):
        """The programs within the step: none."""
        return ()

    @property
    def reads(self):
        """The buffers that the step reads."""
        return [self.image.source, self.weights.source, self.table.source]

    @property
    def writes(self):
        """The buffers that the step writes to."""
        return [self.out.source]

    @property
    def columns(self):
        """How many features of the result there are, whole units."""
        return self.out.shape[-1]

    def __str__(self):
        loops = " × ".join(str(loop.count) for loop in (*self.outer, self.rows))
        sums = f"{self.table.shape[0]} × {self.terms.count}"
        return (
            f"{self.out} = taps {self.image} {self.weights} for {loops}, sums of {sums}"
        )


def walked(view, memory, *loops):
    """Return an array of what loops reach: pairs of a count and a distance."""
    flat = whole(view.source, view.dtype, (view.source.size,))
    data = array_of(flat, memory)[view.offset :]
    counts, strides = zip(*loops)
    strides = [stride * view.dtype.itemsize for stride in strides]
    return np.lib.stride_tricks.as_strided(data, counts, strides)


def multiplied_taps(program, step):
    """Return a function of the memory that does a `TapProduct`, as NumPy does it."""
    unit = columns_in_unit(step.out.dtype)
    units = step.columns // unit

    def run(memory):
        table, loops = array_of(step.table, memory), (*step.outer, step.rows)
        numbers = [(units, unit), (unit, 1)]
        out = walked(step.out, memory, *[(x.count, x.c) for x in loops], *numbers)
        total = np.zeros(out.shape, out.dtype)
        for a, b in table.tolist():
            image = step.image._replace(offset=step.image.offset + a)
            weights = step.weights._replace(offset=step.weights.offset + b)
            terms = step.terms
            pairs = [*[(x.count, x.a) for x in loops], (1, 0), (terms.count, terms.a)]
            x = walked(image, memory, *pairs)
            pairs = [(x.count, x.b) for x in step.outer]
            pairs += [(units, step.unit), (terms.count, terms.b), (unit, 1)]
            y = walked(weights, memory, *pairs)
            total += np.einsum(
                "...mut,...utj->...muj",
                np.broadcast_to(x, (*x.shape[:-2], units, x.shape[-1])),
                y,
            )
        out[...] = total

    return run


def cost_of_taps(step):
    """Return the costs of a `TapProduct`."""
    loops = (*step.outer, step.rows, step.terms)
    count = math.prod(x.count for x in loops) * step.table.shape[0] * step.columns
    return Counter({FLOPS: 2 * count}) + cost_of_moving(step)


def write_tap_product(f, step):
    """Write the loops around the tiles: blocks of taps, columns, the rest, rows."""
    kind, target = type_of(step.out.dtype), f.program.target
    views = step.image, step.weights, step.out
    starts = [f.cast("i8", f.address(view.source), kind) for view in views]
    starts = [f.at(kind, x, view.offset) for x, view in zip(starts, views)]
    table = f.at("i32", f.cast("i8", f.address(step.table.source), "i32"), 0)
    block, taps = max(DEPTH // step.terms.count, 1), step.table.shape[0]
    parts = [(0, block, taps // block), (taps - taps % block, taps % block, 1)]
    for first, some, count in parts:
        if some * count:
            body = blocks_of(f, step, target, starts, table, some)
            f.turns(first, block, count, [], body)


def blocks_of(f, step, target, starts, table, taps):
    """Return a function of the first tap that writes the tiles of a block of taps."""
    kind, unit = type_of(step.out.dtype), columns_in_unit(step.out.dtype)
    at_once, units = units_at_once(step.out.dtype, target), step.columns // unit

    def block(first, _):
        here = f.at("i32", table, reckon(f, "mul", first, 2))
        more = f.emit(f"icmp ne i64 {first}, 0", "b")
        whole_tiles = [(0, at_once, units // at_once)]
        for start, some, count in [
            *whole_tiles,
            (units - units % at_once, units % at_once, 1),
        ]:

            def columns(number, _, some=some):
                b = f.at(kind, starts[1], reckon(f, "mul", number, step.unit))
                c = f.at(kind, starts[2], reckon(f, "mul", number, unit))
                tile = tap_tile(step.out.dtype, target, some)
                fixed = taps, here, more
                write_around(f, step, tile, target, fixed, (starts[0], b, c), 0)
                return []

            if some * count:
                f.turns(start, at_once, count, [], columns)
        return []

    return block


def write_around(f, step, tile, target, fixed, starts, axis):
    """Write a loop over each of the outer axes, and the rows of tiles in them."""
    if axis == len(step.outer):
        write_row_tiles(f, step, tile, target, fixed, starts)
        return
    loop, kind = step.outer[axis], type_of(step.out.dtype)

    def turn(index, _):
        moves = [reckon(f, "mul", index, move) for move in loop[1:]]
        inner = [f.at(kind, *pair) for pair in zip(starts, moves)]
        write_around(f, step, tile, target, fixed, inner, axis + 1)
        return []

    f.turns(0, 1, loop.count, [], turn)


def write_row_tiles(f, step, tile, target, fixed, starts):
    """Write the calls of tiles that divide the rows as equally as can be."""
    kind, (taps, table, more) = type_of(step.out.dtype), fixed
    parts = -(-step.rows.count // tile.rows)
    height, larger = divmod(step.rows.count, parts)
    kinds, _ = zip(*tap_parameters(step.out.dtype))
    a, b, c = starts
    for first, rows, count in [
        (0, height + 1, larger),
        (larger * (height + 1), height, parts - larger),
    ]:
        if not rows * count:
            continue
        _, name = tap_library(tile._replace(rows=rows), target)
        f.declare(f"declare void @{name}({', '.join(kinds)})")

        def some(row, _, name=name):
            there = [
                f.at(kind, start, reckon(f, "mul", row, move))
                for start, move in ((a, step.rows.a), (c, step.rows.c))
            ]
            near = step.terms.count, there[0], step.rows.a, step.terms.a
            far = b, step.terms.b, step.unit, there[1], step.rows.c, more
            args = taps, table, *near, *far
            f.call("void", name, *zip(kinds, args), own=True)
            return []

        f.turns(first, rows, count, [], some)


step_kinds[TapProduct] = StepKind(multiplied_taps, cost_of_taps, write_tap_product)
