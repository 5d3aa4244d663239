"""Samplers that are made of gamma numbers.

Reference: ``jax.random``.
"""

# Made from chapters/32_random_rest.md by `make chapter`;
# edit the chapter, not this file.

from functools import partial
from typing import Any

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.arrays.checks import as_integer, refuse_sharding
from minijax.arrays.dtypes import check_dtype
from minijax.core import Array
from minijax.distributions.choices import rademacher
from minijax.distributions.gamma import gamma, loggamma
from minijax.distributions.inversion import exponential
from minijax.distributions.sampling import check_shape, filled, start
from minijax.jitting.api import jit
from minijax.randomness.making_keys import (
    check_one_key,
    float_dtype,
    shape_asked,
    split_keys,
)
from minijax.randomness.normal import normal
from minijax.typing import ArrayLike


def beta(
    key: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    shape: Any = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Return floats of density proportional to x**(a - 1) (1 - x)**(b - 1).

    Reference: ``jax.random.beta``.
    """
    refuse_sharding("beta", out_sharding)
    return _beta(*start("beta", key, shape, dtype, a, b, cast=True), a, b)


def dirichlet(
    key: ArrayLike,
    alpha: ArrayLike,
    shape: Any = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Return positive floats that add up to 1 along the last axis.

    Args:
      key: a key.
      alpha: positive weights along the last axis.
      shape: of the result without its last axis.
      dtype: of the result.

    Reference: ``jax.random.dirichlet``.
    """
    refuse_sharding("dirichlet", out_sharding)
    key, _ = check_one_key("dirichlet", key)
    dtype = float_dtype("dirichlet", dtype)
    if np.ndim(alpha) < 1:
        raise ValueError(
            f"dirichlet requires alpha.ndim >= 1, got alpha.ndim == {np.ndim(alpha)}"
        )
    *batch, size = np.shape(alpha)
    shape = tuple(batch) if shape is None else shape_asked(shape)
    check_shape("dirichlet", shape, tuple(batch))
    return _dirichlet(key, (*shape, size), dtype, alpha)


def chisquare(
    key: ArrayLike,
    df: ArrayLike,
    shape: Any = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Return sums of `df` squares of normal numbers.

    Reference: ``jax.random.chisquare``.
    """
    refuse_sharding("chisquare", out_sharding)
    return _chisquare(*start("chisquare", key, shape, dtype, df, cast=True), df)


def f(
    key: ArrayLike,
    dfnum: ArrayLike,
    dfden: ArrayLike,
    shape: Any = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Return ratios of two mean squares of normal numbers.

    Reference: ``jax.random.f``.
    """
    refuse_sharding("f", out_sharding)
    degrees = dfnum, dfden
    return _f(*start("f", key, shape, dtype, *degrees, cast=True), *degrees)


def t(
    key: ArrayLike,
    df: ArrayLike,
    shape: Any = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Return normal numbers over the root of a mean of `df` squares of such.

    Reference: ``jax.random.t``.
    """
    refuse_sharding("t", out_sharding)
    return _t(*start("t", key, shape, dtype, df, cast=True), df)


def generalized_normal(
    key: ArrayLike,
    p: ArrayLike,
    shape: Any = (),
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Return floats of density proportional to exp(-|x|**p).

    Reference: ``jax.random.generalized_normal``.
    """
    refuse_sharding("generalized_normal", out_sharding)
    key, _ = check_one_key("generalized_normal", key)
    dtype = check_dtype(float if dtype is None else dtype, "generalized_normal")
    return _generalized_normal(key, shape_asked(shape), dtype, p)


def ball(
    key: ArrayLike,
    d: int,
    p: ArrayLike = 2,
    shape: Any = (),
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Return points of equal chance in the unit ball of the p-norm in `d` dimensions.

    Reference: ``jax.random.ball``.
    """
    refuse_sharding("ball", out_sharding)
    key, _ = check_one_key("ball", key)
    dtype = check_dtype(float if dtype is None else dtype, "ball")
    return _ball(key, shape_asked(shape), dtype, as_integer(d, "d of ball"), p)


@partial(jit, static_argnums=(1, 2))
def _beta(key, shape, dtype, a, b):
    keys, shapes = split_keys(key, (2,)), (filled(x, dtype, shape) for x in (a, b))
    logs = [loggamma(k, x, shape, dtype) for k, x in zip(keys, shapes)]
    largest = lax.max(*logs)
    first, second = (jnp.exp(log - largest) for log in logs)
    return first / (first + second)


@partial(jit, static_argnums=(1, 2))
def _dirichlet(key, shape, dtype, alpha):
    logs = loggamma(key, lax.convert_element_type(alpha, dtype), shape, dtype)
    largest = lax.stop_gradient(logs.max(-1, keepdims=True, initial=-np.inf))
    weights = jnp.exp(logs - largest)
    return weights / weights.sum(-1, keepdims=True)


@partial(jit, static_argnums=(1, 2))
def _chisquare(key, shape, dtype, df):
    half = lax.convert_element_type(df, dtype) / dtype.type(2)
    return jnp.exp(loggamma(key, half, shape, dtype)) * dtype.type(2)


@partial(jit, static_argnums=(1, 2))
def _f(key, shape, dtype, dfnum, dfden):
    dfnum, dfden = (lax.convert_element_type(x, dtype) for x in (dfnum, dfden))
    lower, upper = split_keys(key, (2,))
    num = chisquare(upper, dfnum, shape, dtype) / dfnum
    return num / (chisquare(lower, dfden, shape, dtype) / dfden)


@partial(jit, static_argnums=(1, 2))
def _t(key, shape, dtype, df):
    half = lax.convert_element_type(df, dtype) / dtype.type(2)
    key_n, key_g = split_keys(key, (2,))
    n = normal(key_n, shape, dtype)
    return n * jnp.sqrt(half / gamma(key_g, half, shape, dtype))


@partial(jit, static_argnums=(1, 2))
def _generalized_normal(key, shape, dtype, p):
    size, sign = split_keys(key, (2,))
    g = gamma(size, 1 / p, shape, dtype)
    return rademacher(sign, shape, dtype) * g ** (1 / p)


@partial(jit, static_argnums=(1, 2, 3))
def _ball(key, shape, dtype, d, p):
    k1, k2 = split_keys(key, (2,))
    g = generalized_normal(k1, p, (*shape, d), dtype)
    e = exponential(k2, shape, dtype)
    return g / (((jnp.abs(g) ** p).sum(-1) + e) ** (1 / p))[..., None]
