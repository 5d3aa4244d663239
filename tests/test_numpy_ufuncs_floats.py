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


WIDTHS = {"float16": np.uint16, "float32": np.uint32}


@pytest.mark.parametrize("dtype", WIDTHS)
@pytest.mark.parametrize("run", [minijax.jit, lambda f: f], ids=["compiled", "eager"])
def test_powers_of_two_round_once(dtype, run):
    random, words = np.random.default_rng(2), WIDTHS[dtype]
    x = random.integers(0, np.iinfo(words).max, 3000, words, endpoint=True).view(dtype)
    tiny = random.integers(0, 1 << (8 if dtype == "float16" else 22), 500, words)
    x = np.concatenate([x[np.isfinite(x)], tiny.view(dtype)])
    powers = random.integers(-300, 300, x.size).astype("int32")
    with np.errstate(over="ignore"):
        exact = np.ldexp(x.astype("float64"), powers).astype(dtype)
    found = np.asarray(run(jnp.ldexp)(x, powers))
    assert np.array_equal(found.view(words), exact.view(words))
    half, power = run(jnp.frexp)(x)
    wanted = np.frexp(x.astype("float64"))
    assert np.array_equal(half, wanted[0]) and np.array_equal(power, wanted[1])


@pytest.mark.parametrize("transform", [minijax.jacfwd, minijax.jacrev])
def test_slopes_of_mantissas_and_of_powers_of_two(transform):
    for x, slope in [(2.6, 0.25), (-0.3, 2.0), (1e-30, 2.0**99), (0.0, 1.0)]:
        assert transform(lambda x: jnp.frexp(x)[0])(x) == slope
    for x in (1.5, -1e-44, 0.0, 1e38):
        assert transform(lambda x: jnp.ldexp(x, -3))(x) == 0.125
        assert transform(lambda x: jnp.ldexp(x, 3))(x) == 8


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


def test_whether_a_number_of_python_is_infinite_is_not_weak():
    for question in (jnp.isposinf, jnp.isneginf):
        assert not any(question(x).weak_type for x in (1.0, 1, -np.inf))
