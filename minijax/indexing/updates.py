"""Updates of the elements that an index names.

Importing this module gives arrays and tracers the property ``at``.

Reference: ``jax.Array.at``.
"""

# Made from chapters/28_indexing_rest.md by `make chapter`;
# edit the chapter, not this file.

import warnings
from typing import Any

import numpy as np

from minijax import lax
from minijax.arrays.avals import typeof
from minijax.arrays.checks import refuse_sharding
from minijax.arrays.dtypes import kind_of
from minijax.arrays.settings import config
from minijax.catalogue.selections import choose
from minijax.core import Array, methods
from minijax.diagnostics.tracebacks import guarded
from minijax.indexing.brackets import take_index
from minijax.indexing.compiler import numbers_for_truths, places_in, plan_of
from minijax.indexing.dimension_numbers import (
    Promises,
    ScatterDimensionNumbers,
    scatter_by,
)
from minijax.indexing.nonzeros import compress, nonzero
from minijax.indexing.primitives import scatter_add_p, scatter_p
from minijax.indexing.scatters import (
    scatter_apply,
    scatter_max_p,
    scatter_min_p,
    scatter_mul_p,
    scatter_sub_p,
)
from minijax.indexing.takes import take
from minijax.lax.conversion import astype as as_type
from minijax.lax.promotion import common_type, promote_dtypes
from minijax.numpy.arithmetic import power
from minijax.numpy.creation import asarray, ones_like
from minijax.numpy.shapes import broadcast_to
from minijax.numpy.ufuncs import divide
from minijax.operators.methods import at
from minijax.operators.syntax import register
from minijax.switches.promotion import check_dtypes
from minijax.typing import ArrayLike


def scatter_index(array, index, values, enter, promises, wrap=True):
    """Return an array with values entered where an index names elements.

    Args:
      array: an array.
      index: an index, as for `take_index`.
      values: an array that can be broadcast to the shape of ``array[index]``.
      enter: a function like `lax.scatter`.
      promises: what the caller says of the places, and what becomes of those outside.
      wrap: whether negative places count from the end.
    """
    aval, values = typeof(array), as_update(array, values)
    places = numbers_for_truths(places_in(index, aval.shape), aval.shape)
    plan, truths = plan_of(places, aval.shape, wrap)
    if 0 in plan.result:
        return array
    array, values = promote_dtypes(array, values)
    indices = plan.indices()
    values = lax.squeeze(broadcast_to(values, tuple(plan.result)), plan.new_axes)
    values = lax.rev(values, plan.turned) if plan.turned else values
    array = lax.expand_dims(array, truths) if truths else array
    numbers, how = ScatterDimensionNumbers(*plan.numbers), promises._asdict()
    if plan.simple:
        how |= {"indices_are_sorted": True, "unique_indices": True}
    out = enter(array, indices, values, numbers, **how)
    out = lax.squeeze(out, truths) if truths else out
    return as_type(out, aval.dtype, aval.weak_type)


def as_update(array, values):
    """Return what enters an array; an integer takes the array's dtype if it fits."""
    dtype = typeof(array).dtype
    if isinstance(values, int) and kind_of(dtype) in "iu":
        info = np.iinfo(dtype)
        if info.min <= values <= info.max:
            return asarray(values, dtype)
    values = values if isinstance(values, Array) else asarray(values)
    check_dtypes("scatter", (array, values))
    if values.dtype != dtype != common_type(values, np.empty((), dtype))[0]:
        warnings.warn(
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
        args = array, indices, updates, numbers, Promises(**how)
        return scatter_by(primitive, combine, *args)

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
        refuse_sharding("at", out_sharding)
        promises = Promises(indices_are_sorted, unique_indices, mode)
        array = ones_like(self.array) if finish else self.array
        args = values, enter, promises, wrap_negative_indices
        result = scatter_index(array, self.index, *args)
        return finish(self.array, result) if finish else result

    method.__doc__ = doc
    return guarded(method)


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

    @guarded
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
        refuse_sharding("get", out_sharding)
        promises = Promises(indices_are_sorted, unique_indices, mode)
        args = promises, fill_value, wrap_negative_indices
        return take_index(self.array, self.index, *args)

    @guarded
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

        promises = Promises(indices_are_sorted, unique_indices, mode)
        zero = np.zeros((), typeof(self.array).dtype)
        args = zero, enter, promises, wrap_negative_indices
        return scatter_index(self.array, self.index, *args)

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


methods.supersede("at", at, property(IndexUpdater))


def compress_method(x, condition, axis=None, *, size=None, fill_value=0, out=None):
    """Return the slices for which a condition holds; see `compress`."""
    how = {"size": size, "fill_value": fill_value, "out": out}
    return compress(condition, x, axis, **how)


_methods = {
    "take": take, "nonzero": nonzero, "compress": compress_method, "choose": choose,
}  # fmt: skip
register({name: guarded(method) for name, method in _methods.items()})
