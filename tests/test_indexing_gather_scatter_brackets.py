"""``x[index]``: which primitive an index becomes, and what it finds out of bounds."""

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import jit, make_jaxpr
from minijax.errors import NonConcreteBooleanIndexError
from minijax.indexing.dimension_numbers import ScatterIndexInfo
from minijax.indexing.gather_scatter import gather_planned, index_array

X = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
CHOSEN = np.array([2, 0, -1])
KINDS = {
    "slice": (lambda x, i, n: x[1, :, ::2], X[1, :, ::2]),
    "dynamic_slice": (lambda x, i, n: x[n, 1:], X[1, 1:]),
    "gather": (lambda x, i, n: x[:, i, 1:3], X[:, CHOSEN, 1:3]),
}


@pytest.mark.parametrize("name", KINDS)
def test_an_index_becomes_one_primitive(name):
    function, wanted = KINDS[name]
    found = {eqn.primitive.name for eqn in make_jaxpr(function)(X, CHOSEN, 1).eqns}
    assert found & {*KINDS} == {name}
    for call in (function, jit(function)):
        np.testing.assert_array_equal(call(jnp.asarray(X), CHOSEN, 1), wanted)


def test_a_gather_finds_what_a_box_finds():
    for index in [(1,), (slice(None), 2), (0, slice(1, 3), -1)]:
        found = gather_planned(jnp.asarray(X), index, True, ScatterIndexInfo(), None)
        np.testing.assert_array_equal(found, X[index])


def test_modes_and_negative_numbers():
    x, index = jnp.array([1.0, 10.0, 100.0]), jnp.array([-1, 7, -9])
    fill = index_array(x, index, ScatterIndexInfo(mode="fill"), -5.0)
    np.testing.assert_array_equal(fill, [100, -5, -5])
    clip = index_array(x, index, ScatterIndexInfo(mode="clip"))
    np.testing.assert_array_equal(clip, [100, 100, 1])
    plain = index_array(x, index, ScatterIndexInfo(mode="clip"), wrap=False)
    np.testing.assert_array_equal(plain, [1, 100, 1])
    assert float(index_array(x, -1, wrap=False)) == 1.0


def test_a_mask_has_to_be_known():
    x = jnp.asarray(X)
    np.testing.assert_array_equal(x[X > 7], X[X > 7])
    with pytest.raises(NonConcreteBooleanIndexError):
        jit(lambda x: x[x > 7])(x)
