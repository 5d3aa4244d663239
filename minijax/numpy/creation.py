# Made from chapters/03_numpy_rest.md by `make chapter`;
# edit the chapter, not this file.
"""Arrays from numbers and lists, ranges and patterns.

Reference: ``jax.numpy``.
"""

import builtins
import math
from array import array as array_of_numbers
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import lax
from minijax.arrays.avals import is_python_scalar, typeof
from minijax.arrays.dtypes import canonicalize_dtype, check_dtype
from minijax.core import Array
from minijax.errors import ConcretizationTypeError
from minijax.lax.conversion import astype as as_type
from minijax.lax.creation import _beside
from minijax.lax.creation import wrapped as as_wrapped
from minijax.lax.promotion import (
    check_arraylike,
    common_type,
    is_arraylike,
    promote_dtypes_inexact,
)
from minijax.numpy.shapes import (
    arraylike,
    as_shape,
    broadcast_shapes,
    moveaxis,
    reshape,
)
from minijax.numpy.ufuncs import as_array, as_bool, kind, stretch
from minijax.switches.promotion import check_dtypes
from minijax.typing import ArrayLike


def array(
    object: Any,
    dtype: Any = None,
    copy: bool | None = True,
    order: str | None = "K",
    ndmin: int = 0,
) -> Array:
    """Make an array.

    Args:
      object: a number, an array, anything that NumPy sees as an array (a buffer, an
        object with ``__array__``), or nested sequences of them, tracers among them.
      dtype: dtype of the result; by default the one that the numbers promote to.
      copy: whether an array that fits already is copied.
      order: ``"K"`` or None; how an array lies in memory is not the user's choice.
      ndmin: the least number of axes; new ones stand in front.

    Returns:
      An array. Its type is weak if `object` is one number and `dtype` is None.

    Raises:
      TypeError: if something in `object` is neither a number nor an array.
      ValueError: if nested sequences differ in length, or for None or a masked array.
      OverflowError: if a Python integer does not fit the dtype.

    Reference: ``jax.numpy.array``.
    """
    if order not in (None, "K"):
        raise NotImplementedError("Only implemented for order='K'")
    if copy and isinstance(object, Array):
        [object] = lax.copy_p.bind(object)
    result = from_object(object, dtype)
    return stretch(result, (1,) * (ndmin - result.ndim) + result.shape)


def asarray(
    a: Any, dtype: Any = None, order: str | None = None, *, copy: bool | None = None
) -> Array:
    """Make an array, as `array` does; what is one already stays as it is.

    Reference: ``jax.numpy.asarray``.
    """
    return array(a, dtype, copy is True, order)


def copy(a: ArrayLike, order: str | None = None) -> Array:
    """Return a copy of an array.

    Reference: ``jax.numpy.copy``.
    """
    return array(arraylike("copy", a))


def astype(x: ArrayLike, dtype: Any, /, *, copy: bool = False) -> Array:
    """Convert to another dtype; None stands for the default float.

    Bools say which numbers are not zero, complex ones as well.

    Reference: ``jax.numpy.astype``.
    """
    x, dtype = arraylike("astype", x), float if dtype is None else dtype
    if kind(x) == "c" and check_dtype(dtype, "astype").kind == "b":
        return as_array(as_bool(x))
    return array(asarray(x, dtype), copy=copy)


SEQUENCES = (list, tuple, range, deque)


def from_object(object, dtype):
    """Return a number, an array, or nested sequences of them as an array."""
    if isinstance(object, SEQUENCES):
        return _from_sequence(object, dtype)
    object = seen_as_array(object)
    typeof(object)
    if dtype is None:
        return as_array(object)
    dtype = check_dtype(dtype, "array")
    is_truth = isinstance(object, np.ndarray) and dtype.kind == "b"
    convert = np.array if is_truth or is_python_scalar(object) else as_type
    return as_array(convert(object, dtype))


def _from_sequence(sequence, dtype):
    leaves = list(_leaves(sequence))
    for leaf in {type(leaf): leaf for leaf in leaves}.values():
        typeof(leaf)  # raises for what is no array, and for masked ones
    if dtype is None:
        check_dtypes("array", leaves)
        dtype = common_type(*leaves)[0] if leaves else float
    dtype = canonicalize_dtype(dtype)
    if not builtins.any(isinstance(leaf, Array) for leaf in leaves):
        return as_array(np.array(sequence, dtype))
    rows = [from_object(row, dtype) for row in sequence]
    return lax.concatenate([lax.expand_dims(row, (0,)) for row in rows], 0)


def _leaves(sequence):
    for item in sequence:
        if isinstance(item, SEQUENCES):
            yield from _leaves(item)
        else:
            yield seen_as_array(item)


def seen_as_array(x):
    """Return what promises an array, by NumPy's protocols or JAX's, as an array."""
    if is_arraylike(x):
        return x
    if x is None:
        raise ValueError("None is not a valid value for jnp.array")
    if hasattr(x, "__jax_array__"):
        return x.__jax_array__()
    is_buffer = isinstance(x, (memoryview, bytearray, array_of_numbers))
    if is_buffer or hasattr(x, "__array__") or hasattr(x, "__array_interface__"):
        return np.asarray(x)
    return x


def full(shape: int | Sequence[int], fill_value: ArrayLike, dtype: Any = None) -> Array:
    """Make an array of `shape` with one value everywhere.

    Args:
      shape: an integer or a sequence of integers.
      fill_value: number or array that broadcasts to `shape`.
      dtype: dtype of the result; by default that of the value.

    Reference: ``jax.numpy.full``.
    """
    check_arraylike("full", fill_value)
    aval = typeof(fill_value)
    weak_type = dtype is None and aval.weak_type
    dtype = aval.dtype if dtype is None else check_dtype(dtype, "full")
    value = as_type(as_wrapped(fill_value, dtype), dtype, weak_type)
    return as_array(stretch(value, as_shape(shape)))


def zeros(shape: int | Sequence[int], dtype: Any = None) -> Array:
    """Make an array of zeros, of the default float type if `dtype` is None.

    Reference: ``jax.numpy.zeros``.
    """
    return full(shape, 0, float if dtype is None else dtype)


def ones(shape: int | Sequence[int], dtype: Any = None) -> Array:
    """Make an array of ones, of the default float type if `dtype` is None.

    Reference: ``jax.numpy.ones``.
    """
    return full(shape, 1, float if dtype is None else dtype)


def empty(shape: int | Sequence[int], dtype: Any = None) -> Array:
    """Make an array whose contents do not matter: zeros.

    Reference: ``jax.numpy.empty``.
    """
    return zeros(shape, dtype)


def full_like(
    a: ArrayLike, fill_value: ArrayLike, dtype: Any = None, shape: Any = None
) -> Array:
    """Make an array with the shape and dtype of `a`, or others, and one value.

    Args:
      a: array, or anything with a shape and a dtype.
      fill_value: number or array that broadcasts to the shape.

    Reference: ``jax.numpy.full_like``.
    """
    like = a if hasattr(a, "shape") and hasattr(a, "dtype") else typeof(a)
    weak_type = dtype is None and getattr(like, "weak_type", False)
    dtype = like.dtype if dtype is None else check_dtype(dtype, "full_like")
    value = as_type(as_wrapped(fill_value, dtype), dtype, weak_type)
    value = _beside(value, a) if shape is None else value
    return as_array(stretch(value, like.shape if shape is None else as_shape(shape)))


def zeros_like(a: ArrayLike, dtype: Any = None, shape: Any = None) -> Array:
    """Make an array of zeros like `a`.

    Reference: ``jax.numpy.zeros_like``.
    """
    return full_like(a, 0, dtype, shape)


def ones_like(a: ArrayLike, dtype: Any = None, shape: Any = None) -> Array:
    """Make an array of ones like `a`.

    Reference: ``jax.numpy.ones_like``.
    """
    return full_like(a, 1, dtype, shape)


def empty_like(prototype: ArrayLike, dtype: Any = None, shape: Any = None) -> Array:
    """Make an array like `prototype` whose contents do not matter: zeros.

    Reference: ``jax.numpy.empty_like``.
    """
    return zeros_like(prototype, dtype, shape)


def arange(
    start: ArrayLike,
    stop: ArrayLike | None = None,
    step: ArrayLike | None = None,
    dtype: Any = None,
) -> Array:
    """Count from `start` (by default 0) up to, not including, `stop`.

    Args:
      start, stop, step: numbers with known values; without a `stop`, the first is it.
      dtype: dtype of the result; by default the one that the numbers promote to.

    Returns:
      A vector of ``ceil((stop - start) / step)`` elements.

    Reference: ``jax.numpy.arange``.
    """
    given = [each for each in (start, stop, step) if each is not None]
    ends = (0, start) if stop is None else (start, stop)
    start, stop = map(_static_number, ends)
    distance = 1 if step is None else _static_number(step)
    dtype = common_type(*given)[0] if dtype is None else check_dtype(dtype, "arange")
    result = lax.iota(dtype, _count(start, stop, distance))
    if step is not None:
        result = lax.mul(np.asarray(distance).astype(dtype), result)
    if step is not None or start:
        result = lax.add(np.asarray(start).astype(dtype), result)
    return result


def _static_number(x):
    check_arraylike("arange", x)
    if typeof(x).shape or typeof(x).dtype.kind == "c":
        raise ValueError(f"arange needs real scalars, got {typeof(x)}.")
    value = x.concrete() if hasattr(x, "concrete") else x
    if value is None:
        raise ConcretizationTypeError(
            "Abstract tracer value encountered where concrete value is expected: the "
            f"arguments of jnp.arange decide the shape of its result; got {x!r}. "
            f"{getattr(x, 'provenance', str)()}"
        )
    return np.asarray(value).item()


def _count(start, stop, step):
    size = math.ceil((stop - start) / step)
    return size if size > 0 else 0


def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
) -> Any:
    """Return `num` numbers with equal distances from `start` to `stop`.

    Args:
      start, stop: numbers, or arrays for several ranges at once.
      num: how many.
      endpoint: whether `stop` is the last of them.
      retstep: whether to return the distance too.
      dtype: dtype of the result; for integers the numbers are rounded down.
      axis: where the new axis stands in the result.

    Reference: ``jax.numpy.linspace``.
    """
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.")
    check_arraylike("linspace", start, stop)
    ends = promote_dtypes_inexact(start, stop)
    shape = broadcast_shapes(*(typeof(end).shape for end in ends))
    start, stop = (
        stretch(as_type(end, typeof(end).dtype), (1, *shape)) for end in ends
    )
    steps = num - 1 if endpoint else num
    samples = moveaxis(_samples(start, stop, num, steps), 0, axis)
    if dtype is not None and canonicalize_dtype(dtype).kind in "iu":
        samples = lax.floor(samples)
    samples = samples if dtype is None else astype(samples, dtype)
    return (samples, _distance(start, stop, steps)) if retstep else samples


def _samples(start, stop, num, steps):
    if steps < 1:
        return lax.slice_in_dim(start, 0, num)
    place = lax.div(lax.iota(start.dtype, steps), np.asarray(steps, start.dtype))
    place = reshape(place, (steps,) + (1,) * (start.ndim - 1))
    rest = lax.sub(np.asarray(1, start.dtype), place)
    samples = lax.add(lax.mul(start, rest), lax.mul(stop, place))
    return samples if steps == num else lax.concatenate([samples, stop], 0)


def _distance(start, stop, steps):
    if steps < 1:
        return as_array(np.asarray(np.nan, start.dtype))
    steps = np.asarray(steps, start.dtype)
    return lax.squeeze(lax.div(lax.sub(stop, start), steps), (0,))
