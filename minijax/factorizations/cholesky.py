"""The Cholesky factorization, with its derivative.

Reference: ``jax.lax.linalg.cholesky``; I. Murray, *Differentiation of the Cholesky
decomposition* (2016), arXiv:1602.07527.
"""

# Made from chapters/31_linear_algebra.md by `make chapter`;
# edit the chapter, not this file.

from minijax.arrays.array import primitive_rules
from minijax.core import Array, Primitive
from minijax.factorizations.lapack import factored
from minijax.factorizations.matrices import (
    check_matrices,
    common_columns,
    identity_like,
    lower_triangle,
    sizes_of_square,
    symmetrized,
)
from minijax.factorizations.triangular import triangular_solve
from minijax.forward.rules import jvp_rules
from minijax.kernels.program_steps import cpu_rules
from minijax.lax.linalg.on_cpu import cholesky_on_cpu
from minijax.typing import ArrayLike


def _cholesky_shape(x):
    check_matrices("cholesky", x)
    sizes_of_square(
        x, f"The input to cholesky must be a square matrix. Got shape {x.shape[-2:]}."
    )
    return [x]


cholesky_p = Primitive("cholesky")
primitive_rules(
    cholesky_p,
    _cholesky_shape,
    lambda xp, x: factored(lambda x: [xp.linalg.cholesky(x)], x),
)


def cholesky_jvp(primals, tangents):
    """Return the factor and its tangent, L phi(L^-1 A' L^-H)."""
    [x], [x_dot] = primals, tangents
    factor = lower_triangle(cholesky_p.bind(x)[0])
    right = {"transpose_a": True, "conjugate_a": True, "lower": True}
    inner = triangular_solve(factor, x_dot, **right)
    inner = triangular_solve(factor, inner, left_side=True, lower=True)
    return [factor], [factor @ halved(inner)]


def halved(x):
    """Return the lower triangles of matrices, with half of their diagonals."""
    return lower_triangle(x) / (1 + identity_like(x))


jvp_rules[cholesky_p] = cholesky_jvp


def cholesky(x: ArrayLike, *, symmetrize_input: bool = True) -> Array:
    """Return the lower triangular factors ``l`` of matrices ``l @ l.mT.conj()``.

    Args:
      x: Hermitian, positive definite matrices, of shape ``[..., n, n]``.
      symmetrize_input: whether to take the mean of `x` and its adjoint. Otherwise only
        the lower triangle is read.

    Returns:
      An array like `x`; NaN where a matrix is not positive definite.

    Reference: ``jax.lax.linalg.cholesky``.
    """
    x = symmetrized(x) if symmetrize_input else x
    return lower_triangle(cholesky_p.bind(x)[0])


common_columns(cholesky_p, lambda m, n: n**3 / 3)
cpu_rules[cholesky_p] = cholesky_on_cpu
