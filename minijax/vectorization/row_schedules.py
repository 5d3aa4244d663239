"""Schedules of rows: marks of loops, rows held between sweeps, strips, streams.

Reference: M. Wolfe, *More iteration space tiling* (Supercomputing, 1989).
"""

# Made from chapters/24_vectors_rest.md by `make chapter`;
# edit the chapter, not this file.

import functools
import math
from typing import NamedTuple

from minijax.elementary_functions import real_functions as elementary
from minijax.kernels.builder import is_maskable, unroll_and_jam, unroll_and_jam_rules
from minijax.kernels.checker import step_checks
from minijax.kernels.ir import Affine, FoldCombine, FoldInit, Loop, Store, is_scan
from minijax.kernels.loop_nests import Node
from minijax.llvm.codegen import (
    emit_fold_loop,
    emit_part,
    emit_steps,
    is_inexact_fold,
    pairwise_block_size,
    step_emitters,
)
from minijax.llvm.vectors import (
    emit_fold_combination,
    emit_scratch_load,
    emit_scratch_store,
    fold_init_values,
    split_extent,
)
from minijax.vectorization.loop_splitting import split_loop
from minijax.vectorization.vector_functions import (
    is_function_call,
    is_loop,
    is_unrollable,
    walk_nest,
    widest_dtype,
)
from minijax.vectorization.vectorizer import best_vectorization, step_cost

# Marks of loops: vectors where they are best, iterations written out, sums in blocks.


def vectorize_loops(kernel, steps, target):
    """Return the steps of a nest with vectors in some of the loops."""
    return [
        step
        if any(is_loop(inner) and inner.lanes for inner in walk_nest([step]))
        else best_vectorization(kernel, step, target)[1]
        if is_loop(step)
        else step
        for step in steps
    ]


def annotate_loops(kernel, steps, target, beside=1):
    """Return the steps of a nest with loops marked as they are to be written.

    Each step is written `beside` times, for iterations of loops around that are done
    side by side.
    """
    return [
        annotate_loop(kernel, step, target, beside) if is_loop(step) else step
        for step in steps
    ]


def annotate_loop(kernel, loop, target, beside):
    """Return a loop with marks: a short one is written out, a long sum in blocks."""
    kind = loop.kind
    if is_masked(kernel, loop, target):
        kind = "masked"
    elif kind == "serial" and is_unrollable(kernel, loop, beside):
        kind = "unrolled"
    return loop._replace(
        body=annotate_loops(kernel, loop.body, target, beside * max(1, loop.together)),
        kind=kind,
        blocked=any(map(is_inexact_fold, loop.folds)),
    )


MASK_THRESHOLD = 32  # costs of a body that is rather done with masks than written twice


def is_masked(kernel, loop, target):
    """Return whether the vectors of a loop should have masks: its body is written once.

    AVX-512 has registers for masks. A fold, or a function with a part for rare
    arguments, would have to ask in each iteration which lanes count.
    """
    size = kernel.sizes[loop.axis]
    if not loop.lanes or size % loop.lanes == 0 or size >= 2**31:
        return False
    if target.vector_bytes < 64 or not is_maskable(loop):
        return False
    long = (
        sum(step_cost(step, loop.axis, loop.lanes) for step in loop.body)
        >= MASK_THRESHOLD
    )
    return long and not any(map(_asks_for_lanes, loop.body))


def _asks_for_lanes(step):
    if not isinstance(step, Node) or not step.args:
        return False
    function = elementary.scalar_function(step.op, step.args[-1].dtype)
    return function is not None and function.rare is not None


# Rows held in a buffer between the sweeps over them, and the folds at their ends.


class RegisterRow(NamedTuple):
    """What is kept of a node: a number for each index along some axes.

    Neighbours along the last of these axes stand side by side, and behind all of them
    there is room for lanes that do not count.
    """

    node: Node
    axes: tuple
    room: int


class RowStore(NamedTuple):
    """A step of a nest: a number is put into a row.

    Attributes:
      row: the `RegisterRow`.
      iterations: if it is one of several side by side, an `UnrolledIteration` for
        each of these loops.
    """

    row: RegisterRow
    iterations: tuple = ()

    @property
    def node(self):
        """The node of the number."""
        into = lambda node, iteration: iteration.node(node)  # noqa: E731
        return functools.reduce(into, self.iterations, self.row.node)


class RowLoad(NamedTuple):
    """A step of a nest: a number is taken from a row."""

    row: RegisterRow

    @property
    def node(self):
        """The node of the number."""
        return self.row.node


def row_bytes(target):
    """Return how many bytes a row may have: it is read again while it is near."""
    return max(2 * target.caches[0], target.caches[:2][-1] // 4)


def cache_rows(kernel, steps, target, moving=(), lanes=1):
    """Return the steps of a nest in which later sweeps take up what earlier ones found.

    Args:
      kernel: a `Kernel`.
      steps: those of its nest, or of a loop in it.
      target: the `Target` that it is meant for.
      moving: the axes of the loops around them.
      lanes: how many numbers stand for one, if vectors lie along one of these axes.
    """
    done, kept, result = {}, set(), []
    for step in steps:
        if is_loop(step):
            firsts = {node: result[place] for node, place in done.items()}
            most = row_bytes(target) // lanes
            rows = rows_for(kernel, step, firsts, moving, most, kept)
            for row in [row for row in rows if row not in kept]:
                first = done[row.node]
                result[first] = _with_keep(result[first], row)
                kept.add(row)
            step = _with_recall(step, rows) if rows else step
            for node in nodes_in(step):
                done.setdefault(node, len(result))
        result.append(step)
    return [_inside(kernel, step, target, moving, lanes) for step in result]


def _inside(kernel, step, target, moving, lanes):
    if not is_loop(step):
        return step
    lanes = step.lanes or lanes
    body = cache_rows(kernel, step.body, target, (*moving, step.axis), lanes)
    return step._replace(body=body)


def nodes_in(loop):
    """Return the nodes that are computed in a loop, folds that begin in it too."""
    steps = [*walk_nest(loop.body)]
    begun = [step.fold for step in steps if isinstance(step, FoldInit)]
    folds = [fold for fold in begun if not is_scan(fold)]
    return [*folds, *[step for step in steps if isinstance(step, Node)]]


def lying(loop, node):
    """Return the axes along which vectors of a node lie in a loop, and their lanes."""
    steps = [step for step in walk_nest([loop]) if is_loop(step) and step.lanes]
    return {step.axis: step.lanes for step in steps if node in nodes_in(step)}


MIN_ROW_COST = 4  # loads of neighbours: a number that costs more is rather recalled


def rows_for(kernel, loop, firsts, moving, most, kept=()):
    """Return rows for what a loop computes again, if that takes long.

    Args:
      kernel, moving: those of `cache_rows`.
      loop: the loop.
      firsts: from nodes to the earlier loops that compute them first.
      most: how many bytes a row has at most.
      kept: the rows that earlier loops have recalled.
    """
    nodes = [*dict.fromkeys(nodes_in(loop))]
    again = {node for node in nodes if node in firsts}
    others = [*_goals(loop, again), *[node for node in nodes if node not in again]]
    edge, known, wanted = step_inputs(others), {row.node for row in kept}, set()
    # Short loops are written out by the number of their steps, which has to stay: a sum
    # of products may be rounded otherwise there.
    least = MIN_ROW_COST if min(kernel.sizes) > 16 else math.inf
    for node in [node for node in nodes if node in again & edge]:
        row = row_of(kernel, loop, firsts[node], node, moving, most)
        before = leading_to([node], again, known)
        worth = row and (
            any(takes_long(x, moving) for x in leading_to([node], again))
            or sum(step_cost(x, None) for x in before - known) >= least
        )
        wanted |= {node} if worth else before & known
    found = [node for node in nodes if node in wanted]
    rows = [row_of(kernel, loop, firsts[x], x, moving, most) for x in found]
    return [*filter(None, rows)]


def row_of(kernel, loop, first, node, moving, most):
    """Return the row of a node that two loops compute, or None if it cannot have one.

    Vectors have to lie along the same axis where a number is kept and recalled.

    Args:
      kernel, loop, moving, most: those of `rows_for`.
      first: the earlier loop.
      node: the node.
    """
    axes, here = {*node.level} - {*moving}, lying(first, node)
    along = axes & {*here, *lying(loop, node)}
    size = math.prod(kernel.sizes[axis] for axis in axes)
    if len(along) > 1 or size * node.dtype.itemsize > most:
        return None
    room = sum(-kernel.sizes[axis] % here.get(axis, 1) for axis in along)
    return RegisterRow(node, (*sorted(axes - along), *along), room)


def takes_long(node, moving=()):
    """Return whether it takes long to compute a node: a fold, a function, or a load
    whose computed place moves along other axes than those of the loops around."""
    gathers = node.op == "load" and any({*x.level} - {*moving} for x in node.args)
    return gathers or node.op == "fold" or is_function_call(node)


def _goals(loop, among):
    """Return what a loop is there for: all but nodes, and some of its own folds."""
    steps = [step for step in walk_nest(loop.body) if not isinstance(step, Node)]
    own = {step.fold for step in steps if isinstance(step, FoldInit)} & among
    return [step for step in steps if getattr(step, "fold", None) not in own]


def used_by(step):
    """Return the nodes that a step needs."""
    if isinstance(step, Node):
        return step.args
    if isinstance(step, FoldCombine):
        return step.fold.args
    if isinstance(step, RowStore):
        return (step.row.node,)
    return (step.node,) if isinstance(step, Store) else ()


def step_inputs(steps):
    """Return the nodes that some steps need."""
    return {node for step in steps for node in used_by(step)}


def leading_to(goals, own, ends=()):
    """Return some nodes and those they are computed from, among those of a loop.

    What the nodes in `ends` are computed from does not matter, nor what those are that
    an earlier loop has left.
    """
    found, open_ends = set(), [*goals]
    while open_ends:
        node = open_ends.pop()
        if node in own and node not in found:
            found.add(node)
            open_ends.extend(() if node in ends else node.args)
    return found


def _with_keep(loop, row):
    """Return a loop that keeps a node where it is first computed."""
    for place, step in enumerate(loop.body):
        ends = is_loop(step) and row.node in step.folds
        if step is row.node or (ends and row.node not in nodes_in(step)):
            return _with_body(loop, place, [step, RowStore(row)])
        if is_loop(step) and row.node in nodes_in(step):
            return _with_body(loop, place, [_with_keep(step, row)])
    return loop


def _with_body(loop, place, new):
    """Return a loop with other steps in the place of one."""
    return loop._replace(body=[*loop.body[:place], *new, *loop.body[place + 1 :]])


def _with_recall(loop, rows):
    """Return a loop that recalls nodes, and leaves out what only those needed."""
    kept, own = {row.node: row for row in rows}, {*nodes_in(loop)}
    needed = leading_to(step_inputs(_goals(loop, own)), own, kept)
    return _only(loop, needed - kept.keys(), own, kept)


def _only(loop, needed, own, kept):
    """Return a loop without its own nodes that are not needed, some of them kept."""
    body = []
    for step in loop.body:
        node = step if isinstance(step, Node) else getattr(step, "fold", None)
        if node in kept and not isinstance(step, FoldCombine):
            body.append(RowLoad(kept[node]))
        elif is_loop(step):
            inner = _only(step, needed, own, kept)
            body += [inner] if inner.body else []
        elif node not in own or node in needed:
            body.append(step)
    folds = [fold for fold in loop.folds if fold not in own or fold in needed]
    return loop._replace(body=body, folds=tuple(folds))


def place_in_row(f, row):
    """Return where in a row a number is, and the size of the row.

    Numbers stand one after the other, and the last axis is the fastest. Where vectors
    lie along another axis, the numbers of all lanes stand together.
    """
    together = f.lanes_of(row.node) and f.axis not in row.axes
    strides, stride = [0] * len(f.kernel.sizes), f.lanes if together else 1
    room = row.room
    for axis in reversed(row.axes):
        strides[axis] = stride
        stride, room = stride * (f.extent(axis) + room), 0
    return Affine(0, tuple(strides)), stride


def emit_keep(f, step):
    """Write the store of a number, or a vector, into a row."""
    row = step.row
    place, size = place_in_row(f, row)
    for iteration in step.iterations:
        place = iteration.place(place)
    x, lanes = f.names[step.node], f.lanes_of(step.node)
    with f.within_strips():
        emit_scratch_store(f, row, row.node.dtype, place, size, x, lanes)


def emit_recall(f, step):
    """Write the load of a number, or a vector, from a row."""
    row, (place, size) = step.row, place_in_row(f, step.row)
    lanes = f.lanes_of(row.node)
    with f.within_strips():
        x = emit_scratch_load(f, row, row.node.dtype, place, size, lanes)
    f.names[row.node] = x


def jammed_keep(keep, iterations):
    """Return what several iterations side by side put into a row."""
    return [keep._replace(iterations=(*keep.iterations, each)) for each in iterations]


unroll_and_jam_rules[RowStore] = jammed_keep
step_emitters.update({RowStore: emit_keep, RowLoad: emit_recall})


def check_keep(walk, keep):
    """Check that what is put into a row is known, and the row's axes move."""
    walk.require(keep.node in walk.known, keep, "there is no number to keep")
    walk.kept[keep.row] = [*walk.loops]
    check_row_axes(walk, keep)


def check_recall(walk, recall):
    """Check that there is a row to take a number from, and its axes move."""
    row, around = recall.row, walk.kept.get(recall.row)
    walk.require(around is not None, recall, "nothing was kept")
    same = [a.axis for a, b in zip(walk.loops, around) if a is b]
    whole = {*row.node.level} <= {*row.axes, *same}
    walk.require(whole, recall, "the row has one place for several numbers")
    walk.known.add(recall.node)
    check_row_axes(walk, recall)


def check_row_axes(walk, step):
    """Check that the axes of a step's row move."""
    moving = {*step.row.axes} <= walk.axes
    walk.require(moving, step, "an axis of the row does not move")


step_checks.update({RowStore: check_keep, RowLoad: check_recall})


MAX_SERIAL_ELEMENTS, MIN_SWEEP_STEPS = (
    2**17,
    4,
)  # numbers that no threads share; steps that are worth a sweep


def fission_row_loops(kernel, steps, target):
    """Return the steps of a nest in which small loops around folds are cut in two.

    Args:
      kernel: a `Kernel`.
      steps: those of its nest, or of a loop in it.
      target: the `Target` that it is meant for.
    """
    if math.prod(kernel.sizes) > MAX_SERIAL_ELEMENTS:
        return steps
    return [part for step in steps for part in _sweeps(kernel, step, target)]


def _sweeps(kernel, loop, target):
    """Return a step, or the two sweeps that do the same."""
    if not is_loop(loop) or loop.lanes:
        return [loop]
    loop = loop._replace(body=fission_row_loops(kernel, loop.body, target))
    first, second = split_loop_body(loop)
    work = sum(isinstance(step, Node) for step in second.body)
    little = (first.body and work < MIN_SWEEP_STEPS) or not any(
        map(is_goal, second.body)
    )
    if little or kernel.sizes[loop.axis] <= 16:
        return [loop]
    rows = [step.row for step in second.body if isinstance(step, RowStore | RowLoad)]
    short = row_bytes(target) // kernel.sizes[loop.axis]
    own = all(row.axes == (loop.axis,) for row in rows)
    if not own or any(row.node.dtype.itemsize > short for row in rows):
        return [loop]
    ends = best_vectorization(kernel, second, target)[1]
    if not ends.lanes:
        return [loop]
    return [first, ends] if first.body else [ends]


def split_loop_body(loop):
    """Return a loop with the loops in its body, and one with the steps beside these.

    The second computes again what it needs of the first, but recalls folds.
    """
    goals = [step for step in loop.body if is_goal(step)]
    folds = [step.fold for step in loop.body if isinstance(step, FoldInit)]
    recalled = [step.row.node for step in loop.body if isinstance(step, RowLoad)]
    own, ends = {*nodes_in(loop), *recalled}, {*folds, *recalled}
    after = leading_to(step_inputs(goals), own, ends)
    rows = [RegisterRow(fold, (loop.axis,), 0) for fold in folds if fold in after]
    again = [step for step in loop.body if is_goal(step) or _found(step) in after]
    ended = [step.fold for step in goals if isinstance(step, FoldCombine)]
    second = Loop(loop.axis, [*map(RowLoad, rows), *again], tuple(ended))
    left = tuple(fold for fold in loop.folds if fold not in ended)
    return Loop(loop.axis, _with_keeps(loop.body, rows), left), second


def is_goal(step):
    """Return whether a step is one for which others are done."""
    return isinstance(step, Store | FoldCombine | RowStore)


def _found(step):
    """Return the node that a step computes, or recalls, or None."""
    node = step.row.node if isinstance(step, RowLoad) else step
    return node if isinstance(node, Node) else None


def _with_keeps(body, rows):
    """Return the loops of a body, and what they need, and that folds are kept."""
    body = [step for step in body if not is_goal(step)]
    nodes = filter(None, map(_found, walk_nest(body)))
    needed = leading_to(step_inputs(filter(is_goal, walk_nest(body))), {*nodes})
    kept, loops = [], any(map(is_loop, body))
    for step in body if loops else ():
        if _found(step) is None or _found(step) in needed:
            kept.append(step)
            ended = step.folds if is_loop(step) else ()
            kept += [RowStore(row) for row in rows if row.node in ended]
    return kept


# Strip-mining: the ends of rows, done by vectors for a strip of rows at a time.

STRIP_LENGTH = 64  # rows, a multiple of the lanes of any vector
MIN_STRIP_MINED_ELEMENTS = MAX_SERIAL_ELEMENTS + 1  # indices of a kernel in strips


def strip_mine(kernel, steps, target):
    """Return the steps of a large nest, with the functions of folds in strips."""
    if math.prod(kernel.sizes) < MIN_STRIP_MINED_ELEMENTS:
        return steps
    return [in_strips(kernel, x, target) if is_loop(x) else x for x in steps]


def in_strips(kernel, loop, target):
    """Return a loop, in strips if that lets vectors compute functions of its folds."""
    free = not (loop.lanes or loop.folds)
    if free and kernel.sizes[loop.axis] > 2 * STRIP_LENGTH:
        for last in (0, -1):
            sweeps = two_sweeps(kernel, loop, target, last)
            if sweeps:
                return split_loop(sweeps, STRIP_LENGTH, "strip")
    return loop._replace(body=strip_mine(kernel, loop.body, target))


def two_sweeps(kernel, loop, target, last):
    """Return a loop as one that keeps folds and one that recalls them, or None.

    Args:
      kernel, loop, target: those of `in_strips`.
      last: which of the loops' axes is the last one of the rows, 0 or -1.
    """
    around, inner = [loop], loop
    while len(inner.body) == 1 and is_loop(inner.body[0]) and not inner.body[0].folds:
        [inner] = inner.body
        around.append(inner)
    first, second = split_loop_body(inner)
    recalled = [step.row for step in second.body if isinstance(step, RowLoad)]
    own = all(row.axes == (inner.axis,) for row in recalled)
    if inner.lanes or not (
        first.body and own and any(map(is_function_call, second.body))
    ):
        return None
    axes = [each.axis for each in around]
    axes.append(axes.pop(last))
    kept = {row: row._replace(axes=tuple(axes)) for row in recalled}
    sweeps = [
        wrap_in_loops(around[:-1], with_rows(each, kept)) for each in (first, second)
    ]
    sweeps[1] = best_vectorization(kernel, sweeps[1], target)[1]
    wide = {x.axis for x in walk_nest(sweeps[1:]) if is_loop(x) and x.lanes}
    return sweeps if wide == {axes[-1]} else None


def wrap_in_loops(around, body):
    """Return a loop inside of others, the first of which is the outermost."""
    for loop in reversed(around):
        body = loop._replace(body=[body])
    return body


def with_rows(loop, kept):
    """Return a loop with others in the place of its rows."""
    body = [
        step._replace(row=kept.get(step.row, step.row))
        if isinstance(step, RowStore | RowLoad)
        else step
        for step in loop.body
    ]
    return loop._replace(body=body)


# Folds over rows of a matrix: running values in memory, rows read as they lie.


class Stream(NamedTuple):
    """A step of a nest: folds over one axis, for all indices along another.

    Attributes:
      axis: the axis along which vectors lie.
      lanes: of the vectors.
      before: steps that are needed to do the others.
      rows: the `Loop` of the folds.
      after: steps that need the folds.
      parallel: whether the function does some of the columns only, as its caller says.
    """

    axis: int
    lanes: int
    before: list
    rows: Loop
    after: list
    parallel: bool = False


MIN_STREAMED_ROWS = 8


def far_bytes(target):
    """Return from how many bytes on a matrix is better read as it lies."""
    return 4 * target.caches[0]


def max_jammed_streams(target):
    """Return how many streams are done side by side: their factors need registers."""
    return target.registers // 4


def stream_folds(kernel, steps, target, beside=1):
    """Return the steps of a nest, with streams where many rows are folded.

    Args:
      kernel, steps, target: as for `cache_rows`.
      beside: how many streams may be done side by side.
    """
    found = []
    for step in steps:
        if is_loop(step) and step.lanes:
            step = streamed(kernel, step, target, beside) or step
        elif is_loop(step):
            most = min(kernel.sizes[step.axis], max_jammed_streams(target))
            body = stream_folds(kernel, step.body, target, most)
            step = step._replace(body=body)
        found.append(step)
    return found


def streamed(kernel, loop, target, beside=1):
    """Return a `Stream` instead of a loop, or None if it would be no better.

    It is done in strips of long rows, so that the running values stay near the core.
    """
    loops = [place for place, step in enumerate(loop.body) if is_loop(step)]
    if loop.folds or len(loops) != 1 or not has_plain_folds(loop):
        return None
    rows, size = loop.body[loops[0]], kernel.sizes[loop.axis]
    dtype, count = widest_dtype(loop), kernel.sizes[rows.axis]
    if size * dtype.itemsize * count <= far_bytes(target):
        return None
    lanes = min(loop.lanes, target.lanes(dtype))
    before = [s for s in loop.body[: loops[0]] if not isinstance(s, FoldInit)]
    stream = Stream(loop.axis, lanes, before, rows, loop.body[loops[0] + 1 :])
    strip = strip_width(dtype, target, beside)
    if size > strip and count > MIN_STREAMED_ROWS and is_strip_minable(stream):
        return split_loop([stream], strip, "strip")
    return stream if size * dtype.itemsize <= target.caches[0] else None


def has_plain_folds(loop):
    """Return whether the loop in a loop has folds that rows of memory can hold."""
    [rows] = [step for step in loop.body if is_loop(step)]
    nodes = [*rows.folds, *[step for step in rows.body if isinstance(step, Node)]]
    plain = all(loop.axis in x.level and not is_scan(x) for x in rows.folds)
    places = any(each.detail.how.startswith("arg") for each in rows.folds)
    short = len(nodes) <= 2 * MIN_STREAMED_ROWS and not any(map(is_loop, rows.body))
    return bool(rows.folds) and plain and short and not places


def is_strip_minable(stream):
    """Return whether no step keeps numbers for later sweeps, or meets another's."""
    steps = [*stream.before, *stream.rows.body, *stream.after]
    stores = [step for step in steps if isinstance(step, Store)]
    known = all(isinstance(step, Node | Store | FoldCombine) for step in steps)
    return known and not any(store.update for store in stores)


def strip_width(dtype, target, beside):
    """Return how many columns are done at a time, by so many streams side by side."""
    room = min(target.caches[0], far_bytes(target) // 2 // beside) // dtype.itemsize
    return max(1, room // STRIP_LENGTH) * STRIP_LENGTH


def emit_stream(f, stream):
    """Write a stream: first values, blocks of rows, and what comes after."""
    folds, count = stream.rows.folds, f.kernel.sizes[stream.rows.axis]
    length = MIN_STREAMED_ROWS * max(
        1, pairwise_block_size(folds, count // MIN_STREAMED_ROWS)
    )

    def end():
        emit_steps(f, stream.before)
        f.names |= {each: own_value(f, stream, "all", each) for each in folds}
        emit_steps(f, stream.after)

    emit_begin(f, stream, "all")
    if length < count:
        emit_pieces(
            f, 0, count, length, lambda *rows: emit_stream_block(f, stream, *rows)
        )
    else:
        emit_handfuls(f, stream, "all", 0, count)
    along_vectors(f, stream, end)


def emit_pieces(f, first, count, length, write):
    """Write a loop over pieces of so many rows, and the piece that is left."""
    for start, size, number in split_extent(count, length):

        def iteration(index, _, size=size):
            write(f.sum(first, index), size)
            return []

        f.counted_loop(start, length, number, [], iteration)


def emit_stream_block(f, stream, first, count):
    """Write how the values of a block of rows enter those of all."""

    def end():
        for each in stream.rows.folds:
            emit_stream_enter(
                f, stream, "all", each, [own_value(f, stream, "block", each)]
            )

    emit_begin(f, stream, "block")
    emit_handfuls(f, stream, "block", first, count)
    along_vectors(f, stream, end)


def emit_handfuls(f, stream, which, first, count):
    """Write how rows enter the running values of a block, or of all."""

    def handful(*rows):
        along_vectors(f, stream, lambda: add_rows(f, stream, which, *rows))

    emit_pieces(f, first, count, MIN_STREAMED_ROWS, handful)


def add_rows(f, stream, which, index, number):
    """Write how a vector of some rows enters running values."""
    emit_steps(f, stream.before)
    for each in stream.rows.folds:
        f.open[each], f.running[each] = f.lanes, fold_init_values(each, f.lanes)
    for ahead in range(number):
        f.indices[stream.rows.axis] = f.ahead(index, ahead)
        emit_steps(f, stream.rows.body)
    for each in stream.rows.folds:
        emit_stream_enter(f, stream, which, each, f.running.pop(each))
        del f.open[each]


step_emitters[Stream] = emit_stream


def check_stream(walk, stream):
    """Check the loops that a stream stands for: rows inside, and what comes after."""
    body = [*stream.before, stream.rows, *stream.after]
    loop = Loop(
        stream.axis, body, (), "vector", stream.lanes, parallel=stream.parallel
    )
    step_checks[Loop](walk, loop)


step_checks[Stream] = check_stream


def jammed_stream(stream, iterations):
    """Return a stream with the folds of several iterations of a loop around it."""
    before, [rows], after = (
        unroll_and_jam(steps, iterations)
        for steps in (stream.before, [stream.rows], stream.after)
    )
    return [stream._replace(before=before, rows=rows, after=after)]


unroll_and_jam_rules[Stream] = jammed_stream


def emit_begin(f, stream, which):
    """Write the first of the running values of a block, or of all."""

    def begin():
        for each in stream.rows.folds:
            own_value(f, stream, which, each, *fold_init_values(each, f.lanes))

    along_vectors(f, stream, begin)


def emit_stream_enter(f, stream, which, fold, values):
    """Write how values enter the running ones of a block, or of all."""
    old = [own_value(f, stream, which, fold)]
    own_value(
        f, stream, which, fold, *emit_fold_combination(f, fold, old, values, f.lanes)
    )


def along_vectors(f, stream, body):
    """Write a loop over the vectors of a stream, or over those that are asked for."""

    def iteration(index):
        f.move(stream.axis, index)
        body()

    def write(first, step, count):
        if stream.parallel:
            return emit_part(f, first, step, count, iteration)
        return emit_fold_loop(f, (), first, step, count, iteration)

    f.vectors(stream.axis, stream.lanes, write)


def own_value(f, stream, which, fold, *value):
    """Write the load of a running value of a fold, or the store of one."""
    strides = [int(axis == stream.axis) for axis in range(len(f.kernel.sizes))]
    place, size = Affine(0, (*strides,)), f.extent(stream.axis)
    key, dtype = (fold, which), fold.args[0].dtype
    with f.within_strips():
        if not value:
            return emit_scratch_load(f, key, dtype, place, size, f.lanes)
        return emit_scratch_store(f, key, dtype, place, size, value[0], f.lanes)
