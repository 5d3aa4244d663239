# Made from chapters/03_numpy.md by `make chapter`;
# edit the chapter, not this file.
"""Basic indexing: integers, slices, single bools, None and an ellipsis, all known.

Such an index cuts a box out of an array, turns axes around, drops some and adds
others. Four primitives do that: ``slice``, ``rev``, ``squeeze``, ``broadcast_in_dim``.

Reference: indexing of ``jax.Array``.
"""

import numpy as np

from minijax import lax
from minijax.arrays.avals import typeof
from minijax.arrays.dtypes import kind_of
from minijax.core import Tracer
from minijax.errors import NonConcreteBooleanIndexError
from minijax.lax.promotion import is_arraylike


def as_places(entry, size):
    """Return which elements of an axis an entry takes: an ``int``, or a ``range``."""
    if isinstance(entry, slice):
        return range(size)[entry]
    if size == 0:
        raise IndexError(f"index {entry} is out of bounds for an axis with size 0")
    place = entry + size if entry < 0 else entry
    return min(max(place, 0), size - 1)


def as_cut(place):
    """Return the start, the limit and the stride of the slice that takes `place`."""
    if isinstance(place, int):
        return place, place + 1, 1
    if place.step < 0:
        return (place[-1], place[0] + 1, -place.step) if place else (0, 0, 1)
    return place.start, place.stop if place else place.start, place.step


def runs_back(place):
    """Return whether the elements of a range stand in decreasing order."""
    return isinstance(place, range) and place.step < 0 and len(place) > 0


def take_box(array, places):
    """Cut out the box of all `places`; those that run backwards are turned around."""
    turned = [axis for axis, place in enumerate(places) if runs_back(place)]
    cuts = [as_cut(place) for place in places]
    if cuts != [(0, size, 1) for size in array.shape]:
        array = lax.slice(array, *zip(*cuts))
    return lax.rev(array, turned) if turned else array


def as_entries(index):
    """Return the entries of an index: integers, bools, slices, None and ``...``."""
    return [
        as_entry(each) for each in (index if isinstance(index, tuple) else (index,))
    ]


def as_entry(entry):
    """Return one entry of an index, an integer as an ``int``, a truth as a ``bool``.

    Raises:
      TypeError, IndexError, NotImplementedError: if the entry is not a basic one.
    """
    if entry is None or entry is Ellipsis:
        return entry
    if isinstance(entry, slice):
        return slice(*map(as_bound, (entry.start, entry.stop, entry.step)))
    integer = known_integer(entry)
    if integer is None:
        integer = known_truth(entry)
    if integer is None:
        refuse(entry)
    return integer


def known_value(x):
    """Return `x`, or the array that a tracer stands for, or None without numbers."""
    return getattr(x, "concrete", _nothing)() if isinstance(x, Tracer) else x


def _nothing():
    return None


def known_integer(x):
    """Return the value of an integer that is known while tracing, or None."""
    if type(x) is int:
        return x
    concrete = known_value(x)
    if not is_arraylike(concrete) or typeof(concrete).shape:
        return None
    if typeof(concrete).dtype.kind not in "iu":
        return None
    return int(np.asarray(concrete))


def known_truth(x):
    """Return the value of a single bool that is known while tracing, or None."""
    concrete = known_value(x)
    if not is_arraylike(concrete) or typeof(concrete).shape:
        return None
    return bool(np.asarray(concrete)) if typeof(concrete).dtype.kind == "b" else None


def as_bound(bound):
    """Return an end or the step of a slice as an ``int``, or None."""
    integer = known_integer(bound)
    if isinstance(bound, Tracer) and integer is None:
        raise IndexError(
            "Slice entries must be static integers, since they decide the shape of "
            f"the result; got {bound!r}. lax.dynamic_slice_in_dim(x, start, size) has "
            "a start that the program computes."
        )
    return bound if integer is None else integer


def refuse(entry):
    """Raise the error for an entry that basic indexing does not have."""
    if isinstance(entry, str):
        raise TypeError(f"Arrays have no string indices; got {entry!r}")
    if isinstance(entry, (list, tuple, range, bytes)):
        raise TypeError(
            "Using a non-tuple sequence for multidimensional indexing is not allowed; "
            f"use array[jnp.array({entry!r})]."
        )
    if not is_arraylike(entry):
        raise IndexError(
            "An index is made of integers, slices, '...', None and arrays of integers "
            f"or bools. Got {entry!r}"
        )
    aval = typeof(entry)
    if kind_of(aval.dtype) not in "biu":
        raise TypeError(
            "Indexer must have integer or boolean type, got indexer with type "
            f"{aval.dtype}"
        )
    if aval.dtype == bool and known_value(entry) is None:
        raise NonConcreteBooleanIndexError(
            f"Array boolean indices must be concrete; got {aval}"
        )
    raise NotImplementedError(
        f"An index of type {aval} needs the primitive gather, which arrives with "
        "the chapter on gather and scatter. Until then indices are integers and slices "
        "whose values are known while tracing."
    )


def expand_ellipsis(entries, ndim):
    """Replace ``...`` by as many full slices as axes are left, and append the others.

    Raises:
      IndexError: for two ellipses, or more entries than axes.
    """
    axes = [each for each in entries if type(each) in (int, slice)]
    used = len(axes)
    if used > ndim:
        raise IndexError(
            f"Too many indices: array is {ndim}-dimensional, but {used} were indexed"
        )
    places = [place for place, each in enumerate(entries) if each is Ellipsis]
    if len(places) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    [place] = places or [len(entries)]
    return entries[:place] + [slice(None)] * (ndim - used) + entries[place + 1 :]


def with_truths(array, entries):
    """Return the part that an index names which has bools among its entries."""
    others = tuple([each for each in entries if not isinstance(each, bool)])
    return add_truth(getitem(array, others), entries)


def add_truth(box, entries):
    """Add the axis that bools in an index make, of size 1, or 0 if one is False.

    It stands where the integers and bools of the index stand, if they are neighbours,
    and in front of all axes if they are not, as in NumPy.
    """
    places = [i for i, each in enumerate(entries) if isinstance(each, int)]
    together = places[-1] - places[0] < len(places)
    box = lax.expand_dims(box, (axis := places[0] * together,))
    chosen = all(each for each in entries if isinstance(each, bool))
    return box if chosen else lax.slice_in_dim(box, 0, 0, axis=axis)


def getitem(array, index):
    """Return the part of an array that a basic index names.

    An integer beyond the last element means the last, and one before the first means
    the first, as in JAX, where an index may be computed by the program.

    Raises:
      IndexError: for more entries than axes, two ellipses, or an element of no element.
      TypeError: for entries that are no indices.
      NotImplementedError: for arrays and tracers as entries.

    Reference: ``jax.Array.__getitem__``.
    """
    entries = expand_ellipsis(as_entries(index), array.ndim)
    if bool in map(type, entries):
        return with_truths(array, entries)
    sizes = iter(array.shape)
    places = [as_places(each, next(sizes)) for each in entries if each is not None]
    dropped = [axis for axis, place in enumerate(places) if isinstance(place, int)]
    box = take_box(array, places)
    kept = [each for each in entries if each is None or isinstance(each, slice)]
    new_axes = [axis for axis, each in enumerate(kept) if each is None]
    return lax.expand_dims(lax.squeeze(box, dropped), new_axes)
