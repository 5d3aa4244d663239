"""Exponential, trigonometric and Fresnel integrals; Faddeeva's and Owen's functions.

Source: J. A. C. Weideman, *Computation of the complex error function*, SIAM J. Numer.
Anal. 31 (1994); Abramowitz and Stegun, chapters 5, 7 and 27.7.

Reference: ``jax.scipy.special``.
"""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

import math
from functools import cache
from typing import Any

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.core import Array
from minijax.own_rules.tangent_rules import custom_jvp
from minijax.scipy.special.converging import (
    continued_fraction,
    in_float32,
    power_series,
    slopes,
)
from minijax.scipy.special.entropies import xlogy
from minijax.scipy.special.gamma_functions import (
    gammasgn,
    operands,
    real_only,
    special,
    special_of_reals,
)
from minijax.scipy.special.normal_integrals import ndtr
from minijax.typing import ArrayLike

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
slopes(_smooth_faddeeva, lambda y, z: -2 * z * y + 2j / _ROOT)


def wofz(z: ArrayLike) -> Array:
    """Compute Faddeeva's function ``exp(-z**2) erfc(-i z)``, element by element.

    Reference: ``jax.scipy.special.wofz``.
    """
    [x] = operands("wofz", z)
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


_smooth_scaled_complement: Any = custom_jvp(in_float32(_scaled_complement, weak=False))
slopes(_smooth_scaled_complement, _slope_of_scaled_complement)
_smooth_dawson: Any = custom_jvp(in_float32(_dawson, weak=False))
slopes(_smooth_dawson, _slope_of_dawson)


def _erfcx(x):
    """Return ``exp(x**2) erfc(x)``: Faddeeva's function, turned by a quarter."""
    if jnp.iscomplexobj(x):
        return _smooth_faddeeva(lax.complex(-lax.imag(x), lax.real(x)))
    return _smooth_scaled_complement(x)


erfcx = special("erfcx", "the scaled error function", _erfcx)
dawsn = special_of_reals("dawsn", "Dawson's integral", _smooth_dawson)


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


_smooth_exponential_integral: Any = custom_jvp(in_float32(_of_order, weak=False))
slopes(
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
    return _smooth_exponential_integral(*operands("expn", n, x))


exp1 = special_of_reals(
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


_smooth_principal: Any = custom_jvp(in_float32(_principal_integral, weak=False))
slopes(_smooth_principal, lambda y, x: lax.exp(x) / x)
expi = special_of_reals(
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


_smooth_sine_integral: Any = custom_jvp(in_float32(_sine_integral, weak=False))
slopes(_smooth_sine_integral, lambda y, x: jnp.sinc(x / math.pi))
_smooth_cosine_integral: Any = custom_jvp(in_float32(_cosine_integral, weak=False))
slopes(_smooth_cosine_integral, lambda y, x: lax.cos(x) / x)


def sici(x: ArrayLike) -> tuple[Array, Array]:
    """Compute the sine and the cosine integral, element by element.

    Raises:
      ValueError: for complex numbers.

    Reference: ``jax.scipy.special.sici``.
    """
    [x] = operands("sici", x)
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


_smooth_fresnel_sine: Any = custom_jvp(in_float32(_fresnel_sine, weak=False))
slopes(_smooth_fresnel_sine, lambda y, x: lax.sin(x * x * (math.pi / 2)))
_smooth_fresnel_cosine: Any = custom_jvp(in_float32(_fresnel_cosine, weak=False))
slopes(_smooth_fresnel_cosine, lambda y, x: lax.cos(x * x * (math.pi / 2)))


def fresnel(x: ArrayLike) -> tuple[Array, Array]:
    """Compute Fresnel's integrals, of the sine and of the cosine, element by element.

    Raises:
      NotImplementedError: for complex numbers.

    Reference: ``jax.scipy.special.fresnel``.
    """
    [x] = operands("fresnel", x)
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


_spence_function: Any = custom_jvp(in_float32(_spence, weak=False))
slopes(_spence_slope, _spence_bend)
slopes(_spence_function, lambda y, x: _spence_slope(x))


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


_smooth_owen: Any = custom_jvp(in_float32(_owens_t, weak=False))
slopes(
    _smooth_owen,
    lambda y, h, a: (
        -lax.exp(-0.5 * h * h) * (ndtr(h * a) - 0.5) / math.sqrt(2 * math.pi)
    ),
    lambda y, h, a: (
        lax.exp(-0.5 * h * h * (1 + a * a)) / ((1 + a * a) * 2 * math.pi)
    ),
)


def owens_t(h: ArrayLike, a: ArrayLike) -> Array:
    """Compute Owen's T function, element by element.

    Reference: ``jax.scipy.special.owens_t``.
    """
    h, a = operands("owens_t", h, a)
    real_only("owens_t", h)
    if h.dtype.itemsize < 4:
        h, a = (x.astype(np.float32) for x in (h, a))
    return _smooth_owen(h, a)
