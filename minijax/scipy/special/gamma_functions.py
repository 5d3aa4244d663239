"""The gamma function and its relatives.

Reference: ``jax.scipy.special``.
"""

# Made from chapters/33_library_ground.md by `make chapter`;
# edit the chapter, not this file.

import inspect
from collections.abc import Callable

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.arrays.checks import as_integer
from minijax.arrays.interchange import promised
from minijax.core import Array
from minijax.lax.promotion import (
    check_arraylike,
    promote_dtypes_inexact,
    promote_shapes,
)
from minijax.own_rules.tangent_rules import custom_jvp
from minijax.typing import ArrayLike

_Unary = Callable[[ArrayLike], Array]
_Binary = Callable[[ArrayLike, ArrayLike], Array]


def operands(name, *args):
    """Return operands with one inexact dtype and one rank.

    Raises:
      TypeError: if one is not an array.
    """
    args = [promised(arg) for arg in args]
    check_arraylike(name, *args)
    return promote_shapes(*promote_dtypes_inexact(*map(jnp.asarray, args)))


def special(name, what, function) -> _Unary:
    """Return a function of `minijax.scipy.special` of one array."""

    def of_array(x: ArrayLike) -> Array:
        return function(*operands(name, x))

    return described(of_array, name, what)


def special_of_two(name, what, function) -> _Binary:
    """Return a function of `minijax.scipy.special` of two arrays."""

    def of_arrays(x: ArrayLike, y: ArrayLike) -> Array:
        return function(*operands(name, x, y))

    return described(of_arrays, name, what)


def special_of(name, what, parameters, function) -> Callable[..., Array]:
    """Return a special function of arrays, with these names of parameters."""
    names = parameters.split()
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature([inspect.Parameter(n, kind) for n in names])

    def of_arrays(*args, **kwargs):
        return function(*operands(name, *signature.bind(*args, **kwargs).args))

    of_arrays.__signature__ = signature
    return described(of_arrays, name, what)


def described(function, name, what):
    """Give a function its name and docstring."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""Compute {what}, element by element.

    Operands are promoted to one dtype, a float at least, and broadcast to one shape.
    Reference: ``jax.scipy.special.{name}``.
    """
    return function


def real_only(name, x, error=ValueError):
    """Raise an error for complex numbers, of the class that JAX raises."""
    if jnp.iscomplexobj(x):
        raise error(f"{name} does not support complex-valued inputs.")


def special_of_reals(name, what, function, error=ValueError) -> _Unary:
    """Return a function of `minijax.scipy.special` of one array of real numbers."""

    def checked(x):
        real_only(name, x, error)
        return function(x)

    return special(name, what, checked)


gammaln = special("gammaln", "the logarithm of the gamma function's size", lax.lgamma)
digamma = special("digamma", "the derivative of `gammaln`", lax.digamma)
erf = special("erf", "the error function", lax.erf)
erfc = special("erfc", "1 less the error function", lax.erfc)
erfinv = special("erfinv", "the inverse of the error function", lax.erf_inv)
expit = special("expit", "``1 / (1 + exp(-x))``", lax.logistic)


def _sign_of_gamma(x):
    real_only("gammasgn", x)
    below = lax.floor(x)
    pole = (x < 0) & (x == below) | jnp.isnan(x)
    odd = (x < 0) & jnp.not_equal(below % 2, 0) | (x == 0) & jnp.signbit(x)
    one, nan = np.ones((), x.dtype), np.asarray(np.nan, x.dtype)
    return jnp.where(pole, nan, jnp.where(odd, -one, one))


def _gamma(x):
    real_only("gamma", x)
    return _sign_of_gamma(x) * lax.exp(lax.lgamma(x))


def _correction(x):
    """Return what Stirling's formula lacks of `gammaln`, for numbers from 8."""
    square = 1 / (x * x)
    series = 1 / 1260 - square * (1 / 1680 - square / 1188)
    return (1 / 12 - square * (1 / 360 - square * series)) / x


def _log_beta(a, b):
    """Return ``gammaln(a) + gammaln(b) - gammaln(a + b)``, where it cancels as well."""
    real_only("betaln", a)
    ordered = a <= b  # chosen, since slopes of `minimum` are halves where a == b
    small, large = jnp.where(ordered, a, b), jnp.where(ordered, b, a)
    plain = lax.lgamma(small) + (lax.lgamma(large) - lax.lgamma(small + large))
    y = jnp.where(small + large < 8, 16, large)  # for branches that are not taken
    gap = (0.5 - y) * lax.log1p(small / y) - small * jnp.log(small + y) + small
    rest = _correction(y) - _correction(small + y)
    one_large = lax.lgamma(small) + gap + rest
    x = jnp.where(small < 8, 8, small)
    share = x * jnp.log(x / (x + y)) + (0.5 - y) * lax.log1p(x / y)
    both = share + 0.5 * jnp.log(2 * np.pi / x) + _correction(x) + _correction(y)
    both = both - _correction(x + y)
    out = jnp.where(small >= 8, both, one_large)
    return jnp.where((small + large >= 8) & (large < np.inf), out, plain)


def _beta(a, b):
    real_only("beta", a)
    signs = [_sign_of_gamma(x) for x in (a, b, a + b)]
    return signs[0] * signs[1] * signs[2] * lax.exp(_log_beta(a, b))


@custom_jvp
def _rising(x, y):
    real_only("poch", x)
    ratio = _gamma(x + y) / _gamma(x)
    return jnp.where(lax.eq(y, 0), 1, ratio).astype(x.dtype)


_rising.defjvps(
    lambda t, p, x, y: t * (p * (lax.digamma(x + y) - lax.digamma(x))),
    lambda t, p, x, y: t * (p * lax.digamma(x + y)),
)


def _log_gamma(x):
    real_only("loggamma", x)
    return jnp.where(x > 0, lax.lgamma(x), np.nan)


loggamma = special(
    "loggamma", "the logarithm of the gamma function, NaN up to 0", _log_gamma
)
gammasgn = special("gammasgn", "the sign of the gamma function", _sign_of_gamma)
gamma = special("gamma", "the gamma function", _gamma)


def betaln(a: ArrayLike, b: ArrayLike) -> Array:
    """Compute the logarithm of the beta function, element by element.

    Reference: ``jax.scipy.special.betaln``.
    """
    return _log_beta(*operands("betaln", a, b))


def beta(a: ArrayLike, b: ArrayLike) -> Array:
    """Compute the beta function, element by element.

    Reference: ``jax.scipy.special.beta``.
    """
    return _beta(*operands("beta", a, b))


def poch(z: ArrayLike, m: ArrayLike) -> Array:
    """Compute ``gamma(z + m) / gamma(z)``, element by element.

    Reference: ``jax.scipy.special.poch``.
    """
    return _rising(*operands("poch", z, m))


def factorial(n: ArrayLike, exact: bool = False) -> Array:
    """Compute the factorial, element by element; 0 of negative numbers.

    Args:
      n: an array.
      exact: has to be False.

    Reference: ``jax.scipy.special.factorial``.
    """
    if exact:
        raise NotImplementedError("factorial with exact=True")
    [count] = operands("factorial", n)
    negative = count < 0
    safe = jnp.where(negative, 0, count)  # beside the poles of the gamma function
    return jnp.where(negative, 0, lax.exp(lax.lgamma(safe + 1)))


def comb(N: ArrayLike, k: ArrayLike, *, repetition: bool = False) -> Array:
    """Count the ways to choose `k` of `N`, element by element.

    Args:
      N, k: arrays.
      repetition: whether one may be chosen several times.

    Reference: ``jax.scipy.special.comb``.
    """
    of, some = operands("comb", N, k)
    if repetition:
        return jnp.where((some == 0) & (of >= 0), 1.0, comb(of + some - 1, some))
    possible = (some <= of) & (of >= 0) & (some >= 0)
    of, some = jnp.where(possible, of, 0), jnp.where(possible, some, 0)
    logs = lax.lgamma(of + 1) - lax.lgamma(some + 1) - lax.lgamma(of + 1 - some)
    return jnp.where(possible, lax.exp(logs), 0.0)


def multigammaln(a: ArrayLike, d: ArrayLike) -> Array:
    """Compute the logarithm of the gamma function of `d` dimensions.

    Args:
      a: an array.
      d: an integer that is known.

    Reference: ``jax.scipy.special.multigammaln``.
    """
    size = as_integer(d, "the argument d of multigammaln")
    [z] = operands("multigammaln", a)
    terms = lax.lgamma(z[..., None] - jnp.arange(size, dtype=z.dtype) / 2)
    return terms.sum(-1) + np.asarray(size * (size - 1) / 4 * np.log(np.pi), z.dtype)
