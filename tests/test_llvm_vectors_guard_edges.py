"""Loops of vectors are written in parts, between which a guard opens or closes."""

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import jit, lax, make_jaxpr
from minijax.cpu_backend.backend import CPUProgram
from minijax.kernels.ir import Affine, Guard, Loop, Parameter, Store
from minijax.kernels.loop_nests import (
    Kernel,
    constant_node,
    index_node,
    load_node,
    op_node,
)
from minijax.llvm.codegen import KernelEmitter
from minijax.llvm.vectors import (
    guard_edges,
    guards_of,
    split_at_edges,
    split_extent,
)
from minijax.threads.pool import ThreadPool

F32 = np.dtype("float32")


def padded(size, reads):
    """A kernel that reads rows behind guards, given as offset, stride and limit."""
    x = Parameter("x", F32, 10 * size)
    loads = tuple(
        load_node(x, Affine(0, (1,)), (Guard(Affine(at, (stride,)), limit),), 7)
        for at, stride, limit in reads
    )
    outs = [Parameter(f"out{n or ''}", F32, size) for n in range(len(loads))]
    stores = [Store(out, Affine(0, (1,)), load) for out, load in zip(outs, loads)]
    return Kernel("padded", (size,), (x, *outs), loads, tuple(stores))


@pytest.mark.parametrize("seed", range(20))
def test_what_a_part_knows(seed):
    """The parts are the whole loop, and no guard that a part leaves out is needed."""
    chance = np.random.default_rng(seed)
    lanes, size = int(chance.choice([4, 8, 16])), int(chance.integers(128, 400))
    reads = [
        (int(a), int(s), int(n))
        for a, s, n in zip(
            chance.integers(-size, size, 2),
            chance.choice([-3, -1, 1, 2], 2),
            chance.integers(1, size, 2),
        )
    ]
    kernel = padded(size, reads)
    f = KernelEmitter(kernel)
    loop = Loop(0, [*kernel.nodes, *kernel.stores], (), "vector", lanes)
    edges, told = guard_edges(f, loop), 0
    parts = split_at_edges(size, lanes, edges)
    seen = [
        index
        for first, live, count in parts
        for turn in range(count)
        for index in range(first + lanes * turn, first + lanes * turn + live)
    ]
    assert seen == [*range(size)]
    for first, live, count in parts:
        f.ranges = {0: (first, first + lanes * (count - 1) + live - 1)}
        indices = np.arange(f.ranges[0][0], f.ranges[0][1] + 1)
        for load in kernel.nodes:
            [(place, limit)] = load.detail.guards
            numbers = place.at((indices,))
            inside = (numbers >= 0) & (numbers < limit)
            found = f.open_guards(load.detail.guards)
            assert found is not None or not inside.any()
            assert found != [] or inside.all()
            told += found is None or found == []
            if edges and count > 1:
                assert found is None or found == []
    assert told or not edges


def test_no_edges_no_parts():
    """A loop without guards has the text that it had, and so has a short one."""
    assert split_at_edges(100, 8, ()) == split_extent(100, 8)
    short = padded(40, [(-3, 1, 30)])
    loop = Loop(0, [*short.nodes, *short.stores], (), "vector", 8)
    assert guard_edges(KernelEmitter(short), loop) == ()


def test_a_comparison_of_indices_is_a_guard():
    """It is settled where all indices of a part agree."""
    n = index_node(0)
    less = op_node("lt", n, constant_node(100, n.dtype))
    [(place, limit)] = guards_of(less, (400,))
    numbers = np.arange(400)
    inside = (place.at((numbers,)) >= 0) & (place.at((numbers,)) < limit)
    np.testing.assert_array_equal(inside, numbers < 100)
    f = KernelEmitter(padded(400, [(0, 1, 400)]))
    for ends, word in (((0, 99), "true"), ((100, 399), "false"), ((96, 103), None)):
        f.ranges = {0: ends}
        assert f.is_settled(less) == word
    narrow = op_node("convert", n, dtype=np.dtype("int8"))
    assert guards_of(op_node("lt", narrow, narrow), (100,))
    assert guards_of(op_node("lt", narrow, narrow), (400,)) == ()


def neighbours(x):
    """The sum of three neighbours, with nothing beyond the ends."""
    p = jnp.pad(x, 1)
    return p[2:] + p[1:-1] + p[:-2]


ROWS = {
    "neighbours": neighbours,
    "padded far": lambda x: jnp.pad(x, (x.size, 3)) * 2,
    "reversed": lambda x: jnp.pad(x[::-1], (5, 0))[: x.size] + x,
    "other number": lambda x: jnp.pad(x, (2, 70), constant_values=3) + 1,
    "halves": lambda x: jnp.where(
        jnp.arange(2 * x.size) < x.size,
        jnp.pad(x, (0, x.size)),
        jnp.pad(x, (x.size, 0)),
    ),
    "in steps": lambda x: lax.pad(x[::2], x[0], [(3, 3, 0)]) * 2,
    "the greatest": lambda x: jnp.pad(x, (90, 1), constant_values=-5).max(),
    "the sum": lambda x: jnp.pad(x, (90, 1)).sum(),
    "by its index": lambda x: jnp.where(jnp.arange(x.size) >= 70, x, x * 2),
    "behind": lambda x: jnp.where(3 * jnp.arange(x.size) + 2 < 200, x, 1),
    "an index that wraps": lambda x: jnp.where(
        jnp.arange(x.size).astype("int8") > 5, x, x * 2
    ),
    "an index below zero": lambda x: jnp.where(
        jnp.arange(x.size, dtype="uint32") - 66 <= 3, x, x * 2
    ),
    "backwards": lambda x: jnp.where(99 - jnp.arange(x.size) > 0, x, 1),
    "two indices": lambda x: jnp.where(
        jnp.arange(x.size) * 2 < jnp.arange(x.size) + 80, x, 1
    ),
    "cut off": lambda x: lax.pad(x, x[0], [(-1, 2, 0)]) * 3,
}
SIZES = (1, 7, 63, 64, 65, 127, 128, 129, 200, 1000, 4097)


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("kind", ["float32", "float64", "int8", "bfloat16", "bool"])
def test_rows(name, kind):
    """At all sizes around the lanes a row is what eager calls make of it."""
    with minijax.enable_x64(kind == "float64"):
        for size in SIZES if kind == "float32" else SIZES[3::2]:
            x = jnp.asarray(np.arange(size) % 7 - 3).astype(kind)
            found, wanted = jit(ROWS[name])(x), ROWS[name](x)
            np.testing.assert_array_equal(
                np.asarray(found).astype(float), np.asarray(wanted).astype(float), size
            )


@pytest.mark.parametrize("shape", [(3, 70), (70, 70), (5, 129), (129, 8)])
def test_stencil(shape):
    """Both directions of a plane have guards: the inner one is cut, the outer not."""

    def stencil(u):
        p = jnp.pad(u, 1)
        around = p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2]
        return around - 4 * u

    u = jnp.asarray(np.arange(np.prod(shape)) % 11, jnp.float32).reshape(shape)
    np.testing.assert_array_equal(jit(stencil)(u), stencil(u))


@pytest.fixture
def helpers():
    """A pool of three helpers, whatever computer this is."""
    made = ThreadPool(3)
    yield made
    made.stop()


def test_by_several_threads(monkeypatch, helpers):
    """Each part of such a loop is shared, wherever a thread's own indices begin."""
    monkeypatch.setattr("minijax.threads.pool.thread_pool", lambda: helpers)
    monkeypatch.setattr("minijax.threads.parallel_loops.MIN_PARALLEL_NS", 0)
    monkeypatch.setattr("minijax.threads.parallel_loops.MIN_PART_NS", 0.001)
    for name in ("neighbours", "padded far", "reversed", "halves", "in steps"):
        for size in (129, 1000, 5003):
            x = jnp.asarray(np.arange(size) % 7 - 3, jnp.float32)
            program = CPUProgram(make_jaxpr(ROWS[name])(x))
            assert "@minijax_share" in program.text
            for _ in range(20):
                [found] = program(x)
                np.testing.assert_array_equal(found, ROWS[name](x), f"{name} {size}")
