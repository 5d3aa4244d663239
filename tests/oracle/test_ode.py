"""Differential equations beside JAX: values, gradients, and the steps themselves."""

from importlib import import_module

import jax
import numpy as np
import pytest

import minijax


def both(make, rtol=1e-6, atol=1e-8):
    """Compare what two packages make of a program, with numbers of 64 bits."""
    found = []
    for m in (minijax, jax):
        odeint = import_module(f"{m.__name__}.experimental.ode").odeint
        with m.enable_x64(True):
            found.append(m.tree_util.tree_leaves(make(m, odeint)))
    for ours, theirs in zip(*found, strict=True):
        assert np.shape(ours) == np.shape(theirs) and ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=atol)


def oscillator(m):
    return lambda y, t, p: m.numpy.stack(
        [y[1], p["mu"] * (1 - y[0] ** 2) * y[1] - y[0] + m.numpy.sin(t)]
    )


@pytest.mark.parametrize("tries", [1, 2, 5, np.inf])
@pytest.mark.parametrize("longest", [0.03, np.inf])
def test_steps(tries, longest):
    def make(m, odeint):
        t, y = m.numpy.array([0.0, 0.02, 1.5]), m.numpy.array([2.0, 0.0])
        how = {"rtol": 1e-5, "atol": 1e-6, "mxstep": tries, "hmax": longest}
        found = odeint(oscillator(m), y, t, {"mu": 5.0}, **how)
        return found if tries == np.inf else found[:2]  # beyond, it is extrapolated

    both(make)


def test_gradients():
    def make(m, odeint):
        t, y = m.numpy.array([0.0, 0.3, 1.5]), m.numpy.array([2.0, 0.0])

        def loss(y, t, p):
            return (odeint(oscillator(m), y, t, p, rtol=1e-7, atol=1e-7) ** 2).sum()

        return m.jit(m.grad(loss, (0, 1, 2)))(y, t, {"mu": 2.0})

    both(make, rtol=1e-5)


def test_dtypes():
    def make(m, odeint):
        jnp = m.numpy
        trees = {"a": jnp.float32(1), "b": jnp.ones(2, "complex64")}
        t = jnp.linspace(0.0, 1.0, 3)

        def slope(y, t, n):
            return {"a": -y["a"] * n, "b": 1j * y["b"]}

        return odeint(slope, trees, t.astype("float32"), 2), odeint(
            lambda y, t: -y, jnp.float32(1), t
        )

    both(make, rtol=1e-5)
