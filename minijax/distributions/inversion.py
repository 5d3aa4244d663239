"""Samplers that are one formula away from uniform numbers.

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
from minijax.arrays.settings import config
from minijax.core import Array
from minijax.distributions.sampling import start
from minijax.jitting.api import jit
from minijax.randomness.uniform import bits_of_key, uniform
from minijax.typing import ArrayLike


def exponential(
    key: ArrayLike, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None
) -> Array:
    """Return waiting times of mean 1: the density is exp(-x).

    Reference: ``jax.random.exponential``.
    """
    refuse_sharding("exponential", out_sharding)
    return _exponential(*start("exponential", key, shape, dtype))


def laplace(
    key: ArrayLike, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None
) -> Array:
    """Return floats of density exp(-|x|) / 2.

    Reference: ``jax.random.laplace``.
    """
    refuse_sharding("laplace", out_sharding)
    return _laplace(*start("laplace", key, shape, dtype))


def logistic(
    key: ArrayLike, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None
) -> Array:
    """Return floats whose sigmoid is uniform.

    Reference: ``jax.random.logistic``.
    """
    refuse_sharding("logistic", out_sharding)
    return _logistic(*start("logistic", key, shape, dtype))


def cauchy(
    key: ArrayLike, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None
) -> Array:
    """Return floats of density 1 / (pi (1 + x**2)).

    Reference: ``jax.random.cauchy``.
    """
    refuse_sharding("cauchy", out_sharding)
    return _cauchy(*start("cauchy", key, shape, dtype))


def gumbel(
    key: ArrayLike,
    shape: Any = (),
    dtype: Any = None,
    mode: str | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Return floats of density exp(-(x + exp(-x))).

    Args:
      key, shape, dtype: as for all samplers.
      mode: ``"low"``, one uniform number for each; ``"high"``, two, so that the upper
        tail is right; ``"highest"``, 64 bits for a float32. The default is "low", or
        "high" if the switch ``jax_high_dynamic_range_gumbel`` is on.

    Reference: ``jax.random.gumbel``.
    """
    refuse_sharding("gumbel", out_sharding)
    key, shape, dtype = start("gumbel", key, shape, dtype)
    if mode is None:
        mode = "high" if config.jax_high_dynamic_range_gumbel else "low"
    if mode not in GUMBELS:
        raise ValueError(f"Must provide valid mode for gumbel got: {mode}")
    return _gumbel(key, shape, dtype, mode)


@partial(jit, static_argnums=(1, 2))
def _exponential(key, shape, dtype):
    return lax.neg(lax.log1p(lax.neg(uniform(key, shape, dtype))))


@partial(jit, static_argnums=(1, 2))
def _laplace(key, shape, dtype):
    u = uniform(key, shape, dtype, -1.0 + jnp.finfo(dtype).epsneg, 1.0)
    return lax.mul(lax.sign(u), lax.log1p(lax.neg(lax.abs(u))))


@partial(jit, static_argnums=(1, 2))
def _logistic(key, shape, dtype):
    x = uniform(key, shape, dtype, jnp.finfo(dtype).tiny, 1.0)
    return lax.sub(lax.log(x), lax.log1p(lax.neg(x)))


@partial(jit, static_argnums=(1, 2))
def _cauchy(key, shape, dtype):
    u = uniform(key, shape, dtype, jnp.finfo(dtype).eps, 1.0)
    return lax.tan(dtype.type(np.pi) * (u - dtype.type(0.5)))


def _gumbel_low(key, shape, dtype):
    u = uniform(key, shape, dtype, jnp.finfo(dtype).tiny, 1.0)
    return -jnp.log(-jnp.log(u))


def _gumbel_high(key, shape, dtype):
    info = jnp.finfo(dtype)
    high, low = uniform(key, (2, *shape), dtype)
    small = high + 2.0**-info.nmant * low + info.tiny
    return -jnp.log(-jnp.log1p(-jnp.where(high >= 0.5, high, small)))


def _gumbel_highest(key, shape, dtype):
    if dtype != np.float32:
        return _gumbel_high(key, shape, dtype)
    high, low = bits_of_key(key, 32, (2, *shape))
    lower = high < np.uint32(2**31)
    carry = lax.convert_element_type(low == 0, np.uint32)
    other = _as_float(lax.bitwise_not(high) + carry, lax.neg(low))
    x = lax.select(lower, _as_float(high, low), other)
    return jnp.where(lower, -jnp.log(-jnp.log1p(-x)), -jnp.log(-jnp.log(x)))


GUMBELS = {"low": _gumbel_low, "high": _gumbel_high, "highest": _gumbel_highest}


@partial(jit, static_argnums=(1, 2, 3))
def _gumbel(key, shape, dtype, mode):
    return GUMBELS[mode](key, shape, dtype)


def _as_float(high, low):
    """Return 64 bits behind the point as a float32, rounded down."""
    zeros, more = lax.clz(high), lax.clz(low)
    below = lax.shift_right_logical(low, np.uint32(32) - zeros)
    below = jnp.where(jnp.equal(zeros, 32), lax.shift_left(low, more), below)
    bits = lax.shift_left(high, zeros) | below
    mantissa = lax.shift_right_logical(bits, np.uint32(8))
    exponent = np.uint32(126) - jnp.where(jnp.equal(zeros, 32), 32 + more, zeros)
    exponent = lax.shift_left(exponent, np.uint32(23)) & np.uint32(0x3FC00000)
    word = exponent | (mantissa & np.uint32(0x7FFFFF))
    return lax.bitcast_convert_type(word, np.float32)
