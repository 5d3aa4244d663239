"""Modified Bessel functions, and those of the first kind by recurrence downwards.

Reference: ``jax.lax.bessel_i0e``; J. C. P. Miller's algorithm for ``bessel_jn``.
"""

# Made from chapters/33_library_ground.md by `make chapter`;
# edit the chapter, not this file.

from functools import cache, partial
from typing import Any

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.own_rules.tangent_rules import custom_jvp
from minijax.scipy.special.converging import in_float32, slopes

DEGREE = 30


@cache
def chebyshev_coefficients(order, far):
    """Return how ``exp(-x) I(x)`` is a sum of Chebyshev polynomials.

    Args:
      order: 0 or 1.
      far: whether for x from 8 on, times the root of x, in ``16 / x - 1``; otherwise
        for x up to 8, in ``x / 4 - 1``, and for order 1 divided by x: it is 0 at 0, and
        a sum that ends with 0 has lost its digits.
    """
    angles = (np.arange(4000) + 0.5) * np.pi / 4000

    def function(t):
        x = 16 / (1 + t) if far else 4 * (1 + t)
        waves = np.exp(np.multiply.outer(x, np.cos(angles) - 1))
        means = (waves * np.cos(order * angles)).mean(-1)
        return means * np.sqrt(x) if far else means / x**order

    return np.polynomial.chebyshev.chebinterpolate(function, DEGREE)


def chebyshev_sum(coefficients, t):
    """Return a sum of Chebyshev polynomials at `t`, by Clenshaw's recurrence."""
    one, two = lax.full_like(t, 0), lax.full_like(t, 0)
    for c in coefficients[:0:-1]:
        one, two = 2 * t * one - two + float(c), one
    return t * one - two + float(coefficients[0])


def _size(x):
    """Return ``|x|``, with a slope of 0 at 0: the functions here are even or odd."""
    return x * lax.sign(x)


def scaled_bessel(order, x):
    """Return ``exp(-|x|) I(x)`` of an order: for x to 8, over x if it is 1; beyond."""
    near, far = jnp.minimum(_size(x), 8), jnp.maximum(_size(x), 8)
    low = chebyshev_sum(chebyshev_coefficients(order, False), near / 4 - 1)
    high = chebyshev_sum(chebyshev_coefficients(order, True), 16 / far - 1)
    return low, high / lax.sqrt(far)


def _order_0(x):
    return jnp.where(abs(x) <= 8, *scaled_bessel(0, x))


def _order_1(x):
    low, high = scaled_bessel(1, x)
    return jnp.where(abs(x) <= 8, low * x, high * lax.sign(x))


def _order_1_over_x(x):
    low, high = scaled_bessel(1, x)
    return jnp.where(abs(x) <= 8, low, high / jnp.maximum(abs(x), 8))


scaled_i0: Any = custom_jvp(in_float32(_order_0))
scaled_i1: Any = custom_jvp(in_float32(_order_1))


@in_float32
def _slope_of_order_1(x):
    return scaled_i0(x) - lax.sign(x) * scaled_i1(x) - _order_1_over_x(x)


slopes(scaled_i0, lambda y, x: scaled_i1(x) - lax.sign(x) * y)
slopes(scaled_i1, lambda y, x: _slope_of_order_1(x))

bessel_i1 = in_float32(lambda x: lax.exp(_size(x)) * scaled_i1(x))
bessel_i0: Any = custom_jvp(in_float32(lambda x: lax.exp(_size(x)) * scaled_i0(x)))
slopes(bessel_i0, lambda y, x: bessel_i1(x))


@partial(custom_jvp, nondiff_argnums=(1, 2))
def first_kind(z, v, count):
    """Return the Bessel functions of the orders 0 to `v`, at the front of the result.

    The recurrence is stable downwards only. It begins with any numbers far above, and
    is divided by the sum that has to be 1. A derivative of all that would subtract
    squares of the numbers on the way, which are too large for small `z`; it is half
    the difference of the orders beside.
    """

    def step(carry, k):
        above, here, total = carry
        below = 2 * (k + 1) * here / z - above
        return (here, below, total + jnp.where(k % 2 == 0, 2 * below, 0)), below

    zero = lax.full_like(z, 0)
    orders = jnp.arange(count + 1).astype(z.dtype)
    start = zero, lax.full_like(z, 1e-16), zero
    (*_, total), values = lax.scan(step, start, orders, reverse=True)
    return values[: v + 1] / (total - values[0])


@first_kind.defjvp
def _slope_of_first_kind(v, count, primals, tangents):
    [z], [t] = primals, tangents
    values = first_kind(z, v + 1, max(count, v + 1))
    below = jnp.concatenate([-values[1:2], values[:-2]])
    return first_kind(z, v, count), (below - values[1:]) / 2 * t
