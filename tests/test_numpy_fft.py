"""Fourier transforms against NumPy's and against sums of waves, and their rules."""

import itertools

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import grad, jit, lax, make_jaxpr, vmap
from minijax.numpy.fft.primitive import FftType
from minijax.scipy.fft import dct, idct
from minijax.test_util import check_grads

SIZES = [1, 2, 3, 4, 7, 8, 12, 17]


def numbers(shape, dtype, seed=0):
    real, imaginary = np.random.default_rng(seed).standard_normal((2, *shape))
    return (real + 1j * imaginary if dtype[0] == "c" else real).astype(dtype)


def by_sums(x, sign):
    n = x.shape[-1]
    places = np.arange(n)
    return x @ np.exp(sign * 2j * np.pi * np.outer(places, places) / n)


@pytest.mark.parametrize("n", SIZES)
def test_the_four_kinds_are_sums_of_waves(n):
    with minijax.enable_x64():
        z, x = numbers((3, n), "complex128"), numbers((3, n), "float64")
        for wrap in (lambda f: f, jit, vmap):
            there = wrap(lambda z: lax.fft(z, "FFT", (n,)))(z)
            np.testing.assert_allclose(there, by_sums(z, -1), atol=1e-12)
            back = wrap(lambda z: lax.fft(z, "IFFT", (n,)))(z)
            np.testing.assert_allclose(back, by_sums(z, 1) / n, atol=1e-12)
            half = wrap(lambda x: lax.fft(x, "RFFT", (n,)))(x)
            wanted = by_sums(x, -1)[:, : n // 2 + 1]
            np.testing.assert_allclose(half, wanted, atol=1e-12)
            whole = wrap(lambda h: lax.fft(h, "IRFFT", (n,)))(half)
            np.testing.assert_allclose(whole, x, atol=1e-12)


@pytest.mark.parametrize("backend", ["interpreter", "python", "kernels", "cpu"])
def test_backends_agree(backend):
    x = numbers((2, 3, 10), "float32")

    def f(x):
        spectrum = jnp.fft.rfft2(x * 2) * 1j
        return jnp.fft.irfft2(spectrum + 1, s=(3, 9)) * 3

    np.testing.assert_allclose(jit(f, backend=backend)(x), f(x), atol=1e-5)


KINDS = [
    ("FFT", (4, 5), (4, 5)),
    ("IFFT", (5,), (4, 5)),
    ("RFFT", (4, 6), (4, 6)),
    ("RFFT", (7,), (2, 7)),
    ("IRFFT", (4, 6), (4, 4)),
    ("IRFFT", (7,), (2, 4)),
    ("IRFFT", (1,), (2, 1)),
    ("RFFT", (1,), (2, 1)),
]


@pytest.mark.parametrize(("kind", "lengths", "shape"), KINDS)
def test_derivatives(kind, lengths, shape):
    with minijax.enable_x64():
        x = numbers(shape, "float64" if kind == "RFFT" else "complex128")
        check_grads(lambda x: lax.fft(x, kind, lengths), (x,), order=2)
        u = numbers(lax.fft(x, kind, lengths).shape, "complex128", 1)
        u = u.real.copy() if kind == "IRFFT" else u
        [back] = minijax.linear_transpose(lambda x: lax.fft(x, kind, lengths), x)(u)
        sides = np.sum(u * lax.fft(x, kind, lengths)), np.sum(back * x)
        np.testing.assert_allclose(sides[0].real, sides[1].real, atol=1e-10)


def test_half_a_spectrum_counts_its_mirror_images_once():
    slope = grad(lambda x: jnp.fft.rfft(x)[1].real)(jnp.zeros(8))
    np.testing.assert_allclose(slope, np.cos(np.pi * np.arange(8) / 4), atol=1e-6)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_batches_along_each_axis(axis):
    x = numbers((3, 4, 5), "complex64")
    batched = vmap(lambda x: jnp.fft.fft2(x), axis, axis)(x)
    one_by_one = [np.fft.fft2(part) for part in np.moveaxis(x, axis, 0)]
    np.testing.assert_allclose(batched, np.stack(one_by_one, axis), atol=1e-4)


def test_odd_layouts():
    x = numbers((6, 8), "complex64")
    for view in (x.T, x[::-1, ::-2], x[1:, 1:], np.asfortranarray(x)):
        np.testing.assert_allclose(jit(jnp.fft.fft)(view), np.fft.fft(view), atol=1e-4)


def test_all_names_of_numpy_are_those_of_numpy():
    x = numbers((3, 4, 6), "float32")
    several = ("2", "n")
    for inverse, real, end in itertools.product(["", "i"], ["", "r"], ["", *several]):
        name = f"{inverse}{real}fft{end}"
        for norm in (None, "ortho", "forward"):
            a = x if not inverse or not real else x.astype("complex64")
            wanted = getattr(np.fft, name)(a, norm=norm)
            ours = getattr(jnp.fft, name)(a, norm=norm)
            np.testing.assert_allclose(ours, wanted, atol=2e-4)
    for name in ("hfft", "ihfft"):
        wanted = getattr(np.fft, name)(x, 7, axis=1)
        np.testing.assert_allclose(getattr(jnp.fft, name)(x, 7, 1), wanted, atol=2e-4)


def test_frequencies_and_their_order():
    for n in (1, 2, 5, 8):
        np.testing.assert_allclose(jnp.fft.fftfreq(n, 0.5), np.fft.fftfreq(n, 0.5))
        np.testing.assert_allclose(jnp.fft.rfftfreq(n), np.fft.rfftfreq(n))
        there = jnp.fft.fftshift(np.arange(n))
        np.testing.assert_array_equal(there, np.fft.fftshift(np.arange(n)))
        np.testing.assert_array_equal(jnp.fft.ifftshift(there), np.arange(n))


@pytest.mark.parametrize("n", SIZES)
def test_sums_of_cosines(n):
    with minijax.enable_x64():
        x = numbers((2, n), "float64")
        places = np.arange(n)
        angles = np.pi * np.outer(places, 2 * places + 1) / (2 * n)
        wanted = 2 * x @ np.cos(angles).T
        np.testing.assert_allclose(dct(x), wanted, atol=1e-11)
        np.testing.assert_allclose(jit(idct)(wanted), x, atol=1e-11)
        unit = np.asarray(dct(np.eye(n), norm="ortho"))
        np.testing.assert_allclose(unit @ unit.T, np.eye(n), atol=1e-12)
        check_grads(idct, (x,), order=2)


def test_cost():
    x = jnp.zeros((3, 16), "complex64")
    cost = jit(lambda x: lax.fft(x, "FFT", (16,))).lower(x).cost_analysis()
    assert cost["flops"] == 3 * 5 * 16 * 4
    assert str(FftType.IRFFT) == "3"
    assert "fft_type=2" in str(make_jaxpr(jnp.fft.rfft)(jnp.ones(4)))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: lax.fft(jnp.ones(8), "IRFFT", (8,)), ValueError, r"expected \(5,\)"),
        (lambda: lax.fft(jnp.ones(8), "FFT", (7,)), ValueError, "minor dimensions"),
        (lambda: lax.fft(jnp.ones(8), "FFT", (1, 8)), ValueError, "at least as many"),
        (lambda: lax.fft(jnp.ones(8), "DCT", (8,)), ValueError, "Unknown FFT type"),
        (lambda: lax.fft(jnp.ones(8), 0, (8,)), TypeError, "Unknown FFT type value 0"),
        (lambda: jnp.fft.rfft(jnp.ones(8, complex)), ValueError, "only real valued"),
        (lambda: jnp.fft.rfft(jnp.ones(8, "float16")), ValueError, "float32 or"),
        (lambda: jnp.fft.fft(jnp.ones(8), 0), ValueError, "should be positive"),
        (lambda: jnp.fft.fft(jnp.ones(8), axis=(0,)), ValueError, "multiple axes"),
        (
            lambda: jnp.fft.fft2(jnp.ones((8, 8)), axes=(0,)),
            ValueError,
            "only supports",
        ),
        (lambda: jnp.fft.fftn(jnp.ones((8, 8)), (8,), (0, 1)), ValueError, "different"),
        (lambda: jnp.fft.fftn(jnp.ones((8, 8)), axes=(0, -2)), ValueError, "repeated"),
        (lambda: jnp.fft.fft(jnp.ones(8), norm="half"), ValueError, "Invalid norm"),
        (lambda: jnp.fft.fft(jnp.ones(8), axis=1), ValueError, "out of bounds"),
        (lambda: jnp.fft.fft([1.0, 2.0]), TypeError, "requires ndarray"),
        (lambda: dct(jnp.ones((2, 0))), TypeError, r"dct needs at least.*\(2, 0\)"),
        (lambda: idct(jnp.ones((0, 2)), axis=0), TypeError, r"idct.*axis 0.*\(0, 2\)"),
    ],
)
def test_bad_input(call, error, words):
    with pytest.raises(error, match=words):
        call()
