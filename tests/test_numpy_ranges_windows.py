"""Windows, beside NumPy."""

import numpy as np
import pytest

import minijax
from minijax import numpy as jnp
from tests.catalogue_cases import calls, difference_from_numpy


@pytest.mark.parametrize("text", calls("windows"))
def test_numbers_are_those_of_numpy(text):
    assert difference_from_numpy(text, jnp) is None


def test_the_number_of_weights_has_to_be_known():
    with pytest.raises(minijax.errors.ConcretizationTypeError):
        minijax.jit(jnp.hanning)(3)
    assert np.allclose(jnp.hamming(9), jnp.hamming(9)[::-1])
