"""Signs, mantissas and exponents of floats, beside NumPy."""

import numpy as np
import pytest

import minijax
from minijax import numpy as jnp
from tests.catalogue_cases import calls, difference_from_numpy, leaves


@pytest.mark.parametrize("text", calls("floats"))
def test_numbers_are_those_of_numpy(text):
    assert difference_from_numpy(text, jnp) is None


def test_the_parts_of_a_subnormal():
    number, power = jnp.frexp(np.float32(1e-40))
    assert (float(number), int(power)) == np.frexp(np.float32(1e-40))
    assert float(jnp.ldexp(number, power)) == np.float32(1e-40)


def test_parts_give_the_number_back():
    x = np.random.default_rng(1).normal(size=1000).astype("float32") ** 31
    assert np.array_equal(jnp.ldexp(*jnp.frexp(x)), x)


def test_sinc_has_its_derivatives_at_zero():
    first = minijax.grad(jnp.sinc)
    assert first(0.0) == 0
    assert abs(minijax.grad(first)(0.0) + np.pi**2 / 3) < 1e-5


@pytest.mark.parametrize("function", [jnp.logaddexp, jnp.logaddexp2])
def test_slopes_of_equal_numbers(function):
    both = (0, 1)
    np.testing.assert_allclose(minijax.jacfwd(function, both)(0.6, 0.6), [0.5, 0.5])
    curve = 0.25 * (np.log(2) if function is jnp.logaddexp2 else 1)
    second = np.float32(minijax.hessian(function, both)(0.6, 0.6))
    np.testing.assert_allclose(second, [[curve, -curve], [-curve, curve]], rtol=1e-5)


def test_a_program_of_floats():
    x = np.float32([0.3, -2, 0, 5])
    for f in (jnp.frexp, jnp.signbit, jnp.sinc, jnp.modf):
        for ours, theirs in zip(leaves(minijax.jit(f)(x)), leaves(f(x)), strict=True):
            assert np.allclose(ours, theirs, rtol=1e-6)
