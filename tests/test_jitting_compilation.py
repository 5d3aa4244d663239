"""Executables are made once per program, backend and switches."""

import threading

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax.arrays.array import ArrayImpl
from minijax.jitting.compilation import (
    Interpreter,
    backend_name,
    backends,
    compile_cached,
    default_backends,
)

V = np.float32([0.5, 1.0, 2.0])


@pytest.fixture
def counting():
    """A backend that notes what it compiles."""
    made = []

    def backend(closed, name):
        made.append((closed, name))
        return Interpreter(closed, name)

    order = dict(backends)
    backends.clear()
    backends.update(counting=backend, **order)
    yield made
    backends.clear()
    backends.update(order)


def test_one_compile_per_program(counting):
    closed = minijax.make_jaxpr(lambda x: jnp.sin(x) * 2)(V)
    first = compile_cached(closed, "counting", "f")
    assert compile_cached(closed, "counting") is first
    assert [name for _, name in counting] == ["f"]
    [out] = first(V)
    assert isinstance(out, ArrayImpl)
    np.testing.assert_allclose(out, np.sin(V) * 2, rtol=1e-6)
    with minijax.enable_x64():
        assert compile_cached(closed, "counting") is not first


def test_one_compile_in_many_threads(counting):
    f = minijax.jit(lambda x: jnp.sin(x) * 2, backend="counting")
    barrier, results = threading.Barrier(12), []

    def work():
        barrier.wait()
        results.append(np.asarray(f(V)))

    threads = [threading.Thread(target=work) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert len(results) == 12
    assert len(counting) == 1
    for result in results:
        np.testing.assert_allclose(result, np.sin(V) * 2, rtol=1e-6)


def test_no_dead_code_is_compiled(counting):
    f = minijax.jit(lambda x: (jnp.sin(x), x * 2)[1], backend="counting")
    f(V)
    [(closed, _)] = counting
    assert [eqn.primitive.name for eqn in closed.eqns] == ["mul"]


@pytest.mark.of_the_cpu("asks for its default backend")
def test_backends():
    assert backend_name("interpreter") == "interpreter"
    assert backend_name() == default_backends["cpu"]
    with minijax.config.override("minijax_backend", "interpreter"):
        assert backend_name() == "interpreter"
    with pytest.raises(
        RuntimeError, match="Unknown backend 'abacus'; there are: inter"
    ):
        backend_name("abacus")


def test_interpreter():
    closed = minijax.make_jaxpr(lambda x: (x, 2.0, x + 1))(V)
    program = Interpreter(closed, "f")
    assert program.text == str(closed)
    assert program.name == "f"
    outs = program(V)
    assert [type(out) for out in outs] == [ArrayImpl] * 3


@pytest.mark.parametrize("backend", ["interpreter", None])
def test_an_executable_asks_no_trace_around(backend):
    closed = minijax.make_jaxpr(lambda x: x + 1)(V)
    seen = []

    def f(x):
        seen.append(compile_cached(closed, backend)(V))
        return x

    minijax.make_jaxpr(f)(1.0)
    np.testing.assert_array_equal(seen[0][0], V + 1)
