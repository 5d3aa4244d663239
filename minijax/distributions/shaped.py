"""Samplers with parameters, one formula away from uniform or normal numbers.

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
from minijax.core import Array
from minijax.distributions.choices import rademacher
from minijax.distributions.inversion import exponential
from minijax.distributions.sampling import check_cast, filled, sample_shape, start
from minijax.jitting.api import jit
from minijax.randomness.making_keys import check_one_key, sampled_dtype, split_keys
from minijax.randomness.normal import normal
from minijax.randomness.uniform import uniform
from minijax.typing import ArrayLike


def pareto(
    key: ArrayLike,
    b: ArrayLike,
    shape: Any = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Return floats from 1 up whose density falls as x**(-b - 1).

    Reference: ``jax.random.pareto``.
    """
    refuse_sharding("pareto", out_sharding)
    return _pareto(*start("pareto", key, shape, dtype, b, cast=True), b)


def rayleigh(
    key: ArrayLike,
    scale: ArrayLike,
    shape: Any = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Return lengths of vectors of two normal numbers of deviation `scale`.

    Reference: ``jax.random.rayleigh``.
    """
    refuse_sharding("rayleigh", out_sharding)
    return _rayleigh(*start("rayleigh", key, shape, dtype, scale, cast=True), scale)


def wald(
    key: ArrayLike,
    mean: ArrayLike,
    shape: Any = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Return times at which a Brownian motion with drift 1 / mean arrives at 1.

    Reference: ``jax.random.wald``.
    """
    refuse_sharding("wald", out_sharding)
    return _wald(*start("wald", key, shape, dtype, mean, cast=True), mean)


def triangular(
    key: ArrayLike,
    left: ArrayLike,
    mode: ArrayLike,
    right: ArrayLike,
    shape: Any = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Return floats from `left` to `right`, most often near `mode`.

    Reference: ``jax.random.triangular``.
    """
    refuse_sharding("triangular", out_sharding)
    corners = left, mode, right
    return _triangular(
        *start("triangular", key, shape, dtype, *corners, cast=True), *corners
    )


def lognormal(
    key: ArrayLike,
    sigma: ArrayLike = np.float32(1),  # noqa: B008 # as JAX has it
    shape: Any = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Return exponentials of normal numbers of deviation `sigma`.

    Reference: ``jax.random.lognormal``.
    """
    refuse_sharding("lognormal", out_sharding)
    key, _ = check_one_key("lognormal", key)
    words = "a float or complex dtype"
    dtype = sampled_dtype("lognormal", dtype, float, np.inexact, words)
    shape = sample_shape("lognormal", shape, sigma)
    check_cast("lognormal", dtype, sigma)
    return _lognormal(key, shape, dtype, sigma)


def weibull_min(
    key: ArrayLike,
    scale: ArrayLike,
    concentration: ArrayLike,
    shape: Any = (),
    dtype: Any = None,
) -> Array:
    """Return `scale` times exponential numbers to the power 1 / `concentration`.

    Reference: ``jax.random.weibull_min``.
    """
    begin = start("weibull_min", key, shape, dtype)
    return _weibull_min(*begin, scale, concentration)


def maxwell(
    key: ArrayLike, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None
) -> Array:
    """Return lengths of vectors of three normal numbers.

    Reference: ``jax.random.maxwell``.
    """
    refuse_sharding("maxwell", out_sharding)
    return _maxwell(*start("maxwell", key, shape, dtype))


def double_sided_maxwell(
    key: ArrayLike,
    loc: ArrayLike,
    scale: ArrayLike,
    shape: Any = (),
    dtype: Any = None,
) -> Array:
    """Return Maxwell numbers of either sign, times `scale`, plus `loc`.

    Reference: ``jax.random.double_sided_maxwell``.
    """
    begin = start("double_sided_maxwell", key, shape, dtype)
    return _double_sided_maxwell(*begin, loc, scale)


def truncated_normal(
    key: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    shape: Any = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Return normal numbers strictly between two ends.

    Reference: ``jax.random.truncated_normal``.
    """
    refuse_sharding("truncated_normal", out_sharding)
    ends = lower, upper
    return _truncated_normal(
        *start("truncated_normal", key, shape, dtype, *ends), *ends
    )


@partial(jit, static_argnums=(1, 2))
def _pareto(key, shape, dtype, b):
    b = lax.convert_element_type(b, dtype)
    return lax.exp(exponential(key, shape, dtype) / b)


@partial(jit, static_argnums=(1, 2))
def _rayleigh(key, shape, dtype, scale):
    log = lax.log(uniform(key, shape, dtype))
    return filled(scale, dtype, shape) * lax.sqrt(log * dtype.type(-2))


@partial(jit, static_argnums=(1, 2))
def _wald(key, shape, dtype, mean):
    k1, k2 = split_keys(key, (2,))
    mean = filled(mean, dtype, shape)
    z = uniform(k2, shape, dtype)
    y = normal(k1, shape, dtype) ** 2
    mean_sq = mean**2
    root = lax.sqrt(4 * mean * y + mean_sq * y**2)
    x = mean + mean_sq * y / 2 - mean / 2 * root
    return lax.select(z <= mean / (mean + x), x, mean_sq / x)


@partial(jit, static_argnums=(1, 2), inline=True)
def _triangular(key, shape, dtype, left, mode, right):
    left, right, mode = (filled(x, dtype, shape) for x in (left, right, mode))
    u = uniform(key, shape, dtype)
    rising = left + lax.sqrt(u * (right - left) * (mode - left))
    falling = right - lax.sqrt((1 - u) * (right - left) * (right - mode))
    return lax.select(u < (mode - left) / (right - left), rising, falling)


@partial(jit, static_argnums=(1, 2), inline=True)
def _lognormal(key, shape, dtype, sigma):
    sigma = lax.convert_element_type(sigma, dtype)
    return lax.exp(normal(key, shape, dtype) * sigma)


@partial(jit, static_argnums=(1, 2))
def _weibull_min(key, shape, dtype, scale, concentration):
    u = uniform(key, shape, dtype)
    return jnp.power(-jnp.log1p(-u), 1.0 / concentration) * scale


@partial(jit, static_argnums=(1, 2))
def _maxwell(key, shape, dtype):
    return jnp.linalg.norm(normal(key, (*shape, 3), dtype), axis=-1)


@partial(jit, static_argnums=(1, 2))
def _double_sided_maxwell(key, shape, dtype, loc, scale):
    params = lax.broadcast_shapes(np.shape(loc), np.shape(scale))
    shape = (shape or params) + params
    length, sign = split_keys(key, (2,))
    signs = rademacher(sign, shape, dtype)
    return signs * maxwell(length, shape, dtype) * scale + loc


@partial(jit, static_argnums=(1, 2))
def _truncated_normal(key, shape, dtype, lower, upper):
    root = dtype.type(np.sqrt(2))
    lower, upper = (lax.convert_element_type(x, dtype) for x in (lower, upper))
    a, b = lax.erf(lower / root), lax.erf(upper / root)
    inside = root * lax.erf_inv(uniform(key, shape, dtype, a, b))
    above = lax.nextafter(lax.stop_gradient(lower), dtype.type(np.inf))
    below = lax.nextafter(lax.stop_gradient(upper), dtype.type(-np.inf))
    return jnp.clip(inside, above, below)
