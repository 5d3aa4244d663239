"""Signs, mantissas and exponents of floats; NaN and infinity among them.

Reference: ``jax.numpy``.
"""

# Made from chapters/03_numpy_rest.md by `make chapter`;
# edit the chapter, not this file.

from typing import Any

import numpy as np

from minijax import lax
from minijax.arrays.avals import typeof
from minijax.arrays.dtypes import canonicalize_dtype
from minijax.core import Array
from minijax.lax.conversion import astype as as_type
from minijax.lax.promotion import (
    check_arraylike,
    promote_dtypes_inexact,
    promote_shapes,
)
from minijax.numpy.elementwise import isnan
from minijax.numpy.shapes import arraylike
from minijax.numpy.ufuncs import (
    binary,
    bitwise_or,
    greater,
    less,
    multiply,
    named,
    unary,
    where,
)
from minijax.operators.operands import as_array, by_kind, constant, kind
from minijax.switches.promotion import check_operands
from minijax.typing import ArrayLike

_FIELDS = {
    "float16": (5, 10), "bfloat16": (8, 7), "float32": (8, 23), "float64": (11, 52),
}  # fmt: skip


def _parts(x):
    """Return the integer dtype as wide as a float, and the bits of its fields."""
    dtype = typeof(x).dtype
    return np.dtype(f"int{8 * dtype.itemsize}"), *_FIELDS[dtype.name]


def _refuse_complex(name, x):
    if kind(x) == "c":
        raise TypeError(f"{name} does not support complex-valued inputs")


def _false(x):
    return lax.full_like(as_array(x), False, np.bool_)


def _sign_of_float(x):
    integers, *_ = _parts(x)
    bits = lax.bitcast_convert_type(as_array(x), integers)
    return lax.lt(bits, np.zeros((), integers))


def _no_sign(x):
    raise ValueError(f"jax.numpy.signbit is not well defined for {typeof(x).dtype}")


def _is_negative(x):
    return lax.lt(x, constant(x, 0))


_sign = by_kind("bu", _false, by_kind("i", _is_negative, _no_sign))
signbit = unary("signbit", by_kind("f", _sign_of_float, _sign))


def _copysign(x, y):
    _refuse_complex("copysign", x)
    size = lax.abs(x)
    return where(signbit(y), lax.neg(size), size)


copysign = binary("copysign", _copysign, promote_dtypes_inexact)


def _fabs(x):
    _refuse_complex("ufunc 'fabs'", x)
    return lax.abs(x)


fabs = unary("fabs", _fabs, promote_dtypes_inexact)
float_power = binary("float_power", lax.pow, promote_dtypes_inexact)


def _infinity(name, number):
    """Make the question where an array is one of the two infinities."""

    def question(x, /, out=None):
        x = arraylike(name, x)
        if out is not None:
            raise NotImplementedError(f"The 'out' argument to {name} is not supported.")
        if kind(x) == "c":
            raise ValueError(f"{name} is not well defined for complex types")
        found = lax.eq(x, constant(x, number)) if kind(x) == "f" else _false(x)
        return as_type(found, np.dtype(bool))

    return named(question, name)


isposinf, isneginf = _infinity("isposinf", np.inf), _infinity("isneginf", -np.inf)


def nan_to_num(
    x: ArrayLike,
    copy: bool = True,
    nan: ArrayLike = 0.0,
    posinf: ArrayLike | None = None,
    neginf: ArrayLike | None = None,
) -> Array:
    """Replace NaN by `nan`, and infinities by the largest floats or other numbers.

    Reference: ``jax.numpy.nan_to_num``.
    """
    check_arraylike("nan_to_num", x)
    if kind(x) == "c":
        parts = (lax.real(x), lax.imag(x))
        return lax.complex(*(nan_to_num(p, copy, nan, posinf, neginf) for p in parts))
    if kind(x) != "f":
        return as_array(x)
    largest = _largest(typeof(x).dtype)
    ends = {np.nan: nan, np.inf: posinf, -np.inf: neginf}
    for number, instead in ends.items():
        instead = np.copysign(largest, number) if instead is None else instead
        found = lax.ne(x, x) if number is np.nan else lax.eq(x, constant(x, number))
        x = where(found, as_type(instead, typeof(x).dtype), x)
    return as_array(x)


def _largest(dtype):
    """Return the largest float of a dtype: all bits of the fraction are ones."""
    exponent, fraction = _FIELDS[dtype.name]
    return (2 - 2.0**-fraction) * 2.0 ** (2 ** (exponent - 1) - 1)


def frexp(x: ArrayLike, /) -> tuple[Array, Array]:
    """Return a number of size 1/2 to 1, and the power of two that makes it `x`.

    Reference: ``jax.numpy.frexp``.
    """
    check_arraylike("frexp", x)
    _refuse_complex("frexp", x)
    [x] = map(as_array, promote_dtypes_inexact(x))
    integers, exponent, fraction = _parts(x)
    mask, bias = (1 << exponent) - 1, (1 << exponent - 1) - 1
    tiny = lax.lt(lax.abs(x), constant(x, 2.0 ** (1 - bias)))
    scaled = where(tiny, lax.mul(x, constant(x, float(1 << fraction))), x)
    bits = lax.bitcast_convert_type(scaled, integers)
    power = lax.bitwise_and(lax.shift_right_logical(bits, fraction), mask)
    shifts = map(integers.type, (bias + fraction - 1, bias - 1))
    power = lax.sub(power, where(tiny, *shifts))
    plain = lax.bitwise_and(lax.is_finite(x), lax.ne(x, constant(x, 0)))
    power = where(plain, as_type(power, np.dtype(np.int32)), np.int32(0))
    # The complement of an exponent is that of a power of two, and their product is
    # from 2 to 4. It is exact, and it is a product, which has a derivative.
    bits = lax.bitwise_and(lax.bitwise_not(bits), integers.type(mask << fraction))
    scale = where(plain, lax.bitcast_convert_type(bits, x.dtype), constant(x, 4))
    half = lax.mul(lax.mul(scaled, scale), constant(x, 0.25))
    return where(plain, half, x), power


def ldexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return ``x1 * 2**x2``, also where the power alone would overflow.

    Reference: ``jax.numpy.ldexp``.
    """
    check_arraylike("ldexp", x1, x2)
    if kind(x1) == "c" or kind(x2) in "fc":
        types = tuple(typeof(x).dtype for x in (x1, x2))
        raise ValueError(f"ldexp not supported for input types {types}")
    [x] = map(as_array, promote_dtypes_inexact(x1))
    integers, exponent, fraction = _parts(x)
    bias = (1 << exponent - 1) - 1
    rest, factors = as_type(x2, np.dtype(np.float32)), []
    for _ in range(3):  # a power of two of a normal exponent each
        part = lax.clamp(np.float32(1 - bias), rest, np.float32(bias - 1))
        rest = lax.sub(rest, part)
        bits = lax.add(as_type(part, integers), integers.type(bias))
        bits = lax.shift_left(bits, integers.type(fraction))
        factors.append(lax.bitcast_convert_type(bits, x.dtype))
    for factor in factors[::-1]:  # only the last one, the largest, has to round
        x = multiply(x, factor)
    return x


def modf(x: ArrayLike, /, out: Any = None) -> tuple[Array, Array]:
    """Return the part of `x` behind the point, and the part before it.

    Reference: ``jax.numpy.modf``.
    """
    check_arraylike("modf", x)
    if out is not None:
        raise NotImplementedError("The 'out' argument to jnp.modf is not supported.")
    [x] = map(as_array, promote_dtypes_inexact(x))
    whole = where(lax.ge(x, constant(x, 0)), lax.floor(x), lax.ceil(x))
    return lax.sub(x, whole), whole


def _heaviside(x, y):
    step = where(lax.gt(x, constant(x, 0)), constant(x, 1), where(lax.ne(x, x), x, y))
    return where(_is_negative(x), constant(x, 0), step)


heaviside = binary("heaviside", _heaviside, promote_dtypes_inexact)


def sinc(x: ArrayLike, /) -> Array:
    """Compute ``sin(πx) / (πx)``, and its limit and derivatives at 0.

    Reference: ``jax.numpy.sinc``.
    """
    check_arraylike("sinc", x)
    [x] = promote_dtypes_inexact(x)
    angle = lax.mul(constant(x, np.pi), x)
    small = lax.lt(lax.abs(angle), 0.25)
    square = lax.square(where(small, angle, constant(x, 0)))
    near = constant(x, 1)  # the Taylor series, since slopes of the quotient cancel
    for n in (10, 8, 6, 4, 2):
        step = lax.mul(square, constant(x, 1 / (n * (n + 1))))
        near = lax.sub(constant(x, 1), lax.mul(step, near))
    far = where(small, constant(x, 1), angle)
    return where(small, near, lax.div(lax.sin(far), far))


def logaddexp2(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Compute ``log2(2**x1 + 2**x2)`` without overflow.

    Reference: ``jax.numpy.logaddexp2``.
    """
    check_operands("logaddexp2", x1, x2)
    x, y = promote_shapes(*promote_dtypes_inexact(x1, x2))
    if kind(x) == "c":
        raise NotImplementedError("logaddexp2 is of real numbers here.")
    ordered = lax.ge(x, y)  # and not `max` and `abs`: equals have a slope as well
    large, small = where(ordered, x, y), where(ordered, y, x)
    gap = lax.sub(small, large)
    rest = lax.log1p(lax.exp2(gap))
    total = lax.add(large, lax.mul(constant(rest, 1 / np.log(2)), rest))
    return where(lax.ne(gap, gap), lax.add(x, y), total)


def fmin(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Return the smaller elements; where one is NaN, the other.

    Reference: ``jax.numpy.fmin``.
    """
    return where(bitwise_or(less(x1, x2), isnan(x2)), x1, x2)


def fmax(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Return the larger elements; where one is NaN, the other.

    Reference: ``jax.numpy.fmax``.
    """
    return where(bitwise_or(greater(x1, x2), isnan(x2)), x1, x2)


def angle(z: ArrayLike, deg: bool = False) -> Array:
    """Return the angle of complex numbers, in radians or degrees.

    Reference: ``jax.numpy.angle``.
    """
    check_arraylike("angle", z)
    z = as_array(z)
    [x] = promote_dtypes_inexact(lax.real(z) if kind(z) == "c" else z)
    if kind(z) in "iub" or (kind(z) != "c" and not z.ndim):  # as JAX
        x = as_type(x, canonicalize_dtype(float))
    y = lax.imag(z) if kind(z) == "c" else lax.full_like(as_array(x), 0)
    result = lax.atan2(y, x)
    return lax.mul(result, constant(result, 180 / np.pi)) if deg else result
