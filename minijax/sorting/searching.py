"""Places in arrays that are in order.

Reference: ``jax.numpy.searchsorted``.
"""

# Made from chapters/29_sorting_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax import lax
from minijax.core import Array
from minijax.lax.promotion import promote_dtypes
from minijax.numpy.shapes import arraylike, ravel, reshape
from minijax.numpy.ufuncs import where as choose
from minijax.sorting.sorted_arrays import rearranged
from minijax.typing import ArrayLike

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
    a, v = arraylike("searchsorted", a), arraylike("searchsorted", v)
    if a.ndim != 1:
        raise ValueError("a should be 1-dimensional")
    if side not in ("left", "right"):
        raise ValueError(f"{side!r} is an invalid value for keyword 'side'.")
    if method not in SEARCHES:
        raise ValueError(f"{method!r} is an invalid value for keyword 'method'.")
    if sorter is not None:
        a = rearranged(arraylike("searchsorted", sorter), a)
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
    x, edges = arraylike("digitize", x), arraylike("digitize", bins)
    if edges.ndim != 1:
        raise ValueError(f"digitize: bins must be a 1-dimensional array; got {bins=}")
    if not edges.size:
        return lax.full(x.shape, 0, "int32")
    side, method = "left" if right else "right", method or "scan"
    rising = searchsorted(edges, x, side, method=method)
    falling = searchsorted(lax.rev(edges, [0]), x, side, method=method)
    return choose(edges[-1] >= edges[0], rising, edges.size - falling)
