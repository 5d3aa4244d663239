"""Products with logarithms, entropies, and transformations of shares.

Reference: ``jax.scipy.special``.
"""

# Made from chapters/33_library_ground.md by `make chapter`;
# edit the chapter, not this file.

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.core import Array
from minijax.own_rules.tangent_rules import custom_jvp
from minijax.scipy.special.gamma_functions import (
    operands,
    real_only,
    special,
    special_of_two,
)
from minijax.typing import ArrayLike


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

    return special_of_two(name, f"``x * {log.__name__}(y)``, 0 where x is 0", product)


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
    real_only("entr", x)
    return jnp.where(x < 0, -np.inf, -_x_log_x(x))


def _relative_entropy(p, q):
    real_only("rel_entr", p)
    both, none = (p > 0) & (q > 0), (p == 0) & (q >= 0)
    p, q = jnp.where(both, p, 1), jnp.where(both, q, 1)
    terms = _x_log_x(p) - xlogy(p, q)
    return jnp.where(both, terms, jnp.where(none, 0, np.inf))


def _divergence(p, q):
    real_only("kl_div", p)
    return _relative_entropy(p, q) - p + q


def power_law(log):
    """Return the transformation of Box and Cox, with this logarithm."""

    def function(x, power):
        logs, flat = log(x), power == 0
        safe = jnp.where(flat, 1, power)
        return jnp.where(flat, logs, jnp.expm1(safe * logs) / safe)

    return function


logit = special("logit", "``log(x / (1 - x))``", _logit)
entr = special("entr", "``-x * log(x)``, and minus infinity below 0", _entropy)


def rel_entr(p: ArrayLike, q: ArrayLike) -> Array:
    """Compute ``p * log(p / q)``, element by element.

    Reference: ``jax.scipy.special.rel_entr``.
    """
    return _relative_entropy(*operands("rel_entr", p, q))


def kl_div(p: ArrayLike, q: ArrayLike) -> Array:
    """Compute ``p * log(p / q) - p + q``, element by element.

    Reference: ``jax.scipy.special.kl_div``.
    """
    return _divergence(*operands("kl_div", p, q))


def boxcox(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """Compute ``(x**lmbda - 1) / lmbda``, element by element.

    Reference: ``jax.scipy.special.boxcox``.
    """
    return power_law(jnp.log)(*operands("boxcox", x, lmbda))


def boxcox1p(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """Compute ``((1 + x)**lmbda - 1) / lmbda``, element by element.

    Reference: ``jax.scipy.special.boxcox1p``.
    """
    return power_law(jnp.log1p)(*operands("boxcox1p", x, lmbda))
