"""Rows about networks: training steps, a transformer block."""

import numpy as np
from rows import row
from side_by_side import random


def _layers(jax, sizes):
    jnp = jax.numpy
    return [
        {
            "w": jnp.asarray(random(m, n) / np.float32(np.sqrt(m))),
            "b": jnp.zeros(n),
        }
        for m, n in zip(sizes, sizes[1:])
    ]


def _training_step(jax, loss):
    def step(params, x, y):
        slopes = jax.grad(loss)(params, x, y)
        return jax.tree_util.tree_map(lambda p, g: p - 0.1 * g, params, slopes)

    return jax.jit(step)


@row("training step, 2-16-1, batch 8", 0.2, 0.05)
def tiny(jax):
    """A training step of a tiny network, whose parameters are a tree."""
    jnp = jax.numpy

    def loss(params, x, y):
        hidden = jnp.tanh(x @ params[0]["w"] + params[0]["b"])
        return ((hidden @ params[1]["w"] + params[1]["b"] - y) ** 2).mean()

    step, params = _training_step(jax, loss), _layers(jax, (2, 16, 1))
    x, y = jnp.asarray(random(8, 2)), jnp.asarray(random(8, 1))
    return lambda: step(params, x, y)


@row("training step, 784-512-512-10, batch 128", 1.15, 0.95)
def digits(jax):
    """A training step of a network for handwritten digits."""
    jnp = jax.numpy

    def loss(params, x, y):
        for layer in params[:-1]:
            x = jnp.maximum(x @ layer["w"] + layer["b"], 0)
        scores = x @ params[-1]["w"] + params[-1]["b"]
        scores = scores - scores.max(1, keepdims=True)
        logs = scores - jnp.log(jnp.exp(scores).sum(1, keepdims=True))
        return -(logs * y).sum(1).mean()

    step, params = _training_step(jax, loss), _layers(jax, (784, 512, 512, 10))
    labels = np.eye(10, dtype="float32")[np.arange(128) % 10]
    x, y = jnp.asarray(random(128, 784)), jnp.asarray(labels)
    return lambda: step(params, x, y)


@row("transformer block, gradient, 8x64x128", 1.0, 0.6)
def transformer(jax):
    """The gradient of a block of attention (4 heads) and a network of two layers."""
    jnp = jax.numpy
    sizes = {"qkv": (128, 384), "out": (128, 128), "up": (128, 512), "down": (512, 128)}
    params = {name: jnp.asarray(0.05 * random(*shape)) for name, shape in sizes.items()}
    x = jnp.asarray(random(8, 64, 128))

    def normed(x):
        centred = x - x.mean(-1, keepdims=True)
        variance = (centred * centred).mean(-1, keepdims=True)
        return centred / jnp.sqrt(variance + 1e-5)

    def attention(params, x):
        qkv = (normed(x) @ params["qkv"]).reshape(8, 64, 3, 4, 32)
        q, k, v = (
            part.reshape(8, 64, 4, 32).transpose(0, 2, 1, 3)
            for part in jnp.split(qkv, 3, axis=2)
        )
        scores = q @ k.transpose(0, 1, 3, 2) / np.float32(np.sqrt(32))
        weights = jnp.exp(scores - scores.max(-1, keepdims=True))
        weights = weights / weights.sum(-1, keepdims=True)
        return (weights @ v).transpose(0, 2, 1, 3).reshape(8, 64, 128) @ params["out"]

    def loss(params, x):
        x = x + attention(params, x)
        x = x + jnp.maximum(normed(x) @ params["up"], 0) @ params["down"]
        return (x * x).mean()

    gradient = jax.jit(jax.grad(loss))
    return lambda: gradient(params, x)


def _convolution(jax, size, inner, outer):
    """Return a layer of channels-last pictures, its operands, and a cotangent."""
    jnp, layout = jax.numpy, ("NHWC", "HWIO", "NHWC")
    x = jnp.asarray(random(8, size, size, inner))
    w = jnp.asarray(random(3, 3, inner, outer))

    def layer(x, w):
        how = {"dimension_numbers": layout}
        return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", **how)

    return layer, x, w, jnp.asarray(random(8, size, size, outer))


def _convolution_rows(size, inner, outer):
    name = f"convolution, 3x3, {size}x{size}, {inner} to {outer}"

    @row(f"{name}, forward", 1.1, 0.9)
    def forward(jax):
        """A layer of a convolutional network."""
        layer, x, w, _ = _convolution(jax, size, inner, outer)
        run = jax.jit(layer)
        return lambda: run(x, w)

    @row(f"{name}, gradient of the window", 1.0, 0.7)
    def window(jax):
        """The cotangent of a layer's window."""
        layer, x, w, ct = _convolution(jax, size, inner, outer)
        run = jax.jit(lambda x, w, ct: jax.vjp(lambda w: layer(x, w), w)[1](ct)[0])
        return lambda: run(x, w, ct)

    @row(f"{name}, gradient of the array", 1.1, 0.9)
    def array(jax):
        """The cotangent of a layer's pictures."""
        layer, x, w, ct = _convolution(jax, size, inner, outer)
        run = jax.jit(lambda x, w, ct: jax.vjp(lambda x: layer(x, w), x)[1](ct)[0])
        return lambda: run(x, w, ct)


for _size, _inner, _outer in (32, 32, 32), (32, 64, 64), (16, 128, 128):
    _convolution_rows(_size, _inner, _outer)


@row("step of an all-convolutional network, CIFAR-10", 1.0, 0.75)
def all_convolutional(jax):
    """A training step of nine convolutions, three of them with a stride of 2."""
    jnp, layout = jax.numpy, ("NHWC", "HWIO", "NHWC")
    shapes = [(3, 3, 32, 1), (3, 32, 32, 1), (3, 32, 32, 2), (3, 32, 64, 1)]
    shapes += [(3, 64, 64, 1), (3, 64, 64, 2), (3, 64, 64, 1), (1, 64, 64, 1)]
    shapes += [(1, 64, 10, 1)]
    params = [
        jnp.asarray(random(k, k, m, n) / np.float32(np.sqrt(k * k * m)))
        for k, m, n, _ in shapes
    ]

    def loss(params, x, y):
        for w, (*_, stride) in zip(params, shapes):
            strides, how = (stride, stride), {"dimension_numbers": layout}
            x = jax.lax.conv_general_dilated(x, w, strides, "SAME", **how)
            x = jnp.maximum(x, 0)
        scores = x.mean((1, 2))
        scores = scores - scores.max(1, keepdims=True)
        logs = scores - jnp.log(jnp.exp(scores).sum(1, keepdims=True))
        return -(logs * y).sum(1).mean()

    step = _training_step(jax, loss)
    labels = np.eye(10, dtype="float32")[np.arange(16) % 10]
    x, y = jnp.asarray(random(16, 32, 32, 3)), jnp.asarray(labels)
    return lambda: step(params, x, y)
