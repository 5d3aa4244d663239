"""Softmax and its relatives: scores along an axis become shares of one.

Reference: ``jax.nn.softmax``.
"""

# Made from chapters/33_library.md by `make chapter`;
# edit the chapter, not this file.

from functools import partial
from typing import Any

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.core import Array
from minijax.lax.promotion import promote_dtypes_inexact
from minijax.numpy.shapes import arraylike
from minijax.ops.segments import least
from minijax.own_rules.tangent_rules import custom_jvp
from minijax.typing import ArrayLike


def softmax(x: ArrayLike, axis: Any = -1, where: ArrayLike | None = None) -> Array:
    """Compute ``exp(x) / sum(exp(x))`` along axes, without overflow.

    Args:
      x: scores.
      axis: along which results sum to 1: an integer, a tuple, or None for all.
      where: booleans; what is False takes no part, and its result is 0.

    Returns:
      An array like `x`; all NaN where a score is plus infinity, or all scores are
      minus infinity.

    Reference: ``jax.nn.softmax``.
    """
    return _softmax(arraylike("softmax", x), axis, where)


@partial(custom_jvp, nondiff_argnums=(1,))
def _softmax(x, axis, where):
    lowest = least(jnp.result_type(x))  # `x` may be a number of Python
    largest = jnp.max(x, axis, keepdims=True, where=where, initial=lowest)
    kept = x if where is None else jnp.where(where, x, -np.inf)
    powers = jnp.exp(kept - largest)
    shares = powers / jnp.sum(powers, axis, keepdims=True, where=where)
    return shares if where is None else jnp.where(where, shares, 0)


@_softmax.defjvp
def _softmax_jvp(axis, primals, tangents):
    (x, where), (t, _) = primals, tangents
    p = _softmax(x, axis, where)
    return p, p * (t - jnp.sum(p * t, axis, keepdims=True, where=where))


def log_softmax(x: ArrayLike, axis: Any = -1, where: ArrayLike | None = None) -> Array:
    """Compute ``log(softmax(x))`` along axes, without underflow.

    Args:
      x: scores.
      axis: an integer, a tuple, or None for all axes.
      where: booleans; what is False takes no part, and its result is minus infinity.

    Reference: ``jax.nn.log_softmax``.
    """
    z = arraylike("log_softmax", x)
    largest = jnp.max(z, axis, keepdims=True, where=where, initial=least(z.dtype))
    kept = z if where is None else jnp.where(where, z, -np.inf)
    shifted = kept - lax.stop_gradient(largest)
    total = jnp.sum(jnp.exp(shifted), axis, keepdims=True, where=where)
    logs = shifted - jnp.log(total)
    return logs if where is None else jnp.where(where, logs, -np.inf)


def logsumexp(
    a: ArrayLike,
    axis: Any = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: ArrayLike | None = None,
) -> Any:
    """Compute ``log(sum(b * exp(a)))`` along axes, without overflow.

    Args:
      a: exponents.
      axis: an integer, a tuple, or None for all axes.
      b: factors that `a` broadcasts with; by default ones.
      keepdims: whether to keep the axes, with size 1.
      return_sign: whether to return the logarithm of the sum's absolute value, and its
        sign (of complex numbers: the sum over its absolute value).
      where: booleans; what is False takes no part.

    Returns:
      An array; NaN where the sum of real numbers is negative, unless `return_sign`,
      which makes it a pair of arrays.

    Reference: ``jax.nn.logsumexp``, ``jax.scipy.special.logsumexp``.
    """
    z = arraylike("logsumexp", a) if where is None else jnp.where(where, a, 0)
    if b is None:
        [z] = promote_dtypes_inexact(z)
    else:
        z, b = promote_dtypes_inexact(z, arraylike("logsumexp", b))
        z = jnp.where(b != 0, z, -np.inf)
    how = {"axis": axis, "keepdims": keepdims, "where": where}
    total, largest = _scaled_sum(z, b, how)
    sign = lax.sign(total)
    real = not jnp.iscomplexobj(total)
    size = jnp.abs(total) if return_sign or real else total
    out = lax.log(size) + largest.astype(size.dtype)
    if return_sign:
        return out, sign
    return jnp.where(sign < 0, np.nan, out) if b is not None and real else out


def _scaled_sum(a, b, how):
    """Return ``sum(b * exp(a - largest))``, and `largest`, with the same shape."""
    largest = jnp.max(jnp.real(a), initial=-np.inf, **how | {"keepdims": True})
    safe = lax.stop_gradient(jnp.where(jnp.isfinite(largest), largest, 0))
    powers = jnp.exp(a - safe.astype(a.dtype))
    total = jnp.sum(powers if b is None else powers * b, **how)
    return total, safe.reshape(total.shape)


def logmeanexp(
    x: ArrayLike,
    axis: Any = None,
    where: ArrayLike | None = None,
    keepdims: bool = False,
) -> Array:
    """Compute ``log(mean(exp(x)))`` along axes, without overflow.

    Args:
      x: exponents.
      axis: an integer, a tuple, or None for all axes.
      where: booleans; what is False takes no part.
      keepdims: whether to keep the axes, with size 1.

    Reference: ``jax.nn.logmeanexp``.
    """
    total = logsumexp(x, axis, where=where, keepdims=keepdims)
    ones = jnp.ones(np.shape(x), total.dtype)
    return total - jnp.log(jnp.sum(ones, axis, where=where, keepdims=keepdims))


def standardize(
    x: ArrayLike,
    axis: Any = -1,
    mean: ArrayLike | None = None,
    variance: ArrayLike | None = None,
    epsilon: ArrayLike = 1e-5,
    where: ArrayLike | None = None,
    *,
    algorithm: str = "fast",
) -> Array:
    """Shift and scale numbers along axes, so that they have mean 0 and variance 1.

    Args:
      x: an array.
      axis: an integer, a tuple, or None for all axes.
      mean, variance: what to use in place of those of `x`.
      epsilon: added to the variance.
      where: booleans; what is False does not count for mean and variance.
      algorithm: ``"fast"`` computes the variance as mean of squares less square of
        the mean, cut at 0, and ``"stable"`` as mean square of the differences.

    Raises:
      ValueError: for another algorithm.

    Reference: ``jax.nn.standardize``.
    """
    z = arraylike("standardize", x)
    how: Any = {"keepdims": True, "where": where}
    if algorithm not in ("fast", "stable"):
        raise ValueError(
            f"Unknown algorithm {algorithm!r}. Expected 'fast' or 'stable'."
        )
    center: Any = jnp.mean(z, axis, **how) if mean is None else mean
    spread: Any = variance
    if variance is None and algorithm == "stable":
        spread = jnp.mean(jnp.square(jnp.subtract(z, center)), axis, **how)
    elif variance is None:
        squares: Any = jnp.mean(jnp.square(z), axis, **how)
        spread = jnp.clip(squares - jnp.square(center), 0)
    return jnp.subtract(z, center) * lax.rsqrt(spread + epsilon)
