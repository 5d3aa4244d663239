"""Sets, beside NumPy; with a size, compiled as well."""

import itertools

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import jit, vmap
from tests.commands import some

ARRAYS = [
    np.array([3, 1, 4, 1, 5]),
    np.array([[2, 2], [0, 2]], "uint8"),
    np.array([0.5, -1, 0.5, 2], "float32"),
    np.array([True, False, True]),
    np.array([7]),
    np.array([], "int32"),
]
PAIRS = [(ARRAYS[i], ARRAYS[j]) for i, j in itertools.product(range(3), range(6))]
OF_TWO = ["union1d", "intersect1d", "setdiff1d", "setxor1d"]


@pytest.mark.parametrize("x", ARRAYS)
def test_unique_beside_numpy(x):
    ours = jnp.unique(x, True, True, True)
    theirs = np.unique(x, True, True, True)
    for a, b in zip(ours, theirs):
        assert np.array_equal(a, b)
    for size in (len(theirs[0]), len(theirs[0]) + 3, max(len(theirs[0]) - 1, 0)):
        more = {"size": size, "fill_value": 1}
        f = jit(lambda x, more=more: jnp.unique(x, True, True, True, **more))
        values, index, inverse, counts = f(x)
        n = min(size, len(theirs[0]))
        assert np.array_equal(values[:n], theirs[0][:n]) and (values[n:] == 1).all()
        assert np.array_equal(index[:n], theirs[1][:n])
        assert np.array_equal(inverse, theirs[2])
        assert np.array_equal(counts[:n], theirs[3][:n]) and not counts[n:].any()


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_unique_slices(axis):
    x = np.array([[1, 2, 1], [1, 2, 1], [0, 5, 0]])
    ours = jnp.unique(x, True, True, True, axis=axis)
    theirs = np.unique(x, True, True, True, axis=axis)
    for a, b in zip(ours, theirs):
        assert np.array_equal(a, b.reshape(a.shape))


def test_nan_and_zeros():
    x = jnp.array([jnp.nan, 1.0, jnp.nan, -0.0, 0.0])
    assert np.array_equal(jnp.unique(x), [0, 1, np.nan], equal_nan=True)
    assert len(jnp.unique(x, equal_nan=False)) == 4


def test_in_batches():
    rows = jnp.array([[1, 1, 2], [3, 2, 1]])
    values = vmap(lambda x: jnp.unique(x, size=3, fill_value=0))(rows)
    assert values.tolist() == [[1, 2, 0], [1, 2, 3]]


@pytest.mark.parametrize("name", OF_TWO)
def test_sets_of_two_beside_numpy(name):
    ours, theirs = getattr(jnp, name), getattr(np, name)
    for x, y in PAIRS:
        assert np.array_equal(ours(x, y), theirs(x, y)), (x, y)
    for x, y in some(PAIRS, 4):
        wanted = theirs(x, y)
        size = len(wanted) + 2
        compiled = jit(lambda x, y, s=size: ours(x, y, size=s, fill_value=99))(x, y)
        assert np.array_equal(compiled[: size - 2], wanted), (x, y)
        assert (compiled[size - 2 :] == 99).all() or compiled.dtype == bool


def test_where_they_stand():
    for x, y in PAIRS:
        ours = jnp.intersect1d(x, y, return_indices=True)
        theirs = np.intersect1d(x, y, return_indices=True)
        assert all(np.array_equal(a, b) for a, b in zip(ours, theirs))
    padded = jnp.intersect1d(jnp.arange(4), jnp.array([2]), False, True, size=3)
    assert [a.tolist() for a in padded] == [[2, 2, 2], [2, 4, 4], [0, 1, 1]]


def test_named_results():
    x = jnp.array([2, 1, 2])
    every = jnp.unique_all(x)
    assert every.indices.tolist() == [1, 0] and every.counts.tolist() == [1, 2]
    assert every.inverse_indices.tolist() == [1, 0, 1]
    assert jnp.unique_counts(x).counts.tolist() == [1, 2]
    assert jnp.unique_inverse(x).inverse_indices.tolist() == [1, 0, 1]
    assert jnp.unique_values(x).tolist() == [1, 2]


def test_mistakes():
    for call in (jnp.unique, lambda x: jnp.union1d(x, x), jnp.unique_all):
        with pytest.raises(minijax.errors.ConcretizationTypeError, match="`size`"):
            jit(call)(jnp.arange(3))
    with pytest.raises(ValueError, match="fill_value must be specified"):
        jnp.unique(jnp.zeros(0), size=2)


PARTS = np.array([np.nan, 1, -0.0, 0, np.inf, 2], "float32")


@pytest.mark.parametrize("seed", range(4))
def test_complex_numbers_with_nan_count_as_one(seed):
    """Whichever part is NaN; it is the last, as in NumPy."""
    parts = np.random.default_rng(seed).choice(PARTS, (40, 2))
    z = parts.view("complex64")[:, 0]
    values, counts = jnp.unique(z, return_counts=True)
    nan = np.isnan(z)
    assert np.isnan(values).sum() == 1 and np.isnan(values[-1])
    assert counts[-1] == nan.sum() and counts.sum() == z.size
    assert np.array_equal(values[:-1], np.unique(z[~nan]))
    each = jnp.unique_values(z)
    assert np.isnan(each).sum() == np.isnan(each[-nan.sum() :]).sum() == nan.sum()
    assert np.isnan(jnp.union1d(z, z[nan][:1])).sum() == 1
    assert np.isnan(jnp.setdiff1d(z, z[~nan])).all()
