"""Primitives that act on each element by itself, or choose among elements.

Reference: ``jax.lax``.
"""

# Made from chapters/02_arrays_rest.md by `make chapter`;
# edit the chapter, not this file.

import enum
import math

import numpy as np

from minijax.arrays.array import primitive_rules, shape_rules, typeof
from minijax.arrays.dtypes import kind_of
from minijax.arrays.numerics import (
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
    angle,
    as_integer,
    broadcast_strictly,
    by_number,
    check_kind,
    check_same_dtype,
    complex_number,
    count_leading_zeros,
    count_ones,
    direction,
    divide,
    equal,
    exp_minus_one,
    integer_power,
    inverse_erf,
    inverse_root,
    listing,
    log_gamma,
    log_one_plus,
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
    square_of,
    to_bool,
    to_complex,
    to_real,
)
from minijax.core import Array, Primitive, impl_rules
from minijax.lax.arithmetic import binary, elementwise, unary, unify
from minijax.typing import ArrayLike

# Primitives that act on each element by itself, and the functions that bind them.

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


# Selection: primitives that choose among elements.

select_n_p = Primitive("select_n")


def _select_shape(which, *cases):
    check_kind("select_n", "biu", [which])
    if not cases:
        raise ValueError("select_n takes at least one case.")
    check_same_dtype("select_n", cases)
    shapes = {case.shape for case in cases}
    if len(shapes) > 1 or which.shape not in ((), *shapes):
        raise TypeError(
            "select cases must have the same shapes, and `which` that shape or none: "
            f"got {listing(case.shape for case in cases)} and {which.shape}."
        )
    if which.dtype.kind == "b" and len(cases) > 2:
        raise TypeError(f"select with boolean `which` cannot have {len(cases)} cases.")
    return [cases[0].update(weak_type=all_weak(cases))]


def _select(xp, which, *cases):
    if len(cases) == 2 and which.dtype.kind == "b":
        return xp.where(which, cases[1], cases[0])
    result = cases[0]
    for place, case in enumerate(cases):
        result = xp.where(which >= place, case, result)
    return result


primitive_rules(select_n_p, _select_shape, _select)


def select_n(which: ArrayLike, *cases: ArrayLike) -> Array:
    """Choose elements among arrays.

    Args:
      which: bools or integers, of the shape of the cases or a scalar.
      *cases: arrays of one shape and dtype. An element of `which` that is out of
        range chooses the first case or the last.

    Reference: ``jax.lax.select_n``.
    """
    [result] = select_n_p.bind(which, *unify(*cases))
    return result


def select(pred: ArrayLike, on_true: ArrayLike, on_false: ArrayLike) -> Array:
    """Choose `on_true` where `pred` holds and `on_false` elsewhere; no broadcasting.

    Reference: ``jax.lax.select``.
    """
    return select_n(pred, on_false, on_true)


clamp_p = Primitive("clamp")


def _clamp_shape(low, x, high):
    check_same_dtype("clamp", [low, x, high])
    for name, bound in (("min", low), ("max", high)):
        if bound.shape not in ((), x.shape):
            raise TypeError(
                f"clamp requires {name}.shape == operand.shape or {name}.shape == (), "
                f"got {name}.shape={bound.shape}, operand.shape={x.shape}."
            )
    return [x.update(weak_type=all_weak([low, x, high]))]


primitive_rules(
    clamp_p,
    _clamp_shape,
    lambda xp, low, x, high: xp.minimum(xp.maximum(x, low), high),
)


def clamp(min: ArrayLike, x: ArrayLike, max: ArrayLike) -> Array:
    """Limit the elements of `x` to the interval from `min` to `max`.

    Args:
      min, max: bounds, of the shape of `x` or scalars.
      x: an array of the same dtype.

    Reference: ``jax.lax.clamp``.
    """
    [result] = clamp_p.bind(*unify(min, x, max))
    return result
