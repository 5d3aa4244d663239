"""Functions of matrices and eigenvalues of three diagonals beside JAX."""

from functools import partial

import jax
import numpy as np
import pytest

import minijax
from tests.commands import paired
from tests.test_linear_algebra_lapack import DTYPES, numbers

from .raised import raised
from .test_linalg import SHAPES, agree, wide  # noqa: F401

ROWS = [shape for shape in SHAPES if shape[-1]]


def scipy(name, *args, **how):
    """A function of `scipy.linalg`, with further arguments, of either package."""
    return lambda m: lambda *xs: getattr(m.scipy.linalg, name)(*xs, *args, **how)


def coarse(dtype):
    return 2e-4 if np.finfo(dtype).bits == 32 else 1e-10


@pytest.mark.parametrize(("shape", "dtype"), paired(SHAPES, DTYPES))
def test_forms(shape, dtype):
    x = numbers(shape, dtype)
    for calc_q in (False, True):
        agree(scipy("hessenberg", calc_q=calc_q), x)
    for output in ("real", "complex"):

        def f(m, output=output):
            def f(x):
                u, q = map(np.asarray, m.scipy.linalg.schur(x, output))
                return q @ u @ q.conj().mT, q @ q.conj().mT

            return f

        agree(f, x, rtol=coarse(dtype))
    if x.size:
        t, z = map(np.array, jax.scipy.linalg.schur(x))
        agree(scipy("rsf2csf"), t, z, rtol=coarse(dtype))
        agree(lambda m: m.jit(m.scipy.linalg.rsf2csf), t, z, rtol=coarse(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_triangles_of_what_is_no_real_form(dtype):
    t, z = numbers((2, 4, 4), dtype), numbers((4, 4), dtype)
    agree(scipy("rsf2csf"), t, z, rtol=coarse(dtype))
    if t.dtype.kind == "f":

        def slope(m):
            def f(t):
                return abs(m.scipy.linalg.rsf2csf(t, z)[0]).sum()

            return m.grad(f)

        agree(slope, t, rtol=coarse(dtype))


@pytest.mark.parametrize(("n", "dtype"), paired([1, 4], DTYPES))
def test_functions(n, dtype):
    x = numbers((n, n), dtype)
    near = np.eye(n, dtype=dtype) * 4 + x  # no eigenvalue on the branch cut
    agree(scipy("sqrtm"), near, rtol=coarse(dtype))
    agree(lambda m: m.jit(m.scipy.linalg.sqrtm), near @ near, rtol=coarse(dtype))
    root = np.asarray(minijax.scipy.linalg.sqrtm(x))
    np.testing.assert_allclose(root @ root, x, atol=100 * coarse(dtype))
    for f in ("exp", "cos"):

        def parts(m, f=f, **how):
            return lambda x: m.scipy.linalg.funm(x, getattr(m.numpy, f), **how)

        agree(parts, x, rtol=coarse(dtype))
    value, error = minijax.scipy.linalg.funm(x, minijax.numpy.sin, False)
    assert error.dtype == value.real.dtype and 0 < error <= 1


def test_square_roots_of_odd_matrices():
    for x in (np.zeros((3, 3)), np.eye(3), np.diag([4.0, 4.0, 1.0]), -np.eye(2)):
        agree(scipy("sqrtm"), x)


@pytest.mark.parametrize(
    ("shape", "dtype"), paired([(1, 1), (4, 4), (2, 5, 3), (3, 5)], DTYPES)
)
def test_products_with_q(shape, dtype):
    x, (*batch, m, n) = numbers(shape, dtype), shape
    for mode, pivoting, conjugate in (
        ("left", 0, 0), ("left", 1, 1), ("right", 0, 1), ("right", 1, 0),
    ):  # fmt: skip
        rows = min(m, n)
        c = numbers((rows, 2) if mode == "left" else (2, m), dtype)
        how = {"pivoting": bool(pivoting), "conjugate": bool(conjugate)}
        agree(scipy("qr_multiply", mode, **how), x, c)
        if not batch:
            agree(
                scipy("qr_multiply", mode, **how),
                x,
                c[:, 0] if mode == "left" else c[0],
            )
    for mode in ("full", "economic", "r"):
        agree(scipy("qr", mode=mode, pivoting=True), x)


@pytest.mark.parametrize(("method", "dtype"), paired(["schur", "eigen"], DTYPES))
def test_sylvester(dtype, method):
    for batch, m, n in (((), 1, 1), ((), 4, 3), ((2,), 2, 4)):
        a, b = numbers((*batch, m, m), dtype), numbers((*batch, n, n), dtype, 1)
        c = numbers((*batch, m, n), dtype, 2)
        solve = scipy("solve_sylvester", method=method)
        agree(solve, a, b, c, rtol=coarse(dtype))
        agree(lambda m: m.jit(solve(m)), a, b, c, rtol=coarse(dtype))  # noqa: B023
    agree(scipy("solve_sylvester", method=method), np.eye(2), -np.eye(2), np.eye(2))


@pytest.mark.parametrize(("n", "dtype"), paired([0, 1, 2, 3, 12], DTYPES))
def test_three_diagonals(n, dtype):
    d, e = numbers((n,), dtype), numbers((max(n - 1, 0),), dtype, 1)
    tridiagonal = scipy("eigh_tridiagonal", eigvals_only=True)
    agree(tridiagonal, d, e, rtol=coarse(dtype) / 10)
    full = np.diag(d.real) + np.diag(e, 1) + np.diag(e.conj(), -1) if n else d[:, None]

    def parts(m):
        def f(d, e):
            w, v = map(np.asarray, m.jit(m.scipy.linalg.eigh_tridiagonal)(d, e))
            assert (v.dtype, v.shape) == (d.dtype, (n, n))
            return full @ v - v * w.astype(v.dtype), v.conj().T @ v

        return f

    if n:
        agree(parts, d, e, rtol=coarse(dtype))
    if n > 3:
        some = scipy("eigh_tridiagonal", select="i", select_range=(1, 2))
        agree(lambda m: lambda *xs: some(m)(*xs)[0], d, e, rtol=coarse(dtype))
        vague = scipy("eigh_tridiagonal", eigvals_only=True, tol=0.1)
        agree(vague, d, e, rtol=0.1)


def test_close_eigenvalues():
    """Wilkinson's matrix, whose eigenvalues come in pairs, and a multiple one."""
    for d, e in ((abs(np.arange(-10.0, 11)), np.ones(20)), (np.ones(5), np.zeros(4))):
        w, v = map(np.asarray, minijax.scipy.linalg.eigh_tridiagonal(d, e))
        full = np.diag(d) + np.diag(e, 1) + np.diag(e, -1)
        assert np.allclose(full @ v, v * w, atol=1e-12)
        assert np.allclose(v.T @ v, np.eye(len(d)), atol=1e-12)
        assert np.allclose(w, np.linalg.eigvalsh(full), atol=1e-13)


X = np.ones((3, 3))
REFUSED = {
    "schur": [(X[:2],), (X, "other")],
    "rsf2csf": [(X, X[:2]), (X, np.eye(2))],
    "sqrtm": [(X, 2)],
    "funm": [(X[:2], np.exp)],
    "qr_multiply": [(X, X, "middle"), (X, X[:2], "left"), (X, X[:, :2])],
    "solve_sylvester": [(X, X, X[:2])],
    "eigh_tridiagonal": [(X[0], X[0, 1:].astype("f4")), (X[0].astype(int), X[0, 1:])],
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    for args in REFUSED[name]:
        ours, theirs = (raised(partial(scipy(name)(m), *args)) for m in (minijax, jax))
        assert ours[0] == theirs[0], (ours, theirs)
    for how in ({"select": "v"}, {"select": "i"}, {"select": "x"}):
        f = scipy("eigh_tridiagonal", **how)
        pairs = (raised(partial(f(m), X[0], X[0, 1:])) for m in (minijax, jax))
        assert len({pair[0] for pair in pairs}) == 1
