"""Grids and places, beside NumPy."""

import numpy as np
import pytest

import minijax
from minijax import numpy as jnp
from tests.catalogue_cases import calls, difference_from_numpy


@pytest.mark.parametrize("text", calls("grids"))
def test_numbers_are_those_of_numpy(text):
    assert difference_from_numpy(text, jnp) is None


def test_a_filled_diagonal_moves_with_its_numbers():
    def f(x, v):
        return (jnp.fill_diagonal(x, v, inplace=False) ** 2).sum()

    x, v = jnp.ones((3, 2)), jnp.float32([3, 4])
    by_x, by_v = minijax.grad(f, (0, 1))(x, v)
    assert np.array_equal(by_x, [[0, 2], [2, 0], [2, 2]])
    assert np.array_equal(by_v, [6, 8])
    assert minijax.vmap(f, (None, 0))(x, jnp.stack([v, v])).shape == (2,)


def test_there_and_back():
    places = np.arange(24)
    there = minijax.jit(lambda i: jnp.unravel_index(i, (2, 3, 4)))(places)
    back = minijax.jit(lambda *i: jnp.ravel_multi_index(i, (2, 3, 4), "wrap"))(*there)
    assert np.array_equal(back, places)


def test_indices_that_are_not_known():
    with pytest.raises(minijax.errors.ConcretizationTypeError, match="mode='wrap'"):
        minijax.jit(lambda i: jnp.ravel_multi_index((i, i), (3, 3)))(1)


def test_grids_of_numbers_that_are_not_known():
    with pytest.raises(minijax.errors.ConcretizationTypeError):
        minijax.jit(lambda n: jnp.mgrid[:n])(3)
    assert minijax.jit(lambda x: jnp.r_[x, 0:2])(1.0).shape == (3,)
