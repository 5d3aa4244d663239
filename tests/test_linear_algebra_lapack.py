"""Triangular systems, elimination and failures of LAPACK, on NumPy's arrays."""

import itertools

import numpy as np
import pytest

from minijax.linear_algebra.lapack import (
    BLOCK,
    factor_or_nan,
    getrf_impl,
    pivots_permutation,
    trsm_impl,
)

DTYPES = "float32 float64 complex64 complex128".split()
SIZES = [0, 1, 2, 7, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 3]


def numbers(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.normal(size=shape)
    return x.astype(dtype)


def near(x, y):
    eps = np.finfo(x.dtype).eps
    scale = max(np.abs(y).max(initial=0), 1)
    return x.shape == y.shape and np.abs(x - y).max(initial=0) <= 200 * eps * scale


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_triangles(n, dtype):
    for left, lower, flip, conj, unit in itertools.product([False, True], repeat=5):
        a = numbers((2, n, n), dtype) / max(n, 1) + 2 * np.eye(n, dtype=dtype)
        b = numbers((2, n, 3) if left else (2, 3, n), dtype, 1)
        x = trsm_impl(a, b, left, lower, flip, conj, unit)
        read = np.tril(a) if lower else np.triu(a)
        if unit:
            read = np.where(np.eye(n, dtype=bool), 1, read).astype(dtype)
        read = read.mT if flip else read
        read = read.conj() if conj else read
        assert x.dtype == dtype and near(read @ x if left else x @ read, b)


def test_the_other_triangle_is_not_read():
    a = np.full((40, 40), np.nan)
    a[np.tril_indices(40)] = 0.1
    b = np.ones((40, 1))
    assert np.isfinite(trsm_impl(a, b, True, True, False, False, False)).all()
    a[np.diag_indices(40)] = np.nan
    assert np.isfinite(trsm_impl(a, b, True, True, False, False, True)).all()


@pytest.mark.parametrize("shape", [(0, 0), (3, 0), (0, 3), (1, 1), (5, 3), (3, 5)])
@pytest.mark.parametrize("batch", [(), (2,), (0,), (2, 3)])
def test_elimination(shape, batch):
    check_elimination(numbers((*batch, *shape), "float64"))


@pytest.mark.parametrize("n", SIZES[4:])
@pytest.mark.parametrize("dtype", DTYPES)
def test_elimination_by_blocks(n, dtype):
    check_elimination(numbers((2, n, n), dtype))
    check_elimination(numbers((n + 9, n), dtype))
    check_elimination(numbers((n, n + 9), dtype))


def check_elimination(x):
    both, pivots, rows = getrf_impl(x)
    m, n = x.shape[-2:]
    k = min(m, n)
    low = np.tril(both[..., :k], -1) + np.eye(m, k, dtype=x.dtype)
    assert near(
        low @ np.triu(both[..., :k, :]), np.take_along_axis(x, rows[..., None], -2)
    )
    assert np.abs(low).max(initial=0) <= 1.5  # sizes of complex numbers: sums of parts
    assert pivots.dtype == rows.dtype == np.int32
    assert np.array_equal(pivots_permutation(pivots, m), rows)
    assert (np.sort(rows, -1) == np.arange(m)).all()


def test_elimination_of_zeros():
    both, pivots, _ = getrf_impl(np.zeros((3, 3)))
    assert not both.any() and pivots.tolist() == [0, 1, 2]


def test_failures_are_nan_for_one_matrix_alone():
    good, bad = np.eye(2), -np.eye(2)
    [x] = factor_or_nan(
        lambda x: [np.linalg.cholesky(x)], np.array([[good, bad], [bad, good]])
    )
    assert np.isnan(x).all((-2, -1)).tolist() == [[False, True], [True, False]]
    assert np.array_equal(x[0, 0], good)


def test_no_half_precision():
    with pytest.raises(NotImplementedError, match="Unsupported dtype float16"):
        factor_or_nan(lambda x: [x], np.eye(2, dtype="float16"))
