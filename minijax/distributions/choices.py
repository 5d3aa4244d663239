"""Samplers of coins, integers and categories.

Reference: ``jax.random``.
"""

# Made from chapters/32_random_rest.md by `make chapter`;
# edit the chapter, not this file.

import math
from functools import partial
from typing import Any

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.arrays.checks import refuse_sharding
from minijax.arrays.dtypes import check_dtype, issubdtype
from minijax.core import Array
from minijax.distributions.inversion import gumbel
from minijax.distributions.sampling import check_shape, sample_shape
from minijax.jitting.api import jit
from minijax.lax.promotion import promote_dtypes_inexact
from minijax.numpy.shapes import arraylike
from minijax.randomness.making_keys import (
    check_one_key,
    sampled_dtype,
    shape_asked,
    split_keys,
)
from minijax.randomness.uniform import bits_of_key, uniform
from minijax.typing import ArrayLike


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
    refuse_sharding("bernoulli", out_sharding)
    if mode not in ("high", "low"):
        raise ValueError(f"got {mode=}, expected 'high' or 'low'")
    key, _ = check_one_key("bernoulli", key)
    dtype = jnp.result_type(p)
    if not issubdtype(dtype, np.floating):
        raise TypeError(
            f"bernoulli probability `p` must have a floating dtype, got {dtype}."
        )
    shape = sample_shape("bernoulli", shape, p)
    return _bernoulli(key, lax.convert_element_type(p, dtype), shape, mode)


def rademacher(
    key: ArrayLike, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None
) -> Array:
    """Return -1 and 1, with equal chances.

    Reference: ``jax.random.rademacher``.
    """
    refuse_sharding("rademacher", out_sharding)
    key, _ = check_one_key("rademacher", key)
    dtype = check_dtype(int if dtype is None else dtype, "rademacher")
    return _rademacher(key, shape_asked(shape), dtype)


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
    refuse_sharding("randint", out_sharding)
    key, _ = check_one_key("randint", key)
    dtype = check_dtype(int if dtype is None else dtype, "randint")
    if not issubdtype(dtype, np.integer):
        raise TypeError(f"randint only accepts integer dtypes, got {dtype}")
    wide, info = dtype, jnp.iinfo(dtype)
    if info.bits < 32:
        wide, low, high = np.dtype(np.int32), int(info.min), int(info.max)
        minval = jnp.asarray(minval).astype(wide).clip(low, high)
        maxval = jnp.asarray(maxval).astype(wide).clip(low, high + 1)
    return _randint(key, minval, maxval, shape_asked(shape), wide).astype(dtype)


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
    refuse_sharding("geometric", out_sharding)
    key, _ = check_one_key("geometric", key)
    words = "an int dtype"
    dtype = sampled_dtype("geometric", dtype, int, np.integer, words)
    return _geometric(key, p, sample_shape("geometric", shape, p), dtype)


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
    refuse_sharding("categorical", out_sharding)
    key, _ = check_one_key("categorical", key)
    logits = arraylike("categorical", logits)
    batch_shape = tuple(np.delete(logits.shape, axis).tolist())
    shape = batch_shape if shape is None else shape_asked(shape)
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
    [p] = promote_dtypes_inexact(arraylike("geometric", p))
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
    x = arraylike("randint", x)
    return x if issubdtype(x.dtype, np.integer) else x.astype(int)


def _clipped(x, dtype):
    """Return integers as those of a dtype; what does not fit stops at its ends."""
    old, new = jnp.iinfo(x.dtype), jnp.iinfo(dtype)
    low, high = max(old.min, new.min), min(old.max, new.max)
    return jnp.clip(x, x.dtype.type(low), x.dtype.type(high)).astype(dtype)


def _offset(key, span, shape):
    """Return remainders of two words each: (high * 2**bits + low) % span."""
    bits = 8 * span.dtype.itemsize
    high, low = (bits_of_key(k, bits, shape) for k in split_keys(key, (2,)))
    half = lax.rem(span.dtype.type(2 ** (bits // 2)), span)
    factor = lax.rem(lax.mul(half, half), span)
    return lax.rem(lax.rem(high, span) * factor + lax.rem(low, span), span)
