"""Basic indexing: integers, slices, single bools, None and an ellipsis, all known.

Such an index cuts a box out of an array, turns axes around, drops some and adds
others. Four primitives do that: ``slice``, ``rev``, ``squeeze``, ``broadcast_in_dim``.

Reference: indexing of ``jax.Array``.
"""

# Made from chapters/03_numpy.md by `make chapter`;
# edit the chapter, not this file.
# Amended in chapters/03_numpy_rest.md: getitem (886fb612).

from minijax import lax
from minijax.operators.entries import add_truth, as_entries, expand_ellipsis


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


def with_truths(array, entries):
    """Return the part that an index names which has bools among its entries."""
    others = tuple([each for each in entries if not isinstance(each, bool)])
    return add_truth(getitem(array, others), entries)


def getitem(array, index):
    """Return the part of an array that a basic index names.

    An integer beyond the last element means the last, and one before the first means
    the first, as in JAX, where an index may be computed by the program.

    Raises:
      IndexError: for more entries than axes, two ellipses, or an integer on an axis
        of size 0.
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
