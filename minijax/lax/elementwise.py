"""Primitives that act on each element by itself, and the functions that bind them.

Reference: ``jax.lax``.
"""

# Made from chapters/02_arrays_rest.md by `make chapter`;
# edit the chapter, not this file.

import enum
import math

import numpy as np

from minijax.arrays.array import primitive_rules, shape_rules
from minijax.arrays.avals import typeof
from minijax.arrays.checks import (
    ANY,
    BITS,
    COMPARED,
    FLOAT,
    INEXACT,
    INT,
    NUMBER,
    ORDERED,
    REAL,
    all_weak,
    as_integer,
    broadcast_strictly,
    check_kind,
    check_same_dtype,
    to_bool,
    to_complex,
    to_real,
)
from minijax.arrays.complex_numbers import (
    angle,
    complex_number,
    exp_minus_one,
    log_one_plus,
    square_of,
)
from minijax.arrays.dtypes import kind_of
from minijax.arrays.numerics import (
    by_number,
    count_leading_zeros,
    count_ones,
    direction,
    divide,
    equal,
    integer_power,
    inverse_erf,
    inverse_root,
    log_gamma,
    next_number,
    not_equal,
    power,
    psi,
    reduced,
    remainder,
    round_to_integer,
    shift_down_arithmetic,
    shift_down_logical,
    shift_up,
    sigmoid,
)
from minijax.core import Array, Primitive, impl_rules
from minijax.lax.factories import binary, elementwise, unary, unify
from minijax.typing import ArrayLike

add_any_p = elementwise("add_any", ANY, "add")


def add_any(x, y):
    """Elementwise sum of cotangents, of any dtype."""
    [result] = add_any_p.bind(x, y)
    return result


_sum_shape, _sum = shape_rules[add_any_p], impl_rules[add_any_p]


def _first_type(x, y):
    return [_sum_shape(x, y)[0].update(weak_type=x.weak_type)]


def _strong_in_front(x, y):
    return _sum(*sorted((x, y), key=lambda x: typeof(x).weak_type))


shape_rules.supersede(add_any_p, _sum_shape, _first_type)
impl_rules.supersede(add_any_p, _sum, _strong_in_front)


neg_p, neg = unary("neg", NUMBER, "negative")
exp_p, exp = unary("exp", INEXACT, "exp")
log_p, log = unary("log", INEXACT, "log")
sin_p, sin = unary("sin", INEXACT, "sin")
cos_p, cos = unary("cos", INEXACT, "cos")
eq_p, eq = binary("eq", COMPARED, equal, to_bool)
max_p, max = binary("max", ANY, "maximum")
div_p, div = binary("div", NUMBER, divide)
rem_p, rem = binary("rem", REAL, remainder)
min_p, min = binary("min", ANY, "minimum")
abs_p, abs = unary("abs", "ihfc", "abs", to_real)
sign_p, sign = unary("sign", NUMBER, direction)
square_p, square = unary("square", NUMBER, square_of)
floor_p, floor = unary("floor", FLOAT, "floor")
ceil_p, ceil = unary("ceil", FLOAT, "ceil")
is_finite_p, is_finite = unary("is_finite", FLOAT, "isfinite", to_bool)
nextafter_p, _nextafter = binary("nextafter", FLOAT, next_number)
ne_p, ne = binary("ne", COMPARED, not_equal, to_bool)
le_p, le = binary("le", ORDERED, "less_equal", to_bool)
gt_p, gt = binary("gt", ORDERED, "greater", to_bool)
ge_p, ge = binary("ge", ORDERED, "greater_equal", to_bool)
exp2_p, exp2 = unary("exp2", INEXACT, "exp2")
expm1_p, expm1 = unary("expm1", INEXACT, exp_minus_one)
log1p_p, log1p = unary("log1p", INEXACT, log_one_plus)
sqrt_p, sqrt = unary("sqrt", INEXACT, "sqrt")
rsqrt_p, rsqrt = unary("rsqrt", INEXACT, inverse_root)
cbrt_p, cbrt = unary("cbrt", FLOAT, "cbrt")
tan_p, tan = unary("tan", INEXACT, "tan")
asin_p, asin = unary("asin", INEXACT, "arcsin")
acos_p, acos = unary("acos", INEXACT, "arccos")
atan_p, atan = unary("atan", INEXACT, "arctan")
atan2_p, atan2 = binary("atan2", INEXACT, angle)
sinh_p, sinh = unary("sinh", INEXACT, "sinh")
cosh_p, cosh = unary("cosh", INEXACT, "cosh")
asinh_p, asinh = unary("asinh", INEXACT, "arcsinh")
acosh_p, acosh = unary("acosh", INEXACT, "arccosh")
atanh_p, atanh = unary("atanh", INEXACT, "arctanh")
logistic_p, logistic = unary("logistic", INEXACT, sigmoid)
erf_p, erf = unary("erf", FLOAT, by_number(math.erf))
erfc_p, erfc = unary("erfc", FLOAT, by_number(math.erfc))
erf_inv_p, erf_inv = unary("erf_inv", FLOAT, by_number(inverse_erf))
lgamma_p, lgamma = unary("lgamma", FLOAT, by_number(log_gamma))
digamma_p, digamma = unary("digamma", FLOAT, by_number(psi))


real_p, real = unary("real", "c", "real", to_real)
imag_p, imag = unary("imag", "c", "imag", to_real)
conj_p, _conj = unary("conj", "c", "conj")
complex_p, complex = binary("complex", "f", complex_number, to_complex)

not_p, bitwise_not = unary("not", BITS, "invert")
and_p, bitwise_and = binary("and", BITS, "bitwise_and")
or_p, bitwise_or = binary("or", BITS, "bitwise_or")
xor_p, bitwise_xor = binary("xor", BITS, "bitwise_xor")
shift_left_p, shift_left = binary("shift_left", INT, shift_up)
shift_right_logical_p, shift_right_logical = binary(
    "shift_right_logical", INT, shift_down_logical
)
shift_right_arithmetic_p, shift_right_arithmetic = binary(
    "shift_right_arithmetic", INT, shift_down_arithmetic
)
population_count_p, population_count = unary("population_count", INT, count_ones)
clz_p, clz = unary("clz", INT, count_leading_zeros)


def _with_parameters(primitive, *names):
    """Return an elementwise primitive, which from now on takes these parameters."""
    of_operands = shape_rules[primitive]

    def rule(*avals, **params):
        if params.keys() != {*names}:
            has, given = ", ".join(names), ", ".join(params) or "none"
            raise TypeError(f"{primitive} has {has}; it was given {given}.")
        return of_operands(*avals)

    shape_rules.supersede(primitive, of_operands, rule)
    return primitive


integer_pow_p = _with_parameters(elementwise("integer_pow", NUMBER, integer_power), "y")
round_p = _with_parameters(
    elementwise("round", FLOAT, round_to_integer), "rounding_method"
)
reduce_precision_p = _with_parameters(
    elementwise("reduce_precision", FLOAT, reduced), "exponent_bits", "mantissa_bits"
)


def integer_pow(x: ArrayLike, y: int) -> Array:
    """Elementwise power with one fixed integer exponent.

    Args:
      x: numbers.
      y: a Python int; not negative if `x` holds integers.

    Reference: ``jax.lax.integer_pow``.
    """
    aval, y = typeof(x), as_integer(y, "the exponent of integer_pow")
    if y < 0 and kind_of(aval.dtype) in INT:
        raise TypeError(
            f"Integers cannot be raised to negative powers, got {aval} and power {y}."
        )
    [result] = integer_pow_p.bind(x, y=y)
    return result


class RoundingMethod(enum.IntEnum):
    """Where `round` sends halves.

    Reference: ``jax.lax.RoundingMethod``.
    """

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


def round(
    x: ArrayLike,
    rounding_method: RoundingMethod | int = RoundingMethod.AWAY_FROM_ZERO,
) -> Array:
    """Elementwise nearest integer.

    Args:
      x: floats.
      rounding_method: a `RoundingMethod`, or its number.

    Reference: ``jax.lax.round``.
    """
    [result] = round_p.bind(x, rounding_method=int(RoundingMethod(rounding_method)))
    return result


def reduce_precision(
    operand: ArrayLike, exponent_bits: int, mantissa_bits: int
) -> Array:
    """Elementwise rounding to a float with fewer bits.

    Raises:
      ValueError: if there is no bit of an exponent, or less than none of the others, or
        2**31 of them.

    Reference: ``jax.lax.reduce_precision``.
    """
    exponent = as_integer(exponent_bits, "exponent_bits of reduce_precision")
    mantissa = as_integer(mantissa_bits, "mantissa_bits of reduce_precision")
    if not (1 <= exponent < 2**31 and 0 <= mantissa < 2**31):
        raise ValueError(
            "reduce_precision needs exponent_bits of 1 or more, and mantissa_bits of "
            f"0 or more, and fewer than 2**31 of both; got {exponent} and {mantissa}."
        )
    [result] = reduce_precision_p.bind(
        operand, exponent_bits=exponent, mantissa_bits=mantissa
    )
    return result


def nextafter(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Elementwise next float after `x1` on the way to `x2`.

    Reference: ``jax.lax.nextafter``.
    """
    return _nextafter(x1, x2)


def conj(x: ArrayLike) -> Array:
    """Elementwise complex conjugate; a real `x` becomes complex.

    Reference: ``jax.lax.conj``.
    """
    aval = typeof(x)
    return _conj(x) if aval.dtype.kind == "c" else complex(x, np.zeros((), aval.dtype))


def reciprocal(x: ArrayLike) -> Array:
    """Elementwise 1 / `x`.

    Reference: ``jax.lax.reciprocal``.
    """
    return integer_pow(x, -1)


pow_p = Primitive("pow")


def _pow_shape(x, y):
    check_kind("pow", INEXACT, [x])
    if kind_of(y.dtype) not in INT:
        check_same_dtype("pow", [x, y])
    shape = broadcast_strictly("pow", [x.shape, y.shape])
    return [x.update(shape=shape, weak_type=all_weak([x, y]))]


primitive_rules(pow_p, _pow_shape, power)


def pow(x: ArrayLike, y: ArrayLike) -> Array:
    """Elementwise power.

    Args:
      x: floats or complex numbers.
      y: exponents, of the dtype of `x` or of an integer one.

    Reference: ``jax.lax.pow``.
    """
    [result] = pow_p.bind(*((x, y) if isinstance(y, int) else unify(x, y)))
    return result
