"""``x.at[index]``: every method, its promises, and what it leaves alone."""

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import jit

x = jnp.array([1.0, 2.0, 3.0, 4.0])
PLACES = jnp.array([3, 0, 3])
WANTED = {
    "set": ((9.0,), [9, 2, 3, 9]),
    "add": ((1.0,), [2, 2, 3, 6]),
    "subtract": ((1.0,), [0, 2, 3, 2]),
    "multiply": ((2.0,), [2, 2, 3, 16]),
    "mul": ((2.0,), [2, 2, 3, 16]),
    "divide": ((2.0,), [0.5, 2, 3, 1]),
    "power": ((2.0,), [1, 2, 3, 256]),
    "min": ((2.0,), [1, 2, 3, 2]),
    "max": ((2.0,), [2, 2, 3, 4]),
    "apply": ((jnp.negative,), [-1, 2, 3, 4]),
    "get": ((), [4, 1, 4]),
}


@pytest.mark.parametrize("name", WANTED)
def test_methods(name):
    args, wanted = WANTED[name]
    for call in (lambda f: f, jit):
        found = call(lambda x, i: getattr(x.at[i], name)(*args))(x, PLACES)
        np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(x, [1, 2, 3, 4])
    if name != "apply":
        with pytest.raises(TypeError, match="out_sharding"):
            getattr(x.at[0], name)(*args, out_sharding="somewhere")


def test_modes():
    places = jnp.array([1, 9, -1, -9])
    np.testing.assert_array_equal(x.at[places].add(1.0), [1, 3, 3, 5])
    np.testing.assert_array_equal(x.at[places].add(1.0, mode="clip"), [2, 3, 3, 6])
    found = x.at[places].add(1.0, wrap_negative_indices=False)
    np.testing.assert_array_equal(found, [1, 3, 3, 4])
    found = x.at[places].get(mode="fill", fill_value=-1)
    np.testing.assert_array_equal(found, [2, -1, 4, -1])
    with pytest.raises(ValueError, match="Unknown gather mode"):
        x.at[places].get(mode="wrap")


def test_updates_are_broadcast_and_converted():
    table = jnp.zeros((2, 3), jnp.int32)
    assert (table.at[:, ::-2].set(jnp.array([1, 2]))[0] == jnp.array([2, 0, 1])).all()
    assert table.at[0].add(2**31 - 1).dtype == jnp.int32
    with pytest.warns(FutureWarning, match="incompatible types"):
        assert table.at[0].set(np.float32(1.5))[0, 0] == 1
    with pytest.raises(ValueError, match="broadcast"):
        table.at[0].set(jnp.ones(2, int))
    assert table.at[jnp.zeros(0, int)].set(1) is table


def test_weak_arrays_stay_weak():
    weak = jnp.full((3,), 1.0) * 1
    assert weak.at[0].set(2.0).weak_type == weak.weak_type


def test_representations():
    assert repr(x.at).startswith("_IndexUpdateHelper(Array(")
    assert repr(x.at[0]).startswith("_IndexUpdateRef(Array(")


def test_the_memory_of_a_donated_array_is_used_again():
    add = jit(lambda x, i: x.at[i].add(1.0), donate_argnums=0)
    np.testing.assert_array_equal(add(jnp.zeros(3), PLACES[:2] - 1), [0, 0, 2])


def test_two_traced_integers_are_two_places():
    x, wanted = np.zeros((3, 3), "f4"), np.zeros((3, 3), "f4")
    wanted[1, 2] = 1
    assert np.array_equal(jit(lambda x, i, j: x.at[i, j].set(1.0))(x, 1, 2), wanted)


def test_nothing_enters_an_array_without_elements():
    none, grid = jnp.zeros(0), jnp.zeros((3, 0))
    rows = jnp.array([True, False, True])
    for places in ([-1], [0], [-5, 3]):
        index = jnp.array(places)
        for name in ("set", "add", "min", "multiply"):
            enter = lambda x, name=name, i=index: getattr(x.at[i], name)(1.0)  # noqa: E731
            assert enter(none).shape == jit(enter)(none).shape == (0,)
        apply = lambda x, i=index: x.at[i].apply(jnp.sin)  # noqa: E731
        assert apply(none).shape == jit(apply)(none).shape == (0,)
    for mode in ("clip", "drop", "promise_in_bounds"):
        updates = grid.at[rows, None, np.int16(1)]
        assert updates.min(2.0, mode=mode).shape == (3, 0)
        assert grid.at[jnp.array([0, 1]), jnp.int8(-1)].set(2.0, mode=mode).size == 0
