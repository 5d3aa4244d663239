"""Whole programs as machine code: results, memory, stages, costs."""

import gc
import os
import subprocess
import sys
import threading
from unittest.mock import patch

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import jit, lax, make_jaxpr, vmap
from minijax.cpu_backend.backend import CPUProgram
from minijax.cpu_backend.profiler import Profile
from minijax.cpu_backend.program_codegen import (
    call_counts,
    inline_candidates,
    inline_functions,
)
from minijax.fusion import fusion_pass
from minijax.fusion.fusion_pass import fuse_same_loops
from minijax.jitting.compilation import backends
from minijax.kernels.lowering import jaxpr_passes
from minijax.llvm.compiler import object_code
from minijax.matmul.lowering import Matmul
from minijax.passes.pipeline import simplify
from tests.kernel_cases import alike

X = np.linspace(-1, 1, 12, dtype="float32").reshape(3, 4)


@pytest.mark.parametrize("flags", [["--every", "151"], ["--control", "--every", "47"]])
def test_programs_in_a_process_of_their_own(flags):
    command = [sys.executable, "-m", "tests.cpu_cases", *flags]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


def product_chain(width, length):
    """The program of a chain of products."""
    a = np.ones((width, width), "float32")

    def f(x):
        for _ in range(length):
            x = x @ a
        return x

    return CPUProgram(make_jaxpr(f)(a))


@pytest.mark.parametrize("width", [3, 4, 8, 10, 13, 16, 17])
def test_copies_of_kernels_do_not_grow_with_their_calls(width):
    few, many = product_chain(width, 30), product_chain(width, 90)
    lines = [program.library.assembly.count("\n") for program in (few, many)]
    assert lines[1] - lines[0] <= 60 * 24  # of a call
    assert lines[0] < 2000


def gradient_of_chain(width, length):
    """The jaxpr of the gradient of a chain of products."""
    a = jnp.ones((width, width))

    def f(x):
        for _ in range(length):
            x = x @ a
        return x.sum()

    return make_jaxpr(minijax.grad(f))(a)


@pytest.mark.parametrize("width", [2, 4, 13, 16])
def test_a_product_more_is_few_lines_more(width):
    """What is known of a kernel, and of pairs of them, is found out once."""
    refusals = []

    def counted(*args):
        refusals[-1] += 1
        return fuse_same_loops(*args)

    lines = []
    for length in (20, 60):
        refusals.append(0)
        with patch.object(fusion_pass, "fuse_same_loops", counted):
            program = CPUProgram(gradient_of_chain(width, length))
        kernels = {id(x.kernel) for x in program.lowered.walk()}
        assert len(kernels) <= 3
        lines.append(program.text.count("\n"))
    assert refusals[0] == refusals[1]
    assert lines[1] - lines[0] <= 40 * 3  # the call, and the memory of its result


def test_what_a_kernel_does_twice_is_written_once():
    """Sums over all, each of what those before have left, in one kernel."""

    def f(length):
        def g(x):
            for _ in range(length):
                x = x * 1.5 - x.mean()
            return x

        return CPUProgram(make_jaxpr(g)(np.ones(100, "float32"))).text.count("\n")

    few, some, more = map(f, (4, 8, 12))
    assert more - some <= 1.5 * (some - few)


def test_the_shortest_kernels_are_copied_within_a_budget():
    functions = [
        f"define internal void @{name}() alwaysinline {{\n" + "  ret\n" * lines + "}"
        for name, lines in (("long", 300), ("short", 20), ("alone", 400))
    ]
    calls = ["long"] * 5 + ["short"] * 10 + ["alone"]
    functions.append("\n".join(f"  call void @{name}()" for name in calls))
    counts = call_counts(functions)
    for budget, copied in ((1000, [0, 1, 0, 0]), (4000, [1, 1, 1, 0])):
        texts = inline_candidates(functions, counts, budget)
        assert [" alwaysinline" in text for text in texts] == copied
        called = [not copy for copy in copied[:3]]
        assert [" noinline" in text for text in texts[:3]] == called


def longest_function(text):
    """Return the number of lines of the longest function in a text."""
    return max(function.count("\n") for function in text.split("\n}"))


def test_functions_stay_short_where_there_are_many_results():
    """The time for a function of n addresses grows with the square of n."""
    for count in (300, 1200):
        closed = make_jaxpr(lambda x, n=count: [x * k for k in range(n)])(X)
        program = CPUProgram(closed)
        assert longest_function(program.text) < 2000


def test_short_kernels_that_are_called_once_are_no_functions():
    """LLVM takes longer for a function than for its few lines."""

    def parts(x):
        return jnp.concatenate([x * k for k in range(600)])

    program = CPUProgram(make_jaxpr(parts)(jnp.ones(8)))
    assert program.text.count("define ") > 600
    assert program.text.count(" noinline ") < 20


def elementary_chain(op, length, size=100):
    """Return the executable of one elementary function after the other."""

    def f(x):
        for k in range(length):
            x = op(x) + k
        return x

    return CPUProgram(make_jaxpr(f)(jnp.ones(size)))


@pytest.mark.parametrize("op", [jnp.sin, jnp.cos, jnp.tanh, jnp.exp])
def test_copies_of_elementary_functions_have_a_budget(op):
    """LLVM takes a millisecond or two for each sine that it copies."""
    alone = elementary_chain(op, 1).library.assembly.count("\n")
    for length in (2, 4, 8, 12):
        lines = elementary_chain(op, length).library.assembly.count("\n")
        assert lines - alone <= 350 + 20 * length, length


def test_a_long_array_is_worth_more_copies():
    short, long = (elementary_chain(jnp.sin, 12, size) for size in (100, 10**5))
    assert short.text.count(" alwaysinline") < long.text.count(" alwaysinline")


def test_last_vectors_of_rows_are_the_first_to_call():
    """Then follow the functions whose copies would be the most lines."""
    needed = {
        name: f"define float @{name}() alwaysinline {{\n" + "  ret\n" * lines + "}"
        for name, lines in (("long", 49), ("short", 9))
    }
    needed["other"] = "define float @other() noinline {\n}"
    calls = [f"  %x = call float @{name}()" for name in needed]
    caller = "\n".join([*calls * 3, *[f"{call} noinline" for call in calls * 2], "}"])
    for budget, copied, marks in ((240, 2, 0), (180, 2, 6), (170, 1, 6), (20, 0, 6)):
        texts, [text] = inline_functions(
            needed, [caller], call_counts([caller]), budget
        )
        assert sum(" alwaysinline" in each for each in texts) == copied
        assert text.count(" noinline") == marks


@pytest.mark.parametrize("was_on", [True, False])
def test_the_collector_rests_while_a_program_is_made(was_on, monkeypatch):
    seen = []

    def noticed(closed):
        seen.append(gc.isenabled())
        if len(seen) > 1:
            raise KeyError("an error on the way")
        return simplify(closed)

    monkeypatch.setattr(jaxpr_passes, "value", noticed)
    closed = make_jaxpr(lambda x: x + 1)(X)
    (gc.enable if was_on else gc.disable)()
    try:
        CPUProgram(closed)
        assert gc.isenabled() is was_on
        with pytest.raises(KeyError):
            CPUProgram(closed)
        assert gc.isenabled() is was_on
    finally:
        gc.enable()
    assert seen == [False, False]


def test_backend_on_its_device():
    f = jit(lambda x: x + 1, backend="cpu")
    assert isinstance(f.lower(X).compile().runtime_executable(), CPUProgram)
    assert backends["cpu"] is CPUProgram


@pytest.mark.parametrize("turns", range(4))
@pytest.mark.parametrize("size", [1, 64, 65, 1000])
def test_states_small_and_large_after_any_number_of_turns(turns, size):
    def f(a, b):
        return lax.fori_loop(0, turns, lambda i, s: (s[1], s[0] + s[1]), (a, b))

    def g(a, b, n):
        return lax.fori_loop(0, n, lambda i, s: (s[1], s[0] + s[1]), (a, b))

    a, b = np.zeros(size, "float32"), np.ones(size, "float32")
    numbers = [0, 1, 1, 2, 3]
    for found in (jit(f, backend="cpu")(a, b), jit(g, backend="cpu")(a, b, turns)):
        assert [float(x[-1]) for x in found] == numbers[turns : turns + 2]


def test_loops_in_loops_in_branches():
    def inner(c, row):
        c = lax.cond(row.sum() > 0, lambda: jnp.tanh(c * row), lambda: c - row)
        return lax.while_loop(lambda c: (c * c).sum() > 1.0, lambda c: c / 2, c), c

    def f(x):
        return lax.fori_loop(0, 3, lambda i, c: lax.scan(inner, c, x)[0], x[0])

    for g in (f, vmap(f, in_axes=1, out_axes=1)):
        x = X if g is f else np.stack([X, -2 * X], 1)
        assert alike(jit(g, backend="cpu")(x), jit(g, backend="interpreter")(x))


def test_results_that_are_arguments_or_constants_or_twice_the_same():
    constant = jnp.arange(3.0)

    def f(x, y):
        z = x + 1
        return x, z, z, constant, y, x

    found = jit(f, backend="cpu")(X, 2.0)
    for ours, wanted in zip(found, (X, X + 1, X + 1, constant, 2.0, X)):
        np.testing.assert_array_equal(ours, wanted)
    program = CPUProgram(make_jaxpr(f)(X, 2.0))
    addresses = {np.asarray(x).ctypes.data for x in program(X, 2.0)}
    assert len(addresses) == 6


def test_many_steps_are_several_functions():
    def f(x):
        for _ in range(260):
            x = jnp.cumsum(x) / 4 + x[0]
        return x

    x = np.linspace(0.1, 0.2, 8, dtype="float32")
    program = CPUProgram(make_jaxpr(f)(x))
    assert program.text.count("define internal i32 @part") >= 2
    wanted = jit(f, backend="interpreter")(x)
    assert alike(program(x)[0], wanted)


def test_long_bodies_of_loops_are_functions_too():
    def body(i, c):
        for _ in range(120):
            c = jnp.cumsum(c) / 4 + lax.cond(i > 0, lambda c: c[0], lambda c: c[1], c)
        return c

    def f(x):
        return lax.fori_loop(0, 3, body, x)

    for size in (8, 100):
        x = np.linspace(0.1, 0.2, size, dtype="float32")
        wanted = jit(f, backend="interpreter")(x)
        assert alike(jit(f, backend="cpu")(x), wanted)


def test_the_same_kernel_is_written_once():
    def f(x):
        for _ in range(12):
            x = jnp.tanh(x @ x)
        return x

    text = CPUProgram(make_jaxpr(f)(np.ones((20, 20), "float32"))).text
    assert text.count("define internal void @tanh") == 2  # the last one not in place


def test_donated_arguments_are_written_to():
    f = jit(lambda x, y: (x * 2 + y, y), donate_argnums=0, backend="cpu")
    x, y = jnp.ones(1000), jnp.arange(1000.0)
    found, same = f(x, y)
    np.testing.assert_array_equal(found, np.arange(1000) + 2.0)
    np.testing.assert_array_equal(same, np.arange(1000.0))
    assert x.is_deleted() and not y.is_deleted()


def test_threads():
    def f(x):
        return lax.fori_loop(0, 50, lambda i, c: jnp.tanh(c) + x, x)

    g, x = jit(f, backend="cpu"), np.ones(500, "float32")
    wanted, found = np.asarray(jit(f, backend="interpreter")(x)), []
    threads = [threading.Thread(target=lambda: found.append(g(x))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6 and all(alike(each, wanted) for each in found)


def test_dialects():
    lowered = jit(lambda x: jnp.tanh(x) + 1.0, backend="cpu").lower(X)
    for dialect in ("simplified", "kernels", "steps", "memory", "llvm", "assembly"):
        assert lowered.as_text(dialect)
        assert lowered.compile().as_text(dialect) == lowered.as_text(dialect)
    assert "tanh" in lowered.as_text("steps")
    assert "v0:" not in lowered.as_text("steps")
    assert "define i32 @program" in lowered.as_text("llvm")
    assert lowered.as_text("jaxpr") == lowered.as_text()


def test_a_compiled_function_is_profiled():
    f = jit(lambda p, n: p["w"] * n + 1.0, backend="cpu", donate_argnums=0)
    args = {"w": jnp.ones(3)}, 2
    profile = f.lower(*args).compile().profile(*args)
    assert [calls for _, calls, _ in profile.rows.values()] == [1]
    assert not args[0]["w"].is_deleted()


def test_costs_are_those_of_the_kernels():
    compiled = (
        jit(lambda x: (jnp.tanh(x) * 2.0).sum(), backend="cpu").lower(X).compile()
    )
    costs = compiled.cost_analysis()
    assert costs["transcendentals"] == 12 and costs["bytes accessed"] == 4 * 13
    stats = compiled.memory_analysis()
    assert stats.argument_size_in_bytes == 48
    code = object_code(compiled.runtime_executable().library)
    assert stats.generated_code_size_in_bytes == len(code) != len(compiled.as_text())


def test_costs_of_loops():
    def f(x):
        return lax.fori_loop(0, 10, lambda i, c: jnp.tanh(c), x)

    costs = CPUProgram(make_jaxpr(f)(X)).cost_analysis()
    assert costs["transcendentals"] == 120


def test_entry():
    program = CPUProgram(make_jaxpr(lambda x: x + 1)(X))
    assert program.entry.address and program.entry.context
    loop = make_jaxpr(lambda x: lax.while_loop(lambda x: x < 1, lambda x: x + 1, x))(0)
    assert CPUProgram(loop).entry.nanoseconds >= 10**6  # others may run meanwhile
    callback = make_jaxpr(lambda x: minijax.debug.print("{}", x))(1.0)
    assert CPUProgram(callback).entry is None


def test_forced_processors():
    for kind in ("plain", "avx2", "avx512"):
        with minijax.config.override("minijax_cpu", kind):
            f = make_jaxpr(lambda x: lax.fori_loop(0, 3, lambda i, c: jnp.sin(c), x))
            text = CPUProgram(f(np.ones(100, "float32"))).text
        lanes = {"plain": 4, "avx2": 8, "avx512": 16}[kind]
        assert f"<{lanes} x float>" in text


def test_profile():
    def f(x, w):
        return lax.fori_loop(0, 5, lambda i, c: jnp.tanh(c @ w), x).sum()

    program = CPUProgram(make_jaxpr(f)(X, np.ones((4, 4), "float32")))
    text = str(program.profile(X, np.ones((4, 4), "float32")))
    assert "tanh" in text and "test_cpu_backend_backend.py" in text
    assert " 5 " in text


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_a_profile_multiplies_as_the_program_does(shape):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(*shape, 40, 50)), rng.normal(size=(*shape, 60, 50))
    a, b = a.astype("float32"), b.astype("float32")
    f = make_jaxpr(lambda a, b: a @ jnp.swapaxes(b, -1, -2) + 1.0)
    program = CPUProgram(f(a, b))
    assert any(isinstance(step, Matmul) for step in program.lowered.walk())
    [found] = Profile(program)(a, b)
    np.testing.assert_array_equal(found, program(a, b)[0])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="There is no fork here.")
def test_a_fork_while_a_program_is_made_has_a_collector():
    script = """
import gc, os
from minijax._lazy import without_gc
@without_gc
def work():  # as in another thread
    if os.fork() == 0:
        os._exit(10 + gc.isenabled())
    print(os.waitstatus_to_exitcode(os.wait()[1]), gc.isenabled())
work()
print(gc.isenabled())
"""
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.stdout.split() == ["11", "False", "True"], done.stderr
