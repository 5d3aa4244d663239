"""Scatters that do not add: subtraction, products, extremes; and all their columns.

References: ``jax.lax.scatter_sub``, ``jax.lax.scatter_mul``, ``jax.lax.scatter_min``,
``jax._src.lax.slicing``.
"""

# Made from chapters/28_indexing_rest.md by `make chapter`;
# edit the chapter, not this file.

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from minijax import lax
from minijax.arrays.array import ShapedArray, def_shape_and_impl, typeof
from minijax.batching.vmap import vmap_rules
from minijax.core import Array, Primitive
from minijax.forward_mode.jvp import add_or_none, instantiate_tangents, jvp_rules
from minijax.indexing.dimension_numbers import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    ScatterIndexInfo,
    WindowDims,
    bind_scatter,
    scatter_shape_rule,
    scatter_with_combiner,
)
from minijax.indexing.dynamic_slices import dynamic_slice_p, dynamic_update_slice_p
from minijax.indexing.gather_scatter import (
    aval_of_operand,
    def_scatter_rules,
    gather_from_cotangent,
    gather_p,
    scatter_add_jvp,
    scatter_add_p,
    scatter_impl,
    scatter_index_info,
    scatter_p,
    ufunc_at,
)
from minijax.jaxprs.jaxpr import trace_to_jaxpr
from minijax.reverse_mode.backward_pass import deftranspose, transpose_rules
from minijax.typing import ArrayLike

# Scatters that subtract, multiply, keep the extreme, or apply a function.

scatter_sub_p: Primitive = Primitive("scatter-sub")
scatter_mul_p: Primitive = Primitive("scatter-mul")
scatter_min_p: Primitive = Primitive("scatter-min")
scatter_max_p: Primitive = Primitive("scatter-max")
def_shape_and_impl(
    scatter_sub_p, scatter_shape_rule, scatter_impl(ufunc_at("subtract"))
)
def_shape_and_impl(
    scatter_mul_p, scatter_shape_rule, scatter_impl(ufunc_at("multiply"))
)
def_shape_and_impl(scatter_min_p, scatter_shape_rule, scatter_impl(ufunc_at("minimum")))
def_shape_and_impl(scatter_max_p, scatter_shape_rule, scatter_impl(ufunc_at("maximum")))


def scatter_sub(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """Subtract from windows of an array, at places that the program computes.

    Reference: ``jax.lax.scatter_sub``.
    """
    how = ScatterIndexInfo(indices_are_sorted, unique_indices, mode)
    args = operand, scatter_indices, updates, dimension_numbers
    return scatter_with_combiner(scatter_sub_p, lax.sub, *args, how)


def scatter_mul(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """Multiply windows of an array, at places that the program computes.

    Reference: ``jax.lax.scatter_mul``.
    """
    how = ScatterIndexInfo(indices_are_sorted, unique_indices, mode)
    args = operand, scatter_indices, updates, dimension_numbers
    return scatter_with_combiner(scatter_mul_p, lax.mul, *args, how)


def scatter_min(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """Put the smaller of two into windows at places that the program computes.

    Reference: ``jax.lax.scatter_min``.
    """
    how = ScatterIndexInfo(indices_are_sorted, unique_indices, mode)
    args = operand, scatter_indices, updates, dimension_numbers
    return scatter_with_combiner(scatter_min_p, lax.min, *args, how)


def scatter_max(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """Put the larger of two into windows at places that the program computes.

    Reference: ``jax.lax.scatter_max``.
    """
    how = ScatterIndexInfo(indices_are_sorted, unique_indices, mode)
    args = operand, scatter_indices, updates, dimension_numbers
    return scatter_with_combiner(scatter_max_p, lax.max, *args, how)


def scatter_apply(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    func: Callable[[Array], Array],
    dimension_numbers: ScatterDimensionNumbers,
    *,
    update_shape: Any = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """Apply a function of one number to windows at places that the program computes.

    Args:
      func: from a scalar to a scalar. An element that is named twice goes through it
        twice.
      update_shape: the shape that updates would have.

    The other arguments are those of `scatter`.

    Reference: ``jax.lax.scatter_apply``.
    """
    how = ScatterIndexInfo(indices_are_sorted, unique_indices, mode)
    dtype = typeof(operand).dtype
    scalar = ShapedArray((), dtype)
    jaxpr, consts = trace_to_jaxpr(lambda x, _: [func(x)], [scalar, scalar])
    unused = lax.full(update_shape, 0, dtype)
    args = operand, scatter_indices, unused, dimension_numbers
    return bind_scatter(scatter_p, *args, how, jaxpr, tuple(consts))


# The rules of the scatters that do not add, and batches of boxes.


def _set_jvp(primals, tangents, **params):
    """Replace the tangents as the numbers are replaced, if each place is named once."""
    if params["update_jaxpr"] is not None:
        raise NotImplementedError("scatter_apply JVP not implemented")
    x, indices, updates = primals
    if tangents[0] is None and tangents[2] is None:
        return scatter_p.bind_all(*primals, **params), [None]
    x_dot, updates_dot = instantiate_tangents([x, updates], [tangents[0], tangents[2]])
    if params["unique_indices"]:
        results = scatter_p.bind_all(x, indices, updates, **params)
        return results, scatter_p.bind_all(x_dot, indices, updates_dot, **params)
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
    windows = WindowDims(*params["dimension_numbers"])
    counting = windows.batch_dims(typeof(updates).ndim)
    shape = [n if i in counting else 1 for i, n in enumerate(typeof(updates).shape)]
    count = math.prod(shape)
    dtype = np.dtype(np.uint32 if count < 2**32 else np.uint64)
    numbers = lax.reshape(lax.iota(dtype, count), shape)
    numbers = lax.add(numbers, lax.full_like(updates, 1, dtype))
    zeros = lax.full(typeof(x).shape, 0, dtype)
    args = indices, numbers, params["dimension_numbers"], scatter_index_info(params)
    won = scatter_with_combiner(scatter_p, None, zeros, *args)
    read = read_back(won, indices, updates, params)
    return lax.ne(won, lax.full_like(won, 0)), lax.eq(numbers, read)


def read_back(x, indices, updates, params):
    """Gather from an array where the updates of a scatter go."""
    numbers = GatherDimensionNumbers(*params["dimension_numbers"])
    sizes = WindowDims(*numbers).sizes(typeof(x).ndim, typeof(updates).shape)
    return lax.gather(x, indices, numbers, sizes, mode=params["mode"])


def sum_of_winners(x, updates, indices, replaced, winning, params):
    """Add the winning updates to an array that is zero where it is replaced."""
    x = lax.select(replaced, lax.full_like(x, 0), x)
    updates = lax.select(winning, updates, lax.full_like(updates, 0))
    args = params["dimension_numbers"], scatter_index_info(params)
    return scatter_with_combiner(scatter_add_p, lax.add, x, indices, updates, *args)


jvp_rules[scatter_p] = _set_jvp


def _set_transpose_operand(ct, x, indices, updates, **params):
    _check_unique(params)
    zeros = lax.full(aval_of_operand(updates).shape, 0, typeof(ct).dtype)
    return scatter_p.bind(ct, indices, zeros, **params)


def _set_transpose_updates(ct, x, indices, updates, **params):
    _check_unique(params)
    return gather_from_cotangent(ct, x, indices, updates, **params)


def _check_unique(params):
    if not params["unique_indices"]:
        raise NotImplementedError(
            "scatter transpose is only implemented where unique_indices=True. "
            "Differentiation writes a sum of updates, which is linear, in its place."
        )


deftranspose(scatter_p, _set_transpose_operand, None, _set_transpose_updates)


NOT_UNIQUE = "scatter_mul gradients are only implemented if `unique_indices=True`"


def _mul_jvp(primals, tangents, **params):
    x, indices, updates = primals
    results, rate = scatter_mul_p.bind_all(*primals, **params), None
    if tangents[0] is not None:
        rate = scatter_mul_p.bind(tangents[0], indices, updates, **params)
    if tangents[2] is not None:
        if not params["unique_indices"]:
            raise NotImplementedError(NOT_UNIQUE)
        args = tangents[2], params["dimension_numbers"], scatter_index_info(params)
        zeros = lax.full_like(x, 0)
        moved = scatter_with_combiner(scatter_add_p, lax.add, zeros, indices, *args)
        rate = add_or_none(rate, lax.mul(x, moved))
    return results, [rate]


def _mul_transpose_operand(ct, x, indices, updates, **params):
    return scatter_mul_p.bind(ct, indices, updates, **params)


def _mul_transpose_updates(ct, x, indices, updates, **params):
    if not params["unique_indices"]:
        raise NotImplementedError(f"{NOT_UNIQUE}: else it is not linear in them.")
    return gather_from_cotangent(lax.mul(ct, x), x, indices, updates, **params)


jvp_rules[scatter_mul_p] = _mul_jvp
deftranspose(
    scatter_mul_p, _mul_transpose_operand, None, _mul_transpose_updates, bilinear=True
)


jvp_rules[scatter_sub_p] = partial(scatter_add_jvp, scatter_sub_p)
deftranspose(
    scatter_sub_p,
    lambda ct, *_, **__: ct,
    None,
    lambda ct, *args, **params: lax.neg(gather_from_cotangent(ct, *args, **params)),
)

def_scatter_rules(scatter_sub_p, "sub")
def_scatter_rules(scatter_mul_p, "mul")
def_scatter_rules(scatter_min_p, "min")
def_scatter_rules(scatter_max_p, "max")


def extreme_jvp(primitive):
    """Return the jvp rule of a scatter of extremes: those that win share the rate."""

    def rule(primals, tangents, **params):
        x, indices, updates = primals
        result = primitive.bind(*primals, **params)
        if tangents[0] is None and tangents[2] is None:
            return [result], [None]
        dots = instantiate_tangents([x, updates], [tangents[0], tangents[2]])
        change = change_of_extreme(primals, result, dots, params)
        args = change, params["dimension_numbers"], scatter_index_info(params)
        return [result], [
            scatter_with_combiner(scatter_add_p, lax.add, dots[0], indices, *args)
        ]

    return rule


def change_of_extreme(primals, result, tangents, params):
    """Return what is added to the tangent of an operand where updates enter it."""
    (x, indices, updates), (x_dot, updates_dot) = primals, tangents

    def read(array):
        return read_back(array, indices, updates, params)

    def counted(updates):
        zeros, numbers = lax.full_like(x, 0), params["dimension_numbers"]
        args = zeros, indices, updates, numbers, ScatterIndexInfo(mode=params["mode"])
        return read(scatter_with_combiner(scatter_add_p, lax.add, *args))

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


def index_of_starts(axis, starts, dims):
    """Return starts as one index, or one for each example; and its mapped axis."""
    if not starts:
        return np.zeros(0, np.int32), None
    if all(dim is None for dim in dims):
        return lax.concatenate([lax.broadcast(x, (1,)) for x in starts], 0), None
    columns = [
        lax.broadcast_in_dim(x, (axis.size, 1), () if dim is None else (0,))
        for x, dim in zip(starts, dims)
    ]
    return lax.concatenate(columns, 1), 0


def _slice_batch(axis, args, dims, slice_sizes):
    (x, *starts), all_axes = args, tuple(range(len(slice_sizes)))
    indices, dim = index_of_starts(axis, starts, dims[1:])
    return vmap_rules[gather_p](
        axis,
        (x, indices),
        (dims[0], dim),
        dimension_numbers=GatherDimensionNumbers(all_axes, (), all_axes),
        slice_sizes=slice_sizes,
        unique_indices=True,
        indices_are_sorted=True,
        mode=GatherScatterMode.CLIP,
        fill_value=None,
    )


def _update_batch(axis, args, dims):
    x, update, *starts = args
    all_axes = tuple(range(len(starts)))
    indices, dim = index_of_starts(axis, starts, dims[2:])
    return vmap_rules[scatter_p](
        axis,
        (x, indices, update),
        (dims[0], dim, dims[1]),
        dimension_numbers=ScatterDimensionNumbers(all_axes, (), all_axes),
        indices_are_sorted=True,
        unique_indices=True,
        mode=GatherScatterMode.CLIP,
        update_jaxpr=None,
        update_consts=(),
    )


vmap_rules[dynamic_slice_p] = _slice_batch
vmap_rules[dynamic_update_slice_p] = _update_batch
