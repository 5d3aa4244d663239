"""The same work written for Numba, where it can be written in a few lines."""

import numpy as np
from side_by_side import random


def functions(numba):
    """Return functions without arguments by the names of rows."""
    njit = numba.njit(fastmath={"contract"}, error_model="numpy")

    @njit
    def add(a, b):
        return a + b

    @njit
    def selu(x, w, b, out):
        for i in range(x.size):
            z = x[i] * w[i] + b[i]
            scaled = np.float32(1.67) * (np.exp(z) - np.float32(1))
            out[i] = np.float32(1.05) * (z if z > 0 else scaled)
        return out

    @njit
    def total(x):
        found = np.float32(0)
        for i in range(x.size):
            found += x[i]
        return found

    @njit
    def newton(x):
        for _ in range(1000):
            x = x - np.float32(0.01) * (x * x - 2) / (2 * x)
        return x

    @njit
    def recurrence(a, b, out):
        h = np.float32(0)
        for i in range(a.size):
            h = a[i] * h + b[i]
            out[i] = h
        return out

    small = random(4), random(4, seed=1)
    found = {"call, two arrays of 4": lambda: add(*small)}
    for size in (1e5, 1e6, 1e7):
        xs = [random(int(size), seed=seed) for seed in range(3)]

        def layer(xs=xs):
            return selu(*xs, np.empty_like(xs[0]))

        found[f"SeLU layer, {size:.0e}"] = layer
    for size in (1e5, 1e6):
        x = random(int(size))
        found[f"sum, {size:.0e}"] = lambda x=x: total(x)
    rows = [0.1 * random(1000, seed=seed).astype("float32") for seed in (0, 1)]
    found["while, a scalar, 1,000 steps"] = lambda: newton(np.float32(1))
    found["scan, a recurrence, 1,000 steps"] = lambda: recurrence(
        *rows, np.empty(1000, "float32")
    )
    return found
