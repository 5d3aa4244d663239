# Made from chapters/04_forward.md by `make chapter`;
# edit the chapter, not this file.
"""The jvp rules of the elementwise primitives, and of those that move and fold axes.

Reference: ``jax.interpreters.ad.primitive_jvps``.
"""

import math

import numpy as np

from minijax import lax
from minijax.arrays.avals import typeof
from minijax.arrays.dtypes import is_inexact
from minijax.forward.rules import (
    constant_rule,
    full_like,
    linear_rule,
    partials_rule,
    slope_rule,
    stretch,
    zeros_like_tangent,
)
from minijax.lax.conversion import astype
from minijax.lax.elementwise import add_any_p


def one_plus_square(x):
    """Return 1 + x²."""
    return lax.add(1.0, lax.square(x))


def one_minus_square(x):
    """Return 1 - x²."""
    return lax.sub(1.0, lax.square(x))


slopes = {
    lax.square_p: lambda y, x: lax.mul(2.0, x),
    lax.sqrt_p: lambda y, x: lax.div(0.5, y),
    lax.rsqrt_p: lambda y, x: lax.mul(-0.5, lax.div(y, x)),
    lax.cbrt_p: lambda y, x: lax.mul(1 / 3, lax.integer_pow(y, -2)),
    lax.exp_p: lambda y, x: y,
    lax.expm1_p: lambda y, x: lax.add(y, 1.0),
    lax.logistic_p: lambda y, x: lax.mul(y, lax.sub(1.0, y)),
    lax.sin_p: lambda y, x: lax.cos(x),
    lax.tan_p: lambda y, x: one_plus_square(y),
    lax.asin_p: lambda y, x: lax.rsqrt(one_minus_square(x)),
    lax.acos_p: lambda y, x: lax.neg(lax.rsqrt(one_minus_square(x))),
    lax.sinh_p: lambda y, x: lax.cosh(x),
    lax.cosh_p: lambda y, x: lax.sinh(x),
    lax.asinh_p: lambda y, x: lax.rsqrt(lax.add(lax.square(x), 1.0)),
    lax.acosh_p: lambda y, x: lax.rsqrt(lax.sub(lax.square(x), 1.0)),
    lax.lgamma_p: lambda y, x: lax.digamma(x),
}


# Slopes that are better not formed by themselves: t / x instead of t * (1 / x).
unary_partials = {
    lax.log_p: lambda t, y, x: lax.div(t, x),
    lax.log1p_p: lambda t, y, x: lax.div(t, lax.add(x, 1.0)),
    lax.atan_p: lambda t, y, x: lax.div(t, one_plus_square(x)),
    lax.cos_p: lambda t, y, x: lax.neg(lax.mul(t, lax.sin(x))),
    # t (1 + y) (1 - y), since 1 - y² loses digits where y is close to 1
    lax.tanh_p: lambda t, y, x: lax.mul(lax.add(t, lax.mul(t, y)), lax.sub(1.0, y)),
    lax.atanh_p: lambda t, y, x: lax.mul(
        lax.integer_pow(lax.add(1.0, x), -1), lax.div(t, lax.sub(1.0, x))
    ),
    lax.exp2_p: lambda t, y, x: lax.mul(
        lax.log(np.asarray(2, typeof(x).dtype)), lax.mul(t, y)
    ),
    lax.erf_p: lambda t, y, x: lax.mul(2 / math.sqrt(math.pi), bell(t, x)),
    lax.erfc_p: lambda t, y, x: lax.mul(-2 / math.sqrt(math.pi), bell(t, x)),
    lax.erf_inv_p: lambda t, y, x: lax.mul(
        math.sqrt(math.pi) / 2, lax.mul(t, lax.exp(lax.square(y)))
    ),
    lax.integer_pow_p: lambda t, z, x, y: integer_pow_partial(t, x, y),
    lax.abs_p: lambda t, y, x: abs_partial(t, y, x),
}


def bell(t, x):
    """Return t exp(-x²)."""
    return lax.mul(t, lax.exp(lax.neg(lax.square(x))))


def integer_pow_partial(t, x, y):
    """Return t y xʸ⁻¹ for a fixed integer y, without ever computing x⁻¹ for x⁰."""
    if y in (0, 1):
        return t if y else None
    return lax.mul(t, lax.mul(float(y), x if y == 2 else lax.integer_pow(x, y - 1)))


def abs_partial(t, y, x):
    """Return the rate of change of the absolute value y = |x|, real or complex."""
    if typeof(x).dtype.kind != "c":
        return lax.select(lax.ge(x, 0.0), t, lax.neg(t))
    conjugate = lax.conj(x)
    length = lax.convert_element_type(y, typeof(x).dtype)
    safe = lax.select(lax.eq(length, 0.0), full_like(length, 1), length)
    return lax.real(lax.mul(t, lax.div(conjugate, safe)))


partials = {
    lax.mul_p: (lambda t, z, x, y: lax.mul(t, y), lambda t, z, x, y: lax.mul(x, t)),
    lax.div_p: (
        lambda t, z, x, y: lax.div(t, y),
        lambda t, z, x, y: lax.mul(lax.mul(lax.neg(t), x), lax.integer_pow(y, -2)),
    ),
    lax.rem_p: (
        lambda t, z, x, y: stretch(t, z),
        lambda t, z, x, y: lax.mul(lax.neg(t), whole_quotient(x, y)),
    ),
    lax.atan2_p: (
        lambda t, z, x, y: lax.mul(t, lax.div(y, sum_of_squares(x, y))),
        lambda t, z, x, y: lax.mul(t, lax.div(lax.neg(x), sum_of_squares(x, y))),
    ),
    lax.pow_p: (
        lambda t, z, x, y: lax.mul(t, power_slope(x, y)),
        lambda t, z, x, y: lax.convert_element_type(
            lax.mul(t, lax.mul(lax.log(one_for_zero(x)), z)), typeof(y).dtype
        ),
    ),
    **dict.fromkeys(
        (lax.max_p, lax.min_p),
        (
            lambda t, z, x, y: lax.mul(t, winning_share(x, y, z)),
            lambda t, z, x, y: lax.mul(t, winning_share(y, x, z)),
        ),
    ),
    lax.clamp_p: (
        lambda t, z, low, x, high: where_both(lax.gt(low, x), lax.lt(low, high), t),
        lambda t, z, low, x, high: where_both(lax.gt(x, low), lax.lt(x, high), t),
        lambda t, z, low, x, high: masked(lax.lt(high, x), t),
    ),
}


def whole_quotient(x, y):
    """Return x / y without its fraction."""
    return lax.mul(lax.sign(lax.div(x, y)), lax.floor(lax.abs(lax.div(x, y))))


def sum_of_squares(x, y):
    """Return x² + y²."""
    return lax.add(lax.square(x), lax.square(y))


def one_for_zero(x):
    """Return x with its zeros replaced by ones."""
    return lax.select(lax.eq(x, 0.0), full_like(x, 1), x)


def power_slope(x, y):
    """Return y xʸ⁻¹; if y holds integers, then exactly zero where y is zero."""
    fraction = is_inexact(typeof(y).dtype)
    x, y = [astype(v, typeof(x).dtype) for v in (x, y)]
    if fraction:
        return lax.mul(y, lax.pow(x, lax.sub(y, full_like(y, 1))))
    zero, safe = lax.eq(y, 0.0), one_for_zero(y)
    slope = lax.mul(safe, lax.pow(x, lax.sub(safe, full_like(y, 1))))
    return lax.select(stretch(zero, slope), full_like(slope, 0), slope)


def winning_share(mine, other, best):
    """Return 1 where `mine` alone is the `best`, 1/2 where `other` is too, else 0."""
    won = lax.select(lax.eq(mine, best), full_like(best, 1), full_like(best, 0))
    tied = lax.eq(other, best)
    winners = lax.select(tied, full_like(best, 2), full_like(best, 1))
    return lax.div(won, winners)


def masked(mask, t):
    """Return `t`, stretched to the shape of `mask`, where `mask` holds, else 0."""
    t = stretch(t, mask)
    return lax.select(mask, t, full_like(t, 0))


def where_both(first, second, t):
    """Return `t` where two conditions hold, else 0."""
    return masked(lax.bitwise_and(first, second), t)


def sum_rule(primitive, second):
    """Return the rule of a sum or difference: with two tangents, one operation.

    Args:
      primitive: a primitive with two operands and no parameters.
      second: what happens to the second tangent if it is the only one.
    """

    def rule(primals, tangents):
        [result] = primitive.bind(*primals)
        x, y = tangents
        if x is not None and y is not None:
            return [result], primitive.bind(x, y)
        return [result], [stretch(second(y) if x is None else x, result)]

    return rule


def select_rule(primals, tangents):
    """Carry the tangents of the cases; the choice itself has none."""
    which, *cases = primals
    results = lax.select_n_p.bind(which, *cases)
    pairs = zip(cases, tangents[1:], strict=True)
    moves = [zeros_like_tangent(case) if t is None else t for case, t in pairs]
    return results, lax.select_n_p.bind(which, *moves)


linear = (
    *(lax.neg_p, lax.real_p, lax.imag_p, lax.conj_p, lax.complex_p),
    lax.reduce_precision_p,
)
constant = (
    *(lax.sign_p, lax.floor_p, lax.ceil_p, lax.round_p, lax.is_finite_p),
    *(lax.eq_p, lax.ne_p, lax.lt_p, lax.le_p, lax.gt_p, lax.ge_p),
    *(lax.and_p, lax.or_p, lax.xor_p, lax.not_p, lax.population_count_p, lax.clz_p),
    *(lax.shift_left_p, lax.shift_right_logical_p, lax.shift_right_arithmetic_p),
)

elementwise_rules = {
    **{p: slope_rule(p, slope) for p, slope in slopes.items()},
    **{p: partials_rule(p, partial) for p, partial in unary_partials.items()},
    **{p: partials_rule(p, *functions) for p, functions in partials.items()},
    **{p: linear_rule(p) for p in linear},
    **{p: constant_rule(p) for p in constant},
    lax.add_p: sum_rule(lax.add_p, lambda t: t),
    add_any_p: sum_rule(add_any_p, lambda t: t),
    lax.sub_p: sum_rule(lax.sub_p, lambda t: lax.neg(t)),
    lax.select_n_p: select_rule,
}


def converted(t, z, x, new_dtype, weak_type):
    """Return the tangent of a conversion: none, if it ends in integers or booleans."""
    if not is_inexact(new_dtype):
        return None
    primitive = lax.convert_element_type_p
    return primitive.bind(t, new_dtype=new_dtype, weak_type=weak_type)[0]


def mean_of_winners(t, y, x, axes):
    """Return the mean of `t` over the elements of `x` that attain the extreme `y`."""
    shape = [1 if i in axes else size for i, size in enumerate(typeof(x).shape)]
    attained = lax.eq(x, lax.reshape(y, shape))
    share = lax.convert_element_type(attained, typeof(x).dtype)
    count = lax.reduce_sum(share, axes)
    return lax.div(lax.reduce_sum(lax.mul(t, share), axes), count)


array_partials = {
    lax.convert_element_type_p: (converted,),
    lax.reduce_max_p: (mean_of_winners,),
    lax.reduce_min_p: (mean_of_winners,),
    lax.dot_general_p: (
        lambda t, z, x, y, **params: lax.dot_general_p.bind(t, y, **params)[0],
        lambda t, z, x, y, **params: lax.dot_general_p.bind(x, t, **params)[0],
    ),
}
array_linear = (
    *(lax.broadcast_in_dim_p, lax.reshape_p, lax.transpose_p, lax.squeeze_p),
    *(lax.slice_p, lax.rev_p, lax.copy_p, lax.concatenate_p, lax.pad_p),
    *(lax.reduce_sum_p, lax.cumsum_p),
)
array_constant = (
    *(lax.iota_p, lax.bitcast_convert_type_p, lax.argmax_p, lax.argmin_p),
    *(lax.reduce_and_p, lax.reduce_or_p, lax.reduce_xor_p),
)

array_rules = {
    **{p: partials_rule(p, *functions) for p, functions in array_partials.items()},
    **{p: linear_rule(p) for p in array_linear},
    **{p: constant_rule(p) for p in array_constant},
}
