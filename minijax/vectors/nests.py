# Made from chapters/24_vectors.md by `make chapter`;
# edit the chapter, not this file.
"""Vectorisation: which loop of a nest is done by vectors, and how long they are."""

import math

from minijax.functions import elementary
from minijax.kernels.kernel import Node
from minijax.kernels.parts import Combine, Loop, Store, apart, runs
from minijax.kernels.scalar_ops import scalar_ops

WAIT = 3  # what a turn of a running fold takes, as it waits for the one before
LEVEL = 2  # what it takes to fold one half of a vector's lanes with the other


def cost(step, axis, lanes=1):
    """Return what a step costs; the unit is a load of neighbours.

    Args:
      step: a step of a nest that is no loop.
      axis: the axis along which vectors lie, or None.
      lanes: how many numbers they hold.
    """
    if isinstance(step, Store):
        return _cost_of_store(step, axis, lanes)
    if is_turn(step) and axis is None:
        return WAIT
    if not isinstance(step, Node) or step.op in ("constant", "index"):
        return 0.25
    if step.op == "load":
        return _cost_of_load(step, axis, lanes)
    function = elementary.function(step.op, step.args[-1].dtype)
    return 0.5 * (function.operations if function else 1)


def _cost_of_store(step, axis, lanes):
    stride = step.place.strides[axis] if axis is not None else 1
    if step.update:
        return 2 if stride == 1 else 3 * lanes
    return 1 if abs(stride) == 1 else 1.5 * lanes


def _cost_of_load(node, axis, lanes):
    if any(axis in number.level for number in node.args):
        return 3 * lanes
    stride = node.detail.place.strides[axis] if axis is not None else 1
    if abs(stride) <= 1:
        return 1
    return 4 * stride - 3 if 1 < stride <= 4 else 3 * lanes


def is_turn(step):
    """Return whether in this step a number enters a running fold."""
    return isinstance(step, Combine) and runs(step.fold)


def is_loop(step):
    """Return whether a step has a body."""
    return isinstance(step, Loop)


def everything(steps):
    """Yield the steps of a nest, those inside of loops too."""
    for step in steps:
        yield step
        if is_loop(step):
            yield from everything(step.body)


def may_have_lanes(loop):
    """Return whether the turns of a loop may be done at once.

    No fold may run along it, and no two lanes may meet in a place that is computed.
    """
    inner = [step for step in loop.body if isinstance(step, Store)]
    stores = [step for step in everything(loop.body) if isinstance(step, Store)]
    meet = [step for step in stores if step.update and not step.update.distinct]
    own = all(step in inner and apart(step, loop.axis) for step in meet)
    return own and not any(map(runs, loop.folds))


def leaps(step, axis):
    """Return whether the elements of a step's lanes are no neighbours."""
    if isinstance(step, Store):
        return abs(step.place.strides[axis]) > 1
    loads = isinstance(step, Node) and step.op == "load"
    return loads and abs(step.detail.place.strides[axis]) > 1


def is_short(kernel, loop):
    """Return whether the turns of a loop may stand in the text one after the other."""
    return kernel.sizes[loop.axis] <= 16 and length(kernel, [loop]) <= 64


def length(kernel, steps):
    """Return how many steps are done, if each vector is one."""
    return sum(
        (1 if step.lanes else kernel.sizes[step.axis]) * length(kernel, step.body)
        if is_loop(step)
        else 1
        for step in steps
    )


def is_function(step):
    """Return whether a step is a node that takes as long as many others."""
    row = scalar_ops.get(step.op) if isinstance(step, Node) else None
    return row is not None and row.cost == "transcendentals"


def widest(loop):
    """Return the dtype of the longest numbers that a loop computes with."""
    steps = [*everything(loop.body)]
    nodes = [step for step in steps if isinstance(step, Node)]
    nodes += [step.node for step in steps if isinstance(step, Store)]
    nodes += [fold.args[0] for fold in loop.folds]
    dtypes = [node.dtype for node in nodes if node.op not in ("constant", "index")]
    return max(dtypes or [nodes[0].dtype], key=lambda dtype: dtype.itemsize)


def lanes_for(kernel, loop, target):
    """Return how many numbers the vectors of a loop hold.

    Where there is little to do for each of them, several registers stand for a vector:
    then the processor has something to do while it waits. Elements that are no
    neighbours, and that enter running folds, keep it busy without. So do functions,
    but not if each turn of a loop inside goes to another row for its numbers.
    """
    size, lanes = kernel.sizes[loop.axis], target.lanes(widest(loop))
    if size <= lanes:
        return size
    steps = [*everything(loop.body)]
    functions, rows = any(map(is_function, steps)), functions_of_rows(loop)
    folds = loop.folds or any(isinstance(step, Loop) for step in steps)
    if folds and (rows or not functions) and not (
        any(map(is_turn, steps)) and any(leaps(step, loop.axis) for step in steps)
    ):
        most = min((target.registers // 8 if functions else 4) * lanes, size)
        while 2 * lanes <= most:
            lanes *= 2
    return lanes


def functions_of_rows(loop):
    """Return whether a loop in a loop has functions, and reads a row in each turn."""
    inner = [step for step in loop.body if is_loop(step)]
    return any(
        any(map(is_function, each.body))
        and any(leaps(step, each.axis) for step in each.body)
        for each in inner
    )


def cost_at_once(kernel, steps, axis, lanes):
    """Return what steps cost with vectors along an axis."""
    return sum(
        kernel.sizes[step.axis] * cost_at_once(kernel, step.body, axis, lanes)
        if isinstance(step, Loop)
        else cost(step, axis, lanes)
        for step in steps
    )


def cheapest(kernel, loop, target):
    """Return the cost of a loop, and the loop with vectors where they are best.

    Either it has vectors itself, or the loops in its body may.
    """
    size = kernel.sizes[loop.axis]
    if size == 0:
        return 0, loop
    pairs = [
        cheapest(kernel, step, target)
        if isinstance(step, Loop)
        else (cost(step, None), step)
        for step in loop.body
    ]
    inside = size * sum(price for price, _ in pairs)
    lanes = lanes_for(kernel, loop, target)
    registers = max(1, lanes // target.lanes(widest(loop)))
    wide = math.ceil(size / lanes) * registers
    wide *= cost_at_once(kernel, loop.body, loop.axis, lanes)
    wide += len(loop.folds) * LEVEL * math.log2(lanes)
    if size > 1 and wide < inside and may_have_lanes(loop):
        return wide, loop._replace(lanes=lanes)
    return inside, loop._replace(body=[step for _, step in pairs])


def with_vectors(kernel, steps, target):
    """Return the steps of a nest with vectors in some of the loops."""
    return [
        step
        if any(is_loop(inner) and inner.lanes for inner in everything([step]))
        else cheapest(kernel, step, target)[1]
        if isinstance(step, Loop)
        else step
        for step in steps
    ]
