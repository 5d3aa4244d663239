"""Special functions: known values, ends of ranges, derivatives."""

import math

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import grad, jit, lax, vmap
from minijax.scipy import special
from minijax.test_util import check_grads

ONE = {
    "gammaln": math.lgamma,
    "gamma": math.gamma,
    "erf": math.erf,
    "erfc": math.erfc,
    "expit": lambda x: 1 / (1 + math.exp(-x)),
    "ndtr": lambda x: math.erfc(-x / math.sqrt(2)) / 2,
    "log_ndtr": lambda x: math.log(math.erfc(-x / math.sqrt(2)) / 2),
    "factorial": lambda x: math.gamma(x + 1) if x >= 0 else 0,
}
POINTS = [-7.5, -3.3, -0.4, 0.2, 0.5, 1.0, 2.0, 5.5, 9.0]


@pytest.mark.parametrize("name", ONE)
def test_one_number(name):
    with minijax.enable_x64():
        f = getattr(special, name)
        x = jnp.array(POINTS)
        wanted = [ONE[name](p) for p in POINTS]
        np.testing.assert_allclose(f(x), wanted, rtol=1e-11, atol=1e-14)
        np.testing.assert_allclose(jit(f)(x), wanted, rtol=1e-11, atol=1e-14)
        np.testing.assert_allclose(vmap(f)(x), f(x), rtol=1e-13)
        check_grads(f, (jnp.array([0.3, 1.7, 3.2]),), order=1)


def test_signs_of_the_gamma_function():
    x = jnp.array([-2.5, -1.5, -0.5, -0.0, 0.0, 0.5, -1.0, jnp.inf])
    assert np.array_equal(
        special.gammasgn(x), [-1, 1, -1, -1, 1, 1, np.nan, 1], equal_nan=True
    )


@pytest.mark.parametrize("x", [0.6, 4.5, 9.0, 40.0])
def test_second_derivatives_of_beta_where_its_arguments_are_equal(x):
    with minijax.enable_x64():
        found = minijax.hessian(lambda v: special.betaln(v[0], v[1]))(jnp.array([x, x]))
        both = special.polygamma(1, 2 * x)
        wanted = special.polygamma(1, x) * jnp.eye(2) - both
        np.testing.assert_allclose(found, wanted, rtol=1e-7)


@pytest.mark.parametrize("x", [1e-3, -1e-3, 0.1, 0.5, 2.0, 7.0])
def test_derivatives_of_bessel_functions_of_the_first_kind(x):
    with minijax.enable_x64():
        for way in (lambda f: f, jit):
            jn = way(lambda x: special.bessel_jn(x, v=3))
            values, slopes = jn(x), minijax.jacfwd(jn)(x)
            curves = minijax.jacfwd(minijax.jacrev(jn))(x)
            below = jnp.concatenate([-values[1:2], values[:2]])
            np.testing.assert_allclose(slopes[:3], (below - values[1:]) / 2, rtol=1e-9)
            rest = x * x * curves + x * slopes + (x * x - jnp.arange(4) ** 2) * values
            np.testing.assert_allclose(rest, 0, atol=1e-13)
        assert special.bessel_jn(x, v=0).shape == (1,)
        assert minijax.jacfwd(lambda x: special.bessel_jn(x, v=60))(x).shape == (51,)


BETAS = [(0.1, 0.2), (2, 3), (7.9, 0.1), (8.1, 20), (1e3, 1e-3), (1e3, 1e3), (30, 1e6)]


@pytest.mark.parametrize("a, b", [*BETAS, *(pair[::-1] for pair in BETAS)])
def test_beta_where_gammas_cancel(a, b):
    with minijax.enable_x64():
        wanted = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
        scale = max(abs(math.lgamma(x)) for x in (a, b, a + b))
        found = special.betaln(float(a), float(b))
        assert abs(found - wanted) <= 1e-12 * abs(wanted) + 4e-16 * scale
    narrow = special.betaln(np.float32(a), np.float32(b))
    np.testing.assert_allclose(narrow, wanted, rtol=3e-6, atol=1e-6)
    slope = grad(special.betaln)(float(a), float(b))
    with minijax.enable_x64():
        exact = special.digamma(float(a)) - special.digamma(float(a + b))
    np.testing.assert_allclose(slope, exact, rtol=2e-4)


def test_counting():
    for n in range(6):
        ks = jnp.arange(-1, 8)
        wanted = [math.comb(n, k) if k >= 0 else 0 for k in range(-1, 8)]
        np.testing.assert_allclose(special.comb(n, ks), wanted, rtol=1e-5)
    np.testing.assert_allclose(special.comb(4, 2, repetition=True), 10, rtol=1e-5)
    np.testing.assert_allclose(special.poch(2.0, 3.0), 24, rtol=1e-5)
    assert special.poch(2.0, 0.0) == 1
    np.testing.assert_allclose(
        special.multigammaln(5.0, 3),
        1.5 * math.log(math.pi) + sum(math.lgamma(5 - i / 2) for i in range(3)),
        rtol=1e-6,
    )


def test_zero_times_a_logarithm():
    for f, inner in ((special.xlogy, 2.0), (special.xlog1py, 1.0)):
        assert f(0.0, 0.0) == 0 and f(0.0, -1.0) == 0 and np.isnan(f(0.0, jnp.nan))
        np.testing.assert_allclose(f(3.0, inner), 3 * np.log(2), rtol=1e-6)
        np.testing.assert_allclose(grad(f)(0.0, inner), np.log(2), rtol=1e-6)
        np.testing.assert_allclose(grad(f, 1)(3.0, inner), 1.5, rtol=1e-6)
        check_grads(f, (jnp.array([0.4, 2.0]), jnp.array([0.7, 3.0])), order=2)


def test_entropies():
    assert special.entr(0.0) == 0 and special.entr(-1.0) == -np.inf
    p, q = jnp.array([0.5, 0.5, 0.0]), jnp.array([0.25, 0.75, 0.0])
    wanted = 0.5 * np.log(2) + 0.5 * np.log(2 / 3)
    np.testing.assert_allclose(special.rel_entr(p, q).sum(), wanted, rtol=1e-5)
    np.testing.assert_allclose(special.kl_div(p, q).sum(), wanted, rtol=1e-5)
    assert (
        special.rel_entr(0.5, 0.0) == np.inf and special.rel_entr(-1.0, 1.0) == np.inf
    )
    assert np.isfinite(grad(lambda p: special.rel_entr(p, q)[:2].sum())(p)[:2]).all()
    np.testing.assert_allclose(special.boxcox(3.0, 0.0), np.log(3), rtol=1e-6)
    np.testing.assert_allclose(special.boxcox1p(2.0, 2.0), 4, rtol=1e-6)
    np.testing.assert_allclose(special.logit(special.expit(1.5)), 1.5, rtol=1e-5)


def test_the_normal_distribution_far_from_its_middle():
    with minijax.enable_x64():
        x = jnp.array([-40.0, -200.0, 8.5, 30.0])
        # log(Φ(-40)) and log(Φ(-200)): DLMF 7.12.1 with five terms
        wanted = [-804.6084420137538, -20006.217280898190]
        np.testing.assert_allclose(special.log_ndtr(x, 5)[:2], wanted, rtol=1e-12)
        tail = math.erfc(8.5 / math.sqrt(2)) / 2
        np.testing.assert_allclose(special.log_ndtr(x)[2], -tail, rtol=1e-12)
        for f in (special.log_ndtr, vmap(grad(special.log_ndtr))):
            assert np.isfinite(f(x)).all()
        p = jnp.array([1e-300, 1e-30, 1e-3, 0.2, 0.5, 0.7, 0.999, 1 - 1e-12])
        q = special.ndtri(p)
        np.testing.assert_allclose(special.log_ndtr(q, 20), np.log(p), rtol=1e-12)
        ends = special.ndtri(jnp.array([0.0, 1.0, -0.1, 1.1]))
        assert np.array_equal(ends, [-np.inf, np.inf, np.nan, np.nan], equal_nan=True)
        check_grads(special.ndtri, (jnp.array([0.1, 0.5, 0.8]),), order=2)


def test_softmax_as_scipy_has_it():
    x = jnp.array([[1.0, 2.0], [3.0, 4.0]])
    assert np.isclose(special.softmax(x).sum(), 1)
    np.testing.assert_allclose(
        jnp.exp(special.log_softmax(x, axis=0)).sum(0), 1, rtol=1e-6
    )
    assert special.logsumexp is minijax.nn.logsumexp


def test_mistakes():
    with pytest.raises(TypeError, match="int32 is not supported: use float32"):
        special.ndtr(3)
    with pytest.raises(TypeError, match="must be a Python integer"):
        special.log_ndtr(0.5, 2.5)
    with pytest.raises(ValueError, match="from 0 to 30, got 31"):
        special.log_ndtr(0.5, 31)
    with pytest.raises(NotImplementedError, match="exact=True"):
        special.factorial(3, exact=True)
    with pytest.raises(ValueError, match="entr does not support complex"):
        special.entr(1j)
    with pytest.raises(TypeError, match="gammaln requires ndarray"):
        special.gammaln("x")


def bessel(order, x):
    """``exp(-x) I(x)`` of order 0 or 1 by its power series, in 64 bits, for small x."""
    terms = [
        (x / 2) ** (2 * k + order) / (math.factorial(k) * math.factorial(k + order))
        for k in range(60)
    ]
    return math.exp(-x) * sum(terms)


def test_bessel_functions_near_zero_have_all_their_digits():
    points = [1e-30, 1e-8, 1.5e-7, 1e-5, 1e-3, 0.1, 1.0, 5.0, 7.9]
    x = jnp.float32(np.array(points))
    for order, function in enumerate((special.i0e, special.i1e)):
        wanted = [bessel(order, p) for p in points]
        for run in (jit, lambda f: f):
            np.testing.assert_allclose(run(function)(x), wanted, rtol=1e-6)
            odd = -np.array(wanted) if order else wanted
            np.testing.assert_allclose(run(function)(-x), odd, rtol=1e-6)
    slopes = [bessel(0, p) - bessel(1, p) - bessel(1, p) / p for p in points]
    np.testing.assert_allclose(vmap(grad(special.i1e))(x), slopes, atol=1e-6)
    assert special.i1e(0.0) == special.i1e(jnp.inf) == 0
    assert grad(special.i1e)(0.0) == 0.5
    small = np.float32([1e-6, 1e-3, 0.01])  # the second derivative is near -1 + 15x/8
    curves = vmap(grad(grad(special.i1e)))(small)
    np.testing.assert_allclose(curves, -1 + 15 * small / 8, atol=1e-3)
    curves = vmap(grad(grad(special.i1)))(small)
    np.testing.assert_allclose(curves, 0.375 * small, atol=1e-3)


@pytest.mark.parametrize("function", [special.i0, jnp.i0])
def test_the_bessel_function_of_order_0_is_flat_at_zero(function):
    assert grad(function)(0.0) == 0 and grad(grad(function))(0.0) == 0.5
    x = jnp.array([-3.0, 1e-4, 0.5, 9.0])
    np.testing.assert_allclose(vmap(grad(function))(x), special.i1(x), rtol=1e-6)
    with minijax.enable_x64():
        check_grads(function, (jnp.array([-3.0, 0.1, 9.0]),), order=2)


@pytest.mark.parametrize("x", [0.5, -0.5, 7.0, -7.0])
@pytest.mark.parametrize("a, b", [(1.0, 2.0), (0.0, 1.5), (-2.0, 0.5), (2.5, 2.5)])
def test_slopes_of_kummers_function_in_its_parameters(a, b, x):
    with minijax.enable_x64():
        h, f = 1e-5, special.hyp1f1
        in_a = (f(a + h, b, x) - f(a - h, b, x)) / (2 * h)
        in_b = (f(a, b + h, x) - f(a, b - h, x)) / (2 * h)
        for run in (jit, lambda f: f):
            found = run(grad(f, (0, 1)))(a, b, x)
            np.testing.assert_allclose(found, (in_a, in_b), rtol=1e-7, atol=1e-8)
    narrow = grad(f, (0, 1))(a, b, x)
    np.testing.assert_allclose(narrow, (in_a, in_b), rtol=2e-4, atol=1e-5)


@pytest.mark.parametrize("q", [-0.3, -2.589, -11.5, -12.5, -12.589, -100.25, -4000.5])
def test_zeta_of_negative_numbers(q):
    steps = math.ceil(-q)  # at a half, terms of both signs leave next to nothing
    for s in (2, 3, 6):
        missing = math.fsum((q + k) ** -s for k in range(steps))
        with minijax.enable_x64():
            wanted = missing + float(special.zeta(float(s), q + steps))
            for run in (jit, lambda f: f):
                found = run(special.zeta)(float(s), q)
                np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-13)
            trigamma = (-1) ** s * math.factorial(s - 1) * wanted
            found = special.polygamma(s - 1, q)
            np.testing.assert_allclose(found, trigamma, rtol=1e-11, atol=1e-13)
        narrow = special.zeta(np.float32(s), np.float32(q))
        exact = float(np.float32(q))
        if exact == q:
            np.testing.assert_allclose(narrow, wanted, rtol=2e-6, atol=2e-5)
    assert special.zeta(2.0, -13.0) == np.inf and np.isnan(special.zeta(2.5, q))
    assert np.isnan(grad(special.zeta)(3.0, q))


def test_second_derivatives_of_the_gamma_function():
    x = jnp.array([0.3, 2.5, 40.0, -2.3])
    for f in (special.gammaln, lax.lgamma):
        curves = vmap(grad(grad(f)))(x)
        np.testing.assert_allclose(curves, special.polygamma(1, x), rtol=1e-6)
        np.testing.assert_allclose(jit(vmap(grad(grad(f))))(x), curves, rtol=1e-6)
    third = vmap(grad(grad(special.digamma)))(x)
    np.testing.assert_allclose(third, special.polygamma(2, x), rtol=1e-5)
    np.testing.assert_allclose(grad(lax.digamma)(1.0), np.pi**2 / 6, rtol=1e-6)
    assert grad(special.digamma)(np.float16(1.5)).dtype == np.float16
    with minijax.enable_x64():
        points = jnp.array([0.3, 2.5, 40.0, -2.3])
        check_grads(special.digamma, (points,), order=2)
        check_grads(special.betaln, (points[:3], 1.5 * points[2::-1]), order=2)


def test_exponential_integrals_of_any_order():
    nodes, weights = np.polynomial.legendre.leggauss(400)
    u, weights = (nodes + 1) / 2, weights / 2  # t = 1 / u, from 1 to infinity
    orders = [-2.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 7.5]
    for n in orders:
        x = np.array([0.2, 0.5, 0.9, 1.0, 1.1, 2.0, 7.0], "float32")
        wanted = [(weights * np.exp(-a / u) * u ** (n - 2)).sum() for a in x]
        np.testing.assert_allclose(special.expn(n, x), wanted, rtol=3e-5)
        slopes = [-(weights * np.exp(-a / u) * u ** (n - 3)).sum() for a in x]
        found = vmap(grad(special.expn, 1), (None, 0))(n, x)
        np.testing.assert_allclose(found, slopes, rtol=3e-5)
    assert special.expn(2, 0.0) == 1 and special.expn(0.5, 0.0) == np.inf


def test_polynomials_and_poles_of_kummer_s_function():
    for a, b, x, wanted in (
        (-2.0, -3.0, 2.0, 1 + 4 / 3 + 2 / 3),
        (-2.0, -3.0, -2.0, 1 - 4 / 3 + 2 / 3),
        (-1.0, 2.0, -3.0, 1 + 3 / 2),
        (0.0, -1.0, 2.0, 1),
        (-3.0, 0.0, 2.0, np.inf),
    ):
        np.testing.assert_allclose(special.hyp1f1(a, b, x), wanted, rtol=1e-6)
    for a, b, x in ((-3.0, -2.0, 2.0), (3.0, -2.0, -2.0), (1.5, -1.0, 0.5)):
        assert np.isinf(special.hyp1f1(a, b, x))


def test_complex_numbers():
    z = np.array([1 + 2j, -1.5 + 0.1j, 0.5j], "complex64")
    np.testing.assert_allclose(special.erfcx(z), special.wofz(1j * z), rtol=1e-5)
    np.testing.assert_allclose(
        special.erfcx(z.real + 0j).real, special.erfcx(z.real), rtol=1e-5
    )
    for name in ("i0", "i0e", "i1", "i1e"):
        with pytest.raises(TypeError, match=f"{name} does not support complex"):
            getattr(special, name)(z)
    with pytest.raises(ValueError, match="owens_t does not support complex"):
        special.owens_t(z, 1.0)


def test_gamma_functions_of_complex_numbers():
    theirs = pytest.importorskip("scipy.special")
    draw = np.random.default_rng(0).standard_normal((2, 500)) * 5
    z = np.append(draw[0] + 1j * draw[1], [-1.5, -2.5 - 1e-3j, 0.5, 30 + 40j, 80j])
    z = z.astype("complex64").astype("complex128")
    for name in ("loggamma", "gamma"):
        wanted = getattr(theirs, name)(z)
        found = getattr(special, name)(z.astype("complex64"))
        near = 1e-30 if name == "gamma" else 2e-5
        np.testing.assert_allclose(found, wanted, rtol=5e-5, atol=near)
        with minijax.enable_x64(True):
            np.testing.assert_allclose(getattr(special, name)(z), wanted, 1e-11, 1e-13)
        at_poles = getattr(special, name)(np.complex64([0, -3, np.nan]))
        assert np.isnan(at_poles.real).all() and np.isnan(at_poles.imag).all()
    slope = minijax.grad(special.loggamma, holomorphic=True)
    for at in (-1.3 + 0.4j, -1.3 - 0.4j, 2 - 1j):
        np.testing.assert_allclose(slope(at), theirs.digamma(at), rtol=1e-5)
