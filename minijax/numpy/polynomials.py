"""Polynomials by their coefficients, the greatest power first; Kaiser's window.

Reference: ``jax.numpy`` (``poly``, ``polyfit``, ``roots``, ``polydiv``).
"""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

from typing import Any

import numpy as np

from minijax import numpy as jnp
from minijax.arrays.dtypes import canonicalize_dtype
from minijax.arrays.numerics import operator_index
from minijax.core import Array, Tracer
from minijax.errors import ConcretizationTypeError
from minijax.extend.promotion import promoting
from minijax.lax.reductions import promote_dtypes_inexact
from minijax.numpy.shapes import canonical_axes
from minijax.scipy.special.gamma_functions import bessel_i0
from minijax.typing import ArrayLike


def poly(seq_of_zeros: ArrayLike) -> Array:
    """Return the coefficients of the polynomial with given zeros, or of a matrix.

    Args:
      seq_of_zeros: the zeros, an array of one axis; or a square matrix, whose
        characteristic polynomial is meant.

    Raises:
      ValueError: for other shapes.

    Reference: ``jax.numpy.poly``.
    """
    [zeros] = promote_dtypes_inexact(jnp.atleast_1d(seq_of_zeros))
    if zeros.ndim == 2 and zeros.shape[0] == zeros.shape[1] and zeros.size:
        zeros = jnp.linalg.eigvals(zeros)
    elif zeros.ndim != 1:
        raise ValueError("input must be 1d or non-empty square 2d array.")
    found = jnp.ones(1, zeros.dtype)
    for zero in zeros:
        found = jnp.convolve(found, jnp.stack([jnp.ones_like(zero), -zero]))
    return found if zeros.size else jnp.ones((), zeros.dtype)


def polydiv(
    u: ArrayLike, v: ArrayLike, *, trim_leading_zeros: bool = False
) -> tuple[Array, Array]:
    """Divide polynomials, and return the quotient and the rest.

    Args:
      u, v: the coefficients, arrays of one axis.
      trim_leading_zeros: whether the rest is given without zeros in front, which takes
        its values; otherwise it is as long as `u`.

    Reference: ``jax.numpy.polydiv``.
    """
    rest, divisor = promote_dtypes_inexact(jnp.asarray(u), jnp.asarray(v))
    count = max(len(rest) - len(divisor) + 1, 0)
    found = []
    for k in range(count):
        found.append(rest[k] / divisor[0])
        rest = rest.at[k : k + len(divisor)].add(-found[k] * divisor)
    quotient = jnp.stack(found) if found else jnp.zeros(1, rest.dtype)
    if trim_leading_zeros:
        bound = np.sqrt(np.finfo(rest.dtype).eps)
        rest = rest[_leading(abs(_concrete_numbers("polydiv", rest)) < bound) :]
    return quotient, rest


def _concrete_numbers(name, x):
    """Return the numbers of an array, on which a shape depends.

    Raises:
      ConcretizationTypeError: for a tracer.
    """
    if isinstance(x, Tracer):
        raise ConcretizationTypeError(
            f"The shape of the result of {name} depends on the numbers of {x!r}, which "
            "a program knows only when it runs. Call it outside of jit and vmap."
        )
    return np.asarray(x)


def _leading(flags):
    """Return how many flags in front are set."""
    return len(flags) if flags.all() else int(flags.argmin())


@promoting
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: ArrayLike | None = None,
    cov: Any = False,
) -> Any:
    """Fit a polynomial to points, in the sense of least squares.

    Args:
      x: places, of shape ``[n]``.
      y: values there, of shape ``[n]`` or ``[n, k]``.
      deg: the degree, an integer.
      rcond: singular values below this share of the greatest count as 0.
      full: whether to return residuals, rank, singular values and `rcond` as well.
      w: weights, of shape ``[n]``.
      cov: whether to return the covariance of the coefficients as well; "unscaled":
        without the factor of the residuals.

    Raises:
      TypeError: for arguments of other shapes.
      ValueError: for a negative degree.

    Reference: ``jax.numpy.polyfit``.
    """
    places, values = promote_dtypes_inexact(jnp.asarray(x), jnp.asarray(y))
    deg = operator_index(deg, "deg of polyfit")
    _check_points(places, values, deg)
    powers, axes = jnp.vander(places, deg + 1), values.ndim
    if w is not None:
        weights = _point_weights(w, places)
        powers = powers * weights[:, None]
        values = values * (weights[:, None] if axes == 2 else weights)
    sizes = jnp.sqrt((powers * powers).sum(0))
    rcond = len(places) * np.finfo(places.dtype).eps if rcond is None else rcond
    found = jnp.linalg.lstsq(powers / sizes, values, rcond)
    fit = (found[0].T / sizes).T
    if full:
        return (fit, *found[1:], jnp.asarray(_plain(rcond)))
    if not cov:
        return fit
    base = jnp.linalg.inv((powers / sizes).T @ (powers / sizes))
    base = base / jnp.outer(sizes, sizes)
    factor = 1 if cov == "unscaled" else found[1] / (len(places) - deg - 1)
    return fit, (base * factor if axes == 1 else base[:, :, None] * factor)


def _plain(number):
    """Return a number of NumPy as one of Python."""
    return number.item() if isinstance(number, np.generic) else number


def _check_points(x, y, deg):
    if deg < 0:
        raise ValueError("expected deg >= 0")
    if x.ndim != 1:
        raise TypeError("expected 1D vector for x")
    if not x.size:
        raise TypeError("expected non-empty vector for x")
    if y.ndim not in (1, 2):
        raise TypeError("expected 1D or 2D array for y")
    if len(x) != len(y):
        raise TypeError("expected x and y to have same length")


def _point_weights(w, x):
    [weights] = promote_dtypes_inexact(jnp.asarray(w))
    if weights.ndim != 1:
        raise TypeError("expected a 1-d array for weights")
    if len(weights) != len(x):
        raise TypeError("expected w and y to have the same length")
    return weights


def roots(p: ArrayLike, *, strip_zeros: bool = True) -> Array:
    """Return the roots of a polynomial, complex numbers.

    Args:
      p: the coefficients, an array of one axis.
      strip_zeros: whether leading zeros are left out, which takes their values;
        otherwise there are NaN in the place of roots that are not there.

    Raises:
      ValueError: for another rank.
      ConcretizationTypeError: for a tracer, with `strip_zeros`.

    Reference: ``jax.numpy.roots``.
    """
    [numbers] = promote_dtypes_inexact(jnp.atleast_1d(p))
    if numbers.ndim != 1:
        raise ValueError("Input must be a rank-1 array.")
    if strip_zeros:
        return _roots(numbers[_leading(_concrete_numbers("roots", numbers) == 0) :])
    zeros = jnp.equal(numbers, 0)
    count = jnp.where(zeros.all(), len(numbers), jnp.argmin(zeros))
    found = _roots(jnp.roll(jnp.where(zeros.all(), 1, numbers), -count))
    order = jnp.argsort(found == 0, stable=True)
    there = jnp.arange(len(found)) < len(found) - count
    return jnp.where(there, found[order], complex(np.nan, np.nan))


def _roots(p):
    if len(p) < 2:
        return jnp.zeros(0, np.result_type(p.dtype, np.complex64))
    companion = jnp.diag(jnp.ones(len(p) - 2, p.dtype), -1)
    return jnp.linalg.eigvals(companion.at[0].set(-p[1:] / p[0]))


def trim_zeros(filt: ArrayLike, trim: str = "fb", axis: Any = None) -> Array:
    """Return an array without the zeros at its ends.

    Args:
      filt: an array; its shape afterwards depends on its numbers.
      trim: "f" for the front, "b" for the back, or both.
      axis: the axes that are cut; all of them by default.

    Raises:
      ConcretizationTypeError: for a tracer.

    Reference: ``jax.numpy.trim_zeros``.
    """
    x = jnp.asarray(filt)
    places = np.argwhere(_concrete_numbers("trim_zeros", x) != 0)
    if not isinstance(trim, str):
        raise TypeError(f"trim_zeros: trim is a text of f and b, not {trim!r}.")
    axes = range(x.ndim) if axis is None else canonical_axes(axis, x.ndim)
    window = [slice(None)] * x.ndim
    front, back = "f" in trim.lower(), "b" in trim.lower()
    for one in axes:
        start = places[:, one].min() if front and len(places) else 0
        stop = places[:, one].max(initial=-1) + 1
        window[one] = slice(start, stop if back or not len(places) else None)
    return x[tuple(window)]


def i0(x: ArrayLike) -> Array:
    """Compute the modified Bessel function of order 0, element by element.

    Raises:
      ValueError: for complex numbers.

    Reference: ``jax.numpy.i0``.
    """
    [number] = promote_dtypes_inexact(jnp.asarray(x))
    if jnp.iscomplexobj(number):
        raise ValueError(f"Unsupported input type to jax.numpy.i0: {number.dtype}")
    return bessel_i0(number)


def kaiser(M: int, beta: ArrayLike) -> Array:
    """Return `M` weights, Bessel functions of a half circle with a shape `beta`.

    Reference: ``jax.numpy.kaiser``.
    """
    M = int(M) if isinstance(M, float | str) else M
    M = operator_index(M, "the length of a window")
    dtype, last = canonicalize_dtype(float), M - 1
    if last <= 0:
        return jnp.ones(M, dtype)
    half, steep = last / 2, jnp.asarray(beta, dtype)
    place = (jnp.arange(M, dtype=dtype) - half) / half
    return i0(jnp.sqrt(1 - place**2) * steep) / i0(steep)
