"""Dynamic slices and updates of slices, with all their columns.

References: ``jax.lax.dynamic_slice``, ``jax.lax.dynamic_update_slice``,
``jax._src.lax.slicing``.
"""

# Made from chapters/28_indexing_ground.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import lax
from minijax.arrays.array import def_shape_and_impl, typeof
from minijax.arrays.dtypes import config, dtype_kind
from minijax.arrays.numerics import (
    canonicalize_axis,
    canonicalize_int_tuple,
    check_same_dtype,
    integer_limits,
    operator_index,
)
from minijax.core import Array, Primitive
from minijax.forward_mode.jvp import instantiate_tangents, jvp_rules
from minijax.indexing.dimension_numbers import GatherScatterMode, WindowDims
from minijax.jitting.stages import BYTES_ACCESSED, cost_rules, nbytes
from minijax.kernels.builder import (
    Buffer,
    KernelBuilder,
    UnsupportedKernel,
    broadcast_view,
    slice_view,
)
from minijax.kernels.lowering import kernel_rules
from minijax.lax.arithmetic import astype
from minijax.python_backend.codegen import python_rules
from minijax.python_backend.source import write_evaluation
from minijax.reverse_mode.backward_pass import (
    UndefinedPrimal,
    raise_nonlinear,
    transpose_rules,
)
from minijax.typing import ArrayLike

# Slices, and updates of slices, whose corner is computed by the program.

INT64_DTYPE = np.dtype(np.int64)


def check_starts(name, starts, box, shape):
    """Raise unless starts are integers of one dtype, and a box fits into a shape."""
    if any(start.shape for start in starts):
        raise TypeError(
            f"start_indices arguments to {name} must be scalars, got indices {starts}"
        )
    if len({start.dtype for start in starts}) > 1 or any(
        dtype_kind(start.dtype) not in "iu" for start in starts
    ):
        names = ", ".join(start.dtype.name for start in starts)
        raise TypeError(
            f"index arguments to {name} must be integers of the same type, got: {names}"
        )
    if len(box) != len(shape) or not all(0 <= a <= b for a, b in zip(box, shape)):
        raise TypeError(
            f"{name} slice_sizes must be less than or equal to operand shape, got "
            f"slice_sizes {tuple(box)} for operand shape {shape}."
        )


def _slice_shape(x, *starts, slice_sizes):
    check_starts("dynamic_slice", starts, slice_sizes, x.shape)
    return [x.update(shape=slice_sizes)]


def _update_shape(x, update, *starts):
    check_same_dtype("dynamic_update_slice", [x, update])
    check_starts("dynamic_update_slice", starts, update.shape, x.shape)
    return [x]


def box_at(starts, box, shape):
    """Return slices for a box of some size, moved inside of an array."""
    most = [whole - size for size, whole in zip(box, shape)]
    corner = [min(max(int(start), 0), last) for start, last in zip(starts, most)]
    return tuple([slice(a, a + size) for a, size in zip(corner, box)])


def _slice(xp, x, *starts, slice_sizes):
    return x[box_at(starts, slice_sizes, x.shape)]


def _update(xp, x, update, *starts):
    result = xp.array(x)  # x.copy() of an array without axes is a number in NumPy
    result[box_at(starts, update.shape, x.shape)] = update
    return result


dynamic_slice_p = Primitive("dynamic_slice")
dynamic_update_slice_p = Primitive("dynamic_update_slice")
def_shape_and_impl(dynamic_slice_p, _slice_shape, _slice)
def_shape_and_impl(dynamic_update_slice_p, _update_shape, _update)


def index_dtype(size):
    """Return the dtype in which places along an axis of some size are counted.

    Raises:
      OverflowError: if there is none, as the types of 64 bits are off.
    """
    if size <= np.iinfo(np.int32).max:
        return np.dtype(np.int32)
    if config.jax_enable_x64:
        return INT64_DTYPE
    if size > np.iinfo(np.uint32).max:
        raise OverflowError(
            f"no type of 32 bits counts the places along an axis of {size} elements: "
            "config.update('jax_enable_x64', True) has types of 64 bits."
        )
    return np.dtype(np.uint32)


def with_size_added(numbers, size, less=lax.lt):
    """Return integers of a program with the size of the axis added to negative ones."""
    dtype = typeof(numbers).dtype
    if dtype_kind(dtype) != "i":
        return numbers
    negative = less(numbers, np.zeros((), dtype))
    if size > integer_limits(dtype)[1]:
        dtype = index_dtype(size)
        numbers = lax.convert_element_type(numbers, dtype)
    return lax.select(negative, lax.add(numbers, np.asarray(size, dtype)), numbers)


def from_the_end(start, size, allowed):
    """Return an index, with the size of the axis added if it is negative."""
    if dtype_kind(typeof(start).dtype) == "u":
        return start
    if isinstance(start, int | np.integer):
        if start < 0 and not allowed:
            raise ValueError(
                f"Index {start} is out of bounds for dimension {size} if "
                "allow_negative_indices=False"
            )
        dtype = typeof(start).dtype
        np.asarray(int(start), dtype)  # raises if no such integer fits
        return lax.convert_element_type(start + size if start < 0 else start, dtype)
    return with_size_added(start, size) if allowed else start


def _starts(operand, starts, allowed):
    shape = typeof(operand).shape
    if len(starts) != len(shape):
        raise ValueError(
            "Length of slice indices must match number of operand dimensions "
            f"({len(starts)} vs {shape})"
        )
    allowed = [allowed] * len(shape) if isinstance(allowed, bool) else allowed
    return list(map(from_the_end, starts, shape, allowed))


def dynamic_slice(
    operand: ArrayLike,
    start_indices: Sequence[ArrayLike] | Array,
    slice_sizes: Sequence[int],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """Cut out a box whose corner the program computes.

    Args:
      operand: an array.
      start_indices: an integer for each axis; what would stick out is moved inside.
      slice_sizes: the shape of the box.
      allow_negative_indices: whether negative starts count from the end; for all axes
        or for each.

    Reference: ``jax.lax.dynamic_slice``.
    """
    starts = _starts(operand, start_indices, allow_negative_indices)
    sizes = canonicalize_int_tuple(slice_sizes, "Shapes")
    return dynamic_slice_p.bind(operand, *starts, slice_sizes=sizes)


def dynamic_update_slice(
    operand: ArrayLike,
    update: ArrayLike,
    start_indices: Sequence[ArrayLike] | Array,
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """Put an array in the place of a box whose corner the program computes.

    The arguments are those of `dynamic_slice`; the box has the shape of `update`.

    Reference: ``jax.lax.dynamic_update_slice``.
    """
    starts = _starts(operand, start_indices, allow_negative_indices)
    return dynamic_update_slice_p.bind(operand, update, *starts)


def dynamic_slice_in_dim(
    operand: Any,
    start_index: ArrayLike,
    slice_size: int,
    axis: int = 0,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Cut out a slice along one axis, from a start that the program computes.

    Reference: ``jax.lax.dynamic_slice_in_dim``.
    """
    shape = typeof(operand).shape
    starts, allowed = _along(axis, start_index, len(shape), allow_negative_indices)
    sizes = [*shape]
    sizes[operator_index(axis, "an axis")] = operator_index(slice_size, "slice_size")
    return dynamic_slice(operand, starts, sizes, allow_negative_indices=allowed)


def _along(axis, start, rank, allowed):
    starts, flags = [_zero_like(start)] * rank, [False] * rank
    axis = canonicalize_axis(axis, rank)
    starts[axis], flags[axis] = start, allowed
    return starts, flags


def _zero_like(start):
    return 0 if isinstance(start, int) else np.zeros((), typeof(start).dtype)[()]


def dynamic_index_in_dim(
    operand: Any,
    index: ArrayLike,
    axis: int = 0,
    keepdims: bool = True,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Take one index along one axis, which the program computes.

    Reference: ``jax.lax.dynamic_index_in_dim``.
    """
    allowed = {"allow_negative_indices": allow_negative_indices}
    result = dynamic_slice_in_dim(operand, index, 1, axis, **allowed)
    return result if keepdims else lax.squeeze(result, (axis,))


def dynamic_update_slice_in_dim(
    operand: Any,
    update: ArrayLike,
    start_index: ArrayLike,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Replace a slice along one axis, from a start that the program computes.

    Reference: ``jax.lax.dynamic_update_slice_in_dim``.
    """
    rank = typeof(operand).ndim
    starts, allowed = _along(axis, start_index, rank, allow_negative_indices)
    return dynamic_update_slice(operand, update, starts, allow_negative_indices=allowed)


def dynamic_update_index_in_dim(
    operand: Any,
    update: ArrayLike,
    index: ArrayLike,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Replace what is at one index along one axis, which the program computes.

    Reference: ``jax.lax.dynamic_update_index_in_dim``.
    """
    if typeof(update).ndim != typeof(operand).ndim:
        update = lax.expand_dims(update, (axis,))
    allowed = {"allow_negative_indices": allow_negative_indices}
    return dynamic_update_slice_in_dim(operand, update, index, axis, **allowed)


# The columns of dynamic slices and their updates, and kernels with computed places.


def _slice_jvp(primals, tangents, **sizes):
    (x, *starts), x_dot = primals, tangents[0]
    results = dynamic_slice_p.bind_all(x, *starts, **sizes)
    if x_dot is None:
        return results, [None]
    return results, dynamic_slice_p.bind_all(x_dot, *starts, **sizes)


def _update_jvp(primals, tangents):
    x, update, *starts = primals
    results = dynamic_update_slice_p.bind_all(x, update, *starts)
    if tangents[0] is None and tangents[1] is None:
        return results, [None]
    moving = instantiate_tangents(primals[:2], tangents[:2])
    return results, dynamic_update_slice_p.bind_all(*moving, *starts)


jvp_rules[dynamic_slice_p] = _slice_jvp
jvp_rules[dynamic_update_slice_p] = _update_jvp


def _slice_transpose(cotangents, x, *starts, slice_sizes):
    [ct], still = cotangents, [None] * len(starts)
    linear = [isinstance(operand, UndefinedPrimal) for operand in (x, *starts)]
    raise_nonlinear(dynamic_slice_p, [True, *still], linear, bilinear=False)
    zeros = lax.full(x.aval.shape, astype(0, typeof(ct).dtype))
    return [*dynamic_update_slice_p.bind_all(zeros, ct, *starts), *still]


def _update_transpose(cotangents, x, update, *starts):
    [ct], still = cotangents, [None] * len(starts)
    linear = [isinstance(operand, UndefinedPrimal) for operand in (x, update, *starts)]
    raise_nonlinear(dynamic_update_slice_p, [True, True, *still], linear, False)
    aval, back = update.aval if linear[1] else typeof(update), [None, None]
    if linear[0]:
        zeros = lax.full(aval.shape, 0, typeof(ct).dtype)
        back[0] = dynamic_update_slice_p.bind(ct, zeros, *starts)
    if linear[1]:
        back[1] = dynamic_slice_p.bind(ct, *starts, slice_sizes=aval.shape)
    return [*back, *still]


transpose_rules[dynamic_slice_p] = _slice_transpose
transpose_rules[dynamic_update_slice_p] = _update_transpose


def clamp_start_indices(k, number, most):
    """Add the nodes of an integer, moved between 0 and `most`, as int64."""
    info = np.iinfo(number.dtype)
    if most < info.max:
        number = k.min(number, most)
    return k.convert(number if info.min == 0 else k.max(number, 0), INT64_DTYPE)


def terms_of_box(k, starts, box, x):
    """Return the computed parts of the place of a box within an array `x`."""
    terms = []
    for start, size, whole, stride in zip(starts, box, x.shape, x.strides):
        if size < whole:
            place = clamp_start_indices(k, k.load(start), whole - size)
            terms.append((place, stride, whole - size + 1))
    return terms


def materialize_view(lowering, x):
    """Return an array that has memory: a copy, if it is one number everywhere."""
    return x if isinstance(x.source, Buffer) else lowering.copy(x)


def _lower_slice(lowering, eqn, x, *starts):
    [var] = eqn.outvars
    x, k = materialize_view(lowering, x), KernelBuilder("dynamic_slice", var.aval.shape)
    terms = terms_of_box(k, starts, var.aval.shape, x)
    box = k.load(x.replace(var.aval.shape, x.strides), terms=terms)
    return [lowering.launch(k, box, var.aval)]


def _lower_update(lowering, eqn, x, update, *starts):
    [var] = eqn.outvars
    out = lowering.copy(x)
    k = KernelBuilder("dynamic_update_slice", update.shape)
    terms = terms_of_box(k, starts, update.shape, out)
    terms = terms or [(k.constant(0, INT64_DTYPE), 0, 1)]
    place = out.replace(update.shape, out.strides)
    k.update(place, k.load(update), "set", terms, distinct=True)
    lowering.run(k)
    return [out]


kernel_rules[dynamic_slice_p] = _lower_slice
kernel_rules[dynamic_update_slice_p] = _lower_update


def _cost_of_slice(eqn):
    return {BYTES_ACCESSED: 2 * nbytes(eqn.outvars[0].aval)}


def _cost_of_update(eqn):
    return {BYTES_ACCESSED: 2 * nbytes(eqn.invars[1].aval)}


cost_rules[dynamic_slice_p] = _cost_of_slice
cost_rules[dynamic_update_slice_p] = _cost_of_update
python_rules[dynamic_slice_p] = python_rules[dynamic_update_slice_p] = write_evaluation


def computed_offsets(k, x, indices, windows, shape, sizes, clip):
    """Return an array along the axes of a kernel, and computed parts of its places.

    Args:
      k: the `KernelBuilder`.
      x, indices: views of the operand and of the indices.
      windows: the `WindowDims`.
      shape: of the result or of the updates: the kernel's axes.
      sizes: of a window, along each axis of the operand.
      clip: whether a window is moved inside; if not, it counts only if it is inside.
    """
    counting, strides = windows.batch_dims(len(shape)), [0] * len(shape)
    for axis, place in zip(windows.kept(len(x.shape)), windows.offset_dims):
        strides[place] = x.strides[axis]
    for axis, place in zip(
        windows.operand_batching_dims, windows.start_indices_batching_dims
    ):
        strides[counting[place]] = x.strides[axis]
    terms = []
    for number, axis in enumerate(windows.start_index_map):
        most = x.shape[axis] - sizes[axis]
        place = k.load(
            broadcast_view(linear_index_of(indices, number), shape, counting)
        )
        place = (
            clamp_start_indices(k, place, most)
            if clip
            else k.convert(place, INT64_DTYPE)
        )
        terms.append((place, x.strides[axis], most + 1))
    return x.replace(shape, strides), terms


def linear_index_of(indices, number):
    """Return the view of one of the numbers that all indices have."""
    *shape, width = indices.shape
    starts = [0] * len(shape) + [number]
    column = slice_view(indices, starts, (*shape, 1), [1] * (len(shape) + 1))
    return column.replace(shape, column.strides[:-1])


BOOLEAN = {"set": "set", "add": "or", "mul": "and", "min": "and", "max": "or"}


def lower_scatter(how, lowering, eqn, x, indices, updates):
    """Add the kernel of a scatter, which changes a copy of the operand."""
    params = eqn.params
    if 0 in updates.shape or (how == "set" and params["update_jaxpr"] is not None):
        raise UnsupportedKernel("there is nothing to scatter, or a function to apply")
    windows, out = WindowDims(*params["dimension_numbers"]), lowering.copy(x)
    k = KernelBuilder(eqn.primitive.name.replace("-", "_"), updates.shape)
    sizes = windows.sizes(len(x.shape), updates.shape)
    clip = params["mode"] is GatherScatterMode.CLIP
    args = windows, updates.shape, sizes, clip
    place, terms = computed_offsets(k, out, indices, *args)
    value = k.load(updates)
    if how == "sub":
        how, value = "add", k.neg(value)
    how = BOOLEAN[how] if dtype_kind(x.dtype) == "b" else how
    terms = terms or [(k.constant(0, INT64_DTYPE), 0, 1)]
    k.update(place, value, how, terms, distinct=params["unique_indices"])
    lowering.run(k)
    return [out]
