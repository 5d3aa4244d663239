"""Systems of linear equations, inverses and determinants, with the names of NumPy.

Reference: ``jax.numpy.linalg``.
"""

# Made from chapters/31_linear_algebra_rest.md by `make chapter`;
# edit the chapter, not this file.

import math
from functools import partial, reduce
from typing import NamedTuple

from minijax import lax
from minijax import numpy as jnp
from minijax.arrays.checks import as_integer
from minijax.batching.trace import vmap
from minijax.branches.calling import vectorize
from minijax.core import Array
from minijax.factorizations.elimination import lu, rows_taken, solved_by_factors
from minijax.factorizations.triangular import triangular_solve
from minijax.lax.linalg.reductions import geqrf_p
from minijax.lax.promotion import promote_dtypes_inexact
from minijax.numpy.shapes import arraylike
from minijax.own_rules.implicit_solutions import custom_linear_solve
from minijax.own_rules.tangent_rules import custom_jvp
from minijax.typing import ArrayLike


class SlogdetResult(NamedTuple):
    """Signs of determinants, and logarithms of their sizes."""

    sign: Array
    logabsdet: Array


def _solve_one(a, b):
    both, _, rows = lu(lax.stop_gradient(a))

    def by_factors(trans):
        return lambda _, x: solved_by_factors(both, rows, x[:, None], trans)[:, 0]

    def one(b):
        ways = by_factors(0), by_factors(1)
        return custom_linear_solve(lambda x: a @ x, b, *ways)

    return one(b) if b.ndim == 1 else vmap(one, 1, 1)(b)


def solve(a: ArrayLike, b: ArrayLike) -> Array:
    """Solve systems of linear equations, ``a @ x = b``.

    Args:
      a: square matrices, of shape ``[..., n, n]``.
      b: one right side, of shape ``[n]``, or several in columns, ``[..., n, k]``.

    Raises:
      ValueError: for other shapes.

    Reference: ``jax.numpy.linalg.solve``.
    """
    a, b = (arraylike("linalg.solve", x) for x in (a, b))
    a, b = promote_dtypes_inexact(a, b)
    if a.ndim < 2:
        raise ValueError(
            "left hand array must be at least two dimensional; got "
            f"a.shape={a.shape!r}"
        )
    if 1 < b.ndim == a.ndim - 1 and a.shape[-1] == b.shape[-1] != b.shape[-2]:
        raise ValueError(
            f"Invalid shapes for solve: {a.shape}, {b.shape}. For a batch of vectors, "
            "use solve(a, b[..., None]).squeeze(-1)."
        )
    signature = "(m,m),(m)->(m)" if b.ndim == 1 else "(m,m),(m,n)->(m,n)"
    return vectorize(_solve_one, signature=signature)(a, b)


def inv(a: ArrayLike) -> Array:
    """Return the inverses of square matrices; `solve` is cheaper than their products.

    Reference: ``jax.numpy.linalg.inv``.
    """
    a = arraylike("linalg.inv", a)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(
            f"Argument to inv must have shape [..., n, n], got {a.shape}."
        )
    return solve(a, jnp.broadcast_to(jnp.eye(a.shape[-1], dtype=a.dtype), a.shape))


def matrix_power(a: ArrayLike, n: int) -> Array:
    """Return square matrices to an integer power, by squaring.

    Reference: ``jax.numpy.linalg.matrix_power``.
    """
    x = arraylike("linalg.matrix_power", a)
    if x.ndim < 2:
        raise TypeError(
            f"{x.ndim}-dimensional array given. Array must be at least two-dimensional"
        )
    if x.shape[-2] != x.shape[-1]:
        raise TypeError("Last 2 dimensions of the array must be square")
    n = as_integer(n, "n of matrix_power")
    if n == 0:
        return jnp.broadcast_to(jnp.eye(x.shape[-1], dtype=x.dtype), x.shape)
    square, factors = inv(x) if n < 0 else x, []
    for bit in reversed(f"{abs(n):b}"):
        factors += [square] if bit == "1" else []
        square = square @ square if len(factors) < f"{abs(n):b}".count("1") else square
    return reduce(jnp.matmul, factors)


def tensorinv(a: ArrayLike, ind: int = 2) -> Array:
    """Return the inverse of the linear function that an array is for `tensordot`.

    Reference: ``jax.numpy.linalg.tensorinv``.
    """
    a, ind = arraylike("linalg.tensorinv", a), as_integer(ind, "ind of tensorinv")
    if ind <= 0:
        raise ValueError(f"ind must be a positive integer; got {ind=}")
    rows, columns = a.shape[:ind], a.shape[ind:]
    if math.prod(rows) != math.prod(columns):
        raise ValueError(
            "tensorinv is only possible when the product of the first `ind` "
            "dimensions equals that of the remaining dimensions. got "
            f"{a.shape=} with {ind=}."
        )
    size = math.prod(rows)
    return inv(a.reshape(size, size)).reshape(*columns, *rows)


def tensorsolve(
    a: ArrayLike, b: ArrayLike, axes: tuple[int, ...] | None = None
) -> Array:
    """Solve ``tensordot(a, x, x.ndim) = b``.

    Reference: ``jax.numpy.linalg.tensorsolve``.
    """
    a, b = (arraylike("linalg.tensorsolve", x) for x in (a, b))
    if axes is not None:
        a = jnp.moveaxis(a, axes, tuple(range(a.ndim - len(axes), a.ndim)))
    shape = a.shape[b.ndim :]
    if a.shape[: b.ndim] != b.shape:
        raise ValueError(
            "After moving axes to end, leading shape of a must match shape of b. got "
            f"{a.shape=}, {b.shape=}"
        )
    if b.size != math.prod(shape):
        raise ValueError(
            "Input arrays must have prod(a.shape[:b.ndim]) == prod(a.shape[b.ndim:]); "
            f"got {a.shape=}, {b.ndim=}."
        )
    return solve(a.reshape(b.size, b.size), b.ravel()).reshape(shape)


def _signs_of(pivots):
    places = lax.broadcasted_iota(pivots.dtype, pivots.shape, pivots.ndim - 1)
    return 1 - 2 * ((pivots != places).sum(-1) % 2)


@custom_jvp
def _slogdet(a):
    both, pivots, _ = lu(a)
    diagonal = jnp.diagonal(both, axis1=-2, axis2=-1)
    sizes, signs = abs(diagonal), _signs_of(pivots).astype(a.dtype)
    sign = signs * jnp.prod(jnp.sign(diagonal), axis=-1)
    return sign, jnp.log(sizes).sum(-1)


@custom_jvp
def _slogdet_by_reflections(a):
    both, taus = geqrf_p.bind(a)
    diagonal = jnp.diagonal(both, axis1=-2, axis2=-1)
    some = taus != 0  # the determinant of a reflection, which is -1 for reals
    turns = jnp.where(some, -taus / jnp.where(some, taus.conj(), 1), 1)
    sign = jnp.prod(jnp.sign(diagonal), axis=-1) * jnp.prod(turns, axis=-1)
    return sign, jnp.log(abs(diagonal)).sum(-1)


def _slogdet_jvp(function, primals, tangents):
    sign, logarithm = function(*primals)
    slope = jnp.trace(solve(*primals, *tangents), axis1=-1, axis2=-2)
    if slope.dtype.kind != "c":
        return (sign, logarithm), (jnp.zeros_like(sign), slope)
    turn = slope - slope.real.astype(slope.dtype)
    return (sign, logarithm), (turn * sign, slope.real)


for _function in (_slogdet, _slogdet_by_reflections):
    _function.defjvp(partial(_slogdet_jvp, _function))


def _square(name, a):
    [a] = promote_dtypes_inexact(arraylike(f"linalg.{name}", a))
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(
            f"Argument to {name}() must have shape [..., n, n], got {a.shape}"
        )
    return a


def slogdet(a: ArrayLike, *, method: str | None = None) -> SlogdetResult:
    """Return the signs of determinants, and the logarithms of their sizes.

    Args:
      a: square matrices, of shape ``[..., n, n]``.
      method: None or ``"lu"``; or ``"qr"``, by reflections.

    Reference: ``jax.numpy.linalg.slogdet``.
    """
    if method not in (None, "lu", "qr"):
        raise ValueError(
            f"Unknown slogdet method '{method}'. Supported methods are 'lu' (`None`), "
            "and 'qr'."
        )
    found = _slogdet_by_reflections if method == "qr" else _slogdet
    return SlogdetResult(*found(_square("slogdet", a)))


def det(a: ArrayLike) -> Array:
    """Return the determinants of square matrices.

    Reference: ``jax.numpy.linalg.det``.
    """
    x = _square("det", a)
    if x.shape[-1] == 2:
        return _minor(x, (0, 1), (0, 1))
    return _det_of_three(x) if x.shape[-1] == 3 else _det(x)


def _det_of_three(a):
    first, second, third = (
        a[..., 0, i] * _minor(a, (1, 2), pair)
        for i, pair in enumerate([(1, 2), (0, 2), (0, 1)])
    )
    return first - second + third


def _minor(a, rows, columns):
    (i, j), (m, n) = rows, columns
    return a[..., i, m] * a[..., j, n] - a[..., i, n] * a[..., j, m]


@custom_jvp
def _det(a):
    sign, logarithm = slogdet(a)
    return sign * jnp.exp(logarithm).astype(sign.dtype)


@_det.defjvp
def _det_jvp(primals, tangents):
    det, moved = _times_cofactors(*primals, *tangents)
    return det, jnp.trace(moved, axis1=-1, axis2=-2)


def _times_cofactors(a, b):
    n = a.shape[-1]
    if n < 2:
        return _det(a), b
    both, pivots, rows = lu(a)
    diagonal = jnp.diagonal(both, axis1=-2, axis2=-1)
    signs = _signs_of(pivots).astype(a.dtype)
    partial_dets = jnp.cumprod(diagonal, axis=-1) * signs[..., None]
    last, without = partial_dets[..., -1, None, None], partial_dets[..., -2, None, None]
    at_end = lax.broadcasted_iota("int32", a.shape, a.ndim - 1) == n - 1
    at_end &= lax.broadcasted_iota("int32", a.shape, a.ndim - 2) == n - 1
    both = jnp.where(at_end, 1 / without, both)
    ones = jnp.ones_like(b[..., :1])
    trial = triangular_solve(both, ones, left_side=True)
    hopeless = ~jnp.isfinite(trial).all((-2, -1), keepdims=True)  # rank below n - 1
    x = rows_taken(jnp.where(hopeless, 0, b), rows)
    unit = {"left_side": True, "lower": True, "unit_diagonal": True}
    x = triangular_solve(both, x, **unit)
    x = jnp.concatenate([x[..., :-1, :] * last, x[..., -1:, :]], -2)
    x = triangular_solve(both, x, left_side=True)
    return last[..., 0, 0], jnp.where(hopeless, 0, x)
