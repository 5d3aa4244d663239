"""A call of a program, under every transformation."""

import itertools

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax.jaxprs.checker import check_jaxpr
from minijax.jitting.primitive import jit_p
from tests.commands import some

V = np.float32([0.5, 1.0, 2.0])
TABLE = jnp.arange(3.0)

CORPUS = {
    "sine": lambda x: jnp.sin(x) * x,
    "same": lambda x: x,
    "constant": lambda x: TABLE * 2.0,
    "table": lambda x: jnp.tanh(TABLE * x),
    "nested": lambda x: minijax.jit(jnp.sin)(x) * minijax.jit(jnp.cos)(3.0 * x),
    "inline": lambda x: minijax.jit(jnp.exp, inline=True)(x),
    "closure": lambda x: minijax.jit(lambda y: x * y)(x + 1.0),
    "two": lambda x: sum(minijax.jit(lambda a, b: (a * b, b))(x, x)),
    "integers": lambda x: x * jnp.argmax(x),
    "unused": lambda x: minijax.jit(lambda a, b: a)(x, jnp.sin(x)),
}
WAYS = {
    "jvp": lambda f: lambda x: minijax.jvp(f, (x,), (x,))[1],
    "grad": lambda f: minijax.grad(lambda x: f(x).sum()),
    "vmap": lambda f: lambda x: minijax.vmap(f)(jnp.stack([x, x]))[1],
    "linearize": lambda f: lambda x: minijax.linearize(f, x)[1](x),
    "jit": minijax.jit,
}


PAIRS = list(itertools.product(WAYS, repeat=2))


@pytest.mark.parametrize("name, ways", some(itertools.product(CORPUS, PAIRS), 2))
def test_a_call_changes_nothing(name, ways):
    plain = jitted = CORPUS[name]
    jitted = minijax.jit(jitted)
    for way in ways:
        plain, jitted = WAYS[way](plain), minijax.jit(WAYS[way](jitted))
    with minijax.disable_jit():
        expected = plain(V)
    np.testing.assert_allclose(jitted(V), expected, rtol=2e-5, atol=1e-6)
    check_jaxpr(minijax.make_jaxpr(jitted)(V))


def test_operands_are_checked():
    closed = minijax.make_jaxpr(jnp.sin)(V)
    with pytest.raises(TypeError, match=r"f is a program for \(float32\[3\]\); it was"):
        jit_p.bind(np.ones(4, np.float32), jaxpr=closed, name="f").pop()
        minijax.make_jaxpr(lambda x: jit_p.bind(x, jaxpr=closed, name="f"))(2.0)


def test_inline_vanishes_on_paper():
    f = minijax.jit(lambda x: x * 2, inline=True)
    assert "jit" not in str(minijax.make_jaxpr(f)(1.0))
    assert f(2.0) == 4.0


def test_known_results_that_are_operands_are_not_computed():
    f = minijax.jit(lambda a, b: (a * b, b))
    text = str(minijax.make_jaxpr(minijax.grad(lambda x: f(x, x)[0]))(1.0))
    assert "in (_,) }" in text


def test_named_axes():
    centred = minijax.jit(lambda x: x - minijax.lax.psum(x, "i") / 3.0)
    np.testing.assert_allclose(
        minijax.vmap(centred, axis_name="i")(V), V - V.mean(), rtol=1e-6
    )
    index = minijax.jit(lambda: minijax.lax.axis_index("i"))
    np.testing.assert_array_equal(
        minijax.vmap(lambda x: index(), axis_name="i")(V), [0, 1, 2]
    )


def test_one_program_is_written_once():
    f = minijax.jit(lambda x: jnp.sin(x) * 2)
    text = str(minijax.make_jaxpr(lambda x: f(f(x)) + f(x))(1.0))
    assert text.count("sin") == 1
    assert text.startswith("let lambda = ")
