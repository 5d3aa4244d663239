"""Schedules, optimizers by the size of gradients, clipping, older names of layers.

References: ``jax.example_libraries.optimizers``, ``jax.example_libraries.stax``.
"""

# Made from chapters/39_training_rest.md by `make chapter`;
# edit the chapter, not this file.

import functools
from collections.abc import Callable
from typing import Any

from minijax import Array
from minijax import numpy as jnp
from minijax.nn import log_softmax
from minijax.nn.initializers import glorot_normal, normal
from minijax.training.optimizers import OptimizerState, make_schedule, optimizer
from minijax.tree_util import tree_flatten, tree_leaves, tree_map, tree_unflatten

# Schedules: functions from the number of a step to its size.


def exponential_decay(
    step_size: float, decay_steps: int, decay_rate: float
) -> Callable[[Any], Any]:
    """Return a schedule: times `decay_rate` in every `decay_steps` steps.

    Reference: ``jax.example_libraries.optimizers.exponential_decay``.
    """
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(
    step_size: float, decay_steps: int, decay_rate: float, staircase: bool = False
) -> Callable[[Any], Any]:
    """Return a schedule: ``step_size / (1 + decay_rate * i / decay_steps)``.

    Args:
      step_size: the first one.
      decay_steps, decay_rate: see above.
      staircase: whether the quotient ``i / decay_steps`` is rounded down.

    Reference: ``jax.example_libraries.optimizers.inverse_time_decay``.
    """
    if staircase:
        return lambda i: step_size / (1 + decay_rate * jnp.floor(i / decay_steps))
    return lambda i: step_size / (1 + decay_rate * i / decay_steps)


def polynomial_decay(
    step_size: float, decay_steps: int, final_step_size: float, power: float = 1.0
) -> Callable[[Any], Any]:
    """Return a schedule: down to `final_step_size` within `decay_steps` steps.

    Args:
      step_size: the first one.
      decay_steps: after so many steps, the size stays.
      final_step_size: the last one.
      power: 1 goes down on a line, 2 on a parabola.

    Reference: ``jax.example_libraries.optimizers.polynomial_decay``.
    """

    def schedule(i):
        left = (1 - jnp.minimum(i, decay_steps) / decay_steps) ** power
        return left * (step_size - final_step_size) + final_step_size

    return schedule


def piecewise_constant(boundaries: Any, values: Any) -> Callable[[Any], Any]:
    """Return a schedule with steps: ``values[k]`` after k of the boundaries.

    Args:
      boundaries: numbers of steps, n of them, rising.
      values: n + 1 step sizes.

    Raises:
      ValueError: if there are not n + 1.

    Reference: ``jax.example_libraries.optimizers.piecewise_constant``.
    """
    bounds, sizes = jnp.array(boundaries), jnp.array(values)
    if not (bounds.ndim == sizes.ndim == 1 and sizes.size == bounds.size + 1):
        raise ValueError(
            "piecewise_constant takes a row of boundaries, and of values one more; got "
            f"shapes {bounds.shape} and {sizes.shape}."
        )
    return lambda i: sizes[jnp.sum(i > bounds)]


# Optimizers that divide by how large gradients were: AdaGrad, RMSProp, AdaMax, SM3.


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

    Reference: ``jax.example_libraries.optimizers.sm3``; Anil, Gupta, Koren and Singer,
    2019, https://arxiv.org/abs/1901.11150.
    """
    schedule = make_schedule(step_size)

    def init(x0):
        shape, x0 = jnp.shape(x0), jnp.atleast_1d(x0)  # a number has one row
        sums = [jnp.zeros(n, x0.dtype) for n in x0.shape]
        return x0, jnp.zeros_like(x0), sums, shape  # as in JAX

    def update(i, g, state):
        x, m, sums, shape = state
        axes = range(jnp.ndim(x))
        others = [tuple([k for k in axes if k != axis]) for axis in axes]
        spread = map(jnp.expand_dims, sums, others)
        squares = functools.reduce(jnp.minimum, spread) + jnp.square(g)
        m = (1.0 - momentum) * (g * _inverse_root(squares)) + momentum * m
        return x - schedule(i) * m, m, [squares.max(along) for along in others], shape

    def get(state):
        return state[0] if state[3] else state[0].reshape(())

    return init, update, get


def _inverse_root(squares):
    """Return ``1 / sqrt(squares)``, and 0 where there was no gradient yet."""
    return jnp.where(squares > 0, 1.0 / jnp.sqrt(squares), 0.0)


# Norms of trees, clipping of gradients, and states of optimizers as trees.


def l2_norm(tree: Any) -> Array:
    """Return the Euclidean length of all leaves together.

    Reference: ``jax.example_libraries.optimizers.l2_norm``.
    """
    return jnp.sqrt(sum(jnp.vdot(x, x) for x in tree_leaves(tree)))


def clip_grads(grad_tree: Any, max_norm: Any) -> Any:
    """Return gradients that are at most `max_norm` long, with the same direction.

    Reference: ``jax.example_libraries.optimizers.clip_grads``.
    """
    norm = l2_norm(grad_tree)
    return tree_map(
        lambda g: jnp.where(norm < max_norm, g, g * (max_norm / norm)), grad_tree
    )


class JoinPoint:
    """A leaf that holds a tree: the state of one parameter.

    Args:
      subtree: the tree.

    Reference: ``jax.example_libraries.optimizers.JoinPoint``.
    """

    def __init__(self, subtree: Any) -> None:
        self.subtree = subtree

    def __iter__(self) -> Any:
        """The state itself, once, so that a caller may unpack it."""
        yield self.subtree


def unpack_optimizer_state(opt_state: OptimizerState) -> Any:
    """Return a state as a tree like the parameters, with `JoinPoint`s for leaves.

    Reference: ``jax.example_libraries.optimizers.unpack_optimizer_state``.
    """
    pairs = zip(opt_state.subtree_defs, opt_state.packed_state, strict=True)
    points = [JoinPoint(tree_unflatten(*pair)) for pair in pairs]
    return tree_unflatten(opt_state.tree_def, points)


def pack_optimizer_state(marked_pytree: Any) -> OptimizerState:
    """Return the state of an optimizer, from a tree whose leaves are `JoinPoint`s.

    Raises:
      TypeError: if a leaf is not.

    Reference: ``jax.example_libraries.optimizers.pack_optimizer_state``.
    """
    points, tree = tree_flatten(marked_pytree)
    for k, point in enumerate(points):
        if not isinstance(point, JoinPoint):
            raise TypeError(
                f"pack_optimizer_state takes a tree of JoinPoints, as unpack returns; "
                f"leaf {k} is a {type(point).__name__}."
            )
    flat = [tree_flatten(point.subtree) for point in points]
    packed, subtrees = tuple([x for x, _ in flat]), tuple([t for _, t in flat])
    return OptimizerState(packed, tree, subtrees)


# Older names of initializers and of the logarithm of softmax.

glorot = glorot_normal
randn = normal
logsoftmax = log_softmax
