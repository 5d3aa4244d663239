"""Rows about families that the first tables left out: dtypes, trees, ways to call."""

from functools import partial

import numpy as np
from rows import row
from side_by_side import random


@row("sort, 1e6", 0.5, 0.15, by_numpy=True)
def sort(jax):
    """A million numbers in order."""
    x = jax.numpy.asarray(random(1_000_000))
    function = jax.jit(jax.numpy.sort)
    return lambda: function(x)


@row("{} complex64, 1e5", 1.05, 0.5, "exp", "sqrt", "tanh", "log")
def complex_function(jax, name):
    """A function of 100,000 complex numbers."""
    x = jax.numpy.asarray(random(100_000) + 1j * random(100_000, seed=1))
    function = jax.jit(getattr(jax.numpy, name))
    return lambda: function(x)


@row("Horner's rule, {}, 1e5", 1.05, 0.5, "float16", "bfloat16")
def half_precision(jax, dtype):
    """A polynomial of degree 8 in half precision, without overflow."""
    x = jax.numpy.asarray(np.tanh(random(100_000))).astype(dtype)

    def polynomial(x):
        total = x
        for _ in range(8):
            total = total * x + 0.5
        return total

    function = jax.jit(polynomial)
    return lambda: function(x)


@row("float32 to {}, 1e6", 1.05, 0.5, "int8", "uint8", "int16", "int32", "bfloat16")
def conversion(jax, dtype):
    """A million floats in another dtype."""
    x = jax.numpy.asarray(20 * random(1_000_000))
    function = jax.jit(lambda x: x.astype(dtype))
    return lambda: function(x)


@row("clip by the global norm, {} leaves", 1.05, 0.5, 10, 100)
def clip(jax, count):
    """The gradients of many parameters, scaled by the norm of all."""
    jnp, tree = jax.numpy, jax.tree_util
    leaves = [jnp.asarray(random(50, 20, seed=k)) for k in range(count)]

    def clipped(leaves):
        norm = jnp.sqrt(sum((x * x).sum() for x in leaves))
        return tree.tree_map(lambda x: x / jnp.maximum(norm, 1.0), leaves)

    clipped = jax.jit(clipped)
    return lambda: clipped(leaves)


@row("scan in a scan, vectors of {}", 1.05, 0.7, 8, 32)
def nested(jax, size):
    """A small vector that goes through 50 times 20 turns."""
    jnp = jax.numpy
    x, w = jnp.asarray(random(size)), jnp.asarray(random(50, size))

    def turn(state, _):
        return 0.9 * jnp.tanh(state) + 0.1, None

    def row(state, shift):
        state, _ = jax.lax.scan(turn, state + shift, None, length=20)
        return state, state.sum()

    function = jax.jit(lambda x, w: jax.lax.scan(row, x, w))
    return lambda: function(x, w)


@row("call by f.lower(x).compile()", 1.05, 0.2)
def compiled_ahead(jax):
    """A warmed call of what was compiled ahead of time."""
    x = jax.numpy.asarray(random(4))
    function = jax.jit(lambda x: x * 2 + 1).lower(x).compile()
    return lambda: function(x)


class Pair:
    """A container that is registered as a node of trees."""

    def __init__(self, first, second):
        self.first, self.second = first, second


_registered: set = set()


@row("call with a registered class", 1.05, 0.5)
def registered(jax):
    """A warmed call whose argument and result are of a user's class."""
    if jax.__name__ not in _registered:
        _registered.add(jax.__name__)
        jax.tree_util.register_pytree_node(
            Pair, lambda pair: ((pair.first, pair.second), None), lambda _, x: Pair(*x)
        )
    x = jax.numpy.asarray(random(4))
    pair = Pair(x, x)
    function = jax.jit(lambda pair: Pair(pair.second, pair.first + 1))
    return lambda: function(pair)


@row("training step, 2-16-1, donated", 1.05, 0.3, results=False)
def donated_step(jax):
    """A training loop of a tiny network whose parameters are given away each time."""
    jnp = jax.numpy
    x, y = jnp.asarray(random(8, 2)), jnp.asarray(random(8, 1, seed=1))
    shapes = (2, 16), (16,), (16, 1), (1,)
    params = [[jnp.asarray(0.3 * random(*s, seed=k)) for k, s in enumerate(shapes)]]

    def loss(params):
        a, b, c, d = params
        return ((jnp.tanh(x @ a + b) @ c + d - y) ** 2).mean()

    @partial(jax.jit, donate_argnums=0)
    def step(params):
        slopes = jax.grad(loss)(params)
        return [p - 0.01 * slope for p, slope in zip(params, slopes)]

    def work():
        params[0] = step(params[0])
        return params[0]

    return work


@row("eager tree_map of +, 100 leaves", 1.05, 0.7)
def eager_tree(jax):
    """Additions of the leaves of two trees, one by one, without `jit`."""
    leaves = [jax.numpy.asarray(random(10, seed=k)) for k in range(100)]
    return lambda: jax.tree_util.tree_map(lambda x, y: x + y, leaves, leaves)


@row("32 static values in turn", 1.05, 0.5)
def static_values(jax):
    """Warmed calls of one function with 32 values of a static argument."""
    x = jax.numpy.asarray(random(4))
    function = jax.jit(lambda x, n: x * n, static_argnums=1)
    return lambda: [function(x, n) for n in range(32)]


@row("{1} product, {0}", 1.05, 0.7, *[(size, "int8") for size in (64, 100, 255, 256)],
     (512, "int8"), (1024, "int8"), (256, "uint8"), (256, "int16"))  # fmt: skip
def int8_product(jax, size, dtype):
    """A product of matrices of short integers, summed as int32."""
    rng = np.random.default_rng(0)
    a, b = (
        jax.numpy.asarray(rng.integers(0, 19, (size, size), dtype)) for _ in range(2)
    )
    product = partial(jax.numpy.matmul, preferred_element_type="int32")
    function = jax.jit(product)
    return lambda: function(a, b)


@row("dense layer, {} x {} x {}", 1.05, 0.7, (100_000, 64, 4), (256, 100, 3),
     (4096, 512, 10), (32, 512, 512))  # fmt: skip
def dense(jax, rows, terms, columns):
    """A layer with a bias and a `tanh`."""
    jnp = jax.numpy
    x, w = jnp.asarray(random(rows, terms)), jnp.asarray(0.1 * random(terms, columns))
    b = jnp.asarray(random(columns))
    function = jax.jit(lambda x, w, b: jnp.tanh(x @ w + b))
    return lambda: function(x, w, b)


@row("thin layer, 100000 x 64 x {}, {}", 1.05, 0.8, (1, "tanh"), (2, "gelu"),
     (3, "tanh"), (4, "exp"), (5, "relu"), (8, "gelu"), (10, "tanh"), (16, "tanh"),
     (17, "relu"))  # fmt: skip
def thin(jax, columns, name):
    """A layer with few columns, and a function."""
    x, w = (jax.numpy.asarray(random(*s)) for s in ((100_000, 64), (64, columns)))
    apply = getattr(jax.nn, name, None) or getattr(jax.numpy, name)
    function = jax.jit(lambda x, w: apply(0.1 * (x @ w)))
    return lambda: function(x, w)


@row("{} of rows, {} x {}", 1.05, 0.8, ("logsumexp", 20_000, 50),
     ("norm", 100_000, 16), ("cosine", 20_000, 64))  # fmt: skip
def of_rows(jax, name, rows, columns):
    """A function of the folds of rows."""
    jnp, x = jax.numpy, jax.numpy.asarray(random(rows, columns))
    functions = {
        "logsumexp": lambda x: jax.nn.logsumexp(x, 1),
        "norm": lambda x: jnp.sqrt((x * x).sum(1)),
        "cosine": lambda x: jnp.arccos(x[:, 0] / jnp.sqrt((x * x).sum(1))),
    }
    function = jax.jit(functions[name])
    return lambda: function(x)


@row("min-plus product with the place, 128", 1.05, 0.7)
def places(jax):
    """Through which point the shortest ways of two steps go."""
    a, b = (jax.numpy.asarray(random(128, 128, seed=seed)) for seed in (0, 1))
    function = jax.jit(lambda a, b: (a[:, :, None] + b[None]).argmin(1))
    return lambda: function(a, b)
