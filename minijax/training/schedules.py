"""Schedules: functions from the number of a step to its size.

Reference: ``jax.example_libraries.optimizers``.
"""

# Made from chapters/39_training_rest.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Callable
from typing import Any

from minijax import numpy as jnp


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
