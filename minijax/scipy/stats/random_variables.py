"""Distributions as records of formulas: continuous, discrete, of several numbers.

References: ``jax.scipy.stats.norm`` and its like, which are modules there,
``jax.scipy.stats``.
"""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

import inspect
import math
import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.core import Array
from minijax.extend.arguments import check_arraylike
from minijax.extend.promotion import promote_dtypes_inexact, promoting
from minijax.lax.linalg import cholesky, triangular_solve
from minijax.numpy import vectorize
from minijax.scipy.special.entropies import log_ndtr, logit, ndtr, ndtri, xlog1py, xlogy
from minijax.scipy.special.gamma_functions import (
    betaln,
    bind_arguments,
    expit,
    gammaln,
    lower_incomplete_gamma,
    promote_args_inexact,
    raise_if_complex,
    regularized_incomplete_beta,
    scaled_i0,
    upper_incomplete_gamma,
)

# The paths of distributions, which Python may import like modules.

DISTRIBUTIONS = """
    bernoulli beta betabinom binom cauchy chi2 dirichlet expon gamma gennorm geom
    gumbel_l gumbel_r laplace logistic multinomial multivariate_normal nbinom norm
    pareto poisson t truncnorm uniform vonmises wrapcauchy
""".split()


class DistributionPath(ModuleType):
    """What Python finds at the path of a distribution: its functions."""

    def __getattr__(self, name):
        space, _, distribution = self.__name__.rpartition(".")
        found = sys.modules[space].__getattr__(distribution)
        if found is self:
            raise AttributeError(f"{self.__name__} has no {name!r} yet")
        return getattr(found, name)


def offer_paths(space):
    """Let ``import space.norm`` find the distribution of that name."""
    paths = [f"{space}.{distribution}" for distribution in DISTRIBUTIONS]
    sys.modules.update({path: DistributionPath(path) for path in paths})


# A distribution as a record of formulas, for location 0 and scale 1.


class Distribution(SimpleNamespace):
    """The functions of a probability distribution.

    Each distribution has some of them: the density `pdf` or the probability `pmf`, the
    cumulative `cdf` and what is left of 1, `sf`, with their logarithms, and the
    inverses `ppf` and `isf`.
    """

    pdf: Callable[..., Array]
    logpdf: Callable[..., Array]
    pmf: Callable[..., Array]
    logpmf: Callable[..., Array]
    cdf: Callable[..., Array]
    logcdf: Callable[..., Array]
    sf: Callable[..., Array]
    logsf: Callable[..., Array]
    ppf: Callable[..., Array]
    isf: Callable[..., Array]
    entropy: Callable[..., Array]

    def __repr__(self):
        return f"<distribution {self.__name__}: {', '.join(self._functions())}>"

    def _functions(self):
        return [name for name in vars(self) if not name.startswith("_")]


DERIVED = {
    "pdf": ("logpdf", lax.exp),
    "pmf": ("logpmf", lax.exp),
    "cdf": ("logcdf", lax.exp),
    "sf": ("logsf", lax.exp),
    "logcdf": ("cdf", lax.log),
    "logsf": ("sf", lax.log),
}


def distribution(name, derived="", anchored=False, real=False, **formulas):
    """Return a record of functions of promoted arrays.

    Args:
      name: of the distribution.
      derived: names of functions that are exponentials or logarithms of others.
      anchored: whether constants are of the dtype of the first argument, so that its
        results are not weak if that is an array with axes.
      real: whether complex numbers are a TypeError, as where JAX compares them.
      **formulas: functions whose parameters and defaults are those of users.
    """
    for other in derived.split():
        source, outer = DERIVED[other]
        formulas[other] = _after(outer, formulas[source])
    made = {
        key: _of_arrays(name, key, formula, anchored, real)
        for key, formula in formulas.items()
    }
    return Distribution(__name__=name, **made)


def _after(outer, formula):
    def composed(*args):
        return outer(formula(*args))

    composed.__signature__ = inspect.signature(formula)
    return composed


def _of_arrays(name, key, formula, anchored, real):
    signature = inspect.signature(formula)

    def of_arrays(*args, **kwargs):
        bound = bind_arguments(f"{name}.{key}", signature, args, kwargs)
        bound.apply_defaults()
        x, *rest = promote_args_inexact(f"{name}.{key}", *bound.args)
        if real:
            raise_if_complex(f"{name}.{key}", x, TypeError)
        if anchored and np.ndim(bound.args[0]):
            x = lax.convert_element_type(x, x.dtype)  # it stays, and is not weak
        return formula(x, *rest)

    of_arrays.__signature__ = signature
    of_arrays.__name__, of_arrays.__qualname__ = key, f"{name}.{key}"
    of_arrays.__doc__ = f"Reference: ``jax.scipy.stats.{name}.{key}``."
    return of_arrays


def density(formula, low, high, like):
    """Return the logarithm of a density with location and scale."""

    def moved(x, *shapes, loc, scale):
        z = (x - loc) / scale
        size = lax.log(abs(scale) if like == "mirrored" else scale)
        if low == -np.inf:
            return formula(z, *shapes) - size
        below, above = _beyond(x, loc, scale, low, high)
        outside = below if above is None else below | above
        z = jnp.where(outside, low + 0.5 if high == 1 else low + 1, z)
        return jnp.where(outside, -np.inf, formula(z, *shapes) - size)

    return moved


def _beyond(x, loc, scale, low, high):
    """Return where `x` lies below the support, and where above it, if it has an end."""
    below = lax.lt(x, loc + scale if low else loc)
    return below, None if high == np.inf else lax.gt(x, loc + scale)


def probability(formula, low, high, like):
    """Return a probability with location and scale, or the logarithm of one."""

    def moved(x, *shapes, loc, scale):
        z = (x - loc) / scale
        if low == -np.inf:
            return formula(z, *shapes)
        below, above = _beyond(x, loc, scale, low, high)
        if like == "clamped":
            below, above = _beyond(z, 0, 1, low, high)
        z = z if above is None else jnp.where(above, high, z)
        return formula(jnp.where(below, low, z), *shapes)

    return moved


def quantile(formula, low, high, like):
    """Return an inverse with location and scale."""

    def moved(q, *shapes, loc, scale):
        return loc + scale * formula(q, *shapes)

    return moved


MOVES: dict = {"logpdf": density, "ppf": quantile, "isf": quantile}


def location_scale_family(
    name,
    derived="",
    support=(-np.inf, np.inf),
    like="",
    valid=None,
    anchored=True,
    real=False,
    beyond="",
    **formulas,
):
    """Return a distribution with `loc` and `scale`, from formulas without them.

    Args:
      name, derived, anchored, real: as in `distribution`.
      support: the ends of where the density is not 0: 0 or 1, and 1 or infinity.
      like: JAX's answers to a negative scale, which is none. ``"mirrored"``: its size
        alone counts. ``"clamped"``: the distance from the location over the scale says
        which probabilities are 0 or 1; without it, the place of the end does.
      valid: None, or a function of all arguments: where the density is not NaN.
      beyond: names of functions whose formulas are for all numbers, and not only for
        those in the support.
      **formulas: functions of a number and the parameters of the shape.
    """
    moved = {}
    for key, formula in formulas.items():
        low, high = (-np.inf, np.inf) if key in beyond.split() else support
        rule = MOVES.get(key, probability)(formula, low, high, like)
        moved[key] = _with_location(rule, inspect.signature(formula))
        if valid and key == "logpdf":
            moved[key] = nan_if_invalid(valid, moved[key])
    return distribution(name, derived, anchored, real, **moved)


def _with_location(rule, signature):
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    last = [inspect.Parameter("loc", kind, default=0)]
    last.append(inspect.Parameter("scale", kind, default=1))

    def formula(*args):
        *shapes, loc, scale = args
        return rule(*shapes, loc=loc, scale=scale)

    formula.__signature__ = signature.replace(
        parameters=[*signature.parameters.values(), *last]
    )
    return formula


def nan_if_invalid(valid, formula):
    """Return a formula that is NaN where its parameters are not valid."""

    def checked(*args):
        return jnp.where(valid(*args), formula(*args), np.nan)

    checked.__signature__ = inspect.signature(formula)
    return checked


def quantile_or_nan(q, value):
    """Return a quantile; NaN where `q` is no probability."""
    return jnp.where((q >= 0) & (q <= 1), value, np.nan)


# Continuous distributions with a location and a scale.

_LOG_ROOT = math.log(2 * np.pi) / 2


def _two_tails(x):
    """Return the probability of at most `x`; its slope in the middle is 1/2."""
    left = x <= 0
    tail = lax.exp(jnp.where(left, x, -x)) / 2
    return jnp.where(left, tail, 1 - tail)


norm = location_scale_family(
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
cauchy = location_scale_family(
    "cauchy",
    "pdf logcdf logsf",
    logpdf=lambda x: -math.log(np.pi) - lax.log1p(x * x),
    cdf=lambda x: 0.5 + lax.atan(x) / np.pi,
    sf=lambda x: 0.5 - lax.atan(x) / np.pi,
    ppf=lambda q: lax.tan(np.pi * q - np.pi / 2),
    isf=lambda q: lax.tan(np.pi / 2 - np.pi * q),
)
laplace = location_scale_family(
    "laplace",
    "pdf",
    real=True,
    logpdf=lambda x: -abs(x) - math.log(2),
    cdf=lambda x: _two_tails(x),
)
logistic = location_scale_family(
    "logistic",
    "pdf",
    logpdf=lambda x: -2 * jnp.logaddexp(x / 2, -x / 2),
    cdf=lambda x: expit(x),
    sf=lambda x: expit(-x),
    ppf=lambda x: logit(x),
    isf=lambda x: -logit(x),
)
expon = location_scale_family(
    "expon",
    "pdf",
    (0, np.inf),
    anchored=False,
    logpdf=lambda x: -x,
    cdf=lambda x: -lax.expm1(-x),
    logcdf=lambda x: lax.log1p(-lax.exp(-x)),
    sf=lambda x: lax.exp(-x),
    logsf=lambda x: -x,
    ppf=lambda q: quantile_or_nan(q, -lax.log1p(-q)),
)
uniform = location_scale_family(
    "uniform",
    "pdf",
    (0, 1),
    anchored=False,
    logpdf=lambda x: lax.full_like(x, 0),
    cdf=lambda x: x,
    ppf=lambda q: quantile_or_nan(q, q),
)
pareto = location_scale_family(
    "pareto",
    "pdf sf",
    (1, np.inf),
    logpdf=lambda x, b: lax.log(b) - (b + 1) * lax.log(x),
    cdf=lambda x, b: 1 - x**-b,
    logcdf=lambda x, b: lax.log1p(-(x**-b)),
    logsf=lambda x, b: -b * lax.log(x),
    ppf=lambda q, b: quantile_or_nan(q, (1 - q) ** (-1 / b)),
)


gamma = location_scale_family(
    "gamma",
    "pdf logcdf logsf",
    (0, np.inf),
    like="clamped",
    logpdf=lambda x, a: xlogy(a - 1, x) - x - gammaln(a),
    cdf=lambda x, a: lower_incomplete_gamma(a, x),
    beyond="sf",
    sf=lambda x, a: jnp.where(
        x < 0, 1, upper_incomplete_gamma(a, jnp.where(x < 0, 1, x))
    ),
)
chi2 = location_scale_family(
    "chi2",
    "pdf logcdf logsf",
    (0, np.inf),
    like="clamped",
    logpdf=lambda x, df: (
        (df / 2 - 1) * lax.log(x) - x / 2 - gammaln(df / 2) - math.log(2) * df / 2
    ),
    cdf=lambda x, df: lower_incomplete_gamma(df / 2, x / 2),
    sf=lambda x, df: upper_incomplete_gamma(df / 2, x / 2),
)
beta = location_scale_family(
    "beta",
    "pdf logcdf logsf",
    (0, 1),
    like="clamped",
    valid=lambda x, a, b, loc, scale: (a > 0) & (b > 0) & (scale > 0),
    logpdf=lambda x, a, b: xlogy(a - 1, x) + xlog1py(b - 1, -x) - betaln(a, b),
    cdf=lambda x, a, b: regularized_incomplete_beta(a, b, x),
    sf=lambda x, a, b: regularized_incomplete_beta(b, a, 1 - x),
)
t = location_scale_family(
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
        return nan_if_invalid(valid, moved)

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
        0.5 * (1 + lax.sign(x) * lower_incomplete_gamma(1 / beta, abs(x) ** beta))
    ),
)
vonmises = distribution(
    "vonmises",
    "pdf",
    logpdf=nan_if_invalid(
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
    logpdf=nan_if_invalid(
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


truncnorm = location_scale_family(
    "truncnorm",
    "pdf cdf sf",
    like="mirrored",
    logpdf=lambda x, a, b: _log_density_cut(x, a, b),
    logcdf=lambda x, a, b: _log_below_cut(x, a, b),
    logsf=lambda x, a, b: _log_below_cut(-x, -b, -a),
)


# Distributions of counts, and of several numbers together.


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
    return jnp.where(x < 0, 0, upper_incomplete_gamma(lax.floor(1 + x), mu))


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


# Distributions of several numbers together.


@promoting
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


@promoting
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
