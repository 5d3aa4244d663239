"""Minimization by the method of Broyden, Fletcher, Goldfarb and Shanno.

Source: J. Nocedal and S. Wright, *Numerical Optimization* (2006), chapters 3 and 6.
Reference: ``jax.scipy.optimize.minimize``.
"""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.core import Array
from minijax.reverse.gradients import value_and_grad


class OptimizeResults(NamedTuple):
    """What `minimize` has found.

    `x` is the place, `fun` the value there, `jac` the gradient, `hess_inv` the estimate
    of the inverse Hessian. `status` is 0 after `success`, 1 after too many steps, and 3
    if no step went down. `nit` counts steps, `nfev` and `njev` evaluations.

    Reference: ``jax.scipy.optimize.OptimizeResults``.
    """

    x: Array
    success: Any
    status: Any
    fun: Array
    jac: Array
    hess_inv: Any
    nfev: Any
    njev: Any
    nit: Any


def _step_length(function, x, f, slope, direction):
    """Return a step for Wolfe's conditions, what is there, and counts."""

    def going(state):
        *_, count, done = state
        return ~done & (count < 40)

    def halve(state):
        low, high, step, *_, count, _ = state
        new, gradient = function(x + step * direction)
        fell = new <= f + 1e-4 * step * slope
        flat = gradient @ direction >= 0.9 * slope
        low, high = jnp.where(fell, step, low), jnp.where(fell, high, step)
        middle = jnp.where(high < np.inf, (low + high) / 2, 2 * step)
        done = fell & flat
        return low, high, jnp.where(done, step, middle), new, gradient, count + 1, done

    zero = jnp.zeros((), x.dtype)
    start = zero, zero + np.inf, zero + 1, f, x, 0, jnp.array(False)
    *_, step, new, gradient, count, done = lax.while_loop(going, halve, start)
    return step, new, gradient, count, done


def _bfgs(function, x, gtol, maxiter, norm):
    one = jnp.eye(x.size, dtype=x.dtype)

    def going(state):
        _, _, gradient, _, steps, _, failed = state
        return (jnp.linalg.norm(gradient, norm) >= gtol) & (steps < maxiter) & ~failed

    def step(state):
        x, f, gradient, inverse, steps, calls, _ = state
        direction = -(inverse @ gradient)
        slope = gradient @ direction
        length, new_f, new, count, done = _step_length(function, x, f, slope, direction)
        moved, bent = length * direction, new - gradient
        rho = 1 / (bent @ moved)
        left = one - rho * jnp.outer(moved, bent)
        better = left @ inverse @ left.T + rho * jnp.outer(moved, moved)
        inverse = jnp.where(done & jnp.isfinite(rho), better, inverse)
        kept = [
            jnp.where(done, a, b)
            for a, b in ((x + moved, x), (new_f, f), (new, gradient))
        ]
        return *kept, inverse, steps + 1, calls + count, ~done

    f, gradient = function(x)
    start = x, f, gradient, one, 0, 1, jnp.array(False)
    return lax.while_loop(going, step, start)


def minimize(
    fun: Callable,
    x0: Any,
    args: tuple = (),
    *,
    method: str,
    tol: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> OptimizeResults:
    """Find a place where a function is smallest.

    Args:
      fun: function ``fun(x, *args)`` of a vector that returns a number.
      x0: where to begin, a vector.
      args: further arguments.
      method: ``"BFGS"``.
      tol: how long the gradient may be in the end; 1e-5 by default.
      options: a dict with ``gtol`` in place of `tol`, ``maxiter`` and ``norm``.

    Raises:
      ValueError: for another method.
      TypeError: for `args` that are no tuple.

    Reference: ``jax.scipy.optimize.minimize``.
    """
    if not isinstance(args, tuple):
        raise TypeError(f"args argument to minimize must be a tuple, got {args}")
    if method.lower() != "bfgs":
        raise ValueError(f"Method {method} not recognized; the one there is is 'BFGS'.")
    given = dict(options or {})
    unknown = {*given} - {"gtol", "maxiter", "norm", "line_search_maxiter"}
    if unknown:
        raise TypeError(f"minimize has no options {sorted(unknown)} for BFGS.")
    x = jnp.asarray(x0)
    limit = given.get("maxiter") or x.size * 200
    gtol = given.get("gtol", 1e-5 if tol is None else tol)
    function = value_and_grad(lambda x: fun(x, *args))
    found = _bfgs(function, x, gtol, limit, given.get("norm", np.inf))
    x, f, gradient, inverse, steps, calls, failed = found
    converged = jnp.linalg.norm(gradient, given.get("norm", np.inf)) < gtol
    status = jnp.where(converged, 0, jnp.where(failed, 3, 1))
    result = x, converged, status, f, gradient, inverse, calls, calls, steps
    return OptimizeResults(*result)
