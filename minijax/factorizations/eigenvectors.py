"""Eigenvalues and eigenvectors of Hermitian matrices.

Reference: ``jax.lax.linalg.eigh``; M. Giles, *An extended collection of matrix
derivative results* (2008), section 3.1.
"""

# Made from chapters/31_linear_algebra.md by `make chapter`;
# edit the chapter, not this file.

from enum import Enum

from minijax import numpy as jnp
from minijax.arrays.array import primitive_rules
from minijax.arrays.checks import to_real
from minijax.core import Array, Primitive
from minijax.factorizations.lapack import factored
from minijax.factorizations.matrices import (
    adjoint,
    check_matrices,
    common_columns,
    identity_like,
    sizes_of_square,
    symmetrized,
)
from minijax.forward.rules import jvp_rules
from minijax.kernels.program_steps import cpu_rules
from minijax.lax.linalg.on_cpu import eigh_by_routine
from minijax.typing import ArrayLike


def _eigh_shape(x, *, subset_by_index, algorithm, **how):
    check_matrices("eigh", x)
    batch, n = sizes_of_square(
        x,
        "Argument to symmetric eigendecomposition must have shape [..., n, n], got "
        f"shape {x.shape[-2:]}",
    )
    if subset_by_index not in (None, (0, n)) or algorithm not in (None, _QR):
        raise NotImplementedError(
            "eigh computes all eigenvalues, and by LAPACK's algorithm: subset_by_index "
            "and other implementations are not supported."
        )
    return [x, x.update(shape=(*batch, n), dtype=to_real(x.dtype))]


eigh_p = Primitive("eigh")
primitive_rules(
    eigh_p,
    _eigh_shape,
    lambda xp, x, *, lower, **how: factored(
        lambda x: [*xp.linalg.eigh(x, "L" if lower else "U")][::-1], x
    ),
)


def _eigh_jvp(primals, tangents, **how):
    """Return the tangents of perturbation theory, for eigenvalues that differ."""
    [x], [x_dot] = primals, tangents
    v, w = eigh_p.bind(symmetrized(x), **how)
    inner = adjoint(v) @ x_dot @ v
    one, values = identity_like(inner), w.astype(v.dtype)
    gaps = values[..., None, :] - values[..., :, None]
    v_dot = v @ ((1 / (one + gaps) - one) * inner)
    return [v, w], [v_dot, jnp.diagonal(inner, axis1=-2, axis2=-1).real]


jvp_rules[eigh_p] = _eigh_jvp
cpu_rules[eigh_p] = eigh_by_routine
common_columns(eigh_p, lambda m, n: 9 * n**3)


class EighImplementation(Enum):
    """Algorithms for Hermitian eigenvalues. ``QR`` stands for LAPACK's.

    Reference: ``jax.lax.linalg.EighImplementation``.
    """

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


_QR = EighImplementation.QR


def eigh(
    x: ArrayLike,
    *,
    lower: bool = True,
    symmetrize_input: bool = True,
    sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    implementation: EighImplementation | None = None,
) -> tuple[Array, Array]:
    """Return the eigenvectors and the eigenvalues of Hermitian matrices.

    Args:
      x: Hermitian matrices, of shape ``[..., n, n]``.
      lower: which triangle is read, if `x` is not symmetrized.
      symmetrize_input: whether to take the mean of `x` and its adjoint.
      sort_eigenvalues: they are always in ascending order.
      subset_by_index: None, or the whole range ``(0, n)``.
      implementation: None or ``EighImplementation.QR``.

    Returns:
      A tuple ``(v, w)``: eigenvectors in columns, like `x`, and real eigenvalues, of
      shape ``[..., n]``.

    Reference: ``jax.lax.linalg.eigh``.
    """
    x = symmetrized(x) if symmetrize_input else x
    how: dict = {"lower": lower, "sort_eigenvalues": sort_eigenvalues}
    how |= {"subset_by_index": subset_by_index, "algorithm": implementation}
    v, w = eigh_p.bind(x, **how)
    return v, w
