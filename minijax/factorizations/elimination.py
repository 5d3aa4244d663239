"""The LU factorization with partial pivoting, and solutions by it.

Reference: ``jax.lax.linalg.lu``; F. de Hoog, R. Anderssen and M. Lukas,
*Differentiation of matrix functionals using triangular factorization* (2011).
"""

# Made from chapters/31_linear_algebra.md by `make chapter`;
# edit the chapter, not this file.

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.arrays.array import primitive_rules
from minijax.arrays.checks import as_integer
from minijax.core import Array, Primitive
from minijax.factorizations.lapack import eliminated, factored, permuted_by
from minijax.factorizations.matrices import (
    check_matrices,
    common_columns,
    identity_like,
    lower_triangle,
    upper_triangle,
)
from minijax.factorizations.triangular import triangular_solve
from minijax.forward.rules import constant_rule, jvp_rules
from minijax.kernels.program_steps import cpu_rules
from minijax.lax.conversion import astype
from minijax.lax.linalg.on_cpu import lu_on_cpu, permuted_on_cpu
from minijax.typing import ArrayLike

INT32 = np.dtype("int32")


def _lu_shape(x):
    check_matrices("lu", x)
    *batch, m, n = x.shape
    pivots = x.update(shape=(*batch, min(m, n)), dtype=INT32)
    return [x, pivots, x.update(shape=(*batch, m), dtype=INT32)]


def rows_taken(x, permutation):
    """Return the rows of matrices in the order of `permutation`."""
    return jnp.take_along_axis(x, permutation[..., None], -2, mode="clip")


def rows_sent(x, places):
    """Return the rows of matrices, each at its place in `places`."""
    count = lax.broadcasted_iota("int32", places.shape, places.ndim - 1)
    return rows_taken(x, lax.sort((places, count), num_keys=1)[1])


def lu_jvp(primals, tangents):
    """Return the tangents of both triangles, which lie in one array."""
    [x], [x_dot] = primals, tangents
    both, pivots, rows = lu_p.bind(x)
    *batch, m, n = both.shape
    k, still = min(m, n), [(0, 0, 0)] * len(batch)
    zero = astype(0, both.dtype)
    low = lower_triangle(both[..., :k], -1)
    low = lax.pad(low, zero, [*still, (0, 0, 0), (0, m - k, 0)])
    low = low + identity_like(low)
    high = upper_triangle(both[..., :k, :])
    high = lax.pad(high, zero, [*still, (0, n - k, 0), (0, 0, 0)])
    more = lax.broadcasted_iota("int32", high.shape, high.ndim - 1) >= k
    high = high + lax.select(more, identity_like(high), lax.full_like(high, 0))
    left = {"left_side": True, "lower": True, "unit_diagonal": True}
    inner = triangular_solve(low, rows_taken(x_dot, rows), **left)
    inner = triangular_solve(high, inner)
    moved = low @ lower_triangle(inner, -1) + upper_triangle(inner) @ high
    return [both, pivots, rows], [moved, None, None]


def solved_by_factors(both, permutation, b, trans):
    """Solve systems by the factors of `lu`: plain, transposed (1) or adjoint (2).

    Args:
      both, permutation: of shapes ``[..., n, n]`` and ``[..., n]``.
      b: of shape ``[..., n, k]``.
      trans: 0, 1 or 2.
    """
    how = {"left_side": True, "transpose_a": trans > 0, "conjugate_a": trans == 2}
    unit = how | {"lower": True, "unit_diagonal": True}
    if not trans:
        b = triangular_solve(both, rows_taken(b, permutation), **unit)
        return triangular_solve(both, b, **how)
    b = triangular_solve(both, triangular_solve(both, b, **how), **unit)
    return rows_sent(b, permutation)


def _permutation_shape(pivots, *, permutation_size):
    if pivots.dtype != INT32:
        raise TypeError(f"lu_pivots_to_permutation needs int32, got {pivots.dtype}.")
    if not pivots.ndim or permutation_size < pivots.shape[-1]:
        raise ValueError(
            f"Output permutation size {permutation_size} has to exceed the trailing "
            f"dimension of the pivots. Got pivots of shape {pivots.shape}"
        )
    return [pivots.update(shape=(*pivots.shape[:-1], permutation_size))]


lu_p = Primitive("lu")
primitive_rules(lu_p, _lu_shape, lambda xp, x: factored(eliminated, x))
jvp_rules[lu_p], cpu_rules[lu_p] = lu_jvp, lu_on_cpu
common_columns(lu_p, lambda m, n: m * n * min(m, n) - min(m, n) ** 3 / 3)


def lu(x: ArrayLike) -> list[Array]:
    """Return the LU factorization of matrices, with partial pivoting.

    Args:
      x: matrices, of shape ``[..., m, n]``.

    Returns:
      A list of ``lu, pivots, permutation``: both triangles in one array like `x` (the
      diagonal belongs to u, that of l is ones), the int32 exchanges of rows, of shape
      ``[..., min(m, n)]``, and the int32 order of rows which they make, ``[..., m]``.

    Reference: ``jax.lax.linalg.lu``.
    """
    return lu_p.bind(x)


lu_pivots_to_permutation_p = Primitive("lu_pivots_to_permutation")
primitive_rules(
    lu_pivots_to_permutation_p,
    _permutation_shape,
    lambda xp, pivots, permutation_size: permuted_by(pivots, permutation_size),
)
jvp_rules[lu_pivots_to_permutation_p] = constant_rule(lu_pivots_to_permutation_p)
common_columns(lu_pivots_to_permutation_p, lambda m, n: 0)
cpu_rules[lu_pivots_to_permutation_p] = permuted_on_cpu


def lu_pivots_to_permutation(pivots: ArrayLike, permutation_size: int) -> Array:
    """Return the order of rows that exchanges of rows make, one after the other.

    Args:
      pivots: int32, of shape ``[..., k]``: with which row each row is exchanged.
      permutation_size: the number of rows, at least ``k``.

    Reference: ``jax.lax.linalg.lu_pivots_to_permutation``.
    """
    how = {"permutation_size": as_integer(permutation_size, "permutation_size")}
    [permutation] = lu_pivots_to_permutation_p.bind(pivots, **how)
    return permutation
