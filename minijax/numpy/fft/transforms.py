"""Fourier transforms with the names of NumPy.

Reference: ``jax.numpy.fft``, ``numpy.fft``.
"""

# Made from chapters/30_windows_rest.md by `make chapter`;
# edit the chapter, not this file.

import math
from collections.abc import Sequence

from minijax import numpy as jnp
from minijax.arrays.checks import integers
from minijax.core import Array
from minijax.lax.promotion import promote_dtypes_inexact
from minijax.numpy.fft.fourier import FftType
from minijax.numpy.fft.fourier import fft as _lax_fft
from minijax.numpy.shapes import arraylike
from minijax.typing import ArrayLike

INVERSE = FftType.IFFT, FftType.IRFFT


def transformed(name, kind, a, s, axes, norm):
    """Transform an array along axes: cut or filled up to sizes `s`, and scaled.

    Args:
      name: of the function that the user called.
      kind: an `FftType`.
      a: array.
      s: sizes along the axes before the transform, for `IRFFT` after it, or None.
      axes: the axes, or None for the last ones, as many as there are in `s`, or all.
      norm: ``"backward"`` or None, ``"ortho"`` or ``"forward"``.
    """
    [a] = promote_dtypes_inexact(arraylike(f"fft.{name}", a))
    axes = _axes_of(name, a, s, axes)
    last = tuple(range(a.ndim - len(axes), a.ndim))
    a = jnp.moveaxis(a, axes, last)
    lengths = _lengths(a, kind, s, len(axes))
    factor = _factor(kind, norm, math.prod(lengths))
    if axes:
        a = _lax_fft(_resized(a, kind, lengths), kind, lengths)
    else:
        a = a.astype(a.dtype if kind is FftType.RFFT else jnp.result_type(a, 1j))
    a = jnp.moveaxis(a, last, axes)
    return a if factor == 1 else a * factor


def _axes_of(name, a, s, axes):
    if s is not None and axes is not None and len(s) != len(axes):
        raise ValueError(f"Shape and axes have different lengths: {s}, {axes}.")
    if axes is None:
        axes = range(-a.ndim if s is None else -len(s), 0)
    chosen = integers(axes)
    for axis in chosen:
        if not -a.ndim <= axis < a.ndim:
            raise ValueError(
                f"axis {axis} is out of bounds for array of dimension {a.ndim}"
            )
    chosen = [axis % a.ndim for axis in chosen]
    if len({*chosen}) < len(chosen):
        raise ValueError(
            f"jax.numpy.fft.{name} does not support repeated axes. Got axes {axes}"
        )
    return chosen


def _lengths(a, kind, s, count):
    if s is not None:
        lengths = integers(s, "Shapes")
        if any(n < 1 for n in lengths):
            raise ValueError(f"Shape should be positive, got {lengths}.")
        return lengths
    *most, last = a.shape[a.ndim - count :] or [0]
    last = 2 * max(last - 1, 0) if kind is FftType.IRFFT else last
    return (*most, last) if count else ()


def _resized(a, kind, lengths):
    *most, last = lengths
    wanted = (*most, last // 2 + 1) if kind is FftType.IRFFT else lengths
    old = a.shape[a.ndim - len(wanted) :]
    keep = [slice(min(pair)) for pair in zip(old, wanted)]
    more = [(0, max(new - size, 0)) for size, new in zip(old, wanted)]
    a = a[(..., *keep)]
    return jnp.pad(a, [(0, 0)] * (a.ndim - len(more)) + more)


def _factor(kind, norm, size):
    powers = {None: 0.0, "backward": 0.0, "ortho": 0.5, "forward": 1.0}
    if norm not in powers:
        raise ValueError(
            f'Invalid norm value {norm}; should be "backward","ortho" or "forward".'
        )
    power = powers[norm]
    return float(max(size, 1)) ** (power if kind in INVERSE else -power)


def _along(name, kind, a, n, axis, norm):
    if isinstance(axis, (tuple, list)):
        raise ValueError(
            f"jax.numpy.fft.{name} does not support multiple axes. Please use "
            f"jax.numpy.fft.{name}n. Got axis = {axis}."
        )
    return transformed(name, kind, a, None if n is None else (n,), (axis,), norm)


def fft(
    a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None
) -> Array:
    """Return the discrete Fourier transform, along one axis.

    Args:
      a: array.
      n: the size to which the axis is cut or filled up with zeros, its own by
        default.
      axis: the axis.
      norm: ``"backward"`` or None, ``"ortho"`` or ``"forward"``: which transform is
        divided by `n`.

    Returns:
      A complex array.

    Raises:
      ValueError: for an `n` that is not positive, an `axis` that is not there, several
        axes, or another `norm`.

    Reference: ``jax.numpy.fft.fft``.
    """
    return _along("fft", FftType.FFT, a, n, axis, norm)


def ifft(
    a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None
) -> Array:
    """Return the inverse discrete Fourier transform, along one axis.

    Args:
      a: array.
      n: the size to which the axis is cut or filled up with zeros, its own by
        default.
      axis: the axis.
      norm: ``"backward"`` or None, ``"ortho"`` or ``"forward"``: which transform is
        divided by `n`.

    Returns:
      A complex array.

    Raises:
      ValueError: for an `n` that is not positive, an `axis` that is not there, several
        axes, or another `norm`.

    Reference: ``jax.numpy.fft.ifft``.
    """
    return _along("ifft", FftType.IFFT, a, n, axis, norm)


def rfft(
    a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None
) -> Array:
    """Return the half spectrum of real numbers, along one axis.

    Args:
      a: real array.
      n: the size to which the axis is cut or filled up with zeros, its own by
        default.
      axis: the axis.
      norm: ``"backward"`` or None, ``"ortho"`` or ``"forward"``: which transform is
        divided by `n`.

    Returns:
      A complex array, with ``n // 2 + 1`` numbers along the axis.

    Raises:
      ValueError: for an `n` that is not positive, an `axis` that is not there, several
        axes, or another `norm`.

    Reference: ``jax.numpy.fft.rfft``.
    """
    return _along("rfft", FftType.RFFT, a, n, axis, norm)


def irfft(
    a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None
) -> Array:
    """Return the real numbers that have a half spectrum, along one axis.

    Args:
      a: array, the first half of a spectrum along the axis.
      n: how many numbers to return, ``2 * (size - 1)`` by default.
      axis: the axis.
      norm: ``"backward"`` or None, ``"ortho"`` or ``"forward"``: which transform is
        divided by `n`.

    Returns:
      A real array.

    Raises:
      ValueError: for an `n` that is not positive, an `axis` that is not there, several
        axes, or another `norm`.

    Reference: ``jax.numpy.fft.irfft``.
    """
    return _along("irfft", FftType.IRFFT, a, n, axis, norm)


_OPPOSITE = {None: "forward", "backward": "forward", "forward": "backward"}


def hfft(
    a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None
) -> Array:
    """Return the real spectrum of numbers whose mirror images are conjugates.

    Args:
      a: array, the first half along the axis.
      n: how many numbers to return, ``2 * (size - 1)`` by default.
      axis: the axis.
      norm: ``"backward"`` or None, ``"ortho"`` or ``"forward"``.

    Reference: ``jax.numpy.fft.hfft``.
    """
    a = jnp.conj(arraylike("fft.hfft", a))
    return _along("hfft", FftType.IRFFT, a, n, axis, _OPPOSITE.get(norm, norm))


def ihfft(
    a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None
) -> Array:
    """Return the first half of the inverse transform of real numbers, along one axis.

    Args:
      a: real array.
      n: the size to which the axis is cut or filled up with zeros, its own by default.
      axis: the axis.
      norm: ``"backward"`` or None, ``"ortho"`` or ``"forward"``.

    Reference: ``jax.numpy.fft.ihfft``.
    """
    opposite = _OPPOSITE.get(norm, norm)
    return jnp.conj(_along("ihfft", FftType.RFFT, a, n, axis, opposite))


def _both(name, kind, a, s, axes, norm):
    if len(axes) != 2:
        raise ValueError(
            f"jax.numpy.fft.{name} only supports 2 axes. Got axes = {axes}."
        )
    return transformed(name, kind, a, s, axes, norm)


def fftn(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """Return the discrete Fourier transform, along several axes.

    Args:
      a: array.
      s: sizes to which the axes are cut or filled up with zeros.
      axes: the axes; by default the last ones that `s` has sizes for, or all.
      norm: ``"backward"`` or None, ``"ortho"`` or ``"forward"``.

    Reference: ``jax.numpy.fft.fftn``.
    """
    return transformed("fftn", FftType.FFT, a, s, axes, norm)


def ifftn(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """Return the inverse discrete Fourier transform, along several axes.

    Args:
      a: array.
      s: sizes to which the axes are cut or filled up with zeros.
      axes: the axes; by default the last ones that `s` has sizes for, or all.
      norm: ``"backward"`` or None, ``"ortho"`` or ``"forward"``.

    Reference: ``jax.numpy.fft.ifftn``.
    """
    return transformed("ifftn", FftType.IFFT, a, s, axes, norm)


def rfftn(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """Return the half spectrum of real numbers, along several axes.

    Args:
      a: real array.
      s: sizes to which the axes are cut or filled up with zeros.
      axes: the axes; by default the last ones that `s` has sizes for, or all.
      norm: ``"backward"`` or None, ``"ortho"`` or ``"forward"``.

    Reference: ``jax.numpy.fft.rfftn``.
    """
    return transformed("rfftn", FftType.RFFT, a, s, axes, norm)


def irfftn(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """Return the real numbers that have a half spectrum, along several axes.

    Args:
      a: array, the first half of a spectrum along the last of the axes.
      s: sizes of the result along the axes.
      axes: the axes; by default the last ones that `s` has sizes for, or all.
      norm: ``"backward"`` or None, ``"ortho"`` or ``"forward"``.

    Reference: ``jax.numpy.fft.irfftn``.
    """
    return transformed("irfftn", FftType.IRFFT, a, s, axes, norm)


def fft2(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: str | None = None,
) -> Array:
    """Return the discrete Fourier transform, along two axes.

    Args:
      a: array.
      s: sizes to which the axes are cut or filled up with zeros.
      axes: two axes.
      norm: ``"backward"`` or None, ``"ortho"`` or ``"forward"``.

    Reference: ``jax.numpy.fft.fft2``.
    """
    return _both("fft2", FftType.FFT, a, s, axes, norm)


def ifft2(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: str | None = None,
) -> Array:
    """Return the inverse discrete Fourier transform, along two axes.

    Args:
      a: array.
      s: sizes to which the axes are cut or filled up with zeros.
      axes: two axes.
      norm: ``"backward"`` or None, ``"ortho"`` or ``"forward"``.

    Reference: ``jax.numpy.fft.ifft2``.
    """
    return _both("ifft2", FftType.IFFT, a, s, axes, norm)


def rfft2(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: str | None = None,
) -> Array:
    """Return the half spectrum of real numbers, along two axes.

    Args:
      a: real array.
      s: sizes to which the axes are cut or filled up with zeros.
      axes: two axes.
      norm: ``"backward"`` or None, ``"ortho"`` or ``"forward"``.

    Reference: ``jax.numpy.fft.rfft2``.
    """
    return _both("rfft2", FftType.RFFT, a, s, axes, norm)


def irfft2(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: str | None = None,
) -> Array:
    """Return the real numbers that have a half spectrum, along two axes.

    Args:
      a: array, the first half of a spectrum along the last of the axes.
      s: sizes of the result along the axes.
      axes: two axes.
      norm: ``"backward"`` or None, ``"ortho"`` or ``"forward"``.

    Reference: ``jax.numpy.fft.irfft2``.
    """
    return _both("irfft2", FftType.IRFFT, a, s, axes, norm)
