"""The primitive sort: its order, its axes, what it refuses."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minijax
import minijax.numpy as jnp
from minijax import lax
from tests.sorting_cases import DTYPES, SIZES, numbers, order, same_bits


@pytest.mark.parametrize("name", DTYPES)
def test_order_is_that_of_python(name):
    for size in SIZES:
        x = numbers(name, (size,))
        expected = order(x)
        found, places = lax.sort((jnp.asarray(x), np.arange(size, dtype=np.int32)))
        assert np.array_equal(places, expected), (name, size)
        assert same_bits(found, x[expected])
        assert same_bits(lax.sort(jnp.asarray(x), is_stable=False), x[expected])


@pytest.mark.parametrize("names", [("int8", "float32"), ("complex64", "bool", "uint8")])
def test_several_keys(names):
    keys = [numbers(name, (40,), i) for i, name in enumerate(names)]
    places = np.arange(40, dtype=np.int32)
    *found, moved = lax.sort((*map(jnp.asarray, keys), places), num_keys=len(keys))
    expected = order(*keys)
    assert np.array_equal(moved, expected)
    assert all(same_bits(x, key[expected]) for x, key in zip(found, keys))


@pytest.mark.parametrize("shape", [(3, 5), (2, 3, 4), (1, 6), (0, 3), (3, 0)])
def test_axes_and_layouts(shape):
    x = numbers("float32", shape)
    for axis in range(len(shape)):
        rows = np.moveaxis(x, axis, -1)
        flat = [rows[place] for place in np.ndindex(rows.shape[:-1])]
        wanted = np.array([row[order(row)] for row in flat], x.dtype)
        wanted = np.moveaxis(wanted.reshape(rows.shape), -1, axis)
        assert same_bits(lax.sort(jnp.asarray(x), axis), wanted)
        assert same_bits(lax.sort(jnp.asarray(x), axis - len(shape)), wanted)
        turned = lax.sort(jnp.asarray(x).T, len(shape) - 1 - axis)
        assert same_bits(turned, wanted.T)


@given(st.lists(st.floats(width=32), max_size=60))
@settings(max_examples=60, deadline=None)
def test_any_floats(values):
    x = np.array(values, np.float32)
    assert same_bits(lax.sort(jnp.asarray(x)), x[order(x)])


def test_what_is_refused():
    x = jnp.arange(3)
    cases = [
        (TypeError, "at least one operand", lambda: lax.sort([])),
        (ValueError, "must equal 1 for a single", lambda: lax.sort(x, num_keys=2)),
        (ValueError, "must be between 1 and", lambda: lax.sort([x], num_keys=2)),
        (TypeError, "equal shapes", lambda: lax.sort((x, jnp.arange(4)))),
        (ValueError, "axis 1 is out of bounds", lambda: lax.sort(x, 1)),
        (ValueError, "out of bounds", lambda: lax.sort(jnp.float32(3))),
        (TypeError, "not accept", lambda: lax.sort(minijax.random.split(KEY))),
    ]
    for error, words, call in cases:
        with pytest.raises(error, match=words):
            call()


KEY = minijax.random.key(0)


def test_keys_of_chance_may_be_passengers():
    keys = minijax.random.split(KEY, 3)
    for sort in (lax.sort, minijax.jit(lax.sort)):
        _, moved = sort((jnp.array([2, 0, 1]), keys))
        found, wanted = map(minijax.random.key_data, (moved, keys))
        assert np.array_equal(found, np.asarray(wanted)[[1, 2, 0]])
