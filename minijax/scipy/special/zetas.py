"""The Hurwitz zeta function and the polygamma functions.

Reference: ``jax.lax.zeta``; Euler and Maclaurin's formula.
"""

# Made from chapters/33_library_ground.md by `make chapter`;
# edit the chapter, not this file.

import math
from fractions import Fraction
from functools import cache

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.own_rules.tangent_rules import custom_jvp
from minijax.pytrees.forward_api import jvp
from minijax.scipy.special.converging import in_float32, slopes, without_slope

TERMS, CORRECTIONS = 12, 14


@cache
def bernoulli_numbers(count):
    """Return Bernoulli's numbers up to a number, as fractions."""
    numbers = [Fraction(1)]
    for n in range(1, count + 1):
        terms = (math.comb(n + 1, k) * b for k, b in enumerate(numbers))
        total = sum(terms, Fraction(0))
        numbers.append(-total / (n + 1))
    return numbers


def _sum_of_positive(s, q):
    end, total = q + TERMS, lax.full_like(q, 0)
    for k in range(TERMS):
        total = total + (q + k) ** -s
    total = total + end ** (1 - s) / (s - 1) + 0.5 * end**-s
    factor = s * end ** (-s - 1)
    for j in range(1, CORRECTIONS + 1):
        ratio = bernoulli_numbers(2 * j)[2 * j] / math.factorial(2 * j)
        total = total + float(ratio) * factor
        factor = factor * (s + 2 * j - 1) * (s + 2 * j) / (end * end)
    return jnp.where(jnp.isfinite(total), total, q**-s)


def zeta_sum(s, q):
    """Return the sum of ``(q + k) ** -s`` over k from 0 on, for s above 1.

    For a negative q and an integer s, the terms of positive numbers are a sum of this
    kind, and those of negative numbers the difference of two, with a sign.
    """
    below, rest = q < 0, q - lax.floor(q)
    starts = jnp.where(below, rest, q), jnp.where(below, 1 - rest, 1), 1 + abs(q)
    total, all_below, too_far = _sum_of_positive(s[None], jnp.stack(starts))
    turned = jnp.where(s % 2 == 0, 1, -1) * (all_below - too_far)
    total = jnp.where(below, total + turned, total)
    pole = (s == 1) | (q <= 0) & (q == lax.floor(q))
    bad = (s < 1) | (q <= 0) & (s != lax.floor(s)) | jnp.isnan(s) | jnp.isnan(q)
    return jnp.where(bad, np.nan, jnp.where(pole, np.inf, total))


hurwitz_zeta = custom_jvp(in_float32(zeta_sum))


def _slope_in_order(y, s, q):
    slope = jvp(lambda s: zeta_sum(s, q), (s,), (lax.full_like(s, 1),))[1]
    return jnp.where(q < 0, np.nan, slope)  # there, only integers have a value


slopes(hurwitz_zeta, _slope_in_order, lambda y, s, q: -s * hurwitz_zeta(s + 1, q))


def _polygamma(n, x):
    sign = jnp.where(n % 2 == 0, -1, 1).astype(x.dtype)
    many = sign * lax.exp(lax.lgamma(n + 1)) * zeta_sum(n + 1, x)
    valid = (n >= 0) & (n == lax.floor(n))
    return jnp.where(valid, jnp.where(n == 0, lax.digamma(x), many), np.nan)


polygamma_of = custom_jvp(in_float32(_polygamma))
slopes(
    polygamma_of,
    without_slope("polygamma", "its order"),
    lambda y, n, x: polygamma_of(n + 1, x),
)
