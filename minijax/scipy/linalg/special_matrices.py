"""Matrices with a pattern: Toeplitz, Hankel, Hilbert, Pascal and others.

Reference: ``jax.scipy.linalg``.
"""

# Made from chapters/33_library_ground.md by `make chapter`;
# edit the chapter, not this file.

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import numpy as jnp
from minijax.core import Array
from minijax.extend.arguments import check_arraylike, check_room, operator_index
from minijax.extend.promotion import promote_dtypes, promote_dtypes_inexact
from minijax.numpy import vectorize
from minijax.typing import ArrayLike


def block_diag(*arrs: ArrayLike) -> Array:
    """Return a matrix with the given ones along the diagonal, and zeros elsewhere.

    Raises:
      ValueError: if one has more than two axes.

    Reference: ``jax.scipy.linalg.block_diag``.
    """
    given = arrs or (jnp.zeros((1, 0)),)
    for place, x in enumerate(given):
        if np.ndim(x) > 2:
            raise ValueError(
                "Arguments to jax.scipy.linalg.block_diag must have at most 2 "
                f"dimensions, got {x} at argument {place}."
            )
    blocks = promote_dtypes(*map(jnp.atleast_2d, given))
    left, total = 0, sum(x.shape[1] for x in blocks)
    rows = []
    for x in blocks:
        right = total - left - x.shape[1]
        rows.append(jnp.pad(x, ((0, 0), (left, right))))
        left += x.shape[1]
    return jnp.concatenate(rows, axis=0)


def _at_sums(column, row, sign):
    """Return the entries of a sequence at ``i + sign * j``, for one column and row."""
    m, n = len(column), len(row)
    i, j = np.arange(m)[:, None], np.arange(n)
    if sign > 0:
        return jnp.concatenate([column, row[1:]])[i + j]
    return jnp.concatenate([row[:0:-1], column])[i - j + n - 1]


def toeplitz(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """Return matrices with constant diagonals.

    Args:
      c: the first column, of shape ``[..., m]``.
      r: the first row, whose first number is not used; the conjugate of `c` by default.

    Reference: ``jax.scipy.linalg.toeplitz``.
    """
    check_arraylike("toeplitz", c, *[] if r is None else [r])
    column = jnp.atleast_1d(c)
    row = column.conj() if r is None else jnp.atleast_1d(r)
    column, row = promote_dtypes(column, row)
    one = vectorize(lambda c, r: _at_sums(c, r, -1), signature="(m),(n)->(m,n)")
    return one(column, row)


def hankel(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """Return matrices with constant antidiagonals.

    Args:
      c: the first column, of shape ``[..., m]``.
      r: the last row, whose first number is not used; zeros by default.

    Raises:
      ValueError: for numbers.

    Reference: ``jax.scipy.linalg.hankel``.
    """
    check_arraylike("hankel", c, *[] if r is None else [r])
    column = jnp.asarray(c)
    row = jnp.zeros_like(column) if r is None else jnp.asarray(r)
    for name, x in (("c", column), ("r", row)):
        if not x.ndim:
            raise ValueError(
                f"hankel: {name} must be at least 1-dimensional, got a scalar."
            )
    column, row = promote_dtypes(column, row)
    one = vectorize(lambda c, r: _at_sums(c, r, 1), signature="(m),(n)->(m,n)")
    return one(column, row)


def circulant(c: ArrayLike) -> Array:
    """Return matrices whose columns are the first one, turned around.

    Reference: ``jax.scipy.linalg.circulant``.
    """
    check_arraylike("circulant", c)
    x = jnp.atleast_1d(c)
    places = np.arange(x.shape[-1])
    return x[..., (places[:, None] - places) % max(x.shape[-1], 1)]


def convolution_matrix(a: ArrayLike, n: int, mode: str = "full") -> Array:
    """Return matrices ``m`` with ``m @ v == convolve(a, v, mode)``, for n numbers v.

    Raises:
      ValueError: for an `n` that is not positive, no numbers, or another `mode`.

    Reference: ``jax.scipy.linalg.convolution_matrix``.
    """
    count = operator_index(n, "n of convolution_matrix")
    if count <= 0:
        raise ValueError(f"n must be a positive integer; got {n}.")
    check_arraylike("convolution_matrix", a)
    x = jnp.asarray(a)
    if x.ndim == 0:
        raise ValueError(
            "convolution_matrix: a must be at least 1-dimensional, got a scalar."
        )
    size = x.shape[-1]
    if not size:
        raise ValueError(f"len(a) must be at least 1; got shape {x.shape}.")
    if mode not in ("full", "valid", "same"):
        raise ValueError(f"mode must be one of 'full', 'valid', 'same'; got {mode!r}.")
    i, j = np.arange(size + count - 1)[:, None], np.arange(count)
    inside = (i >= j) & (i - j < size)
    whole = jnp.where(inside, x[..., np.clip(i - j, 0, size - 1)], 0)
    cut = {"full": 0, "valid": 2 * min(count, size) - 2, "same": min(count, size) - 1}
    first = cut[mode] // 2
    return whole[..., first : len(i) - (cut[mode] - first), :]


def leslie(f: ArrayLike, s: ArrayLike) -> Array:
    """Return matrices of births `f` in the first row and survivals `s` below.

    Raises:
      ValueError: unless `f` has one number more than `s`, and two at least.

    Reference: ``jax.scipy.linalg.leslie``.
    """
    check_arraylike("leslie", f, s)
    births, survivals = promote_dtypes(jnp.atleast_1d(f), jnp.atleast_1d(s))
    if births.shape[-1] < 2 or survivals.shape[-1] != births.shape[-1] - 1:
        raise ValueError(
            "Incorrect lengths for f and s: f needs 2 numbers at least, and one more "
            f"than s; got f shape {births.shape} and s shape {survivals.shape}."
        )
    one = vectorize(
        lambda f, s: jnp.diag(s, k=-1).at[0].set(f), signature="(n),(m)->(n,n)"
    )
    return one(births, survivals)


def companion(a: ArrayLike) -> Array:
    """Return the companion matrices of polynomials, the highest coefficient first.

    Raises:
      ValueError: for fewer than two coefficients.

    Reference: ``jax.scipy.linalg.companion``.
    """
    check_arraylike("companion", a)
    [x] = promote_dtypes_inexact(jnp.atleast_1d(a))
    if x.shape[-1] < 2:
        raise ValueError(
            "The length of `a` along the last axis must be at least 2; got shape "
            f"{x.shape}."
        )
    one = vectorize(
        lambda a: jnp.eye(len(a) - 1, k=-1, dtype=a.dtype).at[0].set(-a[1:] / a[0]),
        signature="(n)->(m,m)",
    )
    return one(x)


def fiedler(a: ArrayLike) -> Array:
    """Return the matrices of distances of numbers.

    Reference: ``jax.scipy.linalg.fiedler``.
    """
    check_arraylike("fiedler", a)
    x = jnp.atleast_1d(a)
    return abs(x[..., None] - x[..., None, :])


def fiedler_companion(a: ArrayLike) -> Array:
    """Return companion matrices of polynomials with five diagonals.

    Raises:
      ValueError: for no coefficients.

    Reference: ``jax.scipy.linalg.fiedler_companion``.
    """
    check_arraylike("fiedler_companion", a)
    [x] = promote_dtypes_inexact(jnp.atleast_1d(a))
    if not x.shape[-1]:
        raise ValueError(
            "fiedler_companion requires the last axis of 'a' to have nonzero length, "
            f"but got an array of shape {x.shape}."
        )
    return vectorize(_five_diagonals, signature="(n)->(m,m)")(x)


def _five_diagonals(a):
    n = len(a) - 1
    if n == 0:
        return jnp.zeros((0, 0), a.dtype)
    b = -a[1:] / a[0]
    table = np.zeros((n, n), int) + n  # which entry of b, or n + 1 for a one
    table[0, 0] = 0
    for i in range(0, n, 2):
        if i + 1 < n:
            table[i, i + 1] = i + 1
            table[i + 1, max(i - 1, 0)] = n + 1
        if i + 2 < n:
            table[i, i + 2] = n + 1
        if i >= 2:
            table[i, i - 1] = i
    return jnp.concatenate([b, jnp.array([0, 1], a.dtype)])[table]


def _matrix_size(name, n):
    """Return the size of a matrix for which there is room, as an integer."""
    n = operator_index(n, f"n of {name}")
    check_room(f"{name}({n})", max(n, 0), max(n, 0))
    return n


def hilbert(n: int) -> Array:
    """Return the matrix of ``1 / (i + j + 1)``.

    Reference: ``jax.scipy.linalg.hilbert``.
    """
    places = np.arange(_matrix_size("hilbert", n))
    return jnp.array(1 / (places[:, None] + places + 1), float)


def invhilbert(n: int) -> Array:
    """Return the inverse of `hilbert`, whose numbers are integers.

    Reference: ``jax.scipy.linalg.invhilbert``.
    """
    n = _matrix_size("invhilbert", n)
    return _table(
        n,
        n,
        lambda i, j: (
            (-1) ** (i + j)
            * (i + j + 1)
            * math.comb(n + i, n - j - 1)
            * math.comb(n + j, n - i - 1)
            * math.comb(i + j, i) ** 2
        ),
    )


def _table(m: int, n: int, formula: Callable[[int, int], float]) -> Array:
    rows = [[float(formula(i, j)) for j in range(n)] for i in range(m)]
    return jnp.array(np.array(rows).reshape(len(rows), max(n, 0)), float)


def _kind(kind):
    if kind not in (None, "symmetric", "lower", "upper"):
        raise ValueError(
            f"Expected kind to be one of: ['symmetric', 'lower', 'upper']; got {kind}"
        )
    return kind or "symmetric"


def pascal(n: int, kind: str | None = None) -> Array:
    """Return the matrix of binomial coefficients.

    Args:
      n: its size.
      kind: ``"symmetric"`` (the default), or the ``"lower"`` or ``"upper"`` triangle
        that it is a product of.

    Reference: ``jax.scipy.linalg.pascal``.
    """
    formulas = {
        "symmetric": lambda i, j: math.comb(i + j, i),
        "lower": math.comb,
        "upper": lambda i, j: math.comb(j, i),
    }
    n = _matrix_size("pascal", n)
    return _table(n, n, formulas[_kind(kind)]).astype("float32")


def invpascal(n: int, kind: str | None = None) -> Array:
    """Return the inverse of `pascal`.

    Reference: ``jax.scipy.linalg.invpascal``.
    """
    n = _matrix_size("invpascal", n)
    lower = [[(-1) ** (i - j) * math.comb(i, j) for j in range(n)] for i in range(n)]
    x = np.array(lower, float).reshape(len(lower), len(lower))
    kinds = {"symmetric": x.T @ x, "lower": x, "upper": x.T}
    return jnp.array(kinds[_kind(kind)], float)


def helmert(n: int, full: bool = False) -> Array:
    """Return the Helmert matrix, whose rows are orthonormal.

    Args:
      n: the count of columns.
      full: whether to put a row of equal numbers on top.

    Raises:
      ValueError: for an `n` that is not positive.

    Reference: ``jax.scipy.linalg.helmert``.
    """
    n = _matrix_size("helmert", n)
    if n < 1:
        raise ValueError(f"n must be a positive integer; got {n}.")

    def entry(i, j):
        size = math.sqrt((i + 1) * (i + 2))
        return 1 / size if j <= i else -(i + 1) / size if j == i + 1 else 0

    rest = _table(n - 1, n, entry)
    top = jnp.full((1, n), 1 / math.sqrt(n), rest.dtype)
    return jnp.concatenate([top, rest]) if full else rest


def hadamard(n: int, dtype: Any = int) -> Array:
    """Return the matrix of signs whose rows are orthogonal, for a power of two.

    Raises:
      ValueError: for another `n`.

    Reference: ``jax.scipy.linalg.hadamard``.
    """
    n = _matrix_size("hadamard", n)
    if n < 1 or n & (n - 1):
        raise ValueError(f"n must be a positive power of 2; got {n}.")
    signs = [[(-1) ** (i & j).bit_count() for j in range(n)] for i in range(n)]
    return jnp.array(signs, dtype)


def dft(n: int, scale: str | None = None, *, dtype: Any = None) -> Array:
    """Return the matrix of the Fourier transform.

    Args:
      n: its size.
      scale: None, or ``"sqrtn"`` or ``"n"`` for what to divide by.
      dtype: of complex numbers.

    Raises:
      ValueError: for another `scale` or `dtype`.

    Reference: ``jax.scipy.linalg.dft``.
    """
    if scale not in (None, "sqrtn", "n"):
        raise ValueError(f"scale must be None, 'sqrtn', or 'n'; got {scale!r}.")
    if dtype is not None and jnp.dtype(dtype).kind != "c":
        raise ValueError(f"dtype must be a complex floating-point type; got {dtype}.")
    n = _matrix_size("dft", n)
    turns = np.outer(np.arange(n), np.arange(n)) % max(n, 1) / max(n, 1)
    divisor = {None: 1, "sqrtn": math.sqrt(max(n, 0)), "n": n}[scale]
    return jnp.array(np.exp(-2j * np.pi * turns) / divisor, dtype or complex)
