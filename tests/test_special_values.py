"""Special numbers mean the same on every backend, and the battery finds old faults."""

import numpy as np
import pytest

import minijax
from minijax import lax
from tests.mutants_numerics import (
    half_as_square_root,
    overflowing_round,
    uncounted_places,
)
from tests.special_values import (
    BACKENDS,
    compared,
    differing,
    function_cases,
    known,
    operands,
    primitive_cases,
    written,
)


@pytest.fixture(autouse=True)
def wide():
    with minijax.enable_x64(True):
        yield


@pytest.mark.parametrize("start", range(4))
def test_a_share_of_the_battery(start):
    cases = [*primitive_cases()] if start % 2 else [*function_cases()]
    assert not differing(cases[start::20])


def test_the_battery_finds_the_square_root():
    text = "x**0.5"
    case = f"{text} float32", written(text), operands("float32", 1)
    assert not any(compared(case, name) for name in BACKENDS)
    with half_as_square_root():
        assert "inf" in compared(case, "cpu")
    assert not any(compared(case, name) for name in BACKENDS)
    assert not known(case, "cpu")


def test_what_the_mutants_do():
    x = np.array([60000.0], "float16")
    with overflowing_round(), np.errstate(all="ignore"):
        assert np.isinf(np.asarray(minijax.numpy.round(x, 2)))
    assert np.asarray(minijax.numpy.round(x, 2)) == x
    many = np.arange(300)
    with uncounted_places():
        for name in BACKENDS:
            f = minijax.jit(lambda x: lax.argmax(x, 0, np.int8), backend=name)
            assert f(many) == 43
    with pytest.raises(OverflowError):
        lax.argmax(many, 0, np.int8)
