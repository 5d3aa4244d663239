"""Factorizations: products of their factors, derivatives, batches, refusals, costs."""

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import grad, jit, jvp, lax, make_jaxpr, vmap
from minijax.lax import linalg
from minijax.test_util import check_grads
from tests.test_linear_algebra_lapack import DTYPES, numbers

SHAPES = [(1, 1), (3, 3), (2, 4, 4), (0, 3, 3), (0, 0), (2, 0, 0)]
ANY = [*SHAPES, (5, 3), (3, 5), (2, 4, 2), (3, 0), (0, 3)]


@pytest.fixture(autouse=True)
def wide():
    with minijax.enable_x64():
        yield


def definite(shape, dtype="float64"):
    x = numbers(shape, dtype)
    return x @ x.conj().mT + np.eye(shape[-1], dtype=dtype)


def near(x, y):
    x, y = np.asarray(x), np.asarray(y)
    eps = np.finfo(y.dtype).eps
    assert (x.shape, x.dtype) == (y.shape, y.dtype)
    assert np.abs(x - y).max(initial=0) <= 500 * eps * np.abs(y).max(initial=1)


def adjoint(x):
    return np.asarray(x).conj().mT


def orthonormal(x):
    x = np.asarray(x)
    near(
        adjoint(x) @ x,
        np.broadcast_to(
            np.eye(x.shape[-1], dtype=x.dtype), adjoint(x).shape[:-1] + x.shape[-1:]
        ),
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_square_ones(shape, dtype):
    x = definite(shape, dtype)
    for wrap in (lambda f: f, jit):
        low = np.asarray(wrap(linalg.cholesky)(x))
        near(low @ adjoint(low), x)
        assert not np.triu(low, 1).any()
        v, w = wrap(linalg.eigh)(x)
        near(np.asarray(v) * np.asarray(w)[..., None, :].astype(dtype) @ adjoint(v), x)
        assert w.dtype == np.zeros(0, dtype).real.dtype and (np.diff(w) >= 0).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", ANY)
def test_all_shapes(shape, dtype):
    x, k = numbers(shape, dtype), min(shape[-2:])
    for full in (False, True):
        q, r = linalg.qr(x, full_matrices=full)
        near(np.asarray(q) @ np.asarray(r), x)
        orthonormal(q)
        assert not np.tril(r, -1).any()
        u, s, vh = linalg.svd(x, full_matrices=full)
        orthonormal(u)
        orthonormal(adjoint(vh))
        scaled = np.asarray(u)[..., :k] * np.asarray(s)[..., None, :].astype(dtype)
        near(scaled @ np.asarray(vh)[..., :k, :], x)
    near(linalg.svd(x, compute_uv=False), np.asarray(s))
    both, pivots, rows = linalg.lu(x)
    low = np.tril(both[..., :k], -1) + np.eye(shape[-2], k, dtype=dtype)
    near(
        low @ np.triu(both[..., :k, :]),
        np.take_along_axis(x, np.asarray(rows)[..., None], -2),
    )
    found = linalg.lu_pivots_to_permutation(pivots, shape[-2])
    assert np.array_equal(found, rows)


def real_parts(f):
    """A function of all numbers in the results that does not see signs of columns."""
    return lambda *xs: [abs(y) for y in f(*xs)]


DIFFERENTIABLE = {
    "cholesky": (lambda x: [linalg.cholesky(x)], definite((2, 3, 3))),
    "cholesky complex": (
        lambda x: [linalg.cholesky(x)], definite((3, 3), "complex128")
    ),
    "eigh": (linalg.eigh, definite((2, 3, 3))),
    "lu": (lambda x: linalg.lu(x)[:1], numbers((2, 3, 3), "float64")),
    "lu wide": (lambda x: linalg.lu(x)[:1], numbers((2, 4), "float64")),
    "lu tall": (lambda x: linalg.lu(x)[:1], numbers((4, 2), "complex128")),
    "qr": (linalg.qr, numbers((2, 3, 3), "float64")),
    "qr wide": (linalg.qr, numbers((2, 4), "float64")),
    "qr tall": (lambda x: linalg.qr(x, full_matrices=0), numbers((4, 2), "complex128")),
    "qr full": (linalg.qr, numbers((4, 2), "float64")),
    "svd": (linalg.svd, numbers((3, 3), "float64")),
    "svd tall": (lambda x: linalg.svd(x, full_matrices=0), numbers((4, 2), "float64")),
    "svd wide": (lambda x: linalg.svd(x, full_matrices=0), numbers((2, 4), "float64")),
    "singular values": (
        lambda x: [linalg.svd(x, compute_uv=False)], numbers((3, 4), "complex128")
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_derivatives(name):
    f, x = DIFFERENTIABLE[name]
    check_grads(real_parts(f), (x,), order=2, modes=["fwd", "rev"], eps=1e-5, rtol=1e-3)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_batches_are_loops(name):
    f, x = DIFFERENTIABLE[name]
    many = np.stack([x, 1.5 * x, x + 0.1], -1)

    def slope(x):
        return grad(lambda x: sum(abs(y).sum() for y in f(x)))(x.real)

    for g in (real_parts(f), slope):
        for call in (vmap(g, in_axes=x.ndim), jit(vmap(g, in_axes=x.ndim))):
            ours = minijax.tree_util.tree_leaves(call(many))
            ones = [minijax.tree_util.tree_leaves(g(many[..., i])) for i in range(3)]
            for y, parts in zip(ours, zip(*ones), strict=True):
                np.testing.assert_allclose(y, np.stack(parts), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("shape", [(0, 0), (2, 0, 0)])
def test_eigenvalues_of_nothing_have_derivatives(shape):
    x = np.zeros(shape)
    for wrap in (lambda f: f, jit):
        w, w_dot = wrap(lambda x: jvp(jnp.linalg.eigvals, (x,), (x,)))(x)
        assert w.shape == w_dot.shape == shape[:-1]
        assert wrap(grad(lambda x: abs(jnp.linalg.eigvals(x)).sum()))(x).shape == shape


@pytest.mark.parametrize("dims", [(0, None), (None, 2), (None, 0), (2, 1), (0, 0)])
@pytest.mark.parametrize("left", [False, True])
def test_batches_of_triangles(dims, left):
    shapes = [(4, 4), (4, 2) if left else (2, 4)]
    args = []
    for shape, dim in zip(shapes, dims):
        parts = [
            numbers(shape, "float64", i) / 4 + 2 * np.eye(*shape) for i in range(3)
        ]
        args.append(parts[0] if dim is None else np.stack(parts, dim))

    def f(a, b):
        return linalg.triangular_solve(a, b, left_side=left, lower=True)

    for i, y in enumerate(vmap(f, dims)(*args)):
        one = [x if d is None else np.take(x, i, d) for x, d in zip(args, dims)]
        near(y, np.asarray(f(*one)))


def test_shared_matrix_is_gone_through_once():
    a, b = 2 * np.eye(3), np.ones((5, 3, 2))
    text = str(
        make_jaxpr(vmap(lambda b: linalg.triangular_solve(a, b, left_side=True)))(b)
    )
    assert "f64[3,10] = triangular_solve" in text


def test_symmetric_tangents_alone():
    x = definite((3, 3))
    push = np.eye(3, k=1)
    _, slope = jvp(linalg.cholesky, (x,), (push,))
    step = 1e-6
    moved = np.asarray(linalg.cholesky(x + step * push)) - np.asarray(
        linalg.cholesky(x)
    )
    np.testing.assert_allclose(slope, moved / step, atol=1e-5)
    lower = linalg.cholesky(x + 5 * push, symmetrize_input=False)
    near(lower, np.asarray(linalg.cholesky(x)))


def test_triangles_that_are_read():
    x = definite((3, 3))
    for lower, k in ((True, 1), (False, -1)):
        dirty = x + np.eye(3, k=k)
        found = linalg.eigh(dirty, lower=lower, symmetrize_input=False)[1]
        near(found, np.asarray(linalg.eigh(x)[1]))


def test_what_has_no_factor_is_nan():
    x = np.stack([np.eye(2), -np.eye(2)])
    for f in (linalg.cholesky, jit(linalg.cholesky), vmap(linalg.cholesky)):
        low = f(x)
        assert np.array_equal(low[0], np.eye(2)) and np.isnan(low[1]).any()
    bad = np.full((2, 2), np.nan)
    assert all(np.isnan(y).all() for y in (*linalg.eigh(bad), *linalg.svd(bad)))


def test_equal_eigenvalues_have_no_vectors():
    assert np.isnan(grad(lambda x: linalg.eigh(x)[0].sum())(np.eye(2))).all()
    assert np.array_equal(grad(lambda x: linalg.eigh(x)[1].sum())(np.eye(2)), np.eye(2))


REFUSED = [
    (lambda: linalg.cholesky(jnp.ones((2, 3))), TypeError, "incompatible"),
    (lambda: linalg.cholesky_p.bind(jnp.ones((2, 3))), ValueError, r"square.*\(2, 3\)"),
    (lambda: linalg.lu(jnp.ones(3)), TypeError, "rank at least 2"),
    (lambda: linalg.lu(jnp.ones((2, 2), int)), TypeError, "lu does not accept"),
    (lambda: linalg.eigh_p.bind(
        jnp.ones((2, 3)), lower=True, sort_eigenvalues=True, subset_by_index=None,
        algorithm=None), ValueError, r"\[..., n, n\]"),
    (lambda: linalg.eigh(jnp.eye(3), subset_by_index=(0, 1)),
     NotImplementedError, "all"),
    (lambda: linalg.svd(jnp.eye(3), subset_by_index=(0, 1)),
     NotImplementedError, "all"),
    (lambda: grad(lambda x: linalg.svd(x)[0].sum())(jnp.ones((2, 3))),
     NotImplementedError, "full matrices"),
    (lambda: linalg.triangular_solve(jnp.ones((2, 3)), jnp.ones((2, 3))), ValueError,
     "square"),
    (lambda: linalg.triangular_solve(jnp.eye(3), jnp.ones((3, 2))), ValueError,
     "Incompatible"),
    (lambda: linalg.triangular_solve(jnp.ones((2, 3, 3)), jnp.ones((4, 3, 3))),
     ValueError, "batch dimensions"),
    (lambda: linalg.triangular_solve(jnp.ones((1, 2, 3, 3)), jnp.ones((3, 3))),
     TypeError, "number of batch"),
    (lambda: linalg.triangular_solve(jnp.eye(3), jnp.eye(3, dtype=complex)), TypeError,
     "same dtypes"),
    (lambda: linalg.lu_pivots_to_permutation(jnp.array([1, 2], "int32"), 1), ValueError,
     "Output permutation size 1"),
    (lambda: linalg.lu_pivots_to_permutation(jnp.array([1.0]), 1), TypeError, "int32"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "match"), REFUSED)
def test_refused(call, error, match):
    with pytest.raises(error, match=match):
        call()


def test_half_precision_is_for_triangles():
    half = jnp.eye(2, dtype="float16") * 2
    assert linalg.triangular_solve(half, half).dtype == "float16"
    with pytest.raises(NotImplementedError, match="float16"):
        linalg.cholesky(half)


def test_costs():
    def flops(f, *xs):
        return jit(f).lower(*xs).cost_analysis()["flops"]

    x = jnp.eye(30)
    assert (
        flops(lambda a, b: linalg.triangular_solve(a, b), x, jnp.ones((2, 30))) == 1800
    )
    assert flops(lax.linalg.cholesky_p.bind_all, x) == 9000
    assert flops(linalg.lu_p.bind, x) == 18000
