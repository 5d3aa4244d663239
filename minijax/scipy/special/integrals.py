"""Exponential and other integrals, hypergeometric functions, names of lax in SciPy.

Source: J. A. C. Weideman, *Computation of the complex error function*, SIAM J. Numer.
Anal. 31 (1994); Abramowitz and Stegun, chapters 5, 7 and 27.7.

Source: Abramowitz and Stegun, 15.3.3 to 15.3.12; for the harmonics, W. H. Press et al.,
*Numerical Recipes* (2007), 6.7: the recurrence of normalized Legendre functions.

References: ``jax.scipy.special``, ``jax.lax``, ``jax.scipy.special.hyp2f1``,
``sph_harm_y``.
"""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

import math
from functools import cache
from typing import Any

import numpy as np

from minijax import custom_jvp, lax, typeof
from minijax import numpy as jnp
from minijax.core import Array
from minijax.extend.arguments import check_kind, concrete_numpy, operator_index
from minijax.extend.promotion import promote_dtypes
from minijax.nn import functions as normalisation
from minijax.nn.functions import logsumexp as logsumexp
from minijax.scipy.special.entropies import ndtr, xlogy
from minijax.scipy.special.gamma_functions import (
    bind_arguments,
    continued_fraction,
    def_argument_jvps,
    def_special,
    def_special_real,
    def_special_unary,
    gammasgn,
    hurwitz_zeta,
    incomplete_gamma_grad_a,
    iterate_until_converged,
    lower_incomplete_gamma,
    polygamma_of,
    power_series,
    promote_args_inexact,
    raise_if_complex,
    regularized_incomplete_beta,
    scaled_i0,
    scaled_i1,
    upcast_to_float32,
    upper_incomplete_gamma,
)
from minijax.typing import ArrayLike

# Softmax with the arguments of SciPy.


def softmax(x: ArrayLike, /, *, axis: Any = None) -> Array:
    """Compute ``exp(x) / sum(exp(x))`` along axes, by default along all.

    Reference: ``jax.scipy.special.softmax``.
    """
    return normalisation.softmax(x, axis)


def log_softmax(x: ArrayLike, /, *, axis: Any = None) -> Array:
    """Compute the logarithm of `softmax`, along axes, by default along all.

    Reference: ``jax.scipy.special.log_softmax``.
    """
    return normalisation.log_softmax(x, axis)


# Special functions with the names of `minijax.lax`.


def _of_floats(name, what, parameters, function):
    """Return a special function that refuses integers, as `minijax.lax` does."""
    promoting = def_special(name, what, parameters, function)

    def of_arrays(*args, **kwargs):
        args = bind_arguments(name, promoting.__signature__, args, kwargs).args
        check_kind(name, "hf", [typeof(x) for x in promote_dtypes(*args)])
        return promoting(*args)

    of_arrays.__signature__ = promoting.__signature__
    of_arrays.__name__ = of_arrays.__qualname__ = name
    of_arrays.__doc__ = f"""Compute {what}, element by element, of floats.

    Raises:
      TypeError: for integers, booleans and complex numbers.

    Reference: ``jax.lax.{name}``.
    """
    return of_arrays


igamma = _of_floats(
    "igamma", "the lower incomplete gamma function", "a x", lower_incomplete_gamma
)
igammac = _of_floats("igammac", "1 less `igamma`", "a x", upper_incomplete_gamma)
igamma_grad_a = _of_floats(
    "igamma_grad_a", "the derivative of `igamma` in `a`", "a x", incomplete_gamma_grad_a
)
betainc = _of_floats(
    "betainc", "the incomplete beta function", "a b x", regularized_incomplete_beta
)
bessel_i0e = _of_floats("bessel_i0e", "``exp(-|x|) I0(x)``", "x", scaled_i0)
bessel_i1e = _of_floats("bessel_i1e", "``exp(-|x|) I1(x)``", "x", scaled_i1)
polygamma = _of_floats(
    "polygamma", "the derivative of number `m` of digamma", "m x", polygamma_of
)
zeta = _of_floats("zeta", "the Hurwitz zeta function", "x q", hurwitz_zeta)


# Exponential, trigonometric and Fresnel integrals; Faddeeva's and Owen's functions.

_TERMS = 42
_ROOT = math.sqrt(math.pi)


@cache
def _rational_terms():
    """Return the width L and the coefficients of Weideman's polynomial, by an FFT."""
    width = math.sqrt(_TERMS / math.sqrt(2))
    angles = np.arange(-2 * _TERMS + 1, 2 * _TERMS) * np.pi / (2 * _TERMS)
    t = width * np.tan(angles / 2)
    values = np.concatenate([[0], np.exp(-(t**2)) * (width**2 + t**2)])
    found = np.fft.fft(np.fft.fftshift(values)).real / (4 * _TERMS)
    return width, found[_TERMS:0:-1].tolist()


def _faddeeva_above(turned):
    """Return w(z) of ``turned = -i z``, where its real part is not negative."""
    width, coefficients = _rational_terms()
    low, high = width + turned, width - turned
    z, total = high / low, lax.full_like(turned, 0)
    for coefficient in coefficients:
        total = total * z + coefficient
    return (2 * total / low + 1 / _ROOT) / low


def _faddeeva(z):
    above = z.imag >= 0
    upper = jnp.where(above, z, -z)
    found = _faddeeva_above(lax.complex(upper.imag, -upper.real))
    safe = jnp.where(above, 0, z)
    return jnp.where(above, found, 2 * lax.exp(-safe * safe) - found)


_smooth_faddeeva: Any = custom_jvp(_faddeeva)
def_argument_jvps(_smooth_faddeeva, lambda y, z: -2 * z * y + 2j / _ROOT)


def wofz(z: ArrayLike) -> Array:
    """Compute Faddeeva's function ``exp(-z**2) erfc(-i z)``, element by element.

    Reference: ``jax.scipy.special.wofz``.
    """
    [x] = promote_args_inexact("wofz", z)
    return _smooth_faddeeva(x.astype(np.result_type(x.dtype, np.complex64)))


def _scaled_complement(x):
    endless = jnp.isinf(x)  # where a quotient of two sums is inf / inf
    found = _faddeeva_above(jnp.where(endless, 1, abs(x)))
    found, safe = jnp.where(endless, 0, found), jnp.where(x < 0, x, 0)
    return jnp.where(x < 0, 2 * lax.exp(safe * safe) - found, found)


def _dawson(x):
    near, endless = abs(x) < 1, jnp.isinf(x)
    small, far = jnp.where(near, x, 0), jnp.where(endless, 1, x)
    series = small * power_series(lambda n: -2 * small**2 / (2 * n + 1), small)
    found = _faddeeva(lax.complex(far, lax.full_like(x, 0))).imag * (_ROOT / 2)
    return jnp.where(near, series, jnp.where(endless, 1 / x, found))


def _far_terms(x, sign):
    """Return what the asymptotic series of both adds to its first term, from 32 on."""
    u, total = sign * (1 / x) ** 2 / 2, 1
    for k in (11, 9, 7, 5, 3):
        total = 1 + k * u * total
    return u * total


def _slope_of_scaled_complement(y, x):
    far = x > 32  # where the two terms cancel
    series = 2 / _ROOT * _far_terms(jnp.where(far, x, 32), -1)
    near, y = jnp.where(far, 0, x), jnp.where(far, 0, y)
    return jnp.where(far, series, 2 * (near * y) - 2 / _ROOT)


def _slope_of_dawson(y, x):
    far = abs(x) > 32
    series = -_far_terms(jnp.where(far, x, 32), 1)
    near, y = jnp.where(far, 0, x), jnp.where(far, 0, y)
    return jnp.where(far, series, 1 - 2 * near * y)


_smooth_scaled_complement: Any = custom_jvp(
    upcast_to_float32(_scaled_complement, weak=False)
)
def_argument_jvps(_smooth_scaled_complement, _slope_of_scaled_complement)
_smooth_dawson: Any = custom_jvp(upcast_to_float32(_dawson, weak=False))
def_argument_jvps(_smooth_dawson, _slope_of_dawson)


def _erfcx(x):
    """Return ``exp(x**2) erfc(x)``: Faddeeva's function, turned by a quarter."""
    if jnp.iscomplexobj(x):
        return _smooth_faddeeva(lax.complex(-lax.imag(x), lax.real(x)))
    return _smooth_scaled_complement(x)


erfcx = def_special_unary("erfcx", "the scaled error function", _erfcx)
dawsn = def_special_real("dawsn", "Dawson's integral", _smooth_dawson)


def _exponential_integral(n, x):
    """Return E_n(x) for x > 0."""
    far, near = jnp.maximum(x, 1), jnp.clip(x, jnp.finfo(x.dtype).tiny, 1)

    def terms(k):
        first = k == 1
        a = jnp.where(first, 1, -(k - 1) * (n + k - 2))
        return a, far + n + 2 * (k - 1)

    fraction = lax.exp(-far) * continued_fraction(terms, far)
    power, total = lax.full_like(near, 1), lax.full_like(near, 0)
    for k in range(24):
        gap = k - n + 1
        total = total - jnp.where(gap == 0, 0, power / jnp.where(gap == 0, 1, gap))
        power = power * (-near / (k + 1))
    whole = (n >= 1) & (n == lax.floor(n))  # the gamma function of 1 - n has a pole
    m, apart, logs = jnp.where(whole, n, 1), jnp.where(whole, 0, n), lax.log(near)
    sign = 1 - 2 * lax.rem(m - 1, lax.full_like(m, 2))
    size = lax.exp((m - 1) * logs - lax.lgamma(m))
    first = sign * size * (lax.digamma(m) - logs)
    sizes = lax.exp((apart - 1) * logs + lax.lgamma(1 - apart))
    other = gammasgn(1 - apart) * sizes
    found = jnp.where(x > 1, fraction, jnp.where(whole, first, other) + total)
    edge = jnp.where(n > 1, 1 / jnp.where(n > 1, n - 1, 1), np.inf)
    found = jnp.where(x == 0, edge, found)
    return jnp.where((x < 0) | jnp.isnan(x), np.nan, found)


def _of_order(n, x):
    found = _exponential_integral(n, x)
    return jnp.where(n == 0, lax.exp(-x) / x, found)


_smooth_exponential_integral: Any = custom_jvp(upcast_to_float32(_of_order, weak=False))
def_argument_jvps(
    _smooth_exponential_integral,
    lambda y, n, x: lax.full_like(x, np.nan),
    lambda y, n, x: -_smooth_exponential_integral(n - 1, x),
)


def expn(n: ArrayLike, x: ArrayLike) -> Array:
    """Compute the exponential integral of order `n`, element by element.

    Args:
      n: orders; no derivative concerns them. Beside a whole number, and for `x` up to
        1, as many digits are lost as the order has zeros behind the point.
      x: numbers that are not negative.

    Reference: ``jax.scipy.special.expn``.
    """
    return _smooth_exponential_integral(*promote_args_inexact("expn", n, x))


exp1 = def_special_real(
    "exp1",
    "the exponential integral of order 1",
    lambda x: expn(1, x),
)


def _principal_integral(x):
    low, high = jnp.clip(x, jnp.finfo(x.dtype).tiny, 40), jnp.maximum(x, 40)
    series = low * power_series(lambda n: low * n / (n + 1) ** 2, low)
    series = series + lax.log(low) + np.euler_gamma
    asymptotic = lax.exp(high) / high * power_series(lambda n: n / high, high, 30)
    positive = jnp.where(x > 40, asymptotic, series)
    negative = -_exponential_integral(lax.full_like(x, 1), abs(x))
    return jnp.where(x > 0, positive, negative)


_smooth_principal: Any = custom_jvp(upcast_to_float32(_principal_integral, weak=False))
def_argument_jvps(_smooth_principal, lambda y, x: lax.exp(x) / x)
expi = def_special_real(
    "expi", "the principal value of ``exp(t) / t``", _smooth_principal
)


def _far_trigonometric(x):
    """Return E_1(i x) for x >= 4."""
    z = lax.complex(lax.full_like(x, 0), x)

    def terms(k):
        a = jnp.where(k == 1, 1, -((k - 1) ** 2))
        return a.astype(z.dtype), z + 2 * k - 1

    return lax.exp(-z) * continued_fraction(terms, z)


def _far(x):
    size = abs(x)
    return size, _far_trigonometric(jnp.where(jnp.isinf(x), 4, jnp.maximum(size, 4)))


def _alternating(x, start, divided):
    """Return the sum of ``(-1)^k x^(2k) / (2k + start)!``, each term divided."""
    term, total = 1 / math.factorial(start), lax.full_like(x, 0)
    for k in range(20):
        total = total + term / divided(k)
        term = -term * x * x / ((2 * k + start + 1) * (2 * k + start + 2))
    return total


def _sine_integral(x):
    size, far = _far(x)
    small = jnp.minimum(size, 4)
    near = small * _alternating(small, 1, lambda k: 2 * k + 1)
    found = jnp.where(size < 4, near, far.imag + math.pi / 2)
    return lax.sign(x) * jnp.where(jnp.isinf(x), math.pi / 2, found)


def _cosine_integral(x):
    size, far = _far(x)
    small = jnp.clip(size, jnp.finfo(x.dtype).tiny, 4)
    near = -small * small * _alternating(small, 2, lambda k: 2 * k + 2)
    near = near + lax.log(small) + np.euler_gamma
    found = jnp.where(size < 4, near, -far.real)
    found = jnp.where(x == 0, -np.inf, found)
    return jnp.where(jnp.isinf(x), 0, found)


_smooth_sine_integral: Any = custom_jvp(upcast_to_float32(_sine_integral, weak=False))
def_argument_jvps(_smooth_sine_integral, lambda y, x: jnp.sinc(x / math.pi))
_smooth_cosine_integral: Any = custom_jvp(
    upcast_to_float32(_cosine_integral, weak=False)
)
def_argument_jvps(_smooth_cosine_integral, lambda y, x: lax.cos(x) / x)


def sici(x: ArrayLike) -> tuple[Array, Array]:
    """Compute the sine and the cosine integral, element by element.

    Raises:
      ValueError: for complex numbers.

    Reference: ``jax.scipy.special.sici``.
    """
    [x] = promote_args_inexact("sici", x)
    if jnp.iscomplexobj(x):
        raise ValueError("Argument `x` to sici must be real-valued.")
    return _smooth_sine_integral(x), _smooth_cosine_integral(x)


def _fresnel_far(x):
    """Return 1 minus twice the integrals beyond ``abs(x)``, as a complex number."""
    size = jnp.where(jnp.isinf(x), 1, abs(x))
    turns = lax.rem(size * size, lax.full_like(x, 4)) * (math.pi / 2)
    scaled = size * (_ROOT / 2)
    tail = _faddeeva_above(lax.complex(scaled, -scaled))
    tail = jnp.where(jnp.isinf(x), 0, tail)
    return (1 - lax.complex(lax.cos(turns), lax.sin(turns)) * tail) * (0.5 + 0.5j)


def _fresnel_near(x, odd):
    angle = x * x * (math.pi / 2)
    found = _alternating(angle, int(odd), lambda k: 4 * k + 1 + 2 * odd)
    return x * (angle * found if odd else found)


def _fresnel_sine(x):
    near = _fresnel_near(jnp.clip(x, -1.3, 1.3), True)
    return jnp.where(abs(x) < 1.3, near, lax.sign(x) * _fresnel_far(x).imag)


def _fresnel_cosine(x):
    near = _fresnel_near(jnp.clip(x, -1.3, 1.3), False)
    return jnp.where(abs(x) < 1.3, near, lax.sign(x) * _fresnel_far(x).real)


_smooth_fresnel_sine: Any = custom_jvp(upcast_to_float32(_fresnel_sine, weak=False))
def_argument_jvps(_smooth_fresnel_sine, lambda y, x: lax.sin(x * x * (math.pi / 2)))
_smooth_fresnel_cosine: Any = custom_jvp(upcast_to_float32(_fresnel_cosine, weak=False))
def_argument_jvps(_smooth_fresnel_cosine, lambda y, x: lax.cos(x * x * (math.pi / 2)))


def fresnel(x: ArrayLike) -> tuple[Array, Array]:
    """Compute Fresnel's integrals, of the sine and of the cosine, element by element.

    Raises:
      NotImplementedError: for complex numbers.

    Reference: ``jax.scipy.special.fresnel``.
    """
    [x] = promote_args_inexact("fresnel", x)
    if jnp.iscomplexobj(x):
        raise NotImplementedError("fresnel of complex numbers is not implemented.")
    return _smooth_fresnel_sine(x), _smooth_fresnel_cosine(x)


def _dilogarithm(z):
    """Return the sum of ``z^k / k^2``, for z between -1/2 and 1/2."""
    return z * power_series(lambda n: z * (n / (n + 1)) ** 2, z)


def _spence(x):
    high, size = x > 1.5, jnp.maximum(x, jnp.finfo(x.dtype).tiny)
    y, logs = jnp.where(high, 1 / size, size), lax.log(size)
    low = y < 0.5
    found = _dilogarithm(jnp.where(low, y, 1 - y))
    rest = jnp.where(high, -logs, logs) * lax.log1p(-jnp.where(low, y, 0))
    found = jnp.where(low, math.pi**2 / 6 - rest - found, found)
    found = jnp.where(high, -logs * logs / 2 - found, found)
    return jnp.where(x < 0, np.nan, jnp.where(jnp.isinf(x), -np.inf, found))


@custom_jvp
def _spence_slope(x):
    one = x == 1
    safe = jnp.where(one, 2, x)
    return jnp.where(one, -1, lax.log(safe) / (1 - safe))


def _spence_bend(y, x):
    one = x == 1
    safe = jnp.where(one, 2, x)
    bend = (1 + xlogy(safe, safe) / (1 - safe)) / (safe * (1 - safe))
    return jnp.where(one, 0.5, bend)


_spence_function: Any = custom_jvp(upcast_to_float32(_spence, weak=False))
def_argument_jvps(_spence_slope, _spence_bend)
def_argument_jvps(_spence_function, lambda y, x: _spence_slope(x))


def spence(x: ArrayLike) -> Array:
    """Compute Spence's integral, a dilogarithm, element by element.

    Raises:
      TypeError: unless `x` is of float32 or float64, or a float of Python.

    Reference: ``jax.scipy.special.spence``.
    """
    if (dtype := jnp.asarray(x).dtype) not in ("float32", "float64"):
        raise TypeError(f"x.dtype={dtype} is not supported: use float32 or float64.")
    return _spence_function(lax.convert_element_type(x, dtype))


_NODES, _WEIGHTS = (x.tolist() for x in np.polynomial.legendre.leggauss(20))


def _owen(h, a):
    """Return Owen's integral for a between 0 and 1, by Gauss's 20 nodes."""
    total = lax.full_like(h, 0)
    for node, weight in zip(_NODES, _WEIGHTS):
        t = a * (0.5 + 0.5 * node)
        steep = 1 + t * t
        total = total + weight * lax.exp(-0.5 * h * h * steep) / steep
    return total * a / (4 * math.pi)


def _owens_t(h, a):
    h, size = abs(h), abs(a)
    wide = size > 1
    moved = jnp.where(wide, jnp.where(jnp.isinf(size), np.inf, h * size), h)
    slope = jnp.where(wide, 1 / jnp.where(wide, size, 1), size)
    found = _owen(moved, slope)
    p, q = ndtr(-h), ndtr(-jnp.where(h == 0, 0, h * size))
    other = 0.5 * (p + q) - p * q - found
    return lax.sign(a) * jnp.where(wide, other, found)


_smooth_owen: Any = custom_jvp(upcast_to_float32(_owens_t, weak=False))
def_argument_jvps(
    _smooth_owen,
    lambda y, h, a: (
        -lax.exp(-0.5 * h * h) * (ndtr(h * a) - 0.5) / math.sqrt(2 * math.pi)
    ),
    lambda y, h, a: lax.exp(-0.5 * h * h * (1 + a * a)) / ((1 + a * a) * 2 * math.pi),
)


def owens_t(h: ArrayLike, a: ArrayLike) -> Array:
    """Compute Owen's T function, element by element.

    Reference: ``jax.scipy.special.owens_t``.
    """
    h, a = promote_args_inexact("owens_t", h, a)
    raise_if_complex("owens_t", h)
    if h.dtype.itemsize < 4:
        h, a = (x.astype(np.float32) for x in (h, a))
    return _smooth_owen(h, a)


# Gauss's hypergeometric function, and spherical harmonics.


def _is_integer(x):
    return abs(x - jnp.round(x)) < 50 * jnp.finfo(x.dtype).eps


def _ends(a):
    """Return where a series with a factor ``(a)_n`` has an end."""
    return (a <= 0) & _is_integer(a)


def _next(n, a, b, c, x):
    """Return by what a term is multiplied to be the n-th."""
    return (a + n - 1) * (b + n - 1) / (c + n - 1) / n * x


def _ratio(a, b, c, x):
    """Return the function `_next` of n, 0 behind the end of a polynomial."""
    last = jnp.where(_ends(a), -jnp.round(a), np.inf)
    last = jnp.minimum(last, jnp.where(_ends(b), -jnp.round(b), np.inf))

    return lambda n: jnp.where(n > last, 0, _next(n, a, b, c, x))


def _gauss(a, b, c, x):
    return power_series(_ratio(a, b, c, x), x)


def _gammas(above, below):
    """Return a quotient of products of values of the gamma function; 0 at its poles."""
    size = sum(map(lax.lgamma, above)) - sum(map(lax.lgamma, below))
    pole = jnp.array([_ends(x) for x in below]).any(0)
    sign = math.prod(map(gammasgn, [*above, *below]))
    return jnp.where(pole, 0, jnp.where(pole, 1, sign) * lax.exp(size))


def _two_series(a, b, c, s):
    """Return the function of ``1 - s``, where ``c - a - b`` is no integer."""
    d = c - a - b
    first = _gammas([c, d], [c - a, c - b]) * _gauss(a, b, 1 - d, s)
    second = _gammas([c, -d], [a, b]) * _gauss(c - a, c - b, 1 + d, s)
    return first + lax.pow(s, d) * second


def _with_logarithm(a, b, m, s):
    """Return the function of ``1 - s``, ``c = a + b + m``, for an integer m >= 0."""
    c, some = a + b + m, m > 0

    def short(n):
        gap = jnp.where(n < m, n - m, 1)
        return jnp.where(n < m, (a + n - 1) * (b + n - 1) / (n * gap) * s, 0)

    head = _gammas([c, jnp.where(some, m, 1)], [a + m, b + m]) * power_series(short, s)
    logs = lax.log(s)

    def bracket(n):
        up = lax.digamma(a + m + n) + lax.digamma(b + m + n)
        return logs + up - lax.digamma(lax.full_like(s, 1) + n) - lax.digamma(m + n + 1)

    def step(n, state):
        term, total = state
        term = term * (a + m + n - 1) * (b + m + n - 1) / (n * (n + m)) * s
        added = term * bracket(n)
        return abs(added) > jnp.finfo(s.dtype).eps * abs(total), (term, total + added)

    one = lax.full_like(s, 1)
    _, tail = iterate_until_converged(step, (one, bracket(0)), s, 500)
    tail = tail * _gammas([c], [a, b, m + 1]) * lax.pow(s, m)
    return jnp.where(some, head, 0) - jnp.where(m % 2 == 0, tail, -tail)


def _near_one(a, b, c, s):
    d = c - a - b
    whole, turned = _is_integer(d), d < -0.5
    some = jnp.where(whole, d + 0.375, d)
    apart = _two_series(a, b, a + b + some, s)
    first, second = (jnp.where(turned, c - each, each) for each in (a, b))
    joint = _with_logarithm(first, second, abs(jnp.round(d)), s)
    joint = jnp.where(turned, lax.pow(s, jnp.round(d)), 1) * joint
    return jnp.where(whole, joint, apart)


def _hypergeometric(a, b, c, x):
    polynomial = _ends(a) | _ends(b)
    negative = (x < 0) & ~polynomial
    inside = jnp.where(negative, x / (x - 1), x)
    p, q = jnp.where(negative, c - a, a), b
    near = (inside > 0.9) & (inside < 1) & ~polynomial & ~_ends(p)
    far = (inside > 0.9) & ~polynomial & ~_ends(p)
    found = _gauss(p, q, c, jnp.where(far, 0, inside))
    s = jnp.where(negative, 1 / (1 - x), 1 - x)
    found = jnp.where(near, _near_one(p, q, c, jnp.where(near, s, 0.5)), found)
    d = c - a - b
    total = _gammas([c, jnp.where(d > 0, d, 1)], [c - a, c - b])
    at_one = jnp.where(d > 0, total, np.inf)
    found = jnp.where((x == 1) & ~polynomial, at_one, found)
    found = jnp.where((x > 1) & ~polynomial, np.inf, found)
    found = jnp.where(negative, lax.pow(jnp.where(negative, 1 - x, 1), -b), 1) * found
    return jnp.where(_ends(c) & (x != 0), np.inf, found)


def _slope_of_series(factor):
    """Return the rule for a parameter: each term's derivative follows the term's."""

    def rule(y, a, b, c, x):
        def step(n, state):
            term, moved, total = state
            ratio = _next(n, a, b, c, x)
            moved = moved * ratio + term * factor(n, a, b, c, x)
            term = term * ratio
            eps = jnp.finfo(x.dtype).eps
            active = (abs(moved) > eps * abs(total)) | ((term != 0) & (total == 0))
            return active, (term, moved, total + moved)

        zero = lax.full_like(x, 0)
        found = iterate_until_converged(step, (zero + 1, zero, zero), x, 2000)[2]
        return jnp.where(abs(x) < 1, found, np.nan)

    return rule


_smooth_hypergeometric: Any = custom_jvp(upcast_to_float32(_hypergeometric, weak=False))
def_argument_jvps(
    _smooth_hypergeometric,
    _slope_of_series(lambda n, a, b, c, x: (b + n - 1) / (c + n - 1) / n * x),
    _slope_of_series(lambda n, a, b, c, x: (a + n - 1) / (c + n - 1) / n * x),
    _slope_of_series(lambda n, a, b, c, x: -_next(n, a, b, c, x) / (c + n - 1)),
    lambda y, a, b, c, x: a * b / c * _smooth_hypergeometric(a + 1, b + 1, c + 1, x),
)


def hyp2f1(a: ArrayLike, b: ArrayLike, c: ArrayLike, x: ArrayLike) -> Array:
    """Compute Gauss's hypergeometric function, element by element.

    Args:
      a, b, c: real parameters. Derivatives in them hold for `x` between -1 and 1.
      x: real numbers. Beyond 1 the function is infinite, unless it is a polynomial.

    Reference: ``jax.scipy.special.hyp2f1``.
    """
    args = promote_args_inexact("hyp2f1", a, b, c, x)
    raise_if_complex("hyp2f1", args[0])
    return _smooth_hypergeometric(*jnp.broadcast_arrays(*args))


def _last_factor(a):
    """Return the number of factors of ``(a)_n`` before the first that is 0."""
    return jnp.where((a <= 0) & (a == lax.floor(a)), -a, np.inf)


def _kummer_series(a, b, x):
    turned = (x < 0) & (_last_factor(a) == np.inf)
    a, size = jnp.where(turned, b - a, a), jnp.where(turned, -x, x)
    last, pole = _last_factor(a), _last_factor(b)

    def ratio(n):  # 0 behind a polynomial; behind an infinite term, all is infinite
        factor = (a + n - 1) / (b + n - 1) * size / n
        return jnp.where(n > pole + 1, 1, jnp.where(n > last, 0, factor))

    return jnp.where(turned, lax.exp(x), 1) * power_series(ratio, size)


def _kummer(a, b, x):
    found = jnp.where(b == 0, np.inf, _kummer_series(a, b, x))
    found = jnp.where(a == b, lax.exp(x), found)
    return jnp.where(a == 0, 1, found)


def _slopes_of_series(a, b, x):
    """Return the derivatives of Kummer's series in its two parameters, for x > 0."""
    eps = jnp.finfo(x.dtype).eps

    def step(n, state):
        term, *moves, value, in_a, in_b = state
        factor = x / n / (b + n - 1)
        ratio = (a + n - 1) * factor
        move_a = moves[0] * ratio + term * factor
        move_b = moves[1] * ratio - term * ratio / (b + n - 1)
        new = term * ratio, move_a, move_b
        totals = value + new[0], in_a + move_a, in_b + move_b
        grows = [abs(t) > eps * abs(total) for t, total in zip(new, totals)]
        return grows[0] | grows[1] | grows[2], (*new, *totals)

    one, zero = lax.full_like(x, 1), lax.full_like(x, 0)
    return iterate_until_converged(step, (one, zero, zero, one, zero, zero), x, 2000)[
        4:
    ]


def _kummer_slopes(a, b, x):
    turned = x < 0  # exp(x) times the series of b - a, b and -x
    in_a, in_b = _slopes_of_series(jnp.where(turned, b - a, a), b, abs(x))
    grown = lax.exp(jnp.minimum(x, 0))
    in_b = jnp.where(turned, in_a + in_b, in_b) * grown
    return jnp.where(turned, -in_a, in_a) * grown, in_b


_smooth_kummer: Any = custom_jvp(upcast_to_float32(_kummer, weak=False))
def_argument_jvps(
    _smooth_kummer,
    lambda y, a, b, x: upcast_to_float32(lambda *p: _kummer_slopes(*p)[0])(a, b, x),
    lambda y, a, b, x: upcast_to_float32(lambda *p: _kummer_slopes(*p)[1])(a, b, x),
    lambda y, a, b, x: a / b * _smooth_kummer(a + 1, b + 1, x),
)


def hyp1f1(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Compute Kummer's confluent hypergeometric function, element by element.

    Reference: ``jax.scipy.special.hyp1f1``.
    """
    return _smooth_kummer(*promote_args_inexact("hyp1f1", a, b, x))


def _legendre(n, m, cosine, n_max):
    """Return normalized associated Legendre functions of degrees n and orders m."""
    sine = lax.sqrt(jnp.maximum(1 - cosine * cosine, 0))
    low = lax.full_like(cosine, 1 / math.sqrt(4 * math.pi))
    found = lax.full_like(cosine, 0)
    for order in range(n_max + 1):
        before, value = lax.full_like(cosine, 0), low
        for degree in range(order, n_max + 1):
            found = jnp.where((n == degree) & (m == order), value, found)
            before, value = value, _next_degree(degree, order, before, value, cosine)
        low = -low * sine * math.sqrt((2 * order + 3) / (2 * order + 2))
    return found


def _next_degree(degree, order, before, value, cosine):
    """Return the function of one degree more, from the last two."""
    n = degree + 1
    scale = math.sqrt((4 * n * n - 1) / (n * n - order * order))
    size = (degree * degree - order * order) / max(4 * degree * degree - 1, 1)
    return scale * (cosine * value - math.sqrt(size) * before)


def sph_harm_y(
    n: ArrayLike,
    m: ArrayLike,
    theta: ArrayLike,
    phi: ArrayLike,
    diff_n: int | None = None,
    n_max: int | None = None,
) -> Array:
    """Compute spherical harmonics, element by element.

    Args:
      n: degrees, integers from 0 on.
      m: orders, integers between ``-n`` and ``n``.
      theta: colatitudes, between 0 and pi.
      phi: longitudes, between 0 and 2 pi.
      diff_n: has to be None.
      n_max: the greatest degree: greater ones are taken for it. By default that of `n`,
        which has to have numbers then.

    Raises:
      NotImplementedError: for derivatives by `diff_n`.
      ConcretizationTypeError: for traced `n` without `n_max`.

    Reference: ``jax.scipy.special.sph_harm_y``.
    """
    if diff_n is not None:
        raise NotImplementedError(
            "The 'diff_n' argument to sph_harm_y is not supported; use jax.grad."
        )
    theta, phi = promote_args_inexact("sph_harm_y", theta, phi)
    n, m = jnp.asarray(n), jnp.asarray(m)
    if n_max is None:
        n_max = int(concrete_numpy(n, "the degree n, without n_max,").max())
    n_max = operator_index(n_max, "n_max of sph_harm_y")
    n, m, theta, phi = jnp.broadcast_arrays(n, m, jnp.atleast_1d(theta), phi)
    size = abs(m)
    found = _legendre(jnp.minimum(n, n_max), size, lax.cos(theta), n_max)
    found = jnp.where((m < 0) & jnp.equal(m % 2, 1), -found, found)
    angle = m.astype(phi.dtype) * phi
    return lax.complex(found * lax.cos(angle), found * lax.sin(angle))
