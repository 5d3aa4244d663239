"""Scans that run backwards."""

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import grad, lax, linear_transpose, linearize, make_jaxpr, vjp
from minijax.jaxprs.checker import check_jaxpr
from minijax.scans import scan as transposition
from minijax.scans import step as steps
from minijax.scans.scan import scan_p
from minijax.tree_util import tree_leaves
from tests.scan_cases import CASES, ROWS, TABLE, X

LINEAR = {
    "carry": lambda x: lax.scan(lambda c, a: (0.5 * c, 2.0 * c), x, None, length=3),
    "rows": lambda x: lax.scan(lambda c, a: (c + a, c), jnp.zeros(3), x * TABLE),
    "constant": lambda x: lax.scan(lambda c, a: (c + a * x, x), jnp.zeros(3), ROWS),
    "reverse": lambda x: lax.scan(lambda c, a: (c + a * x, c), x, ROWS, reverse=True),
    "forgotten": lambda x: lax.scan(lambda c, a: (a * x, c), x, ROWS),
    "steps": lambda x: lax.scan(lambda c, a: (c + a * x, c), x, ROWS[:0]),
    "counted": lambda x: lax.fori_loop(0, 3, lambda i, c: c * i + x, x),
    "map": lambda x: lax.map(lambda a: a * x, TABLE),
}


@pytest.mark.parametrize("name", LINEAR)
def test_definition(name):
    """The cotangent times what moves is the same at the entrance and at the exit."""
    f, generator = LINEAR[name], np.random.default_rng(0)
    outs = tree_leaves(f(X))
    cts = [generator.normal(size=out.shape).astype("float32") for out in outs]
    treedef = lambda: f(X)  # noqa: E731
    from minijax.tree_util import tree_structure

    [ct_x] = linear_transpose(f, X)(tree_structure(treedef()).unflatten(cts))
    at_exit = sum(float((ct * out).sum()) for ct, out in zip(cts, outs))
    np.testing.assert_allclose(float((ct_x * X).sum()), at_exit, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_definition_for_derivatives(name):
    f = CASES[name]
    _, derivative = linearize(f, X)
    out, pull = vjp(f, X)
    rates = derivative(X * 2)
    [ct] = pull(out)
    at_exit = sum(float((a * b).sum()) for a, b in zip(*map(tree_leaves, (out, rates))))
    np.testing.assert_allclose(float((ct * X * 2).sum()), at_exit, rtol=1e-3, atol=1e-4)


def test_the_last_step_comes_first():
    program = make_jaxpr(grad(lambda x: CASES["backwards"](x)[0].sum()))(X)
    assert [e.params["reverse"] for e in program.eqns if e.primitive is scan_p] == [
        True,
        False,
    ]
    check_jaxpr(program)


def test_results_without_cotangents_need_nothing():
    def f(x):
        def step(c, a):
            return (c[0] * x, jnp.sin(c[1]) * a), jnp.cos(c[1])

        (first, _), _ = lax.scan(step, (1.0, x), ROWS)
        return first

    *_, backwards = [e for e in make_jaxpr(grad(f))(2.0).eqns if e.primitive is scan_p]
    assert backwards.params["num_carry"] == 2  # of the first carry, and of x
    assert "cos" not in str(backwards)


def test_a_gradient_is_linear_in_the_number_of_steps():
    def eqns(length):
        def f(x):
            return lax.scan(lambda c, _: (jnp.sin(c), None), x, None, length)[0].sum()

        return len(make_jaxpr(grad(f))(X).eqns)

    assert eqns(3) == eqns(3000)


@pytest.fixture
def sums_in_the_carry(monkeypatch):
    plain = transposition.sum_in_carry
    monkeypatch.setattr(transposition.accumulation_loop_hook, "value", plain)


@pytest.mark.parametrize("name", CASES)
def test_sums_in_the_carry_agree(name, request):
    out, pull = vjp(CASES[name], X)
    expected = pull(out)
    request.getfixturevalue("sums_in_the_carry")
    _, pull = vjp(CASES[name], X)
    for one, other in zip(tree_leaves(pull(out)), tree_leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_each_sum_is_in_the_carry(sums_in_the_carry):
    def f(w):
        step = lambda h, x: (jnp.tanh(w @ h + x), None)  # noqa: E731
        return lax.scan(step, jnp.zeros(3), ROWS)[0].sum()

    program = make_jaxpr(grad(f))(np.eye(3, dtype="float32"))
    _, back = [e.params for e in program.eqns if e.primitive is scan_p]
    assert back["num_carry"] == 2
    assert [var.aval.shape for var in back["jaxpr"].outvars] == [(3, 3), (3,)]
    check_jaxpr(program)


def test_sums_in_the_carry_keep_types():
    whole = np.zeros((2, 2), "float16")
    program = make_jaxpr(lambda w, c, x: (x * w, 2.0, c))(whole, whole, whole)
    adding = steps.accumulate_in_carry(program, 1, 2)
    check_jaxpr(adding)
    assert adding.out_avals == program.out_avals
    assert adding.in_avals[1:3] == program.out_avals[:2]
