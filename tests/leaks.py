"""How memory grows while functions are called, traced and compiled many times.

python -m tests.leaks
"""

import gc
import sys
import time
import tracemalloc

import numpy as np

import minijax as jax
import minijax.numpy as jnp


def calls(count):
    """Call one jitted function many times."""
    step = jax.jit(lambda w, x: w - 0.1 * jnp.tanh(x @ w))
    w, x = jnp.ones(3), jnp.ones((3, 3))
    for _ in range(count):
        w = step(w, x)


def compiles(count):
    """Make, trace and compile many functions, which die at once."""
    x = jnp.ones(4)
    for k in range(count):
        jax.jit(lambda x, k=k: jnp.sin(x) * k)(x)


def lambdas(count):
    """Make the same function anew each time; its machine code is there already."""
    for _ in range(count):
        jax.jit(lambda x: x + 1)(1.0)


def shapes(count):
    """Trace one function for many shapes; the oldest programs go."""
    double = jax.jit(lambda x: x * 2)
    for k in range(count):
        double(np.zeros(k + 1, np.float32))


def gradients(count):
    """Differentiate jitted functions that hold values of the transformation around."""
    for k in range(count):
        jax.grad(lambda x, k=k: jax.jit(lambda y: x * y * k)(2.0))(1.0)


def transformed(count):
    """Transform jitted functions, each in every way."""
    x = jnp.ones(3)
    for k in range(count):
        f = jax.jit(lambda x, k=k: jnp.sin(x * k).sum())
        jax.vmap(jax.grad(f))(x[None])


class Pair:
    """A registered container."""

    def __init__(self, first, second):
        self.first, self.second = first, second


jax.tree_util.register_pytree_node(
    Pair, lambda pair: ((pair.first, pair.second), None), lambda _, items: Pair(*items)
)


halve = jax.jit(lambda p: Pair(p.first * 0.5, p.second + 1), donate_argnums=0)


def donations(count):
    """Give a registered container of arrays to one function again and again."""
    state = Pair(jnp.ones(3), jnp.ones((40, 200)))
    for _ in range(count):
        state = halve(state)


def stages(count):
    """Compile many functions ahead of time, and warm each."""
    x = jnp.ones(4)
    for _ in range(count):
        compiled = jax.jit(lambda x: x + 1).lower(x).compile()
        for _ in range(4):
            compiled(x)


ROUNDS = {
    calls: 100_000,
    donations: 50_000,
    stages: 300,
    compiles: 1_000,
    lambdas: 1_000,
    gradients: 300,
    transformed: 150,
}


def kept(work, count):
    """Return how many bytes and objects are left when `work` has been done.

    The collector of cycles is off: what counts is what reference counts set free.
    """
    work(max(count // 20, 3))
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        before, objects = tracemalloc.get_traced_memory()[0], len(gc.get_objects())
        work(count)
        after = tracemalloc.get_traced_memory()[0]
        return after - before, len(gc.get_objects()) - objects
    finally:
        tracemalloc.stop()
        gc.enable()


def main():
    """Print what each kind of work leaves behind."""
    for work, count in ROUNDS.items():
        start = time.perf_counter()
        size, objects = kept(work, count)
        seconds = time.perf_counter() - start
        name = f"{count:,} {work.__name__}"
        print(f"{name:20} {size / 1024:8.1f} KiB, {objects:6} objects", end="")
        print(f"   ({seconds:.1f} s)")


if __name__ == "__main__":
    sys.exit(main())
