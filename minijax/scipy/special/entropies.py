"""Entropies, shares, integrals of the normal density, and names that lax has.

References: ``jax.scipy.special``, ``jax.scipy.special.ndtr``.
"""

# Made from chapters/33_library_ground.md by `make chapter`;
# edit the chapter, not this file.

import math

import numpy as np

from minijax import custom_jvp, lax
from minijax import numpy as jnp
from minijax.core import Array
from minijax.extend.arguments import operator_index
from minijax.scipy.special.gamma_functions import (
    bernoulli_numbers,
    bessel_i0,
    bessel_i1,
    def_special,
    def_special_binary,
    def_special_real,
    def_special_unary,
    first_kind,
    hurwitz_zeta,
    lower_incomplete_gamma,
    polygamma_of,
    promote_args_inexact,
    raise_if_complex,
    regularized_incomplete_beta,
    scaled_i0,
    scaled_i1,
    upper_incomplete_gamma,
)
from minijax.typing import ArrayLike

# Products with logarithms, entropies, and transformations of shares.


def times_log(name, log, inside):
    """Return ``x * log(y)``, which is 0 where `x` is 0; with its derivatives.

    Args:
      name: of the function.
      log: a logarithm.
      inside: from `y`, the number whose reciprocal is the slope of ``log(y)``.
    """

    @custom_jvp
    def product(x, y):
        return jnp.where((x != 0) | jnp.isnan(y), x * log(y), lax.full_like(x, 0))

    @product.defjvp
    def jvp(primals, tangents):
        (x, y), (t, u) = primals, tangents
        return product(x, y), (t * log(y) + u * (x / inside(y))).astype(x.dtype)

    return def_special_binary(
        name, f"``x * {log.__name__}(y)``, 0 where x is 0", product
    )


xlogy = times_log("xlogy", lax.log, lambda y: y)
xlog1py = times_log("xlog1py", lax.log1p, lambda y: 1 + y)


@custom_jvp
def _logit(x):
    return lax.log(x / (1 - x))


_logit.defjvps(lambda t, y, x: t / (x * (1 - x)))


@custom_jvp
def _x_log_x(x):
    return xlogy(x, x)


_x_log_x.defjvps(lambda t, y, x: t * (lax.log(x) + 1))


def _entropy(x):
    raise_if_complex("entr", x)
    return jnp.where(x < 0, -np.inf, -_x_log_x(x))


def _relative_entropy(p, q):
    raise_if_complex("rel_entr", p)
    both, none = (p > 0) & (q > 0), (p == 0) & (q >= 0)
    p, q = jnp.where(both, p, 1), jnp.where(both, q, 1)
    terms = _x_log_x(p) - xlogy(p, q)
    return jnp.where(both, terms, jnp.where(none, 0, np.inf))


def _divergence(p, q):
    raise_if_complex("kl_div", p)
    return _relative_entropy(p, q) - p + q


def power_law(log):
    """Return the transformation of Box and Cox, with this logarithm."""

    def function(x, power):
        logs, flat = log(x), power == 0
        safe = jnp.where(flat, 1, power)
        return jnp.where(flat, logs, jnp.expm1(safe * logs) / safe)

    return function


logit = def_special_unary("logit", "``log(x / (1 - x))``", _logit)
entr = def_special_unary(
    "entr", "``-x * log(x)``, and minus infinity below 0", _entropy
)


def rel_entr(p: ArrayLike, q: ArrayLike) -> Array:
    """Compute ``p * log(p / q)``, element by element.

    Reference: ``jax.scipy.special.rel_entr``.
    """
    return _relative_entropy(*promote_args_inexact("rel_entr", p, q))


def kl_div(p: ArrayLike, q: ArrayLike) -> Array:
    """Compute ``p * log(p / q) - p + q``, element by element.

    Reference: ``jax.scipy.special.kl_div``.
    """
    return _divergence(*promote_args_inexact("kl_div", p, q))


def boxcox(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """Compute ``(x**lmbda - 1) / lmbda``, element by element.

    Reference: ``jax.scipy.special.boxcox``.
    """
    return power_law(jnp.log)(*promote_args_inexact("boxcox", x, lmbda))


def boxcox1p(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """Compute ``((1 + x)**lmbda - 1) / lmbda``, element by element.

    Reference: ``jax.scipy.special.boxcox1p``.
    """
    return power_law(jnp.log1p)(*promote_args_inexact("boxcox1p", x, lmbda))


# The normal distribution's probability below a point, its logarithm and inverse.

# Up to where the series is used, and from where log(1 - e) is nearly -e.
ENDS = {"float32": (-10, 5), "float64": (-20, 8)}


def _wide(x):
    z = jnp.asarray(x)
    if z.dtype.name not in ENDS:
        raise TypeError(f"x.dtype={z.dtype} is not supported: use float32 or float64.")
    return z


def _below(x):
    return 0.5 * lax.erfc(-x * np.sqrt(0.5).astype(x.dtype))


def _log_density(x):
    return -0.5 * lax.square(x) - np.log(2 * np.pi).astype(x.dtype) / 2


def _series(x, order):
    """Return ``1 - 1/x² + 3/x⁴ - 15/x⁶ ...``."""
    terms = [math.prod(range(1, 2 * n, 2)) * (-1) ** n for n in range(order + 1)]
    return jnp.polyval(jnp.array(terms[::-1], x.dtype), 1 / lax.square(x))


def ndtr(x: ArrayLike) -> Array:
    """Compute the normal distribution's probability below `x`, element by element.

    Raises:
      TypeError: for anything but float32 and float64.

    Reference: ``jax.scipy.special.ndtr``.
    """
    return _below(_wide(x))


def log_ndtr(x: ArrayLike, series_order: int = 3) -> Array:
    """Compute ``log(ndtr(x))``, element by element, also where `ndtr` underflows.

    Args:
      x: an array of float32 or float64.
      series_order: how many terms of the asymptotic series to use, up to 30.

    Raises:
      TypeError: for other dtypes.
      ValueError: for another order.

    Reference: ``jax.scipy.special.log_ndtr``.
    """
    if not isinstance(series_order, int):
        raise TypeError("series_order must be a Python integer.")
    if not 0 <= series_order <= 30:
        raise ValueError(f"series_order must be from 0 to 30, got {series_order}.")
    return _log_below(_wide(x), series_order)


def ndtri(p: ArrayLike) -> Array:
    """Compute the inverse of `ndtr`, element by element.

    Args:
      p: probabilities, of float32 or float64; NaN outside of 0 to 1.

    Raises:
      TypeError: for other dtypes.

    Reference: ``jax.scipy.special.ndtri``.
    """
    return _quantile(_wide(p))


def _log_below_of(x, order):
    lower, upper = ENDS[x.dtype.name]
    right = -_below(-jnp.maximum(x, upper))
    middle = jnp.log(_below(jnp.clip(x, lower, upper)))
    far = jnp.minimum(x, lower)
    left = _log_density(far) - jnp.log(-far) + jnp.log(_series(far, order))
    return jnp.where(x > upper, right, jnp.where(x > lower, middle, left))


_log_below = custom_jvp(_log_below_of, nondiff_argnums=(1,))


@_log_below.defjvp
def _log_below_jvp(order, primals, tangents):
    [x], [t] = primals, tangents
    y = _log_below(x, order)
    return y, t * jnp.exp(_log_density(x) - y)


def _guess(log_p):
    """Return a quantile below 0 to three digits (Hastings, 1955)."""
    t = jnp.sqrt(-2 * log_p)
    above = 2.515517 + t * (0.802853 + t * 0.010328)
    below = 1 + t * (1.432788 + t * (0.189269 + t * 0.001308))
    return above / below - t


@custom_jvp
def _quantile(p):
    inside, left = (p > 0) & (p < 1), p <= 0.5
    tail = jnp.where(inside, jnp.where(left, p, 1 - p), 0.5)
    log_p = jnp.log(tail)
    x = _guess(log_p)
    for _ in range(2):
        y = _log_below(x, 10)
        x = x - (y - log_p) * jnp.exp(y - _log_density(x))
    x = jnp.where(left, x, -x)
    ends = jnp.where(p == 0, -np.inf, jnp.where(p == 1, np.inf, np.nan))
    return jnp.where(inside, x, ends).astype(p.dtype)


_quantile.defjvps(lambda t, x, p: t * jnp.exp(-_log_density(x)))


# Special functions of `minijax.lax` with the names of SciPy.

gammainc = def_special(
    "gammainc", "the lower incomplete gamma function", "a x", lower_incomplete_gamma
)
gammaincc = def_special("gammaincc", "1 less `gammainc`", "a x", upper_incomplete_gamma)
betainc = def_special(
    "betainc", "the incomplete beta function", "a b x", regularized_incomplete_beta
)
i0e = def_special_real("i0e", "`i0` times ``exp(-|x|)``", scaled_i0, TypeError)
i1e = def_special_real("i1e", "`i1` times ``exp(-|x|)``", scaled_i1, TypeError)
i0 = def_special_real(
    "i0", "the modified Bessel function of order 0", bessel_i0, TypeError
)
i1 = def_special_real(
    "i1", "the modified Bessel function of order 1", bessel_i1, TypeError
)


def zeta(x: ArrayLike, q: ArrayLike | None = None) -> Array:
    """Compute the Hurwitz zeta function, element by element.

    Raises:
      NotImplementedError: without `q`; Riemann's function has 1 there.

    Reference: ``jax.scipy.special.zeta``.
    """
    if q is None:
        raise NotImplementedError(
            "Riemann zeta function not implemented; pass q != None to compute the "
            "Hurwitz Zeta function."
        )
    return hurwitz_zeta(*promote_args_inexact("zeta", x, q))


def polygamma(n: ArrayLike, x: ArrayLike) -> Array:
    """Compute derivatives of the digamma function, element by element.

    Args:
      n: integers, how many times to differentiate.
      x: an array.

    Raises:
      ValueError: for an `n` of another dtype.

    Reference: ``jax.scipy.special.polygamma``.
    """
    if not jnp.issubdtype(jnp.result_type(n), jnp.integer):
        raise ValueError(
            "Argument `n` to polygamma must be of integer type. Got dtype "
            f"{jnp.result_type(n)}."
        )
    return polygamma_of(*promote_args_inexact("polygamma", n, x))


def bessel_jn(z: ArrayLike, *, v: int, n_iter: int = 50) -> Array:
    """Compute Bessel functions of the first kind, of the orders 0 to `v`.

    Args:
      z: an array of real numbers.
      v: the greatest order, which comes last.
      n_iter: the order at which the recurrence begins, well above the size of `z`:
        of larger `z`, values are wrong.

    Returns:
      An array with one more axis than `z`, at the front.

    Reference: ``jax.scipy.special.bessel_jn``.
    """
    [x] = promote_args_inexact("bessel_jn", z)
    if jnp.iscomplexobj(x):
        raise ValueError("complex input not supported.")
    sizes = (
        operator_index(v, "v of bessel_jn"),
        operator_index(n_iter, "n_iter of bessel_jn"),
    )
    return first_kind(x, min(sizes), sizes[1])


_LARGEST = 258  # the last one that is below the largest float of 64 bits


def bernoulli(n: int) -> Array:
    """Return Bernoulli's numbers from 0 to `n`.

    Reference: ``jax.scipy.special.bernoulli``.
    """
    size = operator_index(n, "the argument n of bernoulli")
    if size < 0:
        raise ValueError("n must be a non-negative integer.")
    place = jnp.arange(size + 1)
    beyond = jnp.where(place % 4, jnp.inf, -jnp.inf)  # what is too large for a float
    known = [float(b) for b in bernoulli_numbers(min(size, _LARGEST))]
    begin = jnp.asarray(np.array(known), beyond.dtype)  # without a warning
    return jnp.where(place % 2, 0, beyond).at[: len(known)].set(begin)
