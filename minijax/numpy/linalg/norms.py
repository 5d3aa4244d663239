"""Lengths of vectors and sizes of matrices.

Reference: ``jax.numpy.linalg``.
"""

# Made from chapters/03_numpy_rest.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import lax
from minijax._registry import Registry
from minijax.core import Array
from minijax.lax.conversion import astype as as_type
from minijax.lax.promotion import promote_dtypes_inexact
from minijax.numpy.arithmetic import power
from minijax.numpy.elementwise import absolute, real, sqrt
from minijax.numpy.reductions import extreme
from minijax.numpy.shapes import arraylike, as_axes
from minijax.numpy.statistics import squared_size, total
from minijax.operators.operands import as_bool, kind
from minijax.typing import ArrayLike


def root_of_squares(x, axes, keepdims):
    """Return the root of the sum of squared absolute values."""
    squares = squared_size(x) if kind(x) == "c" else lax.mul(x, x)
    return sqrt(total(squares, axes, keepdims, None))


def extreme_size(ord, sizes, axes, keepdims):
    """Return the greatest of sizes, of none 0, or the least for a negative order."""
    if ord < 0:
        return extreme("min", sizes, axes, keepdims=keepdims)
    return extreme("max", sizes, axes, keepdims=keepdims, initial=0)


def vector_norm(x, ord, axes, keepdims):
    """Return the norm of vectors along one axis."""
    if ord is None or ord == 2:
        return root_of_squares(x, axes, keepdims)
    if isinstance(ord, str):
        raise ValueError(f"Invalid order {ord!r} for vector norm.")
    if ord == 0:
        counted = as_type(as_bool(x), real(x).dtype)
        return total(counted, axes, keepdims, None)
    sizes = absolute(x)
    if ord in (np.inf, -np.inf):
        return extreme_size(ord, sizes, axes, keepdims)
    if ord == 1:
        return total(sizes, axes, keepdims, None)
    return power(total(power(sizes, float(ord)), axes, keepdims, None), 1 / ord)


# From orders to functions of arrays, two axes and `keepdims`, which return norms.
orders_to_come: dict = Registry()


def matrix_norm(x, ord, axes, keepdims):
    """Return the norm of matrices along two axes."""
    if ord is None or ord == "fro":
        return root_of_squares(x, axes, keepdims)
    if ord in orders_to_come:
        return orders_to_come[ord](x, axes, keepdims)
    if ord in ("nuc", 2, -2):
        raise NotImplementedError(
            f"The order {ord!r} needs singular values: linear algebra is to come. In "
            "the whole package minijax.numpy.linalg.norm brings it along."
        )
    if ord not in (1, -1, np.inf, -np.inf):
        raise ValueError(f"Invalid order '{ord}' for matrix norm.")
    rows, columns = axes
    summed, chosen = (rows, columns) if ord in (1, -1) else (columns, rows)
    totals = total(absolute(x), summed, True, None)
    result = extreme_size(ord, totals, chosen, True)
    return result if keepdims else lax.squeeze(result, axes)


def norm(
    x: ArrayLike,
    ord: Any = None,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> Array:
    """Return the norm of vectors or matrices.

    Args:
      x: array.
      ord: for vectors a number p, 2 by default: the p-th root of the sum of p-th powers
        (``inf`` and ``-inf`` are the greatest and least size, 0 counts); for matrices
        ``"fro"`` by default, 1, -1, ``inf`` or ``-inf``; of singular values the
        greatest, the least, or the sum: 2, -2, ``"nuc"``.
      axis: the axis of the vectors, or the two of the matrices; with neither `axis` nor
        `ord`, the root of the sum of all squares.
      keepdims: whether folded axes stay, with size 1.

    Raises:
      ValueError: for an order that there is not, or more than two axes.

    Reference: ``jax.numpy.linalg.norm``.
    """
    [x] = promote_dtypes_inexact(arraylike("norm", x))
    if axis is None and ord is None:
        return root_of_squares(x, None, keepdims)
    axes = as_axes(axis, x.ndim)
    if len(axes) > 2 or not axes:
        raise ValueError(
            f"Improper number of axes for norm: {axis=}. Pass one axis to compute a "
            "vector-norm, or two axes to compute a matrix-norm."
        )
    return (vector_norm if len(axes) == 1 else matrix_norm)(x, ord, axes, keepdims)
