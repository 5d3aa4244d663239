"""Folds over rows of a matrix: running values in memory, rows read as they lie."""

# Made from chapters/24_vectors_rest.md by `make chapter`;
# edit the chapter, not this file.

from typing import NamedTuple

from minijax.kernels.checking import step_checks
from minijax.kernels.jamming import jammed, jammers
from minijax.kernels.kernel import Node
from minijax.kernels.parts import Affine, Combine, Loop, Start, Store, runs
from minijax.llvm.folds import combined, first_values
from minijax.llvm.kernel_text import (
    block_length,
    carry_folds,
    step_writers,
    write_part,
    write_steps,
)
from minijax.llvm.loads_and_stores import read_own, write_own
from minijax.vectors.loops import is_loop, widest
from minijax.vectors.strips import STRIP


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


TOGETHER = 8


def far_bytes(target):
    """Return from how many bytes on a matrix is better read as it lies."""
    return 4 * target.caches[0]


def beside_at_most(target):
    """Return how many streams are done side by side: their factors need registers."""
    return target.registers // 4


def with_streams(kernel, steps, target, beside=1):
    """Return the steps of a nest, with streams where many rows are folded.

    Args:
      kernel, steps, target: as for `hold_rows`.
      beside: how many streams may be done side by side.
    """
    found = []
    for step in steps:
        if is_loop(step) and step.lanes:
            step = streamed(kernel, step, target, beside) or step
        elif is_loop(step):
            most = min(kernel.sizes[step.axis], beside_at_most(target))
            body = with_streams(kernel, step.body, target, most)
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
    dtype, count = widest(loop), kernel.sizes[rows.axis]
    if size * dtype.itemsize * count <= far_bytes(target):
        return None
    lanes = min(loop.lanes, target.lanes(dtype))
    before = [s for s in loop.body[: loops[0]] if not isinstance(s, Start)]
    stream = Stream(loop.axis, lanes, before, rows, loop.body[loops[0] + 1 :])
    strip = strip_of(dtype, target, beside)
    if size > strip and count > TOGETHER and may_have_strips(stream):
        return Loop(loop.axis, [stream], (), strip=strip)
    return stream if size * dtype.itemsize <= target.caches[0] else None


def has_plain_folds(loop):
    """Return whether the loop in a loop has folds that rows of memory can hold."""
    [rows] = [step for step in loop.body if is_loop(step)]
    nodes = [*rows.folds, *[step for step in rows.body if isinstance(step, Node)]]
    plain = all(loop.axis in x.level and not runs(x) for x in rows.folds)
    places = any(each.detail.how.startswith("arg") for each in rows.folds)
    short = len(nodes) <= 2 * TOGETHER and not any(map(is_loop, rows.body))
    return bool(rows.folds) and plain and short and not places


def may_have_strips(stream):
    """Return whether no step keeps numbers for later sweeps, or meets another's."""
    steps = [*stream.before, *stream.rows.body, *stream.after]
    stores = [step for step in steps if isinstance(step, Store)]
    known = all(isinstance(step, Node | Store | Combine) for step in steps)
    return known and not any(store.update for store in stores)


def strip_of(dtype, target, beside):
    """Return how many columns are done at a time, by so many streams side by side."""
    room = min(target.caches[0], far_bytes(target) // 2 // beside) // dtype.itemsize
    return max(1, room // STRIP) * STRIP


def write_stream(f, stream):
    """Write a stream: first values, blocks of rows, and what comes after."""
    folds, count = stream.rows.folds, f.kernel.sizes[stream.rows.axis]
    length = TOGETHER * max(1, block_length(folds, count // TOGETHER))

    def end():
        write_steps(f, stream.before)
        f.names |= {each: own_value(f, stream, "all", each) for each in folds}
        write_steps(f, stream.after)

    write_begin(f, stream, "all")
    if length < count:
        write_pieces(f, 0, count, length, lambda *rows: write_block(f, stream, *rows))
    else:
        write_handfuls(f, stream, "all", 0, count)
    along_vectors(f, stream, end)


def write_pieces(f, first, count, length, write):
    """Write a loop over pieces of so many rows, and the piece that is left."""

    def turn(index, _):
        write(f.sum(first, index), length)
        return []

    f.turns(0, length, count // length, [], turn)
    if count % length:
        write(f.sum(first, count - count % length), count % length)


def write_block(f, stream, first, count):
    """Write how the values of a block of rows enter those of all."""

    def end():
        for each in stream.rows.folds:
            enter(f, stream, "all", each, [own_value(f, stream, "block", each)])

    write_begin(f, stream, "block")
    write_handfuls(f, stream, "block", first, count)
    along_vectors(f, stream, end)


def write_handfuls(f, stream, which, first, count):
    """Write how rows enter the running values of a block, or of all."""

    def handful(*rows):
        along_vectors(f, stream, lambda: add_rows(f, stream, which, *rows))

    write_pieces(f, first, count, TOGETHER, handful)


def add_rows(f, stream, which, index, number):
    """Write how a vector of some rows enters running values."""
    write_steps(f, stream.before)
    for each in stream.rows.folds:
        f.open[each], f.running[each] = f.lanes, first_values(each, f.lanes)
    for ahead in range(number):
        f.indices[stream.rows.axis] = f.ahead(index, ahead)
        write_steps(f, stream.rows.body)
    for each in stream.rows.folds:
        enter(f, stream, which, each, f.running.pop(each))
        del f.open[each]


step_writers[Stream] = write_stream


def check_stream(walk, stream):
    """Check the loops that a stream stands for: rows inside, and what comes after."""
    body = [*stream.before, stream.rows, *stream.after]
    loop = Loop(stream.axis, body, (), stream.lanes, parallel=stream.parallel)
    step_checks[Loop](walk, loop)


step_checks[Stream] = check_stream


def jammed_stream(stream, turns):
    """Return a stream whose folds are those of several turns of a loop around it."""
    before, [rows], after = (
        jammed(steps, turns) for steps in (stream.before, [stream.rows], stream.after)
    )
    return [stream._replace(before=before, rows=rows, after=after)]


jammers[Stream] = jammed_stream


def write_begin(f, stream, which):
    """Write the first of the running values of a block, or of all."""

    def begin():
        for each in stream.rows.folds:
            own_value(f, stream, which, each, *first_values(each, f.lanes))

    along_vectors(f, stream, begin)


def enter(f, stream, which, fold, values):
    """Write how values enter the running ones of a block, or of all."""
    old = [own_value(f, stream, which, fold)]
    own_value(f, stream, which, fold, *combined(f, fold, old, values, f.lanes))


def along_vectors(f, stream, body):
    """Write a loop over the vectors of a stream, or over those that are asked for."""

    def turn(index):
        f.move(stream.axis, index)
        body()

    def write(first, step, count):
        if stream.parallel:
            return write_part(f, first, step, count, turn)
        return carry_folds(f, (), first, step, count, turn)

    f.vectors(stream.axis, stream.lanes, write)


def own_value(f, stream, which, fold, *value):
    """Write the load of a running value of a fold, or the store of one."""
    strides = [int(axis == stream.axis) for axis in range(len(f.kernel.sizes))]
    place, size = Affine(0, (*strides,)), f.extent(stream.axis)
    key, dtype = (fold, which), fold.args[0].dtype
    with f.within_strips():
        if not value:
            return read_own(f, key, dtype, place, size, f.lanes)
        return write_own(f, key, dtype, place, size, value[0], f.lanes)
