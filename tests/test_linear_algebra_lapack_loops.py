"""Factorizations of small matrices as loops, beside those of NumPy and LAPACK."""

import itertools
from functools import partial

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import grad, jit, lax, vmap
from minijax.kernels.lowering import cpu_rules
from minijax.linear_algebra.lapack import getrf_impl, pivots_permutation, trsm_impl
from tests.commands import LONG, paired, turned

KINDS = "float32", "float64", "complex64", "complex128"
WIDTHS = "float32", "complex128", "float64", "complex64"  # two that follow: both sorts
# around the lanes of vectors, single rows and columns, and no matrix at all
SHAPES = (1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (7, 7), (8, 8), (9, 9), (16, 16)
SHAPES += (17, 17), (23, 23), (1, 4), (4, 1), (3, 5), (5, 3), (9, 2), (2, 9)
BATCHES = (), (3, 2), (0,)


@pytest.fixture(autouse=True)
def _x64():
    with minijax.enable_x64():
        yield


def drawn(shape, kind, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    if kind.startswith("complex"):
        x = x + 1j * rng.normal(size=shape)
    return x.astype(kind)


def close(found, wanted, kind, size=1):
    digits = 2e-4 if kind in ("float32", "complex64") else 1e-11
    assert [x.shape for x in found] == [x.shape for x in wanted]
    for x, y in zip(found, wanted):
        assert x.dtype == y.dtype
        np.testing.assert_allclose(x, y, rtol=digits * size, atol=digits * size)


def squares(shape, kind):
    x = drawn((*shape[:-2], shape[-1], shape[-1]), kind)
    return x @ x.swapaxes(-1, -2).conj() + np.eye(shape[-1], dtype=kind)


def steps_of(function, *args):
    return jit(function).lower(*args).compile().as_text("kernels")


def in_batches(shapes):
    """Each shape in a real and a complex kind, each width for every second shape, in
    batches by turns; with `LONG=1` each shape in each kind in all batches.
    """
    return paired(turned(shapes, WIDTHS, 2), BATCHES)


def all_ways(n, kind):
    """Each way to solve in one of four kinds, another for the next size: with `LONG=1`
    in all. Ways that differ in one flag are met in different kinds.
    """
    ways, turn = itertools.product((False, True), repeat=5), n + KINDS.index(kind)
    weights = 1, 2, 3, 1, 2
    weighed = [(each, sum(w for w, on in zip(weights, each) if on)) for each in ways]
    return [each for each, weight in weighed if LONG or (weight + turn) % 4 == 0]


@pytest.mark.parametrize("case, batch", in_batches(SHAPES))
def test_factors_agree_with_lapack(case, batch):
    shape, kind = case
    x = drawn((*batch, *shape), kind)
    close(jit(lax.linalg.lu)(x), getrf_impl(x), kind, 10)
    for full in (False, True):
        found = jit(partial(lax.linalg.qr, full_matrices=full))(x)
        close(found, np.linalg.qr(x, "complete" if full else "reduced"), kind, 10)
    if shape[0] == shape[1]:
        positive = squares(x.shape, kind)
        found = jit(lambda x: lax.linalg.cholesky(x, symmetrize_input=False))(positive)
        close([found], [np.linalg.cholesky(positive)], kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n, k", [(1, 1), (2, 1), (3, 4), (8, 1), (9, 3), (16, 17)])
def test_triangles_in_all_ways(n, k, kind):
    names = "left_side lower transpose_a conjugate_a unit_diagonal".split()
    a = drawn((2, n, n), kind) / n + 2 * np.eye(n, dtype=kind)
    for ways in all_ways(n, kind):
        how = dict(zip(names, ways))
        b = drawn((2, n, k) if how["left_side"] else (2, k, n), kind, 1)
        found = jit(partial(lax.linalg.triangular_solve, **how))(a, b)
        close([found], [trsm_impl(a, b, *ways)], kind, 10)


def test_no_step_of_numpy_is_left_in_a_loop_over_small_systems():
    def body(x, _):
        a = jnp.eye(3) + 0.01 * x[:, None]
        factor = lax.linalg.cholesky(a @ a.T)
        return jnp.linalg.solve(a, factor @ x) + jnp.linalg.slogdet(a)[1], None

    def program(x):
        return lax.scan(body, x, None, length=5)[0]

    text = steps_of(program, np.ones(3))
    for name in ("= lu ", "= cholesky ", "= triangular_solve ", "= sort "):
        assert name not in text, text


@pytest.mark.parametrize("kind", KINDS)
def test_special_numbers_in_small_matrices(kind):
    cases = [np.zeros((3, 3)), np.diag([1.0, 0, 2]), np.ones((3, 3)), -np.eye(3)]
    for bad in (np.nan, np.inf, -np.inf):
        for place in ((0, 0), (1, 0), (0, 1), (2, 2)):
            case = np.eye(3) + 0.1
            case[place] = bad
            cases.append(case)
    x = np.stack(cases).astype(kind)
    with np.errstate(all="ignore"):
        wanted = getrf_impl(x)
    found = jit(lax.linalg.lu)(x)
    np.testing.assert_array_equal(found[1], wanted[1])
    np.testing.assert_array_equal(np.isfinite(found[0]), np.isfinite(wanted[0]))
    for factor, case in zip(jit(lax.linalg.cholesky_p.bind_all)(x)[0], x):
        try:
            good = np.linalg.cholesky(case)
        except np.linalg.LinAlgError:
            assert np.isnan(factor).all()
        else:
            np.testing.assert_array_equal(np.isfinite(factor), np.isfinite(good))
    x = x[[0, 1, 3]]  # of equal columns, rounding decides where the second goes
    for ours, theirs in zip(jit(lax.linalg.qr)(x), np.linalg.qr(x)):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)


@pytest.mark.parametrize("size", [1e-300, 1e-160, 1e160, 1e300])
def test_reflections_of_very_small_and_large_numbers(size):
    x = drawn((4, 3), "float64")
    q, r = jit(lambda x: lax.linalg.qr(x, full_matrices=False))(x * size)
    theirs = np.linalg.qr(x * size)
    np.testing.assert_allclose(q, theirs[0], rtol=1e-10)
    np.testing.assert_allclose(r, theirs[1], rtol=1e-10)


def test_barely_positive_matrices_of_32_bits_have_the_factor_that_numpy_finds():
    angles = np.linspace(0, 1, 6)
    x = np.exp(-((angles[:, None] - angles) ** 2)).astype("float32")
    x += 1e-7 * np.eye(6, dtype="float32")
    wanted = np.linalg.cholesky(x)
    np.testing.assert_allclose(jit(lax.linalg.cholesky)(x), wanted, atol=1e-6)


@pytest.mark.parametrize("kind", ["float64", "complex128"])
@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_gradients_and_batches_of_small_systems(n, kind):
    a, b = drawn((4, n, n), kind), drawn((4, n), kind, 1)

    def size(a, b):
        positive = a @ a.mT.conj() + jnp.eye(n, dtype=kind)
        x = jnp.linalg.solve(a, b) + lax.linalg.cholesky(positive) @ b
        q, _ = jnp.linalg.qr(a)
        return (abs(x) ** 2).sum() + jnp.linalg.slogdet(a)[1] + (q @ b).real.sum()

    both = vmap(grad(size, (0, 1)))
    close(jit(both)(a, b), both(a, b), "float64", 1e3)
    each = [grad(size, (0, 1))(*pair) for pair in zip(a, b)]
    close(jit(both)(a, b), [np.stack(x) for x in zip(*each)], "float64", 1e3)


def test_dtypes_of_16_bits_are_refused_as_by_numpy():
    for name in ("float16", "bfloat16"):
        with pytest.raises(NotImplementedError, match=f"Unsupported dtype {name}"):
            jit(lax.linalg.lu)(jnp.eye(3, dtype=name))


def test_the_column_of_a_cpu_holds_factorizations_and_transforms():
    names = "lu qr cholesky eigh svd triangular_solve tridiagonal_solve"
    names = {*names.split(), "lu_pivots_to_permutation", "fft"}
    assert {str(p) for p in cpu_rules} == names


@pytest.mark.parametrize(
    "size, kind", turned([(1, 1), (2, 1), (3, 4), (8, 1), (17, 3)], WIDTHS, 2)
)
@pytest.mark.parametrize("perturb", [False, True])
def test_tridiagonal_systems_agree_with_rows_of_numpy(size, kind, perturb):
    n, k = size
    diagonals = [drawn((3, n), kind, seed) for seed in range(3)]
    b = drawn((3, n, k), kind, 3)
    for x in diagonals:
        x[1] = np.round(abs(x[1]))  # zeros and ties
    diagonals[1][2] = 0

    def solve(*args):
        return lax.linalg.tridiagonal_solve(*args, perturb_singular=perturb)

    with np.errstate(all="ignore"):
        wanted = solve(*diagonals, b)
    np.testing.assert_allclose(jit(solve)(*diagonals, b), wanted, rtol=1e-4, atol=1e-5)
    one = [x[0] for x in (*diagonals, b)]
    np.testing.assert_allclose(jit(solve)(*one), wanted[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("count, size", [(1, 1), (3, 3), (4, 9), (0, 2), (17, 40)])
def test_permutations_of_exchanges(batch, count, size):
    swaps = np.random.default_rng(0).integers(0, size, (*batch, count), "int32")
    found = jit(lambda x: lax.linalg.lu_pivots_to_permutation(x, size))(swaps)
    np.testing.assert_array_equal(found, pivots_permutation(swaps, size))
    assert found.dtype == np.int32


def test_exchanges_with_rows_counted_from_the_end_or_missing():
    """As JAX: read and written by an index."""
    swaps = np.array([[-1, 2, -2], [1, -3, 0], [5, 1, 1], [-5, 1, -1]], "int32")
    wanted = [[2, 1, 0], [2, 1, 0], [2, 2, 1], [0, 1, 2]]
    for backend in (None, "python"):
        f = jit(lambda x: lax.linalg.lu_pivots_to_permutation(x, 3), backend=backend)
        np.testing.assert_array_equal(f(swaps), wanted)
    np.testing.assert_array_equal(pivots_permutation(swaps, 3), wanted)


@pytest.mark.parametrize("switch", ["rank_promotion", "dtype_promotion"])
def test_switches_of_promotion_are_for_the_operations_of_users(switch):
    x = squares((4, 4), "float32")
    choice = "raise" if "rank" in switch else "strict"
    linalg = lax.linalg
    for function in (linalg.cholesky, linalg.qr, linalg.lu, minijax.scipy.linalg.expm):
        wanted = minijax.tree.leaves(function(x))
        with minijax.config.override(f"jax_numpy_{switch}", choice):
            found = jit(lambda x, function=function: function(x))(x)
        close(minijax.tree.leaves(found), wanted, "float32", 10)


@pytest.mark.parametrize("n, kind", turned([1, 2, 5, 6, 20], WIDTHS, 2))
def test_numbers_without_an_end_spread_as_in_lapack(n, kind):
    x, m = squares((n, n), kind), n // 2
    x[m, m] = np.inf
    cholesky = partial(lax.linalg.cholesky, symmetrize_input=False)
    found, wanted = np.asarray(jit(cholesky)(x)), np.asarray(cholesky(x))
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    assert np.isinf(found[m, m]) and np.isinf(wanted[m, m])
    x[m, m] = np.nan
    for full in (False, True):
        qr = partial(lax.linalg.qr, full_matrices=full)
        close(jit(qr)(x), qr(x), kind, 10)
        close(jit(qr)(x[:, m:]), qr(x[:, m:]), kind, 10)
