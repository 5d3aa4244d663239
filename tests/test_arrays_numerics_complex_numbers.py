"""Complex numbers with infinite parts: values of JAX 0.10.2, on every backend."""

import numpy as np
import pytest

import minijax
from minijax import lax
from tests.special_values import BACKENDS, alike

INF, NAN = np.inf, np.nan
QUOTIENTS = [
    (1 + 0j, complex(INF, INF), complex(0, -0.0)),
    (1 + 0j, complex(INF, NAN), complex(0, 0)),
    (-1.5 + 0j, complex(NAN, INF), complex(0, 0)),
    (-1.5 + 0j, complex(-INF, -INF), complex(0, -0.0)),
    (complex(INF, 1), 0j, complex(INF, INF)),
    (complex(1, NAN), 0j, complex(INF, NAN)),
    (1 + 0j, complex(-0.0, 0), complex(-INF, NAN)),
    (0j, 0j, complex(NAN, NAN)),
    (complex(INF, 1), 1j, complex(NAN, -INF)),
    (complex(-1.5, INF), 1 - 1.5j, complex(-INF, INF)),
    (complex(INF, 0), complex(1, INF), complex(NAN, NAN)),
    (complex(INF, 0), complex(NAN, 1), complex(NAN, NAN)),
    (complex(NAN, 1), 1 + 1j, complex(NAN, NAN)),
    (1 + 1j, 1 + 1j, complex(1, 0)),
    (1e30 + 1e30j, 1e30 + 1e30j, complex(1, 0)),
    (-1 - 1j, -1 + 1j, complex(-0.0, 1)),
]
EXP_MINUS_ONE = [
    (complex(INF, 0), complex(INF, 0)),
    (complex(INF, -0.0), complex(INF, 0)),
    (complex(INF, 1), complex(INF, INF)),
    (complex(-INF, -1.5), complex(-1, -0.0)),
    (complex(-0.0, -0.0), 0j),
    (complex(NAN, 0), complex(NAN, 0)),
    (complex(INF, INF), complex(NAN, NAN)),
]


def ways(f):
    """Yield a function, and the same on every backend."""
    yield f
    for backend in BACKENDS:
        yield minijax.jit(f, backend=backend)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_quotients(dtype):
    with minijax.enable_x64(True):
        x, y, wanted = np.array(QUOTIENTS, dtype).T.copy()
        for f in ways(lax.div):
            assert alike(np.asarray(f(x, y)), wanted).all()


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_negative_powers(dtype):
    x = np.array([0, complex(-0.0, 0), complex(INF, INF), complex(NAN, INF)], dtype)
    wanted = np.array(
        [complex(INF, NAN), complex(-INF, NAN), complex(0, -0.0), complex(0, -0.0)],
        dtype,
    )
    with minijax.enable_x64(True):
        for f in [*ways(lax.reciprocal), *ways(lambda x: x**-1)]:
            assert alike(np.asarray(f(minijax.numpy.asarray(x))), wanted).all()


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_exp_minus_one(dtype):
    with minijax.enable_x64(True):
        x, wanted = np.array(EXP_MINUS_ONE, dtype).T.copy()
        for f in ways(lax.expm1):
            assert alike(np.asarray(f(x)), wanted).all()


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_log_one_plus_keeps_small_numbers(dtype):
    """log(1 + z) is z - z**2 / 2 near 0; beside -1, the zero's sign is the branch."""
    small = np.array([1e-10, 1e-10 + 1e-10j, -1e-20j, 1e-30 - 1e-25j, -1e-9 + 3e-9j])
    edges = np.array([complex(-2, 0.0), complex(-2, -0.0), 2j - 1, 1e38 + 1e38j])
    wanted = small - small**2 / 2, np.log(edges + np.array([complex(1, -0.0)]))
    with minijax.enable_x64(True):
        info = np.finfo(dtype)
        room = {"rtol": 4 * info.eps, "atol": info.smallest_subnormal}
        for f in ways(lax.log1p):
            for z, truth in zip((small, edges), wanted):
                got = np.asarray(f(minijax.numpy.asarray(z, dtype)))
                np.testing.assert_allclose(got.real, truth.real, **room)
                np.testing.assert_allclose(got.imag, truth.imag, **room)


def test_a_divisor_whose_reciprocal_overflows():
    tiny = np.array([1e-310 + 1e-310j])
    with minijax.enable_x64(True):
        for f in ways(lax.div):
            assert alike(np.asarray(f(tiny, tiny)), np.ones(1, "complex128")).all()


def test_scalars():
    for f in ways(lax.div):
        out = f(np.complex64(complex(INF, 1)), np.complex64(0))
        assert out.shape == () and complex(out) == complex(INF, INF)


def test_the_number_after_a_zero():
    zeros = np.array([0.0, -0.0], "float16")
    for f in ways(lax.nextafter):
        assert (np.signbit(np.asarray(f(zeros, -zeros))) == [True, False]).all()


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_squares_that_overflow(dtype):
    """x² - y² is a product: the squares of both may overflow, or lose the digits."""
    big = float(np.finfo(dtype).max) / 4
    x, near = np.float64(big), np.finfo(dtype).eps
    pairs = [
        (complex(x, x), complex(0, INF)),
        (complex(-x, 2 * x), complex(-INF, -INF)),
        (complex(2 * x, -x), complex(INF, -INF)),
        (complex(INF, x), complex(INF, INF)),
        (complex(x, INF), complex(-INF, INF)),
        (complex(INF, INF), complex(NAN, INF)),
        (complex(-0.0, 0), complex(0, -0.0)),
        (complex(1 + near, 1), complex(2 * near + near**2, 2 + 2 * near)),
    ]
    with minijax.enable_x64(True):
        z, wanted = np.array(pairs, dtype).T.copy()
        for f in ways(lax.square):
            found = np.asarray(f(z))
            assert alike(found, wanted).all()
            np.testing.assert_allclose(found.real[-1], wanted.real[-1], 4 * near)


def test_powers_that_overflow_as_evaluated():
    parts = [0.0, -1.5, INF, -INF, NAN, 1e20, -1e20, 3e38]
    z = np.array([complex(x, y) for x in parts for y in parts], "complex64")
    for f in (lambda z: z * z, lambda z: z**2, lambda z: z**3, lambda z: z**-5):
        found = np.asarray(minijax.jit(f)(z))
        assert alike(found, np.asarray(f(minijax.numpy.asarray(z)))).all()


def test_exp_minus_one_of_what_overflows():
    """The power of the real part overflows, and its product does not."""
    z = np.array([100 + 1e-30j, 89 + 1.57j, complex(INF, INF)], "complex64")
    wide = np.exp(z[:2].astype("complex128"))
    for f in ways(lax.expm1):
        found = np.asarray(f(z))
        np.testing.assert_allclose(found.imag[0], wide.imag[0], 1e-5)
        np.testing.assert_allclose(found.real[1], wide.real[1], 1e-4)
        assert np.isnan(found.imag[2]) and np.isinf(found.real[0])
