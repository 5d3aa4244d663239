"""Layers without parameters: activations, and forks of a network.

Reference: ``jax.example_libraries.stax``.
"""

# Made from chapters/39_training_ground.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Callable
from typing import Any

from minijax import nn
from minijax import numpy as jnp
from minijax.compositions.activations import relu
from minijax.training.convolution_layers import Layer


def elementwise(fun: Callable[..., Any], **fun_kwargs: Any) -> Layer:
    """Return a layer that applies a function to its inputs.

    Args:
      fun: keeps the shape of its argument.
      fun_kwargs: go to every call.

    Reference: ``jax.example_libraries.stax.elementwise``.
    """

    def apply_fun(params, inputs, **kwargs):
        return fun(inputs, **fun_kwargs)

    return (lambda rng, input_shape: (input_shape, ())), apply_fun


Tanh = elementwise(jnp.tanh)
Relu = elementwise(relu)
Exp = elementwise(jnp.exp)
LogSoftmax = elementwise(nn.log_softmax, axis=-1)
Softmax = elementwise(nn.softmax, axis=-1)
Softplus = elementwise(nn.softplus)
Sigmoid = elementwise(nn.sigmoid)
Elu = elementwise(nn.elu)
LeakyRelu = elementwise(nn.leaky_relu)
Selu = elementwise(nn.selu)
Gelu = elementwise(nn.gelu)
Identity = elementwise(lambda x: x)


def FanOut(num: int) -> Layer:
    """Return a layer that returns its input `num` times, as a list.

    Reference: ``jax.example_libraries.stax.FanOut``.
    """

    def apply_fun(params, inputs, **kwargs):
        return [inputs] * num

    return (lambda rng, input_shape: ([input_shape] * num, ())), apply_fun


FanInSum = (
    lambda rng, input_shape: (input_shape[0], ()),
    lambda params, inputs, **kwargs: sum(inputs),
)


def FanInConcat(axis: int = -1) -> Layer:
    """Return a layer that concatenates its inputs.

    Args:
      axis: along which; all other axes have to agree.

    Reference: ``jax.example_libraries.stax.FanInConcat``.
    """

    def init_fun(rng, input_shape):
        first, place = input_shape[0], axis % len(input_shape[0])
        total = sum(shape[place] for shape in input_shape)
        return (*first[:place], total, *first[place + 1 :]), ()

    def apply_fun(params, inputs, **kwargs):
        return jnp.concatenate(inputs, axis)

    return init_fun, apply_fun
