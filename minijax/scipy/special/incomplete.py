"""Incomplete gamma and beta functions.

Reference: ``jax.lax.igamma``; NIST *Digital Library of Mathematical Functions*, 8.
"""

# Made from chapters/33_library_ground.md by `make chapter`;
# edit the chapter, not this file.

from typing import Any

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.distributions.gamma_slopes import random_gamma_grad
from minijax.jitting.api import jit
from minijax.own_rules.tangent_rules import custom_jvp
from minijax.scipy.special.converging import (
    continued_fraction,
    in_float32,
    power_series,
    slopes,
    without_slope,
)
from minijax.scipy.special.gamma_functions import betaln


@jit
def gamma_tails(a, x):
    """Return the incomplete gamma function and 1 less it, for arrays of one shape."""
    bad = jnp.isnan(a) | jnp.isnan(x) | (x < 0) | (a < 0) | ((a == 0) & (x == 0))
    log_factor = a * lax.log(x) - x - lax.lgamma(a)
    small = log_factor < -np.log(jnp.finfo(a.dtype).max)
    above, plain = (x >= 1) & (x > a), ~(bad | small | lax.eq(x, 0) | (x == np.inf))
    factor = jnp.where(plain, lax.exp(log_factor), 0)
    y, b = (jnp.where(plain & ~above, z, 1) for z in (x, a))
    series = power_series(lambda n: y / (b + n), y)
    lower = series * factor / jnp.where(lax.eq(b, 0), 1, b)
    y, c = jnp.where(plain & above, x, 2), jnp.where(plain & above, a, 1)

    def terms(n):
        first = n == 1
        return jnp.where(first, 1, (1 - n) * (n - 1 - c)), y + 2 * n - 1 - c

    upper = continued_fraction(terms, y) * factor
    p, q = jnp.where(above, 1 - upper, lower), jnp.where(above, upper, 1 - lower)
    sure = (x == np.inf) | lax.eq(a, 0)
    p = jnp.where(x == 0, 0, jnp.where(sure, 1, p))
    q = jnp.where(x == 0, 1, jnp.where(sure, 0, q))
    return jnp.where(bad, np.nan, p), jnp.where(bad, np.nan, q)


def gamma_density(_, a, x):
    """Return the density of gamma numbers of shape `a` at `x`."""
    near = jnp.where(x == np.inf, 1, x)  # beyond, the sum of logarithms is inf - inf
    found = lax.exp(-near + (a - 1) * lax.log(near) - lax.lgamma(a))
    return jnp.where(x == np.inf, 0, found)


lower_gamma: Any = custom_jvp(in_float32(lambda a, x: gamma_tails(a, x)[0]))
upper_gamma: Any = custom_jvp(in_float32(lambda a, x: gamma_tails(a, x)[1]))


def gamma_slope(a, x):
    """Return the derivative of the incomplete gamma function in `a`."""
    slope = -random_gamma_grad(a, x) * gamma_density(None, a, x)
    return jnp.where((x == 0) | (x == np.inf), 0, slope).astype(x.dtype)


slopes(lower_gamma, lambda p, a, x: gamma_slope(a, x), gamma_density)
slopes(
    upper_gamma,
    lambda q, a, x: -gamma_slope(a, x),
    lambda q, a, x: -gamma_density(q, a, x),
)


@jit
def beta_share(a, b, x):
    """Return the regularized incomplete beta function, for arrays of one shape."""
    none_left = (a == 0) | (b == np.inf)
    none_right = (b == 0) | (a == np.inf)
    bad = jnp.isnan(a + b + x) | (a < 0) | (b < 0) | (x < 0) | (x > 1)
    zero = none_right & lax.ne(x, 1) | none_left & lax.eq(x, 0)
    one = none_left & lax.ne(x, 0) | none_right & lax.eq(x, 1)
    bad, fixed = bad | none_left & none_right, none_left | none_right
    a, b, x = (jnp.where(bad | fixed, 0.5, y) for y in (a, b, x))
    left = x < (a + 1) / (a + b + 2)
    a, b = jnp.where(left, a, b), jnp.where(left, b, a)
    y, rest = jnp.where(left, x, 1 - x), jnp.where(left, 1 - x, x)

    def terms(n):
        m = jnp.floor((n - 1) / 2)
        odd = -(a + m) * (a + b + m) * y / ((a + 2 * m) * (a + 2 * m + 1))
        odd = jnp.where(lax.eq(m, 0), -(a + b) * y / (a + 1), odd)
        even = m * (b - m) * y / ((a + 2 * m - 1) * (a + 2 * m))
        later = jnp.where(n % 2 == 0, odd, even)
        return jnp.where(n == 1, 1, later), lax.full_like(a, 1)

    logs = a * lax.log(y) + b * jnp.log(rest) - betaln(a, b)
    share = lax.exp(logs) / a * continued_fraction(terms, y, 600)
    share = jnp.where(left, share, 1 - share)
    share = jnp.where(zero, 0, jnp.where(one, 1, share))
    return jnp.where(bad, np.nan, share)


incomplete_beta: Any = custom_jvp(in_float32(beta_share))
slopes(
    incomplete_beta,
    without_slope("betainc", "a"),
    without_slope("betainc", "b"),
    lambda p, a, b, x: lax.exp(
        (b - 1) * lax.log1p(-x) + (a - 1) * lax.log(x) - betaln(a, b)
    ),
)
