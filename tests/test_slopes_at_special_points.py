"""Slopes where a formula meets zero, its ends or a size of 1; masks times infinity."""

import numpy as np
import pytest
from mpmath import mp

import minijax as jax
from minijax import numpy as jnp
from minijax.numpy import fft
from minijax.scipy import special, stats

# The slopes are limits, from both sides where there are two.
SLOPES = [
    (jnp.arcsin, [1, -1], [np.inf, np.inf]),
    (jnp.arccos, [1, -1], [-np.inf, -np.inf]),
    (stats.laplace.cdf, [0, -0.0, 1, -1], [0.5, 0.5, 0.5 / np.e, 0.5 / np.e]),
    (stats.gumbel_r.logsf, [1, 20, 50, 90], [-0.82731294, -1, -1, -1]),
    (stats.gumbel_l.logcdf, [-1, -20, -30, -90], [0.82731294, 1, 1, 1]),
    (jnp.sinc, [0, 1e19, 1e-42], [0, 0, 0]),
    (special.erfcx, [np.inf, -np.inf], [0, -np.inf]),
    (special.dawsn, [np.inf, -np.inf], [0, 0]),
    (jax.grad(special.spence), [0, 1], [np.inf, 0.5]),
    (lambda x: stats.gamma.cdf(x, 2.0), [0, np.inf], [0, 0]),
    (lambda x: stats.chi2.cdf(x, 3.0), [0, np.inf], [0, 0]),
]


@pytest.mark.parametrize("way", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("f, points, wanted", SLOPES)
def test_slopes_are_limits(f, points, wanted, way):
    slope = way(jax.vmap(jax.grad(f)))
    found = slope(jnp.array(points, jnp.float32))
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-15)


@pytest.mark.parametrize("way", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("name", ["cdf", "logcdf", "sf", "logsf"])
def test_beyond_its_ends_a_cut_distribution_has_no_slope(name, way):
    slopes = way(jax.grad(getattr(stats.truncnorm, name), (0, 1, 2)))
    for ends in [(0.5, 2.0), (-2.0, 2.0), (-2.0, -0.5)]:
        for x in (-np.inf, -30.0, ends[0], ends[1], 30.0, np.inf):
            assert slopes(x, *ends) == (0, 0, 0)
        assert np.isfinite(slopes(sum(ends) / 2, *ends)).all()


@pytest.mark.parametrize("way", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_slopes_of_a_sum_of_exponentials(dtype, way):
    x = jnp.array([np.nan, np.inf, -np.inf, 0], dtype)
    one, still = jnp.ones_like(x), jnp.zeros_like(x)
    for f in (jax.nn.softplus, lambda x: jnp.logaddexp(x, still)):
        backwards = way(jax.grad(lambda x, f=f: f(x).sum()))(x)
        forwards = way(lambda x, f=f: jax.jvp(f, [x], [one])[1])(x)
        for found in (backwards, forwards):
            np.testing.assert_array_equal(
                np.asarray(found, float), [np.nan, 1, 0, 0.5]
            )
    both = way(jax.grad(jnp.logaddexp, (0, 1)))
    assert both(jnp.inf, jnp.inf) == both(-jnp.inf, -jnp.inf) == (1, 1)


def test_functions_that_fade_are_zero_at_infinity():
    assert special.erfcx(jnp.inf) == 0 and special.erfcx(-jnp.inf) == jnp.inf
    found = np.asarray(special.dawsn(jnp.array([jnp.inf, -jnp.inf])))
    assert (found == 0).all() and [*np.signbit(found)] == [False, True]


ODD = [special.i1, special.i1e, jax.lax.bessel_i1e]


@pytest.mark.parametrize("way", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("f", ODD)
def test_second_slopes_of_odd_functions_at_zero(f, way):
    second = way(jax.vmap(jax.grad(jax.grad(f))))
    found = second(jnp.array([0, -0.0], jnp.float32))
    np.testing.assert_array_equal(found, 0)


def exact_slopes(x):
    """Return the first and second slopes of erfcx and Dawson's integral, by mpmath."""
    mp.dps = 60
    functions = (
        lambda x: mp.exp(x * x) * mp.erfc(x),
        lambda x: mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x),
    )
    return [float(mp.diff(f, x, n)) for f in functions for n in (1, 2)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_slopes_do_not_cancel_far_away(dtype):
    with jax.enable_x64():
        for x in (33.0, 100.0):
            first = [jax.grad(f) for f in (special.erfcx, special.dawsn)]
            found = [
                g(np.dtype(dtype).type(x)) for f in first for g in (f, jax.grad(f))
            ]
            np.testing.assert_allclose(found, exact_slopes(x), rtol=1e-5)
        largest = np.finfo(dtype).max
        for f in first:
            assert f(largest) == 0 and jax.grad(f)(largest) == 0


def test_slope_of_a_location():
    assert jax.grad(stats.laplace.cdf, 1)(0.0, 0.0) == -0.5


@pytest.mark.parametrize("f", [fft.hfft, fft.irfft])
def test_transforms_of_length_one_have_zero_gradients(f):
    assert jax.grad(lambda x: f(x).sum())(jnp.ones(1)) == 0


def test_the_slope_of_exp2_is_as_weak_as_its_operand():
    assert jax.grad(jnp.exp2)(2.0).weak_type
    assert not jax.grad(jnp.exp2)(jnp.float32(2)).weak_type


@pytest.mark.parametrize("backend", [None, "python", "interpreter", "cpu"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "complex64"])
def test_a_mask_hides_what_is_not_finite(backend, dtype):
    mask, many = jnp.array([False, True]), jnp.full(2, np.inf, dtype)
    for f in (lambda m: m * many, lambda m: many * m, lambda m: -many * m):
        way = jax.jit(f, backend=backend) if backend else f
        found = np.asarray(way(mask)).astype(np.complex64)
        assert found[0] == 0 and not np.isfinite(found[1])
    np.testing.assert_array_equal(mask * np.inf, [0, np.inf])


def test_explicit_conversions_of_masks_are_choices_when_compiled():
    mask, many = jnp.array([False, True]), jnp.full(2, np.inf)
    found = jax.jit(lambda m, x: m.astype(x.dtype) * x)(mask, many)
    np.testing.assert_array_equal(found, [0, np.inf])
    assert np.isnan((mask.astype(many.dtype) * many)[0])


def test_a_mask_has_a_slope():
    mask = jnp.array([False, True])
    _, moved = jax.jvp(lambda x: mask * x, [jnp.ones(2)], [jnp.full(2, np.inf)])
    np.testing.assert_array_equal(moved, [0, np.inf])
