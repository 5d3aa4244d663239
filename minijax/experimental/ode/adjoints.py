"""`odeint`, differentiated by an equation of its own.

Source: R. T. Q. Chen, Y. Rubanova, J. Bettencourt and D. Duvenaud, *Neural Ordinary
Differential Equations* (2018), appendix C.

Reference: ``jax.experimental.ode``.
"""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.arrays.dtypes import float0, name_of
from minijax.batching.trace import vmap
from minijax.experimental.ode.steps import Settings, first_state, value_at
from minijax.jaxprs.staging_api import eval_shape
from minijax.lax.promotion import is_arraylike
from minijax.own_rules.closures import closure_convert
from minijax.own_rules.cotangent_rules import custom_vjp
from minijax.pytrees.functions import tree_map
from minijax.pytrees.key_paths import keystr
from minijax.pytrees.raveling import ravel_pytree
from minijax.pytrees.treedefs import (
    tree_flatten,
    tree_leaves,
    tree_leaves_with_path,
    tree_structure,
)
from minijax.reverse.backwards import vjp
from minijax.typing import ArrayLike


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

    settings = Settings(rtol, atol, mxstep, hmax)
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
    """Raise a TypeError unless slopes fit the values, and these are of floats."""
    tree, (found, other) = tree_structure(y0), tree_flatten(slopes)
    if tree != other:
        raise TypeError(
            "func of odeint must return a tree of the structure of y0, which is "
            f"{tree}, got {other}."
        )
    for (path, y), slope in zip(tree_leaves_with_path(y0), found):
        where = f"y0{keystr(path)}"
        if not jnp.issubdtype(y.dtype, jnp.inexact):
            raise TypeError(
                f"The values of odeint change continuously, but {where} is of dtype "
                f"{name_of(y.dtype)}. Convert it to float."
            )
        fits = jnp.result_type(y.dtype, slope.dtype) == y.dtype
        if y.shape != slope.shape or not fits:
            raise TypeError(
                f"func of odeint must return the derivative of {where} in its shape "
                f"and dtype, {name_of(y.dtype)}{[*y.shape]}, got "
                f"{name_of(slope.dtype)}{[*slope.shape]}."
            )


@partial(custom_vjp, nondiff_argnums=(0, 1))
def _integral(f, settings, y, times, *args):
    """Return the values at all times, one row each."""
    f = partial(_with_args, f, args)
    state = first_state(f, settings, y, times[0])
    later = lax.scan(partial(value_at, f, settings), state, times[1:])[1]
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
