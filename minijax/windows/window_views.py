"""Windows as loads of a kernel: places that are even in its indices, and guards."""

# Made from chapters/30_windows_ground.md by `make chapter`;
# edit the chapter, not this file.

import math

import numpy as np

from minijax.kernels.building import KernelBuilder
from minijax.kernels.parts import Affine, Guard
from minijax.kernels.views import permuted, reshaped, sliced, stretched
from minijax.matmul.lowering import in_memory


def groups_first(view, axis, count):
    """Return a view with an axis divided into groups, which are counted in front."""
    size, stride = view.shape[axis] // count, view.strides[axis]
    shape, strides = list(view.shape), list(view.strides)
    shape[axis] = size
    return view.replace((count, *shape), (size * stride, *strides))


def windows_in(view, phases, axis):
    """Return the part of a result that some phases compute; `axis` is their first."""
    return _part(view, axis, [(p.first, p.count, p.step) for p in phases])


def taps_in(view, phases, axis):
    """Return the part of a window that is no gap in some phases."""
    return _part(view, axis, [(p.tap, p.taps, p.tap_step) for p in phases])


def _part(view, axis, parts):
    box = [(0, size, 1) for size in view.shape]
    box[axis : axis + len(parts)] = parts
    return sliced(view, *zip(*box))


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
        least, most = phase.reach()
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
    y, w = windows_in(out, phases, 3), taps_in(w, phases, 3)
    rank, terms = len(y.shape), len(y.shape) + len(phases)
    k = KernelBuilder("conv_general_dilated", (*y.shape, *w.shape[3:], w.shape[2]))
    space, taps = range(3, rank), range(rank, terms)
    if is_empty(phases) or not w.shape[2]:
        total = k.constant(0, dtype)
    else:
        elements = load_windows(k, x, phases, (0, 1, terms), space, taps)
        numbers = k.load(stretched(w, k.sizes, (0, 2, terms, *taps)))
        pair = [k.convert(node, dtype) for node in (elements, numbers)]
        how = ("or", "and") if dtype.kind == "b" else ("add", "mul")
        total = k.fold(how[0], (*taps, terms), k.apply(how[1], *pair))
    lowering.run(k, (y, k.convert(total, out.dtype)))


def in_order(lowering, found, spec, aval):
    """Return the view of a result without groups, with its axes where they belong."""
    groups, batch, features, *space = range(len(found.shape))
    order = (batch, groups, features, *space)
    found = permuted(found, order)
    found = lowering.copy(found) if found.shape[1] > 1 else found
    shape = (found.shape[0], found.shape[1] * found.shape[2], *found.shape[3:])
    found = permuted(reshaped(found, shape), np.argsort(spec))
    return in_memory(lowering, found, aval.dtype)
