"""Fourier and cosine transforms with the names of NumPy and SciPy; frequencies.

References: ``jax.numpy.fft``, ``numpy.fft``, ``jax.scipy.fft``; J. Makhoul, *A fast
cosine transform in one and two dimensions* (1980).
"""

# Made from chapters/30_windows_rest.md by `make chapter`;
# edit the chapter, not this file.

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.arrays.dtypes import canonicalize_dtype
from minijax.arrays.numerics import (
    canonicalize_int_tuple,
    dim_size_along,
    operator_index,
)
from minijax.core import Array
from minijax.extend.promotion import promoting
from minijax.lax.reductions import promote_dtypes_inexact, to_inexact_dtype
from minijax.numpy.fft.primitive import FftType
from minijax.numpy.fft.primitive import fft as _lax_fft
from minijax.numpy.shapes import as_arraylike
from minijax.typing import ArrayLike, DTypeLike

# Fourier transforms with the names of NumPy.


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
    [a] = promote_dtypes_inexact(as_arraylike(f"fft.{name}", a))
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
    chosen = canonicalize_int_tuple(axes)
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
        lengths = canonicalize_int_tuple(s, "Shapes")
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
    if isinstance(axis, Sequence):
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
    a = jnp.conj(as_arraylike("fft.hfft", a))
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


# Frequencies of the numbers of a spectrum, and their order.


def _frequencies(name, first, stop, n, d, dtype, device):
    if isinstance(d, Sequence):
        raise ValueError(
            f"The d argument of jax.numpy.fft.{name} only takes a single value. Got "
            f"d = {d}."
        )
    places = jnp.arange(first, stop, dtype=dtype, device=device)
    return places / jnp.asarray(d * n, dtype)


def fftfreq(
    n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: Any = None
) -> Array:
    """Return the frequencies of the numbers of a spectrum, in periods a unit of time.

    Args:
      n: how many samples were transformed.
      d: time from one sample to the next.
      dtype: of the result, float32 by default (float64 with ``jax_enable_x64``).
      device: where the result is to be.

    Reference: ``jax.numpy.fft.fftfreq``.
    """
    n = operator_index(int(n) if isinstance(n, float) else n, "n of fftfreq")
    half, given = n // 2, canonicalize_dtype(float if dtype is None else dtype)
    computed = to_inexact_dtype(given)
    whole = _frequencies("fftfreq", -half, n - half, n, d, computed, device)
    return jnp.roll(whole, -half).astype(given)


def rfftfreq(
    n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: Any = None
) -> Array:
    """Return the frequencies of half a spectrum, in periods a unit of time.

    Args:
      n: how many samples were transformed.
      d: time from one sample to the next.
      dtype: of the result, float32 by default (float64 with ``jax_enable_x64``).
      device: where the result is to be.

    Reference: ``jax.numpy.fft.rfftfreq``.
    """
    n = operator_index(int(n) if isinstance(n, float) else n, "n of rfftfreq")
    dtype = canonicalize_dtype(float if dtype is None else dtype)
    return _frequencies("rfftfreq", 0, n // 2 + 1, n, d, dtype, device)


def fftshift(x: ArrayLike, axes: None | int | Sequence[int] = None) -> Array:
    """Return a spectrum with the frequency zero in the middle of each axis.

    Args:
      x: array.
      axes: one or more axes; all by default.

    Reference: ``jax.numpy.fft.fftshift``.
    """
    return _shifted("fftshift", x, axes, lambda size: size // 2)


def ifftshift(x: ArrayLike, axes: None | int | Sequence[int] = None) -> Array:
    """Return a spectrum with the frequency zero at the start of each axis again.

    Args:
      x: array.
      axes: one or more axes; all by default.

    Reference: ``jax.numpy.fft.ifftshift``.
    """
    return _shifted("ifftshift", x, axes, lambda size: -(size // 2))


def _shifted(name, x, axes, amount):
    x = as_arraylike(f"fft.{name}", x)
    axes = range(x.ndim) if axes is None else axes
    if not (isinstance(axes, Sequence) or np.ndim(axes)):
        axes = [axes]
    axes = [operator_index(axis, "an axis") for axis in axes]
    return jnp.roll(x, [amount(dim_size_along(x, axis)) for axis in axes], axes)


# Cosine transforms, each by one Fourier transform of the same length.


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


@promoting
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


@promoting
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


@promoting
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


@promoting
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
    [x] = promote_dtypes_inexact(as_arraylike(name, x))
    x = jnp.moveaxis(x, axis, -1)
    if n is not None:
        n = operator_index(n, f"n of {name}")
        if n < 0:
            raise ValueError(f"n of {name} must be nonnegative, got {n}.")
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
    x = as_arraylike(transform.__name__, x)
    count = x.ndim if s is None else len(s)
    if count > x.ndim:
        raise ValueError(f"s must have at most x.ndim ({x.ndim}) elements, got {count}")
    axes = range(x.ndim - count, x.ndim) if axes is None else axes
    sizes = [None] * len(axes) if s is None else s
    if len(sizes) != len(axes):
        raise ValueError(f"Shape and axes have different lengths: {s}, {axes}.")
    for n, axis in zip(sizes, axes):
        x = transform(x, type, n, axis, norm)
    return x
