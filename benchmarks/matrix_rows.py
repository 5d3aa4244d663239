"""Rows about small matrices: factors and systems of equations, in loops and batches."""

import numpy as np
from rows import row
from side_by_side import random


def positive(n, *batch):
    """Return positive definite matrices."""
    x = random(*batch, n, n)
    return x @ x.swapaxes(-1, -2) + np.eye(n, dtype="float32")


@row("Kalman filter, 4 states, 200 steps{}", 0.2, 0.1, "", ", gradient")
def kalman(jax, variant):
    """A point that moves in a plane and is observed: solutions and determinants."""
    jnp = jax.numpy
    moves = jnp.asarray(np.eye(4) + 0.1 * np.eye(4, k=2), "float32")
    seen = jnp.asarray(np.eye(2, 4), "float32")
    observed = jnp.asarray(random(200, 2))

    def log_likelihood(noise, observed):
        def step(state, y):
            mean, spread = state
            mean = moves @ mean
            spread = moves @ spread @ moves.T + noise * jnp.eye(4)
            off = y - seen @ mean
            inner = seen @ spread @ seen.T + jnp.eye(2)
            gain = jnp.linalg.solve(inner, seen @ spread).T
            size = off @ jnp.linalg.solve(inner, off) + jnp.linalg.slogdet(inner)[1]
            return (mean + gain @ off, spread - gain @ seen @ spread), -size / 2

        start = jnp.zeros(4), jnp.eye(4)
        return jax.lax.scan(step, start, observed)[1].sum()

    function = jax.jit(jax.grad(log_likelihood) if variant else log_likelihood)
    noise = jnp.float32(0.1)
    return lambda: function(noise, observed)


@row("{} of {}, 100 in a scan", (0.6, 0.6, 0.6, 0.6, 0.6, 1.0, 0.9, 1.0),
     (0.3, 0.3, 0.3, 0.3, 0.3, 0.9, 0.9, 0.9),
     ("solve", 2), ("solve", 8), ("cholesky", 3), ("qr", 4), ("inv", 3),
     ("inv", 128), ("eigh", 3), ("svd", 4))  # fmt: skip
def one_by_one(jax, name, n):
    """A factorization in each step of a loop, of a matrix that the last one moved."""
    jnp = jax.numpy
    matrix = jnp.asarray(positive(n))
    act = {
        "solve": jnp.linalg.solve,
        "cholesky": lambda a, x: jnp.linalg.cholesky(a) @ x,
        "qr": lambda a, x: jnp.linalg.qr(a)[0] @ x,
        "inv": lambda a, x: jnp.linalg.inv(a) @ x,
        "eigh": lambda a, x: jnp.linalg.eigh(a)[1] ** 2 @ x,
        "svd": lambda a, x: jnp.linalg.svd(a)[0] ** 2 @ x,
    }[name]

    def step(x, _):
        return jnp.tanh(act(matrix + 0.01 * x * x[:, None], x)) + 0.5, None

    function = jax.jit(lambda x: jax.lax.scan(step, x, None, length=100)[0])
    start = jnp.ones(n)
    return lambda: function(start)


@row("{} of {}, a batch of 1,000", 0.8, 0.5,
     ("solve", 3), ("solve", 8), ("cholesky", 4), ("qr", 3))  # fmt: skip
def many(jax, name, n):
    """Factorizations of a thousand small matrices by `vmap`."""
    jnp = jax.numpy
    matrices, vectors = jnp.asarray(positive(n, 1000)), jnp.asarray(random(1000, n))
    act = {
        "solve": jnp.linalg.solve,
        "cholesky": lambda a, x: jnp.linalg.cholesky(a),
        "qr": lambda a, x: jnp.linalg.qr(a)[1],
    }[name]
    function = jax.jit(jax.vmap(act))
    return lambda: function(matrices, vectors)


@row("tridiagonal system of 1,000, 20 in a scan", 1.2, 0.9)
def diffusion(jax):
    """Implicit steps of a diffusion along a line."""
    jnp = jax.numpy
    beside, middle = jnp.full(1000, -0.5), jnp.full(1000, 2.0)

    def step(x, _):
        columns = x[:, None]
        found = jax.lax.linalg.tridiagonal_solve(beside, middle, beside, columns)
        return found[:, 0], None

    function = jax.jit(lambda x: jax.lax.scan(step, x, None, length=20)[0])
    start = jnp.asarray(random(1000))
    return lambda: function(start)
