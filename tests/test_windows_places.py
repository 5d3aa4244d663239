"""Extremes in windows of arrays whose elements need more than 31 bits to count."""

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import ShapeDtypeStruct, enable_x64, grad, jit, lax, make_jaxpr
from minijax.core import impl_rules
from minijax.windows import reduce_window as selections


def pooled(x):
    return (lax.reduce_window(x, -jnp.inf, lax.max, (3,), (2,), "SAME") ** 2).sum()


def counted_in(size):
    """The dtype that numbers the elements in a gradient, written down and not run."""
    x = ShapeDtypeStruct((size,), "float32")
    name = "select_and_scatter_add"
    [eqn] = [e for e in make_jaxpr(grad(pooled))(x).eqns if e.primitive.name == name]
    types = [ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in eqn.invars]
    written = make_jaxpr(lambda *xs: impl_rules[eqn.primitive](*xs, **eqn.params))
    dtypes = [
        e.outvars[0].aval.dtype
        for e in written(*types).eqns
        if e.primitive.name == "iota"
    ]
    return dtypes[0].name


def test_places_have_enough_bits():
    assert counted_in(2**31 - 1) == "int32"
    assert counted_in(2**31) == counted_in(2**32 - 1) == "uint32"
    with pytest.raises(OverflowError, match="64 bits.*jax_enable_x64"):
        counted_in(2**32)
    with enable_x64(True):
        assert counted_in(2**32) == "int64"


@pytest.mark.parametrize("counting", ["uint32", "int64"])
def test_each_dtype_finds_the_same_places(counting, monkeypatch):
    x = jnp.array(np.random.default_rng(0).normal(size=101), "float32")
    expected = grad(pooled)(x)
    assert np.count_nonzero(expected)
    with enable_x64(counting == "int64"):
        monkeypatch.setattr(selections, "POSITION_DTYPES", [np.dtype(counting)])
        for backend in (None, "cpu", "kernels", "python"):
            f = grad(lambda x: pooled(x) * 1)
            f = jit(f, backend=backend) if backend else f
            np.testing.assert_array_equal(f(x), expected)
