"""Factors, solutions, inverses, determinants, least squares, with NumPy's names.

Reference: ``jax.numpy.linalg``.
"""

# Made from chapters/31_linear_algebra_rest.md by `make chapter`;
# edit the chapter, not this file.

import math
from collections.abc import Sequence
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.arrays.numerics import operator_index
from minijax.batching.vmap import vmap
from minijax.core import Array
from minijax.custom_derivatives.custom_jvp_vjp import custom_jvp
from minijax.custom_derivatives.linear_solves import custom_linear_solve
from minijax.extend.promotion import promoting
from minijax.lax.reductions import promote_dtypes_inexact
from minijax.linear_algebra import factorizations as _cholesky
from minijax.linear_algebra import factorizations as _eigenvectors
from minijax.linear_algebra import factorizations as _orthogonal
from minijax.linear_algebra import factorizations as _singular
from minijax.linear_algebra.factorizations import (
    adjoint,
    lu,
    lu_solve_factors,
    permute_rows,
    symmetrize,
    triangular_solve,
)
from minijax.linear_algebra.lax_linalg import geqrf_p
from minijax.numpy.functional import vectorize
from minijax.numpy.shapes import as_arraylike
from minijax.typing import ArrayLike

# Factors of matrices with the names of NumPy.


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
    [a] = promote_dtypes_inexact(as_arraylike(f"linalg.{name}", a))
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


# Systems of linear equations, inverses and determinants, with the names of NumPy.


class SlogdetResult(NamedTuple):
    """Signs of determinants, and logarithms of their sizes."""

    sign: Array
    logabsdet: Array


def _solve_one(a, b):
    both, _, rows = lu(lax.stop_gradient(a))

    def by_factors(trans):
        return lambda _, x: lu_solve_factors(both, rows, x[:, None], trans)[:, 0]

    def one(b):
        ways = by_factors(0), by_factors(1)
        return custom_linear_solve(lambda x: a @ x, b, *ways)

    return one(b) if b.ndim == 1 else vmap(one, 1, 1)(b)


def solve(a: ArrayLike, b: ArrayLike) -> Array:
    """Solve systems of linear equations, ``a @ x = b``.

    Args:
      a: square matrices, of shape ``[..., n, n]``.
      b: one right side, of shape ``[n]``, or several in columns, ``[..., n, k]``.

    Raises:
      ValueError: for other shapes.

    Reference: ``jax.numpy.linalg.solve``.
    """
    a, b = (as_arraylike("linalg.solve", x) for x in (a, b))
    a, b = promote_dtypes_inexact(a, b)
    if a.ndim < 2:
        raise ValueError(
            f"left hand array must be at least two dimensional; got a.shape={a.shape!r}"
        )
    if 1 < b.ndim == a.ndim - 1 and a.shape[-1] == b.shape[-1] != b.shape[-2]:
        raise ValueError(
            f"Invalid shapes for solve: {a.shape}, {b.shape}. For a batch of vectors, "
            "use solve(a, b[..., None]).squeeze(-1)."
        )
    signature = "(m,m),(m)->(m)" if b.ndim == 1 else "(m,m),(m,n)->(m,n)"
    return vectorize(_solve_one, signature=signature)(a, b)


def inv(a: ArrayLike) -> Array:
    """Return the inverses of square matrices; `solve` is cheaper than their products.

    Reference: ``jax.numpy.linalg.inv``.
    """
    a = as_arraylike("linalg.inv", a)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(f"Argument to inv must have shape [..., n, n], got {a.shape}.")
    return solve(a, jnp.broadcast_to(jnp.eye(a.shape[-1], dtype=a.dtype), a.shape))


def matrix_power(a: ArrayLike, n: int) -> Array:
    """Return square matrices to an integer power, by squaring.

    Reference: ``jax.numpy.linalg.matrix_power``.
    """
    x = as_arraylike("linalg.matrix_power", a)
    if x.ndim < 2:
        raise TypeError(
            f"{x.ndim}-dimensional array given. Array must be at least two-dimensional"
        )
    if x.shape[-2] != x.shape[-1]:
        raise TypeError("Last 2 dimensions of the array must be square")
    n = operator_index(n, "n of matrix_power")
    if n == 0:
        return jnp.broadcast_to(jnp.eye(x.shape[-1], dtype=x.dtype), x.shape)
    square, factors = inv(x) if n < 0 else x, []
    for bit in reversed(f"{abs(n):b}"):
        factors += [square] if bit == "1" else []
        square = square @ square if len(factors) < f"{abs(n):b}".count("1") else square
    return reduce(jnp.matmul, factors)


def tensorinv(a: ArrayLike, ind: int = 2) -> Array:
    """Return the inverse of the linear function that an array is for `tensordot`.

    Reference: ``jax.numpy.linalg.tensorinv``.
    """
    a = as_arraylike("linalg.tensorinv", a)
    ind = operator_index(ind, "ind of tensorinv")
    if ind <= 0:
        raise ValueError(f"ind must be a positive integer; got {ind=}")
    rows, columns = a.shape[:ind], a.shape[ind:]
    if math.prod(rows) != math.prod(columns):
        raise ValueError(
            "tensorinv is only possible when the product of the first `ind` "
            "dimensions equals that of the remaining dimensions. got "
            f"{a.shape=} with {ind=}."
        )
    size = math.prod(rows)
    return inv(a.reshape(size, size)).reshape(*columns, *rows)


def tensorsolve(
    a: ArrayLike, b: ArrayLike, axes: tuple[int, ...] | None = None
) -> Array:
    """Solve ``tensordot(a, x, x.ndim) = b``.

    Reference: ``jax.numpy.linalg.tensorsolve``.
    """
    a, b = (as_arraylike("linalg.tensorsolve", x) for x in (a, b))
    if axes is not None:
        a = jnp.moveaxis(a, axes, tuple(range(a.ndim - len(axes), a.ndim)))
    shape = a.shape[b.ndim :]
    if a.shape[: b.ndim] != b.shape:
        raise ValueError(
            "After moving axes to end, leading shape of a must match shape of b. got "
            f"{a.shape=}, {b.shape=}"
        )
    if b.size != math.prod(shape):
        raise ValueError(
            "Input arrays must have prod(a.shape[:b.ndim]) == prod(a.shape[b.ndim:]); "
            f"got {a.shape=}, {b.ndim=}."
        )
    return solve(a.reshape(b.size, b.size), b.ravel()).reshape(shape)


def _signs_of(pivots):
    places = lax.broadcasted_iota(pivots.dtype, pivots.shape, pivots.ndim - 1)
    return 1 - 2 * ((pivots != places).sum(-1) % 2)


@custom_jvp
def _slogdet(a):
    both, pivots, _ = lu(a)
    diagonal = jnp.diagonal(both, axis1=-2, axis2=-1)
    sizes, signs = abs(diagonal), _signs_of(pivots).astype(a.dtype)
    sign = signs * jnp.prod(jnp.sign(diagonal), axis=-1)
    return sign, jnp.log(sizes).sum(-1)


@custom_jvp
def _slogdet_by_reflections(a):
    both, taus = geqrf_p.bind(a)
    diagonal = jnp.diagonal(both, axis1=-2, axis2=-1)
    some = taus != 0  # the determinant of a reflection, which is -1 for reals
    turns = jnp.where(some, -taus / jnp.where(some, taus.conj(), 1), 1)
    sign = jnp.prod(jnp.sign(diagonal), axis=-1) * jnp.prod(turns, axis=-1)
    return sign, jnp.log(abs(diagonal)).sum(-1)


def _slogdet_jvp(function, primals, tangents):
    sign, logarithm = function(*primals)
    slope = jnp.trace(solve(*primals, *tangents), axis1=-1, axis2=-2)
    if slope.dtype.kind != "c":
        return (sign, logarithm), (jnp.zeros_like(sign), slope)
    turn = slope - slope.real.astype(slope.dtype)
    return (sign, logarithm), (turn * sign, slope.real)


for _function in (_slogdet, _slogdet_by_reflections):
    _function.defjvp(partial(_slogdet_jvp, _function))


def _square(name, a):
    [a] = promote_dtypes_inexact(as_arraylike(f"linalg.{name}", a))
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(
            f"Argument to {name}() must have shape [..., n, n], got {a.shape}"
        )
    return a


def slogdet(a: ArrayLike, *, method: str | None = None) -> SlogdetResult:
    """Return the signs of determinants, and the logarithms of their sizes.

    Args:
      a: square matrices, of shape ``[..., n, n]``.
      method: None or ``"lu"``; or ``"qr"``, by reflections.

    Reference: ``jax.numpy.linalg.slogdet``.
    """
    if method not in (None, "lu", "qr"):
        raise ValueError(
            f"Unknown slogdet method '{method}'. Supported methods are 'lu' (`None`), "
            "and 'qr'."
        )
    found = _slogdet_by_reflections if method == "qr" else _slogdet
    return SlogdetResult(*found(_square("slogdet", a)))


def det(a: ArrayLike) -> Array:
    """Return the determinants of square matrices.

    Reference: ``jax.numpy.linalg.det``.
    """
    x = _square("det", a)
    if x.shape[-1] == 2:
        return _minor(x, (0, 1), (0, 1))
    return _det_of_three(x) if x.shape[-1] == 3 else _det(x)


def _det_of_three(a):
    first, second, third = (
        a[..., 0, i] * _minor(a, (1, 2), pair)
        for i, pair in enumerate([(1, 2), (0, 2), (0, 1)])
    )
    return first - second + third


def _minor(a, rows, columns):
    (i, j), (m, n) = rows, columns
    return a[..., i, m] * a[..., j, n] - a[..., i, n] * a[..., j, m]


@custom_jvp
def _det(a):
    sign, logarithm = slogdet(a)
    return sign * jnp.exp(logarithm).astype(sign.dtype)


@_det.defjvp
def _det_jvp(primals, tangents):
    det, moved = _times_cofactors(*primals, *tangents)
    return det, jnp.trace(moved, axis1=-1, axis2=-2)


def _times_cofactors(a, b):
    n = a.shape[-1]
    if n < 2:
        return _det(a), b
    both, pivots, rows = lu(a)
    diagonal = jnp.diagonal(both, axis1=-2, axis2=-1)
    signs = _signs_of(pivots).astype(a.dtype)
    partial_dets = jnp.cumprod(diagonal, axis=-1) * signs[..., None]
    last, without = partial_dets[..., -1, None, None], partial_dets[..., -2, None, None]
    at_end = lax.broadcasted_iota("int32", a.shape, a.ndim - 1) == n - 1
    at_end &= lax.broadcasted_iota("int32", a.shape, a.ndim - 2) == n - 1
    both = jnp.where(at_end, 1 / without, both)
    ones = jnp.ones_like(b[..., :1])
    trial = triangular_solve(both, ones, left_side=True)
    hopeless = ~jnp.isfinite(trial).all((-2, -1), keepdims=True)  # rank below n - 1
    x = permute_rows(jnp.where(hopeless, 0, b), rows)
    unit = {"left_side": True, "lower": True, "unit_diagonal": True}
    x = triangular_solve(both, x, **unit)
    x = jnp.concatenate([x[..., :-1, :] * last, x[..., -1:, :]], -2)
    x = triangular_solve(both, x, left_side=True)
    return last[..., 0, 0], jnp.where(hopeless, 0, x)


# Least squares, pseudo-inverses, ranks and chains of products.


@promoting
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
    [a] = promote_dtypes_inexact(as_arraylike("linalg.pinv", a))
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
    a, a_dot = (symmetrize(x) if hermitian else x for x in (a, a_dot))
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
    x, y = (as_arraylike("linalg.lstsq", x) for x in (a, b))
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
    [m] = promote_dtypes_inexact(as_arraylike("linalg.matrix_rank", M))
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
    x = as_arraylike("linalg.cond", x)
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
      precision: as in ``minijax.lax.dot_general``.

    Raises:
      ValueError: if their shapes do not fit.

    Reference: ``jax.numpy.linalg.multi_dot``.
    """
    chain = [as_arraylike("linalg.multi_dot", x) for x in arrays]
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
    return _chained(chain, _splits(sizes), 0, len(chain), precision)


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


def _chained(chain, splits, i, j, precision):
    k = splits[i, j][1]
    if k is None:
        return chain[i]
    left = _chained(chain, splits, i, k, precision)
    right = _chained(chain, splits, k, j, precision)
    return jnp.matmul(left, right, precision=precision)
