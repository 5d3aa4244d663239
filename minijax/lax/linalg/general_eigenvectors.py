"""Eigenvalues and eigenvectors of matrices that need not be Hermitian.

Reference: ``jax.lax.linalg.eig``.
"""

# Made from chapters/31_linear_algebra_rest.md by `make chapter`;
# edit the chapter, not this file.

from enum import Enum

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.arrays.array import primitive_rules
from minijax.core import Array, Primitive
from minijax.factorizations.elimination import lu_p, solved_by_factors
from minijax.factorizations.lapack import factored
from minijax.factorizations.matrices import (
    adjoint,
    check_matrices,
    common_columns,
    identity_like,
    sizes_of_square,
)
from minijax.forward.rules import jvp_rules
from minijax.typing import ArrayLike


def _eig_shape(x, *, compute_left_eigenvectors, compute_right_eigenvectors, **how):
    check_matrices("eig", x)
    batch, n = sizes_of_square(
        x, f"The input to eig must be a square matrix. Got shape {x.shape[-2:]}."
    )
    dtype = np.result_type(x.dtype, np.complex64)
    vectors = x.update(dtype=dtype)
    count = compute_left_eigenvectors + compute_right_eigenvectors
    return [x.update(shape=(*batch, n), dtype=dtype), *[vectors] * count]


def _eig(xp, x, *, compute_left_eigenvectors, compute_right_eigenvectors, **how):
    dtype = np.result_type(x.dtype, np.complex64)

    def eig(x):
        if not compute_left_eigenvectors and not compute_right_eigenvectors:
            return [xp.linalg.eigvals(x).astype(dtype)]
        w, v = (y.astype(dtype) for y in xp.linalg.eig(x))
        left = [_left_vectors(xp, v)] * compute_left_eigenvectors
        return [w, *left, *[v] * compute_right_eigenvectors]

    return factored(eig, x)


def _left_vectors(xp, v):
    """Return the adjoint inverse, with columns of length 1 and real largest parts."""
    u = xp.linalg.inv(v).mT.conj()
    u = u / xp.linalg.norm(u, axis=-2, keepdims=True)
    largest = abs(u).argmax(-2, keepdims=True) if u.size else None
    if largest is None:
        return u
    part = xp.take_along_axis(u, largest, -2)
    return u * part.conj() / abs(part)


eig_p = Primitive("eig")
primitive_rules(eig_p, _eig_shape, _eig)
common_columns(eig_p, lambda m, n: 25 * n**3)


def _vectors_dot(w, v, a_dot):
    """Return the tangents of eigenvalues, and of eigenvectors of length 1."""
    factors, _, rows = lu_p.bind(v)
    inner, one = solved_by_factors(factors, rows, a_dot @ v, 0), identity_like(v)
    gaps = w[..., None, :] - w[..., :, None]
    turned = v @ ((1 / (one + gaps) - one) * inner)
    w_dot = jnp.diagonal(inner, axis1=-2, axis2=-1)
    if not v.size:  # there is no largest number
        return w_dot, turned
    largest = abs(v).argmax(-2)[..., None, :]
    parts = [jnp.take_along_axis(x, largest, -2) for x in (turned, v)]
    longer = (v.conj() * turned).sum(-2, keepdims=True).real
    phase = parts[0].imag / parts[1].real
    return w_dot, turned - v * lax.complex(longer, phase)


def eig_jvp(primals, tangents, *, enable_eigvec_derivs, **how):
    """Return the tangents, for eigenvalues that differ."""
    [x], [x_dot] = primals, tangents
    left, right = (how[f"compute_{side}_eigenvectors"] for side in ("left", "right"))
    if (left or right) and not enable_eigvec_derivs:
        raise NotImplementedError(
            "Derivatives of non-symmetric eigenvectors are only valid for eigenvalues "
            "that differ, which is not checked: pass enable_eigvec_derivs=True to "
            "lax.linalg.eig to opt in, or use eigvals."
        )
    how = how | {"compute_right_eigenvectors": True}
    results = eig_p.bind(x, enable_eigvec_derivs=enable_eigvec_derivs, **how)
    w, v = results[0], results[-1]
    a_dot = x_dot.astype(v.dtype)
    w_dot, v_dot = _vectors_dot(w, v, a_dot)
    if not (left or right):
        return [w], [w_dot]
    dots = [w_dot]
    if left:
        dots.append(_vectors_dot(w.conj(), results[1], adjoint(a_dot))[1])
    return results[: 1 + left + right], [*dots, *[v_dot] * right]


jvp_rules[eig_p] = eig_jvp


class EigImplementation(Enum):
    """Algorithms for eigenvalues. LAPACK's is the one there is.

    Reference: ``jax.lax.linalg.EigImplementation``.
    """

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


def eig(
    x: ArrayLike,
    *,
    compute_left_eigenvectors: bool = True,
    compute_right_eigenvectors: bool = True,
    enable_eigvec_derivs: bool = False,
    implementation: EigImplementation | None = None,
    use_magma: bool | None = None,
) -> list[Array]:
    """Return the eigenvalues of matrices, and their eigenvectors.

    Args:
      x: matrices, of shape ``[..., n, n]``.
      compute_left_eigenvectors: whether to return vectors u with ``u.H @ x = w u.H``;
        they come from the inverse of the right ones.
      compute_right_eigenvectors: whether to return vectors v with ``x @ v = w v``.
      enable_eigvec_derivs: whether the vectors may be differentiated, since the
        caller knows that the eigenvalues differ.
      implementation, use_magma: make no difference.

    Returns:
      A list of complex arrays: eigenvalues, of shape ``[..., n]``, and vectors of
      length 1 in columns, the left ones first.

    Reference: ``jax.lax.linalg.eig``.
    """
    how: dict = {"compute_left_eigenvectors": compute_left_eigenvectors}
    how |= {"compute_right_eigenvectors": compute_right_eigenvectors}
    how |= {"enable_eigvec_derivs": enable_eigvec_derivs}
    return eig_p.bind(x, implementation=implementation, **how)
