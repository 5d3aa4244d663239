"""Steps that Python does for machine code: calls, their order, their errors."""

import gc
import mmap
import sys
import threading
import weakref

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import ShapeDtypeStruct, debug, jit, lax, pure_callback
from minijax.cpu_backend import program_codegen as host_steps
from minijax.cpu_backend.backend import CPUProgram
from minijax.errors import JaxRuntimeError
from minijax.experimental import io_callback
from minijax.kernels.builder import Buffer

X = np.linspace(-1, 1, 12, dtype="float32").reshape(3, 4)
LIKE = ShapeDtypeStruct(X.shape, X.dtype)
INT = ShapeDtypeStruct((), np.dtype("int32"))
NO_RESERVE = 0x4000 if sys.platform == "linux" else 0  # promised, with no reserve


def on_cpu(f):
    return jit(f, backend="cpu")


def test_callback():
    f = on_cpu(lambda x: pure_callback(lambda a: np.asarray(a) + 1, LIKE, x * 2) * 3)
    np.testing.assert_allclose(f(X), (X * 2 + 1) * 3, rtol=1e-6)


def test_callback_in_a_loop_sees_each_state_and_may_keep_it():
    seen = []

    def note(i, x):
        seen.append((int(i), np.asarray(x)))
        return np.asarray(x) * 2

    def body(i, x):
        return pure_callback(note, LIKE, i, x) + 1.0

    found = on_cpu(lambda x: lax.fori_loop(0, 3, body, x))(X)
    expected = X
    for i, (number, state) in enumerate(seen):
        assert number == i
        np.testing.assert_allclose(state, expected, rtol=1e-6)
        expected = expected * 2 + 1
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_prints_come_in_order(capsys):
    def body(i, x):
        debug.print("{} {}", i, x)
        return lax.cond(i == 1, lambda: (debug.print("one"), x + 1)[1], lambda: x)

    on_cpu(lambda x: lax.fori_loop(0, 3, body, x))(jnp.float32(2))
    assert capsys.readouterr().out.split("\n")[:-1] == [
        "0 2.0",
        "1 2.0",
        "one",
        "2 3.0",
    ]


def test_errors_come_through_and_the_next_call_is_fine():
    def check(x):
        if x < 0:
            raise ValueError("below zero")
        return np.sqrt(x)

    like = ShapeDtypeStruct((), np.float32)
    later = []

    def f(x):
        y = pure_callback(check, like, x)
        io_callback(lambda y: later.append(float(y)), None, y)
        return y

    f = on_cpu(f)
    for _ in range(2):
        with pytest.raises(JaxRuntimeError, match="ValueError: below zero"):
            f(jnp.float32(-1))
    assert later == []  # what comes after an error does not happen
    assert f(jnp.float32(4)) == 2 and later == [2.0]


def test_an_interruption_comes_through():
    def interrupt(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        on_cpu(lambda x: debug.callback(interrupt, x) or x)(1.0)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interruption_before_the_first_line(monkeypatch):
    """That is where Ctrl-C comes out which was pressed while machine code ran."""

    def interrupted(steps, errors):
        def answer(number, addresses):
            raise KeyboardInterrupt  # ctypes shows it, and returns whatever was there

        return answer

    monkeypatch.setattr(host_steps, "answering", interrupted)
    with pytest.raises(KeyboardInterrupt):
        on_cpu(lambda x: pure_callback(lambda a: a, LIKE, x + 1) * 2)(X)


def test_an_error_in_a_loop_leaves_it():
    count = []

    def body(state):
        def fail(i):
            count.append(int(i))
            if i == 3:
                raise RuntimeError("three")

        debug.callback(fail, state)
        return state + 1

    with pytest.raises((RuntimeError, JaxRuntimeError), match="three"):
        on_cpu(lambda i: lax.while_loop(lambda i: i < 10, body, i))(0)
    assert count == [0, 1, 2, 3]


def test_programs_call_themselves():
    like = ShapeDtypeStruct((), np.int32)

    def down(n):
        return f(n - 1) + 1 if n > 0 else np.int32(0)

    f = on_cpu(lambda n: pure_callback(lambda n: down(int(n)), like, n))
    assert f(5) == 5


def test_threads_meet_their_own_errors():
    like = ShapeDtypeStruct((), np.float32)

    def picky(x):
        if x % 2:
            raise ValueError(f"odd: {int(x)}")
        return x

    f, found = on_cpu(lambda x: pure_callback(picky, like, x)), {}

    def run(number):
        try:
            found[number] = float(f(np.float32(number)))
        except JaxRuntimeError as error:
            found[number] = str(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, value in found.items():
        assert f"odd: {number}" in value if number % 2 else value == number


def test_executables_go_when_nobody_needs_them():
    closed = minijax.make_jaxpr(lambda x: pure_callback(lambda a: a, LIKE, x))(X)
    program = CPUProgram(closed)
    np.testing.assert_array_equal(program(X)[0], X)
    seen = weakref.ref(program)
    del program
    gc.collect()
    assert seen() is None


@pytest.mark.parametrize("size", [2**31, 2**32 + 16])
def test_a_step_of_python_takes_more_bytes_than_an_int_of_c_counts(size, monkeypatch):
    """How many bytes are copied, from memory that is promised and never touched."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE
    try:
        memory = mmap.mmap(-1, size, flags=flags)
    except OSError as error:
        pytest.skip(f"no addresses for it here: {error}")
    x = np.frombuffer(memory, np.uint8)
    monkeypatch.setattr(np, "array", lambda x: memoryview(x).nbytes)
    copied = host_steps.copy_buffer_bytes(Buffer("x", x.dtype, size), x.ctypes.data)
    assert copied == size


def test_a_step_of_python_takes_nothing():
    assert host_steps.copy_buffer_bytes(Buffer("x", np.dtype("int8"), 0), 0).shape == (
        0,
    )
    found = on_cpu(lambda x: pure_callback(lambda a: np.int32(a.size), INT, x))(X[:0])
    assert found == 0
