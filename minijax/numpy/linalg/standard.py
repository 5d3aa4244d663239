"""Functions of the array API's namespace for linear algebra, and eigenvalues.

Reference: ``jax.numpy.linalg``.
"""

# Made from chapters/33_library_ground.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Sequence
from typing import Any, NamedTuple

from minijax.arrays.numerics import dim_size_along
from minijax.core import Array
from minijax.lax.reductions import promote_dtypes_inexact
from minijax.linear_algebra import lax_linalg as _general
from minijax.numpy import array_creation as _matrices
from minijax.numpy import reductions as _statistics
from minijax.numpy import shapes as _shapes
from minijax.numpy import statistics as _measures
from minijax.numpy import tensor_contractions as _products
from minijax.numpy.quantiles import merge_axes_to_end
from minijax.numpy.shapes import as_arraylike, canonical_axes
from minijax.numpy.tensor_contractions import norm as _norm
from minijax.typing import ArrayLike


class EigResult(NamedTuple):
    """Eigenvalues and eigenvectors."""

    eigenvalues: Array
    eigenvectors: Array


def eig(a: ArrayLike) -> Any:
    """Return the eigenvalues and eigenvectors of square matrices.

    Returns:
      A named tuple of complex arrays; the eigenvectors are columns of length 1.

    Reference: ``jax.numpy.linalg.eig``.
    """
    [x] = promote_dtypes_inexact(as_arraylike("linalg.eig", a))
    return EigResult(*_general.eig(x, compute_left_eigenvectors=False))


def eigvals(a: ArrayLike) -> Array:
    """Return the eigenvalues of square matrices, which can be differentiated.

    Reference: ``jax.numpy.linalg.eigvals``.
    """
    [x] = promote_dtypes_inexact(as_arraylike("linalg.eigvals", a))
    how: dict = {f"compute_{side}_eigenvectors": False for side in ("left", "right")}
    return _general.eig(x, **how)[0]


def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array:
    """Return the cross products of vectors with three numbers.

    Reference: ``jax.numpy.linalg.cross``.
    """
    x, y = as_arraylike("linalg.cross", x1), as_arraylike("linalg.cross", x2)
    if dim_size_along(x, axis) != 3 or dim_size_along(y, axis) != 3:
        raise ValueError(
            "Both input arrays must be (arrays of) 3-dimensional vectors, but they "
            f"have shapes {x.shape} and {y.shape} (axis {axis})."
        )
    return _measures.cross(x, y, axis=axis)


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """Return the diagonals of matrices.

    Reference: ``jax.numpy.linalg.diagonal``.
    """
    x = as_arraylike("linalg.diagonal", x)
    return _matrices.diagonal(x, offset=offset, axis1=-2, axis2=-1)


def trace(x: ArrayLike, /, *, offset: int = 0, dtype: Any = None) -> Array:
    """Return the sums of the diagonals of matrices.

    Reference: ``jax.numpy.linalg.trace``.
    """
    x = as_arraylike("linalg.trace", x)
    return _statistics.trace(x, offset=offset, axis1=-2, axis2=-1, dtype=dtype)


def matrix_transpose(x: ArrayLike, /) -> Array:
    """Return matrices with rows and columns exchanged.

    Reference: ``jax.numpy.linalg.matrix_transpose``.
    """
    return _shapes.matrix_transpose(x)


def matmul(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """Return products of matrices.

    Reference: ``jax.numpy.linalg.matmul``.
    """
    how: dict = {"preferred_element_type": preferred_element_type}
    return _products.matmul(x1, x2, precision=precision, **how)


def outer(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return the products of each number of one vector with each of another.

    Raises:
      ValueError: for arrays that are not vectors.

    Reference: ``jax.numpy.linalg.outer``.
    """
    x, y = as_arraylike("linalg.outer", x1), as_arraylike("linalg.outer", x2)
    if x.ndim != 1 or y.ndim != 1:
        raise ValueError(
            "Input arrays must be one-dimensional, but they are "
            f"x1.ndim={x.ndim} x2.ndim={y.ndim}"
        )
    return _products.outer(x, y)


def tensordot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axes: int | Sequence[Any] = 2,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Return the sum of products along pairs of axes.

    Reference: ``jax.numpy.linalg.tensordot``.
    """
    how: dict = {"preferred_element_type": preferred_element_type}
    how |= {"precision": precision, "out_sharding": out_sharding}
    return _products.tensordot(x1, x2, axes=axes, **how)


def vecdot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axis: int = -1,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """Return products of vectors along an axis; the first is conjugate.

    Reference: ``jax.numpy.linalg.vecdot``.
    """
    how: dict = {"preferred_element_type": preferred_element_type}
    return _measures.vecdot(x1, x2, axis=axis, precision=precision, **how)


def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    """Return the norms of matrices.

    Reference: ``jax.numpy.linalg.matrix_norm``.
    """
    x = as_arraylike("linalg.matrix_norm", x)
    return _norm(x, ord=ord, keepdims=keepdims, axis=(-2, -1))


def vector_norm(
    x: ArrayLike, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2
) -> Array:
    """Return the norms of vectors along axes, by default of the whole array.

    Raises:
      ValueError: if an axis is out of bounds, or named twice.

    Reference: ``jax.numpy.linalg.vector_norm``.
    """
    z = as_arraylike("linalg.vector_norm", x)
    axes = canonical_axes(axis, z.ndim)
    if len(axes) == 1:
        return _norm(z, axis=axes, keepdims=keepdims, ord=ord)
    kept = [1 if a in axes else z.shape[a] for a in range(z.ndim)]
    size = _norm(merge_axes_to_end(z, axes), axis=-1, ord=ord)
    return size.reshape(kept) if keepdims else size
