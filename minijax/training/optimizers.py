"""Dense layers and their combinations; optimizers of trees of parameters.

References: ``jax.example_libraries.stax``, ``jax.example_libraries.optimizers``.
"""

# Made from chapters/39_training.md by `make chapter`;
# edit the chapter, not this file.

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from minijax import numpy as jnp
from minijax import random
from minijax.extend.arguments import flatten_like
from minijax.nn.initializers import glorot_normal, normal
from minijax.training.layers import Layer
from minijax.tree_util import (
    keystr,
    register_pytree_node,
    tree_flatten,
    tree_leaves_with_path,
    tree_unflatten,
)


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


# Optimizers: functions for one parameter, lifted to trees of parameters.


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
