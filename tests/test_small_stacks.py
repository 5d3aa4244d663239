"""Threads with little memory for calls: programs take a small part of it, all told."""

import re
import subprocess
import sys

import pytest

import minijax.numpy as jnp
from minijax import jit, lax
from minijax.cpu_backend.program_codegen import MAX_STACK_BYTES

PROGRAM = """
import threading
import minijax.numpy as jnp
from minijax import jit, lax

def softmaxes(x):
    for _ in range(4):
        x = jnp.exp(x - x.max(1, keepdims=True))
        x = x / x.sum(1, keepdims=True)
    return x

def nested(f, depth):
    return jit(lambda x: nested(f, depth - 1)(x) + 1) if depth else f

def columns(x):
    return (x * 2).sum(0)

def products(x):
    return lax.fori_loop(0, 9, lambda i, y: lax.fori_loop(
        0, 9, lambda j, y: y @ x / 200, y), x)

CALLS = {
    "rows": lambda: jit(softmaxes)(jnp.ones((4, 16000)))[0, 0] * 16000,
    "columns": lambda: jit(columns)(jnp.ones((200, 200, 60), "complex64"))[0, 0],
    "products": lambda: jit(products)(jnp.ones((200, 200)))[0, 0],
    "calls": lambda: nested(jnp.exp, 100)(0.0),
}
import sys
found = []
threading.stack_size(256 * 1024)
thread = threading.Thread(target=lambda: found.append(CALLS[sys.argv[1]]()))
thread.start()
thread.join()
print(found[0])
"""
EXPECTED = {"rows": 1, "columns": 400, "products": 1, "calls": 101}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_thread_with_a_small_stack(name):
    command = [sys.executable, "-c", PROGRAM, name]
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert complex(done.stdout) == pytest.approx(EXPECTED[name], rel=1e-4)


def test_variables_take_a_bounded_part_of_the_stack():
    def wide(xs):
        return lax.fori_loop(0, 3, lambda i, xs: [jnp.cumsum(x) for x in xs], xs)

    xs = [jnp.ones(60)] * 90
    text = jit(wide, backend="cpu").lower(xs).compile().as_text("llvm")
    functions = re.findall(r"^define.*?^}", text, re.M | re.S)
    [program] = [function for function in functions if " @program(" in function]
    sizes = [int(size) for size in re.findall(r"alloca \[(\d+) x i8\]", program)]
    assert sizes and sum(sizes) <= MAX_STACK_BYTES < 2 * 60 * 4 * 90
