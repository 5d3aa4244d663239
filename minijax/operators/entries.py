"""The entries of a basic index: integers, slices, single bools, None, an ellipsis.

Reference: indexing of ``jax.Array``.
"""

# Made from chapters/03_numpy_ground.md by `make chapter`;
# edit the chapter, not this file.

import numpy as np

from minijax import lax
from minijax.arrays.avals import typeof
from minijax.arrays.dtypes import kind_of, name_of
from minijax.core import Tracer
from minijax.errors import NonConcreteBooleanIndexError
from minijax.lax.promotion import is_arraylike


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
            f"{name_of(aval.dtype)}"
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
