"""The gamma function and its relatives: incomplete, Bessel and zeta functions.

Source: W. J. Lentz, *Generating Bessel functions in Mie scattering calculations using
continued fractions*, Applied Optics 15 (1976).

References: ``jax.scipy.special``, ``jax.lax.igamma``; NIST *Digital Library of
Mathematical Functions*, 8, ``jax.lax.bessel_i0e``; J. C. P. Miller's algorithm for
``bessel_jn``, ``jax.lax.zeta``; Euler and Maclaurin's formula.
"""

# Made from chapters/33_library_ground.md by `make chapter`;
# edit the chapter, not this file.

import inspect
import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache, partial
from typing import Any

import numpy as np

from minijax import custom_jvp, jit, jvp, lax, typeof
from minijax import numpy as jnp
from minijax.core import Array
from minijax.custom_derivatives import SymbolicZero
from minijax.extend.arguments import check_arraylike, operator_index, promised
from minijax.extend.promotion import astype as as_type
from minijax.extend.promotion import promote_dtypes_inexact, promote_shapes, promoting
from minijax.lax import random_gamma_grad
from minijax.typing import ArrayLike

# The gamma function and its relatives.

_Unary = Callable[[ArrayLike], Array]
_Binary = Callable[[ArrayLike, ArrayLike], Array]


def promote_args_inexact(name, *args):
    """Return operands with one inexact dtype and one rank.

    Raises:
      TypeError: if one is not an array.
    """
    args = [promised(arg) for arg in args]
    check_arraylike(name, *args)
    return promote_shapes(*promote_dtypes_inexact(*map(jnp.asarray, args)))


def def_special_unary(name, what, function) -> _Unary:
    """Return a function of `minijax.scipy.special` of one array."""

    def of_array(x: ArrayLike) -> Array:
        return function(*promote_args_inexact(name, x))

    return set_name_and_doc(of_array, name, what)


def def_special_binary(name, what, function) -> _Binary:
    """Return a function of `minijax.scipy.special` of two arrays."""

    def of_arrays(x: ArrayLike, y: ArrayLike) -> Array:
        return function(*promote_args_inexact(name, x, y))

    return set_name_and_doc(of_arrays, name, what)


def bind_arguments(name, signature, args, kwargs):
    """Return arguments by their names; a TypeError names the function, too."""
    try:
        return signature.bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from None


def def_special(name, what, parameters, function) -> Callable[..., Array]:
    """Return a special function of arrays, with these names of parameters."""
    names = parameters.split()
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature([inspect.Parameter(n, kind) for n in names])

    def of_arrays(*args, **kwargs):
        bound = bind_arguments(name, signature, args, kwargs)
        return function(*promote_args_inexact(name, *bound.args))

    of_arrays.__signature__ = signature
    return set_name_and_doc(of_arrays, name, what)


def set_name_and_doc(function, name, what):
    """Give a function its name and docstring."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""Compute {what}, element by element.

    Operands are promoted to one dtype, a float at least, and broadcast to one shape.
    Reference: ``jax.scipy.special.{name}``.
    """
    return function


def raise_if_complex(name, x, error=ValueError):
    """Raise an error for complex numbers, of the class that JAX raises."""
    if jnp.iscomplexobj(x):
        raise error(f"{name} does not support complex-valued inputs.")


def def_special_real(name, what, function, error=ValueError) -> _Unary:
    """Return a function of `minijax.scipy.special` of one array of real numbers."""

    def checked(x):
        raise_if_complex(name, x, error)
        return function(x)

    return def_special_unary(name, what, checked)


gammaln = def_special_unary(
    "gammaln", "the logarithm of the gamma function's size", lax.lgamma
)
digamma = def_special_unary("digamma", "the derivative of `gammaln`", lax.digamma)
erf = def_special_unary("erf", "the error function", lax.erf)
erfc = def_special_unary("erfc", "1 less the error function", lax.erfc)
erfinv = def_special_unary("erfinv", "the inverse of the error function", lax.erf_inv)
expit = def_special_unary("expit", "``1 / (1 + exp(-x))``", lax.logistic)


def _sign_of_gamma(x):
    raise_if_complex("gammasgn", x)
    below = lax.floor(x)
    pole = (x < 0) & (x == below) | jnp.isnan(x)
    odd = (x < 0) & jnp.not_equal(below % 2, 0) | (x == 0) & jnp.signbit(x)
    one, nan = np.ones((), x.dtype), np.asarray(np.nan, x.dtype)
    return jnp.where(pole, nan, jnp.where(odd, -one, one))


def _gamma(x):
    if jnp.iscomplexobj(x):
        return lax.exp(_complex_log_gamma(x))
    return _sign_of_gamma(x) * lax.exp(lax.lgamma(x))


# C. Lanczos, *A precision approximation of the gamma function* (SIAM J. Numer. Anal. 1,
# 1964), with g = 7; the coefficients of these nine terms are those of XLA's `Lgamma`.
_LANCZOS = (
    0.99999999999980993,
    676.5203681218851,
    -1259.1392167224028,
    771.32342877765313,
    -176.61502916214059,
    12.507343278686905,
    -0.13857109526572012,
    9.9843695780195716e-6,
    1.5056327351493116e-7,
)


def _lanczos(z):
    """Return the logarithm of the gamma function, where real parts are from 1/2."""
    z, total = z - 1, _LANCZOS[0]
    for k, each in enumerate(_LANCZOS[1:], 1):
        total = total + each / (z + k)
    t = z + 7.5
    return 0.5 * math.log(2 * math.pi) + (z + 0.5) * lax.log(t) - t + lax.log(total)


def _complex_log_gamma(z):
    """Return the principal logarithm of the gamma function, NaN at its poles.

    In the upper half-plane, Euler's reflection holds with the logarithm of the sine
    that is analytic there; the lower half-plane is its mirror image.
    """
    real, below = lax.real(z), lax.imag(z) < 0
    pole = lax.eq(lax.imag(z), 0) & lax.eq(real, lax.floor(real)) & (real <= 0)
    bad = pole | jnp.isnan(z)
    z = jnp.where(bad, 1, z)
    z = jnp.where(below, lax.conj(z), z)
    left = lax.real(z) < 0.5
    value = _lanczos(jnp.where(left, 1 - z, z))
    z = jnp.where(left, z, 0.25)
    turn = 2j * math.pi * (z - lax.round(lax.real(z)).astype(z.dtype))
    sine = -1j * math.pi * (z - 0.5) - math.log(2) + lax.log(-lax.expm1(turn))
    value = jnp.where(left, math.log(math.pi) - sine - value, value)
    value = jnp.where(below, lax.conj(value), value)
    return jnp.where(bad, complex(np.nan, np.nan), value)


def _correction(x):
    """Return what Stirling's formula lacks of `gammaln`, for numbers from 8."""
    square = 1 / (x * x)
    series = 1 / 1260 - square * (1 / 1680 - square / 1188)
    return (1 / 12 - square * (1 / 360 - square * series)) / x


def _log_beta(a, b):
    """Return ``gammaln(a) + gammaln(b) - gammaln(a + b)``, where it cancels as well."""
    raise_if_complex("betaln", a)
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
    raise_if_complex("beta", a)
    signs = [_sign_of_gamma(x) for x in (a, b, a + b)]
    return signs[0] * signs[1] * signs[2] * lax.exp(_log_beta(a, b))


@custom_jvp
def _rising(x, y):
    raise_if_complex("poch", x)
    ratio = _gamma(x + y) / _gamma(x)
    return jnp.where(lax.eq(y, 0), 1, ratio).astype(x.dtype)


_rising.defjvps(
    lambda t, p, x, y: t * (p * (lax.digamma(x + y) - lax.digamma(x))),
    lambda t, p, x, y: t * (p * lax.digamma(x + y)),
)


def _log_gamma(x):
    if jnp.iscomplexobj(x):
        return _complex_log_gamma(x)
    return jnp.where(x > 0, lax.lgamma(x), np.nan)


loggamma = def_special_unary(
    "loggamma",
    "the principal logarithm of the gamma function, NaN for real numbers up to 0",
    _log_gamma,
)
gammasgn = def_special_unary(
    "gammasgn", "the sign of the gamma function", _sign_of_gamma
)
gamma = def_special_unary("gamma", "the gamma function", _gamma)


def betaln(a: ArrayLike, b: ArrayLike) -> Array:
    """Compute the logarithm of the beta function, element by element.

    Reference: ``jax.scipy.special.betaln``.
    """
    return _log_beta(*promote_args_inexact("betaln", a, b))


def beta(a: ArrayLike, b: ArrayLike) -> Array:
    """Compute the beta function, element by element.

    Reference: ``jax.scipy.special.beta``.
    """
    return _beta(*promote_args_inexact("beta", a, b))


def poch(z: ArrayLike, m: ArrayLike) -> Array:
    """Compute ``gamma(z + m) / gamma(z)``, element by element.

    Reference: ``jax.scipy.special.poch``.
    """
    return _rising(*promote_args_inexact("poch", z, m))


def factorial(n: ArrayLike, exact: bool = False) -> Array:
    """Compute the factorial, element by element; 0 of negative numbers.

    Args:
      n: an array.
      exact: has to be False.

    Reference: ``jax.scipy.special.factorial``.
    """
    if exact:
        raise NotImplementedError("factorial with exact=True")
    [count] = promote_args_inexact("factorial", n)
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
    of, some = promote_args_inexact("comb", N, k)
    if repetition:
        return jnp.where((some == 0) & (of >= 0), 1.0, comb(of + some - 1, some))
    possible = (some <= of) & (of >= 0) & (some >= 0)
    of, some = jnp.where(possible, of, 0), jnp.where(possible, some, 0)
    logs = lax.lgamma(of + 1) - lax.lgamma(some + 1) - lax.lgamma(of + 1 - some)
    return jnp.where(possible, lax.exp(logs), 0.0)


@promoting
def multigammaln(a: ArrayLike, d: ArrayLike) -> Array:
    """Compute the logarithm of the gamma function of `d` dimensions.

    Args:
      a: an array.
      d: an integer that is known.

    Reference: ``jax.scipy.special.multigammaln``.
    """
    size = operator_index(d, "the argument d of multigammaln")
    [z] = promote_args_inexact("multigammaln", a)
    terms = lax.lgamma(z[..., None] - jnp.arange(size, dtype=z.dtype) / 2)
    return terms.sum(-1) + np.asarray(size * (size - 1) / 4 * np.log(np.pi), z.dtype)


# Series and continued fractions, evaluated until no number of an array changes.


def iterate_until_converged(step, state, like, limit):
    """Return the state when ``step(n, state)`` finds no number active.

    Args:
      step: returns booleans, for each number whether it still changes, and a state.
      state: a tuple of arrays.
      like: an array; n is a number of its dtype, and begins with 1.
      limit: the greatest n.
    """

    def body(carry):
        n, _, state = carry
        active, state = step(n + 1, state)
        return n + 1, active.any(), state

    start = lax.full((), 0, like.real.dtype), np.True_, state
    return lax.while_loop(lambda c: (c[0] < limit) & c[1], body, start)[2]


def power_series(ratio, like, limit=2000):
    """Return ``1 + t1 + t2 + ...``, where ``t_n = ratio(n) * t_(n - 1)``.

    Args:
      ratio: function of the number n of a term.
      like: an array of the shape and dtype of the sum.
      limit: the greatest number of terms.
    """
    eps = jnp.finfo(like.dtype).eps

    def step(n, state):
        term, total = state
        term = term * ratio(n)
        return abs(term) > eps * abs(total), (term, total + term)

    one = lax.full_like(like, 1)
    return iterate_until_converged(step, (one, one), like, limit)[1]


def continued_fraction(terms, like, limit=2000):
    """Return ``a1 / (b1 + a2 / (b2 + ...))`` by the method of Lentz.

    Args:
      terms: function of n that returns a_n and b_n.
      like: an array of the shape and dtype of the fraction.
      limit: the greatest number of terms.
    """
    info = jnp.finfo(like.dtype)
    tiny = lax.full_like(like, float(info.tiny) ** 0.5)

    def step(n, state):
        value, c, d = state
        a, b = terms(n)
        d, c = b + a * d, b + a / c
        d, c = (jnp.where(x == 0, tiny, x) for x in (d, c))
        d = 1 / d
        return abs(c * d - 1) > info.eps, (value * (c * d), c, d)

    return iterate_until_converged(
        step, (tiny, tiny, lax.full_like(like, 0)), like, limit
    )[0]


def def_argument_jvps(function, *rules):
    """Give a `custom_jvp` function a derivative for each argument that has a tangent.

    Args:
      function: of arrays, to one array.
      *rules: for each argument a function ``rule(result, *primals)``, the derivative.
    """

    def jvp(primals, tangents):
        result = function(*primals)
        moved = lax.full_like(result, 0)
        for tangent, rule in zip(tangents, rules):
            if not isinstance(tangent, SymbolicZero):
                moved = moved + tangent * rule(result, *primals)
        return result, as_type(moved, result.dtype, typeof(result).weak_type)

    function.defjvp(jvp, symbolic_zeros=True)


def raising_jvp(name, argument):
    """Return a rule that refuses to differentiate a function in an argument."""

    def rule(result, *primals):
        raise ValueError(
            f"{name} has no derivative with respect to {argument}. Hold it fixed, as "
            "with lax.stop_gradient."
        )

    return rule


def upcast_to_float32(function, weak=True):
    """Return a function that computes numbers of 16 bits with 32 bits.

    Args:
      function: of arrays of one dtype.
      weak: whether the result is weak if all arguments are.
    """

    def wide(*args):
        dtype = args[0].dtype
        keeps = weak and all(typeof(x).weak_type for x in args)
        args = jnp.broadcast_arrays(*args)
        if dtype.itemsize <= 2:
            args = (x.astype("float32") for x in args)
        return as_type(function(*args), dtype, keeps)

    return wide


# Incomplete gamma and beta functions.


@jit
def gamma_tails(a, x):
    """Return the incomplete gamma function and 1 less it, for arrays of one shape."""
    bad = jnp.isnan(a) | jnp.isnan(x) | (x < 0) | (a < 0) | ((a == 0) & (x == 0))
    log_factor = a * lax.log(x) - x - lax.lgamma(a)
    small = log_factor < -np.log(jnp.finfo(a.dtype).max)
    above, plain = (x >= 1) & (x > a), ~(bad | small | lax.eq(x, 0) | (x == np.inf))
    factor = jnp.where(plain, lax.exp(log_factor), 0)
    y, b = (jnp.where(plain & ~above, z, 1) for z in (x, a))
    series = power_series(lambda n: y / (b + n), y)
    lower = series * factor / jnp.where(lax.eq(b, 0), 1, b)
    y, c = jnp.where(plain & above, x, 2), jnp.where(plain & above, a, 1)

    def terms(n):
        first = n == 1
        return jnp.where(first, 1, (1 - n) * (n - 1 - c)), y + 2 * n - 1 - c

    upper = continued_fraction(terms, y) * factor
    p, q = jnp.where(above, 1 - upper, lower), jnp.where(above, upper, 1 - lower)
    sure = (x == np.inf) | lax.eq(a, 0)
    p = jnp.where(x == 0, 0, jnp.where(sure, 1, p))
    q = jnp.where(x == 0, 1, jnp.where(sure, 0, q))
    return jnp.where(bad, np.nan, p), jnp.where(bad, np.nan, q)


def gamma_density(_, a, x):
    """Return the density of gamma numbers of shape `a` at `x`."""
    near = jnp.where(x == np.inf, 1, x)  # beyond, the sum of logarithms is inf - inf
    found = lax.exp(-near + (a - 1) * lax.log(near) - lax.lgamma(a))
    return jnp.where(x == np.inf, 0, found)


lower_incomplete_gamma: Any = custom_jvp(
    upcast_to_float32(lambda a, x: gamma_tails(a, x)[0])
)
upper_incomplete_gamma: Any = custom_jvp(
    upcast_to_float32(lambda a, x: gamma_tails(a, x)[1])
)


def incomplete_gamma_grad_a(a, x):
    """Return the derivative of the incomplete gamma function in `a`."""
    slope = -random_gamma_grad(a, x) * gamma_density(None, a, x)
    return jnp.where((x == 0) | (x == np.inf), 0, slope).astype(x.dtype)


def_argument_jvps(
    lower_incomplete_gamma, lambda p, a, x: incomplete_gamma_grad_a(a, x), gamma_density
)
def_argument_jvps(
    upper_incomplete_gamma,
    lambda q, a, x: -incomplete_gamma_grad_a(a, x),
    lambda q, a, x: -gamma_density(q, a, x),
)


@jit
def beta_share(a, b, x):
    """Return the regularized incomplete beta function, for arrays of one shape."""
    none_left = (a == 0) | (b == np.inf)
    none_right = (b == 0) | (a == np.inf)
    bad = jnp.isnan(a + b + x) | (a < 0) | (b < 0) | (x < 0) | (x > 1)
    zero = none_right & lax.ne(x, 1) | none_left & lax.eq(x, 0)
    one = none_left & lax.ne(x, 0) | none_right & lax.eq(x, 1)
    bad, fixed = bad | none_left & none_right, none_left | none_right
    a, b, x = (jnp.where(bad | fixed, 0.5, y) for y in (a, b, x))
    left = x < (a + 1) / (a + b + 2)
    a, b = jnp.where(left, a, b), jnp.where(left, b, a)
    y, rest = jnp.where(left, x, 1 - x), jnp.where(left, 1 - x, x)

    def terms(n):
        m = jnp.floor((n - 1) / 2)
        odd = -(a + m) * (a + b + m) * y / ((a + 2 * m) * (a + 2 * m + 1))
        odd = jnp.where(lax.eq(m, 0), -(a + b) * y / (a + 1), odd)
        even = m * (b - m) * y / ((a + 2 * m - 1) * (a + 2 * m))
        later = jnp.where(n % 2 == 0, odd, even)
        return jnp.where(n == 1, 1, later), lax.full_like(a, 1)

    logs = a * lax.log(y) + b * jnp.log(rest) - betaln(a, b)
    share = lax.exp(logs) / a * continued_fraction(terms, y, 600)
    share = jnp.where(left, share, 1 - share)
    share = jnp.where(zero, 0, jnp.where(one, 1, share))
    return jnp.where(bad, np.nan, share)


regularized_incomplete_beta: Any = custom_jvp(upcast_to_float32(beta_share))
def_argument_jvps(
    regularized_incomplete_beta,
    raising_jvp("betainc", "a"),
    raising_jvp("betainc", "b"),
    lambda p, a, b, x: lax.exp(
        (b - 1) * lax.log1p(-x) + (a - 1) * lax.log(x) - betaln(a, b)
    ),
)


# Modified Bessel functions, and those of the first kind by recurrence downwards.

DEGREE = 30


@cache
def chebyshev_coefficients(order, far):
    """Return how ``exp(-x) I(x)`` is a sum of Chebyshev polynomials.

    Args:
      order: 0 or 1.
      far: whether for x from 8 on, times the root of x, in ``16 / x - 1``; otherwise
        for x up to 8, in ``x / 4 - 1``, and for order 1 divided by x: it is 0 at 0, and
        a sum that ends with 0 has lost its digits.
    """
    angles = (np.arange(4000) + 0.5) * np.pi / 4000

    def function(t):
        x = 16 / (1 + t) if far else 4 * (1 + t)
        waves = np.exp(np.multiply.outer(x, np.cos(angles) - 1))
        means = (waves * np.cos(order * angles)).mean(-1)
        return means * np.sqrt(x) if far else means / x**order

    return np.polynomial.chebyshev.chebinterpolate(function, DEGREE)


def chebyshev_sum(coefficients, t):
    """Return a sum of Chebyshev polynomials at `t`, by Clenshaw's recurrence."""
    one, two = lax.full_like(t, 0), lax.full_like(t, 0)
    for c in coefficients[:0:-1]:
        one, two = 2 * t * one - two + float(c), one
    return t * one - two + float(coefficients[0])


def _size(x):
    """Return ``|x|``, with a slope of 0 at 0: the functions here are even or odd."""
    return x * lax.sign(x)


def scaled_bessel(order, x):
    """Return ``exp(-|x|) I(x)`` of an order: for x to 8, over x if it is 1; beyond."""
    near, far = jnp.minimum(_size(x), 8), jnp.maximum(_size(x), 8)
    low = chebyshev_sum(chebyshev_coefficients(order, False), near / 4 - 1)
    high = chebyshev_sum(chebyshev_coefficients(order, True), 16 / far - 1)
    return low, high / lax.sqrt(far)


def _order_0(x):
    return jnp.where(abs(x) <= 8, *scaled_bessel(0, x))


def _order_1(x):
    low, high = scaled_bessel(1, x)
    return jnp.where(abs(x) <= 8, low * x, high * lax.sign(x))


def _order_1_over_x(x):
    low, high = scaled_bessel(1, x)
    return jnp.where(abs(x) <= 8, low, high / jnp.maximum(abs(x), 8))


scaled_i0: Any = custom_jvp(upcast_to_float32(_order_0))
scaled_i1: Any = custom_jvp(upcast_to_float32(_order_1))


@upcast_to_float32
def _slope_of_order_1(x):
    return scaled_i0(x) - lax.sign(x) * scaled_i1(x) - _order_1_over_x(x)


def_argument_jvps(scaled_i0, lambda y, x: scaled_i1(x) - lax.sign(x) * y)
def_argument_jvps(scaled_i1, lambda y, x: _slope_of_order_1(x))

bessel_i1 = upcast_to_float32(lambda x: lax.exp(_size(x)) * scaled_i1(x))
bessel_i0: Any = custom_jvp(
    upcast_to_float32(lambda x: lax.exp(_size(x)) * scaled_i0(x))
)
def_argument_jvps(bessel_i0, lambda y, x: bessel_i1(x))


@partial(custom_jvp, nondiff_argnums=(1, 2))
def first_kind(z, v, count):
    """Return the Bessel functions of the orders 0 to `v`, at the front of the result.

    The recurrence is stable downwards only. It begins with any numbers far above, and
    is divided by the sum that has to be 1. A derivative of all that would subtract
    squares of the numbers on the way, which are too large for small `z`; it is half
    the difference of the orders beside.
    """

    def step(carry, k):
        above, here, total = carry
        below = 2 * (k + 1) * here / z - above
        return (here, below, total + jnp.where(k % 2 == 0, 2 * below, 0)), below

    zero = lax.full_like(z, 0)
    orders = jnp.arange(count + 1).astype(z.dtype)
    start = zero, lax.full_like(z, 1e-16), zero
    (*_, total), values = lax.scan(step, start, orders, reverse=True)
    return values[: v + 1] / (total - values[0])


@first_kind.defjvp
def _slope_of_first_kind(v, count, primals, tangents):
    [z], [t] = primals, tangents
    values = first_kind(z, v + 1, max(count, v + 1))
    below = jnp.concatenate([-values[1:2], values[:-2]])
    return first_kind(z, v, count), (below - values[1:]) / 2 * t


# The Hurwitz zeta function and the polygamma functions.

EULER_MACLAURIN_TERMS, CORRECTIONS = 12, 14


@cache
def bernoulli_numbers(count):
    """Return Bernoulli's numbers up to a number, as fractions."""
    numbers = [Fraction(1)]
    for n in range(1, count + 1):
        terms = (math.comb(n + 1, k) * b for k, b in enumerate(numbers))
        total = sum(terms, Fraction(0))
        numbers.append(-total / (n + 1))
    return numbers


def _sum_of_positive(s, q):
    end, total = q + EULER_MACLAURIN_TERMS, lax.full_like(q, 0)
    for k in range(EULER_MACLAURIN_TERMS):
        total = total + (q + k) ** -s
    total = total + end ** (1 - s) / (s - 1) + 0.5 * end**-s
    factor = s * end ** (-s - 1)
    for j in range(1, CORRECTIONS + 1):
        ratio = bernoulli_numbers(2 * j)[2 * j] / math.factorial(2 * j)
        total = total + float(ratio) * factor
        factor = factor * (s + 2 * j - 1) * (s + 2 * j) / (end * end)
    return jnp.where(jnp.isfinite(total), total, q**-s)


def zeta_sum(s, q):
    """Return the sum of ``(q + k) ** -s`` over k from 0 on, for s above 1.

    For a negative q and an integer s, the terms of positive numbers are a sum of this
    kind, and those of negative numbers the difference of two, with a sign.
    """
    below, rest = q < 0, q - lax.floor(q)
    starts = jnp.where(below, rest, q), jnp.where(below, 1 - rest, 1), 1 + abs(q)
    total, all_below, too_far = _sum_of_positive(s[None], jnp.stack(starts))
    turned = jnp.where(s % 2 == 0, 1, -1) * (all_below - too_far)
    total = jnp.where(below, total + turned, total)
    pole = (s == 1) | (q <= 0) & (q == lax.floor(q))
    bad = (s < 1) | (q <= 0) & (s != lax.floor(s)) | jnp.isnan(s) | jnp.isnan(q)
    return jnp.where(bad, np.nan, jnp.where(pole, np.inf, total))


hurwitz_zeta = custom_jvp(upcast_to_float32(zeta_sum))


def _slope_in_order(y, s, q):
    slope = jvp(lambda s: zeta_sum(s, q), (s,), (lax.full_like(s, 1),))[1]
    return jnp.where(q < 0, np.nan, slope)  # there, only integers have a value


def_argument_jvps(
    hurwitz_zeta, _slope_in_order, lambda y, s, q: -s * hurwitz_zeta(s + 1, q)
)


def _polygamma(n, x):
    sign = jnp.where(n % 2 == 0, -1, 1).astype(x.dtype)
    many = sign * lax.exp(lax.lgamma(n + 1)) * zeta_sum(n + 1, x)
    valid = (n >= 0) & (n == lax.floor(n))
    return jnp.where(valid, jnp.where(n == 0, lax.digamma(x), many), np.nan)


polygamma_of = custom_jvp(upcast_to_float32(_polygamma))
def_argument_jvps(
    polygamma_of,
    raising_jvp("polygamma", "its order"),
    lambda y, n, x: polygamma_of(n + 1, x),
)
