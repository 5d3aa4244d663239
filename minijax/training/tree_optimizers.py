"""Optimizers: functions for one parameter, lifted to trees of parameters.

Reference: ``jax.example_libraries.optimizers``.
"""

# Made from chapters/39_training.md by `make chapter`;
# edit the chapter, not this file.

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from minijax import numpy as jnp
from minijax.pytrees.api_util import flatten_like
from minijax.pytrees.key_paths import keystr
from minijax.pytrees.node_kinds import register_pytree_node
from minijax.pytrees.operations import tree_unflatten
from minijax.pytrees.treedefs import tree_flatten, tree_leaves_with_path


class OptimizerState(NamedTuple):
    """The state of an optimizer: that of each parameter, flat.

    Attributes:
      packed_state: for each parameter the leaves of its state.
      tree_def: the structure of the parameters.
      subtree_defs: for each parameter the structure of its state.

    Reference: ``jax.example_libraries.optimizers.OptimizerState``.
    """

    packed_state: Any
    tree_def: Any
    subtree_defs: Any


register_pytree_node(
    OptimizerState,
    lambda state: ((state.packed_state,), (state.tree_def, state.subtree_defs)),
    lambda structures, packed: OptimizerState(*packed, *structures),
)


class Optimizer(NamedTuple):
    """Three functions that make an optimizer.

    Attributes:
      init_fn: from parameters to the first state.
      update_fn: from the number of the step, gradients and a state to the next state.
      params_fn: from a state to the parameters.

    Reference: ``jax.example_libraries.optimizers.Optimizer``.
    """

    init_fn: Callable[[Any], OptimizerState]
    update_fn: Callable[[Any, Any, OptimizerState], OptimizerState]
    params_fn: Callable[[OptimizerState], Any]


def optimizer(opt_maker: Callable[..., Any]) -> Callable[..., Optimizer]:
    """Lift an optimizer for one parameter to trees of parameters.

    Args:
      opt_maker: returns three functions: ``init(x)`` makes the state of a parameter,
        ``update(i, gradient, state)`` the next one, ``params(state)`` returns the
        parameter.

    Returns:
      A function with the arguments of `opt_maker` that returns an `Optimizer`.

    Reference: ``jax.example_libraries.optimizers.optimizer``.
    """

    @functools.wraps(opt_maker)
    def tree_opt_maker(*args, **kwargs):
        init, update, params = opt_maker(*args, **kwargs)

        def tree_init(x0_tree):
            leaves, tree = tree_flatten(x0_tree)
            flat = [tree_flatten(init(x)) for x in leaves]
            return OptimizerState(
                tuple([x for x, _ in flat]), tree, tuple([t for _, t in flat])
            )

        def tree_update(i, grad_tree, opt_state):
            packed, tree, subtrees = opt_state
            grads = flatten_like(tree, grad_tree, "gradients", "parameters", TypeError)
            states = map(tree_unflatten, subtrees, packed)
            flat = [tree_flatten(update(i, g, s)) for g, s in zip(grads, states)]
            _check_states(grad_tree, packed, subtrees, flat)
            return OptimizerState(tuple([x for x, _ in flat]), tree, subtrees)

        def tree_params(opt_state):
            packed, tree, subtrees = opt_state
            states = map(tree_unflatten, subtrees, packed)
            return tree_unflatten(tree, list(map(params, states)))

        return Optimizer(tree_init, tree_update, tree_params)

    return tree_opt_maker


def _check_states(grad_tree, olds, subtrees, news):
    """Refuse states that an update has made of another form than they had."""
    paths = [keystr(path) for path, _ in tree_leaves_with_path(grad_tree)]
    for path, old, subtree, (new, found) in zip(paths, olds, subtrees, news):
        if found != subtree:
            raise TypeError(
                f"the update of the parameter at {path or 'the top'} returned a state "
                f"of the structure {found}; the state before has {subtree}."
            )
        before, after = ([jnp.shape(x) for x in leaves] for leaves in (old, new))
        if before != after:
            raise TypeError(
                f"the update of the parameter at {path or 'the top'} changed the "
                f"shapes of its state from {before} to {after}; its gradient has "
                "to have the shape of the parameter."
            )


def constant(step_size: Any) -> Callable[[Any], Any]:
    """Return the schedule whose steps are all of one size.

    Reference: ``jax.example_libraries.optimizers.constant``.
    """
    return lambda i: step_size


def make_schedule(scalar_or_schedule: Any) -> Callable[[Any], Any]:
    """Return a schedule as it is, and of a number the `constant` one.

    Raises:
      TypeError: of anything else.

    Reference: ``jax.example_libraries.optimizers.make_schedule``.
    """
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if jnp.ndim(scalar_or_schedule) == 0:
        return constant(scalar_or_schedule)
    raise TypeError(
        "a step size is a number, or a function from the number of the step to one; "
        f"got an array of shape {jnp.shape(scalar_or_schedule)}."
    )


@optimizer
def sgd(step_size: Any) -> Any:
    """Return gradient descent: ``x - step_size * g``.

    Args:
      step_size: a number or a schedule.

    Reference: ``jax.example_libraries.optimizers.sgd``.
    """
    schedule = make_schedule(step_size)
    return (lambda x0: x0), (lambda i, g, x: x - schedule(i) * g), (lambda x: x)


@optimizer
def momentum(step_size: Any, mass: Any) -> Any:
    """Return gradient descent with momentum.

    Args:
      step_size: a number or a schedule.
      mass: how much of the velocity stays from step to step.

    Reference: ``jax.example_libraries.optimizers.momentum``.
    """
    schedule = make_schedule(step_size)

    def update(i, g, state):
        x, velocity = state
        velocity = mass * velocity + g
        return x - schedule(i) * velocity, velocity

    return (lambda x0: (x0, jnp.zeros_like(x0))), update, (lambda state: state[0])


@optimizer
def adam(step_size: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Any:
    """Return Adam: steps of the mean gradient, over the root of the mean square.

    Args:
      step_size: a number or a schedule.
      b1: how much of the mean of gradients stays from step to step.
      b2: how much of the mean of their squares stays.
      eps: is added to the root.

    Reference: ``jax.example_libraries.optimizers.adam``; Kingma and Ba, 2015,
    https://arxiv.org/abs/1412.6980.
    """
    schedule = make_schedule(step_size)

    def init(x0):
        return x0, jnp.zeros_like(x0), jnp.zeros_like(x0)

    def update(i, g, state):
        x, m, v = state
        m = (1 - b1) * g + b1 * m
        v = (1 - b2) * jnp.square(g) + b2 * v
        mean = m / (1 - jnp.asarray(b1, m.dtype) ** (i + 1))
        square = v / (1 - jnp.asarray(b2, m.dtype) ** (i + 1))
        return x - schedule(i) * mean / (jnp.sqrt(square) + eps), m, v

    return init, update, (lambda state: state[0])
