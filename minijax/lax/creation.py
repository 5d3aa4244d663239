"""Conversions that a user asks for, and arrays from nothing.

Reference: ``jax.lax``.
"""

# Made from chapters/02_arrays_rest.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax._registry import Registry
from minijax.arrays.array import ArrayImpl, asarray_impl, primitive_rules
from minijax.arrays.avals import ShapedArray, is_python_scalar, typeof
from minijax.arrays.checks import (
    NUMBER,
    as_integer,
    check_kind,
    integers,
    refuse_sharding,
)
from minijax.arrays.dtypes import canonicalize_dtype
from minijax.arrays.interchange import promised
from minijax.arrays.numerics import convert, convertible, fitting, warn_of_lost_parts
from minijax.arrays.transfer import device_put, placed
from minijax.core import Array, Primitive
from minijax.lax.broadcasting import broadcast_in_dim
from minijax.lax.conversion import astype, convert_element_type_p
from minijax.typing import ArrayLike


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
    operand = wrapped(promised(operand), dtype)
    if is_python_scalar(operand):
        params = {"new_dtype": dtype, "weak_type": False}
        [result] = convert_element_type_p.bind(fitting(operand, dtype), **params)
        return result
    result = astype(operand, dtype)
    return result if isinstance(result, Array) else asarray_impl(result)


def wrapped(x, dtype):
    """Return a number beyond 32 bits as one of a dtype; anything else as it is."""
    wide = type(x) is int and not -(2**31) <= x < 2**31
    if wide or isinstance(x, (np.int64, np.uint64, np.float64)):
        return convert(np, np.asarray(x), dtype)[()]
    return x


bitcast_convert_type_p = Primitive("bitcast_convert_type")


def _bitcast_shape(x, new_dtype):
    convertible(x.dtype, new_dtype, "bitcast_convert_type")
    old, new = x.dtype.itemsize, new_dtype.itemsize
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


def _bitcast(xp, x, new_dtype):
    old, new = x.dtype.itemsize, new_dtype.itemsize
    x = xp.ascontiguousarray(x).reshape(x.shape)
    if old == new:
        return x.view(new_dtype)
    if old > new:
        return x[..., None].view(new_dtype)
    return x.view(new_dtype)[..., 0]


primitive_rules(bitcast_convert_type_p, _bitcast_shape, _bitcast)


def bitcast_convert_type(operand: ArrayLike, new_dtype: Any) -> Array:
    """Read the bits of each element as another dtype.

    Args:
      operand: an array.
      new_dtype: of the same width; a narrower one adds a last axis, a wider one
        takes the last axis away.

    Reference: ``jax.lax.bitcast_convert_type``.
    """
    dtype = _asked_dtype(new_dtype)
    [result] = bitcast_convert_type_p.bind(operand, new_dtype=dtype)
    return result


copy_p = Primitive("copy")
primitive_rules(copy_p, lambda x: [x], lambda xp, x: xp.array(x))

iota_p = Primitive("iota")


def _iota_shape(dtype, shape, dimension):
    result = ShapedArray(shape, dtype)
    check_kind("iota", NUMBER, [result])
    if any(size < 0 for size in shape):
        raise TypeError(f"iota shape must have nonnegative sizes, got {shape}.")
    if not 0 <= dimension < len(shape):
        raise ValueError(f"iota dimension {dimension} is not an axis of shape {shape}")
    return [result]


def _iota(xp, dtype, shape, dimension):
    sizes = [1] * len(shape)
    sizes[dimension] = shape[dimension]
    return xp.broadcast_to(xp.arange(shape[dimension]).reshape(sizes), shape)


primitive_rules(iota_p, _iota_shape, _iota)


def broadcasted_iota(
    dtype: Any, shape: Sequence[int], dimension: int, *, out_sharding: Any = None
) -> Array:
    """Return an array that counts 0, 1, 2, … along the axis `dimension`.

    Reference: ``jax.lax.broadcasted_iota``.
    """
    refuse_sharding("broadcasted_iota", out_sharding)
    dtype, shape = canonicalize_dtype(dtype), integers(shape, "Shapes")
    dimension = as_integer(dimension, "dimension of iota")
    [result] = iota_p.bind(dtype=dtype, shape=shape, dimension=dimension)
    return result


def iota(dtype: Any, size: int) -> Array:
    """Return the vector 0, 1, …, ``size - 1``.

    Reference: ``jax.lax.iota``.
    """
    return broadcasted_iota(dtype, (size,), 0)


# From dtypes of what is no number to functions that make one element of a number.
fillers: dict = Registry()
# Functions ``f(x, aval)`` that return `x`, varying over a mesh as arrays of a type do.
alike: list = []


def filling(value, dtype, weak_type):
    """Return a scalar to fill an array of a dtype with."""
    if dtype in fillers and is_python_scalar(value):
        return fillers[dtype](value)
    if isinstance(value, np.ndarray | np.generic) and not typeof(value).dtype.names:
        value = numbers_of_numpy(value, dtype)[()]
    return astype(wrapped(value, dtype), dtype, weak_type)


def numbers_of_numpy(x, dtype):
    """Convert before 64 bits become 32, which would wrap integers and round twice."""
    x = np.asarray(x)
    convertible(x.dtype, dtype)
    if x.dtype.kind == "c" and dtype.kind not in "bc":
        warn_of_lost_parts(x.dtype, dtype)
        x = x.real
    with np.errstate(all="ignore"):
        whole = dtype.kind in "iu"
        return convert(np, x, dtype) if whole else x.astype(dtype, copy=False)


def varied_as(x, aval):
    """Return a new array, which varies over a mesh as an array that it is like."""
    if aval.manual_axis_type.varying:
        for change in alike:
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
    value = filling(fill_value, dtype, weak_type)
    return placed("full", broadcast_in_dim(value, shape, ()), sharding)


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
    value = filling(fill_value, dtype, weak_type)
    value = _beside(value, x) if shape is None else value
    shape = aval.shape if shape is None else shape
    if sharding is None and shape == aval.shape and _is_in_parts(x):
        sharding = x.sharding
    made = placed("full_like", broadcast_in_dim(value, shape, ()), sharding)
    return varied_as(made, aval)


def _type_of_like(x):
    """Return the type of an array, or of what is none and has a shape and a dtype."""
    described = hasattr(x, "shape") and hasattr(x, "dtype") and not hasattr(x, "aval")
    if not described or isinstance(x, np.ndarray | np.generic):
        return typeof(x)
    return ShapedArray(tuple(x.shape), canonicalize_dtype(x.dtype))


def _is_in_parts(x):
    return isinstance(x, ArrayImpl) and x.placement.joint is not x.placement


def _beside(value, x):
    """Return a value on the device of `x`, if that is an array committed to it."""
    stays = isinstance(x, ArrayImpl) and x.committed
    return device_put(value, x.placement.joint.sharding) if stays else value
