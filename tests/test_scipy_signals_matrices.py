"""What spectra, functions of matrices and Schur forms have to satisfy, without JAX."""

import numpy as np
import pytest

from minijax import enable_x64, grad, jit, vmap
from minijax import numpy as jnp
from minijax.lax import linalg
from minijax.scipy import linalg as matrices
from minijax.scipy import signal, special, stats
from minijax.test_util import check_grads
from tests.commands import paired


@pytest.fixture(autouse=True)
def precise():
    with enable_x64():
        yield


def drawn(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


@pytest.mark.parametrize("count", [1, 2, 3, 17])
def test_a_line_is_its_own_trend(count):
    line = 3 - 0.5 * np.arange(count)
    assert np.allclose(signal.detrend(line), 0, atol=1e-12)
    assert np.allclose(signal.detrend(line + 1, type="constant").sum(), 0, atol=1e-12)


@pytest.mark.parametrize("nperseg", [7, 8])
def test_a_signal_comes_back_from_its_pieces(nperseg):
    x = drawn(2, 40)
    pieces = signal.stft(x, nperseg=nperseg)[2]
    assert np.allclose(signal.istft(pieces, nperseg=nperseg)[1][:, :40], x)


def test_power_is_the_variance():
    x = drawn(64)
    frequencies, power = signal.welch(x, window=np.ones(64), detrend=False)
    assert np.allclose(power.sum() * frequencies[1], (x * x).mean())


def test_convolutions():
    x, w = drawn(9), drawn(4, seed=1)
    for mode in ("full", "same", "valid"):
        assert np.allclose(signal.fftconvolve(x, w, mode), np.convolve(x, w, mode))


@pytest.mark.parametrize("n", [0, 1, 2, 6])
@pytest.mark.parametrize("turned", [1, 1j])
def test_forms_are_similar(n, turned):
    x = drawn(3, n, n) * turned + drawn(3, n, n, seed=1)
    t, z = linalg.schur(x)
    assert np.allclose(z @ t @ z.mT.conj(), x) and np.allclose(np.tril(t, -2), 0)
    if n:  # JAX, too, refuses a Hessenberg form of nothing
        a, taus = linalg.hessenberg(x)
        q = linalg.householder_product(a[:, 1:, :-1], taus)
        assert np.allclose(np.triu(a[:, 1:, 1:], -1), q.mT.conj() @ x[:, 1:, 1:] @ q)


SIZES = [1e-305, 1e-200, 1e-160, 1e-150, 1e-10, 1e10, 1e160, 1e300]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("n", [5, 33])
@pytest.mark.parametrize("kind", ["of ones", "real", "complex"])
def test_forms_of_tiny_and_huge_matrices(size, n, kind):
    x = np.ones((n, n)) if kind == "of ones" else drawn(n, n)
    x = x + 1j * drawn(n, n, seed=1) if kind == "complex" else x
    t, z = map(np.asarray, linalg.schur(x * size))
    q, r, order = map(np.asarray, linalg.qr(x * size, pivoting=True))
    h, turn = map(np.asarray, matrices.hessenberg(x * size, calc_q=True))
    _, main, side, _ = map(np.asarray, linalg.tridiagonal((x + x.conj().T) * size))
    for unitary in (z, q, turn):
        assert np.allclose(unitary @ unitary.conj().T, np.eye(n), atol=1e-11)
    assert np.allclose(z @ (t / size) @ z.conj().T, x, atol=1e-11)
    assert np.allclose(q @ (r / size), x[:, order], atol=1e-11)
    assert np.all(np.diff(np.abs(np.diag(r / size))) < 1e-11)
    assert np.allclose(turn @ (h / size) @ turn.conj().T, x, atol=1e-11)
    main, side = np.diag(main / size), np.diag(side / size, 1)
    found = np.linalg.eigvalsh(main + side + side.T)
    assert np.allclose(found, np.linalg.eigvalsh(x + x.conj().T), atol=1e-11)


@pytest.mark.parametrize("size", [1e-100, 1e-160, 1e-200])
def test_what_is_small_beside_the_rest(size):
    columns = np.diag([size, 1.0, 2 * size, 3 * size])
    assert np.array_equal(linalg.qr(columns, pivoting=True)[2], [1, 3, 2, 0])
    x = np.eye(4)
    x[2:, 2:] = np.array([[3, 5], [-2, 1]]) * size
    for turned in (1, 1 + 0j):
        t, z = map(np.asarray, linalg.schur(x * turned))
        assert np.allclose(z @ t @ z.conj().T, x)
        found = t[2:, 2:] / size  # a pair of complex eigenvalues, 2 + 3j and 2 - 3j
        assert np.allclose(np.poly(found), [1, -4, 13])


def test_a_batch_of_matrices_of_many_sizes():
    x = drawn(4, 5, 5) * np.array([1e-300, 1e-160, 1, 1e200])[:, None, None]
    q, r, order = map(np.asarray, linalg.qr(x, pivoting=True))
    for one, *found in zip(x, q, r, order):
        for part, wanted in zip(found, linalg.qr(one, pivoting=True)):
            assert np.allclose(part / abs(part).max(), wanted / abs(wanted).max())
        scale = abs(one).max()
        assert np.allclose(found[0] @ (found[1] / scale), one[:, found[2]] / scale)


def test_functions_of_matrices():
    x = drawn(5, 5) @ drawn(5, 5).T + np.eye(5)
    root = matrices.sqrtm(x)
    assert np.allclose(root @ root, x)
    assert np.allclose(matrices.funm(x, jnp.sqrt), root)
    y = matrices.solve_sylvester(x, np.eye(5), drawn(5, 5))
    assert np.allclose(x @ y + y, drawn(5, 5))


def test_three_diagonals():
    low, main, up = drawn(2, 6), drawn(2, 6) + 5, drawn(2, 6, seed=1)
    right = drawn(2, 6, 3)
    whole = np.zeros((2, 6, 6))
    for k in range(2):
        whole[k] = np.diag(main[k]) + np.diag(low[k, 1:], -1) + np.diag(up[k, :-1], 1)
    low[:, 0] = up[:, -1] = 0
    for solve in (linalg.tridiagonal_solve, vmap(linalg.tridiagonal_solve)):
        assert np.allclose(whole @ np.asarray(solve(low, main, up, right)), right)
    found = matrices.eigh_tridiagonal(main[0], up[0, :-1], eigvals_only=True)
    symmetric = np.diag(main[0]) + np.diag(up[0, :-1], 1) + np.diag(up[0, :-1], -1)
    assert np.allclose(found, np.linalg.eigvalsh(symmetric))


def test_one_right_side_for_each_matrix():
    a, b = drawn(3, 2, 2) + 4 * np.eye(2), drawn(3, 2)
    definite, upper = a @ a.swapaxes(1, 2), np.triu(a)
    factors = matrices.lu_factor(jnp.asarray(a))
    for matrix, x in (
        (a, matrices.lu_solve(factors, b)),
        (upper, matrices.solve_triangular(upper, b)),
        (definite, matrices.cho_solve(matrices.cho_factor(definite), b)),
        (definite, matrices.solve(definite, b, assume_a="pos")),
    ):
        assert np.allclose(np.einsum("kij,kj->ki", matrix, x), b)


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("shape", [(), (3,), (3, 1)])
def test_one_vector_for_all_matrices(n, shape):
    a, b = drawn(*shape, n, n) + 4 * np.eye(n), drawn(n)
    for trans, matrices_meant in ((0, a), (1, a.swapaxes(-2, -1))):
        found = matrices.lu_solve(matrices.lu_factor(a), b, trans)
        assert found.shape == (*shape, n)
        assert np.allclose(np.einsum("...ij,...j->...i", matrices_meant, found), b)


@pytest.mark.parametrize("turned, lower", paired([0, 1j], [False, True]))
def test_slopes_of_solutions_of_definite_systems(turned, lower):
    def size(a, b):
        x = matrices.solve((a + a.mT.conj()) / 2, b, lower, assume_a="pos")
        return jnp.sum(jnp.abs(x @ weights) ** 2)

    root, b = drawn(3, 3) + turned * drawn(3, 3, seed=1), drawn(3, 2, seed=2)
    a, b = root @ root.conj().T + np.eye(3), b + turned * drawn(3, 2, seed=3)
    weights = drawn(2) + turned * drawn(2, seed=4)
    for fun in (size, jit(size)):
        check_grads(fun, (a, b), order=2, modes=("fwd", "rev"), atol=1e-4, rtol=1e-4)
    stacked = np.stack([b, 2j * b]) if turned else np.stack([b, 3 * b])
    every = jit(vmap(grad(size, 1), (None, 0)))(a, stacked)
    assert np.allclose(every, [grad(size, 1)(a, x) for x in stacked])


def test_what_linear_algebra_refuses():
    a = np.eye(2)
    with pytest.raises(ValueError, match="'trans' value"):
        matrices.lu_solve(matrices.lu_factor(a), np.ones(2), trans=3)
    with pytest.raises(ValueError, match="takes one matrix"):
        matrices.lu(drawn(2, 3, 3))
    with pytest.raises(NotImplementedError, match="b=None"):
        matrices.eigh(a, a)
    with pytest.raises(ValueError, match="Spectra are of float32"):
        signal.stft(np.ones(9, np.float16))


@pytest.mark.parametrize("count", [1, 20])
def test_the_most_frequent_value_may_be_no_number(count):
    found = stats.mode(np.repeat([np.nan, 1.0, np.nan], count))
    assert np.isnan(found.mode) and found.count == 2 * count
    found = stats.mode(np.repeat([1.0, np.nan, 1.0], count))
    assert found.mode == 1 and found.count == 2 * count


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_densities_are_of_the_dtype_of_their_arguments(dtype):
    x = jnp.asarray(0.5, dtype)
    for name in ("norm", "cauchy", "laplace", "chi2", "wrapcauchy"):
        family = getattr(stats, name)
        shapes = [x] if name in ("chi2", "wrapcauchy") else []
        assert family.pdf(x, *shapes).dtype == dtype, name
    if dtype == "float32":
        of_two = stats.multivariate_normal.logpdf
        assert of_two(*np.zeros((2, 2), dtype), np.eye(2, dtype=dtype)).dtype == dtype


def test_narrow_and_real_parts_stay_what_they_are():
    half = jnp.array([-1, -0.5, 2], "bfloat16")
    assert special.gammasgn(half).dtype == special.gamma(half).dtype == "bfloat16"
    small = stats.bernoulli.ppf(2, np.float32([0.5]))
    assert small.dtype == "float32" and not small.weak_type
    assert matrices.lu(np.eye(2) * 1j)[0].dtype == "float64"
