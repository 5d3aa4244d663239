"""What a split scan keeps for the tape: invariants once, the rest once per step."""

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import grad, jit, lax, linearize, make_jaxpr
from minijax.experimental import io_callback
from minijax.scans.scan import scan_p
from minijax.tree_util import tree_leaves
from tests.scan_cases import MATRIX, ROWS, TABLE, X


def residuals(f, *args):
    return [leaf.shape for leaf in tree_leaves(linearize(f, *args)[1])]


def scans(f, *args):
    return [eqn for eqn in make_jaxpr(f)(*args).eqns if eqn.primitive is scan_p]


def test_constants_are_kept_once():
    def f(x):
        return lax.scan(lambda c, a: (c * jnp.exp(x), None), 1.0, ROWS)[0]

    assert sorted(residuals(f, 0.5)) == [(), (4,)]


def test_what_constants_decide_is_done_before_the_loop():
    def f(x):
        return lax.scan(lambda c, a: (c * jnp.exp(jnp.sin(x)) * a, None), x, TABLE)[0]

    [eqn] = scans(lambda x: linearize(f, x)[0], X)
    assert "exp" not in str(eqn.params["jaxpr"])
    assert "sin" not in str(eqn.params["jaxpr"])


def test_rows_of_xs_are_not_stacked_again():
    table = jnp.asarray(TABLE)

    def f(x):
        return lax.scan(lambda c, a: (c * a, None), x, table)[0]

    _, derivative = linearize(f, X)
    [kept] = tree_leaves(derivative)
    assert kept is table


def test_carries_before_each_step_are_stacked():
    def f(w):
        return lax.scan(lambda c, _: (w * c, None), X, None, length=5)[0]

    assert sorted(residuals(f, np.float32(0.5))) == [(3,), (5, 3)]  # zeros, and carries


def test_a_linear_loop_keeps_nothing_of_its_steps():
    def f(x):
        return lax.scan(lambda c, a: (0.5 * c + a, c), x, TABLE)

    assert residuals(f, X) == []


def test_integers_stay_on_this_side():
    def f(x):
        step = lambda c, a: ((c[0] + 1, c[1] * x), c[0])  # noqa: E731
        return lax.scan(step, (0, x), TABLE)

    _, tape = scans(lambda x, t: linearize(f, x)[1](t), X, X)
    assert {var.aval.dtype.name for var in tape.invars} == {"float32"}


def test_the_known_loop_is_left_out_if_nobody_needs_it():
    def f(x):
        return lax.scan(lambda c, a: (c + a * x, None), x, ROWS)[0]

    eqns = scans(lambda t: linearize(lambda x: f(x), 1.0)[1](t), 1.0)
    assert len(eqns) == 2
    assert len(scans(grad(lambda x: f(x)), 1.0)) == 2


def test_effects_stay_in_the_loop():
    seen = []

    def f(x):
        def step(c, a):
            io_callback(lambda v: seen.append(float(v)), None, jnp.sin(2.0))
            return c * x, None

        return lax.scan(step, x, ROWS)[0]

    grad(f)(2.0)
    assert len(seen) == 4


@pytest.mark.parametrize("jitted", [False, True])
def test_residuals_of_a_scan_inside_a_scan(jitted):
    def f(w):
        def outer(h, _):
            inner = lambda h, a: (jnp.tanh(w @ h + a), None)  # noqa: E731
            return lax.scan(inner, h, TABLE)[0], h

        return lax.scan(outer, X, None, length=2)[0].sum()

    g = jit(grad(f)) if jitted else grad(f)
    w, h = jnp.asarray(MATRIX), 1e-2
    bump = np.zeros((3, 3), "float32")
    bump[1, 2] = h
    slope = (f(w + bump) - f(w - bump)) / (2 * h)
    assert abs(g(w)[1, 2] - slope) < 1e-2
