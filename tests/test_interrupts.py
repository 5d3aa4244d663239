"""Ctrl-C at any place: the process is as before, and works."""

import ast
import contextlib
import functools
import gc
import itertools
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from functools import partial
from pathlib import Path
from zlib import crc32

import llvmlite
import numpy as np
import pytest
from llvmlite.binding import ffi

import minijax
import minijax.numpy as jnp
from minijax import export, lax, profiler
from minijax._lazy import _at_rest, _lock
from minijax.arrays.config import permissive_promotion, wanted
from minijax.arrays.dtypes import config
from minijax.autojitting.autojit import current_switches, restored_switches
from minijax.context_values import current_context_value
from minijax.core import (
    EvalTrace,
    _current_trace,
    bind_listeners,
    current_trace,
    set_current_trace,
)
from minijax.dispatch.compilation_cache import read_object, write_object
from minijax.dispatch.eager import EagerPlan, _alike
from minijax.dispatch.private_files import TEMPORARY_SUFFIX, read_secret
from minijax.experimental import autojit
from minijax.extend.core import take_current_trace
from minijax.passes.pipeline import evaluate_eqn
from minijax.profiler.spans import _recordings
from minijax.rematerialization.caching import all_caches
from minijax.sharding import Mesh
from minijax.sharding import PartitionSpec as P
from minijax.sharding.manual_axes import as_replica, thread_state
from minijax.sharding.named_sharding import _mesh_set
from minijax.spmd.lockstep_executor import collect_notes, current_notes
from minijax.threads.environment import _cache
from minijax.training import checkpoints
from tests.commands import LONG, blocks
from tests.emulated_card import emulated_gpu
from tests.interrupts import PACKAGE, Places, Ways, interrupted, places

OTHER = {"jax_numpy_rank_promotion": "warn"}
MESH = Mesh(np.array(minijax.devices("cpu")[:1]), ("i",))
X = jnp.arange(4.0)
DRAWS = int(os.environ.get("MINIJAX_TEST_DRAWS", 12 if LONG else 6))
TURNS = int(os.environ.get("MINIJAX_TEST_SIGNALS", 150))
pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


@pytest.fixture(autouse=True)
def interruptible():
    """Ctrl-C interrupts, even if these tests run in the background of a shell."""
    floats = np.geterr()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
    np.seterr(**floats)


@pytest.fixture(scope="module", autouse=True)
def without_plans():
    """Each interrupted call would begin its plan anew; they have tests of their own."""
    before = config.minijax_eager_plans
    config.update("minijax_eager_plans", False)
    yield
    config.update("minijax_eager_plans", before)


def state():
    """Return what is set and restored in this process and in this thread."""
    values = config.values
    free = [once._lock.locked() for kept in all_caches for once in [*kept.values()]
            if hasattr(once, "_making")]  # fmt: skip
    making = [lock() for kept in all_caches for once in [*kept.values()]
              for lock in getattr(once, "_making", {}).values()]  # fmt: skip
    return {
        "trace": current_trace(), "extent": _current_trace.get().before,
        "switches": values, "overrides": config.state[1], "chosen": config._chosen,
        "replica": thread_state.replica, "notes": current_notes(),
        "watchers": [*bind_listeners],
        "checks": [*wanted], "collector": gc.isenabled(), "resting": [*_at_rest],
        "lock": _lock._is_owned(), "locks": sum(free),
        "making": [x for x in making if x and "unlocked" not in repr(x)],
        "profiles": [*_recordings],
        "handler": signal.getsignal(signal.SIGINT), "threads": threading.gettrace(),
        "floats": np.geterr(), "printing": np.get_printoptions(),
        "warnings": ([*warnings.filters], warnings._showwarnmsg_impl),
    }  # fmt: skip


def works():
    """Do a few operations, whose results are known."""
    assert isinstance(current_trace(), EvalTrace)
    assert (X + 1).tolist() == [1, 2, 3, 4] and jnp.ones(2).dtype == "float32"
    assert float(minijax.grad(lambda x: x * x)(3.0)) == 6
    assert minijax.vmap(lambda x: x * 2)(X).tolist() == [0, 2, 4, 6]
    assert str(minijax.make_jaxpr(lambda x: x + 1)(1.0)).count("add") == 1
    assert minijax.jit(lambda x: x - 1)(X).tolist() == [-1, 0, 1, 2]


@contextlib.contextmanager
def of_a_user():
    with minijax.enable_x64(), minijax.disable_jit():
        yield


def without_calls():
    """Return options of a trace without calls: they need what counts places."""
    options = profiler.ProfileOptions()
    options.python_tracer_level = 0
    return options


@functools.cache
def folder_of_traces():
    """One folder for all traces of this process, which goes with it."""
    return tempfile.TemporaryDirectory(prefix="minijax-traces-")


def traced():
    return profiler.trace(folder_of_traces().name, profiler_options=without_calls())


BLOCKS = {
    "enable_x64": lambda: minijax.enable_x64(),
    "default_device": lambda: minijax.default_device(minijax.devices("cpu")[0]),
    "disable_jit": lambda: minijax.disable_jit(),
    "debug_nans": lambda: minijax.debug_nans(True),
    "strict": lambda: minijax.numpy_dtype_promotion("strict"),
    "ranks": lambda: minijax.numpy_rank_promotion("raise"),
    "transfer_guard": lambda: minijax.transfer_guard("allow"),
    "checking_leaks": lambda: minijax.checking_leaks(),
    "matmul": lambda: minijax.default_matmul_precision("highest"),
    "at once": lambda: minijax.ensure_compile_time_eval(),
    "named_scope": lambda: minijax.named_scope("name"),
    "mesh that is set": lambda: _mesh_set(MESH),
    "mesh": lambda: MESH,
    "take_current_trace": take_current_trace,
    "set_current_trace": lambda: set_current_trace(EvalTrace()),
    "being": lambda: as_replica(1),
    "noting": lambda: collect_notes(MESH),
    "permissive_promotion": permissive_promotion,
    "autojit": lambda: autojit(),
    "restored_switches": lambda: restored_switches(
        current_switches() | OTHER, X.placement
    ),
    "profiler": traced,
    "user": of_a_user,
}


def different(work, known=frozenset(), turn=0, borrowed=()):
    """The places of some work, each by each way of calls to it once.

    With `LONG=1` each as often as it is met.

    Args:
      known: of these ways, which are met elsewhere as well, every eighth.
      turn: where in the eight.
      borrowed: files of others; if there are any, the places are those in them.
    """
    work()
    met = Ways((PACKAGE, *borrowed))
    met.run(work)
    first = {way: n for n, way in reversed([*enumerate(met.ways)])}
    once = sorted(n for way, n in first.items() if way not in known or n % 8 == turn)
    inside = range(met.count) if LONG else once
    return [n for n in inside if not borrowed or met.files[n] in borrowed]


@functools.cache
def of_a_sum():
    """The places in a sum that no block is around, and the calls that lead there."""
    met = Ways()
    met.run(lambda: X + X)
    return {*met.ways}


@pytest.mark.parametrize("name", BLOCKS)
def test_blocks(name):
    """Of the sum in the block each place is met in one of eight blocks."""

    def work():
        with BLOCKS[name]():
            X + X

    check_all(work, different(work, of_a_sum(), crc32(name.encode()) % 8))


@pytest.mark.parametrize("name", ["enable_x64", "disable_jit", "mesh", "at once"])
def test_blocks_within_blocks(name):
    def work():
        with (
            MESH,
            BLOCKS[name](),
            contextlib.suppress(ValueError),
            BLOCKS[name](),
            MESH,
        ):
            raise ValueError

    check_all(work, different(work))


def test_decorators():
    work = minijax.enable_x64()(lambda: jnp.ones(1))
    check_all(work, different(work))


def check_all(work, numbers):
    """Interrupt a function in each of some places, and look at the process."""
    work()
    works()
    before = state()
    for number in numbers:
        where, held = interrupted(work, number)
        now = state()
        wrong = {key: now[key] for key in before if now[key] != before[key]}
        assert not wrong, (where, wrong)
    works()


def test_a_mesh_is_set_or_not():
    """The call sets it, before `with` has begun: an interrupt there leaves it set."""

    def work():
        with minijax.set_mesh(MESH):
            pass

    before = state()
    for number in range(places(work)):
        where, held = interrupted(work, number)
        if config.minijax_mesh is MESH:
            assert where.endswith(("guard", "set_mesh", "__enter__")), where
            current_context_value(config._overrides).__exit__(None, None, None)
        assert state() == before, where


def test_a_switch_is_set_or_not():
    def work():
        config.update("jax_debug_nans", True)

    before = state()
    for number in range(places(work)):
        config.update("jax_debug_nans", False)
        where, held = interrupted(work, number)
        assert config._chosen == config._values, where
        assert bool(bind_listeners) == config.jax_debug_nans, where
    config.update("jax_debug_nans", False)
    assert state() == before


@minijax.custom_jvp
def cube(x):
    return x**3


cube.defjvp(lambda xs, ts: (cube(*xs), 3 * xs[0] ** 2 * ts[0]))


@minijax.custom_vjp
def double(x):
    return x * 2


double.defvjp(lambda x: (double(x), None), lambda _, g: (g * 2,))


def poly(x):
    return jnp.sin(x) * x + 1


CALLS = {
    "eager": lambda: lambda: jnp.dot(X, X) + poly(X).sum(),
    "jit": lambda: fixed(minijax.jit(lambda x: poly(x))),
    "machine": lambda: fixed(minijax.jit(lambda x: poly(x), backend="cpu")),
    "grad": lambda: fixed(minijax.grad(lambda x: poly(x).sum())),
    "vmap": lambda: fixed(minijax.vmap(minijax.jit(lambda x: poly(x)))),
    "jvp": lambda: lambda: minijax.jvp(poly, (X,), (X,)),
    "scan": lambda: fixed(lambda x: lax.scan(lambda c, y: (c + y, c * y), 1.0, x)),
    "cond": lambda: fixed(
        minijax.grad(lambda x: lax.cond(x[0] > 1, poly, jnp.cos, x).sum())
    ),
    "custom_jvp": lambda: fixed(minijax.grad(lambda x: cube(x).sum())),
    "custom_vjp": lambda: fixed(minijax.grad(minijax.jit(lambda x: double(x).sum()))),
    "remat": lambda: fixed(minijax.grad(lambda x: minijax.checkpoint(poly)(x).sum())),
    "shard_map": lambda: fixed(
        minijax.shard_map(
            lambda x: lax.psum(x, "i"), mesh=MESH, in_specs=P("i"), out_specs=P()
        )
    ),
    "pmap": lambda: fixed(minijax.pmap(lambda x: lax.psum(x, "i"), "i"), X[None]),
    "donation": lambda: lambda: minijax.jit(poly, donate_argnums=0)(X + 0),
}


def fixed(function, x=X):
    return lambda: function(x)


def numbers_of(tree):
    return [np.asarray(x).tolist() for x in minijax.tree.leaves(tree)]


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("warm", [False, True])
def test_calls(name, warm, draws=DRAWS):
    """Some places of a call, which is then made again; the last draws are all new."""
    make = CALLS[name]
    expected = numbers_of(make()())
    works()
    before, chance = state(), random.Random(name)
    call = make()
    if warm:
        call()
    count = places(call)
    for number in chance.sample(range(count), min(draws, count)):
        call = make()
        if warm:
            call()
        where, held = interrupted(call, number)
        now = state()
        wrong = {key: now[key] for key in before if now[key] != before[key]}
        assert not wrong, (where, wrong)
        assert numbers_of(call()) == expected, where
    works()


with np.printoptions(precision=2):
    tersely = minijax.jit(lambda x: minijax.debug.print("{}", x)).lower(X).compile()
HALF, MATRIX = jnp.ones(2, "float16"), jnp.ones((40, 40))
[LOG] = minijax.make_jaxpr(lax.log)(X).eqns
# Settings of NumPy and Python that are another's: who sets them for a while.
BORROWED = np._core._ufunc_config, np._core.arrayprint, warnings, contextlib
SETTING = {
    "evaluation": lambda: lax.log(X * 0),
    "program of Python": fixed(minijax.jit(lambda x: lax.log(x * 0), backend="python")),
    "kernels": fixed(minijax.jit(lambda x: lax.log(x * 0), backend="kernels")),
    "conversion": lambda: jnp.asarray(np.array([1e300]), "float32"),
    "constant of a program": lambda: minijax.make_jaxpr(lambda x: x + 70000.0)(HALF),
    "constant that is folded": lambda: evaluate_eqn(LOG, [np.zeros(4, "f")]),
    "matrix product": fixed(minijax.jit(lambda x: x @ x[0], backend="kernels"), MATRIX),
    "words": lambda: minijax.random.bits(minijax.random.key(3), (2,)),
    "polynomial": lambda: jnp.polyint(X, 200),
    "numbers": lambda: minijax.scipy.special.bernoulli(40),
    "print": lambda: tersely(X),
    "plan": lambda: EagerPlan(jnp.var, (X,), {}),
    "agreement": lambda: _alike(X, X, 1.0),
}


@pytest.mark.parametrize("name", SETTING)
def test_settings_of_others(name):
    """Frames of those who made the settings count as ours."""
    work = SETTING[name]
    borrowed = [module.__file__ for module in BORROWED]
    before = state()
    for number in different(work, borrowed=borrowed):
        turn = Places(number, (PACKAGE, *borrowed))
        turn.run(work)
        now = state()
        wrong = {key: now[key] for key in before if now[key] != before[key]}
        assert not wrong, (turn.where, wrong)


def traced_to(folder):
    with profiler.trace(str(folder), profiler_options=without_calls()):
        X + X


def cached(folder):
    read_secret.cache_clear()
    write_object(str(folder), "0" * 64, b"code")
    assert read_object(str(folder), "0" * 64) == b"code"


def saved(folder):
    checkpoints.save(folder / "saved", {"x": X, "n": 3})
    found = checkpoints.restore(folder / "saved", {"x": X, "n": 0})
    assert found["n"] == 3


def exported(folder):
    program = export.export(minijax.jit(lambda x: x * 2))(X)
    (folder / "exported").write_text(program.mlir_module())


def arrays_of_numpy(folder):
    jnp.savez(folder / "arrays.npz", x=X)
    with jnp.load(folder / "arrays.npz") as found:
        assert found["x"].tolist() == [0, 1, 2, 3]


def environment(folder):
    where = config.override("jax_compilation_cache_dir", str(folder))
    with where, config.override("jax_enable_compilation_cache", True):
        assert " files, " in _cache()


FILES = cached, saved, exported, traced_to, arrays_of_numpy, environment
DRAFTS = "part", TEMPORARY_SUFFIX.strip(".")


def handles():
    """Return what is open in this process."""
    gc.collect()
    paths = [f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd")]
    return sorted(os.readlink(path) for path in paths if os.path.lexists(path))


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="asks Linux")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("work", FILES)
def test_files_are_closed(work, tmp_path, draws=DRAWS):
    """No handle stays open, no lock locked, and no draft on the disk."""
    work(tmp_path)
    before, opened = state(), handles()
    count = places(partial(work, tmp_path))
    for number in random.Random(work.__name__).sample(range(count), min(draws, count)):
        where, held = interrupted(partial(work, tmp_path), number)
        del held
        assert handles() == opened, where
        now = state()
        wrong = {key: now[key] for key in before if now[key] != before[key]}
        drafts = [*filter(lambda path: path.name.endswith(DRAFTS), tmp_path.rglob("*"))]
        assert not wrong and not drafts, (where, wrong, drafts)
    work(tmp_path)


def test_what_is_donated_is_gone_before_a_program_may_write_over_it():
    def work():
        work.x = X + 1
        step(work.x)

    step, wrong = minijax.jit(lambda x: x * 2, donate_argnums=0, backend="cpu"), []
    work()
    work()
    for number in range(places(work)):
        work.x = None
        where, held = interrupted(work, number)
        if work.x is not None and not work.x.is_deleted():
            wrong += [where] * (work.x.tolist() != [1, 2, 3, 4])
    assert not wrong


def test_a_card_is_left_unlocked():
    with emulated_gpu() as (gpu, _):
        card = gpu.card
        for number in range(places(lambda: card.allocate(16))):
            where, held = interrupted(lambda: card.allocate(16), number)
            assert not card.lock._is_owned(), where


# Context managers that the blocks above do not enter, and why nothing is left behind.
OF_ONE_OBJECT = "what it changes is an object that is dropped with the interrupt"
INSIDE = "is entered by blocks above"
OTHERS = {
    "_mentioning": OF_ONE_OBJECT, "inside": OF_ONE_OBJECT, "block": OF_ONE_OBJECT,
    "turns_of": OF_ONE_OBJECT, "sweep": OF_ONE_OBJECT, "within_strips": OF_ONE_OBJECT,
    "TraceAnnotation": "changes nothing before it ends",
    "Folder": "entered while Ctrl-C waits", "defer_interrupts": "makes Ctrl-C wait",
    "replacing": "Python closes the file, and the draft goes with the generator",
    "CudaContext": "changes nothing: the lock and the device are of C",
    "named_scope": "changes nothing", "ContextValue": INSIDE,
    "DerivedContextValue": INSIDE,
    "Report": "watches a program, and changes nothing that it would have to restore",
    "ReentrantContext": INSIDE, "Override": INSIDE, "_Entered": "set_mesh, above",
    "_Taking": INSIDE, "take_current_trace": INSIDE,
    "codegen_option": "LLVM's switch changes no result, and is set anew each time",
}  # fmt: skip


def test_all_context_managers_are_known():
    found = set()
    for path in Path(minijax.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                names = [getattr(each, "name", "") for each in node.body]
                found |= {node.name} if "__enter__" in names else set()
            elif isinstance(node, ast.FunctionDef):
                marks = [ast.unparse(mark) for mark in node.decorator_list]
                found |= {node.name} if "contextmanager" in marks else set()
    assert found == {*OTHERS}


SIGNALS = """
import random, signal, sys
sys.path.insert(0, {root!r})
import minijax, minijax.numpy as jnp
from minijax import lax
from tests.test_interrupts import BLOCKS, CALLS, numbers_of, state, works
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGALRM, lambda *args: signal.raise_signal(signal.SIGINT))
chance = random.Random({seed})
expected = {{name: numbers_of(CALLS[name]()()) for name in CALLS}}
for make in BLOCKS.values():
    with make():
        works
works()
before, hits = state(), 0
for turn in range({turns}):
    name, block = chance.choice([*CALLS]), chance.choice([*BLOCKS])
    block = "enable_x64" if block in ("strict", "ranks") else block
    call = CALLS[name]()
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, chance.random() ** 3 * .02 + 1e-6)
            for _ in range(30):
                with BLOCKS[block]():
                    pass
                call()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        hits += 1
    now = state()
    wrong = {{key: now[key] for key in before if now[key] != before[key]}}
    assert not wrong, (turn, name, block, wrong)
    assert numbers_of(call()) == expected[name], (turn, name, block)
works()
print(hits)
"""


@pytest.mark.parametrize("seed", blocks(1, 2))
def test_real_signals(seed, turns=TURNS):
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    script = SIGNALS.format(root=root, seed=seed, turns=turns)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True,
        timeout=600, check=False, cwd=root,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout) > turns // 2


def test_the_lock_of_llvm_is_left_unlocked():
    """Frames of llvmlite count as ours: a signal may meet the lock's own methods."""
    def fresh():
        number = next(numbers)
        step = minijax.jit(lambda x: jnp.sin(x) * number, backend="cpu")
        return lambda: step(X)

    numbers, lock = itertools.count(2), ffi.lib._lock._lock
    fresh()()
    folders = PACKAGE, os.path.dirname(llvmlite.__file__)
    met = Places(folders=folders)
    met.run(fresh())
    inside = [n for n, file in enumerate(met.files) if file.startswith(folders[1])]
    for number in inside:
        turn = Places(number, folders)
        turn.run(fresh())
        assert not lock._is_owned(), turn.where
