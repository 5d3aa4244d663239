"""Samples: their slopes and covariances; polynomials as rows of coefficients.

Reference: ``jax.numpy.gradient``, ``jax.numpy.cov``, ``jax.numpy.polymul``.
"""

# Made from chapters/03_numpy_rest.md by `make chapter`;
# edit the chapter, not this file.

import builtins
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import lax
from minijax.arrays.checks import as_integer, check_rank
from minijax.arrays.dtypes import is_inexact
from minijax.arrays.interchange import promised
from minijax.catalogue.measures import average
from minijax.core import Array
from minijax.lax.promotion import (
    check_arraylike,
    promote_dtypes,
    promote_dtypes_inexact,
)
from minijax.numpy.creation import array, asarray, astype, full, zeros
from minijax.numpy.elementwise import absolute, conjugate, imag, real, sqrt
from minijax.numpy.joining import concatenate
from minijax.numpy.matrices import diag
from minijax.numpy.products import dot
from minijax.numpy.reductions import _sum
from minijax.numpy.selection import clip
from minijax.numpy.shapes import (
    arraylike,
    as_axes,
    atleast_1d,
    atleast_2d,
    expand_dims,
    reshape,
    squeeze,
)
from minijax.numpy.ufuncs import divide, multiply
from minijax.operators.operands import as_array, kind
from minijax.typing import ArrayLike


def gradient(
    f: ArrayLike,
    *varargs: ArrayLike,
    axis: int | Sequence[int] | None = None,
    edge_order: int | None = None,
) -> Any:
    """Return slopes of a function from its values, by differences of neighbours.

    Args:
      f: the values, with two or more along each axis.
      *varargs: the distance of neighbours, or a vector with the places, for all axes
        or one for each; 1 by default.
      axis: along which; by default all, and the result is a list then.
      edge_order: must be None: at both ends one neighbour counts.

    Reference: ``jax.numpy.gradient``.
    """
    if edge_order is not None:
        raise NotImplementedError(
            "The 'edge_order' argument to jnp.gradient is not supported."
        )
    check_arraylike("gradient", f, *varargs)
    f, *places = map(as_array, promote_dtypes_inexact(f, *varargs))
    axes = as_axes(axis, f.ndim)
    if not axes:
        return []
    if builtins.min([f.shape[each] for each in axes]) < 2:
        raise ValueError(
            "Shape of array too small to calculate a numerical gradient, at least 2 "
            "elements are required."
        )
    if len(places) not in (0, 1, len(axes)):
        count = len(places)
        raise TypeError(f"Invalid number of spacing arguments {count} for {axis=}")
    places = (places or [1.0]) * (1 if len(places) == len(axes) else len(axes))
    found = [_slopes(f, place, each) for each, place in zip(axes, places)]
    return found[0] if len(axes) == 1 else found


def _slopes(f, place, axis):
    """Return slopes along an axis, for a distance or for the places."""
    if np.ndim(place) > 1:
        raise ValueError("Spacing arrays must be 1D arrays or scalars.")
    size = f.shape[axis]
    if np.ndim(place) and place.shape[0] != size:
        raise ValueError(
            "Spacing arrays must have the same length as the dimension along which "
            "the gradient is calculated."
        )
    if not np.ndim(place):  # what is between two neighbours does not count
        cut = functools.partial(lax.slice_in_dim, f, axis=axis)
        inner = (cut(2, size) - cut(0, size - 2)) * 0.5 / place
        steps = (cut(i + 1, i + 2) - cut(i, i + 1) for i in (0, size - 2))
        first, last = (step / place for step in steps)
        return concatenate([first, inner, last], axis)
    widths = place[1:] - place[:-1]
    widths = reshape(widths, [-1 if i == axis else 1 for i in range(f.ndim)])
    slopes = lax.slice_in_dim(f, 1, size, axis=axis)
    slopes = (slopes - lax.slice_in_dim(f, 0, size - 1, axis=axis)) / widths
    (first, later), (left, right) = (
        [lax.slice_in_dim(x, start, start + size - 2, axis=axis) for start in (0, 1)]
        for x in (slopes, widths)
    )
    inner = (right * first + left * later) / (left + right)
    ends = (lax.slice_in_dim(slopes, i, i + 1, axis=axis) for i in (0, size - 2))
    return concatenate([next(ends), inner, next(ends)], axis)


def cov(
    m: ArrayLike,
    y: ArrayLike | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: ArrayLike | None = None,
    aweights: ArrayLike | None = None,
    dtype: Any = None,
) -> Array:
    """Return the covariances of variables, a matrix.

    Args:
      m: a matrix with a row for each variable, and a column for each observation.
      y: more variables, of the same form.
      rowvar: False if columns are variables.
      bias: whether to divide by the number of observations, and not by one less.
      ddof: what to subtract from that number instead.
      fweights: how often each observation is to be counted, integers.
      aweights: how much it weighs.
      dtype: in which to compute.

    Reference: ``jax.numpy.cov``.
    """
    given = [m] if y is None else [m, y]
    check_arraylike("cov", *given)
    given = [*map(as_array, promote_dtypes_inexact(*given))]
    if len(given) == 2 and given[1].ndim > 2:
        raise ValueError("y has more than 2 dimensions")
    if given[0].ndim > 2:
        raise ValueError("m has more than 2 dimensions")
    _check_inexact("cov", dtype)
    parts = [_variables(x, rowvar, first=x is given[0]) for x in given]
    if not parts[0].shape[0]:
        return reshape(array([]), (0, 0))
    rows: Any = concatenate(parts, 0)
    if not rows.shape[1]:
        count = rows.shape[0]
        return full(() if count == 1 else (count, count), np.nan, rows.dtype)
    ddof = (0 if bias else 1) if ddof is None else ddof
    weights, of_each = _weights_of_observations(rows.shape[1], fweights, aweights)
    if dtype is not None:
        rows = astype(rows, dtype)
        weights = weights if weights is None else astype(weights, dtype)
    return _covariance(rows, weights, of_each, ddof)


def _check_inexact(name, dtype):
    """Raise unless a dtype, if there is one, is that of floats or complex numbers."""
    if dtype is not None and not is_inexact(np.dtype(dtype)):
        raise ValueError(
            f"{name}: dtype must be a subclass of float or complex; got {dtype=}"
        )


def _variables(x, rowvar, first):
    """Return variables as rows."""
    rows = atleast_2d(x)
    single = x.ndim == 1 if first else rows.shape[0] == 1
    return rows if rowvar or single else rows.T


def _weights_of_observations(count, fweights, aweights):
    """Return the weight of each observation; and the part of it by `aweights`."""
    for name, each in (("fweights", fweights), ("aweights", aweights)):
        if each is None:
            continue
        each = arraylike("cov", each)
        if each.ndim > 1:
            raise RuntimeError(f"cannot handle multidimensional {name}")
        if each.shape != (count,):
            raise RuntimeError(f"incompatible numbers of samples and {name}")
        if name == "fweights" and kind(each) not in "iu":
            raise TypeError("fweights must be integer.")
    often, much = [
        None if each is None else absolute(asarray(each))
        for each in (fweights, aweights)
    ]
    if often is None or much is None:
        return much if often is None else often, much
    return often * much, much


def _covariance(rows, weights, of_each, ddof):
    means, total = average(rows, axis=1, weights=weights, returned=True)
    total = total[0]
    if weights is None:
        count = rows.shape[1] - ddof
    elif ddof == 0:
        count = total
    elif of_each is None:
        count = total - ddof
    else:
        count = total - ddof * _sum(weights * of_each) / total
    rows = rows - expand_dims(means, 1)
    columns = rows.T if weights is None else (rows * expand_dims(weights, 0)).T
    return squeeze(divide(dot(rows, conjugate(columns)), count))


def corrcoef(
    x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, dtype: Any = None
) -> Array:
    """Return the correlations of variables, a matrix; the arguments are those of `cov`.

    Reference: ``jax.numpy.corrcoef``.
    """
    check_arraylike("corrcoef", x)
    _check_inexact("corrcoef", dtype)
    found = cov(x, y, rowvar, dtype=dtype)
    if not found.ndim:
        return divide(found, found)
    deviation = astype(sqrt(real(diag(found))), found.dtype)
    found = found / expand_dims(deviation, 1) / expand_dims(deviation, 0)
    limited = clip(real(found), -1, 1)
    if kind(found) != "c":
        return limited
    return lax.complex(limited, clip(imag(found), -1, 1))


def polyadd(a1: Any, a2: Any) -> Array:
    """Add polynomials whose highest coefficients come first.

    Coefficients may be rows of numbers: the shorter one is added to the last rows.

    Reference: ``jax.numpy.polyadd``.
    """
    check_arraylike("polyadd", a1, a2)
    a1, a2 = map(as_array, promote_dtypes(a1, a2))
    check_rank("polyadd", 1, a1, a2)
    short, long = sorted((a1, a2), key=lambda p: p.shape[0])
    gap = long.shape[0] - short.shape[0]
    return concatenate([long[:gap], long[gap:] + short])


def polysub(a1: Any, a2: Any) -> Array:
    """Subtract a polynomial from another one.

    Reference: ``jax.numpy.polysub``.
    """
    check_arraylike("polysub", a1, a2)
    a1, a2 = map(as_array, promote_dtypes(a1, a2))
    check_rank("polysub", 1, a1, a2)
    return polyadd(a1, -a2)


def polymul(a1: Any, a2: Any, *, trim_leading_zeros: bool = False) -> Array:
    """Multiply polynomials.

    Args:
      a1, a2: their coefficients, the highest first.
      trim_leading_zeros: whether to drop zeros in front before; the coefficients have
        to be known then.

    Reference: ``jax.numpy.polymul``.
    """
    a1, a2 = promised(a1), promised(a2)
    check_arraylike("polymul", a1, a2)
    a1, a2 = map(as_array, promote_dtypes_inexact(a1, a2))
    check_rank("polymul", 1, a1, a2)
    if trim_leading_zeros and builtins.max(a1.shape[0], a2.shape[0]) > 1:
        a1, a2 = (
            p[np.size(p) - np.trim_zeros(np.asarray(p), "f").size :] for p in (a1, a2)
        )
    a1, a2 = (p if len(p) else zeros(1, p.dtype) for p in (a1, a2))
    if a1.ndim != 1 or a2.ndim != 1:
        raise ValueError("convolve() only support 1-dimensional inputs.")
    return _sums_of_diagonals(multiply(expand_dims(a1, 1), expand_dims(a2, 0)))


def _sums_of_diagonals(x):
    """Return for each sum i + j the sum of the elements of a matrix there.

    Rows that are one element longer than the result has room for move, when they are
    written as one, each one place further than the row before.
    """
    rows, columns = x.shape
    size = rows + columns - 1
    x = lax.pad(x, asarray(0, x.dtype), [(0, 0, 0), (0, rows, 0)])
    return _sum(reshape(reshape(x, (-1,))[: rows * size], (rows, size)), 0)


def polyint(p: Any, m: int = 1, k: Any | None = None) -> Array:
    """Integrate a polynomial `m` times.

    Args:
      p: its coefficients, the highest first.
      m: how often.
      k: the constants that are added, one for each time or one for all; 0 by default.

    Reference: ``jax.numpy.polyint``.
    """
    m, k = as_integer(m, "m of polyint"), 0 if k is None else k
    check_arraylike("polyint", p, k)
    p, k = map(as_array, promote_dtypes_inexact(p, k))
    check_rank("polyint", 1, p)
    if m < 0:
        raise ValueError("Order of integral must be positive (see polyder)")
    k = atleast_1d(k)
    if k.shape == (1,):
        k = full((m,), k[0])
    if k.shape != (m,):
        raise ValueError("k must be a scalar or a rank-1 array of length 1 or m.")
    if not m:
        return p
    with np.errstate(over="ignore"):
        factors = _rising(p.shape[0], m)[::-1].astype(p.dtype)
    return divide(concatenate([p, k]), asarray(factors))


def _rising(count, m):
    """Return what divides each coefficient, of the constants first, as doubles."""
    constants, others = np.cumprod(np.maximum(np.arange(m), 1.0)), np.ones(count)
    for step in range(1, m + 1):
        others *= np.arange(step, step + count)
    return np.concatenate([constants, others])
