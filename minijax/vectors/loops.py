"""Loops that may have lanes: which ones, how many, and what memory costs them."""

# Made from chapters/24_vectors_ground.md by `make chapter`;
# edit the chapter, not this file.

from minijax.kernels.kernel import Node
from minijax.kernels.parts import Combine, Loop, Store, apart, runs
from minijax.kernels.scalar_ops import scalar_ops


def store_cost(step, axis, lanes):
    """Return what a store costs with so many lanes along an axis."""
    stride = step.place.strides[axis] if axis is not None else 1
    if step.update:
        return 2 if stride == 1 else 3 * lanes
    return 1 if abs(stride) == 1 else 1.5 * lanes


def load_cost(node, axis, lanes):
    """Return what a load costs; the unit is a load of neighbours."""
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


def is_short(kernel, loop, beside=1):
    """Return whether the turns of a loop may stand in the text one after the other.

    Each of its steps may have to be written several times `beside` itself.
    """
    steps = length(kernel, [loop])
    return kernel.sizes[loop.axis] <= 16 and steps <= 64 and steps * beside <= 256


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
