"""Conjugate gradients, BiCGSTAB and GMRES, for matrices that are functions.

Reference: ``jax.scipy.sparse.linalg``.
"""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Callable
from typing import Any

from minijax import lax
from minijax import numpy as jnp
from minijax.factorizations.least_squares import lstsq
from minijax.own_rules.implicit_solutions import custom_linear_solve
from minijax.pytrees.functions import tree_map
from minijax.pytrees.raveling import ravel_pytree


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
