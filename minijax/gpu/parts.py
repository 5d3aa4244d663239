"""Kernels in several launches, so that they fill a card: long folds, running totals."""

# Made from chapters/34_gpu_upper.md by `make chapter`;
# edit the chapter, not this file.

import math

from minijax.gpu.fold_stages import in_stages
from minijax.gpu.launches import launch_of, outer_axes
from minijax.kernels.kernel import Kernel, apply, fold, load
from minijax.kernels.parts import Affine, Guard, Parameter, Store, elements, runs
from minijax.kernels.program_steps import Launch
from minijax.kernels.scalar_ops import foldings
from minijax.kernels.views import Buffer, collapse, running
from minijax.threads.partial_folds import (
    Cut,
    Spread,
    assembled,
    first_kernel,
    in_two,
    partial_parameters,
    respread,
    rows_of,
)

MANY, ALONE = 2**19, 2**13  # threads: which fill a card, and leave most of it idle
SHARE = 512  # of them for a running total
ROOM_FOR_PARTS = 2**26  # for what is left of the parts, in bytes


def parts_for(size, threads, least):
    """Return in how many parts to cut an axis, or 1 for none.

    Args:
      size: of the axis.
      threads: how many threads there are otherwise.
      least: how long a part has to be.
    """
    if threads > MANY // 2 or size < 2 * least:
        return 1
    count = min(size // least, math.ceil(MANY / max(threads, 1)))
    length = 32 * math.ceil(size / count / 32)
    return math.ceil(size / length)


def in_parts(step):
    """Return launches that do what one does, with more blocks; or itself, in a list."""
    kernel = step.kernel
    if 0 in kernel.sizes:
        return [step]
    if any(map(runs, kernel.nodes)):
        return totals_in_parts(step) or [step]
    shape = launch_of(kernel)
    threads = shape.blocks(kernel) * shape.threads
    if threads <= ALONE and (stages := in_stages(step)):
        return [each for stage in stages for each in in_parts(stage)]
    folded = [n.detail.axes for n in kernel.nodes if n.op == "fold"]
    axes = {axis for each in folded for axis in each}
    longest = max((kernel.sizes[axis] for axis in axes), default=1)
    least = 256 if shape.across else 1024
    count = parts_for(longest, threads, least)
    options = {"counts": [count], "room": ROOM_FOR_PARTS, "uneven": True}
    return count > 1 and in_two(step, **options) or [step]


def axis_of_totals(kernel, totals):
    """Return the axis along which totals can be cut, or None."""
    late, [axis, *more] = set(totals), {x for n in totals for x in n.detail.axes}
    for node in kernel.nodes:
        if not late.isdisjoint(node.args):
            late.add(node)
    pure = not any(is_whole(node, axis) for node in kernel.nodes)
    along = all(
        axis in node.args[0].level and node.args[0] not in late for node in totals
    )
    stored = all(axis in s.place.axes and not s.update for s in kernel.stores)
    return axis if pure and along and stored and not more else None


def is_whole(node, axis):
    """Return whether a node needs its axis whole: a fold, an index, computed places."""
    index = node.op == "index" and node.detail == axis
    return index or node.op == "fold" or (node.op == "load" and bool(node.args))


def carry_kernel(kernel, count, total, whole, carry):
    """Return the kernel of what all parts before each part have made."""
    strides, size = rows_of(kernel, total)
    axes = range(len(strides))
    sizes = [kernel.sizes[axis] if axis in total.level else 1 for axis in axes]
    one = Affine(-1, (*[0 for _ in axes], 1))
    start = foldings[total.detail.how].start(total.dtype)
    before = Affine(-size, (*strides, size))
    x = load(whole, before, [Guard(one, count)], start)
    y = running(total.detail.how, len(sizes), x)
    store = Store(carry, before._replace(offset=0), y)
    return collapse(assembled(kernel.name, [*sizes, count], [x, y], [store]))


def totals_kernel(kernel, cut, carries):
    """Return the kernel that makes the totals of each part, from its carry on."""
    spread, new = Spread(kernel, cut.axis, cut.parts), {}
    made = [*spread.nodes]
    for node in kernel.nodes:
        args = [new[arg] for arg in node.args]
        if node not in carries:
            new[node] = respread(node, args, spread)
        else:
            how = node.detail.how
            strides, size = rows_of(kernel, fold(how, (cut.axis,), *node.args))
            place = Affine(0, (size, *strides))
            made += [load(carries[node], place), running(how, cut.axis + 1, *args)]
            new[node] = apply(how, *made[-2:])
        made.append(new[node])
    stores = [spread.store(store, new[store.node]) for store in kernel.stores]
    return assembled(kernel.name, spread.sizes, made, stores)


def with_buffers(step, kernels, parameters):
    """Return launches of kernels; new parameters have buffers of their own."""
    owners = dict(zip(step.kernel.parameters, step.buffers))
    name = step.buffers[-1].name
    owners |= {x: Buffer(f"{name}_{x.name}", x.dtype, x.size) for x in parameters}
    return [
        Launch(kernel, [owners[parameter] for parameter in kernel.parameters])
        for kernel in kernels
    ]


def totals_in_parts(step):
    """Return three launches for one that makes running totals, or None."""
    kernel, totals = step.kernel, [node for node in step.kernel.nodes if runs(node)]
    axis = axis_of_totals(kernel, totals)
    if axis is None:
        return None
    rows = elements(kernel, outer_axes(kernel))
    count = parts_for(kernel.sizes[axis], rows * SHARE, 1024)
    if count == 1:
        return None
    folds = [fold(node.detail.how, (axis,), *node.args) for node in totals]
    wholes = partial_parameters(kernel, folds, count)
    carries = [Parameter(f"carry{x.name}", x.dtype, x.size) for x in wholes]
    cut = Cut(axis, count, dict(zip(folds, wholes)))
    nodes = [node for node in kernel.nodes if not runs(node)]
    ends = Kernel(kernel.name, kernel.sizes, (), (*nodes, *folds), ())
    kernels = [
        first_kernel(ends, cut),
        *[carry_kernel(kernel, count, *x) for x in zip(folds, wholes, carries)],
        totals_kernel(kernel, cut, dict(zip(totals, carries))),
    ]
    return with_buffers(step, kernels, [*wholes, *carries])
