"""Threads: parts of kernels and products, and the pool that does them."""

import ctypes
import os
import subprocess
import sys
import threading
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import grad, jit, lax, make_jaxpr
from minijax.cpu_backend.backend import CPUProgram, emit_launch
from minijax.dispatch.word_language import i64
from minijax.kernels.checker import check_kernel
from minijax.kernels.loop_nests import interpret
from minijax.kernels.lowering import Launch, step_kinds
from minijax.llvm.codegen import module_ir
from minijax.llvm.compiler import Library
from minijax.llvm.targets import TargetLibrary, current_target, kernel_function
from minijax.matmul.lowering import Matmul, emit_matmul
from minijax.threads import pool as pool_code
from minijax.threads.atomics import (
    PAUSES,
    PoolState,
    WorkerState,
    _count,
    atomic_load,
    available_cores,
    ceil_div,
    compare_exchange,
    fetch_add,
    pause_text,
)
from minijax.threads.parallel_loops import (
    MIN_PARALLEL_NS,
    estimate_kernel_time,
    grain_unit,
    parallel_launches,
    parallel_loop,
    range_function,
)
from minijax.threads.pool import (
    ThreadPool,
    parallel_for_address,
    pool_text,
    thread_pool,
)
from minijax.threads.split_reductions import two_stage_fold
from minijax.vectorization.row_schedules import Stream
from tests.commands import LONG

ROOT = Path(__file__).resolve().parents[1]
WORD = ctypes.c_int64
TASK = ctypes.CFUNCTYPE(*[WORD] * 5)


@pytest.fixture(scope="module")
def helpers():
    """A pool of three helpers, whatever computer this is."""
    made = ThreadPool(3)
    yield made
    made.stop()


@contextmanager
def helpers_away(pool):
    """Nobody helps for a while."""
    place = pool.address + PoolState.helpers
    count, i64[place] = i64[place], 0
    try:
        yield
    finally:
        i64[place] = count


def address_of(function):
    return ctypes.cast(function, ctypes.c_void_p).value


def numbers(*shape, dtype="float32"):
    return np.random.default_rng(19).normal(size=shape).astype(dtype)


@pytest.mark.parametrize("size, unit", [(1, 1), (7, 1), (64, 16), (1003, 16), (9, 4)])
def test_each_part_is_done_once(helpers, size, unit):
    done, share = [], helpers.function("minijax_share", 7)

    @TASK
    def task(args, start, end, space):
        done.append((start, end))
        return 0

    for _ in range(20):
        done.clear()
        share(address_of(task), 0, size, unit, 0, 4, 100)
        parts = sorted(done)
        assert parts[0][0] == 0 and parts[-1][1] == size
        assert all(a[1] == b[0] and b[0] % unit == 0 for a, b in pairwise(parts))


def test_no_more_parts_than_are_worth_it(helpers):
    done, share = [], helpers.function("minijax_share", 7)

    @TASK
    def task(args, start, end, space):
        done.append((start, end))
        return 0

    for most, parts in [(1, 1), (0, 1), (3, 3), (50, 16)]:
        done.clear()
        share(address_of(task), 0, 1600, 1, 0, 4, most)
        assert len(done) == parts


def test_space_is_different_in_each_thread(helpers):
    spaces, share = {}, helpers.function("minijax_share", 7)

    @TASK
    def task(args, start, end, space):
        spaces.setdefault(threading.get_ident(), set()).add(space)
        return args

    share(address_of(task), 0, 64, 1, 7, 16, 100)
    found = [each for [each] in spaces.values()]
    assert len(set(found)) == len(found)
    assert spaces.get(threading.get_ident(), {7}) == {7}


def test_several_threads_share_at_once(helpers):
    done, share = [[] for _ in range(4)], helpers.function("minijax_share", 7)

    @TASK
    def task(args, start, end, space):
        done[args].append(end - start)
        return 0

    def run(number):
        for _ in range(50):
            share(address_of(task), number, 10, 1, 0, 4, 100)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    _ = [thread.start() for thread in threads], [thread.join() for thread in threads]
    assert list(map(sum, done)) == [500] * 4


def test_helpers_sleep_and_are_woken(helpers):
    share = helpers.function("minijax_share", 7)
    who, both = set(), threading.Barrier(4, timeout=200)

    @TASK
    def task(args, start, end, space):
        who.add(threading.get_ident())
        both.wait()
        return 0

    for _ in range(3):
        asleep = [helpers.address + PoolState.workers + 64 * n for n in range(3)]
        while not all(i64[me + WorkerState.asleep] for me in asleep):
            threading.Event().wait(0.01)
        share(address_of(task), 0, 4, 1, 0, 1, 100)
    assert len(who) == 4


def test_a_pool_that_stopped_does_all_itself():
    alone, done = ThreadPool(1), []
    alone.stop()
    assert not any(helper.is_alive() for helper in alone.workers)

    @TASK
    def task(args, start, end, space):
        done.append((start, end))
        return 0

    alone.function("minijax_share", 7)(address_of(task), 0, 100, 1, 0, 4, 100)
    assert done == [(0, 100)]


def test_the_pool_as_python():
    table, done = (WORD * 128)(), []

    @TASK
    def task(args, start, end, space):
        done.append((start, end))
        return 0

    base = -(-ctypes.addressof(table) // 64) * 64
    pool_code.parallel_for(base, address_of(task), 0, 100, 8, 0, 4, 100)
    assert done == [(0, 100)]
    i64[base + PoolState.task], i64[base + PoolState.size] = address_of(task), 20
    i64[base + PoolState.step], i64[base + PoolState.count] = 8, 3
    i64[base + PoolState.left] = 3
    pool_code.drain(base, 0)
    assert done[1:] == [(0, 8), (8, 16), (16, 20)] and i64[base + PoolState.done] == 3


def test_atomics_as_python():
    table = (WORD * 1)(5)
    place = ctypes.addressof(table)
    assert (fetch_add(place, 2), atomic_load(place), ceil_div(7, 2)) == (5, 7, 4)
    assert (
        compare_exchange(place, 7, 1),
        compare_exchange(place, 7, 2),
        atomic_load(place),
    ) == (1, 0, 1)


@pytest.mark.parametrize("triple", ["x86_64-linux", "arm64-apple", "riscv64-linux"])
def test_text_for_other_systems(triple):
    from llvmlite import binding

    binding.parse_assembly(pool_text(triple)).verify()
    known = triple.startswith(tuple(name for names in PAUSES for name in names))
    assert ("call void @llvm" in pause_text(triple)) == known


KERNELS = {
    "elementwise": (lambda x: jnp.tanh(x) * x + 1, [(1003,)]),
    "rows": (lambda x: x - x.max(1, keepdims=True), [(37, 51)]),
    "softmax": (lambda x: jnp.exp(x) / jnp.exp(x).sum(1, keepdims=True), [(37, 130)]),
    "transposed": (lambda x: x.T + 1, [(70, 83)]),
    "broadcast": (lambda x, y: x * y[:, None], [(33, 100), (33,)]),
    "index": (lambda x: x + jnp.arange(777), [(777,)]),
    "pad": (lambda x: jnp.pad(x, 3) + 1, [(777,)]),
    "reversed": (lambda x: x[::-1] * 2, [(777,)]),
    "columns": (lambda x: x.sum(0), [(20, 300)]),
}


def launches_of(f, shapes, dtype):
    args = [jnp.asarray(numbers(*shape, dtype=dtype)) for shape in shapes]
    program = CPUProgram(make_jaxpr(f)(*args))
    return [step for step in program.plan.program.walk() if isinstance(step, Launch)]


def kernels_of(f, shapes, dtype):
    return [step.kernel for step in launches_of(f, shapes, dtype)]


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("name", KERNELS)
def test_parts_are_bit_by_bit_the_whole(name, dtype):
    target, cut = current_target(), 0
    for kernel in kernels_of(*KERNELS[name], dtype):
        loop = parallel_loop(kernel, target)
        if loop is None:
            continue
        cut += 1
        made = kernel_function(kernel, "whole", target)
        parts = range_function(kernel, "part", target, grain_unit(loop))
        library = TargetLibrary(module_ir([made, parts]), target)
        assert_same(kernel, loop, library)
    assert cut or name in ("columns", "broadcast")


WIDE = {
    "columns": (lambda x: x.sum(0), [(200, 3001)]),
    "columns of products": (lambda x, y: jnp.tanh(x * y).sum(0), [(99, 1700)] * 2),
    "columns in strips": (lambda x: 2 * x.max(0), [(40, 20_001)]),
}


@pytest.mark.parametrize("name", WIDE)
def test_columns_in_parts_are_bit_by_bit_the_whole(name):
    """A step that stands for a loop over columns is cut between them."""
    target = current_target()
    [kernel] = kernels_of(*WIDE[name], "float32")
    loop = parallel_loop(kernel, target)
    assert any(isinstance(step, Stream) for step in (loop, *getattr(loop, "body", ())))
    parts = range_function(kernel, "part", target, grain_unit(loop))
    whole = kernel_function(kernel, "whole", target)
    assert_same(kernel, loop, TargetLibrary(module_ir([whole, parts]), target))


ENOUGH = {
    "columns": (lambda x: x.sum(0), [(1000, 1000)]),
    "more columns than rows": (lambda x: x.sum(0), [(300, 20_000)]),
    "few columns": (lambda x: x.sum(0), [(100_003, 30)]),
    "gradient of a bias": (
        grad(lambda b, x: jnp.tanh(x + b).sum()), [(512,), (2048, 512)],
    ),
    "a prime": (lambda x: x.sum(), [(1_000_003,)]),
    "twice a prime": (lambda x: jnp.tanh(x).mean(), [(500_009, 2)]),
    "loss": (lambda w, x, y: ((jnp.tanh(x @ w) - y) ** 2).sum(),
             [(3,), (1_000_003, 3), (1_000_003,)]),
}  # fmt: skip


@pytest.mark.parametrize("name", ENOUGH)
def test_what_is_long_is_shared(name):
    """Whatever the sizes are: no length and no shape is left to one thread."""
    f, shapes = ENOUGH[name]
    args = [jnp.zeros(shape) for shape in shapes]
    target, long = current_target(), []
    for step in CPUProgram(make_jaxpr(f)(*args)).plan.program.walk():
        if (
            isinstance(step, Launch)
            and estimate_kernel_time(step.kernel, target) > MIN_PARALLEL_NS
        ):
            long.append(step)
            assert parallel_launches(step, target), step.kernel
    assert long


def test_parts_that_would_cut_a_vector_are_refused():
    [kernel] = kernels_of(lambda x: jnp.tanh(x) * x, [(1003,)], "float32")
    unit = grain_unit(parallel_loop(kernel, current_target()))
    with pytest.raises(ValueError, match=f"does {unit} iterations at once"):
        range_function(kernel, "part", current_target(), unit // 2)
    assert "%hi" in range_function(kernel, "part", current_target(), 3 * unit).text


@pytest.mark.parametrize("options", [["--count", "60" if LONG else "30"], ["--made"]])
def test_random_kernels_in_parts(options):
    command = [sys.executable, "-W", "ignore", "-m", "tests.thread_cases", *options]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and " 0 differences" in done.stdout, done.stdout


def assert_same(kernel, loop, library):
    rng = np.random.default_rng(0)
    given = [rng.integers(-3, 4, b.size).astype(b.dtype) for b in kernel.parameters]
    wanted, found = ([x.copy() for x in given] for _ in range(2))
    count, size = len(given), kernel.sizes[loop.axis]
    library.function("whole", count)(*[x.ctypes.data for x in wanted])
    units = ceil_div(size, grain_unit(loop))
    places = sorted({0, units, *rng.integers(0, units, 3).tolist()})
    pairs = [*pairwise(min(n * grain_unit(loop), size) for n in places)]
    rng.shuffle(pairs)
    kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * count, WORD, WORD)
    part = kind(library.engine.get_function_address("part"))
    for start, end in pairs:
        part(*[x.ctypes.data for x in found], start, end)
    for x, y in zip(wanted, found):
        np.testing.assert_array_equal(x, y)


def network(w, xs):
    def step(h, x):
        h = jnp.tanh(x + h @ w)
        return h, (h * h).sum()

    h, sums = lax.scan(step, jnp.zeros((64, 96)), xs)
    return sums.sum() + h.sum()


PROGRAMS = {
    "elementwise": (lambda x: jnp.tanh(x) * x, [(400_003,)]),
    "softmax": (KERNELS["softmax"][0], [(300, 1001)]),
    "columns": (lambda x, y: x @ y, [(100, 130), (130, 301)]),
    "rows": (lambda x, y: x @ y, [(301, 130), (130, 100)]),
    "batch": (lambda x, y: x @ y, [(9, 70, 50), (9, 50, 60)]),
    "turned": (lambda x, y: x.T @ y.T, [(130, 201), (333, 130)]),
    "gradient": (grad(lambda x, y: jnp.tanh(x @ y).sum()), [(200, 130), (130, 301)]),
    "loop": (grad(network), [(96, 96), (3, 64, 96)]),
}


FOLDS = {
    "sum": (lambda x: x.sum(), [(5100,)]),
    "mean": (lambda x: jnp.exp(x * x).mean() + 1, [(40, 2000)]),
    "columns": (lambda x: x.sum(0) * 2 - x[0], [(640, 33)]),
    "one axis of three": (lambda x: x.max(1), [(3, 1000, 5)]),
    "two of three": (lambda x: x.sum((0, 2)), [(60, 3, 50)]),
    "rows": (lambda x: x.sum(1), [(3, 3000)]),
    "two": (lambda x: x.sum() / x.max(), [(5100,)]),
    "norm": (lambda x, y: jnp.sqrt((x * y).sum()), [(6400,), (6400,)]),
    "a value beside it": (lambda x: ((x * x).sum(), x * 2), [(6400,)]),
    "any": (lambda x: (x > 2).any(), [(6400,)]),
    "padded": (lambda x: jnp.pad(x, 60).sum(), [(5100,)]),
    "a prime": (lambda x: x.sum(), [(5003,)]),
    "a prime, and a value beside it": (lambda x: ((x * x).max(), x * 2), [(5003,)]),
    "a prime, padded and reversed": (lambda x: jnp.pad(x[::-1], 7).sum(), [(5051,)]),
    "rows of rows": (lambda x: jnp.tanh(x.sum(1)).sum(), [(640, 3)]),
    "rows of rows, a prime": (
        lambda x: (jnp.tanh((x * x).sum(1)).max(), x.sum(1)),
        [(641, 3)],
    ),
    "two of a prime": (lambda x: x.sum((0, 2)), [(67, 3, 50)]),
}


@pytest.mark.parametrize("dtype", ["float32", "int32", "float16"])
@pytest.mark.parametrize("name", FOLDS)
def test_folds_in_two_kernels(name, dtype):
    found = 0
    for step in launches_of(*FOLDS[name], dtype):
        if steps := two_stage_fold(step):
            found += 1
            [check_kernel(each.kernel) for each in steps]
            assert_does_the_same(step, steps)
    assert found


def assert_does_the_same(step, steps):
    rng = np.random.default_rng(0)
    given = {
        buffer: rng.integers(-3, 4, buffer.size).astype(buffer.dtype)
        for each in [step, *steps]
        for buffer in each.buffers
    }
    wanted, found = ({k: x.copy() for k, x in given.items()} for _ in range(2))
    run(step, wanted), [run(each, found) for each in steps]
    for buffer in step.buffers:
        np.testing.assert_allclose(found[buffer], wanted[buffer], rtol=1e-3)


def run(step, memory):
    pairs = zip(step.kernel.parameters, step.buffers)
    interpret(step.kernel, {x.name: memory[buffer] for x, buffer in pairs})


NOT_CUT = {
    "a place": (lambda x: x.argmax(), [(6400,)]),
    "softmax": (lambda x: jnp.exp(x) / jnp.exp(x).sum(), [(6400,)]),
    "a fold of a fold": (lambda x: ((x - x.mean()) ** 2).mean(), [(6400,)]),
    "too many columns": (lambda x: x.sum(0), [(64, 1000)]),
    "indices": (lambda x: (x * jnp.arange(6400)).sum(), [(6400,)]),
    "no fold": (lambda x: x * 2, [(6400,)]),
}


@pytest.mark.parametrize("name", NOT_CUT)
def test_what_is_not_cut(name):
    assert not any(map(two_stage_fold, launches_of(*NOT_CUT[name], "float32")))


@pytest.mark.parametrize("name", FOLDS)
def test_folds_do_not_depend_on_threads(name, small, monkeypatch, helpers):
    monkeypatch.setattr("minijax.threads.pool.thread_pool", lambda: helpers)
    f, shapes = FOLDS[name]
    args = [jnp.asarray(numbers(*shape)) for shape in shapes]
    program = CPUProgram(make_jaxpr(f)(*args))
    assert "@minijax_share" in program.text
    with_helpers = [np.asarray(x) for x in program(*args)]
    with helpers_away(helpers):
        alone = [np.asarray(x) for x in program(*args)]
    for x, y in zip(with_helpers, alone):
        np.testing.assert_array_equal(x, y)


def results(f, shapes, dtype="float32"):
    args = [jnp.asarray(numbers(*shape, dtype=dtype)) for shape in shapes]
    program = CPUProgram(make_jaxpr(f)(*args))
    return np.asarray(program(*args)[0]), program.text


@pytest.fixture
def small(monkeypatch):
    """All that can be shared is shared."""
    monkeypatch.setattr("minijax.threads.parallel_loops.MIN_PARALLEL_NS", 0)
    monkeypatch.setattr("minijax.threads.parallel_loops.MIN_PART_NS", 0.001)


@pytest.fixture
def unshared(monkeypatch):
    """A function that returns results without threads."""

    def run(*args):
        with monkeypatch.context() as m:
            for kind, write in ((Launch, emit_launch), (Matmul, emit_matmul)):
                m.setitem(step_kinds, kind, step_kinds[kind]._replace(write=write))
            return results(*args)

    return run


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_are_bit_by_bit_the_same(name, small, unshared):
    found, text = results(*PROGRAMS[name])
    wanted, plain = unshared(*PROGRAMS[name])
    assert "call i64 @minijax_share" in text and "minijax_share" not in plain
    if name == "loop":  # its sums are cut
        return np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    return np.testing.assert_array_equal(found, wanted)


def test_short_steps_are_not_shared():
    assert "minijax_share" not in results(lambda x: x * 2, [(1000,)])[1]


def test_without_a_pool(small, monkeypatch):
    monkeypatch.setattr(
        "minijax.threads.parallel_loops.parallel_for_address", lambda: None
    )
    assert "minijax_share" not in results(*PROGRAMS["gradient"])[1]


def test_no_pool_without_the_text_of_its_functions(monkeypatch):
    def missing():
        raise OSError

    monkeypatch.setattr("minijax.threads.pool.thread_pool", missing)
    assert parallel_for_address() is None


def test_programs_in_several_threads():
    x = jnp.asarray(numbers(300_000))
    program = jit(lambda x: jnp.exp(x) * x, backend="cpu")
    wanted, found = np.asarray(program(x)), []

    def run():
        for _ in range(10):
            found.append((np.asarray(program(x)) == wanted).all())

    threads = [threading.Thread(target=run) for _ in range(3)]
    _ = [thread.start() for thread in threads], [thread.join() for thread in threads]
    assert len(found) == 30 and all(found)


SCRIPT = """
import os, threading
import numpy as np
import minijax.numpy as jnp
from minijax import jit
f = jit(lambda x: jnp.tanh(x) * x, backend="cpu")
x = jnp.linspace(-1, 1, 500_000)
wanted = np.asarray(f(x))
from minijax.threads.pool import thread_pool
print(len(thread_pool().workers), flush=True)
"""

ENDINGS = {
    "at once": "",
    "at work": """
def run():
    while True:
        f(x)
threading.Thread(target=run, daemon=True).start()
f(x)
""",
    "fork": """
for _ in range(5):
    child = os.fork()
    if child == 0:
        os._exit(int((np.asarray(f(x)) != wanted).any()))
    assert os.waitpid(child, 0)[1] == 0
    f(x)
""",
    "interrupted": """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
later = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
try:
    later.start()
    while True:
        f(x)
except KeyboardInterrupt:
    later.join()
assert (np.asarray(f(x)) == wanted).all()
""",
    "workers by fork": """
import multiprocessing
def sums(k):
    return float(np.asarray(f(x + k)).sum())
serial = [sums(k) for k in range(4)]
with multiprocessing.get_context("fork").Pool(2) as workers:
    assert workers.map(sums, range(4)) == serial
""",
    "exit of a fork": """
if os.fork() == 0:
    f(x)
    raise SystemExit
assert os.wait()[1] == 0
""",
}


def run_script(script, threads):
    env = {**os.environ, "MINIJAX_NUM_THREADS": threads}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, done.stdout.split(), done.stderr


@pytest.mark.parametrize(
    "threads, ending", [("1", "at once"), *[("4", ending) for ending in ENDINGS]]
)
def test_processes_end_as_they_should(threads, ending):
    if "fork" in ending and not hasattr(os, "fork"):
        pytest.skip("There is no fork here.")
    wanted = 0, [str(int(threads) - 1)], ""
    assert run_script(SCRIPT + ENDINGS[ending], threads) == wanted


@pytest.mark.skipif(not hasattr(os, "fork"), reason="There is no fork here.")
def test_a_pool_of_a_fork_has_no_helpers():
    script = """
import os
from minijax.threads.pool import thread_pool
if os.fork() == 0:
    os._exit(len(thread_pool().workers))
print(os.wait()[1], len(thread_pool().workers))
"""
    assert run_script(script, "3") == (0, ["0", "2"], "")


def test_threads_that_cannot_start(monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as m:
        m.setattr(threading.Thread, "start", refuse)
        alone = ThreadPool(3)
    assert alone.workers == [] and i64[alone.address + PoolState.helpers] == 0
    alone.stop()


@pytest.mark.parametrize(
    "text, wanted",
    [("max 100000", 64), ("250000 100000", 3), ("50000 100000", 1), (None, 64)],
)
def test_limits_of_containers(text, wanted, monkeypatch, tmp_path):
    path = tmp_path / "cpu.max"
    if text:
        path.write_text(text + "\n")
    monkeypatch.setattr("minijax.threads.atomics.CPU_LIMIT", path)
    cores = {"sched_getaffinity": lambda process: range(64)}
    monkeypatch.setattr(os, *cores.popitem(), raising=False)
    assert available_cores() == wanted


def test_number_of_threads():
    assert (_count(""), _count("3"), _count(2)) == (0, 3, 2)
    for wrong in ("-1", "many", 1.5):
        with pytest.raises(ValueError, match="no number of threads"):
            _count(wrong)
    assert thread_pool() is thread_pool() and isinstance(thread_pool().library, Library)
