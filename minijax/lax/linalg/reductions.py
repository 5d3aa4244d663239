"""Reductions by Householder reflections: Hessenberg, tridiagonal, and products.

Reference: ``jax.lax.linalg``.
"""

# Made from chapters/31_linear_algebra_rest.md by `make chapter`;
# edit the chapter, not this file.

import numpy as np

from minijax.arrays.array import primitive_rules
from minijax.arrays.checks import (
    INEXACT,
    all_weak,
    check_kind,
    check_same_dtype,
    to_real,
)
from minijax.core import Array, Primitive
from minijax.factorizations.lapack import factored
from minijax.factorizations.matrices import (
    check_batches,
    check_matrices,
    common_columns,
    sizes_of_square,
)
from minijax.forward.rules import jvp_rules
from minijax.jitting.costs import FLOPS, _moved, cost_rules
from minijax.lax.linalg.reflections import (
    hessenberg_form,
    multiplied,
    product_of,
    tridiagonal_form,
)
from minijax.typing import ArrayLike

NO_DERIVATIVE = "JAX has none: what uses it has a derivative of its own, or none."


def batch_of(name, avals, ranks, accepts=INEXACT):
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
    check_batches(name, [aval.shape[: aval.ndim - rank] for aval, rank in pairs])
    return avals[0].shape[: avals[0].ndim - ranks[0]]


def _factor(primitive, shape, compute, flops):
    """Register a factorization that has no derivative."""
    primitive_rules(
        primitive,
        shape,
        lambda xp, *xs, **how: factored(lambda x: compute(x, *xs[1:], **how), xs[0]),
    )
    common_columns(primitive, flops)
    jvp_rules.reasons[primitive] = NO_DERIVATIVE


def _hessenberg_shape(a):
    check_matrices("hessenberg", a)
    batch, n = sizes_of_square(
        a,
        "Argument to Hessenberg reduction must have shape [..., n, n], got shape "
        f"{a.shape[-2:]}",
    )
    if not n:
        raise ValueError("hessenberg needs matrices of at least one row.")
    return [a, a.update(shape=(*batch, n - 1))]


def _tridiagonal_shape(a, *, lower):
    check_matrices("tridiagonal", a)
    complaint = (
        f"The input to tridiagonal must be a square matrix. Got shape {a.shape[-2:]}."
    )
    batch, n = sizes_of_square(a, complaint)
    if not n:
        raise ValueError(complaint)
    real, beside = to_real(a.dtype), (*batch, n - 1)
    parts = a.update(shape=(*batch, n), dtype=real), a.update(shape=beside, dtype=real)
    return [a, *parts, a.update(shape=beside)]


def _product_shape(a, taus):
    batch = batch_of("householder_product", (a, taus), (2, 1))
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
    batch_of("ormqr", (a, taus, c), (2, 1, 2))
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


def _geqrf_shape(a):
    check_matrices("geqrf", a)
    *batch, m, n = a.shape
    return [a, a.update(shape=(*batch, min(m, n)))]


def _geqrf(x):
    h, taus = np.linalg.qr(x, "raw")
    return [h.mT.astype(x.dtype), taus.astype(x.dtype)]


hessenberg_p = Primitive("hessenberg")
tridiagonal_p = Primitive("tridiagonal")
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
    return householder_product_p.bind(a, taus)[0]


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
    return ormqr_p.bind(a, taus, c, left=left, transpose=transpose)[0]


_factor(hessenberg_p, _hessenberg_shape, hessenberg_form, lambda m, n: 10 / 3 * n**3)
_factor(tridiagonal_p, _tridiagonal_shape, tridiagonal_form, lambda m, n: 4 / 3 * n**3)
_factor(
    householder_product_p,
    _product_shape,
    lambda *xs: [product_of(*xs)],
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
    lambda *xs, **how: [multiplied(*xs, **how)],
    lambda m, n: 0,
)


def _ormqr_cost(eqn):
    _, reflectors, c = [x.aval for x in eqn.invars]
    return {FLOPS: 4 * reflectors.shape[-1] * c.size} | _moved(eqn)


cost_rules.supersede(ormqr_p, cost_rules[ormqr_p], _ormqr_cost)
