"""stop_gradient: the value stays, the derivative is forgotten."""

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import grad, hessian, jit, jvp, linearize, make_jaxpr, vmap
from minijax.lax import cond, fori_loop, scan, stop_gradient


def half_forgotten(x):
    return stop_gradient(x) * x


def test_the_value_stays():
    tree = {"a": jnp.arange(3.0), "b": (np.float16(2), None)}
    same = stop_gradient(tree)
    assert repr(same["a"]) == "Array([0., 1., 2.], dtype=float32)"
    assert same["b"][0].dtype == np.float16 and same["b"][1] is None
    assert stop_gradient(1.5).weak_type and stop_gradient(3).dtype == np.int32
    with pytest.raises(TypeError, match="not a valid JAX type"):
        stop_gradient("x")


def test_the_derivative_is_forgotten():
    assert grad(half_forgotten)(2.0) == 2.0
    assert jvp(half_forgotten, (2.0,), (1.0,)) == (4.0, 2.0)
    assert hessian(lambda x: half_forgotten(x) * x)(2.0) == 4.0
    assert linearize(lambda x: stop_gradient(x) + x, 2.0)[1](1.0) == 1.0
    assert not grad(lambda x: stop_gradient(x).sum())(jnp.ones(2)).any()


def test_programs_are_those_of_jax():
    text = str(make_jaxpr(half_forgotten)(1.0))
    assert "b:f32[] = stop_gradient a; c:f32[] = mul b a in (c,)" in text
    assert "stop_gradient a in" in str(make_jaxpr(vmap(stop_gradient))(jnp.ones(3)))


LOOPS = {
    "jit": jit(half_forgotten),
    "cond": lambda x: cond(x > 0, half_forgotten, lambda x: x, x),
    "scan": lambda x: scan(lambda c, _: (half_forgotten(c), None), x, None, 1)[0],
    "fori_loop": lambda x: fori_loop(0, 1, lambda _, c: half_forgotten(c), x),
}


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("backend", ["interpreter", "python", "cpu"])
def test_inside_of_programs(name, backend):
    x = jnp.asarray([1.0, 2.0, 3.0])
    with minijax.config.override("minijax_backend", backend):
        np.testing.assert_array_equal(vmap(grad(LOOPS[name]))(x), x)
        np.testing.assert_array_equal(jit(vmap(grad(LOOPS[name])))(x), x)
