"""The backend that emits Python: arrays in, arrays out, under every transformation."""

import traceback
from enum import IntEnum

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import jit, lax, make_jaxpr
from minijax.arrays.array import shape_rules
from minijax.core import Primitive, impl_rules
from minijax.jitting.compilation import compile_cached
from minijax.python_backend.codegen import PythonProgram
from minijax.python_backend.source import to_buffer
from tests.emission_cases import compare, compositions

X = np.float32([0.1, 0.2, 0.3])


@pytest.mark.filterwarnings("ignore")
def test_compositions_have_the_interpreters_bits():
    found = [compare(*program) for program in compositions()]
    assert all(taken for taken, _ in found) and len(found) > 500
    assert not [difference for _, wrong in found for difference in wrong]


def test_it_is_there():
    assert isinstance(compile_cached(make_jaxpr(jnp.sin)(X), "python"), PythonProgram)


def test_text_can_be_asked_for():
    jitted = jit(lambda x: jnp.sin(x) * 2.0, backend="python")
    text = jitted.lower(X).compile().as_text()
    assert "np.sin(a)" in text and "b * 2.0" in text


def test_arguments_become_buffers():
    assert type(to_buffer(2.0)) is np.float32
    assert type(to_buffer(jnp.asarray(2))) is np.int32
    assert to_buffer(np.ones(3)).dtype == np.float32
    array = jnp.ones(3)
    assert to_buffer(array) is array._buffer


def test_results_do_not_alias_numpy_arguments():
    mine = X.copy()
    [result] = PythonProgram(make_jaxpr(lambda x: x)(mine))(mine)
    mine[0] = 7.0
    assert float(result[0]) == np.float32(0.1)


def test_results_are_immutable():
    [result] = PythonProgram(make_jaxpr(jnp.sin)(X))(X)
    assert not result._buffer.flags.writeable


def test_results_have_their_types():
    program = PythonProgram(make_jaxpr(lambda x, y: (x * 2, y * x, 1, x > 0))(1.0, X))
    avals = [str(result.aval) for result in program(1.0, X)]
    assert avals == ["~float32[]", "float32[3]", "~int32[]", "~bool[]"]


def test_no_warnings():
    program = PythonProgram(make_jaxpr(lambda x: (1.0 / x, jnp.log(-x), x * 3e38))(X))
    assert np.isinf(program(np.float32([0, 1, 2]))[0][0])
    scalar = PythonProgram(make_jaxpr(lambda x: (1 / x, x * x))(np.float32(1)))
    assert np.isinf(scalar(np.float32(0))[0])


def test_in_64_bits():
    with minijax.enable_x64():
        [result] = PythonProgram(make_jaxpr(lambda x: x * 0.1)(np.ones(3)))(np.ones(3))
    assert result.dtype == np.float64 and float(result[0]) == 0.1


@pytest.fixture
def failing():
    """A primitive whose evaluation fails."""
    primitive = Primitive("failing")
    shape_rules[primitive] = lambda x: [x]

    def fail(x):
        raise FloatingPointError("on purpose")

    impl_rules[primitive] = fail
    yield primitive
    del shape_rules[primitive], impl_rules[primitive]


def test_errors_say_whose_line_it_was(failing):
    def f(x):
        y = x + 1.0
        return failing.bind(y)

    program = PythonProgram(make_jaxpr(f)(X), "f")
    with pytest.raises(FloatingPointError, match="on purpose") as caught:
        program(X)
    [note] = caught.value.__notes__
    assert "test_python_backend_codegen_backend.py" in note
    shown = "".join(traceback.format_exception(caught.value))
    assert "failing(b)" in shown  # the line of the emitted text


def test_errors_inside_inner_programs(failing):
    inner = jit(lambda x: failing.bind(x * 2.0))
    program = PythonProgram(make_jaxpr(lambda x: inner(x) + 1.0)(X))
    with pytest.raises(FloatingPointError) as caught:
        program(X)
    assert len(caught.value.__notes__) >= 1


def test_threads():
    from concurrent.futures import ThreadPoolExecutor

    def f(x, k):
        return lax.erf(x) * k

    def run(k):
        return [
            float(PythonProgram(make_jaxpr(f)(X, k))(X, k)[0][0]) for _ in range(20)
        ]

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(run, map(float, range(8))))
    first = results[1][0]
    for k, values in enumerate(results):
        np.testing.assert_allclose(values, k * first, rtol=1e-6)


class Unit(IntEnum):
    METRE = 1


PARAMETERS = [np.inf, np.nan, -0.0, Unit.METRE, np.float32(0.1), slice(2), "a\n'"]


@pytest.mark.parametrize("value", [*PARAMETERS, (1, (None, -np.inf))], ids=repr)
def test_evaluations_get_parameters_as_they_are(value):
    got, primitive = [], Primitive("first\nsecond = 1")
    shape_rules[primitive] = lambda x, given: [x]
    impl_rules[primitive] = lambda x, given: got.append(given) or [x]
    program = PythonProgram(make_jaxpr(lambda x: primitive.bind(x, given=value))(X))
    program(X)
    del shape_rules[primitive], impl_rules[primitive]
    assert repr(got) == repr([value]) and type(got[0]) is type(value)
    assert "\nsecond" not in program.text


@pytest.mark.parametrize(
    "name", ["", "_", "a b", "a\nb", "x²", "ﬁ", "·", "名", "np", "if"]
)
def test_functions_may_have_any_name(name):
    def inner(x):
        return x + 1.0, x * 2.0

    inner.__name__ = name
    jitted = jit(inner)

    def f(x):
        one, two = jitted(x)
        three = jitted(one)[1]
        last, _ = lax.scan(lambda c, x: (c + x, c), 0.0, three)
        return two + last

    f.__name__ = name
    np.testing.assert_array_equal(jit(f)(X), jit(f, backend="interpreter")(X))
