"""Optimizers that divide by how large gradients were: AdaGrad, RMSProp, AdaMax, SM3.

Reference: ``jax.example_libraries.optimizers``.
"""

# Made from chapters/39_training_rest.md by `make chapter`;
# edit the chapter, not this file.

import functools
from collections.abc import Callable
from typing import Any

from minijax import numpy as jnp
from minijax.training.tree_optimizers import make_schedule, optimizer


@optimizer
def nesterov(step_size: float | Callable[[Any], Any], mass: float) -> tuple:
    """Return an optimizer with momentum that looks ahead by one step.

    Args:
      step_size: a number or a schedule.
      mass: how much of the velocity stays.

    Reference: ``jax.example_libraries.optimizers.nesterov``; Nesterov, 1983.
    """
    schedule = make_schedule(step_size)

    def update(i, g, state):
        x, velocity = state
        velocity = mass * velocity + g
        return x - schedule(i) * (mass * velocity + g), velocity

    return (lambda x0: (x0, jnp.zeros_like(x0))), update, (lambda state: state[0])


@optimizer
def adagrad(
    step_size: float | Callable[[Any], Any], momentum: float = 0.9
) -> tuple:
    """Return AdaGrad, which divides by the root of the sum of squared gradients.

    Args:
      step_size: a number or a schedule.
      momentum: how much of the last step stays.

    Reference: ``jax.example_libraries.optimizers.adagrad``; Duchi, Hazan and Singer,
    2011, https://jmlr.org/papers/v12/duchi11a.html.
    """
    schedule = make_schedule(step_size)

    def init(x0):
        return x0, jnp.zeros_like(x0), jnp.zeros_like(x0)

    def update(i, g, state):
        x, squares, m = state
        squares += jnp.square(g)
        m = (1.0 - momentum) * (g * _inverse_root(squares)) + momentum * m
        return x - schedule(i) * m, squares, m

    return init, update, (lambda state: state[0])


@optimizer
def rmsprop(
    step_size: float | Callable[[Any], Any], gamma: float = 0.9, eps: float = 1e-8
) -> tuple:
    """Return RMSProp, which divides by the root of a mean of squared gradients.

    Args:
      step_size: a number or a schedule.
      gamma: how much of the mean stays.
      eps: is added to the mean.

    Reference: ``jax.example_libraries.optimizers.rmsprop``.
    """
    schedule = make_schedule(step_size)

    def update(i, g, state):
        x, mean = state
        mean = mean * gamma + jnp.square(g) * (1.0 - gamma)
        return x - schedule(i) * g / jnp.sqrt(mean + eps), mean

    return (lambda x0: (x0, jnp.zeros_like(x0))), update, (lambda state: state[0])


@optimizer
def rmsprop_momentum(
    step_size: float | Callable[[Any], Any],
    gamma: float = 0.9,
    eps: float = 1e-8,
    momentum: float = 0.9,
) -> tuple:
    """Return RMSProp with momentum.

    Args:
      step_size, gamma, eps: see `rmsprop`.
      momentum: how much of the last step stays.

    Reference: ``jax.example_libraries.optimizers.rmsprop_momentum``.
    """
    schedule = make_schedule(step_size)

    def init(x0):
        return x0, jnp.zeros_like(x0), jnp.zeros_like(x0)

    def update(i, g, state):
        x, mean, mom = state
        mean = mean * gamma + jnp.square(g) * (1.0 - gamma)
        mom = momentum * mom + schedule(i) * g / jnp.sqrt(mean + eps)
        return x - mom, mean, mom

    return init, update, (lambda state: state[0])


@optimizer
def adamax(
    step_size: float | Callable[[Any], Any],
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
) -> tuple:
    """Return AdaMax: Adam with the largest gradient in place of a mean of squares.

    Args:
      step_size: a number or a schedule.
      b1: how much of the mean of gradients stays.
      b2: how much of the largest gradient stays.
      eps: is added to the largest gradient.

    Reference: ``jax.example_libraries.optimizers.adamax``; Kingma and Ba, 2015,
    https://arxiv.org/abs/1412.6980, section 7.
    """
    schedule = make_schedule(step_size)

    def init(x0):
        return x0, jnp.zeros_like(x0), jnp.zeros_like(x0)

    def update(i, g, state):
        x, m, largest = state
        m = (1 - b1) * g + b1 * m
        largest = jnp.maximum(b2 * largest, jnp.abs(g))
        unbiased = 1 - jnp.asarray(b1, m.dtype) ** (i + 1)
        return x - (schedule(i) / unbiased) * m / (largest + eps), m, largest

    return init, update, (lambda state: state[0])


@optimizer
def sm3(step_size: float | Callable[[Any], Any], momentum: float = 0.9) -> tuple:
    """Return SM3: AdaGrad whose sums are kept for each index of each axis only.

    Args:
      step_size: a number or a schedule.
      momentum: how much of the last step stays.

    Raises:
      ValueError: if a parameter has no axis.

    Reference: ``jax.example_libraries.optimizers.sm3``; Anil, Gupta, Koren and Singer,
    2019, https://arxiv.org/abs/1901.11150.
    """
    schedule = make_schedule(step_size)

    def init(x0):
        if jnp.ndim(x0) == 0:
            raise ValueError(
                "sm3 keeps sums along the axes of a parameter; it cannot take a "
                "number without axes. Reshape it to (1,)."
            )
        sums = [jnp.zeros(n, x0.dtype) for n in x0.shape]
        return x0, jnp.zeros_like(x0), sums, x0.shape  # as in JAX

    def update(i, g, state):
        x, m, sums, shape = state
        axes = range(jnp.ndim(x))
        others = [tuple([k for k in axes if k != axis]) for axis in axes]
        spread = map(jnp.expand_dims, sums, others)
        squares = functools.reduce(jnp.minimum, spread) + jnp.square(g)
        m = (1.0 - momentum) * (g * _inverse_root(squares)) + momentum * m
        return x - schedule(i) * m, m, [squares.max(along) for along in others], shape

    return init, update, (lambda state: state[0])


def _inverse_root(squares):
    """Return ``1 / sqrt(squares)``, and 0 where there was no gradient yet."""
    return jnp.where(squares > 0, 1.0 / jnp.sqrt(squares), 0.0)
