"""Layers with parameters for each window: convolutions, and their transposes.

Reference: ``jax.example_libraries.stax``.
"""

# Made from chapters/39_training_ground.md by `make chapter`;
# edit the chapter, not this file.

import functools
from collections.abc import Callable, Sequence
from typing import Any

from minijax import lax, random
from minijax.nn.initializers.initial_weights import glorot_normal, normal

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
