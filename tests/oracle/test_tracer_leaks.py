"""Leaks are looked for where JAX looks for them."""

import gc

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import minijax  # noqa: E402
from tests.leak_cases import CLEAN, KEPT, LEAVING, LEAVING_HERE  # noqa: E402

X = np.ones(3, "float32")


@pytest.fixture(scope="module", autouse=True)
def what_others_have_left_is_at_rest():
    """Let JAX look for who holds a leaked tracer among what is made here alone.

    It asks the garbage collector, some fifty times for each leak.
    """
    gc.freeze()
    yield
    gc.unfreeze()


def raises(package, program):
    KEPT.clear()
    try:
        with package.checking_leaks():
            program(package, package.numpy.asarray(X))
    except Exception as error:
        return "Leaked trace" in str(error)
    return False


@pytest.mark.parametrize("name", LEAVING)
def test_what_is_left_is_an_error(name):
    assert raises(minijax, LEAVING[name]) and raises(jax, LEAVING[name])


def test_what_is_an_error_here_alone():
    for program in LEAVING_HERE.values():
        assert raises(minijax, program) and not raises(jax, program)


@pytest.mark.parametrize("name", CLEAN)
def test_nothing_is_found_where_nothing_is_left(name):
    assert not raises(minijax, CLEAN[name]) and not raises(jax, CLEAN[name])
