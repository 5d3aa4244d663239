"""Factorizations of small matrices, as loops of our own operations.

A CPU compiles them with the programs that they are in; larger matrices are left to
NumPy, for which machine code has to be left.

Reference: Golub and Van Loan, *Matrix Computations*, sections 3.1, 3.4, 4.2, 5.2.
"""

# Made from chapters/31_linear_algebra_ground.md by `make chapter`;
# edit the chapter, not this file.

import math
from contextlib import suppress
from functools import partial

from minijax import lax
from minijax import numpy as jnp
from minijax.kernels.building import NoKernel


def by_loop(function, largest):
    """Return the rule by which a CPU does a primitive as a program.

    Args:
      function: from the primitive's operands and parameters to the list of its results.
      largest: how many numbers the first operand's matrices have at most.
    """

    def rule(lowering, eqn, *operands):
        count = math.prod(operands[0].shape[-2:])
        if count > largest or not eqn.outvars[0].aval.size:
            raise NoKernel("there is nothing to factor, or NumPy is faster")
        if operands[0].dtype.itemsize == 2:
            raise NoKernel("NumPy refuses it, or computes in 32 bits")
        return lowering.function(partial(function, **eqn.params), operands)

    return rule


def first_of(*rules):
    """Return the rule that asks others, one after the other, who can do an equation."""

    def rule(lowering, eqn, *operands):
        for each in rules[:-1]:
            with suppress(NoKernel):
                return each(lowering, eqn, *operands)
        return rules[-1](lowering, eqn, *operands)

    return rule


def _loop(count, body, state):
    if not count:
        return state
    return lax.fori_loop(jnp.int32(0), jnp.int32(count), body, state)


def _numbers(count):
    return jnp.arange(count, dtype="int32")


def _taken(x, place, axis):
    return lax.dynamic_index_in_dim(x, place, axis + x.ndim)


def to_64_bits(x):
    """Return an array with numbers of 64 bits per part."""
    return x.astype("complex128" if x.dtype.kind == "c" else "float64")


def _in_order(x, places, axis):
    return jnp.take_along_axis(x, places, axis, mode="promise_in_bounds")


def substituted_by_loop(
    a, b, *, left_side, lower, transpose_a, conjugate_a, unit_diagonal
):
    """Return ``[x]`` with ``op(a) @ x = b``, or ``x @ op(a) = b``, for triangles `a`.

    Reference: ``jax.lax.linalg.triangular_solve``.
    """
    a = a.conj() if conjugate_a else a
    b = b if left_side else b.mT
    if transpose_a == left_side:
        a, lower = a.mT, not lower
    n, rows = a.shape[-1], _numbers(a.shape[-1])[:, None]

    def row(step, x):
        i = step if lower else n - 1 - step
        known, column = _taken(x, i, -2), _taken(a, i, -1)
        known = known if unit_diagonal else known / _taken(column, i, -2)
        later = rows > i if lower else rows < i
        return jnp.where(later, x - column * known, jnp.where(rows == i, known, x))

    x = _loop(n, row, b)
    return [x if left_side else x.mT]


def eliminated_by_loop(x):
    """Return the factors of matrices in one array, the pivots, and the permutations.

    Reference: ``jax.lax.linalg.lu``.
    """
    *batch, m, n = x.shape
    rows, columns, places = _numbers(m), _numbers(n), _numbers(min(m, n))

    def column(j, state):
        a, pivots, order = state
        left = _taken(a, j, -1)[..., 0]
        sizes = jnp.where(rows >= j, _sizes(left), -1)
        pivot = sizes.argmax(-1)[..., None].astype("int32")
        swap = _exchanged(rows, j, pivot)
        a = _in_order(a, swap[..., None], -2)
        top, left = _taken(a, j, -2), _taken(a, j, -1)
        corner = _taken(top, j, -1)
        left = left / jnp.where(corner == 0, 1, corner)
        inner = jnp.where(columns > j, a - left * top, a)
        a = jnp.where(rows[:, None] > j, jnp.where(columns == j, left, inner), a)
        pivots = jnp.where(places == j, pivot, pivots)
        return a, pivots, _in_order(order, swap, -1)

    pivots = jnp.zeros((*batch, min(m, n)), "int32")
    order = jnp.broadcast_to(rows, (*batch, m))
    return _loop(min(m, n), column, (x, pivots, order))


def _exchanged(rows, one, other):
    return jnp.where(rows == one, other, jnp.where(rows == other, one, rows))


def permuted_by_loop(pivots, *, permutation_size):
    """Return ``[order]``, where each row comes from after exchanges of rows.

    Reference: ``jax.lax.linalg.lu_pivots_to_permutation``.
    """
    rows, count = _numbers(permutation_size), pivots.shape[-1]
    pivots = jnp.where(pivots < 0, pivots + permutation_size, pivots)

    def exchange(j, order):
        return _in_order(order, _exchanged(rows, j, _taken(pivots, j, -1)), -1)

    order = jnp.broadcast_to(rows, (*pivots.shape[:-1], permutation_size))
    return [_loop(count, exchange, order)]


def _sizes(x):
    return jnp.abs(x.real) + jnp.abs(x.imag) if x.dtype.kind == "c" else jnp.abs(x)


def tridiagonal_by_loop(dl, d, du, b, *, perturb_singular):
    """Return ``[x]``, the solutions of systems with tridiagonal matrices.

    Reference: ``jax.lax.linalg.tridiagonal_solve``; LAPACK's ``gtsv``.
    """
    low, pivots, up = (jnp.moveaxis(to_64_bits(x), -1, 0) for x in (dl, d, du))
    x, up = jnp.moveaxis(to_64_bits(b), -2, 0), up.at[-1].set(0)
    start, rows = (pivots[0], up[0], x[0]), (low[1:], pivots[1:], up[1:], x[1:])
    last, found = lax.scan(_eliminate_row, start, rows)
    pivot, beside, known = last
    last = pivot, beside, jnp.zeros_like(pivot), known
    *upper, x = (jnp.concatenate([y, z[None]]) for y, z in zip(found, last))
    pivots = _mended(upper, jnp.finfo(b.dtype), perturb_singular)
    rows = *upper[1:], x, pivots
    if x.dtype != b.dtype:  # no quotient of narrow numbers leaves the wide ones' range
        inverse = 1 / pivots
        rows = *[y * inverse for y in upper[1:]], x * inverse[..., None]
    none = jnp.zeros_like(x[0]), jnp.zeros_like(x[0])
    _, x = lax.scan(_substitute_row, none, rows, reverse=True)
    return [jnp.moveaxis(x, 0, -2).astype(b.dtype)]


def _eliminate_row(here, below):
    (pivot, up, x), (low, next_pivot, next_up, next_x) = here, below
    swap, none = jnp.abs(low) > jnp.abs(pivot), jnp.zeros_like(up)
    pairs = (pivot, low), (up, next_pivot), (none, next_up)
    first, second, third = (jnp.where(swap, q, p) for p, q in pairs)
    _, *rest = (jnp.where(swap, p, q) for p, q in pairs)
    ratio = jnp.where(jnp.equal(low, 0), 0, low / pivot)
    factor = jnp.where(swap, pivot / low, ratio)  # both before it is known which
    row = jnp.where(swap[..., None], next_x, x)
    other = jnp.where(swap[..., None], x, next_x) - factor[..., None] * row
    moved = rest[0] - factor * second, rest[1] - factor * third, other
    return moved, (first, second, third, row)


def _substitute_row(known, row):
    (after, later), (up, above, x, *pivot) = known, row
    x = x - above[..., None] * later - up[..., None] * after
    x = x / pivot[0][..., None] if pivot else x
    return (x, after), x


def _mended(upper, numbers, perturb_singular):
    pivots = upper[0]
    if not perturb_singular:
        return jnp.where(jnp.all(pivots, 0), pivots, jnp.nan)
    largest = jnp.max(jnp.stack([jnp.abs(x).max(0) for x in upper]), 0)
    least = jnp.maximum(float(numbers.eps) * largest, float(numbers.tiny))
    small = jnp.abs(pivots) < float(numbers.tiny)
    return jnp.where(small, jnp.copysign(least, pivots.real), pivots)


def cholesky_by_loop(x):
    """Return ``[l]``, the Cholesky factors of matrices; NaN where there is none.

    Reference: ``jax.lax.linalg.cholesky``.
    """
    rows = _numbers(x.shape[-1])

    def column(j, state):
        a, positive = state
        left = _taken(a, j, -1)
        corner = _taken(left, j, -2).real
        root = jnp.sqrt(corner)
        left = jnp.where(rows[:, None] == j, root, left / root)
        inner = jnp.where(rows > j, a - left * left.mT.conj(), a)
        return jnp.where(rows == j, left, inner), positive & ~(corner <= 0)

    positive = jnp.ones((*x.shape[:-2], 1, 1), bool)
    a, positive = _loop(len(rows), column, (to_64_bits(x), positive))
    factor = jnp.where(rows[:, None] >= rows, a, 0)
    return [jnp.where(positive, factor, jnp.nan).astype(x.dtype)]


def qr_by_loop(x, *, full_matrices, pivoting, **how):
    """Return the factors ``[q, r]`` of matrices, with LAPACK's signs.

    Reference: ``jax.lax.linalg.qr``.
    """
    if pivoting:
        raise NoKernel("columns change places")
    *batch, m, n = x.shape
    k, a = min(m, n), to_64_bits(x)
    a, taus = _loop(k, _reflect, (a, jnp.zeros((*batch, 1, k), a.dtype)))
    rows, size = _numbers(m)[:, None], m if full_matrices else k

    def turn(step, q):
        j = k - 1 - step
        v = jnp.where(rows > j, _taken(a, j, -1), (rows == j).astype(a.dtype))
        turned = q - _taken(taus, j, -1) * v * _along(v, q)
        return jnp.where((rows >= j) & (columns >= j), turned, q)

    identity, columns = jnp.eye(m, size, dtype=a.dtype), _numbers(size)
    q = _loop(k, turn, jnp.broadcast_to(identity, (*batch, m, size)))
    r = jnp.where(rows[:size] <= _numbers(n), a[..., :size, :], 0)
    return [q.astype(x.dtype), r.astype(x.dtype)]


def _reflect(j, state):
    a, taus = state
    rows, columns = _numbers(a.shape[-2])[:, None], _numbers(a.shape[-1])
    left, beta, tau = _reflection(_taken(a, j, -1), rows, j)
    moved = a - tau.conj() * left * _along(left, a)
    kept = jnp.where(rows > j, left, jnp.where(rows == j, beta, _taken(a, j, -1)))
    a = jnp.where(columns == j, kept, a)
    a = jnp.where((columns > j) & (rows >= j), moved, a)
    return a, jnp.where(_numbers(taus.shape[-1]) == j, tau, taus)


def _along(v, a):
    return (v.conj() * a).sum(-2, keepdims=True)


def _reflection(x, rows, j):
    alpha, tail = _taken(x, j, -2), jnp.where(rows > j, x, 0)
    rest = jnp.where(rows >= j, x, 0)
    largest = _sizes(rest).max(-2, keepdims=True)
    scale = jnp.where((largest > 0) & jnp.isfinite(largest), largest, 1)
    length = scale * jnp.sqrt(_along(rest / scale, rest / scale).real)
    beta = -jnp.copysign(length, alpha.real)
    moves = jnp.any(tail, -2, keepdims=True) | alpha.imag.astype(bool)
    beta = jnp.where(moves, beta, alpha.real)
    tau = jnp.where(moves, (beta - alpha) / jnp.where(moves, beta, 1), 0)
    v = jnp.where(rows > j, tail / jnp.where(moves, alpha - beta, 1), 0)
    return jnp.where(rows == j, 1, v), beta, tau
