"""The normal distribution's probability below a point, its logarithm and inverse.

Reference: ``jax.scipy.special.ndtr``.
"""

# Made from chapters/33_library_ground.md by `make chapter`;
# edit the chapter, not this file.

import math

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.core import Array
from minijax.own_rules.tangent_rules import custom_jvp
from minijax.typing import ArrayLike

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
