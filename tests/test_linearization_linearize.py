"""linearize: values, trees, residuals, and what it says of bad input."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minijax
import minijax.numpy as jnp
from minijax import jvp, lax, linearize, make_jaxpr, vmap
from minijax.arrays.dtypes import float0
from minijax.core import Primitive, Trace, current_trace, set_current_trace
from minijax.forward_mode.jvp import jvp_rules
from minijax.jaxprs.jaxpr import JaxprTrace, JaxprTracer, Var
from minijax.linearization.linearize import (
    PartialEvalTrace,
    linearize_flat,
    partial_eval_rules,
)
from minijax.tree_util import tree_leaves, tree_map
from tests.forward_cases import CASES

X = np.array([0.4, -1.2, 2.0], dtype="float32")


def layer(params, x):
    hidden = jnp.tanh(x @ params["w"] + params["b"])
    return {"sum": hidden.sum(), "all": (hidden, x * 2.0)}


PARAMS = {"w": np.eye(3, dtype="float32") * 0.5, "b": np.ones(3, "float32")}


def test_value_and_derivative_are_those_of_jvp():
    tangents = tree_map(lambda p: np.cos(p), PARAMS), np.ones(3, "float32")
    value, derivative = linearize(layer, PARAMS, X)
    expected, rates = jvp(layer, (PARAMS, X), tangents)
    for ours, theirs in [(value, expected), (derivative(*tangents), rates)]:
        assert minijax.tree_util.tree_structure(ours) == (
            minijax.tree_util.tree_structure(theirs)
        )
        for a, b in zip(tree_leaves(ours), tree_leaves(theirs), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)


def test_the_function_is_called_once():
    calls = []

    def f(x):
        calls.append(x)
        return jnp.sin(x)

    _, derivative = linearize(f, 1.0)
    derivative(1.0), derivative(2.0), vmap(derivative)(X)
    assert len(calls) == 1


class Listener(Trace):
    """Notes the primitives that pass by."""

    def __init__(self):
        self.parent, self.heard = current_trace(), []

    def process_primitive(self, primitive, args, params):
        self.heard.append(primitive.name)
        with set_current_trace(self.parent):
            return primitive.bind_all(*args, **params)


def heard(f, *args):
    listener = Listener()
    with set_current_trace(listener):
        f(*args)
    return listener.heard


def test_nothing_nonlinear_is_left_for_later():
    _, derivative = linearize(lambda x: jnp.exp(jnp.sin(x)) / x, X)
    assert {"mul", "neg", "add_any", "div", "integer_pow"} >= set(heard(derivative, X))
    assert not {"sin", "cos", "exp"} & set(heard(derivative, X))


def test_python_may_look_at_known_values():
    def f(x):
        return x * 3.0 if x > 1.0 else x * 5.0

    assert [float(linearize(f, x)[1](1.0)) for x in (2.0, 0.5)] == [3.0, 5.0]


@given(st.floats(-50, 50), st.floats(-50, 50))
def test_derivative_is_linear_far_from_the_point(a, b):
    _, derivative = linearize(lambda x: jnp.sin(x) * jnp.exp(-x * x), 0.3)
    left = derivative(a) * 2.0 + derivative(b)
    np.testing.assert_allclose(left, derivative(2.0 * a + b), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("name", CASES)
def test_every_rule_leaves_a_linear_program(name):
    """A rule may be right for small tangents and not linear: large ones tell."""
    call, operands = CASES[name]
    with minijax.enable_x64():
        points = [np.asarray(x) for x in operands]
        moving = [i for i, x in enumerate(points) if x.dtype.kind in "fc"]
        rng = np.random.default_rng(0)
        _, jaxpr, consts = linearize_flat(lambda *xs: [call(lax, *xs)], points)

        def derivative(directions):
            return minijax.jaxprs.jaxpr.eval_jaxpr(jaxpr, consts, *directions)

        def random():
            return [
                (20.0 * rng.normal(size=points[i].shape)).astype(points[i].dtype)
                for i in moving
            ]

        a, b = random(), random()
        both = derivative([x + y for x, y in zip(a, b)])
        for whole, left, right in zip(both, derivative(a), derivative(b), strict=True):
            np.testing.assert_allclose(
                whole, np.asarray(left) + np.asarray(right), rtol=1e-6, atol=1e-6
            )


def test_the_tape_has_one_input_for_each_thing_that_moves():
    outs, jaxpr, consts = linearize_flat(
        lambda x, i, z: [x * z, i + 1, i], [X, np.arange(3), np.complex64(1j)]
    )
    assert [var.aval.str_short() for var in jaxpr.invars] == ["f32[3]", "c64[]"]
    assert len(outs) == len(jaxpr.outvars) == 3
    assert all(isinstance(var, Var) for var in jaxpr.constvars)


def test_integers_have_no_direction():
    value, derivative = linearize(lambda x, i: (x * i, i + 1), X, np.arange(3))
    rate, nothing = derivative(X, np.zeros(3, float0))
    np.testing.assert_allclose(rate, X * np.arange(3))
    assert nothing.dtype == float0 and nothing.shape == (3,)


def test_what_does_not_move_has_rate_zero():
    value, derivative = linearize(lambda x: (jnp.ones((2, 3)), 3.0, x), X)
    zeros, zero, x = derivative(X)
    assert zeros.shape == (2, 3) and not np.any(zeros) and zero == 0.0
    np.testing.assert_array_equal(x, X)


def test_aux_is_returned_as_it_is():
    value, derivative, aux = linearize(
        lambda x: (x * x, {"name": "square", "half": x / 2}), 3.0, has_aux=True
    )
    assert float(value) == 9.0 and float(derivative(1.0)) == 6.0
    assert aux["name"] == "square" and float(aux["half"]) == 1.5


def test_the_derivative_is_a_tree_of_residuals():
    _, derivative = linearize(jnp.sin, X)
    [cosine] = tree_leaves(derivative)
    np.testing.assert_allclose(cosine, np.cos(X), rtol=1e-6)
    doubled = tree_map(lambda r: 2.0 * r, derivative)
    np.testing.assert_allclose(doubled(X), 2.0 * derivative(X), rtol=1e-6)


def test_nested_linearize_and_its_neighbours_agree():
    def slope(f):
        return lambda x: linearize(f, x)[1](1.0)

    def f(x):
        return jnp.sin(x) * x

    third = slope(slope(slope(f)))(2.0)
    np.testing.assert_allclose(
        third, -3 * np.sin(2.0) - 2.0 * np.cos(2.0), rtol=1e-5
    )
    np.testing.assert_allclose(vmap(slope(f))(X), [slope(f)(x) for x in X], rtol=1e-6)
    closed = make_jaxpr(slope(f))(2.0)
    assert [str(eqn.primitive) for eqn in closed.eqns].count("sin") == 1


def test_a_tape_of_somebody_else_is_a_constant():
    """linearize inside make_jaxpr: the outer program's stand-ins are known to us."""
    closed = make_jaxpr(lambda x: linearize(lambda z: jnp.sin(z) * x, x)[0])(2.0)
    assert [str(eqn.primitive) for eqn in closed.eqns] == ["sin", "cos", "mul"]


def test_split_rules_meet_what_is_partly_known():
    pair_p = Primitive("pair")
    tape = JaxprTrace(current_trace())
    unknown = tape.new_input(minijax.typeof(1.0))
    seen = []

    def rule(trace, primitive, args, in_unknown, params):
        seen.append((primitive, in_unknown, params))
        return [args[0], lax.mul(args[1], 2.0)]

    partial_eval_rules[pair_p] = rule
    try:
        with set_current_trace(PartialEvalTrace(current_trace(), tape)):
            known, later = pair_p.bind_all(3.0, unknown, axis=1)
    finally:
        del partial_eval_rules[pair_p]
    assert seen == [(pair_p, [False, True], {"axis": 1})]
    assert known == 3.0 and isinstance(later, JaxprTracer)


@pytest.mark.parametrize("result", [2.0, np.float32(2), jnp.float32(2)])
def test_a_constant_result_has_an_array_of_zero_for_a_tangent(result):
    out, derivative = linearize(lambda x: result, 1.0)
    tangent = derivative(1.0)
    assert isinstance(tangent, minijax.Array) and tangent == 0.0
    assert tangent.weak_type == minijax.typeof(out).weak_type
    _, derivative = linearize(minijax.grad(lambda x: 2.0 * x), 3.0)
    assert derivative(1.0).weak_type  # the gradient of a weak number is weak


def test_what_no_result_needs_is_left_out_with_its_residuals():
    _, derivative = linearize(lambda x: (jnp.sin(jnp.exp(x)), x * 2.0)[1], X)
    assert str(derivative.func.jaxpr).count(" = ") == 1
    assert not tree_leaves(derivative)
    acting = []

    def told(x):
        minijax.debug.callback(acting.append, x)
        return x

    quiet = minijax.custom_jvp(lambda x: x)
    quiet.defjvp(lambda primals, tangents: (primals[0], told(tangents[0])))
    _, derivative = linearize(lambda x: (quiet(x), 2 * x)[1], 3.0)
    assert derivative(5.0) == 10.0
    minijax.effects_barrier()
    assert acting == [5.0]


def test_the_gradient_of_a_backward_rule_is_linearized():
    """Its forward rule calls the function, whose tangent is not needed."""
    cube = minijax.custom_vjp(lambda x: x**3)
    cube.defvjp(lambda x: (cube(x), x), lambda x, ct: (4 * x * x * ct,))
    slope, derivative = linearize(minijax.grad(lambda x: 2 * cube(x)), 3.0)
    assert (slope, derivative(1.0)) == (72.0, 48.0)
    with pytest.raises(TypeError, match="forward-mode"):
        linearize(minijax.grad(lambda x: cube(x) ** 2), 3.0)[1](1.0)


def test_a_rule_that_is_missing_says_so():
    lonely_p = Primitive("lonely")
    assert lonely_p not in jvp_rules
    with pytest.raises(NotImplementedError, match="jvp rule of 'lonely'"):
        linearize(lambda x: lonely_p.bind(x), 1.0)


_, DERIVATIVE = linearize(lambda x, i: x * i, X, np.arange(3))
NOTHING = np.zeros(3, float0)
BAD = {
    "shape": (lambda: DERIVATIVE(np.ones(4, "float32"), NOTHING), ValueError, "x .*3,"),
    "dtype": (lambda: DERIVATIVE(X.astype("float16"), NOTHING), ValueError, "float32"),
    "integer": (lambda: DERIVATIVE(X, X), ValueError, "float0"),
    "too few": (lambda: DERIVATIVE(X), TypeError, "tree structure"),
    "a tree": (lambda: DERIVATIVE((X, NOTHING)), TypeError, "tree structure"),
    "a word": (lambda: linearize(jnp.sin, "x"), TypeError, "str"),
    "a word inside": (lambda: linearize(layer, {"w": "a"}, X), TypeError, r"\['w'\]"),
    "not callable": (lambda: linearize(3, 1.0), TypeError, "callable"),
    "returns a word": (lambda: linearize(lambda x: "a", 1.0), TypeError, "str"),
    "no pair": (lambda: linearize(jnp.sin, 1.0, has_aux=True), TypeError, "pair"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    call, error, words = BAD[name]
    with pytest.raises(error, match=words):
        call()
