"""Functions of complex numbers, compiled by both, relative to the size of the result.

Ours are held to four ulp in the unit tests; here it is JAX that loses more:
its `sinh` is a difference of exponentials, and of its logarithms in
64 bits up to 120 last places are wrong where log |z| is small.
"""

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import minijax  # noqa: E402

NAMES = "exp expm1 sinh cosh tanh sin cos tan sqrt log log1p rsqrt logistic".split()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scale", [1e-6, 0.1, 1, 12])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_beside_jax(name, scale, dtype):
    parts = np.random.default_rng(1).normal(0, scale, (2000, 2))
    z = parts.astype("f4" if dtype == "complex64" else "f8").view(dtype)[:, 0]
    with minijax.enable_x64(True), jax.enable_x64(True):
        ours = np.asarray(minijax.jit(getattr(minijax.lax, name))(z))
        theirs = np.asarray(jax.jit(getattr(jax.lax, name))(z))
    assert ours.dtype == theirs.dtype == dtype
    size = np.maximum(abs(theirs), 1) if name == "sinh" else abs(theirs)
    error = abs(ours.astype("clongdouble") - theirs) / size
    assert error.max() < (256 if "log" in name else 64) * np.finfo(dtype).eps


@pytest.mark.parametrize("name", ["sqrt", "log", "log1p"])
def test_of_all_sizes(name):
    rng = np.random.default_rng(2)
    parts = rng.choice([-1, 1], (4000, 2)) * 10 ** rng.uniform(-30, 37, (4000, 2))
    z = parts.astype("f4").view("complex64")[:, 0]
    ours = np.asarray(minijax.jit(getattr(minijax.lax, name))(z))
    theirs = np.asarray(jax.jit(getattr(jax.lax, name))(z))
    error = abs(ours.astype(complex) - theirs) / abs(theirs)
    assert error.max() < 8 * np.finfo("f4").eps
