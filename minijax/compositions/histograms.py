"""Histograms: how many numbers fall into each of some ranges.

Reference: ``jax.numpy.histogram``.
"""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

import math
from typing import Any

import numpy as np

from minijax import numpy as jnp
from minijax.arrays.checks import as_integer, check_rank
from minijax.core import Array
from minijax.lax.promotion import promote_dtypes_inexact
from minijax.numpy.shapes import arraylike
from minijax.typing import ArrayLike


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
    [z] = promote_dtypes_inexact(arraylike("histogram_bin_edges", a))
    if np.ndim(bins) == 1:
        return arraylike("histogram_bin_edges", bins).astype(z.dtype)
    count = as_integer(bins, "the argument bins of a histogram")
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
    [z] = promote_dtypes_inexact(arraylike("histogram", a))
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
    points = jnp.stack([arraylike("histogram2d", z) for z in (x, y)], 1)
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
    [z] = promote_dtypes_inexact(arraylike("histogramdd", sample))
    check_rank("histogramdd", 2, z)
    alone = not isinstance(bins, (list, tuple)) and getattr(bins, "ndim", 0) == 0
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
