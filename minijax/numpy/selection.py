"""Limits of elements, and comparisons of whole arrays.

Reference: ``jax.numpy``.
"""

# Made from chapters/03_numpy_rest.md by `make chapter`;
# edit the chapter, not this file.

from typing import Any

from minijax import lax
from minijax.arrays.avals import typeof
from minijax.arrays.dtypes import EXTENDED
from minijax.core import Array
from minijax.lax.conversion import astype as as_type
from minijax.lax.promotion import (
    check_arraylike,
    promote_dtypes,
    promote_dtypes_inexact,
    promote_shapes,
)
from minijax.numpy.creation import asarray
from minijax.numpy.elementwise import isfinite, minimum
from minijax.numpy.shapes import broadcast_shapes
from minijax.numpy.ufuncs import equal, maximum, where
from minijax.operators.operands import as_array, constant, kind
from minijax.switches.promotion import check_operands
from minijax.typing import ArrayLike


def masked(a, mask, value):
    """Return `a` where `mask` holds or is None, and the number `value` elsewhere.

    Raises:
      ValueError: if `mask` is no array of bools.
    """
    if mask is None:
        return a
    check_arraylike("where", mask)
    if kind(mask) != "b":
        raise ValueError(
            f"where must be an array of bools, or None; got {typeof(mask)}. A "
            "comparison makes bools of numbers, as in where=x != 0."
        )
    return where(mask, a, constant(a, value))


def both_nan(a, b):
    """Return where `a` and `b` both are NaN."""
    return lax.bitwise_and(lax.ne(a, a), lax.ne(b, b))


def everywhere(condition):
    """Return whether `condition`, an array of bools, holds everywhere."""
    return lax.reduce_and(condition, range(condition.ndim))


def clip(arr: Any = None, /, min: Any = None, max: Any = None) -> Array:
    """Limit elements to the interval from `min` to `max`; None is no limit.

    Reference: ``jax.numpy.clip``.
    """
    check_arraylike("clip", arr, *(limit for limit in (min, max) if limit is not None))
    if "c" in {kind(each) for each in (arr, min, max) if each is not None}:
        raise ValueError("clip has no order to limit complex numbers by.")
    arr = arr if min is None else maximum(min, arr)
    return as_array(arr) if max is None else minimum(max, arr)


def isclose(
    a: ArrayLike,
    b: ArrayLike,
    rtol: ArrayLike = 1e-05,
    atol: ArrayLike = 1e-08,
    equal_nan: bool = False,
) -> Array:
    """Return where ``|a - b| <= atol + rtol * |b|``, or `a` and `b` are equal.

    Reference: ``jax.numpy.isclose``.
    """
    check_arraylike("isclose", a, b, rtol, atol)
    check_operands("isclose", a, b)
    if typeof(a).dtype in EXTENDED and typeof(b).dtype in EXTENDED:
        return equal(a, b)  # there is nothing between two keys
    operands = promote_shapes(*promote_dtypes_inexact(a, b))
    a, b = (as_type(each, typeof(each).dtype) for each in operands)
    distance, size = lax.abs(lax.sub(a, b)), lax.abs(b)
    limit = lax.add(constant(size, atol), lax.mul(constant(size, rtol), size))
    near = lax.bitwise_and(isfinite(b), lax.le(distance, limit))
    close = lax.bitwise_or(lax.eq(a, b), near)
    return lax.bitwise_or(close, both_nan(a, b)) if equal_nan else close


def allclose(
    a: ArrayLike,
    b: ArrayLike,
    rtol: ArrayLike = 1e-05,
    atol: ArrayLike = 1e-08,
    equal_nan: bool = False,
) -> Array:
    """Return whether `isclose` holds for all elements.

    Reference: ``jax.numpy.allclose``.
    """
    return everywhere(isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1: ArrayLike, a2: ArrayLike, equal_nan: bool = False) -> Array:
    """Return whether two arrays have one shape and the same elements.

    Reference: ``jax.numpy.array_equal``.
    """
    a1, a2 = asarray(a1), asarray(a2)
    same = a1.shape == a2.shape
    return _equal_elements(a1, a2, equal_nan) if same else as_array(False)


def array_equiv(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Return whether two arrays broadcast together and then have the same elements.

    Reference: ``jax.numpy.array_equiv``.
    """
    a1, a2 = asarray(a1), asarray(a2)
    try:
        broadcast_shapes(a1.shape, a2.shape)
    except ValueError:
        return as_array(False)
    return _equal_elements(a1, a2, False)


def _equal_elements(a, b, equal_nan):
    a, b = promote_shapes(*promote_dtypes(a, b))
    same = lax.eq(a, b)
    nans = equal_nan and kind(a) in "fc"
    return everywhere(lax.bitwise_or(same, both_nan(a, b)) if nans else same)
