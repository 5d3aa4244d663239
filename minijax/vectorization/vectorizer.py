"""Vectorisation: which loop of a nest is done by vectors, and how long they are."""

# Made from chapters/24_vectors.md by `make chapter`;
# edit the chapter, not this file.

import math

from minijax.elementary_functions import real_functions as elementary
from minijax.kernels.ir import Loop, Store
from minijax.kernels.loop_nests import Node
from minijax.vectorization.loop_splitting import split_complaint, split_loop
from minijax.vectorization.vector_functions import (
    is_scan_combine,
    load_cost,
    store_cost,
    vector_lanes,
    widest_dtype,
)

WAIT = 3  # what an iteration of a running fold takes, as it waits for the one before


def step_cost(step, axis, lanes=1):
    """Return what a step costs; the unit is a load of neighbours.

    Args:
      step: a step of a nest that is no loop.
      axis: the axis along which vectors lie, or None.
      lanes: how many numbers they hold.
    """
    if isinstance(step, Store):
        return store_cost(step, axis, lanes)
    if is_scan_combine(step) and axis is None:
        return WAIT
    if not isinstance(step, Node) or step.op in ("constant", "index"):
        return 0.25
    if step.op == "load":
        return load_cost(step, axis, lanes)
    function = elementary.scalar_function(step.op, step.args[-1].dtype)
    return 0.5 * (function.operations if function else 1)


def cost_at_once(kernel, steps, axis, lanes):
    """Return what steps cost with vectors along an axis."""
    return sum(
        kernel.sizes[step.axis] * cost_at_once(kernel, step.body, axis, lanes)
        if isinstance(step, Loop)
        else step_cost(step, axis, lanes)
        for step in steps
    )


LEVEL = 2  # what it takes to fold one half of a vector's lanes with the other


def best_vectorization(kernel, loop, target):
    """Return the cost of a loop, and the loop with vectors where they are best.

    Either it has vectors itself (`wide`), or the loops in its body may (`inside`).
    """
    size = kernel.sizes[loop.axis]
    if size == 0:
        return 0, loop
    pairs = [
        best_vectorization(kernel, step, target)
        if isinstance(step, Loop)
        else (step_cost(step, None), step)
        for step in loop.body
    ]
    inside = size * sum(price for price, _ in pairs)
    lanes = vector_lanes(kernel, loop, target)
    registers = max(1, lanes // target.lanes(widest_dtype(loop)))
    wide = math.ceil(size / lanes) * registers
    wide *= cost_at_once(kernel, loop.body, loop.axis, lanes)
    wide += len(loop.folds) * LEVEL * math.log2(lanes)
    if size > 1 and wide < inside and not split_complaint(loop, lanes, "vector"):
        return wide, split_loop(loop, lanes, "vector")
    return inside, loop._replace(body=[step for _, step in pairs])
