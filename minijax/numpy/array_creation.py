"""Arrays from numbers and lists, and matrices with a pattern.

Reference: ``jax.numpy``.
"""

# Made from chapters/03_numpy_rest.md by `make chapter`;
# edit the chapter, not this file.

import builtins
from array import array as array_of_numbers
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import lax
from minijax.arrays.array import ShapedArray, is_python_scalar, typeof
from minijax.arrays.config import check_dtypes
from minijax.arrays.dtypes import canonicalize_dtype, check_dtype, dtype_kind, warn_user
from minijax.arrays.interchange import check_room, promised
from minijax.arrays.numerics import operator_index
from minijax.arrays.transfer import put_result_on_device
from minijax.core import Array
from minijax.lax.arithmetic import astype as as_type
from minijax.lax.reductions import (
    check_arraylike,
    common_dtype_and_weak_type,
    is_arraylike,
)
from minijax.lax.shapes import (
    _beside,
    convert_numpy_exact,
    fill_scalar,
    match_manual_axes,
)
from minijax.numpy.operands import array_kind, as_array, broadcast_to_shape, is_nonzero
from minijax.numpy.shapes import as_arraylike, canonicalize_shape, moveaxis, reshape
from minijax.typing import ArrayLike

# Arrays from numbers and lists, ranges and patterns.


def array(
    object: Any,
    dtype: Any = None,
    *args: Any,
    copy: bool | None = True,
    order: str | None = "K",
    ndmin: int = 0,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Make an array.

    Args:
      object: a number, an array, anything that NumPy sees as an array (a buffer, an
        object with ``__array__``), or nested sequences of them, tracers among them.
      dtype: dtype of the result; by default the one that the numbers promote to. Text
        is read as numbers of this dtype, as NumPy does, and refused without one.
      *args: `copy`, `order` and `ndmin` by position, which is deprecated.
      copy: whether an array that fits already is copied.
      order: ``"K"`` or None; how an array lies in memory is not the user's choice.
      ndmin: the least number of axes; new ones stand in front.
      device: where it is to be; by default, where `object` is, or the CPU.
      out_sharding: where the result lies on a mesh, in place of `device`.

    Returns:
      An array. Its type is weak if `object` is one number and `dtype` is None.

    Raises:
      TypeError: if something in `object` is neither a number nor an array.
      ValueError: if nested sequences differ in length, or for None or a masked array.
      OverflowError: if a Python integer does not fit the dtype.

    Reference: ``jax.numpy.array``.
    """
    if args:
        copy, order, ndmin = _given_by_position(args, (copy, order, ndmin))
    if order not in (None, "K"):
        raise NotImplementedError("Only implemented for order='K'")
    if copy and isinstance(object, Array):
        object = lax.copy_p.bind(object)
    result = from_object(object, dtype)
    result = broadcast_to_shape(result, (1,) * (ndmin - result.ndim) + result.shape)
    return put_result_on_device("array", result, device, out_sharding)


def _given_by_position(args, others):
    if len(args) > len(others):
        count = 2 + len(args)
        raise TypeError(f"array() takes up to 5 arguments by position, got {count}.")
    warn_user(
        "Passing the copy, order, and ndmin arguments to jnp.array positionally is "
        "deprecated. Use keyword arguments instead.",
        DeprecationWarning,
        stacklevel=3,
    )
    return *args, *others[len(args) :]


def asarray(
    a: Any,
    dtype: Any = None,
    order: str | None = None,
    *,
    copy: bool | None = None,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Make an array, as `array` does; what is one already stays as it is.

    Reference: ``jax.numpy.asarray``.
    """
    result = array(a, dtype, copy=copy is True, order=order)
    return put_result_on_device("asarray", result, device, out_sharding)


def copy(a: ArrayLike, order: str | None = None) -> Array:
    """Return a copy of an array.

    Reference: ``jax.numpy.copy``.
    """
    return array(as_arraylike("copy", a))


def astype(
    x: ArrayLike, dtype: Any, /, *, copy: bool = False, device: Any = None
) -> Array:
    """Convert to another dtype; None stands for the default float.

    Bools say which numbers are not zero, complex ones as well.

    Reference: ``jax.numpy.astype``.
    """
    x, dtype = as_arraylike("astype", x), float if dtype is None else dtype
    if array_kind(x) == "c" and check_dtype(dtype, "astype").kind == "b":
        return put_result_on_device("astype", as_array(is_nonzero(x)), device)
    return array(asarray(x, dtype), copy=copy, device=device)


SEQUENCES = (list, tuple, range, deque)


def from_object(object, dtype):
    """Return a number, an array, or nested sequences of them as an array."""
    if _is_sequence(object):
        return _from_sequence(object, dtype)
    object = seen_as_array(object)
    if dtype is not None and _is_text(object):
        object = np.asarray(object, check_dtype(dtype, "array"))
    aval = typeof(object)
    if dtype is None or (dtype_kind(aval.dtype) in "x0" and dtype == aval.dtype):
        return as_array(_without_python_number(object))  # keys stay what they are
    dtype = check_dtype(dtype, "array")
    if isinstance(object, np.ndarray | np.generic) and not aval.dtype.names:
        return as_array(convert_numpy_exact(object, dtype))
    make = np.array if is_python_scalar(object) else as_type
    return as_array(make(object, dtype))


def _without_python_number(x):
    """Return a value that is an array also where a derivative knows its number."""
    aval, number = typeof(x), getattr(x, "concrete", lambda: None)
    like_python_s = not aval.shape and (aval.weak_type or aval.dtype == bool)
    if not like_python_s or not is_python_scalar(number()):
        return x
    how = {"new_dtype": aval.dtype, "weak_type": aval.weak_type}
    return lax.convert_element_type_p.bind(x, **how)


def _from_sequence(sequence, dtype):
    leaves = list(_leaves(sequence))
    for leaf in {type(leaf): leaf for leaf in leaves}.values():
        if dtype is None or not _is_text(leaf):  # NumPy reads text as numbers
            typeof(leaf)  # raises for what is no array, and for masked ones
    if dtype is None:
        check_dtypes("array", leaves)
        dtype = common_dtype_and_weak_type(*leaves)[0] if leaves else float
        dtype = canonicalize_dtype(dtype)
    dtype = check_dtype(dtype, "array")
    if not builtins.any(isinstance(leaf, Array) for leaf in leaves):
        return as_array(np.array(sequence, dtype))
    rows = [from_object(row, dtype) for row in sequence]
    return lax.concatenate([lax.expand_dims(row, (0,)) for row in rows], 0)


def _is_text(x):
    is_numpy = isinstance(x, (np.ndarray, np.generic))
    return isinstance(x, (str, bytes)) or is_numpy and x.dtype.kind in "SU"


def _is_sequence(x):
    """Whether `x` is a sequence of elements, and not one that promises an array."""
    return isinstance(x, SEQUENCES) and not hasattr(x, "__jax_array__")


def _leaves(sequence):
    for item in sequence:
        if _is_sequence(item):
            yield from _leaves(item)
        else:
            seen = seen_as_array(item)
            yield as_array(seen) if hasattr(item, "__jax_array__") else seen


def seen_as_array(x):
    """Return what promises an array, by NumPy's protocols or JAX's, as an array."""
    if is_arraylike(x):
        return x
    if x is None:
        raise ValueError("None is not a valid value for jnp.array")
    if hasattr(x, "__jax_array__"):
        return promised(x)
    is_buffer = isinstance(x, (memoryview, bytearray, array_of_numbers))
    if is_buffer or hasattr(x, "__array__") or hasattr(x, "__array_interface__"):
        return np.asarray(x)
    return x


def full(
    shape: int | Sequence[int],
    fill_value: ArrayLike,
    dtype: Any = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Make an array of `shape` with one value everywhere.

    Args:
      shape: an integer or a sequence of integers.
      fill_value: number or array that broadcasts to `shape`.
      dtype: dtype of the result; by default that of the value.
      device: where it is to be; by default, the CPU.
      out_sharding: where the result lies on a mesh, in place of `device`.

    Reference: ``jax.numpy.full``.
    """
    fill_value = promised(fill_value)
    check_arraylike("full", fill_value)
    aval = typeof(fill_value)
    weak_type = dtype is None and aval.weak_type and device is None  # as in JAX
    dtype = aval.dtype if dtype is None else check_dtype(dtype, "full")
    value = fill_scalar(fill_value, dtype, weak_type)
    result = as_array(broadcast_to_shape(value, canonicalize_shape(shape)))
    return put_result_on_device("full", result, device, out_sharding)


def zeros(
    shape: int | Sequence[int],
    dtype: Any = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Make an array of zeros, of the default float type if `dtype` is None.

    Reference: ``jax.numpy.zeros``.
    """
    result = full(shape, 0, float if dtype is None else dtype)
    return put_result_on_device("zeros", result, device, out_sharding)


def ones(
    shape: int | Sequence[int],
    dtype: Any = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Make an array of ones, of the default float type if `dtype` is None.

    Reference: ``jax.numpy.ones``.
    """
    result = full(shape, 1, float if dtype is None else dtype)
    return put_result_on_device("ones", result, device, out_sharding)


def empty(
    shape: int | Sequence[int],
    dtype: Any = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Make an array whose contents do not matter: zeros.

    Reference: ``jax.numpy.empty``.
    """
    return zeros(shape, dtype, device=device, out_sharding=out_sharding)


def full_like(
    a: ArrayLike,
    fill_value: ArrayLike,
    dtype: Any = None,
    shape: Any = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Make an array with the shape and dtype of `a`, or others, and one value.

    Args:
      a: array, or anything with a shape and a dtype.
      fill_value: number or array that broadcasts to the shape.

    Reference: ``jax.numpy.full_like``.
    """
    has_type = hasattr(a, "shape") and hasattr(a, "dtype")
    like = a if has_type else typeof(promised(a))
    has_weak_type = isinstance(like, Array | ShapedArray)
    weak_type = dtype is None and has_weak_type and like.weak_type
    if dtype is None:  # arrays of ours keep 64 bits, and NumPy's are converted
        found = like.dtype
        dtype = found if isinstance(like, Array) else canonicalize_dtype(found)
    else:
        dtype = check_dtype(dtype, "full_like")
    value = fill_scalar(promised(fill_value), dtype, weak_type)
    value = _beside(value, a) if shape is None else value
    shape = like.shape if shape is None else canonicalize_shape(shape)
    result = put_result_on_device(
        "full_like", as_array(broadcast_to_shape(value, shape)), device, out_sharding
    )
    return match_manual_axes(result, typeof(a)) if isinstance(a, Array) else result


def zeros_like(
    a: ArrayLike,
    dtype: Any = None,
    shape: Any = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Make an array of zeros like `a`.

    Reference: ``jax.numpy.zeros_like``.
    """
    result = full_like(a, 0, dtype, shape)
    return put_result_on_device("zeros_like", result, device, out_sharding)


def ones_like(
    a: ArrayLike,
    dtype: Any = None,
    shape: Any = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Make an array of ones like `a`.

    Reference: ``jax.numpy.ones_like``.
    """
    result = full_like(a, 1, dtype, shape)
    return put_result_on_device("ones_like", result, device, out_sharding)


def empty_like(
    prototype: ArrayLike, dtype: Any = None, shape: Any = None, *, device: Any = None
) -> Array:
    """Make an array like `prototype` whose contents do not matter: zeros.

    Reference: ``jax.numpy.empty_like``.
    """
    return zeros_like(prototype, dtype, shape, device=device)


# Matrices with a pattern: diagonals, triangles, grids.


def diagonal_mask(rows, columns, k, compare):
    """Compare ``row + k`` with ``column``, at each place of a matrix."""
    int32, shape = np.dtype("int32"), canonicalize_shape((rows, columns))
    row = lax.broadcasted_iota(int32, shape, 0)
    column = lax.broadcasted_iota(int32, shape, 1)
    k = as_type(k, int32) if isinstance(k, Array) else np.asarray(k, int32)
    return compare(lax.add(row, k), column)


def check_offset(name, k, error):
    """Raise unless `k` is an integer or an array or tracer of one."""
    aval = typeof(k)
    if aval.shape or dtype_kind(aval.dtype) not in "biu":
        raise error(f"jnp.{name}: k must be a scalar integer; got {k!r}")


def eye(
    N: int,
    M: int | None = None,
    k: Any = 0,
    dtype: Any = None,
    *,
    device: Any = None,
) -> Array:
    """Make a matrix with ones on the diagonal `k` places right of the main one.

    Args:
      N, M: number of rows and of columns; `M` is `N` by default.
      k: an integer, which may be traced.

    Reference: ``jax.numpy.eye``.
    """
    check_offset("eye", k, ValueError)
    N, M = canonicalize_shape((N, N if M is None else M))
    if not isinstance(k, Array):  # beyond the matrix, all diagonals are alike
        k = builtins.max(-N, builtins.min(int(k), M))
    return astype(diagonal_mask(N, M, k, lax.eq), dtype, device=device)


def identity(n: int, dtype: Any = None) -> Array:
    """Make an identity matrix. Reference: ``jax.numpy.identity``."""
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Array:
    """Make a matrix with ones on and below a diagonal, which is as in `eye`.

    Reference: ``jax.numpy.tri``.
    """
    check_offset("tri", k, TypeError)
    N, M = canonicalize_shape((N, N if M is None else M))
    mask = diagonal_mask(N, M, k, lax.ge)
    return astype(mask, dtype)


def tril(m: ArrayLike, k: int = 0) -> Array:
    """Return the elements on and below a diagonal of matrices, and zeros above.

    Reference: ``jax.numpy.tril``.
    """
    check_offset("tril", k, TypeError)
    m, mask = _matrices("tril", m, k)
    return lax.select(mask, m, full_like(m, 0))


def triu(m: ArrayLike, k: int = 0) -> Array:
    """Return the elements on and above a diagonal of matrices, and zeros below.

    Reference: ``jax.numpy.triu``.
    """
    check_offset("triu", k, TypeError)
    m, mask = _matrices("triu", m, k - 1)
    return lax.select(mask, full_like(m, 0), m)


def _matrices(name, m, k):
    m = as_arraylike(name, m)
    if m.ndim < 2:
        raise ValueError(f"Argument to jnp.{name} must be at least 2D, got {typeof(m)}")
    rows, columns = m.shape[-2:]
    return m, broadcast_to_shape(diagonal_mask(rows, columns, k, lax.ge), m.shape)


def diag(v: ArrayLike, k: int = 0) -> Array:
    """Make a matrix with the vector `v` on a diagonal, or take one from a matrix.

    Args:
      v: vector or matrix.
      k: which diagonal, as in `eye`.

    Reference: ``jax.numpy.diag``.
    """
    v, k = as_arraylike("diag", v), operator_index(k, "k of diag")
    if v.ndim not in (1, 2):
        raise ValueError(f"diag input must be 1d or 2d, got {typeof(v)}")
    if v.ndim == 2:
        return diagonal(v, k)
    zero = full_like(v, 0, shape=())
    rows = lax.pad(v, zero, [(-k if k < 0 else 0, k if k > 0 else 0, 0)])
    mask = diagonal_mask(rows.size, rows.size, k, lax.eq)
    values = broadcast_to_shape(lax.expand_dims(rows, (1,)), mask.shape)
    return lax.select(mask, values, full_like(values, 0))


def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """Return the indices of the main diagonal of an array with `ndim` axes of size `n`.

    Reference: ``jax.numpy.diag_indices``.
    """
    ndim = operator_index(ndim, "ndim of diag_indices")
    if ndim < 0:
        raise ValueError(f"ndim of diag_indices must be nonnegative, got {ndim}.")
    check_room(f"diag_indices of {ndim} axes", ndim, 64)
    return (lax.iota(int, n),) * ndim


def meshgrid(
    *xi: ArrayLike, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> list[Array]:
    """Return the coordinates of the points of a grid, one array for each vector.

    Args:
      *xi: vectors.
      copy: accepted as in NumPy; it makes no difference to immutable arrays.
      sparse: whether each array keeps size 1 along the axes of the others.
      indexing: ``"ij"``, axis i belongs to vector i, or ``"xy"``, with the first two
        axes exchanged.

    Reference: ``jax.numpy.meshgrid``.
    """
    vectors = [as_arraylike("meshgrid", each) for each in xi]
    shapes = [each.shape for each in vectors]
    if {len(shape) for shape in shapes} - {1}:
        raise ValueError(f"Arguments to meshgrid must be 1D, got shapes {shapes}")
    if indexing not in ("xy", "ij"):
        raise ValueError(f"indexing must be 'xy' or 'ij', got {indexing!r}")
    axes = list(range(len(vectors)))
    if indexing == "xy":
        axes[:2] = axes[:2][::-1]
    sizes = [vectors[axes.index(axis)].size for axis in range(len(axes))]
    return [_spread(each, axis, sizes, sparse) for each, axis in zip(vectors, axes)]


def _spread(vector, axis, sizes, sparse):
    thin = [vector.size if i == axis else 1 for i in range(len(sizes))]
    return lax.broadcast_in_dim(vector, thin if sparse else sizes, (axis,))


def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """Take a diagonal of matrices: every ``columns + 1``-th of their elements in a row.

    Args:
      a: array with at least two axes.
      offset: which diagonal, as in `eye`.
      axis1, axis2: the axes of the matrices.

    Returns:
      An array with the other axes of `a`, and then the diagonal.

    Reference: ``jax.numpy.diagonal``.
    """
    a = as_arraylike("diagonal", a)
    if a.ndim < 2:
        raise ValueError("diagonal requires an array of at least two dimensions.")
    a = moveaxis(a, (axis1, axis2), (-2, -1))
    *others, rows, columns = a.shape
    offset = operator_index(offset, "the offset of a diagonal")
    start, size = diagonal_place(rows, columns, offset)
    line = reshape(a, (*others, rows * columns))
    stop = start + (size - 1) * (columns + 1) + 1 if size else start
    return lax.slice_in_dim(line, start, stop, columns + 1, axis=-1)


def diagonal_place(rows, columns, offset):
    """Return where a diagonal starts in a matrix written as one row, and its size."""
    start = offset if offset >= 0 else -offset * columns
    left = (rows, columns - offset) if offset >= 0 else (rows + offset, columns)
    size = left[0] if left[0] < left[1] else left[1]
    return (start, size) if size > 0 else (0, 0)
