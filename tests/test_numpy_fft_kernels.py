"""Fourier transforms in machine code beside NumPy's, of all kinds, lengths, layouts."""

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import lax
from minijax.arrays.dtypes import enable_x64
from minijax.kernels.builder import UnsupportedKernel
from minijax.numpy.fft.kernels import radices_of, roots_of_one
from tests.commands import LONG

LENGTHS = [*range(1, 65), 100, 128, 210, 243, 256, 360, 1000, 1024, 2048]
KINDS = ["fft", "ifft", "rfft", "irfft"]


def numbers(shape, dtype, seed=0):
    """Return random numbers."""
    rng = np.random.default_rng(seed)
    real, imaginary = rng.normal(size=(2, *shape))
    return (real + 1j * imaginary if dtype.kind == "c" else real).astype(dtype)


def operand(kind, lengths, batch, wide, seed=0):
    """Return the operand of a transform."""
    width = 8 if wide else 4
    dtype = np.dtype(f"f{width}" if kind.startswith("rfft") else f"c{2 * width}")
    *others, n = lengths
    n = n // 2 + 1 if kind.startswith("irfft") else n
    return numbers((*batch, *others, n), dtype, seed)


def apart(ours, exact):
    """Return the relative distance of two arrays."""
    return np.linalg.norm(ours - exact) / (np.linalg.norm(exact) or 1)


def check(kind, x, lengths, f=None):
    """Compare a compiled transform of the last axes with NumPy's, of longer numbers."""
    f = f or (lambda x: lax.fft(x, kind.upper(), lengths))
    x = np.asarray(x)
    wide = x.dtype in (np.dtype("f8"), np.dtype("c16"))
    axes = range(-len(lengths), 0)
    longer = x.astype(np.result_type(x, "f16" if wide else "f8"))
    exact = getattr(np.fft, f"{kind}n")(longer, lengths, axes)
    with enable_x64(wide):
        ours = minijax.jit(f)(jnp.asarray(x))
    assert ours.shape == exact.shape
    assert ours.dtype.kind == exact.dtype.kind
    assert ours.real.dtype == (np.float64 if wide else np.float32)
    assert apart(np.asarray(ours), exact) < (2e-15 if wide else 2e-7)


def steps(f, x):
    """Return the steps of a compiled function as text."""
    return minijax.jit(f).lower(x).compile().as_text("steps")


def test_roots_are_rounded_once():
    for n in (1, 2, 3, 5, 8, 12, 100, 1024):
        angles = np.longdouble(8) * np.arctan(np.longdouble(1)) * np.arange(n) / n
        exact = np.cos(angles) - 1j * np.sin(angles)
        assert np.abs(roots_of_one(n) - exact).max() < 2e-16
    assert list(roots_of_one(4)) == [1, -1j, -1, 1j]
    assert roots_of_one(8)[1].real == -roots_of_one(8)[1].imag


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_every_length(kind, wide):
    """Each length in two of the kinds, once in each width, in others for the next.

    With `LONG=1` each in all. `test_numpy_fft_lengths.py` has other numbers.
    """
    for number, n in enumerate(LENGTHS):
        turn = number + number // 7 + 2 * wide + KINDS.index(kind)
        if turn % 4 and not LONG:
            continue
        check(kind, operand(kind, (n,), (3,) if n % 2 else (), wide, n), (n,))


@pytest.mark.parametrize("kind", KINDS)
def test_there_is_no_step_of_numpy(kind):
    for lengths in ((1,), (2,), (15,), (64,), (8, 6), (4, 3, 10)):
        x = operand(kind, lengths, (2,), False)
        text = steps(lambda x, n=lengths: lax.fft(x, kind.upper(), n), x)
        assert "= fft " not in text, text
    x = operand(kind, (34,), (), False)
    assert "= fft " in steps(lambda x: lax.fft(x, kind.upper(), (34,)), x)


@pytest.mark.parametrize("batch", [(), (0,), (1,), (3,), (2, 3)])
@pytest.mark.parametrize("kind", KINDS)
def test_axes_and_batches(kind, batch):
    for lengths in ((4, 6), (5, 7), (3, 1), (2, 3, 8), (16, 17)):
        check(kind, operand(kind, lengths, batch, len(lengths) == 2), lengths)


@pytest.mark.parametrize("kind", KINDS)
def test_odd_layouts(kind):
    n = 12
    layouts = [
        lambda x: x[:, ::2], lambda x: x[:, ::-1][:, 1::2],
        lambda x: x[::2, : x.shape[1] // 2],
        lambda x: x[0, None, ::2] + jnp.zeros((3, 1), x.dtype),
        lambda x: jnp.broadcast_to(x[1, ::2], (4, x.shape[1] // 2)),
    ]  # fmt: skip
    x = operand(kind, (n,), (4,), False)
    x = np.concatenate([x, 2 * x], 1)
    for layout in layouts:
        ours = minijax.jit(lambda x, f=layout: lax.fft(f(x), kind.upper(), (n,)))(x)
        exact = getattr(np.fft, kind)(np.asarray(layout(jnp.asarray(x))), n)
        assert apart(ours, exact) < 1e-6
    x = operand(kind, (n,), (n // 2 + 1 if kind == "irfft" else n,), False)
    for f in (lambda x: x.mT, lambda x: jnp.ones_like(x) * 2):
        ours = minijax.jit(lambda x, f=f: lax.fft(f(x), kind.upper(), (n,)))(x)
        exact = getattr(np.fft, kind)(np.asarray(f(jnp.asarray(x))), n)
        assert apart(ours, exact) < 1e-6


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_an_axis_of_many(axis):
    x = numbers((6, 8, 10), np.dtype("c8"))
    ours = minijax.jit(lambda x: jnp.fft.fft(x, axis=axis))(x)
    assert apart(ours, np.fft.fft(x, axis=axis)) < 1e-6
    ours = minijax.jit(lambda x: jnp.fft.rfft(x, axis=axis))(x.real)
    assert apart(ours, np.fft.rfft(x.real, axis=axis)) < 1e-6


def test_in_a_scan():
    def step(x, _):
        return jnp.fft.irfft(jnp.fft.rfft(x) * jnp.exp(-0.01 * jnp.arange(17.0))), x[0]

    x = numbers((32,), np.dtype("f4"))
    ours, firsts = minijax.jit(lambda x: lax.scan(step, x, None, length=20))(x)
    y, seen = x.astype("f8"), []
    for _ in range(20):
        seen.append(y[0])
        y = np.fft.irfft(np.fft.rfft(y) * np.exp(-0.01 * np.arange(17.0)))
    assert apart(ours, y) < 5e-6
    assert apart(firsts, np.array(seen)) < 5e-6


@pytest.mark.parametrize("kind", KINDS)
def test_under_vmap_and_grad(kind):
    n = 20
    x = operand(kind, (n,), (5,), False)

    def f(x):
        return lax.fft(x, kind.upper(), (n,))

    ours = minijax.jit(minijax.vmap(f, in_axes=1, out_axes=1))(x.T)
    assert apart(ours.T, getattr(np.fft, kind)(x, n)) < 1e-6

    def loss(x):
        return (jnp.abs(f(x)) ** 2 * jnp.arange(f(x).shape[-1])).sum()

    assert apart(minijax.jit(minijax.grad(loss))(x[0]), minijax.grad(loss)(x[0])) < 1e-5


def test_half_a_spectrum_is_read_as_numpy_reads_it():
    for n in (1, 2, 9, 10):
        x = numbers((n // 2 + 1,), np.dtype("c8")) + 5j
        check("irfft", x, (n,))


def test_lengths_that_are_left_to_numpy():
    assert np.prod(radices_of(2 * 3 * 5 * 7 * 11 * 13)) == 30030
    for n in (17, 2**19, 13 * 19):
        with pytest.raises(UnsupportedKernel):
            radices_of(n)
    check("fft", operand("fft", (17,), (2,), False), (17,))


def test_precision_is_not_below_numpys():
    for n in (64, 100, 1000, 1024):
        x = operand("fft", (n,), (20,), False)
        exact = np.fft.fft(x.astype("c16"))
        ours = minijax.jit(lambda x: jnp.fft.fft(x))(x)
        assert apart(np.asarray(ours), exact) <= 1.01 * apart(np.fft.fft(x), exact)
        with enable_x64():
            x = operand("fft", (n,), (20,), True)
            exact = np.fft.fft(x.astype(np.clongdouble))
            ours = np.asarray(minijax.jit(lambda x: jnp.fft.fft(x))(x))
            assert apart(ours, exact) <= 1.1 * apart(np.fft.fft(x), exact)
