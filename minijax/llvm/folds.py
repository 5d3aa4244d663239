"""Folds of vectors: many running values at once, and how they become one."""

# Made from chapters/18_llvm_ground.md by `make chapter`;
# edit the chapter, not this file.

import functools

import numpy as np

from minijax.kernels.parts import runs
from minijax.kernels.scalar_ops import foldings
from minijax.llvm.lanes import Ahead, steps
from minijax.llvm.types import number_text, splat, type_of, vector_type

BOOL, INT64 = np.dtype(bool), np.dtype(np.int64)


def value_types(fold, lanes):
    """Return the types of the running values of a fold: for extremes, places too."""
    kinds = [type_of(fold.args[0].dtype), "i64"][: 1 + places_too(fold)]
    return [vector_type(kind, lanes) for kind in kinds]


def places_too(fold):
    """Return whether a fold finds a place."""
    return fold.detail.how.startswith("arg")


def first_values(fold, lanes):
    """Return the running values of a fold at the start."""
    [arg] = fold.args
    start = number_text(foldings[fold.detail.how].start(arg.dtype))
    values = [splat(type_of(arg.dtype), start, lanes), splat("i64", "0", lanes)]
    return values[: 1 + places_too(fold)]


def write_index(f, axis):
    """Write the index along an axis, one for each lane if vectors lie along it."""
    index = f.indices[axis]
    index = str(f.sum(*index) if isinstance(index, Ahead) else index)
    if not f.lanes or axis != f.axis:
        return index
    ahead = f"add <{f.lanes} x i64> {{}}, {steps('i64', f.lanes)}"
    return f.emit(ahead.format(f.wide("i64", index, f.lanes)), "i")


def write_combination(f, fold):
    """Write how one more number, or one for each lane, enters a fold."""
    [arg], lanes, old = fold.args, f.open[fold], f.running[fold]
    new = [f.operand(arg, lanes)]
    if places_too(fold):
        [axis] = fold.detail.axes
        place = write_index(f, axis)
        new.append(place if axis == f.axis else f.wide("i64", place, lanes))
    result = combined(f, fold, old, new, lanes)
    mask = f.living() if fold.detail.axes.count(f.axis) else None
    if not mask:
        return result
    values = zip(value_types(fold, 0), result, old)
    return [f.choose(mask, x, before, kind, lanes) for kind, x, before in values]


def combined(f, fold, old, new, lanes, ties=False):
    """Write the combination of the values of a fold with others."""
    dtype, how = fold.args[0].dtype, fold.detail.how
    if not places_too(fold):
        return [f.operation(how, [*old, *new], dtype, dtype, lanes, "contract ")]
    wins = write_wins(f, how, dtype, old, new, lanes, ties)
    return [
        f.operation("select", [wins, *pair], kind, kind, lanes)
        for kind, *pair in zip((dtype, INT64), new, old)
    ]


def fold_lanes(f, fold, values, lanes):
    """Write the fold of the lanes: one half with the other, down to a single one.

    The last one of an odd number waits for the next time.
    """
    kinds = value_types(fold, 0)

    def parts(lanes, order):
        pairs = zip(kinds, values)
        return [f.shuffle(kind, x, "undef", order, lanes) for kind, x in pairs]

    while lanes > 1:
        half, odd = divmod(lanes, 2)
        old, new = (parts(lanes, range(start, start + half)) for start in (0, half))
        found = combined(f, fold, old, new, half, ties=True)
        if odd:
            last = parts(lanes, [lanes - 1])
            found = [joined(f, *three, half) for three in zip(kinds, found, last)]
        values, lanes = found, half + odd
    return [f.element(*pair, 1, 0) for pair in zip(kinds, values)]


def alike_folds(folds, ends):
    """Return lists of folds whose lanes can be folded together, or that are alone.

    Args:
      folds: those whose lanes are folded.
      ends: from folds to their running values and the lanes of these.
    """
    groups = {}
    for each in folds:
        lanes, dtype = ends[each][1], each.args[0].dtype
        own = each if lanes & (lanes - 1) or places_too(each) else None
        groups.setdefault((each.detail.how, dtype, lanes, own), []).append(each)
    return groups.values()


def fold_lanes_of(f, folds, ends):
    """Write the fold of the lanes of alike folds; return the names of the results."""
    values, lanes = ends[folds[0]]
    if len(folds) == 1:
        return fold_lanes(f, folds[0], values, lanes)[-1:]
    return fold_side_by_side(f, folds[0], [ends[each][0][0] for each in folds], lanes)


def fold_side_by_side(f, fold, vectors, lanes):
    """Write the fold of the lanes of several vectors; return the names of the results.

    What is left of two vectors, half of the lanes of each, fits in one.

    Args:
      fold: how it is done; `vectors` are its, or those of folds like it.
      lanes: of a vector, a power of two.
    """
    dtype, width, length = fold.args[0].dtype, lanes, lanes
    kind, count = type_of(dtype), len(vectors)
    vectors = [*vectors, *vectors[-1:] * (2 ** (count - 1).bit_length() - count)]
    while length > 1:
        pairs = list(zip(vectors[::2], vectors[1::2])) or [(vectors[0], "undef")]
        ends = range(0, width * min(2, len(vectors)), length)
        low = [start + lane for start in ends for lane in range(length // 2)]
        orders = low, [lane + length // 2 for lane in low]
        shuffle = functools.partial(f.shuffle, kind)
        halves = [[shuffle(*x, order, width) for order in orders] for x in pairs]
        width, length = len(low), length // 2
        vectors = [combined(f, fold, x[:1], x[1:], width)[0] for x in halves]
    each = [(x, lane) for x in vectors for lane in range(width)]
    return [f.element(kind, x, width, lane) for x, lane in each[:count]]


def joined(f, kind, x, last, lanes):
    """Write a vector with one more lane."""
    longer = f.shuffle(kind, x, "undef", [*range(lanes), 0], lanes)
    element = f.element(kind, last, 1, 0)
    return f.with_element(kind, longer, lanes + 1, lanes, element)


def write_wins(f, how, dtype, old, new, lanes, ties):
    """Write whether the new one of two candidates is better; NaN is best of all.

    Of equals the old one stays; with `ties`, the one whose place comes first.
    """

    def write(op, x, y, dtype=BOOL):
        return f.operation(op, [x, y], dtype, BOOL, lanes)

    (best, place), (rival, other) = old, new
    wins = write("gt" if how == "argmax" else "lt", rival, best, dtype)
    before = write("lt", other, place, INT64) if ties else None
    if ties:
        equal = write("eq", rival, best, dtype)
        wins = write("or", wins, write("and", equal, before))
    if dtype.kind != "f":
        return wins
    known = write("eq", best, best, dtype)
    known = write("or", known, before) if ties else known
    return write("or", wins, write("and", write("ne", rival, rival, dtype), known))


def all_running(f, folds):
    """Return the names of the running values of some folds."""
    return [name for each in folds for name in f.running[each]]


def set_running(f, folds, names):
    """Say how the running values of some folds are called from now on."""
    names = iter(names)
    for each in folds:
        f.running[each] = [next(names) for _ in f.running[each]]


def with_new_values(f, folds, write):
    """Write something that begins folds anew; its values enter those before.

    Those that run go on.
    """
    folds = [each for each in folds if not runs(each)]
    before = {each: f.running[each] for each in folds}
    f.running |= {each: first_values(each, f.open[each]) for each in folds}
    write()
    for each in folds:
        values = before[each], f.running[each]
        f.running[each] = combined(f, each, *values, f.open[each])
