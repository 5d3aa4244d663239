"""Samplers with parameters, with factors of matrices, or made of gamma numbers.

References: ``jax.random``, ``jax.random``; F. Mezzadri, *How to generate random
matrices from the classical compact groups* (2007).
"""

# Made from chapters/32_random_rest.md by `make chapter`;
# edit the chapter, not this file.

from functools import partial
from typing import Any

import numpy as np

from minijax import jit, lax
from minijax import numpy as jnp
from minijax.core import Array
from minijax.distributions.discrete import rademacher
from minijax.distributions.inversion import (
    broadcast_parameter,
    check_lossless_cast,
    check_shape,
    exponential,
    gamma,
    loggamma,
    promote_sample_args,
    resolve_sample_shape,
)
from minijax.extend.arguments import (
    canonicalize_int_tuple,
    check_dtype,
    operator_index,
    with_out_sharding,
)
from minijax.extend.promotion import promote_dtypes_inexact, promoting
from minijax.prng.keys import (
    canonicalize_sample_shape,
    check_one_key,
    float_dtype,
    normal,
    random_split_impl,
    sample_dtype,
    uniform,
)
from minijax.typing import ArrayLike

# Samplers with parameters, one formula away from uniform or normal numbers.


@with_out_sharding
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
    return _pareto(*promote_sample_args("pareto", key, shape, dtype, b, cast=True), b)


@with_out_sharding
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
    return _rayleigh(
        *promote_sample_args("rayleigh", key, shape, dtype, scale, cast=True), scale
    )


@with_out_sharding
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
    return _wald(*promote_sample_args("wald", key, shape, dtype, mean, cast=True), mean)


@with_out_sharding
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
    corners = left, mode, right
    return _triangular(
        *promote_sample_args("triangular", key, shape, dtype, *corners, cast=True),
        *corners,
    )


@with_out_sharding
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
    key, _ = check_one_key("lognormal", key)
    words = "a float or complex dtype"
    dtype = sample_dtype("lognormal", dtype, float, np.inexact, words)
    shape = resolve_sample_shape("lognormal", shape, sigma)
    check_lossless_cast("lognormal", dtype, sigma)
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
    begin = promote_sample_args("weibull_min", key, shape, dtype)
    return _weibull_min(*begin, scale, concentration)


@with_out_sharding
def maxwell(
    key: ArrayLike, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None
) -> Array:
    """Return lengths of vectors of three normal numbers.

    Reference: ``jax.random.maxwell``.
    """
    return _maxwell(*promote_sample_args("maxwell", key, shape, dtype))


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
    begin = promote_sample_args("double_sided_maxwell", key, shape, dtype)
    return _double_sided_maxwell(*begin, loc, scale)


@with_out_sharding
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
    ends = lower, upper
    return _truncated_normal(
        *promote_sample_args("truncated_normal", key, shape, dtype, *ends), *ends
    )


@partial(jit, static_argnums=(1, 2))
def _pareto(key, shape, dtype, b):
    b = lax.convert_element_type(b, dtype)
    return lax.exp(exponential(key, shape, dtype) / b)


@partial(jit, static_argnums=(1, 2))
def _rayleigh(key, shape, dtype, scale):
    log = lax.log(uniform(key, shape, dtype))
    return broadcast_parameter(scale, dtype, shape) * lax.sqrt(log * dtype.type(-2))


@partial(jit, static_argnums=(1, 2))
def _wald(key, shape, dtype, mean):
    k1, k2 = random_split_impl(key, (2,))
    mean = broadcast_parameter(mean, dtype, shape)
    z = uniform(k2, shape, dtype)
    y = normal(k1, shape, dtype) ** 2
    mean_sq = mean**2
    root = lax.sqrt(4 * mean * y + mean_sq * y**2)
    x = mean + mean_sq * y / 2 - mean / 2 * root
    return lax.select(z <= mean / (mean + x), x, mean_sq / x)


@partial(jit, static_argnums=(1, 2), inline=True)
def _triangular(key, shape, dtype, left, mode, right):
    left, right, mode = (
        broadcast_parameter(x, dtype, shape) for x in (left, right, mode)
    )
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
    length, sign = random_split_impl(key, (2,))
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


# Samplers that need factors of matrices.


@promoting
@with_out_sharding
def multivariate_normal(
    key: ArrayLike,
    mean: ArrayLike,
    cov: ArrayLike,
    shape: Any = None,
    dtype: Any = None,
    method: str = "cholesky",
    *,
    out_sharding: Any = None,
) -> Array:
    """Return vectors of normal numbers with given means and covariances.

    Args:
      key: a key.
      mean: of shape ``[..., n]``.
      cov: symmetric, positive definite, of shape ``[..., n, n]``.
      shape: of the sample without its last axis; by default, what `mean` and `cov`
        broadcast to there.
      dtype: a float dtype, by default that of `mean` and `cov`.
      method: ``"cholesky"``, or for singular covariances ``"eigh"`` or ``"svd"``.

    Raises:
      ValueError: for another method, dtype, or shapes that do not fit.

    Reference: ``jax.random.multivariate_normal``.
    """
    key, _ = check_one_key("multivariate_normal", key)
    mean, cov = map(jnp.asarray, promote_dtypes_inexact(mean, cov))
    if method not in ("svd", "eigh", "cholesky"):
        raise ValueError("method must be one of {'svd', 'eigh', 'cholesky'}")
    dtype = float_dtype("multivariate_normal", mean.dtype if dtype is None else dtype)
    shape = _shape_of_vectors(shape, mean.shape, cov.shape)
    return _multivariate_normal(key, shape, dtype, method, mean, cov)


@with_out_sharding
def orthogonal(
    key: ArrayLike,
    n: int,
    shape: Any = (),
    dtype: Any = None,
    m: int | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Return orthogonal matrices, no direction preferred.

    Args:
      key: a key.
      n: the number of rows.
      shape: of the sample without its last two axes.
      dtype: a float or complex dtype.
      m: the number of columns, by default `n`; the shorter ones of rows and columns are
        orthonormal.

    Reference: ``jax.random.orthogonal``.
    """
    key, _ = check_one_key("orthogonal", key)
    n, m = canonicalize_int_tuple([n, n if m is None else m], "n and m")
    inexact = np.inexact, "a float or complex dtype"
    dtype = sample_dtype("orthogonal", dtype, float, *inexact)
    return _orthogonal(key, (*canonicalize_sample_shape(shape), n, m), dtype)


def _shape_of_vectors(shape, mean, cov):
    if not mean or len(cov) < 2:
        raise ValueError(
            "multivariate_normal requires mean.ndim >= 1 and cov.ndim >= 2, got "
            f"mean.ndim == {len(mean)} and cov.ndim == {len(cov)}"
        )
    if cov[-2:] != mean[-1:] * 2:
        raise ValueError(
            "multivariate_normal requires cov.shape == (..., n, n) for "
            f"n={mean[-1]}, but got cov.shape == {cov}."
        )
    if shape is None:
        return lax.broadcast_shapes(mean[:-1], cov[:-2])
    shape = canonicalize_sample_shape(shape)
    check_shape("normal", shape, mean[:-1], cov[:-2])
    return shape


@partial(jit, static_argnums=(1, 2, 3))
def _multivariate_normal(key, shape, dtype, method, mean, cov):
    if method == "svd":
        u, s, _ = jnp.linalg.svd(cov)
        factor = u * jnp.sqrt(s[..., None, :])
    elif method == "eigh":
        w, v = jnp.linalg.eigh(cov)
        factor = v * jnp.sqrt(w[..., None, :])
    else:
        factor = jnp.linalg.cholesky(cov)
    vectors = normal(key, (*shape, mean.shape[-1]), dtype)
    return mean + jnp.matmul(factor, vectors[..., None])[..., 0]


@partial(jit, static_argnums=(1, 2))
def _orthogonal(key, shape, dtype):
    *batch, n, m = shape
    z = normal(key, (*batch, max(n, m), min(n, m)), dtype)
    q, r = jnp.linalg.qr(z)
    signs = jnp.sign(jnp.diagonal(r, axis1=-2, axis2=-1))
    x = q * signs[..., None, :]
    return jnp.matrix_transpose(x) if n < m else x


# Samplers that are made of gamma numbers.


@with_out_sharding
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
    return _beta(*promote_sample_args("beta", key, shape, dtype, a, b, cast=True), a, b)


@with_out_sharding
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
    key, _ = check_one_key("dirichlet", key)
    dtype = float_dtype("dirichlet", dtype)
    if np.ndim(alpha) < 1:
        raise ValueError(
            f"dirichlet requires alpha.ndim >= 1, got alpha.ndim == {np.ndim(alpha)}"
        )
    *batch, size = np.shape(alpha)
    shape = tuple(batch) if shape is None else canonicalize_sample_shape(shape)
    check_shape("dirichlet", shape, tuple(batch))
    return _dirichlet(key, (*shape, size), dtype, alpha)


@with_out_sharding
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
    return _chisquare(
        *promote_sample_args("chisquare", key, shape, dtype, df, cast=True), df
    )


@with_out_sharding
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
    degrees = dfnum, dfden
    return _f(
        *promote_sample_args("f", key, shape, dtype, *degrees, cast=True), *degrees
    )


@with_out_sharding
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
    return _t(*promote_sample_args("t", key, shape, dtype, df, cast=True), df)


@with_out_sharding
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
    key, _ = check_one_key("generalized_normal", key)
    dtype = check_dtype(float if dtype is None else dtype, "generalized_normal")
    return _generalized_normal(key, canonicalize_sample_shape(shape), dtype, p)


@with_out_sharding
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
    key, _ = check_one_key("ball", key)
    dtype = check_dtype(float if dtype is None else dtype, "ball")
    return _ball(
        key, canonicalize_sample_shape(shape), dtype, operator_index(d, "d of ball"), p
    )


@partial(jit, static_argnums=(1, 2))
def _beta(key, shape, dtype, a, b):
    keys = random_split_impl(key, (2,))
    shapes = (broadcast_parameter(x, dtype, shape) for x in (a, b))
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
    lower, upper = random_split_impl(key, (2,))
    num = chisquare(upper, dfnum, shape, dtype) / dfnum
    return num / (chisquare(lower, dfden, shape, dtype) / dfden)


@partial(jit, static_argnums=(1, 2))
def _t(key, shape, dtype, df):
    half = lax.convert_element_type(df, dtype) / dtype.type(2)
    key_n, key_g = random_split_impl(key, (2,))
    n = normal(key_n, shape, dtype)
    return n * jnp.sqrt(half / gamma(key_g, half, shape, dtype))


@partial(jit, static_argnums=(1, 2))
def _generalized_normal(key, shape, dtype, p):
    size, sign = random_split_impl(key, (2,))
    g = gamma(size, 1 / p, shape, dtype)
    return rademacher(sign, shape, dtype) * g ** (1 / p)


@partial(jit, static_argnums=(1, 2, 3))
def _ball(key, shape, dtype, d, p):
    k1, k2 = random_split_impl(key, (2,))
    g = generalized_normal(k1, p, (*shape, d), dtype)
    e = exponential(k2, shape, dtype)
    return g / (((jnp.abs(g) ** p).sum(-1) + e) ** (1 / p))[..., None]
