"""Layers that normalise, drop out, or change the shape.

Reference: ``jax.example_libraries.stax``.
"""

# Made from chapters/39_training_ground.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from minijax import numpy as jnp
from minijax import random
from minijax.compositions.normalisation import standardize
from minijax.nn.initializers.initial_weights import ones, zeros
from minijax.training.convolution_layers import Layer


def BatchNorm(
    axis: int | Sequence[int] = (0, 1, 2),
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
    beta_init: Callable[..., Any] = zeros,
    gamma_init: Callable[..., Any] = ones,
) -> Layer:
    """Return a layer that standardises over a batch, then scales and moves.

    Args:
      axis: over which axes mean and variance are taken.
      epsilon: is added to the variance.
      center: whether a mean is learnt, with initializer `beta_init`.
      scale: whether a deviation is learnt, with initializer `gamma_init`.

    Reference: ``jax.example_libraries.stax.BatchNorm``.
    """
    axes = (axis,) if isinstance(axis, int) else tuple(axis)

    def init_fun(rng, input_shape):
        shape = tuple([d for i, d in enumerate(input_shape) if i not in axes])
        k1, k2 = random.split(rng)
        beta = beta_init(k1, shape) if center else ()
        return input_shape, (beta, gamma_init(k2, shape) if scale else ())

    def apply_fun(params, x, **kwargs):
        beta, gamma = params
        place = tuple([None if i in axes else slice(None) for i in range(jnp.ndim(x))])
        z = standardize(x, axes, epsilon=epsilon)
        z = gamma[place] * z if scale else z
        return z + beta[place] if center else z

    return init_fun, apply_fun


def Dropout(rate: float, mode: str = "train") -> Layer:
    """Return a layer that sets some numbers to 0, at random, while a network learns.

    Args:
      rate: the share of numbers that are *kept*; they are divided by it.
      mode: ``"train"``; with any other, the layer returns its inputs.

    Its ``apply`` needs a key, as `rng`.

    Reference: ``jax.example_libraries.stax.Dropout``.
    """

    def init_fun(rng, input_shape):
        return input_shape, ()

    def apply_fun(params, inputs, **kwargs):
        rng = kwargs.get("rng")
        if rng is None:
            raise ValueError(
                "Dropout draws at random: call the network's apply with a key, "
                "apply(params, inputs, rng=key)."
            )
        if mode != "train":
            return inputs
        keep = random.bernoulli(rng, rate, inputs.shape)
        return jnp.where(keep, inputs / rate, 0)

    return init_fun, apply_fun


def _flat(params, inputs, **kwargs):
    return jnp.reshape(inputs, (inputs.shape[0], -1))


Flatten = (lambda rng, shape: ((shape[0], prod(shape[1:])), ())), _flat
