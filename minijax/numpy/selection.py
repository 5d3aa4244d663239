"""Choices between arrays, numbers between numbers, and bits.

Reference: ``jax.numpy.select``, ``jax.numpy.interp``, ``jax.numpy.packbits``.
"""

# Made from chapters/03_numpy_rest.md by `make chapter`;
# edit the chapter, not this file.

import builtins
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import lax
from minijax.arrays.interchange import promised
from minijax.arrays.numerics import dim_size_along, operator_index
from minijax.core import Array
from minijax.extend.promotion import promoting
from minijax.lax.reductions import (
    check_arraylike,
    promote_dtypes,
    promote_dtypes_inexact,
    promote_dtypes_numeric,
)
from minijax.numpy.array_creation import astype, full_like, ones, zeros
from minijax.numpy.array_methods import where
from minijax.numpy.index_tricks import _in_bounds
from minijax.numpy.joining import concatenate, pad, stack
from minijax.numpy.operands import array_kind, as_array
from minijax.numpy.ranges import arange
from minijax.numpy.reductions import _sum, argmax, cumsum
from minijax.numpy.shapes import (
    as_arraylike,
    broadcast_arrays,
    expand_dims,
    ravel,
    reshape,
    swapaxes,
)
from minijax.numpy.ufuncs import absolute, clip, copysign, mod, nextafter
from minijax.typing import ArrayLike


def select(
    condlist: Sequence[ArrayLike],
    choicelist: Sequence[ArrayLike],
    default: ArrayLike = 0,
) -> Array:
    """Return for each element the choice of the first condition that holds there.

    Args:
      condlist: arrays of booleans.
      choicelist: as many arrays.
      default: what to take where none holds.

    Reference: ``jax.numpy.select``.
    """
    if len(condlist) != len(choicelist):
        raise ValueError(
            "condlist must have length equal to choicelist "
            f"({len(condlist)} vs {len(choicelist)})"
        )
    if not len(condlist):
        raise ValueError("condlist must be non-empty")
    condlist, choicelist = ([*map(promised, each)] for each in (condlist, choicelist))
    default = promised(default)
    check_arraylike("select", *condlist, *choicelist, default)
    choices = promote_dtypes(*map(as_array, (default, *choicelist)))
    tests = stack(broadcast_arrays(False, *map(as_array, condlist)))
    which = argmax(astype(tests, bool), axis=0)
    return lax.select_n(*broadcast_arrays(which, *choices))


def choose(
    a: ArrayLike, choices: Sequence[ArrayLike], out: None = None, mode: str = "raise"
) -> Array:
    """Return for each element of `a`, a number, the element of that choice.

    Args:
      a: an array of integers.
      choices: arrays; all are broadcast to one shape.
      out: must be None.
      mode: what becomes of a number without a choice: an error with ``raise``, which
        needs known numbers; ``wrap`` or ``clip``.

    Reference: ``jax.numpy.choose``.
    """
    if out is not None:
        raise NotImplementedError("The 'out' argument to jnp.choose is not supported.")
    a, choices = promised(a), [promised(each) for each in choices]
    check_arraylike("choose", a, *choices)
    which, choices = as_array(a), promote_dtypes(*map(as_array, choices))
    if array_kind(which) not in "iu":
        raise ValueError("`a` array must be integer typed")
    which = _in_bounds("jnp.choose", which, len(choices), mode)
    which, *choices = broadcast_arrays(which, *choices)
    choices = [lax.convert_element_type(x, x.dtype) for x in choices]  # never weak
    return lax.select_n(astype(which, np.int32), *choices)


_WAYS_TO_COMPARE = "compare_all", "binary_search", "sort", "auto"


def isin(
    element: ArrayLike,
    test_elements: ArrayLike,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    method: str = "auto",
) -> Array:
    """Return for each element whether it is among others.

    Args:
      element: an array.
      test_elements: the others.
      assume_unique: makes no difference here: each is compared with each.
      invert: whether to say where it is not.
      method: one of JAX's names; they differ in speed.

    Reference: ``jax.numpy.isin``.
    """
    element, test_elements = promised(element), promised(test_elements)
    check_arraylike("isin", element, test_elements)
    shape = np.shape(element)
    one, other = promote_dtypes(*map(as_array, (element, test_elements)))
    one, other = ravel(one), ravel(other)
    if not one.size or not other.size:
        return (ones if invert else zeros)(shape, bool)
    if method not in _WAYS_TO_COMPARE:
        raise ValueError(
            f"method={method!r} is not implemented; options are {_WAYS_TO_COMPARE}"
        )
    alike = expand_dims(one, 1) == expand_dims(other, 0)
    found = (~alike).all(-1) if invert else alike.any(-1)
    return reshape(found, shape)


@promoting
def interp(
    x: Any,
    xp: Any,
    fp: Any,
    left: Any | str | None = None,
    right: Any | str | None = None,
    period: Any | None = None,
) -> Array:
    """Return the values at `x` of the function with straight lines between points.

    Each element of `x` is compared with each point, which suits short tables.

    Args:
      x: an array.
      xp: the points, rising.
      fp: the values of the function there.
      left, right: the values below and above all points; by default those of the
        first and the last, and with ``"extrapolate"`` those of the lines there.
      period: a number after which the function begins again; the points, modulo the
        period, may be in any order then, and `left` and `right` are of no use.

    Reference: ``jax.numpy.interp``.
    """
    check_arraylike("interp", x, xp, fp)
    if np.shape(xp) != np.shape(fp) or np.ndim(xp) != 1:
        raise ValueError("xp and fp must be one-dimensional arrays of equal size")
    for name, each in (("left", left), ("right", right)):
        if isinstance(each, str) and each != "extrapolate":
            raise ValueError(
                f"the only valid string value of `{name}` is 'extrapolate', but got: "
                f"{each!r}"
            )
    x, xp = map(as_array, promote_dtypes_inexact(x, xp))
    [fp] = map(as_array, promote_dtypes_inexact(fp))
    if array_kind(x) == "c":
        raise ValueError("jnp.interp: complex x values not supported.")
    if period is not None:
        x, xp, fp = _one_period(x, xp, fp, period)
    found = _between(x, xp, fp)
    if not isinstance(left, str):
        found = where(x < xp[0], fp[0] if left is None else left, found)
    if not isinstance(right, str):
        found = where(x > xp[-1], fp[-1] if right is None else right, found)
    return found


def _one_period(x, xp, fp, period):
    """Return `x` modulo the period, and the points in order, with one more a side."""
    if np.ndim(period):
        raise ValueError(f"period must be a scalar; got {period}")
    period = absolute(period)
    x, xp = x % period, xp % period
    order = xp.argsort()
    xp, fp = xp[order], fp[order]
    xp = concatenate([xp[-1:] - period, xp, xp[:1] + period])
    return x, xp, concatenate([fp[-1:], fp, fp[:1]])


def _between(x, xp, fp):
    """Return the values on the lines, the first and the last one prolonged."""
    count = _sum(astype(xp <= expand_dims(x, -1), np.int32), -1)
    place = clip(count, 1, xp.size - 1)
    on = expand_dims(place - 1, -1) == arange(xp.size - 1)
    start, low = _picked(on, xp[:-1]), _picked(on, fp[:-1])
    width, rise = _picked(on, xp[1:]) - start, _picked(on, fp[1:]) - low
    jump = (absolute(width) <= np.spacing(np.finfo(xp.dtype).eps)) & (x == x)
    return where(jump, low, low + (x - start) / where(jump, 1, width) * rise)


def _picked(on, values):
    """Return the one of some values that is marked, for each row of marks."""
    return _sum(where(on, values, full_like(values, 0)), -1)


def unwrap(
    p: Any,
    discont: Any | None = None,
    axis: int = -1,
    period: Any = 2 * math.pi,
) -> Array:
    """Return angles without jumps: multiples of the period are added behind each.

    Args:
      p: the angles.
      discont: what is no jump: half a period, or more.
      axis: along which.
      period: the period.

    Reference: ``jax.numpy.unwrap``.
    """
    check_arraylike("unwrap", p, period)
    p, period = map(as_array, promote_dtypes(p, period))
    if array_kind(p) == "c":
        raise ValueError("jnp.unwrap does not support complex inputs.")
    if not dim_size_along(p, axis):
        return p
    half = period // 2 if array_kind(p) in "iu" else period / 2
    discont = period / 2 if discont is None else discont
    first = lax.slice_in_dim(p, 0, 1, axis=axis)
    later = lax.slice_in_dim(p, 1, None, axis=axis)
    step = later - lax.slice_in_dim(p, 0, p.shape[axis] - 1, axis=axis)
    short = mod(step + half, period) - half
    short = where((short == -half) & (step > 0), half, short)
    correction = where(absolute(step) < discont, 0, short - step)
    later = later + cumsum(correction, axis=axis)
    return concatenate([astype(first, later.dtype), later], axis)


_BIT_ORDERS = "'order' must be either 'little' or 'big'"


def _weights_of_bits(bitorder):
    """Return the powers of two that the bits of a byte count for, in order."""
    if bitorder not in ("little", "big"):
        raise ValueError(_BIT_ORDERS)
    weights = np.uint8(1) << np.arange(8, dtype=np.uint8)
    return weights[::-1].copy() if bitorder == "big" else weights


def packbits(a: ArrayLike, axis: int | None = None, bitorder: str = "big") -> Array:
    """Return bytes, each of eight elements that are zero or not.

    Args:
      a: integers or booleans; the last byte is filled up with zeros.
      axis: along which; by default the array is written as one row first.
      bitorder: whether the first bit counts most, ``big``, or least, ``little``.

    Reference: ``jax.numpy.packbits``.
    """
    a = as_arraylike("packbits", a)
    if array_kind(a) not in "biu":
        raise TypeError("Expected an input array of integer or boolean data type")
    weights = _weights_of_bits(bitorder)
    a, axis = (ravel(a), 0) if axis is None else (a, axis)
    rows = swapaxes(a.astype(bool), axis, -1)
    rows = pad(rows, [(0, 0)] * (a.ndim - 1) + [(0, -rows.shape[-1] % 8)])
    rows = reshape(rows, (*rows.shape[:-1], rows.shape[-1] // 8, 8))
    packed = _sum(where(rows, weights, np.uint8(0)), -1, dtype=np.uint8)
    return swapaxes(packed, axis, -1)


def unpackbits(
    a: ArrayLike,
    axis: int | None = None,
    count: int | None = None,
    bitorder: str = "big",
) -> Array:
    """Return the bits of bytes, eight numbers that are 0 or 1 for each.

    Args:
      a: an array of uint8.
      axis: along which; by default the array is written as one row first.
      count: how many bits to return; zeros stand for those that are not there.
      bitorder: which bit comes first, as for `packbits`.

    Reference: ``jax.numpy.unpackbits``.
    """
    a = as_arraylike("unpackbits", a)
    if a.dtype != np.uint8:
        raise TypeError("Expected an input array of unsigned byte data type")
    weights = _weights_of_bits(bitorder)
    a, axis = (ravel(a), 0) if axis is None else (a, axis)
    rows = swapaxes(a, axis, -1)
    weights = weights.reshape((1,) * rows.ndim + (8,))
    bits = astype((expand_dims(rows, -1) & weights) != 0, np.uint8)
    bits = reshape(bits, (*rows.shape[:-1], 8 * rows.shape[-1]))
    if count is not None:
        count = operator_index(count, "count of unpackbits")
        missing = builtins.max(count - bits.shape[-1], 0)
        bits = pad(bits, [(0, 0)] * (bits.ndim - 1) + [(0, missing)])[..., :count]
    return swapaxes(bits, axis, -1)


def bitwise_count(x: ArrayLike, /) -> Array:
    """Return how many bits of the absolute values are 1.

    Reference: ``jax.numpy.bitwise_count``.
    """
    check_arraylike("bitwise_count", x)
    [x] = map(as_array, promote_dtypes_numeric(x))
    return astype(lax.population_count(absolute(x)), np.uint8)


def spacing(x: ArrayLike, /) -> Array:
    """Return the distance to the next float, away from zero.

    Reference: ``jax.numpy.spacing``.
    """
    check_arraylike("spacing", x)
    [x] = map(as_array, promote_dtypes_inexact(x))
    if array_kind(x) == "c":
        raise ValueError("jnp.spacing is not defined for complex inputs.")
    if x.dtype == np.float16:
        return nextafter(x, full_like(x, np.inf)) - x
    x = lax.convert_element_type(x, x.dtype)  # never weak
    return nextafter(x, copysign(full_like(x, np.inf), x)) - x
