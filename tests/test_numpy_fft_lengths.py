"""Fourier transforms of machine code, beside NumPy's with twice as many bits."""

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import grad, jit, lax, vmap
from minijax.numpy.fft.primitive import FftType
from tests.commands import LONG

KINDS = "complex64", "complex128"
LENGTHS = [*range(1, 65), 100, 127, 128, 210, 243, 256, 360, 1000, 1024, 2048, 16384]


@pytest.fixture(autouse=True)
def _x64():
    with minijax.enable_x64():
        yield


def drawn(shape, kind, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if kind[0] == "c" else x).astype(kind)


def compared(kind, lengths, x):
    """Compare a transform in machine code with NumPy's of twice as many bits."""
    names = dict(zip(FftType, ("fftn", "ifftn", "rfftn", "irfftn")))
    wide = np.clongdouble if x.dtype.kind == "c" else np.longdouble
    axes = range(-len(lengths), 0)
    wanted = getattr(np.fft, names[kind])(x.astype(wide), lengths, axes)
    found = jit(lambda x: lax.fft(x, kind, lengths))(x)
    assert found.shape == wanted.shape
    assert found.dtype == lax.fft(x, kind, lengths).dtype
    if wanted.size:
        largest = np.abs(wanted).max() + np.finfo(found.dtype).tiny
        error = np.abs(np.asarray(found) - wanted).max() / largest
        assert error < 6 * np.finfo(found.dtype).eps, (kind, lengths, error)


def operand(kind, batch, lengths, dtype):
    half = (*lengths[:-1], lengths[-1] // 2 + 1)
    shape = (*batch, *(half if kind is FftType.IRFFT else lengths))
    real = {"complex64": "float32", "complex128": "float64"}[dtype]
    return drawn(shape, real if kind is FftType.RFFT else dtype)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("kind", FftType, ids=lambda kind: kind.name)
def test_all_lengths(kind, dtype):
    """The largest error of each length in one kind, another for the next length.

    Of longer numbers every fifth. `test_numpy_fft_kernels.py` has the mean errors of
    all lengths in both widths. With `LONG=1` each length in each kind.
    """
    turn, every = int(kind), 4 if dtype == "complex64" else 5
    for n in LENGTHS if LONG else LENGTHS[turn::every]:
        compared(kind, (n,), operand(kind, (), (n,), dtype))


@pytest.mark.parametrize("batch", [(0,), (1,), (3,), (2, 3), (700,)])
@pytest.mark.parametrize("kind", FftType, ids=lambda kind: kind.name)
@pytest.mark.parametrize("lengths", [(16,), (45,), (4, 6), (5, 1), (3, 4, 5)])
def test_batches_and_axes(kind, lengths, batch):
    compared(kind, lengths, operand(kind, batch, lengths, "complex64"))


@pytest.mark.parametrize("dtype", KINDS)
def test_odd_layouts(dtype):
    x = drawn((20, 12), dtype)
    for function in (
        lambda x: jnp.fft.fft(x.T),
        lambda x: jnp.fft.fft(x[::2, ::-1], axis=0),
        lambda x: jnp.fft.ifft(jnp.broadcast_to(x[0], (3, 12))),
        lambda x: jnp.fft.irfft2(x[3:, 2:]),
    ):
        digits = 1e-5 if dtype == "complex64" else 1e-12
        np.testing.assert_allclose(jit(function)(x), function(x), atol=digits)


def test_scans_gradients_and_batches():
    x = drawn(48, "float32")

    def energy(x):
        def step(u, _):
            spectrum = jnp.fft.rfft(u) * jnp.exp(-0.1 * jnp.arange(25, dtype="f4"))
            return jnp.fft.irfft(spectrum, n=48), abs(spectrum[3])

        u, sizes = lax.scan(step, x, None, length=5)
        return (u**2).sum() + sizes.sum()

    slope = jit(grad(energy))(x)
    np.testing.assert_allclose(slope, grad(energy)(x), rtol=2e-4, atol=1e-5)
    rows = np.stack([x, 2 * x, -x])
    found = jit(vmap(grad(energy)))(rows)
    each = [grad(energy)(row) for row in rows]
    np.testing.assert_allclose(found, each, rtol=1e-3, atol=1e-5)


def test_the_half_spectrum_of_the_way_back_may_say_what_cannot_be():
    half = drawn(9, "complex64")  # its first and last number should be real
    for n in (16, 17):
        back = jit(lambda x, n=n: jnp.fft.irfft(x, n=n))(half)
        np.testing.assert_allclose(back, np.fft.irfft(half, n), atol=1e-6)
