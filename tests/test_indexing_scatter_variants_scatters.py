"""``lax.scatter_sub``, ``_mul``, ``_min``, ``_max`` and ``_apply`` beside NumPy."""

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import jit, lax
from minijax.indexing import scatter_variants as scatters

SINGLE = lax.ScatterDimensionNumbers((), (0,), (0,))
X = np.array([4.0, -1.0, 2.0, 8.0], np.float32)
PLACES, UPDATES = np.array([3, 0, 3]), np.array([2.0, 5.0, 3.0], np.float32)
UFUNCS = {"sub": "subtract", "mul": "multiply", "min": "minimum", "max": "maximum"}


@pytest.mark.parametrize("name", UFUNCS)
def test_updates_enter_one_by_one(name):
    scatter, wanted = getattr(scatters, f"scatter_{name}"), X.copy()
    getattr(np, UFUNCS[name]).at(wanted, PLACES, UPDATES)

    def entered(x, places, updates):
        return scatter(x, places[:, None], updates, SINGLE)

    for call in (entered, jit(entered)):
        np.testing.assert_array_equal(call(jnp.asarray(X), PLACES, UPDATES), wanted)


@pytest.mark.parametrize("name", UFUNCS)
def test_updates_outside_are_dropped_or_moved(name):
    scatter, far = getattr(scatters, f"scatter_{name}"), np.array([[9]])
    update = UPDATES[:1]
    np.testing.assert_array_equal(scatter(X, far, update, SINGLE), X)
    clipped = scatter(X, far, update, SINGLE, mode="clip")
    here = scatter(X, np.array([[3]]), update, SINGLE)
    np.testing.assert_array_equal(clipped, here)


def test_a_function_is_applied_as_often_as_an_element_is_named():
    places, shape = PLACES[:, None], PLACES.shape
    args = X, places, lambda x: x * 10, SINGLE
    found = scatters.scatter_apply(*args, update_shape=shape)
    np.testing.assert_array_equal(found, [40, -1, 2, 800])
