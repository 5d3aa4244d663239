"""Choices, tables, angles and bits, beside NumPy."""

import numpy as np
import pytest

import minijax
from minijax import numpy as jnp
from tests.catalogue_cases import calls, difference_from_numpy


@pytest.mark.parametrize("text", calls("selections"))
def test_numbers_are_those_of_numpy(text):
    assert difference_from_numpy(text, jnp) is None


@pytest.mark.parametrize("order", ["big", "little"])
def test_bits_there_and_back(order):
    numbers = np.arange(256, dtype=np.uint8)
    bits = minijax.jit(lambda x: jnp.unpackbits(x, bitorder=order))(numbers)
    assert np.array_equal(bits, np.unpackbits(numbers, bitorder=order))
    assert np.array_equal(jnp.packbits(bits, bitorder=order), numbers)


def test_slopes_of_a_table():
    xp, fp = jnp.float32([0, 1, 3]), jnp.float32([0, 2, -2])
    slope = minijax.vmap(minijax.grad(lambda x: jnp.interp(x, xp, fp)))
    assert np.array_equal(slope(jnp.float32([-1, 0.5, 2, 9])), [0, 2, -2, 0])
    by_values = minijax.grad(lambda fp: jnp.interp(2.0, xp, fp))(fp)
    assert np.allclose(by_values, [0, 0.5, 0.5])


def test_a_table_with_a_period():
    xp, fp = np.float32([5, 1, 0]), np.float32([7, 2, -2])
    for x in np.linspace(-6, 9, 7, dtype=np.float32):
        expected = np.interp(x, xp, fp, period=4)
        assert np.allclose(jnp.interp(x, xp, fp, period=4), expected, atol=1e-5)
    with pytest.raises(ValueError, match="period must be a scalar"):
        jnp.interp(1.0, xp, fp, period=xp)


@pytest.mark.parametrize("backend", ["interpreter", "python", "cpu"])
def test_a_table_on_backends(backend):
    x = np.linspace(-1, 7, 50, dtype=np.float32)
    xp = np.float32([0, 1, 1.5, 4, 6])
    found = minijax.jit(lambda x: jnp.interp(x, xp, xp**2), backend=backend)(x)
    assert np.allclose(found, np.interp(x, xp, xp**2), rtol=1e-5)


def test_choices_that_are_not_known():
    which = minijax.jit(lambda i: jnp.choose(i, [1, 2]))
    with pytest.raises(minijax.errors.ConcretizationTypeError, match="mode='wrap'"):
        which(np.array([0]))


@pytest.mark.parametrize("mode", ["wrap", "clip", "raise"])
def test_short_integers_choose_among_many(mode):
    choices = [10 * k for k in range(200)]  # NumPy takes 32 choices and no more
    number = np.array([3, 127] if mode == "raise" else [-3, 127], "int8")
    wanted = 10 * np.take(np.arange(200), number, mode=mode)
    assert np.array_equal(jnp.choose(number, choices, mode=mode), wanted)
    pair, how = (number, number), {"mode": "wrap"}
    found = jnp.ravel_multi_index(pair, (200, 2), dtype="int32", **how)
    wanted = np.ravel_multi_index(pair, (200, 2), **how)
    assert np.array_equal(found, wanted)


def test_a_missing_number_at_a_jump_of_a_table():
    for f in (jnp.interp, minijax.jit(jnp.interp)):
        found = f(np.array([np.nan, 0.0]), np.array([0.0, 0.0, 1.0]), np.arange(3.0))
        assert np.isnan(found[0]) and found[1] == 1
