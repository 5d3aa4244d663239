"""Ctrl-C in the middle of a compilation, and forks."""

import os
import signal
import subprocess
import sys
import threading

import pytest

import minijax.numpy as jnp
from minijax import lax
from minijax.dispatch.interrupts import defer_interrupts
from minijax.rematerialization.caching import KeyedCache, all_caches

posix = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


@pytest.fixture(autouse=True)
def interruptible():
    """Ctrl-C interrupts, even if these tests run in the background of a shell."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@posix
def test_an_interrupt_waits():
    steps = []
    with pytest.raises(KeyboardInterrupt):
        with defer_interrupts():
            signal.raise_signal(signal.SIGINT)
            steps.append("to the end")
        steps.append("never")
    assert steps == ["to the end"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@posix
def test_a_handler_of_the_user_is_called_afterwards():
    seen = []
    before = signal.signal(signal.SIGINT, lambda *args: seen.append("handler"))
    try:
        with defer_interrupts():
            signal.raise_signal(signal.SIGINT)
            seen.append("block")
        assert seen == ["block", "handler"]
    finally:
        signal.signal(signal.SIGINT, before)


def test_errors_pass():
    with pytest.raises(ValueError), defer_interrupts():
        raise ValueError


def test_other_threads_are_left_alone():
    failures = []

    def work():
        try:
            with defer_interrupts():
                pass
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert not failures


PROGRAM = """
import os, random, signal, sys, threading, time
import minijax.numpy as jnp
from minijax import jit
from minijax.arrays.dtypes import config
signal.signal(signal.SIGINT, signal.default_int_handler)
config.update("jax_enable_compilation_cache", False)
x = jnp.arange(50.0)
jit(lambda x: x + 1, backend="cpu")(x)
chance = random.Random(int(sys.argv[1]))
for turn in range(12):
    f = jit(lambda x: jnp.exp(jnp.tanh(x) + turn).sum(), backend="cpu")
    timer = threading.Timer(
        chance.random() * .05, lambda: os.kill(os.getpid(), signal.SIGINT)
    )
    try:
        timer.start()
        f(x)
        timer.join()
        time.sleep(.01)
    except KeyboardInterrupt:
        pass
    try:
        timer.join()
    except KeyboardInterrupt:
        pass
    expected = float(f(x))  # the function, and the process, are as good as new
    found = []
    thread = threading.Thread(target=lambda: found.append(float(
        jit(lambda x: jnp.exp(jnp.tanh(x) + turn).sum() + 0, backend="cpu")(x))))
    thread.start()
    thread.join(300)
    assert found == [expected], (found, expected)
print("done")
"""


@posix
@pytest.mark.parametrize("seed", range(2))
def test_interrupted_processes_go_on(seed):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(seed)], text=True, capture_output=True,
        timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["done"]


def test_once_after_a_fork():
    once = KeyedCache()
    once._making["key"] = threading.RLock()
    once._lock.acquire()  # by a thread that the new process does not have
    once.unlock()
    assert once.get("key", lambda: 1) == 1


FORK_WHILE_IMPORTING = """
import os, signal, sys, threading
from minijax import jit
importing = threading.Event()
class Slowly:
    def find_spec(self, name, path=None, target=None):
        if name == "llvmlite.binding.ffi":
            importing.set()
            threading.Event().wait(0.5)
sys.meta_path.insert(0, Slowly())
f = jit(lambda x: x + 1, backend="cpu")
thread = threading.Thread(target=f, args=(1.0,))
thread.start()
importing.wait(100)
child = os.fork()
if child == 0:
    signal.alarm(100)
    os._exit(int(f(6.0)))
thread.join()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_what_is_cached_can_be_unlocked():
    x = jnp.arange(3.0)
    lax.fori_loop(0, 3, lambda i, y: y * 2.0, x)
    for cache in all_caches:
        for once in [*cache.values()]:
            once.unlock()


@posix
def test_a_fork_while_llvm_is_imported():
    assert said_by(FORK_WHILE_IMPORTING) == ["7"]


AT_THE_END = """
import atexit, threading
from llvmlite.binding import ffi
inside, ending, kept, seen = [threading.Event() for _ in range(4)]
def last():
    print("ended", flush=True)
    kept.set()
    seen.wait(100)
atexit.register(last)
import minijax.numpy as jnp
from minijax import jit
jit(lambda x: x + 1, backend="cpu")(jnp.ones(3))
atexit.register(ending.set)  # what is registered last is called first
def compile():
    with ffi.lib._lock:
        inside.set()
        ending.wait(100)
        threading.Event().wait(0.2)
        print("compiled", flush=True)
    kept.wait(100)
    print(ffi.lib._lock._lock.acquire(blocking=False), flush=True)
    seen.set()
threading.Thread(target=compile, daemon=True).start()
inside.wait(100)
"""


JOINED_AT_THE_END = """
import atexit, threading
import minijax.numpy as jnp
from minijax import jit
ending = threading.Event()
def work():
    ending.wait(100)
    print(float(jit(lambda x: x * 2 + 1, backend="cpu")(1.0)), flush=True)
thread = threading.Thread(target=work, daemon=True)
def finish():
    ending.set()
    thread.join(30)
    print(thread.is_alive(), flush=True)
atexit.register(finish)
jit(lambda x: x + 1, backend="cpu")(jnp.ones(3))
thread.start()
"""


NOT_THE_END = """
import atexit, threading
from minijax import jit
atexit.register(lambda: None)
jit(lambda x: x + 1, backend="cpu")(1.0)
atexit._run_exitfuncs()
def work():
    print(float(jit(lambda x: x * 3 + 1, backend="cpu")(1.0)), flush=True)
thread = threading.Thread(target=work, daemon=True)
thread.start()
thread.join(60)
"""


@pytest.mark.parametrize(
    "program, said",
    [
        (AT_THE_END, "compiled ended False"),
        (JOINED_AT_THE_END, "3.0 False"),
        (NOT_THE_END, "4.0"),
    ],
    ids=["waits for LLVM and keeps it", "helps who is waited for", "run by hand"],
)
def test_the_end_of_a_process(program, said):
    assert said_by(program) == said.split()


def said_by(program):
    """Return the words that a process prints which ends well."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],  # 3.12 warns of forks
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()
