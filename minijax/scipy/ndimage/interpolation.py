"""Values of arrays between their elements.

Reference: ``jax.scipy.ndimage.map_coordinates``.
"""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

import functools
import itertools
import operator
from collections.abc import Sequence

from minijax import lax
from minijax import numpy as jnp
from minijax.arrays.checks import as_integer
from minijax.core import Array
from minijax.typing import ArrayLike


def _mirrored(index, size):
    period = max(2 * (size - 1), 1)
    index = jnp.abs((index + (size - 1)) % period - (size - 1))
    return index if size > 1 else jnp.zeros_like(index)


def _reflected(index, size):
    return (_mirrored(2 * index + 1, 2 * size + 1) - 1) // 2


# For each mode, which element stands for one beyond the edges.
_FIXED = {
    "constant": lambda index, size: index,
    "nearest": lambda index, size: jnp.clip(index, 0, size - 1),
    "wrap": lambda index, size: index % size,
    "mirror": _mirrored,
    "reflect": _reflected,
}


def _whole(x):
    """Return the nearest whole numbers, halves away from zero."""
    return x if x.dtype.kind in "biu" else lax.round(x)


def _neighbours(coordinate, order):
    """Return pairs of indices and weights."""
    if order == 0:
        return [(_whole(coordinate).astype("int32"), 1)]
    below = jnp.floor(coordinate)
    share, index = coordinate - below, below.astype("int32")
    return [(index, 1 - share), (index + 1, share)]


def map_coordinates(
    input: ArrayLike,
    coordinates: Sequence[ArrayLike],
    order: int,
    mode: str = "constant",
    cval: ArrayLike = 0.0,
) -> Array:
    """Return values of an array at places between its elements.

    Args:
      input: an array.
      coordinates: for each of its axes an array of places, all of one shape.
      order: 0 for the nearest element, 1 for the mean of neighbours.
      mode: ``"constant"``, ``"nearest"``, ``"wrap"``, ``"mirror"`` or ``"reflect"``.
      cval: what stands beyond the edges for ``"constant"``.

    Raises:
      NotImplementedError: for another order or mode.
      ValueError: unless there are coordinates for each axis.

    Reference: ``jax.scipy.ndimage.map_coordinates``.
    """
    x, places = jnp.asarray(input), [jnp.asarray(c) for c in coordinates]
    if len(places) != x.ndim:
        raise ValueError(
            "coordinates must be a sequence of length input.ndim, but "
            f"{len(places)} != {x.ndim}"
        )
    if mode not in _FIXED:
        raise NotImplementedError(
            f"map_coordinates does not yet support mode {mode}. Currently supported "
            f"modes are {[*_FIXED]}."
        )
    order = as_integer(order, "order of map_coordinates")
    if order not in (0, 1):
        raise NotImplementedError("map_coordinates currently requires order<=1")
    fill = jnp.asarray(cval, x.dtype)
    around = [_neighbours(place, order) for place in places]
    total = []
    for corner in itertools.product(*around):
        indices = [_FIXED[mode](i, n) for (i, _), n in zip(corner, x.shape)]
        inside = [(i >= 0) & (i < n) for i, n in zip(indices, x.shape)]
        value = x[tuple(jnp.clip(i, 0, n - 1) for i, n in zip(indices, x.shape))]
        if mode == "constant":
            value = jnp.where(functools.reduce(operator.and_, inside), value, fill)
        weights = [weight for _, weight in corner]
        total.append(functools.reduce(operator.mul, weights) * value)
    result = functools.reduce(operator.add, total)
    if x.dtype.kind in "iu":
        result = _whole(result)
    return result.astype(x.dtype)
