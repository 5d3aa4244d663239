"""A tracer that a transformation leaves behind, while leaks are looked for."""

import threading

import numpy as np
import pytest

import minijax
from minijax.errors import UnexpectedTracerError
from tests.leak_cases import CLEAN, KEPT, LEAVING, LEAVING_HERE, keep

X = np.ones(3, "float32")


@pytest.fixture(autouse=True)
def nothing_kept():
    KEPT.clear()
    yield
    KEPT.clear()


@pytest.mark.parametrize("name", [*LEAVING, *LEAVING_HERE])
def test_what_is_left_is_an_error(name):
    program = (LEAVING | LEAVING_HERE)[name]
    program(minijax, X)  # without the switch it is none
    KEPT.clear()
    with minijax.checking_leaks(), pytest.raises(UnexpectedTracerError, match="Leaked"):
        program(minijax, X)


@pytest.mark.parametrize("name", CLEAN)
def test_nothing_is_found_where_nothing_is_left(name):
    with minijax.checking_leaks():
        for _ in range(2):
            CLEAN[name](minijax, X)


def test_the_error_names_the_line():
    with minijax.checking_leaks(), pytest.raises(UnexpectedTracerError) as found:
        minijax.jit(lambda x: keep(x))(1.0)
    notes = "\n".join(found.value.__notes__)
    assert "KEPT.append(x + 1.0)" in notes and "It was made by jit of" in notes


def test_an_error_that_is_caught_is_not_a_leak():
    def fails(x):
        y = x + 1.0
        raise ValueError(y)

    with minijax.checking_leaks():
        with pytest.raises(ValueError) as error:
            minijax.jit(fails)(1.0)
        minijax.jit(lambda x: x)(1.0)
        minijax.grad(lambda x: x)(1.0)
    assert error


def test_the_switch_is_of_one_thread():
    done = []
    with minijax.checking_leaks():
        other = threading.Thread(
            target=lambda: done.append(minijax.jit(lambda x: keep(x))(1.0))
        )
        other.start()
        other.join()
    assert done == [1.0]
