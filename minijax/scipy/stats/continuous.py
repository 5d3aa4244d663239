"""Continuous distributions with a location and a scale.

Reference: ``jax.scipy.stats``.
"""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

import math

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.scipy.special.bessel import scaled_i0
from minijax.scipy.special.entropies import logit, xlog1py, xlogy
from minijax.scipy.special.gamma_functions import betaln, expit, gammaln
from minijax.scipy.special.incomplete import incomplete_beta, lower_gamma, upper_gamma
from minijax.scipy.special.normal_integrals import log_ndtr, ndtr, ndtri
from minijax.scipy.stats.records import between, distribution, family, if_valid

_LOG_ROOT = math.log(2 * np.pi) / 2


def _two_tails(x):
    """Return the probability of at most `x`; its slope in the middle is 1/2."""
    left = x <= 0
    tail = lax.exp(jnp.where(left, x, -x)) / 2
    return jnp.where(left, tail, 1 - tail)


norm = family(
    "norm",
    "pdf",
    like="mirrored",
    logpdf=lambda x: -x * x / 2 - _LOG_ROOT,
    cdf=lambda x: ndtr(x),
    logcdf=lambda x: log_ndtr(x),
    sf=lambda x: ndtr(-x),
    logsf=lambda x: log_ndtr(-x),
    ppf=lambda q: ndtri(q),
    isf=lambda q: ndtri(1 - q),
)
cauchy = family(
    "cauchy",
    "pdf logcdf logsf",
    logpdf=lambda x: -math.log(np.pi) - lax.log1p(x * x),
    cdf=lambda x: 0.5 + lax.atan(x) / np.pi,
    sf=lambda x: 0.5 - lax.atan(x) / np.pi,
    ppf=lambda q: lax.tan(np.pi * q - np.pi / 2),
    isf=lambda q: lax.tan(np.pi / 2 - np.pi * q),
)
laplace = family(
    "laplace",
    "pdf",
    real=True,
    logpdf=lambda x: -abs(x) - math.log(2),
    cdf=lambda x: _two_tails(x),
)
logistic = family(
    "logistic",
    "pdf",
    logpdf=lambda x: -2 * jnp.logaddexp(x / 2, -x / 2),
    cdf=lambda x: expit(x),
    sf=lambda x: expit(-x),
    ppf=lambda x: logit(x),
    isf=lambda x: -logit(x),
)
expon = family(
    "expon",
    "pdf",
    (0, np.inf),
    anchored=False,
    logpdf=lambda x: -x,
    cdf=lambda x: -lax.expm1(-x),
    logcdf=lambda x: lax.log1p(-lax.exp(-x)),
    sf=lambda x: lax.exp(-x),
    logsf=lambda x: -x,
    ppf=lambda q: between(q, -lax.log1p(-q)),
)
uniform = family(
    "uniform",
    "pdf",
    (0, 1),
    anchored=False,
    logpdf=lambda x: lax.full_like(x, 0),
    cdf=lambda x: x,
    ppf=lambda q: between(q, q),
)
pareto = family(
    "pareto",
    "pdf sf",
    (1, np.inf),
    logpdf=lambda x, b: lax.log(b) - (b + 1) * lax.log(x),
    cdf=lambda x, b: 1 - x**-b,
    logcdf=lambda x, b: lax.log1p(-(x**-b)),
    logsf=lambda x, b: -b * lax.log(x),
    ppf=lambda q, b: between(q, (1 - q) ** (-1 / b)),
)


gamma = family(
    "gamma",
    "pdf logcdf logsf",
    (0, np.inf),
    like="clamped",
    logpdf=lambda x, a: xlogy(a - 1, x) - x - gammaln(a),
    cdf=lambda x, a: lower_gamma(a, x),
    beyond="sf",
    sf=lambda x, a: jnp.where(x < 0, 1, upper_gamma(a, jnp.where(x < 0, 1, x))),
)
chi2 = family(
    "chi2",
    "pdf logcdf logsf",
    (0, np.inf),
    like="clamped",
    logpdf=lambda x, df: (
        (df / 2 - 1) * lax.log(x) - x / 2 - gammaln(df / 2) - math.log(2) * df / 2
    ),
    cdf=lambda x, df: lower_gamma(df / 2, x / 2),
    sf=lambda x, df: upper_gamma(df / 2, x / 2),
)
beta = family(
    "beta",
    "pdf logcdf logsf",
    (0, 1),
    like="clamped",
    valid=lambda x, a, b, loc, scale: (a > 0) & (b > 0) & (scale > 0),
    logpdf=lambda x, a, b: xlogy(a - 1, x) + xlog1py(b - 1, -x) - betaln(a, b),
    cdf=lambda x, a, b: incomplete_beta(a, b, x),
    sf=lambda x, a, b: incomplete_beta(b, a, 1 - x),
)
t = family(
    "t",
    "pdf",
    like="mirrored",
    logpdf=lambda x, df: (
        gammaln(df / 2 + 0.5)
        - gammaln(df / 2)
        - lax.log(np.pi * df) / 2
        - (df / 2 + 0.5) * lax.log1p(x * x / df)
    ),
)


def _expected(z):
    """Return ``exp(-z)``, or 1097 where it is more: ``exp(-1097)`` is 0 already."""
    return lax.exp(-jnp.maximum(z, -7))


def _log_of_rest(z):
    """Return ``log(1 - exp(-exp(-z)))``; each formula has numbers of its own side."""
    x = _expected(z)
    left, right = x > math.log(2), z > 7
    high = lax.log1p(-lax.exp(-jnp.where(left, x, 1)))
    low = lax.log(-lax.expm1(-jnp.where(left | right, 1, x)))
    return jnp.where(right, x * x / 24 - x / 2 - z, jnp.where(left, high, low))


def gumbel(name, sign, **probabilities):
    """Return a Gumbel distribution, with its tail to the right or, for -1, the left."""

    def of_scale(formula):
        valid = lambda x, loc=0, scale=1: scale > 0  # noqa: E731
        moved = lambda x, loc=0, scale=1: formula(sign * (x - loc) / scale, scale)  # noqa: E731
        return if_valid(valid, moved)

    def quantile(p, loc=0, scale=1):
        z = -lax.log(-lax.log(p)) if sign == 1 else lax.log(-lax.log1p(-p))
        return jnp.where((p > 0) & (p < 1), loc + scale * z, np.nan)

    def log_density(z, scale):
        return -z - lax.exp(-z) - lax.log(scale)

    tails = {
        key: of_scale(lambda z, _, f=formula: f(z))
        for key, formula in probabilities.items()
    }
    given = {"logpdf": of_scale(log_density), "ppf": quantile} | tails
    return distribution(name, "pdf", real=True, **given)


_NEAR = {"log": lambda z: -lax.exp(-z), "plain": lambda z: lax.exp(-_expected(z))}
_REST = {"log": _log_of_rest, "plain": lambda z: -lax.expm1(-_expected(z))}
gumbel_r = gumbel(
    "gumbel_r",
    1,
    cdf=_NEAR["plain"],
    logcdf=_NEAR["log"],
    sf=_REST["plain"],
    logsf=_REST["log"],
)
gumbel_l = gumbel(
    "gumbel_l",
    -1,
    cdf=_REST["plain"],
    logcdf=_REST["log"],
    sf=_NEAR["plain"],
    logsf=_NEAR["log"],
)
gennorm = distribution(
    "gennorm",
    "pdf",
    logpdf=lambda x, beta: lax.log(beta / 2) - gammaln(1 / beta) - abs(x) ** beta,
    cdf=lambda x, beta: (
        0.5 * (1 + lax.sign(x) * lower_gamma(1 / beta, abs(x) ** beta))
    ),
)
vonmises = distribution(
    "vonmises",
    "pdf",
    logpdf=if_valid(
        lambda x, kappa: lax.gt(kappa, 0),
        lambda x, kappa: (
            kappa * (lax.cos(x) - 1) - lax.log(2 * np.pi * scaled_i0(kappa))
        ),
    ),
)
wrapcauchy = distribution(
    "wrapcauchy",
    "pdf",
    real=True,
    logpdf=if_valid(
        lambda x, c: (c > 0) & (c < 1),
        lambda x, c: jnp.where(
            (x >= 0) & (x <= 2 * np.pi),
            lax.log(1 - c * c)
            - math.log(2 * np.pi)
            - lax.log(1 + c * c - 2 * c * lax.cos(x)),
            -np.inf,
        ),
    ),
)


def _log_mass(a, b):
    """Return the logarithm of the normal distribution's mass from `a` to `b`."""
    right, central = a > 0, (a <= 0) & (b > 0)
    low, high = jnp.where(right, -b, a), jnp.where(right, -a, b)
    high_log = log_ndtr(high)
    tail = high_log + lax.log1p(-lax.exp(log_ndtr(low) - high_log))
    return jnp.where(central, lax.log1p(-ndtr(a) - ndtr(-b)), tail)


def _log_below_cut(z, a, b):
    inside = (z > a) & (z < b)  # elsewhere a mass may be 0, with an infinite slope
    low, x, high = (jnp.where(inside, y, i) for i, y in enumerate((a, z, b), -1))
    whole = _log_mass(low, high)
    below, above = _log_mass(low, x) - whole, _log_mass(x, high) - whole
    value = jnp.where(below > -0.1, lax.log1p(-lax.exp(above)), below)
    value = jnp.where(z >= b, 0, jnp.where(z <= a, -np.inf, value))
    return jnp.where(a >= b, np.nan, value)


def _log_density_cut(z, a, b):
    value = -z * z / 2 - _LOG_ROOT - _log_mass(a, b)
    value = jnp.where((z < a) | (z > b), -np.inf, value)
    return jnp.where(a >= b, np.nan, value)


truncnorm = family(
    "truncnorm",
    "pdf cdf sf",
    like="mirrored",
    logpdf=lambda x, a, b: _log_density_cut(x, a, b),
    logcdf=lambda x, a, b: _log_below_cut(x, a, b),
    logsf=lambda x, a, b: _log_below_cut(-x, -b, -a),
)
