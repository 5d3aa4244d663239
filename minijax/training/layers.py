"""Layers of neural networks: dense ones, and layers one after or beside the other.

Reference: ``jax.example_libraries.stax``.
"""

# Made from chapters/39_training.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Callable
from typing import Any

from minijax import numpy as jnp
from minijax import random
from minijax.nn.initializers.initial_weights import glorot_normal, normal
from minijax.training.convolution_layers import Layer


def Dense(
    out_dim: int,
    W_init: Callable[..., Any] = glorot_normal(),  # noqa: B008
    b_init: Callable[..., Any] = normal(),  # noqa: B008
) -> Layer:
    """Return a layer that computes ``inputs @ W + b``.

    Args:
      out_dim: the number of features out.
      W_init: initializer of the weights, ``[features in, out_dim]``.
      b_init: initializer of the biases, ``[out_dim]``.

    Returns:
      The pair ``init(rng, input_shape)``, ``apply(params, inputs)``.

    Reference: ``jax.example_libraries.stax.Dense``.
    """

    def init_fun(rng, input_shape):
        k1, k2 = random.split(rng)
        W, b = W_init(k1, (input_shape[-1], out_dim)), b_init(k2, (out_dim,))
        return (*input_shape[:-1], out_dim), (W, b)

    def apply_fun(params, inputs, **kwargs):
        W, b = params
        return jnp.dot(inputs, W) + b

    return init_fun, apply_fun


def serial(*layers: Layer) -> Layer:
    """Return the layer that applies some layers one after the other.

    Its parameters are the list of those of the layers.

    Reference: ``jax.example_libraries.stax.serial``.
    """

    def init_fun(rng, input_shape):
        params = []
        for init, _ in layers:
            rng, layer_rng = random.split(rng)
            input_shape, param = init(layer_rng, input_shape)
            params.append(param)
        return input_shape, params

    def apply_fun(params, inputs, rng=None, **kwargs):
        rngs = _keys(rng, len(layers))
        for (_, apply), param, key in zip(layers, params, rngs, strict=True):
            inputs = apply(param, inputs, rng=key, **kwargs)
        return inputs

    return init_fun, apply_fun


def _keys(rng, count):
    """Return a key for each layer, or None for each."""
    return [None] * count if rng is None else random.split(rng, count)


def parallel(*layers: Layer) -> Layer:
    """Return the layer that applies each layer to an input of its own.

    Inputs and results are lists, with an entry for each layer; parameters a tuple.

    Reference: ``jax.example_libraries.stax.parallel``.
    """

    def init_fun(rng, input_shape):
        rngs = random.split(rng, len(layers))
        triples = zip(layers, rngs, input_shape, strict=True)
        found = [init(key, shape) for (init, _), key, shape in triples]
        return tuple([shape for shape, _ in found]), tuple([p for _, p in found])

    def apply_fun(params, inputs, rng=None, **kwargs):
        rngs = _keys(rng, len(layers))
        given = zip(layers, params, inputs, rngs, strict=True)
        return [apply(p, x, rng=key, **kwargs) for (_, apply), p, x, key in given]

    return init_fun, apply_fun


def shape_dependent(make_layer: Callable[..., Any]) -> Layer:
    """Return a layer that is made when the shape of its inputs is known.

    Args:
      make_layer: from that shape to a layer.

    Reference: ``jax.example_libraries.stax.shape_dependent``.
    """

    def init_fun(rng, input_shape):
        return make_layer(input_shape)[0](rng, input_shape)

    def apply_fun(params, inputs, **kwargs):
        return make_layer(inputs.shape)[1](params, inputs, **kwargs)

    return init_fun, apply_fun
