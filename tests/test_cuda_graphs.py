"""Graphs: launches that come again with the same memory are recorded and replayed."""

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import make_jaxpr
from minijax.cuda.graphs import KEPT, SEEN, GraphProgram
from minijax_book import emulator

pytestmark = pytest.mark.skipif(not emulator.is_there(), reason="no C++ compiler here")
X = np.ones((20, 40), np.float32)


def products(x):
    return jnp.tanh(x @ x.T) @ x


def test_the_second_call_records_and_the_results_agree(machine):
    gpu, cupy = machine
    program = GraphProgram(make_jaxpr(products)(X), device=gpu)
    x, expected = minijax.device_put(X, gpu), np.asarray(products(X))
    for number in range(5):
        before = dict(cupy.counts)
        [result] = program(x)
        np.testing.assert_allclose(result, expected, rtol=1e-5)
        assert cupy.counts["graphs"] - before["graphs"] == (number > 0)
        del result
    assert len(program.graphs) == 1


def test_other_numbers_in_the_same_memory(machine):
    gpu, cupy = machine
    program = GraphProgram(make_jaxpr(products)(X), device=gpu)
    for number in range(4):
        x = minijax.device_put(X * number / 9, gpu)
        [result] = program(x)
        np.testing.assert_allclose(result, products(X * number / 9), rtol=1e-5)
        del x, result
    assert any(graph is not None for graph in program.graphs.values())


def test_few_graphs_are_kept(machine):
    gpu, _ = machine
    program = GraphProgram(make_jaxpr(products)(X), device=gpu)
    inputs = [minijax.device_put(X, gpu) for _ in range(KEPT + 3)]
    for x in [*inputs, *inputs, *inputs]:
        program(x)
    recorded = [graph for graph in program.graphs.values() if graph is not None]
    assert 1 <= len(recorded) <= KEPT and len(program.graphs) <= SEEN
    gpu.card.wait()


def test_what_waits_is_not_recorded(machine):
    gpu, cupy = machine
    x = minijax.device_put(X, gpu)
    inverse = lambda x: jnp.linalg.inv(x @ x.T + jnp.eye(20)) @ x  # noqa: E731
    hosted = GraphProgram(make_jaxpr(inverse)(X), device=gpu)
    program = GraphProgram(make_jaxpr(products)(X), device=gpu)
    before = cupy.counts["graphs"]
    for _ in range(3):
        hosted(x)
    with minijax.config.override("minijax_wait_for_kernels", True):
        for _ in range(3):
            program(x)
    assert cupy.counts["graphs"] == before and gpu.card.is_done


def test_a_failure_in_a_graph_names_its_program(machine):
    gpu, _ = machine
    program = GraphProgram(make_jaxpr(products)(X), "twin", device=gpu)
    x = minijax.device_put(X, gpu)
    for _ in range(3):
        program(x)
    assert list(gpu.card.unfinished)[-1].startswith("a graph of twin, which begins in")
    gpu.card.wait()
