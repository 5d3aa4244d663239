"""Special numbers mean the same on every backend, and the battery finds old faults."""

import numpy as np
import pytest

import minijax
from minijax import lax
from tests.array_cases import dtype_of
from tests.known_differences import BETWEEN_BACKENDS, FROM_JAX
from tests.mutants_numerics import (
    MUTANTS,
    half_as_square_root,
    overflowing_round,
    uncounted_places,
)
from tests.special_values import (
    BACKENDS,
    QUICK_BATTERY,
    alike,
    compared,
    differences,
    function_cases,
    operands,
    primitive_cases,
    ways,
    written,
)


@pytest.fixture(autouse=True)
def wide():
    with minijax.enable_x64(True):
        yield


@pytest.mark.parametrize("part", QUICK_BATTERY)
def test_the_battery(part):
    assert not [*part()]


@pytest.mark.parametrize("mutant", MUTANTS)
def test_the_battery_finds(mutant):
    with mutant(), np.errstate(all="ignore"):
        assert any(text for part in QUICK_BATTERY for text in part())


def test_what_is_known_to_differ_is_there():
    labels = {case[0] for case in [*primitive_cases(), *function_cases()]}
    assert {*BETWEEN_BACKENDS, *FROM_JAX} <= labels


def test_an_excuse_is_for_its_operands():
    xs = operands("float32", 2)
    wrong = np.maximum(*xs)
    wrong[(xs[0] == 0) & (xs[1] == 0)] = 7
    assert not differences(wrong, np.maximum(*xs), xs, BETWEEN_BACKENDS["max(float32)"])
    wrong[xs[0] == 2] = 7
    found = differences(wrong, np.maximum(*xs), xs, BETWEEN_BACKENDS["max(float32)"])
    assert found.startswith(f"{np.sum((xs[0] == 2) & (np.maximum(*xs) != 7))} of")


@pytest.mark.of_the_cpu("asks for machine code")
@pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.2.0", reason="power makes no root there"
)
def test_the_mutant_of_the_square_root_in_its_place():
    text = "x**0.5"
    case = f"{text} float32", written(text), operands("float32", 1)
    with half_as_square_root():
        assert "inf" in compared(case, "cpu")
    assert not any(compared(case, name) for name in BACKENDS)


@pytest.mark.parametrize("name", ["logistic", "rsqrt"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_all_halves_are_rounded_once(name, dtype):
    x = np.arange(2**16, dtype=np.uint16).view(dtype_of(dtype))
    f = getattr(lax, name)
    wanted = np.asarray(f(x.astype(np.float32))).astype(x.dtype)
    for way, run in ways(f):
        found = np.asarray(run(x))
        numbers = ~(np.isnan(found) & np.isnan(wanted))
        apart = found.view(np.int16).astype(int) - wanted.view(np.int16)
        apart = abs(apart[numbers])
        assert apart.max() <= 1 and np.sum(apart > 0) < 20, way


def test_parts_of_complex_numbers():
    x = np.array([1 + 1e-9j, complex(1, 0.0), complex(np.nan, 0)], "complex64")
    y = np.array([1 - 1e-9j, complex(1, -0.0), complex(np.nan, 0)], "complex64")
    assert (alike(x, y) == [True, False, True]).all()


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
