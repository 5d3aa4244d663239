"""Eigenvectors, Schur and Hessenberg forms, tridiagonal systems, polar factors.

References: ``jax.lax.linalg.eig``, ``jax.lax.linalg``, ``jax.lax.linalg.schur``,
``jax.lax.linalg.tridiagonal_solve``; Golub and Van Loan, *Matrix Computations*,
section 4.3; LAPACK's ``gtsv``, ``jax.lax.linalg``; P. Gill and others, *Methods for
modifying matrix factorizations* (1974), ``jax.lax.linalg.qdwh``; Y. Nakatsukasa, Z.
Bai and F. Gygi, *Optimizing Halley's iteration for computing the matrix polar
decomposition* (2010).
"""

# Made from chapters/31_linear_algebra_rest.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Callable
from enum import Enum
from typing import Any

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.arrays.array import def_shape_and_impl, typeof
from minijax.arrays.numerics import (
    FLOAT_KINDS,
    INEXACT_KINDS,
    all_weak,
    check_kind,
    check_rank,
    check_same_dtype,
    real_dtype_of,
)
from minijax.batching.vmap import batch_dim_to_front, move_one_axis, vmap_rules
from minijax.core import Array, Primitive
from minijax.forward_mode.jvp import add_or_none, instantiate_tangents, jvp_rules
from minijax.jitting.stages import FLOPS, _moved, cost_rules
from minijax.kernels.lowering import cpu_rules, kernel_rules
from minijax.linear_algebra import factorizations as _cholesky
from minijax.linear_algebra import factorizations as _orthogonal
from minijax.linear_algebra.factorizations import (
    adjoint,
    check_batch_dims,
    check_matrix_operands,
    eye_like,
    factorization_rules,
    lu_p,
    lu_solve_factors,
    square_matrix_shape,
    symmetrize,
    transpose_matrices,
    triangular_solve,
    tril_impl,
)
from minijax.linear_algebra.lapack import factor_or_nan, tridiagonal_on_cpu
from minijax.linear_algebra.qr_algorithm import (
    double_precision_copy,
    hessenberg_reduction,
    householder_product_impl,
    ormqr_impl,
    schur_form,
    tridiagonal_reduction,
)
from minijax.python_backend.codegen import python_rules
from minijax.python_backend.source import write_evaluation
from minijax.reverse_mode.backward_pass import deftranspose
from minijax.typing import ArrayLike

# Eigenvalues and eigenvectors of matrices that need not be Hermitian.


def _eig_shape(x, *, compute_left_eigenvectors, compute_right_eigenvectors, **how):
    check_matrix_operands("eig", x)
    batch, n = square_matrix_shape(
        x, f"The input to eig must be a square matrix. Got shape {x.shape[-2:]}."
    )
    dtype = np.result_type(x.dtype, np.complex64)
    vectors = x.update(dtype=dtype)
    count = compute_left_eigenvectors + compute_right_eigenvectors
    return [x.update(shape=(*batch, n), dtype=dtype), *[vectors] * count]


def _eig(xp, x, *, compute_left_eigenvectors, compute_right_eigenvectors, **how):
    dtype = np.result_type(x.dtype, np.complex64)

    def eig(x):
        if not compute_left_eigenvectors and not compute_right_eigenvectors:
            return [xp.linalg.eigvals(x).astype(dtype)]
        w, v = (y.astype(dtype) for y in xp.linalg.eig(x))
        left = [_left_vectors(xp, v)] * compute_left_eigenvectors
        return [w, *left, *[v] * compute_right_eigenvectors]

    return factor_or_nan(eig, x)


def _left_vectors(xp, v):
    """Return the adjoint inverse, with columns of length 1 and real largest parts."""
    u = xp.linalg.inv(v).mT.conj()
    u = u / xp.linalg.norm(u, axis=-2, keepdims=True)
    largest = abs(u).argmax(-2, keepdims=True) if u.size else None
    if largest is None:
        return u
    part = xp.take_along_axis(u, largest, -2)
    return u * part.conj() / abs(part)


eig_p = Primitive("eig")
eig_p.multiple_results = True
def_shape_and_impl(eig_p, _eig_shape, _eig)
factorization_rules(eig_p, lambda m, n: 25 * n**3)


def _vectors_dot(w, v, a_dot):
    """Return the tangents of eigenvalues, and of eigenvectors of length 1."""
    factors, _, rows = lu_p.bind(v)
    inner, one = lu_solve_factors(factors, rows, a_dot @ v, 0), eye_like(v)
    gaps = w[..., None, :] - w[..., :, None]
    turned = v @ ((1 / (one + gaps) - one) * inner)
    w_dot = jnp.diagonal(inner, axis1=-2, axis2=-1)
    if not v.size:  # there is no largest number
        return w_dot, turned
    largest = abs(v).argmax(-2)[..., None, :]
    parts = [jnp.take_along_axis(x, largest, -2) for x in (turned, v)]
    longer = (v.conj() * turned).sum(-2, keepdims=True).real
    phase = parts[0].imag / parts[1].real
    return w_dot, turned - v * lax.complex(longer, phase)


def eig_jvp(primals, tangents, *, enable_eigvec_derivs, **how):
    """Return the tangents, for eigenvalues that differ."""
    [x], [x_dot] = primals, tangents
    left, right = (how[f"compute_{side}_eigenvectors"] for side in ("left", "right"))
    if (left or right) and not enable_eigvec_derivs:
        raise NotImplementedError(
            "Derivatives of non-symmetric eigenvectors are only valid for eigenvalues "
            "that differ, which is not checked: pass enable_eigvec_derivs=True to "
            "lax.linalg.eig to opt in, or use eigvals."
        )
    how = how | {"compute_right_eigenvectors": True}
    results = eig_p.bind(x, enable_eigvec_derivs=enable_eigvec_derivs, **how)
    w, v = results[0], results[-1]
    a_dot = x_dot.astype(v.dtype)
    w_dot, v_dot = _vectors_dot(w, v, a_dot)
    if not (left or right):
        return [w], [w_dot]
    dots = [w_dot]
    if left:
        dots.append(_vectors_dot(w.conj(), results[1], adjoint(a_dot))[1])
    return results[: 1 + left + right], [*dots, *[v_dot] * right]


jvp_rules[eig_p] = eig_jvp


class EigImplementation(Enum):
    """Algorithms for eigenvalues. LAPACK's is the one there is.

    Reference: ``jax.lax.linalg.EigImplementation``.
    """

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


def eig(
    x: ArrayLike,
    *,
    compute_left_eigenvectors: bool = True,
    compute_right_eigenvectors: bool = True,
    enable_eigvec_derivs: bool = False,
    implementation: EigImplementation | None = None,
    use_magma: bool | None = None,
) -> list[Array]:
    """Return the eigenvalues of matrices, and their eigenvectors.

    Args:
      x: matrices, of shape ``[..., n, n]``.
      compute_left_eigenvectors: whether to return vectors u with ``u.H @ x = w u.H``;
        they come from the inverse of the right ones.
      compute_right_eigenvectors: whether to return vectors v with ``x @ v = w v``.
      enable_eigvec_derivs: whether the vectors may be differentiated, since the
        caller knows that the eigenvalues differ.
      implementation, use_magma: make no difference.

    Returns:
      A list of complex arrays: eigenvalues, of shape ``[..., n]``, and vectors of
      length 1 in columns, the left ones first.

    Reference: ``jax.lax.linalg.eig``.
    """
    how: dict = {"compute_left_eigenvectors": compute_left_eigenvectors}
    how |= {"compute_right_eigenvectors": compute_right_eigenvectors}
    how |= {"enable_eigvec_derivs": enable_eigvec_derivs}
    return eig_p.bind(x, implementation=implementation, **how)


# Reductions by Householder reflections: Hessenberg, tridiagonal, and products.

NO_DERIVATIVE_REASON = (
    "JAX has none: what uses it has a derivative of its own, or none."
)


def batch_shape_of(name, avals, ranks, accepts=INEXACT_KINDS):
    """Return the sizes of the axes in front, which all operands share.

    Args:
      ranks: how many axes of each operand belong to a matrix or a vector.
      accepts: kinds of dtypes.

    Raises:
      TypeError: for other dtypes, different ones, or too few axes.
      ValueError: for batches of different shapes.
    """
    check_kind(name, accepts, avals)
    check_same_dtype(name, avals)
    for position, (aval, rank) in enumerate(zip(avals, ranks)):
        if aval.ndim < rank:
            raise TypeError(
                f"Input {position} to {name} must have rank at least {rank}, but got "
                f"shape={aval.shape}"
            )
    pairs = list(zip(avals, ranks))
    check_batch_dims(name, [aval.shape[: aval.ndim - rank] for aval, rank in pairs])
    return avals[0].shape[: avals[0].ndim - ranks[0]]


def _factor(primitive, shape, compute, flops):
    """Register a factorization that has no derivative."""
    def_shape_and_impl(
        primitive,
        shape,
        lambda xp, *xs, **how: factor_or_nan(
            lambda x: compute(x, *xs[1:], **how), xs[0]
        ),
    )
    factorization_rules(primitive, flops)
    jvp_rules.reasons[primitive] = NO_DERIVATIVE_REASON


def _hessenberg_shape(a):
    check_matrix_operands("hessenberg", a)
    batch, n = square_matrix_shape(
        a,
        "Argument to Hessenberg reduction must have shape [..., n, n], got shape "
        f"{a.shape[-2:]}",
    )
    if not n:
        raise ValueError("hessenberg needs matrices of at least one row.")
    return [a, a.update(shape=(*batch, n - 1))]


def _tridiagonal_shape(a, *, lower):
    check_matrix_operands("tridiagonal", a)
    complaint = (
        f"The input to tridiagonal must be a square matrix. Got shape {a.shape[-2:]}."
    )
    batch, n = square_matrix_shape(a, complaint)
    if not n:
        raise ValueError(complaint)
    real, beside = real_dtype_of(a.dtype), (*batch, n - 1)
    parts = a.update(shape=(*batch, n), dtype=real), a.update(shape=beside, dtype=real)
    return [a, *parts, a.update(shape=beside)]


def _product_shape(a, taus):
    batch = batch_shape_of("householder_product", (a, taus), (2, 1))
    m, n = a.shape[-2:]
    if m < n:
        raise ValueError(
            "The first argument to householder_product must have at least as many "
            f"rows as columns, got shape {(m, n)}"
        )
    if taus.shape[-1] > n:
        raise ValueError(
            "The second argument to householder_product must not have more rows than "
            "the minimum of the first argument's rows and columns."
        )
    return [a.update(shape=(*batch, m, n), weak_type=all_weak([a, taus]))]


def _ormqr_shape(a, taus, c, *, left, transpose):
    batch_shape_of("ormqr", (a, taus, c), (2, 1, 2))
    if c.shape[-2 if left else -1] != a.shape[-2]:
        parts = (True, "number of rows as the Householder matrix a")
        if not left:
            parts = False, "number of columns as the Householder matrix a has rows"
        raise ValueError(
            f"ormqr with left={parts[0]} expects c to have the same {parts[1]}. Got a "
            f"shape {a.shape[-2:]} and c shape {c.shape[-2:]}."
        )
    return [c.update(weak_type=all_weak([a, taus, c]))]


geqrf_p = Primitive("geqrf")
geqrf_p.multiple_results = True


def _geqrf_shape(a):
    check_matrix_operands("geqrf", a)
    *batch, m, n = a.shape
    return [a, a.update(shape=(*batch, min(m, n)))]


def _geqrf(x):
    h, taus = np.linalg.qr(x, "raw")
    return [h.mT.astype(x.dtype), taus.astype(x.dtype)]


hessenberg_p = Primitive("hessenberg")
hessenberg_p.multiple_results = True
tridiagonal_p = Primitive("tridiagonal")
tridiagonal_p.multiple_results = True
householder_product_p = Primitive("householder_product")
ormqr_p = Primitive("ormqr")


def hessenberg(a: ArrayLike) -> list[Array]:
    """Reduce square matrices to upper Hessenberg form.

    Args:
      a: matrices, of shape ``[..., n, n]``, n at least 1.

    Returns:
      A list of an array like `a`, which has the form in its upper triangle and first
      subdiagonal and the vectors of the Householder reflections below; and their
      factors tau, of shape ``[..., n - 1]``.

    Reference: ``jax.lax.linalg.hessenberg``.
    """
    return hessenberg_p.bind(a)


def tridiagonal(a: ArrayLike, *, lower: bool = True) -> list[Array]:
    """Reduce Hermitian matrices to tridiagonal form.

    Args:
      a: matrices, of shape ``[..., n, n]``, n at least 1.
      lower: which triangle is read.

    Returns:
      A list of an array like `a`, which has the vectors of the Householder reflections
      in that triangle, outside of the form; the diagonals, real and of shape
      ``[..., n]``; the numbers beside them, real, ``[..., n - 1]``; and the factors tau
      of the reflections, ``[..., n - 1]``.

    Reference: ``jax.lax.linalg.tridiagonal``.
    """
    return tridiagonal_p.bind(a, lower=lower)


def householder_product(a: ArrayLike, taus: ArrayLike) -> Array:
    """Return the first n columns of products of Householder reflections.

    Args:
      a: the vectors of reflections below the diagonals of matrices, of shape
        ``[..., m, n]``, n at most m.
      taus: their factors, of shape ``[..., k]``, k at most n.

    Reference: ``jax.lax.linalg.householder_product``.
    """
    return householder_product_p.bind(a, taus)


def ormqr(
    a: ArrayLike,
    taus: ArrayLike,
    c: ArrayLike,
    *,
    left: bool = True,
    transpose: bool = False,
) -> Array:
    """Multiply matrices by the q of a QR factorization, which stays reflections.

    Args:
      a, taus: the vectors of reflections and their factors, of shapes ``[..., m, n]``
        and ``[..., k]``.
      c: matrices, with m rows if `left`, and m columns otherwise.
      left: whether q stands on the left.
      transpose: whether to take the adjoint of q.

    Returns:
      An array like `c`.

    Reference: ``jax.lax.linalg.ormqr``.
    """
    return ormqr_p.bind(a, taus, c, left=left, transpose=transpose)


_factor(
    hessenberg_p, _hessenberg_shape, hessenberg_reduction, lambda m, n: 10 / 3 * n**3
)
_factor(
    tridiagonal_p, _tridiagonal_shape, tridiagonal_reduction, lambda m, n: 4 / 3 * n**3
)
_factor(
    householder_product_p,
    _product_shape,
    lambda *xs: [householder_product_impl(*xs)],
    lambda m, n: 2 * m * n * n - 2 / 3 * n**3,
)
_factor(
    geqrf_p,
    _geqrf_shape,
    _geqrf,
    lambda m, n: 2 * m * n * min(m, n) - 2 / 3 * min(m, n) ** 3,
)
_factor(
    ormqr_p,
    _ormqr_shape,
    lambda *xs, **how: [ormqr_impl(*xs, **how)],
    lambda m, n: 0,
)


def _ormqr_cost(eqn):
    _, reflectors, c = [x.aval for x in eqn.invars]
    return {FLOPS: 4 * reflectors.shape[-1] * c.size} | _moved(eqn)


cost_rules.supersede(ormqr_p, cost_rules[ormqr_p], _ormqr_cost)


# Schur forms: triangles that are unitarily similar to matrices.


def _schur_shape(x, *, compute_schur_vectors, sort_eig_vals, select_callable):
    check_matrix_operands("schur", x)
    square_matrix_shape(
        x, f"The input to schur must be a square matrix. Got shape {x.shape[-2:]}."
    )
    if sort_eig_vals:
        raise NotImplementedError("schur does not sort eigenvalues: sort_eig_vals.")
    return [x] * (1 + compute_schur_vectors)


def _schur(xp, x, *, compute_schur_vectors, **how):
    return factor_or_nan(schur_form, x)[: 1 + compute_schur_vectors]


schur_p = Primitive("schur")
schur_p.multiple_results = True
def_shape_and_impl(schur_p, _schur_shape, _schur)
factorization_rules(schur_p, lambda m, n: 25 * n**3)
jvp_rules.reasons[schur_p] = NO_DERIVATIVE_REASON


def schur(
    x: ArrayLike,
    *,
    compute_schur_vectors: bool = True,
    sort_eig_vals: bool = False,
    select_callable: Callable[..., Any] | None = None,
) -> list[Array]:
    """Return Schur forms u of matrices, ``q @ u @ q.mT.conj()``, and the unitary q.

    Args:
      x: matrices, of shape ``[..., n, n]``.
      compute_schur_vectors: whether q is returned.
      sort_eig_vals: has to be False.
      select_callable: not used.

    Returns:
      A list ``[u, q]``, or ``[u]``. Of real matrices u is real, an upper triangle with
      blocks of two rows on the diagonal for pairs of complex eigenvalues.

    Reference: ``jax.lax.linalg.schur``.
    """
    how: dict = {"sort_eig_vals": sort_eig_vals, "select_callable": select_callable}
    return schur_p.bind(x, compute_schur_vectors=compute_schur_vectors, **how)


# Tridiagonal systems of equations: the primitive and all its columns.


def _diagonals_shape(dl, d, du, b, *, perturb_singular):
    if len({dl.shape, d.shape, du.shape}) > 1:
        raise TypeError(
            "tridiagonal_solve requires that all diagonal arguments have the same "
            f"shape, got {dl.shape}, {d.shape} and {du.shape}."
        )
    batch_shape_of("tridiagonal_solve", (dl, d, du, b), (1, 1, 1, 2))
    if dl.shape != b.shape[:-1]:
        raise TypeError(
            "tridiagonal_solve requires that the leading ndim-1 dimensions of b equal "
            f"the dimensions of the diagonal arguments, got {b.shape} and {dl.shape}."
        )
    return [b.update(weak_type=all_weak([dl, d, du, b]))]


def _solved(dl, d, du, b, perturb_singular):
    """Eliminate with partial pivoting, and substitute, on arrays of NumPy."""
    dtype = b.dtype
    low, pivots, up, x = map(double_precision_copy, (dl, d, du, b))
    n, above, up[..., -1:] = d.shape[-1], np.zeros_like(up), 0
    for i in range(n - 1):
        swap = np.abs(low[..., i + 1]) > np.abs(pivots[..., i])
        here = pivots[..., i], up[..., i], np.zeros_like(up[..., i])
        below = low[..., i + 1], pivots[..., i + 1], up[..., i + 1]
        chosen = [np.where(swap, q, p) for p, q in zip(here, below)]
        rest = [np.where(swap, p, q) for p, q in zip(here, below)]
        row = np.where(swap[..., None], x[..., i + 1, :], x[..., i, :])
        other = np.where(swap[..., None], x[..., i, :], x[..., i + 1, :])
        factor = rest[0] / np.where(chosen[0] == 0, 1, chosen[0])
        pivots[..., i], up[..., i], above[..., i] = chosen
        pivots[..., i + 1] = rest[1] - factor * chosen[1]
        up[..., i + 1] = rest[2] - factor * chosen[2]
        x[..., i, :], x[..., i + 1, :] = row, other - factor[..., None] * row
    if n:
        _mend(pivots, up, above, np.finfo(dtype), perturb_singular)
    for i in range(n - 1, -1, -1):
        for beside, by in (1, up), (2, above):
            if i + beside < n:
                x[..., i, :] -= by[..., i, None] * x[..., i + beside, :]
        x[..., i, :] /= pivots[..., i, None]
    return [x.astype(dtype)]


def _mend(pivots, up, above, numbers, perturb_singular):
    """Replace pivots that are zero, or too small to divide by, in place."""
    if not perturb_singular:
        singular = (pivots == 0).any(-1, keepdims=True)
        pivots[...] = np.where(singular, np.nan, pivots)
        return
    sizes = [np.abs(part).max(-1, keepdims=True) for part in (pivots, up, above)]
    least = np.maximum(numbers.eps * np.maximum.reduce(sizes), numbers.tiny)
    small = np.abs(pivots) < numbers.tiny
    pivots[...] = np.where(small, np.copysign(least, pivots.real), pivots)


tridiagonal_solve_p = Primitive("tridiagonal_solve")


def_shape_and_impl(
    tridiagonal_solve_p,
    _diagonals_shape,
    lambda xp, dl, d, du, b, perturb_singular: factor_or_nan(
        lambda b: _solved(dl, d, du, b, perturb_singular), b
    ),
)


def _times(dl, d, du, x):
    """Multiply tridiagonal matrices by others."""
    dl, du = dl[..., 1:, None], du[..., :-1, None]
    y = (d[..., None] * x).at[..., 1:, :].add(dl * x[..., :-1, :])
    return y.at[..., :-1, :].add(du * x[..., 1:, :])


def _tridiagonal_jvp(primals, tangents, **how):
    *diagonals, _ = primals
    *dots, b_dot = tangents
    x = tridiagonal_solve_p.bind(*primals, **how)
    if any(dot is not None for dot in dots):
        dl, d, du = instantiate_tangents(diagonals, dots)
        b_dot = add_or_none(b_dot, -_times(dl, d, du, x))
    return [x], tridiagonal_solve_p.bind_all(*diagonals, b_dot, **how)


def _tridiagonal_transpose(ct, dl, d, du, b, **how):
    zero = jnp.zeros_like(d[..., :1])
    low = jnp.concatenate([zero, du[..., :-1]], -1)
    up = jnp.concatenate([dl[..., 1:], zero], -1)
    return tridiagonal_solve_p.bind(low, d, up, ct, **how)


def _tridiagonal_batch(axis, args, dims, **how):
    """Solve all examples at once: as more columns, if they share their matrix."""
    (*diagonals, b), (*axes, place) = args, dims
    if any(dim is not None for dim in axes):
        fronted = [batch_dim_to_front(x, dim, axis.size) for x, dim in zip(args, dims)]
        return tridiagonal_solve_p.bind_all(*fronted, **how), [0]
    b = move_one_axis(b, place, typeof(b).ndim - 1)
    *batch, m, n, k = typeof(b).shape
    x = tridiagonal_solve_p.bind(
        *diagonals, lax.reshape(b, (*batch, m, n * k)), **how
    )
    return [lax.reshape(x, typeof(b).shape)], [typeof(b).ndim - 1]


jvp_rules[tridiagonal_solve_p] = _tridiagonal_jvp
deftranspose(tridiagonal_solve_p, None, None, None, _tridiagonal_transpose)
vmap_rules[tridiagonal_solve_p] = _tridiagonal_batch
cost_rules[tridiagonal_solve_p] = lambda eqn: (
    {FLOPS: 4 * eqn.invars[1].aval.size + 5 * eqn.invars[3].aval.size} | _moved(eqn)
)
python_rules[tridiagonal_solve_p] = write_evaluation
kernel_rules.reasons[tridiagonal_solve_p] = "NumPy eliminates, row by row, in a step."
cpu_rules[tridiagonal_solve_p] = tridiagonal_on_cpu


def tridiagonal_solve(
    dl: ArrayLike,
    d: ArrayLike,
    du: ArrayLike,
    b: ArrayLike,
    *,
    perturb_singular: bool = False,
) -> Array:
    """Solve tridiagonal systems of equations.

    Args:
      dl: the diagonals below, of shape ``[..., n]``; the first numbers are not read.
      d: the diagonals, of shape ``[..., n]``.
      du: the diagonals above, of shape ``[..., n]``; the last numbers are not read.
      b: right-hand sides, of shape ``[..., n, k]``.
      perturb_singular: whether to replace pivots that are too small, instead of
        returning NaN or infinities.

    Returns:
      An array like `b`.

    Raises:
      TypeError: for other shapes.

    Reference: ``jax.lax.linalg.tridiagonal_solve``.
    """
    how = {"perturb_singular": perturb_singular}
    return tridiagonal_solve_p.bind(dl, d, du, b, **how)


# Symmetric products, and updates of Cholesky factors by one vector.


def _syrk_shape(a, c, **factors):
    batch_shape_of("symmetric_product", (a, c), (2, 2), FLOAT_KINDS)
    if not a.shape[-2] == c.shape[-2] == c.shape[-1]:
        raise ValueError(
            "symmetric_update expects a rectangular matrix of shape (m, n) and a "
            f"square matrix of shape (m, m). Got shapes {a.shape[-2:]} and "
            f"{c.shape[-2:]}."
        )
    return [c.update(weak_type=all_weak([a, c]))]


def _update_shape(r, w):
    batch_shape_of("cholesky_update", (r, w), (2, 1), FLOAT_KINDS)
    for position, (aval, rank) in enumerate(((r, 2), (w, 1))):
        if aval.ndim != rank:
            raise TypeError(
                f"Input {position} to cholesky_update must have a rank of exactly "
                f"{rank}, but got shape={aval.shape}"
            )
    if not r.shape[0] == r.shape[1] == w.shape[0]:
        raise ValueError(
            "Rank-1 update to Cholesky decomposition takes a square matrix and a "
            f"vector of the same size as input. Got shapes {r.shape} and {w.shape} "
            "instead"
        )
    return [r.update(weak_type=all_weak([r, w]))]


def _updated(r, w):
    """Rotate each row of a factor with the vector, on arrays of NumPy."""
    r, w = np.array(r), np.array(w)
    for k in range(len(w)):
        length = np.hypot(r[k, k], w[k])
        if w[k] != 0:
            c, s = r[k, k] / length, w[k] / length
            r[k], w = c * r[k] + s * w, c * w - s * r[k]
    return [r]


symmetric_product_p = Primitive("symmetric_product")
def_shape_and_impl(
    symmetric_product_p,
    _syrk_shape,
    lambda xp, a, c, *, alpha, beta: (alpha * (a @ a.mT) + beta * c).astype(c.dtype),
)
factorization_rules(symmetric_product_p, lambda m, n: m * m * n)
cholesky_update_p = Primitive("cholesky_update")
def_shape_and_impl(
    cholesky_update_p,
    _update_shape,
    lambda xp, r, w: factor_or_nan(lambda r: _updated(r, w), r),
)
factorization_rules(cholesky_update_p, lambda m, n: 3 * n * n)
del vmap_rules[cholesky_update_p]
vmap_rules.reasons[cholesky_update_p] = "JAX has none: it takes one matrix."
for _primitive in (symmetric_product_p, cholesky_update_p):
    jvp_rules.reasons[_primitive] = NO_DERIVATIVE_REASON


def symmetric_product(
    a_matrix: ArrayLike,
    c_matrix: ArrayLike,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    symmetrize_output: bool = False,
) -> Array:
    """Return ``alpha * a @ a.mT + beta * c`` of real matrices and symmetric ones.

    Args:
      a_matrix: of shape ``[..., m, n]``.
      c_matrix: symmetric, of shape ``[..., m, m]``.
      alpha, beta: numbers.
      symmetrize_output: whether the upper triangle is copied from the lower one.

    Returns:
      An array like `c_matrix`.

    Reference: ``jax.lax.linalg.symmetric_product``.
    """
    how = {"alpha": alpha, "beta": beta}
    result = symmetric_product_p.bind(a_matrix, c_matrix, **how)
    if not symmetrize_output:
        return result
    mirrored = transpose_matrices(tril_impl(result, -1))
    return tril_impl(result) + mirrored


def cholesky_update(r_matrix: ArrayLike, w_vector: ArrayLike) -> Array:
    """Return the factor of ``r.T @ r + outer(w, w)`` from the factor r.

    Args:
      r_matrix: an upper triangle, real, of shape ``[n, n]``.
      w_vector: of shape ``[n]``.

    Reference: ``jax.lax.linalg.cholesky_update``.
    """
    return cholesky_update_p.bind(r_matrix, w_vector)


# Polar factors by a dynamically weighted Halley iteration (QDWH).

FOR_QR = 100  # from which weight c on a Cholesky factor would lose too many digits


def _weights(bound, most):
    """Return the weights of the steps, from a bound of the least singular value."""
    weights, near = [], 5 * bound
    while bound + near < 1 and len(weights) < most:
        square = bound * bound
        d = (4 * (1 / square - 1) / square) ** (1 / 3)
        root = (1 + d) ** 0.5
        a = root + (2 - d + 2 * (2 - square) / (square * root)) ** 0.5
        b = (a - 1) ** 2 / 4
        c = a + b - 1
        bound = bound * (a + b * square) / (1 + c * square)
        weights.append((a, b, c))
    return weights


def _step_by_qr(u, a, b, c):
    one = eye_like(adjoint(u) @ u)
    tall = jnp.concatenate([c**0.5 * u, one])
    q, _ = _orthogonal.qr(tall, full_matrices=False)
    m = u.shape[0]
    return b / c * u + (a - b / c) / c**0.5 * (q[:m] @ adjoint(q[m:]))


def _step_by_cholesky(u, a, b, c):
    gram = adjoint(u) @ u
    factor = _cholesky.cholesky(eye_like(gram) + c * gram)
    how = {"left_side": True, "lower": True, "conjugate_a": True}
    z = triangular_solve(factor, u.T, **how)
    z = triangular_solve(factor, z.conj(), transpose_a=True, **how)
    return b / c * u + (a - b / c) * adjoint(z)


def qdwh(
    x: ArrayLike,
    *,
    is_hermitian: bool = False,
    max_iterations: int | None = None,
    eps: float | None = None,
    dynamic_shape: Any = None,
) -> tuple[Array, Array, Array, Array]:
    """Return the polar factors of a matrix, by an iteration of products and QR.

    Args:
      x: a matrix of shape ``[m, n]``, m at least n.
      is_hermitian: not used.
      max_iterations: how many steps there are at most, 10 by default.
      eps: where to stop; by default that of the dtype.
      dynamic_shape: how many rows and columns of `x` count; the others are taken for
        zeros.

    Returns:
      A tuple of u, with orthonormal columns, and the Hermitian h with ``x = u @ h``;
      how many steps were taken, and whether they were enough.

    Raises:
      ValueError: for a matrix that is wider than it is high.

    Reference: ``jax.lax.linalg.qdwh``.
    """
    x = jnp.asarray(x)
    check_rank("qdwh", 2, x)
    if x.shape[0] < x.shape[1]:
        raise ValueError("The input matrix of shape M x N must have M >= N.")
    if dynamic_shape is not None:
        rows, columns = (jnp.arange(size) for size in x.shape)
        m, n = dynamic_shape
        x = jnp.where((rows[:, None] < m) & (columns < n), x, 0)
    most = 10 if max_iterations is None else max_iterations
    eps = float(jnp.finfo(x.dtype).eps) if eps is None else eps
    norms = [abs(x).sum(axis).max(initial=0) for axis in (0, 1)]
    scale = jnp.where(norms[0] == 0, 1, lax.rsqrt(norms[0]) * lax.rsqrt(norms[1]))
    u = x * scale.astype(x.dtype)
    weights, far, enough = _weights(eps, most), True, np.cbrt(5 * eps)
    for a, b, c in weights:
        by_qr, before = c > FOR_QR, u
        u = (_step_by_qr if by_qr else _step_by_cholesky)(u, a, b, c)
        far = by_qr or jnp.linalg.norm(u - before) > enough

    def go_on(state):
        count, _, far = state
        return far & (count < most)

    def step(state):
        count, before, _ = state
        u = _step_by_cholesky(before, 3.0, 1.0, 3.0)
        return count + 1, u, jnp.linalg.norm(u - before) > enough

    state = jnp.asarray(len(weights)), u, jnp.asarray(far)
    count, u, far = lax.while_loop(go_on, step, state)
    u = 1.5 * u - 0.5 * u @ (adjoint(u) @ u)
    return u, symmetrize(adjoint(u) @ x), count, ~far
