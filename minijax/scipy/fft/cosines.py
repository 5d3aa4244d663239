"""Cosine transforms, each by one Fourier transform of the same length.

Reference: ``jax.scipy.fft``; J. Makhoul, *A fast cosine transform in one and two
dimensions* (1980).
"""

# Made from chapters/30_windows_rest.md by `make chapter`;
# edit the chapter, not this file.

import math
from collections.abc import Sequence

from minijax import lax
from minijax import numpy as jnp
from minijax.arrays.checks import as_integer
from minijax.core import Array
from minijax.lax.promotion import promote_dtypes_inexact
from minijax.numpy.fft.fourier import FftType
from minijax.numpy.fft.fourier import fft as _lax_fft
from minijax.numpy.shapes import arraylike
from minijax.typing import ArrayLike


def cosines(x):
    """Return the cosine transform along the last axis, as the definition has it."""
    n = x.shape[-1]
    mixed = jnp.concatenate([x[..., ::2], x[..., 1::2][..., ::-1]], -1)
    return 2 * (_lax_fft(mixed, FftType.FFT, (n,)) * quarter_turns(n, x, -1)).real


def from_cosines(x):
    """Return the numbers along the last axis of which `x` is the cosine transform."""
    n = x.shape[-1]
    other = jnp.pad(x[..., :0:-1], [(0, 0)] * (x.ndim - 1) + [(1, 0)])
    turned = (x - 1j * other) * quarter_turns(n, x, 1) / 2
    mixed = _lax_fft(turned, FftType.IFFT, (n,)).real
    half = (n + 1) // 2
    pair = jnp.zeros_like(mixed).at[..., ::2].set(mixed[..., :half])
    return pair.at[..., 1::2].set(mixed[..., half:][..., ::-1])


def quarter_turns(n, x, sign):
    """Return the n points of a quarter of the unit circle, from 1 on."""
    angle = jnp.arange(n, dtype=x.real.dtype) * (sign * math.pi / (2 * n))
    return jnp.exp(1j * angle)


def lengths_of_cosines(n, x):
    """Return the lengths of the n cosines, by which ``norm="ortho"`` divides."""
    first = jnp.equal(jnp.arange(n), 0)
    return jnp.sqrt(n * jnp.where(first, 4.0, 2.0)).astype(x.real.dtype)


def dct(
    x: ArrayLike,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
) -> Array:
    """Return the cosine transform of the second type, along one axis.

    Args:
      x: array; of complex numbers both parts are transformed.
      type: 2.
      n: the size to which the axis is cut or filled up with zeros, its own by default.
      axis: the axis.
      norm: ``"ortho"``, for a transform that keeps lengths, or None.

    Raises:
      NotImplementedError: for another `type`.
      TypeError: if the axis has no elements.

    Reference: ``jax.scipy.fft.dct``.
    """
    return _along_axis("dct", _forwards, x, type, n, axis, norm)


def idct(
    x: ArrayLike,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
) -> Array:
    """Return the inverse of the cosine transform of the second type, along one axis.

    Args:
      x: array.
      type: 2.
      n: the size to which the axis is cut or filled up with zeros, its own by default.
      axis: the axis.
      norm: ``"ortho"``, for a transform that keeps lengths, or None.

    Raises:
      NotImplementedError: for another `type`.
      TypeError: if the axis has no elements.

    Reference: ``jax.scipy.fft.idct``.
    """
    return _along_axis("idct", _backwards, x, type, n, axis, norm)


def dctn(
    x: ArrayLike,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """Return the cosine transform of the second type, along several axes.

    Args:
      x: array.
      type: 2.
      s: sizes to which the axes are cut or filled up with zeros.
      axes: the axes; by default the last ones, as many as there are in `s`, or all.
      norm: ``"ortho"`` or None.

    Reference: ``jax.scipy.fft.dctn``.
    """
    return _all_along(dct, x, type, s, axes, norm)


def idctn(
    x: ArrayLike,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """Return the inverse of the cosine transform, along several axes.

    Args:
      x: array.
      type: 2.
      s: sizes to which the axes are cut or filled up with zeros.
      axes: the axes; by default the last ones, as many as there are in `s`, or all.
      norm: ``"ortho"`` or None.

    Reference: ``jax.scipy.fft.idctn``.
    """
    return _all_along(idct, x, type, s, axes, norm)


def _forwards(x, norm):
    y = cosines(x)
    return y / lengths_of_cosines(x.shape[-1], x) if norm == "ortho" else y


def _backwards(x, norm):
    x = x * lengths_of_cosines(x.shape[-1], x) if norm == "ortho" else x
    return from_cosines(x)


def _along_axis(name, transform, x, type, n, axis, norm):
    if type != 2:
        raise NotImplementedError(f"Only DCT type 2 is implemented, got {name} {type}.")
    if norm not in (None, "backward", "ortho"):
        raise ValueError(f"jax.scipy.fft.{name}: {norm=!r} is not implemented")
    [x] = promote_dtypes_inexact(arraylike(name, x))
    x = jnp.moveaxis(x, axis, -1)
    if n is not None:
        n = as_integer(n, f"n of {name}")
        more = [(0, 0)] * (x.ndim - 1) + [(0, max(n - x.shape[-1], 0))]
        x = jnp.pad(x[..., :n], more)
    if not x.shape[-1]:
        raise TypeError(
            f"{name} needs at least one element along axis {axis}, got an array with "
            f"shape {jnp.moveaxis(x, -1, axis).shape}. The argument n fills the axis "
            "up with zeros."
        )
    if not jnp.iscomplexobj(x):
        return jnp.moveaxis(transform(x, norm), -1, axis)
    parts = [transform(part, norm) for part in (lax.real(x), lax.imag(x))]
    return jnp.moveaxis(lax.complex(*parts), -1, axis)


def _all_along(transform, x, type, s, axes, norm):
    x = arraylike(transform.__name__, x)
    count = x.ndim if s is None else len(s)
    axes = range(x.ndim - count, x.ndim) if axes is None else axes
    sizes = [None] * len(axes) if s is None else s
    if len(sizes) != len(axes):
        raise ValueError(f"Shape and axes have different lengths: {s}, {axes}.")
    for n, axis in zip(sizes, axes):
        x = transform(x, type, n, axis, norm)
    return x
