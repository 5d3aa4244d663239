"""Grids, and places in arrays: by slices in brackets, by diagonals, by numbers.

Reference: ``jax.numpy.mgrid``, ``jax.numpy.r_``, ``jax.numpy.tril_indices``.
"""

# Made from chapters/03_numpy_rest.md by `make chapter`;
# edit the chapter, not this file.

import builtins
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax import lax
from minijax.arrays.dtypes import canonicalize_dtype, check_dtype, config
from minijax.arrays.interchange import check_room, promised
from minijax.arrays.numerics import operator_index
from minijax.core import Array
from minijax.errors import ConcretizationTypeError
from minijax.lax.reductions import check_arraylike, promote_dtypes
from minijax.numpy.array_creation import (
    array,
    asarray,
    astype,
    diag_indices,
    meshgrid,
    ones,
)
from minijax.numpy.array_methods import where
from minijax.numpy.joining import concatenate, stack
from minijax.numpy.operands import array_kind, as_array
from minijax.numpy.ranges import arange, linspace
from minijax.numpy.scalar_types import iinfo, result_type
from minijax.numpy.shapes import (
    as_arraylike,
    broadcast_to,
    expand_dims,
    ravel,
    reshape,
    transpose,
)
from minijax.numpy.ufuncs import clip, mod
from minijax.typing import ArrayLike

index_exp, s_ = np.index_exp, np.s_


def _points(each):
    """Return the numbers of a slice; an imaginary step says how many there are."""
    start, stop, step = each.start or 0, each.stop, each.step or 1
    if np.iscomplexobj(step):
        return linspace(start, stop, int(builtins.abs(step)))
    return arange(start, stop, step)


class _Grid:
    """What makes grids of the slices in its brackets.

    Args:
      sparse: whether each array has one axis longer than 1.
    """

    def __init__(self, sparse):
        self.sparse = sparse

    def __getitem__(self, key: Any) -> Any:
        """Return the coordinates: an array, or one for each slice if sparse."""
        if isinstance(key, slice):
            return _points(key)
        if not key:
            return [] if self.sparse else arange(0)
        with config.override("jax_numpy_dtype_promotion", "standard"):
            found = promote_dtypes(*map(_points, key))
        grids = meshgrid(*found, indexing="ij", sparse=self.sparse)
        return grids if self.sparse else stack(grids)


mgrid, ogrid = _Grid(False), _Grid(True)


class _Joiner:
    """What joins the arrays, numbers and slices in its brackets.

    Args:
      axis: along which.
      ndim: how many axes each part has at least.
      first: the place of a part's own first axis among these.
    """

    def __init__(self, axis, ndim, first):
        self.defaults = axis, ndim, first

    def __getitem__(self, key: Any) -> Array:
        """Return the joined array; a text in front sets axis, axes and first."""
        parts = key if isinstance(key, tuple) else (key,)
        column = None
        axis, ndim, first = self.defaults
        if isinstance(parts[0], str):
            text, *parts = parts
            if text in ("r", "c"):
                column = "rc".index(text)
            else:
                axis, ndim, first = self._numbers(text)
        if builtins.any(isinstance(part, str) for part in parts):
            raise ValueError("string directive must be placed at the beginning")
        joined = concatenate([_raised(part, ndim, first) for part in parts], axis)
        if column is not None and joined.ndim == 1:
            return expand_dims(joined, column)
        return joined

    def _numbers(self, text):
        given = text.split(",")[:3]
        try:
            return (*map(int, given), *self.defaults[len(given) :])
        except ValueError as error:
            raise ValueError(f"could not understand directive {text!r}") from error

    def __len__(self):
        return 0


def _raised(part, ndim, first):
    """Return a part with `ndim` axes, its own from the place `first` on."""
    part = _points(part) if isinstance(part, slice) else array(part, copy=False)
    missing = ndim - part.ndim
    if missing <= 0:
        return part
    own = part.ndim
    part = reshape(part, (1,) * missing + part.shape)
    if first == -1:
        return part
    turns = ndim - builtins.abs(ndim + first + 1) % ndim
    order = [*range(ndim)]
    return transpose(part, order[turns:] + order[:turns]) if own or turns else part


r_, c_ = _Joiner(0, 1, -1), _Joiner(-1, 2, 0)


def ix_(*args: ArrayLike) -> tuple[Array, ...]:
    """Return vectors of indices, each along an axis of its own: an open grid.

    Reference: ``jax.numpy.ix_``.
    """
    axes = [as_arraylike("ix", x) for x in args]
    return tuple([_placed(x, i, len(args)) for i, x in enumerate(axes)])


def _placed(x, place, ndim):
    if x.ndim != 1:
        words = "Arguments to jax.numpy.ix_ must be 1-dimensional, got shape"
        raise ValueError(f"{words} {x.shape}")
    if array_kind(x) == "b":
        words = "Boolean arguments to jax.numpy.ix_ are not implemented"
        raise NotImplementedError(words)
    integers = lax.full((0,), 0, canonicalize_dtype(np.int64))  # an empty list is float
    return _on_axis(x if x.size else integers, place, ndim)


def _on_axis(x, place, ndim):
    """Return a vector as an array of more axes, of which it has one."""
    shape = [x.size if axis == place else 1 for axis in range(ndim)]
    return lax.broadcast_in_dim(x, shape, (place,))


def indices(
    dimensions: Sequence[int], dtype: Any = None, sparse: bool = False
) -> Array | tuple[Array, ...]:
    """Return for each axis of an array of this shape the index along it.

    Args:
      dimensions: the shape.
      dtype: of the indices.
      sparse: whether to return a tuple of arrays with one long axis each.

    Reference: ``jax.numpy.indices``.
    """
    dtype = check_dtype(int if dtype is None else dtype, "indices")
    sizes = tuple(operator_index(each, "a size") for each in dimensions)
    each = [lax.iota(dtype, n) for n in sizes]
    found = [_on_axis(x, i, len(sizes)) for i, x in enumerate(each)]
    if sparse:
        return tuple(found)
    if not found:
        return array([], dtype)
    return stack([broadcast_to(each, sizes) for each in found])


def _where_true(mask):
    """Return the places where a known array is not zero, one array for each axis."""
    return tuple([asarray(places, int) for places in np.nonzero(mask)])


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """Return the rows and columns of a matrix's places on and below a diagonal.

    Args:
      n, m: how many rows and columns the matrix has.
      k: the diagonal, 0 for the main one.

    Reference: ``jax.numpy.tril_indices``.
    """
    return _where_true(_lower(n, k, m))


def _lower(n, k, m):
    n, m = [operator_index(size, "a size") for size in (n, n if m is None else m)]
    n, m = builtins.max(n, 0), builtins.max(m, 0)
    check_room("the places of a triangle", n, m)
    k = operator_index(k, "the offset of a diagonal")
    return np.tri(n, m, builtins.min(builtins.max(k, -n - 1), m))


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """Return the rows and columns of a matrix's places on and above a diagonal.

    Reference: ``jax.numpy.triu_indices``.
    """
    return _where_true(
        1 - _lower(n, operator_index(k, "the offset of a diagonal") - 1, m)
    )


def _sizes_of_matrix(name, arr):
    shape = arr.shape if hasattr(arr, "shape") else as_arraylike(name, arr).shape
    if len(shape) != 2:
        raise ValueError("Only 2-D inputs are accepted")
    return dict(zip("nm", shape))


def tril_indices_from(arr: Any, k: int = 0) -> tuple[Array, Array]:
    """Return `tril_indices` for the shape of a matrix.

    Reference: ``jax.numpy.tril_indices_from``.
    """
    return tril_indices(k=k, **_sizes_of_matrix("tril_indices_from", arr))


def triu_indices_from(arr: Any, k: int = 0) -> tuple[Array, Array]:
    """Return `triu_indices` for the shape of a matrix.

    Reference: ``jax.numpy.triu_indices_from``.
    """
    return triu_indices(k=k, **_sizes_of_matrix("triu_indices_from", arr))


def mask_indices(
    n: int, mask_func: Callable, k: int = 0, *, size: int | None = None
) -> tuple[Array, ...]:
    """Return the places of an n by n matrix of ones that a function leaves there.

    Args:
      n: the number of rows, and of columns.
      mask_func: called with the matrix and `k`.
      k: what `mask_func` is given besides.
      size: how many places to return; zeros stand for those that are not there.

    Reference: ``jax.numpy.mask_indices``.
    """
    found = _where_true(np.asarray(mask_func(ones((n, n)), k)))
    if size is None:
        return found
    return tuple(
        [
            lax.pad(x[:size], x.dtype.type(0), [(0, builtins.max(size - x.size, 0), 0)])
            for x in found
        ]
    )


def diag_indices_from(arr: ArrayLike) -> tuple[Array, ...]:
    """Return the indices of the main diagonal of an array of equal sizes.

    Reference: ``jax.numpy.diag_indices_from``.
    """
    arr = as_arraylike("diag_indices_from", arr)
    if arr.ndim < 2:
        raise ValueError("input array must be at least 2-d")
    if len({*arr.shape}) != 1:
        raise ValueError("All dimensions of input must be of equal length")
    return diag_indices(arr.shape[0], ndim=arr.ndim)


def fill_diagonal(
    a: ArrayLike, val: ArrayLike, wrap: bool = False, *, inplace: bool = True
) -> Array:
    """Return an array with other numbers on its main diagonal.

    Args:
      a: an array with two axes or more; with more, of equal sizes.
      val: a number, or an array whose elements are used in turn, over and over.
      wrap: must be False.
      inplace: must be False: arrays do not change.

    Reference: ``jax.numpy.fill_diagonal``.
    """
    if inplace:
        raise NotImplementedError("JAX arrays are immutable, must use inplace=False")
    if wrap:
        raise NotImplementedError("wrap=True is not implemented, must use wrap=False")
    a, val = as_arraylike("fill_diagonal", a), as_arraylike("fill_diagonal", val)
    if a.ndim < 2:
        raise ValueError("array must be at least 2-d")
    if a.ndim > 2 and len({*a.shape}) > 1:
        raise ValueError("All dimensions of input must be of equal length")
    size = builtins.min(a.shape)
    if val.ndim:
        turns = -(-size // builtins.max(val.size, 1))
        val = concatenate([ravel(val)] * builtins.max(turns, 1))[:size]
        val = lax.pad(val, val.dtype.type(0), [(0, a.shape[0] - size, 0)])
        val = reshape(val, (a.shape[0],) + (1,) * (a.ndim - 1))
    places = indices(a.shape, sparse=True)
    on = math.prod([places[0] == each for each in places[1:]], start=True)
    return where(on, lax.convert_element_type(val, a.dtype), a)


def _numbers_of(name, x):
    """Return the numbers of an array; raise if they are not known yet."""
    value = x.concrete() if hasattr(x, "concrete") else x
    if value is None:
        raise ConcretizationTypeError(
            "Abstract tracer value encountered where concrete value is expected: "
            f"{name} with mode='raise' looks at its indices; got {x!r}. "
            f"The error occurred because {name} was jit-compiled with mode='raise'. "
            f"Use mode='wrap' or mode='clip' instead. {x.provenance()}"
        )
    return np.asarray(value)


def _in_bounds(name, index, size, mode, modes=("raise", "wrap", "clip")):
    """Return indices that are not out of bounds, or raise if they are.

    Args:
      name: of the function that was given them, for messages.
      index, size: an array of integers, and what they have to be less than.
      mode, modes: what becomes of the others, one of these; with ``ignore`` they stay.
    """
    if mode not in modes:
        raise ValueError(f"invalid mode={mode!r}. Expected one of {modes}.")
    if array_kind(index) in "iu" and iinfo(index.dtype).max < size:
        index = astype(index, np.int32)  # int8 has no 200
    if mode == "clip":
        return clip(index, 0, size - 1)
    if mode == "raise":
        known = _numbers_of(name, index)
        if ((known < 0) | (known >= size)).any():
            raise ValueError(f"invalid entry of {name}, not from 0 to {size - 1}")
    return mod(index, size) if mode == "wrap" else index


def ravel_multi_index(
    multi_index: Sequence[ArrayLike],
    dims: Sequence[int],
    mode: str = "raise",
    order: str = "C",
    *,
    dtype: Any = None,
) -> Array:
    """Return the places in an array written as one row, for indices along each axis.

    Args:
      multi_index: indices, one array of integers for each axis.
      dims: the sizes of the axes.
      mode: of indices out of bounds: ``raise``, ``wrap``, ``clip`` or ``ignore``.
      order: ``C`` if the last index moves fastest, ``F`` if the first does.
      dtype: of the result.

    Reference: ``jax.numpy.ravel_multi_index``.
    """
    dims = tuple(operator_index(each, "a size") for each in dims)
    if (n := len(multi_index)) != len(dims):
        raise ValueError(f"{n} indices for {len(dims)} axes: each axis has one.")
    multi_index = [promised(each) for each in multi_index]
    check_arraylike("ravel_multi_index", *multi_index)
    parts = [*map(as_array, multi_index)]
    if dtype is None:
        dtype = result_type(int, *parts)
    dtype = check_dtype(dtype, "ravel_multi_index")
    if dtype.kind not in "iu":
        raise ValueError(f"dtype={dtype!r} is not an integer type.")
    if math.prod(dims) - 1 > iinfo(dtype).max:
        raise ValueError(
            f"jnp.ravel_multi_index: {dtype=} is not large enough for {dims=}."
        )
    if builtins.any(array_kind(part) not in "iu" for part in parts):
        raise TypeError("only int indices permitted")
    modes, name = ("raise", "wrap", "clip", "ignore"), "jnp.ravel_multi_index"
    parts = [_in_bounds(name, part, n, mode, modes) for part, n in zip(parts, dims)]
    if order not in ("C", "F"):
        raise ValueError(f"invalid order={order!r}. Expected 'C' or 'F'")
    inner = range(len(dims))
    strides = [math.prod(dims[i + 1 :] if order == "C" else dims[:i]) for i in inner]
    terms = [astype(part, dtype) * stride for part, stride in zip(parts, strides)]
    return builtins.sum(terms, array(0, dtype))


def unravel_index(indices: ArrayLike, shape: Any) -> tuple[Array, ...]:
    """Return the indices along each axis, for places in an array written as one row.

    Args:
      indices: integers; those out of bounds become the nearest ones.
      shape: the sizes of the axes.

    Reference: ``jax.numpy.unravel_index``.
    """
    rest = as_arraylike("unravel_index", indices)
    sizes = [*shape] if np.iterable(shape) else [shape]
    if builtins.any(np.ndim(size) for size in sizes):
        raise ValueError("unravel_index: shape should be a scalar or 1D sequence.")
    found = []
    for size in reversed(sizes):
        rest, index = divmod(rest, size)
        found.insert(0, index)
    above, below = rest > 0, array_kind(rest) != "u" and rest < -1
    pairs = zip(sizes, found)
    return tuple([where(above, n - 1, where(below, 0, i)) for n, i in pairs])
