"""Fourier transforms beside real JAX: values, types, derivatives, jaxprs, refusals.

Each function that is made in a loop is called at once.
"""
# ruff: noqa: B023

import jax
import jax.scipy.fft
import numpy as np
import pytest

import minijax
from tests.oracle.test_library import agree

RNG = np.random.default_rng(3)
DTYPES = ["float32", "complex64", "float16", "int32", "bool"]
SHAPES = [(1,), (5,), (0, 4), (2, 3, 4)]
LINES = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
PLANES = ["fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn"]
NORMS = [None, "backward", "ortho", "forward", "other"]


def numbers(shape, dtype):
    x = RNG.standard_normal(shape) * 3
    if dtype.startswith("complex"):
        x = x + 1j * RNG.standard_normal(shape)
    return x.astype(dtype)


@pytest.mark.parametrize("name", LINES)
def test_along_one_axis(name):
    for shape in SHAPES:
        for dtype in DTYPES:
            x = numbers(shape, dtype)
            agree(lambda m: getattr(m.numpy.fft, name), x, rtol=2e-5)
    x, z = numbers((4, 5), "float32"), numbers((4, 5), "complex64")
    for a in (x, z):
        for n in (1, 4, 8, 0):
            agree(lambda m: lambda a: getattr(m.numpy.fft, name)(a, n), a, rtol=2e-5)
        for axis in (0, 2, (0, 1)):
            agree(
                lambda m: lambda a: getattr(m.numpy.fft, name)(a, axis=axis),
                a,
                rtol=2e-5,
            )
        for norm in NORMS:
            agree(
                lambda m: lambda a: getattr(m.numpy.fft, name)(a, norm=norm),
                a,
                rtol=2e-5,
            )


@pytest.mark.parametrize("name", PLANES)
def test_along_several_axes(name):
    options = [
        {},
        {"s": (2, 5)},
        {"s": (3, 3), "axes": (0, 1)},
        {"axes": (1, 0)},
        {"axes": (0, 0)},
        {"axes": (0,)},
        {"s": (2,), "axes": (0, 1)},
        {"s": (2, 0)},
        {"norm": "ortho"},
        {"norm": "forward"},
        {"norm": "?"},
        {"axes": (0, 3)},
    ]
    for shape in [(2, 4, 5), (2, 0, 3), (3,)]:
        for dtype in ("float32", "complex64"):
            x = numbers(shape, dtype)
            for option in options:
                agree(
                    lambda m: lambda a: getattr(m.numpy.fft, name)(a, **option),
                    x,
                    rtol=2e-5,
                )


@pytest.mark.parametrize("name", ["fftfreq", "rfftfreq"])
def test_frequencies(name):
    for n in (1, 8, 9):
        for d in (1.0, 0.25, 2, np.float32(3), [1, 2], (1.0,)):
            agree(lambda m: lambda: getattr(m.numpy.fft, name)(n, d))
    for dtype in ("float16", "float32"):
        agree(lambda m: lambda: getattr(m.numpy.fft, name)(6, dtype=dtype))


@pytest.mark.parametrize("name", ["fftshift", "ifftshift"])
def test_order(name):
    for shape in [(5,), (4, 3), (2, 1, 6), ()]:
        x = numbers(shape, "float32")
        for axes in (None, 0, -1, (0, 1), (0,), 3):
            agree(lambda m: lambda a: getattr(m.numpy.fft, name)(a, axes), x)


def slopes(m, name, **options):
    """Return a function to the value, derivatives and batches of a sum of cosines."""
    jnp = m.numpy

    def loss(x):
        y = getattr(jnp.fft, name)(x, **options)
        return (jnp.cos(y.real) + jnp.sin(y.imag) * y.real).sum()

    def both(x):
        first = m.grad(loss)
        tangent = m.jvp(first, (x,), (x * x,))[1]
        batch = m.vmap(first)(jnp.stack([x, x * 2]))
        return loss(x), first(x), tangent, batch

    return both


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
@pytest.mark.parametrize("n", [None, 7])
def test_derivatives_along_one_axis(name, n):
    dtype = "float32" if name in ("rfft", "ihfft") else "complex64"
    x = numbers((6, 3) if n else (5,), dtype) / 10
    agree(lambda m: slopes(m, name, n=n, axis=0), x, rtol=2e-4)


@pytest.mark.parametrize("name", ["fft2", "rfftn", "irfftn", "ifftn"])
def test_derivatives_along_several_axes(name):
    dtype = "float32" if name == "rfftn" else "complex64"
    x = numbers((2, 3, 5), dtype) / 10
    agree(lambda m: slopes(m, name, norm="ortho"), x, rtol=2e-4)


def test_the_primitive():
    x, z = numbers((3, 8), "float32"), numbers((3, 5), "complex64")
    kinds = ["FFT", "ifft", "RFFT", "IRFFT", "DCT", 0, None]
    for kind in kinds:
        for lengths in [(8,), (9,), (3, 8), (1, 3, 8), 8]:
            for a in (x, z, x.astype("float16")):
                if kind == "IRFFT" and a.shape[-1] != 5:
                    continue  # XLA refuses these with an error of its own
                agree(lambda m: lambda a: m.lax.fft(a, kind, lengths), a, rtol=2e-5)
    for member in jax.lax.FftType:
        ours = minijax.lax.FftType[member.name]
        assert (int(ours), str(ours), repr(ours)) == (
            int(member),
            str(member),
            repr(member),
        )


@pytest.mark.parametrize("kind", ["FFT", "IFFT", "RFFT"])
def test_the_equation_is_printed_as_in_jax(kind):
    dtype = "float32" if kind == "RFFT" else "complex64"
    x = numbers((3, 8), dtype)

    def equation(m):
        [eqn] = m.make_jaxpr(lambda x: m.lax.fft(x, kind, (8,)))(x).eqns
        while "jaxpr" in eqn.params:
            [eqn] = eqn.params["jaxpr"].eqns
        return str(eqn).partition(" = ")[2].partition("]")[0]

    assert equation(minijax) == equation(jax)


def test_wide_numbers():
    with jax.enable_x64(True), minijax.enable_x64(True):
        for dtype in ("float64", "complex128", "float32", "complex64", "int64"):
            x = numbers((3, 6), dtype)
            for name in ("fft", "irfft", "fftn", "hfft"):
                agree(lambda m: getattr(m.numpy.fft, name), x)
        agree(lambda m: lambda: m.numpy.fft.fftfreq(5, 0.5))


@pytest.mark.parametrize("name", ["dct", "idct", "dctn", "idctn"])
def test_sums_of_cosines(name):
    options = [{}, {"norm": "ortho"}, {"norm": "forward"}, {"type": 3}]
    options += [{"n": 5}, {"axis": 0}, {"s": (9,)}, {"axes": (0,)}]
    for option in options:
        x = numbers((3, 7), "float32")
        agree(lambda m: lambda x: getattr(m.scipy.fft, name)(x, **option), x, rtol=2e-5)
    for x in (np.arange(6), numbers((1,), "float32")):
        agree(lambda m: getattr(m.scipy.fft, name), x, rtol=2e-5)
