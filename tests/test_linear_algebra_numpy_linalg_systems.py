"""Solutions, determinants, pseudo-inverses and norms of matrices, beside NumPy."""

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import grad, jit, make_jaxpr, random, vmap
from minijax.test_util import check_grads
from tests.test_linear_algebra_lapack import numbers
from tests.test_linear_algebra_primitives import definite

linalg = jnp.linalg
SQUARE, TALL, WIDE = (numbers(s, "float64") for s in [(2, 4, 4), (5, 3), (3, 5)])
COMPLEX, VECTOR = numbers((4, 4), "complex128"), numbers((4,), "float64", 1)
SINGULAR = np.diag([1.0, 2.0, 3.0, 0.0])
EMPTY = np.zeros((0, 0))


@pytest.fixture(autouse=True)
def wide():
    with minijax.enable_x64():
        yield


SAME = [  # calls that are NumPy's
    (name, (x,), {})
    for name in "inv det slogdet cond".split()
    for x in (SQUARE, COMPLEX, SQUARE[0, :2, :2], SQUARE[:, :3, :3], SQUARE[:, :1, :1])
]
SAME += [("inv", (EMPTY,), {}), ("det", (EMPTY,), {}), ("slogdet", (EMPTY,), {})]
SAME += [("det", (SINGULAR,), {}), ("slogdet", (SINGULAR,), {})]
SAME += [("solve", pair, {}) for pair in ((SQUARE, VECTOR), (SQUARE[0], SQUARE))]
SAME += [("pinv", (x,), {}) for x in (SQUARE, TALL, WIDE, COMPLEX, SINGULAR)]
SAME += [("pinv", (TALL, 0.5), {}), ("pinv", (np.zeros((0, 3)),), {})]
SAME += [("matrix_rank", (x,), {}) for x in (SQUARE, TALL, SINGULAR, VECTOR)]
SAME += [("matrix_rank", (x, 1.0), {}) for x in (SQUARE, TALL)]
SAME += [("matrix_power", (SQUARE / 2, n), {}) for n in (-3, -1, 0, 1, 2, 3, 7, 12)]
SAME += [("svdvals", (x,), {}) for x in (SQUARE, TALL, COMPLEX)]
SAME += [("eigvalsh", (definite((3, 3), "complex128"),), {})]
SAME += [("cond", (SQUARE, p), {}) for p in (1, -1, 2, -2, "fro", np.inf, "nuc")]
SAME += [
    ("norm", (SQUARE, p), {"axis": axes, "keepdims": keep})
    for p in (2, -2, "nuc")
    for axes, keep in (((1, 2), False), ((2, 0), False), ((0, 2), True))
]
SAME += [
    ("multi_dot", ([numbers(s, "float64") for s in shapes],), {})
    for shapes in ([(3,), (3,)], [(3,), (3, 2), (2,)], [(2, 9), (9, 3), (3, 8), (8, 2)])
]
SAME += [("tensorinv", (numbers((4, 6, 8, 3), "float64"),), {})]
SAME += [("tensorinv", (numbers((6, 2, 3), "float64"), 1), {})]
SAME += [("tensorsolve", (numbers((2, 3, 6), "float64"), TALL[:2]), {})]
SAME += [
    ("tensorsolve", (numbers((6, 2, 3), "float64"), TALL[:2]), {"axes": (0,)}),
]


@pytest.mark.parametrize(("name", "args", "how"), SAME)
def test_as_numpy(name, args, how):
    ours = getattr(linalg, name)(*args, **how)
    theirs = getattr(np.linalg, name)(*args, **how)
    pairs = zip(*(x if isinstance(x, tuple) else [x] for x in (ours, theirs)))
    for x, y in pairs:
        assert np.shape(x) == np.shape(y)
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-9)


SMOOTH = {
    "solve": (linalg.solve, (SQUARE[0], VECTOR)),
    "solve matrix": (linalg.solve, (SQUARE, numbers((1, 4, 2), "float64", 2))),
    "inv": (linalg.inv, (SQUARE,)),
    "det": (linalg.det, (SQUARE,)),
    "det 3": (linalg.det, (SQUARE[:, :3, :3],)),
    "slogdet": (linalg.slogdet, (SQUARE,)),
    "pinv tall": (linalg.pinv, (TALL,)),
    "pinv wide": (linalg.pinv, (WIDE,)),
    "lstsq": (lambda a, b: linalg.lstsq(a, b)[0], (TALL, TALL[:, 0] ** 2)),
    "nuclear": (lambda x: linalg.norm(x, "nuc"), (TALL,)),
    "hermitian": (
        lambda x: abs(linalg.svd((x + x.T) / 2, hermitian=True)[0]), (SQUARE[0],)
    ),
}  # fmt: skip


@pytest.mark.parametrize("shape", [(2, 3, 4), (0, 2, 3), (2, 0, 3), (2, 3, 0)])
@pytest.mark.parametrize(
    "axes", [None, 1, -1, (), (1,), (-1,), (2, 0), (0, 1), [0, 1], (0, 1, 2)]
)
def test_lengths_along_axes(shape, axes):
    x = numbers(shape, "float64")
    for keep in (False, True):
        found = jnp.linalg.vector_norm(x, axis=axes, keepdims=keep)
        folded = tuple(axes) if isinstance(axes, list) else axes
        wanted = np.linalg.vector_norm(x, axis=folded, keepdims=keep)
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted)


@pytest.mark.parametrize("axes", [(0, 0), (1, -1), (0, 2), (-3,), 2])
def test_axes_of_lengths_are_those_of_the_array(axes):
    with pytest.raises(ValueError, match="duplicate value|out of bounds"):
        jnp.linalg.vector_norm(np.ones((2, 2)), axis=axes)


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives(name):
    f, args = SMOOTH[name]
    check_grads(f, args, order=2, modes=["fwd", "rev"], eps=1e-5, rtol=1e-3)


def test_derivative_of_a_singular_determinant():
    for x in (SINGULAR, np.diag([1.0, 0, 0, 2.0]), SINGULAR[:1, :1] * 0):
        slope = grad(linalg.det)(x)
        wanted = np.zeros_like(x)
        for place in np.ndindex(x.shape):
            moved = x.copy()
            moved[place] += 1.0
            wanted[place] = np.linalg.det(moved) - np.linalg.det(x)
        np.testing.assert_allclose(slope, wanted, atol=1e-12)


@pytest.mark.parametrize("hermitian", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_singular_value_decompositions(hermitian, dtype):
    x = definite((2, 4, 4), dtype) - 3 * np.eye(4, dtype=dtype)
    u, s, vh = linalg.svd(x, hermitian=hermitian)
    np.testing.assert_allclose((u * s[..., None, :]) @ vh, x, atol=1e-12)
    assert (np.diff(s) <= 0).all() and (np.asarray(s) >= 0).all()
    alone = linalg.svd(x, compute_uv=False, hermitian=hermitian)
    np.testing.assert_allclose(alone, s, rtol=1e-12)


@pytest.mark.parametrize("a", [TALL, WIDE, np.outer(TALL[:, 0], TALL[0])])
def test_least_squares(a):
    b = numbers((len(a), 2), "float64", 3)
    for side in (b, b[:, 0]):
        x, residuals, rank, s = linalg.lstsq(a, side, numpy_resid=True)
        wanted = np.linalg.lstsq(a, side)
        np.testing.assert_allclose(x, wanted[0], atol=1e-9)
        np.testing.assert_allclose(residuals, wanted[1], atol=1e-9)
        assert rank == wanted[2]
        np.testing.assert_allclose(s, wanted[3], atol=1e-9)


def test_one_factorization_serves_both_directions():
    text = str(make_jaxpr(grad(lambda b: linalg.solve(SQUARE[0], b).sum()))(VECTOR))
    assert text.count("= lu ") == 1


def test_cheapest_order():
    chain = [jnp.ones(shape) for shape in ((2, 50), (50, 3), (3, 40), (40, 1))]
    text = str(make_jaxpr(lambda *xs: linalg.multi_dot(xs))(*chain))
    assert "f64[3,1] = dot_general" in text and "f64[2,40]" not in text


def test_names_of_results():
    assert linalg.eigh(np.eye(2)).eigenvalues.shape == (2,)
    assert linalg.qr(TALL).R.shape == (3, 3) and linalg.qr(TALL, "r").shape == (3, 3)
    assert linalg.qr(TALL, "complete").Q.shape == (5, 5)
    assert linalg.svd(TALL).Vh.shape == (3, 3)
    assert linalg.slogdet(SQUARE).logabsdet.shape == (2,)
    assert linalg.inv(np.array([[2, 1], [1, 1]])).dtype == "float64"


REFUSED = [
    (lambda: linalg.solve(VECTOR, VECTOR), ValueError, "at least two"),
    (lambda: linalg.solve(SQUARE, np.ones((2, 4))), ValueError, "batch of vectors"),
    (lambda: linalg.inv(TALL), ValueError, r"\[..., n, n\]"),
    (lambda: linalg.det(TALL), ValueError, r"\[..., n, n\]"),
    (lambda: linalg.slogdet(SQUARE, method="x"), ValueError, "'x'"),
    (lambda: linalg.eigh(SQUARE, "X"), ValueError, "UPLO"),
    (lambda: linalg.qr(SQUARE, "x"), ValueError, "'x'"),
    (lambda: linalg.pinv(SQUARE, 0.1, rcond=0.1), ValueError, "only one"),
    (lambda: linalg.matrix_rank(SQUARE, 0.1, tol=0.1), ValueError, "only one"),
    (lambda: linalg.matrix_power(TALL, 2), TypeError, "square"),
    (lambda: linalg.matrix_power(VECTOR, 2), TypeError, "two-dimensional"),
    (lambda: linalg.multi_dot([TALL]), ValueError, "at least two"),
    (lambda: linalg.multi_dot([TALL, TALL]), ValueError, "must match"),
    (lambda: linalg.multi_dot([SQUARE, TALL]), ValueError, "two-dimensional"),
    (lambda: linalg.cond(VECTOR), ValueError, "2D"),
    (lambda: linalg.cond(EMPTY), ValueError, "not empty"),
    (lambda: linalg.cond(TALL, 1), ValueError, "square"),
    (lambda: linalg.lstsq(TALL, VECTOR), ValueError, "Leading"),
    (lambda: linalg.lstsq(SQUARE, SQUARE), TypeError, "two-dimensional"),
    (lambda: linalg.lstsq(TALL, np.ones((5, 1, 1))), TypeError, "one or two"),
    (lambda: linalg.tensorinv(TALL, 0), ValueError, "positive"),
    (lambda: linalg.tensorinv(TALL, 1), ValueError, "tensorinv"),
    (lambda: linalg.tensorsolve(TALL, VECTOR), ValueError, "leading shape"),
    (lambda: linalg.tensorsolve(TALL, TALL[:, 0]), ValueError, "prod"),
]


@pytest.mark.parametrize(("call", "error", "match"), REFUSED)
def test_refused(call, error, match):
    with pytest.raises(error, match=match):
        call()


KEY = random.key(0)


@pytest.mark.parametrize("method", ["cholesky", "eigh", "svd"])
def test_correlated_numbers(method):
    cov, mean = definite((3, 3)), np.array([1.0, -2.0, 0.5])
    draw = jit(
        lambda key: random.multivariate_normal(key, mean, cov, (), method=method)
    )
    x = np.asarray(vmap(draw)(random.split(KEY, 40_000)))
    np.testing.assert_allclose(x.mean(0), mean, atol=0.05)
    np.testing.assert_allclose(np.cov(x.T), cov, atol=0.05 * np.abs(cov).max())


def test_a_singular_covariance():
    cov = np.ones((2, 2))
    for method in ("eigh", "svd"):
        x = random.multivariate_normal(KEY, np.zeros(2), cov, (50,), method=method)
        np.testing.assert_allclose(x[:, 0], x[:, 1], atol=1e-6)
    assert np.isnan(random.multivariate_normal(KEY, np.zeros(2), -cov)).any()


@pytest.mark.parametrize(("n", "m"), [(3, 3), (2, 4), (4, 2), (1, 1), (0, 0)])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_orthogonal_matrices(n, m, dtype):
    x = np.asarray(random.orthogonal(KEY, n, (5,), dtype, m))
    assert x.shape == (5, n, m) and x.dtype == dtype
    short = x if n >= m else x.mT
    product = short.conj().mT @ short
    wanted = np.broadcast_to(np.eye(min(n, m)), product.shape)
    np.testing.assert_allclose(product, wanted, atol=1e-12)


def test_no_direction_is_preferred():
    x = np.asarray(random.orthogonal(KEY, 2, (4000,)))
    assert (
        abs(x.mean((0,))).max() < 0.05
        and abs((np.linalg.det(x) > 0).mean() - 0.5) < 0.05
    )


@pytest.mark.parametrize(
    ("args", "how", "match"),
    [
        ((np.zeros(2), np.eye(3)), {}, "n=2"),
        ((0.0, np.eye(3)), {}, "mean.ndim"),
        ((np.zeros(3), np.eye(3)), {"method": "qr"}, "method"),
        ((np.zeros(3), np.eye(3)), {"dtype": int}, "float dtype"),
        ((np.zeros((2, 3)), np.eye(3)), {"shape": (3,)}, "broadcast"),
    ],
)
def test_refused_samples(args, how, match):
    with pytest.raises(ValueError, match=match):
        random.multivariate_normal(KEY, *args, **how)
