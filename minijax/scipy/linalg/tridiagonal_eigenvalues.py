"""Eigenvalues and eigenvectors of Hermitian tridiagonal matrices.

Reference: ``jax.scipy.linalg.eigh_tridiagonal``; W. Barth, R. Martin and J. Wilkinson,
*Calculation of the eigenvalues of a symmetric tridiagonal matrix by the method of
bisection* (1967); Golub and Van Loan, *Matrix Computations*, sections 8.4 and 8.2.2.
"""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

from typing import Any

import numpy as np

from minijax import lax, random
from minijax import numpy as jnp
from minijax.core import Array
from minijax.jitting.api import jit
from minijax.lax.linalg.tridiagonal_systems import tridiagonal_solve
from minijax.typing import ArrayLike


def _targets(select, select_range, n):
    """Return which eigenvalues are wanted, by their places in ascending order."""
    if select == "a":
        return np.arange(n, dtype="int32")
    if select == "v":
        raise NotImplementedError("eigh_tridiagonal(..., select='v') is not supported.")
    if select != "i":
        raise ValueError(f"select must be 'a', 'i' or 'v', got {select!r}.")
    if select_range is None:
        raise ValueError("for select='i', select_range must be specified.")
    first, last = select_range
    if first > last:
        raise ValueError("Got empty index range in select_range.")
    return np.arange(first, last + 1, dtype="int32")


def _count_below(alpha, squares, least, x):
    """Count the eigenvalues below each `x`: the negative pivots of an elimination."""

    def step(pivot, numbers):
        a, square = numbers
        pivot = a - square / pivot - x
        negative = pivot <= least
        return jnp.where(negative, jnp.minimum(pivot, -least), pivot), negative

    start = alpha[0] - x
    start = jnp.where(abs(start) <= least, -least, start)
    _, negative = lax.scan(step, start, (alpha[1:], squares))
    return (start < 0).astype("int32") + negative.sum(0, dtype="int32")


@jit
def _bisected(alpha, sizes, targets, tol):
    numbers, n = jnp.finfo(alpha.dtype), len(alpha)
    squares = sizes * sizes
    radius = jnp.pad(sizes, (1, 0)) + jnp.pad(sizes, (0, 1))
    low, high = (alpha - radius).min(), (alpha + radius).max()
    norm = jnp.maximum(abs(low), abs(high))
    least = numbers.tiny * (1 + numbers.eps) * jnp.maximum(1, squares.max(initial=0))
    slack = 2.1 * n * numbers.eps * norm + 4.2 * least
    ends = [jnp.full(targets.shape, end) for end in (low - slack, high + slack)]
    enough = jnp.maximum(numbers.eps * norm, tol)

    def go_on(state):
        count, low, high = state
        return (count <= numbers.nmant) & ((high - low).max() > enough)

    def halve(state):
        count, low, high = state
        middle = (low + high) / 2
        above = _count_below(alpha, squares, least, middle) > targets
        low = jnp.where(above, low, middle)
        return count + 1, low, jnp.where(above, middle, high)

    _, low, high = lax.while_loop(go_on, halve, (0, *ends))
    return (low + high) / 2


@jit
def _vectors(alpha, beta, values, key):
    """Return eigenvectors in rows, by inverse iteration from random ones."""
    (k,), n = values.shape, len(alpha)
    norm = jnp.maximum(abs(values[0]), abs(values[-1]))
    close = jnp.diff(values) < 1e-3 * norm
    cluster = jnp.cumsum(jnp.pad(~close, (1, 0)))
    shifted = (alpha - values[:, None]).astype(beta.dtype)
    low, up = jnp.pad(beta.conj(), (1, 0)), jnp.pad(beta, (0, 1))
    low, up = (jnp.broadcast_to(x, (k, n)) for x in (low, up))

    def straighten(i, v):
        kin = (cluster == cluster[i]) & (jnp.arange(k) < i)
        row = v[i]
        for _ in range(2):  # once is not enough
            row = row - jnp.where(kin, v.conj() @ row, 0) @ v
        return v.at[i].set(row / jnp.linalg.norm(row))

    def step(state):
        count, v, now, _ = state
        v = tridiagonal_solve(low, shifted, up, v[..., None], perturb_singular=True)
        size = jnp.linalg.norm(v[..., 0], axis=-1)
        v = v[..., 0] / size[:, None]
        return count + 1, lax.fori_loop(0, k, straighten, v), size, now

    def go_on(state):
        count, _, now, before = state
        return (count < 5) & (now >= 1.1 * before).any()

    start = random.normal(key, (k, n), dtype=alpha.dtype).astype(beta.dtype)
    start = start / jnp.linalg.norm(start, axis=-1, keepdims=True)
    sizes = jnp.ones_like(values), jnp.zeros_like(values)
    return lax.while_loop(go_on, step, (0, start, *sizes))[1]


def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: tuple[float, float] | None = None,
    tol: float | None = None,
    key: Array | None = None,
) -> Any:
    """Return eigenvalues and eigenvectors of a Hermitian tridiagonal matrix.

    Args:
      d: the diagonal, of shape ``[n]``; of complex numbers the real parts are read.
      e: the diagonal above, of shape ``[n - 1]`` and the same dtype.
      eigvals_only: whether to leave the vectors out.
      select: ``"a"`` for all eigenvalues, ``"i"`` for those at some places of the
        ascending order.
      select_range: the first and the last of these places.
      tol: how exact the eigenvalues have to be; by default as exact as can be.
      key: random key, from which the iteration for the vectors starts.

    Returns:
      The eigenvalues in ascending order, or a tuple of them and the vectors in columns.

    Raises:
      TypeError: for dtypes that are not the same, or have neither 32 nor 64 bits.
      ValueError: for another `select`, or no range for it.
      NotImplementedError: for ``select="v"``.

    Reference: ``jax.scipy.linalg.eigh_tridiagonal``.
    """
    alpha, beta = jnp.asarray(d), jnp.asarray(e)
    if alpha.dtype != beta.dtype:
        raise TypeError(
            "diagonal and off-diagonal values must have same dtype, got "
            f"{alpha.dtype} and {beta.dtype}"
        )
    if alpha.dtype.name not in ("float32", "float64", "complex64", "complex128"):
        raise TypeError(
            "eigh_tridiagonal takes numbers of 32 and 64 bits, got dtype "
            f"{alpha.dtype.name}."
        )
    n = len(alpha)
    if n <= 1:
        one = jnp.eye(n, dtype=alpha.dtype)
        return alpha.real if eigvals_only else (alpha.real, one)
    targets = _targets(select, select_range, n)
    values = _bisected(alpha.real, abs(beta), targets, 0 if tol is None else tol)
    if eigvals_only:
        return values
    key = random.key(42) if key is None else key
    return values, _vectors(alpha.real, beta, values, key).T
