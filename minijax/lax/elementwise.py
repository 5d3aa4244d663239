"""Primitives that act on each element by itself, or choose among elements.

Reference: ``jax.lax``.
"""

# Made from chapters/02_arrays_rest.md by `make chapter`;
# edit the chapter, not this file.

import enum
import math

import numpy as np

from minijax.arrays.array import def_shape_and_impl, shape_rules, typeof
from minijax.arrays.dtypes import dtype_kind
from minijax.arrays.numerics import (
    ANY_KINDS,
    BITWISE_KINDS,
    COMPARABLE_KINDS,
    FLOAT_KINDS,
    INEXACT_KINDS,
    INT_KINDS,
    NUMBER_DTYPE_KINDS,
    ORDERED_KINDS,
    REAL_DTYPE_KINDS,
    all_weak,
    arg_of_point,
    bool_dtype_of,
    broadcast_shapes_same_rank,
    check_kind,
    check_same_dtype,
    clz_impl,
    comma_separated,
    complex_dtype_of,
    digamma_scalar,
    div_impl,
    elementwise_impl_of_scalar_function,
    eq_impl,
    erf_inv_scalar,
    expm1_impl,
    integer_power_impl,
    lgamma_scalar,
    log1p_impl,
    logistic_impl,
    make_complex,
    ne_impl,
    nextafter_impl,
    operator_index,
    population_count_impl,
    pow_impl,
    real_dtype_of,
    reduce_precision_impl,
    rem_impl,
    round_impl,
    rsqrt_impl,
    shift_left_impl,
    shift_right_arithmetic_impl,
    shift_right_logical_impl,
    sign_impl,
    square_impl,
)
from minijax.core import Array, Primitive, impl_rules
from minijax.lax.arithmetic import (
    def_binary,
    def_elementwise,
    def_unary,
    promote_python_scalars,
)
from minijax.typing import ArrayLike

# Primitives that act on each element by itself, and the functions that bind them.

add_any_p = def_elementwise("add_any", ANY_KINDS, "add")


def add_any(x, y):
    """Elementwise sum of cotangents, of any dtype."""
    return add_any_p.bind(x, y)


_sum_shape, _sum = shape_rules[add_any_p], impl_rules[add_any_p]


def _first_type(x, y):
    return [_sum_shape(x, y)[0].update(weak_type=x.weak_type)]


def _strong_in_front(x, y):
    return _sum(*sorted((x, y), key=lambda x: typeof(x).weak_type))


shape_rules.supersede(add_any_p, _sum_shape, _first_type)
impl_rules.supersede(add_any_p, _sum, _strong_in_front)


neg_p, neg = def_unary("neg", NUMBER_DTYPE_KINDS, "negative")
exp_p, exp = def_unary("exp", INEXACT_KINDS, "exp")
log_p, log = def_unary("log", INEXACT_KINDS, "log")
sin_p, sin = def_unary("sin", INEXACT_KINDS, "sin")
cos_p, cos = def_unary("cos", INEXACT_KINDS, "cos")
eq_p, eq = def_binary("eq", COMPARABLE_KINDS, eq_impl, bool_dtype_of)
max_p, max = def_binary("max", ANY_KINDS, "maximum")
div_p, div = def_binary("div", NUMBER_DTYPE_KINDS, div_impl)
rem_p, rem = def_binary("rem", REAL_DTYPE_KINDS, rem_impl)
min_p, min = def_binary("min", ANY_KINDS, "minimum")
abs_p, abs = def_unary("abs", "ihfc", "abs", real_dtype_of)
sign_p, sign = def_unary("sign", NUMBER_DTYPE_KINDS, sign_impl)
square_p, square = def_unary("square", NUMBER_DTYPE_KINDS, square_impl)
floor_p, floor = def_unary("floor", FLOAT_KINDS, "floor")
ceil_p, ceil = def_unary("ceil", FLOAT_KINDS, "ceil")
is_finite_p, is_finite = def_unary("is_finite", FLOAT_KINDS, "isfinite", bool_dtype_of)
nextafter_p, _nextafter = def_binary("nextafter", FLOAT_KINDS, nextafter_impl)
ne_p, ne = def_binary("ne", COMPARABLE_KINDS, ne_impl, bool_dtype_of)
le_p, le = def_binary("le", ORDERED_KINDS, "less_equal", bool_dtype_of)
gt_p, gt = def_binary("gt", ORDERED_KINDS, "greater", bool_dtype_of)
ge_p, ge = def_binary("ge", ORDERED_KINDS, "greater_equal", bool_dtype_of)
exp2_p, exp2 = def_unary("exp2", INEXACT_KINDS, "exp2")
expm1_p, expm1 = def_unary("expm1", INEXACT_KINDS, expm1_impl)
log1p_p, log1p = def_unary("log1p", INEXACT_KINDS, log1p_impl)
sqrt_p, sqrt = def_unary("sqrt", INEXACT_KINDS, "sqrt")
rsqrt_p, rsqrt = def_unary("rsqrt", INEXACT_KINDS, rsqrt_impl)
cbrt_p, cbrt = def_unary("cbrt", FLOAT_KINDS, "cbrt")
tan_p, tan = def_unary("tan", INEXACT_KINDS, "tan")
asin_p, asin = def_unary("asin", INEXACT_KINDS, "arcsin")
acos_p, acos = def_unary("acos", INEXACT_KINDS, "arccos")
atan_p, atan = def_unary("atan", INEXACT_KINDS, "arctan")
atan2_p, atan2 = def_binary("atan2", INEXACT_KINDS, arg_of_point)
sinh_p, sinh = def_unary("sinh", INEXACT_KINDS, "sinh")
cosh_p, cosh = def_unary("cosh", INEXACT_KINDS, "cosh")
asinh_p, asinh = def_unary("asinh", INEXACT_KINDS, "arcsinh")
acosh_p, acosh = def_unary("acosh", INEXACT_KINDS, "arccosh")
atanh_p, atanh = def_unary("atanh", INEXACT_KINDS, "arctanh")
logistic_p, logistic = def_unary("logistic", INEXACT_KINDS, logistic_impl)
erf_p, erf = def_unary(
    "erf", FLOAT_KINDS, elementwise_impl_of_scalar_function(math.erf)
)
erfc_p, erfc = def_unary(
    "erfc", FLOAT_KINDS, elementwise_impl_of_scalar_function(math.erfc)
)
erf_inv_p, erf_inv = def_unary(
    "erf_inv", FLOAT_KINDS, elementwise_impl_of_scalar_function(erf_inv_scalar)
)
lgamma_p, lgamma = def_unary(
    "lgamma", FLOAT_KINDS, elementwise_impl_of_scalar_function(lgamma_scalar)
)
digamma_p, digamma = def_unary(
    "digamma", FLOAT_KINDS, elementwise_impl_of_scalar_function(digamma_scalar)
)


real_p, real = def_unary("real", "c", "real", real_dtype_of)
imag_p, imag = def_unary("imag", "c", "imag", real_dtype_of)
conj_p, _conj = def_unary("conj", "c", "conj")
complex_p, complex = def_binary("complex", "f", make_complex, complex_dtype_of)

not_p, bitwise_not = def_unary("not", BITWISE_KINDS, "invert")
and_p, bitwise_and = def_binary("and", BITWISE_KINDS, "bitwise_and")
or_p, bitwise_or = def_binary("or", BITWISE_KINDS, "bitwise_or")
xor_p, bitwise_xor = def_binary("xor", BITWISE_KINDS, "bitwise_xor")
shift_left_p, shift_left = def_binary("shift_left", INT_KINDS, shift_left_impl)
shift_right_logical_p, shift_right_logical = def_binary(
    "shift_right_logical", INT_KINDS, shift_right_logical_impl
)
shift_right_arithmetic_p, shift_right_arithmetic = def_binary(
    "shift_right_arithmetic", INT_KINDS, shift_right_arithmetic_impl
)
population_count_p, population_count = def_unary(
    "population_count", INT_KINDS, population_count_impl
)
clz_p, clz = def_unary("clz", INT_KINDS, clz_impl)


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


integer_pow_p = _with_parameters(
    def_elementwise("integer_pow", NUMBER_DTYPE_KINDS, integer_power_impl), "y"
)
round_p = _with_parameters(
    def_elementwise("round", FLOAT_KINDS, round_impl), "rounding_method"
)
reduce_precision_p = _with_parameters(
    def_elementwise("reduce_precision", FLOAT_KINDS, reduce_precision_impl),
    "exponent_bits",
    "mantissa_bits",
)


def integer_pow(x: ArrayLike, y: int) -> Array:
    """Elementwise power with one fixed integer exponent.

    Args:
      x: numbers.
      y: a Python int; not negative if `x` holds integers.

    Reference: ``jax.lax.integer_pow``.
    """
    aval, y = typeof(x), operator_index(y, "the exponent of integer_pow")
    if y < 0 and dtype_kind(aval.dtype) in INT_KINDS:
        raise TypeError(
            f"Integers cannot be raised to negative powers, got {aval} and power {y}."
        )
    return integer_pow_p.bind(x, y=y)


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
    return round_p.bind(x, rounding_method=int(RoundingMethod(rounding_method)))


def reduce_precision(
    operand: ArrayLike, exponent_bits: int, mantissa_bits: int
) -> Array:
    """Elementwise rounding to a float with fewer bits.

    Raises:
      ValueError: if there is no bit of an exponent, or less than none of the others, or
        2**31 of them.

    Reference: ``jax.lax.reduce_precision``.
    """
    exponent = operator_index(exponent_bits, "exponent_bits of reduce_precision")
    mantissa = operator_index(mantissa_bits, "mantissa_bits of reduce_precision")
    if not (1 <= exponent < 2**31 and 0 <= mantissa < 2**31):
        raise ValueError(
            "reduce_precision needs exponent_bits of 1 or more, and mantissa_bits of "
            f"0 or more, and fewer than 2**31 of both; got {exponent} and {mantissa}."
        )
    return reduce_precision_p.bind(
        operand, exponent_bits=exponent, mantissa_bits=mantissa
    )


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
    if dtype_kind(aval.dtype) == "c":
        return _conj(x)
    return complex(x, np.zeros((), aval.dtype))


def reciprocal(x: ArrayLike) -> Array:
    """Elementwise 1 / `x`.

    Reference: ``jax.lax.reciprocal``.
    """
    return integer_pow(x, -1)


pow_p = Primitive("pow")


def _pow_shape(x, y):
    check_kind("pow", INEXACT_KINDS, [x])
    if dtype_kind(y.dtype) not in INT_KINDS:
        check_same_dtype("pow", [x, y])
    shape = broadcast_shapes_same_rank("pow", [x.shape, y.shape])
    return [x.update(shape=shape, weak_type=all_weak([x, y]))]


def_shape_and_impl(pow_p, _pow_shape, pow_impl)


def pow(x: ArrayLike, y: ArrayLike) -> Array:
    """Elementwise power.

    Args:
      x: floats or complex numbers.
      y: exponents, of the dtype of `x` or of an integer one.

    Reference: ``jax.lax.pow``.
    """
    return pow_p.bind(
        *((x, y) if isinstance(y, int) else promote_python_scalars(x, y))
    )


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
            f"got {comma_separated(case.shape for case in cases)} and {which.shape}."
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


def_shape_and_impl(select_n_p, _select_shape, _select)


def select_n(which: ArrayLike, *cases: ArrayLike) -> Array:
    """Choose elements among arrays.

    Args:
      which: bools or integers, of the shape of the cases or a scalar.
      *cases: arrays of one shape and dtype. An element of `which` that is out of
        range chooses the first case or the last.

    Reference: ``jax.lax.select_n``.
    """
    return select_n_p.bind(which, *promote_python_scalars(*cases))


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


def_shape_and_impl(
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
    return clamp_p.bind(*promote_python_scalars(min, x, max))
