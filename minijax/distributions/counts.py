"""Samplers that count: Poisson, binomial and multinomial numbers.

Source: Hormann, *The transformed rejection method for generating Poisson random
variables* (1993), *The generation of binomial random variates* (1993).
Reference: ``jax.random``.
"""

# Made from chapters/32_random_rest.md by `make chapter`;
# edit the chapter, not this file.

from functools import partial
from typing import Any

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.arrays.checks import refuse_sharding
from minijax.arrays.dtypes import check_dtype
from minijax.core import Array
from minijax.distributions.sampling import filled, start
from minijax.jitting.api import jit
from minijax.lax.promotion import promote_dtypes_inexact
from minijax.numpy.shapes import arraylike
from minijax.randomness.making_keys import check_one_key, shape_asked, split_keys
from minijax.randomness.uniform import uniform
from minijax.typing import ArrayLike


def _knuth(key, lam, shape, dtype, limit):
    """Return Poisson numbers: how many uniform ones until their product is small."""

    def step(state):
        i, k, key, log = state
        key, rest = split_keys(key, (2,))
        k = lax.select(log > -lam, k + 1, k)
        return i + 1, k, key, log + jnp.log(uniform(rest, shape, np.float32))

    def more(state):
        return (state[3] > -lam).any() & (state[0] < limit)

    zero = lax.full_like(lam, 0, np.float32, shape)
    start = 0, lax.full_like(lam, 0, dtype, shape), key, zero
    return (lax.while_loop(more, step, start)[1] - 1).astype(dtype)


def _until_accepted(key, draw, like, shape, limit):
    """Return what `draw` accepts, for each element the last that it accepted."""

    def step(state):
        i, kept, accepted, key = state
        key, *keys = split_keys(key, (3,))
        u, v = (uniform(k, shape, like.dtype) for k in keys)
        k, accept = draw(u - 0.5, v)
        return i + 1, lax.select(accept, k, kept), accepted | accept, key

    def more(state):
        return (~state[2]).any() & (state[0] < limit)

    none = lax.full_like(like, -1, like.dtype, shape)
    start = 0, none, jnp.full(shape, False), key
    return lax.while_loop(more, step, start)[1]


def _poisson_by_rejection(key, lam, shape, dtype, limit):
    b = 0.931 + 2.53 * lax.sqrt(lam)
    a = -0.059 + 0.02483 * b
    inverse, edge = 1.1239 + 1.1328 / (b - 3.4), 0.9277 - 3.6224 / (b - 2)

    def draw(u, v):
        inside = 0.5 - abs(u)
        k = lax.floor((2 * a / inside + b) * u + lam + 0.43)
        s = lax.log(v * inverse / (a / (inside * inside) + b))
        exact = s <= -lam + k * lax.log(lam) - lax.lgamma(k + 1)
        refused = (k < 0) | ((inside < 0.013) & (v > inside))
        return k, ((inside >= 0.07) & (v <= edge)) | (~refused & exact)

    return _until_accepted(key, draw, lam, shape, limit).astype(dtype)


@partial(jit, static_argnums=(2, 3))
def _poisson(key, lam, shape, dtype):
    few, limit = jnp.isnan(lam) | (lam < 10), dtype.type(jnp.iinfo(dtype).max)
    small = lax.select(few, lam, lax.full_like(lam, 0))
    large = lax.select(few, lax.full_like(lam, 1e5), lam)
    counts = lax.select(
        few,
        _knuth(key, small, shape, dtype, limit),
        _poisson_by_rejection(key, large, shape, dtype, limit),
    )
    return lax.select(lam == 0, lax.full_like(counts, 0), counts)


STIRLING = (
    0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509,
    0.0166446911898211, 0.0138761288230707, 0.0118967099458917, 0.010411265261972,
    0.00925546218271273, 0.00833056343336287,
)  # fmt: skip


def _stirling_tail(k):
    """Return what Stirling's formula lacks of the logarithm of a factorial."""
    place = lax.clamp(k.dtype.type(0), k, k.dtype.type(9))
    square = (place + 1) * (place + 1)
    series = (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (place + 1)
    exact = lax.full_like(k, 0)
    for number, tail in enumerate(STIRLING):
        is_this = jnp.equal(jnp.floor(place), number)
        exact = lax.select(is_this, lax.full_like(k, tail), exact)
    return lax.select(k <= 9, exact, series)


def _by_gaps(key, count, p, shape, dtype, limit):
    """Return binomial numbers: how many geometric gaps there are in `count` coins."""
    log = jnp.log1p(-p)

    def step(state):
        i, gaps, total, key = state
        rest, key = split_keys(key, (2,))
        gaps = lax.select(total <= count, gaps + 1, gaps)
        gap = jnp.ceil(jnp.log(uniform(rest, shape, p.dtype)) / log)
        return i + 1, gaps, total + gap, key

    def more(state):
        return (state[2] <= count).any() & (state[0] < limit)

    zero = lax.full_like(p, 0, p.dtype, shape)
    return (lax.while_loop(more, step, (0, zero, zero, key))[1] - 1).astype(dtype)


def _binomial_by_rejection(key, count, p, shape, dtype, limit):
    stddev = jnp.sqrt(count * p * (1 - p))
    b = 1.15 + 2.53 * stddev
    a = -0.0873 + 0.0248 * b + 0.01 * p
    ratio, alpha = p / (1 - p), (2.83 + 5.1 / b) * stddev

    def draw(u, v):
        inside = 0.5 - jnp.abs(u)
        k = jnp.floor((2 * a / inside + b) * u + (count * p + 0.5))
        s = jnp.log(v * alpha / (a / (inside * inside) + b))
        refused = (k < 0) | (k > count)
        accept = (inside >= 0.07) & (v <= 0.92 - 4.2 / b)
        return k, accept | (~refused & (s <= _log_ratio(count, p, ratio, k)))

    return _until_accepted(key, draw, p, shape, limit).astype(dtype)


def _log_ratio(n, p, ratio, k):
    """Return the logarithm of the chance of `k` over that of the most likely count."""
    m, tail = jnp.floor((n + 1) * p), _stirling_tail
    return (
        (m + 0.5) * jnp.log((m + 1) / (ratio * (n - m + 1)))
        + (n + 1) * jnp.log((n - m + 1) / (n - k + 1))
        + (k + 0.5) * jnp.log(ratio * (n - k + 1) / (k + 1))
        + tail(m) + tail(n - m) - tail(k) - tail(n - k)
    )  # fmt: skip


@partial(jit, static_argnums=(3, 4), inline=True)
def _binomial(key, n, p, shape, dtype):
    [p] = promote_dtypes_inexact(arraylike("binomial", p))
    n, p = (filled(x, p.dtype, shape) for x in (n, p))
    rare = p < 0.5
    q = lax.select(rare, p, 1.0 - p)
    bad_n, bad_q = jnp.isnan(n) | (n < 0), jnp.isnan(q) | (q < 0)
    endless = jnp.isinf(n)
    nan_q = jnp.isnan(q)
    counts = _both_ways(key, n, lax.select(bad_q, lax.full_like(q, 0.01), q), dtype)
    bad = bad_n | bad_q
    counts = lax.select(bad, lax.full_like(counts, np.nan), counts)
    counts = lax.select(endless & ~bad, lax.full_like(counts, np.inf), counts)
    same = rare | bad_n | nan_q | endless
    return lax.select(same, counts, jnp.floor(n).astype(dtype) - counts)


def _both_ways(key, n, q, dtype):
    few = jnp.isnan(n) | (n < 0) | (n * q <= 10)
    n, limit = jnp.floor(n), dtype.type(jnp.finfo(dtype).max)
    small = lax.select(few, n, lax.full_like(n, 0))
    large = lax.select(few, lax.full_like(n, 1e4), n)
    large_q = lax.select(few, lax.full_like(q, 0.5), q)
    return lax.select(
        few,
        _by_gaps(key, small, q, n.shape, dtype, limit),
        _binomial_by_rejection(key, large, large_q, n.shape, dtype, limit),
    )


def poisson(
    key: ArrayLike,
    lam: ArrayLike,
    shape: Any = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Return numbers of events, `lam` on average.

    Reference: ``jax.random.poisson``.
    """
    refuse_sharding("poisson", out_sharding)
    key, _ = check_one_key("poisson", key)
    dtype = check_dtype(int if dtype is None else dtype, "poisson")
    shape = np.shape(lam) if shape is None else shape_asked(shape)
    return _poisson(key, filled(lam, np.dtype(np.float32), shape), shape, dtype)


def binomial(
    key: ArrayLike, n: ArrayLike, p: ArrayLike, shape: Any = None, dtype: Any = None
) -> Array:
    """Return how many of `n` coins of chance `p` hit, as floats.

    Reference: ``jax.random.binomial``.
    """
    n, p = arraylike("binomial", n), arraylike("binomial", p)
    key, shape, dtype = start("binomial", key, shape, dtype, n, p)
    return _binomial(key, n, p, shape, dtype)


def multinomial(
    key: ArrayLike,
    n: ArrayLike,
    p: ArrayLike,
    *,
    shape: Any = None,
    dtype: Any = None,
    unroll: int | bool = 1,
) -> Array:
    """Return how many of `n` draws fall into each category, along the last axis.

    Args:
      key: a key.
      n: how many draws.
      p: chances of the categories, along the last axis.
      shape: of the result; by default that of `p`.
      dtype: of the result.
      unroll: as in `lax.scan`.

    Reference: ``jax.random.multinomial``.
    """
    key, _ = check_one_key("multinomial", key)
    n, p = (arraylike("multinomial", x) for x in (n, p))
    n, p = promote_dtypes_inexact(n, p)
    shape = p.shape if shape is None else shape_asked(shape)
    n, p = jnp.broadcast_to(n, shape[:-1]), jnp.broadcast_to(p, shape)
    counts = _row_of_counts(key, n, jnp.moveaxis(p, -1, 0), unroll)
    return jnp.moveaxis(counts, 0, -1).astype(dtype)


def _row_of_counts(key, n, p, unroll):
    def step(left, category):
        ratio, key = category
        count = binomial(key, left, ratio.clip(0, 1), dtype=left.dtype)
        return left - count, count

    left = lax.cumsum(p, 0, reverse=True)
    ratios = p / jnp.where(left == 0, 1, left)
    keys = split_keys(key, (len(ratios),))
    return lax.scan(step, n, (ratios, keys), unroll=unroll)[1]
