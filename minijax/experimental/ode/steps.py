"""An embedded Runge-Kutta pair with adaptive steps and dense output.

Source: J. R. Dormand and P. J. Prince, *A family of embedded Runge-Kutta formulae*
(1980); L. F. Shampine, *Some practical Runge-Kutta formulas* (1986), for the value in
the middle of a step; E. Hairer, S. P. Nørsett and G. Wanner, *Solving Ordinary
Differential Equations I*, II.4, for the length of steps.

Reference: ``jax.experimental.ode``.
"""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.pytrees.functions import tree_map

# The last stage is at the new value, so its slope is the first one of the next step.
_STAGE_TIMES = [1 / 5, 3 / 10, 4 / 5, 8 / 9, 1, 1]
_STAGE_WEIGHTS = [
    [1 / 5, 0, 0, 0, 0, 0, 0],
    [3 / 40, 9 / 40, 0, 0, 0, 0, 0],
    [44 / 45, -56 / 15, 32 / 9, 0, 0, 0, 0],
    [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729, 0, 0, 0],
    [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656, 0, 0],
    [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0],
]
_FOURTH_ORDER = [
    1951 / 21600, 0, 22642 / 50085, 451 / 720, -12231 / 42400, 649 / 6300, 1 / 60,
]  # fmt: skip
_MIDDLE = [
    6025192743 / 60171106304, 0, 51252292925 / 130801643196,
    -2691868925 / 90256658398, 187940372067 / 3189068634112,
    -1776094331 / 39487288512, 11237099 / 470086768,
]  # fmt: skip
_ERROR = np.subtract(_STAGE_WEIGHTS[-1], _FOURTH_ORDER)


class Settings(NamedTuple):
    """Relative and absolute tolerance, most tries for a time, longest step."""

    rtol: float
    atol: float
    mxstep: float
    hmax: float


class State(NamedTuple):
    """How far an integration has come.

    Attributes:
      tries: number of tries since the last time that was asked for.
      y: the value, a vector, and `slope`, its derivative.
      t: the time, and `dt`, the length of the next step.
      start: when the last step began, and `quartic`, its polynomial: coefficients of
        the powers of ``(time - start) / (t - start)``, the highest first.
    """

    tries: Any
    y: Any
    slope: Any
    t: Any
    dt: Any
    start: Any
    quartic: Any


def _slopes(f, y, slope, t, dt):
    """Return the slopes at the seven stages of a step, one row each."""
    nodes = jnp.array(_STAGE_TIMES, dt.dtype)
    weights = jnp.array(_STAGE_WEIGHTS, y.dtype)

    def stage(i, found):
        at = y + dt.astype(y.dtype) * (weights[i] @ found)
        return found.at[i + 1].set(f(at, t + dt * nodes[i]))

    found = jnp.zeros((len(_STAGE_TIMES) + 1, y.size), y.dtype).at[0].set(slope)
    return lax.fori_loop(0, len(_STAGE_TIMES), stage, found)


def _quartic(y, end, middle, first, last):
    """Return the polynomial with these values at 0, 1 and 1/2, and slopes at 0, 1."""
    fourth = 2 * (last - first) - 8 * (y + end) + 16 * middle
    third = 5 * first - 3 * last + 18 * y + 14 * end - 32 * middle
    second = last - 4 * first - 11 * y - 5 * end + 16 * middle
    return jnp.stack([fourth, third, second, first, y])


def _growth(ratio):
    """Return by what to multiply a step whose error is so many times the tolerance."""
    least = jnp.where(ratio < 1, 1, 0.2)
    wanted = 0.9 * jnp.where(ratio == 0, 1, ratio) ** -0.2
    return jnp.where(ratio == 0, 10, jnp.clip(wanted, least, 10))


def _tried(f, settings, state):
    """Return the state after one more try, whether its error is allowed or not."""
    y, dtype = state.y, state.y.dtype
    slopes = _slopes(f, *state[1:5])
    dt = state.dt.astype(dtype)
    end, middle, error = (
        dt * (jnp.array(weights, dtype) @ slopes)
        for weights in (_STAGE_WEIGHTS[-1], _MIDDLE, _ERROR)
    )
    end, middle = y + end, y + middle
    allowed = settings.atol + settings.rtol * jnp.maximum(abs(y), abs(end))
    ratio = jnp.sqrt(jnp.mean(abs(error / allowed) ** 2))
    following = jnp.clip(state.dt * _growth(ratio), 0, settings.hmax)
    stayed = state._replace(tries=state.tries + 1, dt=following.astype(state.dt.dtype))
    moved = stayed._replace(
        y=end,
        slope=slopes[-1],
        t=state.t + state.dt,
        start=state.t,
        quartic=_quartic(y, end, middle, dt * slopes[0], dt * slopes[-1]),
    )
    return tree_map(partial(jnp.where, ratio <= 1), moved, stayed)


def first_state(f, settings, y, t):
    """Return the state before the first step, whose length is a guess."""
    slope = f(y, t)
    allowed = settings.atol + abs(y) * settings.rtol
    size, speed = jnp.linalg.norm(y / allowed), jnp.linalg.norm(slope / allowed)
    still = (size < 1e-5) | (speed < 1e-5)
    short = jnp.where(still, 1e-6, 0.01 * size / jnp.where(still, 1, speed))
    bent = f(y + short.astype(y.dtype) * slope, t + short) - slope
    bend = jnp.linalg.norm(bent / allowed) / short
    most = jnp.maximum(speed, bend)
    by_bend = (0.01 / jnp.where(most > 1e-15, most, 1)) ** 0.2
    long = jnp.where(most > 1e-15, by_bend, jnp.maximum(1e-6, short * 1e-3))
    dt = jnp.clip(jnp.minimum(100 * short, long), 0, settings.hmax).astype(t.dtype)
    return State(0, y, slope, t, dt, t, jnp.stack([y] * 5))


def value_at(f, settings, state, time):
    """Go on until `time`, and return the state then and the value at that time."""

    def going(state):
        return (state.t < time) & (state.tries < settings.mxstep) & (state.dt > 0)

    state = state._replace(tries=jnp.zeros_like(state.tries))
    state = lax.while_loop(going, partial(_tried, f, settings), state)
    part = (time - state.start) / (state.t - state.start)
    return state, jnp.polyval(state.quartic, part.astype(state.y.dtype))
