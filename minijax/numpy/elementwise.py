"""NumPy's universal functions, one after the other.

Reference: ``jax.numpy``.
"""

# Made from chapters/03_numpy_rest.md by `make chapter`;
# edit the chapter, not this file.

import numpy as np

from minijax import lax
from minijax.arrays.avals import typeof
from minijax.arrays.dtypes import canonicalize_dtype
from minijax.core import Array
from minijax.lax.conversion import astype as as_type
from minijax.lax.promotion import promote_dtypes_inexact, promote_dtypes_numeric
from minijax.numpy.ufuncs import binary, unary
from minijax.operators.operands import as_array, as_bool, by_kind, constant
from minijax.typing import ArrayLike


def _reciprocal(x):
    return lax.integer_pow(x, -1)


def part_by_part(function):
    """Return a function that does both parts of complex numbers, each by itself."""

    def parts(x, *args):
        return lax.complex(function(lax.real(x), *args), function(lax.imag(x), *args))

    return by_kind("c", parts, function)


def _over_log_2(x):
    return lax.div(x, lax.log(np.asarray(2, typeof(x).dtype)))


def _over_log_10(x):
    return lax.mul(x, np.asarray(1 / np.log(10), typeof(x).dtype))


def _log2(x):
    return part_by_part(_over_log_2)(lax.log(x))


def _log10(x):
    return part_by_part(_over_log_10)(lax.log(x))


def _scaled(factor):
    return lambda x: lax.mul(x, constant(x, factor))


def _as_float(x):
    return as_type(as_array(x), canonicalize_dtype(float))


def _to_even(x):
    return lax.round(x, 1)


def _toward_zero(x):
    return lax.select(lax.lt(x, constant(x, 0)), lax.ceil(x), lax.floor(x))


def logical(function):
    """Return `function`, which takes bools, as a function of all arrays."""
    return lambda *args: function(*map(as_bool, args))


def _zeros(x):
    return lax.full_like(x, 0)


def on_imag(compare):
    """Return a function that compares the imaginary part with zero."""

    def test(x):
        part = imag(x)
        return compare(part, constant(part, 0))

    return test


def on_parts(test, combine):
    """Return `test`, which takes floats, as a function of complex arrays too."""

    def on_complex(x):
        return combine(test(lax.real(x)), test(lax.imag(x)))

    return by_kind("c", on_complex, test)


def _infinite(x):
    return lax.eq(lax.abs(x), np.asarray(np.inf, typeof(x).dtype))


def _everywhere(value):
    return lambda x: lax.full(typeof(x).shape, np.bool_(value))


_isinf = on_parts(_infinite, lax.bitwise_or)
_isfinite = on_parts(lax.is_finite, lax.bitwise_and)


positive = unary("positive", as_array)
absolute = abs = unary("absolute", by_kind("bu", as_array, lax.abs))
sign = unary("sign", lax.sign)
square = unary("square", lax.square, promote_dtypes_numeric)
minimum = binary("minimum", lax.min)


exp2 = unary("exp2", lax.exp2, promote_dtypes_inexact)
expm1 = unary("expm1", lax.expm1, promote_dtypes_inexact)
log = unary("log", lax.log, promote_dtypes_inexact)
log1p = unary("log1p", lax.log1p, promote_dtypes_inexact)
sqrt = unary("sqrt", lax.sqrt, promote_dtypes_inexact)
cbrt = unary("cbrt", lax.cbrt, promote_dtypes_inexact)
sin = unary("sin", lax.sin, promote_dtypes_inexact)
cos = unary("cos", lax.cos, promote_dtypes_inexact)
tan = unary("tan", lax.tan, promote_dtypes_inexact)
arcsin = asin = unary("arcsin", lax.asin, promote_dtypes_inexact)
arccos = acos = unary("arccos", lax.acos, promote_dtypes_inexact)
arctan = atan = unary("arctan", lax.atan, promote_dtypes_inexact)
arctan2 = atan2 = binary("arctan2", lax.atan2, promote_dtypes_inexact)
sinh = unary("sinh", lax.sinh, promote_dtypes_inexact)
cosh = unary("cosh", lax.cosh, promote_dtypes_inexact)
arcsinh = asinh = unary("arcsinh", lax.asinh, promote_dtypes_inexact)
arccosh = acosh = unary("arccosh", lax.acosh, promote_dtypes_inexact)
arctanh = atanh = unary("arctanh", lax.atanh, promote_dtypes_inexact)
nextafter = binary("nextafter", lax.nextafter, promote_dtypes_inexact)


reciprocal = unary("reciprocal", _reciprocal, promote_dtypes_inexact)
log2 = unary("log2", _log2, promote_dtypes_inexact)
log10 = unary("log10", _log10, promote_dtypes_inexact)
deg2rad = radians = unary("deg2rad", _scaled(np.pi / 180), promote_dtypes_inexact)
rad2deg = degrees = unary("rad2deg", _scaled(180 / np.pi), promote_dtypes_inexact)


floor = unary("floor", by_kind("biu", as_array, lax.floor))
ceil = unary("ceil", by_kind("biu", as_array, lax.ceil))
rint = unary("rint", by_kind("biu", _as_float, part_by_part(_to_even)))
_trunc = unary("trunc", by_kind("biu", as_array, _toward_zero))


logical_and = binary("logical_and", logical(lax.bitwise_and))
logical_or = binary("logical_or", logical(lax.bitwise_or))
logical_xor = binary("logical_xor", logical(lax.bitwise_xor))
logical_not = unary("logical_not", logical(lax.bitwise_not))
left_shift = binary("left_shift", lax.shift_left, promote_dtypes_numeric)
right_shift = binary(
    "right_shift",
    by_kind("u", lax.shift_right_logical, lax.shift_right_arithmetic),
    promote_dtypes_numeric,
)
bitwise_left_shift, bitwise_right_shift = left_shift, right_shift


real = unary("real", by_kind("c", lax.real, as_array))
imag = unary("imag", by_kind("c", lax.imag, _zeros))
conjugate = conj = unary("conjugate", by_kind("c", lax.conj, as_array))
_iscomplex = unary("iscomplex", on_imag(lax.ne))
_isreal = unary("isreal", on_imag(lax.eq))


isnan = unary("isnan", lambda x: lax.ne(x, x))
isinf = unary("isinf", by_kind("fc", _isinf, _everywhere(False)))
isfinite = unary("isfinite", by_kind("fc", _isfinite, _everywhere(True)))


def iscomplex(x: ArrayLike) -> Array:
    """Return where the imaginary part is not zero.

    Reference: ``jax.numpy.iscomplex``.
    """
    return _iscomplex(x)


def isreal(x: ArrayLike) -> Array:
    """Return where the imaginary part is zero.

    Reference: ``jax.numpy.isreal``.
    """
    return _isreal(x)


def trunc(x: ArrayLike) -> Array:
    """Round towards zero.

    Reference: ``jax.numpy.trunc``.
    """
    return _trunc(x)
