"""Values between elements and points of grids, and the nearest code of a table.

References: ``jax.scipy.ndimage.map_coordinates``,
``jax.scipy.interpolate.RegularGridInterpolator``, ``jax.scipy.cluster.vq.vq``.
"""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

import functools
import itertools
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.core import Array
from minijax.extend.arguments import check_arraylike, operator_index
from minijax.extend.promotion import promote_dtypes_inexact
from minijax.tree_util import register_pytree_node_class
from minijax.typing import ArrayLike

# Values of arrays between their elements.


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
    order = operator_index(order, "order of map_coordinates")
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


# Values between the points of a grid.


@register_pytree_node_class
class RegularGridInterpolator:
    """A function of places, linear or constant between the points of a grid.

    Args:
      points: for each axis of the grid its coordinates, ascending, of shape ``[n]``.
      values: at the points, of shape ``[n, ..., *rest]``.
      method: ``"linear"``, or ``"nearest"``.
      bounds_error: False. A compiled program raises no errors that depend on values.
      fill_value: what stands beyond the grid; None for the nearest cell's function.

    Raises:
      ValueError: for another method, more axes of points than of values, or a complex
        `fill_value` of real values.
      NotImplementedError: for `bounds_error`.
      TypeError: if points or values are no arrays.

    Reference: ``jax.scipy.interpolate.RegularGridInterpolator``.
    """

    def __init__(
        self,
        points: Sequence[ArrayLike],
        values: ArrayLike,
        method: str = "linear",
        bounds_error: bool = False,
        fill_value: ArrayLike | None = np.nan,
    ):
        self.method, self.bounds_error = _known(method), bounds_error
        if bounds_error:
            raise NotImplementedError(
                "bounds_error=True would depend on values that a compiled program does "
                "not know when it is made: fill_value says what stands beyond the grid."
            )
        check_arraylike("RegularGridInterpolator", values, *points)
        if len(points) > np.ndim(values):
            raise ValueError(
                f"there are {len(points)} point arrays, but values has "
                f"{np.ndim(values)} dimensions"
            )
        self.grid = tuple(jnp.asarray(one) for one in points)
        [self.values] = promote_dtypes_inexact(jnp.asarray(values))
        self.fill_value = _filling(fill_value, self.values)

    def tree_flatten(self) -> tuple:
        """Return the arrays, and the two settings."""
        arrays = self.grid, self.values, self.fill_value
        return arrays, (self.method, self.bounds_error)

    @classmethod
    def tree_unflatten(cls, aux_data: Any, children: Any) -> "RegularGridInterpolator":
        """Return an interpolator made of its arrays."""
        self = cls.__new__(cls)
        self.grid, self.values, self.fill_value = children
        self.method, self.bounds_error = aux_data
        return self

    def __call__(self, xi: Any, method: str | None = None) -> Array:
        """Return the values at places.

        Args:
          xi: places, of shape ``[..., d]`` for d axes of the grid; or a tuple of d
            arrays of one coordinate each, which broadcast.
          method: as in the class, whose own it is by default.

        Returns:
          An array of shape ``[..., *rest]``.
        """
        how = _BETWEEN[_known(self.method if method is None else method)]
        places = _as_places(xi, len(self.grid))
        columns = places.reshape(-1, len(self.grid)).T
        found = how(self.values, [_cell(g, x) for g, x in zip(self.grid, columns)])
        if self.fill_value is not None:
            beyond = [(x < g[0]) | (x > g[-1]) for g, x in zip(self.grid, columns)]
            outside = jnp.stack(beyond).any(0).reshape(-1, *[1] * (found.ndim - 1))
            found = jnp.where(outside, self.fill_value, found)
        rest = self.values.shape[len(self.grid) :]
        return found.reshape(*places.shape[:-1], *rest)


def _known(method):
    if method not in _BETWEEN:
        raise ValueError(f"method {method!r} is not defined: {[*_BETWEEN]} are.")
    return method


def _filling(value, values):
    if value is None:
        return None
    check_arraylike("RegularGridInterpolator", value)
    if jnp.iscomplexobj(value) and not jnp.iscomplexobj(values):
        raise ValueError(
            "fill_value must be either 'None' or of a type compatible with values"
        )
    return jnp.asarray(value)


def _as_places(xi, count):
    """Return places as one array, whose last axis is that of coordinates."""
    if isinstance(xi, tuple) and len(xi) == 1:
        [xi] = xi
    if isinstance(xi, tuple):
        places = jnp.stack(jnp.broadcast_arrays(*xi), -1).astype(float)
    else:
        check_arraylike("RegularGridInterpolator", xi)
        places = jnp.asarray(xi)
        places = places.reshape(-1, count) if places.ndim == 1 else places
    if places.shape[-1] != count:
        raise ValueError(
            f"the requested sample points xi have dimension {places.shape[-1]}, but "
            f"this RegularGridInterpolator has dimension {count}"
        )
    return places


def _cell(line, x):
    """Return the numbers of cells along an axis, and how far in them places lie."""
    below = jnp.searchsorted(line, x) - 1
    below = jnp.clip(below, 0, line.size - 2)
    return below, (x - line[below]) / (line[below + 1] - line[below])


def _linear(values, cells):
    """Return means of the corners of cells, weighted by how near they are."""
    rest, total = (None,) * (values.ndim - len(cells)), 0
    ends = [((below, 1 - share), (below + 1, share)) for below, share in cells]
    for corner in itertools.product(*ends):
        indices, shares = zip(*corner)
        total = total + values[indices] * math.prod(shares)[:, *rest]
    return total


def _nearest(values, cells):
    return values[tuple(jnp.where(s <= 0.5, below, below + 1) for below, s in cells)]


_BETWEEN: dict = {"linear": _linear, "nearest": _nearest}


# The nearest code of each observation.


def vq(
    obs: ArrayLike, code_book: ArrayLike, check_finite: bool = True
) -> tuple[Array, Array]:
    """Return for each observation the number of the nearest code, and its distance.

    Args:
      obs: observations, of shape ``[m, n]``, or numbers, ``[m]``.
      code_book: codes, of shape ``[k, n]`` or ``[k]``.
      check_finite: not used.

    Raises:
      ValueError: if their shapes do not fit.

    Reference: ``jax.scipy.cluster.vq.vq``.
    """
    x, codes = promote_dtypes_inexact(jnp.asarray(obs), jnp.asarray(code_book))
    if x.ndim != codes.ndim:
        raise ValueError("Observation and code_book should have the same rank")
    if x.ndim not in (1, 2):
        raise ValueError("ndim different than 1 or 2 are not supported")
    if x.ndim == 1:
        x, codes = x[:, None], codes[:, None]
    gaps = jnp.linalg.norm(x[:, None] - codes[None], axis=-1)
    return jnp.argmin(gaps, -1), jnp.min(gaps, -1)
