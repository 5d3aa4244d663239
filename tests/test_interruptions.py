"""Ctrl-C in the middle of a compilation, and forks."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from minijax.interruptions import uninterrupted
from minijax.remembering import Once

posix = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


@posix
def test_an_interrupt_waits():
    steps = []
    with pytest.raises(KeyboardInterrupt):
        with uninterrupted():
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
        with uninterrupted():
            signal.raise_signal(signal.SIGINT)
            seen.append("block")
        assert seen == ["block", "handler"]
    finally:
        signal.signal(signal.SIGINT, before)


def test_errors_pass():
    with pytest.raises(ValueError), uninterrupted():
        raise ValueError


def test_other_threads_are_left_alone():
    failures = []

    def work():
        try:
            with uninterrupted():
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
from minijax.settings import config
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
    thread.join(60)
    assert found == [expected], (found, expected)
print("done")
"""


@posix
@pytest.mark.parametrize("seed", range(2))
def test_interrupted_processes_go_on(seed):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(seed)], text=True, capture_output=True,
        timeout=180, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["done"]


def test_once_after_a_fork():
    once = Once()
    once._making["key"] = threading.RLock()
    once._lock.acquire()  # by a thread that the new process does not have
    once.unlock()
    assert once.get("key", lambda: 1) == 1


AT_THE_END = """
import threading, time
import minijax.numpy as jnp
from llvmlite.binding import ffi
from minijax import jit
jit(lambda x: x + 1, backend="cpu")(jnp.ones(3))
inside = threading.Event()
def compile():
    with ffi.lib._lock:
        inside.set()
        time.sleep(0.3)
        print("compiled", flush=True)
    time.sleep(0.001)  # the turn of the other thread
    with ffi.lib._lock:
        print("compiled in a process that has ended", flush=True)
threading.Thread(target=compile, daemon=True).start()
inside.wait()
"""


def test_the_end_of_a_process_waits_for_llvm():
    done = subprocess.run(
        [sys.executable, "-c", AT_THE_END],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "compiled\n", "")
