"""Universal functions made of functions of numbers, beside NumPy's."""

import itertools

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import grad, jit, vmap

PLUS = jnp.frompyfunc(lambda x, y: x + y, 2, 1, identity=0)
LAST = jnp.frompyfunc(lambda x, y: 2 * x - y, 2, 1)
ARRAYS = [
    np.arange(6).reshape(2, 3),
    np.random.default_rng(0).normal(size=(3, 2, 2)).astype("float32"),
]


@pytest.mark.parametrize(
    "x, axis, keepdims", [*itertools.product(ARRAYS, [0, 1, -1, None], [True, False])]
)
def test_reduce(x, axis, keepdims):
    ours = PLUS.reduce(x, axis, keepdims=keepdims)
    wanted = np.add.reduce(x, axis, keepdims=keepdims)
    assert ours.shape == wanted.shape
    np.testing.assert_allclose(ours, wanted, rtol=1e-6)
    mask = x > 0.3
    ours = PLUS.reduce(x, axis, keepdims=keepdims, initial=5, where=mask)
    wanted = np.add.reduce(x, axis, keepdims=keepdims, initial=5, where=mask)
    np.testing.assert_allclose(ours, wanted, rtol=1e-5)
    if axis is not None:
        total = x.take(0, axis)
        for i in range(1, x.shape[axis]):
            total = 2 * total - x.take(i, axis)
        np.testing.assert_allclose(LAST.reduce(x, axis), total, rtol=1e-5)


@pytest.mark.parametrize("x, axis", [*itertools.product(ARRAYS, [0, 1, -1])])
def test_accumulate_outer_and_reduceat(x, axis):
    np.testing.assert_allclose(
        PLUS.accumulate(x, axis), np.add.accumulate(x, axis), rtol=1e-6
    )
    np.testing.assert_allclose(PLUS.outer(x, x), np.add.outer(x, x), rtol=1e-6)
    places = np.array([1, 0, 1])
    np.testing.assert_allclose(
        PLUS.reduceat(x, places, axis), np.add.reduceat(x, places, axis), rtol=1e-6
    )


def test_at():
    x, places = np.arange(5.0, dtype="float32"), np.array([0, 3, 0])
    wanted = x.copy()
    np.add.at(wanted, places, [1, 2, 3])
    found = PLUS.at(x, places, np.array([1.0, 2, 3]), inplace=False)
    assert np.array_equal(found, wanted)
    double = jnp.frompyfunc(lambda x: 2 * x, 1, 1)
    assert double.at(x, places, inplace=False).tolist() == [0, 1, 2, 6, 4]
    matrix = PLUS.at(np.zeros((2, 2)), (slice(None), 1), 3, inplace=False)
    assert matrix.tolist() == [[0, 3], [0, 3]]


def test_calls_compose():
    x = ARRAYS[1]
    assert PLUS(x, x[0]).shape == (3, 2, 2) and repr(PLUS) == "<jnp.ufunc '<lambda>'>"
    np.testing.assert_allclose(jit(PLUS.reduce)(x), x.sum(0), rtol=1e-6)
    np.testing.assert_allclose(vmap(PLUS.reduce)(x), x.sum(1), rtol=1e-6)
    assert (grad(lambda x: PLUS.reduce(x, None))(x) == 1).all()


def test_mistakes():
    one = jnp.frompyfunc(jnp.sin, 1, 1)
    for method in ("reduce", "accumulate"):
        with pytest.raises(ValueError, match=f"{method} only supported for binary"):
            getattr(one, method)(ARRAYS[0])
    two = jnp.frompyfunc(lambda x, y: (x, y), 2, 2)
    with pytest.raises(ValueError, match="returning a single value"):
        two.reduce(ARRAYS[0])
    with pytest.raises(NotImplementedError, match="immutable"):
        PLUS.at(ARRAYS[0], 0, 1)
    with pytest.raises(NotImplementedError, match="out argument"):
        PLUS(1, 2, out=ARRAYS[0])
    with pytest.raises(ValueError, match="no identity"):
        LAST.reduce(np.zeros((0, 3)))
    with pytest.raises(ValueError, match="does not have an identity"):
        LAST.reduce(ARRAYS[0], where=ARRAYS[0] > 1)
    with pytest.raises(ValueError, match="multiple axes"):
        PLUS.accumulate(ARRAYS[0], axis=None)
