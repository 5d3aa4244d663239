"""Jaxprs as data, and running them."""

import numpy as np
import pytest

from minijax import lax
from minijax.arrays.array import ShapedArray, typeof
from minijax.jaxprs.jaxpr import (
    ClosedJaxpr,
    Jaxpr,
    JaxprEqn,
    Literal,
    Var,
    eval_jaxpr,
    jaxpr_as_fun,
    make_jaxpr,
)
from minijax.jaxprs.pretty_printer import jaxprs_in_params, subjaxprs

VECTOR = ShapedArray((3,), np.float32)


def program():
    """By hand: { lambda a; b. let c = mul b a; d = sin c in (d, 2.0:f32[]) }."""
    a, b, c, d = (Var(VECTOR) for _ in range(4))
    eqns = [JaxprEqn([b, a], [c], lax.mul_p, {}), JaxprEqn([c], [d], lax.sin_p, {})]
    return Jaxpr([a], [b], [d, Literal(2.0)], eqns)


def test_attributes_of_a_jaxpr():
    jaxpr = program()
    assert jaxpr.in_avals == [VECTOR]
    assert jaxpr.out_avals == [VECTOR, typeof(2.0)]
    closed = ClosedJaxpr(jaxpr, [np.ones(3, np.float32)])
    assert closed.literals is closed.consts
    for name in ("constvars", "invars", "outvars", "eqns", "in_avals", "out_avals"):
        assert getattr(closed, name) == getattr(jaxpr, name)


def test_text_of_the_parts():
    jaxpr = program()
    assert repr(jaxpr.invars[0]) == "Var(f32[3])"
    assert repr(jaxpr.outvars[1]) == "Literal(2.0)"
    assert repr(jaxpr.eqns[0]) == "a:f32[3] = mul b c"
    assert repr(jaxpr) == str(jaxpr) == jaxpr.pretty_print()
    closed = ClosedJaxpr(jaxpr, [np.ones(3)])
    assert repr(closed) == closed.pretty_print() == str(jaxpr)


def test_running_it():
    jaxpr = program()
    result, two = eval_jaxpr(jaxpr, [np.float32([1, 2, 3])], np.ones(3, np.float32))
    np.testing.assert_allclose(result, np.sin(np.float32([1, 2, 3])), rtol=1e-6)
    assert two == 2.0


def test_a_closed_jaxpr_as_a_function():
    closed = ClosedJaxpr(program(), [np.zeros(3, np.float32)])
    result, _ = jaxpr_as_fun(closed)(np.ones(3, np.float32))
    np.testing.assert_array_equal(result, 0)


def test_running_it_under_a_trace_stages_it_again():
    closed = make_jaxpr(lambda x: lax.sin(x) * 2.0)(np.ones(3, np.float32))
    again = make_jaxpr(jaxpr_as_fun(closed))(np.ones(3, np.float32))
    assert str(again) == str(closed)


@pytest.mark.parametrize(
    ("consts", "args", "message"),
    [
        ([], [1.0], r"with 1 constants \(f32\[3\]\) was given 0"),
        ([1.0], [], r"with 1 arguments \(f32\[3\]\) was given 0"),
        ([1.0], [1.0, 2.0], r"with 1 arguments \(f32\[3\]\) was given 2"),
    ],
)
def test_the_wrong_number_of_values(consts, args, message):
    with pytest.raises(TypeError, match=message):
        eval_jaxpr(program(), consts, *args)


def test_a_closed_jaxpr_needs_all_constants():
    with pytest.raises(TypeError, match="was given 2"):
        ClosedJaxpr(program(), [1.0, 2.0])


def test_replacing_parts():
    jaxpr = program()
    shorter = jaxpr.replace(outvars=jaxpr.outvars[:1])
    assert len(shorter.outvars) == 1 and len(jaxpr.outvars) == 2
    assert jaxpr.eqns[1].replace(primitive=lax.cos_p).primitive is lax.cos_p
    closed = ClosedJaxpr(jaxpr, [1.0])
    assert closed.replace(consts=[2.0]).consts == [2.0]
    assert closed.replace(jaxpr=shorter).jaxpr is shorter


def test_jaxprs_inside_of_parameters():
    jaxpr = program()
    closed = ClosedJaxpr(jaxpr, [1.0])
    params = {"name": "f", "branches": (closed, jaxpr), "body": jaxpr, "axes": (0, 1)}
    assert jaxprs_in_params(params) == [jaxpr, jaxpr, jaxpr]
    outer = Jaxpr([], [], [], [JaxprEqn([], [], lax.mul_p, {"jaxpr": closed})])
    assert subjaxprs(outer) == [jaxpr]


def test_equality_is_identity():
    assert program() != program()
    assert len({program(), program()}) == 2
