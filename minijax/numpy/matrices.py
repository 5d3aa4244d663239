"""Matrices with a pattern: diagonals, triangles, grids.

Reference: ``jax.numpy``.
"""

# Made from chapters/03_numpy_rest.md by `make chapter`;
# edit the chapter, not this file.

from typing import Any

import numpy as np

from minijax import lax
from minijax.arrays.avals import typeof
from minijax.arrays.checks import as_integer
from minijax.core import Array
from minijax.lax.conversion import astype as as_type
from minijax.numpy.creation import astype, full_like
from minijax.numpy.shapes import arraylike, as_shape, moveaxis, reshape
from minijax.operators.operands import stretch
from minijax.typing import ArrayLike


def diagonal_mask(rows, columns, k, compare):
    """Compare ``row + k`` with ``column``, at each place of a matrix."""
    int32, shape = np.dtype("int32"), as_shape((rows, columns))
    row = lax.broadcasted_iota(int32, shape, 0)
    column = lax.broadcasted_iota(int32, shape, 1)
    k = as_type(k, int32) if isinstance(k, Array) else np.asarray(k, int32)
    return compare(lax.add(row, k), column)


def check_offset(name, k, error):
    """Raise unless `k` is an integer or an array or tracer of one."""
    aval = typeof(k)
    if aval.shape or aval.dtype.kind not in "biu":
        raise error(f"jnp.{name}: k must be a scalar integer; got {k!r}")


def eye(
    N: int,
    M: int | None = None,
    k: Any = 0,
    dtype: Any = None,
    *,
    device: Any = None,
) -> Array:
    """Make a matrix with ones on the diagonal `k` places right of the main one.

    Args:
      N, M: number of rows and of columns; `M` is `N` by default.
      k: an integer, which may be traced.

    Reference: ``jax.numpy.eye``.
    """
    check_offset("eye", k, ValueError)
    N, M = as_shape((N, N if M is None else M))
    if not isinstance(k, Array):  # beyond the matrix, all diagonals are alike
        k = int(np.clip(k, *as_shape((-N, M))))
    return astype(diagonal_mask(N, M, k, lax.eq), dtype, device=device)


def identity(n: int, dtype: Any = None) -> Array:
    """Make an identity matrix. Reference: ``jax.numpy.identity``."""
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Array:
    """Make a matrix with ones on and below a diagonal, which is as in `eye`.

    Reference: ``jax.numpy.tri``.
    """
    check_offset("tri", k, TypeError)
    N, M = as_shape((N, N if M is None else M))
    mask = diagonal_mask(N, M, k, lax.ge)
    return astype(mask, dtype)


def tril(m: ArrayLike, k: int = 0) -> Array:
    """Return the elements on and below a diagonal of matrices, and zeros above.

    Reference: ``jax.numpy.tril``.
    """
    check_offset("tril", k, TypeError)
    m, mask = _matrices("tril", m, k)
    return lax.select(mask, m, full_like(m, 0))


def triu(m: ArrayLike, k: int = 0) -> Array:
    """Return the elements on and above a diagonal of matrices, and zeros below.

    Reference: ``jax.numpy.triu``.
    """
    check_offset("triu", k, TypeError)
    m, mask = _matrices("triu", m, k - 1)
    return lax.select(mask, full_like(m, 0), m)


def _matrices(name, m, k):
    m = arraylike(name, m)
    if m.ndim < 2:
        raise ValueError(f"Argument to jnp.{name} must be at least 2D, got {typeof(m)}")
    rows, columns = m.shape[-2:]
    return m, stretch(diagonal_mask(rows, columns, k, lax.ge), m.shape)


def diag(v: ArrayLike, k: int = 0) -> Array:
    """Make a matrix with the vector `v` on a diagonal, or take one from a matrix.

    Args:
      v: vector or matrix.
      k: which diagonal, as in `eye`.

    Reference: ``jax.numpy.diag``.
    """
    v, k = arraylike("diag", v), as_integer(k, "k of diag")
    if v.ndim not in (1, 2):
        raise ValueError(f"diag input must be 1d or 2d, got {typeof(v)}")
    if v.ndim == 2:
        return diagonal(v, k)
    zero = full_like(v, 0, shape=())
    rows = lax.pad(v, zero, [(-k if k < 0 else 0, k if k > 0 else 0, 0)])
    mask = diagonal_mask(rows.size, rows.size, k, lax.eq)
    values = stretch(lax.expand_dims(rows, (1,)), mask.shape)
    return lax.select(mask, values, full_like(values, 0))


def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """Return the indices of the main diagonal of an array with `ndim` axes of size `n`.

    Reference: ``jax.numpy.diag_indices``.
    """
    return (lax.iota(int, n),) * as_integer(ndim, "ndim of diag_indices")


def meshgrid(
    *xi: ArrayLike, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> list[Array]:
    """Return the coordinates of the points of a grid, one array for each vector.

    Args:
      *xi: vectors.
      copy: accepted as in NumPy; it makes no difference to immutable arrays.
      sparse: whether each array keeps size 1 along the axes of the others.
      indexing: ``"ij"``, axis i belongs to vector i, or ``"xy"``, with the first two
        axes exchanged.

    Reference: ``jax.numpy.meshgrid``.
    """
    vectors = [arraylike("meshgrid", each) for each in xi]
    shapes = [each.shape for each in vectors]
    if {len(shape) for shape in shapes} - {1}:
        raise ValueError(f"Arguments to meshgrid must be 1D, got shapes {shapes}")
    if indexing not in ("xy", "ij"):
        raise ValueError(f"indexing must be 'xy' or 'ij', got {indexing!r}")
    axes = list(range(len(vectors)))
    if indexing == "xy":
        axes[:2] = axes[:2][::-1]
    sizes = [vectors[axes.index(axis)].size for axis in range(len(axes))]
    return [_spread(each, axis, sizes, sparse) for each, axis in zip(vectors, axes)]


def _spread(vector, axis, sizes, sparse):
    thin = [vector.size if i == axis else 1 for i in range(len(sizes))]
    return lax.broadcast_in_dim(vector, thin if sparse else sizes, (axis,))


def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """Take a diagonal of matrices: every ``columns + 1``-th of their elements in a row.

    Args:
      a: array with at least two axes.
      offset: which diagonal, as in `eye`.
      axis1, axis2: the axes of the matrices.

    Returns:
      An array with the other axes of `a`, and then the diagonal.

    Reference: ``jax.numpy.diagonal``.
    """
    a = arraylike("diagonal", a)
    if a.ndim < 2:
        raise ValueError("diagonal requires an array of at least two dimensions.")
    a = moveaxis(a, (axis1, axis2), (-2, -1))
    *others, rows, columns = a.shape
    offset = as_integer(offset, "the offset of a diagonal")
    start, size = diagonal_place(rows, columns, offset)
    line = reshape(a, (*others, rows * columns))
    stop = start + (size - 1) * (columns + 1) + 1 if size else start
    return lax.slice_in_dim(line, start, stop, columns + 1, axis=-1)


def diagonal_place(rows, columns, offset):
    """Return where a diagonal starts in a matrix written as one row, and its size."""
    start = offset if offset >= 0 else -offset * columns
    left = (rows, columns - offset) if offset >= 0 else (rows + offset, columns)
    size = left[0] if left[0] < left[1] else left[1]
    return (start, size) if size > 0 else (0, 0)
