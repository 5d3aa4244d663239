"""Rows of the families in which XLA was once ahead, at sizes that nobody tuned for."""

import numpy as np
from rows import row
from side_by_side import random


@row("pow of complex{}, {}", 1.0, 0.7, (64, 1000), (64, 100_003), (128, 10_007))
def complex_power(jax, bits, size):
    """Complex numbers to complex powers."""
    z, w = (random(size, seed=k) + 1j * random(size, seed=k + 1) for k in (0, 2))
    dtype = f"complex{bits}"
    pair = [jax.numpy.asarray(x.astype(dtype)) for x in (z, 0.3 * w)]
    function = jax.jit(lambda z, w: z**w)
    return lambda: function(*pair)


@row("sin, arguments up to {}, {}", 1.0, 0.7, ("1e2", 100_003), ("1e5", 100_003),
     ("1e8", 100_003), ("1e30", 10_007))  # fmt: skip
def large_sine(jax, most, size):
    """Sines of numbers that need many digits of pi."""
    x = jax.numpy.asarray((float(most) * random(size)).astype("float32"))
    function = jax.jit(jax.numpy.sin)
    return lambda: function(x)


@row("{} of float64, {}", 1.0, 0.8, ("sin", 1003), ("sin", 100_003), ("cos", 100_003),
     ("tan", 10_007), wide=True)  # fmt: skip
def wide_sine(jax, name, size):
    """Sines of doubles."""
    x = jax.numpy.asarray(3 * random(size, dtype="float64"))
    function = jax.jit(getattr(jax.numpy, name))
    return lambda: function(x)


@row("{} {} leaves of {}", 1.0, 0.7, ("scale", 100, 10_000), ("scale", 100, 1000),
     ("scale", 30, 30_000), ("clip", 100, 10_000), ("clip", 300, 1003),
     ("add", 100, 10_000))  # fmt: skip
def many_leaves(jax, what, count, size):
    """One cheap thing for each leaf of a tree."""
    jnp, tree = jax.numpy, jax.tree_util
    leaves = [jnp.asarray(random(size, seed=k)) for k in range(count)]
    each = {
        "scale": lambda x: 0.99 * x,
        "clip": lambda x: jnp.clip(x, -1.0, 1.0),
        "add": lambda x: x + 1.0,
    }[what]
    function = jax.jit(lambda leaves: tree.tree_map(each, leaves))
    return lambda: function(leaves)


@row("scan of {} in a scan of {}, {} numbers", 1.0, 0.7, (20, 50, 3), (5, 200, 4),
     (100, 10, 1), (10, 100, 17))  # fmt: skip
def small_scans(jax, inner, outer, size):
    """A few numbers that go through small loops in a loop."""
    jnp, lax = jax.numpy, jax.lax
    x, shifts = jnp.asarray(random(size)), jnp.asarray(random(outer, size))

    def step(state, _):
        return state - 0.1 * jnp.sin(state), None

    def row(state, shift):
        state, _ = lax.scan(step, state + shift, None, length=inner)
        return state, state.sum()

    function = jax.jit(lambda x, shifts: lax.scan(row, x, shifts))
    return lambda: function(x, shifts)


@row("{} updates in place of {} numbers", 1.0, 0.8, (100, 1_000_000), (1000, 100_003),
     (30, 10_000))  # fmt: skip
def in_place(jax, steps, size):
    """A loop that adds to one element after the other, and to the whole once."""
    jnp = jax.numpy
    x = jnp.asarray(random(size))

    def step(i, x):
        return x.at[i * 7].add(1.0).at[i].multiply(0.5)

    function = jax.jit(lambda x: jax.lax.fori_loop(0, steps, step, x))
    return lambda: function(x)


@row("{} numbers moved {} times in a loop", 1.0, 0.8, (1_000_000, 100), (100_003, 100),
     (1003, 1000))  # fmt: skip
def whole_in_place(jax, size, steps):
    """A loop that changes all numbers of an array in each step."""
    x = jax.numpy.asarray(random(size))

    def step(i, x):
        return 0.99 * x + 0.01

    function = jax.jit(lambda x: jax.lax.fori_loop(0, steps, step, x))
    return lambda: function(x)


@row("decay of {} numbers into subnormals, {} steps", 1.0, 0.8, (1003, 2000),
     (10_007, 500), (100, 5000))  # fmt: skip
def decay(jax, size, steps):
    """Values that lose a tenth with each step, until they are nearly nothing."""
    x = jax.numpy.asarray(1e-20 * abs(random(size)) + 1e-21)

    def step(i, x):
        return 0.9 * x

    function = jax.jit(lambda x: jax.lax.fori_loop(0, steps, step, x))
    return lambda: function(x)


@row("{} maps iterated under vmap, {} times", 1.0, 0.8, (1000, 1000), (10_007, 100),
     (17, 1000))  # fmt: skip
def iterated(jax, count, steps):
    """The logistic map, for many starts at once."""

    def orbit(x, r):
        def step(i, x):
            return r * x * (1.0 - x)

        return jax.lax.fori_loop(0, steps, step, x)

    rng = np.random.default_rng(0)
    starts = jax.numpy.asarray(rng.uniform(0.1, 0.9, count).astype("float32"))
    rates = jax.numpy.asarray(rng.uniform(2.5, 3.4, count).astype("float32"))
    function = jax.jit(jax.vmap(orbit))
    return lambda: function(starts, rates)


@row("bilateral filter, {} taps, {} square", 1.0, 0.8, (5, 256), (3, 400), (5, 101))
def bilateral(jax, taps, size):
    """A mean of the neighbours that are near, in place and in value."""
    jnp = jax.numpy
    image, half = jnp.asarray(random(size, size)), taps // 2

    def filtered(x):
        total = weights = 0.0
        for i in range(-half, half + 1):
            for j in range(-half, half + 1):
                y = jnp.roll(x, (i, j), (0, 1))
                w = jnp.exp(-0.1 * (i * i + j * j) - (x - y) ** 2)
                total, weights = total + w * y, weights + w
        return total / weights

    function = jax.jit(filtered)
    return lambda: function(image)


@row("group lasso, value and gradient, {} x {}", 1.0, 0.8, (500, 200), (1000, 64),
     (101, 300))  # fmt: skip
def group_lasso(jax, rows, columns):
    """Least squares with a penalty on the norms of groups of weights."""
    jnp = jax.numpy
    x, y = jnp.asarray(random(rows, columns)), jnp.asarray(random(rows, seed=1))
    w = jnp.asarray(random(columns, seed=2))

    def loss(w):
        groups = w.reshape(-1, 4)
        return ((x @ w - y) ** 2).mean() + jnp.sqrt((groups**2).sum(1) + 1e-6).sum()

    function = jax.jit(jax.value_and_grad(loss))
    return lambda: function(w)


@row("max pool by reshape, {} x {} x {}", 1.0, 0.8, (32, 64, 64), (8, 126, 126),
     (64, 28, 28))  # fmt: skip
def max_pool(jax, n, height, width):
    """The largest of each two by two."""
    x = jax.numpy.asarray(random(n, height, width))

    def pooled(x):
        return x.reshape(n, height // 2, 2, width // 2, 2).max((2, 4))

    function = jax.jit(pooled)
    return lambda: function(x)


@row("stencil by slices and pad, {} square", 1.0, 0.8, 512, 1001, 130)
def stencil(jax, size):
    """A step of the heat equation: the inner points move, the border is zero."""
    jnp = jax.numpy
    x = jnp.asarray(random(size, size))

    def step(x):
        inner = x[1:-1, 1:-1]
        around = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]
        return jnp.pad(inner + 0.1 * (around - 4 * inner), 1)

    function = jax.jit(step)
    return lambda: function(x)


@row("product, {} x {} with its long side summed", 1.0, 0.9, (16, 1_000_000),
     (8, 100_003), (33, 50_000))  # fmt: skip
def thin_product(jax, thin, long):
    """The covariances of a few long rows."""
    x = jax.numpy.asarray(random(thin, long))
    function = jax.jit(lambda x: x @ x.T)
    return lambda: function(x)


@row("Horner's rule, degree {}, {}, {}", 1.0, 0.8, (20, "float32", 100_003),
     (20, "float64", 10_007), (20, "float16", 100_003), (40, "float32", 1003),
     wide=True)  # fmt: skip
def polynomial(jax, degree, dtype, size):
    """A polynomial of high degree."""
    x = jax.numpy.asarray(np.tanh(random(size)).astype(dtype))

    def total(x):
        found = x * 0 + 1
        for _ in range(degree):
            found = found * x + np.asarray(0.5, dtype)
        return found

    function = jax.jit(total)
    return lambda: function(x)


@row("{} of {} float{}", 1.0, 0.9, ("gammaln", 100_003, 32), ("gammaln", 10_007, 64),
     ("digamma", 10_007, 32), ("erfinv", 100_003, 32), wide=True)  # fmt: skip
def special(jax, name, size, bits):
    """A special function."""
    x = np.abs(random(size)).astype(f"float{bits}") + 0.1
    x = jax.numpy.asarray(np.tanh(x) if name == "erfinv" else x)
    function = jax.jit(getattr(jax.scipy.special, name))
    return lambda: function(x)


@row("sums of {} numbers in a scan of {}", 1.0, 0.8, (1000, 1000), (100, 3000),
     (10_007, 100))  # fmt: skip
def scanned_sums(jax, size, steps):
    """A running mean: each step sums a row and carries on."""
    jnp = jax.numpy
    rows = jnp.asarray(random(steps, size))

    def step(mean, row):
        mean = 0.9 * mean + 0.1 * (row * (1.0 + mean)).mean()
        return mean, mean

    function = jax.jit(lambda rows: jax.lax.scan(step, jnp.float32(1e-3), rows))
    return lambda: function(rows)


@row("product {}, {}", 1.0, 0.95, ("A B", 1000), ("A B.T", 1000), ("A.T B", 1000),
     ("A[::2] B", 1000), ("A B", 777), ("A B", 513))  # fmt: skip
def product(jax, what, size):
    """Products of odd sizes and layouts."""
    a, b = (jax.numpy.asarray(random(size, size, seed=k)) for k in (0, 1))
    program = {
        "A B": lambda a, b: a @ b,
        "A B.T": lambda a, b: a @ b.T,
        "A.T B": lambda a, b: a.T @ b,
        "A[::2] B": lambda a, b: a[::2] @ b,
    }[what]
    function = jax.jit(program)
    return lambda: function(a, b)


@row("matvec with a threshold in a scan, {}", 1.0, 0.9, 128, 300, 500)
def threshold(jax, size):
    """Spiking neurons: what is above a threshold fires, and is reset."""
    jnp = jax.numpy
    w = jnp.asarray(random(size, size) / np.sqrt(size).astype("float32"))
    inputs = jnp.asarray(random(200, size))

    def step(v, x):
        fires = v > 1.0
        v = 0.9 * jnp.where(fires, 0.0, v) + w @ fires.astype(v.dtype) + x
        return v, fires

    function = jax.jit(lambda v, xs: jax.lax.scan(step, v, xs))
    return lambda: function(jnp.zeros(size), inputs)
