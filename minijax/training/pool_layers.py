"""Layers that fold windows: the largest, the sum, the mean.

Reference: ``jax.example_libraries.stax``.
"""

# Made from chapters/39_training_ground.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.training.convolution_layers import Layer


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
