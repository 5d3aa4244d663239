"""Replicas in turn: the same bits as by a team, and warm calls by the fast path."""

import os
import pickle
import subprocess
import sys
import threading
from functools import wraps
from types import SimpleNamespace

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import P, clear_caches, device_put, jit, lax, make_mesh, pmap, shard_map
from minijax.collectives import executors as halls
from minijax.collectives import executors as native_runs
from minijax.collectives import executors as turns
from minijax.dispatch.fastpath_functions import enable_fastpath
from minijax.dispatch.word_language import UnknownLayout
from minijax.sharding import NamedSharding
from tests.test_collectives import mesh_programs

MESH = make_mesh((2, 1), ("x", "y"))
ROWS = device_put(
    np.arange(12, dtype=np.float32).reshape(4, 3), NamedSharding(MESH, P("x"))
)


@pytest.fixture
def gate():
    try:
        return enable_fastpath()
    except UnknownLayout as error:
        pytest.skip(str(error))


@pytest.fixture
def fresh():
    clear_caches()
    yield
    clear_caches()


def mapped(f, mesh=MESH):
    """Return a jitted function of rows on a mesh."""
    how = {"mesh": mesh, "in_specs": P("x"), "out_specs": P("x"), "check_vma": False}
    return jit(shard_map(f, **how))


def warm(f, *args):
    """Call a function until the fast path answers; return the result."""
    for _ in range(20):
        result = f(*args)
    assert f._ready.chain
    return result


EXCHANGES = {
    "fold": lambda v: lax.psum(v, "x"),
    "several": lambda v: sum(lax.psum([v, v * 2, lax.pmax(v, "x")], "x")),
    "many": lambda v: sum(lax.psum([v + i for i in range(30)], "x")),
    "scatter": lambda v: jnp.tile(
        lax.psum_scatter(v, "x", scatter_dimension=0, tiled=True), (2, 1)
    ),
    "all": lambda v: lax.all_gather(v, "x", axis=1, tiled=True),
    "parts": lambda v: lax.all_to_all(v, "x", 0, 0, tiled=True) + 1,
    "one": lambda v: lax.ppermute(v, "x", [(0, 1)]),
    "index": lambda v: v * (1 + lax.axis_index("x")),
    "two": lambda v: lax.psum(jnp.sin(lax.psum(v, "x")) + v, ("x", "y")),
    "none": lambda v: jnp.tanh(v) * 2,
}


@pytest.mark.parametrize("columns", [1, 3, 5000])
@pytest.mark.parametrize("name", EXCHANGES)
def test_in_turn_as_by_a_team(name, columns, fresh, monkeypatch):
    numbers = np.random.default_rng(0).normal(size=(4, columns)).astype(np.float32)
    x = device_put(numbers, NamedSharding(MESH, P("x")))
    found = []
    for short, kind in (
        (10**9, native_runs.SerialRunner),
        (-1, native_runs.TeamRunner),
    ):
        clear_caches()
        monkeypatch.setattr(turns, "MIN_PARALLEL_GAIN_NS", short)
        found.append(np.asarray(mapped(EXCHANGES[name])(x)))
        [program] = mesh_programs()
        many = name == "many"  # too many for the table that would have to stay
        assert type(program.executor_slot) is (native_runs.TeamRunner if many else kind)
    assert found[0].tobytes() == found[1].tobytes()


def test_a_meeting_in_a_branch_or_a_loop_is_no_place_to_cut(fresh):
    def looped(v):
        return lax.fori_loop(0, 3, lambda i, v: lax.psum(v, "x") / 2, v)

    def branched(v):
        return lax.cond(v[0, 0] > 100, lambda v: lax.psum(v, "x"), lambda v: v, v)

    for f in (looped, branched):
        clear_caches()
        mapped(f)(ROWS)
        [program] = mesh_programs()
        assert program.executable.parts == []
        assert type(program.executor_slot) is native_runs.TeamRunner
    alone = make_mesh((1,), ("x",))
    x = device_put(np.ones((4, 3), np.float32), NamedSharding(alone, P("x")))
    clear_caches()
    assert np.allclose(mapped(looped, alone)(x), 0.125)
    [program] = mesh_programs()
    assert type(program.executor_slot) is native_runs.SerialRunner


@pytest.mark.parametrize("kind", ["jit", "pmap"])
def test_results_that_are_seen_are_not_written_again(kind, gate):
    if kind == "jit":
        f, x = mapped(lambda v: v + lax.psum(v, "x")), ROWS
    else:
        f, x = pmap(lambda v: v + lax.psum(v, "x"), "x"), jnp.asarray(ROWS[:2])
        x = pmap(lambda v: v)(x)
    warm(f, x)
    first = f(x)
    expected = np.array(first)
    part = first.addressable_shards[1].data
    view = np.asarray(first.addressable_shards[0].data)
    del first
    others = [f(f(x)) for _ in range(20)]
    half = len(expected) // 2
    assert np.array_equal(part, expected[half:])
    assert np.array_equal(view, expected[:half])
    assert len({np.asarray(y).tobytes() for y in others}) == 1


def test_the_gate_takes_parts_of_the_known_kind_alone(gate):
    f = mapped(lambda v: v * lax.psum(v, "x"))
    expected = np.asarray(warm(f, ROWS))
    assert np.array_equal(f(np.asarray(ROWS)), expected)
    assert np.array_equal(f(jnp.asarray(np.asarray(ROWS))), expected)
    whole = device_put(np.asarray(ROWS), NamedSharding(MESH, P()))
    assert np.array_equal(f(whole), expected)
    other = make_mesh((1, 2), ("x", "y"))
    with pytest.raises(ValueError):
        f(device_put(np.asarray(ROWS), NamedSharding(other, P("x")))[:3])
    assert f(ROWS.astype(jnp.int32)).dtype == jnp.int32
    assert f(device_put(ROWS[:2], NamedSharding(MESH, P("x")))).shape == (2, 3)
    gone = device_put(np.asarray(ROWS), NamedSharding(MESH, P("x")))
    gone.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        f(gone)
    assert np.array_equal(f(ROWS), expected)


def test_parts_that_are_given_up(gate):
    f = jit(lambda v, w: (v * 2 + w.sum(0), w + 1), donate_argnums=0)
    for i in range(40):
        x = device_put(np.asarray(ROWS) + i, NamedSharding(MESH, P("x")))
        v, part = np.asarray(x), x.addressable_shards[0].data if i % 3 else None
        found = f(x, ROWS)
        assert np.allclose(found[0], v * 2 + np.asarray(ROWS).sum(0))
        assert x.is_deleted() and not ROWS.is_deleted()
        assert part is None or np.array_equal(part, v[:2])
    assert f._ready.chain
    with pytest.raises(ValueError, match="deleted"):  # of a warm call, as in JAX
        f(x, ROWS)
    both = jit(lambda v, w: (v + 1, w + 2), donate_argnums=(0, 1))
    for _ in range(20):
        x, y = (device_put(np.asarray(ROWS), ROWS.sharding) for _ in range(2))
        both(x, y)
    assert both._ready.chain
    x = device_put(np.asarray(ROWS), ROWS.sharding)
    with pytest.raises(Exception, match="twice|donate"):
        both(x, x)


def test_numbers_and_whole_arrays_beside_parts(gate):
    f = jit(lambda v, s: v * s)
    numbers = 2.5, np.float32(2.5), jnp.float32(2.5), np.full((), 2.5, np.float32)
    for s in numbers:
        found = warm(f, ROWS, s)
        assert np.array_equal(found, np.asarray(ROWS) * 2.5)
        assert found.sharding == ROWS.sharding
    assert np.array_equal(f(ROWS, 3.5), np.asarray(ROWS) * 3.5)
    assert f(ROWS, 3).dtype == jnp.float32
    row = jnp.arange(3.0)
    assert np.array_equal(warm(f, ROWS, row), np.asarray(ROWS) * [0, 1, 2])
    given = jit(lambda v, s: (v * s, s + 1), donate_argnums=1)
    for _ in range(20):
        row = jnp.arange(3.0)
        found = given(ROWS, row)
        assert np.array_equal(found[0], np.asarray(ROWS) * [0, 1, 2])


def test_trees_and_functions_without_results(gate):
    def f(tree, scale):
        return {"sum": lax.psum(tree["a"], "i"), "b": (tree["b"] * scale,)}

    f = pmap(f, "i")
    tree = {"a": jnp.ones((2, 3)), "b": jnp.arange(2.0)}
    tree, scale = pmap(lambda x: x)(tree), pmap(lambda x: x)(jnp.array([2.0, 3.0]))
    found = warm(f, tree, scale)
    assert np.array_equal(found["sum"], np.full((2, 3), 2))
    assert np.array_equal(found["b"][0], [0, 3])
    nothing = pmap(lambda v: (), "i")
    assert [nothing(scale) for _ in range(20)] == [()] * 20


def test_a_call_by_name_is_another_one(gate):
    f = pmap(lambda v, w=0: v + w)
    x = pmap(lambda v: v)(jnp.arange(2.0))
    for _ in range(20):
        assert np.array_equal(f(x), [0, 1])
        assert np.array_equal(f(x, w=x), [0, 2])


class Model:
    @pmap
    def total(self, v):
        return v


@pmap
def doubled(v):
    """Double."""
    return v * 2


def test_a_pmap_is_named_and_pickled_as_its_function():
    assert (doubled.__name__, doubled.__doc__) == ("doubled", "Double.")
    assert pickle.loads(pickle.dumps(doubled)) is doubled
    assert Model.total.__get__(3).__self__ == 3
    assert doubled.lower(jnp.ones((2, 1))).fun_name == "doubled"


def test_a_function_of_a_pmap_is_its_own(gate):
    x = jnp.arange(2.0).reshape(2, 1)
    with pytest.raises(ValueError):
        pmap(doubled)(jnp.zeros((2, 2, 2)))  # one in another is refused
    plain = pmap(wraps(doubled)(lambda v: v + 1))
    for _ in range(20):
        assert np.array_equal(plain(x), [[1], [2]])


def test_long_turns_of_many_threads(gate):
    f = mapped(lambda v: lax.psum(v, "x") + v)
    x = device_put(np.ones((4, 30_000), np.float32), NamedSharding(MESH, P("x")))
    warm(f, x)
    wrong = []

    def caller(number):
        mine = device_put(np.full(x.shape, number, "float32"), x.sharding)
        for _ in range(40):
            if not (np.asarray(f(mine)) == 3 * number).all():
                wrong.append(number)

    threads = [threading.Thread(target=caller, args=(i,)) for i in range(1, 5)]
    for step in (threading.Thread.start, threading.Thread.join):
        list(map(step, threads))
    assert not wrong


@pytest.mark.parametrize("size", [2048, 5003])
@pytest.mark.parametrize("short", [10**9, -1])
def test_sums_that_go_past_the_caches(size, short, fresh, monkeypatch):
    small = SimpleNamespace(caches=(1,))
    monkeypatch.setattr(halls, "current_target", lambda: small)
    monkeypatch.setattr(halls, "_teams", [])
    monkeypatch.setattr(turns, "MIN_PARALLEL_GAIN_NS", short)
    numbers = np.random.default_rng(0).normal(size=(2, size)).astype(np.float32)
    total = pmap(lambda v: lax.psum([v, v * 2], "i"), "i")
    one = pmap(lambda v: lax.psum(v, "i"), "i")
    expected = numbers[0] + numbers[1]
    for found in (one(numbers), total(numbers)[0]):
        assert np.array_equal(found, [expected] * 2)
    assert np.array_equal(total(numbers)[1][0], 2 * expected)


CHILD = """
import os
import numpy as np
from minijax import lax, pmap
from minijax.dispatch.fastpath_functions import enable_fastpath
enable_fastpath()
x = pmap(lambda v: v)(np.arange(16.0, dtype=np.float32).reshape(2, 8))
f = pmap(lambda v: lax.psum(v, "i"), "i")
for _ in range(20):
    f(x)
assert f._ready.chain
expected = np.asarray(f(x))
child = os.fork()
if child == 0:
    found = [np.array_equal(f(x), expected) for _ in range(20)]
    os._exit(0 if all(found) else 1)
assert os.waitpid(child, 0)[1] == 0
assert np.array_equal(f(x), expected)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_a_warm_call_in_the_child_of_a_fork(gate):
    environment = os.environ | {"JAX_NUM_CPU_DEVICES": "2"}
    command = [sys.executable, "-c", CHILD]
    found = subprocess.run(command, env=environment, capture_output=True, timeout=120)
    assert found.returncode == 0, found.stderr.decode()
