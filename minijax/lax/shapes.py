"""Primitives that create, rearrange, cut and join arrays.

Buffers never change, so that most results share the buffer of their operand.

Reference: ``jax.lax``.
"""

# Made from chapters/02_arrays_rest.md by `make chapter`;
# edit the chapter, not this file.

import builtins
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax._registry import Registry
from minijax.arrays.array import (
    ArrayImpl,
    ShapedArray,
    as_array_impl,
    def_shape_and_impl,
    is_python_scalar,
    typeof,
)
from minijax.arrays.devices import ignore_float_errors
from minijax.arrays.dtypes import canonicalize_dtype
from minijax.arrays.interchange import promised
from minijax.arrays.numerics import (
    NUMBER_DTYPE_KINDS,
    all_weak,
    bit_pattern,
    bit_width,
    canonicalize_axis,
    canonicalize_int_tuple,
    check_convertible,
    check_kind,
    check_same_dtype,
    comma_separated,
    convert_impl,
    number_in_dtype,
    operator_index,
    reads_bits,
    remove_axes,
    warn_complex_to_real,
)
from minijax.arrays.out_sharding import with_out_sharding
from minijax.arrays.transfer import device_put_leaf, put_result_on_device
from minijax.core import Array, Primitive
from minijax.lax.arithmetic import (
    astype,
    broadcast_in_dim,
    convert_element_type_p,
    promote_python_scalars,
)
from minijax.typing import ArrayLike

# Reshape, transpose and their kin: primitives that rearrange and do not compute.


@with_out_sharding
def broadcast(
    operand: ArrayLike, sizes: Sequence[int], *, out_sharding: Any = None
) -> Array:
    """Repeat `operand` along new leading axes of `sizes`.

    Reference: ``jax.lax.broadcast``.
    """
    shape = (*sizes, *typeof(operand).shape)
    if len(sizes) == 0 and not isinstance(operand, Array):
        return as_array_impl(operand)
    return broadcast_in_dim(operand, shape, range(len(sizes), len(shape)))


def expand_dims(array: Any, dimensions: Sequence[int]) -> Array:
    """Insert axes of size 1 at the places `dimensions` of the result.

    Reference: ``jax.lax.expand_dims``.
    """
    shape = typeof(array).shape
    ndim = len(shape) + len(dimensions)
    new = {canonicalize_axis(axis, ndim) for axis in dimensions}
    if len(new) < len(dimensions):
        raise ValueError(f"repeated axis in expand_dims: {tuple(dimensions)}")
    if not new:
        return array
    kept = remove_axes(range(ndim), new)
    sizes = dict(zip(kept, shape))
    return broadcast_in_dim(array, [sizes.get(axis, 1) for axis in range(ndim)], kept)


reshape_p = Primitive("reshape")


def _reshape_shape(x, new_sizes):
    if builtins.min(new_sizes, default=0) < 0 or math.prod(new_sizes) != x.size:
        raise TypeError(
            f"cannot reshape array of shape {x.shape} (size {x.size}) into shape "
            f"{new_sizes} (size {math.prod(new_sizes)})"
        )
    return [x.update(shape=new_sizes)]


def_shape_and_impl(
    reshape_p, _reshape_shape, lambda xp, x, new_sizes: x.reshape(new_sizes)
)


@with_out_sharding
def reshape(
    operand: ArrayLike,
    new_sizes: Sequence[int],
    dimensions: Sequence[int] | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Give the elements, in row-major order, a new shape.

    Args:
      operand: an array.
      new_sizes: its new shape (no -1 here), or one size.
      dimensions: an order of the axes in which to read the elements.

    Reference: ``jax.lax.reshape``.
    """
    if not hasattr(new_sizes, "__iter__"):
        new_sizes = (new_sizes,)
    new_sizes = canonicalize_int_tuple(new_sizes, "Shapes")
    if dimensions is not None:
        operand = transpose(operand, dimensions)
    if isinstance(operand, Array) and operand.shape == new_sizes:
        return operand
    return reshape_p.bind(operand, new_sizes=new_sizes)


def collapse(
    operand: ArrayLike, start_dimension: int, stop_dimension: int | None = None
) -> Array:
    """Merge the axes from `start_dimension` up to `stop_dimension` into one.

    Reference: ``jax.lax.collapse``.
    """
    shape = typeof(operand).shape
    start, stop, _ = builtins.slice(start_dimension, stop_dimension).indices(len(shape))
    merged = math.prod(shape[start:stop])
    return reshape(operand, (*shape[:start], merged, *shape[stop:]))


transpose_p = Primitive("transpose")


def _transpose_shape(x, permutation):
    if sorted(permutation) != [*range(x.ndim)]:
        raise TypeError(
            "transpose permutation isn't a permutation of operand dimensions, got "
            f"permutation {permutation} for operand shape {x.shape}."
        )
    return [x.update(shape=[x.shape[axis] for axis in permutation])]


def_shape_and_impl(
    transpose_p, _transpose_shape, lambda xp, x, permutation: x.transpose(permutation)
)


def transpose(operand: ArrayLike, permutation: Sequence[int]) -> Array:
    """Reorder the axes: axis i of the result is axis ``permutation[i]`` of `operand`.

    Reference: ``jax.lax.transpose``.
    """
    permutation = canonicalize_int_tuple(permutation)
    if isinstance(operand, Array) and permutation == (*range(operand.ndim),):
        return operand
    return transpose_p.bind(operand, permutation=permutation)


squeeze_p = Primitive("squeeze")


def _squeeze_shape(x, dimensions):
    if any(x.shape[axis] != 1 for axis in dimensions):
        raise ValueError(
            "cannot select an axis to squeeze out which has size not equal to one, "
            f"got shape={x.shape} and dimensions={dimensions}"
        )
    return [x.update(shape=remove_axes(x.shape, dimensions))]


def_shape_and_impl(
    squeeze_p, _squeeze_shape, lambda xp, x, dimensions: xp.squeeze(x, dimensions)
)


def squeeze(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Drop the axes `dimensions`, which have size 1.

    Reference: ``jax.lax.squeeze``.
    """
    ndim = typeof(array).ndim
    axes = tuple(canonicalize_axis(axis, ndim) for axis in dimensions)
    if len({*axes}) < len(axes):
        raise ValueError(f"dimensions are not unique: {axes}")
    if not axes and isinstance(array, Array):
        return array
    return squeeze_p.bind(array, dimensions=axes)


rev_p = Primitive("rev")


def _rev_shape(x, dimensions):
    if len({*dimensions}) < len(dimensions) or not {*dimensions} <= {*range(x.ndim)}:
        raise TypeError(
            f"rev dimensions must be unique axes from 0 to {x.ndim - 1}, got "
            f"{dimensions} for operand shape {x.shape}."
        )
    return [x]


def_shape_and_impl(rev_p, _rev_shape, lambda xp, x, dimensions: xp.flip(x, dimensions))


def rev(operand: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Reverse the order of the elements along the axes `dimensions`.

    Reference: ``jax.lax.rev``.
    """
    return rev_p.bind(operand, dimensions=canonicalize_int_tuple(dimensions))


# Slices, padding, concatenation: primitives that cut, enlarge and join arrays.

slice_p = Primitive("slice")


def _slice_shape(x, start_indices, limit_indices, strides):
    steps = strides or (1,) * x.ndim
    if not x.ndim == len(start_indices) == len(limit_indices) == len(steps):
        raise TypeError(
            f"slice needs one start, one limit and one stride for each axis of shape "
            f"{x.shape}, got start_indices {start_indices}, limit_indices "
            f"{limit_indices} and strides {strides}."
        )
    boxes = [*zip(start_indices, limit_indices, x.shape, steps)]
    if not all(0 <= a <= b <= size and step > 0 for a, b, size, step in boxes):
        raise TypeError(
            "slice requires 0 <= start <= limit <= size and stride > 0 along each "
            f"axis, got start_indices {start_indices}, limit_indices {limit_indices}, "
            f"strides {strides} for operand shape {x.shape}."
        )
    return [x.update(shape=[-((a - b) // step) for a, b, _, step in boxes])]


def _slice(xp, x, start_indices, limit_indices, strides):
    steps = strides or (1,) * x.ndim
    return x[tuple(map(builtins.slice, start_indices, limit_indices, steps))]


def_shape_and_impl(slice_p, _slice_shape, _slice)


def slice(
    operand: ArrayLike,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> Array:
    """Cut out a box.

    Args:
      operand: an array.
      start_indices, limit_indices: one for each axis, limits excluded.
      strides: one for each axis; by default, every element is taken.

    Reference: ``jax.lax.slice``.
    """
    steps = canonicalize_int_tuple(() if strides is None else strides)
    steps = None if {*steps} <= {1} else steps
    starts = canonicalize_int_tuple(start_indices)
    limits = canonicalize_int_tuple(limit_indices)
    return slice_p.bind(
        operand, start_indices=starts, limit_indices=limits, strides=steps
    )


def slice_in_dim(
    operand: ArrayLike,
    start_index: int | None,
    limit_index: int | None,
    stride: int = 1,
    axis: int = 0,
) -> Array:
    """Slice along one axis; negative indices count from the end.

    Reference: ``jax.lax.slice_in_dim``.
    """
    shape = typeof(operand).shape
    axis = canonicalize_axis(axis, len(shape))
    size = shape[axis]
    starts, limits, strides = [0] * len(shape), [*shape], [1] * len(shape)
    start = 0 if start_index is None else operator_index(start_index, "start_index")
    limit = size if limit_index is None else operator_index(limit_index, "limit_index")
    starts[axis] = start + size if start < 0 else start
    limits[axis] = limit + size if limit < 0 else limit
    strides[axis] = operator_index(stride, "stride")
    return slice(operand, starts, limits, strides)


def index_in_dim(
    operand: ArrayLike, index: int, axis: int = 0, keepdims: bool = True
) -> Array:
    """Take one index along one axis.

    Reference: ``jax.lax.index_in_dim``.
    """
    shape = typeof(operand).shape
    axis, index = canonicalize_axis(axis, len(shape)), operator_index(index, "an index")
    if not -shape[axis] <= index < shape[axis]:
        raise IndexError(
            f"index {index} is out of bounds for axis {axis} with size {shape[axis]}"
        )
    index = index % shape[axis]
    result = slice_in_dim(operand, index, index + 1, axis=axis)
    return result if keepdims else squeeze(result, (axis,))


pad_p = Primitive("pad")


def _pad_shape(x, value, padding_config):
    check_same_dtype("pad", [x, value])
    if value.shape:
        raise ValueError(f"padding_value must be a scalar, got shape {value.shape}")
    if len(padding_config) != x.ndim:
        raise ValueError(
            "padding_config needs (low, high, interior) for each axis, got "
            f"{padding_config} for operand shape {x.shape}"
        )
    sizes = [_padded(size, *padding) for size, padding in zip(x.shape, padding_config)]
    if any(size < 0 for size in sizes):
        raise ValueError(
            f"Dimension size after padding is not at least 0, got {tuple(sizes)} for "
            f"padding_config {padding_config} and operand shape {x.shape}"
        )
    if any(interior < 0 for _, _, interior in padding_config):
        raise ValueError(f"interior padding must be nonnegative, got {padding_config}")
    return [x.update(shape=sizes, weak_type=all_weak([x, value]))]


def _padded(size, low, high, interior):
    return low + high + size + builtins.max(size - 1, 0) * interior


def _pad(xp, x, value, padding_config):
    grown = [
        (builtins.max(low, 0), builtins.max(high, 0), gap)
        for low, high, gap in padding_config
    ]
    result = xp.full([*map(_padded, x.shape, *zip(*grown))], value, x.dtype)
    spread = [
        builtins.slice(low, low + _padded(size, 0, 0, gap), gap + 1)
        for size, (low, _, gap) in zip(x.shape, grown)
    ]
    result[tuple(spread)] = x
    cut = [
        builtins.slice(builtins.max(-low, 0), size - builtins.max(-high, 0))
        for size, (low, high, _) in zip(result.shape, padding_config)
    ]
    return result[tuple(cut)]


def_shape_and_impl(pad_p, _pad_shape, _pad)


def pad(operand: ArrayLike, padding_value: ArrayLike, padding_config: Any) -> Array:
    """Put a value around the elements and between them.

    Args:
      operand: an array.
      padding_value: a scalar of the same dtype.
      padding_config: ``(low, high, interior)`` for each axis: how many to put in
        front, behind, and between neighbours. Negative `low` and `high` cut off.

    Reference: ``jax.lax.pad``.
    """
    config = tuple(canonicalize_int_tuple(padding) for padding in padding_config)
    return pad_p.bind(
        *promote_python_scalars(operand, padding_value), padding_config=config
    )


concatenate_p = Primitive("concatenate")


def _concatenate_shape(*xs, dimension):
    check_same_dtype("concatenate", xs)
    shapes = [x.shape for x in xs]
    if len({*map(len, shapes)}) > 1:
        raise TypeError(
            "Cannot concatenate arrays with different numbers of dimensions: got "
            f"{comma_separated(shapes)}."
        )
    if not 0 <= dimension < xs[0].ndim:
        raise TypeError(
            f"concatenate dimension out of bounds: dimension {dimension} for shapes "
            f"{comma_separated(shapes)}."
        )
    if len({remove_axes(shape, [dimension]) for shape in shapes}) > 1:
        raise TypeError(
            "Cannot concatenate arrays with shapes that differ in dimensions other "
            f"than the one being concatenated: concatenating along dimension "
            f"{dimension} for shapes {comma_separated(shapes)}."
        )
    joined = [*shapes[0]]
    joined[dimension] = sum(shape[dimension] for shape in shapes)
    return [ShapedArray(joined, xs[0].dtype, all_weak(xs))]


def_shape_and_impl(
    concatenate_p,
    _concatenate_shape,
    lambda xp, *xs, dimension: xp.concatenate(xs, dimension),
)


def concatenate(operands: Sequence[ArrayLike], dimension: int) -> Array:
    """Join arrays of one dtype along an axis.

    Args:
      operands: arrays whose shapes agree apart from the axis `dimension`.
      dimension: an axis, counted from the front.

    Reference: ``jax.lax.concatenate``.
    """
    operands = [*operands]
    if not operands:
        raise ValueError("concatenate requires a non-empty sequence of arrays")
    if len(operands) == 1 and isinstance(operands[0], Array):
        return operands[0]
    dimension = operator_index(dimension, "dimension of concatenate")
    return concatenate_p.bind(*operands, dimension=dimension)


# Conversions that a user asks for, and arrays from nothing.


def _asked_dtype(dtype):
    """Return a dtype that a user has to give, canonical."""
    if dtype is None:
        raise ValueError("dtype must be specified.")
    if isinstance(dtype, Array):
        raise ValueError(
            f"a dtype is needed, got an array {typeof(dtype)}: pass its dtype."
        )
    return canonicalize_dtype(dtype)


def convert_element_type(operand: ArrayLike, new_dtype: Any) -> Array:
    """Convert to another dtype.

    Integers wrap around, those of Python too; floats are cut off towards zero, and
    end at the integer type's limits; NaN becomes 0. Of complex numbers only the real
    part counts, for bools as well: ``x != 0`` asks about both.

    Args:
      operand: an array or a number.
      new_dtype: the dtype of the result.

    Reference: ``jax.lax.convert_element_type``.
    """
    dtype = _asked_dtype(new_dtype)
    operand = wrap_to_dtype(promised(operand), dtype)
    if is_python_scalar(operand):
        params = {"new_dtype": dtype, "weak_type": False}
        return convert_element_type_p.bind(
            number_in_dtype(operand, dtype), **params
        )
    result = astype(operand, dtype)
    return result if isinstance(result, Array) else as_array_impl(result)


def wrap_to_dtype(x, dtype):
    """Return a number beyond 32 bits as one of a dtype; anything else as it is."""
    wide = type(x) is int and not -(2**31) <= x < 2**31
    if wide or isinstance(x, (np.int64, np.uint64, np.float64)):
        return convert_impl(np, np.asarray(x), dtype)[()]
    return x


bitcast_convert_type_p = Primitive("bitcast_convert_type")


def _bitcast_shape(x, new_dtype):
    check_convertible(x.dtype, new_dtype, "bitcast_convert_type")
    old, new = bit_width(x.dtype), bit_width(new_dtype)
    if old < new and x.shape[-1:] != (new // old,):
        raise ValueError(
            f"bitcast_convert_type from {x.dtype} to {new_dtype} needs a last axis of "
            f"size {new // old}, got shape {x.shape}."
        )
    if x.dtype != new_dtype and {"b", "c"} & {x.dtype.kind, new_dtype.kind}:
        raise TypeError(
            "bitcast_convert_type does not convert bools or complex numbers, got "
            f"dtype {x.dtype} and new_dtype {new_dtype}."
        )
    last_axis = (old // new,) if old > new else ()
    return [
        ShapedArray((x.shape[:-1] if old < new else x.shape) + last_axis, new_dtype)
    ]


@reads_bits
def _bitcast(xp, x, new_dtype):
    old, new = bit_width(x.dtype), bit_width(new_dtype)
    x = xp.ascontiguousarray(x).reshape(x.shape)
    if old < 8:
        x = _whole_bytes(xp, x, old) if new > old else bit_pattern(x)
    if new < 8:
        return _parts_of_bytes(xp, x, old if old < 8 else 8, new).view(new_dtype)
    old = 8 * x.dtype.itemsize
    if old == new:
        return x.view(new_dtype)
    if old > new:
        return x[..., None].view(new_dtype)
    return x.view(new_dtype)[..., 0]


def _whole_bytes(xp, x, width):
    """Return bytes, each of neighbours along the last axis, the first one lowest."""
    places = np.arange(0, 8, width, dtype=np.uint8)
    parts = bit_pattern(x).reshape(*x.shape[:-1], -1, places.size)
    whole = xp.bitwise_or.reduce(parts << places, -1)
    return whole if x.shape[-1] > places.size else whole[..., 0]


def _parts_of_bytes(xp, x, old, new):
    """Return numbers of fewer bits, along axes of their own, the lowest first."""
    if old == new:
        return x
    places = np.arange(0, old, new, dtype=np.uint8)
    parts = (x.view(np.uint8).reshape(*x.shape, -1, 1) >> places) & (2**new - 1)
    return parts.astype(np.uint8).reshape(*x.shape, -1)


def_shape_and_impl(bitcast_convert_type_p, _bitcast_shape, _bitcast)


def bitcast_convert_type(operand: ArrayLike, new_dtype: Any) -> Array:
    """Read the bits of each element as another dtype.

    Args:
      operand: an array.
      new_dtype: of the same width; a narrower one adds a last axis, a wider one
        takes the last axis away.

    Reference: ``jax.lax.bitcast_convert_type``.
    """
    dtype = _asked_dtype(new_dtype)
    return bitcast_convert_type_p.bind(operand, new_dtype=dtype)


copy_p = Primitive("copy")
def_shape_and_impl(copy_p, lambda x: [x], lambda xp, x: xp.array(x))

iota_p = Primitive("iota")


def _iota_shape(dtype, shape, dimension):
    result = ShapedArray(shape, dtype)
    check_kind("iota", NUMBER_DTYPE_KINDS, [result])
    if any(size < 0 for size in shape):
        raise TypeError(f"iota shape must have nonnegative sizes, got {shape}.")
    if not 0 <= dimension < len(shape):
        raise ValueError(f"iota dimension {dimension} is not an axis of shape {shape}")
    return [result]


def _iota(xp, dtype, shape, dimension):
    sizes = [1] * len(shape)
    sizes[dimension] = shape[dimension]
    return xp.broadcast_to(xp.arange(shape[dimension]).reshape(sizes), shape)


def_shape_and_impl(iota_p, _iota_shape, _iota)


@with_out_sharding
def broadcasted_iota(
    dtype: Any, shape: Sequence[int], dimension: int, *, out_sharding: Any = None
) -> Array:
    """Return an array that counts 0, 1, 2, … along the axis `dimension`.

    Reference: ``jax.lax.broadcasted_iota``.
    """
    dtype, shape = canonicalize_dtype(dtype), canonicalize_int_tuple(shape, "Shapes")
    dimension = operator_index(dimension, "dimension of iota")
    return iota_p.bind(dtype=dtype, shape=shape, dimension=dimension)


def iota(dtype: Any, size: int) -> Array:
    """Return the vector 0, 1, …, ``size - 1``.

    Reference: ``jax.lax.iota``.
    """
    return broadcasted_iota(dtype, (size,), 0)


# From dtypes of what is no number to functions that make one element of a number.
constant_makers: dict = Registry()
# Functions ``f(x, aval)`` that return `x`, varying over a mesh as arrays of a type do.
like_hooks: list = []


def fill_scalar(value, dtype, weak_type):
    """Return a scalar to fill an array of a dtype with."""
    if dtype in constant_makers and is_python_scalar(value):
        return constant_makers[dtype](value)
    if isinstance(value, np.ndarray | np.generic) and not typeof(value).dtype.names:
        value = convert_numpy_exact(value, dtype)[()]
    return astype(wrap_to_dtype(value, dtype), dtype, weak_type)


def convert_numpy_exact(x, dtype):
    """Convert before 64 bits become 32, which would wrap integers and round twice."""
    x = np.asarray(x)
    check_convertible(x.dtype, dtype)
    if x.dtype.kind == "c" and dtype.kind not in "bc":
        warn_complex_to_real(x.dtype, dtype)
        x = x.real
    return _convert_once(x, dtype)


@ignore_float_errors
def _convert_once(x, dtype):
    whole = dtype.kind in "iu"
    return convert_impl(np, x, dtype) if whole else x.astype(dtype, copy=False)


def match_manual_axes(x, aval):
    """Return a new array, which varies over a mesh as an array that it is like."""
    if aval.manual_axis_type.varying:
        for change in like_hooks:
            x = change(x, aval)
    return x


def full(
    shape: Any, fill_value: ArrayLike, dtype: Any = None, *, sharding: Any = None
) -> Array:
    """Return an array of `shape`, filled with one value.

    Args:
      shape: a tuple of sizes, or one size.
      fill_value: a scalar.
      dtype: its dtype by default.
      sharding: None, or a device.

    Reference: ``jax.lax.full``.
    """
    aval = typeof(fill_value)
    if aval.shape:
        raise TypeError(
            f"full must be called with a scalar fill_value, got shape {aval.shape}."
        )
    weak_type = dtype is None and aval.weak_type
    dtype = aval.dtype if dtype is None else canonicalize_dtype(dtype)
    shape = shape if hasattr(shape, "__iter__") else (shape,)
    value = fill_scalar(fill_value, dtype, weak_type)
    return put_result_on_device("full", broadcast_in_dim(value, shape, ()), sharding)


def full_like(
    x: ArrayLike,
    fill_value: ArrayLike,
    dtype: Any = None,
    shape: Any = None,
    sharding: Any = None,
) -> Array:
    """Return an array like `x`, filled with one value, and there if `x` is committed.

    Args:
      x: an array, or anything with a shape and a dtype.
      fill_value: a scalar.
      dtype, shape: those of `x` by default.
      sharding: None, or a device.

    Reference: ``jax.lax.full_like``.
    """
    aval = _type_of_like(x)
    weak_type = dtype is None and aval.weak_type
    dtype = aval.dtype if dtype is None else canonicalize_dtype(dtype)
    value = fill_scalar(fill_value, dtype, weak_type)
    value = _beside(value, x) if shape is None else value
    shape = aval.shape if shape is None else shape
    if sharding is None and shape == aval.shape and _is_in_parts(x):
        sharding = x.sharding
    made = put_result_on_device(
        "full_like", broadcast_in_dim(value, shape, ()), sharding
    )
    return match_manual_axes(made, aval)


def _type_of_like(x):
    """Return the type of an array, or of what is none and has a shape and a dtype."""
    described = hasattr(x, "shape") and hasattr(x, "dtype") and not hasattr(x, "aval")
    if not described or isinstance(x, np.ndarray | np.generic):
        return typeof(x)
    return ShapedArray(tuple(x.shape), canonicalize_dtype(x.dtype))


def _is_in_parts(x):
    return isinstance(x, ArrayImpl) and x.placement.mesh_placement is not x.placement


def _beside(value, x):
    """Return a value on the device of `x`, if that is an array committed to it."""
    stays = isinstance(x, ArrayImpl) and x.committed
    return (
        device_put_leaf(value, x.placement.mesh_placement.sharding) if stays else value
    )
