"""NumPy's universal functions: elementwise arithmetic, limits, parts of floats.

Reference: ``jax.numpy``.
"""

# Made from chapters/03_numpy_rest.md by `make chapter`;
# edit the chapter, not this file.

import operator
from typing import Any

import numpy as np

from minijax import lax
from minijax.arrays.array import is_python_scalar, typeof
from minijax.arrays.config import check_promotion_operands
from minijax.arrays.dtypes import (
    EXTENDED_DTYPES,
    canonicalize_dtype,
    dtype_kind,
    dtype_name,
)
from minijax.arrays.interchange import promised
from minijax.arrays.numerics import operator_index
from minijax.core import Array
from minijax.lax.arithmetic import astype as as_type
from minijax.lax.reductions import (
    check_arraylike,
    common_dtype_and_weak_type,
    promote_dtypes,
    promote_dtypes_inexact,
    promote_dtypes_numeric,
    promote_shapes,
)
from minijax.numpy.array_creation import asarray
from minijax.numpy.array_methods import (
    binary_ufunc,
    bitwise_or,
    equal,
    greater,
    less,
    maximum,
    multiply,
    unary_ufunc,
    where,
)
from minijax.numpy.operands import (
    array_kind,
    as_array,
    chooses_by_bools,
    concrete_scalar_or_none,
    dispatch_on_kind,
    is_nonzero,
    literal_like,
    with_name_and_doc,
)
from minijax.numpy.shapes import as_arraylike, broadcast_shapes
from minijax.typing import ArrayLike

# NumPy's universal functions, one after the other.


def _reciprocal(x):
    return lax.integer_pow(x, -1)


def apply_to_complex_parts(function):
    """Return a function that does both parts of complex numbers, each by itself."""

    def parts(x, *args):
        return lax.complex(function(lax.real(x), *args), function(lax.imag(x), *args))

    return dispatch_on_kind("c", parts, function)


def _over_log_2(x):
    return lax.div(x, lax.log(np.asarray(2, typeof(x).dtype)))


def _over_log_10(x):
    return lax.mul(x, np.asarray(1 / np.log(10), typeof(x).dtype))


def _log2(x):
    return apply_to_complex_parts(_over_log_2)(lax.log(x))


def _log10(x):
    return apply_to_complex_parts(_over_log_10)(lax.log(x))


def _scaled(factor):
    return lambda x: lax.mul(x, literal_like(x, factor))


def _as_float(x):
    return as_type(as_array(x), canonicalize_dtype(float))


def _to_even(x):
    return lax.round(x, 1)


def _toward_zero(x):
    return lax.select(lax.lt(x, literal_like(x, 0)), lax.ceil(x), lax.floor(x))


def logical(function):
    """Return `function`, which takes bools, as a function of all arrays."""
    return lambda *args: function(*map(is_nonzero, args))


def _zeros(x):
    return lax.full_like(x, 0)


def on_imag(compare):
    """Return a function that compares the imaginary part with zero."""

    def test(x):
        part = imag(x)
        return compare(part, literal_like(part, 0))

    return test


def on_parts(test, combine):
    """Return `test`, which takes floats, as a function of complex arrays too."""

    def on_complex(x):
        return combine(test(lax.real(x)), test(lax.imag(x)))

    return dispatch_on_kind("c", on_complex, test)


def _infinite(x):
    return lax.eq(lax.abs(x), np.asarray(np.inf, typeof(x).dtype))


def _everywhere(value):
    return lambda x: lax.full(typeof(x).shape, np.bool_(value))


_isinf = on_parts(_infinite, lax.bitwise_or)
_isfinite = on_parts(lax.is_finite, lax.bitwise_and)


positive = unary_ufunc("positive", as_array)
absolute = abs = unary_ufunc("absolute", dispatch_on_kind("bu", as_array, lax.abs))
sign = unary_ufunc("sign", lax.sign)
square = unary_ufunc("square", lax.square, promote_dtypes_numeric)
minimum = binary_ufunc("minimum", lax.min)


exp2 = unary_ufunc("exp2", lax.exp2, promote_dtypes_inexact)
expm1 = unary_ufunc("expm1", lax.expm1, promote_dtypes_inexact)
log = unary_ufunc("log", lax.log, promote_dtypes_inexact)
log1p = unary_ufunc("log1p", lax.log1p, promote_dtypes_inexact)
sqrt = unary_ufunc("sqrt", lax.sqrt, promote_dtypes_inexact)
cbrt = unary_ufunc("cbrt", lax.cbrt, promote_dtypes_inexact)
sin = unary_ufunc("sin", lax.sin, promote_dtypes_inexact)
cos = unary_ufunc("cos", lax.cos, promote_dtypes_inexact)
tan = unary_ufunc("tan", lax.tan, promote_dtypes_inexact)
arcsin = asin = unary_ufunc("arcsin", lax.asin, promote_dtypes_inexact)
arccos = acos = unary_ufunc("arccos", lax.acos, promote_dtypes_inexact)
arctan = atan = unary_ufunc("arctan", lax.atan, promote_dtypes_inexact)
arctan2 = atan2 = binary_ufunc("arctan2", lax.atan2, promote_dtypes_inexact)
sinh = unary_ufunc("sinh", lax.sinh, promote_dtypes_inexact)
cosh = unary_ufunc("cosh", lax.cosh, promote_dtypes_inexact)
arcsinh = asinh = unary_ufunc("arcsinh", lax.asinh, promote_dtypes_inexact)
arccosh = acosh = unary_ufunc("arccosh", lax.acosh, promote_dtypes_inexact)
arctanh = atanh = unary_ufunc("arctanh", lax.atanh, promote_dtypes_inexact)
nextafter = binary_ufunc("nextafter", lax.nextafter, promote_dtypes_inexact)


reciprocal = unary_ufunc("reciprocal", _reciprocal, promote_dtypes_inexact)
log2 = unary_ufunc("log2", _log2, promote_dtypes_inexact)
log10 = unary_ufunc("log10", _log10, promote_dtypes_inexact)
deg2rad = radians = unary_ufunc("deg2rad", _scaled(np.pi / 180), promote_dtypes_inexact)
rad2deg = degrees = unary_ufunc("rad2deg", _scaled(180 / np.pi), promote_dtypes_inexact)


floor = unary_ufunc("floor", dispatch_on_kind("biu", as_array, lax.floor))
ceil = unary_ufunc("ceil", dispatch_on_kind("biu", as_array, lax.ceil))
rint = unary_ufunc(
    "rint", dispatch_on_kind("biu", _as_float, apply_to_complex_parts(_to_even))
)
_trunc = unary_ufunc("trunc", dispatch_on_kind("biu", as_array, _toward_zero))


logical_and = binary_ufunc("logical_and", logical(lax.bitwise_and))
logical_or = binary_ufunc("logical_or", logical(lax.bitwise_or))
logical_xor = binary_ufunc("logical_xor", logical(lax.bitwise_xor))
logical_not = unary_ufunc("logical_not", logical(lax.bitwise_not))
left_shift = binary_ufunc("left_shift", lax.shift_left, promote_dtypes_numeric)
right_shift = binary_ufunc(
    "right_shift",
    dispatch_on_kind("u", lax.shift_right_logical, lax.shift_right_arithmetic),
    promote_dtypes_numeric,
)
bitwise_left_shift, bitwise_right_shift = left_shift, right_shift


real = unary_ufunc("real", dispatch_on_kind("c", lax.real, as_array))
imag = unary_ufunc("imag", dispatch_on_kind("c", lax.imag, _zeros))
conjugate = conj = unary_ufunc("conjugate", dispatch_on_kind("c", lax.conj, as_array))
_iscomplex = unary_ufunc("iscomplex", on_imag(lax.ne))
_isreal = unary_ufunc("isreal", on_imag(lax.eq))


isnan = unary_ufunc("isnan", lambda x: lax.ne(x, x))
isinf = unary_ufunc("isinf", dispatch_on_kind("fc", _isinf, _everywhere(False)))
isfinite = unary_ufunc("isfinite", dispatch_on_kind("fc", _isfinite, _everywhere(True)))


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


# Limits of elements, and comparisons of whole arrays.


def where_mask(a, mask, value):
    """Return `a` where `mask` holds or is None, and the number `value` elsewhere.

    Raises:
      ValueError: if `mask` is no array of bools.
    """
    if mask is None:
        return a
    check_arraylike("where", mask)
    if array_kind(mask) != "b":
        raise ValueError(
            f"where must be an array of bools, or None; got {typeof(mask)}. A "
            "comparison makes bools of numbers, as in where=x != 0."
        )
    return where(mask, a, literal_like(a, value))


def both_nan(a, b):
    """Return where `a` and `b` both are NaN."""
    return lax.bitwise_and(lax.ne(a, a), lax.ne(b, b))


def reduce_and_all(condition):
    """Return whether `condition`, an array of bools, holds everywhere."""
    return lax.reduce_and(condition, range(condition.ndim))


def clip(arr: Any = None, /, min: Any = None, max: Any = None) -> Array:
    """Limit elements to the interval from `min` to `max`; None is no limit.

    Reference: ``jax.numpy.clip``.
    """
    check_arraylike("clip", arr, *(limit for limit in (min, max) if limit is not None))
    if "c" in {array_kind(each) for each in (arr, min, max) if each is not None}:
        raise ValueError(
            "Clip received a complex value: the array, min or max. Complex values "
            "have no ordering and cannot be clipped."
        )
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
    check_promotion_operands("isclose", a, b)
    if typeof(a).dtype in EXTENDED_DTYPES and typeof(b).dtype in EXTENDED_DTYPES:
        return equal(a, b)  # there is nothing between two keys
    operands = promote_shapes(*promote_dtypes_inexact(a, b))
    a, b = (as_type(each, typeof(each).dtype) for each in operands)
    distance, size = lax.abs(lax.sub(a, b)), lax.abs(b)
    limit = lax.add(literal_like(size, atol), lax.mul(literal_like(size, rtol), size))
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
    return reduce_and_all(isclose(a, b, rtol, atol, equal_nan))


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
    nans = equal_nan and array_kind(a) in "fc"
    return reduce_and_all(lax.bitwise_or(same, both_nan(a, b)) if nans else same)


# Arithmetic that takes several primitives: powers, division with rest, rounding.


def _opposite(x, y):
    return lax.ne(lax.sign(x), lax.sign(y))


def _nonzero(x):
    return lax.ne(x, literal_like(x, 0))


def _remainder_floats(x, y):
    rest = lax.rem(x, y)
    nonzero, negative = _nonzero(rest), lax.lt(rest, literal_like(rest, 0))
    opposite = lax.ne(negative, lax.lt(y, literal_like(y, 0)))
    wrong_sign = lax.bitwise_and(opposite, nonzero)
    return lax.select(wrong_sign, lax.add(rest, y), rest)


def _one_for_zero(y):
    return where(lax.eq(y, literal_like(y, 0)), literal_like(y, 1), y)


def _remainder_integers(x, y):
    return _remainder_floats(x, _one_for_zero(y))


def _floor_divide_integers(x, y):
    quotient = lax.div(x, y)
    if array_kind(x) == "u":
        return quotient
    too_large = lax.bitwise_and(_opposite(x, y), _nonzero(lax.rem(x, y)))
    return where(too_large, lax.sub(quotient, literal_like(x, 1)), quotient)


def _divmod_floats(x, y):
    rest = lax.rem(x, y)
    whole = where(lax.eq(y, literal_like(y, 0)), x, lax.sub(x, rest))
    quotient = lax.div(whole, y)
    too_large = lax.bitwise_and(_nonzero(rest), _opposite(y, rest))
    rest = lax.select(too_large, lax.add(rest, y), rest)
    quotient = lax.select(too_large, lax.sub(quotient, literal_like(y, 1)), quotient)
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
        check_promotion_operands(name, x1, x2)
        x1, x2 = promote_shapes(*promote_dtypes_numeric(x1, x2))
        if array_kind(x1) == "c":
            raise TypeError(f"{name} does not support complex numbers.")
        return (on_floats if array_kind(x1) == "f" else on_integers)(x1, x2)

    return with_name_and_doc(function, name)


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
    check_promotion_operands("power", x1, x2)
    if dtype_kind(common_dtype_and_weak_type(x1, x2)[0]) in "biu":
        return _power_of_integers(*promote_dtypes_numeric(x1, x2))
    base, exponent = _promote_power(x1, x2)
    if array_kind(x2) in "iu" and array_kind(x1) not in "iu":
        exponent = x2
    return lax.pow(*promote_shapes(base, exponent))


def _promote_power(x1, x2):
    """Return both in their float dtype; bools that are the exponent become integers.

    The slope is the bool times a power. Of an integer it is 0 where that is 0, and in a
    program, which has floats here, the product is read as a choice.
    """
    base, exponent = promote_dtypes_inexact(x1, x2)
    if array_kind(base) == "f" and chooses_by_bools(base, x2):
        exponent = lax.convert_element_type(x2, np.int32)
    return base, exponent


def _static_integer(x):
    """Return the integer that an exponent is, or None if it is none or not known."""
    if isinstance(x, Array):
        known = concrete_scalar_or_none(x, "iu")
        return known if known is None else int(known)
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
    check_promotion_operands("logaddexp", x1, x2)
    x, y = promote_shapes(*promote_dtypes_inexact(x1, x2))
    real = lax.real if array_kind(x) == "c" else lambda x: x
    ordered = lax.ge(real(x), real(y))
    large, small = where(ordered, x, y), where(ordered, y, x)
    gap = lax.sub(small, large)
    endless = lax.bitwise_and(lax.eq(x, y), lax.ne(gap, gap))  # two equal infinities
    gap = lax.select(endless, lax.full_like(gap, 0), gap)
    total = _without_turns(lax.add(large, lax.log1p(lax.exp(gap))))
    return lax.select(endless, lax.add(x, y), total)


def _without_turns(x):
    if array_kind(x) != "c":
        return x
    angle, turn = lax.imag(x), 2 * np.pi
    turns = lax.round(lax.div(angle, turn), lax.RoundingMethod.TO_NEAREST_EVEN)
    return lax.complex(lax.real(x), lax.sub(angle, lax.mul(turns, turn)))


def hypot(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Compute ``sqrt(x1 ** 2 + x2 ** 2)`` without overflow.

    Reference: ``jax.numpy.hypot``.
    """
    check_promotion_operands("hypot", x1, x2)
    if "c" in (array_kind(x1), array_kind(x2)):
        raise ValueError(
            "jnp.hypot is not well defined for complex-valued inputs: take abs of them."
        )
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
    one = literal_like(x, 1)
    scale, back = one, one
    for outside, power in (
        (lax.gt(large, literal_like(x, 2.0**end)), down),
        (lax.lt(large, literal_like(x, 2.0**-end)), up),
    ):
        scale = where(outside, literal_like(x, 2.0**power), scale)
        back = where(outside, literal_like(x, 2.0**-power), back)
    squares = [lax.square(lax.mul(part, scale)) for part in (x, y)]
    zero = lax.eq(large, literal_like(x, 0))  # where the root has no slope
    total = where(zero, one, lax.add(*squares))
    length = where(zero, large, lax.mul(lax.sqrt(total), back))  # NaN beside 0 is NaN
    infinite = lax.bitwise_or(
        *[lax.eq(size, literal_like(x, np.inf)) for size in sizes]
    )
    return where(infinite, literal_like(x, np.inf), length)


_SCALES = {4: (60, -66, 90), 8: (500, -530, 590)}


def round(a: ArrayLike, decimals: int = 0, out: Any = None) -> Array:
    """Round to `decimals` places; halves go to the even neighbour.

    Reference: ``jax.numpy.round``.
    """
    check_arraylike("round", a)
    if out is not None:
        raise NotImplementedError("The 'out' argument to jnp.round is not supported.")
    a, decimals = as_array(a), operator_index(decimals, "the number of decimals")
    if array_kind(a) == "b":
        raise ValueError("round is of numbers, got bools; convert them with astype.")
    if array_kind(a) == "x":
        raise TypeError(f"round is of numbers, got {dtype_name(typeof(a).dtype)}.")
    if array_kind(a) in "iu" and decimals < 0:
        raise NotImplementedError("integers cannot be rounded to tens: decimals < 0")
    return apply_to_complex_parts(dispatch_on_kind("f", _round, _as_it_is))(a, decimals)


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
    factor = literal_like(x, 10.0**decimals)
    rounded = lax.div(lax.round(lax.mul(x, factor), 1), factor)
    return as_type(rounded, dtype, weak_type)


around = round


# Signs, mantissas and exponents of floats; NaN and infinity among them.

_FIELDS = {
    "float16": (5, 10), "bfloat16": (8, 7), "float32": (8, 23), "float64": (11, 52),
}  # fmt: skip


def _parts(x):
    """Return the integer dtype as wide as a float, and the bits of its fields."""
    dtype = typeof(x).dtype
    return np.dtype(f"int{8 * dtype.itemsize}"), *_FIELDS[dtype.name]


def _refuse_complex(name, x):
    if array_kind(x) == "c":
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
    return lax.lt(x, literal_like(x, 0))


_sign = dispatch_on_kind("bu", _false, dispatch_on_kind("i", _is_negative, _no_sign))
signbit = unary_ufunc("signbit", dispatch_on_kind("f", _sign_of_float, _sign))


def _copysign(x, y):
    _refuse_complex("copysign", x)
    size = lax.abs(x)
    return where(signbit(y), lax.neg(size), size)


copysign = binary_ufunc("copysign", _copysign, promote_dtypes_inexact)


def _fabs(x):
    _refuse_complex("ufunc 'fabs'", x)
    return lax.abs(x)


fabs = unary_ufunc("fabs", _fabs, promote_dtypes_inexact)
float_power = binary_ufunc("float_power", lax.pow, _promote_power)


def _infinity(name, number):
    """Make the question where an array is one of the two infinities."""

    def question(x, /, out=None):
        x = as_arraylike(name, x)
        if out is not None:
            raise NotImplementedError(f"The 'out' argument to {name} is not supported.")
        if array_kind(x) == "c":
            raise ValueError(f"{name} is not well defined for complex types")
        found = (
            lax.eq(x, literal_like(x, number)) if array_kind(x) == "f" else _false(x)
        )
        return as_type(found, np.dtype(bool))

    return with_name_and_doc(question, name)


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
    if array_kind(x) == "c":
        parts = (lax.real(x), lax.imag(x))
        return lax.complex(*(nan_to_num(p, copy, nan, posinf, neginf) for p in parts))
    if array_kind(x) != "f":
        return as_array(x)
    largest = _largest(typeof(x).dtype)
    ends = {np.nan: nan, np.inf: posinf, -np.inf: neginf}
    for number, instead in ends.items():
        instead = np.copysign(largest, number) if instead is None else instead
        found = lax.ne(x, x) if number is np.nan else lax.eq(x, literal_like(x, number))
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
    tiny = lax.lt(lax.abs(x), literal_like(x, 2.0 ** (1 - bias)))
    scaled = where(tiny, lax.mul(x, literal_like(x, float(1 << fraction))), x)
    bits = lax.bitcast_convert_type(scaled, integers)
    power = lax.bitwise_and(lax.shift_right_logical(bits, fraction), mask)
    shifts = map(integers.type, (bias + fraction - 1, bias - 1))
    power = lax.sub(power, where(tiny, *shifts))
    plain = lax.bitwise_and(lax.is_finite(x), lax.ne(x, literal_like(x, 0)))
    power = where(plain, as_type(power, np.dtype(np.int32)), np.int32(0))
    # The complement of an exponent is that of a power of two, and their product is
    # from 2 to 4. It is exact, and it is a product, which has a derivative.
    bits = lax.bitwise_and(lax.bitwise_not(bits), integers.type(mask << fraction))
    scale = where(plain, lax.bitcast_convert_type(bits, x.dtype), literal_like(x, 4))
    half = lax.mul(lax.mul(scaled, scale), literal_like(x, 0.25))
    return where(plain, half, x), power


def ldexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return ``x1 * 2**x2``, also where the power alone would overflow.

    Reference: ``jax.numpy.ldexp``.
    """
    check_arraylike("ldexp", x1, x2)
    if array_kind(x1) == "c" or array_kind(x2) in "fc":
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
    whole = where(lax.ge(x, literal_like(x, 0)), lax.floor(x), lax.ceil(x))
    return lax.sub(x, whole), whole


def _heaviside(x, y):
    step = where(
        lax.gt(x, literal_like(x, 0)), literal_like(x, 1), where(lax.ne(x, x), x, y)
    )
    return where(_is_negative(x), literal_like(x, 0), step)


heaviside = binary_ufunc("heaviside", _heaviside, promote_dtypes_inexact)


def sinc(x: ArrayLike, /) -> Array:
    """Compute ``sin(πx) / (πx)``, and its limit and derivatives at 0.

    Reference: ``jax.numpy.sinc``.
    """
    check_arraylike("sinc", x)
    [x] = promote_dtypes_inexact(x)
    angle = lax.mul(literal_like(x, np.pi), x)
    small = lax.lt(lax.abs(angle), 0.25)
    square = lax.square(where(small, angle, literal_like(x, 0)))
    near = literal_like(x, 1)  # the Taylor series, since slopes of the quotient cancel
    for n in (10, 8, 6, 4, 2):
        step = lax.mul(square, literal_like(x, 1 / (n * (n + 1))))
        near = lax.sub(literal_like(x, 1), lax.mul(step, near))
    far = where(small, literal_like(x, 1), angle)
    return where(small, near, lax.div(lax.sin(far), far))


def logaddexp2(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Compute ``log2(2**x1 + 2**x2)`` without overflow.

    Reference: ``jax.numpy.logaddexp2``.
    """
    check_promotion_operands("logaddexp2", x1, x2)
    x, y = promote_shapes(*promote_dtypes_inexact(x1, x2))
    if array_kind(x) == "c":
        two = literal_like(x, np.log(2))
        return lax.div(logaddexp(lax.mul(x, two), lax.mul(y, two)), two)
    ordered = lax.ge(x, y)  # and not `max` and `abs`: equals have a slope as well
    large, small = where(ordered, x, y), where(ordered, y, x)
    gap = lax.sub(small, large)
    rest = lax.log1p(lax.exp2(gap))
    total = lax.add(large, lax.mul(literal_like(rest, 1 / np.log(2)), rest))
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
    [x] = promote_dtypes_inexact(lax.real(z) if array_kind(z) == "c" else z)
    if array_kind(z) in "iub" or (array_kind(z) != "c" and not z.ndim):  # as JAX
        x = as_type(x, canonicalize_dtype(float))
    y = lax.imag(z) if array_kind(z) == "c" else lax.full_like(as_array(x), 0)
    result = lax.atan2(y, x)
    return lax.mul(result, literal_like(result, 180 / np.pi)) if deg else result
