"""Elements at places: take, put, nonzero, `x.at[...]`, reductions over segments.

Importing this module gives arrays and tracers the property ``at``.

References: ``jax.Array.at``, ``jax.numpy.take``, ``jax.numpy.take_along_axis``,
``jax.numpy.put``, ``jax.numpy.nonzero``, ``jax.numpy.compress``,
``jax.numpy.bincount``, ``jax.ops.segment_sum``.
"""

# Made from chapters/28_indexing_rest.md by `make chapter`;
# edit the chapter, not this file.

import math
from typing import Any

import numpy as np

from minijax import lax
from minijax.arrays.array import typeof
from minijax.arrays.config import check_dtypes
from minijax.arrays.dtypes import config, dtype_kind, warn_user
from minijax.arrays.numerics import canonicalize_axis, integer_limits, operator_index
from minijax.arrays.out_sharding import place_result, with_out_sharding
from minijax.core import Array, tracer_methods
from minijax.diagnostics.tracebacks import api_boundary
from minijax.errors import ConcretizationTypeError
from minijax.indexing.dimension_numbers import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    ScatterIndexInfo,
    scatter_with_combiner,
)
from minijax.indexing.dynamic_slices import (
    dynamic_slice_in_dim,
    dynamic_update_slice_in_dim,
    index_dtype,
    with_size_added,
)
from minijax.indexing.gather_scatter import index_array, scatter_add_p, scatter_p
from minijax.indexing.indexer import (
    cut_window,
    expand_bool_indices,
    holds_slices,
    index_to_gather,
    normalize_negative_indices,
    parse_index,
    without_slices,
)
from minijax.indexing.scatter_variants import (
    scatter_apply,
    scatter_max,
    scatter_max_p,
    scatter_min,
    scatter_min_p,
    scatter_mul,
    scatter_mul_p,
    scatter_sub_p,
)
from minijax.lax.arithmetic import astype as as_type
from minijax.lax.reductions import common_dtype_and_weak_type, promote_dtypes
from minijax.numpy.array_creation import asarray, astype, full, ones_like, zeros
from minijax.numpy.array_methods import divide, register_methods, where
from minijax.numpy.joining import stack, tile
from minijax.numpy.operands import (
    array_kind,
    concrete_or_none,
    is_nonzero,
    literal_like,
)
from minijax.numpy.operators import at
from minijax.numpy.ranges import arange
from minijax.numpy.reductions import _sum, cumsum, prod
from minijax.numpy.reductions import max as max_along
from minijax.numpy.reductions import min as min_along
from minijax.numpy.selection import choose
from minijax.numpy.shapes import (
    as_arraylike,
    atleast_1d,
    broadcast_to,
    expand_dims,
    moveaxis,
    ravel,
    reshape,
)
from minijax.numpy.ufuncs import clip, mod, power
from minijax.typing import ArrayLike

# Updates of the elements that an index names.


def scatter_indexed_update(array, index, values, enter, promises, wrap=True):
    """Return an array with values entered where an index names elements.

    Args:
      array: an array.
      index: an index, as for `index_array`.
      values: an array that can be broadcast to the shape of ``array[index]``.
      enter: a function like `lax.scatter`.
      promises: what the caller says of the places, and what becomes of those outside.
      wrap: whether negative places count from the end.
    """
    if holds_slices(index):
        plain, slices = without_slices(index, array.shape)
        args = plain, values, enter, promises, wrap
        act = lambda window: scatter_indexed_update(window, *args)  # noqa: E731
        return update_window(array, slices, act)
    aval, values = typeof(array), as_update(array, values)
    places = expand_bool_indices(parse_index(index, aval.shape), aval.shape)
    plan, truths = index_to_gather(places, aval.shape, wrap)
    if 0 in plan.result:
        return array
    array, values = promote_dtypes(array, values)
    indices = plan.indices()
    values = lax.squeeze(broadcast_to(values, tuple(plan.result)), plan.new_axes)
    values = lax.rev(values, plan.reversed_axes) if plan.reversed_axes else values
    array = lax.expand_dims(array, truths) if truths else array
    numbers, how = ScatterDimensionNumbers(*plan.numbers), promises._asdict()
    if plan.simple:
        how |= {"indices_are_sorted": True, "unique_indices": True}
    out = enter(array, indices, values, numbers, **how)
    out = lax.squeeze(out, truths) if truths else out
    return as_type(out, aval.dtype, aval.weak_type)


def update_window(array, slices, update):
    """Return an array in which a window is replaced by what `update` makes of it."""
    if not slices:
        return update(array)
    (axis, one), *others = slices
    window = update_window(cut_window(array, axis, one), others, update)
    if one.stride > 1:
        span = dynamic_slice_in_dim(array, one.start, one.span, axis)
        strided = *(slice(None),) * axis, slice(None, None, one.stride)
        promises = ScatterIndexInfo()
        enter = entering_by(scatter_p, None)
        window = scatter_indexed_update(span, strided, window, enter, promises)
    return dynamic_update_slice_in_dim(array, window, one.start, axis)


def as_update(array, values):
    """Return what enters an array; an integer takes the array's dtype if it fits."""
    dtype = typeof(array).dtype
    if isinstance(values, int) and dtype_kind(dtype) in "iu":
        least, greatest = integer_limits(dtype)
        if least <= values <= greatest:
            return asarray(values, dtype)
    values = values if isinstance(values, Array) else asarray(values)
    check_dtypes("scatter", (array, values))
    if (
        values.dtype
        != dtype
        != common_dtype_and_weak_type(values, np.empty((), dtype))[0]
    ):
        warn_user(
            "scatter inputs have incompatible types: cannot safely cast value from "
            f"dtype={values.dtype} to dtype={dtype} with jax_numpy_dtype_promotion="
            f"{config.jax_numpy_dtype_promotion}. In future JAX releases this will "
            "result in an error.",
            FutureWarning,
            stacklevel=3,
        )
    return values


def entering_by(primitive, combine):
    """Return a scatter as a function of an array, indices, updates and numbers."""

    def enter(array, indices, updates, numbers, **how):
        args = array, indices, updates, numbers, ScatterIndexInfo(**how)
        return scatter_with_combiner(primitive, combine, *args)

    return enter


def updating(enter, doc, finish=None):
    """Return a method of `IndexUpdates` that lets values enter by a scatter.

    With `finish` they enter an array of ones, and `finish` is done with the array
    itself and that one.
    """

    def method(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        promises = ScatterIndexInfo(indices_are_sorted, unique_indices, mode)
        array = ones_like(self.array) if finish else self.array
        args = values, enter, promises, wrap_negative_indices
        result = scatter_indexed_update(array, self.index, *args)
        result = finish(self.array, result) if finish else result
        return place_result("at", result, out_sharding)

    method.__doc__ = doc
    return api_boundary(method)


class IndexUpdates:
    """Behind ``x.at[index]``: what can be done with the elements that an index names.

    Each method returns a new array; the old one stays as it is. Where an index names
    an element twice, all but `get` and `set` act on it twice.

    The methods have arguments in common. `indices_are_sorted` and `unique_indices` are
    promises. `mode` says what becomes of places outside: ``"drop"`` or ``"fill"``,
    ``"clip"``, or ``"promise_in_bounds"``. `wrap_negative_indices` says whether
    negative ones count from the end.

    Args:
      array: an array.
      index: an index.

    Reference: ``jax.Array.at``.
    """

    __slots__ = ("array", "index")

    def __init__(self, array, index):
        self.array, self.index = array, index

    def __repr__(self):
        return f"_IndexUpdateRef({self.array!r}, {self.index!r})"

    @api_boundary
    def get(
        self,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        fill_value: Any = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """Return the elements; those outside are `fill_value` in the mode "fill"."""
        promises = ScatterIndexInfo(indices_are_sorted, unique_indices, mode)
        args = promises, fill_value, wrap_negative_indices
        result = index_array(self.array, self.index, *args)
        return place_result("get", result, out_sharding)

    @api_boundary
    def apply(
        self,
        func: Any,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """Return the array with a function of one number applied to the elements."""

        def enter(array, indices, updates, numbers, **how):
            shape = {"update_shape": updates.shape}
            return scatter_apply(array, indices, func, numbers, **shape, **how)

        promises = ScatterIndexInfo(indices_are_sorted, unique_indices, mode)
        zero = np.zeros((), typeof(self.array).dtype)
        args = zero, enter, promises, wrap_negative_indices
        return scatter_indexed_update(self.array, self.index, *args)

    _multiply = entering_by(scatter_mul_p, lax.mul)
    add = updating(entering_by(scatter_add_p, lax.add), "Add to the elements.")
    subtract = updating(
        entering_by(scatter_sub_p, lax.sub), "Subtract from the elements."
    )
    multiply = mul = updating(_multiply, "Multiply the elements.")
    divide = updating(_multiply, "Divide the elements.", divide)
    power = updating(_multiply, "Raise the elements to powers.", power)
    min = updating(entering_by(scatter_min_p, lax.min), "Keep the smaller of two.")
    max = updating(entering_by(scatter_max_p, lax.max), "Keep the larger of two.")
    set = updating(entering_by(scatter_p, None), "Replace the elements.")


class IndexUpdater:
    """Behind ``x.at``: it takes the index in brackets.

    Reference: ``jax.Array.at``.
    """

    __slots__ = ("array",)

    def __init__(self, array):
        self.array = array

    def __repr__(self):
        return f"_IndexUpdateHelper({self.array!r})"

    def __getitem__(self, index):
        return IndexUpdates(self.array, index)


tracer_methods.supersede("at", at, property(IndexUpdater))


# Elements of arrays at places: to take them, and to put others there.


def indices_inside(indices, size, mode):
    """Return the indices of a `take`, and the mode of its gather."""
    if mode is None or mode == "fill":
        return with_size_added(indices, size), GatherScatterMode.FILL_OR_DROP
    if mode == "wrap":
        promise = GatherScatterMode.PROMISE_IN_BOUNDS
        if array_kind(indices) in "iu" and integer_limits(indices.dtype)[1] < size:
            indices = lax.convert_element_type(indices, index_dtype(size))
        return mod(indices, literal_like(indices, size)), promise
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
    x, places = as_arraylike("take", a), as_arraylike("take", indices)
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
      batch_dims: axes of the indices that count the windows.
    """

    def __init__(self, shape, index_shape, axis):
        self.sizes, self.squeezed, self.batch_dims, self.offset_dims = [], [], [], []
        self.operand_batching_dims, self.start_indices_batching_dims = [], []
        self.collapsed_slice_dims = []
        for k, (size, count) in enumerate(zip(shape, index_shape)):
            if k == axis:
                self.chosen()
            elif count == 1:
                self.offset_dims.append(k)
                self.sizes.append(size)
            elif size == 1:
                self.squeezed.append(k)
            else:
                self.walked(size)
            if k == axis or count != 1:
                self.batch_dims.append(k)
        lists = (
            self.offset_dims,
            self.collapsed_slice_dims,
            self.collapsed_slice_dims,
            self.operand_batching_dims,
            self.start_indices_batching_dims,
        )
        self.numbers = GatherDimensionNumbers(*map(tuple, lists))

    def chosen(self):
        """Take one element along the axis."""
        self.collapsed_slice_dims.append(len(self.sizes))
        self.sizes.append(1)

    def walked(self, size):
        """Walk an axis of both together."""
        self.operand_batching_dims.append(len(self.sizes))
        self.start_indices_batching_dims.append(len(self.batch_dims))
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
    a, indices = (as_arraylike("take_along_axis", x) for x in (arr, indices))
    if dtype_kind(indices.dtype) not in "iu":
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
        dtype = index_dtype(a.shape[axis])
        if dtype.kind != "u" or array_kind(indices) == "u":
            indices = lax.convert_element_type(indices, dtype)
        indices = normalize_negative_indices(indices, a.shape[axis])
    mode = "fill" if mode is None else mode
    pairing = Pairing(a.shape, indices.shape, axis)
    return _along_axis(a, indices, pairing, shape, mode, fill_value)


def _along_axis(a, indices, pairing, shape, mode, fill_value):
    counted = [shape[axis] for axis in pairing.batch_dims]
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
    x, indices = (as_arraylike("put_along_axis", each) for each in (arr, indices))
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
    values = as_arraylike(name, values)
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
    x, places, values = (ravel(as_arraylike("put", each)) for each in (a, ind, v))
    shape = np.shape(a)
    if not x.size or not places.size or not values.size:
        return reshape(x, shape)
    if mode not in (None, "clip", "wrap"):
        if mode == "raise":
            raise NotImplementedError("The 'raise' mode to jnp.put is not supported.")
        raise ValueError(f"mode should be one of 'wrap' or 'clip'; got {mode=}")
    if array_kind(places) not in "biu":
        raise TypeError(f"put indices must be of integer type, got {places.dtype}")
    if array_kind(places) == "b" or integer_limits(places.dtype)[1] < x.size:
        places = lax.convert_element_type(places, np.int32)
    if mode is None:
        places = normalize_negative_indices(places, x.size)
    if mode == "wrap":
        places = mod(places, literal_like(places, x.size))
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
    x, mask, vals = (ravel(as_arraylike("place", each)) for each in (arr, mask, vals))
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


# Places where a condition holds, elements that stand there, and counts.

SIZE_OF_NONZERO = (
    "The size argument of jnp.nonzero must be statically specified to use jnp.nonzero "
    "within JAX transformations."
)


def nonzero(
    a: ArrayLike, *, size: int | None = None, fill_value: Any = None
) -> tuple[Array, ...]:
    """Return the places of the elements that are not zero, an array for each axis.

    Args:
      a: an array with an axis at least.
      size: how many places to return; by default all, which have to be known.
      fill_value: what stands behind them if there are fewer; 0 by default. A number, or
        one for each axis.

    Raises:
      ValueError: for an array without axes.
      ConcretizationTypeError: if neither the elements are known nor `size` is given.

    Reference: ``jax.numpy.nonzero``.
    """
    x = as_arraylike("nonzero", a)
    if not x.ndim:
        raise ValueError(
            "Calling nonzero on 0d arrays is not allowed. Use "
            "jnp.atleast_1d(scalar).nonzero() instead."
        )
    mask = is_nonzero(x)
    found = _sum(mask)
    size = operator_index(found if size is None else size, "size", SIZE_OF_NONZERO)
    if not x.size or not size:
        return tuple(zeros(size, int) for _ in x.shape)
    numbers = bincount(cumsum(mask.reshape(-1)), length=size)
    places = _split_up(cumsum(numbers), x.shape)
    return _filled(places, fill_value, arange(size) >= found)


def _split_up(flat, shape):
    """Return places in a row as places along each axis."""
    steps = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    return tuple(flat // step % size for step, size in zip(steps, shape))


def _filled(places, fill_value, missing):
    """Put a fill value where places are missing."""
    if fill_value is None:
        return places
    several = isinstance(fill_value, tuple)
    fills = fill_value if several else (fill_value,) * len(places)
    if any(np.shape(fill) for fill in fills):
        raise ValueError(
            f"fill_value must be a scalar or a tuple of length {len(places)}; got "
            f"{fill_value}"
        )
    pairs = zip(fills, places, strict=True)
    return tuple(where(missing, fill, place) for fill, place in pairs)


@with_out_sharding
def bincount(
    x: ArrayLike,
    weights: ArrayLike | None = None,
    minlength: int = 0,
    *,
    length: int | None = None,
    out_sharding: Any = None,
) -> Array:
    """Count how often each number occurs, or sum the weights of each.

    Args:
      x: a row of integers; negative ones count as 0.
      weights: what each counts; 1 by default.
      minlength: how many counts there are at least.
      length: how many there are; larger numbers are left out. It is needed where `x` is
        not known.

    Reference: ``jax.numpy.bincount``.
    """
    x = as_arraylike("bincount", x)
    x = astype(x, np.int32) if dtype_kind(x.dtype) == "b" else x
    if dtype_kind(x.dtype) not in "iu":
        raise TypeError(
            f"x argument to bincount must have an integer type; got {x.dtype}"
        )
    if x.ndim != 1:
        raise ValueError("only 1-dimensional input supported.")
    weights = np.asarray(1, int_dtype()) if weights is None else weights
    if np.ndim(weights) and np.shape(weights) != x.shape:
        raise ValueError(
            f"shape of weights must match shape of x, got {np.shape(weights)} and "
            f"{x.shape}"
        )
    length = _length_of_counts(x, minlength) if length is None else length
    length = operator_index(length, "the argument 'length' of jnp.bincount")
    counts = zeros(length, typeof(weights).dtype)
    return counts.at[clip(x, 0)].add(weights, mode="drop")


def int_dtype():
    """Return the dtype of Python's integers."""
    return typeof(0).dtype


def _length_of_counts(x, minlength):
    """Return one more than the largest number of a row, which has to be known."""
    known = concrete_or_none(x)
    if known is None:
        raise ConcretizationTypeError(
            "Abstract tracer value encountered where concrete value is expected: "
            f"{x!r}. The error occurred because of argument 'x' of jnp.bincount. To "
            "avoid this error, pass a static `length` argument."
        )
    known = np.asarray(known)
    return max(minlength, known.size and int(max(0, known.max())) + 1)


def flatnonzero(
    a: ArrayLike, *, size: int | None = None, fill_value: Any = None
) -> Array:
    """Return the places of the elements that are not zero, counted in a row.

    Reference: ``jax.numpy.flatnonzero``.
    """
    return nonzero(ravel(a), size=size, fill_value=fill_value)[0]


def argwhere(a: ArrayLike, *, size: int | None = None, fill_value: Any = None) -> Array:
    """Return the places of the elements that are not zero, a row for each.

    Reference: ``jax.numpy.argwhere``.
    """
    a = as_arraylike("argwhere", a)
    rows = stack(nonzero(atleast_1d(a), size=size, fill_value=fill_value), 1)
    return rows if a.ndim else rows[:, :0]


def compress(
    condition: ArrayLike,
    a: ArrayLike,
    axis: int | None = None,
    *,
    size: int | None = None,
    fill_value: ArrayLike = 0,
    out: None = None,
) -> Array:
    """Return the slices along an axis for which a condition holds.

    Args:
      condition: a row of bools, known unless `size` is given.
      a: an array.
      axis: along which; None for all elements in a row.
      size: how many slices to return.
      fill_value: what stands behind them if there are fewer.
      out: must be None.

    Reference: ``jax.numpy.compress``.
    """
    if out is not None:
        raise NotImplementedError(
            "The 'out' argument to jnp.compress is not supported."
        )
    holds = is_nonzero(as_arraylike("compress", condition))
    if holds.ndim != 1:
        raise ValueError("condition must be a 1D array")
    x = as_arraylike("compress", a)
    x, axis = (ravel(x), 0) if axis is None else (moveaxis(x, axis, 0), axis)
    chosen, extra = holds[: x.shape[0]], holds[x.shape[0] :]
    x = x[: chosen.shape[0]]
    if size is None:
        if extra.any():
            raise ValueError("condition contains entries that are out of bounds")
        return moveaxis(x[chosen], 0, axis)
    if not 0 <= size <= x.shape[0]:
        raise ValueError(
            "size must be positive and not greater than the size of the array axis; "
            f"got {size=} for a.shape[axis]={x.shape[0]}"
        )
    [places] = nonzero(chosen, size=size)
    there = expand_dims(arange(size) < _sum(chosen), tuple(range(1, x.ndim)))
    return moveaxis(where(there, x[places], astype(fill_value, x.dtype)), 0, axis)


def extract(
    condition: ArrayLike,
    arr: ArrayLike,
    *,
    size: int | None = None,
    fill_value: ArrayLike = 0,
) -> Array:
    """Return the elements for which a condition holds, in a row.

    Reference: ``jax.numpy.extract``.
    """
    condition, row = ravel(condition), ravel(arr)
    return compress(condition, row, size=size, fill_value=fill_value)


# Reductions over segments: elements of an array that share a number.


def least(dtype):
    """Return the number that no number of a dtype is less than."""
    kind = dtype_kind(dtype)
    if kind in "iu":
        return integer_limits(dtype)[0]
    return False if kind == "b" else -np.inf


def greatest(dtype):
    """Return the number that no number of a dtype exceeds."""
    kind = dtype_kind(dtype)
    if kind in "iu":
        return integer_limits(dtype)[1]
    return True if kind == "b" else np.inf


def count_segments(segment_ids, num_segments):
    """Return how many segments there are: one more than the largest number."""
    if num_segments is None:
        count = segment_ids.max() + 1
        num_segments = operator_index(count, "num_segments", COUNT_OF_SEGMENTS)
    if operator_index(num_segments, "num_segments") < 0:
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
        data, ids = as_arraylike(name, data), as_arraylike(name, segment_ids)
        shape = (count_segments(ids, num_segments), *data.shape[1:])
        promises = ScatterIndexInfo(indices_are_sorted, unique_indices, mode)
        first = start(data.dtype)
        if bucket_size is None:
            out = full(shape, first, data.dtype)
            return scatter_indexed_update(out, ids, data, scatter, promises, wrap=False)
        if ids.ndim != 1 or bucket_size < 1:
            told = f"ids of shape {ids.shape} and buckets of {bucket_size}"
            wanted = "ids with one axis, and buckets of at least one"
            raise ValueError(f"{name} takes {wanted}; got {told}.")
        buckets = -(-ids.size // bucket_size)
        out = full((buckets, *shape), first, data.dtype)
        which = lax.div(lax.iota(np.int32, ids.shape[0]), np.int32(bucket_size))
        index = which, ids[None, :]
        out = scatter_indexed_update(out, index, data, scatter, promises, wrap=False)
        return astype(reduce(out, axis=0), data.dtype)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = SEGMENT_DOC.format(name=name)
    return with_out_sharding(function)


SEGMENT_DOC = """Reduce the segments of an array along its first axis: {name}.

    Args:
      data: an array.
      segment_ids: integers: the segment of each element; they need no order.
      num_segments: how many segments there are, if `segment_ids` is not known.
      indices_are_sorted, unique_indices: what the caller promises.
      bucket_size: how many elements are reduced together before the buckets are.
      mode: what becomes of numbers that no segment has; by default they are left out.
      out_sharding: where the result lies on a mesh.

    Reference: ``jax.ops.{name}``.
    """


segment_sum = segment_reduction("segment_sum", lax.scatter_add, lambda _: 0, _sum)
segment_prod = segment_reduction("segment_prod", scatter_mul, lambda _: 1, prod)
segment_min = segment_reduction("segment_min", scatter_min, greatest, min_along)
segment_max = segment_reduction("segment_max", scatter_max, least, max_along)


def compress_method(x, condition, axis=None, *, size=None, fill_value=0, out=None):
    """Return the slices for which a condition holds; see `compress`."""
    how = {"size": size, "fill_value": fill_value, "out": out}
    return compress(condition, x, axis, **how)


_methods = {
    "take": take, "nonzero": nonzero, "compress": compress_method, "choose": choose,
}  # fmt: skip
register_methods({name: api_boundary(method) for name, method in _methods.items()})
