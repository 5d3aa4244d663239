"""Triangular systems, Cholesky, eigenvectors, LU, QR, singular values: primitives.

References: ``jax._src.lax.linalg``, ``jax.lax.linalg.triangular_solve``,
``jax.lax.linalg.cholesky``; I. Murray, *Differentiation of the Cholesky
decomposition* (2016), arXiv:1602.07527, ``jax.lax.linalg.eigh``; M. Giles, *An
extended collection of matrix derivative results* (2008), section 3.1,
``jax.lax.linalg.lu``; F. de Hoog, R. Anderssen and M. Lukas, *Differentiation of
matrix functionals using triangular factorization* (2011), ``jax.lax.linalg.qr``; S.
Walter and L. Lehmann, *Algorithmic differentiation of linear algebra functions*
(2010), section 3.1, ``jax.lax.linalg.svd``; M. Giles, *An extended collection of
matrix derivative results* (2008), section 3.2; M. Seeger and others, *Auto-
differentiating linear algebra* (2017), arXiv:1710.08717.
"""

# Made from chapters/31_linear_algebra.md by `make chapter`;
# edit the chapter, not this file.

import math
from enum import Enum
from typing import Any

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.arrays.array import def_shape_and_impl, typeof
from minijax.arrays.dtypes import canonicalize_dtype, dtype_kind
from minijax.arrays.numerics import (
    INEXACT_KINDS,
    all_weak,
    check_kind,
    check_same_dtype,
    operator_index,
    real_dtype_of,
)
from minijax.batching.vmap import batch_dim_to_front, move_one_axis, vmap_rules
from minijax.core import Array, Primitive
from minijax.forward_mode.jvp import add_or_none, defjvp_zero, jvp_rules
from minijax.jitting.stages import FLOPS, _moved, cost_rules
from minijax.kernels.lowering import cpu_rules, kernel_rules
from minijax.lax.arithmetic import astype
from minijax.linear_algebra.lapack import (
    cholesky_on_cpu,
    eigh_by_routine,
    factor_or_nan,
    getrf_impl,
    lu_on_cpu,
    permuted_on_cpu,
    pivots_permutation,
    qr_on_cpu,
    svd_by_routine,
    triangular_on_cpu,
    trsm_impl,
)
from minijax.linear_algebra.qr_algorithm import qr_with_pivoting
from minijax.python_backend.codegen import python_rules
from minijax.python_backend.source import write_evaluation
from minijax.reverse_mode.backward_pass import deftranspose, transpose_rules
from minijax.typing import ArrayLike


def transpose_matrices(x):
    """Return matrices with rows and columns exchanged."""
    ndim = typeof(x).ndim
    return lax.transpose(x, (*range(ndim - 2), ndim - 1, ndim - 2))


def adjoint(x):
    """Return the conjugate transposes of matrices."""
    return transpose_matrices(x).conj()


def symmetrize(x):
    """Return the mean of matrices and their adjoints."""
    return (x + adjoint(x)) / 2


def tril_impl(x, k=0):
    """Return matrices with zeros above the diagonal number `k`."""
    return lax.select(_on_or_below(x, k), x, lax.full_like(x, 0))


def triu_impl(x, k=0):
    """Return matrices with zeros below the diagonal number `k`."""
    return lax.select(_on_or_below(x, k - 1), lax.full_like(x, 0), x)


def _on_or_below(x, k):
    *batch, m, n = typeof(x).shape
    integer = canonicalize_dtype(int)
    row = lax.broadcasted_iota(integer, (m, n), 0)
    row = lax.add(row, np.asarray(k, integer)[()])
    mask = lax.ge(row, lax.broadcasted_iota(integer, (m, n), 1))
    return lax.broadcast(mask, batch) if batch else mask


def eye_like(x):
    """Return identities of the shape and dtype of square matrices."""
    shape, dtype = typeof(x).shape, typeof(x).dtype
    return jnp.broadcast_to(jnp.eye(shape[-1], dtype=dtype), shape)


def check_matrix_operands(name, *avals):
    """Raise unless all operands are batches of matrices of one inexact dtype.

    Raises:
      TypeError: for other dtypes, or fewer than two axes.
      ValueError: for batches of different shapes.
    """
    check_kind(name, INEXACT_KINDS, avals)
    check_same_dtype(name, avals)
    for position, aval in enumerate(avals):
        if aval.ndim < 2:
            raise TypeError(
                f"Input {position} to {name} must have rank at least 2, but got "
                f"shape={aval.shape}"
            )
    check_batch_dims(name, [aval.shape[:-2] for aval in avals])


def check_batch_dims(name, batches):
    """Raise unless the axes in front of all matrices have the same sizes."""
    counts = [len(batch) for batch in batches]
    if len({*counts}) > 1:
        raise TypeError(
            f"All inputs to {name} must have the same number of batch dimensions, but "
            f"got {counts} batch dimensions for the inputs."
        )
    if len({*batches}) > 1:
        raise ValueError(
            f"All inputs to {name} must have the same batch dimensions, but got "
            f"{' and '.join(map(str, batches))}."
        )


def square_matrix_shape(aval, complaint):
    """Return the batch and the size of square matrices; others are a ValueError."""
    *batch, m, n = aval.shape
    if m != n:
        raise ValueError(complaint)
    return tuple(batch), n


# Triangular systems of equations: the primitive and all its columns.


def _triangular_shape(a, b, *, left_side, **how):
    check_matrix_operands("triangular_solve", a, b)
    _, n = square_matrix_shape(
        a,
        "The first input to triangular_solve must be a square matrix. Got shape "
        f"{a.shape[-2:]}.",
    )
    if b.shape[-2 if left_side else -1] != n:
        raise ValueError(
            "Incompatible shapes for arguments to triangular_solve: "
            f"{a.shape[-2:]} and {b.shape[-2:]}."
        )
    return [b.update(weak_type=all_weak([a, b]))]


triangular_solve_p = Primitive("triangular_solve")
def_shape_and_impl(
    triangular_solve_p,
    _triangular_shape,
    lambda xp, *ab, **how: trsm_impl(*ab, **how),
)


def triangular_solve(
    a: ArrayLike,
    b: ArrayLike,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Array:
    """Solve a triangular system, ``op(a) @ x = b`` or ``x @ op(a) = b``.

    Args:
      a: triangular matrices, of shape ``[..., m, m]``; the other triangle is not read.
      b: right-hand sides, ``[..., m, n]`` if `left_side`, else ``[..., n, m]``; or
        single ones, with one axis less.
      left_side: whether `a` stands on the left.
      lower: which triangle of `a` counts.
      transpose_a, conjugate_a: what ``op`` does to `a`.
      unit_diagonal: whether the diagonal is ones, and not read.

    Returns:
      An array like `b`. A zero on the diagonal makes infinities and NaN.

    Reference: ``jax.lax.linalg.triangular_solve``.
    """
    single = typeof(b).ndim == typeof(a).ndim - 1
    b = lax.expand_dims(b, (-1 if left_side else -2,)) if single else b
    how = {"lower": lower, "transpose_a": transpose_a, "unit_diagonal": unit_diagonal}
    how["conjugate_a"] = conjugate_a and dtype_kind(typeof(a).dtype) == "c"
    x = triangular_solve_p.bind(a, b, left_side=left_side, **how)
    return lax.squeeze(x, (x.ndim - (1 if left_side else 2),)) if single else x


def triangular_jvp(primals, tangents, **how):
    """Solve the same system for the tangents: op(a) x' = b' - op(a') x."""
    (a, _), (a_dot, b_dot) = primals, tangents
    x = triangular_solve_p.bind(*primals, **how)
    if a_dot is not None:
        read = tril_impl if how["lower"] else triu_impl
        k = -1 if how["lower"] else 1
        a_dot = read(a_dot, k if how["unit_diagonal"] else 0)
        a_dot = transpose_matrices(a_dot) if how["transpose_a"] else a_dot
        a_dot = a_dot.conj() if how["conjugate_a"] else a_dot
        b_dot = add_or_none(b_dot, -(a_dot @ x if how["left_side"] else x @ a_dot))
    return [x], triangular_solve_p.bind_all(a, b_dot, **how)


def triangular_transpose(ct, a, b, *, transpose_a, **how):
    """Solve the transposed system for the cotangents."""
    return triangular_solve_p.bind(a, ct, transpose_a=not transpose_a, **how)


jvp_rules[triangular_solve_p] = triangular_jvp
deftranspose(triangular_solve_p, None, triangular_transpose)


def triangular_batch(axis, args, dims, **how):
    """Solve all examples at once: as more columns, if they share their matrix."""
    (a, b), (a_dim, b_dim) = args, dims
    if a_dim is not None:
        fronted = [batch_dim_to_front(x, dim, axis.size) for x, dim in zip(args, dims)]
        return triangular_solve_p.bind_all(*fronted, **how), [0]
    left, last = how["left_side"], typeof(b).ndim - 1
    b = move_one_axis(b, b_dim, last if left else last - 1)
    *batch, m, n, k = typeof(b).shape
    flat = lax.reshape(b, (*batch, m, n * k) if left else (*batch, m * n, k))
    x = triangular_solve_p.bind(a, flat, **how)
    return [lax.reshape(x, typeof(b).shape)], [last if left else last - 1]


def triangular_cost(eqn):
    """Count a multiplication and a subtraction for each number of the triangle."""
    return {FLOPS: eqn.invars[0].aval.shape[-1] * eqn.invars[1].aval.size} | _moved(eqn)


vmap_rules[triangular_solve_p] = triangular_batch
cost_rules[triangular_solve_p] = triangular_cost
python_rules[triangular_solve_p] = write_evaluation
kernel_rules.reasons[triangular_solve_p] = "NumPy substitutes, by blocks, in a step."
cpu_rules[triangular_solve_p] = triangular_on_cpu


# The Cholesky factorization, with its derivative.


def _cholesky_shape(x):
    check_matrix_operands("cholesky", x)
    square_matrix_shape(
        x, f"The input to cholesky must be a square matrix. Got shape {x.shape[-2:]}."
    )
    return [x]


cholesky_p = Primitive("cholesky")
def_shape_and_impl(
    cholesky_p,
    _cholesky_shape,
    lambda xp, x: factor_or_nan(lambda x: [xp.linalg.cholesky(x)], x),
)


def cholesky_jvp(primals, tangents):
    """Return the factor and its tangent, L phi(L^-1 A' L^-H)."""
    [x], [x_dot] = primals, tangents
    factor = tril_impl(cholesky_p.bind(x))
    right = {"transpose_a": True, "conjugate_a": True, "lower": True}
    inner = triangular_solve(factor, x_dot, **right)
    inner = triangular_solve(factor, inner, left_side=True, lower=True)
    return [factor], [factor @ halve_diagonal(inner)]


def halve_diagonal(x):
    """Return the lower triangles of matrices, with half of their diagonals."""
    return tril_impl(x) / (1 + eye_like(x))


jvp_rules[cholesky_p] = cholesky_jvp


def factorization_rules(primitive, flops):
    """Give a factorization its rules for batches and costs, and what stands for others.

    Args:
      primitive: its first operand is an array of matrices.
      flops: function of the rows and columns of a matrix; the counts are those of Golub
        and Van Loan, *Matrix Computations*.
    """

    def batched(axis, args, dims, **params):
        fronted = [batch_dim_to_front(x, dim, axis.size) for x, dim in zip(args, dims)]
        results = primitive.bind_all(*fronted, **params)
        return results, [0] * len(results)

    def cost(eqn):
        shape = eqn.invars[0].aval.shape
        count = math.prod(shape[:-2]) * round(flops(*shape[-2:]))
        return {FLOPS: count} | _moved(eqn)

    vmap_rules[primitive], cost_rules[primitive] = batched, cost
    python_rules[primitive] = write_evaluation
    kernel_rules.reasons[primitive] = "LAPACK does it: a step that calls NumPy."
    transpose_rules.reasons[primitive] = "It is not linear; its derivative is."


def cholesky(x: ArrayLike, *, symmetrize_input: bool = True) -> Array:
    """Return the lower triangular factors ``l`` of matrices ``l @ l.mT.conj()``.

    Args:
      x: Hermitian, positive definite matrices, of shape ``[..., n, n]``.
      symmetrize_input: whether to take the mean of `x` and its adjoint. Otherwise only
        the lower triangle is read.

    Returns:
      An array like `x`; NaN where a matrix is not positive definite.

    Reference: ``jax.lax.linalg.cholesky``.
    """
    x = symmetrize(x) if symmetrize_input else x
    return tril_impl(cholesky_p.bind(x))


factorization_rules(cholesky_p, lambda m, n: n**3 / 3)
cpu_rules[cholesky_p] = cholesky_on_cpu


# Eigenvalues and eigenvectors of Hermitian matrices.


def _eigh_shape(x, *, subset_by_index, algorithm, **how):
    check_matrix_operands("eigh", x)
    batch, n = square_matrix_shape(
        x,
        "Argument to symmetric eigendecomposition must have shape [..., n, n], got "
        f"shape {x.shape[-2:]}",
    )
    if subset_by_index not in (None, (0, n)) or algorithm not in (None, _QR):
        raise NotImplementedError(
            "eigh computes all eigenvalues, and by LAPACK's algorithm: subset_by_index "
            "and other implementations are not supported."
        )
    return [x, x.update(shape=(*batch, n), dtype=real_dtype_of(x.dtype))]


eigh_p = Primitive("eigh")
eigh_p.multiple_results = True


def _eigh(xp, x, *, lower, **how):
    triangle = "L" if lower else "U"
    return factor_or_nan(lambda x: [*xp.linalg.eigh(x, triangle)][::-1], x)


def_shape_and_impl(eigh_p, _eigh_shape, _eigh)


def _eigh_jvp(primals, tangents, **how):
    """Return the tangents of perturbation theory, for eigenvalues that differ."""
    [x], [x_dot] = primals, tangents
    v, w = eigh_p.bind(symmetrize(x), **how)
    inner = adjoint(v) @ x_dot @ v
    one, values = eye_like(inner), w.astype(v.dtype)
    gaps = values[..., None, :] - values[..., :, None]
    v_dot = v @ ((1 / (one + gaps) - one) * inner)
    return [v, w], [v_dot, jnp.diagonal(inner, axis1=-2, axis2=-1).real]


jvp_rules[eigh_p] = _eigh_jvp
cpu_rules[eigh_p] = eigh_by_routine
factorization_rules(eigh_p, lambda m, n: 9 * n**3)


class EighImplementation(Enum):
    """Algorithms for Hermitian eigenvalues. ``QR`` stands for LAPACK's.

    Reference: ``jax.lax.linalg.EighImplementation``.
    """

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


_QR = EighImplementation.QR


def eigh(
    x: ArrayLike,
    *,
    lower: bool = True,
    symmetrize_input: bool = True,
    sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    implementation: EighImplementation | None = None,
) -> tuple[Array, Array]:
    """Return the eigenvectors and the eigenvalues of Hermitian matrices.

    Args:
      x: Hermitian matrices, of shape ``[..., n, n]``.
      lower: which triangle is read, if `x` is not symmetrized.
      symmetrize_input: whether to take the mean of `x` and its adjoint.
      sort_eigenvalues: they are always in ascending order.
      subset_by_index: None, or the whole range ``(0, n)``.
      implementation: None or ``EighImplementation.QR``.

    Returns:
      A tuple ``(v, w)``: eigenvectors in columns, like `x`, and real eigenvalues, of
      shape ``[..., n]``.

    Reference: ``jax.lax.linalg.eigh``.
    """
    x = symmetrize(x) if symmetrize_input else x
    how: dict = {"lower": lower, "sort_eigenvalues": sort_eigenvalues}
    how |= {"subset_by_index": subset_by_index, "algorithm": implementation}
    v, w = eigh_p.bind(x, **how)
    return v, w


# The LU factorization with partial pivoting, and solutions by it.

INT32 = np.dtype("int32")


def _lu_shape(x):
    check_matrix_operands("lu", x)
    *batch, m, n = x.shape
    pivots = x.update(shape=(*batch, min(m, n)), dtype=INT32)
    return [x, pivots, x.update(shape=(*batch, m), dtype=INT32)]


def permute_rows(x, permutation):
    """Return the rows of matrices in the order of `permutation`."""
    return jnp.take_along_axis(x, permutation[..., None], -2, mode="clip")


def rows_sent(x, places):
    """Return the rows of matrices, each at its place in `places`."""
    count = lax.broadcasted_iota("int32", places.shape, places.ndim - 1)
    return permute_rows(x, lax.sort((places, count), num_keys=1)[1])


def lu_jvp(primals, tangents):
    """Return the tangents of both triangles, which lie in one array."""
    [x], [x_dot] = primals, tangents
    both, pivots, rows = lu_p.bind(x)
    *batch, m, n = both.shape
    k, still = min(m, n), [(0, 0, 0)] * len(batch)
    zero = astype(0, both.dtype)
    low = tril_impl(both[..., :k], -1)
    low = lax.pad(low, zero, [*still, (0, 0, 0), (0, m - k, 0)])
    low = low + eye_like(low)
    high = triu_impl(both[..., :k, :])
    high = lax.pad(high, zero, [*still, (0, n - k, 0), (0, 0, 0)])
    more = lax.broadcasted_iota("int32", high.shape, high.ndim - 1) >= k
    high = high + lax.select(more, eye_like(high), lax.full_like(high, 0))
    left = {"left_side": True, "lower": True, "unit_diagonal": True}
    inner = triangular_solve(low, permute_rows(x_dot, rows), **left)
    inner = triangular_solve(high, inner)
    moved = low @ tril_impl(inner, -1) + triu_impl(inner) @ high
    return [both, pivots, rows], [moved, None, None]


def lu_solve_factors(both, permutation, b, trans):
    """Solve systems by the factors of `lu`: plain, transposed (1) or adjoint (2).

    Args:
      both, permutation: of shapes ``[..., n, n]`` and ``[..., n]``.
      b: of shape ``[..., n, k]``.
      trans: 0, 1 or 2.
    """
    how = {"left_side": True, "transpose_a": trans > 0, "conjugate_a": trans == 2}
    unit = how | {"lower": True, "unit_diagonal": True}
    if not trans:
        b = triangular_solve(both, permute_rows(b, permutation), **unit)
        return triangular_solve(both, b, **how)
    b = triangular_solve(both, triangular_solve(both, b, **how), **unit)
    return rows_sent(b, permutation)


def _permutation_shape(pivots, *, permutation_size):
    if pivots.dtype != INT32:
        raise TypeError(f"lu_pivots_to_permutation needs int32, got {pivots.dtype}.")
    if not pivots.ndim or permutation_size < pivots.shape[-1]:
        raise ValueError(
            f"Output permutation size {permutation_size} has to exceed the trailing "
            f"dimension of the pivots. Got pivots of shape {pivots.shape}"
        )
    return [pivots.update(shape=(*pivots.shape[:-1], permutation_size))]


lu_p = Primitive("lu")
lu_p.multiple_results = True
def_shape_and_impl(lu_p, _lu_shape, lambda xp, x: factor_or_nan(getrf_impl, x))
jvp_rules[lu_p], cpu_rules[lu_p] = lu_jvp, lu_on_cpu
factorization_rules(lu_p, lambda m, n: m * n * min(m, n) - min(m, n) ** 3 / 3)


def lu(x: ArrayLike) -> list[Array]:
    """Return the LU factorization of matrices, with partial pivoting.

    Args:
      x: matrices, of shape ``[..., m, n]``.

    Returns:
      A list of ``lu, pivots, permutation``: both triangles in one array like `x` (the
      diagonal belongs to u, that of l is ones), the int32 exchanges of rows, of shape
      ``[..., min(m, n)]``, and the int32 order of rows which they make, ``[..., m]``.

    Reference: ``jax.lax.linalg.lu``.
    """
    return lu_p.bind(x)


lu_pivots_to_permutation_p = Primitive("lu_pivots_to_permutation")
def_shape_and_impl(
    lu_pivots_to_permutation_p,
    _permutation_shape,
    lambda xp, pivots, permutation_size: pivots_permutation(pivots, permutation_size),
)
jvp_rules[lu_pivots_to_permutation_p] = defjvp_zero(lu_pivots_to_permutation_p)
factorization_rules(lu_pivots_to_permutation_p, lambda m, n: 0)
cpu_rules[lu_pivots_to_permutation_p] = permuted_on_cpu


def lu_pivots_to_permutation(pivots: ArrayLike, permutation_size: int) -> Array:
    """Return the order of rows that exchanges of rows make, one after the other.

    Args:
      pivots: int32, of shape ``[..., k]``: with which row each row is exchanged.
      permutation_size: the number of rows, at least ``k``.

    Reference: ``jax.lax.linalg.lu_pivots_to_permutation``.
    """
    how = {"permutation_size": operator_index(permutation_size, "permutation_size")}
    return lu_pivots_to_permutation_p.bind(pivots, **how)


# The QR factorization: orthonormal columns times an upper triangle.


def _qr_shape(x, *, full_matrices, pivoting, **how):
    check_matrix_operands("qr", x)
    *batch, m, n = x.shape
    k = m if full_matrices else min(m, n)
    order = [x.update(shape=(*batch, n), dtype=np.dtype("int32"))] * pivoting
    return [x.update(shape=(*batch, m, k)), x.update(shape=(*batch, k, n)), *order]


def _qr(xp, x, *, full_matrices, pivoting, **how):
    if pivoting:
        return factor_or_nan(lambda x: qr_with_pivoting(x, full_matrices), x)
    mode = "complete" if full_matrices else "reduced"
    return factor_or_nan(lambda x: [*xp.linalg.qr(x, mode)], x)


def thin_qr_jvp(q, r, x_dot):
    """Return the tangents of q and r, for as many columns of q as r has rows."""
    ratio = triangular_solve(r, x_dot)
    inner = adjoint(q) @ ratio
    below = tril_impl(inner, -1)
    skew = below - adjoint(below)
    turn = eye_like(inner) * (inner - inner.real.astype(inner.dtype))
    skew = skew + turn  # of complex matrices: r keeps a real diagonal
    return q @ (skew - inner) + ratio, (inner - skew) @ r


def qr_jvp(primals, tangents, **how):
    """Return the tangents of both factors; of wide matrices by their square part."""
    [x], [x_dot] = primals, tangents
    q, r, *order = qr_p.bind(x, **how)
    for places in order:
        x, x_dot = (
            jnp.take_along_axis(y, places[..., None, :], -1, mode="clip")
            for y in (x, x_dot)
        )
    return [q, r, *order], [*_factors_dot(q, r, x, x_dot), *[None] * len(order)]


def _factors_dot(q, r, x, x_dot):
    *_, m, n = x_dot.shape
    if m < n:
        q_dot, left = thin_qr_jvp(q, r[..., :, :m], x_dot[..., :, :m])
        right = adjoint(q_dot) @ x[..., :, m:] + adjoint(q) @ x_dot[..., :, m:]
        return q_dot, jnp.concatenate([left, right], -1)
    q_dot, r_dot = thin_qr_jvp(q[..., :, :n], r[..., :n, :], x_dot)
    if q.shape[-1] > n:
        q_dot = jnp.concatenate([q_dot, _completion_dot(q, q_dot)], -1)
        r_dot = jnp.concatenate([r_dot, jnp.zeros_like(r[..., n:, :])], -2)
    return q_dot, r_dot


def _completion_dot(q, q_dot):
    """Return the tangents of the columns that complete a tall q (arXiv:2409.13374)."""
    n = q_dot.shape[-1]
    thin, more = q[..., :, :n], q[..., :, n:]
    square = thin[..., :n, :] - eye_like(thin[..., :n, :])
    factors, _, rows = lu_p.bind(square)
    z_h = lu_solve_factors(factors, rows, adjoint(thin[..., n:, :]), 2)
    z = adjoint(z_h)
    low = q_dot[..., n:, :] - z @ q_dot[..., :n, :]
    return q_dot @ z_h - (thin + more @ z) @ adjoint(low)


qr_p = Primitive("qr")
qr_p.multiple_results = True
def_shape_and_impl(qr_p, _qr_shape, _qr)
jvp_rules[qr_p] = qr_jvp
cpu_rules[qr_p] = qr_on_cpu
factorization_rules(qr_p, lambda m, n: 4 * m * n * min(m, n) - 4 / 3 * min(m, n) ** 3)


def qr(
    x: ArrayLike,
    *,
    pivoting: bool = False,
    full_matrices: bool = True,
    use_magma: bool | None = None,
) -> Any:
    """Return the factors q and r of matrices: orthonormal columns, upper triangle.

    Args:
      x: matrices, of shape ``[..., m, n]``.
      pivoting: whether to exchange columns first, so that the diagonal of r falls in
        size; then their int32 order p is returned as well, with ``x[:, p] = q @ r``.
      full_matrices: whether q is square, beyond ``min(m, n)`` columns.
      use_magma: makes no difference.

    Reference: ``jax.lax.linalg.qr``.
    """
    how = {"full_matrices": full_matrices, "use_magma": use_magma}
    return tuple(qr_p.bind(x, pivoting=pivoting, **how))


# The singular value decomposition.


def _svd_shape(x, *, full_matrices, compute_uv, subset_by_index, algorithm):
    check_matrix_operands("svd", x)
    *batch, m, n = x.shape
    k = min(m, n)
    if subset_by_index not in (None, (0, k)):
        raise NotImplementedError("svd computes all values: no subset_by_index.")
    if algorithm in (SvdAlgorithm.JACOBI, SvdAlgorithm.POLAR):
        raise NotImplementedError(f"svd has no {algorithm} on a CPU: leave it out.")
    s = x.update(shape=(*batch, k), dtype=real_dtype_of(x.dtype))
    if not compute_uv:
        return [s]
    u, v = (m, m if full_matrices else k), (n if full_matrices else k, n)
    return [s, x.update(shape=(*batch, *u)), x.update(shape=(*batch, *v))]


def _svd(xp, x, *, full_matrices, compute_uv, **how):
    def svd(x):
        if not compute_uv:
            return [xp.linalg.svd(x, compute_uv=False)]
        u, s, vh = xp.linalg.svd(x, full_matrices)
        return [s, u, vh]

    return factor_or_nan(svd, x)


def _reciprocal(x, mask):
    return 1 / (x + mask) - mask


def svd_jvp(primals, tangents, *, full_matrices, compute_uv, **how):
    """Return the tangents, for singular values that differ and are not zero."""
    [x], [x_dot] = primals, tangents
    s, u, vh = svd_p.bind(x, full_matrices=False, compute_uv=True, **how)
    *_, m, n = x_dot.shape
    inner = adjoint(u) @ x_dot @ adjoint(vh)
    s_dot = jnp.diagonal(inner, axis1=-2, axis2=-1).real
    if not compute_uv:
        return [s], [s_dot]
    if full_matrices and m != n:
        raise NotImplementedError(
            "Singular value decomposition JVP not implemented for full matrices"
        )
    row, column = s[..., None, :], s[..., :, None]
    one = eye_like(inner)
    gaps = _reciprocal(((row + column) * (row - column)).astype(one.dtype), one)
    row, column = row.astype(one.dtype), column.astype(one.dtype)
    turned = inner * row
    phase = 0.5 * (inner - adjoint(inner)) * one
    phase = phase * _reciprocal(column, (column == 0).astype(x_dot.dtype))
    u_dot = u @ (gaps * (turned + adjoint(turned)) + phase)
    turned = column * inner
    v = adjoint(vh)
    v_dot = v @ (gaps * (turned + adjoint(turned)))
    if m > n:
        outside = x_dot @ v
        u_dot = u_dot + (outside - u @ (adjoint(u) @ outside)) / row
    if n > m:
        outside = adjoint(x_dot) @ u
        v_dot = v_dot + (outside - v @ (vh @ outside)) / row
    return [s, u, vh], [s_dot, u_dot, adjoint(v_dot)]


svd_p = Primitive("svd")
svd_p.multiple_results = True
def_shape_and_impl(svd_p, _svd_shape, _svd)
jvp_rules[svd_p], cpu_rules[svd_p] = svd_jvp, svd_by_routine
factorization_rules(svd_p, lambda m, n: 4 * m * n * min(m, n) + 8 * min(m, n) ** 3)


class SvdAlgorithm(Enum):
    """Algorithms for singular values. All that a CPU has are LAPACK's gesdd here.

    Reference: ``jax.lax.linalg.SvdAlgorithm``.
    """

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


def svd(
    x: ArrayLike,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: SvdAlgorithm | None = None,
) -> Any:
    """Return the singular value decomposition of matrices.

    Args:
      x: matrices, of shape ``[..., m, n]``.
      full_matrices: whether u and v are square, beyond ``min(m, n)`` columns.
      compute_uv: whether u and v are returned.
      subset_by_index: None, or the whole range ``(0, min(m, n))``.
      algorithm: makes no difference; a CPU has no ``JACOBI`` and no ``POLAR``.

    Returns:
      A tuple ``(u, s, vh)``, or `s` alone: real, in descending order.

    Raises:
      NotImplementedError: for other subsets and algorithms.

    Reference: ``jax.lax.linalg.svd``.
    """
    how: dict = {"full_matrices": full_matrices, "compute_uv": compute_uv}
    how |= {"subset_by_index": subset_by_index, "algorithm": algorithm}
    s, *vectors = svd_p.bind(x, **how)
    return (vectors[0], s, vectors[1]) if compute_uv else s
