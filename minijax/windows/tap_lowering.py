"""How a convolution becomes steps that multiply tiles: padding, packing, loops."""

# Made from chapters/30_windows_ground.md by `make chapter`;
# edit the chapter, not this file.

import itertools
import math

import numpy as np

from minijax.arrays.avals import ShapedArray
from minijax.kernels.building import KernelBuilder
from minijax.kernels.parts import Affine, Guard
from minijax.kernels.views import Buffer, permuted, sliced
from minijax.windows.geometry import phases_of
from minijax.windows.tap_products import Loop, TapProduct, columns_in_unit
from minijax.windows.window_views import is_empty, taps_in, windows_in

AT_LEAST = 2**14  # products; smaller convolutions are kernels
FEW = 2**18  # numbers of a window; more of them stay where they are


def suits_tiles(x, w, aval, dtype):
    """Whether a convolution is large enough for tiles, and of real floats.

    Args:
      x, w: views with groups in front, as `multiply_taps` takes them.
      aval: of the result.
      dtype: to multiply and add in.
    """
    terms = math.prod(w.shape[2:])
    wide_enough = w.shape[1] * 2 >= columns_in_unit(dtype) and terms >= 4
    fits = max(math.prod(x.shape), math.prod(w.shape)) < 2**29
    return (
        dtype.kind == "f"
        and wide_enough
        and fits
        and aval.size * terms >= AT_LEAST
        and min(x.shape) > 0
    )


def multiply_taps(lowering, sliding, x, w, dtype):
    """Add the steps of a convolution; return the view of its result.

    Args:
      sliding: the `Sliding` of its windows.
      x: view of the array: groups, examples, features, space.
      w: view of the window: groups, features of the result, features, taps.
      dtype: to multiply and add in.

    Returns:
      A view: groups, examples, features, space.
    """
    phases = phases_of(sliding, x.shape[3:])
    image = padded_image(lowering, x, phases, dtype)
    counts, unit = sliding.counts(x.shape[3:]), columns_in_unit(dtype)
    features = -(-w.shape[1] // unit) * unit
    shape = (*x.shape[:2], *counts, features)
    out = lowering.allocate(ShapedArray(shape, dtype))
    for some in phases:
        add_phase(lowering, some, image, w, out)
    result = sliced(out, [0] * len(shape), (*shape[:-1], w.shape[1]), [1] * len(shape))
    return permuted(result, (0, 1, len(shape) - 1, *range(2, len(shape) - 1)))


def padded_image(lowering, x, phases, dtype):
    """Return the view of an array that has all elements that windows reach.

    It is a copy with zeros at its ends, if need be; the first element is that of `x`.
    """
    lows, highs = [0] * 3, [0] * 3
    for axis, size in enumerate(x.shape[3:]):
        reaches = [some[axis].reach() for some in phases if not is_empty(some)]
        lows.append(max([0, *[-least for least, _ in reaches]]))
        highs.append(max([0, *[most + 1 - size for _, most in reaches]]))
    if not any([*lows, *highs]) and isinstance(x.source, Buffer) and x.dtype == dtype:
        return x
    order = sorted(range(len(x.shape)), key=lambda axis: -abs(x.strides[axis]))
    room = [low + n + high for low, n, high in zip(lows, x.shape, highs)]
    k = KernelBuilder("pad", [room[axis] for axis in order])
    shifted = sliced(x, [-low for low in lows], room, [1] * len(room))
    guards = [
        Guard(Affine(-lows[axis], tuple(int(i == at) for i in range(len(room)))), n)
        for at, axis in enumerate(order)
        for n in [x.shape[axis]]
        if lows[axis] or highs[axis]
    ]
    number = k.convert(k.load(permuted(shifted, order), guards), dtype)
    out = lowering.launch(k, number, ShapedArray(k.sizes, dtype))
    image = permuted(out, [order.index(axis) for axis in range(len(room))])
    own = sliced(image, lows, x.shape, [1] * len(room))
    return own._replace(strides=image.strides)  # one element has neighbours here


def add_phase(lowering, phases, image, w, out):
    """Add the step of the windows of some phases, or zeros where these are empty."""
    y = windows_in(out, phases, 2)
    if is_empty(phases):
        k = KernelBuilder("zeros", y.shape)
        lowering.run(k, (y, k.constant(0, out.dtype)))
        return
    places = [phase.place for phase in phases]
    moves, taps = [p.move for p in phases], [p.tap_move for p in phases]
    offset = image.offset + sum(map(math.prod, zip(places, image.strides[3:])))
    w = taps_in(w, phases, 3)
    distances = [image.strides[2], *map(math.prod, zip(taps, image.strides[3:]))]
    weights, axes, unit = packed(lowering, w, distances, out)
    terms, table = taps_of(lowering, axes)
    group = Loop(y.shape[0], image.strides[0], weights.strides[0], y.strides[0])
    steps = [image.strides[1], *map(math.prod, zip(moves, image.strides[3:]))]
    loops = [
        Loop(*x)
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
      A view; for each axis of terms a `Loop`; and the distance of two units.
    """
    order = sorted(range(2, len(w.shape)), key=lambda axis: -abs(distances[axis - 2]))
    unit, sums = columns_in_unit(out.dtype), [w.shape[axis] for axis in order]
    stays = isinstance(w.source, Buffer) and w.dtype == out.dtype and w.strides[1] == 1
    if stays and w.shape[1] % unit == 0 and math.prod(w.shape) > FEW:
        strides, found, apart = [w.strides[axis] for axis in order], w, unit
    else:
        found = packed_copy(lowering, w, order, unit, out)
        strides, apart = found.strides[2:-1], found.strides[1]
    moves = [distances[axis - 2] for axis in order]
    return found, [Loop(*x, 0) for x in zip(sums, moves, strides)], apart


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
    """Return the `Loop` within a tap, and the view of a table of all taps.

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
    terms = max(runs, key=lambda loop: loop.count, default=Loop(1, 0, 0, 0))
    runs = [loop for loop in runs if loop is not terms]
    turns = itertools.product(*[range(loop.count) for loop in runs])
    places = [
        [
            sum(i * move for i, move in zip(turn, moves))
            for moves in ([x.a for x in runs], [x.b for x in runs])
        ]
        for turn in turns
    ]
    table = np.array(places, np.int32).reshape(-1, 2)
    return terms, lowering.constant(table, ShapedArray(table.shape, table.dtype))
