"""Arithmetic that takes several primitives: powers, division with rest, rounding.

Reference: ``jax.numpy``.
"""

# Made from chapters/03_numpy_rest.md by `make chapter`;
# edit the chapter, not this file.

import operator
from typing import Any

import numpy as np

from minijax import lax
from minijax.arrays.avals import is_python_scalar, typeof
from minijax.arrays.checks import as_integer
from minijax.arrays.dtypes import canonicalize_dtype, name_of
from minijax.arrays.interchange import promised
from minijax.core import Array, Tracer
from minijax.lax.conversion import astype as as_type
from minijax.lax.promotion import (
    check_arraylike,
    common_type,
    promote_dtypes_inexact,
    promote_dtypes_numeric,
    promote_shapes,
)
from minijax.numpy.elementwise import part_by_part
from minijax.numpy.ufuncs import named, where
from minijax.operators.operands import as_array, by_kind, constant, kind
from minijax.switches.promotion import check_operands
from minijax.typing import ArrayLike


def _opposite(x, y):
    return lax.ne(lax.sign(x), lax.sign(y))


def _nonzero(x):
    return lax.ne(x, constant(x, 0))


def _remainder_floats(x, y):
    rest = lax.rem(x, y)
    nonzero, negative = _nonzero(rest), lax.lt(rest, constant(rest, 0))
    opposite = lax.ne(negative, lax.lt(y, constant(y, 0)))
    wrong_sign = lax.bitwise_and(opposite, nonzero)
    return lax.select(wrong_sign, lax.add(rest, y), rest)


def _one_for_zero(y):
    return where(lax.eq(y, constant(y, 0)), constant(y, 1), y)


def _remainder_integers(x, y):
    return _remainder_floats(x, _one_for_zero(y))


def _floor_divide_integers(x, y):
    quotient = lax.div(x, y)
    if kind(x) == "u":
        return quotient
    too_large = lax.bitwise_and(_opposite(x, y), _nonzero(lax.rem(x, y)))
    return where(too_large, lax.sub(quotient, constant(x, 1)), quotient)


def _divmod_floats(x, y):
    rest = lax.rem(x, y)
    whole = where(lax.eq(y, constant(y, 0)), x, lax.sub(x, rest))
    quotient = lax.div(whole, y)
    too_large = lax.bitwise_and(_nonzero(rest), _opposite(y, rest))
    rest = lax.select(too_large, lax.add(rest, y), rest)
    quotient = lax.select(too_large, lax.sub(quotient, constant(y, 1)), quotient)
    return lax.round(quotient), rest


def _floor_divide_floats(x, y):
    return _divmod_floats(x, y)[0]


def _fmod_integers(x, y):
    return lax.rem(x, _one_for_zero(y))


def _divmod_integers(x, y):
    return _floor_divide_integers(x, y), _remainder_integers(x, y)


def division(name, on_integers, on_floats):
    """Make a NumPy function of a dividend and a divisor, real ones of one dtype."""

    def function(x1, x2, /):
        check_operands(name, x1, x2)
        x1, x2 = promote_shapes(*promote_dtypes_numeric(x1, x2))
        if kind(x1) == "c":
            raise TypeError(f"{name} does not support complex numbers.")
        return (on_floats if kind(x1) == "f" else on_integers)(x1, x2)

    return named(function, name)


floor_divmod = division("divmod", _divmod_integers, _divmod_floats)


floor_divide = division("floor_divide", _floor_divide_integers, _floor_divide_floats)
remainder = mod = division("remainder", _remainder_integers, _remainder_floats)
fmod = division("fmod", _fmod_integers, lax.rem)


divmod = floor_divmod


def power(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Raise `x1` to the power `x2`.

    An integer as `x2` whose value is known is part of the program: ``x ** 2``
    multiplies, and can be differentiated at 0. Other exponents go through the
    primitive ``pow``.

    Raises:
      TypeError: for a negative integer as the known exponent of integers.

    Reference: ``jax.numpy.power``.
    """
    x1, x2 = promised(x1), promised(x2)
    check_arraylike("power", x1, x2)
    exponent = _static_integer(x2)
    if exponent is not None:
        [x] = promote_dtypes_numeric(x1)
        return lax.integer_pow(x, exponent)
    check_operands("power", x1, x2)
    if common_type(x1, x2)[0].kind in "biu":
        return _power_of_integers(*promote_dtypes_numeric(x1, x2))
    base, exponent = promote_dtypes_inexact(x1, x2)
    if kind(x2) in "iu" and kind(x1) not in "iu":
        exponent = x2
    return lax.pow(*promote_shapes(base, exponent))


def _static_integer(x):
    """Return the integer that an exponent is, or None if it is none or not known."""
    if isinstance(x, Array):
        value = x.concrete() if isinstance(x, Tracer) else x
        known = value is not None and not np.ndim(value) and kind(value) in "iu"
        return int(value) if known else None
    if np.ndim(x):
        return None
    try:
        return operator.index(x)
    except TypeError:
        return None


def _power_of_integers(x, n):
    """Raise integers to integers by squaring; six bits hold all useful exponents."""
    x, n = promote_shapes(x, n)
    zero, one = np.zeros((), typeof(n).dtype), np.ones((), typeof(n).dtype)
    undefined = lax.bitwise_and(lax.eq(x, zero), lax.ne(n, zero))
    result = where(undefined, zero, one)
    for _ in range(6):
        result = where(lax.bitwise_and(n, one), lax.mul(result, x), result)
        x, n = lax.mul(x, x), lax.shift_right_logical(n, one)
    return result


pow = power


def logaddexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Compute ``log(exp(x1) + exp(x2))`` without overflow.

    Reference: ``jax.numpy.logaddexp``.
    """
    check_operands("logaddexp", x1, x2)
    x, y = promote_shapes(*promote_dtypes_inexact(x1, x2))
    real = lax.real if kind(x) == "c" else lambda x: x
    ordered = lax.ge(real(x), real(y))
    large, small = where(ordered, x, y), where(ordered, y, x)
    gap = lax.sub(small, large)
    endless = lax.bitwise_and(lax.eq(x, y), lax.ne(gap, gap))  # two equal infinities
    gap = lax.select(endless, lax.full_like(gap, 0), gap)
    total = _without_turns(lax.add(large, lax.log1p(lax.exp(gap))))
    return lax.select(endless, lax.add(x, y), total)


def _without_turns(x):
    if kind(x) != "c":
        return x
    angle, turn = lax.imag(x), 2 * np.pi
    turns = lax.round(lax.div(angle, turn), lax.RoundingMethod.TO_NEAREST_EVEN)
    return lax.complex(lax.real(x), lax.sub(angle, lax.mul(turns, turn)))


def hypot(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Compute ``sqrt(x1 ** 2 + x2 ** 2)`` without overflow.

    Reference: ``jax.numpy.hypot``.
    """
    check_operands("hypot", x1, x2)
    if "c" in (kind(x1), kind(x2)):
        raise ValueError("hypot is of real numbers; take abs of complex ones first.")
    x, y = promote_shapes(*promote_dtypes_inexact(x1, x2))
    if not all(is_python_scalar(part) or typeof(part).weak_type for part in (x1, x2)):
        x, y = (as_type(part, typeof(part).dtype) for part in (x, y))
    dtype = typeof(x).dtype
    if dtype.itemsize < 4:
        wide = np.dtype(np.float32)
        return as_type(_length(as_type(x, wide), as_type(y, wide)), dtype)
    return _length(x, y)


def _length(x, y):
    """Return the root of a sum of squares, which are scaled by a power of two.

    The scale is one of three constants, so that derivatives do not divide by squares.
    """
    sizes = lax.abs(x), lax.abs(y)
    large, size = lax.max(*sizes), canonicalize_dtype(typeof(x).dtype).itemsize
    end, down, up = _SCALES[size]
    one = constant(x, 1)
    scale, back = one, one
    for outside, power in (
        (lax.gt(large, constant(x, 2.0**end)), down),
        (lax.lt(large, constant(x, 2.0**-end)), up),
    ):
        scale = where(outside, constant(x, 2.0**power), scale)
        back = where(outside, constant(x, 2.0**-power), back)
    squares = [lax.square(lax.mul(part, scale)) for part in (x, y)]
    zero = lax.eq(large, constant(x, 0))  # where the root has no slope
    total = where(zero, one, lax.add(*squares))
    length = where(zero, large, lax.mul(lax.sqrt(total), back))  # NaN beside 0 is NaN
    infinite = lax.bitwise_or(*[lax.eq(size, constant(x, np.inf)) for size in sizes])
    return where(infinite, constant(x, np.inf), length)


_SCALES = {4: (60, -66, 90), 8: (500, -530, 590)}


def round(a: ArrayLike, decimals: int = 0, out: Any = None) -> Array:
    """Round to `decimals` places; halves go to the even neighbour.

    Reference: ``jax.numpy.round``.
    """
    check_arraylike("round", a)
    if out is not None:
        raise NotImplementedError("The 'out' argument to jnp.round is not supported.")
    a, decimals = as_array(a), as_integer(decimals, "the number of decimals")
    if kind(a) == "b":
        raise ValueError("round is of numbers, got bools; convert them with astype.")
    if kind(a) == "x":
        raise TypeError(f"round is of numbers, got {name_of(typeof(a).dtype)}.")
    if kind(a) in "iu" and decimals < 0:
        raise NotImplementedError("integers cannot be rounded to tens: decimals < 0")
    return part_by_part(by_kind("f", _round, _as_it_is))(a, decimals)


def _as_it_is(x, decimals):
    return x


def _round(x, decimals):
    dtype, weak_type = typeof(x).dtype, typeof(x).weak_type
    if decimals == 0:
        return lax.round(x, 1)
    like = dtype if dtype.kind == "f" else np.dtype(np.float32)  # bfloat16's range
    if decimals > np.log10(float(np.finfo(like).max)):
        return x  # there are no digits behind that place
    if dtype == np.float16:
        x = as_type(x, np.dtype(np.float32), weak_type)
    factor = constant(x, 10.0**decimals)
    rounded = lax.div(lax.round(lax.mul(x, factor), 1), factor)
    return as_type(rounded, dtype, weak_type)


around = round
