"""Convolutions as loads and tiles: windows in kernels, packing, register tiling.

Reference: E. Georganas et al., *Anatomy of high-performance deep learning
convolutions on SIMD architectures* (SC 2018).
"""

# Made from chapters/30_windows_ground.md by `make chapter`;
# edit the chapter, not this file.

import itertools
import math
from collections import Counter
from typing import NamedTuple

import numpy as np

from minijax.arrays.array import ShapedArray
from minijax.arrays.dtypes import short_dtype_name
from minijax.jitting.stages import FLOPS
from minijax.kernels.builder import (
    Buffer,
    KernelBuilder,
    View,
    broadcast_view,
    contiguous_view,
    reshape_view,
    slice_view,
    transpose_view,
)
from minijax.kernels.ir import Affine, Guard, sha256
from minijax.kernels.lowering import StepKind, array_from_view, copy_cost, step_kinds
from minijax.llvm.codegen import module_ir
from minijax.llvm.compiler import add_symbol
from minijax.llvm.instructions import (
    FunctionBuilder,
    llvm_type,
    pointer_type,
    vector_type,
)
from minijax.llvm.targets import TargetLibrary
from minijax.matmul.gemm import (
    MicroTile,
    emit_accumulate,
    emit_fma,
    emit_tile_addresses,
    function_ir,
)
from minijax.matmul.lowering import materialize
from minijax.matmul.packing import emit_int_op
from minijax.rematerialization.caching import memoize
from minijax.windows.geometry import phases_of

# Windows as loads of a kernel: places that are even in its indices, and guards.


def groups_first(view, axis, count):
    """Return a view with an axis divided into groups, which are counted in front."""
    size, stride = view.shape[axis] // count, view.strides[axis]
    shape, strides = list(view.shape), list(view.strides)
    shape[axis] = size
    return view.replace((count, *shape), (size * stride, *strides))


def view_of_windows(view, phases, axis):
    """Return the part of a result that some phases compute; `axis` is their first."""
    return _part(view, axis, [(p.first, p.count, p.step) for p in phases])


def view_of_taps(view, phases, axis):
    """Return the part of a window that is no gap in some phases."""
    return _part(view, axis, [(p.tap, p.taps, p.tap_step) for p in phases])


def _part(view, axis, parts):
    box = [(0, size, 1) for size in view.shape]
    box[axis : axis + len(parts)] = parts
    return slice_view(view, *zip(*box))


def load_windows(k, x, phases, axes, counting, within, other=0):
    """Add the load of the elements of windows, and return its node.

    Args:
      k: a `KernelBuilder`.
      x: view of the array; its last axes are those along which windows extend.
      phases: a `Phase` for each of these.
      axes: for each of the other axes of `x`, the axis of the kernel.
      counting, within: for each phase, the axis of the kernel that counts the windows,
        and the one that counts the elements of a window.
      other: what is read where there is no element.
    """
    strides, offset, guards = [0] * len(k.sizes), x.offset, []
    for axis, stride in zip(axes, x.strides):
        strides[axis] = stride
    moving = zip(phases, x.shape[len(axes) :], x.strides[len(axes) :], counting, within)
    for phase, size, stride, window, tap in moving:
        offset += phase.place * stride
        strides[window], strides[tap] = phase.move * stride, phase.tap_move * stride
        least, most = phase.bounds()
        if least < 0 or most >= size:
            moves = {window: phase.move, tap: phase.tap_move}
            steps = tuple(moves.get(axis, 0) for axis in range(len(k.sizes)))
            guards.append(Guard(Affine(phase.place, steps), size))
    return k.load(x.replace(k.sizes, strides, offset), guards, x.dtype.type(other))


def is_empty(phases):
    """Return whether the windows of some phases have no element that is no gap."""
    return math.prod(phase.taps for phase in phases) == 0


def fold_windows(lowering, phases, x, w, out, dtype):
    """Add a kernel that computes the windows of some phases.

    Args:
      phases: a `Phase` for each axis of space.
      x, w, out: views with groups in front: of the array, with examples, features and
        space; of the window, with features of the result, features and taps; of the
        result, with examples, features and space.
      dtype: to multiply and add in.
    """
    y, w = view_of_windows(out, phases, 3), view_of_taps(w, phases, 3)
    rank, terms = len(y.shape), len(y.shape) + len(phases)
    k = KernelBuilder("conv_general_dilated", (*y.shape, *w.shape[3:], w.shape[2]))
    space, taps = range(3, rank), range(rank, terms)
    if is_empty(phases) or not w.shape[2]:
        total = k.constant(0, dtype)
    else:
        elements = load_windows(k, x, phases, (0, 1, terms), space, taps)
        numbers = k.load(broadcast_view(w, k.sizes, (0, 2, terms, *taps)))
        pair = [k.convert(node, dtype) for node in (elements, numbers)]
        how = ("or", "and") if dtype.kind == "b" else ("add", "mul")
        total = k.fold(how[0], (*taps, terms), k.apply(how[1], *pair))
    lowering.run(k, (y, k.convert(total, out.dtype)))


def permute_to_out_spec(lowering, found, spec, aval):
    """Return the view of a result without groups, with its axes where they belong."""
    groups, batch, features, *space = range(len(found.shape))
    order = (batch, groups, features, *space)
    found = transpose_view(found, order)
    found = lowering.copy(found) if found.shape[1] > 1 else found
    shape = (found.shape[0], found.shape[1] * found.shape[2], *found.shape[3:])
    found = transpose_view(reshape_view(found, shape), np.argsort(spec))
    return materialize(lowering, found, aval.dtype)


# Register tiling of convolutions: tiles whose sums over taps stay in registers.

UNIT = 64  # bytes


def columns_per_vector(dtype):
    """Return how many numbers a unit of columns has."""
    return UNIT // dtype.itemsize


def tap_tile(dtype, target, units):
    """Return the tallest `MicroTile` of so many units of columns that fits."""
    lanes = target.lanes(dtype)
    vectors = units * columns_per_vector(dtype) // lanes
    return MicroTile(
        max(target.registers * 3 // 4 // vectors, 1), vectors, lanes, dtype
    )


def units_at_once(dtype, target):
    """Return how many units of columns a tile has."""
    return 2 if target.vector_bytes == UNIT else 1


def tap_parameters(dtype):
    """Return the parameters of a tile's function: numbers, addresses, distances."""
    kinds = {letter: pointer_type(llvm_type(dtype)) for letter in "abc"}
    kinds |= {"table": pointer_type("i32"), "more": "i1"}
    names = "taps table k a a_row a_column b b_row b_unit c c_row more".split()
    return [(kinds.get(name, "i64"), f"%{name}") for name in names]


def write_taps(f, tile):
    """Write the loops over taps and over the numbers of one; return the sums."""
    kind, lanes = llvm_type(tile.dtype), tile.lanes
    unit = columns_per_vector(tile.dtype)
    rows = [emit_int_op(f, "mul", "%a_row", row) for row in range(tile.rows)]
    starts = [divmod(v * lanes, unit) for v in range(tile.vectors)]
    units = [emit_int_op(f, "mul", "%b_unit", number) for number, _ in starts]

    def term(_, values):
        a, b, *sums = values
        places = [f.at(kind, b, u, rest) for u, (_, rest) in zip(units, starts)]
        y = [f.load(kind, place, lanes) for place in places]
        x = [f.splat(kind, f.load(kind, f.at(kind, a, row)), lanes) for row in rows]
        pairs = [(x[row], y[number]) for row, number in tile.places]
        sums = [emit_fma(f, tile.dtype, *p, s, lanes) for p, s in zip(pairs, sums)]
        return [f.at(kind, a, "%a_column"), f.at(kind, b, "%b_row"), *sums]

    def tap(index, sums):
        place = emit_int_op(f, "mul", index, 2)
        there = [f.at("i32", "%table", place, number) for number in range(2)]
        a, b = [f.emit(f"sext i32 {f.load('i32', x)} to i64") for x in there]
        pointers = [f.at(kind, "%a", a), f.at(kind, "%b", b)]
        carried = [(pointer_type(kind), pointer) for pointer in pointers]
        return f.loop("%k", [*carried, *zip(vectors, sums)], term)[2:]

    vectors = [vector_type(kind, lanes)] * len(tile.places)
    return f.loop("%taps", [(x, "zeroinitializer") for x in vectors], tap)


def write_tap_tile(f, tile):
    """Write a tile; where ``%more`` is true, it is added to what is there."""
    places = emit_tile_addresses(f, tile)
    sums = emit_accumulate(f, tile, write_taps(f, tile), places)
    for x, address in zip(sums, places):
        f.store(llvm_type(tile.dtype), x, address, tile.lanes)


@memoize
def tap_library(tile, target):
    """Return a tile's function, known to LLVM by its name, and that name."""
    which = sha256(target.key.encode()).hexdigest()[:8]
    name = f"taps_{short_dtype_name(tile.dtype)}_{tile.rows}_{tile.vectors}_{which}"
    f = FunctionBuilder()
    write_tap_tile(f, tile)
    made = function_ir(f, name, tap_parameters(tile.dtype), linkage="")
    library = TargetLibrary(module_ir([made]), target)
    add_symbol(name, library.engine.get_function_address(name))
    return library, name


DEPTH = 1024  # terms that are summed before the next tile begins


class TileLoop(NamedTuple):
    """So many iterations; how far each moves in the array, the window, the result."""

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
      outer: tuple of `TileLoop`, around the tiles.
      rows, terms: the `TileLoop` of the rows of a tile, and of the numbers within a
        tap.
      unit: the distance of two units of features in the numbers of the window.
    """

    image: View
    weights: View
    out: View
    table: View
    outer: tuple
    rows: TileLoop
    terms: TileLoop
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


def strided_view(view, memory, *loops):
    """Return an array of what loops reach: pairs of a count and a distance."""
    flat = contiguous_view(view.source, view.dtype, (view.source.size,))
    data = array_from_view(flat, memory)[view.offset :]
    counts, strides = zip(*loops)
    strides = [stride * view.dtype.itemsize for stride in strides]
    return np.lib.stride_tricks.as_strided(data, counts, strides)


def tiled_conv_by_numpy(program, step):
    """Return a function of the memory that does a `TapProduct`, as NumPy does it."""
    unit = columns_per_vector(step.out.dtype)
    units = step.columns // unit

    def run(memory):
        table, loops = array_from_view(step.table, memory), (*step.outer, step.rows)
        numbers = [(units, unit), (unit, 1)]
        out = strided_view(step.out, memory, *[(x.count, x.c) for x in loops], *numbers)
        total = np.zeros(out.shape, out.dtype)
        for a, b in table.tolist():
            image = step.image._replace(offset=step.image.offset + a)
            weights = step.weights._replace(offset=step.weights.offset + b)
            terms = step.terms
            pairs = [*[(x.count, x.a) for x in loops], (1, 0), (terms.count, terms.a)]
            x = strided_view(image, memory, *pairs)
            pairs = [(x.count, x.b) for x in step.outer]
            pairs += [(units, step.unit), (terms.count, terms.b), (unit, 1)]
            y = strided_view(weights, memory, *pairs)
            total += np.einsum(
                "...mut,...utj->...muj",
                np.broadcast_to(x, (*x.shape[:-2], units, x.shape[-1])),
                y,
            )
        out[...] = total

    return run


def tiled_conv_cost(step):
    """Return the costs of a `TapProduct`."""
    loops = (*step.outer, step.rows, step.terms)
    count = math.prod(x.count for x in loops) * step.table.shape[0] * step.columns
    return Counter({FLOPS: 2 * count}) + copy_cost(step)


def write_tap_product(f, step):
    """Write the loops around the tiles: blocks of taps, columns, the rest, rows."""
    kind, target = llvm_type(step.out.dtype), f.program.target
    views = step.image, step.weights, step.out
    starts = [f.cast("i8", f.address(view.source), kind) for view in views]
    starts = [f.at(kind, x, view.offset) for x, view in zip(starts, views)]
    table = f.at("i32", f.cast("i8", f.address(step.table.source), "i32"), 0)
    block, taps = max(DEPTH // step.terms.count, 1), step.table.shape[0]
    parts = [(0, block, taps // block), (taps - taps % block, taps % block, 1)]
    for first, some, count in parts:
        if some * count:
            body = tile_blocks(f, step, target, starts, table, some)
            f.counted_loop(first, block, count, [], body)


def tile_blocks(f, step, target, starts, table, taps):
    """Return a function of the first tap that writes the tiles of a block of taps."""
    kind, unit = llvm_type(step.out.dtype), columns_per_vector(step.out.dtype)
    at_once, units = units_at_once(step.out.dtype, target), step.columns // unit

    def block(first, _):
        here = f.at("i32", table, emit_int_op(f, "mul", first, 2))
        more = f.emit(f"icmp ne i64 {first}, 0", "b")
        whole_tiles = [(0, at_once, units // at_once)]
        for start, some, count in [
            *whole_tiles,
            (units - units % at_once, units % at_once, 1),
        ]:

            def columns(number, _, some=some):
                b = f.at(kind, starts[1], emit_int_op(f, "mul", number, step.unit))
                c = f.at(kind, starts[2], emit_int_op(f, "mul", number, unit))
                tile = tap_tile(step.out.dtype, target, some)
                fixed = taps, here, more
                write_around(f, step, tile, target, fixed, (starts[0], b, c), 0)
                return []

            if some * count:
                f.counted_loop(start, at_once, count, [], columns)
        return []

    return block


def write_around(f, step, tile, target, fixed, starts, axis):
    """Write a loop over each of the outer axes, and the rows of tiles in them."""
    if axis == len(step.outer):
        write_row_tiles(f, step, tile, target, fixed, starts)
        return
    loop, kind = step.outer[axis], llvm_type(step.out.dtype)

    def iteration(index, _):
        moves = [emit_int_op(f, "mul", index, move) for move in loop[1:]]
        inner = [f.at(kind, *pair) for pair in zip(starts, moves)]
        write_around(f, step, tile, target, fixed, inner, axis + 1)
        return []

    f.counted_loop(0, 1, loop.count, [], iteration)


def write_row_tiles(f, step, tile, target, fixed, starts):
    """Write the calls of tiles that divide the rows as equally as can be."""
    kind, (taps, table, more) = llvm_type(step.out.dtype), fixed
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
                f.at(kind, start, emit_int_op(f, "mul", row, move))
                for start, move in ((a, step.rows.a), (c, step.rows.c))
            ]
            near = step.terms.count, there[0], step.rows.a, step.terms.a
            far = b, step.terms.b, step.unit, there[1], step.rows.c, more
            args = taps, table, *near, *far
            f.call("void", name, *zip(kinds, args), own=True)
            return []

        f.counted_loop(first, rows, count, [], some)


step_kinds[TapProduct] = StepKind(
    tiled_conv_by_numpy, tiled_conv_cost, write_tap_product
)


# How a convolution becomes steps that multiply tiles: padding, packing, loops.

AT_LEAST = 2**14  # products; smaller convolutions are kernels
MAX_WINDOW_NUMBERS = 2**18  # numbers of a window; more of them stay where they are


def is_tiled_conv_profitable(x, w, aval, dtype):
    """Whether a convolution is large enough for tiles, and of real floats.

    Args:
      x, w: views with groups in front, as `lower_tiled_conv` takes them.
      aval: of the result.
      dtype: to multiply and add in.
    """
    terms = math.prod(w.shape[2:])
    wide_enough = w.shape[1] * 2 >= columns_per_vector(dtype) and terms >= 4
    fits = max(math.prod(x.shape), math.prod(w.shape)) < 2**29
    return (
        dtype.kind == "f"
        and wide_enough
        and fits
        and aval.size * terms >= AT_LEAST
        and min(x.shape) > 0
    )


def lower_tiled_conv(lowering, sliding, x, w, dtype):
    """Add the steps of a convolution; return the view of its result.

    Args:
      sliding: the `Window` of its windows.
      x: view of the array: groups, examples, features, space.
      w: view of the window: groups, features of the result, features, taps.
      dtype: to multiply and add in.

    Returns:
      A view: groups, examples, features, space.
    """
    phases = phases_of(sliding, x.shape[3:])
    image = padded_image(lowering, x, phases, dtype)
    counts, unit = sliding.counts(x.shape[3:]), columns_per_vector(dtype)
    features = -(-w.shape[1] // unit) * unit
    shape = (*x.shape[:2], *counts, features)
    out = lowering.allocate(ShapedArray(shape, dtype))
    for some in phases:
        add_phase(lowering, some, image, w, out)
    result = slice_view(
        out, [0] * len(shape), (*shape[:-1], w.shape[1]), [1] * len(shape)
    )
    return transpose_view(result, (0, 1, len(shape) - 1, *range(2, len(shape) - 1)))


def padded_image(lowering, x, phases, dtype):
    """Return the view of an array that has all elements that windows reach.

    It is a copy with zeros at its ends, if need be; the first element is that of `x`.
    """
    lows, highs = [0] * 3, [0] * 3
    for axis, size in enumerate(x.shape[3:]):
        reaches = [some[axis].bounds() for some in phases if not is_empty(some)]
        lows.append(max([0, *[-least for least, _ in reaches]]))
        highs.append(max([0, *[most + 1 - size for _, most in reaches]]))
    if not any([*lows, *highs]) and isinstance(x.source, Buffer) and x.dtype == dtype:
        return x
    order = sorted(range(len(x.shape)), key=lambda axis: -abs(x.strides[axis]))
    room = [low + n + high for low, n, high in zip(lows, x.shape, highs)]
    k = KernelBuilder("pad", [room[axis] for axis in order])
    shifted = slice_view(x, [-low for low in lows], room, [1] * len(room))
    guards = [
        Guard(Affine(-lows[axis], tuple(int(i == at) for i in range(len(room)))), n)
        for at, axis in enumerate(order)
        for n in [x.shape[axis]]
        if lows[axis] or highs[axis]
    ]
    number = k.convert(k.load(transpose_view(shifted, order), guards), dtype)
    out = lowering.launch(k, number, ShapedArray(k.sizes, dtype))
    image = transpose_view(out, [order.index(axis) for axis in range(len(room))])
    own = slice_view(image, lows, x.shape, [1] * len(room))
    return own._replace(strides=image.strides)  # one element has neighbours here


def add_phase(lowering, phases, image, w, out):
    """Add the step of the windows of some phases, or zeros where these are empty."""
    y = view_of_windows(out, phases, 2)
    if is_empty(phases):
        k = KernelBuilder("zeros", y.shape)
        lowering.run(k, (y, k.constant(0, out.dtype)))
        return
    places = [phase.place for phase in phases]
    moves, taps = [p.move for p in phases], [p.tap_move for p in phases]
    offset = image.offset + sum(map(math.prod, zip(places, image.strides[3:])))
    w = view_of_taps(w, phases, 3)
    distances = [image.strides[2], *map(math.prod, zip(taps, image.strides[3:]))]
    weights, axes, unit = packed(lowering, w, distances, out)
    terms, table = taps_of(lowering, axes)
    group = TileLoop(y.shape[0], image.strides[0], weights.strides[0], y.strides[0])
    steps = [image.strides[1], *map(math.prod, zip(moves, image.strides[3:]))]
    loops = [
        TileLoop(*x)
        for x in zip(y.shape[1:-1], steps, itertools.repeat(0), y.strides[1:-1])
    ]
    rows = max(loops, key=lambda loop: (row_worth(loop.count), -abs(loop.a)))
    loops.remove(rows)
    image = image._replace(offset=offset)
    around = tuple(loop for loop in (group, *loops) if loop.count > 1)
    step = TapProduct(image, weights, y, table, around, rows, terms, unit)
    lowering.steps.append(step)


def row_worth(count):
    """Return how much of a tile so many rows fill, about."""
    return min(count / (12 * -(-count // 12)), 0.9)


def packed(lowering, w, distances, out):
    """Return the numbers of a window with the features of the result in units.

    Args:
      w: view: groups, features of the result, features, taps.
      distances: how far features and taps are apart in the array.
      out: view of the result.

    Returns:
      A view; for each axis of terms a `TileLoop`; and the distance of two units.
    """
    order = sorted(range(2, len(w.shape)), key=lambda axis: -abs(distances[axis - 2]))
    unit, sums = columns_per_vector(out.dtype), [w.shape[axis] for axis in order]
    stays = isinstance(w.source, Buffer) and w.dtype == out.dtype and w.strides[1] == 1
    if stays and w.shape[1] % unit == 0 and math.prod(w.shape) > MAX_WINDOW_NUMBERS:
        strides, found, apart = [w.strides[axis] for axis in order], w, unit
    else:
        found = packed_copy(lowering, w, order, unit, out)
        strides, apart = found.strides[2:-1], found.strides[1]
    moves = [distances[axis - 2] for axis in order]
    return found, [TileLoop(*x, 0) for x in zip(sums, moves, strides)], apart


def packed_copy(lowering, w, order, unit, out):
    """Copy the numbers of a window: groups, units, terms, features of the result."""
    units, count = out.shape[-1] // unit, w.shape[1]
    shape = (w.shape[0], units, *[w.shape[axis] for axis in order], unit)
    k, features = KernelBuilder("pack", shape), w.strides[1]
    strides = [w.strides[0], unit * features, *[w.strides[a] for a in order], features]
    place = (0, unit, *[0] * len(order), 1)
    guards = [Guard(Affine(0, place), count)] * (units * unit > count)
    x = k.convert(k.load(w.replace(shape, strides), guards), out.dtype)
    return lowering.launch(k, x, ShapedArray(shape, out.dtype))


def taps_of(lowering, axes):
    """Return the `TileLoop` within a tap, and the view of a table of all taps.

    Neighbouring axes that are walked as one become one, and the longest is the loop.
    """
    runs = []
    for loop in axes:
        if loop.count == 1:
            continue
        last = runs[-1] if runs else None
        if last and (last.a, last.b) == (loop.count * loop.a, loop.count * loop.b):
            loop = loop._replace(count=last.count * loop.count)
            runs.pop()
        runs.append(loop)
    terms = max(runs, key=lambda loop: loop.count, default=TileLoop(1, 0, 0, 0))
    runs = [loop for loop in runs if loop is not terms]
    iterations = itertools.product(*[range(loop.count) for loop in runs])
    places = [
        [
            sum(i * move for i, move in zip(iteration, moves))
            for moves in ([x.a for x in runs], [x.b for x in runs])
        ]
        for iteration in iterations
    ]
    table = np.array(places, np.int32).reshape(-1, 2)
    return terms, lowering.constant(table, ShapedArray(table.shape, table.dtype))
