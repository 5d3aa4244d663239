"""What an index means: NumPy's answer, for all kinds of entries; what is refused."""

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import jit, lax, make_jaxpr, vmap
from minijax.indexing.dynamic_slices import index_dtype, with_size_added
from tests.indexing_cases import INDICES, MASK, USES, I, K, X

INSIDE = np.array([0, -1, 2, 2, 1, -3], "int32")


def inside(entry):
    """An entry with numbers that NumPy accepts."""
    return INSIDE if entry is I else entry


@pytest.mark.parametrize("use", ["arrays", "numpy", "traced"])
def test_indices_mean_what_they_mean_in_numpy(use):
    compared = 0
    for index in INDICES:
        index = tuple(map(inside, index))
        try:
            wanted = X[index]
        except IndexError:
            continue
        if any(isinstance(entry, bool) for entry in index):
            continue  # In JAX bools are no neighbours of integers.
        found = USES[use](minijax, jnp.asarray(X), index)
        np.testing.assert_array_equal(found, wanted, err_msg=str(index))
        compared += 1
    assert compared > 40


def test_updates_mean_what_they_mean_in_numpy():
    for index in INDICES:
        index = tuple(map(inside, index))
        wanted = X.copy()
        try:
            np.add.at(wanted, index, 2.0)
        except IndexError:
            continue
        found = jnp.asarray(X).at[index].add(2.0)
        np.testing.assert_allclose(found, wanted, rtol=1e-6, err_msg=str(index))
        wanted[index] = -1.0
        np.testing.assert_allclose(
            jnp.asarray(found).at[index].set(-1.0), wanted, rtol=1e-6
        )


@pytest.mark.parametrize(
    "index, error, words",
    [
        ((0, 0, 0, 0), IndexError, "Too many indices"),
        ((..., K, ...), IndexError, "single ellipsis"),
        ((jnp.zeros(3),), TypeError, "integer or boolean type"),
        ((np.zeros((4, 4), bool),), IndexError, "did not match shape"),
        (([0, 1],), None, ""),
        ([0, 1], TypeError, r"non-tuple sequence.*array\[jnp.array\(\[0, 1\]\)\]"),
        ([0, None], TypeError, r"arr\[tuple\(seq\)\], here array\[\(0, None\)\]"),
        (("a",), TypeError, "string"),
        ((object(),), IndexError, "integers, slices"),
    ],
)
def test_what_is_refused(index, error, words):
    if error is None:
        np.testing.assert_array_equal(jnp.asarray(X)[index], X[index])
        return
    with pytest.raises(error, match=words):
        jnp.asarray(X)[index]


def test_masks_have_to_be_known():
    with pytest.raises(minijax.errors.NonConcreteBooleanIndexError, match="concrete"):
        jit(lambda x, mask: x[mask])(X, MASK)
    with pytest.raises(IndexError, match="must be static integers"):
        jit(lambda x, n: x[K, n:])(X, 1)
    with pytest.raises(IndexError, match="size 0"):
        jit(lambda x, n: x[n])(X[:0], 1)
    assert vmap(lambda x: x[MASK[0]])(X[:, :, 0]).shape == (4, MASK[0].sum())


def test_kinds_of_index_become_kinds_of_equation():
    def primitives(f, *args):
        return [eqn.primitive.name for eqn in make_jaxpr(f)(X, *args).eqns]

    assert primitives(lambda x: x[1, ::-1]) == ["slice", "rev", "squeeze"]
    assert "dynamic_slice" in primitives(lambda x, i: x[i, 1:3], 2)
    assert primitives(lambda x, i: x[i], K)[-1] == "gather"
    assert "gather" not in primitives(lambda x: x[np.zeros(0, int)])
    assert "gather" not in primitives(lambda x: x[...])


def test_large_axes_have_wide_places():
    from minijax.indexing.indexer import IndexPlan

    assert IndexPlan((2**31,)).dtype == np.uint32 and IndexPlan((7,)).dtype == np.int32
    with minijax.enable_x64():
        assert IndexPlan((2**31,)).dtype == np.int64


NARROW = {
    "one": lambda x, i: x[i],
    "several": lambda x, i: x[i[None]][0],
    "beside a slice": lambda x, i: x[:, None][i, 0],
    "at": lambda x, i: x.at[i].set(-7).argmin(),
    "take": lambda x, i: jnp.take(x, i),
    "take_along_axis": lambda x, i: jnp.take_along_axis(x, i[None], 0)[0],
    "dynamic_slice": lambda x, i: lax.dynamic_slice(x, (i,), (1,))[0],
    "dynamic_index": lambda x, i: lax.dynamic_index_in_dim(x, i, keepdims=False),
    "update": lambda x, i: lax.dynamic_update_slice(x, x[:1] - 1, (i,)).argmin(),
    "vmap": lambda x, i: vmap(lambda i: x[i])(i[None])[0],
}


@pytest.mark.parametrize("name", NARROW)
@pytest.mark.parametrize(
    ("dtype", "size"), [("int8", 200), ("int8", 300), ("int16", 70000), ("int32", 300)]
)
def test_a_narrow_type_counts_from_the_end_of_a_long_axis(name, dtype, size):
    """The size of the axis is no number of the index's type."""
    x, i = jnp.arange(size), jnp.array(-5, dtype)
    f = NARROW[name]
    assert f(x, i) == jit(f)(x, i) == size - 5


def test_places_beyond_31_bits():
    """Without types of 64 bits they are counted in 32 bits without a sign."""
    big = minijax.ShapeDtypeStruct((2**31 + 10,), "uint8")
    assert with_size_added(jnp.array(-5), 2**31 + 10) == np.uint32(2**31 + 5)
    for i in (jnp.array(-5), jnp.array([-5]), jnp.uint32(2**31 + 5)):
        for f in (lambda x, i: x[i], lambda x, i: x.at[i].set(1)):
            text = str(make_jaxpr(f)(big, i))
            assert "u32" in text
    jaxpr = make_jaxpr(lambda x: x.at[2**31 + 5].set(1))(big)
    assert [int(c) for c in jaxpr.consts] == [2**31 + 5]
    with pytest.raises(OverflowError, match="jax_enable_x64"):
        index_dtype(2**32)


def test_an_index_of_tuples_of_tracers():
    x = np.arange(42, dtype="float32").reshape(2, 3, 7)
    for index in ((((0, 1), (1, 0)), 2), ((0, 1), (1, 2))):
        wanted = x[tuple(map(np.asarray, index))]
        for take in (lambda x, i: x[i], lambda x, i: x.at[i].get()):
            np.testing.assert_array_equal(jit(take)(x, index), wanted)
        added = jit(lambda x, i: x.at[i].add(1.0))(x, index)
        there = x.copy()
        np.add.at(there, tuple(map(np.asarray, index)), 1.0)
        np.testing.assert_array_equal(added, there)
