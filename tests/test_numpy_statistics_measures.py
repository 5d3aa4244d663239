"""Differences, averages and products, beside NumPy."""

import numpy as np
import pytest

import minijax
from minijax import numpy as jnp
from tests.catalogue_cases import calls, difference_from_numpy


@pytest.mark.parametrize("text", calls("measures"))
def test_numbers_are_those_of_numpy(text):
    assert difference_from_numpy(text, jnp) is None


def test_derivatives_of_averages_and_differences():
    t = jnp.float32([1, 2, 4])
    slopes = minijax.grad(lambda w: jnp.average(t, weights=w))(t)
    assert np.allclose(slopes, (t - jnp.average(t, weights=t)) / 7, atol=1e-6)
    assert np.array_equal(minijax.grad(lambda x: jnp.diff(x)[0])(t), [-1, 1, 0])
    assert minijax.grad(lambda x: jnp.polyval(t, x))(3.0) == 8.0


def test_equal_ratios_turn_and_never_change_their_sign():
    found, wanted = jnp.geomspace(1j, -1, 4), np.geomspace(1j, -1, 4)
    assert np.allclose(found, wanted, atol=1e-6)
    assert np.isnan(jnp.geomspace(-1, 1, 3)).all()
    ends = np.array([[1.0, -2.0], [100.0, -50.0]])
    for axis in (0, 1):
        found, wanted = (x.geomspace(*ends, 3, axis=axis) for x in (jnp, np))
        assert np.allclose(found, wanted)


def test_dtypes_where_the_default_has_64_bits():
    small = np.int32([1, 100])
    with minijax.enable_x64():
        assert jnp.geomspace(*small, 3).dtype == jnp.logspace(*small, 3).dtype
        assert jnp.geomspace(*small, 3).dtype == "float32"
        assert jnp.angle(small).dtype == jnp.angle(np.float32(1)).dtype == "float64"
        for places in (jnp.tril_indices(3), jnp.diag_indices(3)):
            assert places[0].dtype == "int64"


def test_what_has_no_weight_is_not_looked_at():
    """Truths as weights choose, as they do in a product, in a program or not."""
    x, truths = jnp.float32([[1, np.inf, 2], [np.nan, -1, 3]]), np.eye(2, 3, dtype=bool)
    for average in (jnp.average, minijax.jit(jnp.average, static_argnames="axis")):
        assert average(x, weights=truths) == 0
        assert average(x, axis=1, weights=truths[0])[0] == 1
        assert average(x, axis=1, weights=~truths[0])[1] == 1
        slopes = minijax.grad(lambda x, f=average: f(x, weights=truths))(x)
        assert np.array_equal(slopes, truths / 2)
        assert average(truths, weights=truths) == 1
        columns = average(x.T, axis=0, weights=truths[0])
        assert np.array_equal(columns, [1, np.nan], equal_nan=True)
        assert average(np.arange(3), weights=truths[0]).dtype == np.float32
