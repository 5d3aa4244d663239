"""Distributions of several numbers together.

Reference: ``jax.scipy.stats``.
"""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

import math
from typing import Any

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.branches.calling import vectorize
from minijax.core import Array
from minijax.factorizations.cholesky import cholesky
from minijax.factorizations.triangular import triangular_solve
from minijax.lax.promotion import check_arraylike, promote_dtypes_inexact
from minijax.scipy.special.entropies import xlogy
from minijax.scipy.special.gamma_functions import gammaln
from minijax.scipy.stats.records import Distribution


def _dirichlet_logpdf(x: Any, alpha: Any) -> Array:
    """Return the logarithm of the density of shares `x`, along the first axis.

    Raises:
      ValueError: if their shapes do not fit.

    Reference: ``jax.scipy.stats.dirichlet.logpdf``.
    """
    check_arraylike("dirichlet.logpdf", x, alpha)
    x, alpha = promote_dtypes_inexact(jnp.asarray(x), jnp.asarray(alpha))
    if alpha.ndim != 1:
        raise ValueError(
            f"`alpha` must be one-dimensional; got alpha.shape={alpha.shape}"
        )
    if x.shape[0] not in (alpha.shape[0], alpha.shape[0] - 1):
        raise ValueError(
            "`x` must have either the same number of entries as `alpha` or one entry "
            f"fewer; got x.shape={x.shape}, alpha.shape={alpha.shape}"
        )
    if x.shape[0] != alpha.shape[0]:
        x = jnp.concatenate([x, 1 - x.sum(0, keepdims=True)], axis=0)
    normal = gammaln(alpha).sum() - gammaln(alpha.sum())
    powers = alpha.reshape(-1, *[1] * (x.ndim - 1)) - 1
    inside = (x > 0).all(0) & (abs(x.sum(0) - 1) < 1e-6)
    return jnp.where(inside, xlogy(powers, x).sum(0) - normal, -np.inf)


def _multinomial_logpmf(x: Any, n: Any, p: Any) -> Array:
    """Return the logarithm of the probability of counts `x`, along the last axis.

    Raises:
      ValueError: if they are not integers.

    Reference: ``jax.scipy.stats.multinomial.logpmf``.
    """
    check_arraylike("multinomial.logpmf", x, n, p)
    x, n = jnp.asarray(x), jnp.asarray(n)
    [p] = promote_dtypes_inexact(jnp.asarray(p))
    if x.dtype.kind not in "iu" or n.dtype.kind not in "iu":
        raise ValueError(
            "x and n must be of integer type; got "
            f"x.dtype={x.dtype}, n.dtype={n.dtype}"
        )
    x, n = x.astype(p.dtype), n.astype(p.dtype)
    logs = gammaln(n + 1) + (xlogy(x, p) - gammaln(x + 1)).sum(-1)
    return jnp.where(x.sum() == n, logs, -np.inf)


def _normal_logpdf(
    x: Any, mean: Any, cov: Any, allow_singular: None = None
) -> Array:
    """Return the logarithm of the normal density of vectors in the last axis.

    Args:
      x: vectors, of shape ``[..., n]``; or numbers, if `mean` is one.
      mean: a vector, or vectors, or a number.
      cov: covariances, of shape ``[..., n, n]``; or the variance of each number.
      allow_singular: has to be None.

    Raises:
      ValueError: if their shapes do not fit.

    Reference: ``jax.scipy.stats.multivariate_normal.logpdf``.
    """
    if allow_singular is not None:
        raise NotImplementedError(
            "allow_singular argument of multivariate_normal.logpdf"
        )
    x, mean, cov = promote_dtypes_inexact(*map(jnp.asarray, (x, mean, cov)))
    log_tau = math.log(2 * np.pi)
    if not mean.ndim:
        return -0.5 * lax.square(x - mean) / cov - 0.5 * (log_tau + lax.log(cov))
    n = mean.shape[-1]
    if not cov.ndim:
        size = lax.square(x - mean).sum(-1)
        return -0.5 * size / cov - n / 2 * (log_tau + lax.log(cov))
    if cov.ndim < 2 or cov.shape[-2:] != (n, n):
        raise ValueError(
            "multivariate_normal.logpdf got incompatible shapes: mean has "
            f"{mean.shape}, cov has {cov.shape}; cov needs (..., {n}, {n})."
        )
    factor = cholesky(cov)
    white = vectorize(
        lambda a, b: triangular_solve(a, b, left_side=True, lower=True),
        signature="(n,n),(n)->(n)",
    )(factor, x - mean)
    logs = lax.log(jnp.diagonal(factor, axis1=-1, axis2=-2)).sum(-1)
    return -0.5 * lax.square(white).sum(-1) - n / 2 * log_tau - logs


def _dirichlet_pdf(x: Any, alpha: Any) -> Array:
    """Reference: ``jax.scipy.stats.dirichlet.pdf``."""
    return lax.exp(_dirichlet_logpdf(x, alpha))


def _multinomial_pmf(x: Any, n: Any, p: Any) -> Array:
    """Reference: ``jax.scipy.stats.multinomial.pmf``."""
    return lax.exp(_multinomial_logpmf(x, n, p))


def _normal_pdf(x: Any, mean: Any, cov: Any) -> Array:
    """Reference: ``jax.scipy.stats.multivariate_normal.pdf``."""
    return lax.exp(_normal_logpdf(x, mean, cov))


dirichlet = Distribution(
    __name__="dirichlet", logpdf=_dirichlet_logpdf, pdf=_dirichlet_pdf
)
multinomial = Distribution(
    __name__="multinomial", logpmf=_multinomial_logpmf, pmf=_multinomial_pmf
)
multivariate_normal = Distribution(
    __name__="multivariate_normal", logpdf=_normal_logpdf, pdf=_normal_pdf
)
