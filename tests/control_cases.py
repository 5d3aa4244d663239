"""Calls of primitives that contain programs, for the batteries over the rule tables.

`cases(jax)` maps a name to `(call, operands)`, as in `tests.forward_cases`: the call
takes the namespace ``lax`` and the operands.
"""

from importlib import import_module

import numpy as np

X, Y = np.array([0.3, 0.5, 0.7]), np.array([0.6, 0.2, 0.4])
M = np.array([[0.2, 0.7, 0.4], [0.3, 0.5, 0.6]])
S = np.array(0.4)


def integer(x):
    """Return a tracer or an array in an integer type."""
    return x.astype("int32")


def cases(jax):
    """Return the calls, written against a package."""
    jnp = jax.numpy
    return {
        **jitted(jax, jnp),
        **forgetting(jax, jnp),
        **branches(jnp),
        **loops(jnp),
    }


def forgetting(jax, jnp):
    named = import_module(f"{jax.__name__}.ad_checkpoint").checkpoint_name
    weights = np.arange(3.0, dtype="float32")
    policies = jax.checkpoint_policies
    kept = policies.save_only_these_names("kept")

    def wave(a):
        return jnp.sin(named(jnp.sin(a), "kept") * a)

    return {
        "checkpoint": (lambda lax, x: jax.checkpoint(wave)(x), [X]),
        "checkpoint of two": (
            lambda lax, x, y: jax.checkpoint(lambda a, b: jnp.tanh(a * b) * a)(x, y),
            [X, Y],
        ),
        "checkpoint with names": (
            lambda lax, x: jax.checkpoint(wave, policy=kept)(x),
            [X],
        ),
        "name": (lambda lax, x: jnp.sin(named(x * x, "kept")), [X]),
        "checkpoint constants": (
            lambda lax, x: jax.checkpoint(lambda a: a * weights)(x),
            [X],
        ),
        "barrier": (lambda lax, x: lax.optimization_barrier((x * x, x))[0] * x, [X]),
    }


def jitted(jax, jnp):
    weights = np.arange(3.0, dtype="float32")
    inner = jax.jit(lambda a: a * a)
    return {
        "jit": (lambda lax, x, y: jax.jit(lambda a, b: jnp.sin(a) * b)(x, y), [X, Y]),
        "jit linear": (lambda lax, x: jax.jit(lambda a: 2.0 * a + a[0])(x), [X]),
        "jit bilinear": (lambda lax, x, y: jax.jit(jnp.dot)(x, y), [X, Y]),
        "jit of jit": (
            lambda lax, x: jax.jit(lambda a: inner(a) + inner(2 * a))(x),
            [X],
        ),
        "jit constants": (lambda lax, x: jax.jit(lambda a: a * weights)(x), [X]),
        "jit input": (lambda lax, x, y: jax.jit(lambda a, b: b)(x, y), [X, Y]),
        "jit integers": (
            lambda lax, x: jax.jit(lambda n, a: a * n)(integer(9 * x), x),
            [X],
        ),
    }


def branches(jnp):
    which = np.array(1.2)
    return {
        "cond": (
            lambda lax, x: lax.cond(x.sum() > 1.2, jnp.sin, lambda a: a * a, x),
            [X],
        ),
        "cond linear": (
            lambda lax, s, x: lax.cond(
                s > 0.1, lambda a: 2.0 * a, lambda a: a[::-1], x
            ),
            [S, X],
        ),
        "cond closed": (
            lambda lax, x, y: lax.cond(y[0] > 0.5, lambda: x * y, lambda: x + 1.0),
            [X, Y],
        ),
        "switch": (
            lambda lax, i, x, y: lax.switch(
                integer(i), [jnp.add, lambda a, b: a * b, lambda a, b: jnp.cos(b)], x, y
            ),
            [which, X, Y],
        ),
        "switch linear": (
            lambda lax, i, x: lax.switch(
                integer(i), [lambda a: a, lambda a: -a, jnp.zeros_like], x
            ),
            [which, X],
        ),
    }


def loops(jnp):
    count = np.array(2.3)

    def rows(lax, x, m):
        return lax.scan(lambda c, row: (jnp.sin(c) * row, c + row), x, m)[0]

    def linear_rows(lax, x, m):
        return lax.scan(lambda c, row: (0.5 * c + row, c), x, m)[1]

    def products(lax, x, m):
        return lax.scan(lambda c, row: (c * row, c), x, m, reverse=True)[1]

    def counted(lax, x):
        return lax.scan(
            lambda c, _: ((c[0] + 1, c[1] * x), c[0]), (0, x), None, length=3
        )[0][1]

    def until(lax, x):
        return lax.while_loop(lambda a: a.sum() < 9.0, lambda a: a * (1.5 + x), x)

    def times(lax, n, x):
        return lax.fori_loop(0, integer(n), lambda i, a: jnp.sin(a) * x + i, x)

    return {
        "scan": (rows, [X, M]),
        "scan linear": (linear_rows, [X, M]),
        "scan reverse": (products, [X, M]),
        "scan integers": (counted, [X]),
        "fori": (
            lambda lax, s: lax.fori_loop(0, 3, lambda i, a: jnp.sin(a) * s, s),
            [S],
        ),
        "while": (until, [X]),
        "while count": (times, [count, X]),
        "map": (lambda lax, m: lax.map(lambda row: row * row[0], m), [M]),
    }
