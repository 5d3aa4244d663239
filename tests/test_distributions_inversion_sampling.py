"""Samplers: recorded draws of JAX, distributions, derivatives, ways of running."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import grad, jit, jvp, lax, make_jaxpr, random, vmap
from minijax.jitting.compilation import compile_cached
from tests.backends_here import in_turn
from tests.sampler_cases import CASES, EXACT, FLOATS

RECORDED = json.loads((Path(__file__).parent / "data" / "random.json").read_text())
KEY = random.key(31)


@pytest.mark.parametrize("name", CASES)
def test_draws_are_those_of_jax(name):
    found = np.asarray(CASES[name](random, KEY, (7,))).astype(float).ravel()
    tolerance = 0 if name in EXACT else 2e-4
    np.testing.assert_allclose(found, RECORDED[name], tolerance, tolerance)


def test_multinomial_is_that_of_jax():
    p = jnp.array([0.2, 0.3, 0.5])
    counts = random.multinomial(KEY, 100.0, p)
    assert counts.tolist() == RECORDED["multinomial"]
    many = random.multinomial(KEY, jnp.full(50, 9.0), p, shape=(50, 3))
    assert np.array_equal(many.sum(-1), np.full(50, 9.0))


QUICK = [name for name in CASES if name not in FLOATS or name in ("pareto", "gamma")]


# Each sampler on the machine's backend and another, the next ones for the next.
RUNS = [(n, b) for i, n in enumerate(QUICK) for b in in_turn(i, 1)]


@pytest.mark.parametrize(("name", "backend"), RUNS)
def test_backends_agree(name, backend):
    program = make_jaxpr(lambda k: CASES[name](random, k, (17,)))(KEY)
    expected = np.asarray(CASES[name](random, KEY, (17,)))
    found = compile_cached(program, backend)(KEY)[0]
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize(
    "name", ["randint", "categorical", "gamma", "poisson few", "t"]
)
def test_keys_are_mapped_and_scanned(name):
    keys = random.split(KEY, 3)
    rows = [CASES[name](random, k, (5,)) for k in keys]
    mapped = vmap(lambda k: CASES[name](random, k, (5,)))
    _, scanned = lax.scan(lambda c, k: (c, CASES[name](random, k, (5,))), 0, keys)
    for found in (mapped(keys), jit(mapped)(keys), scanned):
        np.testing.assert_allclose(found, np.stack(rows), rtol=1e-5)


def _erf(x):
    return np.vectorize(math.erf)(x)


# Which part of the distribution lies below a number.
BELOW = {
    "exponential": lambda x: 1 - np.exp(-x),
    "laplace": lambda x: np.where(x < 0, np.exp(x) / 2, 1 - np.exp(-x) / 2),
    "logistic": lambda x: 1 / (1 + np.exp(-x)),
    "cauchy": lambda x: 0.5 + np.arctan(x) / np.pi,
    "gumbel": lambda x: np.exp(-np.exp(-x)),
    "gumbel high": lambda x: np.exp(-np.exp(-x)),
    "gumbel highest": lambda x: np.exp(-np.exp(-x)),
    "pareto": lambda x: 1 - x**-2.5,
    "rayleigh": lambda x: 1 - np.exp(-((x / 2.5) ** 2) / 2),
    "lognormal": lambda x: (1 + _erf(np.log(x) / 0.5 / np.sqrt(2))) / 2,
    "weibull_min": lambda x: 1 - np.exp(-((x / 2) ** 1.5)),
    "maxwell": lambda x: (
        _erf(x / np.sqrt(2)) - np.sqrt(2 / np.pi) * x * np.exp(-(x**2) / 2)
    ),
}


@pytest.mark.parametrize("name", BELOW)
def test_kolmogorov_smirnov(name):
    count = 20_000
    sample = np.sort(np.asarray(CASES[name](random, KEY, (count,))).astype(float))
    parts = BELOW[name](sample) * count
    steps = np.arange(count)
    distance = max(abs(parts - steps).max(), abs(parts - steps - 1).max())
    assert distance / np.sqrt(count) < 1.95  # one key in a thousand is above


MOMENTS = {
    "wald": (1.5, 1.5**3),
    "triangular": (0.5, 0.375),
    "truncated_normal": (0.2296, 0.5168),
    "geometric": (5, 20),
    "poisson few": (3, 3),
    "poisson many": (40, 40),
    "binomial few": (3, 2.1),
    "binomial many": (700, 210),
    "bernoulli": (0.3, 0.21),
    "rademacher": (0, 1),
    "randint": (1, 80 / 12),
    "gamma": (3.5, 3.5),
    "gamma below 1": (0.3, 0.3),
    "beta": (0.2, 0.16 / 3.5),
    "chisquare": (3, 6),
    "t": (0, 2),
}


@pytest.mark.parametrize("name", MOMENTS)
def test_moments(name):
    mean, variance = MOMENTS[name]
    sample = np.asarray(CASES[name](random, KEY, (50_000,))).astype(float)
    error = 4 * np.sqrt(variance / len(sample))
    assert abs(sample.mean() - mean) < error
    assert abs(sample.var() / variance - 1) < 0.2


def test_places_of_a_ball_and_parts_of_a_whole():
    points = random.ball(KEY, 2, shape=(5000,))
    assert float((points**2).sum(-1).max()) <= 1 and points.shape == (5000, 2)
    parts = random.dirichlet(KEY, jnp.ones((4, 3)))
    np.testing.assert_allclose(parts.sum(-1), np.ones(4), rtol=1e-5)


@pytest.mark.parametrize("times", [0.9, 1.5])
@pytest.mark.parametrize("a", [0.2, 1.0, 4.0])
def test_the_slope_of_gamma_is_that_of_its_quantile(a, times):
    """F(a, x) is an integral, here a mean over midpoints; slopes are differences."""
    t = (np.arange(200_000) + 0.5) / 200_000

    def below(a, x):
        return (
            np.exp(a * np.log(x) - math.lgamma(a + 1))
            * np.exp(
                -x * t ** (1 / a)  # the integrand is x t**(1/a), which has no pole at 0
            ).mean()
        )

    x, h = times * a, 1e-4
    by_a = (below(a + h, x) - below(a - h, x)) / (2 * h)
    by_x = (below(a, x + h) - below(a, x - h)) / (2 * h)
    with minijax.enable_x64():
        slope = lax.random_gamma_grad(jnp.float64(a), jnp.float64(x))
    np.testing.assert_allclose(slope, -by_a / by_x, rtol=1e-4)


def test_derivatives_of_gamma():
    """The mean of gamma numbers is a, that of their logarithms is digamma(a)."""
    slope = grad(lambda a: random.gamma(KEY, a, (20_000,)).mean())
    assert abs(float(slope(2.5)) - 1) < 0.03
    slope = grad(lambda a: random.loggamma(KEY, a, (20_000,)).mean())
    assert abs(float(slope(1.0)) - np.pi**2 / 6) < 0.05
    _, moved = jvp(jit(lambda a: random.gamma(KEY, a)), (2.0,), (1.0,))
    np.testing.assert_allclose(moved, grad(lambda a: random.gamma(KEY, a))(2.0))
    slopes = vmap(grad(lambda a, k: random.gamma(k, a)))(
        jnp.ones(3), random.split(KEY, 3)
    )
    assert slopes.shape == (3,) and bool((slopes > 0).all())


def test_derivatives_in_small_shapes():
    """There a gamma number is 0 in float32, and its logarithm is about log(u) / a."""
    shapes = jnp.array([1e-30, 0.001, 0.003, 0.01, 0.05])
    found = vmap(grad(lambda a: random.loggamma(KEY, a)))(shapes)
    expected = -vmap(lambda a: random.loggamma(KEY, a))(shapes) / shapes
    np.testing.assert_allclose(found[3:], expected[3:], rtol=0.2)
    assert bool(jnp.isfinite(found[1:]).all())
    for sampler in (
        lambda a: random.beta(KEY, a, 0.7),
        lambda a: random.dirichlet(KEY, jnp.stack([a, 1 + a]))[0],
        lambda a: random.chisquare(KEY, a),
        lambda a: random.f(KEY, a, 3.0),
    ):
        assert bool(jnp.isfinite(vmap(grad(sampler))(shapes[1:])).all())


def test_shapes_and_dtypes():
    assert random.pareto(KEY, jnp.ones((3, 1)), (3, 2)).shape == (3, 2)
    assert random.beta(KEY, jnp.ones((3, 1)), jnp.ones(2)).shape == (3, 2)
    assert random.gamma(KEY, 1.0, (0, 2)).shape == (0, 2)
    assert random.categorical(KEY, jnp.zeros((4, 3)), 0, (5, 3)).shape == (5, 3)
    for dtype in ("float16", "bfloat16", "float32"):
        assert random.gumbel(KEY, (3,), dtype).dtype == jnp.dtype(dtype)
        assert random.gamma(KEY, 2.0, (3,), dtype).dtype == jnp.dtype(dtype)
    with minijax.enable_x64():
        assert random.exponential(KEY).dtype == np.float64
        assert random.poisson(KEY, 3.0).dtype == np.int64
        assert random.randint(KEY, (), 0, 2**40, "int64").dtype == np.int64


def test_switches():
    assert random.key_dtype() == KEY.dtype == random.key_dtype("threefry2x32")
    with minijax.default_prng_impl("threefry2x32"), minijax.threefry_partitionable():
        assert random.key(0).shape == ()
    with minijax.config.override("jax_high_dynamic_range_gumbel", True):
        high = random.gumbel(KEY, (3,))
    assert np.array_equal(high, random.gumbel(KEY, (3,), mode="high"))


def test_programs_obey_the_switch_of_gumbel_numbers_at_each_call():
    jitted = jit(lambda key: random.gumbel(key, (3,)))
    forgetful = minijax.checkpoint(lambda key: random.gumbel(key, (3,)))

    def step(sums, _):
        return sums + random.gumbel(KEY, (3,)), None

    def scanned(key):
        return lax.scan(step, jnp.zeros(3), None, length=1)[0]

    for on in (False, True, False):
        right = random.gumbel(KEY, (3,), mode="high" if on else "low")
        with minijax.config.override("jax_high_dynamic_range_gumbel", on):
            for program in (jitted, forgetful, scanned):
                assert np.allclose(program(KEY), right), (on, program)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: random.gamma(KEY, 1.0, dtype=int), ValueError, "`gamma` must be a fl"),
        (lambda: random.beta(KEY, jnp.ones(2), 1.0, (3,)), ValueError, "broadcast"),
        (lambda: random.pareto(KEY, jnp.ones(2), ()), ValueError, "parameter shapes m"),
        (lambda: random.bernoulli(KEY, 1), TypeError, "must have a floating dtype"),
        (
            lambda: random.bernoulli(KEY, mode="no"),
            ValueError,
            "expected 'high' or 'lo",
        ),
        (lambda: random.gumbel(KEY, mode="no"), ValueError, "Must provide valid mode"),
        (
            lambda: random.randint(KEY, (), 0, 1, float),
            TypeError,
            "only accepts integer",
        ),
        (lambda: random.geometric(KEY, 0.5, dtype=float), ValueError, "an int dtype"),
        (lambda: random.dirichlet(KEY, 1.0), ValueError, "requires alpha.ndim >= 1"),
        (
            lambda: random.categorical(KEY, jnp.ones(3), shape=(4,), replace=False),
            ValueError,
            "cannot exceed number of categories",
        ),
        (
            lambda: random.choice(KEY, 3, (4,), replace=False),
            ValueError,
            "Cannot take a larger sample",
        ),
        (
            lambda: random.permutation(KEY, 1.5),
            TypeError,
            "integer or at least 1-dim",
        ),
        (
            lambda: random.t(random.split(KEY), 1.0),
            ValueError,
            "t accepts a single key",
        ),
        (
            lambda: random.key_dtype("philox2x32"),
            NotImplementedError,
            "'philox2x32' is not here",
        ),
        (
            lambda: minijax.default_prng_impl("threefry4x32").__enter__(),
            NotImplementedError,
            "'threefry4x32' is not here",
        ),
    ],
)
def test_refusals(call, kind, message):
    with pytest.raises(kind, match=message):
        call()
