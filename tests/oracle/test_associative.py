"""associative_scan beside real JAX: values, dtypes, calls of the function, refusals."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import minijax  # noqa: E402
from tests.test_scans_loops_associative import REFUSALS  # noqa: E402

random = np.random.default_rng(4)


def recurrence(first, second):
    return second[0] * first[0], second[0] * first[1] + second[1]


CASES = {
    "sum": (lambda jnp: jnp.add, random.normal(size=9)),
    "difference, which is not associative": (lambda jnp: jnp.subtract, np.arange(13.0)),
    "maximum": (lambda jnp: jnp.maximum, random.integers(-9, 9, size=(4, 6))),
    "and": (lambda jnp: jnp.bitwise_and, random.normal(size=7) > -1),
    "complex": (lambda jnp: jnp.multiply, np.exp(1j * random.normal(size=6))),
    "half": (lambda jnp: jnp.add, random.normal(size=8).astype("float16")),
    "recurrence": (
        lambda jnp: recurrence,
        (random.normal(size=(6, 5)), random.normal(size=(6, 5))),
    ),
    "matrices": (lambda jnp: jnp.matmul, random.normal(size=(7, 2, 2))),
    "one": (lambda jnp: jnp.add, np.ones(1, "int8")),
    "none": (lambda jnp: jnp.add, np.ones((0, 3), "float32")),
    "a dictionary": (
        lambda jnp: lambda a, b: {"x": a["x"] + b["x"], "n": None},
        {"x": random.integers(0, 9, size=5), "n": None},
    ),
}


def by(package, make, elems, **options):
    return package.lax.associative_scan(make(package.numpy), elems, **options)


def same(ours, theirs):
    pairs = [minijax.tree_util.tree_leaves(ours), jax.tree_util.tree_leaves(theirs)]
    for a, b in zip(*pairs, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a, b, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("options", [{}, {"reverse": True}, {"axis": -1}])
@pytest.mark.parametrize("name", CASES)
def test_values(name, options):
    if "axis" in options and name == "matrices":
        pytest.skip("matmul combines along the first axis")
    results = [by(package, *CASES[name], **options) for package in (minijax, jax)]
    same(*results)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_weak_types(size):
    results = []
    for package in (minijax, jax):
        elems = package.numpy.broadcast_to(package.numpy.asarray(2.0), (size,))
        result = package.lax.associative_scan(package.numpy.maximum, elems)
        results.append(result.weak_type)
    assert results[0] == results[1]


@pytest.mark.parametrize("name", ["recurrence", "matrices", "complex"])
def test_derivatives(name):
    make, elems = CASES[name]

    def slopes(package):
        def total(elems):
            leaves = package.tree_util.tree_leaves(by(package, make, elems))
            return sum((abs(leaf) ** 2).sum() for leaf in leaves)

        return package.grad(total)(elems)

    pairs = [
        minijax.tree_util.tree_leaves(slopes(package)) for package in (minijax, jax)
    ]
    for a, b in zip(*pairs, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("size", [2, 3, 4, 5, 8, 13])
def test_the_same_pairs_in_the_same_order(size):
    """The function sees what JAX shows it, but for calls with nothing to combine."""

    def seen_by(package):
        seen = []

        def fn(a, b):
            seen.append((np.asarray(a).tolist(), np.asarray(b).tolist()))
            return a + b

        package.lax.associative_scan(fn, package.numpy.arange(size))
        return [pair for pair in seen if pair[0]]

    assert seen_by(minijax) == seen_by(jax)


SILENT = {"shape"}  # JAX returns something else


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals(name):
    error, _, fn, elems, axis = REFUSALS[name]
    if name in SILENT:
        return
    if name == "dtype":
        fn = lambda a, b: jax.numpy.int32(a + b)  # noqa: E731
    if fn is minijax.numpy.add:
        fn = jax.numpy.add
    with pytest.raises(error):
        jax.lax.associative_scan(fn, elems, axis=axis)
