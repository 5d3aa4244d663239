"""Iterative solvers, minimization (BFGS), and the trapezoidal rule.

Source: J. Nocedal and S. Wright, *Numerical Optimization* (2006), chapters 3 and 6.
Reference: ``jax.scipy.optimize.minimize``.

References: ``jax.scipy.sparse.linalg``, ``jax.scipy.integrate.trapezoid``.
"""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from minijax import lax, value_and_grad
from minijax import numpy as jnp
from minijax.core import Array
from minijax.flatten_util import ravel_pytree
from minijax.lax import custom_linear_solve
from minijax.numpy.linalg import lstsq
from minijax.tree_util import tree_map
from minijax.typing import ArrayLike

# Conjugate gradients, BiCGSTAB and GMRES, for matrices that are functions.


def _as_function(matrix):
    if matrix is None:
        return lambda x: x
    if callable(matrix):
        return matrix
    if jnp.ndim(matrix) != 2 or jnp.shape(matrix)[0] != jnp.shape(matrix)[1]:
        raise ValueError(
            "linear operator must be a square matrix, but has shape: "
            f"{jnp.shape(matrix)}"
        )
    return lambda x: matrix @ x


def _dot(x, y):
    return jnp.vdot(x, y)


def _steps_of_cg(multiply, b, x, prepare, enough, limit):
    def going(state):
        _, r, _, _, k = state
        return (_dot(r, r).real > enough) & (k < limit)

    def step(state):
        x, r, gamma, p, k = state
        product = multiply(p)
        alpha = gamma / _dot(p, product)
        x, r = x + alpha * p, r - alpha * product
        z = prepare(r)
        new = _dot(r, z)
        return x, r, new, z + new / gamma * p, k + 1

    r = b - multiply(x)
    z = prepare(r)
    return lax.while_loop(going, step, (x, r, _dot(r, z), z, 0))[0]


def _steps_of_bicgstab(multiply, b, x, prepare, enough, limit):
    first = b - multiply(x)

    def going(state):
        _, r, *_, k = state
        return (_dot(r, r).real > enough) & (k >= 0) & (k < limit)

    def step(state):
        x, r, alpha, omega, rho, p, q, k = state
        new = _dot(first, r)
        p = r + new / rho * alpha / omega * (p - omega * q)
        toward = prepare(p)
        q = multiply(toward)
        alpha = new / _dot(first, q)
        s = r - alpha * q
        done = _dot(s, s).real < enough
        further = prepare(s)
        t = multiply(further)
        omega = _dot(t, s) / _dot(t, t)
        near = x + alpha * toward
        x = jnp.where(done, near, near + omega * further)
        r = jnp.where(done, s, s - omega * t)
        stuck = (omega == 0) | (alpha == 0) | (new == 0)
        return x, r, alpha, omega, new, p, q, jnp.where(stuck, -1, k + 1)

    one = jnp.ones((), b.dtype)
    start = x, first, one, one, one, 0 * b, 0 * b, 0
    return lax.while_loop(going, step, start)[0]


def _steps_of_gmres(restart):
    def iterate(multiply, b, x, prepare, enough, limit):
        count, n = min(restart, b.size), b.size

        def residual(x):
            return prepare(b - multiply(x))

        def column(k, state):
            basis, table = state
            w = prepare(multiply(basis[:, k]))
            parts = basis.conj().T @ w
            w = w - basis @ parts
            again = basis.conj().T @ w
            w, parts = w - basis @ again, parts + again
            size = jnp.sqrt(_dot(w, w).real)
            tiny = size <= 10 * jnp.finfo(b.dtype).eps * jnp.sqrt(abs(parts) ** 2).sum()
            size = size.astype(b.dtype)
            unit = jnp.where(tiny, 0, w / jnp.where(tiny, 1, size))
            parts = parts.at[k + 1].set(jnp.where(tiny, 0, size))
            return basis.at[:, k + 1].set(unit), table.at[:, k].set(parts)

        def cycle(state):
            x, r, k = state
            size = jnp.sqrt(_dot(r, r).real).astype(b.dtype)
            basis = jnp.zeros((n, count + 1), b.dtype).at[:, 0].set(r / size)
            table = jnp.zeros((count + 1, count), b.dtype)
            basis, table = lax.fori_loop(0, count, column, (basis, table))
            target = jnp.zeros(count + 1, b.dtype).at[0].set(size)
            x = x + basis[:, :count] @ lstsq(table, target)[0]
            return x, residual(x), k + 1

        def going(state):
            _, r, k = state
            return (_dot(r, r).real > enough) & (k < limit)

        return lax.while_loop(going, cycle, (x, residual(x), 0))[0]

    return iterate


def _solved(iterate, A, b, x0, tol, atol, maxiter, M, symmetric):
    multiply, prepare = _as_function(A), _as_function(M)
    x0 = tree_map(jnp.zeros_like, b) if x0 is None else x0
    start, _ = ravel_pytree(x0)
    limit = 10 * start.size if maxiter is None else maxiter

    def solve(matvec, b):
        flat, back = ravel_pytree(b)

        def of(function):
            return lambda x: ravel_pytree(function(back(x)))[0]

        enough = jnp.maximum(tol**2 * _dot(flat, flat).real, atol**2)
        first = start.astype(flat.dtype)
        return back(iterate(of(matvec), flat, first, of(prepare), enough, limit))

    how: dict = {"transpose_solve": solve, "symmetric": symmetric}
    return custom_linear_solve(multiply, b, solve, **how)


def cg(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
) -> tuple[Any, None]:
    """Solve ``A x = b`` by conjugate gradients.

    Args:
      A: a matrix, or a function that multiplies with it; Hermitian positive definite.
      b: the right side, an array or a pytree.
      x0: where to begin, zeros by default.
      tol, atol: the solution is good when the residual is not longer than the larger
        one of ``tol * norm(b)`` and `atol`.
      maxiter: the greatest number of steps; ten times the unknowns by default.
      M: an approximate inverse, like `A`.

    Returns:
      The solution, and None.

    Reference: ``jax.scipy.sparse.linalg.cg``.
    """
    return _solved(_steps_of_cg, A, b, x0, tol, atol, maxiter, M, True), None


def bicgstab(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
) -> tuple[Any, None]:
    """Solve ``A x = b`` by BiCGSTAB, for any matrix; arguments as in `cg`.

    Reference: ``jax.scipy.sparse.linalg.bicgstab``.
    """
    return _solved(_steps_of_bicgstab, A, b, x0, tol, atol, maxiter, M, False), None


def gmres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    restart: int = 20,
    maxiter: int | None = None,
    M: Any = None,
    solve_method: str = "batched",
) -> tuple[Any, None]:
    """Solve ``A x = b`` by GMRES, for any matrix; arguments as in `cg`.

    Args:
      restart: the number of directions after which to begin anew.
      maxiter: the greatest number of such rounds.
      solve_method: ``"batched"`` or ``"incremental"``, which are the same here.

    Reference: ``jax.scipy.sparse.linalg.gmres``.
    """
    if solve_method not in ("batched", "incremental"):
        raise ValueError(
            f"invalid solve_method {solve_method}, must be either 'incremental' or "
            "'batched'"
        )
    iterate: Callable = _steps_of_gmres(restart)
    return _solved(iterate, A, b, x0, tol, atol, maxiter, M, False), None


# Minimization by the method of Broyden, Fletcher, Goldfarb and Shanno.


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


# The trapezoidal rule.


def trapezoid(
    y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1
) -> Array:
    """Return integrals along an axis by the trapezoidal rule, as `jnp.trapezoid`.

    Reference: ``jax.scipy.integrate.trapezoid``.
    """
    return jnp.trapezoid(y, x, dx, axis)
