"""The QR factorization: orthonormal columns times an upper triangle.

Reference: ``jax.lax.linalg.qr``; S. Walter and L. Lehmann, *Algorithmic differentiation
of linear algebra functions* (2010), section 3.1.
"""

# Made from chapters/31_linear_algebra.md by `make chapter`;
# edit the chapter, not this file.

from typing import Any

import numpy as np

from minijax import numpy as jnp
from minijax.arrays.array import primitive_rules
from minijax.core import Primitive
from minijax.factorizations.elimination import lu_p, solved_by_factors
from minijax.factorizations.lapack import factored
from minijax.factorizations.matrices import (
    adjoint,
    check_matrices,
    common_columns,
    identity_like,
    lower_triangle,
)
from minijax.factorizations.triangular import triangular_solve
from minijax.forward.rules import jvp_rules
from minijax.kernels.program_steps import cpu_rules
from minijax.lax.linalg.on_cpu import qr_on_cpu
from minijax.lax.linalg.reflections import pivoted_factors
from minijax.typing import ArrayLike


def _qr_shape(x, *, full_matrices, pivoting, **how):
    check_matrices("qr", x)
    *batch, m, n = x.shape
    k = m if full_matrices else min(m, n)
    order = [x.update(shape=(*batch, n), dtype=np.dtype("int32"))] * pivoting
    return [x.update(shape=(*batch, m, k)), x.update(shape=(*batch, k, n)), *order]


def _qr(xp, x, *, full_matrices, pivoting, **how):
    if pivoting:
        return factored(lambda x: pivoted_factors(x, full_matrices), x)
    mode = "complete" if full_matrices else "reduced"
    return factored(lambda x: [*xp.linalg.qr(x, mode)], x)


def thin_qr_jvp(q, r, x_dot):
    """Return the tangents of q and r, for as many columns of q as r has rows."""
    ratio = triangular_solve(r, x_dot)
    inner = adjoint(q) @ ratio
    below = lower_triangle(inner, -1)
    skew = below - adjoint(below)
    turn = identity_like(inner) * (inner - inner.real.astype(inner.dtype))
    skew = skew + turn  # of complex matrices: r keeps a real diagonal
    return q @ (skew - inner) + ratio, (inner - skew) @ r


def qr_jvp(primals, tangents, **how):
    """Return the tangents of both factors; of wide matrices by their square part."""
    [x], [x_dot] = primals, tangents
    q, r, *order = qr_p.bind(x, **how)
    for places in order:
        x, x_dot = (
            jnp.take_along_axis(y, places[..., None, :], -1, mode="clip")
            for y in (x, x_dot)
        )
    return [q, r, *order], [*_factors_dot(q, r, x, x_dot), *[None] * len(order)]


def _factors_dot(q, r, x, x_dot):
    *_, m, n = x_dot.shape
    if m < n:
        q_dot, left = thin_qr_jvp(q, r[..., :, :m], x_dot[..., :, :m])
        right = adjoint(q_dot) @ x[..., :, m:] + adjoint(q) @ x_dot[..., :, m:]
        return q_dot, jnp.concatenate([left, right], -1)
    q_dot, r_dot = thin_qr_jvp(q[..., :, :n], r[..., :n, :], x_dot)
    if q.shape[-1] > n:
        q_dot = jnp.concatenate([q_dot, _completion_dot(q, q_dot)], -1)
        r_dot = jnp.concatenate([r_dot, jnp.zeros_like(r[..., n:, :])], -2)
    return q_dot, r_dot


def _completion_dot(q, q_dot):
    """Return the tangents of the columns that complete a tall q (arXiv:2409.13374)."""
    n = q_dot.shape[-1]
    thin, more = q[..., :, :n], q[..., :, n:]
    square = thin[..., :n, :] - identity_like(thin[..., :n, :])
    factors, _, rows = lu_p.bind(square)
    z_h = solved_by_factors(factors, rows, adjoint(thin[..., n:, :]), 2)
    z = adjoint(z_h)
    low = q_dot[..., n:, :] - z @ q_dot[..., :n, :]
    return q_dot @ z_h - (thin + more @ z) @ adjoint(low)


qr_p = Primitive("qr")
primitive_rules(qr_p, _qr_shape, _qr)
jvp_rules[qr_p] = qr_jvp
cpu_rules[qr_p] = qr_on_cpu
common_columns(qr_p, lambda m, n: 4 * m * n * min(m, n) - 4 / 3 * min(m, n) ** 3)


def qr(
    x: ArrayLike,
    *,
    pivoting: bool = False,
    full_matrices: bool = True,
    use_magma: bool | None = None,
) -> Any:
    """Return the factors q and r of matrices: orthonormal columns, upper triangle.

    Args:
      x: matrices, of shape ``[..., m, n]``.
      pivoting: whether to exchange columns first, so that the diagonal of r falls in
        size; then their int32 order p is returned as well, with ``x[:, p] = q @ r``.
      full_matrices: whether q is square, beyond ``min(m, n)`` columns.
      use_magma: makes no difference.

    Reference: ``jax.lax.linalg.qr``.
    """
    how = {"full_matrices": full_matrices, "use_magma": use_magma}
    return tuple(qr_p.bind(x, pivoting=pivoting, **how))
