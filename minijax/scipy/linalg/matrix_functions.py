"""Schur and Hessenberg forms, functions of matrices, tridiagonal eigenvalues.

References: ``jax.scipy.linalg``; N. Higham, *Functions of Matrices* (2008), chapters
4 and 6; Golub and Van Loan, *Matrix Computations*, sections 7.6.3 and 9.1.4,
``jax.scipy.linalg.eigh_tridiagonal``; W. Barth, R. Martin and J. Wilkinson,
*Calculation of the eigenvalues of a symmetric tridiagonal matrix by the method of
bisection* (1967); Golub and Van Loan, *Matrix Computations*, sections 8.4 and 8.2.2.
"""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from minijax import jit, lax, random
from minijax import numpy as jnp
from minijax.core import Array
from minijax.extend.arguments import check_rank
from minijax.extend.dtypes import complex_dtype_of
from minijax.extend.promotion import promote_dtypes_inexact
from minijax.lax.linalg import eig as _eig
from minijax.lax.linalg import triangular_solve, tridiagonal_solve
from minijax.linear_algebra.lax_linalg import geqrf_p
from minijax.numpy import vectorize
from minijax.typing import ArrayLike

# Schur and Hessenberg forms with the names of SciPy, and functions of matrices.


def _complex(*args):
    args = promote_dtypes_inexact(*map(jnp.asarray, args))
    return [
        x if x.dtype.kind == "c" else x.astype(complex_dtype_of(x.dtype)) for x in args
    ]


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
    return list(lax.linalg.schur(_complex(x)[0] if output == "complex" else x))


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
        stays = lambda m, *tz: tz  # noqa: E731
        t, z = lax.cond(below > eps * diagonal, _rotated, stays, m, t, z)
        return t.at[m, m - 1].set(0), z

    return lax.fori_loop(1, n, step, (t, z)) if n > 1 else (t, z)


def _rotated(m, t, z):
    block = lax.dynamic_slice(t, (m - 1, m - 1), (2, 2))
    shift, below = _values(block)[0] - block[1, 1], block[1, 0]
    length = jnp.hypot(abs(shift), abs(below)).astype(t.dtype)
    c, s = shift / length, below / length
    turn, places = jnp.array([[c.conj(), s], [-s, c]]), jnp.arange(len(t))
    rows = lax.dynamic_slice_in_dim(t, m - 1, 2, 0)
    rows = jnp.where(places >= m - 1, turn @ rows, rows)
    t = lax.dynamic_update_slice_in_dim(t, rows, m - 1, 0)

    def from_right(x, above):
        columns = lax.dynamic_slice_in_dim(x, m - 1, 2, 1)
        columns = jnp.where(above, columns @ turn.mT.conj(), columns)
        return lax.dynamic_update_slice_in_dim(x, columns, m - 1, 1)

    return from_right(t, places[:, None] <= m), from_right(z, True)


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
    both, taus = lax.linalg.hessenberg(x)
    h = jnp.triu(both, -1)
    if not calc_q:
        return h
    q = lax.linalg.householder_product(both[..., 1:, :-1], taus)
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
        q, r, *order = lax.linalg.qr(x, pivoting=True)
        found = q @ y if left else y @ q
    else:
        (r, taus), order = geqrf_p.bind(x), []
        found = lax.linalg.ormqr(r, taus, y, left=left)
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
    return z @ _root_of_triangle(t) @ z.mT.conj()


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
    f = z @ f @ z.mT.conj()
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


@partial(jit, static_argnums=(0, 1))  # eager or within a program: the same numbers
def _sylvester(solved, tol, a, b, c):
    x = solved(a, b, c)
    x = x if c.dtype.kind == "c" else x.real
    near = abs(_values(a)[:, None] + _values(b)[None, :]) < tol
    return jnp.where(near.any(), np.nan, x)


def _sylvester_by_triangles(a, b, c):
    (r, u), (s, v) = schur(a, "complex"), schur(b.mT.conj(), "complex")
    c = u.mT.conj() @ c.astype(r.dtype) @ v
    return u @ _columns(r, s.mT.conj(), c) @ v.mT.conj()


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
    right = jnp.linalg.solve(u, c.astype(w.dtype) @ v)
    return u @ (right / (w[:, None] + s[None])) @ jnp.linalg.inv(v)


# Eigenvalues and eigenvectors of Hermitian tridiagonal matrices.


def _targets(select, select_range, n):
    """Return which eigenvalues are wanted, by their places in ascending order."""
    if select == "a":
        return np.arange(n, dtype="int32")
    if select == "v":
        raise NotImplementedError("eigh_tridiagonal(..., select='v') is not supported.")
    if select != "i":
        raise ValueError(f"select must be 'a', 'i' or 'v', got {select!r}.")
    if select_range is None:
        raise ValueError("for select='i', select_range must be specified.")
    first, last = select_range
    if first > last:
        raise ValueError("Got empty index range in select_range.")
    return np.arange(first, last + 1, dtype="int32")


def _count_below(alpha, squares, least, x):
    """Count the eigenvalues below each `x`: the negative pivots of an elimination."""

    def step(pivot, numbers):
        a, square = numbers
        pivot = a - square / pivot - x
        negative = pivot <= least
        return jnp.where(negative, jnp.minimum(pivot, -least), pivot), negative

    start = alpha[0] - x
    start = jnp.where(abs(start) <= least, -least, start)
    _, negative = lax.scan(step, start, (alpha[1:], squares))
    return (start < 0).astype("int32") + negative.sum(0, dtype="int32")


@jit
def _bisected(alpha, sizes, targets, tol):
    numbers, n = jnp.finfo(alpha.dtype), len(alpha)
    squares = sizes * sizes
    radius = jnp.pad(sizes, (1, 0)) + jnp.pad(sizes, (0, 1))
    low, high = (alpha - radius).min(), (alpha + radius).max()
    norm = jnp.maximum(abs(low), abs(high))
    least = numbers.tiny * (1 + numbers.eps) * jnp.maximum(1, squares.max(initial=0))
    slack = 2.1 * n * numbers.eps * norm + 4.2 * least
    ends = [jnp.full(targets.shape, end) for end in (low - slack, high + slack)]
    enough = jnp.maximum(numbers.eps * norm, tol)

    def go_on(state):
        count, low, high = state
        return (count <= numbers.nmant) & ((high - low).max() > enough)

    def halve(state):
        count, low, high = state
        middle = (low + high) / 2
        above = _count_below(alpha, squares, least, middle) > targets
        low = jnp.where(above, low, middle)
        return count + 1, low, jnp.where(above, middle, high)

    _, low, high = lax.while_loop(go_on, halve, (0, *ends))
    return (low + high) / 2


@jit
def _vectors(alpha, beta, values, key):
    """Return eigenvectors in rows, by inverse iteration from random ones."""
    (k,), n = values.shape, len(alpha)
    norm = jnp.maximum(abs(values[0]), abs(values[-1]))
    close = jnp.diff(values) < 1e-3 * norm
    cluster = jnp.cumsum(jnp.pad(~close, (1, 0)))
    shifted = (alpha[None] - values[:, None]).astype(beta.dtype)
    low, up = jnp.pad(beta.conj(), (1, 0)), jnp.pad(beta, (0, 1))
    low, up = (jnp.broadcast_to(x, (k, n)) for x in (low, up))

    def straighten(i, v):
        kin = (cluster == cluster[i]) & (jnp.arange(k) < i)
        row = v[i]
        for _ in range(2):  # once is not enough
            row = row - jnp.where(kin, v.conj() @ row, 0) @ v
        return v.at[i].set(row / jnp.linalg.norm(row))

    def step(state):
        count, v, now, _ = state
        v = tridiagonal_solve(low, shifted, up, v[..., None], perturb_singular=True)
        size = jnp.linalg.norm(v[..., 0], axis=-1)
        v = v[..., 0] / size[:, None]
        return count + 1, lax.fori_loop(0, k, straighten, v), size, now

    def go_on(state):
        count, _, now, before = state
        return (count < 5) & (now >= 1.1 * before).any()

    start = random.normal(key, (k, n), dtype=alpha.dtype).astype(beta.dtype)
    start = start / jnp.linalg.norm(start, axis=-1, keepdims=True)
    sizes = jnp.ones_like(values), jnp.zeros_like(values)
    return lax.while_loop(go_on, step, (0, start, *sizes))[1]


def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: tuple[float, float] | None = None,
    tol: float | None = None,
    key: Array | None = None,
) -> Any:
    """Return eigenvalues and eigenvectors of a Hermitian tridiagonal matrix.

    Args:
      d: the diagonal, of shape ``[n]``; of complex numbers the real parts are read.
      e: the diagonal above, of shape ``[n - 1]`` and the same dtype.
      eigvals_only: whether to leave the vectors out.
      select: ``"a"`` for all eigenvalues, ``"i"`` for those at some places of the
        ascending order.
      select_range: the first and the last of these places.
      tol: how exact the eigenvalues have to be; by default as exact as can be.
      key: random key, from which the iteration for the vectors starts.

    Returns:
      The eigenvalues in ascending order, or a tuple of them and the vectors in columns.

    Raises:
      TypeError: for dtypes that are not the same, or have neither 32 nor 64 bits.
      ValueError: for another `select`, or no range for it.
      NotImplementedError: for ``select="v"``.

    Reference: ``jax.scipy.linalg.eigh_tridiagonal``.
    """
    alpha, beta = jnp.asarray(d), jnp.asarray(e)
    if alpha.dtype != beta.dtype:
        raise TypeError(
            "diagonal and off-diagonal values must have same dtype, got "
            f"{alpha.dtype} and {beta.dtype}"
        )
    if alpha.dtype.name not in ("float32", "float64", "complex64", "complex128"):
        raise TypeError(
            "eigh_tridiagonal takes numbers of 32 and 64 bits, got dtype "
            f"{alpha.dtype.name}."
        )
    n = len(alpha)
    if n <= 1:
        one = jnp.eye(n, dtype=alpha.dtype)
        return alpha.real if eigvals_only else (alpha.real, one)
    targets = _targets(select, select_range, n)
    values = _bisected(alpha.real, abs(beta), targets, 0 if tol is None else tol)
    if eigvals_only:
        return values
    key = random.key(42) if key is None else key
    return values, _vectors(alpha.real, beta, values, key).T
