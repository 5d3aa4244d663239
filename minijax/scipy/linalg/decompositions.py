"""Factorizations, solutions and exponentials of matrices with the names of SciPy.

References: ``jax.scipy.linalg``, ``jax.scipy.linalg.expm``; N. Higham, *The scaling
and squaring method for the matrix exponential revisited* (2005).
"""

# Made from chapters/33_library_ground.md by `make chapter`;
# edit the chapter, not this file.

import math
from functools import partial
from typing import Any

import numpy as np

from minijax import jvp, lax, vmap
from minijax import numpy as jnp
from minijax.core import Array
from minijax.extend.arguments import check_rank
from minijax.extend.promotion import promote_dtypes_inexact
from minijax.lax import custom_linear_solve
from minijax.lax.linalg import triangular_solve
from minijax.linear_algebra.factorizations import lu_solve_factors
from minijax.numpy import vectorize
from minijax.typing import ArrayLike

# Factorizations and solutions with the names of SciPy.


def _inexact(*args):
    return promote_dtypes_inexact(*map(jnp.asarray, args))


def cholesky(
    a: ArrayLike,
    lower: bool = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
) -> Array:
    """Return the Cholesky factors of Hermitian, positive definite matrices.

    Args:
      a: matrices, of which one triangle is read.
      lower: whether that is the lower one, and the factor a lower triangle.
      overwrite_a, check_finite: not used.

    Reference: ``jax.scipy.linalg.cholesky``.
    """
    [x] = _inexact(a)
    factor = lax.linalg.cholesky(x if lower else x.mT.conj(), symmetrize_input=False)
    return factor if lower else factor.mT.conj()


def cho_factor(
    a: ArrayLike,
    lower: bool = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
) -> tuple[Array, bool]:
    """Return a Cholesky factor for `cho_solve`, and whether it is a lower triangle.

    Reference: ``jax.scipy.linalg.cho_factor``.
    """
    return cholesky(a, lower=lower), lower


def cho_solve(
    c_and_lower: tuple[ArrayLike, bool],
    b: ArrayLike,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """Solve systems by a factor of `cho_factor`.

    Reference: ``jax.scipy.linalg.cho_solve``.
    """
    c, lower = c_and_lower
    x = solve_triangular(c, b, 0 if lower else 2, lower)
    return solve_triangular(c, x, 2 if lower else 0, lower)


def _signature(a, b):
    """Return what a system is: one right side, also a batch of them, or columns."""
    check_rank("a solver of systems", 2, a)
    batch = a.ndim == b.ndim + 1 and a.shape[-1] == b.shape[-1]
    return "(n,n),(n)->(n)" if b.ndim == 1 or batch else "(n,n),(n,k)->(n,k)"


_TRANS: dict[Any, int] = {0: 0, 1: 1, 2: 2, "N": 0, "T": 1, "C": 2}


def solve_triangular(
    a: ArrayLike,
    b: ArrayLike,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    debug: Any = None,
    check_finite: bool = True,
) -> Array:
    """Solve triangular systems of equations.

    Args:
      a: triangular matrices, of shape ``[..., n, n]``.
      b: one right side, of shape ``[n]``, or several in columns, ``[..., n, k]``; with
        one axis less than `a` and n last, one for each matrix.
      trans: 0 or ``"N"`` for `a`, 1 or ``"T"`` for its transpose, 2 or ``"C"`` for its
        adjoint.
      lower: which triangle is read.
      unit_diagonal: whether the diagonal is ones, and not read.
      overwrite_b, debug, check_finite: not used.

    Raises:
      ValueError: for another `trans`.

    Reference: ``jax.scipy.linalg.solve_triangular``.
    """
    if trans not in _TRANS:
        raise ValueError(f"Invalid 'trans' value {trans}")
    how: dict = {"lower": lower, "unit_diagonal": unit_diagonal}
    how |= {"transpose_a": _TRANS[trans] > 0, "conjugate_a": _TRANS[trans] == 2}
    c, x = _inexact(a, b)
    one = partial(triangular_solve, left_side=True, **how)
    return vectorize(one, signature=_signature(c, x))(c, x)


def solve(
    a: ArrayLike,
    b: ArrayLike,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    debug: bool = False,
    check_finite: bool = True,
    assume_a: str = "gen",
) -> Array:
    """Solve systems of linear equations.

    Args:
      a: square matrices.
      b: right sides.
      lower: which triangle is read if `a` is positive definite.
      overwrite_a, overwrite_b, debug, check_finite: not used.
      assume_a: ``"pos"`` for Hermitian, positive definite matrices, which a Cholesky
        factor solves; ``"gen"``, ``"sym"``, ``"her"`` otherwise.

    Raises:
      ValueError: for another `assume_a`.

    Reference: ``jax.scipy.linalg.solve``.
    """
    if assume_a not in ("gen", "sym", "her", "pos"):
        raise ValueError(
            "Expected assume_a to be one of ['gen', 'sym', 'her', 'pos']; got "
            f"{assume_a!r}"
        )
    if assume_a != "pos":
        return jnp.linalg.solve(a, b)
    c, x = _inexact(a, b)
    one = partial(_solve_definite, lower=lower)
    return vectorize(one, signature=_signature(c, x))(c, x)


def _solve_definite(a, b, lower):
    factor = cho_factor(lax.stop_gradient(a), lower)

    def by_conjugates(_, x):  # the transpose of a Hermitian matrix is its conjugate
        return cho_solve(factor, x.conj()).conj()

    how: dict = {"symmetric": True}
    if jnp.iscomplexobj(a):
        how = {"transpose_solve": by_conjugates}

    def one(b):
        return custom_linear_solve(
            lambda x: a @ x, b, lambda _, x: cho_solve(factor, x), **how
        )

    return one(b) if b.ndim == 1 else vmap(one, 1, 1)(b)


def lu_factor(
    a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, Array]:
    """Return the LU factors of matrices in one array, and the pivots.

    Reference: ``jax.scipy.linalg.lu_factor``.
    """
    both, pivots, _ = lax.linalg.lu(*_inexact(a))
    return both, pivots


def lu_solve(
    lu_and_piv: tuple[ArrayLike, ArrayLike],
    b: ArrayLike,
    trans: int = 0,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """Solve systems by the factors of `lu_factor`.

    Args:
      lu_and_piv: factors and pivots.
      b: right sides.
      trans: 0 for the matrix, 1 for its transpose, 2 for its adjoint.
      overwrite_b, check_finite: not used.

    Raises:
      ValueError: for another `trans`.

    Reference: ``jax.scipy.linalg.lu_solve``.
    """
    if trans not in (0, 1, 2):
        raise ValueError(f"'trans' value must be 0, 1, or 2, got {trans}")
    lu, pivots = lu_and_piv
    factors, x = _inexact(lu, b)
    pivots = jnp.asarray(pivots)
    check_rank("lu_solve", 2, factors)
    check_rank("lu_solve", 1, pivots, x)
    rows = lax.linalg.lu_pivots_to_permutation(pivots, factors.shape[-1])
    one_column = _signature(factors, x) == "(n,n),(n)->(n)"
    solved = vectorize(
        lambda f, r, x: lu_solve_factors(f, r, x, trans),
        signature="(n,n),(n),(n,k)->(n,k)",
    )
    x = solved(factors, rows, x[..., None] if one_column else x)
    return x[..., 0] if one_column else x


def lu(
    a: ArrayLike,
    permute_l: bool = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
) -> tuple[Array, ...]:
    """Return the factors p, l and u of a matrix.

    Args:
      a: a matrix, of shape ``[m, n]``.
      permute_l: whether to return ``p @ l`` and u alone.
      overwrite_a, check_finite: not used.

    Raises:
      ValueError: for a batch of matrices; `vmap` takes one.

    Reference: ``jax.scipy.linalg.lu``.
    """
    [x] = _inexact(a)
    if x.ndim != 2:
        raise ValueError(
            f"lu takes one matrix, got an array of shape {x.shape}. Use vmap(lu), or "
            "lax.linalg.lu, which takes a batch."
        )
    both, _, rows = lax.linalg.lu(x)
    m, k = x.shape[0], min(x.shape)
    p = (rows[None, :] == jnp.arange(m)[:, None]).astype(x.real.dtype)
    lower = jnp.tril(both, -1)[:, :k] + jnp.eye(m, k, dtype=x.dtype)
    upper = jnp.triu(both)[:k, :]
    return (p.astype(x.dtype) @ lower, upper) if permute_l else (p, lower, upper)


def qr(
    a: ArrayLike,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> tuple[Array, ...]:
    """Return the factors q and r of matrices.

    Args:
      a: matrices.
      mode: ``"full"``, ``"economic"``, or ``"r"`` for r alone.
      pivoting: whether columns are exchanged, so that the diagonal of r falls in size;
        their order is returned as well.
      overwrite_a, lwork, check_finite: not used.

    Raises:
      ValueError: for another mode.

    Reference: ``jax.scipy.linalg.qr``.
    """
    if mode not in ("full", "r", "economic"):
        raise ValueError(f"Unsupported QR decomposition mode '{mode}'")
    [x] = _inexact(a)
    full = mode != "economic"
    q, *rest = lax.linalg.qr(x, pivoting=pivoting, full_matrices=full)
    return (*rest,) if mode == "r" else (q, *rest)


def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Any:
    """Return the singular value decomposition of matrices.

    Reference: ``jax.scipy.linalg.svd``.
    """
    how: dict = {"full_matrices": full_matrices, "compute_uv": compute_uv}
    return lax.linalg.svd(*_inexact(a), **how)


def eigh(
    a: ArrayLike,
    b: ArrayLike | None = None,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: None = None,
    type: int = 1,
    check_finite: bool = True,
) -> Any:
    """Return eigenvalues, and eigenvectors, of Hermitian matrices.

    Args:
      a: matrices.
      b, eigvals: have to be None.
      lower: which triangle is read.
      eigvals_only: whether to leave the vectors out.
      type: has to be 1.
      overwrite_a, overwrite_b, turbo, check_finite: not used.

    Raises:
      NotImplementedError: for other values of `b`, `eigvals` or `type`.

    Reference: ``jax.scipy.linalg.eigh``.
    """
    wanted = {"b": (b, None), "type": (type, 1), "eigvals": (eigvals, None)}
    for name, (given, only) in wanted.items():
        if given is not only and (only is None or given != only):
            raise NotImplementedError(
                f"Only the {name}={only} case of eigh is implemented."
            )
    v, w = lax.linalg.eigh(*_inexact(a), lower=lower)
    return w if eigvals_only else (w, v)


def det(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """Return the determinants of square matrices.

    Reference: ``jax.scipy.linalg.det``.
    """
    return jnp.linalg.det(a)


def inv(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """Return the inverses of square matrices.

    Reference: ``jax.scipy.linalg.inv``.
    """
    return jnp.linalg.inv(a)


def polar(
    a: ArrayLike,
    side: str = "right",
    *,
    method: str = "qdwh",
    eps: float | None = None,
    max_iterations: int | None = None,
) -> tuple[Array, Array]:
    """Return the factors u and p of matrices, ``u @ p``; p is Hermitian.

    Args:
      a: matrices.
      side: ``"right"`` for ``u @ p``, ``"left"`` for ``p @ u``.
      method: ``"qdwh"`` or ``"svd"``; singular values do both.
      eps, max_iterations: not used.

    Raises:
      ValueError: for another `side` or `method`.

    Reference: ``jax.scipy.linalg.polar``.
    """
    [x] = _inexact(a)
    if x.ndim < 2:
        raise ValueError("The input `a` must be at least a 2-D array.")
    if side not in ("right", "left"):
        raise ValueError("The argument `side` must be either 'right' or 'left'.")
    if method not in ("qdwh", "svd"):
        raise ValueError(f"Unknown polar decomposition method {method}.")
    u, s, vh = lax.linalg.svd(x, full_matrices=False)
    if side == "right":
        return u @ vh, (vh.mT.conj() * s[..., None, :].astype(x.dtype)) @ vh
    return u @ vh, (u * s[..., None, :].astype(x.dtype)) @ u.mT.conj()


# Exponentials of matrices.

# Of the approximant for 32 and 64 bits, the degree and the largest norm.
_DEGREES = {4: (7, 3.925724783138660), 8: (13, 5.371920351148152)}


def _pade_parts(a, degree):
    """Return the odd and the even part of the numerator of Padé's approximant."""
    weights = [
        math.factorial(2 * degree - k)
        * math.factorial(degree)
        / (math.factorial(2 * degree) * math.factorial(k) * math.factorial(degree - k))
        for k in range(degree + 1)
    ]
    one, square = jnp.eye(a.shape[-1], dtype=a.dtype), a @ a
    odd = even = jnp.zeros_like(a)
    for k in range(degree - 1, -1, -2):
        odd = odd @ square + weights[k + 1] * one
        even = even @ square + weights[k] * one
    return a @ odd, even


def _exponential(a, upper_triangular, max_squarings):
    degree, largest = _DEGREES[lax.abs(a).dtype.itemsize]
    norm = lax.abs(a).sum(0).max(initial=0)
    times = jnp.maximum(0, jnp.ceil(jnp.log2(norm / largest)))
    odd, even = _pade_parts(a / jnp.exp2(times).astype(a.dtype), degree)
    if upper_triangular:
        x = solve_triangular(even - odd, even + odd)
    else:
        x = solve(even - odd, even + odd)

    def step(x, k):
        return jnp.where(k < times, x @ x, x), None

    x, _ = lax.scan(step, x, jnp.arange(max_squarings, dtype=times.dtype))
    return jnp.where(times > max_squarings, np.nan, x)


def expm(
    A: ArrayLike, *, upper_triangular: bool = False, max_squarings: int = 16
) -> Array:
    """Return the exponentials of square matrices.

    Args:
      A: matrices, of shape ``[..., n, n]``.
      upper_triangular: whether they are upper triangles.
      max_squarings: how often a result is squared at most; NaN where that is too few.

    Raises:
      ValueError: for other shapes.

    Reference: ``jax.scipy.linalg.expm``.
    """
    [x] = promote_dtypes_inexact(jnp.asarray(A))
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError(
            f"Expected A to be a (batched) square matrix, got A.shape={x.shape}."
        )
    if x.dtype.itemsize == 2:
        raise TypeError(f"A.dtype={x.dtype} is not supported.")
    one = vectorize(
        lambda x: _exponential(x, upper_triangular, max_squarings),
        signature="(n,n)->(n,n)",
    )
    return one(x)


def expm_frechet(
    A: ArrayLike,
    E: ArrayLike,
    *,
    method: str | None = None,
    compute_expm: bool = True,
) -> Any:
    """Return `expm` of matrices, and its derivative in the direction of others.

    Args:
      A, E: square matrices of one shape.
      method: not used.
      compute_expm: whether to return the exponential as well.

    Raises:
      ValueError: if their shapes differ.

    Reference: ``jax.scipy.linalg.expm_frechet``.
    """
    x, direction = promote_dtypes_inexact(jnp.asarray(A), jnp.asarray(E))
    if x.shape != direction.shape:
        raise ValueError(
            "expected A and E to be the same shape, got "
            f"A.shape={x.shape} E.shape={direction.shape}"
        )
    value, slope = jvp(expm, (x,), (direction,))
    return (value, slope) if compute_expm else slope
