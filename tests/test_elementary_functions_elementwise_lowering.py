"""Kernels of erf_inv, digamma, nextafter and reduce_precision."""

import numpy as np
import pytest
from mpmath import mp

import minijax
from minijax import jit, lax
from minijax import numpy as jnp
from minijax.arrays.numerics import DIGAMMA_RATIONAL, DIGAMMA_ROOT
from minijax.elementary_functions.elementwise_lowering import ERF_INV_MIDDLE
from minijax.elementary_functions.real_functions import minimax_fit
from minijax.kernels.lowering import Evaluate, kernel_rules, lower
from tests.function_cases import DTYPES, F32, patterns, ulps

BACKENDS = pytest.mark.parametrize("backend", ["kernels", "llvm", "cpu"])
HALF = np.dtype("float16")
CORNERS = [0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e-45, 6e-8, 1.5, 65504, 2.0]
CORNERS += [-2.5, 1e-310, 0.1, -0.3, 6.1e-5, 1e-38, 1.7, -3e38]


@pytest.fixture(autouse=True)
def with_64_bits():
    """Compute in 64 bits where that is asked for; say nothing of overflow."""
    with minijax.enable_x64(True), np.errstate(all="ignore"):
        yield


def run(f, *xs, backend):
    """The result of a jitted function on a backend, as a NumPy array."""
    return np.asarray(jit(f, backend=backend)(*map(jnp.asarray, xs)))


def check_bits(f, *xs, backend):
    """Compare a backend with the interpreter, bit by bit but for those of NaN."""
    ours, wanted = run(f, *xs, backend=backend), run(f, *xs, backend="interpreter")
    np.testing.assert_array_equal(ours, wanted)
    known = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(ours)[known], np.signbit(wanted)[known])


@BACKENDS
@pytest.mark.parametrize("dtype", [*DTYPES, HALF], ids=str)
def test_nextafter(dtype, backend):
    x = np.array(CORNERS, dtype)
    pairs = np.array([(a, b) for a in x for b in x], dtype).T
    check_bits(lax.nextafter, *pairs, backend=backend)


@BACKENDS
@pytest.mark.parametrize("dtype", [*DTYPES, HALF], ids=str)
@pytest.mark.parametrize(
    "bits", [(5, 2), (5, 10), (8, 7), (8, 23), (11, 52), (8, 10), (11, 10), (4, 3)]
)
def test_reduce_precision(bits, dtype, backend):
    x = np.append(patterns(np.random.default_rng(3), 2000, dtype), CORNERS)
    check_bits(
        lambda v: lax.reduce_precision(v, *bits), x.astype(dtype), backend=backend
    )


@BACKENDS
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_erf_inv(dtype, backend):
    rng = np.random.default_rng(4)
    near = 1 - 2.0 ** -np.arange(10, 54)
    y = [rng.uniform(-1, 1, 80), rng.uniform(0.999, 1, 80), rng.normal(size=80) / 1e9]
    y = np.concatenate([*y, near, -near]).astype(dtype)
    y = np.where(abs(y) < 1, y, dtype.type(0.5))
    with mp.workprec(200):
        exact = [mp.erfinv(mp.mpf(float(number))) for number in y]
    assert ulps(run(lax.erf_inv, y, backend=backend), exact).max() < 4
    ends = np.array([0, -0.0, 1, -1, 1.5, -np.inf, np.nan], dtype)
    wanted = [0, -0.0, np.inf, -np.inf, np.nan, np.nan, np.nan]
    found = run(lax.erf_inv, ends, backend=backend)
    np.testing.assert_array_equal(found, np.array(wanted, dtype))
    assert np.signbit(found[1])


def points_of_digamma(dtype):
    rng = np.random.default_rng(5)
    near = 1.4616321449683622 * (1 + 10 ** rng.uniform(-16, -1, 60))
    x = [-rng.uniform(1, 30, 60), 10 ** rng.uniform(-30, 30, 60), near, 3 - near]
    x = np.concatenate([*x, rng.uniform(-1, 10, 200)]).astype(dtype)
    return x[np.rint(x) != x]


@BACKENDS
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_digamma(dtype, backend):
    x = points_of_digamma(dtype)
    found = run(lax.digamma, x, backend=backend)
    with mp.workprec(200):
        exact = [mp.digamma(mp.mpf(float(number))) for number in x]
        other = [mp.digamma(1 - mp.mpf(float(number))) for number in x]
    limit = 0.51 if dtype == np.float32 else 5
    whole = (x > 0) | (dtype == np.float32)
    assert ulps(found[whole], np.array(exact)[whole]).max() < limit
    # What is subtracted in the reflection counts near the zeros below 0.
    error = abs(found - np.array(exact, float))
    larger = np.maximum(np.abs(np.array(exact, float)), np.abs(np.array(other, float)))
    assert (error <= 6 * np.spacing(larger.astype(dtype)))[x < -1].all()
    poles = np.array([0, -1, -2, -np.inf, np.nan, np.inf], dtype)
    wanted = [np.nan] * 5 + [np.inf]
    np.testing.assert_array_equal(run(lax.digamma, poles, backend=backend), wanted)


@pytest.mark.parametrize("name", ["erf_inv", "digamma", "nextafter"])
def test_they_are_kernels(name):
    function = getattr(lax, name)
    args = [jnp.ones(3, F32)] * (2 if name == "nextafter" else 1)
    steps = lower(minijax.make_jaxpr(function)(*args)).steps
    assert not [step for step in steps if isinstance(step, Evaluate)]
    primitive = getattr(lax, f"{name}_p")
    assert primitive in kernel_rules


def test_digamma_is_found_again():
    """The quotient from 1 to 2 is as good as one with these degrees can be."""
    with mp.workprec(200):
        zero = mp.findroot(mp.digamma, 1.46)
        rest = float(zero - mp.mpf(DIGAMMA_ROOT[0]))
        assert (float(zero), rest) == DIGAMMA_ROOT

        def psi(t):
            return mp.digamma(t + mp.mpf(1.5)) / (t + mp.mpf(1.5) - zero)

        ends = mp.mpf(-0.5), mp.mpf(0.5)
        top, bottom, error = minimax_fit(
            psi, ends, 6, 5, weight=lambda t: 1 / psi(t), rounds=9
        )
        assert error < 2e-18
        np.testing.assert_allclose(np.array(top, float), DIGAMMA_RATIONAL[0], rtol=1e-3)
        np.testing.assert_allclose(
            np.array(bottom, float), DIGAMMA_RATIONAL[1], rtol=1e-3
        )


def test_tables_have_both_widths():
    assert {*ERF_INV_MIDDLE} == {"float32", "float64"}
