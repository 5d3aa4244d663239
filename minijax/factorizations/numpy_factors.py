"""Factors of matrices with the names of NumPy.

Reference: ``jax.numpy.linalg``.
"""

# Made from chapters/31_linear_algebra_rest.md by `make chapter`;
# edit the chapter, not this file.

from typing import Any, NamedTuple

from minijax import lax
from minijax import numpy as jnp
from minijax.core import Array
from minijax.factorizations import cholesky as _cholesky
from minijax.factorizations import eigenvectors as _eigenvectors
from minijax.factorizations import orthogonal_factors as _orthogonal
from minijax.factorizations import singular_values as _singular
from minijax.factorizations.matrices import adjoint
from minijax.lax.linalg.reductions import geqrf_p
from minijax.lax.promotion import promote_dtypes_inexact
from minijax.numpy.shapes import arraylike
from minijax.typing import ArrayLike


class EighResult(NamedTuple):
    """Eigenvalues and eigenvectors."""

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """Orthonormal columns, and an upper triangle."""

    Q: Array
    R: Array


class SVDResult(NamedTuple):
    """Left singular vectors, singular values, and adjoint right singular vectors."""

    U: Array
    S: Array
    Vh: Array


def _inexact(name, a):
    [a] = promote_dtypes_inexact(arraylike(f"linalg.{name}", a))
    return a


def cholesky(
    a: ArrayLike, *, upper: bool = False, symmetrize_input: bool = True
) -> Array:
    """Return the Cholesky factors of Hermitian, positive definite matrices.

    Args:
      a: matrices, of shape ``[..., n, n]``.
      upper: whether to return the adjoints, which are upper triangles.
      symmetrize_input: whether to take the mean of `a` and its adjoint first.

    Returns:
      An array like `a`; NaN where a matrix is not positive definite.

    Reference: ``jax.numpy.linalg.cholesky``.
    """
    a = _inexact("cholesky", a)
    factor = _cholesky.cholesky(a, symmetrize_input=symmetrize_input)
    return adjoint(factor) if upper else factor


def eigh(
    a: ArrayLike, UPLO: str | None = None, symmetrize_input: bool = True
) -> EighResult:
    """Return eigenvalues and eigenvectors of Hermitian matrices.

    Args:
      a: matrices, of shape ``[..., n, n]``.
      UPLO: which triangle is read without `symmetrize_input`, ``"L"`` or ``"U"``.
      symmetrize_input: whether to take the mean of `a` and its adjoint first.

    Raises:
      ValueError: for another `UPLO`.

    Reference: ``jax.numpy.linalg.eigh``.
    """
    if UPLO not in (None, "L", "U"):
        raise ValueError(f"UPLO must be one of None, 'L', or 'U', got {UPLO}")
    a, lower = _inexact("eigh", a), UPLO != "U"
    v, w = _eigenvectors.eigh(a, lower=lower, symmetrize_input=symmetrize_input)
    return EighResult(w, v)


def eigvalsh(
    a: ArrayLike, UPLO: str | None = "L", *, symmetrize_input: bool = True
) -> Array:
    """Return the eigenvalues of Hermitian matrices, as `eigh` does.

    Reference: ``jax.numpy.linalg.eigvalsh``.
    """
    return eigh(a, UPLO, symmetrize_input).eigenvalues


def qr(a: ArrayLike, mode: str = "reduced") -> Any:
    """Return the factors q and r of matrices.

    Args:
      a: matrices, of shape ``[..., m, n]``.
      mode: ``"reduced"`` (or ``"full"``), ``"complete"`` for a square q, ``"r"`` for
        r alone, or ``"raw"`` for the transpose of r with the reflections of q beside
        it, and their factors tau.

    Raises:
      ValueError: for another mode.

    Reference: ``jax.numpy.linalg.qr``.
    """
    if mode == "raw":
        h, taus = geqrf_p.bind(_inexact("qr", a))
        return QRResult(h.mT, taus)
    if mode not in ("reduced", "r", "full", "complete"):
        raise ValueError(f"Unsupported QR decomposition mode '{mode}'")
    q, r = _orthogonal.qr(_inexact("qr", a), full_matrices=mode == "complete")
    return r if mode == "r" else QRResult(q, r)


def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Any:
    """Return the singular value decomposition of matrices.

    Args:
      a: matrices, of shape ``[..., m, n]``.
      full_matrices: whether u and v are square.
      compute_uv: whether u and v are returned.
      hermitian: whether `a` is Hermitian; then `eigh` computes it.
      subset_by_index: None, or the whole range.

    Returns:
      A named tuple ``(U, S, Vh)``, or the singular values alone.

    Reference: ``jax.numpy.linalg.svd``.
    """
    a = _inexact("svd", a)
    if hermitian:
        return _hermitian_svd(a, compute_uv)
    how: dict = {"compute_uv": compute_uv, "subset_by_index": subset_by_index}
    found = _singular.svd(a, full_matrices=full_matrices, **how)
    return SVDResult(*found) if compute_uv else found


def _hermitian_svd(a, compute_uv):
    v, w = _eigenvectors.eigh(a)
    if not compute_uv:
        return lax.rev(lax.sort(abs(w)), [w.ndim - 1])
    both = lax.sort((abs(w), jnp.sign(w)), num_keys=1)
    sizes, signs = (lax.rev(x, [w.ndim - 1]) for x in both)
    keys = jnp.broadcast_to(abs(w)[..., None, :], v.shape)
    u = lax.rev(lax.sort((keys, v), v.ndim - 1, num_keys=1)[1], [v.ndim - 1])
    return SVDResult(u, sizes, adjoint(u * signs[..., None, :].astype(u.dtype)))


def svdvals(x: ArrayLike, /) -> Array:
    """Return the singular values of matrices, the largest first.

    Reference: ``jax.numpy.linalg.svdvals``.
    """
    return svd(x, compute_uv=False)
