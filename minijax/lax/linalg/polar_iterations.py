"""Polar factors by a dynamically weighted Halley iteration (QDWH).

Reference: ``jax.lax.linalg.qdwh``; Y. Nakatsukasa, Z. Bai and F. Gygi, *Optimizing
Halley's iteration for computing the matrix polar decomposition* (2010).
"""

# Made from chapters/31_linear_algebra_rest.md by `make chapter`;
# edit the chapter, not this file.

from typing import Any

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.arrays.checks import check_rank
from minijax.core import Array
from minijax.factorizations import cholesky as _cholesky
from minijax.factorizations import orthogonal_factors as _orthogonal
from minijax.factorizations.matrices import adjoint, identity_like, symmetrized
from minijax.factorizations.triangular import triangular_solve
from minijax.typing import ArrayLike

FOR_QR = 100  # from which weight c on a Cholesky factor would lose too many digits


def _weights(bound, most):
    """Return the weights of the steps, from a bound of the least singular value."""
    weights, near = [], 5 * bound
    while bound + near < 1 and len(weights) < most:
        square = bound * bound
        d = (4 * (1 / square - 1) / square) ** (1 / 3)
        root = (1 + d) ** 0.5
        a = root + (2 - d + 2 * (2 - square) / (square * root)) ** 0.5
        b = (a - 1) ** 2 / 4
        c = a + b - 1
        bound = bound * (a + b * square) / (1 + c * square)
        weights.append((a, b, c))
    return weights


def _step_by_qr(u, a, b, c):
    one = identity_like(adjoint(u) @ u)
    tall = jnp.concatenate([c**0.5 * u, one])
    q, _ = _orthogonal.qr(tall, full_matrices=False)
    m = u.shape[0]
    return b / c * u + (a - b / c) / c**0.5 * (q[:m] @ adjoint(q[m:]))


def _step_by_cholesky(u, a, b, c):
    gram = adjoint(u) @ u
    factor = _cholesky.cholesky(identity_like(gram) + c * gram)
    how = {"left_side": True, "lower": True, "conjugate_a": True}
    z = triangular_solve(factor, u.T, **how)
    z = triangular_solve(factor, z.conj(), transpose_a=True, **how)
    return b / c * u + (a - b / c) * adjoint(z)


def qdwh(
    x: ArrayLike,
    *,
    is_hermitian: bool = False,
    max_iterations: int | None = None,
    eps: float | None = None,
    dynamic_shape: Any = None,
) -> tuple[Array, Array, Array, Array]:
    """Return the polar factors of a matrix, by an iteration of products and QR.

    Args:
      x: a matrix of shape ``[m, n]``, m at least n.
      is_hermitian: not used.
      max_iterations: how many steps there are at most, 10 by default.
      eps: where to stop; by default that of the dtype.
      dynamic_shape: how many rows and columns of `x` count; the others are taken for
        zeros.

    Returns:
      A tuple of u, with orthonormal columns, and the Hermitian h with ``x = u @ h``;
      how many steps were taken, and whether they were enough.

    Raises:
      ValueError: for a matrix that is wider than it is high.

    Reference: ``jax.lax.linalg.qdwh``.
    """
    x = jnp.asarray(x)
    check_rank("qdwh", 2, x)
    if x.shape[0] < x.shape[1]:
        raise ValueError("The input matrix of shape M x N must have M >= N.")
    if dynamic_shape is not None:
        rows, columns = (jnp.arange(size) for size in x.shape)
        m, n = dynamic_shape
        x = jnp.where((rows[:, None] < m) & (columns < n), x, 0)
    most = 10 if max_iterations is None else max_iterations
    eps = float(jnp.finfo(x.dtype).eps) if eps is None else eps
    norms = [abs(x).sum(axis).max(initial=0) for axis in (0, 1)]
    scale = jnp.where(norms[0] == 0, 1, lax.rsqrt(norms[0]) * lax.rsqrt(norms[1]))
    u = x * scale.astype(x.dtype)
    weights, far, enough = _weights(eps, most), True, np.cbrt(5 * eps)
    for a, b, c in weights:
        by_qr, before = c > FOR_QR, u
        u = (_step_by_qr if by_qr else _step_by_cholesky)(u, a, b, c)
        far = by_qr or jnp.linalg.norm(u - before) > enough

    def go_on(state):
        count, _, far = state
        return far & (count < most)

    def step(state):
        count, before, _ = state
        u = _step_by_cholesky(before, 3.0, 1.0, 3.0)
        return count + 1, u, jnp.linalg.norm(u - before) > enough

    state = jnp.asarray(len(weights)), u, jnp.asarray(far)
    count, u, far = lax.while_loop(go_on, step, state)
    u = 1.5 * u - 0.5 * u @ (adjoint(u) @ u)
    return u, symmetrized(adjoint(u) @ x), count, ~far
