"""The jvp rules of all other primitives.

The result of an operation is called z, its operands x and y, their tangents x_dot and
y_dot.

The derivative of the product is the derivative of this program.

Their derivatives are the derivatives of these programs.

References: ``jax.interpreters.ad.primitive_jvps``, G. Blelloch, "Prefix sums and
their applications" (1990); ``jax.lax.associative_scan``.
"""

# Made from chapters/04_forward_rest.md by `make chapter`;
# edit the chapter, not this file.

import math

import numpy as np

from minijax import lax
from minijax.arrays.array import typeof
from minijax.arrays.dtypes import is_inexact
from minijax.arrays.transfer import device_put_p
from minijax.forward_mode.jvp import (
    broadcast_scalar_to,
    defjvp_unary,
    defjvp_zero,
    full_scalar_like,
    instantiate_tangents,
    jvp_flat_fun,
    jvp_rules,
    linear_jvp,
    partial_derivatives_rule,
    zeros_like_tangent_aval,
)
from minijax.lax.arithmetic import astype

# The jvp rules of the other elementwise primitives, and of those that move axes.


def one_plus_square(x):
    """Return 1 + x²."""
    return lax.add(1.0, lax.square(x))


def one_minus_square(x):
    """Return 1 - x², with all digits beside 1, where x² rounded has lost half.

    It is +0.0 at both ends, whose root is divided by. Of complex numbers, x - 1 and
    x - (-1) keep the sign of an imaginary part that is zero, and 1 - x and 1 + x do
    not. It tells the two sides of a branch cut apart.
    """
    if typeof(x).dtype.kind == "c":
        return lax.mul(lax.neg(lax.sub(x, 1.0)), lax.sub(x, -1.0))
    left, right = lax.add(x, 1.0), lax.sub(1.0, x)
    product = lax.mul(two_beside_zero(left, right), two_beside_zero(right, left))
    middle = lax.lt(lax.abs(x), 0.5)
    return lax.select(middle, lax.sub(1.0, lax.square(x)), product)


def two_beside_zero(x, other):
    """Return a factor x of 1 - x², which stands still where the other one is zero.

    There the derivative of the root's reciprocal is infinite, and 0 times it is NaN.
    """
    return lax.select(lax.eq(other, 0.0), full_scalar_like(x, 2), x)


def slope_of_acosh(z, x):
    """Return 1 / sqrt(x² - 1), on the branch of acosh where x is complex."""
    return lax.mul(lax.rsqrt(lax.sub(x, 1.0)), lax.rsqrt(lax.sub(x, -1.0)))


other_slopes = {
    lax.rsqrt_p: lambda z, x: lax.mul(-0.5, lax.div(z, x)),
    lax.cbrt_p: lambda z, x: lax.mul(1 / 3, lax.integer_pow(z, -2)),
    lax.expm1_p: lambda z, x: lax.add(z, 1.0),
    lax.logistic_p: lambda z, x: lax.mul(z, lax.sub(1.0, z)),
    lax.tan_p: lambda z, x: one_plus_square(z),
    lax.asin_p: lambda z, x: lax.rsqrt(one_minus_square(x)),
    lax.acos_p: lambda z, x: lax.neg(lax.rsqrt(one_minus_square(x))),
    lax.sinh_p: lambda z, x: lax.cosh(x),
    lax.cosh_p: lambda z, x: lax.sinh(x),
    lax.asinh_p: lambda z, x: lax.rsqrt(lax.sub(lax.square(x), -1.0)),
    lax.acosh_p: slope_of_acosh,
    lax.lgamma_p: lambda z, x: lax.digamma(x),
}
jvp_rules.update({p: defjvp_unary(p, slope) for p, slope in other_slopes.items()})


unary_partials = {
    lax.log1p_p: lambda x_dot, z, x: lax.div(x_dot, lax.add(x, 1.0)),
    lax.atan_p: lambda x_dot, z, x: lax.div(x_dot, one_plus_square(x)),
    lax.atanh_p: lambda x_dot, z, x: lax.mul(
        lax.integer_pow(lax.add(1.0, x), -1), lax.div(x_dot, lax.sub(1.0, x))
    ),
    lax.exp2_p: lambda x_dot, z, x: lax.mul(
        lax.log(full_scalar_like(x, 2)), lax.mul(x_dot, z)
    ),
    lax.erf_p: lambda x_dot, z, x: lax.mul(2 / math.sqrt(math.pi), bell(x_dot, x)),
    lax.erfc_p: lambda x_dot, z, x: lax.mul(-2 / math.sqrt(math.pi), bell(x_dot, x)),
    lax.erf_inv_p: lambda x_dot, z, x: lax.mul(
        math.sqrt(math.pi) / 2, lax.mul(x_dot, lax.exp(lax.square(z)))
    ),
    lax.abs_p: lambda x_dot, z, x: abs_partial(x_dot, z, x),
}
jvp_rules.update(
    {p: partial_derivatives_rule(p, move) for p, move in unary_partials.items()}
)


def bell(x_dot, x):
    """Return x_dot exp(-x²)."""
    return lax.mul(x_dot, lax.exp(lax.neg(lax.square(x))))


def abs_partial(x_dot, z, x):
    """Return the rate of change of the absolute value z = |x|, real or complex."""
    if typeof(x).dtype.kind != "c":
        return lax.select(lax.ge(x, 0.0), x_dot, lax.neg(x_dot))
    conjugate = lax.conj(x)
    length = lax.convert_element_type(z, typeof(x).dtype)
    safe = lax.select(lax.eq(length, 0.0), full_scalar_like(length, 1), length)
    return lax.real(lax.mul(x_dot, lax.div(conjugate, safe)))


def winning_share(mine, other, best):
    """Return 1 where `mine` alone is the `best`, 1/2 where `other` is too, else 0."""
    won = lax.eq(mine, best)
    share = lax.select(won, full_scalar_like(best, 1), full_scalar_like(best, 0))
    tied = lax.eq(other, best)
    winners = lax.select(tied, full_scalar_like(best, 2), full_scalar_like(best, 1))
    return lax.div(share, winners)


share_partials = (
    lambda x_dot, z, x, y: lax.mul(x_dot, winning_share(x, y, z)),
    lambda y_dot, z, x, y: lax.mul(y_dot, winning_share(y, x, z)),
)
jvp_rules[lax.max_p] = partial_derivatives_rule(lax.max_p, *share_partials)


partials = {
    lax.rem_p: (
        lambda x_dot, z, x, y: broadcast_scalar_to(x_dot, z),
        lambda y_dot, z, x, y: lax.mul(lax.neg(y_dot), whole_quotient(x, y)),
    ),
    lax.atan2_p: (
        lambda x_dot, z, x, y: lax.mul(x_dot, lax.div(y, sum_of_squares(x, y))),
        lambda y_dot, z, x, y: lax.mul(
            y_dot, lax.div(lax.neg(x), sum_of_squares(x, y))
        ),
    ),
    lax.pow_p: (
        lambda x_dot, z, x, y: lax.mul(x_dot, power_slope(x, y)),
        lambda y_dot, z, x, y: lax.convert_element_type(
            lax.mul(y_dot, lax.mul(lax.log(one_for_zero(x)), z)), typeof(y).dtype
        ),
    ),
    lax.min_p: share_partials,
    lax.clamp_p: (
        lambda low_dot, z, low, x, high: where_both(
            lax.gt(low, x), lax.lt(low, high), low_dot
        ),
        lambda x_dot, z, low, x, high: where_both(
            lax.gt(x, low), lax.lt(x, high), x_dot
        ),
        lambda high_dot, z, low, x, high: masked(lax.lt(high, x), high_dot),
    ),
}
jvp_rules.update(
    {p: partial_derivatives_rule(p, *moves) for p, moves in partials.items()}
)


def whole_quotient(x, y):
    """Return x / y without its fraction."""
    return lax.mul(lax.sign(lax.div(x, y)), lax.floor(lax.abs(lax.div(x, y))))


def sum_of_squares(x, y):
    """Return x² + y²."""
    return lax.add(lax.square(x), lax.square(y))


def one_for_zero(x):
    """Return x with its zeros replaced by ones."""
    return lax.select(lax.eq(x, 0.0), full_scalar_like(x, 1), x)


def power_slope(x, y):
    """Return y xʸ⁻¹; if y holds integers, then exactly zero where y is zero."""
    fraction = is_inexact(typeof(y).dtype)
    x, y = [astype(v, typeof(x).dtype) for v in (x, y)]
    if fraction:
        return lax.mul(y, lax.pow(x, lax.sub(y, full_scalar_like(y, 1))))
    zero, safe = lax.eq(y, 0.0), one_for_zero(y)
    slope = lax.mul(safe, lax.pow(x, lax.sub(safe, full_scalar_like(y, 1))))
    return lax.select(
        broadcast_scalar_to(zero, slope), full_scalar_like(slope, 0), slope
    )


def masked(mask, x):
    """Return `x`, stretched to the shape of `mask`, where `mask` holds, else 0."""
    x = broadcast_scalar_to(x, mask)
    return lax.select(mask, x, full_scalar_like(x, 0))


def where_both(first, second, x):
    """Return `x` where two conditions hold, else 0."""
    return masked(lax.bitwise_and(first, second), x)


def select_rule(primals, tangents):
    """Carry the tangents of the cases; the choice itself has none."""
    which, *cases = primals
    results = lax.select_n_p.bind_all(which, *cases)
    pairs = zip(cases, tangents[1:], strict=True)
    moves = [zeros_like_tangent_aval(case) if t is None else t for case, t in pairs]
    return results, lax.select_n_p.bind_all(which, *moves)


jvp_rules[lax.select_n_p] = select_rule


def mean_of_winners(x_dot, z, x, axes):
    """Return the mean of `x_dot` where the elements of `x` attain the extreme `z`."""
    shape = [1 if i in axes else size for i, size in enumerate(typeof(x).shape)]
    attained = lax.eq(x, lax.reshape(z, shape))
    share = astype(attained, typeof(x).dtype)
    count = lax.reduce_sum(share, axes)
    return lax.div(lax.reduce_sum(lax.mul(x_dot, share), axes), count)


other_linear = (
    *(lax.real_p, lax.imag_p, lax.conj_p, lax.complex_p, lax.reduce_precision_p),
    *(lax.transpose_p, lax.rev_p, lax.copy_p, lax.pad_p, lax.cumsum_p),
)
other_constant = (
    *(lax.ceil_p, lax.round_p, lax.is_finite_p, lax.population_count_p, lax.clz_p),
    *(lax.and_p, lax.or_p, lax.xor_p, lax.not_p),
    *(lax.shift_left_p, lax.shift_right_logical_p, lax.shift_right_arithmetic_p),
    *(lax.iota_p, lax.bitcast_convert_type_p, lax.argmax_p, lax.argmin_p),
    *(lax.reduce_and_p, lax.reduce_or_p, lax.reduce_xor_p),
)


def moved_tangents(primals, tangents, devices, srcs, copy_semantics):
    """Put tangents where their primals are put, and note where these were."""
    params = {"devices": devices, "copy_semantics": copy_semantics}
    results = device_put_p.bind(*primals, srcs=srcs, **params)
    kept = [i for i, x in enumerate(primals) if is_inexact(typeof(x).dtype)]
    if not kept:
        return results, list(tangents)
    pairs = [(primals[i], tangents[i]) for i in kept]
    moved = device_put_p.bind(
        *instantiate_tangents(*zip(*pairs)),
        devices=tuple(devices[i] for i in kept),
        srcs=tuple(sharding_or_none(primals[i]) for i in kept),
        copy_semantics=tuple(copy_semantics[i] for i in kept),
    )
    found = dict(zip(kept, moved))
    return results, [found.get(i) for i in range(len(primals))]


def sharding_or_none(x):
    """Return the sharding of an array, or None."""
    placement = getattr(x, "placement", None)
    return placement and placement.sharding


jvp_rules[device_put_p] = moved_tangents
for extreme in (lax.reduce_max_p, lax.reduce_min_p):
    jvp_rules[extreme] = partial_derivatives_rule(extreme, mean_of_winners)
jvp_rules.update({p: linear_jvp(p) for p in other_linear})
jvp_rules.update({p: defjvp_zero(p) for p in other_constant})
jvp_rules.reasons[lax.nextafter_p] = "It steps to the next float: no small move."
jvp_rules.reasons[lax.digamma_p] = "Its derivative, trigamma, is not a primitive here."


# The product of an array as a program of multiplications.


def slice_along_axis(x, axis, start, limit, stride=1):
    """Return the elements `start`, `start` + `stride`, … before `limit` of an axis."""
    return lax.slice_in_dim(x, start, limit, stride, axis)


def product_by_halving(x, axes):
    """Return the product over `axes`, halving each until one element is left."""
    aval = typeof(x)
    if aval.size == 0:
        kept = [size for i, size in enumerate(aval.shape) if i not in axes]
        return lax.full(kept, 1, aval.dtype)
    for axis in axes:
        while (size := typeof(x).shape[axis]) > 1:
            half = size // 2
            left = slice_along_axis(x, axis, 0, half)
            right = slice_along_axis(x, axis, half, 2 * half)
            rest = [slice_along_axis(x, axis, 2 * half, size)] if size % 2 else []
            x = lax.concatenate([lax.mul(left, right), *rest], axis)
    return lax.squeeze(x, axes)


def jvp_of_function(program):
    """Return the rule of a primitive that does what `program` does.

    Args:
      program: a function of the same operands and parameters, written with other
        primitives, that returns one array.
    """

    def rule(primals, tangents, **params):
        return jvp_flat_fun(lambda *xs: [program(*xs, **params)], primals, tangents)

    return rule


jvp_rules[lax.reduce_prod_p] = jvp_of_function(product_by_halving)


# Running products and their kin, as programs of simpler primitives: prefix sums.


def make_cumulative(combine):
    """Return a function that combines along an axis and keeps each partial result.

    Args:
      combine: an associative elementwise function of two arrays.
    """

    def program(x, axis, reverse):
        if reverse:
            return lax.rev(program(lax.rev(x, (axis,)), axis, False), (axis,))
        return scan_pairs(combine, x, axis)

    return program


def scan_pairs(combine, x, axis):
    """Combine along `axis` in about log2(size) rounds.

    Neighbours are combined first. The running results of these pairs are every second
    answer; one more element to each gives the others.
    """
    size = typeof(x).shape[axis]
    if size < 2:
        return x
    pairs = combine(
        slice_along_axis(x, axis, 0, size - 1, 2), slice_along_axis(x, axis, 1, size, 2)
    )
    odd, first = scan_pairs(combine, pairs, axis), slice_along_axis(x, axis, 0, 1)
    if size == 2:
        return lax.concatenate([first, odd], axis)
    before = slice_along_axis(odd, axis, 0, (size - 1) // 2)
    even = lax.concatenate(
        [first, combine(before, slice_along_axis(x, axis, 2, size, 2))], axis
    )
    return lax.add(spread(even, axis, 0, size), spread(odd, axis, 1, size))


def spread(x, axis, start, size):
    """Put the elements of `x` at every second place from `start`, zeros elsewhere."""
    ndim, used = typeof(x).ndim, start + 2 * typeof(x).shape[axis] - 1
    here = (start, size - used, 1)
    return lax.pad(x, 0.0, [here if i == axis else (0, 0, 0) for i in range(ndim)])


def logaddexp_by_lax(x, y):
    """Return log(exp(x) + exp(y)) without overflow."""
    real = lax.real if typeof(x).dtype.kind == "c" else lambda x: x
    y_wins = lax.lt(real(x), real(y))
    above = lax.select(y_wins, y, x)
    gap = lax.select(y_wins, lax.sub(x, y), lax.sub(y, x))
    endless = lax.bitwise_and(lax.eq(x, y), lax.ne(gap, gap))  # two equal infinities
    gap = lax.select(endless, lax.full_like(gap, 0), gap)
    total = without_turns(lax.add(above, lax.log1p(lax.exp(gap))))
    return lax.select(endless, lax.add(x, y), total)


def without_turns(x):
    """Take whole turns from the angle of a complex number, as logarithms do."""
    if typeof(x).dtype.kind != "c":
        return x
    angle, turn = lax.imag(x), 2 * np.pi
    turns = lax.round(lax.div(angle, turn), lax.RoundingMethod.TO_NEAREST_EVEN)
    return lax.complex(lax.real(x), lax.sub(angle, lax.mul(turns, turn)))


running_totals = {
    lax.cumprod_p: make_cumulative(lax.mul),
    lax.cummax_p: make_cumulative(lax.max),
    lax.cummin_p: make_cumulative(lax.min),
    lax.cumlogsumexp_p: make_cumulative(logaddexp_by_lax),
}
jvp_rules.update({p: jvp_of_function(program) for p, program in running_totals.items()})
