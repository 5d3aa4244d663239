"""Schur and Hessenberg forms with the names of SciPy, and functions of matrices.

Reference: ``jax.scipy.linalg``; N. Higham, *Functions of Matrices* (2008), chapters 4
and 6; Golub and Van Loan, *Matrix Computations*, sections 7.6.3 and 9.1.4.
"""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.arrays.checks import check_rank, to_complex
from minijax.branches.calling import vectorize
from minijax.core import Array
from minijax.factorizations import orthogonal_factors as _orthogonal
from minijax.factorizations import systems as _systems
from minijax.factorizations.matrices import adjoint
from minijax.factorizations.triangular import triangular_solve
from minijax.jitting.api import jit
from minijax.lax.linalg import reductions as _reductions
from minijax.lax.linalg import schur_forms as _schur_forms
from minijax.lax.linalg.general_eigenvectors import eig as _eig
from minijax.lax.promotion import promote_dtypes_inexact
from minijax.typing import ArrayLike


def _complex(*args):
    args = promote_dtypes_inexact(*map(jnp.asarray, args))
    return [x if x.dtype.kind == "c" else x.astype(to_complex(x.dtype)) for x in args]


def _values(x):
    w, *_ = _eig(x, compute_left_eigenvectors=False, compute_right_eigenvectors=False)
    return w


def schur(a: ArrayLike, output: str = "real") -> list[Array]:
    """Return Schur forms t and unitary matrices z with ``a = z @ t @ z.mT.conj()``.

    Args:
      a: matrices, of shape ``[..., n, n]``.
      output: ``"real"``, where real matrices have real forms, with blocks of two rows;
        or ``"complex"``, where all are triangles.

    Raises:
      ValueError: for another `output`.

    Reference: ``jax.scipy.linalg.schur``.
    """
    if output not in ("real", "complex"):
        raise ValueError(
            "Expected 'output' to be either 'real' or 'complex', got "
            f"output={output!r}."
        )
    x = jnp.asarray(a)
    return list(_schur_forms.schur(_complex(x)[0] if output == "complex" else x))


def rsf2csf(
    T: ArrayLike, Z: ArrayLike, check_finite: bool = True
) -> tuple[Array, Array]:
    """Make triangles of real Schur forms: rotate each block of two rows.

    Args:
      T, Z: what `schur` returns, of shape ``[..., n, n]``.
      check_finite: not used.

    Raises:
      ValueError: if they are not square and of one size.

    Reference: ``jax.scipy.linalg.rsf2csf``.
    """
    t, z = jnp.asarray(T), jnp.asarray(Z)
    for name, x in (("T", t), ("Z", z)):
        if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
            raise ValueError(f"Input '{name}' must be square.")
    if t.shape[-1] != z.shape[-1]:
        raise ValueError(
            f"Input array shapes must match: Z: {z.shape} vs. T: {t.shape}"
        )
    return vectorize(_triangles, signature="(n,n),(n,n)->(n,n),(n,n)")(*_complex(t, z))


@jit
def _triangles(t, z):
    n, eps = len(t), jnp.finfo(t.dtype).eps

    def step(i, both):
        (t, z), m = both, n - i
        below, diagonal = abs(t[m, m - 1]), abs(t[m, m]) + abs(t[m - 1, m - 1])
        return lax.cond(below > eps * diagonal, _rotated, lambda m, *tz: tz, m, t, z)

    t, z = lax.fori_loop(1, n, step, (t, z)) if n > 1 else (t, z)
    return jnp.triu(t), z


def _rotated(m, t, z):
    block = lax.dynamic_slice(t, (m - 1, m - 1), (2, 2))
    shift, below = _values(block)[0] - block[1, 1], block[1, 0]
    length = jnp.hypot(abs(shift), abs(below)).astype(t.dtype)
    c, s = shift / length, below / length
    turn = jnp.array([[c.conj(), s], [-s, c]])
    rows = turn @ lax.dynamic_slice_in_dim(t, m - 1, 2, 0)
    t = lax.dynamic_update_slice_in_dim(t, rows, m - 1, 0)

    def from_right(x):
        columns = lax.dynamic_slice_in_dim(x, m - 1, 2, 1) @ adjoint(turn)
        return lax.dynamic_update_slice_in_dim(x, columns, m - 1, 1)

    return from_right(t), from_right(z)


def hessenberg(
    a: ArrayLike,
    *,
    calc_q: bool = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
) -> Any:
    """Return Hessenberg forms h, and the unitary q with ``a = q @ h @ q.mT.conj()``.

    Args:
      a: matrices, of shape ``[..., n, n]``.
      calc_q: whether q is returned.
      overwrite_a, check_finite: not used.

    Reference: ``jax.scipy.linalg.hessenberg``.
    """
    x = jnp.asarray(a)
    check_rank("hessenberg", 2, x)
    if not x.shape[-1]:
        return (jnp.zeros_like(x),) * 2 if calc_q else jnp.zeros_like(x)
    both, taus = _reductions.hessenberg(x)
    h = jnp.triu(both, -1)
    if not calc_q:
        return h
    q = _reductions.householder_product(both[..., 1:, :-1], taus)
    q = jnp.pad(q, [(0, 0)] * (x.ndim - 2) + [(1, 0), (1, 0)])
    return h, q.at[..., 0, 0].set(1)


def qr_multiply(
    a: ArrayLike,
    c: ArrayLike,
    mode: str = "right",
    pivoting: bool = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> tuple[Array, ...]:
    """Multiply by the q of QR factorizations, which is not formed, and return r.

    Args:
      a: matrices to factor, of shape ``[..., m, n]``.
      c: matrices, or a vector; of ``min(m, n)`` rows on the right of q, and of m
        columns on its left.
      mode: ``"right"`` for ``c @ q``, ``"left"`` for ``q @ c``.
      pivoting: whether columns are exchanged; their order is returned as well.
      conjugate: whether q is conjugated.
      overwrite_a, overwrite_c: not used.

    Raises:
      ValueError: for another `mode`, or shapes that do not fit.

    Reference: ``jax.scipy.linalg.qr_multiply``.
    """
    x, y = promote_dtypes_inexact(jnp.asarray(a), jnp.asarray(c))
    if mode not in ("right", "left"):
        raise ValueError(f"mode must be 'right' or 'left', got {mode!r}")
    check_rank("qr_multiply", 2, x)
    check_rank("qr_multiply", 1, y)
    single, left = y.ndim == 1, mode == "left"
    y = (y[:, None] if left else y[None, :]) if single else y
    m, k = x.shape[-2], min(x.shape[-2:])
    if y.shape[-2 if left else -1] != (k if left else m):
        raise ValueError(
            f"Array shapes are not compatible for {'Q @ c' if left else 'c @ Q'}: a "
            f"has shape {x.shape}, c has shape {y.shape}, and Q is {m} by {k}."
        )
    batch = jnp.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    x, y = (jnp.broadcast_to(z, (*batch, *z.shape[-2:])) for z in (x, y))
    if left:
        y = jnp.pad(y, [(0, 0)] * (y.ndim - 2) + [(0, m - k), (0, 0)])
    y = y.conj() if conjugate else y
    if pivoting:
        q, r, *order = _orthogonal.qr(x, pivoting=True)
        found = q @ y if left else y @ q
    else:
        (r, taus), order = _reductions.geqrf_p.bind(x), []
        found = _reductions.ormqr(r, taus, y, left=left)
    found = found.conj() if conjugate else found
    found = found if left else found[..., :k]
    return found.ravel() if single else found, jnp.triu(r[..., :k, :]), *order


def sqrtm(A: ArrayLike, blocksize: int = 1) -> Array:
    """Return the principal square root of a matrix, complex.

    Args:
      A: a matrix, of shape ``[n, n]``.
      blocksize: at most 1.

    Raises:
      NotImplementedError: for larger blocks.

    Reference: ``jax.scipy.linalg.sqrtm``.
    """
    if blocksize > 1:
        raise NotImplementedError("Blocked version is not implemented yet.")
    t, z = schur(A, "complex")
    return z @ _root_of_triangle(t) @ adjoint(z)


@jit
def _root_of_triangle(t):
    roots = jnp.sqrt(jnp.diagonal(t))

    def number(back, root, j):
        i = j - 1 - back
        rest = t[i, j] - root[i] @ root[:, j]
        part = jnp.where(rest == 0, 0, rest / (roots[i] + roots[j]))
        return root.at[i, j].set(part)

    def column(j, root):
        return lax.fori_loop(0, j, lambda back, root: number(back, root, j), root)

    return lax.fori_loop(0, len(t), column, jnp.diag(roots))


def funm(A: ArrayLike, func: Callable[[Array], Array], disp: bool = True) -> Any:
    """Return a function of a matrix, complex, by Parlett's recurrence.

    Args:
      A: a matrix, of shape ``[n, n]``.
      func: function of an array of numbers, of each by itself.
      disp: whether to leave an estimate of the relative error out.

    Returns:
      An array, or a tuple of it and the estimate. It loses digits where eigenvalues are
      close to each other.

    Raises:
      ValueError: for other shapes.

    Reference: ``jax.scipy.linalg.funm``.
    """
    x = jnp.asarray(A)
    if x.ndim != 2 or x.shape[0] != x.shape[1]:
        raise ValueError("expected square array_like input")
    [t, z] = schur(x)
    t, z = rsf2csf(t, z)
    f, least = _recurrence(jnp.diag(func(jnp.diagonal(t))).astype(t.dtype), t)
    f = z @ f @ adjoint(z)
    if disp:
        return f
    eps = jnp.finfo(f.dtype).eps
    least = jnp.where(least == 0, eps, least)
    size = jnp.linalg.norm(jnp.triu(t, 1), 1)
    error = jnp.minimum(1, jnp.maximum(eps, eps / least * size))
    return f, jnp.where(jnp.isinf(f).any(), np.inf, error)


@jit
def _recurrence(f, t):
    n, values, numbers = len(t), jnp.diagonal(f), jnp.diagonal(t)
    i, above = jnp.arange(n), jnp.triu(t, 1)

    def step(p, state):
        f, least = state
        j, inside = (i + p) % n, i + p < n
        known = jnp.triu(f, 1)
        total = (above * known.T[j]).sum(1) - (known * above.T[j]).sum(1)
        total = total + t[i, j] * (values[j] - values)
        gaps = numbers[j] - numbers
        same = jnp.equal(gaps, 0)
        total = jnp.where(same, total, total / jnp.where(same, 1, gaps))
        least = jnp.minimum(least, jnp.where(inside, abs(gaps), np.inf).min())
        return f.at[i, j].add(jnp.where(inside, total, 0)), least

    return lax.fori_loop(1, n, step, (f, abs(t[0, 0])))


def solve_sylvester(
    A: ArrayLike,
    B: ArrayLike,
    C: ArrayLike,
    *,
    method: str = "schur",
    tol: float = 1e-8,
) -> Array:
    """Solve ``A @ X + X @ B = C`` for X.

    Args:
      A, B: square matrices, of shapes ``[..., m, m]`` and ``[..., n, n]``.
      C: matrices, of shape ``[..., m, n]``.
      method: ``"schur"``, or ``"eigen"``, which needs eigenvectors.
      tol: NaN is returned if an eigenvalue of A plus one of B is smaller.

    Raises:
      ValueError: for shapes that do not fit, or another `method`.

    Reference: ``jax.scipy.linalg.solve_sylvester``.
    """
    a, b, c = promote_dtypes_inexact(*map(jnp.asarray, (A, B, C)))
    m, n = c.shape[-2:]
    if a.shape[-2:] != (m, m) or b.shape[-2:] != (n, n):
        raise ValueError(
            "Incompatible shapes for Sylvester equation:\n"
            f"A: {a.shape}\nB: {b.shape}\nC: {c.shape}"
        )
    ways = {"schur": _sylvester_by_triangles, "eigen": _sylvester_by_values}
    if method not in ways:
        raise ValueError(
            f"Unrecognized method {method}. The two valid methods are either "
            '"schur" or "eigen".'
        )
    one = partial(_sylvester, ways[method], tol)
    return vectorize(one, signature="(m,m),(n,n),(m,n)->(m,n)")(a, b, c)


def _sylvester(solved, tol, a, b, c):
    x = solved(a, b, c)
    x = x if c.dtype.kind == "c" else x.real
    near = abs(_values(a)[:, None] + _values(b)[None, :]) < tol
    return jnp.where(near.any(), np.nan, x)


def _sylvester_by_triangles(a, b, c):
    (r, u), (s, v) = schur(a, "complex"), schur(adjoint(b), "complex")
    return u @ _columns(r, adjoint(s), adjoint(u) @ c.astype(r.dtype) @ v) @ adjoint(v)


@jit
def _columns(r, s, right):
    """Solve ``r @ y + y @ s = right`` for an upper triangle r and a lower one s."""
    n, one = right.shape[1], jnp.eye(len(r), dtype=r.dtype)

    def step(y, j):
        rest = right[:, j] - y @ s[:, j]
        column = triangular_solve(r + s[j, j] * one, rest, left_side=True)
        return y.at[:, j].set(column), None

    return lax.scan(step, jnp.zeros_like(right), jnp.arange(n), reverse=True)[0]


def _sylvester_by_values(a, b, c):
    (w, u), (s, v) = (_eig(x, compute_left_eigenvectors=False) for x in (a, b))
    right = _systems.solve(u, c.astype(w.dtype) @ v)
    return u @ (right / (w[:, None] + s)) @ _systems.inv(v)
