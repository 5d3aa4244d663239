"""associative_scan: every prefix, combined in the right order."""

from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minijax.numpy as jnp
from minijax import grad, jit, jvp, lax, make_jaxpr, vmap
from minijax.lax import associative_scan


def words_of(size):
    """Elements whose combination shows who was combined with whom: first and last."""
    return {"first": np.arange(size), "last": np.arange(size)}


def join(left, right):
    """Put stretches together, which have to be neighbours."""
    assert (np.asarray(right["first"]) == np.asarray(left["last"]) + 1).all()
    return {"first": left["first"], "last": right["last"]}


@pytest.mark.parametrize("size", range(20))
def test_every_prefix(size):
    result = associative_scan(join, words_of(size))
    np.testing.assert_array_equal(result["first"], np.zeros(size))
    np.testing.assert_array_equal(result["last"], np.arange(size))


@pytest.mark.parametrize("size", range(12))
def test_every_suffix(size):
    """In reverse, the later element comes first, as in JAX."""

    def join_back(late, early):
        result = join({"first": early["first"], "last": early["last"]}, late)
        return {"first": result["first"], "last": result["last"]}

    result = associative_scan(join_back, words_of(size), reverse=True)
    np.testing.assert_array_equal(result["first"], np.arange(size))
    np.testing.assert_array_equal(result["last"], np.full(size, size - 1))


@given(st.data())
@settings(max_examples=30)
def test_products_of_matrices(data):
    """Matrices do not commute, and may stand along any axis."""
    size, axis = data.draw(st.integers(0, 9)), data.draw(st.integers(-3, 2))
    rng = np.random.default_rng(size)
    matrices = rng.integers(-2, 3, size=(size, 2, 2)).astype("float32")
    expected = list(accumulate(matrices, np.matmul))
    place = axis % 3

    def times(a, b):
        moved = [jnp.moveaxis(x, place, 0) for x in (a, b)]
        return jnp.moveaxis(jnp.matmul(*moved), 0, place)

    result = associative_scan(times, np.moveaxis(matrices, 0, place), axis=axis)
    if size:
        np.testing.assert_array_equal(np.moveaxis(result, place, 0), expected)


def test_combines_few_times():
    """The number of calls grows like a logarithm, that of combinations does not."""
    for size in (2, 3, 8, 100, 1000):
        calls = []

        def add(a, b, calls=calls):
            calls.append(a.shape[0])
            return a + b

        associative_scan(add, jnp.ones(size))
        assert len(calls) <= 2 * np.log2(size)
        assert sum(calls) < 2 * size
        assert all(calls)


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "complex64"])
def test_dtypes(dtype):
    """Elements are moved, never added to anything: zeros keep their signs."""
    elems = np.array([0, 1, 1, 0, 1, 1]).astype(dtype)
    result = associative_scan(lambda a, b: a * b, elems)
    assert result.dtype == elems.dtype
    np.testing.assert_array_equal(result, np.cumprod(elems))
    zeros = associative_scan(lambda a, b: a + b, -np.zeros(5, "float32"))
    assert np.signbit(zeros).all()


def test_trees():
    elems = {"a": np.arange(4), "b": (np.ones((4, 2), "float32"), None)}

    def add(x, y):
        return {"a": x["a"] + y["a"], "b": (x["b"][0] + y["b"][0], None)}

    result = associative_scan(add, elems)
    assert result["b"][1] is None
    np.testing.assert_array_equal(result["a"], [0, 1, 3, 6])
    np.testing.assert_array_equal(
        result["b"][0], np.repeat(np.arange(1, 5), 2).reshape(4, 2)
    )


def recurrence(a, b):
    """h[t] = a[t] * h[t - 1] + b[t], as an associative scan."""

    def after(first, second):
        return second[0] * first[0], second[0] * first[1] + second[1]

    return associative_scan(after, (a, b))[1]


def test_under_transformations():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 7)).astype("float32")

    def by_loop(a, b):
        h, hs = 0.0, []
        for t in range(7):
            h = a[t] * h + b[t]
            hs.append(h)
        return jnp.stack(hs)

    close = {"rtol": 1e-5, "atol": 1e-5}
    np.testing.assert_allclose(recurrence(a, b), by_loop(a, b), **close)
    np.testing.assert_allclose(jit(recurrence)(a, b), by_loop(a, b), **close)
    tangents = [jvp(f, (a, b), (b, a))[1] for f in (recurrence, by_loop)]
    np.testing.assert_allclose(*tangents, **close)
    slopes = [
        grad(lambda a, f=f: (f(a, b) ** 2).sum())(a) for f in (recurrence, by_loop)
    ]
    np.testing.assert_allclose(*slopes, **close)
    batched = vmap(recurrence, (0, None))(np.stack([a, -a]), b)
    np.testing.assert_allclose(batched, [by_loop(a, b), by_loop(-a, b)], **close)


def test_the_jaxpr_holds_nothing_that_does_nothing():
    program = make_jaxpr(lambda x: associative_scan(jnp.add, x))(jnp.arange(5.0))
    for eqn in program.eqns:
        assert all(var.aval.size for var in eqn.outvars)
        if eqn.primitive is lax.slice_p:
            assert eqn.invars[0].aval.shape != eqn.outvars[0].aval.shape


def grow(a, b):
    return jnp.concatenate([a, b])


VECTOR = np.arange(3.0, dtype="float32")
REFUSALS = {
    "fn is no function": (TypeError, "fn is 3", 3, VECTOR, 0),
    "a number": (AttributeError, r"elems\['x'\] is 1.0", jnp.add, {"x": 1.0}, 0),
    "no arrays": (IndexError, "no array", jnp.add, (), 0),
    "sizes": (ValueError, r"elems\[1\] of shape \(2,\)", grow, (VECTOR, VECTOR[:2]), 0),
    "ranks": (
        IndexError,
        r"elems\[1\] of shape \(3,\)",
        grow,
        (VECTOR[None], VECTOR),
        1,
    ),
    "axis": (ValueError, "axis 1 is out of bounds", jnp.add, VECTOR, 1),
    "float axis": (TypeError, "integer", jnp.add, VECTOR, 0.0),
    "leaves": (
        ValueError,
        "expected a leaf, got a tuple",
        lambda a, b: (a, b),
        VECTOR,
        0,
    ),
    "shape": (
        TypeError,
        r"goes in as float32\[1\] and comes out as float32\[2\]",
        grow,
        VECTOR,
        0,
    ),
    "dtype": (
        TypeError,
        r"out as int32\[1\]",
        lambda a, b: jnp.int32(a + b),
        VECTOR,
        0,
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals(name):
    error, message, fn, elems, axis = REFUSALS[name]
    with pytest.raises(error, match=message):
        associative_scan(fn, elems, axis=axis)
