"""Advanced indexing: an index of Python as a slice, a dynamic slice, or a gather.

Reference: ``jax._src.numpy.indexing``; NumPy's *Indexing on ndarrays*.
"""

# Made from chapters/28_indexing_ground.md by `make chapter`;
# edit the chapter, not this file.

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from minijax import lax
from minijax.arrays.array import typeof
from minijax.arrays.dtypes import dtype_kind
from minijax.arrays.numerics import operator_index
from minijax.core import Array, Tracer
from minijax.errors import NonConcreteBooleanIndexError
from minijax.indexing.dimension_numbers import GatherDimensionNumbers
from minijax.indexing.dynamic_slices import (
    dynamic_slice,
    dynamic_slice_in_dim,
    from_the_end,
    index_dtype,
    with_size_added,
)
from minijax.numpy.array_creation import asarray
from minijax.numpy.array_methods import slice_limits
from minijax.numpy.operands import (
    concrete_int_or_none,
    concrete_or_none,
    raise_advanced_index,
    slice_bound,
)
from minijax.numpy.shapes import broadcast_arrays
from minijax.pytrees.registry import register_pytree_node


class IndexEntry(NamedTuple):
    """An entry of an index, and the axes of the array for which it stands.

    Attributes:
      kind: "new", "all" (an ellipsis), "slice", "integer", "array" or "truth".
      value: the entry.
      axes: range of axes.
    """

    kind: str
    value: Any
    axes: range


def kind_of_entry(entry):
    """Return the kind of an entry of an index: see `IndexEntry`.

    Raises:
      TypeError, IndexError: if it is not one.
    """
    if entry is None or entry is Ellipsis:
        return "new" if entry is None else "all"
    if isinstance(entry, slice):
        return "slice"
    if isinstance(entry, int | np.integer) and not isinstance(entry, bool):
        return "integer"
    if not isinstance(entry, Array | np.ndarray | np.generic | bool):
        raise_advanced_index(entry)
    kind = dtype_kind(typeof(entry).dtype)
    if kind not in "biu":
        raise_advanced_index(entry)
    return "truth" if kind == "b" else "array"


def parse_index(index, shape):
    """Return an `IndexEntry` for each entry of an index into an array of some shape."""
    entries = index if isinstance(index, tuple) else (is_single_integer(index),)
    entries = list(map(array_of_list, entries))
    kinds = list(map(kind_of_entry, entries))
    counts = list(map(axes_of_entry, kinds, entries))
    used = sum(counts)
    if used > len(shape):
        raise IndexError(
            f"Too many indices: array is {len(shape)}-dimensional, but {used} were "
            "indexed"
        )
    if kinds.count("all") > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if "all" in kinds:
        counts[kinds.index("all")] = len(shape) - used
    ends = [0, *accumulate(counts)]
    axes = [range(*pair) for pair in zip(ends, ends[1:])]
    return list(map(IndexEntry, kinds, entries, axes))


def axes_of_entry(kind, entry):
    """Return for how many axes an entry stands; an ellipsis for what is left."""
    if kind == "truth":
        return typeof(entry).ndim
    return 0 if kind in ("new", "all") else 1


def array_of_list(entry):
    """Return a list as an array, and a tracer of a known integer as an ``int``."""
    if isinstance(entry, Tracer):
        number = concrete_int_or_none(entry)
        return entry if number is None else number
    if not isinstance(entry, Sequence) or isinstance(entry, str | bytes):
        return entry
    if has_arrays(entry):
        return asarray(entry)
    return np.asarray(entry, None if entry else int)


def has_arrays(entry):
    """Return whether an array or a tracer is in a list, or in one inside of it."""
    if isinstance(entry, Sequence) and not isinstance(entry, str | bytes):
        return any(map(has_arrays, entry))
    return isinstance(entry, Array)


def is_single_integer(index):
    """Return an index that is no tuple; a list is refused, as NumPy once did not."""
    if isinstance(index, Sequence) and not isinstance(index, str):
        raise_advanced_index(index)
    return index


def expand_bool_indices(places, shape):
    """Replace masks by the places where they hold, an array for each of their axes."""
    found = []
    for place in places:
        if place.kind != "truth":
            found.append(place)
            continue
        mask = known_mask(place.value)
        if not mask.ndim:
            found.append(place._replace(value=bool(mask)))
            continue
        sizes = [shape[axis] for axis in place.axes]
        if any(n not in (0, size) for n, size in zip(mask.shape, sizes)):
            raise IndexError(
                f"boolean index did not match shape of indexed array in index "
                f"{places.index(place)}: got {mask.shape}, expected {sizes}"
            )
        for numbers, axis in zip(np.nonzero(mask), place.axes):
            found.append(IndexEntry("array", numbers, range(axis, axis + 1)))
    return found


def known_mask(mask):
    """Return the values of a mask, which decide the shape of the result."""
    value = concrete_or_none(mask)
    if value is None:
        raise NonConcreteBooleanIndexError(
            f"Array boolean indices must be concrete; got {typeof(mask)}"
        )
    return np.asarray(value)


@dataclass(frozen=True)
class Slice:
    """An entry of an index: a start, which a program may compute, and a length.

    Attributes:
      start: an integer, or an array of one; negative ones count from the end.
      size: how many elements.
      stride: from one to the next.
    """

    start: Any
    size: int
    stride: int = 1

    @property
    def span(self):
        """How many places lie between the first and the last, both of them included."""
        return (self.size - 1) * self.stride + 1 if self.size else 0


register_pytree_node(
    Slice,
    lambda x: ((x.start,), (x.size, x.stride)),
    lambda aux, start: Slice(*start, *aux),
)


def holds_slices(index):
    """Return whether there is a `Slice` in an index."""
    entries = index if isinstance(index, tuple) else (index,)
    return any(isinstance(entry, Slice) for entry in entries)


def without_slices(index, shape):
    """Return an index with ``:`` for each `Slice`, and pairs of its axis and itself."""
    entries = index if isinstance(index, tuple) else (index,)
    plain = tuple(slice(None) if holds_slices(entry) else entry for entry in entries)
    pairs = zip(entries, parse_index(plain, shape))
    found = [(place.axes.start, x) for x, place in pairs if isinstance(x, Slice)]
    return plain, found


def cut_window(array, axis, part):
    """Return the elements that a `Slice` names along an axis."""
    span = dynamic_slice_in_dim(array, part.start, part.span, axis)
    return lax.slice_in_dim(span, 0, part.span, part.stride, axis)


def ds(start: Any, size: Any = None, stride: int | None = None) -> Any:
    """Return an entry of an index: `size` elements from `start`, which may be computed.

    Args:
      start: an integer or an array of one; None for all elements. Without `size` it is
        the length, and the start is 0.
      size: how many elements, an ``int``.
      stride: from one to the next, 1 by default.

    Raises:
      ValueError: if `stride` is not a positive ``int``.
      TypeError: if the length is not an integer that is known.

    Reference: ``jax.ds``.
    """
    if start is None:
        return slice(None)
    stride = 1 if stride is None else stride
    if not isinstance(stride, int) or stride < 1:
        raise ValueError(f"ds: the stride is a positive int, not {stride!r}.")
    start, size = (0, start) if size is None else (start, size)
    return Slice(start, operator_index(size, "the size of ds"), stride)


class GatherPlan:
    """Collects, entry by entry, the gather that an index means.

    Args:
      shape: of the array; an axis of size 1 is already in it for each single bool.

    Attributes:
      result: shape of the result, new axes included.
      parts: arrays of numbers, and from which axis on each varies among the indices.
      index_shape: shape of the indices, without the axis of their numbers.
      offset_dims, collapsed_slice_dims, start_index_map: as in `WindowDims`.
      sizes: of a window.
      new_axes, reversed_axes: axes of the result to add, and to turn around, in the
        end.
    """

    def __init__(self, shape):
        self.shape, self.sizes, self.result = shape, [*shape], []
        self.parts, self.index_shape = [], []
        self.offset_dims, self.collapsed_slice_dims, self.start_index_map = [], [], []
        self.new_axes, self.reversed_axes, self.simple = [], [], True

    @property
    def dtype(self):
        """The dtype of places."""
        return index_dtype(max(self.shape, default=0))

    @property
    def end(self):
        """How many axes the gather's result has so far."""
        return len(self.result) - len(self.new_axes)

    def point(self, axis, numbers, start=None):
        """Take single elements along an axis, at places that some numbers say."""
        if start is None:
            start = len(self.index_shape)
        self.parts.append((lax.convert_element_type(numbers, self.dtype), start))
        self.start_index_map.append(axis)
        self.collapsed_slice_dims.append(axis)
        self.sizes[axis] = 1


class IndexPlan(GatherPlan):
    """A gather plan that takes the entries of an index, one after the other."""

    def new(self):
        """Add an axis."""
        self.new_axes.append(len(self.result))
        self.result.append(1)

    def integer(self, axis, number):
        """Take one element along an axis."""
        if not self.shape[axis]:
            raise IndexError(f"index is out of bounds for axis {axis} with size 0")
        self.point(axis, number)

    def arrays(self, axes, arrays):
        """Take elements at places that several arrays say together."""
        arrays, start = broadcast_arrays(*arrays), len(self.index_shape)
        for axis, numbers in zip(axes, arrays):
            self.point(axis, numbers, start)
        self.index_shape += arrays[0].shape
        self.result += arrays[0].shape
        self.simple = False

    def slice(self, axis, entry):
        """Take a slice: a wide window, or elements one by one if it has a step."""
        taken = range(self.shape[axis])[as_slice(entry)]
        if taken.step == 1:
            self.window(axis, taken)
        else:
            self.steps(axis, taken)
        self.result.append(len(taken))

    def window(self, axis, taken):
        """Take neighbours along an axis."""
        if len(taken) != self.shape[axis]:
            start = lax.convert_element_type(taken.start, self.dtype)
            self.parts.append((start, len(self.index_shape)))
            self.start_index_map.append(axis)
        self.sizes[axis] = len(taken)
        self.offset_dims.append(self.end)

    def steps(self, axis, taken):
        """Take elements at some distance from each other along an axis."""
        count, dtype = lax.iota(self.dtype, len(taken)), self.dtype
        step, start = (np.asarray(x, dtype) for x in (taken.step, taken.start))
        numbers = lax.add(start, lax.mul(step, count))
        if taken.step < 0:
            self.reversed_axes.append(self.end)
            numbers = lax.rev(numbers, (0,))
        self.point(axis, numbers)
        self.index_shape.append(len(taken))

    def indices(self):
        """Return the indices of the gather: the numbers of each along the last axis."""
        if not self.parts:
            return np.zeros(0, self.dtype)
        if len(self.parts) == 1:
            [(numbers, _)] = self.parts
            return lax.expand_dims(numbers, (typeof(numbers).ndim,))
        shape, columns = (*self.index_shape, 1), []
        for numbers, start in self.parts:
            axes = range(start, start + typeof(numbers).ndim)
            columns.append(lax.broadcast_in_dim(numbers, shape, tuple(axes)))
        return lax.concatenate(columns, len(self.index_shape))

    @property
    def numbers(self):
        """The dimension numbers of the gather."""
        dropped = tuple(sorted(self.collapsed_slice_dims))
        return GatherDimensionNumbers(
            tuple(self.offset_dims), dropped, tuple(self.start_index_map)
        )


def are_together(places):
    """Return whether arrays and integers of an index have nothing between them."""
    chosen = [n for n, place in enumerate(places) if place.kind in CHOOSING]
    return not chosen or chosen[-1] - chosen[0] == len(chosen) - 1


CHOOSING = "array", "integer"


def expanded(places, ndim):
    """Replace an ellipsis by slices, and add slices for the axes that are left."""
    used = sum(len(place.axes) for place in places)
    found = []
    for place in [*places, IndexEntry("all", ..., range(used, ndim))]:
        if place.kind != "all":
            found.append(place)
            continue
        full = [IndexEntry("slice", slice(None), range(k, k + 1)) for k in place.axes]
        found += full
    return found


def with_truth_axes(places, shape):
    """Return places and a shape with an axis for each single bool, and these axes.

    Such an axis has one element, which is taken or not.
    """
    found, shape, truths = [], [*shape], []
    for place in places:
        first, count = len(truths) + place.axes.start, len(place.axes)
        if place.kind == "truth":
            shape.insert(first, 1)
            truths.append(first)
            numbers = np.arange(int(place.value))
            place, count = place._replace(kind="array", value=numbers), 1
        found.append(place._replace(axes=range(first, first + count)))
    return found, tuple(shape), truths


def as_slice(entry):
    """Return a slice whose ends and step are numbers or None."""
    return slice(*map(slice_bound, (entry.start, entry.stop, entry.step)))


def normalize_negative_indices(numbers, size):
    """Return integers with the size of the axis added where they are negative."""
    if isinstance(numbers, int | np.integer):
        return numbers + size if numbers < 0 else numbers
    return with_size_added(numbers, size, operator.lt)  # of constants: at once


def index_to_gather(places, shape, wrap=True):
    """Return the `IndexPlan` of an index without masks, and the axes of single bools.

    Arrays, and integers beside them, choose together. The axes of their choice stand
    where they stand in the index, or in front if anything stands between them.
    """
    together = are_together(places)
    places, shape, truths = with_truth_axes(expanded(places, len(shape)), shape)
    plan, chosen = IndexPlan(shape), [p for p in places if p.kind in CHOOSING]
    values = [
        normalize_negative_indices(p.value, shape[p.axes[0]]) if wrap else p.value
        for p in chosen
    ]
    joint, rest = any(typeof(value).ndim for value in values), iter(values)
    first = places.index(chosen[0]) if joint and together else 0
    for n, place in enumerate(places):
        if joint and n == first:
            plan.arrays([p.axes[0] for p in chosen], values)
        if place.kind not in CHOOSING:
            add_place(plan, place)
        elif not joint:
            plan.integer(place.axes[0], next(rest))
    return plan, truths


def add_place(plan, place):
    """Add a new axis or a slice to a plan."""
    if place.kind == "new":
        plan.new()
    else:
        plan.slice(place.axes[0], place.value)


def slice_bounds_of(places, shape):
    """Return the corner and the sizes of the box that an index cuts out."""
    starts, sizes, turned, dropped = [], [], [], []
    for axis, place in enumerate(place for place in places if place.axes):
        if place.kind == "slice":
            taken = range(shape[axis])[as_slice(place.value)]
            start, limit, _ = slice_limits(taken)
            turned += [axis] * (taken.step < 0)
            starts.append(start)
            sizes.append(limit - start)
        else:
            if not shape[axis]:
                raise IndexError(f"index is out of bounds for axis {axis} with size 0")
            starts.append(place.value)
            sizes.append(1)
            dropped.append(axis)
    return starts, sizes, turned, dropped


def attempt_dynamic_slice(array, places, wrap):
    """Return the part of an array that single numbers and slices name."""
    places = expanded(places, array.ndim)
    starts, sizes, turned, dropped = slice_bounds_of(places, array.shape)
    starts = [asarray(start) for start in starts]
    if len(starts) > 1:
        dtype = IndexPlan(array.shape).dtype
        if dtype.kind == "u":
            starts = [from_the_end(*pair, wrap) for pair in zip(starts, array.shape)]
        starts = [lax.convert_element_type(start, dtype) for start in starts]
    box = dynamic_slice(array, starts, sizes, allow_negative_indices=wrap)
    box = lax.squeeze(lax.rev(box, turned) if turned else box, dropped)
    kept = [place.kind for place in places if place.kind in ("new", "slice")]
    return lax.expand_dims(box, [n for n, kind in enumerate(kept) if kind == "new"])


PLAIN = {int, slice, type(None), type(...)}


def is_static_basic_index(index, shape):
    """Return whether an index is so basic that no plan is needed to see it.

    Most are: a program asks for one row, or for a slice of known ends. Numbers beyond
    the end, and numbers beside None or an ellipsis, are for `parse_index`.
    """
    entries = index if type(index) is tuple else (index,)
    kinds = set(map(type, entries))
    if not kinds <= {int, slice}:
        return kinds <= PLAIN - {int}
    inside = [type(i) is slice or -n <= i < n for i, n in zip(entries, shape)]
    return all(inside)


def is_contiguous_slice(places):
    """Return whether an index has only single numbers and slices without a step."""
    return all(
        place.kind in ("new", "all", "integer")
        or (place.kind == "slice" and as_slice(place.value).step in (None, 1, -1))
        or (place.kind == "array" and is_single(place.value))
        for place in places
    )


def is_single(numbers):
    """Return whether an entry of an index is one number in an array."""
    return not typeof(numbers).ndim
