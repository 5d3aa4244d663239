"""Samplers that need factors of matrices.

Reference: ``jax.random``; F. Mezzadri, *How to generate random matrices from the
classical compact groups* (2007).
"""

# Made from chapters/32_random_rest.md by `make chapter`;
# edit the chapter, not this file.

from functools import partial
from typing import Any

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.arrays.checks import integers, refuse_sharding
from minijax.core import Array
from minijax.distributions.sampling import check_shape
from minijax.jitting.api import jit
from minijax.lax.promotion import promote_dtypes_inexact
from minijax.randomness.making_keys import (
    check_one_key,
    float_dtype,
    sampled_dtype,
    shape_asked,
)
from minijax.randomness.normal import normal
from minijax.typing import ArrayLike


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
    refuse_sharding("multivariate_normal", out_sharding)
    key, _ = check_one_key("multivariate_normal", key)
    mean, cov = map(jnp.asarray, promote_dtypes_inexact(mean, cov))
    if method not in ("svd", "eigh", "cholesky"):
        raise ValueError("method must be one of {'svd', 'eigh', 'cholesky'}")
    dtype = float_dtype("multivariate_normal", mean.dtype if dtype is None else dtype)
    shape = _shape_of_vectors(shape, mean.shape, cov.shape)
    return _multivariate_normal(key, shape, dtype, method, mean, cov)


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
    refuse_sharding("orthogonal", out_sharding)
    key, _ = check_one_key("orthogonal", key)
    n, m = integers([n, n if m is None else m], "n and m")
    inexact = np.inexact, "a float or complex dtype"
    dtype = sampled_dtype("orthogonal", dtype, float, *inexact)
    return _orthogonal(key, (*shape_asked(shape), n, m), dtype)


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
    shape = shape_asked(shape)
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
