"""Gather and scatter: windows of an array at computed places, read or changed.

Reference: ``jax.lax.gather``, ``jax.lax.scatter``; XLA's operation semantics.
"""

# Made from chapters/28_indexing.md by `make chapter`;
# edit the chapter, not this file.

from functools import partial
from typing import Any

import numpy as np

from minijax import lax
from minijax.arrays.array import ArrayImpl, asbuffer, primitive_rules
from minijax.arrays.avals import ShapedArray, typeof
from minijax.arrays.checks import integers
from minijax.batching.trace import vmap
from minijax.core import Array, EvalTrace, Primitive, set_current_trace
from minijax.indexing.dimension_numbers import (
    GatherDimensionNumbers,
    GatherScatterMode,
    Promises,
    ScatterDimensionNumbers,
    Windows,
    default_fill,
    fill_element,
    gather_shape,
    scatter_by,
    scatter_shape,
)
from minijax.jaxprs.jaxpr import eval_jaxpr
from minijax.typing import ArrayLike


def starts_of(xp, indices, mapped, shape, sizes):
    """Return where windows start, moved inside the operand; and which were inside."""
    if indices.dtype == np.uint64:
        indices = xp.minimum(indices, np.uint64(2**63 - 1))
    indices = indices.astype(np.int64)
    most = xp.asarray([shape[axis] - sizes[axis] for axis in mapped], np.int64)
    starts = xp.minimum(xp.maximum(indices, 0), most)
    return starts, (starts == indices).all(-1)


def places_of(xp, windows, starts, ndim, shape):
    """Return, for each axis of the operand, where the elements of a result come from.

    Args:
      xp: the array module.
      windows: the `Windows`.
      starts: integers, the numbers of an index along the last axis.
      ndim: how many axes the operand has.
      shape: of the result.
    """
    counting, places = windows.counting(len(shape)), [0] * ndim
    steps = xp.indices(shape, sparse=True)
    for axis, place in zip(windows.kept(ndim), windows.inside):
        places[axis] = steps[place]
    for axis, place in zip(windows.shared, windows.index_shared):
        places[axis] = steps[counting[place]]
    for number, axis in enumerate(windows.mapped):
        start = xp.expand_dims(starts[..., number], windows.inside)
        places[axis] = places[axis] + start
    return tuple(places)


gather_p = Primitive("gather")


def _gather(xp, operand, indices, **params):
    numbers, sizes = params["dimension_numbers"], params["slice_sizes"]
    [aval] = gather_shape(_aval_of(operand), _aval_of(indices), **params)
    if not aval.size:
        return xp.empty(aval.shape, operand.dtype)
    windows = Windows(*numbers)
    starts, inside = starts_of(xp, indices, windows.mapped, operand.shape, sizes)
    found = operand[places_of(xp, windows, starts, operand.ndim, aval.shape)]
    found = xp.broadcast_to(found, aval.shape)
    if params["mode"] is not GatherScatterMode.FILL_OR_DROP:
        return found
    fill = fill_element(operand.dtype, params["fill_value"])
    return xp.where(xp.expand_dims(inside, windows.inside), found, fill)


def _aval_of(x):
    """Return the abstract value of a buffer."""
    return ShapedArray(x.shape, x.dtype)


primitive_rules(gather_p, gather_shape, _gather)


def scattered(enter):
    """Return the evaluation of a scatter, which lets updates enter a flat array."""

    def compute(xp, operand, indices, updates, **params):
        result, windows = operand.copy(), Windows(*params["dimension_numbers"])
        if not updates.size or not result.size:
            return result
        sizes = windows.sizes(operand.ndim, updates.shape)
        starts, kept = starts_of(xp, indices, windows.mapped, operand.shape, sizes)
        kept = kept | (params["mode"] is GatherScatterMode.CLIP)
        kept = xp.broadcast_to(xp.expand_dims(kept, windows.inside), updates.shape)
        places = places_of(xp, windows, starts, operand.ndim, updates.shape)
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


def entering(ufunc):
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
primitive_rules(scatter_p, scatter_shape, scattered(_set))
primitive_rules(scatter_add_p, scatter_shape, scattered(entering("add")))


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
        fill_value = default_fill(typeof(operand).dtype, fill_value)
    [result] = gather_p.bind(
        operand,
        start_indices,
        dimension_numbers=dimension_numbers,
        slice_sizes=integers(slice_sizes),
        unique_indices=bool(unique_indices),
        indices_are_sorted=bool(indices_are_sorted),
        mode=mode,
        fill_value=fill_value,
    )
    return result


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
    how = Promises(indices_are_sorted, unique_indices, mode)
    args = operand, scatter_indices, updates, dimension_numbers
    return scatter_by(scatter_p, None, *args, how)


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
    how = Promises(indices_are_sorted, unique_indices, mode)
    args = operand, scatter_indices, updates, dimension_numbers
    return scatter_by(scatter_add_p, lax.add, *args, how)
