"""Schur forms: triangles that are unitarily similar to matrices.

Reference: ``jax.lax.linalg.schur``.
"""

# Made from chapters/31_linear_algebra_rest.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Callable
from typing import Any

from minijax.arrays.array import primitive_rules
from minijax.core import Array, Primitive
from minijax.factorizations.lapack import factored
from minijax.factorizations.matrices import (
    check_matrices,
    common_columns,
    sizes_of_square,
)
from minijax.forward.rules import jvp_rules
from minijax.lax.linalg.qr_iterations import schur_form
from minijax.lax.linalg.reductions import NO_DERIVATIVE
from minijax.typing import ArrayLike


def _schur_shape(x, *, compute_schur_vectors, sort_eig_vals, select_callable):
    check_matrices("schur", x)
    sizes_of_square(
        x, f"The input to schur must be a square matrix. Got shape {x.shape[-2:]}."
    )
    if sort_eig_vals:
        raise NotImplementedError("schur does not sort eigenvalues: sort_eig_vals.")
    return [x] * (1 + compute_schur_vectors)


def _schur(xp, x, *, compute_schur_vectors, **how):
    return factored(schur_form, x)[: 1 + compute_schur_vectors]


schur_p = Primitive("schur")
primitive_rules(schur_p, _schur_shape, _schur)
common_columns(schur_p, lambda m, n: 25 * n**3)
jvp_rules.reasons[schur_p] = NO_DERIVATIVE


def schur(
    x: ArrayLike,
    *,
    compute_schur_vectors: bool = True,
    sort_eig_vals: bool = False,
    select_callable: Callable[..., Any] | None = None,
) -> list[Array]:
    """Return Schur forms u of matrices, ``q @ u @ q.mT.conj()``, and the unitary q.

    Args:
      x: matrices, of shape ``[..., n, n]``.
      compute_schur_vectors: whether q is returned.
      sort_eig_vals: has to be False.
      select_callable: not used.

    Returns:
      A list ``[u, q]``, or ``[u]``. Of real matrices u is real, an upper triangle with
      blocks of two rows on the diagonal for pairs of complex eigenvalues.

    Reference: ``jax.lax.linalg.schur``.
    """
    how: dict = {"sort_eig_vals": sort_eig_vals, "select_callable": select_callable}
    return schur_p.bind(x, compute_schur_vectors=compute_schur_vectors, **how)
