"""Reductions over segments: elements of an array that share a number.

Reference: ``jax.ops.segment_sum``.
"""

# Made from chapters/28_indexing_rest.md by `make chapter`;
# edit the chapter, not this file.

from typing import Any

import numpy as np

from minijax import lax
from minijax.arrays.checks import as_integer, refuse_sharding
from minijax.arrays.dtypes import kind_of
from minijax.core import Array
from minijax.indexing.dimension_numbers import Promises
from minijax.indexing.scatters import scatter_max, scatter_min, scatter_mul
from minijax.indexing.updates import scatter_index
from minijax.numpy.creation import astype, full
from minijax.numpy.reductions import _sum, prod
from minijax.numpy.reductions import max as max_along
from minijax.numpy.reductions import min as min_along
from minijax.numpy.shapes import arraylike
from minijax.typing import ArrayLike


def least(dtype):
    """Return the number that no number of a dtype is less than."""
    kind = kind_of(dtype)
    if kind in "iu":
        return np.iinfo(dtype).min
    return False if kind == "b" else -np.inf


def greatest(dtype):
    """Return the number that no number of a dtype exceeds."""
    kind = kind_of(dtype)
    if kind in "iu":
        return np.iinfo(dtype).max
    return True if kind == "b" else np.inf


def count_segments(segment_ids, num_segments):
    """Return how many segments there are: one more than the largest number."""
    if num_segments is None:
        count = segment_ids.max() + 1
        num_segments = as_integer(count, "num_segments", COUNT_OF_SEGMENTS)
    if as_integer(num_segments, "num_segments") < 0:
        raise ValueError("num_segments must be non-negative.")
    return num_segments


COUNT_OF_SEGMENTS = (
    "The number of segments decides the shape of the result: pass `num_segments`."
)


def segment_reduction(name, scatter, start, reduce):
    """Return the reduction over segments by a scatter.

    Args:
      name: of the function.
      scatter: a function like `lax.scatter_add`.
      start: a function from a dtype to the number that changes nothing.
      reduce: the reduction of a whole axis, for buckets.
    """

    def function(
        data: ArrayLike,
        segment_ids: ArrayLike,
        num_segments: int | None = None,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        bucket_size: int | None = None,
        mode: Any = None,
        out_sharding: Any = None,
    ) -> Array:
        refuse_sharding(name, out_sharding)
        data, ids = arraylike(name, data), arraylike(name, segment_ids)
        shape = (count_segments(ids, num_segments), *data.shape[1:])
        promises = Promises(indices_are_sorted, unique_indices, mode)
        first = start(data.dtype)
        if bucket_size is None:
            out = full(shape, first, data.dtype)
            return scatter_index(out, ids, data, scatter, promises, wrap=False)
        buckets = -(-ids.size // bucket_size)
        out = full((buckets, *shape), first, data.dtype)
        which = lax.div(lax.iota(np.int32, ids.shape[0]), np.int32(bucket_size))
        index = which, ids[None, :]
        out = scatter_index(out, index, data, scatter, promises, wrap=False)
        return astype(reduce(out, axis=0), data.dtype)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = SEGMENT_DOC.format(name=name)
    return function


SEGMENT_DOC = """Reduce the segments of an array along its first axis: {name}.

    Args:
      data: an array.
      segment_ids: integers: the segment of each element; they need no order.
      num_segments: how many segments there are, if `segment_ids` is not known.
      indices_are_sorted, unique_indices: what the caller promises.
      bucket_size: how many elements are reduced together before the buckets are.
      mode: what becomes of numbers that no segment has; by default they are left out.

    Reference: ``jax.ops.{name}``.
    """


segment_sum = segment_reduction("segment_sum", lax.scatter_add, lambda _: 0, _sum)
segment_prod = segment_reduction("segment_prod", scatter_mul, lambda _: 1, prod)
segment_min = segment_reduction("segment_min", scatter_min, greatest, min_along)
segment_max = segment_reduction("segment_max", scatter_max, least, max_along)
