"""`odeint`: an adaptive Runge-Kutta pair, differentiated by its adjoint equation.

Source: J. R. Dormand and P. J. Prince, *A family of embedded Runge-Kutta formulae*
(1980); L. F. Shampine, *Some practical Runge-Kutta formulas* (1986), for the value in
the middle of a step; E. Hairer, S. P. Nørsett and G. Wanner, *Solving Ordinary
Differential Equations I*, II.4, for the length of steps.

Source: R. T. Q. Chen, Y. Rubanova, J. Bettencourt and D. Duvenaud, *Neural Ordinary
Differential Equations* (2018), appendix C.

Reference: ``jax.experimental.ode``.
"""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from minijax import closure_convert, custom_vjp, eval_shape, float0, lax, vjp, vmap
from minijax import numpy as jnp
from minijax.extend.arguments import is_arraylike
from minijax.extend.dtypes import dtype_name
from minijax.flatten_util import ravel_pytree
from minijax.tree_util import (
    keystr,
    tree_flatten,
    tree_leaves,
    tree_leaves_with_path,
    tree_map,
    tree_structure,
)
from minijax.typing import ArrayLike

# An embedded Runge-Kutta pair with adaptive steps and dense output.

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


class OdeintOptions(NamedTuple):
    """Relative and absolute tolerance, most tries for a time, longest step."""

    rtol: float
    atol: float
    mxstep: float
    hmax: float


class OdeintState(NamedTuple):
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


def initial_state(f, settings, y, t):
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
    return OdeintState(0, y, slope, t, dt, t, jnp.stack([y] * 5))


def advance_to(f, settings, state, time):
    """Go on until `time`, and return the state then and the value at that time."""

    def going(state):
        return (state.t < time) & (state.tries < settings.mxstep) & (state.dt > 0)

    state = state._replace(tries=jnp.zeros_like(state.tries))
    state = lax.while_loop(going, partial(_tried, f, settings), state)
    part = (time - state.start) / (state.t - state.start)
    return state, jnp.polyval(state.quartic, part.astype(state.y.dtype))


# `odeint`, differentiated by an equation of its own.


def odeint(
    func: Callable[..., Any],
    y0: Any,
    t: ArrayLike,
    *args: Any,
    rtol: float = 1.4e-8,
    atol: float = 1.4e-8,
    mxstep: float = np.inf,
    hmax: float = np.inf,
) -> Any:
    """Solve ``dy/dt = func(y, t, *args)`` from ``y(t[0]) = y0``.

    It can be differentiated backwards, with respect to `y0`, `t`, `args` and what
    `func` has in its closure.

    Args:
      func: a function of the value, the time and `args` that returns the derivative,
        a tree of the structure and the shapes of `y0`.
      y0: the first value, a tree of arrays of floats or complex numbers.
      t: the times that are asked for, floats of shape ``[n]``, each later than the one
        before.
      *args: trees of arrays and numbers.
      rtol, atol: how large the error of a step may be: relative to the value, and
        besides.
      mxstep: how many steps are tried at most from one time to the next. If they are
        not enough, the value is extrapolated.
      hmax: the longest step.

    Returns:
      The values at the times, a tree like `y0` with one more axis, of size n, in front.

    Raises:
      TypeError: if `y0` or `t` is not of floats, `args` have other leaves than arrays
        and numbers, or `func` returns another structure, shape or dtype than `y0`.
      ValueError: if `t` is not a vector with a time in it.

    Reference: ``jax.experimental.ode.odeint``.
    """
    times = _checked_times(t)
    for leaf in tree_leaves(args):
        if not is_arraylike(leaf):
            told = "The contents of odeint *args must be arrays or scalars"
            raise TypeError(f"{told}, but got {leaf!r}.")
    y0 = tree_map(jnp.asarray, y0)
    slopes = eval_shape(func, y0, times[0], *args)
    _check_slopes(y0, slopes)
    converted, hidden = closure_convert(func, y0, times[0], *args)
    y, unravel = ravel_pytree(y0)

    def slope(y, t, *args):
        found = ravel_pytree(converted(unravel(y), t, *args))[0]
        return found.astype(y.dtype)

    settings = OdeintOptions(rtol, atol, mxstep, hmax)
    return vmap(unravel)(_integral(slope, settings, y, times, *args, *hidden))


def _checked_times(t):
    times = jnp.asarray(t)
    if not jnp.issubdtype(times.dtype, jnp.floating):
        raise TypeError(f"t must be an array of floats, but got {t}.")
    if times.ndim != 1 or not times.size:
        raise ValueError(
            f"t of odeint must be a vector of times, got an array of shape "
            f"{times.shape}."
        )
    return times


def _check_slopes(y0, slopes):
    """Raise a TypeError unless slopes fit the values, and these are of floats.

    A tree of another structure fits if it has as many numbers: with y0 a list of two
    numbers, as in SciPy, func may return a vector of two.
    """
    tree, (found, other) = tree_structure(y0), tree_flatten(slopes)
    if tree != other:
        y, _ = ravel_pytree(y0)
        rates = eval_shape(lambda tree: ravel_pytree(tree)[0], slopes)
        if y.size != rates.size:
            raise TypeError(
                "func of odeint must return a tree of the structure of y0, which is "
                f"{tree}, or as many numbers, {y.size}; got {other}, {rates.size}."
            )
        y0, found = y, [rates]
    for (path, y), slope in zip(tree_leaves_with_path(y0), found):
        where = f"y0{keystr(path)}"
        if not jnp.issubdtype(y.dtype, jnp.inexact):
            raise TypeError(
                f"The values of odeint change continuously, but {where} is of dtype "
                f"{dtype_name(y.dtype)}. Convert it to float."
            )
        fits = jnp.result_type(y.dtype, slope.dtype) == y.dtype
        if y.shape != slope.shape or not fits:
            raise TypeError(
                f"func of odeint must return the derivative of {where} in its shape "
                f"and dtype, {dtype_name(y.dtype)}{[*y.shape]}, got "
                f"{dtype_name(slope.dtype)}{[*slope.shape]}."
            )


@partial(custom_vjp, nondiff_argnums=(0, 1))
def _integral(f, settings, y, times, *args):
    """Return the values at all times, one row each."""
    f = partial(_with_args, f, args)
    state = initial_state(f, settings, y, times[0])
    later = lax.scan(partial(advance_to, f, settings), state, times[1:])[1]
    return jnp.concatenate([y[None], later])


def _with_args(f, args, y, t):
    return f(y, t, *args)


def _integral_forwards(f, settings, y, times, *args):
    ys = _integral(f, settings, y, times, *args)
    return ys, (ys, times, args)


def _integral_backwards(f, settings, kept, ct):
    ys, times, args = kept

    def dynamics(state, t, *args):
        moving, of_moving = _moving(f, args)
        y_dot, pull = vjp(of_moving, state[0], -t, *moving)
        y_bar, t_bar, *bars = pull(state[1])
        return -y_dot, y_bar, t_bar, bars

    def interval(carry, i):
        y_bar, t_bar, bars = carry
        by_time = (f(ys[i], times[i], *args) @ ct[i]).real.astype(times.dtype)
        state = ys[i], y_bar, t_bar - by_time, bars
        ends = -jnp.stack([times[i], times[i - 1]])
        found = odeint(dynamics, state, ends, *args, **settings._asdict())
        _, y_bar, t_bar, bars = tree_map(lambda x: x[1], found)
        return (y_bar + ct[i - 1], t_bar, bars), by_time

    none = tree_map(jnp.zeros_like, _moving(f, args)[0])
    start = ct[-1], jnp.zeros_like(times[0]), none
    last = jnp.arange(len(times) - 1, 0, -1)
    (y_bar, t_bar, bars), by_times = lax.scan(interval, start, last)
    by_times = jnp.concatenate([t_bar[None], by_times[::-1]])
    return y_bar, by_times, *_with_zeros(args, bars)


def _is_moving(leaf):
    return jnp.issubdtype(jnp.asarray(leaf).dtype, jnp.inexact)


def _moving(f, args):
    """Return the floats among the leaves of `args`, and `f` as a function of them."""
    leaves, tree = tree_flatten(args)

    def of_moving(y, t, *moving):
        given = iter(moving)
        filled = [next(given) if _is_moving(leaf) else leaf for leaf in leaves]
        return f(y, t, *tree.unflatten(filled))

    return [leaf for leaf in leaves if _is_moving(leaf)], of_moving


def _with_zeros(args, bars):
    """Return cotangents of `args`, given those of floats; others have none."""
    leaves, tree = tree_flatten(args)
    given = iter(bars)
    return tree.unflatten(
        next(given) if _is_moving(leaf) else np.zeros(np.shape(leaf), float0)
        for leaf in leaves
    )


_integral.defvjp(_integral_forwards, _integral_backwards)
