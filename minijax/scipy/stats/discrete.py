"""Distributions of counts, and of several numbers together.

Reference: ``jax.scipy.stats``.
"""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.scipy.special.entropies import xlog1py, xlogy
from minijax.scipy.special.gamma_functions import betaln, gammaln
from minijax.scipy.special.incomplete import upper_gamma
from minijax.scipy.stats.records import distribution


def _log_bernoulli(k, p, loc=0):
    x = k - loc
    value = xlogy(x, p) + xlog1py(1 - x, -p)
    return jnp.where(lax.lt(x, 0) | (x > 1), -np.inf, value)


def _invalid_share(p):
    return ~((p >= 0) & (p <= 1))


def _bernoulli_below(k, p):
    value = jnp.where(k < 0, 0, jnp.where(k < 1, 1 - p, 1))
    return jnp.where(jnp.isnan(k) | _invalid_share(p), np.nan, value)


def _bernoulli_quantile(q, p):
    zero, one = (np.asarray(value, q.dtype) for value in (0, 1))
    value = jnp.where(q <= 1 - p, zero, one)
    return jnp.where(_invalid_share(q) | _invalid_share(p), np.nan, value)


def _log_binomial(k, n, p, loc=0):
    y = k - loc
    ways = gammaln(n + 1) - gammaln(y + 1) - gammaln(n - y + 1)
    shares = xlogy(y, p) + xlog1py(n - y, -p)
    sure = (y == 0) & (n == 0) | (shares == 0)
    value = jnp.where(sure, 0, ways + shares)
    return jnp.where((k >= loc) & (k < loc + n + 1), value, -np.inf)


def _log_beta_binomial(k, n, a, b, loc=0):
    y = lax.floor(k) - loc
    ways = -lax.log1p(n) - betaln(n - y + 1, y + 1)
    value = ways + betaln(y + a, n - y + b) - betaln(a, b)
    value = jnp.where(lax.eq(y, 0) & (n == 0), 0, value)
    value = jnp.where((y < -loc) | (y > n) | (y + a <= 0), -np.inf, value)
    return jnp.where((n < 0) | (a <= 0) | (b <= 0), np.nan, value)


def _log_negative_binomial(k, n, p, loc=0):
    y = k - loc
    ways = gammaln(y + n) - gammaln(n) - gammaln(y + 1)
    return jnp.where(k < loc, -np.inf, ways + xlogy(n, p) + xlogy(y, 1 - p))


def _log_geometric(k, p, loc=0):
    x = k - loc
    return jnp.where(x <= 0, -np.inf, xlog1py(x - 1, -p) + lax.log(p))


def _log_poisson(k, mu, loc=0):
    x = k - loc
    outside = (x < 0) | (jnp.round(k) != k)
    return jnp.where(outside, -np.inf, xlogy(x, mu) - gammaln(x + 1) - mu)


def _poisson_below(k, mu, loc=0):
    x = k - loc
    return jnp.where(x < 0, 0, upper_gamma(lax.floor(1 + x), mu))


def _poisson_entropy(mu, loc=0):
    """Sum what counts contribute up to 250; for means from 100 on, an expansion."""
    mean = jnp.broadcast_to(mu, lax.broadcast_shapes(mu.shape, loc.shape))
    k = lax.broadcasted_iota(mean.dtype, (250, *mean.shape), 0)
    logs = _log_poisson(k, jnp.clip(mean, 0, 100), lax.full_like(mean, 0))
    total = -jnp.where(logs == -np.inf, 0, lax.exp(logs) * logs).sum(0)
    far = 0.5 * jnp.log(2 * np.pi * np.e * mean) - 1 / (12 * mean)
    return jnp.where(lax.eq(mean, 0), 0, jnp.where(mean < 100, total, far))


bernoulli = distribution(
    "bernoulli",
    "pmf",
    anchored=True,
    real=True,
    logpmf=_log_bernoulli,
    cdf=_bernoulli_below,
    ppf=_bernoulli_quantile,
)
binom = distribution("binom", "pmf", logpmf=_log_binomial)
betabinom = distribution("betabinom", "pmf", True, logpmf=_log_beta_binomial)
nbinom = distribution("nbinom", "pmf", True, logpmf=_log_negative_binomial)
geom = distribution("geom", "pmf", True, True, logpmf=_log_geometric)
poisson = distribution(
    "poisson",
    "pmf",
    logpmf=_log_poisson,
    cdf=_poisson_below,
    entropy=_poisson_entropy,
)
