"""Symmetric products, and updates of Cholesky factors by one vector.

Reference: ``jax.lax.linalg``; P. Gill and others, *Methods for modifying matrix
factorizations* (1974).
"""

# Made from chapters/31_linear_algebra_rest.md by `make chapter`;
# edit the chapter, not this file.

import numpy as np

from minijax.arrays.array import primitive_rules
from minijax.arrays.checks import FLOAT, all_weak
from minijax.batching.rules import vmap_rules
from minijax.core import Array, Primitive
from minijax.factorizations.lapack import factored
from minijax.factorizations.matrices import common_columns, lower_triangle, transposed
from minijax.forward.rules import jvp_rules
from minijax.lax.linalg.reductions import NO_DERIVATIVE, batch_of
from minijax.typing import ArrayLike


def _syrk_shape(a, c, **factors):
    batch_of("symmetric_product", (a, c), (2, 2), FLOAT)
    if not a.shape[-2] == c.shape[-2] == c.shape[-1]:
        raise ValueError(
            "symmetric_update expects a rectangular matrix of shape (m, n) and a "
            f"square matrix of shape (m, m). Got shapes {a.shape[-2:]} and "
            f"{c.shape[-2:]}."
        )
    return [c.update(weak_type=all_weak([a, c]))]


def _update_shape(r, w):
    batch_of("cholesky_update", (r, w), (2, 1), FLOAT)
    for position, (aval, rank) in enumerate(((r, 2), (w, 1))):
        if aval.ndim != rank:
            raise TypeError(
                f"Input {position} to cholesky_update must have a rank of exactly "
                f"{rank}, but got shape={aval.shape}"
            )
    if not r.shape[0] == r.shape[1] == w.shape[0]:
        raise ValueError(
            "Rank-1 update to Cholesky decomposition takes a square matrix and a "
            f"vector of the same size as input. Got shapes {r.shape} and {w.shape} "
            "instead"
        )
    return [r.update(weak_type=all_weak([r, w]))]


def _updated(r, w):
    """Rotate each row of a factor with the vector, on arrays of NumPy."""
    r, w = np.array(r), np.array(w)
    for k in range(len(w)):
        length = np.hypot(r[k, k], w[k])
        if w[k] != 0:
            c, s = r[k, k] / length, w[k] / length
            r[k], w = c * r[k] + s * w, c * w - s * r[k]
    return [r]


symmetric_product_p = Primitive("symmetric_product")
primitive_rules(
    symmetric_product_p,
    _syrk_shape,
    lambda xp, a, c, *, alpha, beta: (alpha * (a @ a.mT) + beta * c).astype(c.dtype),
)
common_columns(symmetric_product_p, lambda m, n: m * m * n)
cholesky_update_p = Primitive("cholesky_update")
primitive_rules(
    cholesky_update_p,
    _update_shape,
    lambda xp, r, w: factored(lambda r: _updated(r, w), r),
)
common_columns(cholesky_update_p, lambda m, n: 3 * n * n)
del vmap_rules[cholesky_update_p]
vmap_rules.reasons[cholesky_update_p] = "JAX has none: it takes one matrix."
for _primitive in (symmetric_product_p, cholesky_update_p):
    jvp_rules.reasons[_primitive] = NO_DERIVATIVE


def symmetric_product(
    a_matrix: ArrayLike,
    c_matrix: ArrayLike,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    symmetrize_output: bool = False,
) -> Array:
    """Return ``alpha * a @ a.mT + beta * c`` of real matrices and symmetric ones.

    Args:
      a_matrix: of shape ``[..., m, n]``.
      c_matrix: symmetric, of shape ``[..., m, m]``.
      alpha, beta: numbers.
      symmetrize_output: whether the upper triangle is copied from the lower one.

    Returns:
      An array like `c_matrix`.

    Reference: ``jax.lax.linalg.symmetric_product``.
    """
    how = {"alpha": alpha, "beta": beta}
    [result] = symmetric_product_p.bind(a_matrix, c_matrix, **how)
    if not symmetrize_output:
        return result
    mirrored = transposed(lower_triangle(result, -1))
    return lower_triangle(result) + mirrored


def cholesky_update(r_matrix: ArrayLike, w_vector: ArrayLike) -> Array:
    """Return the factor of ``r.T @ r + outer(w, w)`` from the factor r.

    Args:
      r_matrix: an upper triangle, real, of shape ``[n, n]``.
      w_vector: of shape ``[n]``.

    Reference: ``jax.lax.linalg.cholesky_update``.
    """
    return cholesky_update_p.bind(r_matrix, w_vector)[0]
