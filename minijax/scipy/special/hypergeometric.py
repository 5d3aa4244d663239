"""Gauss's hypergeometric function, and spherical harmonics.

Source: Abramowitz and Stegun, 15.3.3 to 15.3.12; for the harmonics, W. H. Press et al.,
*Numerical Recipes* (2007), 6.7: the recurrence of normalized Legendre functions.

Reference: ``jax.scipy.special.hyp2f1``, ``sph_harm_y``.
"""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

import math
from typing import Any

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.arrays.checks import as_integer
from minijax.core import Array
from minijax.operators.conversions import numbers_of
from minijax.own_rules.tangent_rules import custom_jvp
from minijax.scipy.special.converging import in_float32, power_series, repeat, slopes
from minijax.scipy.special.gamma_functions import gammasgn, operands, real_only
from minijax.typing import ArrayLike


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
    _, tail = repeat(step, (one, bracket(0)), s, 500)
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
        found = repeat(step, (zero + 1, zero, zero), x, 2000)[2]
        return jnp.where(abs(x) < 1, found, np.nan)

    return rule


_smooth_hypergeometric: Any = custom_jvp(in_float32(_hypergeometric, weak=False))
slopes(
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
    args = operands("hyp2f1", a, b, c, x)
    real_only("hyp2f1", args[0])
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
    return repeat(step, (one, zero, zero, one, zero, zero), x, 2000)[4:]


def _kummer_slopes(a, b, x):
    turned = x < 0  # exp(x) times the series of b - a, b and -x
    in_a, in_b = _slopes_of_series(jnp.where(turned, b - a, a), b, abs(x))
    grown = lax.exp(jnp.minimum(x, 0))
    in_b = jnp.where(turned, in_a + in_b, in_b) * grown
    return jnp.where(turned, -in_a, in_a) * grown, in_b


_smooth_kummer: Any = custom_jvp(in_float32(_kummer, weak=False))
slopes(
    _smooth_kummer,
    lambda y, a, b, x: in_float32(lambda *p: _kummer_slopes(*p)[0])(a, b, x),
    lambda y, a, b, x: in_float32(lambda *p: _kummer_slopes(*p)[1])(a, b, x),
    lambda y, a, b, x: a / b * _smooth_kummer(a + 1, b + 1, x),
)


def hyp1f1(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Compute Kummer's confluent hypergeometric function, element by element.

    Reference: ``jax.scipy.special.hyp1f1``.
    """
    return _smooth_kummer(*operands("hyp1f1", a, b, x))


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
    theta, phi = operands("sph_harm_y", theta, phi)
    n, m = jnp.asarray(n), jnp.asarray(m)
    if n_max is None:
        n_max = int(numbers_of(n, "the degree n, without n_max,").max())
    n_max = as_integer(n_max, "n_max of sph_harm_y")
    n, m, theta, phi = jnp.broadcast_arrays(n, m, jnp.atleast_1d(theta), phi)
    size = abs(m)
    found = _legendre(jnp.minimum(n, n_max), size, lax.cos(theta), n_max)
    found = jnp.where((m < 0) & jnp.equal(m % 2, 1), -found, found)
    angle = m.astype(phi.dtype) * phi
    return lax.complex(found * lax.cos(angle), found * lax.sin(angle))
