"""Linear algebra beside real JAX: values, dtypes, derivatives, batches, texts."""

import itertools
from functools import partial

import jax
import numpy as np
import pytest

import minijax
from tests.commands import paired, some
from tests.test_linear_algebra_lapack import DTYPES, numbers
from tests.test_linear_algebra_numpy_linalg_systems import SAME, SMOOTH

from .raised import raised

SHAPES = [(1, 1), (3, 3), (2, 4, 4), (0, 3, 3), (0, 0), (2, 0, 0)]
ANY = [*SHAPES, (5, 3), (3, 5), (2, 4, 2), (3, 0), (0, 3)]


@pytest.fixture(autouse=True)
def wide():
    with minijax.enable_x64(), jax.enable_x64(True):
        yield


def agree(call, *args, rtol=None, whole=False):
    """Fail unless a function of arrays has the same results in both packages.

    Args:
      whole: whether XLA compiles JAX's function as one program, which is quicker than
        one for each of its primitives.
    """
    theirs = jax.jit(call(jax)) if whole else call(jax)
    both = call(minijax)(*args), theirs(*args)
    ours, theirs = (map(np.asarray, jax.tree.leaves(found)) for found in both)
    for x, y in zip(ours, theirs, strict=True):
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        eps = np.finfo(x.dtype).eps if x.dtype.kind in "fc" else 0
        scale = np.abs(y).max(initial=1, where=np.isfinite(y))
        np.testing.assert_allclose(x, y, rtol=0, atol=(rtol or 300 * eps) * scale)


def definite(shape, dtype):
    x = numbers(shape, dtype)
    return x @ x.conj().mT + np.eye(shape[-1], dtype=dtype)


@pytest.mark.parametrize(("shape", "dtype"), paired(SHAPES, DTYPES))
def test_square_ones(shape, dtype):
    x = definite(shape, dtype)
    agree(lambda m: m.lax.linalg.cholesky, x)
    agree(lambda m: lambda x: m.lax.linalg.cholesky(x, symmetrize_input=False), x)
    agree(lambda m: lambda x: m.lax.linalg.eigh(x)[1], x)
    for lower in (False, True):
        how = {"lower": lower, "symmetrize_input": False}
        agree(lambda m, how=how: lambda x: m.lax.linalg.eigh(x, **how)[1], x + 1)


@pytest.mark.parametrize(("shape", "dtype"), paired(ANY, DTYPES))
def test_signs_as_lapack_gives_them(shape, dtype):
    x = numbers(shape, dtype)
    agree(lambda m: m.lax.linalg.lu, x)
    for full in (False, True):
        agree(lambda m, f=full: lambda x: m.lax.linalg.qr(x, full_matrices=f), x)
        agree(lambda m, f=full: lambda x: m.lax.linalg.svd(x, full_matrices=f), x)
    agree(lambda m: lambda x: m.lax.linalg.svd(x, compute_uv=False), x)


@pytest.mark.parametrize(
    ("count", "dtype"), paired([0, 1, 5], ["float32", "complex128"])
)
def test_triangles(dtype, count):
    names = "left_side lower transpose_a conjugate_a unit_diagonal".split()
    a = numbers((2, 4, 4), dtype) / 4 + 2 * np.eye(4, dtype=dtype)
    for flags in itertools.product([False, True], repeat=5):
        b = numbers((2, 4, count) if flags[0] else (2, count, 4), dtype)
        solve = partial(solution, **dict(zip(names, flags)))
        agree(solve, a, b)


def solution(m, **how):
    return lambda a, b: m.lax.linalg.triangular_solve(a, b, **how)


def test_zeros_and_nan():
    zero, nan = np.zeros((2, 2)), np.array([[1.0, np.nan], [2.0, 3.0]])
    agree(lambda m: m.lax.linalg.triangular_solve, zero, np.ones((1, 2)))
    agree(lambda m: m.lax.linalg.triangular_solve, zero, np.zeros((1, 2)))
    for f in ("cholesky", "eigh", "svd"):
        agree(lambda m, f=f: getattr(m.lax.linalg, f), nan)
    agree(lambda m: m.lax.linalg.lu, zero)
    agree(lambda m: m.lax.linalg.cholesky, np.stack([np.eye(2), -np.eye(2)]))
    half = np.eye(2, dtype="float16") * 2
    agree(lambda m: m.lax.linalg.triangular_solve, half, half)


TEXTS = {
    "cholesky": lambda m: lambda x: m.lax.linalg.cholesky(x),
    "bare cholesky": lambda m: (
        lambda x: m.lax.linalg.cholesky(x, symmetrize_input=False)
    ),
    "bare eigh": lambda m: lambda x: m.lax.linalg.eigh(x, symmetrize_input=False),
    "eigh": lambda m: lambda x: m.lax.linalg.eigh(x),
    "lu": lambda m: lambda x: m.lax.linalg.lu(x),
    "qr": lambda m: lambda x: m.lax.linalg.qr(x),
    "svd": lambda m: lambda x: m.lax.linalg.svd(x),
    "values": lambda m: lambda x: m.lax.linalg.svd(x, compute_uv=False),
    "pivots": lambda m: (
        lambda x: m.lax.linalg.lu_pivots_to_permutation(np.array([1, 1], "int32"), 3)
    ),
    "triangles": lambda m: lambda x: m.lax.linalg.triangular_solve(x, x, lower=True),
    "batch": lambda m: m.vmap(lambda x: m.lax.linalg.svd(x), in_axes=1),
}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_texts(name, dtype):
    x = np.ones((3, 3, 3) if name == "batch" else (3, 3), dtype)
    ours, theirs = (str(m.make_jaxpr(TEXTS[name](m))(x)) for m in (minijax, jax))
    theirs = theirs.replace(" sharding=None", "").replace("[input_dtype=complex64]", "")
    assert ours == theirs


@pytest.mark.parametrize(("name", "args", "how"), SAME)
def test_numpy_names(name, args, how):
    def call(m):
        return lambda *args: getattr(m.numpy.linalg, name)(*args, **how)

    agree(call, *args, rtol=1e-9)


def scalar(m, f):
    """A number that depends on all results, and on no sign of a column."""
    jnp = m.numpy

    def g(*xs):
        leaves = m.tree_util.tree_leaves(f(*xs))
        weights = [np.cos(np.arange(y.size)).reshape(y.shape) for y in leaves]
        return sum(
            (abs(y) * w).sum() + jnp.real(y * y).sum() for y, w in zip(leaves, weights)
        )

    return g


DIFFERENTIABLE = {
    "cholesky": (lambda la: la.cholesky, (3, 3)),
    "bare cholesky": (
        lambda la: lambda x: la.cholesky(x, symmetrize_input=False),
        (3, 3),
    ),
    "eigh": (lambda la: la.eigh, (2, 3, 3)),
    "bare eigh": (lambda la: lambda x: la.eigh(x, symmetrize_input=False), (3, 3)),
    "lu": (lambda la: lambda x: la.lu(x)[0], (2, 3, 3)),
    "lu wide": (lambda la: lambda x: la.lu(x)[0], (2, 4)),
    "lu tall": (lambda la: lambda x: la.lu(x)[0], (4, 2)),
    "qr": (lambda la: la.qr, (2, 3, 3)),
    "qr wide": (lambda la: la.qr, (2, 4)),
    "qr tall": (lambda la: lambda x: la.qr(x, full_matrices=False), (4, 2)),
    "qr full": (lambda la: la.qr, (4, 2)),
    "svd": (lambda la: la.svd, (3, 3)),
    "svd tall": (lambda la: lambda x: la.svd(x, full_matrices=False), (4, 2)),
    "svd wide": (lambda la: lambda x: la.svd(x, full_matrices=False), (2, 2, 4)),
    "values": (lambda la: lambda x: la.svd(x, compute_uv=False), (3, 4)),
    "triangles": (
        lambda la: (
            lambda x: la.triangular_solve(
                x, x, lower=True, transpose_a=True, conjugate_a=True
            )
        ),
        (2, 3, 3),
    ),
}


@pytest.mark.parametrize(
    "name, dtype", some(itertools.product(DIFFERENTIABLE, ["float64", "complex128"]), 2)
)
def test_derivatives(name, dtype):
    f, shape = DIFFERENTIABLE[name]
    x = numbers(shape, dtype) + np.eye(*shape[-2:]) * np.arange(2, 2 + shape[-1])
    x = x.astype(dtype)
    push = np.cos(np.arange(x.size)).reshape(x.shape).astype(dtype)

    def slope(m):
        return m.grad(scalar(m, f(m.lax.linalg)))

    def second(m):
        return lambda x: m.grad(lambda x: m.numpy.real(slope(m)(x) * push).sum())(x)

    agree(lambda m: lambda x: m.jvp(f(m.lax.linalg), (x,), (push,)), x, rtol=1e-8)
    agree(slope, x, rtol=1e-8)
    if dtype == "float64":
        agree(lambda m: m.jit(m.vmap(slope(m))), np.stack([x, 1.1 * x]), rtol=1e-8)
    else:
        agree(lambda m: m.jit(second(m)), x, rtol=1e-7)


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_of_numpy_names(name):
    f, args = SMOOTH[name]
    if f.__module__ == __name__ or name in ("lstsq", "nuclear", "hermitian"):
        return
    word = name.split()[0]

    def slopes(m):
        g = scalar(m, lambda *xs: getattr(m.numpy.linalg, word)(*xs))
        return m.grad(g, tuple(range(len(args))))

    def second(m):
        return m.grad(lambda *xs: sum((y * y).sum() for y in slopes(m)(*xs)))

    agree(slopes, *args, rtol=1e-8)
    agree(lambda m: m.jit(second(m)), *args, rtol=1e-6)


KEYWORDS = [
    {}, {"shape": (4, 2)}, {"shape": (5,), "method": "eigh"},
    {"shape": (5,), "method": "svd"}, {"dtype": "float16"},
]  # fmt: skip


@pytest.mark.parametrize("how", KEYWORDS, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_correlated_numbers(how, dtype):
    mean, cov = np.arange(3, dtype=dtype), definite((3, 3), dtype)

    def draw(m):
        key = m.random.key(3)
        return lambda mean, cov: m.random.multivariate_normal(key, mean, cov, **how)

    agree(draw, mean, cov, rtol=1e-5)
    agree(draw, np.stack([mean] * 2), cov) if "shape" not in how else None
    agree(lambda m: m.grad(lambda c: draw(m)(mean, c).sum()), cov, rtol=1e-3)


HOWS = [{}, {"shape": (2,)}, {"m": 2}, {"m": 5}]


@pytest.mark.parametrize("dtype, how", some(itertools.product(DTYPES, HOWS), 2))
def test_orthogonal_matrices(how, dtype):
    for n in (0, 1, 3):
        agree(
            lambda m, n=n: (
                lambda: m.random.orthogonal(m.random.key(5), n, dtype=dtype, **how)
            ),
            rtol=1e-4 if dtype in ("float32", "complex64") else 1e-10,
        )


MISTAKES = [
    lambda m: m.lax.linalg.cholesky(m.numpy.ones((2, 3))),
    lambda m: m.lax.linalg.cholesky(m.numpy.ones(3)),
    lambda m: m.lax.linalg.lu(m.numpy.ones(3)),
    lambda m: m.lax.linalg.lu(m.numpy.ones((3, 3), int)),
    lambda m: m.lax.linalg.cholesky(m.numpy.eye(3, dtype="float16")),
    lambda m: m.lax.linalg.triangular_solve(m.numpy.eye(3), m.numpy.ones((3, 2))),
    lambda m: m.lax.linalg.triangular_solve(m.numpy.eye(3), m.numpy.eye(3) * 1j),
    lambda m: m.lax.linalg.triangular_solve(m.numpy.ones((2, 3)), m.numpy.ones((2, 3))),
    lambda m: m.lax.linalg.lu_pivots_to_permutation(m.numpy.ones(3, "int32"), 2),
    lambda m: m.grad(lambda x: m.lax.linalg.svd(x)[0].sum())(m.numpy.ones((2, 3))),
    lambda m: m.numpy.linalg.solve(m.numpy.ones(3), m.numpy.ones(3)),
    lambda m: m.numpy.linalg.solve(m.numpy.ones((2, 4, 4)), m.numpy.ones((2, 4))),
    lambda m: m.numpy.linalg.inv(m.numpy.ones((2, 3))),
    lambda m: m.numpy.linalg.det(m.numpy.ones((2, 3))),
    lambda m: m.numpy.linalg.eigh(m.numpy.eye(2), "X"),
    lambda m: m.numpy.linalg.qr(m.numpy.eye(2), "x"),
    lambda m: m.numpy.linalg.cond(m.numpy.ones(3)),
    lambda m: m.numpy.linalg.matrix_power(m.numpy.ones((2, 3)), 2),
    lambda m: m.numpy.linalg.multi_dot([m.numpy.eye(2), m.numpy.eye(3)]),
    lambda m: m.random.multivariate_normal(m.random.key(0), np.zeros(2), np.eye(3)),
    lambda m: m.random.multivariate_normal(m.random.key(0), 0.0, np.eye(3)),
    lambda m: m.random.orthogonal(m.random.key(0), 3, dtype=int),
]


@pytest.mark.parametrize("number", range(len(MISTAKES)))
def test_mistakes(number):
    ours, theirs = (raised(lambda m=m: MISTAKES[number](m)) for m in (minijax, jax))
    assert ours[0] == theirs[0]


def test_eigenvalues_of_any_matrix():
    x, t = np.random.default_rng(0).normal(size=(2, 2, 4, 4))

    def call(m):
        def one(x):
            w, u, v = m.lax.linalg.eig(x, enable_eigvec_derivs=True)
            return w, abs(u), abs(v)

        return lambda x: m.jvp(m.jit(m.vmap(one)), (x,), (t,))

    agree(call, x)
    agree(lambda m: lambda x: m.lax.linalg.eig(x)[0], x + 1j * t)
    texts = [m.make_jaxpr(m.numpy.linalg.eig)(x) for m in (minijax, jax)]
    assert str(texts[0]) == str(texts[1])
    for m in (minijax, jax):
        with pytest.raises(NotImplementedError, match="enable_eigvec_derivs"):
            m.jvp(m.numpy.linalg.eig, (x,), (t,))
