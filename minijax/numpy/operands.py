"""Operands of NumPy's functions, and entries of basic indices.

References: indexing of ``jax.Array``, ``jax._src.numpy.util``.
"""

# Made from chapters/03_numpy_ground.md by `make chapter`;
# edit the chapter, not this file.

import numpy as np

from minijax import lax
from minijax.arrays.array import as_array_impl, typeof
from minijax.arrays.dtypes import dtype_kind, dtype_name
from minijax.core import Array, Tracer, current_trace
from minijax.errors import NonConcreteBooleanIndexError
from minijax.lax.arithmetic import astype as as_type
from minijax.lax.arithmetic import promote_shapes
from minijax.lax.reductions import is_arraylike, promote_dtypes

# The entries of a basic index: integers, slices, single bools, None, an ellipsis.


def index_entries(index):
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
        return slice(*map(slice_bound, (entry.start, entry.stop, entry.step)))
    integer = concrete_int_or_none(entry)
    if integer is None:
        integer = known_truth(entry)
    if integer is None:
        raise_advanced_index(entry)
    return integer


def concrete_or_none(x):
    """Return `x`, or the array that a tracer stands for, or None without numbers."""
    return getattr(x, "concrete", _nothing)() if isinstance(x, Tracer) else x


def _nothing():
    return None


def concrete_int_or_none(x):
    """Return the value of an integer that is known while tracing, or None."""
    known = x if type(x) is int else concrete_scalar_or_none(x, "iu")
    return known if known is None else int(known)


def known_truth(x):
    """Return the value of a single bool that is known while tracing, or None."""
    known = concrete_scalar_or_none(x, "b")
    return known if known is None else bool(known)


def concrete_scalar_or_none(x, kinds):
    """Return the number of an array without axes, of a dtype of some kinds, or None.

    None is also what one gets if the number is not known while tracing. An array of
    another type is not asked for its numbers.
    """
    if not is_arraylike(x) or np.ndim(x) or dtype_kind(typeof(x).dtype) not in kinds:
        return None
    concrete = concrete_or_none(x)
    return None if concrete is None else np.asarray(concrete)[()]


def slice_bound(bound):
    """Return an end or the step of a slice as an ``int``, or None."""
    integer = concrete_int_or_none(bound)
    if isinstance(bound, Tracer) and integer is None:
        raise IndexError(
            "Slice entries must be static integers, since they decide the shape of "
            f"the result; got {bound!r}. lax.dynamic_slice_in_dim(x, start, size) has "
            "a start that the program computes."
        )
    return bound if integer is None else integer


def raise_advanced_index(entry):
    """Raise the error for an entry that basic indexing does not have."""
    if isinstance(entry, str):
        raise TypeError(f"Arrays have no string indices; got {entry!r}")
    if isinstance(entry, (list, tuple, range, bytes)):
        advice = f"array[jnp.array({entry!r})]"
        if any(part is None or isinstance(part, slice) for part in entry):
            advice = f"arr[tuple(seq)], here array[{tuple(entry)!r}]"
        raise TypeError(
            "Using a non-tuple sequence for multidimensional indexing is not allowed; "
            f"use {advice}."
        )
    if not is_arraylike(entry):
        raise IndexError(
            "An index is made of integers, slices, '...', None and arrays of integers "
            f"or bools. Got {entry!r}"
        )
    aval = typeof(entry)
    if dtype_kind(aval.dtype) not in "biu":
        raise TypeError(
            "Indexer must have integer or boolean type, got indexer with type "
            f"{dtype_name(aval.dtype)}"
        )
    if aval.dtype == bool and concrete_or_none(entry) is None:
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


def insert_bool_axis(box, entries):
    """Add the axis that bools in an index make, of size 1, or 0 if one is False.

    It stands where the integers and bools of the index stand, if they are neighbours,
    and in front of all axes if they are not, as in NumPy.
    """
    places = [i for i, each in enumerate(entries) if isinstance(each, int)]
    together = places[-1] - places[0] < len(places)
    box = lax.expand_dims(box, (axis := places[0] * together,))
    chosen = all(each for each in entries if isinstance(each, bool))
    return box if chosen else lax.slice_in_dim(box, 0, 0, axis=axis)


# Operands of NumPy's functions: their kinds, literals like them, stretched arrays.


def array_kind(x):
    """Return the kind of an array's dtype: one of ``b i u f c``."""
    return dtype_kind(typeof(x).dtype).replace("h", "f")


def dispatch_on_kind(kinds, function, otherwise):
    """Return a function that calls `function` for arrays of `kinds`, or `otherwise`."""
    letters = kinds.replace("f", "fh")

    def chosen(x, *args):
        right = function if dtype_kind(typeof(x).dtype) in letters else otherwise
        return right(x, *args)

    return chosen


def with_name_and_doc(function, name):
    """Give a function that was made from others its name and a docstring."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""Compute {name}, element by element.

    Operands are promoted to one dtype and broadcast to one shape.
    Reference: ``jax.numpy.{name}``.
    """
    return function


def lexicographic_compare(compare):
    """Return a comparison that orders complex numbers by real, then imaginary part."""

    def lexical(x, y):
        reals, imags = (lax.real(x), lax.real(y)), (lax.imag(x), lax.imag(y))
        return lax.select(lax.eq(*reals), compare(*imags), compare(*reals))

    return dispatch_on_kind("c", lexical, compare)


def broadcast_to_shape(x, shape):
    """Broadcast an array or a scalar literal to `shape`.

    Raises:
      ValueError: if an axis has another size than 1 and the wanted one.
    """
    aval = typeof(x)
    if aval.shape == shape:
        return x
    new = len(shape) - aval.ndim
    if new < 0:
        raise ValueError(
            "Cannot broadcast to shape with fewer dimensions: "
            f"arr_shape={aval.shape} shape={shape}"
        )
    if any(n not in (1, m) for n, m in zip(aval.shape, shape[new:])):
        raise ValueError(
            f"Incompatible types for broadcasting: input type={aval} and requested "
            f"type={aval.update(shape=shape)}"
        )
    return lax.broadcast_in_dim(x, shape, tuple(range(new, len(shape))))


def literal_like(x, value):
    """Return `value` as a literal of the type of `x`, weak if that is weak."""
    aval = typeof(x)
    return as_type(value, aval.dtype, aval.weak_type)


def is_nonzero(x):
    """Return where `x` is not zero."""
    if array_kind(x) == "b":
        return x
    zero = as_type(0, typeof(x).dtype)
    return lax.ne(x, zero if np.ndim(x) else literal_like(x, 0))


def as_array(x):
    """Return a number or a NumPy array as an array; an array or tracer as it is.

    A trace that writes a program down may hold numbers as literals of the program.
    """
    if isinstance(x, Array):
        return x
    stage = None if np.ndim(x) else _stage_of(current_trace())
    return stage(x) if stage else as_array_impl(x)


def _stage_of(trace):
    """Return `stage_value` of the nearest trace around that has it, or None."""
    while trace is not None and not hasattr(trace, "stage_value"):
        trace = trace.parent
    return trace and trace.stage_value


def multiply_by_bool(x, y):
    """Return a product with truths: the float where they hold, and 0 elsewhere.

    None if neither operand is an array of bools, if the other one has no floats, or if
    a program is written down, which keeps the product.
    """
    if not chooses_by_bools(x, y):
        return None
    truths, other = (x, y) if array_kind(x) == "b" else (y, x)
    truths, other = promote_shapes(truths, as_array(other))
    shape = lax.broadcast_shapes(typeof(truths).shape, typeof(other).shape)
    cases = (
        broadcast_to_shape(other, shape),
        broadcast_to_shape(literal_like(other, 0), shape),
    )
    return lax.select(broadcast_to_shape(truths, shape), *cases)


def promote_factors(x, y, promote=promote_dtypes):
    """Return factors in one dtype, or as they are where bools choose in the product."""
    return (x, y) if chooses_by_bools(x, y) else promote(x, y)


def chooses_by_bools(x, y):
    """Return whether bools choose in a product of `x` and `y` that is made now."""
    return not is_staged() and any(
        is_array_of_bools(truths) and array_kind(other) in "fc"
        for truths, other in ((x, y), (y, x))
    )


def is_array_of_bools(x):
    """Return whether `x` holds truths, and is not one that a program knows."""
    return isinstance(x, (Array, np.ndarray)) and array_kind(x) == "b"


def is_staged():
    """Return whether what is done now ends in a program that is written down."""
    trace = current_trace()
    while trace is not None and not trace.stages:
        trace = trace.parent
    return trace is not None
