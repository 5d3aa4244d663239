"""What an emitted function sees, and the function that its text becomes."""

import linecache

import numpy as np
import pytest

from minijax.jaxprs.jaxpr import Literal
from minijax.python_backend.source import Scope, numpy_scalar_of_literal


def test_a_scope_becomes_a_function_with_its_constants():
    scope = Scope()
    table = scope.constant(np.arange(3), "table", "a table")
    scope.constant("not mentioned", "other")
    scope.line(f"b = a + {table}")
    scope.end(["b"])
    text, function, _ = scope.as_function("added", ["a"])
    assert text == (
        "# table: a table\n"
        "def added(a):\n"
        "    b = a + table\n"
        "    return [b]\n"
    )
    assert function(1)[0].tolist() == [1, 2, 3]


def test_places_are_told_by_the_lines_of_the_file():
    scope = Scope()
    number = scope.scalar(Literal(2.5))
    scope.on_behalf_of("train.py:12:4 (step)")
    scope.line(f"b = a / {number}")
    scope.end(["b"])
    _, function, places = scope.as_function("halved", ["a"])
    [(file, lines)] = places.items()
    said = {linecache.getline(file, number).strip(): lines[number] for number in lines}
    assert said["b = a / f32_2_5"] == "train.py:12:4 (step)"
    with pytest.raises(TypeError) as caught:
        function("text")
    assert caught.traceback[-1].lineno + 1 in lines


@pytest.mark.parametrize("value", [np.float32(0.1), np.int8(-3), np.bool(True), 2.0])
def test_scalars_of_one_value_and_dtype_have_one_name(value):
    scope, literal = Scope(), Literal(value)
    assert scope.scalar(literal) == scope.scalar(Literal(value))
    [(kept, _)] = scope.constants.values()
    assert kept.dtype == literal.aval.dtype and kept == numpy_scalar_of_literal(literal)
