"""The checker refuses what is no jaxpr, and says where and why."""

import numpy as np
import pytest

from minijax import lax
from minijax.arrays.array import ShapedArray
from minijax.core import Primitive
from minijax.jaxprs.checker import JaxprTypeError, check_jaxpr
from minijax.jaxprs.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, make_jaxpr

VECTOR = ShapedArray((3,), np.float32)
SCALAR = ShapedArray((), np.float32)


def variables(number):
    return [Var(VECTOR) for _ in range(number)]


def undefined():
    a, b, c = variables(3)
    return Jaxpr([], [a], [c], [JaxprEqn([b], [c], lax.sin_p, {})])


def defined_twice():
    a, b = variables(2)
    eqn = JaxprEqn([a], [b], lax.sin_p, {})
    return Jaxpr([], [a], [b], [eqn, eqn])


def argument_twice():
    [a] = variables(1)
    return Jaxpr([a], [a], [a], [])


def argument_defined_again():
    [a] = variables(1)
    return Jaxpr([], [a], [a], [JaxprEqn([a], [a], lax.sin_p, {})])


def used_too_early():
    a, b, c = variables(3)
    second = JaxprEqn([a], [b], lax.sin_p, {})
    return Jaxpr([], [a], [c], [JaxprEqn([b], [c], lax.cos_p, {}), second])


def undefined_result():
    a, b = variables(2)
    return Jaxpr([], [a], [b], [])


def wrong_type():
    [a] = variables(1)
    b = Var(SCALAR)
    return Jaxpr([], [a], [b], [JaxprEqn([a], [b], lax.sin_p, {})])


def too_many_results():
    a, b, c = variables(3)
    return Jaxpr([], [a], [b], [JaxprEqn([a], [b, c], lax.sin_p, {})])


def refused_by_the_shape_rule():
    a, c = variables(2)
    b = Var(ShapedArray((4,), np.float32))
    return Jaxpr([], [a, b], [c], [JaxprEqn([a, b], [c], lax.add_p, {})])


def no_shape_rule():
    a, b = variables(2)
    return Jaxpr([], [a], [b], [JaxprEqn([a], [b], Primitive("strange"), {})])


def parameter_without_hash():
    a, b = variables(2)
    eqn = JaxprEqn([a], [b], lax.rev_p, {"dimensions": [0]})
    return Jaxpr([], [a], [b], [eqn])


def literal_array():
    literal = Literal(np.ones(3, np.float32))
    return Jaxpr([], [], [literal], [])


def literal_of_another_type():
    return Jaxpr([], [], [Literal(2.5, ShapedArray((), np.int32))], [])


def inside_another():
    a, b = variables(2)
    eqn = JaxprEqn([a], [b], lax.sin_p, {"jaxpr": undefined()})
    return Jaxpr([], [a], [b], [eqn])


def constant_of_another_type():
    [a] = variables(1)
    return ClosedJaxpr(Jaxpr([a], [], [a], []), [np.ones(4, np.float32)])


WRONG = [
    (undefined, "in equation 0, `b:f32[3] = sin c`, variable c is used before it"),
    (
        defined_twice,
        "in equation 1, `b:f32[3] = sin a`, variable b is defined a second",
    ),
    (argument_twice, "in the inputs, variable a is defined a second time"),
    (
        argument_defined_again,
        "in equation 0, `a:f32[3] = sin a`, variable a is defined",
    ),
    (used_too_early, "in equation 0, `b:f32[3] = cos c`, variable c is used before"),
    (undefined_result, "in the outputs, variable b is used before it is defined"),
    (wrong_type, "`b:f32[] = sin a`, by its shape rule the results are f32[3]"),
    (too_many_results, "by its shape rule the results are f32[3]"),
    (refused_by_the_shape_rule, "its shape rule refuses the operands: add"),
    (no_shape_rule, "The shape rule of 'strange' is not implemented"),
    (parameter_without_hash, "parameter dimensions is a list, which has no hash"),
    (literal_array, "in the outputs, literal [1. 1. 1.] is not a scalar"),
    (literal_of_another_type, "literal 2.5 is not of type i32[]"),
    (inside_another, "in equation 0, `b:f32[3] = sin c`"),
    (
        constant_of_another_type,
        "in the inputs, constant 0 is f32[4] and its variable f32[3]",
    ),
]


@pytest.mark.parametrize(("make", "message"), WRONG)
def test_refused(make, message):
    with pytest.raises(JaxprTypeError) as caught:
        check_jaxpr(make())
    assert message in str(caught.value)
    assert "{ lambda" in str(caught.value)


@pytest.mark.parametrize(("make", "_"), WRONG)
def test_the_sentence_has_one_full_stop(make, _):
    with pytest.raises(JaxprTypeError) as caught:
        check_jaxpr(make())
    sentence = str(caught.value).split("\n\n{ lambda")[0]
    assert sentence.endswith(".") and not sentence.endswith("..")


def test_the_name_of_an_unused_result():
    a, b, c = variables(3)
    eqns = [JaxprEqn([a], [b], lax.sin_p, {}), JaxprEqn([c], [b], lax.sin_p, {})]
    with pytest.raises(JaxprTypeError, match="variable b is used before"):
        check_jaxpr(Jaxpr([], [a], [a], eqns))


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: x,
        lambda x: (),
        lambda x: lax.sin(x) * np.arange(3.0) + 2.0,
        lambda x: lax.broadcast_in_dim(x, (2, 3), (1,)),
        lambda x: lax.reduce_sum(x, (0,)),
    ],
)
def test_accepted(fun):
    closed = make_jaxpr(fun)(np.ones(3, np.float32))
    check_jaxpr(closed)
    check_jaxpr(closed.jaxpr)
