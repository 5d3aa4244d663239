"""Bits of XLA's generators, and products of ragged groups, beside JAX."""

import jax
import numpy as np
import pytest

import minijax

WORDS = np.uint32
KEYS = [np.array([3, 4, 5, 6], WORDS), np.array([1, 2, 2**32 - 2, 2**32 - 1], WORDS)]
SHAPES = [(8,), (5,), (), (2, 0), (3, 2, 4), (5, 7), (1, 3)]
CASES = [(shape, "uint32") for shape in SHAPES] + [((6,), "uint8"), ((6,), "uint16")]


def same(ours, theirs):
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("algorithm", jax.lax.RandomAlgorithm)
@pytest.mark.parametrize(("shape", "dtype"), CASES)
def test_bits_and_the_next_key(algorithm, shape, dtype):
    own = minijax.lax.RandomAlgorithm[algorithm.name]
    for key in KEYS:
        ours = minijax.lax.rng_bit_generator(key, shape, dtype, own)
        theirs = jax.lax.rng_bit_generator(key, shape, dtype, algorithm)
        list(map(same, ours, theirs))


@pytest.mark.parametrize("algorithm", [1, 2])
def test_bits_in_64_bits(algorithm):
    key, found = np.array([2**63 + 5, 2**64 - 2], np.uint64), []
    for package in (minijax, jax):
        with package.enable_x64(True):
            which = package.lax.RandomAlgorithm(algorithm)
            found.append(package.lax.rng_bit_generator(key, (5,), np.uint64, which))
    list(map(same, *found))


def numbers(package, *axes):
    return package.lax.RaggedDotDimensionNumbers(*axes)


PLAIN, BATCHED = (([1], [1]), ([], [])), (([2], [2]), ([0], [0]))
SUMMED = ([1], [1]), ([0], [0])
PRODUCTS = {  # shapes of lhs and rhs, sizes of groups, axes
    "rows": ((7, 3), (2, 3, 4), [3, 2], (PLAIN, [0], [0])),
    "batched rows": (
        (2, 7, 3), (2, 2, 3, 4), [[3, 2], [0, 7]], (BATCHED, [1], [1]),
    ),
    "one division for all": ((2, 7, 3), (2, 2, 3, 4), [3, 2], (BATCHED, [1], [1])),
    "terms": ((2, 7, 3), (2, 7, 4), [3, 2, 2], (SUMMED, [1], [])),
    "batch": ((7, 2, 3), (7, 3, 4), [3, 2], ((([2], [1]), ([0], [0])), [0], [])),
}  # fmt: skip


@pytest.mark.parametrize("case", PRODUCTS)
def test_products_of_groups_and_their_gradients(case):
    left, right, sizes, axes = PRODUCTS[case]
    rng, found = np.random.default_rng(0), []
    arrays = [rng.normal(size=shape).astype("f4") for shape in (left, right)]
    for package in (minijax, jax):

        def product(x, y, package=package):
            groups, how = np.array(sizes, np.int32), numbers(package, *axes)
            return package.lax.ragged_dot_general(x, y, groups, how)

        slopes = package.grad(lambda *a: (product(*a) ** 2).sum(), (0, 1))
        has_slopes = axes[2]  # JAX has no gradient of the other two modes
        found.append([product(*arrays), *(slopes(*arrays) if has_slopes else ())])
    for ours, theirs in zip(*found):
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-5)


REFUSED = {
    "sizes": ((7, 3), (2, 3, 4), [3, 2, 1], (PLAIN, [0], [0])),
    "no axis of sizes": ((7, 3), (2, 3, 4), 3, (PLAIN, [0], [0])),
    "two ragged axes": ((7, 3), (2, 3, 4), [3, 2], (PLAIN, [0, 1], [0])),
    "no axis of groups": ((7, 3), (2, 3, 4), [3, 2], (PLAIN, [0], [])),
    "groups of terms": ((7, 3), (7, 4), [3, 2], ((([0], [0]), ([], [])), [0], [1])),
    "shape of sizes": ((7, 3), (2, 3, 4), [[3, 2]], (PLAIN, [0], [0])),
    "no such axis": ((7, 3), (2, 3, 4), [3, 2], (PLAIN, [2], [0])),
    "an axis twice": ((7, 3), (2, 3, 4), [3, 2], (PLAIN, [0], [1])),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_a_type_error_in_both(case):
    left, right, sizes, axes = REFUSED[case]
    for package in (minijax, jax):
        arrays = np.ones(left, "f4"), np.ones(right, "f4"), np.array(sizes, np.int32)
        with pytest.raises(TypeError):
            package.lax.ragged_dot_general(*arrays, numbers(package, *axes))


def test_places_are_counted_around_their_axes():
    x, places = np.arange(24.0).reshape(2, 3, 4), [[0, 5, -1], [1, -2, 7]]
    found = [
        package.lax.index_take(x, list(map(package.numpy.array, places)), (0, 2))
        for package in (minijax, jax)
    ]
    np.testing.assert_array_equal(*found)
