"""How a gamma number changes with its shape: an implicit derivative.

Source: Figurnov, Mohamed and Mnih, *Implicit reparameterization gradients* (NeurIPS
2018); the series and the fraction are those of Cephes (``igam``, ``igamc``).
"""

# Made from chapters/32_random_rest.md by `make chapter`;
# edit the chapter, not this file.

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.arrays.avals import typeof
from minijax.core import Array
from minijax.jitting.api import jit
from minijax.typing import ArrayLike


def _chosen(active, new, old):
    return [lax.select(active, x, y) for x, y in zip(new, old)]


def by_series(a, x, active, eps):
    """Return slopes by the power series of F, where `active` is True."""

    def step(state):
        active, r, c, total, dc, slope = state
        r = r + 1
        dc = dc * (x / r) - (c * x) / (r * r)
        slope, c = slope + dc, c * (x / r)
        new = _chosen(active, (r, c, total + c, dc, slope), state[1:])
        return active & (abs(dc / slope) > eps), *new

    one, zero = lax.full_like(a, 1), lax.full_like(a, 0)
    start = active, a, one, one, zero, zero
    *_, total, _, slope = lax.while_loop(lambda state: state[0].any(), step, start)
    return -(slope + total * (lax.log(x) - lax.digamma(a + 1))) * x / a


def by_fraction(a, x, active, eps):
    """Return slopes by the continued fraction of 1 - F, where `active` is True."""

    def step(state):
        active, n, y, z, total, slope, p1, q1, p2, q2, dp1, dq1, dp2, dq2 = state
        n, y, z = n + 1, y + 1, z + 2
        p, q = p1 * z - p2 * (y * n), q1 * z - q2 * (y * n)
        dp = dp1 * z - p1 - dp2 * (y * n) + p2 * n
        dq = dq1 * z - q1 - dq2 * (y * n) + q2 * n
        total = lax.select(q != 0, p / q, total)
        moved = lax.select(q != 0, (dp - total * dq) / q, slope)
        change = lax.select(q != 0, abs(moved - slope), lax.full_like(q, 1))
        shrink = jnp.where(abs(p) > 1 / eps, eps, eps / eps)
        terms = [term * shrink for term in (p, q, p1, q1, dp, dq, dp1, dq1)]
        new = _chosen(active, (y, z, total, moved, *terms), state[2:])
        return active & (change > eps), n, *new

    end = lax.while_loop(
        lambda state: (state[1] < 2000) & state[0].any(),
        step,
        (active, eps - eps, *_first(a, x)),
    )
    return (end[5] + end[4] * (lax.log(x) - lax.digamma(a))) * x


def _first(a, x):
    one, zero = lax.full_like(x, 1), lax.full_like(x, 0)
    y = 1 - a
    z = x + y + 1
    p, q = x + 1, z * x
    return y, z, p / q, p / q * x / q, p, q, one, x, zero, -x, zero, zero


def random_gamma_grad(a: ArrayLike, x: ArrayLike) -> Array:
    """Return the derivative of gamma numbers `x` with respect to their shapes `a`.

    Reference: ``jax.lax.random_gamma_grad``.
    """
    shape, dtype = lax.broadcast_shapes(np.shape(a), np.shape(x)), typeof(a).dtype
    wide = np.dtype(np.float32) if dtype.itemsize == 2 else dtype
    a, x = (jnp.broadcast_to(jnp.asarray(y, wide), shape) for y in (a, x))
    return lax.convert_element_type(_slope(a, x), dtype)


@jit
def _slope(a, x):
    bad = jnp.isnan(a) | jnp.isnan(x) | (x < 0) | (a <= 0)
    info = jnp.finfo(a.dtype)
    tiny = a * lax.log(x) - x - lax.lgamma(a) < -np.log(info.max)
    active, large = ~(bad | tiny | (x == 0)), (x > 1) & (x > a)
    eps = a.dtype.type(info.eps)
    far = by_fraction(a, x, active & large, eps)
    slope = lax.select(large, far, by_series(a, x, active & ~large, eps))
    slope = lax.select(x == 0, lax.full_like(x, 0), slope)
    return lax.select(bad, lax.full_like(x, np.nan), slope)
