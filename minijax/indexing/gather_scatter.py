"""Gather and scatter: the primitives, their columns, and brackets that use them.

Importing this module gives arrays and tracers the method ``__getitem__``.

References: ``jax.lax.gather``, ``jax.lax.scatter``; XLA's operation semantics,
``jax._src.lax.slicing``, ``jax._src.numpy.indexing``; NumPy's *Indexing on ndarrays*.
"""

# Made from chapters/28_indexing.md by `make chapter`;
# edit the chapter, not this file.
# Amended in chapters/28_indexing_rest.md: index_array (702d9fb4).

from functools import partial
from typing import Any

import numpy as np

from minijax import lax
from minijax.arrays.array import (
    ArrayImpl,
    ShapedArray,
    asbuffer,
    def_shape_and_impl,
    typeof,
)
from minijax.arrays.dtypes import dtype_kind
from minijax.arrays.numerics import canonicalize_int_tuple
from minijax.batching.vmap import batch_dim_to_front, vmap, vmap_rules
from minijax.core import Array, EvalTrace, Primitive, set_current_trace, tracer_methods
from minijax.diagnostics.error_messages import method_boundaries
from minijax.diagnostics.tracebacks import api_boundary
from minijax.forward_mode.jvp import instantiate_tangents, jvp_rules
from minijax.indexing.dimension_numbers import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    ScatterIndexInfo,
    WindowDims,
    default_fill_value,
    fill_value_in_dtype,
    gather_shape_rule,
    scatter_shape_rule,
    scatter_with_combiner,
    with_tuples,
)
from minijax.indexing.dynamic_slices import (
    computed_offsets,
    lower_scatter,
    materialize_view,
)
from minijax.indexing.indexer import (
    attempt_dynamic_slice,
    cut_window,
    expand_bool_indices,
    holds_slices,
    index_to_gather,
    is_contiguous_slice,
    is_static_basic_index,
    parse_index,
    without_slices,
)
from minijax.jaxprs.jaxpr import eval_jaxpr
from minijax.jitting.stages import BYTES_ACCESSED, FLOPS, cost_rules, nbytes
from minijax.kernels.builder import KernelBuilder, UnsupportedKernel
from minijax.kernels.lowering import kernel_rules
from minijax.lax.arithmetic import astype
from minijax.numpy.array_methods import getitem
from minijax.python_backend.codegen import python_rules
from minijax.python_backend.source import write_evaluation
from minijax.reverse_mode.backward_pass import deftranspose
from minijax.typing import ArrayLike

# Gather and scatter: windows of an array at computed places, read or changed.


def starts_of(xp, indices, mapped, shape, sizes):
    """Return where windows start, moved inside the operand; and which were inside."""
    if indices.dtype == np.uint64:
        indices = xp.minimum(indices, np.uint64(2**63 - 1))
    indices = indices.astype(np.int64)
    most = xp.asarray([shape[axis] - sizes[axis] for axis in mapped], np.int64)
    starts = xp.minimum(xp.maximum(indices, 0), most)
    return starts, (starts == indices).all(-1)


def axis_positions(xp, windows, starts, ndim, shape):
    """Return, for each axis of the operand, where the elements of a result come from.

    Args:
      xp: the array module.
      windows: the `WindowDims`.
      starts: integers, the numbers of an index along the last axis.
      ndim: how many axes the operand has.
      shape: of the result.
    """
    counting, places = windows.batch_dims(len(shape)), [0] * ndim
    steps = xp.indices(shape, sparse=True)
    for axis, place in zip(windows.kept(ndim), windows.offset_dims):
        places[axis] = steps[place]
    for axis, place in zip(
        windows.operand_batching_dims, windows.start_indices_batching_dims
    ):
        places[axis] = steps[counting[place]]
    for number, axis in enumerate(windows.start_index_map):
        start = xp.expand_dims(starts[..., number], windows.offset_dims)
        places[axis] = places[axis] + start
    return tuple(places)


gather_p = Primitive("gather")


def _gather(xp, operand, indices, **params):
    numbers, sizes = params["dimension_numbers"], params["slice_sizes"]
    [aval] = gather_shape_rule(_aval_of(operand), _aval_of(indices), **params)
    if not aval.size:
        return xp.empty(aval.shape, operand.dtype)
    windows = WindowDims(*numbers)
    starts, inside = starts_of(
        xp, indices, windows.start_index_map, operand.shape, sizes
    )
    found = operand[axis_positions(xp, windows, starts, operand.ndim, aval.shape)]
    found = xp.broadcast_to(found, aval.shape)
    if params["mode"] is not GatherScatterMode.FILL_OR_DROP:
        return found
    fill = fill_value_in_dtype(operand.dtype, params["fill_value"])
    return xp.where(xp.expand_dims(inside, windows.offset_dims), found, fill)


def _aval_of(x):
    """Return the abstract value of a buffer."""
    return ShapedArray(x.shape, x.dtype)


def_shape_and_impl(gather_p, gather_shape_rule, _gather)


def scatter_impl(enter):
    """Return the evaluation of a scatter, which lets updates enter a flat array."""

    def compute(xp, operand, indices, updates, **params):
        result, windows = operand.copy(), WindowDims(*params["dimension_numbers"])
        if not updates.size or not result.size:
            return result
        sizes = windows.sizes(operand.ndim, updates.shape)
        starts, kept = starts_of(
            xp, indices, windows.start_index_map, operand.shape, sizes
        )
        kept = kept | (params["mode"] is GatherScatterMode.CLIP)
        kept = xp.broadcast_to(xp.expand_dims(kept, windows.offset_dims), updates.shape)
        places = axis_positions(xp, windows, starts, operand.ndim, updates.shape)
        places = xp.broadcast_to(flat_places(places, operand.shape), updates.shape)
        result = result.reshape(-1)
        enter(xp, result, places[kept], updates[kept], params)
        return result.reshape(operand.shape)

    return compute


def flat_places(places, shape):
    """Return places in an array whose rows lie one after the other."""
    flat = 0
    for place, size in zip(places, shape):
        flat = flat * size + place
    return flat


def ufunc_at(ufunc):
    """Return how updates enter a flat array: one after the other, by a NumPy ufunc."""

    def enter(xp, flat, places, updates, params):
        getattr(xp, ufunc).at(flat, places, updates)

    return enter


def _set(xp, flat, places, updates, params):
    if params["update_jaxpr"] is None:
        flat[places] = updates
    else:
        _apply(xp, flat, places, params)


def _apply(xp, flat, places, params):
    """Apply a function to elements, to each as often as it is named."""
    program = partial(eval_jaxpr, params["update_jaxpr"], params["update_consts"])
    count = xp.bincount(places, minlength=flat.size)
    while (chosen := xp.flatnonzero(count)).size:
        x = ArrayImpl(flat[chosen], ShapedArray(chosen.shape, flat.dtype))
        with set_current_trace(EvalTrace()):
            [y] = vmap(lambda x: program(x, x))(x)
        flat[chosen] = asbuffer(y)
        count[chosen] -= 1


scatter_p: Primitive = Primitive("scatter")
scatter_add_p: Primitive = Primitive("scatter-add")
def_shape_and_impl(scatter_p, scatter_shape_rule, scatter_impl(_set))
def_shape_and_impl(scatter_add_p, scatter_shape_rule, scatter_impl(ufunc_at("add")))


def gather(
    operand: ArrayLike,
    start_indices: ArrayLike,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Any,
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: str | GatherScatterMode | None = None,
    fill_value: Any = None,
) -> Array:
    """Take windows of an array, at places that the program computes.

    Args:
      operand: an array.
      start_indices: integers; along the last axis, the numbers of one index.
      dimension_numbers: which axes belong together.
      slice_sizes: the size of a window along each axis of the operand.
      unique_indices: whether the caller promises that no two indices are equal.
      indices_are_sorted: whether the caller promises that they are in order.
      mode: what becomes of windows out of bounds; by default there are none.
      fill_value: what is found there in the mode ``fill``.

    Reference: ``jax.lax.gather``.
    """
    if mode is None:
        mode = GatherScatterMode.PROMISE_IN_BOUNDS
    mode = GatherScatterMode.from_any(mode)
    if mode is not GatherScatterMode.FILL_OR_DROP:
        fill_value = None
    else:
        fill_value = default_fill_value(typeof(operand).dtype, fill_value)
    return gather_p.bind(
        operand,
        start_indices,
        dimension_numbers=with_tuples(dimension_numbers),
        slice_sizes=canonicalize_int_tuple(slice_sizes),
        unique_indices=bool(unique_indices),
        indices_are_sorted=bool(indices_are_sorted),
        mode=mode,
        fill_value=fill_value,
    )


def scatter(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """Replace windows of an array, at places that the program computes.

    Where two updates have one place, it is the later one that stays here; JAX leaves
    open which.

    Args:
      operand: an array.
      scatter_indices: integers; along the last axis, the numbers of one index.
      updates: what enters, of the dtype of the operand.
      dimension_numbers: which axes belong together.
      indices_are_sorted, unique_indices: what the caller promises.
      mode: what becomes of windows out of bounds; by default they are dropped.

    Reference: ``jax.lax.scatter``.
    """
    how = ScatterIndexInfo(indices_are_sorted, unique_indices, mode)
    args = operand, scatter_indices, updates, dimension_numbers
    return scatter_with_combiner(scatter_p, None, *args, how)


def scatter_add(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """Add to windows of an array, at places that the program computes.

    Reference: ``jax.lax.scatter_add``.
    """
    how = ScatterIndexInfo(indices_are_sorted, unique_indices, mode)
    args = operand, scatter_indices, updates, dimension_numbers
    return scatter_with_combiner(scatter_add_p, lax.add, *args, how)


# The columns of gather and of the sum of updates: derivatives, batches, kernels.


def _gather_jvp(primals, tangents, fill_value, mode, **params):
    (x, indices), x_dot = primals, tangents[0]
    results = gather_p.bind_all(x, indices, fill_value=fill_value, mode=mode, **params)
    if x_dot is None:
        return results, [None]
    fill = 0 if mode is GatherScatterMode.FILL_OR_DROP else None
    how = {"fill_value": fill, "mode": mode, **params}
    return results, gather_p.bind_all(x_dot, indices, **how)


jvp_rules[gather_p] = _gather_jvp


def scatter_index_info(params):
    """Return what the caller of a gather or scatter says of its indices."""
    names = "indices_are_sorted", "unique_indices", "mode"
    return ScatterIndexInfo(*[params[name] for name in names])


def _gather_transpose(ct, x, indices, dimension_numbers, **params):
    numbers = ScatterDimensionNumbers(*dimension_numbers)
    zeros = lax.full(x.aval.shape, astype(0, typeof(ct).dtype))
    args = zeros, indices, ct, numbers, scatter_index_info(params)
    return scatter_with_combiner(scatter_add_p, lax.add, *args)


deftranspose(gather_p, _gather_transpose, None)


def shifted(axes):
    """Return axes as they are called behind a new axis in front."""
    return tuple([axis + 1 for axis in axes])


def mapped_operand(numbers):
    """Return dimension numbers for a batch of operands: each window is a batch."""
    offset, collapsed, index_map, batching, index_batching = numbers
    behind = shifted(collapsed), shifted(index_map), shifted(batching)
    return type(numbers)((0, *shifted(offset)), *behind, index_batching)


def mapped_indices(numbers):
    """Return dimension numbers for a batch of indices into one operand."""
    offset, collapsed, index_map, batching, index_batching = numbers
    behind = shifted(offset), collapsed, index_map, batching
    return type(numbers)(*behind, shifted(index_batching))


def mapped_both(numbers):
    """Return dimension numbers for a batch of operands, each with its own indices."""
    offset, collapsed, index_map, batching, index_batching = map(shifted, numbers)
    batching, index_batching = (0, *batching), (0, *index_batching)
    return type(numbers)(offset, collapsed, index_map, batching, index_batching)


def _gather_batch(axis, args, dims, dimension_numbers, slice_sizes, **params):
    x, indices = (
        z if d is None else batch_dim_to_front(z, d, 0) for z, d in zip(args, dims)
    )
    if dims[1] is None:
        numbers = mapped_operand(dimension_numbers)
        slice_sizes = axis.size, *slice_sizes
    elif dims[0] is None:
        numbers = mapped_indices(dimension_numbers)
        params |= {"unique_indices": False, "indices_are_sorted": False}
    else:
        numbers = mapped_both(dimension_numbers)
        slice_sizes = (min(axis.size, 1), *slice_sizes)
    params |= {"dimension_numbers": numbers, "slice_sizes": slice_sizes}
    return gather_p.bind_all(x, indices, **params), [0]


vmap_rules[gather_p] = _gather_batch


def _lower_gather(lowering, eqn, x, indices):
    [var], windows = eqn.outvars, WindowDims(*eqn.params["dimension_numbers"])
    shape, mode = var.aval.shape, eqn.params["mode"]
    if 0 in shape:
        raise UnsupportedKernel("there is nothing to gather")
    fills = mode is GatherScatterMode.FILL_OR_DROP
    if fills and dtype_kind(x.dtype) in "x0":
        raise UnsupportedKernel("there is no number that a key is filled with")
    k, x = KernelBuilder("gather", shape), materialize_view(lowering, x)
    sizes = eqn.params["slice_sizes"]
    found, terms = computed_offsets(k, x, indices, windows, shape, sizes, not fills)
    other = fill_value_in_dtype(x.dtype, eqn.params["fill_value"]) if fills else 0
    return [lowering.launch(k, k.load(found, other=other, terms=terms), var.aval)]


kernel_rules[gather_p] = _lower_gather


def scatter_add_jvp(primitive, primals, tangents, **params):
    """Scatter the tangents as the numbers: the jvp of a sum of updates."""
    x, indices, updates = primals
    results = primitive.bind_all(x, indices, updates, **params)
    if tangents[0] is None and tangents[2] is None:
        return results, [None]
    x_dot, updates_dot = instantiate_tangents([x, updates], [tangents[0], tangents[2]])
    return results, primitive.bind_all(x_dot, indices, updates_dot, **params)


def gather_from_cotangent(ct, x, indices, updates, dimension_numbers, mode, **_):
    """Gather from a cotangent what belongs to the updates of a scatter."""
    aval, numbers = aval_of_operand(updates), GatherDimensionNumbers(*dimension_numbers)
    sizes = WindowDims(*numbers).sizes(typeof(ct).ndim, aval.shape)
    return gather(ct, indices, numbers, sizes, mode=mode, fill_value=0)


def aval_of_operand(operand):
    """Return the abstract value of an operand of a transpose rule, linear or not."""
    return operand.aval if hasattr(operand, "aval") else typeof(operand)


jvp_rules[scatter_add_p] = partial(scatter_add_jvp, scatter_add_p)
deftranspose(scatter_add_p, lambda ct, *_, **__: ct, None, gather_from_cotangent)


def scatter_batch(primitive):
    """Return the vmap rule of a scatter: one array for each example, in any case."""

    def rule(axis, args, dims, dimension_numbers, **params):
        x, updates = (batch_dim_to_front(args[i], dims[i], axis.size) for i in (0, 2))
        if dims[1] is None:
            indices, numbers = args[1], mapped_operand(dimension_numbers)
        else:
            indices = batch_dim_to_front(args[1], dims[1], axis.size)
            numbers = mapped_both(dimension_numbers)
        params["dimension_numbers"] = numbers
        return primitive.bind_all(x, indices, updates, **params), [0]

    return rule


def _cost_of_gather(eqn):
    indices, result = eqn.invars[1].aval, eqn.outvars[0].aval
    return {BYTES_ACCESSED: 2 * nbytes(result) + nbytes(indices)}


def _cost_of_scatter(eqn):
    indices, updates = (atom.aval for atom in eqn.invars[1:])
    enters = {} if eqn.primitive is scatter_p else {FLOPS: updates.size}
    return enters | {BYTES_ACCESSED: 3 * nbytes(updates) + nbytes(indices)}


cost_rules[gather_p] = _cost_of_gather
python_rules[gather_p] = write_evaluation


def def_scatter_rules(primitive, how):
    """Give a scatter the rules that all scatters share.

    Args:
      primitive: the scatter.
      how: updates enter: ``"set"``, ``"add"``, ``"sub"``, ``"mul"``, ``"min"`` or
        ``"max"``.
    """
    vmap_rules[primitive] = scatter_batch(primitive)
    cost_rules[primitive] = _cost_of_scatter
    python_rules[primitive] = write_evaluation
    kernel_rules[primitive] = partial(lower_scatter, how)


def_scatter_rules(scatter_p, "set")
def_scatter_rules(scatter_add_p, "add")


# Advanced indexing: the part of an array that an index in brackets names.


def gather_planned(array, index, wrap, promises, fill_value):
    """Return the part of an array that an index names, by a gather."""
    places = expand_bool_indices(parse_index(index, array.shape), array.shape)
    plan, truths = index_to_gather(places, array.shape, wrap)
    if 0 in plan.result:
        return lax.full_like(array, 0, shape=tuple(plan.result))
    if truths:
        array = lax.expand_dims(array, truths)
    if plan.parts:
        array = gather(
            array,
            plan.indices(),
            plan.numbers,
            plan.sizes,
            unique_indices=promises.unique_indices or plan.simple,
            indices_are_sorted=promises.indices_are_sorted or plan.simple,
            mode=promises.mode,
            fill_value=fill_value,
        )
    array = lax.rev(array, plan.reversed_axes) if plan.reversed_axes else array
    return lax.expand_dims(array, plan.new_axes)


STATIC = {"new", "all", "slice"}
STAYS_INSIDE = GatherScatterMode.PROMISE_IN_BOUNDS, GatherScatterMode.CLIP
NO_PROMISES = ScatterIndexInfo()


def index_array(array, index, promises=NO_PROMISES, fill_value=None, wrap=True):
    """Return the part of an array that an index names.

    Args:
      array: an array.
      index: an entry or a tuple of entries: integers, slices, None, an ellipsis, bools,
        what `ds` returns, and arrays of integers or bools.
      promises: what the caller says of the places, and what becomes of those outside.
      fill_value: what stands for elements outside, in the mode ``fill``.
      wrap: whether negative places count from the end.

    Raises:
      IndexError, TypeError: for an index that does not fit the array.
      NonConcreteBooleanIndexError: for a mask whose values are not known.
    """
    if holds_slices(index):
        index, slices = without_slices(index, array.shape)
        for axis, one in slices:
            array = cut_window(array, axis, one)
    mode = promises.mode
    places = parse_index(index, array.shape)
    if mode is None or GatherScatterMode.from_any(mode) in STAYS_INSIDE:
        if all(is_static(place, array.shape) for place in places):
            return getitem(array, index if wrap else tuple(map(unwrapped, places)))
        if is_contiguous_slice(places):
            return attempt_dynamic_slice(array, places, wrap)
    return gather_planned(array, index, wrap, promises, fill_value)


def is_static(place, shape):
    """Return whether an entry is known; a number outside is clamped by the program."""
    if place.kind != "integer":
        return place.kind in STATIC
    n = shape[place.axes.start]
    return -n <= place.value < n


def unwrapped(place):
    """Return an entry of an index where a negative integer is before the first."""
    return max(place.value, 0) if place.kind == "integer" else place.value


@api_boundary
def part(array, index):
    """Return the part of an array that an index in brackets names."""
    plain = is_static_basic_index(index, array.shape)
    return getitem(array, index) if plain else index_array(array, index)


tracer_methods.supersede("__getitem__", method_boundaries[getitem], part)
