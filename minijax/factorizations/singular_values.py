"""The singular value decomposition.

Reference: ``jax.lax.linalg.svd``; M. Giles, *An extended collection of matrix
derivative results* (2008), section 3.2; M. Seeger and others, *Auto-differentiating
linear algebra* (2017), arXiv:1710.08717.
"""

# Made from chapters/31_linear_algebra.md by `make chapter`;
# edit the chapter, not this file.

from enum import Enum
from typing import Any

from minijax import numpy as jnp
from minijax.arrays.array import primitive_rules
from minijax.arrays.checks import to_real
from minijax.core import Primitive
from minijax.factorizations.lapack import factored
from minijax.factorizations.matrices import (
    adjoint,
    check_matrices,
    common_columns,
    identity_like,
)
from minijax.forward.rules import jvp_rules
from minijax.kernels.program_steps import cpu_rules
from minijax.lax.linalg.on_cpu import svd_by_routine
from minijax.typing import ArrayLike


def _svd_shape(x, *, full_matrices, compute_uv, subset_by_index, algorithm):
    check_matrices("svd", x)
    *batch, m, n = x.shape
    k = min(m, n)
    if subset_by_index not in (None, (0, k)):
        raise NotImplementedError("svd computes all values: no subset_by_index.")
    if algorithm in (SvdAlgorithm.JACOBI, SvdAlgorithm.POLAR):
        raise NotImplementedError(f"svd has no {algorithm} on a CPU: leave it out.")
    s = x.update(shape=(*batch, k), dtype=to_real(x.dtype))
    if not compute_uv:
        return [s]
    u, v = (m, m if full_matrices else k), (n if full_matrices else k, n)
    return [s, x.update(shape=(*batch, *u)), x.update(shape=(*batch, *v))]


def _svd(xp, x, *, full_matrices, compute_uv, **how):
    def svd(x):
        if not compute_uv:
            return [xp.linalg.svd(x, compute_uv=False)]
        u, s, vh = xp.linalg.svd(x, full_matrices)
        return [s, u, vh]

    return factored(svd, x)


def _reciprocal(x, mask):
    return 1 / (x + mask) - mask


def svd_jvp(primals, tangents, *, full_matrices, compute_uv, **how):
    """Return the tangents, for singular values that differ and are not zero."""
    [x], [x_dot] = primals, tangents
    s, u, vh = svd_p.bind(x, full_matrices=False, compute_uv=True, **how)
    *_, m, n = x_dot.shape
    inner = adjoint(u) @ x_dot @ adjoint(vh)
    s_dot = jnp.diagonal(inner, axis1=-2, axis2=-1).real
    if not compute_uv:
        return [s], [s_dot]
    if full_matrices and m != n:
        raise NotImplementedError(
            "Singular value decomposition JVP not implemented for full matrices"
        )
    row, column = s[..., None, :], s[..., :, None]
    one = identity_like(inner)
    gaps = _reciprocal(((row + column) * (row - column)).astype(one.dtype), one)
    row, column = row.astype(one.dtype), column.astype(one.dtype)
    turned = inner * row
    phase = 0.5 * (inner - adjoint(inner)) * one
    phase = phase * _reciprocal(column, (column == 0).astype(x_dot.dtype))
    u_dot = u @ (gaps * (turned + adjoint(turned)) + phase)
    turned = column * inner
    v = adjoint(vh)
    v_dot = v @ (gaps * (turned + adjoint(turned)))
    if m > n:
        outside = x_dot @ v
        u_dot = u_dot + (outside - u @ (adjoint(u) @ outside)) / row
    if n > m:
        outside = adjoint(x_dot) @ u
        v_dot = v_dot + (outside - v @ (vh @ outside)) / row
    return [s, u, vh], [s_dot, u_dot, adjoint(v_dot)]


svd_p = Primitive("svd")
primitive_rules(svd_p, _svd_shape, _svd)
jvp_rules[svd_p] = svd_jvp
cpu_rules[svd_p] = svd_by_routine
common_columns(svd_p, lambda m, n: 4 * m * n * min(m, n) + 8 * min(m, n) ** 3)


class SvdAlgorithm(Enum):
    """Algorithms for singular values. All that a CPU has are LAPACK's gesdd here.

    Reference: ``jax.lax.linalg.SvdAlgorithm``.
    """

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


def svd(
    x: ArrayLike,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: SvdAlgorithm | None = None,
) -> Any:
    """Return the singular value decomposition of matrices.

    Args:
      x: matrices, of shape ``[..., m, n]``.
      full_matrices: whether u and v are square, beyond ``min(m, n)`` columns.
      compute_uv: whether u and v are returned.
      subset_by_index: None, or the whole range ``(0, min(m, n))``.
      algorithm: makes no difference; a CPU has no ``JACOBI`` and no ``POLAR``.

    Returns:
      A tuple ``(u, s, vh)``, or `s` alone: real, in descending order.

    Raises:
      NotImplementedError: for other subsets and algorithms.

    Reference: ``jax.lax.linalg.svd``.
    """
    how: dict = {"full_matrices": full_matrices, "compute_uv": compute_uv}
    how |= {"subset_by_index": subset_by_index, "algorithm": algorithm}
    s, *vectors = svd_p.bind(x, **how)
    return (vectors[0], s, vectors[1]) if compute_uv else s
