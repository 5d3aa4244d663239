"""Exponentials of matrices.

Reference: ``jax.scipy.linalg.expm``; N. Higham, *The scaling and squaring method for
the matrix exponential revisited* (2005).
"""

# Made from chapters/33_library_ground.md by `make chapter`;
# edit the chapter, not this file.

import math
from typing import Any

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.branches.calling import vectorize
from minijax.core import Array
from minijax.lax.promotion import promote_dtypes_inexact
from minijax.pytrees.forward_api import jvp
from minijax.scipy.linalg.scipy_factors import solve, solve_triangular
from minijax.typing import ArrayLike

# Of the approximant for 32 and 64 bits, the degree and the largest norm.
_DEGREES = {4: (7, 3.925724783138660), 8: (13, 5.371920351148152)}


def _pade_parts(a, degree):
    """Return the odd and the even part of the numerator of Padé's approximant."""
    weights = [
        math.factorial(2 * degree - k)
        * math.factorial(degree)
        / (math.factorial(2 * degree) * math.factorial(k) * math.factorial(degree - k))
        for k in range(degree + 1)
    ]
    one, square = jnp.eye(a.shape[-1], dtype=a.dtype), a @ a
    odd = even = jnp.zeros_like(a)
    for k in range(degree - 1, -1, -2):
        odd = odd @ square + weights[k + 1] * one
        even = even @ square + weights[k] * one
    return a @ odd, even


def _exponential(a, upper_triangular, max_squarings):
    degree, largest = _DEGREES[lax.abs(a).dtype.itemsize]
    norm = lax.abs(a).sum(0).max(initial=0)
    times = jnp.maximum(0, jnp.ceil(jnp.log2(norm / largest)))
    odd, even = _pade_parts(a / jnp.exp2(times).astype(a.dtype), degree)
    if upper_triangular:
        x = solve_triangular(even - odd, even + odd)
    else:
        x = solve(even - odd, even + odd)

    def step(x, k):
        return jnp.where(k < times, x @ x, x), None

    x, _ = lax.scan(step, x, jnp.arange(max_squarings, dtype=times.dtype))
    return jnp.where(times > max_squarings, np.nan, x)


def expm(
    A: ArrayLike, *, upper_triangular: bool = False, max_squarings: int = 16
) -> Array:
    """Return the exponentials of square matrices.

    Args:
      A: matrices, of shape ``[..., n, n]``.
      upper_triangular: whether they are upper triangles.
      max_squarings: how often a result is squared at most; NaN where that is too few.

    Raises:
      ValueError: for other shapes.

    Reference: ``jax.scipy.linalg.expm``.
    """
    [x] = promote_dtypes_inexact(jnp.asarray(A))
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError(
            f"Expected A to be a (batched) square matrix, got A.shape={x.shape}."
        )
    if x.dtype.itemsize == 2:
        raise TypeError(f"A.dtype={x.dtype} is not supported.")
    one = vectorize(
        lambda x: _exponential(x, upper_triangular, max_squarings),
        signature="(n,n)->(n,n)",
    )
    return one(x)


def expm_frechet(
    A: ArrayLike,
    E: ArrayLike,
    *,
    method: str | None = None,
    compute_expm: bool = True,
) -> Any:
    """Return `expm` of matrices, and its derivative in the direction of others.

    Args:
      A, E: square matrices of one shape.
      method: not used.
      compute_expm: whether to return the exponential as well.

    Raises:
      ValueError: if their shapes differ.

    Reference: ``jax.scipy.linalg.expm_frechet``.
    """
    x, direction = promote_dtypes_inexact(jnp.asarray(A), jnp.asarray(E))
    if x.shape != direction.shape:
        raise ValueError(
            "expected A and E to be the same shape, got "
            f"A.shape={x.shape} E.shape={direction.shape}"
        )
    value, slope = jvp(expm, (x,), (direction,))
    return (value, slope) if compute_expm else slope
