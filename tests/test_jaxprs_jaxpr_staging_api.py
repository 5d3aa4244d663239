"""make_jaxpr, eval_shape, ShapeDtypeStruct, and questions that have no answer yet."""

import functools

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import lax
from minijax.arrays.array import ShapedArray
from minijax.errors import (
    ConcretizationTypeError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
)
from minijax.jaxprs.jaxpr import ClosedJaxpr, eval_shape, jaxpr_as_fun, make_jaxpr
from minijax.jaxprs.types import ShapeDtypeStruct

x = np.ones(3, np.float32)


def test_a_function_on_trees():
    def fun(params, x):
        return {"y": params["w"] * x, "same": (x,)}

    closed, shapes = make_jaxpr(fun, return_shape=True)({"w": 2 * x}, x)
    assert isinstance(closed, ClosedJaxpr)
    assert str(closed) == (
        "{ lambda ; a:f32[3] b:f32[3]. let c:f32[3] = mul a b in (b, c) }"
    )
    struct = ShapeDtypeStruct((3,), np.float32)
    assert shapes == {"y": struct, "same": (struct,)}


def test_keyword_arguments_are_arguments():
    closed = make_jaxpr(lambda x, **rest: x * rest["scale"])(x, scale=x)
    assert len(closed.in_avals) == 2


def test_defaults_are_constants():
    closed = make_jaxpr(lambda x, y=2.0: x * y)(x)
    assert (
        str(closed) == "{ lambda ; a:f32[3]. let b:f32[3] = mul a 2.0:f32[] in (b,) }"
    )


@pytest.mark.parametrize("static", [0, (0,), -2, [0]])
def test_static_arguments(static):
    def fun(n, x):
        return [x] * n

    closed = make_jaxpr(fun, static_argnums=static)(2, x)
    assert str(closed) == "{ lambda ; a:f32[3]. let  in (a, a) }"


def test_all_arguments_static():
    closed = make_jaxpr(lambda n, s: n, static_argnums=(0, 1))(1.0, "text")
    assert str(closed) == "{ lambda ; . let  in (1.0:f32[],) }"


@pytest.mark.parametrize(
    ("argument", "text"),
    [
        (ShapeDtypeStruct((3,), np.float32), "{ lambda ; a:f32[3]. let  in (a,) }"),
        (ShapeDtypeStruct((3,), np.float64), "{ lambda ; a:f32[3]. let  in (a,) }"),
        (ShapedArray((2,), np.int8), "{ lambda ; a:i8[2]. let  in (a,) }"),
        (2, "{ lambda ; a:i32[]. let  in (a,) }"),
        (np.float64(2), "{ lambda ; a:f32[]. let  in (a,) }"),
    ],
)
def test_arguments_need_only_a_type(argument, text):
    assert str(make_jaxpr(lambda x: x)(argument)) == text


def test_weak_types_go_through():
    for weak in (True, False):
        struct = ShapeDtypeStruct((), np.float32, weak_type=weak)
        assert eval_shape(lambda x: x, struct) == struct


def test_names():
    def loss(x):
        return x

    assert make_jaxpr(loss).__name__ == "make_jaxpr(loss)"
    assert make_jaxpr(functools.partial(loss)).__name__ == "make_jaxpr(a function)"


def test_eval_shape():
    result = eval_shape(lambda x, n: {"a": x * n, "b": [x.sum(), None]}, x, n=2)
    assert repr(result) == (
        "{'a': ShapeDtypeStruct(shape=(3,), dtype=float32), "
        "'b': [ShapeDtypeStruct(shape=(), dtype=float32), None]}"
    )
    weak = repr(eval_shape(lambda x: x, 1.0))
    assert weak == "ShapeDtypeStruct(shape=(), dtype=float32, weak_type=True)"


def test_eval_shape_allocates_nothing():
    huge = ShapeDtypeStruct((10**6, 10**6), np.float32)
    assert eval_shape(lambda x: lax.sin(x), huge) == huge


def test_shape_dtype_struct():
    struct = ShapeDtypeStruct((2, 3), "int8")
    assert (struct.ndim, struct.size, len(struct)) == (2, 6, 2)
    assert struct.dtype == np.int8 and not struct.weak_type
    assert struct == ShapeDtypeStruct([2, 3], np.int8)
    assert hash(struct) == hash(ShapeDtypeStruct([2, 3], np.int8))
    assert struct != ShapeDtypeStruct((2, 3), np.int16)
    assert struct.update(dtype="float32") == ShapeDtypeStruct((2, 3), np.float32)


def squared(x):
    return x * x


BAD = [
    (lambda: make_jaxpr(3), TypeError, "Expected a callable value, got 3"),
    (lambda: eval_shape(3, 1.0), TypeError, "Expected a callable value, got 3"),
    (lambda: make_jaxpr(squared)("a"), TypeError, "argument x is of type str"),
    (lambda: eval_shape(squared, "a"), TypeError, "argument x is of type str"),
    (
        lambda: make_jaxpr(lambda d: d["a"])({"a": 1.0, "b": object()}),
        TypeError,
        "argument d['b'] is of type object",
    ),
    (
        lambda: make_jaxpr(lambda x: "text")(x),
        TypeError,
        "returned a value of type str",
    ),
    (
        lambda: make_jaxpr(lambda n, x: x, static_argnums=0)([3], x),
        ValueError,
        "static argument 0 is a <class 'list'>, which has no hash",
    ),
    (lambda: make_jaxpr(squared, static_argnums=2)(x), ValueError, "argnums=2"),
    (lambda: make_jaxpr(squared, static_argnums="a")(x), TypeError, "'a'"),
    (lambda: ShapeDtypeStruct((3,), None), ValueError, "dtype must be specified"),
    (lambda: len(ShapeDtypeStruct((), "int8")), TypeError, "len() of unsized object"),
    (lambda: lax.sin(ShapeDtypeStruct((3,), "float32")), TypeError, "ShapeDtypeStruct"),
    (
        lambda: eval_shape(lambda x: lax.add(x, np.ones(4, np.float32)), x),
        TypeError,
        "add",
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD)
def test_bad_input(call, error, message):
    with pytest.raises(error) as caught:
        call()
    assert message in str(caught.value)


def branch(x):
    return x if x[0] > 0 else -x


def choose(flags, y):
    return y if flags["on"] and y > 0 else 0.0


def constant(x):
    return x if jnp.ones(3).sum() > 0 else -x


UNANSWERABLE = [
    (branch, (x,), TracerBoolConversionError, "the argument x."),
    (choose, ({"on": True}, 1.0), TracerBoolConversionError, "argument flags['on']."),
    (lambda x, y: bool(x * y), (1.0, 2.0), TracerBoolConversionError, "x and y."),
    (constant, (x,), TracerBoolConversionError, "Even what does not depend"),
    (lambda x: float(x), (1.0,), ConcretizationTypeError, "x.astype"),
    (lambda x: int(x), (1,), ConcretizationTypeError, "the argument x."),
    (lambda x: complex(x), (1.0,), ConcretizationTypeError, "the argument x."),
    (lambda x: x.item(), (1.0,), ConcretizationTypeError, "the argument x."),
    (lambda x: x.tolist(), (1.0,), ConcretizationTypeError, "the argument x."),
    (lambda n: list(range(n)), (3,), TracerIntegerConversionError, "the argument n."),
    (lambda n: [1, 2, 3][n], (1,), TracerIntegerConversionError, "the argument n."),
    (lambda x: np.sin(x), (1.0,), TracerArrayConversionError, "the argument x."),
    (lambda x: {x: 1}, (1.0,), TypeError, "unhashable type"),
    (lambda x: len(x), (1.0,), TypeError, "len() of unsized object"),
]


@pytest.mark.parametrize(("fun", "args", "error", "message"), UNANSWERABLE)
@pytest.mark.parametrize(
    "transform", [make_jaxpr, lambda f: lambda *a: eval_shape(f, *a)]
)
def test_a_staged_value_has_no_number(transform, fun, args, error, message):
    with pytest.raises(error) as caught:
        transform(fun)(*args)
    assert message in str(caught.value)


def test_the_function_is_named():
    with pytest.raises(TracerBoolConversionError) as caught:
        make_jaxpr(branch)(x)
    assert "make_jaxpr is writing down the function 'branch'" in str(caught.value)


def test_iterating_over_a_staged_array():
    closed = make_jaxpr(lambda x: [row * 2 for row in x])(x)
    assert len(closed.outvars) == 3


def test_a_jaxpr_runs_on_other_numbers():
    closed = make_jaxpr(squared)(x)
    [result] = jaxpr_as_fun(closed)(np.float32([1, 2, 3]))
    np.testing.assert_array_equal(result, [1, 4, 9])
