"""Schedules for vectors: transposition in tiles, register blocking, and their order.

References: S. Carr and K. Kennedy, "Improving the ratio of memory operations to
floating-point operations in loops" (ACM TOPLAS, 1994), J. Ragan-Kelley and others,
"Halide" (PLDI 2013): what is computed, and a schedule that says how.
"""

# Made from chapters/24_vectors_rest.md by `make chapter`;
# edit the chapter, not this file.

import functools
from typing import NamedTuple

from minijax.jitting.compilation import backends
from minijax.kernels.checker import step_checks
from minijax.kernels.ir import FoldCombine, FoldInit, Loop, Store, is_scan
from minijax.kernels.loop_nests import Node, loop_nest
from minijax.llvm.codegen import emit_steps, module_ir, step_emitters
from minijax.llvm.instructions import FunctionBuilder, llvm_memory_type, pointer_type
from minijax.llvm.targets import (
    TargetLibrary,
    current_target,
    function_emitter,
    kernel_function,
    scheduler,
)
from minijax.llvm.vectors import emit_widen, split_extent
from minijax.memory.allocator import PlannedProgram
from minijax.vectorization.loop_splitting import (
    reorder_complaint,
    reorder_loops,
    split_loop,
)
from minijax.vectorization.row_schedules import (
    RowStore,
    Stream,
    annotate_loops,
    cache_rows,
    far_bytes,
    fission_row_loops,
    max_jammed_streams,
    stream_folds,
    strip_mine,
    vectorize_loops,
)
from minijax.vectorization.vector_functions import (
    emit_function_call,
    is_function_call,
    is_loop,
    walk_nest,
    widest_dtype,
)

# Transposition in square tiles: rows read in one direction and used in the other.


def emit_transpose(f, kind, vectors):
    """Write the transpose of a square of vectors; return their names.

    Squares are exchanged across the diagonal: of half the size, of a quarter, ...
    """
    lanes = half = len(vectors)
    while half > 1:
        half //= 2
        orders = [
            [lane - half + lanes if lane & half else lane for lane in range(lanes)],
            [lane + lanes if lane & half else lane + half for lane in range(lanes)],
        ]
        for number in [number for number in range(lanes) if not number & half]:
            pair = vectors[number], vectors[number + half]
            for place, order in zip((number, number + half), orders):
                vectors[place] = f.shuffle(kind, *pair, order, lanes)
    return vectors


class TransposeTile(NamedTuple):
    """A step of a nest inside of a loop with vectors: a loop over `axis`, tile by tile.

    The loads in `turned` lie in rows along `axis`, not along that of the
    vectors.
    """

    axis: int
    body: list
    turned: list


def tile_transposes(kernel, steps, target):
    """Return the steps of a nest, with tiles where they help."""
    return [
        tiled(kernel, step, target) or step if is_loop(step) else step for step in steps
    ]


def tiled(kernel, loop, target):
    """Return a nest with tiles instead of a loop, or None if they do not help.

    No number may go from one iteration to another: the loops change places.
    """
    body = [step for step in walk_nest([loop]) if not is_loop(step)]
    stores = [step for step in body if isinstance(step, Store)]
    if len(stores) != 1 or stores[0].update or loop.folds:
        return None
    if reorder_complaint(loop, stores[0].place.axes):
        return None
    lanes = min(
        target.lanes(widest_dtype(loop)), target.registers
    )  # a register for each row
    axes = [axis for axis in stores[0].place.axes if kernel.sizes[axis] >= lanes]
    for along in [k for k in axes if stores[0].place.strides[k] == 1]:
        for across in axes:
            turned = [step for step in body if _is_turned(step, along, across)]
            if turned and lanes > 2:
                last = along, across
                order = [k for k in stores[0].place.axes if k not in last]
                nest = reorder_loops(loop, (*order, *last))
                return in_tiles(nest, last, turned, lanes)
    return None


def in_tiles(loop, last, turned, lanes):
    """Return a nest whose two innermost loops go through squares."""
    along, across = last
    if loop.axis not in last:
        return loop._replace(body=[in_tiles(loop.body[0], last, turned, lanes)])
    [inner] = loop.body
    tile = TransposeTile(across, inner.body, turned)
    return split_loop(loop._replace(body=[tile]), lanes, "vector")


def _is_turned(step, along, across):
    """Return whether a step is a load whose neighbours lie in the other direction."""
    if not isinstance(step, Node) or step.op != "load":
        return False
    if step.detail.guards or step.args:
        return False
    strides = step.detail.place.strides
    return strides[across] == 1 and abs(strides[along]) > 1


def emit_transpose_tiles(f, tile):
    """Write the tiles of a `TransposeTile`; the last may not be full."""
    size, lanes = f.kernel.sizes[tile.axis], f.lanes
    plain = [step for step in tile.body if step not in tile.turned]

    def write(index, _, live):
        squares = [emit_square(f, tile.axis, index, x, live) for x in tile.turned]

        def iteration(number, _):
            f.indices[tile.axis] = f.sum(index, number)
            for node, square in zip(tile.turned, squares):
                f.names[node] = emit_line(f, node, square, number)
            emit_steps(f, plain)
            return []

        return f.counted_loop(0, 1, live, [], iteration)

    for start, live, number in split_extent(size, lanes):
        body = functools.partial(write, live=live)
        f.counted_loop(start, lanes, number, [], body)


def emit_square(f, axis, index, node, live):
    """Write what puts the columns of a tile into scratch memory, as rows."""
    parameter, place = node.detail[:2]
    f.indices[axis] = index
    kind, start = llvm_memory_type(parameter.dtype), f.address(parameter, place)
    square, stride = f.scratch(node, kind, f.lanes * f.lanes), f.along(place)
    if live == f.live == f.lanes:
        name, text = square_function(kind, f.lanes)
        f.needed[name] = text
        pointers = f"{kind}* {start}, i64 {stride}, {kind}* {square}"
        f.line(f"call void @{name}({pointers})")
        return square

    emit_edge(f, axis, index, node, live, square)
    return square


def emit_line(f, node, square, number):
    """Write the load of a line of a tile."""
    dtype = node.detail.parameter.dtype
    kind, at = llvm_memory_type(dtype), f.emit(f"mul i64 {number}, {f.lanes}", "a")
    line = f.load(kind, f.at(kind, square, at), f.lanes)
    return emit_widen(f, dtype, line, f.lanes)


step_emitters[TransposeTile] = emit_transpose_tiles


def check_tile(walk, tile):
    """Check a tile: its loads are read from it, and its body is that of a loop."""
    lanes = [loop.lanes for loop in walk.loops if loop.lanes]
    walk.require(lanes, tile, "no vectors lie along the other axis")
    step_checks[Loop](walk, Loop(tile.axis, tile.body, ()))


step_checks[TransposeTile] = check_tile


def emit_edge(f, axis, index, node, live, square):
    """Write the same for a tile that is not full, number by number."""
    parameter, place = node.detail[:2]
    kind, along, first = llvm_memory_type(parameter.dtype), f.axis, f.indices[f.axis]

    def line(number, _):
        f.indices[axis] = f.sum(index, number)
        start = f.emit(f"mul i64 {number}, {f.lanes}", "a")

        def cell(lane, _):
            f.indices[along] = f.sum(first, lane)
            x = f.load(kind, f.address(parameter, place))
            f.store(kind, x, f.at(kind, square, start, lane))
            return []

        return f.counted_loop(0, 1, f.live, [], cell)

    f.counted_loop(0, 1, live, [], line)
    f.indices[along] = first


@functools.cache
def square_function(kind, lanes):
    """Return the name and the text of a function that transposes a full tile.

    Its arguments are the first number, the stride between rows, and the scratch memory.
    """
    f, name, vectors = FunctionBuilder(), f"transpose_{kind}_v{lanes}", []
    for lane in range(lanes):
        distance = f.emit(f"mul i64 %stride, {lane}", "a")
        vectors.append(f.load(kind, f.at(kind, "%x", distance), lanes))
    for number, x in enumerate(emit_transpose(f, kind, vectors)):
        f.store(kind, x, f.at(kind, "%square", number * lanes), lanes)
    pointer = pointer_type(kind)
    ends = (f"{pointer} noalias readonly", "%x"), (f"{pointer} noalias", "%square")
    params = ends[0], ("i64", "%stride"), ends[1]
    return name, f.definition(name, params, "nounwind noinline")


# Register blocking: rows of folds side by side, where a load serves all of them.


def register_block(kernel, steps, target):
    """Return the steps of a nest with loops whose iterations are done side by side."""
    return [
        blocked_rows(kernel, step, target) if is_loop(step) else step for step in steps
    ]


def blocked_rows(kernel, loop, target):
    """Return a loop done side by side where its turns, or inner loops', share loads."""
    count = rows_together(kernel, loop, target) or short_rows(kernel, loop, target)
    if count > 1:
        return split_loop(loop, count, "together")
    return loop._replace(body=register_block(kernel, loop.body, target))


MAX_BLOCK_VECTORS, MAX_BLOCK_ROWS, MAX_BLOCK_STEPS = (
    4,
    4,
    32,
)  # vectors in a row, rows side by side, steps of a row


def short_rows(kernel, loop, target):
    """Return how many iterations of a loop over short rows are done side by side, or 0.

    The ends of their folds do not wait for each other then. A single sum has too
    little to wait for.
    """
    inner = [step for step in loop.body if is_loop(step)]
    steps = [step for each in (loop, *inner) for step in each.body]
    steps = [step for step in steps if not any(step is each for each in inner)]
    plain = len(steps) <= MAX_BLOCK_STEPS and all(map(may_be_beside, steps))
    folds = [fold for each in inner for fold in each.folds]
    long = len(inner) > 1 or any(fold.detail.how in ("max", "min") for fold in folds)
    if loop.lanes or loop.folds or not (folds and plain and long):
        return 0
    if not all(each.lanes for each in inner):
        return 0
    lengths = [kernel.sizes[x.axis] / target.lanes(widest_dtype(x)) for x in inner]
    return (
        MAX_BLOCK_ROWS
        if max(lengths) <= MAX_BLOCK_VECTORS
        and kernel.sizes[loop.axis] >= MAX_BLOCK_ROWS
        else 0
    )


def may_be_beside(step):
    """Return whether a step is one that iterations of a loop may do side by side."""
    fold, update = getattr(step, "fold", None), getattr(step, "update", None)
    known = isinstance(step, Node | Store | FoldInit | FoldCombine | RowStore)
    return known and not update and not (fold and is_scan(fold))


def rows_together(kernel, loop, target):
    """Return how many iterations of a loop share loads, and find room in registers."""
    strips = [x.strip for x in loop.body if is_loop(x) and x.strip]
    across, rows = folded_inside(loop := without_strips(loop))
    if rows is None or not rows.folds or not is_perfect_nest([loop, across, rows]):
        return 0
    loads = [s for s in rows.body if isinstance(s, Node) and s.op == "load"]
    axis, along = loop.axis, across.axis
    shared = [x for x in loads if along in x.level and axis not in x.level]
    own = [fold for fold in rows.folds if axis in fold.level]
    if not shared or not own:
        return 0
    vectors = -(-across.lanes // target.lanes(widest_dtype(rows)))
    room, size = target.registers // 2 // (vectors * len(own)), kernel.sizes[axis]
    if isinstance(across, Stream):  # whose running values are in memory
        row = (
            min([kernel.sizes[along], *strips]) * widest_dtype(rows).itemsize * len(own)
        )
        room = min(max_jammed_streams(target), far_bytes(target) // 2 // row)
    return min(room, size)


def without_strips(loop):
    """Return a loop with what is in strips in their place."""
    parts = [x.body if is_loop(x) and x.strip else [x] for x in loop.body]
    return loop._replace(body=[step for part in parts for step in part])


def folded_inside(loop):
    """Return the step in a loop along whose axis vectors lie, and its loop of folds.

    They may be one and the same. None stands for what is not there.
    """
    inner = [step for step in loop.body if is_loop(step) or isinstance(step, Stream)]
    if loop.lanes or loop.folds or len(inner) != 1 or not inner[0].lanes:
        return None, None
    across = inner[0]
    if isinstance(across, Stream):
        return across, across.rows
    if across.folds:
        return across, across
    loops = [step for step in across.body if is_loop(step)]
    return across, loops[0] if loops else None


def steps_in(loop):
    """Return the steps in a loop or a stream."""
    return [*loop.before, *loop.after] if isinstance(loop, Stream) else loop.body


def is_perfect_nest(nest):
    """Return whether loops, each in the one before, hold only steps that are cheap."""
    steps = [step for loop in nest for step in steps_in(loop)]
    steps = [step for step in steps if not any(step is loop for loop in nest)]
    stores = [step for step in steps if isinstance(step, Store)]
    return (
        all(
            isinstance(step, Node | Store | FoldInit | FoldCombine | RowStore)
            for step in steps
        )
        and not any(map(is_scan, nest[-1].folds))
        and not any(store.update for store in stores)
        and not any(map(is_function_call, nest[-1].body))
    )


# The order of schedules on a processor with vectors: from nest to nest.

# Functions of a kernel, the steps of its nest, and a target, which return other steps.
SCHEDULE_PASSES = (
    tile_transposes, vectorize_loops, cache_rows, fission_row_loops, strip_mine,
    stream_folds, register_block, annotate_loops,
)  # fmt: skip


def schedule_nest(kernel, target, passes=None):
    """Return the steps of a kernel as a target does them best."""
    steps = loop_nest(kernel)
    for change in SCHEDULE_PASSES if passes is None else passes:
        steps = change(kernel, steps, target)
    return steps


scheduler.value, function_emitter.value = schedule_nest, emit_function_call


# Programs run step by step in planned memory, by kernels with vectors.


class VectorProgram(PlannedProgram):
    """Runs the steps of a program; the kernels are machine code with vectors."""

    def compile(self, kernels):
        """Return functions of the buffers' memory, by the labels of the kernels."""
        target = current_target()
        functions = [kernel_function(k, label, target) for label, k in kernels.items()]
        self.text = module_ir(functions)
        self.library = TargetLibrary(self.text, target)
        return {label: self.called(label, kernel) for label, kernel in kernels.items()}


backends["vectors"] = VectorProgram
