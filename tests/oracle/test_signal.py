"""Spectra of signals beside JAX."""

import warnings
from functools import partial

import jax
import numpy as np
import pytest

import minijax
from tests.commands import paired
from tests.test_linear_algebra_lapack import DTYPES, numbers

from .raised import raised
from .test_linalg import agree as agree_with
from .test_linalg import wide  # noqa: F401

agree = partial(agree_with, whole=True)


def signal(name, *args, **how):
    """A function of `scipy.signal`, with further arguments, of either package."""
    return lambda m: lambda *xs: getattr(m.scipy.signal, name)(*xs, *args, **how)


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


@pytest.mark.parametrize(
    ("mode", "dtype"), paired(["full", "same", "valid"], [*DTYPES, "int32"])
)
def test_convolutions(mode, dtype):
    for shape, other, axes in (
        ((7,), (3,), None),
        ((3,), (7,), None),
        ((1,), (4,), None),
        ((5, 4), (2, 3), None),
        ((5, 4), (5, 3), 1),
        ((5, 4, 2), (3, 4, 1), (0, -1)),
    ):
        x, w = numbers(shape, dtype), numbers(other, dtype, 1)
        agree(signal("fftconvolve", mode, axes), x, w)


@pytest.mark.parametrize("dtype", [*DTYPES, "int32"])
def test_trends(dtype):
    x = 3 * numbers((3, 24, 2), dtype) + np.arange(24)[:, None].astype(dtype)
    rtol = 1e-4 if dtype in ("float32", "complex64", "int32") else 1e-10
    agree(signal("detrend", 1, "constant"), x)
    for how in ({}, {"axis": 1}, {"axis": 1, "bp": [5, 20]}, {"axis": 1, "bp": 1}):
        agree(signal("detrend", **how), x, rtol=rtol)


PIECES = [
    {"nperseg": 16},
    {"nperseg": 15, "noverlap": 3, "fs": 20.0},
    {"nperseg": 16, "nfft": 21, "return_onesided": False},
    {"nperseg": 12, "window": np.bartlett(12), "detrend": "linear"},
    {"nperseg": 1},
    {},
]
FORMS = [
    {"boundary": boundary, "padded": padded}
    for boundary in ("even", "odd", "constant", "zeros", None)
    for padded in (True, False)
]


KINDS = {0: [*DTYPES, "int32"]}  # each dtype with the first piece, one with others


@pytest.mark.parametrize(
    ("how", "dtype"),
    [(h, d) for i, h in enumerate(PIECES) for d in KINDS.get(i, [DTYPES[i % 4]])],
    ids=str,
)
def test_spectra(how, dtype):
    x, y = numbers((2, 50, 3), dtype), numbers((2, 37, 3), dtype, 1)
    rtol = 1e-4 if dtype in ("float32", "complex64", "int32") else 1e-11
    for more in ({}, {"scaling": "spectrum"}, {"average": "median"}):
        agree(signal("welch", **how, **more, axis=1), x, rtol=rtol)
        agree(signal("csd", **how, **more, axis=1), x, y, rtol=rtol)
    agree(signal("csd", **how), x[0, :, 0], y[0, :, 0], rtol=rtol)
    forms = FORMS if how == PIECES[1] else FORMS[6:8]
    for form in forms:
        agree(signal("stft", **how, **form, axis=-2), x, rtol=rtol)
    agree(lambda m: m.jit(signal("stft", **how)(m)), x[..., 0], rtol=rtol)


@pytest.mark.parametrize("dtype", DTYPES[::3])
def test_signals_come_back(dtype):
    """Where the pieces of a real signal have an odd length, JAX raises a TypeError."""
    rtol = 1e-4 if dtype in ("float32", "complex64") else 1e-11
    for how in (
        {"nperseg": 8},
        {"nperseg": 9},
        {"nperseg": 8, "noverlap": 6},
        {"nperseg": 8, "fs": 4.0, "window": np.bartlett(9)[:8]},
    ):
        two = {"input_onesided": "float" in dtype}
        if how["nperseg"] % 2 and two["input_onesided"]:
            continue
        x = numbers((2, 43), dtype)
        z = np.asarray(jax.scipy.signal.stft(x, **how)[2])
        agree(signal("istft", **how, **two), z, rtol=rtol)
        agree(signal("istft", **how, **two, boundary=False), z, rtol=rtol)
        turned = np.moveaxis(z, (1, 2), (2, 0))
        axes = {"time_axis": 0, "freq_axis": -1}
        agree(signal("istft", **how, **two, **axes), turned, rtol=rtol)


def test_derivatives():
    x = numbers((40,), "float64")

    def loss(m):
        def f(x):
            _, power = m.scipy.signal.welch(x, nperseg=8)
            _, _, z = m.scipy.signal.stft(x, nperseg=8, detrend="linear")
            back = m.scipy.signal.istft(z)[1]
            smooth = m.scipy.signal.fftconvolve(x, x)
            return (power**2).sum() + (back**3).sum() + (smooth**2).sum()

        return f

    agree(lambda m: m.grad(loss(m)), x, rtol=1e-9)
    agree(lambda m: lambda x: m.jvp(m.grad(loss(m)), (x,), (x[::-1],)), x, rtol=1e-9)
    agree(lambda m: m.vmap(m.jit(loss(m))), np.stack([x, 2 * x]), rtol=1e-9)


def test_nothing():
    for shape in ((0,), (2, 0)):
        x = np.zeros(shape)
        agree(signal("welch"), x)
        agree(signal("stft"), x)
        if shape == (0,):  # JAX's two results have other shapes than each other
            agree(signal("csd"), x, x)


X, Z = np.ones(20), np.ones((5, 4), complex)
REFUSED = {
    "fftconvolve": [((X, X[None]), {}), ((X, X, "other"), {})],
    "detrend": [((X,), {"type": "other"}), ((X,), {"bp": 30})],
    "stft": [
        ((X,), {"nperseg": 0}),
        ((X,), {"nperseg": 8, "nfft": 4}),
        ((X,), {"nperseg": 8, "noverlap": 8}),
        ((X,), {"boundary": "other"}),
        ((X,), {"window": X[:8], "nperseg": 9}),
        ((X,), {"window": np.ones(30)}),
        ((X,), {"window": np.ones((2, 2))}),
    ],
    "welch": [((X,), {"scaling": "other"}), ((X,), {"average": "x", "nperseg": 8})],
    "csd": [((X, X[None]), {}), ((np.ones((2, 9)), np.ones((3, 9))), {})],
    "istft": [
        ((X,), {}),
        ((Z,), {"time_axis": 0, "freq_axis": 0}),
        ((Z,), {"noverlap": 8}),
        ((Z,), {"window": X}),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    for args, how in REFUSED[name]:
        f = signal(name, **how)
        ours, theirs = (raised(partial(f(m), *args)) for m in (minijax, jax))
        assert ours[0] == theirs[0], (how, ours, theirs)
