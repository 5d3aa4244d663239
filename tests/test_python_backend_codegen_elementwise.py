"""Elementwise primitives in Python: the interpreter's bits, at every dtype."""

import re

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import lax, make_jaxpr
from minijax.core import rule_tables
from minijax.jaxprs.jaxpr import Literal
from minijax.python_backend.codegen import emit, python_rules
from minijax.python_backend.source import (
    means,
    numpy_scalar_of_literal,
    python_number_text,
)
from tests import array_cases as cases
from tests.emission_cases import compare, elementwise

WIDE = ("int64", "uint64", "float64", "complex128")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", cases.DTYPES)
def test_bits(name):
    with minijax.enable_x64(name in WIDE):
        found = [compare(*program) for program in elementwise(name, every=7)]
    assert sum(taken for taken, _ in found) > 20
    assert not [difference for _, wrong in found for difference in wrong]


def test_python_is_a_column_of_the_grid():
    assert python_rules in rule_tables


def line(f, *args):
    """The expressions in the text of a function."""
    text = emit(make_jaxpr(f)(*args))[0]
    return re.findall(r"(?m)^    \w+ = (.*)$", text)


X, N, S = np.ones(3, "f"), np.arange(3), np.float32(2)
Z = np.complex64(1j)
TEXTS = [
    (lambda x: x + 2.0, [X], ["a + 2.0"]),
    (lambda x: 2 - x, [N], ["2 - a"]),
    (lambda x: -x, [X], ["-a"]),
    (lambda x: ~x, [N], ["~a"]),
    (lambda x: x / x, [X], ["a / a"]),
    (lambda x: x & 6, [N], ["a & 6"]),
    (jnp.tanh, [X], ["np.tanh(a)"]),
    (lambda x: jnp.maximum(x, 0.5), [X], ["np.maximum(a, 0.5)"]),
    (lambda x: x * x, [Z], ["np.multiply(a, a)"]),
    (lambda x: x * x, [Z[None]], ["a * a"]),
    (lambda x: x**2, [X], ["a * a", "np.power(a, 2.0)"]),
    (lambda x: lax.integer_pow(x, -3), [X], ["1 / np.power(a, 3.0)"]),
    (lax.rsqrt, [X], ["1 / np.sqrt(a)"]),
    (lambda p, x: lax.select(p, x, x + 1), [True, X], ["b + 1.0", "b if a else c"]),
    (lambda x: lax.select(x > 0, x, x), [X], ["a > 0.0", "np.where(b, a, a)"]),
    (lambda x: x.astype("int8"), [N], ["a.astype(np.int8)"]),
    (lambda x: x.real, [Z[None]], ["a.real"]),
    (lax.erf, [X], ["erf(a)"]),
    (lambda x: lax.div(x, x), [N], ["div(a, a)"]),
    (lambda x: x * np.float32("inf"), [X], ["a * f32_inf"]),
]


@pytest.mark.parametrize(("f", "args", "texts"), TEXTS)
def test_texts(f, args, texts):
    found = line(f, *args)
    assert found == texts or (len(found) == 1 and found[0] in texts)


def test_what_numpy_means():
    float32, int8, boolean = map(np.dtype, ("float32", "int8", "bool"))
    assert means("tanh", float32, float32) and not means("tanh", int8, int8)
    assert means("less", int8, int8, boolean)
    assert not means("add", float32, float32, int8)
    assert not means("sign", boolean, boolean)


NUMBERS = [
    (np.float32(0.1), "0.1"),
    (np.float32(-0.0), "-0.0"),
    (np.float64(1 / 3), "0.3333333333333333"),
    (np.float16(1e-7), "1e-07"),
    (np.int8(-128), "-128"),
    (np.uint64(2**64 - 1), "18446744073709551615"),
    (np.bool(True), "True"),
    (2.5, "2.5"),
    (True, "True"),
    (np.float32("inf"), None),
    (np.float32("nan"), None),
    (np.complex64(1 + 2j), None),
]


@pytest.mark.parametrize(("value", "text"), NUMBERS, ids=str)
def test_number_text(value, text):
    with minijax.enable_x64():
        literal = Literal(value)
    assert python_number_text(literal) == text
    if text is not None:
        again = numpy_scalar_of_literal(literal).dtype.type(eval(text))
        assert again.tobytes() == numpy_scalar_of_literal(literal).tobytes()


def test_numbers_of_bfloat16_have_no_text():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    assert python_number_text(Literal(ml_dtypes.bfloat16(2))) is None


def test_variables_have_no_number_text():
    assert python_number_text(make_jaxpr(jnp.sin)(1.0).invars[0]) is None


def test_scalars_have_the_dtype_of_their_literal():
    assert repr(numpy_scalar_of_literal(Literal(2.0))) == "np.float32(2.0)"
