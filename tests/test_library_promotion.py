"""Functions of the library promote inside, whatever the user's switches say."""

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import image, nn, random
from minijax.experimental import checkify
from minijax.scipy import fft, linalg, signal, special, stats
from minijax.scipy.spatial.transform import Rotation, Slerp

KEY = random.key(0)
V, M = jnp.array([0.1, 0.4, 0.2, 0.7]), jnp.arange(1.0, 13.0).reshape(3, 4)
S = jnp.eye(4) * 2 + 0.1
WAVE, HEADS = jnp.sin(jnp.arange(64.0)), jnp.ones((2, 8, 2, 4))
LENGTHS = jnp.array([4, 5])


def attention(**how):
    return nn.dot_product_attention(HEADS, HEADS, HEADS, **how)


def errors_of_update():
    f = checkify.checkify(
        lambda x, i: x.at[i, i].add(1.0), errors=checkify.index_checks
    )
    return f(S, jnp.array([[0, 1], [2, 3]]))[1]


# Operands of which the user's have one rank and dtype, or may have several.
CALLS = {
    "attention": lambda: attention(key_value_seq_lengths=LENGTHS),
    "causal attention": lambda: attention(query_seq_lengths=LENGTHS, is_causal=True),
    "checkify": errors_of_update,
    "csd": lambda: signal.csd(WAVE, WAVE, nperseg=16),
    "dct": lambda: fft.dct(M),
    "dctn": lambda: fft.dctn(M),
    "detrend": lambda: signal.detrend(M),
    "dirichlet": lambda: stats.dirichlet.pdf(M[:, :1] / 15, jnp.ones(3)),
    "eigh_tridiagonal": lambda: linalg.eigh_tridiagonal(V, V[1:]),
    "gaussian_kde": lambda: stats.gaussian_kde(V).logpdf(V),
    "idct": lambda: fft.idct(M),
    "idctn": lambda: fft.idctn(M),
    "interp": lambda: jnp.interp(M, jnp.arange(4.0), V),
    "istft": lambda: signal.istft(jnp.ones((9, 9), "complex64"), nperseg=16),
    "mode": lambda: stats.mode(M),
    "multigammaln": lambda: special.multigammaln(V + 5, 2),
    "multivariate_normal": lambda: random.multivariate_normal(KEY, V, S, (3,)),
    "normal density": lambda: stats.multivariate_normal.logpdf(M, V, S),
    "pinv": lambda: jnp.linalg.pinv(jnp.stack([S, S])),
    "polyfit": lambda: jnp.polyfit(V, M.T, 1),
    "resample": lambda: stats.gaussian_kde(M + M * M).resample(KEY, (4,)),
    "resize": lambda: image.resize(M, (6, 6), "cubic"),
    "scale_and_translate": lambda: image.scale_and_translate(
        S, (6, 6), (0, 1), V[:2] + 1, V[:2], "linear"
    ),
    "slerp": lambda: Slerp.init(jnp.arange(3.0), Rotation.from_rotvec(S[:3, :3]))(V),
    "stft": lambda: signal.stft(WAVE, nperseg=16),
    "trapezoid": lambda: jnp.trapezoid(M, dx=V[:3]),
    "welch": lambda: signal.welch(WAVE, nperseg=16),
}


@pytest.mark.parametrize("name", CALLS)
def test_switches_are_for_the_users_operands(name):
    wanted = minijax.tree.leaves(CALLS[name]())
    with (
        minijax.numpy_rank_promotion("raise"),
        minijax.numpy_dtype_promotion("strict"),
    ):
        found = minijax.tree.leaves(CALLS[name]())
    for x, y in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(x, y)


def test_the_switches_are_as_they_were():
    with minijax.numpy_rank_promotion("raise"):
        CALLS["interp"]()
        with pytest.raises(ValueError, match="rank_promotion"):
            jnp.add(M, V)


def test_logaddexp2_of_complex_numbers():
    x, y = jnp.array([1 + 2j, 0.5j]), jnp.array([2 - 1j, 3.0 + 0j])
    wanted = np.log(np.exp2(np.asarray(x)) + np.exp2(np.asarray(y))) / np.log(2)
    np.testing.assert_allclose(jnp.logaddexp2(x, y), wanted, rtol=1e-5)


@pytest.mark.parametrize("axis", [0, 1, 2, -2])
def test_widths_of_trapezoids_lie_along_the_axis(axis):
    y = np.arange(60.0, dtype="float32").reshape(3, 5, 4) ** 2
    shape = list(y.shape)
    shape[axis] -= 1
    whole = np.arange(1.0, 1 + np.prod(shape), dtype="float32").reshape(shape)
    for dx in (whole, whole.take([0], axis), whole[:1], whole[0], whole[0, 0]):
        wanted = np.trapezoid(y, dx=dx, axis=axis)
        found = jnp.trapezoid(y, dx=dx, axis=axis)
        np.testing.assert_allclose(found, wanted, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["uint8", "float32", "complex64"])
@pytest.mark.parametrize("shape", [(), (3, 0), (0, 2), (2, 3)])
def test_indices_of_nothing_have_their_dtype(shape, dtype):
    for sparse in (True, False):
        for x in minijax.tree.leaves(jnp.indices(shape, dtype, sparse)):
            assert x.dtype == dtype
