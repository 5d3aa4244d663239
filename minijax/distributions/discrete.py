"""Samplers of coins, integers, categories, permutations and counts.

Source: Hormann, *The transformed rejection method for generating Poisson random
variables* (1993), *The generation of binomial random variates* (1993).
Reference: ``jax.random``.

Reference: ``jax.random``.
"""

# Made from chapters/32_random_rest.md by `make chapter`;
# edit the chapter, not this file.

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from minijax import jit, lax
from minijax import numpy as jnp
from minijax.core import Array
from minijax.distributions.inversion import (
    broadcast_parameter,
    check_shape,
    gumbel,
    promote_sample_args,
    resolve_sample_shape,
)
from minijax.extend.arguments import (
    as_arraylike,
    canonicalize_axis,
    canonicalize_shape,
    check_dtype,
    operator_index,
    with_out_sharding,
)
from minijax.extend.promotion import promote_dtypes_inexact
from minijax.numpy import issubdtype
from minijax.numpy.sorting import take_permutation
from minijax.prng.keys import (
    KEY,
    canonicalize_sample_shape,
    check_one_key,
    random_bits,
    random_split_impl,
    sample_dtype,
    uniform,
)
from minijax.sorting.top_k import descending_words
from minijax.typing import ArrayLike

# Samplers of coins, integers and categories.


@with_out_sharding
def bernoulli(
    key: ArrayLike,
    p: ArrayLike = 0.5,
    shape: Any = None,
    mode: str = "low",
    *,
    out_sharding: Any = None,
) -> Array:
    """Return bools that are True with chance `p`.

    Args:
      key: a key.
      p: floats.
      shape: of the result; by default that of `p`.
      mode: ``"high"`` draws two numbers for each, so that small chances are right.

    Reference: ``jax.random.bernoulli``.
    """
    if mode not in ("high", "low"):
        raise ValueError(f"got {mode=}, expected 'high' or 'low'")
    key, _ = check_one_key("bernoulli", key)
    dtype = jnp.result_type(p)
    if not issubdtype(dtype, np.floating):
        raise TypeError(
            f"bernoulli probability `p` must have a floating dtype, got {dtype}."
        )
    shape = resolve_sample_shape("bernoulli", shape, p)
    return _bernoulli(key, lax.convert_element_type(p, dtype), shape, mode)


@with_out_sharding
def rademacher(
    key: ArrayLike, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None
) -> Array:
    """Return -1 and 1, with equal chances.

    Reference: ``jax.random.rademacher``.
    """
    key, _ = check_one_key("rademacher", key)
    dtype = check_dtype(int if dtype is None else dtype, "rademacher")
    return _rademacher(key, canonicalize_sample_shape(shape), dtype)


@with_out_sharding
def randint(
    key: ArrayLike,
    shape: Any,
    minval: ArrayLike,
    maxval: ArrayLike,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Return integers of equal chance, from `minval` up to, and without, `maxval`.

    Reference: ``jax.random.randint``.
    """
    key, _ = check_one_key("randint", key)
    dtype = check_dtype(int if dtype is None else dtype, "randint")
    if not issubdtype(dtype, np.integer):
        raise TypeError(f"randint only accepts integer dtypes, got {dtype}")
    wide, info = dtype, jnp.iinfo(dtype)
    if info.bits < 32:
        wide, low, high = np.dtype(np.int32), int(info.min), int(info.max)
        minval = jnp.asarray(minval).astype(wide).clip(low, high)
        maxval = jnp.asarray(maxval).astype(wide).clip(low, high + 1)
    return _randint(key, minval, maxval, canonicalize_sample_shape(shape), wide).astype(
        dtype
    )


@with_out_sharding
def geometric(
    key: ArrayLike,
    p: ArrayLike,
    shape: Any = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Return the number of coins of chance `p` that are thrown up to the first hit.

    Reference: ``jax.random.geometric``.
    """
    key, _ = check_one_key("geometric", key)
    words = "an int dtype"
    dtype = sample_dtype("geometric", dtype, int, np.integer, words)
    return _geometric(key, p, resolve_sample_shape("geometric", shape, p), dtype)


@with_out_sharding
def categorical(
    key: ArrayLike,
    logits: ArrayLike,
    axis: int = -1,
    shape: Any = None,
    replace: bool = True,
    mode: str | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Return places along an axis, with chances in the ratio of ``exp(logits)``.

    Args:
      key: a key.
      logits: logarithms of weights.
      axis: the axis of the categories.
      shape: of the result; it ends with the shape of `logits` without `axis`.
      replace: whether a category can be drawn again.
      mode: as in `gumbel`.

    Reference: ``jax.random.categorical``.
    """
    key, _ = check_one_key("categorical", key)
    logits = as_arraylike("categorical", logits)
    axis = canonicalize_axis(axis, logits.ndim)
    batch_shape = logits.shape[:axis] + logits.shape[axis + 1 :]
    shape = batch_shape if shape is None else canonicalize_sample_shape(shape)
    check_shape("categorical", shape, batch_shape)
    if not replace:
        return _without_return(key, logits, shape, len(batch_shape), axis, mode)
    return _categorical(key, logits, shape, len(shape) - len(batch_shape), axis, mode)


@partial(jit, static_argnames=("shape", "mode"))
def _bernoulli(key, p, shape, mode):
    if mode == "low":
        return uniform(key, shape, p.dtype) < p
    first, second = uniform(key, (2, *shape), p.dtype)
    return second * 2.0 ** -jnp.finfo(p.dtype).nmant < p - first


@partial(jit, static_argnums=(1, 2))
def _rademacher(key, shape, dtype):
    coins = bernoulli(key=key, p=0.5, shape=shape).astype(dtype)
    return (2 * coins - 1).astype(dtype)


@partial(jit, static_argnums=(2, 3))
def _geometric(key, p, shape, dtype):
    [p] = promote_dtypes_inexact(as_arraylike("geometric", p))
    u = uniform(key, shape, p.dtype)
    log_u = lax.log(jnp.where(jnp.equal(u, 0), 1, u))
    misses = jnp.broadcast_to(lax.log1p(-p), shape)
    return (lax.floor(lax.div(log_u, misses)) + 1).astype(dtype)


def _categorical(key, logits, shape, more, axis, mode):
    last = axis if axis < 0 else axis - logits.ndim
    wide = [*shape[more:]]
    wide.insert(last % logits.ndim, logits.shape[axis])
    noise = gumbel(key, (*shape[:more], *wide), logits.dtype, mode)
    return jnp.argmax(noise + lax.expand_dims(logits, range(more)), axis=last)


def _without_return(key, logits, shape, ndim, axis, mode):
    """Return the places of the largest sums: as many as all draws of a category."""
    count, size = math.prod(shape[: len(shape) - ndim]), logits.shape[axis]
    if count > size:
        raise ValueError(
            f"Number of samples without replacement ({count}) cannot exceed number of "
            f"categories ({size})."
        )
    sums = logits + gumbel(key, logits.shape, logits.dtype, mode)
    _, places = lax.top_k(jnp.moveaxis(sums, axis, -1), count)
    return jnp.reshape(jnp.moveaxis(places, -1, 0), shape)


@partial(jit, static_argnums=(3, 4))
def _randint(key, minval, maxval, shape, dtype):
    check_shape("randint", shape, np.shape(minval), np.shape(maxval))
    minval, maxval = (_as_integers(x) for x in (minval, maxval))
    top = jnp.array(jnp.iinfo(dtype).max, dtype)
    open_ended = maxval > _clipped(top, maxval.dtype)
    minval, maxval = (
        lax.broadcast_to_rank(_clipped(x, dtype), len(shape)) for x in (minval, maxval)
    )
    unsigned = np.dtype(f"uint{8 * dtype.itemsize}")
    span = lax.convert_element_type(maxval - minval, unsigned)
    span = lax.select(maxval <= minval, lax.full_like(span, 1), span)
    span = lax.select(open_ended & (maxval > minval), span + unsigned.type(1), span)
    offset = _offset(key, span, shape)
    return lax.add(minval, lax.convert_element_type(offset, dtype))


def _as_integers(x):
    x = as_arraylike("randint", x)
    return x if issubdtype(x.dtype, np.integer) else x.astype(int)


def _clipped(x, dtype):
    """Return integers as those of a dtype; what does not fit stops at its ends."""
    old, new = jnp.iinfo(x.dtype), jnp.iinfo(dtype)
    low, high = max(old.min, new.min), min(old.max, new.max)
    return jnp.clip(x, x.dtype.type(low), x.dtype.type(high)).astype(dtype)


def _offset(key, span, shape):
    """Return remainders of two words each: (high * 2**bits + low) % span."""
    bits = 8 * span.dtype.itemsize
    high, low = (random_bits(k, bits, shape) for k in random_split_impl(key, (2,)))
    half = lax.rem(span.dtype.type(2 ** (bits // 2)), span)
    factor = lax.rem(lax.mul(half, half), span)
    return lax.rem(lax.rem(high, span) * factor + lax.rem(low, span), span)


# Shuffled arrays, and draws from arrays.


def _rounds(size):
    return int(np.ceil(3 * np.log(max(1, size)) / np.log(np.iinfo(np.uint32).max)))


@partial(jit, static_argnums=2)
def _shuffle(key, x, axis):
    for _ in range(_rounds(x.size)):
        key, subkey = random_split_impl(key, (2,))
        _, x = lax.sort_key_val(random_bits(subkey, 32, x.shape), x, axis)
    return x


@partial(jit, static_argnums=2)
def _shuffled_rows(key, x, axis):
    places = _shuffle(key, jnp.arange(x.shape[axis]), 0)
    return take_permutation(places, x, axis)


@with_out_sharding
def permutation(
    key: ArrayLike,
    x: int | ArrayLike,
    axis: int = 0,
    independent: bool = False,
    *,
    out_sharding: Any = None,
) -> Array:
    """Return the numbers below an integer, or an array, shuffled along an axis.

    Args:
      key: a key.
      x: an integer that is known while tracing, or an array.
      axis: along which.
      independent: whether each row along the axis is shuffled by itself.

    Reference: ``jax.random.permutation``.
    """
    key, _ = check_one_key("permutation", key)
    whole, x = x, as_arraylike("permutation", x)
    axis = canonicalize_axis(axis, x.ndim or 1)
    if not x.ndim:
        if not issubdtype(x.dtype, np.integer):
            raise TypeError("x must be an integer or at least 1-dimensional")
        return _shuffle(key, jnp.arange(operator_index(whole, "a length")), axis)
    shuffle = _shuffle if independent or x.ndim == 1 else _shuffled_rows
    return shuffle(key, x, axis)


def choice(
    key: ArrayLike,
    a: int | ArrayLike,
    shape: Any = (),
    replace: bool = True,
    p: ArrayLike | None = None,
    axis: int = 0,
    mode: str | None = None,
) -> Array:
    """Return numbers below an integer, or elements of an array, that are drawn.

    Args:
      key: a key.
      a: an integer that is known while tracing, or an array.
      shape: how many.
      replace: whether one can be drawn again.
      p: chances; by default they are equal.
      axis: along which elements of an array are drawn.
      mode: as in `gumbel`.

    Raises:
      ValueError: if more are drawn than there are.

    Reference: ``jax.random.choice``.
    """
    key, _ = check_one_key("choice", key)
    if not isinstance(shape, Sequence):
        raise TypeError(
            f"shape argument of jax.random.choice must be a sequence, got {shape}"
        )
    shape, array = canonicalize_shape(shape), as_arraylike("choice", a)
    axis = canonicalize_axis(axis, array.ndim) if array.ndim else 0
    whole = array.shape[axis] if array.ndim else operator_index(a, "a length")
    size, count = whole, math.prod(shape)
    if not count:
        return jnp.zeros(shape, array.dtype)
    _check_draws(size, count, replace)
    places = array if array.ndim else size
    if replace:
        draws = _drawn(key, size, shape, p)
        return jnp.take(array, draws, axis=axis) if array.ndim else draws
    if p is not None:
        result = _weighted(key, places, size, shape, p, axis, mode)
    else:
        result = permutation(key, places, axis)
        result = lax.slice_in_dim(result, 0, count, axis=axis)
    rest = array.shape[:axis], array.shape[axis + 1 :]
    return jnp.reshape(result, (*rest[0], *shape, *rest[1]))


def _check_draws(size, count, replace):
    if size <= 0:
        raise ValueError("a must be greater than 0 unless no samples are taken")
    if not replace and count > size:
        raise ValueError(
            f"Cannot take a larger sample (size {count}) than population (size {size}) "
            "when 'replace=False'"
        )


def _drawn(key, size, shape, p):
    """Draw places that may repeat: each alike, or by the running total of chances."""
    if p is None:
        return randint(key, shape, 0, size)
    total = jnp.cumsum(_chances(p, size))
    draws = total[-1] * (1 - uniform(key, shape, dtype=total.dtype))
    return jnp.searchsorted(total, draws).astype(int)


def _chances(p, size):
    """Return chances as floats, one for each of so many."""
    [p] = promote_dtypes_inexact(as_arraylike("choice", p))
    if p.shape != (size,):
        raise ValueError(
            "p must be None or a 1D vector with the same size as a.shape[axis]. p has "
            f"shape {p.shape} and a.shape[axis] is {size}."
        )
    return p


def _weighted(key, places, size, shape, p, axis, mode):
    """Draw without repetition, with chances: by Gumbel numbers."""
    p = _chances(p, size)
    sums = gumbel(key, (size,), p.dtype, mode) + jnp.log(p)
    x = jnp.arange(size) if isinstance(places, int) else places
    words = lax.broadcast_in_dim(descending_words(sums), x.shape, [axis])
    _, x = lax.sort((words, x), dimension=axis)
    return lax.slice_in_dim(x, 0, math.prod(shape), axis=axis)


# Samplers that count: Poisson, binomial and multinomial numbers.


def _knuth(key, lam, shape, dtype, limit):
    """Return Poisson numbers: how many uniform ones until their product is small."""

    def step(state):
        i, k, key, log = state
        key, rest = random_split_impl(key, (2,))
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
        key, *keys = random_split_impl(key, (3,))
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
        rest, key = random_split_impl(key, (2,))
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
    [p] = promote_dtypes_inexact(as_arraylike("binomial", p))
    n, p = (broadcast_parameter(x, p.dtype, shape) for x in (n, p))
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


@with_out_sharding
def poisson(
    key: ArrayLike,
    lam: ArrayLike,
    shape: Any = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Return numbers of events, `lam` on average.

    Raises:
      NotImplementedError: for a key of another generator than Threefry.

    Reference: ``jax.random.poisson``.
    """
    key, _ = check_one_key("poisson", key)
    if key.dtype != KEY:
        raise NotImplementedError(
            f"poisson takes keys of threefry2x32 alone, not {key.dtype}: its loop may "
            "have no end where a batch is drawn from one key."
        )
    dtype = check_dtype(int if dtype is None else dtype, "poisson")
    shape = np.shape(lam) if shape is None else canonicalize_sample_shape(shape)
    return _poisson(
        key, broadcast_parameter(lam, np.dtype(np.float32), shape), shape, dtype
    )


def binomial(
    key: ArrayLike, n: ArrayLike, p: ArrayLike, shape: Any = None, dtype: Any = None
) -> Array:
    """Return how many of `n` coins of chance `p` hit, as floats.

    Reference: ``jax.random.binomial``.
    """
    n, p = as_arraylike("binomial", n), as_arraylike("binomial", p)
    key, shape, dtype = promote_sample_args("binomial", key, shape, dtype, n, p)
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
    n, p = (as_arraylike("multinomial", x) for x in (n, p))
    n, p = promote_dtypes_inexact(n, p)
    shape = p.shape if shape is None else canonicalize_sample_shape(shape)
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
    keys = random_split_impl(key, (len(ratios),))
    return lax.scan(step, n, (ratios, keys), unroll=unroll)[1]
