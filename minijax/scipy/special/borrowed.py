"""Special functions of `minijax.lax` with the names of SciPy.

Reference: ``jax.scipy.special``.
"""

# Made from chapters/33_library_ground.md by `make chapter`;
# edit the chapter, not this file.

import numpy as np

from minijax import numpy as jnp
from minijax.arrays.checks import as_integer
from minijax.core import Array
from minijax.scipy.special.bessel import (
    bessel_i0,
    bessel_i1,
    first_kind,
    scaled_i0,
    scaled_i1,
)
from minijax.scipy.special.gamma_functions import operands, special_of, special_of_reals
from minijax.scipy.special.incomplete import incomplete_beta, lower_gamma, upper_gamma
from minijax.scipy.special.zetas import bernoulli_numbers, hurwitz_zeta, polygamma_of
from minijax.typing import ArrayLike

gammainc = special_of(
    "gammainc", "the lower incomplete gamma function", "a x", lower_gamma
)
gammaincc = special_of("gammaincc", "1 less `gammainc`", "a x", upper_gamma)
betainc = special_of(
    "betainc", "the incomplete beta function", "a b x", incomplete_beta
)
i0e = special_of_reals("i0e", "`i0` times ``exp(-|x|)``", scaled_i0, TypeError)
i1e = special_of_reals("i1e", "`i1` times ``exp(-|x|)``", scaled_i1, TypeError)
i0 = special_of_reals(
    "i0", "the modified Bessel function of order 0", bessel_i0, TypeError
)
i1 = special_of_reals(
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
    return hurwitz_zeta(*operands("zeta", x, q))


def polygamma(n: ArrayLike, x: ArrayLike) -> Array:
    """Compute derivatives of the digamma function, element by element.

    Args:
      n: integers, how many times to differentiate.
      x: an array.

    Raises:
      ValueError: for an `n` of another dtype.

    Reference: ``jax.scipy.special.polygamma``.
    """
    if jnp.result_type(n).kind not in "iu":
        raise ValueError(
            "Argument `n` to polygamma must be of integer type. Got dtype "
            f"{jnp.result_type(n)}."
        )
    return polygamma_of(*operands("polygamma", n, x))


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
    [x] = operands("bessel_jn", z)
    if jnp.iscomplexobj(x):
        raise ValueError("complex input not supported.")
    sizes = as_integer(v, "v of bessel_jn"), as_integer(n_iter, "n_iter of bessel_jn")
    return first_kind(x, min(sizes), sizes[1])


_LARGEST = 258  # the last one that is below the largest float of 64 bits


def bernoulli(n: int) -> Array:
    """Return Bernoulli's numbers from 0 to `n`.

    Reference: ``jax.scipy.special.bernoulli``.
    """
    size = as_integer(n, "the argument n of bernoulli")
    if size < 0:
        raise ValueError("n must be a non-negative integer.")
    place = jnp.arange(size + 1)
    beyond = jnp.where(place % 4, jnp.inf, -jnp.inf)  # what is too large for a float
    known = [float(b) for b in bernoulli_numbers(min(size, _LARGEST))]
    with np.errstate(over="ignore"):
        begin = jnp.array(known)
    return jnp.where(place % 2, 0, beyond).at[: len(known)].set(begin)
