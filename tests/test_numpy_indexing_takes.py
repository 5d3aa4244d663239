"""Functions that take, put and find elements, beside those of NumPy."""

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import errors, grad, jit, ops, vmap
from tests.indexing_cases import MASK, X

NUMBERS = np.random.default_rng(5).integers(-3, 3, (4, 5, 3))


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_take(axis):
    for places in (NUMBERS[0], np.uint8([1, 2]), 2, np.zeros((2, 0), int)):
        wanted = np.take(X, places, axis)
        np.testing.assert_array_equal(jnp.take(X, places, axis), wanted)
        np.testing.assert_array_equal(jnp.asarray(X).take(places, axis), wanted)
        for mode in ("wrap", "clip"):
            wanted = np.take(X, 3 * np.asarray(places), axis, mode=mode)
            take = jit(lambda x, i: jnp.take(x, 3 * i, axis, mode=mode))  # noqa: B023
            np.testing.assert_array_equal(take(X, places), wanted)
    outside = jnp.take(X, np.array([99, -99]), axis)
    assert np.isnan(outside).all()
    with pytest.raises(NotImplementedError, match="'raise' mode"):
        jnp.take(X, 0, axis, mode="raise")
    with pytest.raises(IndexError, match="empty axis"):
        jnp.take(X[:, :0], 0, 1)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_along_an_axis(axis):
    rows = NUMBERS
    wanted = np.take_along_axis(X, rows, axis)
    np.testing.assert_array_equal(jnp.take_along_axis(X, rows, axis), wanted)
    put = X.copy()
    one = np.argmax(X, axis, keepdims=True)
    np.put_along_axis(put, one, 7.0, axis)
    found = jit(lambda x: jnp.put_along_axis(x, one, 7.0, axis, inplace=False))(X)
    np.testing.assert_array_equal(found, put)
    slope = grad(lambda x: jnp.take_along_axis(x, one, axis).sum())(X)
    assert slope.sum() == one.size and (np.asarray(slope) == (put == 7)).all()
    both = vmap(lambda x, i: jnp.take_along_axis(x, i, 0))(X, rows)
    np.testing.assert_array_equal(both, np.take_along_axis(X, rows, 1))


def test_putting_in_a_row():
    put, placed = X.copy(), X.copy()
    np.put(put, [0, 7, 11], [1.0, 2.0])
    found = jnp.put(X, np.array([0, 7, 11]), np.array([1.0, 2.0]), inplace=False)
    np.testing.assert_array_equal(found, put)
    np.place(placed, X > 0, [1.0, 2.0, 3.0])
    vals = np.array([1.0, 2.0, 3.0])
    found = jit(lambda x: jnp.place(x, x > 0, vals, inplace=False))(X)
    np.testing.assert_array_equal(found, placed)
    for call in (jnp.put, jnp.place):
        with pytest.raises(ValueError, match="inplace=False"):
            call(X, X.astype(bool), 1.0)


def test_where_it_holds():
    for found, wanted in zip(jnp.nonzero(MASK), np.nonzero(MASK), strict=True):
        np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(jnp.where(MASK)[1], np.where(MASK)[1])
    np.testing.assert_array_equal(jnp.argwhere(MASK), np.argwhere(MASK))
    np.testing.assert_array_equal(jnp.flatnonzero(MASK), np.flatnonzero(MASK))
    first = jit(lambda m: jnp.flatnonzero(m, size=25, fill_value=-1))(MASK)
    wanted = np.full(25, -1)
    wanted[: MASK.sum()] = np.flatnonzero(MASK)
    np.testing.assert_array_equal(first, wanted)
    np.testing.assert_array_equal(jnp.extract(MASK, X[..., 0]), X[..., 0][MASK])
    wanted = np.compress(MASK[0], X, 1)
    np.testing.assert_array_equal(jnp.compress(MASK[0], X, 1), wanted)
    np.testing.assert_array_equal(jnp.asarray(X).compress(MASK[0], axis=1), wanted)
    with pytest.raises(errors.ConcretizationTypeError, match="size argument"):
        jit(jnp.nonzero)(MASK)
    with pytest.raises(ValueError, match="0d arrays"):
        jnp.nonzero(1.0)
    with pytest.raises(ValueError, match="three-term where"):
        jnp.where(MASK, 1, 2, size=3)


def test_counts():
    x, weights = np.array([1, 4, 1, 0]), np.float32([0.5, 1, 2, 4])
    np.testing.assert_array_equal(jnp.bincount(x), np.bincount(x))
    np.testing.assert_array_equal(jnp.bincount(x, weights), np.bincount(x, weights))
    counted = jit(lambda x: jnp.bincount(x, length=3))(x)
    np.testing.assert_array_equal(counted, [1, 2, 0])
    with pytest.raises(errors.ConcretizationTypeError, match="length"):
        jit(jnp.bincount)(x)


@pytest.mark.parametrize("name, ufunc", [("sum", np.add), ("max", np.maximum)])
def test_segments(name, ufunc):
    segments = np.array([2, 0, -1, 2])
    found = getattr(ops, f"segment_{name}")(X, segments)
    wanted = np.full((3, 5, 3), 0 if name == "sum" else -np.inf, "float32")
    ufunc.at(wanted, [2, 0, 2], X[[0, 1, 3]])
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    segments = np.array([2, 0, 1, 2])
    compiled = jit(getattr(ops, f"segment_{name}"), static_argnums=2)
    whole = compiled(X, segments, 3)
    buckets = getattr(ops, f"segment_{name}")(X, segments, 3, bucket_size=2)
    np.testing.assert_allclose(whole, buckets, rtol=1e-6)
    with pytest.raises(errors.ConcretizationTypeError, match="num_segments"):
        jit(getattr(ops, f"segment_{name}"))(X, segments)
    with pytest.raises(ValueError, match="non-negative"):
        getattr(ops, f"segment_{name}")(X, segments, -1)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_short_indices_wrap_in_a_long_array(dtype):
    x, places = np.arange(300), np.array([-3, 127, 250]).astype(dtype)
    for run in (jit, lambda f: f):
        found = run(lambda i: jnp.take(x, i, mode="wrap"))(places)
        np.testing.assert_array_equal(found, np.take(x, places, mode="wrap"))


def test_repeats_and_draws():
    from minijax import random

    repeat = jit(lambda x, n: jnp.repeat(x, n, 0, total_repeat_length=6))
    counts = np.array([2, 0, 1, 3])
    np.testing.assert_array_equal(repeat(X, counts), np.repeat(X, counts, 0))
    key = random.key(3)
    places = random.choice(key, 4, (5,))
    drawn = random.choice(key, jnp.asarray(X), (5,))
    np.testing.assert_array_equal(drawn, X[np.asarray(places)])
    weights = np.float32([0.1, 0.2, 0.3, 0.4])
    places = random.choice(key, 4, (2, 3), p=weights)
    drawn = random.choice(key, jnp.asarray(X), (2, 3), p=weights)
    np.testing.assert_array_equal(drawn, X[np.asarray(places)])
