"""Slopes, covariances and polynomials, beside NumPy."""

import math

import numpy as np
import pytest

import minijax
from minijax import numpy as jnp
from tests.catalogue_cases import calls, difference_from_numpy


@pytest.mark.parametrize("text", calls("samples"))
def test_numbers_are_those_of_numpy(text):
    assert difference_from_numpy(text, jnp) is None


@pytest.mark.parametrize("sizes", [(1, 1), (3, 3), (2, 7), (7, 2), (40, 30)])
def test_products_of_polynomials(sizes):
    random = np.random.default_rng(0)
    p, q = (random.normal(size=size).astype("float32") for size in sizes)
    assert np.allclose(jnp.polymul(p, q), np.convolve(p, q), rtol=1e-4, atol=1e-5)


def test_polynomials_that_are_integrated_many_times():
    for times in (5, 21, 30):  # 21! is beyond 64 bits
        found = jnp.polyint(jnp.float32([1, 2]), m=times)
        wanted = [1 / math.factorial(times + 1), 2 / math.factorial(times)]
        assert np.allclose(found[:2], wanted, rtol=1e-6, atol=0)
    assert jnp.polyint(jnp.ones(3), m=10**5).shape == (10**5 + 3,)


def test_derivatives():
    x = jnp.float32([[1, 2, 4], [0, 1, -1]])
    minijax.test_util.check_grads(jnp.cov, (x,), order=2, rtol=1e-2, atol=1e-2)
    minijax.test_util.check_grads(jnp.corrcoef, (x,), order=1, rtol=1e-2, atol=1e-2)
    slope = minijax.grad(lambda p: jnp.polymul(p, jnp.float32([1, 2]))[1])
    assert np.array_equal(slope(jnp.float32([5, 6])), [2, 1])


def test_zeros_in_front_have_to_be_known():
    p = jnp.float32([0, 1])
    assert jnp.polymul(p, p, trim_leading_zeros=True).shape == (1,)
    with pytest.raises(minijax.errors.TracerArrayConversionError):
        minijax.jit(lambda p: jnp.polymul(p, p, trim_leading_zeros=True))(p)


def test_slopes_beside_numbers_that_are_much_larger():
    """A place does not count for its own slope: neither its digits, nor NaN."""
    x = np.array([7, -(2**30), -32, np.inf, 5, np.nan, 3], "float32")
    for f in (jnp.gradient, minijax.jit(jnp.gradient)):
        for given, distance in ((x, 1), (x[:3].astype("int32"), 1), (x, 2)):
            found = np.asarray(f(given, distance))
            np.testing.assert_allclose(found, np.gradient(given, distance), 1e-6)
