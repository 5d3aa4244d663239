"""Scans in emitted Python: the text, and the same bits as the interpreter."""

import re

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import grad, lax, make_jaxpr, vmap
from minijax.jitting.compilation import compile_cached
from tests.scan_cases import CASES, ROWS, TABLE, X
from tests.test_scans_scan_rules import WAYS


def text_of(f, *args):
    return compile_cached(make_jaxpr(f)(*args), "python").text


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", CASES)
def test_the_interpreter_agrees(name, way):
    closed = make_jaxpr(WAYS[way](CASES[name]))(X)
    ours, theirs = (compile_cached(closed, b)(X) for b in ("python", "interpreter"))
    for a, b in zip(ours, theirs, strict=True):
        assert a.aval == b.aval
        np.testing.assert_array_equal(a, b)


def test_a_scan_is_a_for_loop():
    text = text_of(lambda x: lax.scan(lambda c, a: (c * a, c), x, ROWS), 1.0)
    assert "for step in range(4):" in text
    assert "np.empty((4,), np.float32)" in text


def test_backwards():
    f = lambda x: lax.scan(lambda c, a: (c * a, c), x, ROWS, reverse=True)  # noqa: E731
    assert "for step in range(3, -1, -1):" in text_of(f, 1.0)


def test_rows_that_are_stacked_twice_are_stored_once():
    def f(x):
        return lax.scan(lambda c, a: (jnp.sin(c) * a, (c, c)), x, ROWS)

    text = text_of(f, 1.0)
    assert text.count("np.empty") == 1
    first, second = compile_cached(make_jaxpr(f)(1.0))(1.0)[1:]
    np.testing.assert_array_equal(first, second)


def test_what_nobody_needs_is_not_stored():
    def f(x):
        return lax.scan(lambda c, a: (c * a, (jnp.sin(c), a * 2)), x, ROWS)[0]

    text = text_of(f, 1.0)
    assert "np.empty" not in text
    assert "np.sin" not in re.sub("#.*", "", text)


def test_loops_inside_loops():
    text = text_of(vmap(grad(lambda x: CASES["nested"](x)[0].sum())), X[None])
    assert text.count("for step") == text.count("in range(")
    assert text.count("for step") == 4


def test_a_carry_is_not_overwritten_too_early():
    def swap(c, a):
        return (c[1], c[0] + a), c[0]

    (p, q), ys = lax.scan(swap, (1.0, 2.0), ROWS)
    program = compile_cached(
        make_jaxpr(lambda: lax.scan(swap, (1.0, 2.0), ROWS))(), "python"
    )
    for ours, theirs in zip(program(), (p, q, ys)):
        np.testing.assert_allclose(ours, theirs)


def test_results_of_no_steps():
    text = text_of(CASES["no_steps"], X)
    assert "range(0)" in text
    carry, ys = CASES["no_steps"](X)
    assert (carry.shape, ys.shape) == ((3,), (0, 3))
    assert TABLE.shape == (4, 3)
