"""Set operations of two sets, and histograms.

References: ``jax.numpy.union1d``, ``jax.numpy.intersect1d``, ``jax.numpy.histogram``.
"""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from minijax import numpy as jnp
from minijax.arrays.numerics import check_rank, operator_index
from minijax.core import Array
from minijax.lax.reductions import promote_dtypes, promote_dtypes_inexact
from minijax.numpy.setops import UNIQUE_SIZE_MESSAGE, unique, unique_slices
from minijax.numpy.shapes import as_arraylike
from minijax.typing import ArrayLike

# Sets made of two sets.


def _two(name, ar1, ar2):
    """Return both arrays as rows of one dtype."""
    both = promote_dtypes(as_arraylike(name, ar1), as_arraylike(name, ar2))
    return [x.reshape(-1) for x in both]


def _as_set(x, assume_unique):
    """Return the values of `x`, where they stood, and which of them are real."""
    if assume_unique:
        return x, jnp.arange(len(x)), jnp.ones(len(x), bool)
    values, index, _, counts = unique_slices(x, size=len(x), fill_value=0)
    return values, index, counts > 0


def merged(sets: Any) -> Any:
    """Sort the real values of two sets into one row.

    Returns:
      The values, where each stood in its own array, from which set it is, and for each
      whether it is real.
    """
    values, places, real = (jnp.concatenate(parts) for parts in zip(*sets))
    owner = jnp.concatenate([jnp.full(len(s[0]), i) for i, s in enumerate(sets)])
    order = jnp.lexsort((owner, values, jnp.logical_not(real)))
    return values[order], places[order], owner[order], real[order]


def _scalar(fill_value):
    """Return what fills places, which is one value, or None."""
    if fill_value is None or not (shape := jnp.shape(fill_value)):
        return fill_value
    raise ValueError(f"fill_value is a scalar here; its shape is {shape}.")


def _selected(values, wanted, size, fill_value):
    """Return the values that are wanted, `size` of them, and which ones are real."""
    count = wanted.sum()
    fill_value = None if size is None else _scalar(fill_value)
    size = operator_index(count if size is None else size, "size", UNIQUE_SIZE_MESSAGE)
    if not len(values):
        nothing = jnp.full(size, 0 if fill_value is None else fill_value)
        return nothing.astype(values.dtype), jnp.zeros(size, int), jnp.zeros(size, bool)
    [found] = jnp.nonzero(wanted, size=size, fill_value=len(values))
    there = jnp.arange(size) < count
    kept = values.at[found].get(mode="fill", fill_value=0)
    if fill_value is None and size:
        smallest = jnp.where(there, kept, kept[0])
        fill_value = jnp.where(count > 0, smallest.min(), 0)
    fill_value = jnp.asarray(0 if fill_value is None else fill_value)
    return jnp.where(there, kept, fill_value.astype(kept.dtype)), found, there


def union1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """Return the values that are in either array, once each, in ascending order.

    Args:
      ar1, ar2: arrays, whose elements are taken in a row.
      size: how many to return; by default all, for which the arrays have to be known.
      fill_value: what stands behind them; the smallest by default.

    Reference: ``jax.numpy.union1d``.
    """
    both = jnp.concatenate(_two("union1d", ar1, ar2))
    return unique(both, size=size, fill_value=fill_value)


def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Any:
    """Return the values that are in both arrays, once each, in ascending order.

    Args:
      ar1, ar2: arrays, whose elements are taken in a row.
      assume_unique: whether neither has a value twice.
      return_indices: whether to return as well where they stand first in each array.
      size: how many to return; by default all, for which the arrays have to be known.
      fill_value: what stands behind them; the smallest by default. Places are filled
        with the length of their array.

    Reference: ``jax.numpy.intersect1d``.
    """
    arrays = _two("intersect1d", ar1, ar2)
    values, places, _, real = merged([_as_set(x, assume_unique) for x in arrays])
    none = jnp.zeros(min(1, len(values)), bool)
    twice = jnp.concatenate([(values[1:] == values[:-1]) & real[1:], none])
    kept, found, there = _selected(values, twice, size, fill_value)
    if not return_indices:
        return kept
    first, second = (
        jnp.where(there, places.at[found + i].get(mode="fill", fill_value=0), len(x))
        for i, x in enumerate(arrays)
    )
    return kept, first, second


def setxor1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """Return the values that are in one array only, in ascending order.

    Args:
      ar1, ar2: arrays, whose elements are taken in a row.
      assume_unique: whether neither has a value twice.
      size: how many to return; by default all, for which the arrays have to be known.
      fill_value: what stands behind them; the smallest by default.

    Reference: ``jax.numpy.setxor1d``.
    """
    arrays = _two("setxor1d", ar1, ar2)
    values, _, _, real = merged([_as_set(x, assume_unique) for x in arrays])
    same = (values[1:] == values[:-1]) & real[1:] & real[:-1]
    none = jnp.zeros(min(1, len(values)), bool)
    after, before = jnp.concatenate([same, none]), jnp.concatenate([none, same])
    alone = real & jnp.logical_not(after | before)
    return _selected(values, alone, size, fill_value)[0]


def setdiff1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """Return the values of the first array that are not in the second.

    Args:
      ar1, ar2: arrays, whose elements are taken in a row.
      assume_unique: whether neither has a value twice; then they keep their order.
      size: how many to return; by default all, for which the arrays have to be known.
      fill_value: what stands behind them; 0 by default.

    Reference: ``jax.numpy.setdiff1d``.
    """
    x, y = as_arraylike("setdiff1d", ar1).reshape(-1), as_arraylike("setdiff1d", ar2)
    values, _, real = _as_set(x, assume_unique)
    wanted = real & jnp.logical_not(jnp.isin(values, y))
    fill = 0 if fill_value is None else _scalar(fill_value)
    return _selected(values, wanted, size, fill)[0]


class _UniqueAllResult(NamedTuple):
    """Values, where they stand first, which each element is, and how often."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class _UniqueCountsResult(NamedTuple):
    """Values, and how often each occurs."""

    values: Array
    counts: Array


class _UniqueInverseResult(NamedTuple):
    """Values, and which of them each element is."""

    values: Array
    inverse_indices: Array


def unique_all(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> _UniqueAllResult:
    """Return each value once, with everything that `unique` knows of it.

    Reference: ``jax.numpy.unique_all``.
    """
    how: Any = {"equal_nan": False, "size": size, "fill_value": fill_value}
    return _UniqueAllResult(*unique(x, True, True, True, **how))


def unique_counts(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> _UniqueCountsResult:
    """Return each value once, and how often it occurs.

    Reference: ``jax.numpy.unique_counts``.
    """
    how: Any = {"equal_nan": False, "size": size, "fill_value": fill_value}
    return _UniqueCountsResult(*unique(x, return_counts=True, **how))


def unique_inverse(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> _UniqueInverseResult:
    """Return each value once, and which of them each element is.

    Reference: ``jax.numpy.unique_inverse``.
    """
    how: Any = {"equal_nan": False, "size": size, "fill_value": fill_value}
    return _UniqueInverseResult(*unique(x, return_inverse=True, **how))


def unique_values(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Array:
    """Return each value once.

    Reference: ``jax.numpy.unique_values``.
    """
    return unique(x, equal_nan=False, size=size, fill_value=fill_value)


# Histograms: how many numbers fall into each of some ranges.


def histogram_bin_edges(
    a: ArrayLike, bins: ArrayLike = 10, range: Any = None, weights: Any = None
) -> Array:
    """Return the edges of ranges for a histogram.

    Args:
      a: numbers.
      bins: how many ranges; or the edges, which are returned.
      range: the first and the last edge; by default the extremes of `a`.
      weights: accepted, without effect.

    Raises:
      NotImplementedError: for the name of a rule.

    Reference: ``jax.numpy.histogram_bin_edges``.
    """
    if isinstance(bins, str):
        raise NotImplementedError("string values for `bins` not implemented.")
    [z] = promote_dtypes_inexact(as_arraylike("histogram_bin_edges", a))
    if np.ndim(bins) == 1:
        return as_arraylike("histogram_bin_edges", bins).astype(z.dtype)
    count = operator_index(bins, "the argument bins of a histogram")
    ends = (z.min(), z.max()) if range is None else range
    if len(ends) != 2:
        raise ValueError(
            f"`range` must be either None or a sequence of scalars, got {range}"
        )
    first, last = (jnp.asarray(end, z.dtype) for end in ends)
    # If all numbers are equal, the range has length 1 and they are in its middle.
    margin = jnp.where(first == last, 0.5, 0.0)
    first, last = first - margin, last + margin
    return jnp.linspace(first, last, count + 1, dtype=z.dtype)


def histogram(
    a: ArrayLike,
    bins: ArrayLike = 10,
    range: Any = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, Array]:
    """Count how many numbers fall into each range; the last range has both its ends.

    Args:
      a: numbers.
      bins: how many ranges of one length; or their edges, in ascending order.
      range: the first and the last edge; by default the extremes of `a`.
      weights: how much each number counts; 1 by default.
      density: whether to divide by the sum and by the lengths of the ranges.

    Returns:
      The counts, as floats, and the edges.

    Raises:
      ValueError: if the weights have another shape.

    Reference: ``jax.numpy.histogram``.
    """
    [z] = promote_dtypes_inexact(as_arraylike("histogram", a))
    weights = jnp.ones(z.shape, z.dtype) if weights is None else weights
    z, weights = promote_dtypes_inexact(z, _weights(weights, z.shape))
    ranges = None if range is None else [range]
    column = z.reshape(-1, 1)
    counts, edges = histogramdd(column, [bins], ranges, weights, density)
    return counts, edges[0]


def histogram2d(
    x: ArrayLike,
    y: ArrayLike,
    bins: Any = 10,
    range: Any = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, Array, Array]:
    """Count how many points of a plane fall into each rectangle.

    Args:
      x, y: coordinates of the points, of shape ``[n]``.
      bins: how many ranges along both axes, or the edges along both; or a pair.
      range: a pair of pairs: first and last edges.
      weights: how much each point counts, of shape ``[n]``.
      density: whether to divide by the sum and by the areas.

    Returns:
      The counts, and the edges along both axes.

    Reference: ``jax.numpy.histogram2d``.
    """
    pair = np.ndim(bins) > 0 and len(bins) == 2
    points = jnp.stack([as_arraylike("histogram2d", z) for z in (x, y)], 1)
    how = list(bins) if pair else [bins, bins]
    counts, (first, second) = histogramdd(points, how, range, weights, density)
    return counts, first, second


def histogramdd(
    sample: ArrayLike,
    bins: Any = 10,
    range: Any = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, list[Array]]:
    """Count how many points fall into each box.

    Args:
      sample: points, of shape ``[n, d]``.
      bins: how many ranges along each axis; or a list of such numbers or edges.
      range: for each axis a pair of the first and the last edge, or None.
      weights: how much each point counts, of shape ``[n]``.
      density: whether to divide by the sum and by the volumes.

    Returns:
      The counts, with an axis for each of `d`, and the list of edges.

    Raises:
      ValueError: if arguments do not fit to the number of axes.

    Reference: ``jax.numpy.histogramdd``.
    """
    [z] = promote_dtypes_inexact(as_arraylike("histogramdd", sample))
    check_rank("histogramdd", 2, z)
    alone = not isinstance(bins, Sequence) and getattr(bins, "ndim", 0) == 0
    bins = [bins] * z.shape[1] if alone else list(bins)
    ranges = [None] * z.shape[1] if range is None else list(range)
    for name, given in (("bins", bins), ("range", ranges)):
        if len(given) != z.shape[1]:
            raise ValueError(
                f"histogramdd: {name} has {len(given)} entries for {z.shape[1]} axes "
                f"of a sample of shape {z.shape}."
            )
    edges = [histogram_bin_edges(*row) for row in zip(z.T, bins, ranges)]
    counts = _counted(z, edges, _weights(weights, (len(z),)))
    if density:
        counts = counts / counts.sum()
        for axis, edge in enumerate(edges):
            sizes = [1] * len(edges)
            sizes[axis] = -1
            counts = counts / jnp.diff(edge).reshape(sizes)
    return counts, edges


def _weights(weights, shape):
    if weights is None or np.shape(weights) == shape:
        return None if weights is None else jnp.asarray(weights).reshape(-1)
    raise ValueError(
        f"weights should have the same shape as what is counted, {shape}, got "
        f"{np.shape(weights)}."
    )


def _counted(x, edges, weights):
    """Return how much falls into each box; the place of a box is one number."""
    sizes = [len(edge) - 1 for edge in edges]
    inside, place = jnp.ones(len(x), bool), jnp.zeros(len(x), int)
    for column, edge, size in zip(x.T, edges, sizes):
        range_ = jnp.searchsorted(edge, column, side="right") - 1
        range_ = jnp.where(column == edge[-1], size - 1, range_)
        inside = inside & (range_ >= 0) & (range_ < size) & (column == column)
        place = place * size + range_
    ones = jnp.ones(len(x), int) if weights is None else weights
    outside = math.prod(sizes)
    counts = jnp.zeros(outside, ones.dtype)
    place = jnp.where(inside, place, outside)
    return counts.at[place].add(ones, mode="drop").reshape(sizes)
