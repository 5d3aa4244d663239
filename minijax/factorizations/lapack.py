"""Factorizations and triangular systems on NumPy's arrays, in batches.

LAPACK computes what ``numpy.linalg`` hands to it; substitution and Gaussian elimination
are done here, by blocks of columns.

Reference: Golub and Van Loan, *Matrix Computations*, sections 3.1, 3.2, 3.4.
"""

# Made from chapters/31_linear_algebra_ground.md by `make chapter`;
# edit the chapter, not this file.

import math

import numpy as np

from minijax.arrays.numerics import wide

BLOCK = 32  # columns which are eliminated one by one, before a product of matrices


def factored(function, x):
    """Return the factors of matrices; NaN where LAPACK finds none.

    Args:
      function: from an array of matrices to a list of arrays; NumPy computes in it.
      x: array whose last two axes are those of matrices.

    Raises:
      NotImplementedError: for dtypes of 16 bits, which LAPACK lacks.
    """
    if x.dtype.itemsize == 2:
        raise NotImplementedError(f"Unsupported dtype {x.dtype.name}.")
    try:
        return function(x)
    except np.linalg.LinAlgError:
        return _one_by_one(function, x)


def _one_by_one(function, x):
    if x.ndim > 2:
        parts = [factored(function, matrix) for matrix in x]
        return [np.stack(part) for part in zip(*parts)]
    model = function(np.eye(*x.shape, dtype=x.dtype))
    return [np.full_like(part, np.nan) for part in model]


def substituted(a, b, unit_diagonal):
    """Solve ``a @ x = b`` for lower triangles `a`, whose other triangle is not read."""
    x, n = np.array(b), a.shape[-1]
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
        for i in range(start, stop):
            known = a[..., i : i + 1, start:i] @ x[..., start:i, :]
            x[..., i, :] -= known[..., 0, :]
            if not unit_diagonal:
                x[..., i, :] /= a[..., i, i, None]
        x[..., stop:, :] -= a[..., stop:, start:stop] @ x[..., start:stop, :]
    return x


def solved_triangle(a, b, left_side, lower, transpose_a, conjugate_a, unit_diagonal):
    """Solve ``op(a) @ x = b``, or ``x @ op(a) = b``, for triangular matrices `a`.

    Reference: ``jax.lax.linalg.triangular_solve``.
    """
    dtype = b.dtype
    a, b = a.astype(wide(dtype), copy=False), b.astype(wide(dtype), copy=False)
    a = a.conj() if conjugate_a else a
    b = b if left_side else b.mT
    if transpose_a == left_side:
        a, lower = a.mT, not lower
    if lower:
        x = substituted(a, b, unit_diagonal)
    else:
        turned = a[..., ::-1, ::-1], b[..., ::-1, :]
        x = substituted(*turned, unit_diagonal)[..., ::-1, :]
    return (x if left_side else x.mT).astype(dtype, copy=False)


def eliminated(x):
    """Return the factors of matrices in one array, the pivots, and the permutations.

    Reference: ``jax.lax.linalg.lu``.
    """
    *batch, m, n = x.shape
    a = np.array(x).reshape(math.prod(batch), m, n)
    pivots = np.zeros((len(a), min(m, n)), np.int32)
    for start in range(0, min(m, n), BLOCK):
        stop = min(start + BLOCK, m, n)
        for j in range(start, stop):
            pivots[:, j] = _pivot(a, j)
            _eliminate(a, j, stop)
        top, left = a[:, start:stop, stop:], a[:, start:, start:stop]
        top[...] = substituted(left[:, : stop - start], top, True)
        a[:, stop:, stop:] -= left[:, stop - start :] @ top
    pivots = pivots.reshape(*batch, min(m, n))
    return [a.reshape(x.shape), pivots, permuted_by(pivots, m)]


def _pivot(a, j):
    sizes = np.abs(a[:, j:, j].real) + np.abs(a[:, j:, j].imag)
    chosen, every = j + sizes.argmax(-1), np.arange(len(a))
    a[every, j], a[every, chosen] = a[every, chosen], a[every, j]
    return chosen


def _eliminate(a, j, stop):
    column, pivot = a[:, j + 1 :, j], a[:, j, j, None]
    column /= np.where(pivot == 0, 1, pivot)
    a[:, j + 1 :, j + 1 : stop] -= column[..., None] * a[:, j, None, j + 1 : stop]


def permuted_by(pivots, size):
    """Return where each row comes from after exchanges of rows, one after the other.

    Rows are read and written as by an index: -1 is the last one, and of places that
    are not there the nearest is read and none is written.

    Reference: ``jax.lax.linalg.lu_pivots_to_permutation``.
    """
    *batch, count = pivots.shape
    swaps = pivots.reshape(math.prod(batch), count)
    rows = np.tile(np.arange(size, dtype=np.int32), (len(swaps), 1))
    every = np.arange(len(swaps))
    for j in range(count):
        other = np.where(swaps[:, j] < 0, swaps[:, j] + size, swaps[:, j])
        held, nearest = rows[every, j], np.clip(other, 0, size - 1)
        rows[every, j] = rows[every, nearest]
        here = nearest == other
        rows[every[here], other[here]] = held[here]
    return rows.reshape(*batch, size)
