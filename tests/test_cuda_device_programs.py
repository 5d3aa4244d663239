"""Programs for a GPU: launches in order, loops by the host, memory by a plan."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import lax, make_jaxpr
from minijax.cuda import device as programs
from minijax.cuda.device import CudaProgram, lower_for_gpu
from minijax.cuda.program_steps import may_overwrite_on_gpu
from minijax.errors import JaxRuntimeError
from minijax.memory.buffer_assignment import may_overwrite
from minijax_book import emulator
from tests.emulated_card import emulated_gpu

pytestmark = pytest.mark.skipif(not emulator.is_there(), reason="no C++ compiler here")
X = np.arange(12, dtype=np.float32).reshape(4, 3) / 7


def recurrence(x, reverse=False):
    def turn(h, row):
        h = jnp.tanh(h + row)
        return h, (h.sum(), row)

    return lax.scan(turn, jnp.zeros(3), x, reverse=reverse)


def nested(x):
    return lax.fori_loop(0, 3, lambda i, h: h + recurrence(h)[1][1] * i, x)


def newton(x):
    def better(state):
        x, _ = state
        step = (x * x - 2) / (2 * x)
        return x - step, jnp.abs(step)

    return lax.while_loop(lambda s: s[1] > 1e-6, better, (x[1, 1], jnp.float32(1)))[0]


def chosen(x):
    return lax.switch(x[1, 1].astype(int) + 1, [jnp.sin, jnp.cos, lambda x: -x], x)


def waves(x):
    def turn(z, row):
        z = z * (1 + 0.5j) + row
        return z, z.real + abs(z)

    return lax.scan(turn, jnp.zeros(3, jnp.complex64), x)


def walk(x):
    def turn(state):
        key, i, total = state
        key, one = minijax.random.split(key)
        return key, i + 1, total + minijax.random.uniform(one, (3,))

    start = minijax.random.key(5), 0, x[0]
    return lax.while_loop(lambda state: state[1] < 4, turn, start)[2]


def other_bits(_, y):
    bits = lax.bitcast_convert_type(y, jnp.int32)
    return lax.bitcast_convert_type(bits ^ 1, jnp.float32) + y


PROGRAMS = {
    "scan": recurrence,
    "backwards": lambda x: recurrence(x, True),
    "nested": nested,
    "gradient": minijax.grad(lambda x: recurrence(x)[1][0].sum()),
    "while": newton,
    "while of examples": lambda x: minijax.vmap(newton)(jnp.stack([x, x + 2])),
    "branch": chosen,
    "sort": lambda x: jnp.sort(x, axis=0)[::-1],
    "sort in a loop": lambda x: lax.fori_loop(0, 2, lambda i, x: jnp.sort(-x, 0), x),
    "itself": lambda x: (x, x, x.T, 3.0),
    "nothing": lambda x: x[:0].sum(axis=0) + x[:, :0].sum(),
    "update": lambda x: x.at[1, jnp.array([0, 2, 0])].add(1.0),
    "constants": lambda x: x + jnp.asarray(X) @ jnp.asarray(X).T @ x,
    "complex in a loop": lambda x: waves(x)[1],
    "keys in a loop": lambda x: walk(x),
    "other bits in a loop": lambda x: lax.fori_loop(0, 3, other_bits, x),
    "random": lambda x: minijax.random.normal(minijax.random.key(3), x.shape) + x,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_do_there_what_they_do_here(name, gpu):
    f = PROGRAMS[name]
    expected = minijax.tree.leaves(f(jnp.asarray(X)))
    for _ in range(2):
        found = minijax.tree.leaves(minijax.jit(f)(minijax.device_put(X, gpu)))
        assert {x.device for x in found} == {gpu}
        for ours, theirs in zip(found, expected):
            np.testing.assert_allclose(ours, theirs, 1e-5, 1e-6)


def program_of(gpu, f, *args, name="program", donated=()):
    return CudaProgram(make_jaxpr(f)(*args), name, donated, device=gpu)


def test_kernels_are_written_once_and_compiled_together(gpu):
    x = np.eye(40, dtype=np.float32)
    program = program_of(gpu, lambda x: (x @ x) @ x, x)
    labels = [launch.label for launch in program.launches.values()]
    assert len(labels) == 2 and len(set(labels)) == 1
    assert program.text.count("__global__") == len(program.functions)


def test_the_arena_is_one_block_that_stays(gpu, machine):
    f = lambda x: (jnp.sort(jnp.sin(x), 0) * 2).sum()  # noqa: E731
    program = program_of(gpu, f, X)
    assert program.plan.arena and not program.arenas
    program(X)
    [arena] = program.arenas
    program(X)
    assert program.arenas == [arena] and len(arena) == program.plan.arena


def test_a_call_within_a_call_has_an_arena_of_its_own(gpu):
    depth = []

    def again(x):
        if len(depth) < 2:
            depth.append(1)
            return np.asarray(f(minijax.device_put(x, gpu)))
        return np.asarray(x)

    @minijax.jit
    def f(x):
        y = jnp.sort(jnp.sin(x))
        return minijax.pure_callback(again, x, x) + jnp.sort(jnp.cos(y)) + y

    x = np.float32([1, 2, 3])
    y = np.sort(np.sin(x))
    once = np.sort(np.cos(y)) + y
    np.testing.assert_allclose(f(minijax.device_put(x, gpu)), x + 3 * once, rtol=1e-5)


def test_threads_that_share_a_row_never_write_over_it():
    f = lambda y, x: y + x.sum(axis=1)  # noqa: E731
    y, x = np.ones(64, np.float32), np.ones((64, 100), np.float32)
    [step] = lower_for_gpu(make_jaxpr(f)(y, x)).steps
    *given, result = step.buffers
    [old] = [buffer for buffer in given if buffer.size == 64]
    assert may_overwrite(step, old, result)
    assert not may_overwrite_on_gpu(step, old, result)
    [step] = lower_for_gpu(make_jaxpr(lambda x: x * 2)(x)).steps
    assert may_overwrite_on_gpu(step, *step.buffers)


def test_what_is_given_up_is_written_over(gpu):
    f = minijax.jit(lambda x: x * 2, donate_argnums=0)
    x = minijax.device_put(X, gpu)
    address = x._buffer.bytes.address
    y = f(x)
    assert x.is_deleted() and y._buffer.bytes.address == address
    np.testing.assert_array_equal(y, X * 2)
    x, other = y, y.__copy__()
    y = f(x)
    np.testing.assert_array_equal(other, X * 2)
    np.testing.assert_array_equal(y, X * 4)


def test_numbers_of_the_host_are_put_there(gpu):
    with minijax.default_device(gpu):
        result = minijax.jit(lambda x, y: x * y)(X, 2.0)
    assert result.device is gpu
    np.testing.assert_array_equal(result, X * 2)


def test_a_failing_kernel_is_named_with_the_line_of_its_program(gpu, monkeypatch):
    written = programs.cuda_source

    def wrongly_written(launches):
        text, labels = written(launches)
        return text.replace("i] =", "i + 3] ="), labels

    monkeypatch.setattr(programs, "cuda_source", wrongly_written)
    f = lambda x: x * 3 + 1  # noqa: E731
    program = program_of(gpu, f, X[0], name="thrice")
    [label] = program.functions
    [result] = program(X[0])
    with pytest.raises(JaxRuntimeError) as caught:
        result.block_until_ready()
    said = str(caught.value)
    assert f"{label} of thrice, which begins in test_cuda_device_programs.py" in said
    assert "x * 3 + 1" in said and "EmulatedCuda has failed" in said
    waiting = minijax.config.override("minijax_wait_for_kernels", True)
    with waiting, pytest.raises(JaxRuntimeError, match=label):
        program(X[0])
    monkeypatch.undo()
    assert (minijax.device_put(X, gpu) + 1).sum() > 0  # the next work is served


def test_a_full_card_names_the_arena():
    with emulated_gpu(memory=2**15) as (gpu, _):
        f = lambda x: jnp.sort(jnp.sin(x)).sum()  # noqa: E731
        program = program_of(gpu, f, np.zeros(3000, np.float32), name="large")
        said = "arena of large, whose arguments take 12000 bytes, on"
        with pytest.raises(JaxRuntimeError, match=said):
            program(np.zeros(3000, np.float32))
        simple = program_of(gpu, jnp.sin, np.zeros(3000, np.float32), name="sine")
        x = minijax.device_put(np.zeros(3000, np.float32), gpu)
        with pytest.raises(JaxRuntimeError, match="bytes for a result of sine on Emu"):
            [simple(x) for _ in range(9)]


def test_too_large_a_launch_is_refused_before_it_runs(gpu):
    huge = minijax.ShapeDtypeStruct((2**45,), jnp.int8)
    with pytest.raises(JaxRuntimeError, match=r"twice.* \d+ blocks; a card has 2147"):
        program_of(gpu, lambda x: x * 2, huge, name="twice")


def test_what_was_given_up_is_gone(gpu):
    f = minijax.jit(lambda x: x + 1, donate_argnums=0)
    x = minijax.device_put(X, gpu)
    f(x)
    for use in (f, lambda x: x + 1, np.asarray, lambda x: x.block_until_ready()):
        with pytest.raises((RuntimeError, ValueError), match=r"deleted|donated"):
            use(x)


def test_threads_that_call_at_once_do_not_share_an_arena(gpu):
    f = lambda x: jnp.tanh(jnp.sort(jnp.sin(x)) @ x.T) @ x  # noqa: E731
    run = minijax.jit(f)
    inputs = [np.full((20, 40), number / 9, np.float32) for number in range(6)]
    far = minijax.device_put(inputs, gpu)

    def repeated(x):
        return [np.asarray(run(x)) for _ in range(4)][-1]

    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(repeated, far))
    for x, result in zip(inputs, found):
        np.testing.assert_allclose(result, f(jnp.asarray(x)), 1e-4, 1e-5)
