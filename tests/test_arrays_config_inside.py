"""A switch of dtypes that changes inside of a function: numbers keep what they were."""

import numpy as np
import pytest

import minijax as jax
import minijax.numpy as jnp
from minijax import lax

BODIES = {
    "sin": jnp.sin,
    "product": lambda x: x * x,
    "double": lambda x: x * 2.0,
    "cube": lambda x: x**3,
    "quotient": lambda x: 1 / (x + 1),
    "chosen": lambda x: jnp.where(x > 0, x, 0.0),
    "sum": lambda x: jnp.sum(jnp.ones(3) * x),
    "scan": lambda x: lax.scan(lambda c, _: (c * x, None), x, None, 3)[0],
    "loop": lambda x: lax.fori_loop(0, 3, lambda i, c: c * x, x),
    "call": lambda x: jax.jit(jnp.sin)(x),
    "branch": lambda x: lax.cond(x > 0, jnp.sin, jnp.cos, x),
    "wide": lambda x: jnp.sin(jnp.asarray(x, float)).astype("float32"),
}
PAIR = [0.5, 0.5]
WAYS = {
    "plain": lambda f: f,
    "grad": jax.grad,
    "value_and_grad": jax.value_and_grad,
    "linearize": lambda f: lambda x: jax.linearize(f, x)[1](1.0),
    "jacfwd": jax.jacfwd,
    "jit": jax.jit,
    "jit grad": lambda f: jax.jit(jax.grad(f)),
    "grad jit": lambda f: jax.grad(jax.jit(f)),
    "checkpoint": lambda f: jax.grad(jax.checkpoint(f)),
    "vmap": lambda f: lambda x: jax.vmap(f)(jnp.array(PAIR))[0],
    "vmap grad": lambda f: lambda x: jax.vmap(jax.grad(f))(jnp.array(PAIR))[0],
    "scan": lambda f: lambda x: lax.map(f, jnp.array(PAIR))[0],
    "grad of scan": jax.grad,
    "evaluated": lambda f: (
        lambda x: jax.core.eval_jaxpr(
            jax.make_jaxpr(f)(x).jaxpr, jax.make_jaxpr(f)(x).consts, x
        )[0]
    ),
}


def within(body, wide):
    def f(x):
        with jax.enable_x64(wide):
            return body(x)

    return f


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", BODIES)
def test_the_values_are_those_without_the_switch(name, way):
    body = BODIES[name]
    switched, plain = (WAYS[way](f) for f in (within(body, True), body))
    with jax.enable_x64(False):
        for x in (0.5, jnp.float32(0.5)):
            leaves = [jax.tree.leaves(f(x)) for f in (switched, plain)]
            for found, wanted in zip(*leaves, strict=True):
                np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_the_derivative_has_the_dtype_of_what_came_in():
    with jax.enable_x64(False):
        slope = jax.grad(within(jnp.sin, True))(0.5)
        assert (slope.dtype, slope.weak_type) == (np.float32, True)
