"""Rows about arrays: calls, chains of operations, functions, sums, products."""

import numpy as np
from rows import row
from side_by_side import random


@row("call, two arrays of 4", 0.15, 0.02, by_numpy=True)
def call(jax):
    """A warmed call of next to nothing: the price of the door."""
    a, b = jax.numpy.asarray(random(4)), jax.numpy.asarray(random(4, seed=1))
    add = jax.jit(lambda a, b: a + b)
    return lambda: add(a, b)


@row("SeLU layer, {:.0e}", (0.8, 1.0, 0.5), (0.55, 0.7, 0.2), 1e5, 1e6, 1e7,
     by_numpy=True)  # fmt: skip
def selu_layer(jax, size):
    """A scale and a shift, then the SeLU function of the paper."""
    jnp = jax.numpy
    x, w, b = (jnp.asarray(random(int(size), seed=seed)) for seed in range(3))

    def layer(x, w, b):
        z = x * w + b
        return 1.05 * jnp.where(z > 0, z, 1.67 * jnp.exp(z) - 1.67)

    layer = jax.jit(layer)
    return lambda: layer(x, w, b)


@row("10 operations, {:.0e}", (0.8, 1.0, 0.5), (0.55, 0.7, 0.2), 1e5, 1e6, 1e7,
     by_numpy=True)  # fmt: skip
def chain(jax, size):
    """Ten operations, one after the other, on each element."""
    return ten_operations(jax, size)


def ten_operations(jax, size):
    """Return a function that does ten operations on each of so many numbers."""
    jnp = jax.numpy

    def operations(x):
        for _ in range(3):
            x = jnp.abs(x * 1.1 - 0.5) + 0.25 * x
        return jnp.tanh(x)

    return _of_one_array(jax, operations, size)


def _of_one_array(jax, function, size):
    x, function = jax.numpy.asarray(random(int(size))), jax.jit(function)
    return lambda: function(x)


@row("10 operations, 1e7, donated", 1.1, 0.8, results=False)
def donated(jax):
    """The same, where the result takes the memory of the argument."""
    jnp = jax.numpy

    def operations(x):
        for _ in range(3):
            x = jnp.abs(x * 1.1 - 0.5) + 0.25 * x
        return jnp.maximum(jnp.tanh(x), x)

    operations = jax.jit(operations, donate_argnums=0)
    state = [jnp.asarray(random(10_000_000))]

    def work():
        state[0] = operations(state[0])
        return state[0]

    return work


def _function(jax, name, dtype):
    jnp = jax.numpy
    x = jnp.asarray(abs(random(100_000, dtype=dtype)))
    function = jax.jit(getattr(jnp, name))
    return lambda: function(x)


@row("{}, 1e5", 0.9, 0.6, "exp", "log", "tanh", by_numpy=True)
@row("{} f32, 1e5", 0.2, 0.05, "sin", "cos", by_numpy=True)
def single(jax, name):
    """A function of 100,000 numbers in single precision."""
    return _function(jax, name, "float32")


@row("{} f64, 1e5", 0.2, 0.05, "sin", "cos", "log", wide=True, by_numpy=True)
def double(jax, name):
    """A function of 100,000 numbers in double precision."""
    return _function(jax, name, "float64")


@row("erf, 1e5", 0.9, 0.6)
def erf(jax):
    """The error function, in single precision."""
    return _of_one_array(jax, jax.lax.erf, 1e5)


@row("erf f64, 1e5", 0.2, 0.05, wide=True)
def erf_double(jax):
    """The error function, in double precision."""
    function = jax.jit(jax.lax.erf)
    x = jax.numpy.asarray(random(100_000, dtype="float64"))
    return lambda: function(x)


@row("sum, {:.0e}", 0.8, (0.2, 0.6), 1e5, 1e6, by_numpy=True)
def total(jax, size):
    """A sum of all."""
    return _of_one_array(jax, lambda x: x.sum(), size)


@row("softmax, {}x{}", 0.8, (0.6, 0.2), (1000, 1000), (4096, 1024), by_numpy=True)
def softmax(jax, *shape):
    """Softmax of the rows of a matrix."""
    jnp = jax.numpy
    x = jnp.asarray(random(*shape))

    def function(x):
        weights = jnp.exp(x - x.max(1, keepdims=True))
        return weights / weights.sum(1, keepdims=True)

    function = jax.jit(function)
    return lambda: function(x)


@row("layer norm, 4096x1024", 0.8, 0.5, by_numpy=True)
def layer_norm(jax):
    """Rows with mean 0 and variance 1, scaled and shifted."""
    jnp = jax.numpy
    x, scale, shift = map(jnp.asarray, (random(4096, 1024), *random(2, 1024)))

    def function(x, scale, shift):
        centred = x - x.mean(1, keepdims=True)
        variance = (centred * centred).mean(1, keepdims=True)
        return centred / jnp.sqrt(variance + 1e-5) * scale + shift

    function = jax.jit(function)
    return lambda: function(x, scale, shift)


@row("sums of columns, 4096x1024", 0.8, 0.5, by_numpy=True)
def columns(jax):
    """The sum of each column of a matrix."""
    x = jax.numpy.asarray(random(4096, 1024))
    function = jax.jit(lambda x: x.sum(0))
    return lambda: function(x)


@row("cumulative sum, 1e6", 0.3, 0.13, by_numpy=True)
def cumulative_sum(jax):
    """All partial sums."""
    return _of_one_array(jax, lambda x: jax.numpy.cumsum(x), 1e6)


@row("argmax, 1e6", 0.1, 0.02, by_numpy=True)
def argmax(jax):
    """The place of the largest number."""
    return _of_one_array(jax, lambda x: jax.numpy.argmax(x), 1e6)


_MATMUL = 16, 32, 64, 128, 256, 512, 1024


@row("matrix product, {}", (0.4, 0.4, 0.4, 1.0, 1.0, 1.1, 1.1),
     (0.3, 0.3, 0.3, 0.8, 0.8, 1.0, 1.0), *_MATMUL, by_numpy=True)  # fmt: skip
def matmul(jax, n):
    """The product of two square matrices."""
    a, b = (jax.numpy.asarray(random(n, n, seed=seed)) for seed in (0, 1))
    function = jax.jit(lambda a, b: a @ b)
    return lambda: function(a, b)


@row("logistic regression, gradient, {}x{}", 0.9, 0.6, (100, 10), (1000, 50))
def logistic(jax, examples, features):
    """The gradient of the loss of a logistic regression."""
    jnp = jax.numpy
    x, w = jnp.asarray(random(examples, features)), jnp.asarray(random(features))
    y = jnp.asarray(np.sign(random(examples, seed=2)))

    def loss(w, x, y):
        return jnp.log1p(jnp.exp(-y * (x @ w))).mean()

    gradient = jax.jit(jax.grad(loss))
    return lambda: gradient(w, x, y)


def _of_a_key(jax, function):
    key, function = jax.random.key(0), jax.jit(function)
    return lambda: function(key)


@row("uniform random numbers, 1e6", 0.5, 0.25)
def uniform(jax):
    """A million floats below 1: the cipher, a shift and a subtraction."""
    return _of_a_key(jax, lambda key: jax.random.uniform(key, (1_000_000,)))


@row("normal random numbers, 1e6", 0.6, 0.4)
def normal(jax):
    """The same, sent through the inverse of the error function."""
    return _of_a_key(jax, lambda key: jax.random.normal(key, (1_000_000,)))


@row("dropout, 1000x1000", 0.6, 0.4)
def dropout(jax):
    """Mask and scaling in one kernel with the bits of the mask."""
    jnp = jax.numpy
    x, key = jnp.ones((1000, 1000)), jax.random.key(0)

    def drop(key, x):
        return jnp.where(jax.random.uniform(key, x.shape) < 0.9, x / 0.9, 0.0)

    drop = jax.jit(drop)
    return lambda: drop(key, x)
