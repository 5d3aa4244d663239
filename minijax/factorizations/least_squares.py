"""Least squares, pseudo-inverses, ranks and chains of products.

Reference: ``jax.numpy.linalg``.
"""

# Made from chapters/31_linear_algebra_rest.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from minijax import numpy as jnp
from minijax.core import Array
from minijax.factorizations.matrices import adjoint, symmetrized
from minijax.factorizations.numpy_factors import svd, svdvals
from minijax.factorizations.systems import inv
from minijax.lax.promotion import promote_dtypes_inexact
from minijax.numpy.shapes import arraylike
from minijax.own_rules.tangent_rules import custom_jvp
from minijax.typing import ArrayLike


def pinv(
    a: ArrayLike,
    rtol: ArrayLike | None = None,
    hermitian: bool = False,
    *,
    rcond: ArrayLike | None = None,
) -> Array:
    """Return the pseudo-inverses of matrices.

    Args:
      a: matrices, of shape ``[..., m, n]``.
      rtol: singular values below this part of the largest one count as zero; by
        default ten times the larger size times the machine epsilon.
      hermitian: whether `a` is Hermitian.
      rcond: another name of `rtol`.

    Reference: ``jax.numpy.linalg.pinv``.
    """
    if rcond is not None and rtol is not None:
        raise ValueError("pinv: only one of rtol and rcond may be specified.")
    [a] = promote_dtypes_inexact(arraylike("linalg.pinv", a))
    return _pinv(a, rcond if rtol is None else rtol, hermitian)


@partial(custom_jvp, nondiff_argnums=(1, 2))
def _pinv(a, rtol, hermitian):
    m, n = a.shape[-2:]
    if 0 in (m, n):
        return jnp.zeros((*a.shape[:-2], n, m), a.dtype)
    if rtol is None:
        rtol = 10.0 * max(m, n) * jnp.finfo(a.dtype).eps
    u, s, vh = svd(a, full_matrices=False, hermitian=hermitian)
    rtol = jnp.asarray(rtol, s.dtype)[..., None]
    kept = s > rtol * s[..., :1]
    scale = jnp.where(kept, 1 / jnp.where(kept, s, 1), 0).astype(a.dtype)
    return (adjoint(vh) * scale[..., None, :]) @ adjoint(u)


@_pinv.defjvp
def _pinv_jvp(rtol, hermitian, primals, tangents):
    [a], [a_dot] = primals, tangents
    p = _pinv(a, rtol, hermitian)
    a, a_dot = (symmetrized(x) if hermitian else x for x in (a, a_dot))
    s = p @ (adjoint(p) @ adjoint(a_dot))
    t = adjoint(a_dot) @ (adjoint(p) @ p)
    return p, -p @ (a_dot @ p) + s - s @ (a @ p) + t - p @ (a @ t)


def lstsq(
    a: ArrayLike, b: ArrayLike, rcond: Any = None, *, numpy_resid: bool = False
) -> tuple[Array, Array, Array, Array]:
    """Return the least squares solution of ``a @ x = b``, the shortest one.

    Args:
      a: matrix, of shape ``[m, n]``.
      b: vector or matrix, of shape ``[m]`` or ``[m, k]``.
      rcond: singular values below this part of the largest one count as zero.
      numpy_resid: whether the sums of squared residuals are empty where NumPy leaves
        them out: for a rank below n, and if m is not larger than n.

    Returns:
      A tuple of `x`, sums of squared residuals, the rank, and the singular values.

    Reference: ``jax.numpy.linalg.lstsq``.
    """
    x, y = (arraylike("linalg.lstsq", x) for x in (a, b))
    return _lstsq(x, y, rcond, numpy_resid)


def _lstsq(a, b, rcond, numpy_resid):
    a, b = promote_dtypes_inexact(a, b)
    _check_least_squares(a, b)
    columns = b if b.ndim == 2 else b[:, None]
    (m, n), eps = a.shape, jnp.finfo(a.dtype).eps
    if a.size == 0:
        s, rank = jnp.zeros(0, a.dtype), jnp.zeros((), int)
        x = jnp.zeros((n, columns.shape[1]), a.dtype)
    else:
        u, s, vh = svd(a, full_matrices=False)
        part = eps * max(n, m) if rcond is None else jnp.where(rcond < 0, eps, rcond)
        kept = (s > 0) & (s >= jnp.asarray(part, s.dtype) * s[0])
        rank = kept.sum()
        scale = jnp.where(kept, 1 / jnp.where(kept, s, 1), 0).astype(a.dtype)
        x = adjoint(vh) @ (scale[:, None] * (adjoint(u) @ columns))
    if numpy_resid and (rank < n or m <= n):
        residuals = jnp.asarray([])
    else:
        residuals = jnp.linalg.norm(columns - a @ x, axis=0) ** 2
    return (x.ravel() if b.ndim == 1 else x), residuals, rank, s


def _check_least_squares(a, b):
    if a.shape[:1] != b.shape[:1]:
        raise ValueError("Leading dimensions of input arrays must match")
    if a.ndim != 2:
        raise TypeError(
            f"{a.ndim}-dimensional array given. Array must be two-dimensional"
        )
    if b.ndim not in (1, 2):
        raise TypeError(
            f"{b.ndim}-dimensional array given. Array must be one or two-dimensional"
        )


def matrix_rank(
    M: ArrayLike,
    rtol: ArrayLike | None = None,
    *,
    hermitian: bool = False,
    tol: ArrayLike | None = None,
) -> Array:
    """Count the singular values of matrices that are larger than rounding errors.

    Args:
      M: matrices; of a vector, whether it is not zero.
      rtol: from which size on a singular value counts.
      hermitian: whether `M` is Hermitian.
      tol: another name of `rtol`.

    Reference: ``jax.numpy.linalg.matrix_rank``.
    """
    if tol is not None and rtol is not None:
        raise ValueError("matrix_rank: only one of tol or rtol may be specified.")
    [m] = promote_dtypes_inexact(arraylike("linalg.matrix_rank", M))
    rtol = tol if rtol is None else rtol
    if m.ndim < 2:
        return (m != 0).any().astype("int32")
    s = svd(m, full_matrices=False, compute_uv=False, hermitian=hermitian)
    if rtol is None:
        rtol = s.max(-1) * (max(m.shape[-2:]) * jnp.finfo(s.dtype).eps)
    return (s > jnp.expand_dims(rtol, np.ndim(rtol))).sum(-1)


def cond(x: ArrayLike, p: Any = None) -> Array:
    """Return how much relative errors may grow when a system is solved.

    Args:
      x: matrices.
      p: the order of a norm; by default 2, the ratio of the largest and the smallest
        singular value.

    Raises:
      ValueError: for fewer than two axes, none, or matrices that are not square if `p`
        needs an inverse.

    Reference: ``jax.numpy.linalg.cond``.
    """
    x = arraylike("linalg.cond", x)
    if x.ndim < 2 or 0 in x.shape[-2:]:
        raise ValueError(
            "jnp.linalg.cond: input array must be at least 2D and not empty; got "
            f"arr.shape={x.shape}"
        )
    if p in (None, 2):
        s = svdvals(x)
        return s[..., 0] / s[..., -1]
    if p == -2:
        s = svdvals(x)
        ratio = s[..., -1] / s[..., 0]
    elif x.shape[-2] != x.shape[-1]:
        raise ValueError(
            f"jnp.linalg.cond: for {p=}, array must be square; got arr.shape={x.shape}"
        )
    else:
        norms = [jnp.linalg.norm(y, ord=p, axis=(-2, -1)) for y in (x, inv(x))]
        ratio = norms[0] * norms[1]
    lost = jnp.isnan(ratio) & ~jnp.isnan(x).any((-2, -1))
    return jnp.where(lost, np.inf, ratio)


def multi_dot(arrays: Sequence[ArrayLike], *, precision: Any = None) -> Array:
    """Multiply a chain of matrices in the order that takes the fewest operations.

    Args:
      arrays: at least two matrices; the first and the last may be vectors.
      precision: ignored, as in every product.

    Raises:
      ValueError: if their shapes do not fit.

    Reference: ``jax.numpy.linalg.multi_dot``.
    """
    chain = [arraylike("linalg.multi_dot", x) for x in arrays]
    if len(chain) < 2:
        raise ValueError(
            f"multi_dot requires at least two arrays; got len(arrays)={len(chain)}"
        )
    _check_chain([x.shape for x in chain])
    first = chain[0].shape[0] if chain[0].ndim == 2 else 1
    sizes = [first, *(x.shape[0] if x.ndim == 1 else x.shape[-1] for x in chain)]
    if chain[0].ndim == 1:
        sizes[1] = chain[0].shape[0]
    if chain[-1].ndim == 1:
        sizes[-1] = 1
    return _chained(chain, _splits(sizes), 0, len(chain))


def _check_chain(shapes):
    ends, middle = (shapes[0], shapes[-1]), shapes[1:-1]
    if not all(len(s) in (1, 2) for s in ends) or any(len(s) != 2 for s in middle):
        raise ValueError(
            "multi_dot: input arrays must all be two-dimensional, except for the first "
            f"and last array which may be 1 or 2 dimensional. Got array shapes {shapes}"
        )
    if any(a[-1] != b[0] for a, b in zip(shapes[:-1], shapes[1:])):
        raise ValueError(
            "multi_dot: last dimension of each array must match first dimension of "
            f"following array. Got array shapes {shapes}"
        )


def _splits(sizes):
    count = len(sizes) - 1
    best = {(i, i + 1): (0, None) for i in range(count)}
    for width in range(2, count + 1):
        for i in range(count - width + 1):
            j = i + width
            best[i, j] = min(
                (best[i, k][0] + best[k, j][0] + sizes[i] * sizes[k] * sizes[j], k)
                for k in range(i + 1, j)
            )
    return best


def _chained(chain, splits, i, j):
    k = splits[i, j][1]
    if k is None:
        return chain[i]
    return _chained(chain, splits, i, k) @ _chained(chain, splits, k, j)
