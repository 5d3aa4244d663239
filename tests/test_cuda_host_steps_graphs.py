"""Graphs: launches that come again with the same memory are recorded and replayed."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import jit, lax, make_jaxpr
from minijax.cuda import host_steps as turns
from minijax.cuda.device import GraphProgram
from minijax.cuda.host_steps import GRAPHS_DROPPED_AT_ONCE, MAX_GRAPHS, CapturedLaunches
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
    [recorded] = program.steps
    assert len(recorded.graphs) == 1


def test_other_numbers_in_the_same_memory(machine):
    gpu, cupy = machine
    program = GraphProgram(make_jaxpr(products)(X), device=gpu)
    for number in range(4):
        x = minijax.device_put(X * number / 9, gpu)
        [result] = program(x)
        np.testing.assert_allclose(result, products(X * number / 9), rtol=1e-5)
        del x, result
    [recorded] = program.steps
    assert any(graph is not None for graph in recorded.graphs.values())


def test_few_graphs_are_kept(machine):
    gpu, _ = machine
    program = GraphProgram(make_jaxpr(products)(X), device=gpu)
    inputs = [minijax.device_put(X, gpu) for _ in range(MAX_GRAPHS + 3)]
    for x in [*inputs, *inputs, *inputs]:
        program(x)
    [known] = [step.graphs for step in program.steps]
    recorded = [graph for graph in known.values() if graph is not None]
    assert 1 <= len(recorded) <= MAX_GRAPHS and len(known) <= GRAPHS_DROPPED_AT_ONCE
    gpu.card.wait()


def test_what_waits_is_not_recorded(machine):
    gpu, cupy = machine
    program = GraphProgram(make_jaxpr(products)(X), device=gpu)
    x, before = minijax.device_put(X, gpu), cupy.counts["graphs"]
    with minijax.config.override("minijax_wait_for_kernels", True):
        for _ in range(3):
            program(x)
    assert cupy.counts["graphs"] == before and gpu.card.is_done


def test_what_is_done_near_by_stands_between_graphs(machine):
    gpu, _ = machine
    f = lambda x: jnp.linalg.inv(products(x)[:, :20] + 30 * jnp.eye(20)) @ x  # noqa: E731
    program = GraphProgram(make_jaxpr(f)(X), device=gpu)
    kinds = [isinstance(act, CapturedLaunches) for act in program.steps]
    assert True in kinds and False in kinds
    for _ in range(3):
        [result] = program(minijax.device_put(X, gpu))
        np.testing.assert_allclose(result, f(jnp.asarray(X)), 1e-4, 1e-5)


def test_a_failure_in_a_graph_names_its_program(machine):
    gpu, _ = machine
    program = GraphProgram(make_jaxpr(products)(X), "twin", device=gpu)
    x = minijax.device_put(X, gpu)
    for _ in range(3):
        program(x)
    assert list(gpu.card.pending)[-1].startswith("a graph of twin, which begins in")
    gpu.card.wait()


def halved(x):
    """A loop whose state is too large for a block: turns and a test by the host."""

    def turn(state):
        x, y, n = state
        return y[::-1] / 2 + jnp.sin(x).mean(), x, n + 1

    start = x, jnp.cos(x), 0
    return lax.while_loop(lambda s: (s[2] < 9) & (abs(s[0]).max() > 1e-3), turn, start)


def rounds(x):
    """A loop in a loop, by the host both."""

    def inner(state):
        x, n = state
        return jnp.tanh(x) + x.mean(), n + 1

    def outer(state):
        x, n = state
        x, _ = lax.while_loop(lambda s: s[1] < n % 3, inner, (x, 0))
        return x * 0.9, n + 1

    return lax.while_loop(lambda s: s[1] < 6, outer, (x, 0))


def scanned(x):
    """A scan whose state is too large for a block."""

    def turn(h, row):
        h = jnp.tanh(h + row.sum())
        return h[::-1], (h.mean(), row * h[:5])

    return lax.scan(turn, x, x[:35].reshape(7, 5), reverse=True)


def counted_rounds(x):
    """More turns than a graph has launches."""
    return lax.fori_loop(0, 14, lambda i, x: x[::-1] * 0.9 + x.mean() * i, x)


def branches(x):
    """A branch in a loop: the host chooses in each turn."""
    turns = [jnp.sin, lambda x: x[::-1] * 2, lambda x: jnp.maximum(x, x.mean())]
    return lax.fori_loop(0, 5, lambda i, x: lax.switch(i % 3, turns, x) + 1, x)


def called(x):
    """A callback in a loop."""

    def near(x):
        return np.asarray(x) * 2

    def turn(i, x):
        return jnp.sin(minijax.pure_callback(near, x, x))[::-1] + x.mean()

    return lax.fori_loop(0, 4, turn, x)


def none(x):
    """Loops that do no turn."""
    x, n = lax.while_loop(lambda s: s[1] < 0, lambda s: (s[0] * 2, s[1] + 1), (x, 0))
    return x, n, lax.fori_loop(0, 0, lambda i, x: x * 2, x)


LOOPS = [halved, rounds, scanned, counted_rounds, branches, called, none]
LARGE = np.random.default_rng(3).standard_normal(9000).astype(np.float32)


@pytest.mark.parametrize("f", LOOPS)
def test_loops_by_the_host_do_what_loops_do_here(f, machine, monkeypatch):
    monkeypatch.setattr(turns, "MAX_CAPTURED_LAUNCHES", 20)
    gpu, cupy = machine
    expected = minijax.tree.leaves(jit(f)(jnp.asarray(LARGE)))
    run, given = jit(f), jit(f, donate_argnums=0)
    for number, way in enumerate([run, run, run, given, given]):
        x = minijax.device_put(jnp.asarray(LARGE) * 1, gpu)
        found = minijax.tree.leaves(way(x))
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, 2e-4, 1e-5, err_msg=f"{number}")
        del found, x


def turned(x, count):
    """The same numbers, by a loop that the host drives."""
    return lax.fori_loop(0, count, lambda i, y: jnp.sort(x + y * 0), x)[1]


ASKED_OF_THE_HOST = {
    "a branch": lambda x: lax.cond(x[1] > 2, lambda x: x.max(), lambda x: x.min(), x),
    "a callback": lambda x: minijax.pure_callback(lambda x: np.asarray(x[1]), x[1], x),
    "a while loop": lambda x: turned(x, x[0].astype(int)),
    "a long scan": lambda x: turned(x, 9),
}


@pytest.mark.parametrize("name", ASKED_OF_THE_HOST)
def test_a_part_of_a_test_that_the_host_does_has_the_states_of_this_turn(
    name, machine, monkeypatch
):
    monkeypatch.setattr(turns, "MAX_CAPTURED_LAUNCHES", 4)
    gpu, cupy = machine
    asked = ASKED_OF_THE_HOST[name]

    def counted(x):
        test = lambda s: (asked(s[1]) < 7) & (s[0] < 10)  # noqa: E731
        turn = lambda s: (s[0] + 1, jnp.sort(s[1] + jnp.cumsum(s[1]) * 0 + 1))  # noqa: E731
        return lax.while_loop(test, turn, (0, x))

    f, x = jit(counted), minijax.device_put(jnp.ones(33), gpu)
    before = cupy.counts["graphs"]
    for _ in range(3):
        count, last = f(x)
        assert (int(count), last.tolist()) == (6, [7.0] * 33)
    assert cupy.counts["graphs"] > before


def test_a_turn_is_one_graph_and_one_byte(machine):
    gpu, cupy = machine
    f, x = jit(halved), minijax.device_put(LARGE, gpu)
    for _ in range(3):
        minijax.block_until_ready(f(x))
    before = dict(cupy.counts)
    minijax.block_until_ready(f(x))
    made = {key: cupy.counts[key] - before[key] for key in before}
    count = int(f(x)[2])
    assert count == 9 and made["launches"] <= 3 and made["in"] == 0
    assert count + 1 <= made["graphs"] <= count + 3 and made["out"] == count + 2


def test_memory_does_not_grow_with_turns(machine, monkeypatch):
    monkeypatch.setattr(turns, "MAX_CAPTURED_LAUNCHES", 20)
    gpu, cupy = machine
    f, x = jit(counted_rounds), minijax.device_put(LARGE, gpu)
    minijax.block_until_ready(f(x))
    before = cupy.memory.top
    minijax.block_until_ready(f(x))
    assert cupy.memory.top - before <= LARGE.nbytes + 512


def test_a_callback_that_fails_leaves_the_loop_usable(machine):
    gpu, _ = machine
    angry = [True]

    def near(x):
        if angry:
            raise ValueError("not now")
        return np.asarray(x) * 2

    def turn(state):
        x, n = state
        return jnp.sin(minijax.pure_callback(near, x, x)), n + 1

    f = jit(lambda x: lax.while_loop(lambda s: s[1] < 3, turn, (x, 0))[0])
    x = minijax.device_put(LARGE, gpu)
    with pytest.raises(Exception, match="not now"):
        f(x)
    angry.clear()
    expected = LARGE
    for _ in range(3):
        expected = np.sin(2 * expected)
    for _ in range(2):
        np.testing.assert_allclose(f(x), expected, 1e-4, 1e-5)


def test_threads_share_a_program_with_a_loop(machine):
    gpu, _ = machine
    run = jit(halved)
    inputs = [LARGE * (1 + number) for number in range(4)]
    expected = [np.asarray(run(jnp.asarray(x))[0]) for x in inputs]
    far = minijax.device_put(inputs, gpu)

    def results(x):
        return [np.asarray(run(x)[0]) for _ in range(3)][-1]

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(results, far))
    for ours, theirs in zip(found, expected):
        np.testing.assert_allclose(ours, theirs, 2e-4, 1e-5)
