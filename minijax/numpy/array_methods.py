"""Python's operators, brackets and NumPy's universal functions for arrays.

Such an index cuts a box out of an array, turns axes around, drops some and adds
others. Four primitives do that: ``slice``, ``rev``, ``squeeze``, ``broadcast_in_dim``.

Importing this module fills the table `minijax.core.tracer_methods`: concrete arrays and
tracers alike have what is defined here.

References: indexing of ``jax.Array``, ``jax.Array``, ``jax.numpy``.
"""

# Made from chapters/03_numpy.md by `make chapter`;
# edit the chapter, not this file.
# Amended in chapters/03_numpy_rest.md: binary_ufunc, multiply (7ff6f065).
# Amended in chapters/03_numpy_rest.md: getitem (d9f1531d).
# Amended in chapters/03_numpy_rest.md: concrete_array_or_error (c1ff9293).
# Amended in chapters/06_vmap_rest.md: concrete_array_or_error (8e013762).
# Amended in chapters/08_errors_ground.md: binary_operator (1dad875e).
# Amended in chapters/26_calls_rest.md: binary_operator (f2d3299f).
# Amended in chapters/28_indexing_rest.md: where (e4d2cb2b).

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import lax
from minijax.arrays.array import typeof
from minijax.arrays.config import check_dtypes, check_promotion_operands
from minijax.arrays.interchange import promised
from minijax.core import Array, tracer_methods
from minijax.errors import TracerBoolConversionError, format_for_user
from minijax.lax.reductions import (
    beside_number,
    check_arraylike,
    is_arraylike,
    is_promoted,
    promote_dtypes,
    promote_dtypes_inexact,
    promote_shapes,
)
from minijax.numpy.operands import (
    as_array,
    broadcast_to_shape,
    concrete_or_none,
    dispatch_on_kind,
    expand_ellipsis,
    index_entries,
    insert_bool_axis,
    is_nonzero,
    lexicographic_compare,
    multiply_by_bool,
    with_name_and_doc,
)
from minijax.typing import ArrayLike

# Basic indexing: integers, slices, single bools, None and an ellipsis, all known.


def as_places(entry, size):
    """Return which elements of an axis an entry takes: an ``int``, or a ``range``."""
    if isinstance(entry, slice):
        return range(size)[entry]
    if size == 0:
        raise IndexError(f"index {entry} is out of bounds for an axis with size 0")
    place = entry + size if entry < 0 else entry
    return min(max(place, 0), size - 1)


def slice_limits(place):
    """Return the start, the limit and the stride of the slice that takes `place`."""
    if isinstance(place, int):
        return place, place + 1, 1
    if place.step < 0:
        return (place[-1], place[0] + 1, -place.step) if place else (0, 0, 1)
    # An empty range may stop before it starts, and `lax.slice` refuses that.
    stop = place.stop if place else place.start
    return place.start, stop, place.step


def runs_back(place):
    """Return whether a range has a negative step, and is not empty."""
    return isinstance(place, range) and place.step < 0 and len(place) > 0


def take_box(array, places):
    """Cut out the box of all `places`; those that run backwards are turned around."""
    turned = [axis for axis, place in enumerate(places) if runs_back(place)]
    cuts = [slice_limits(place) for place in places]
    if cuts != [(0, size, 1) for size in array.shape]:
        array = lax.slice(array, *zip(*cuts))
    return lax.rev(array, turned) if turned else array


def with_truths(array, entries):
    """Return the part that an index names which has bools among its entries."""
    others = tuple([each for each in entries if not isinstance(each, bool)])
    return insert_bool_axis(getitem(array, others), entries)


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
    entries = expand_ellipsis(index_entries(index), array.ndim)
    if bool in map(type, entries):
        return with_truths(array, entries)
    sizes = iter(array.shape)
    places = [as_places(each, next(sizes)) for each in entries if each is not None]
    dropped = [axis for axis, place in enumerate(places) if isinstance(place, int)]
    box = take_box(array, places)
    kept = [each for each in entries if each is None or isinstance(each, slice)]
    new_axes = [axis for axis, each in enumerate(kept) if each is None]
    return lax.expand_dims(lax.squeeze(box, dropped), new_axes)


# What Python's syntax means for arrays: brackets, operators, decisions.


def register_methods(functions):
    """Make functions methods of arrays, under the names that they are given."""
    for name, function in functions.items():
        tracer_methods[name] = function


register_methods({"__getitem__": getitem})


def length(x):
    """Return the size of the first axis."""
    if not x.ndim:
        raise TypeError("len() of unsized object")
    return x.shape[0]


def iterate(x):
    """Return an iterator over the slices along the first axis."""
    if not x.ndim:
        raise TypeError("iteration over a 0-d array")
    return (x[place] for place in range(x.shape[0]))


def concrete_array_or_error(x, error, what):
    """Return `x`, or the array in it; refuse a tracer that has no numbers.

    Args:
      x: an array or a tracer.
      error: the class of error to raise for a tracer without numbers.
      what: what Python wanted; the message begins with it.
    """
    value = concrete_or_none(x)
    if value is None:
        provenance = getattr(x, "provenance", str)()
        message = f"{what}: {x!r} stands for {x.aval} and has no numbers while it is "
        raise error(f"{message}traced. {provenance}".rstrip())
    return value


def truth(x):
    """Return the truth of an array with one element, for ``if`` and ``and``."""
    if x.size != 1:
        raise ValueError(
            f"The truth value of an array with shape {x.shape} is ambiguous. Use "
            "x.any() or x.all(), or x.size > 0."
        )
    what = (
        "Attempted boolean conversion of traced array with shape "
        f"{str(x.aval).lstrip('~')}. An if, while, and, or, not wants one number"
    )
    return builtins.bool(
        np.asarray(concrete_array_or_error(x, TracerBoolConversionError, what))
    )


register_methods({"__len__": length, "__iter__": iterate, "__bool__": truth})


# NumPy's universal functions: check, promote, broadcast, then one function of lax.


def binary_ufunc(
    name, function, promote=promote_dtypes, mixed=None
) -> Callable[[ArrayLike, ArrayLike], Array]:
    """Make a NumPy function of two arrays from a function of lax.

    Args:
      name: its name in ``jax.numpy``.
      function: what to apply to the promoted operands.
      promote: how operands get their dtype, a function of `minijax.lax.reductions`.
      mixed: a function of two operands before that, which may answer, or return None.
    """

    def ufunc(x, y, /):
        if is_promoted(promote, x, y):  # by far the most frequent case
            return function(x, y)
        if (pair := beside_number(promote, x, y)) is not None:
            return function(*pair)
        check_promotion_operands(name, x, y)
        answer = mixed and mixed(x, y)
        return function(*promote_shapes(*promote(x, y))) if answer is None else answer

    return with_name_and_doc(ufunc, name)


def unary_ufunc(name, function, promote=promote_dtypes) -> Callable[[ArrayLike], Array]:
    """Make a NumPy function of one array from one of lax, as `binary_ufunc` does."""

    def ufunc(x, /):
        check_arraylike(name, x)
        return function(*promote(x))

    return with_name_and_doc(ufunc, name)


add = binary_ufunc("add", dispatch_on_kind("b", lax.bitwise_or, lax.add))
subtract = binary_ufunc("subtract", lax.sub)
multiply = binary_ufunc(
    "multiply", dispatch_on_kind("b", lax.bitwise_and, lax.mul), mixed=multiply_by_bool
)
divide = true_divide = binary_ufunc("divide", lax.div, promote_dtypes_inexact)
negative = unary_ufunc("negative", lax.neg)
maximum = binary_ufunc("maximum", lax.max)
exp = unary_ufunc("exp", lax.exp, promote_dtypes_inexact)
tanh = unary_ufunc("tanh", lax.tanh, promote_dtypes_inexact)


bitwise_and = binary_ufunc("bitwise_and", lax.bitwise_and)
bitwise_or = binary_ufunc("bitwise_or", lax.bitwise_or)
bitwise_xor = binary_ufunc("bitwise_xor", lax.bitwise_xor)
bitwise_not = bitwise_invert = invert = unary_ufunc("bitwise_not", lax.bitwise_not)

equal = binary_ufunc("equal", lax.eq)
not_equal = binary_ufunc("not_equal", lax.ne)
less = binary_ufunc("less", lexicographic_compare(lax.lt))
less_equal = binary_ufunc("less_equal", lexicographic_compare(lax.le))
greater = binary_ufunc("greater", lexicographic_compare(lax.gt))
greater_equal = binary_ufunc("greater_equal", lexicographic_compare(lax.ge))


def where(
    condition: ArrayLike,
    x: ArrayLike | None = None,
    y: ArrayLike | None = None,
    /,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Array:
    """Choose, element by element, `x` where `condition` holds and `y` elsewhere.

    Without `x` and `y`, ask the method ``nonzero`` of arrays where `condition` holds.

    Args:
      condition: array of bools; numbers count as true where they are not 0.
      x, y: arrays, promoted to one dtype; all three are broadcast together.
      size, fill_value: of ``nonzero``.

    Reference: ``jax.numpy.where``.
    """
    if x is None and y is None:
        check_arraylike("where", condition)
        return as_array(condition).nonzero(size=size, fill_value=fill_value)
    check_arraylike("where", condition, x, y)
    _check_no_size(size, fill_value)
    check_dtypes("where", (x, y))
    condition, (x, y) = is_nonzero(condition), promote_dtypes(x, y)
    shapes = [typeof(each).shape for each in (condition, x, y)]
    larger = {*shapes} - {()}
    shape = larger.pop() if len(larger) == 1 else lax.broadcast_shapes(*shapes)
    if typeof(condition).ndim:
        condition = broadcast_to_shape(condition, shape)
    return lax.select(
        condition, broadcast_to_shape(x, shape), broadcast_to_shape(y, shape)
    )


def _check_no_size(size, fill_value):
    """Raise if a choice between two arrays is given what belongs to ``nonzero``."""
    if size is not None or fill_value is not None:
        raise ValueError(
            "size and fill_value arguments cannot be used in three-term where function."
        )


# From the function of an operator to what answers its calls.
operator_functions: dict = {}


def binary_operator(symbol, function, reflected=False):
    """Return the method behind an operator with two operands.

    It returns NotImplemented for an operand that is no array, and promises none by
    ``__jax_array__``, so that Python asks the operand; a Python container is refused,
    since it would never compare as an array. Classes of a user's that are derived from
    these containers, such as named tuples, may have operators of their own.
    """
    operator_functions[function] = function

    def operator(self, other):
        if type(other) is not type(self):
            if type(other) in (list, tuple, set, dict):
                raise TypeError(
                    f"unsupported operand types for {symbol}: an array and a "
                    f"{type(other).__name__}; make it an array with jnp.array."
                )
            other = promised(other)
            if not is_arraylike(other):
                return NotImplemented
        answer = operator_functions[function]
        try:
            return answer(other, self) if reflected else answer(self, other)
        except Exception as error:
            format_for_user(error)
            raise

    return operator


ARITHMETIC = {
    "add": ("+", add),
    "sub": ("-", subtract),
    "mul": ("*", multiply),
    "truediv": ("/", divide),
    "and": ("&", bitwise_and),
    "or": ("|", bitwise_or),
    "xor": ("^", bitwise_xor),
}

COMPARISON_OPERATORS = {
    "eq": ("==", equal),
    "ne": ("!=", not_equal),
    "lt": ("<", less),
    "le": ("<=", less_equal),
    "gt": (">", greater),
    "ge": (">=", greater_equal),
}


def register_operators(table, reflected=True):
    """Register the operators of a table from names to symbols and functions."""
    for name, (symbol, function) in table.items():
        tracer_methods[f"__{name}__"] = binary_operator(symbol, function)
        if reflected:
            method = binary_operator(symbol, function, reflected=True)
            tracer_methods[f"__r{name}__"] = method


register_operators(ARITHMETIC)
register_operators(COMPARISON_OPERATORS, reflected=False)
register_methods({"__neg__": negative, "__invert__": bitwise_not})
