"""Reflections, Schur forms, three diagonals, updates and polar factors beside JAX."""

from functools import partial

import jax
import numpy as np
import pytest

import minijax
from tests.commands import paired
from tests.test_linear_algebra_lapack import DTYPES, numbers

from .raised import raised
from .test_linalg import ANY, SHAPES, agree, definite, wide  # noqa: F401

ROWS = [shape for shape in SHAPES if shape[-1]]
TALL = [(1, 1), (3, 3), (5, 3), (2, 4, 2), (0, 3, 2), (3, 0), (33, 20)]


def linalg(name, **how):
    """A function of `lax.linalg`, with keywords, of either package."""
    return lambda m: partial(getattr(m.lax.linalg, name), **how)


@pytest.mark.parametrize(("shape", "dtype"), paired([*ROWS, (30, 30)], DTYPES))
def test_reductions(shape, dtype):
    x = numbers(shape, dtype)
    agree(linalg("hessenberg"), x)
    for lower in (False, True):
        agree(linalg("tridiagonal", lower=lower), x)
    agree(lambda m: m.jit(m.vmap(m.lax.linalg.hessenberg, 1)), np.stack([x, x], 1))


@pytest.mark.parametrize(("shape", "dtype"), paired(TALL, DTYPES))
def test_products_of_reflections(shape, dtype):
    x = numbers(shape, dtype)
    r, taus = (np.asarray(y) for y in jax.numpy.linalg.qr(x, "raw"))
    agree(lambda m: lambda x: m.numpy.linalg.qr(x, "raw"), x)
    a = np.array(r.mT)
    agree(linalg("householder_product"), a, taus)
    agree(linalg("householder_product"), a, taus[..., :1])
    *batch, rows, _ = shape
    for left, transpose in ((0, 0), (0, 1), (1, 0), (1, 1)):
        c = numbers((*batch, rows, 2) if left else (*batch, 2, rows), dtype, 1)
        agree(linalg("ormqr", left=bool(left), transpose=bool(transpose)), a, taus, c)


@pytest.mark.parametrize(
    ("shape", "dtype"), paired([shape for shape in ANY if 0 not in shape[-2:]], DTYPES)
)
def test_pivoting(shape, dtype):
    x = numbers(shape, dtype)
    for full in (False, True):
        agree(linalg("qr", pivoting=True, full_matrices=full), x)
    if len(shape) == 2 and shape[0] >= shape[1]:
        agree(lambda m: lambda x: tangents(m, x), x, rtol=1e-3 if "32" in dtype else 0)


def tangents(m, x):
    """Tangents of pivoted factors; order 2 of a sum of theirs."""
    f = partial(m.lax.linalg.qr, pivoting=True, full_matrices=False)
    one = m.jvp(lambda x: f(x)[:2], (x,), (x * x,))[1]
    if np.iscomplexobj(x):
        return one
    g = m.grad(lambda x: (f(x)[0] ** 3).sum() + (f(x)[1] ** 3).sum())
    return one, m.jvp(g, (x,), (x * x,))


@pytest.mark.parametrize(
    ("shape", "dtype"), paired([*SHAPES, (2, 2), (12, 12)], DTYPES)
)
def test_schur_forms(shape, dtype):
    """Equal products and eigenvalues; LAPACK's rounding decides about phases."""
    x = numbers(shape, dtype)

    def parts(m):
        def f(x):
            u, q = (np.asarray(y) for y in m.jit(m.lax.linalg.schur)(x))
            assert u.dtype == q.dtype == x.dtype
            pairs = np.diagonal(u, -1, -2, -1)
            assert (
                not np.tril(u, -2).any()
                and not (pairs[..., 1:] * pairs[..., :-1]).any()
            )
            values = np.sort_complex(np.linalg.eigvals(u)) if u.size else u
            return q @ u @ q.conj().mT, q @ q.conj().mT, values

        return f

    agree(parts, x, rtol=1e-4 if np.finfo(dtype).bits == 32 else 1e-9)
    alone = linalg("schur", compute_schur_vectors=False)
    agree(lambda m: lambda x: [u.shape for u in alone(m)(x)], x)


@pytest.mark.parametrize(
    ("shape", "dtype"), paired([(1,), (2,), (6,), (2, 4), (0, 3), (0,), (2, 0)], DTYPES)
)
def test_three_diagonals(shape, dtype):
    dl, d, du = (numbers(shape, dtype, seed) for seed in range(3))
    b = numbers((*shape, 2), dtype, 3)
    solve = linalg("tridiagonal_solve")
    agree(solve, dl, d, du, b, rtol=1e-4 if np.finfo(dtype).bits == 32 else 1e-9)
    agree(solve, dl, d + 3, du, b)
    agree(lambda m: m.jit(solve(m)), dl, d + 3, du, b)


def test_derivatives_of_three_diagonals():
    dl, d, du = (numbers((4,), "float64", seed) for seed in range(3))
    b, d = numbers((4, 2), "float64", 3), d + 4
    many = [np.stack([x, x + 1], 1) for x in (dl, d, du)]

    def loss(m):
        return lambda *xs: (m.lax.linalg.tridiagonal_solve(*xs) ** 2).sum()

    every = (0, 1, 2, 3)
    agree(lambda m: m.grad(loss(m), every), dl, d, du, b)
    agree(lambda m: m.hessian(loss(m), every), dl, d, du, b)
    solve = linalg("tridiagonal_solve")
    agree(
        lambda m: m.vmap(solve(m), (None, None, None, 0)),
        dl,
        d,
        du,
        np.stack([b, 2 * b]),
    )
    agree(lambda m: m.vmap(solve(m), (1, 1, 1, 2), 1), *many, np.stack([b, 2 * b], 2))
    agree(
        lambda m: m.vmap(m.grad(loss(m), every), (1, None, None, 2)),
        many[0],
        d,
        du,
        np.stack([b, 2 * b], 2),
    )


SINGULAR = {
    "zeros": ([0, 0], [0, 0], [0, 0]),
    "one zero": ([0, 0], [1, 0], [0, 0]),
    "near": ([0, 0], [1, 1e-30], [3, 0]),
    "last": ([0, -2], [1, -2], [1, 0]),
    "ghosts": ([9, 1, 1], [2, 2, 2], [1, 1, 9]),
}


@pytest.mark.parametrize("name", SINGULAR)
@pytest.mark.parametrize("perturbed", [False, True])
def test_singular_systems(name, perturbed):
    *diagonals, b = (np.array(x, float) for x in (*SINGULAR[name], SINGULAR[name][1]))
    solve = linalg("tridiagonal_solve", perturb_singular=perturbed)

    def found(m):
        def f(*args):
            x = np.asarray(solve(m)(*args))
            return x / abs(x).max() if name == "last" else x  # LAPACK scales its rows

        return f

    agree(found, *diagonals, (b + 1)[:, None])


@pytest.mark.parametrize(("n", "dtype"), paired([0, 1, 2, 7], ["float32", "float64"]))
def test_updates(n, dtype):
    r = np.linalg.cholesky(definite((n, n), dtype)).mT
    w = numbers((n,), dtype, 2)
    for change in (w, 0 * w):
        agree(linalg("cholesky_update"), r, change)
    a, c = numbers((2, n, 3), dtype), definite((2, n, n), dtype)
    for how in ({}, {"alpha": 2.0, "beta": -0.5}, {"symmetrize_output": True}):
        agree(linalg("symmetric_product", **how), a, c)
    agree(lambda m: m.vmap(m.jit(m.lax.linalg.symmetric_product)), a, c)


@pytest.mark.parametrize(("shape", "dtype"), paired([(1, 1), (4, 4), (6, 3)], DTYPES))
def test_polar_factors(shape, dtype):
    x = numbers(shape, dtype)
    agree(linalg("qdwh"), x)
    agree(lambda m: m.jit(m.lax.linalg.qdwh), 100 * x)
    agree(linalg("qdwh", max_iterations=2), x)
    agree(linalg("qdwh", eps=1e-3), x)
    agree(linalg("qdwh"), 0 * x)
    if shape == (6, 3):
        agree(linalg("qdwh", dynamic_shape=(5, 3)), x)
    agree(
        lambda m: lambda x: m.jvp(lambda x: m.lax.linalg.qdwh(x)[:2], (x,), (x * x,)),
        x,
        rtol=1e-3 if np.finfo(dtype).bits == 32 else 1e-9,
    )


X, V = np.ones((3, 3)), np.ones(3)
REFUSED = {
    "hessenberg": [(np.ones((2, 3)),), (np.ones((2, 2), int),), (V,)],
    "tridiagonal": [(np.ones((0, 0)),), (np.ones((2, 3)),)],
    "schur": [(np.ones((2, 3)),)],
    "qdwh": [(np.ones((2, 3)),)],
    "householder_product": [(X[:, :2], V), (X[:2], V), (X, X), (X, V.astype("f4"))],
    "ormqr": [(X, V, X[:2]), (X, V, V)],
    "symmetric_product": [(X[:, :2], X[:2, :2]), (X + 0j, X + 0j)],
    "cholesky_update": [(X[:, :2], V[:2]), (np.stack([X, X]), X[:2]), (X + 0j, V + 0j)],
    "tridiagonal_solve": [(V, V, V[:2], X), (V, V, V, X[:2]), (V, V, V, V)],
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    for args in REFUSED[name]:
        ours, theirs = (raised(partial(linalg(name)(m), *args)) for m in (minijax, jax))
        assert ours[0] == theirs[0], (ours, theirs)


TEXTS = {
    "hessenberg": lambda m: lambda x: m.lax.linalg.hessenberg(x),
    "tridiagonal": lambda m: lambda x: m.lax.linalg.tridiagonal(x, lower=False),
    "schur": lambda m: lambda x: m.lax.linalg.schur(x),
    "product": lambda m: lambda x: m.lax.linalg.householder_product(x, x[:, 0]),
    "ormqr": lambda m: lambda x: m.lax.linalg.ormqr(x, x[:, 0], x),
    "pivots": lambda m: lambda x: m.lax.linalg.qr(x, pivoting=True),
    "syrk": lambda m: lambda x: m.lax.linalg.symmetric_product(x, x),
    "update": lambda m: lambda x: m.lax.linalg.cholesky_update(x, x[0]),
    "three": lambda m: (
        lambda x: m.lax.linalg.tridiagonal_solve(x[0], x[1], x[2], x)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TEXTS)
def test_texts(name):
    ours, theirs = (
        str(m.make_jaxpr(TEXTS[name](m))(np.ones((3, 3), "f4"))) for m in (minijax, jax)
    )
    assert ours == theirs
