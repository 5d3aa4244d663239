"""Rows about compiling, and about several threads."""

import itertools
import os
import subprocess
import sys
import tempfile

from array_rows import ten_operations
from rows import row
from side_by_side import random

_fresh = itertools.count(1)


def _equations(jax, count, number):
    """A function of about `count` equations that no cache has seen."""
    jnp = jax.numpy

    def f(x):
        y = x
        for k in range(count // 5):
            y = jnp.tanh(y * (1 + number / 1000)) + x[k % 4] * y
            y = y - jnp.where(y > 2, y, 0.5)
        return y

    return f


@row("cold compile, {} equations", 0.7, 0.3, 50, 200, 600, samples=3, results=False)
def cold(jax, count):
    """From the call of a new function to its first result."""
    x = jax.numpy.asarray(random(100))
    return lambda: jax.jit(_equations(jax, count, next(_fresh)))(x)


@row("cold compile, a gradient of 200 equations", 0.7, 0.3, samples=3, results=False)
def cold_gradient(jax):
    """The same for a derivative."""
    x = jax.numpy.asarray(random(100))

    def compiled():
        f = _equations(jax, 200, next(_fresh))
        return jax.jit(jax.grad(lambda x: f(x).sum()))(x)

    return compiled


@row("cold compile, a chain of 5,000 operations", 0.1, 0.02, samples=1, results=False)
def long_chain(jax):
    """A long program of one operation after the other."""
    x = jax.numpy.asarray(random(100))

    def compiled():
        number = next(_fresh)

        def f(x):
            for _ in range(2500):
                x = jax.numpy.tanh(x) + x
            return x * number

        return jax.jit(f)(x)

    return compiled


@row("tracing, 500 equations", 0.6, 0.4, results=False)
def tracing(jax):
    """From a function to its jaxpr."""
    x = jax.numpy.asarray(random(100))
    return lambda: jax.make_jaxpr(_equations(jax, 500, next(_fresh)))(x)


_SECOND = """
import sys, time
sys.path.insert(0, {folder!r})
import numpy as np
import {package} as jax
from compile_rows import _equations
x = jax.numpy.asarray(np.ones(100, "float32"))
f = jax.jit(jax.grad(lambda x: _equations(jax, 200, 0)(x).sum()))
jax.jit(lambda x: x + 1)(x)
start = time.perf_counter()
jax.block_until_ready(f(x))
print(time.perf_counter() - start)
"""


@row("second process, from the disk", 0.3, 0.1, samples=3, results=False, timed=True)
def second_process(jax):
    """The first call in a new process; only ours finds its code on the disk."""
    folder = os.path.dirname(os.path.abspath(__file__))
    code = _SECOND.format(package=jax.__name__, folder=folder)
    cache = {"JAX_COMPILATION_CACHE_DIR": tempfile.mkdtemp()}
    return _in_a_new_process(code, cache if jax.__name__ == "minijax" else {})


_FIRST = """
import time
start = time.perf_counter()
import numpy as np
import {package} as jax
x = np.ones(100, "float32")
jax.block_until_ready(jax.jit(lambda x: x * 2 + 1)(x))
print(time.perf_counter() - start)
"""


@row("import and first result", 0.45, 0.35, samples=9, results=False, timed=True)
def first_result(jax):
    """From the first import to the result of a small function, with no code on disk."""
    code = _FIRST.format(package=jax.__name__)
    return _in_a_new_process(code, {"JAX_ENABLE_COMPILATION_CACHE": "0"})


def _in_a_new_process(code, settings):
    """Return a function that runs Python and returns the seconds which it prints.

    It has run once, so that Python finds its own modules translated.
    """
    settings = {"PYTHONPATH": os.pathsep.join(sys.path), **settings}
    settings |= {"PYTHONPYCACHEPREFIX": tempfile.mkdtemp()}
    environment = {**os.environ, **settings}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def timed():
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment,
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        return float(done.stdout)

    timed()
    return timed


@row("two threads: 10 operations, 1e6", 1.0, 0.7, threads=2)
def elementwise_in_threads(jax):
    """Ten operations on a million numbers, by two threads."""
    return ten_operations(jax, 1e6)


@row("two threads: matrix product, 512", 1.0, 0.9, threads=2)
def product_in_threads(jax):
    """A product of two matrices, by two threads."""
    a, b = (jax.numpy.asarray(random(512, 512, seed=seed)) for seed in (0, 1))
    function = jax.jit(lambda a, b: a @ b)
    return lambda: function(a, b)
