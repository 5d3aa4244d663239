"""Initializers: functions of a key and a shape.

Reference: ``jax.nn.initializers``.
"""

# Made from chapters/33_library_ground.md by `make chapter`;
# edit the chapter, not this file.

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from minijax import numpy as jnp
from minijax import random
from minijax.arrays.numerics import canonicalize_axis
from minijax.arrays.out_sharding import place_result
from minijax.core import Array
from minijax.typing import ArrayLike


@runtime_checkable
class Initializer(Protocol):
    """What an initializer is called with: a key, a shape and a dtype."""

    def __call__(
        self,
        key: Array,
        shape: Sequence[int],
        dtype: Any = ...,
        out_sharding: Any = ...,
    ) -> Array:
        """Return an array of this shape."""
        ...


def initializer(name: str, dtype: Any, draw: Callable) -> Initializer:
    """Return the initializer that calls ``draw(key, shape, dtype)``."""
    default = dtype

    def init(
        key: Array,
        shape: Sequence[int],
        dtype: Any = default,
        out_sharding: Any = None,
    ) -> Array:
        dtype = jnp.result_type(float) if dtype is None else jnp.dtype(dtype)
        return place_result(name, draw(key, tuple(shape), dtype), out_sharding)

    init.__name__ = init.__qualname__ = name
    return init


def zeros(
    key: Array, shape: Sequence[int], dtype: Any = None, out_sharding: Any = None
) -> Array:
    """Return zeros; the key is not used.

    Reference: ``jax.nn.initializers.zeros``.
    """
    return constant(0)(key, shape, dtype, out_sharding)


def ones(
    key: Array, shape: Sequence[int], dtype: Any = None, out_sharding: Any = None
) -> Array:
    """Return ones; the key is not used.

    Reference: ``jax.nn.initializers.ones``.
    """
    return constant(1)(key, shape, dtype, out_sharding)


def constant(value: ArrayLike, dtype: Any = None) -> Initializer:
    """Return an initializer that fills arrays with `value`.

    Reference: ``jax.nn.initializers.constant``.
    """
    return initializer("constant", dtype, lambda _, s, d: jnp.full(s, value, d))


def uniform(scale: Any = 1e-2, dtype: Any = None) -> Initializer:
    """Return an initializer with numbers evenly from 0 to `scale`.

    Reference: ``jax.nn.initializers.uniform``.
    """

    def draw(key, shape, dtype):
        return random.uniform(key, shape, dtype) * jnp.array(scale, dtype)

    return initializer("uniform", dtype, draw)


def normal(stddev: Any = 1e-2, dtype: Any = None) -> Initializer:
    """Return an initializer with normal numbers of this standard deviation.

    Reference: ``jax.nn.initializers.normal``.
    """

    def draw(key, shape, dtype):
        return random.normal(key, shape, dtype) * jnp.array(stddev, dtype)

    return initializer("normal", dtype, draw)


def truncated_normal(
    stddev: Any = 1e-2, dtype: Any = None, lower: Any = -2.0, upper: Any = 2.0
) -> Initializer:
    """Return an initializer with normal numbers that are cut, then scaled by `stddev`.

    Reference: ``jax.nn.initializers.truncated_normal``.
    """

    def draw(key, shape, dtype):
        numbers = random.truncated_normal(key, lower, upper, shape, dtype)
        return numbers * jnp.array(stddev, dtype)

    return initializer("truncated_normal", dtype, draw)


def orthogonal(
    scale: Any = 1.0, column_axis: int = -1, dtype: Any = None
) -> Initializer:
    """Return an initializer with orthonormal columns (or rows), times `scale`.

    Args:
      scale: a number.
      column_axis: the axis of columns; the others together are the rows.
      dtype: by default that of floats.

    Raises:
      ValueError: from the initializer, for fewer than two axes.

    Source: Saxe, McClelland and Ganguli, *Exact solutions to the nonlinear dynamics
    of learning in deep linear networks*, 2013.
    Reference: ``jax.nn.initializers.orthogonal``.
    """

    def draw(key, shape, dtype):
        if len(shape) < 2:
            raise ValueError("orthogonal initializer requires at least a 2D shape")
        if 0 in shape:
            return jnp.zeros(shape, dtype)
        rest = list(shape)
        columns = rest.pop(canonicalize_axis(column_axis, len(rest)))
        rows = math.prod(rest)
        q = random.orthogonal(key, rows, (), dtype, columns).reshape(*rest, columns)
        return jnp.array(scale, dtype) * jnp.moveaxis(q, -1, column_axis)

    return initializer("orthogonal", dtype, draw)


def delta_orthogonal(
    scale: Any = 1.0, column_axis: int = -1, dtype: Any = None
) -> Initializer:
    """Return an initializer for convolutions: orthogonal in the middle, 0 elsewhere.

    Raises:
      ValueError: from the initializer, for shapes without 3 to 5 axes, or with more
        inputs than outputs.

    Source: Xiao and others, *Dynamical isometry and a mean field theory of CNNs*, 2018.
    Reference: ``jax.nn.initializers.delta_orthogonal``.
    """
    center = orthogonal(scale, column_axis, dtype)

    def draw(key, shape, dtype):
        if len(shape) not in (3, 4, 5):
            raise ValueError(
                "Delta orthogonal initializer requires a 3D, 4D or 5D shape."
            )
        if shape[-1] < shape[-2]:
            raise ValueError("`fan_in` must be less or equal than `fan_out`. ")
        middle = tuple((size - 1) // 2 for size in shape[:-2])
        matrix = center(key, shape[-2:], dtype)
        return jnp.zeros(shape, dtype).at[middle].set(matrix)

    return initializer("delta_orthogonal", dtype, draw)


def fans(shape, in_axis, out_axis, batch_axis):
    """Return how many inputs an output has, and how many outputs an input."""
    if in_axis == -2 and len(shape) <= 1:
        raise ValueError(
            f"Can't compute input and output sizes of a {len(shape)}-dimensional "
            "weights tensor with default in_axis. Must be at least 2D or specify "
            "in_axis explicitly."
        )
    axes = [[a] if isinstance(a, int) else a for a in (in_axis, out_axis, batch_axis)]
    inputs, outputs, batch = (
        math.prod(shape[canonicalize_axis(i, len(shape))] for i in some)
        for some in axes
    )
    window = math.prod(shape) / inputs / outputs / batch
    return inputs * window, outputs * window


FAN_MODES = {
    "fan_in": lambda fan_in, fan_out: fan_in,
    "fan_out": lambda fan_in, fan_out: fan_out,
    "fan_avg": lambda fan_in, fan_out: (fan_in + fan_out) / 2,
    "fan_geo_avg": lambda fan_in, fan_out: (fan_in * fan_out) ** 0.5,
}
# What cutting at two deviations leaves of the deviation: of reals, and of complex ones.
REAL_CUT, COMPLEX_CUT = 0.87962566103423978, 0.95311164380491208


def scaled_normal(key, shape, dtype, variance):
    """Draw normal numbers."""
    return random.normal(key, shape, dtype) * jnp.sqrt(variance)


def scaled_truncated(key, shape, dtype, variance):
    """Draw normal numbers, cut at two standard deviations."""
    if jnp.issubdtype(dtype, np.floating):
        numbers = random.truncated_normal(key, -2, 2, shape, dtype)
        return numbers * (jnp.sqrt(variance) / jnp.array(REAL_CUT, dtype))
    below, turn = _disc(key, shape, dtype)
    share = (1 - jnp.exp(jnp.array(-4, dtype))) * below.astype(dtype)
    numbers = jnp.sqrt(-jnp.log(1 - share)) * turn
    return numbers * (jnp.sqrt(variance) / jnp.array(COMPLEX_CUT, dtype))


def scaled_uniform(key, shape, dtype, variance):
    """Draw evenly from an interval around 0, or from a disc."""
    if jnp.issubdtype(dtype, np.floating):
        return random.uniform(key, shape, dtype, -1) * jnp.sqrt(3 * variance)
    below, turn = _disc(key, shape, dtype)
    return jnp.sqrt(2 * below).astype(dtype) * turn * jnp.sqrt(variance)


def _disc(key, shape, dtype):
    """Return numbers from 0 to 1, and complex numbers on the unit circle."""
    radius, angle = random.split(key)
    real = jnp.finfo(dtype).dtype
    turns = 2 * np.pi * random.uniform(angle, shape, real).astype(dtype)
    return random.uniform(radius, shape, real), jnp.exp(1j * turns)


WEIGHT_DISTRIBUTIONS = {
    "truncated_normal": scaled_truncated,
    "normal": scaled_normal,
    "uniform": scaled_uniform,
}


def variance_scaling(
    scale: Any,
    mode: str,
    distribution: str,
    in_axis: int | Sequence[int] = -2,
    out_axis: int | Sequence[int] = -1,
    batch_axis: int | Sequence[int] = (),
    dtype: Any = None,
) -> Initializer:
    """Return an initializer whose variance is `scale` over the number of neighbours.

    Args:
      scale: a number.
      mode: which number: ``"fan_in"``, ``"fan_out"``, ``"fan_avg"``, ``"fan_geo_avg"``.
      distribution: ``"truncated_normal"``, ``"normal"`` or ``"uniform"``.
      in_axis, out_axis: axes of inputs and outputs.
      batch_axis: axes that are neither, nor part of a window.
      dtype: by default that of floats.

    Raises:
      ValueError: from the initializer, for another mode or distribution, or a shape
        without the axis of inputs.

    Reference: ``jax.nn.initializers.variance_scaling``.
    """

    def draw(key, shape, dtype):
        sizes = fans(shape, in_axis, out_axis, batch_axis)
        if mode not in FAN_MODES:
            raise ValueError(
                f"invalid mode for variance scaling initializer: {mode}; there are "
                f"{', '.join(FAN_MODES)}"
            )
        if distribution not in WEIGHT_DISTRIBUTIONS:
            raise ValueError(
                "invalid distribution for variance scaling initializer: "
                f"{distribution}; there are {', '.join(WEIGHT_DISTRIBUTIONS)}"
            )
        if not (fan := FAN_MODES[mode](*sizes)):
            raise ZeroDivisionError(
                f"variance scaling initializer: weights of shape {shape} have no "
                f"{mode} to divide by"
            )
        variance = jnp.array(scale / fan, dtype)
        return WEIGHT_DISTRIBUTIONS[distribution](key, shape, dtype, variance)

    return initializer("variance_scaling", dtype, draw)


def named_scaling(name, scale, mode, distribution) -> Callable[..., Initializer]:
    """Return the function with these choices made, under a name."""

    def function(
        in_axis: int | Sequence[int] = -2,
        out_axis: int | Sequence[int] = -1,
        batch_axis: int | Sequence[int] = (),
        dtype: Any = None,
    ) -> Initializer:
        axes = in_axis, out_axis, batch_axis
        return variance_scaling(scale, mode, distribution, *axes, dtype)

    function.__name__ = function.__qualname__ = name
    choices = f"{scale}, {mode!r}, {distribution!r}"
    function.__doc__ = f"""Return ``variance_scaling({choices})`` with these axes.

    Args:
      in_axis, out_axis: axes of inputs and outputs.
      batch_axis: axes that are neither, nor part of a window.
      dtype: by default that of floats.

    Reference: ``jax.nn.initializers.{name}``.
    """
    return function


glorot_uniform = named_scaling("glorot_uniform", 1.0, "fan_avg", "uniform")
glorot_normal = named_scaling("glorot_normal", 1.0, "fan_avg", "truncated_normal")
lecun_uniform = named_scaling("lecun_uniform", 1.0, "fan_in", "uniform")
lecun_normal = named_scaling("lecun_normal", 1.0, "fan_in", "truncated_normal")
he_uniform = named_scaling("he_uniform", 2.0, "fan_in", "uniform")
he_normal = named_scaling("he_normal", 2.0, "fan_in", "truncated_normal")
xavier_uniform, xavier_normal = glorot_uniform, glorot_normal
kaiming_uniform, kaiming_normal = he_uniform, he_normal
