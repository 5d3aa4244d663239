"""Primitives that have no Python of their own."""

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import lax, make_jaxpr
from minijax.arrays.array import ShapedArray, shape_rules
from minijax.core import Primitive, impl_rules
from minijax.python_backend.codegen import PythonProgram, emit
from minijax.python_backend.source import bind_impl, result_buffer_of_type

VECTOR = ShapedArray((3,), np.float32)


def test_results_have_the_dtype_of_their_type():
    assert result_buffer_of_type(np.ones(3, np.float64), VECTOR).dtype == np.float32
    scalar = result_buffer_of_type(np.ones(()), ShapedArray((), np.int8))
    assert type(scalar) is np.int8


def test_computations_are_called_on_buffers():
    erf = bind_impl(lax.erf_p, [VECTOR], [VECTOR])
    np.testing.assert_allclose(erf(np.float32([0, 1, 9])), [0, 0.8427008, 1], rtol=1e-6)


def test_parameters_are_passed():
    cumsum = bind_impl(lax.cumsum_p, [VECTOR], [VECTOR])
    assert cumsum(np.float32([1, 2, 3]), axis=0, reverse=True).tolist() == [6, 5, 3]


@pytest.fixture
def primitive():
    """A primitive with two results that has a shape rule and an impl rule only."""
    both_p = Primitive("both")
    shape_rules[both_p] = lambda x, **params: [x, x.update(shape=())]
    impl_rules[both_p] = lambda x, **params: [jnp.sin(x) * x, jnp.sum(x)]
    yield both_p
    del shape_rules[both_p], impl_rules[both_p]


def test_impl_rules_get_arrays(primitive):
    def f(x):
        whole, total = primitive.bind_all(x)
        return whole * total

    closed = make_jaxpr(f)(np.ones(3))
    assert "b, c = both(a)" in emit(closed)[0]
    np.testing.assert_allclose(PythonProgram(closed)(np.ones(3))[0], f(np.ones(3)))


PARAMS = {
    "1": 1,
    "(1, (2.5, None), 'a')": (1, (2.5, None), "a"),
    "(True,)": (True,),
    "()": (),
    "int8": np.dtype("int8"),
    "(param, int8)": (np.sin, np.dtype("int8")),
}


@pytest.mark.parametrize(("text", "value"), PARAMS.items())
def test_parameters_are_spelled(primitive, text, value):
    closed = make_jaxpr(lambda x: primitive.bind(x, given=value))(np.ones(3))
    source, function, _ = emit(closed)
    assert f"both(a, given={text})" in source
    assert len(function(np.ones(3, np.float32))) == 1
