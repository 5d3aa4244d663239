"""Convolutions and correlations of arrays of any rank; trends taken away.

Reference: ``jax.scipy.signal``.
"""

# Made from chapters/30_windows_rest.md by `make chapter`;
# edit the chapter, not this file.

from typing import Any

from minijax import lax
from minijax.arrays.avals import typeof
from minijax.core import Array
from minijax.lax.promotion import promote_dtypes_inexact
from minijax.operators.operands import as_array
from minijax.scipy.signal.convolutions import _check_mode, _conjugated, _pads_of, _slid
from minijax.typing import ArrayLike


def _of_one_rank(name, in1, in2, mode, crossed=False):
    """Return two arrays of one dtype, and whether the first is the smaller one.

    With `crossed` each may be longer than the other along some axes.
    """
    _check_mode(mode)
    shape, other = typeof(in1).shape, typeof(in2).shape
    if len(shape) != len(other):
        raise ValueError(
            f"{name}: in1 and in2 must have the same number of dimensions, got shapes "
            f"{shape} and {other}."
        )
    if 0 in shape or 0 in other:
        raise ValueError(
            "zero-size arrays not supported in convolutions, got shapes "
            f"{shape} and {other}."
        )
    smaller = all(n <= m for n, m in zip(shape, other)) and shape != other
    larger = all(n >= m for n, m in zip(shape, other))
    if not smaller and not larger and (not crossed or mode == "valid"):
        raise ValueError(
            f"{name}: one input must be smaller than the other in every dimension, got "
            f"shapes {shape} and {other}."
        )
    return *promote_dtypes_inexact(in1, in2), smaller


def _check_method(method):
    if method not in ("auto", "direct", "fft"):
        raise ValueError(f"Got method={method!r}; expected 'auto', 'fft', or 'direct'.")


def _check_boundary(name, x, boundary, fillvalue):
    if boundary != "fill" or fillvalue != 0:
        raise NotImplementedError(
            f"{name}() only supports boundary='fill', fillvalue=0, got {boundary!r} "
            f"and {fillvalue!r}. jnp.pad makes other boundaries."
        )
    if typeof(x).ndim != 2:
        raise ValueError(
            f"{name}() only supports 2-dimensional inputs, got {typeof(x)}."
        )


def _turned(x):
    """Reverse an array along all axes."""
    return lax.rev(x, tuple(range(typeof(x).ndim)))


def _convolved_signals(x, w, smaller, mode, precision):
    """Convolve two arrays; as large as the first one if the mode is "same"."""
    x, w = as_array(x), as_array(w)
    shape, (x, w) = x.shape, ((w, x) if smaller else (x, w))
    pads = [_pads_of(mode, *sizes) for sizes in zip(shape, x.shape, w.shape)]
    return _slid(x, _turned(w), pads, precision)


def convolve(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    method: str = "auto",
    precision: Any = None,
) -> Array:
    """Convolve two arrays of one rank.

    Args:
      mode: ``"full"``, ``"same"`` (as large as `in1`) or ``"valid"``.
      method: ``"auto"``, ``"direct"`` or ``"fft"``; all are done directly.

    Raises:
      ValueError: if neither array is at least as large as the other along all axes,
        unless the method is ``"fft"`` and the mode not ``"valid"``.

    Reference: ``jax.scipy.signal.convolve``.
    """
    _check_method(method)
    x, w, smaller = _of_one_rank("convolve", in1, in2, mode, method == "fft")
    return _convolved_signals(x, w, smaller, mode, precision)


def correlate(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    method: str = "auto",
    precision: Any = None,
) -> Array:
    """Correlate two arrays of one rank: the second is conjugated, and not reversed.

    The arguments are those of `convolve`.

    Reference: ``jax.scipy.signal.correlate``.
    """
    _check_method(method)
    x, w, smaller = _of_one_rank("correlate", in1, in2, mode, method == "fft")
    return _convolved_signals(x, _turned(_conjugated(w)), smaller, mode, precision)


def convolve2d(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: float = 0,
    precision: Any = None,
) -> Array:
    """Convolve two matrices, with zeros around them.

    Raises:
      NotImplementedError: for another boundary.

    Reference: ``jax.scipy.signal.convolve2d``.
    """
    _check_boundary("convolve2d", in1, boundary, fillvalue)
    return convolve(in1, in2, mode, precision=precision)


def correlate2d(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: float = 0,
    precision: Any = None,
) -> Array:
    """Correlate two matrices, with zeros around them.

    Raises:
      NotImplementedError: for another boundary.

    Reference: ``jax.scipy.signal.correlate2d``.
    """
    _check_boundary("correlate2d", in1, boundary, fillvalue)
    x, w, smaller = _of_one_rank("correlate2d", in1, in2, mode)
    if smaller and mode == "valid":  # SciPy exchanges the two, and so conjugates x
        return _turned(correlate(w, x, mode, precision=precision))
    if mode == "same":  # SciPy centres windows of even sizes otherwise
        args = _turned(x), _conjugated(w), smaller, mode, precision
        return _turned(_convolved_signals(*args))
    return correlate(x, w, mode, precision=precision)
