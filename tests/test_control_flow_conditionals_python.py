"""Choices and loops in emitted Python."""

import numpy as np

import minijax.numpy as jnp
from minijax import jit, lax, vmap


def text(f, *args):
    return jit(f, backend="python").lower(*args).compile().as_text()


def test_choice_is_an_if():
    def f(x):
        return lax.cond(x > 0, jnp.sin, lambda x: x * 2, x)

    said = text(f, 1.0)
    places = [said.index(word) for word in ("if c:", "d = np.sin(a)", "else:")]
    assert places == sorted(places)
    assert "cond_branch" not in said


def test_switch_is_a_chain():
    said = text(lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, jnp.tanh], x), 0, 1.0)
    assert [said.count(word) for word in ("if d == 0:", "elif d == 1:", "else:")] == [
        1
    ] * 3
    f = jit(lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, jnp.tanh], x))
    found = [float(f(i, 0.5)) for i in range(3)]
    np.testing.assert_allclose(
        found, [np.sin(0.5), np.cos(0.5), np.tanh(0.5)], rtol=1e-6
    )


def test_a_branch_without_equations():
    f = jit(lambda p, x, y: lax.cond(p, lambda: (x, y), lambda: (y, x)))
    assert f(True, 1.0, 2.0) == (1.0, 2.0)
    assert f(False, 1.0, 2.0) == (2.0, 1.0)


def test_loops_in_place():
    def f(n):
        return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[0]), (0, 9))

    assert "while True:" in text(f, 3)
    assert jit(f)(3) == (3, 2)
    assert jit(f)(0) == (0, 9)


def test_swapped_carries():
    def f(n):
        def body(c):
            return c[0] + 1, c[2], c[1]

        return lax.while_loop(lambda c: c[0] < n, body, (0, 1.0, 2.0))

    assert jit(f)(3) == (3, 2.0, 1.0)
    out = jit(vmap(f))(jnp.asarray([0, 1, 2]))
    np.testing.assert_array_equal(out[1], [1, 2, 1])
    assert ".any()" in text(vmap(f), jnp.asarray([0, 1, 2]))


def test_costs_of_a_choice_are_those_of_its_dearest_branch():
    def f(p, m):
        return lax.cond(p, lambda: m @ m, lambda: m)

    costs = jit(f).lower(True, jnp.ones((10, 10))).compile().cost_analysis()
    assert 2000 <= costs["flops"] <= 2010
