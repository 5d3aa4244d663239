"""Sorting and searching, as NumPy offers them.

References: ``jax.numpy``, ``jax.numpy.searchsorted``, ``jax.Array``.
"""

# Made from chapters/29_sorting_rest.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import lax
from minijax.arrays.dtypes import canonicalize_dtype, check_dtype
from minijax.core import Array
from minijax.lax.arithmetic import astype as as_type
from minijax.lax.reductions import promote_dtypes
from minijax.numpy.array_methods import register_methods
from minijax.numpy.array_methods import where as choose
from minijax.numpy.operands import array_kind
from minijax.numpy.shapes import as_arraylike, canonical_axis, ravel, reshape, swapaxes
from minijax.sorting.top_k import top_k
from minijax.typing import ArrayLike

# Sorting, as NumPy offers it.


def _refuse(name, **given):
    for word, value in given.items():
        if value is not None:
            hint = (
                ""
                if word == "order"
                else (" Use stable=True or stable=False to specify sort stability.")
            )
            raise TypeError(f"'{word}' argument to {name} is not supported.{hint}")


def _along(name, a, axis):
    a = as_arraylike(name, a)
    return (ravel(a), 0) if axis is None else (a, canonical_axis(axis, a.ndim))


def take_permutation(places, x, axis=0):
    """Return the elements of an array at places that are a permutation of them all.

    Args:
      places: integers; in all rows alike, or as many as elements.
      x: an array.
      axis: along which they are rearranged.
    """
    if places.ndim != x.ndim:
        places = lax.broadcast_in_dim(places, x.shape, [axis])
    homes = lax.broadcasted_iota(places.dtype, x.shape, axis)
    _, homes = lax.sort((places, homes), dimension=axis)
    return lax.sort((homes, x), dimension=axis)[1]


def sort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
) -> Array:
    """Return the elements in order, along an axis, or all of them for None.

    Reference: ``jax.numpy.sort``.
    """
    a, axis = _along("sort", a, axis)
    _refuse("sort", kind=kind, order=order)
    result = lax.sort(a, dimension=axis, is_stable=stable)
    return lax.rev(result, [axis]) if descending else result


def argsort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
    dtype: Any = None,
) -> Array:
    """Return the places of the elements in order; equals stay in their order.

    Reference: ``jax.numpy.argsort``.
    """
    a, axis = _along("argsort", a, axis)
    _refuse("argsort", kind=kind, order=order)
    dtype = check_dtype(int if dtype is None else dtype, "argsort")
    places = lax.broadcasted_iota(dtype, a.shape, axis)
    if descending and stable:
        a, places = lax.rev(a, [axis]), lax.rev(places, [axis])
    _, places = lax.sort_key_val(a, places, dimension=axis, is_stable=stable)
    return lax.rev(places, [axis]) if descending else places


def lexsort(keys: Array | np.ndarray | Sequence[ArrayLike], axis: int = -1) -> Array:
    """Return the places in the order of the last key, then of the one before it.

    Reference: ``jax.numpy.lexsort``.
    """
    arrays = [as_arraylike("lexsort", key) for key in keys]
    if not arrays:
        raise TypeError("need sequence of keys with len > 0 in lexsort")
    if len({key.shape for key in arrays}) > 1:
        raise ValueError("all keys need to be the same shape")
    dtype, shape = canonicalize_dtype(int), arrays[0].shape
    if not shape:
        return lax.full((), 0, dtype)
    axis = canonical_axis(axis, len(shape))
    places = lax.broadcasted_iota(dtype, shape, axis)
    operands = (*arrays[::-1], places)
    return lax.sort(operands, dimension=axis, num_keys=len(arrays))[-1]


def sort_complex(a: ArrayLike) -> Array:
    """Return the elements in order along the last axis, as complex numbers.

    Reference: ``jax.numpy.sort_complex``.
    """
    a = lax.sort(as_arraylike("sort_complex", a))
    wide = array_kind(a) == "c" or a.dtype == np.float64
    wanted = np.dtype(np.complex128 if wide else np.complex64)
    return as_type(a, a.dtype if array_kind(a) == "c" else wanted)


def _parted(name, a, kth, axis):
    """Return an array with the axis at the end, the place, and the words of both."""
    a = as_arraylike(name, a)
    if array_kind(a) == "c":
        raise NotImplementedError(f"jnp.{name} for complex dtype is not implemented.")
    axis = canonical_axis(axis, a.ndim)
    kth = canonical_axis(kth, a.shape[axis])
    return swapaxes(a, axis, -1), kth, axis


def _negative(a):
    """Return numbers that are in the opposite order, as JAX makes them."""
    return lax.neg(lax.add(a, lax.full_like(a, 1)) if array_kind(a) == "u" else a)


def partition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """Return the elements with the `kth` at its place, smaller ones before it.

    Reference: ``jax.numpy.partition``.
    """
    a, kth, axis = _parted("partition", a, kth, axis)
    bottom = lax.neg(top_k(_negative(a), kth + 1)[0])
    if array_kind(a) == "u":
        bottom = lax.sub(bottom, lax.full_like(bottom, 1))
    top, _ = top_k(a, a.shape[-1] - kth - 1)
    return swapaxes(lax.concatenate([bottom, top], a.ndim - 1), -1, axis)


def argpartition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """Return the places of the elements as `partition` puts them.

    Reference: ``jax.numpy.argpartition``.
    """
    a, kth, axis = _parted("argpartition", a, kth, axis)
    last, size = a.ndim - 1, a.shape[-1]
    _, places = top_k(_negative(a), size)
    bottom = lax.slice_in_dim(places, 0, kth + 1, axis=last)
    top = lax.sort(lax.slice_in_dim(places, kth + 1, size, axis=last))
    return swapaxes(lax.concatenate([bottom, top], last), -1, axis)


# Places in arrays that are in order.

SEARCHES = "scan", "scan_unrolled", "sort", "compare_all", "default"


def merged_places(a, v, side):
    """Return how many elements of `a` come before each one of `v`: two sorts."""
    parts, marks = [v, a], [lax.full(v.shape, 0, int), lax.full(a.shape, 1, int)]
    if side == "right":
        parts, marks = parts[::-1], marks[::-1]
    joined, ours = lax.concatenate(parts, 0), lax.concatenate(marks, 0)
    _, ours, numbers = lax.sort((joined, ours, lax.iota(int, joined.size)))
    _, before = lax.sort((numbers, lax.cumsum(ours)))
    start = 0 if side == "left" else a.size
    return lax.slice_in_dim(before, start, start + v.shape[0])


def searchsorted(
    a: ArrayLike,
    v: ArrayLike,
    side: str = "left",
    sorter: ArrayLike | None = None,
    *,
    method: str = "scan",
) -> Array:
    """Return the places at which numbers keep an array in order.

    Args:
      a: a vector in order.
      v: numbers.
      side: ``"left"``, before all elements that are equal, or ``"right"``, behind them.
      sorter: the places of the elements in order, if `a` is not in order.
      method: one of JAX's; all have the same result, and one way is taken.

    Reference: ``jax.numpy.searchsorted``.
    """
    a, v = as_arraylike("searchsorted", a), as_arraylike("searchsorted", v)
    if a.ndim != 1:
        raise ValueError("a should be 1-dimensional")
    if side not in ("left", "right"):
        raise ValueError(f"{side!r} is an invalid value for keyword 'side'.")
    if method not in SEARCHES:
        raise ValueError(f"{method!r} is an invalid value for keyword 'method'.")
    if sorter is not None:
        a = take_permutation(as_arraylike("searchsorted", sorter), a)
    a, v = promote_dtypes(a, v)
    places = lax.convert_element_type(merged_places(a, ravel(v), side), "int32")
    return reshape(places, v.shape)


def digitize(
    x: ArrayLike, bins: ArrayLike, right: bool = False, *, method: str | None = None
) -> Array:
    """Return for each number which of the bins it is in.

    Args:
      x: numbers.
      bins: edges that rise, or that fall.
      right: whether a bin contains its right edge.
      method: as in `searchsorted`.

    Reference: ``jax.numpy.digitize``.
    """
    x, edges = as_arraylike("digitize", x), as_arraylike("digitize", bins)
    if edges.ndim != 1:
        raise ValueError(f"digitize: bins must be a 1-dimensional array; got {bins=}")
    if not edges.size:
        return lax.full(x.shape, 0, "int32")
    side, method = "left" if right else "right", method or "scan"
    rising = searchsorted(edges, x, side, method=method)
    falling = searchsorted(lax.rev(edges, [0]), x, side, method=method)
    return choose(edges[-1] >= edges[0], rising, edges.size - falling)


# The methods of arrays that sort.


def argsort_method(x, axis=-1, *, kind=None, order=None, stable=True, descending=False):
    """Return the places of the elements in order; see `argsort`."""
    how = {"stable": stable, "descending": descending}
    return argsort(x, axis, kind=kind, order=order, **how)


register_methods({
    "sort": sort,
    "argsort": argsort_method,
    "argpartition": argpartition,
    "searchsorted": searchsorted,
})  # fmt: skip
