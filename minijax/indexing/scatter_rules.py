# Made from chapters/28_indexing_rest.md by `make chapter`;
# edit the chapter, not this file.
"""Derivatives of the scatters that replace, multiply, or keep the extreme.

Reference: ``jax._src.lax.slicing``.
"""

import math

import numpy as np

from minijax import lax
from minijax.arrays.avals import typeof
from minijax.forward.rules import add_tangents, instantiate, jvp_rules
from minijax.indexing.dimension_numbers import (
    GatherDimensionNumbers,
    Promises,
    scatter_by,
)
from minijax.indexing.primitives import (
    Windows,
    scatter_add_p,
    scatter_max_p,
    scatter_min_p,
    scatter_mul_p,
    scatter_p,
)
from minijax.indexing.rules import abstract, promises_of, taken_back
from minijax.reverse.transposition import transpose_rules, transposes


def _set_jvp(primals, tangents, **params):
    """Replace the tangents as the numbers are replaced, if each place is named once."""
    if params["update_jaxpr"] is not None:
        raise NotImplementedError("scatter_apply JVP not implemented")
    x, indices, updates = primals
    if tangents[0] is None and tangents[2] is None:
        return scatter_p.bind(*primals, **params), [None]
    x_dot, updates_dot = instantiate([x, updates], [tangents[0], tangents[2]])
    if params["unique_indices"]:
        results = scatter_p.bind(x, indices, updates, **params)
        return results, scatter_p.bind(x_dot, indices, updates_dot, **params)
    replaced, winning = winners(x, indices, updates, params)
    pairs = [(x, updates), (x_dot, updates_dot)]
    value, rate = (
        sum_of_winners(old, new, indices, replaced, winning, params)
        for old, new in pairs
    )
    return [value], [rate]


def winners(x, indices, updates, params):
    """Return which elements are replaced, and which updates replace one.

    Updates are numbered from one, and their numbers are scattered: what is read back
    is the number of the update that has won a place.
    """
    windows = Windows(*params["dimension_numbers"])
    counting = windows.counting(typeof(updates).ndim)
    shape = [n if i in counting else 1 for i, n in enumerate(typeof(updates).shape)]
    count = math.prod(shape)
    dtype = np.dtype(np.uint32 if count < 2**32 else np.uint64)
    numbers = lax.reshape(lax.iota(dtype, count), shape)
    numbers = lax.add(numbers, lax.full_like(updates, 1, dtype))
    zeros = lax.full(typeof(x).shape, 0, dtype)
    args = indices, numbers, params["dimension_numbers"], promises_of(params)
    won = scatter_by(scatter_p, None, zeros, *args)
    read = read_back(won, indices, updates, params)
    return lax.ne(won, lax.full_like(won, 0)), lax.eq(numbers, read)


def read_back(x, indices, updates, params):
    """Gather from an array where the updates of a scatter go."""
    numbers = GatherDimensionNumbers(*params["dimension_numbers"])
    sizes = Windows(*numbers).sizes(typeof(x).ndim, typeof(updates).shape)
    return lax.gather(x, indices, numbers, sizes)


def sum_of_winners(x, updates, indices, replaced, winning, params):
    """Add the winning updates to an array that is zero where it is replaced."""
    x = lax.select(replaced, lax.full_like(x, 0), x)
    updates = lax.select(winning, updates, lax.full_like(updates, 0))
    args = params["dimension_numbers"], promises_of(params)
    return scatter_by(scatter_add_p, lax.add, x, indices, updates, *args)


jvp_rules[scatter_p] = _set_jvp


def _set_transpose_operand(ct, x, indices, updates, **params):
    _check_unique(params)
    zeros = lax.full(abstract(updates).shape, 0, typeof(ct).dtype)
    return scatter_p.bind(ct, indices, zeros, **params)[0]


def _set_transpose_updates(ct, x, indices, updates, **params):
    _check_unique(params)
    return taken_back(ct, x, indices, updates, **params)


def _check_unique(params):
    if not params["unique_indices"]:
        raise NotImplementedError(
            "scatter transpose is only implemented where unique_indices=True. "
            "Differentiation writes a sum of updates, which is linear, in its place."
        )


transposes(scatter_p, _set_transpose_operand, None, _set_transpose_updates)


NOT_UNIQUE = "scatter_mul gradients are only implemented if `unique_indices=True`"


def _mul_jvp(primals, tangents, **params):
    x, indices, updates = primals
    results, rate = scatter_mul_p.bind(*primals, **params), None
    if tangents[0] is not None:
        [rate] = scatter_mul_p.bind(tangents[0], indices, updates, **params)
    if tangents[2] is not None:
        if not params["unique_indices"]:
            raise NotImplementedError(NOT_UNIQUE)
        args = tangents[2], params["dimension_numbers"], promises_of(params)
        zeros = lax.full_like(x, 0)
        moved = scatter_by(scatter_add_p, lax.add, zeros, indices, *args)
        rate = add_tangents(rate, lax.mul(x, moved))
    return results, [rate]


def _mul_transpose_operand(ct, x, indices, updates, **params):
    return scatter_mul_p.bind(ct, indices, updates, **params)[0]


def _mul_transpose_updates(ct, x, indices, updates, **params):
    if not params["unique_indices"]:
        raise NotImplementedError(f"{NOT_UNIQUE}: else it is not linear in them.")
    return taken_back(lax.mul(ct, x), x, indices, updates, **params)


jvp_rules[scatter_mul_p] = _mul_jvp
transposes(
    scatter_mul_p, _mul_transpose_operand, None, _mul_transpose_updates, bilinear=True
)


def extreme_jvp(primitive):
    """Return the jvp rule of a scatter of extremes: those that win share the rate."""

    def rule(primals, tangents, **params):
        x, indices, updates = primals
        [result] = primitive.bind(*primals, **params)
        if tangents[0] is None and tangents[2] is None:
            return [result], [None]
        dots = instantiate([x, updates], [tangents[0], tangents[2]])
        change = change_of_extreme(primals, result, dots, params)
        args = change, params["dimension_numbers"], promises_of(params)
        return [result], [scatter_by(scatter_add_p, lax.add, dots[0], indices, *args)]

    return rule


def change_of_extreme(primals, result, tangents, params):
    """Return what is added to the tangent of an operand where updates enter it."""
    (x, indices, updates), (x_dot, updates_dot) = primals, tangents

    def read(array):
        return read_back(array, indices, updates, params)

    def counted(updates):
        zeros, numbers = lax.full_like(x, 0), params["dimension_numbers"]
        args = zeros, indices, updates, numbers, Promises()
        return read(scatter_by(scatter_add_p, lax.add, *args))

    target, one = read(result), lax.full_like(updates, 1)
    zero, entered = lax.full_like(updates, 0), lax.eq(updates, target)
    stayed = lax.eq(read(x), target)
    winners_here = counted(lax.select(entered, one, zero))
    shared = lax.div(one, lax.add(winners_here, one))
    share = lax.select(stayed, shared, lax.div(one, winners_here))
    share = lax.select(entered, share, zero)
    kept = lax.sub(lax.select(stayed, shared, zero), one)
    lost = lax.mul(read(x_dot), lax.div(kept, counted(one)))
    return lax.add(lost, lax.mul(updates_dot, share))


for primitive in (scatter_min_p, scatter_max_p):
    jvp_rules[primitive] = extreme_jvp(primitive)
    transpose_rules.reasons[primitive] = (
        "It is not linear: differentiation writes its tangent with gathers and a sum "
        "of updates, and these are transposed."
    )
