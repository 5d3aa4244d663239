"""Arrays turned, split and put together, beside NumPy."""

import numpy as np
import pytest

import minijax
from minijax import numpy as jnp
from minijax.errors import ConcretizationTypeError
from tests.catalogue_cases import calls, difference_from_numpy


@pytest.mark.parametrize("text", calls("arrangements"))
def test_numbers_are_those_of_numpy(text):
    assert difference_from_numpy(text, jnp) is None


def test_places_have_to_be_known():
    for f in (lambda i: jnp.delete(jnp.arange(3), i), lambda i: jnp.delete(t, i, 0)):
        with pytest.raises(ConcretizationTypeError, match="places that are known"):
            minijax.jit(f)(1)


t = jnp.arange(3.0)


def test_derivatives_of_what_is_left_and_put_in():
    assert np.array_equal(minijax.grad(lambda x: jnp.delete(x, 1).sum())(t), [1, 0, 1])
    put = minijax.grad(lambda v: (jnp.insert(t, 1, v) * jnp.arange(4.0)).sum())
    assert put(2.0) == 1.0
