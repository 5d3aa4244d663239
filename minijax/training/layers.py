"""Layers of networks: convolutions, normalisation, pooling, activations.

Reference: ``jax.example_libraries.stax``.
"""

# Made from chapters/39_training_ground.md by `make chapter`;
# edit the chapter, not this file.

import functools
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from minijax import lax, nn, random
from minijax import numpy as jnp
from minijax.nn import relu, standardize
from minijax.nn.initializers import glorot_normal, normal, ones, zeros

# Layers with parameters for each window: convolutions, and their transposes.

Layer = tuple[Callable[..., Any], Callable[..., Any]]


def _windows(shape_of, convolve, dimension_numbers, sizes, strides, padding, inits):
    """Return a layer; `sizes` are the features out and the shape of a window."""
    (out_chan, filter_shape), (W_init, b_init) = sizes, inits
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    strides = (1,) * len(filter_shape) if strides is None else strides
    W_init = W_init or glorot_normal(rhs_spec.index("I"), rhs_spec.index("O"))

    def init_fun(rng, input_shape):
        extents = iter(filter_shape)
        features = {"O": out_chan, "I": input_shape[lhs_spec.index("C")]}
        kernel = [features[c] if c in features else next(extents) for c in rhs_spec]
        shapes = tuple(input_shape), tuple(kernel)
        output_shape = shape_of(*shapes, strides, padding, dimension_numbers)
        bias = tuple([out_chan if c == "C" else 1 for c in out_spec])
        k1, k2 = random.split(rng)
        return output_shape, (W_init(k1, shapes[1]), b_init(k2, bias))

    def apply_fun(params, inputs, **kwargs):
        W, b = params
        made = convolve(
            inputs, W, strides, padding, dimension_numbers=dimension_numbers
        )
        return made + b

    return init_fun, apply_fun


def GeneralConv(
    dimension_numbers: tuple[str, str, str],
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    W_init: Callable[..., Any] | None = None,
    b_init: Callable[..., Any] = normal(1e-6),  # noqa: B008
) -> Layer:
    """Return a layer of convolutions.

    Args:
      dimension_numbers: three strings that name the axes of the inputs, the windows
        and the results, such as ``("NHWC", "HWIO", "NHWC")``.
      out_chan: the number of features out.
      filter_shape: the size of a window along each axis of space.
      strides: by how much windows move; by 1 if None.
      padding: ``"VALID"``, ``"SAME"``, or a pair of numbers for each axis of space.
      W_init: initializer of the windows; `glorot_normal` if None.
      b_init: initializer of the biases.

    Returns:
      The pair ``init(rng, input_shape)``, ``apply(params, inputs)``.

    Reference: ``jax.example_libraries.stax.GeneralConv``.
    """
    return _windows(
        lax.conv_general_shape_tuple, lax.conv_general_dilated, dimension_numbers,
        (out_chan, filter_shape), strides, padding, (W_init, b_init),
    )  # fmt: skip


Conv = functools.partial(GeneralConv, ("NHWC", "HWIO", "NHWC"))


def GeneralConvTranspose(
    dimension_numbers: tuple[str, str, str],
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    W_init: Callable[..., Any] | None = None,
    b_init: Callable[..., Any] = normal(1e-6),  # noqa: B008
) -> Layer:
    """Return a layer of transposed convolutions, which enlarge where `Conv` shrinks.

    Args:
      dimension_numbers, out_chan, filter_shape, W_init, b_init: see `GeneralConv`.
      strides: how many results there are for an element, along each axis of space.
      padding: that of the convolution whose transpose this is.

    Reference: ``jax.example_libraries.stax.GeneralConvTranspose``.
    """
    return _windows(
        lax.conv_transpose_shape_tuple, lax.conv_transpose, dimension_numbers,
        (out_chan, filter_shape), strides, padding, (W_init, b_init),
    )  # fmt: skip


Conv1DTranspose = functools.partial(GeneralConvTranspose, ("NHC", "HIO", "NHC"))
ConvTranspose = functools.partial(GeneralConvTranspose, ("NHWC", "HWIO", "NHWC"))


# Layers that normalise, drop out, or change the shape.


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


# Layers that fold windows: the largest, the sum, the mean.


def _pool(reducer, init_val, window_shape, strides, padding, spec, mean=False):
    """Return a layer that folds windows by `reducer`, from `init_val`."""
    strides = (1,) * len(window_shape) if strides is None else strides
    apart = (0, len(window_shape) + 1)
    if spec is not None:
        apart = spec.index("N"), spec.index("C")

    def with_others(sizes):
        for place in sorted(apart):
            sizes = (*sizes[:place], 1, *sizes[place:])
        return sizes

    window, steps = with_others(tuple(window_shape)), with_others(tuple(strides))

    def init_fun(rng, input_shape):
        pads = lax.padtype_to_pads(input_shape, window, steps, padding)
        ones = (1,) * len(window)
        shape = lax.reduce_window_shape_tuple(
            input_shape, window, steps, pads, ones, ones
        )
        return shape, ()

    def apply_fun(params, inputs, **kwargs):
        out = lax.reduce_window(inputs, init_val, reducer, window, steps, padding)
        if not mean:
            return out
        space = [d for i, d in enumerate(inputs.shape) if i not in apart]
        counts = lax.reduce_window(
            jnp.ones(space, inputs.dtype), 0.0, lax.add, tuple(window_shape),
            tuple(strides), padding,
        )  # fmt: skip
        return out / jnp.expand_dims(counts, sorted(apart))

    return init_fun, apply_fun


def MaxPool(
    window_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    spec: str | None = None,
) -> Layer:
    """Return a layer that takes the largest element of each window.

    Args:
      window_shape: the size of a window along each axis of space.
      strides: by how much windows move; by 1 if None.
      padding: ``"VALID"``, ``"SAME"``, or pairs of numbers.
      spec: names of the axes, with an ``"N"`` and a ``"C"``, which are no axes of
        space; if None, the first and the last.

    Reference: ``jax.example_libraries.stax.MaxPool``.
    """
    return _pool(lax.max, -np.inf, window_shape, strides, padding, spec)


def SumPool(
    window_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    spec: str | None = None,
) -> Layer:
    """Return a layer that takes the sum of each window; arguments as `MaxPool`.

    Reference: ``jax.example_libraries.stax.SumPool``.
    """
    return _pool(lax.add, 0.0, window_shape, strides, padding, spec)


def AvgPool(
    window_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    spec: str | None = None,
) -> Layer:
    """Return a layer that takes the mean of each window; arguments as `MaxPool`.

    The padding counts for nothing: a window over the border is a mean of what it has.

    Reference: ``jax.example_libraries.stax.AvgPool``.
    """
    return _pool(lax.add, 0.0, window_shape, strides, padding, spec, mean=True)


# Layers without parameters: activations, and forks of a network.


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
