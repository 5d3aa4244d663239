"""Advanced indexing: the part of an array that an index in brackets names.

Importing this module gives arrays and tracers the method ``__getitem__``.

Reference: ``jax._src.numpy.indexing``; NumPy's *Indexing on ndarrays*.
"""

# Made from chapters/28_indexing.md by `make chapter`;
# edit the chapter, not this file.

from minijax import lax
from minijax.core import methods
from minijax.diagnostics.public_guards import method_guards
from minijax.diagnostics.tracebacks import guarded
from minijax.indexing.compiler import (
    dynamically_sliced,
    is_box,
    is_plain,
    numbers_for_truths,
    places_in,
    plan_of,
)
from minijax.indexing.dimension_numbers import GatherScatterMode, Promises
from minijax.indexing.primitives import gather
from minijax.operators.indexing import getitem


def gathered(array, index, wrap, promises, fill_value):
    """Return the part of an array that an index names, by a gather."""
    places = numbers_for_truths(places_in(index, array.shape), array.shape)
    plan, truths = plan_of(places, array.shape, wrap)
    if 0 in plan.result:
        return lax.full_like(array, 0, shape=tuple(plan.result))
    if truths:
        array = lax.expand_dims(array, truths)
    if plan.parts:
        array = gather(
            array,
            plan.indices(),
            plan.numbers,
            plan.sizes,
            unique_indices=promises.unique_indices or plan.simple,
            indices_are_sorted=promises.indices_are_sorted or plan.simple,
            mode=promises.mode,
            fill_value=fill_value,
        )
    array = lax.rev(array, plan.turned) if plan.turned else array
    return lax.expand_dims(array, plan.new_axes)


STATIC = {"new", "all", "slice"}
STAYS_INSIDE = GatherScatterMode.PROMISE_IN_BOUNDS, GatherScatterMode.CLIP
NO_PROMISES = Promises()


def take_index(array, index, promises=NO_PROMISES, fill_value=None, wrap=True):
    """Return the part of an array that an index names.

    Args:
      array: an array.
      index: an entry or a tuple of entries: integers, slices, None, an ellipsis, bools,
        and arrays of integers or bools.
      promises: what the caller says of the places, and what becomes of those outside.
      fill_value: what stands for elements outside, in the mode ``fill``.
      wrap: whether negative places count from the end.

    Raises:
      IndexError, TypeError: for an index that does not fit the array.
      NonConcreteBooleanIndexError: for a mask whose values are not known.
    """
    mode = promises.mode
    places = places_in(index, array.shape)
    if mode is None or GatherScatterMode.from_any(mode) in STAYS_INSIDE:
        if all(is_static(place, array.shape) for place in places):
            return getitem(array, index if wrap else tuple(map(unwrapped, places)))
        if is_box(places):
            return dynamically_sliced(array, places, wrap)
    return gathered(array, index, wrap, promises, fill_value)


def is_static(place, shape):
    """Return whether an entry is known; a number outside is clamped by the program."""
    if place.kind != "integer":
        return place.kind in STATIC
    n = shape[place.axes.start]
    return -n <= place.value < n


def unwrapped(place):
    """Return an entry of an index where a negative integer is before the first."""
    return max(place.value, 0) if place.kind == "integer" else place.value


@guarded
def part(array, index):
    """Return the part of an array that an index in brackets names."""
    plain = is_plain(index, array.shape)
    return getitem(array, index) if plain else take_index(array, index)


methods.supersede("__getitem__", method_guards[getitem], part)
