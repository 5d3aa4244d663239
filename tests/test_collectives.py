"""Replicas in machine code: every exchange, many turns, faults, Ctrl-C and forks."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import (
    P,
    clear_caches,
    config,
    grad,
    jit,
    lax,
    make_mesh,
    pmap,
    pure_callback,
    shard_map,
    tree,
    vmap,
)
from minijax.collectives import executors as halls
from minijax.dispatch.lowlevel import i64
from minijax.sharding.shard_map import _programs
from minijax.threads.atomics import PoolState
from minijax.threads.pool import thread_pool

ROWS = jnp.arange(6.0).reshape(2, 3) + 1


def sum_of(v):
    return lax.psum(v, "i")


def apart(v):
    return lax.cond(lax.axis_index("i") == 1, lambda v: v, sum_of, v)


def mesh_programs():
    """Return the programs of meshes that are kept."""
    return [p for once in _programs.values() for p in once.values.values()]


def test_a_sum_has_no_step_of_python():
    clear_caches()
    pmap(sum_of, "i")(ROWS)
    [program] = mesh_programs()
    assert program.executor_slot and not program.executable.host.steps
    assert "exchange" in str(program.executable.lowered)
    with config.override("minijax_exchange", False):
        clear_caches()
        pmap(sum_of, "i")(ROWS)
        [program] = mesh_programs()
        assert program.executor_slot is False and program.executable.host.steps
    clear_caches()


def exchanges(program):
    """Return the lines of a program's steps that are meetings."""
    return [x for x in str(program.executable.lowered).split("\n") if " exchange " in x]


@pytest.mark.parametrize("size", [1, 3, 40, 3000])
def test_a_tree_meets_once(size):
    def total(v):
        tree = {"a": v, "b": [v * 2, v > 1, v.sum()], "c": jnp.outer(v[:9], v)}
        return lax.psum(tree, "i"), lax.pmax(jnp.sin(v), "i")

    clear_caches()
    x = jnp.asarray(np.arange(2 * size).reshape(2, size) % 5, "float32")
    found, expected = pmap(total, "i")(x), vmap(total, axis_name="i")(x)
    for mine, theirs in zip(tree.leaves(found), tree.leaves(expected), strict=True):
        np.testing.assert_allclose(mine, theirs, 1e-6)
    [program] = mesh_programs()
    [line] = exchanges(program)
    assert line.count("together") == 1 and "fold by add, max" in line


def test_gradients_of_all_layers_meet_once():
    def loss(w, x):
        for layer in w:
            x = jnp.tanh(x @ layer)
        return (x**2).mean()

    clear_caches()
    mesh, numbers = make_mesh((2,), ("x",)), np.random.default_rng(0)
    w = [jnp.asarray(numbers.normal(size=(4, 4)), "float32") for _ in range(5)]
    x = jnp.asarray(numbers.normal(size=(6, 4)), "float32")
    how = {"mesh": mesh, "in_specs": (P(), P("x")), "out_specs": P()}
    slopes = shard_map(grad(loss), **how)(w, x)
    [program] = mesh_programs()
    assert len(exchanges(program)) == 1
    for mine, theirs in zip(slopes, grad(loss)(w, x)):
        np.testing.assert_allclose(mine, 2 * theirs, 1e-4, 1e-6)


def test_what_reads_a_sum_comes_between():
    def two(v):
        first = lax.psum(v, "i")
        return lax.psum(jnp.sin(first) + v, "i"), lax.psum(v * 2, "i")

    clear_caches()
    np.testing.assert_allclose(
        pmap(two, "i")(ROWS)[0], vmap(two, axis_name="i")(ROWS)[0], 1e-6
    )
    [program] = mesh_programs()
    assert len(exchanges(program)) == 2


EIGHT = """
import itertools
import numpy as np
import minijax.numpy as jnp
from minijax import lax, pmap, vmap
rng = np.random.default_rng(0)
ring = lambda n: [(j, (j + 1) % n) for j in range(n)]
def programs(n):
    yield "sum", lambda v: lax.psum(v, "i")
    yield "max", lambda v: lax.pmax(v, "i") - lax.pmin(v, "i")
    yield "index", lambda v: v * lax.axis_index("i").astype(v.dtype)
    for axis, tiled in itertools.product((0, 1), (False, True)):
        yield "all", lambda v: lax.all_gather(v, "i", axis=axis, tiled=tiled)
    for axis in (0, 1):
        yield "scatter", lambda v: lax.psum_scatter(
            v, "i", scatter_dimension=axis, tiled=True)
        for other in (0, 1):
            yield "parts", lambda v: lax.all_to_all(v, "i", axis, other, tiled=True)
    yield "one", lambda v: lax.ppermute(v, "i", ring(n))
    yield "some", lambda v: lax.ppermute(v, "i", ring(n)[:-1])
done = 0
for n, dtype, size in (
    (8, "float32", 8), (4, "float16", 8), (8, "int8", 16), (3, "complex64", 12),
    (4, "float32", 400), (8, "float32", 104), (2, "bfloat16", 64),
):
    x = jnp.asarray(rng.integers(0, 3, (n, size, size)), dtype)
    for name, f in programs(n):
        if dtype == "complex64" and name == "max":
            continue
        found, expected = pmap(f, "i")(x), vmap(f, axis_name="i")(x)
        assert found.dtype == expected.dtype, (name, dtype)
        exact = np.asarray(found == expected).all()
        assert exact, (name, n, dtype, size)
        done += 1
def turns(v, w):
    def turn(c, i):
        v, w = c
        s = lax.psum(v, "i")
        w = lax.ppermute(w, "i", ring(8)) + s[0]
        return (s % 7 + lax.axis_index("i"), w % 5), lax.pmax(w[0], "i")
    return lax.scan(turn, (v, w), jnp.arange(400))
v, w = jnp.arange(24).reshape(8, 3), jnp.arange(8 * 600).reshape(8, 600)
expected = vmap(turns, axis_name="i")(v, w)
for _ in range(3):
    found = pmap(turns, "i")(v, w)
    assert np.array_equal(found[1], expected[1])
    assert np.array_equal(found[0][1], expected[0][1])
import os
child = os.fork()
if child == 0:
    found = pmap(lambda v: lax.psum(v, "i"), "i")(v)[0]
    os._exit(0 if (found == v.sum(0)).all() else 1)
assert os.waitpid(child, 0)[1] == 0
assert (pmap(lambda v: lax.psum(v, "i"), "i")(v)[0] == v.sum(0)).all()
print(done)
"""


def test_eight_replicas_as_vmap_many_turns_and_a_fork():
    environment = os.environ | {"JAX_NUM_CPU_DEVICES": "8"}
    found = subprocess.run(
        [sys.executable, "-c", EIGHT], env=environment, capture_output=True, timeout=120
    )
    assert found.returncode == 0, found.stderr.decode()
    assert int(found.stdout) > 80


def test_missing_replica_is_missed_after_a_warning(monkeypatch):
    monkeypatch.setattr(halls, "WARN_AFTER_SECONDS", 0.05)
    soon = config.override("minijax_collective_timeout", 0.3)
    warned = pytest.warns(UserWarning, match="waited 0.05 s for replica 1")
    missed = pytest.raises(TimeoutError, match="1 of 2 replicas arrived; replica 1")
    with soon, warned, missed:
        pmap(apart, "i")(ROWS)
    assert i64[thread_pool().address + PoolState.busy] == 0
    assert np.allclose(pmap(sum_of, "i")(ROWS)[0], ROWS.sum(0))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_interrupt_while_waiting_leaves_a_working_process():
    f = pmap(apart, "i")
    # A shell that starts tests in the background has them ignore Ctrl-C.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        start = time.perf_counter()
        with pytest.raises(KeyboardInterrupt):
            f(ROWS)
        assert time.perf_counter() - start < 5
    finally:
        signal.signal(signal.SIGINT, before)
    assert np.allclose(pmap(sum_of, "i")(ROWS)[0], ROWS.sum(0))


def test_fault_of_python_among_exchanges_of_machine_code():
    def fault(v):
        if v[0] == 4:
            raise ZeroDivisionError("a fault")
        return v

    f = pmap(lambda v: sum_of(pure_callback(fault, v, sum_of(v) * 0 + v)), "i")
    with pytest.raises(Exception, match="a fault"):
        f(ROWS)
    assert np.allclose(f(ROWS - 10)[0], (ROWS - 10).sum(0))


def test_calls_from_many_threads_at_once():
    f, wrong = pmap(lambda v: sum_of(sum_of(v) / 2), "i"), []

    def caller(number):
        x = ROWS * number
        for _ in range(50):
            if not np.allclose(f(x)[0], x.sum(0)):
                wrong.append(number)

    threads = [threading.Thread(target=caller, args=(i,)) for i in range(1, 5)]
    for step in (threading.Thread.start, threading.Thread.join):
        list(map(step, threads))
    assert not wrong


def test_a_known_call_looks_at_types_places_and_switches():
    f = pmap(sum_of, "i")
    first = f(ROWS)
    again = f(first)
    assert again.sharding == first.sharding
    assert np.allclose(f(again)[0], 2 * again[0])
    assert f(first.astype(jnp.int32)).dtype == jnp.int32
    assert np.allclose(jit(f)(first), again)
    with pytest.raises(ValueError, match="requested to map"):
        f(jnp.float32(1))
    gone = f(first)
    gone.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        f(gone)
