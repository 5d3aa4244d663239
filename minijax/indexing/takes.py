"""Elements of arrays at places: to take them, and to put others there.

Reference: ``jax.numpy.take``, ``jax.numpy.take_along_axis``, ``jax.numpy.put``.
"""

# Made from chapters/28_indexing_rest.md by `make chapter`;
# edit the chapter, not this file.

from typing import Any

import numpy as np

from minijax import lax
from minijax.arrays.checks import canonicalize_axis
from minijax.arrays.dtypes import kind_of
from minijax.core import Array
from minijax.indexing.compiler import wrapped
from minijax.indexing.dimension_numbers import GatherDimensionNumbers, GatherScatterMode
from minijax.numpy.arithmetic import mod
from minijax.numpy.joining import tile
from minijax.numpy.selection import clip
from minijax.numpy.shapes import arraylike, broadcast_to, ravel, reshape
from minijax.numpy.ufuncs import where
from minijax.operators.operands import constant, kind
from minijax.typing import ArrayLike


def indices_inside(indices, size, mode):
    """Return the indices of a `take`, and the mode of its gather."""
    if mode is None or mode == "fill":
        fitted = where(indices < 0, indices + size, indices)
        return fitted, GatherScatterMode.FILL_OR_DROP
    if mode == "wrap":
        promise = GatherScatterMode.PROMISE_IN_BOUNDS
        if kind(indices) in "iu" and np.iinfo(indices.dtype).max < size:
            indices = lax.convert_element_type(indices, np.int32)
        return mod(indices, constant(indices, size)), promise
    if mode == "clip":
        return indices, GatherScatterMode.CLIP
    if mode == "raise":
        raise NotImplementedError("The 'raise' mode to jnp.take is not supported.")
    raise ValueError(f"Invalid mode '{mode}' for np.take")


def take(
    a: ArrayLike,
    indices: ArrayLike,
    axis: int | None = None,
    out: None = None,
    mode: str | None = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value: Any = None,
) -> Array:
    """Take elements along an axis, or of all elements in a row.

    Args:
      a: an array.
      indices: integers, an array of any shape, which takes the place of the axis.
      axis: along which; None for all elements in a row.
      out: must be None.
      mode: what becomes of indices out of bounds: ``"fill"``, ``"clip"``, ``"wrap"``.
      unique_indices, indices_are_sorted: what the caller promises.
      fill_value: what is found outside; NaN or an extreme integer by default.

    Raises:
      IndexError: if the axis has no elements.

    Reference: ``jax.numpy.take``.
    """
    if out is not None:
        raise NotImplementedError("The 'out' argument to jnp.take is not supported.")
    x, places = arraylike("take", a), arraylike("take", indices)
    x = ravel(x) if axis is None else x
    axis = canonicalize_axis(0 if axis is None else axis, x.ndim)
    places, gather_mode = indices_inside(places, x.shape[axis], mode)
    before, after = x.shape[:axis], x.shape[axis + 1 :]
    if not x.shape[axis]:
        if places.size:
            raise IndexError("Cannot do a non-empty jnp.take() from an empty axis.")
        return x
    if not places.size:
        return lax.full_like(x, 0, shape=(*before, *places.shape, *after))
    behind = range(axis + places.ndim, x.ndim + places.ndim - 1)
    return lax.gather(
        x,
        lax.expand_dims(places, (places.ndim,)),
        GatherDimensionNumbers((*range(axis), *behind), (axis,), (axis,)),
        (*before, 1, *after),
        mode=gather_mode,
        unique_indices=unique_indices,
        indices_are_sorted=indices_are_sorted,
        fill_value=fill_value,
    )


class Pairing:
    """Which axes of an array and of indices are walked together, along one axis.

    Args:
      shape: of the array.
      index_shape: of the indices, as many axes.
      axis: along which elements are taken.

    Attributes:
      numbers: the `GatherDimensionNumbers`.
      sizes: of a window.
      squeezed: axes of the array, of size 1, that it must not have.
      counting: axes of the indices that count the windows.
    """

    def __init__(self, shape, index_shape, axis):
        self.sizes, self.squeezed, self.counting, self.inside = [], [], [], []
        self.shared, self.index_shared, self.dropped = [], [], []
        for k, (size, count) in enumerate(zip(shape, index_shape)):
            if k == axis:
                self.chosen()
            elif count == 1:
                self.inside.append(k)
                self.sizes.append(size)
            elif size == 1:
                self.squeezed.append(k)
            else:
                self.walked(size)
            if k == axis or count != 1:
                self.counting.append(k)
        lists = self.inside, self.dropped, self.dropped, self.shared, self.index_shared
        self.numbers = GatherDimensionNumbers(*map(tuple, lists))

    def chosen(self):
        """Take one element along the axis."""
        self.dropped.append(len(self.sizes))
        self.sizes.append(1)

    def walked(self, size):
        """Walk an axis of both together."""
        self.shared.append(len(self.sizes))
        self.index_shared.append(len(self.counting))
        self.sizes.append(min(size, 1))


def take_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    axis: int | None = -1,
    mode: str | GatherScatterMode | None = None,
    fill_value: Any = None,
    *,
    wrap_negative_indices: bool | None = None,
) -> Array:
    """Take, in each row along an axis, the elements that a row of indices names.

    Args:
      arr: an array.
      indices: integers, as many axes; axes of size 1 stretch, on either side.
      axis: along which; None for all elements in a row.
      mode: what becomes of indices out of bounds; by default, they are filled.
      fill_value: what is found there.
      wrap_negative_indices: whether negative ones count from the end; by default they
        do, unless the mode promises that there are none.

    Reference: ``jax.numpy.take_along_axis``.
    """
    a, indices = (arraylike("take_along_axis", x) for x in (arr, indices))
    if kind_of(indices.dtype) not in "iu":
        raise TypeError(
            f"take_along_axis indices must be of integer type, got {indices.dtype}"
        )
    if axis is None:
        if indices.ndim != 1:
            raise ValueError(
                "take_along_axis indices must be 1D if axis=None, got shape "
                f"{indices.shape}"
            )
        a, axis = ravel(a), 0
    if a.ndim != indices.ndim:
        raise ValueError(
            "indices and arr must have the same number of dimensions; "
            f"{indices.ndim} vs. {a.ndim}"
        )
    axis = canonicalize_axis(axis, a.ndim)
    one = (*a.shape[:axis], 1, *a.shape[axis + 1 :])
    shape = lax.broadcast_shapes(indices.shape, one)
    if not a.shape[axis]:
        return lax.full(shape, 0, a.dtype)
    if wrap_negative_indices is None:
        wrap_negative_indices = mode != "promise_in_bounds"
    if wrap_negative_indices:
        dtype = np.int32 if a.shape[axis] < 2**31 else np.int64
        indices = lax.convert_element_type(indices, dtype)
        indices = wrapped(indices, a.shape[axis])
    mode = "fill" if mode is None else mode
    pairing = Pairing(a.shape, indices.shape, axis)
    return _along_axis(a, indices, pairing, shape, mode, fill_value)


def _along_axis(a, indices, pairing, shape, mode, fill_value):
    counted = [shape[axis] for axis in pairing.counting]
    indices = lax.reshape(indices, (*counted, 1))
    a = lax.squeeze(a, pairing.squeezed)
    how = {"mode": mode, "fill_value": fill_value}
    return lax.gather(a, indices, pairing.numbers, pairing.sizes, **how)


def put_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    values: ArrayLike,
    axis: int | None,
    inplace: bool = True,
    *,
    mode: str | None = None,
) -> Array:
    """Put, in each row along an axis, values where a row of indices says.

    Args:
      arr: an array.
      indices: integers, as many axes.
      values: an array that can be broadcast to the shape of the indices.
      axis: along which; None for all elements in a row.
      inplace: must be False: the array that is returned is another one.
      mode: what becomes of indices out of bounds.

    Reference: ``jax.numpy.put_along_axis``.
    """
    _refuse_in_place("put_along_axis", inplace)
    x, indices = (arraylike("put_along_axis", each) for each in (arr, indices))
    row = ravel(x) if axis is None else x
    axis = 0 if axis is None else canonicalize_axis(axis, row.ndim)
    if row.ndim != indices.ndim:
        raise ValueError(
            "put_along_axis arguments 'arr' and 'indices' must have same ndim. Got "
            f"arr.ndim={row.ndim} and indices.ndim={indices.ndim}."
        )
    values = _stretched_to("put_along_axis", values, indices.shape)
    places = [_steps(row.shape, k) for k in range(row.ndim)]
    places[axis] = indices
    return reshape(row.at[tuple(places)].set(values, mode=mode), x.shape)


def _stretched_to(name, values, shape):
    values = arraylike(name, values)
    if values.ndim > len(shape) or any(
        a not in (1, b) for a, b in zip(values.shape[::-1], shape[::-1])
    ):
        raise ValueError(
            f"{name} argument 'values' must be broadcastable to 'indices'. Got "
            f"values.shape={values.shape} and indices.shape={shape}."
        )
    return broadcast_to(values, shape)


def _steps(shape, axis):
    """Return the places along an axis, an array with size 1 along the others."""
    ones = [1] * len(shape)
    ones[axis] = shape[axis]
    return lax.reshape(lax.iota(np.int32, shape[axis]), ones)


def _refuse_in_place(name, inplace):
    if inplace:
        raise ValueError(
            f"jax.numpy.{name} cannot modify arrays in-place, because JAX arrays are "
            "immutable. Pass inplace=False to instead return an updated array."
        )


def _as_long_as(values, count):
    """Return a row of values, repeated or cut off to have so many."""
    repeats = -(-count // values.size)
    return (tile(values, repeats) if repeats > 1 else values)[:count]


def put(
    a: ArrayLike,
    ind: ArrayLike,
    v: ArrayLike,
    mode: str | None = None,
    *,
    inplace: bool = True,
) -> Array:
    """Put values into an array at places that are counted along all elements in a row.

    Args:
      a: an array.
      ind: integers.
      v: the values; they are repeated if there are fewer.
      mode: what becomes of places out of bounds: ``"clip"`` takes negative ones for
        the first element, ``"wrap"`` counts on from the other end. By default negative
        ones count from the end once, and what is out of bounds then is clipped.
      inplace: must be False: the array that is returned is another one.

    Reference: ``jax.numpy.put``.
    """
    _refuse_in_place("put", inplace)
    x, places, values = (ravel(arraylike("put", each)) for each in (a, ind, v))
    shape = np.shape(a)
    if not x.size or not places.size or not values.size:
        return reshape(x, shape)
    if mode not in (None, "clip", "wrap"):
        if mode == "raise":
            raise NotImplementedError("The 'raise' mode to jnp.put is not supported.")
        raise ValueError(f"mode should be one of 'wrap' or 'clip'; got {mode=}")
    if kind(places) not in "biu":
        raise TypeError(f"put indices must be of integer type, got {places.dtype}")
    if kind(places) == "b" or np.iinfo(places.dtype).max < x.size:
        places = lax.convert_element_type(places, np.int32)
    if mode is None:
        places = wrapped(places, x.size)
    if mode == "wrap":
        places = mod(places, constant(places, x.size))
    else:
        places = clip(places, 0, x.size - 1)
    values = _as_long_as(values, places.size)
    return reshape(x.at[places].set(values, mode="promise_in_bounds"), shape)


def place(
    arr: ArrayLike, mask: ArrayLike, vals: ArrayLike, *, inplace: bool = True
) -> Array:
    """Put values, one after the other, where a mask holds.

    Args:
      arr: an array.
      mask: as many elements.
      vals: the values; they are repeated if there are fewer.
      inplace: must be False: the array that is returned is another one.

    Reference: ``jax.numpy.place``.
    """
    x, mask, vals = (ravel(arraylike("place", each)) for each in (arr, mask, vals))
    _refuse_in_place("place", inplace)
    if x.size != mask.size:
        raise ValueError("place: arr and mask must be the same size")
    if not vals.size:
        raise ValueError("Cannot place values from an empty array")
    if not x.size:
        return reshape(x, np.shape(arr))
    [places] = where(mask, size=mask.size, fill_value=mask.size)
    x = x.at[places].set(_as_long_as(vals, x.size), mode="drop")
    return reshape(x, np.shape(arr))
