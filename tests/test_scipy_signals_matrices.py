"""What spectra, functions of matrices and Schur forms have to satisfy, without JAX."""

import numpy as np
import pytest

from minijax import enable_x64, vmap
from minijax import numpy as jnp
from minijax.lax import linalg
from minijax.scipy import linalg as matrices
from minijax.scipy import signal


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
