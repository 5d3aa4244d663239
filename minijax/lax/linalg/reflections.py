"""Householder reflections on NumPy's arrays, in batches, with the signs of LAPACK.

A reflection is ``1 - tau v v^H``, where `v` begins with a one that is not stored.

Reference: Golub and Van Loan, *Matrix Computations*, sections 5.1 to 5.4, 7.4, 8.3;
LAPACK's ``larfg``, ``geqrf``, ``geqp3``, ``gehrd``, ``sytrd``, ``orgqr`` and ``ormqr``.
"""

# Made from chapters/31_linear_algebra_ground.md by `make chapter`;
# edit the chapter, not this file.

import math

import numpy as np


def in_64_bits(x):
    """Return a copy of an array, with numbers of 64 bits per part."""
    return np.array(x, np.result_type(x.dtype, np.float64))


def power_below(x, axes):
    """Return the power of two at or below the largest size along axes, which stay."""
    largest = np.abs(x).max(axes, keepdims=True, initial=0)
    return np.ldexp(0.5, np.frexp(largest)[1])


def reflection(x):
    """Return `v`, `tau` and `beta`; the adjoint reflection sends `x` to ``beta e1``.

    Args:
      x: vectors, of shape ``[..., n]``.
    """
    scale = power_below(x, -1)
    x = x / scale  # so that squares neither overflow nor vanish
    first, length = x[..., 0], np.linalg.norm(x[..., 1:], axis=-1)
    still = (length == 0) & (first.imag == 0)
    size = -np.copysign(np.hypot(np.abs(first), length), first.real)
    beta = np.where(still, first.real, size)
    tau = np.where(still, 0, beta - first) / np.where(still, 1, beta)
    v = x / np.where(still, 1, first - beta)[..., None]
    v[..., 0] = 1
    return v, tau, beta * scale[..., 0]


def reflect(x, v, tau):
    """Multiply matrices by reflections from the left, in place."""
    x -= (tau[..., None] * v)[..., None] * (v.conj()[..., None, :] @ x)


def reflect_from_right(x, v, tau):
    """Multiply matrices by reflections from the right, in place."""
    reflect(x.mT, v.conj(), tau)


def _vector(a, j):
    """Return the stored vector of the reflection that begins at place `j`."""
    v = np.array(a[..., j:, j])
    v[..., 0] = 1
    return v


def triangularized(x, pivoting):
    """Return R, with the reflections below it; their taus, and the order of columns.

    Args:
      x: matrices, of shape ``[..., m, n]``.
      pivoting: whether the longest remaining column comes next.
    """
    *batch, m, n = x.shape
    a = in_64_bits(x).reshape(math.prod(batch), m, n)
    taus = np.zeros((len(a), min(m, n)), a.dtype)
    order = np.tile(np.arange(n, dtype=np.int32), (len(a), 1))
    for j in range(min(m, n)):
        if pivoting:
            _bring_longest(a, order, j)
        v, taus[:, j], beta = reflection(a[:, j:, j])
        reflect(a[:, j:, j + 1 :], v, taus[:, j].conj())
        a[:, j:, j], a[:, j, j] = v, beta
    shaped = a.reshape(x.shape), taus.reshape(*batch, min(m, n))
    return [*(y.astype(x.dtype) for y in shaped), order.reshape(*batch, n)]


def _bring_longest(a, order, j):
    rest = a[:, j:, j:]
    lengths = np.linalg.norm(rest / power_below(rest, (-2, -1)), axis=-2)
    chosen, every = j + lengths.argmax(-1), np.arange(len(a))
    a[every, :, j], a[every, :, chosen] = a[every, :, chosen], a[every, :, j]
    order[every, j], order[every, chosen] = order[every, chosen], order[every, j]


def pivoted_factors(x, full_matrices):
    """Return the factors q and r of matrices with sorted columns, and their order."""
    *_, m, n = x.shape
    both, taus, order = triangularized(x, True)
    width = m if full_matrices else min(m, n)
    room = np.zeros((*x.shape[:-1], width), x.dtype)
    room[..., : min(n, width)] = both[..., : min(n, width)]
    return [product_of(room, taus), np.triu(both[..., :width, :]), order]


def hessenberg_form(x):
    """Return Hessenberg forms, with the reflections below them, and their taus."""
    a, n = in_64_bits(x), x.shape[-1]
    taus = np.zeros((*x.shape[:-2], n - 1), a.dtype)
    for j in range(n - 1):
        v, tau, beta = reflection(a[..., j + 1 :, j])
        reflect_from_right(a[..., :, j + 1 :], v, tau)
        reflect(a[..., j + 1 :, j + 1 :], v, tau.conj())
        a[..., j + 1 :, j], a[..., j + 1, j], taus[..., j] = v, beta, tau
    return [a.astype(x.dtype), taus.astype(x.dtype)]


def tridiagonal_form(x, lower):
    """Return tridiagonal forms of Hermitian matrices, of which one triangle is read.

    Returns:
      A list of matrices, with the reflections in that triangle; the diagonals, the
      numbers beside them, and the taus.
    """
    if not lower:  # the same from the other end: both axes are turned around
        a, *parts = tridiagonal_form(x[..., ::-1, ::-1], True)
        return [a[..., ::-1, ::-1], *(part[..., ::-1] for part in parts)]
    a, n = in_64_bits(x), x.shape[-1]
    full = np.tril(a) + np.tril(a, -1).conj().mT
    every = np.arange(n)
    full[..., every, every] = full[..., every, every].real
    taus, beside = (np.zeros((*x.shape[:-2], n - 1), a.dtype) for _ in range(2))
    for j in range(n - 1):
        v, tau, beta = reflection(full[..., j + 1 :, j])
        rest = full[..., j + 1 :, j + 1 :]
        reflect_from_right(rest, v, tau)
        reflect(rest, v, tau.conj())
        a[..., j + 1 :, j], a[..., j + 1, j], taus[..., j] = v, beta, tau
        beside[..., j] = beta
    diagonal = a[..., every, every] = full[..., every, every].real
    results = zip((a, diagonal, beside.real, taus), (x, x.real, x.real, x))
    return [part.astype(model.dtype) for part, model in results]


def product_of(a, taus):
    """Return the first columns of products of reflections, as many as `a` has."""
    q = np.zeros(a.shape, np.result_type(a.dtype, np.float64))
    q[...] = np.eye(*a.shape[-2:])
    for j in reversed(range(taus.shape[-1])):
        reflect(q[..., j:, j:], _vector(a, j), taus[..., j])
    return q.astype(a.dtype)


def multiplied(a, taus, c, left, transpose):
    """Multiply `c` by a product of reflections or its adjoint, from one side."""
    if not left:
        turned = multiplied(a, taus, c.conj().mT, True, not transpose)
        return turned.conj().mT
    x, count = in_64_bits(c), range(taus.shape[-1])
    for j in count if transpose else reversed(count):
        tau = taus[..., j].conj() if transpose else taus[..., j]
        reflect(x[..., j:, :], _vector(a, j), tau)
    return x.astype(c.dtype)
