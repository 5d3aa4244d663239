"""Spectra of signals, trends taken away, and convolutions by Fourier transforms.

References: ``jax.scipy.signal``, ``jax.scipy.signal``; P. Welch, *The use of fast
Fourier transform for the estimation of power spectra* (1967); B. Allen and others,
*FINDCHIRP* (2012), appendix B, for the bias of a median.
"""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.core import Array
from minijax.extend.arguments import (
    canonicalize_axis,
    check_arraylike,
    dim_size_along,
    operator_index,
    warn_user,
)
from minijax.extend.dtypes import complex_dtype_of, real_dtype_of
from minijax.extend.promotion import promote_dtypes_inexact, promoting
from minijax.typing import ArrayLike

# Trends of signals taken away, and convolutions by Fourier transforms.


def fftconvolve(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    axes: Sequence[int] | None = None,
) -> Array:
    """Convolve two arrays of one rank by Fourier transforms.

    Args:
      in1, in2: arrays; along axes that are not convolved they have the same sizes.
      mode: ``"full"``, ``"same"`` (as large as `in1`) or ``"valid"``.
      axes: which axes are convolved; by default all.

    Raises:
      ValueError: for another `mode`, or shapes that do not fit.

    Reference: ``jax.scipy.signal.fftconvolve``.
    """
    check_arraylike("fftconvolve", in1, in2)
    x, w = promote_dtypes_inexact(jnp.asarray(in1), jnp.asarray(in2))
    if x.ndim != w.ndim:
        raise ValueError("in1 and in2 should have the same dimensionality")
    if mode not in ("same", "full", "valid"):
        raise ValueError("mode must be one of ['same', 'full', 'valid']")
    axes = range(x.ndim) if axes is None else np.atleast_1d(axes)
    axes = sorted({canonicalize_axis(axis, x.ndim) for axis in axes})
    if any(x.shape[i] != w.shape[i] for i in {*range(x.ndim)} - {*axes}):
        raise ValueError(
            f"mapped axes must have same shape; got in1.shape={x.shape} "
            f"in2.shape={w.shape} axes={axes}"
        )
    pairs = {axis: (x.shape[axis], w.shape[axis]) for axis in axes}
    if mode == "valid" and not all(n >= m for n, m in pairs.values()):
        if not all(n <= m for n, m in pairs.values()):
            raise ValueError(
                "For 'valid' mode, One input must be at least as large as the other "
                "in every dimension."
            )
        pairs = {axis: (m, n) for axis, (n, m) in pairs.items()}
    full = [n + m - 1 for n, m in pairs.values()]
    if all(1 in pair for pair in pairs.values()):
        y = x * w
    else:
        ways = jnp.fft.rfftn, jnp.fft.irfftn
        forth, back = (jnp.fft.fftn, jnp.fft.ifftn) if x.dtype.kind == "c" else ways
        y = back(forth(x, full, axes) * forth(w, full, axes), full, axes)
    for axis, size in zip(axes, full):
        n, m = pairs[axis]
        kept = {"full": size, "same": x.shape[axis], "valid": n - m + 1}[mode]
        start = (size - kept) // 2
        y = lax.slice_in_dim(y, start, start + kept, axis=axis)
    return y


@promoting
def detrend(
    data: ArrayLike,
    axis: int = -1,
    type: str = "linear",
    bp: Any = 0,
    overwrite_data: None = None,
) -> Array:
    """Take the mean of signals away, or the straight lines that fit them best.

    Args:
      data: signals along an axis.
      axis: that axis.
      type: ``"constant"`` or ``"linear"``.
      bp: places where one line ends and the next begins.
      overwrite_data: has to be None.

    Raises:
      NotImplementedError: if `overwrite_data` is given.
      ValueError: for another `type`, and for places outside.

    Reference: ``jax.scipy.signal.detrend``.
    """
    if overwrite_data is not None:
        raise NotImplementedError("overwrite_data argument not implemented.")
    if type not in ("constant", "linear"):
        raise ValueError("Trend type must be 'linear' or 'constant'.")
    [x] = promote_dtypes_inexact(jnp.asarray(data))
    if type == "constant":
        return x - x.mean(axis, keepdims=True)
    size = dim_size_along(x, axis)
    ends = np.unique(np.r_[0, bp, size])
    if ends[0] < 0 or ends[-1] > size:
        raise ValueError(
            "Breakpoints must be non-negative and less than length of data along "
            f"given axis, got {bp}."
        )
    x = jnp.moveaxis(x, axis, -1)
    parts = [_flattened(x[..., a:b]) for a, b in zip(ends[:-1], ends[1:])]
    return jnp.moveaxis(jnp.concatenate(parts, -1), -1, axis)


def _flattened(x):
    """Take away the line of least squares: through the middle, with the best slope."""
    count = x.shape[-1]
    place = np.arange(count) - (count - 1) / 2
    line = jnp.asarray(place / np.sqrt(np.sum(place * place) or 1), x.dtype)
    x = x - x.mean(-1, keepdims=True)
    return x - (x * line).sum(-1, keepdims=True) * line


# Spectra of signals by Fourier transforms of windowed pieces.


def _window(window, count, dtype):
    """Return a window by its name, or the array that is one."""
    if not isinstance(window, str | tuple):
        window = jnp.asarray(window, dtype)
        if window.ndim != 1:
            raise ValueError(f"window must be 1-D, got shape {window.shape}.")
        return window
    if window == "hann":
        angles = np.linspace(0, np.pi, count, endpoint=False)
        return jnp.asarray([1.0] if count == 1 else np.sin(angles) ** 2, dtype)
    try:
        from scipy.signal import get_window
    except ImportError as error:
        raise ImportError(
            f"scipy must be available to use window={window!r}; pass an array."
        ) from error
    return jnp.asarray(get_window(window, count), dtype)


def _pieces(window, nperseg, length, dtype):
    """Return the window and the length of pieces."""
    if nperseg is not None and operator_index(nperseg, "nperseg") < 1:
        raise ValueError(f"nperseg must be a positive integer, got {nperseg}.")
    if isinstance(window, str | tuple):
        count = length if nperseg is None else operator_index(nperseg, "nperseg")
        if count > length:
            warn_user(
                f"nperseg={count} is greater than input_length={length}, using "
                f"nperseg={length}",
                stacklevel=4,
            )
        return _window(window, min(count, length), dtype), min(count, length)
    window = _window(window, None, dtype)
    if length < window.size:
        raise ValueError("window is longer than input signal")
    if nperseg not in (None, window.size):
        raise ValueError(
            "value specified for nperseg is different from length of window"
        )
    return window, window.size


def _odd(x, n):
    """Continue signals at both ends by their mirror images, turned upside down."""
    if not 0 < n < x.shape[-1]:
        if n:
            raise ValueError(
                f"The extension length n ({n}) is too big. It must not exceed "
                f"x.shape[axis]-1, which is {x.shape[-1] - 1}."
            )
        return x
    left = 2 * x[..., :1] - x[..., n:0:-1]
    return jnp.concatenate([left, x, 2 * x[..., -1:] - x[..., -2 : -n - 2 : -1]], -1)


def _padded(mode):
    return lambda x, n: jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(n, n)], mode)


_ENDS = {
    "even": _padded("reflect"),
    "odd": _odd,
    "constant": _padded("edge"),
    "zeros": _padded("constant"),
    None: lambda x, n: x,
}


def _longer(x, count):
    return jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, count)]) if count else x


def _without_trend(how, axis):
    """Return the function that takes the trends of pieces away."""
    if isinstance(how, str):
        return lambda x: detrend(x, axis=-1, type=how)
    if not callable(how):
        if how:
            raise ValueError(f"Unsupported detrend type: {how}")
        return lambda x: x
    return lambda x: jnp.moveaxis(how(jnp.moveaxis(x, axis, -1)), -1, axis)


def _transformed(x, window, flat, step, nfft, real):
    """Return the transforms of windowed pieces, in the last two axes."""
    count = window.size
    starts = np.arange(0, x.shape[-1] - count + 1, step)
    x = flat(x[..., starts[:, None] + np.arange(count)]) * window
    return jnp.fft.rfft(x.real, nfft) if real else jnp.fft.fft(x, nfft)


def _empty(shape, dtype):
    real = jnp.zeros(shape, real_dtype_of(dtype))
    return real, real, jnp.zeros(shape, dtype)


def _of_one_length(signals, boundary, count, step):
    """Return signals with their ends, as long as pieces a step apart need them."""
    most = max(each.shape[-1] for each in signals)
    signals = [_longer(each, most - each.shape[-1]) for each in signals]
    signals = [_ENDS[boundary](each, count // 2) for each in signals]
    more = -(signals[0].shape[-1] - count) % step % count
    return [_longer(each, more) for each in signals]


def _scale(window, fs, scaling):
    if scaling not in ("density", "spectrum"):
        raise ValueError(f"Unknown scaling: {scaling}")
    density = scaling == "density"
    return 1 / (fs * (window * window).sum()) if density else 1 / window.sum() ** 2


def _without(signals, axis):
    """Return the shape of signals without an axis, stretched to each other."""
    shapes = [(*s.shape[:axis], *s.shape[axis + 1 :]) for s in signals]
    return jnp.broadcast_shapes(*shapes)


def _middles(signal, count, step, whole):
    """Return the middles of pieces, from the beginning of what was transformed."""
    last = signal.shape[-1] - count / 2 + 1
    places = jnp.arange(count / 2, last, step, dtype=real_dtype_of(signal.dtype))
    return places if whole else places - count / 2


def _complex_of(dtype):
    """Return the dtype of spectra; there are none of half precision."""
    if dtype.itemsize < 4:
        raise ValueError(
            f"Spectra are of float32 or float64, got {dtype}: use x.astype('float32')."
        )
    return complex_dtype_of(real_dtype_of(dtype))


def _spectra(
    x, y, fs, window, nperseg, noverlap, nfft, trend, onesided, scaling, axis,
    mode, boundary, padded,
):  # fmt: skip
    """Return frequencies, times, and the spectra of pieces of one or two signals."""
    if boundary not in _ENDS:
        raise ValueError(
            f"Unknown boundary option '{boundary}', must be one of: {list(_ENDS)}"
        )
    signals = [x] if y is None else [x, y]
    check_arraylike("spectral_helper", *signals)
    signals = promote_dtypes_inexact(*map(jnp.asarray, signals))
    x, axis = signals[0], canonicalize_axis(axis, signals[0].ndim)
    if any(each.ndim != x.ndim for each in signals):
        raise ValueError("two-arguments must have the same rank.")
    outer = _without(signals, axis)
    dtype, complex_dtype = x.dtype, _complex_of(x.dtype)
    win, count = _pieces(window, nperseg, x.shape[axis], dtype)
    noverlap = count // 2 if noverlap is None else operator_index(noverlap, "noverlap")
    nfft = count if nfft is None else operator_index(nfft, "nfft")
    if 0 in (each.size for each in signals):
        least = min(each.shape[axis] for each in signals)
        return _empty((*outer[:axis], least, *outer[axis:]), complex_dtype)
    if nfft < count:
        raise ValueError("nfft must be greater than or equal to nperseg.")
    if noverlap >= count:
        raise ValueError("noverlap must be less than nperseg.")
    step, scale = count - noverlap, _scale(win, fs, scaling)
    signals = [jnp.moveaxis(each, axis, -1) for each in signals]
    signals = _of_one_length(signals, boundary, count, step if padded else 1)
    real = onesided and dtype.kind != "c"
    if onesided and not real:
        warn_user(
            "Input data is complex, switching to return_onesided=False", stacklevel=3
        )
    flat = _without_trend(trend, axis)
    found = [_transformed(each, win, flat, step, nfft, real) for each in signals]
    result = found[0]
    if mode == "psd":
        result = result.conj() * found[-1]
    scale = jnp.sqrt(scale) if mode == "stft" else scale
    result = result * jnp.asarray(scale).astype(complex_dtype)
    if real and mode == "psd":  # the other half has as much
        result = result.at[..., 1 : None if nfft % 2 else -1].multiply(2)
    frequencies = jnp.fft.rfftfreq if real else jnp.fft.fftfreq
    frequencies = frequencies(nfft, 1 / fs, dtype=real_dtype_of(dtype))
    times = _middles(signals[0], count, step, boundary is None) / fs
    result = result.astype(complex_dtype)
    result = result.real if y is None and mode == "psd" else result
    result = jnp.moveaxis(result.swapaxes(-1, -2), -2, axis)
    return frequencies, times, result


def _averaged(spectra, average):
    count = spectra.shape[-1]
    if average == "mean":
        return spectra.mean(-1)
    if average != "median":
        raise ValueError(f'average must be "median" or "mean", got {average}')
    even = np.arange(2.0, count, 2)
    bias = (1 + np.sum(1 / (even + 1) - 1 / even)).astype(real_dtype_of(spectra.dtype))
    if spectra.dtype.kind != "c":
        return jnp.median(spectra, -1) / bias
    parts = (jnp.median(part, -1) for part in (spectra.real, spectra.imag))
    return lax.complex(*parts) / bias


def _added(x, step):
    """Add overlapping pieces up; they lie in the last axis, side by side before."""
    *batch, count, size = x.shape
    parts = math.ceil(size / step)
    x = _longer(x, parts * step - size).reshape(*batch, count, parts, step)
    total = jnp.zeros((*batch, count + parts - 1, step), x.dtype)
    for k in range(parts):
        total = total.at[..., k : k + count, :].add(x[..., k, :])
    return total.reshape(*batch, -1)[..., : step * (count - 1) + size]


@promoting
def stft(
    x: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Any = "hann",
    nperseg: int = 256,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = False,
    return_onesided: bool = True,
    boundary: str | None = "zeros",
    padded: bool = True,
    axis: int = -1,
) -> tuple[Array, Array, Array]:
    """Return short-time Fourier transforms: frequencies, times, and the transforms.

    Args:
      x: signals along an axis.
      fs: how many numbers of the signal there are in a unit of time.
      window: ``"hann"``, an array, or, where SciPy is installed, what it takes.
      nperseg: length of pieces.
      noverlap: how far pieces overlap; by default by half.
      nfft: length of the transforms, if they are padded with zeros.
      detrend: a type for `detrend`, a function, or False.
      return_onesided: whether to leave out the negative frequencies of real signals.
      boundary: how signals go on at the ends, ``"zeros"``, ``"even"``, ``"odd"``,
        ``"constant"`` or None for not at all.
      padded: whether to add zeros for the last piece.
      axis: the axis of signals; the times are the last axis of the result.

    Raises:
      ValueError: for pieces that do not fit, and unknown names.

    Reference: ``jax.scipy.signal.stft``.
    """
    pieces = fs, window, nperseg, noverlap, nfft, detrend, return_onesided
    return _spectra(x, None, *pieces, "spectrum", axis, "stft", boundary, padded)


@promoting
def csd(
    x: ArrayLike,
    y: ArrayLike | None,
    fs: ArrayLike = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """Return frequencies and the cross spectral density of two signals.

    Args:
      x, y: signals along an axis; None for `y` stands for `x`.
      scaling: ``"density"``, a power in each unit of frequency, or ``"spectrum"``.
      average: ``"mean"`` or ``"median"`` of the pieces.
      fs, window, nperseg, noverlap, nfft: as for `stft`.
      detrend, return_onesided, axis: as for `stft`.

    Raises:
      ValueError: for pieces that do not fit, and unknown names.

    Reference: ``jax.scipy.signal.csd``.
    """
    pieces = fs, window, nperseg, noverlap, nfft, detrend, return_onesided
    found = _spectra(x, y, *pieces, scaling, axis, "psd", None, False)
    frequencies, _, spectra = found
    if y is not None:
        spectra = spectra + 0j
    if spectra.ndim < 2 or not spectra.size:
        return frequencies, spectra
    if spectra.shape[-1] == 1:
        return frequencies, spectra[..., 0]
    return frequencies, _averaged(spectra, average)


@promoting
def welch(
    x: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """Return frequencies and the power spectral density of signals (Welch).

    The arguments are those of `csd`.

    Reference: ``jax.scipy.signal.welch``.
    """
    pieces = fs, window, nperseg, noverlap, nfft, detrend, return_onesided
    frequencies, power = csd(x, None, *pieces, scaling, axis, average)
    return frequencies, power.real


@promoting
def istft(
    Zxx: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    input_onesided: bool = True,
    boundary: bool = True,
    time_axis: int = -1,
    freq_axis: int = -2,
) -> tuple[Array, Array]:
    """Return times, and the signals whose short-time Fourier transforms are given.

    Args:
      Zxx: transforms, with an axis for frequencies and one for times.
      input_onesided: whether they have no negative frequencies.
      boundary: whether the signals were continued at their ends.
      time_axis, freq_axis: the two axes.
      fs, window, nperseg, noverlap, nfft: as for `stft`.

    Raises:
      ValueError: for pieces that do not fit.

    Reference: ``jax.scipy.signal.istft``.
    """
    check_arraylike("istft", Zxx)
    z = jnp.asarray(Zxx)
    if z.ndim < 2:
        raise ValueError("Input stft must be at least 2d!")
    last, before = (canonicalize_axis(axis, z.ndim) for axis in (time_axis, freq_axis))
    if last == before:
        raise ValueError("Must specify differing time and frequency axes!")
    [z] = promote_dtypes_inexact(z)
    z = z if z.dtype.kind == "c" else z.astype(_complex_of(z.dtype))
    size = z.shape[before]
    usual = 2 * (size - 1) if input_onesided else size
    count = operator_index(nperseg or usual, "nperseg")
    if count < 1:
        raise ValueError("nperseg must be a positive integer")
    odd = nfft is None and input_onesided and count == usual + 1
    nfft = usual + odd if nfft is None else operator_index(nfft, "nfft")
    if nfft < count:
        raise ValueError(f"FFT length ({nfft}) must be longer than nperseg ({count}).")
    noverlap = operator_index(noverlap or count // 2, "noverlap")
    if noverlap >= count:
        raise ValueError("noverlap must be less than nperseg.")
    z = jnp.moveaxis(z, (before, last), (-1, -2))
    x = (jnp.fft.irfft if input_onesided else jnp.fft.ifft)(z, nfft)[..., :count]
    named = isinstance(window, str | tuple)
    win = _window(window, count, x.dtype if named else None)
    if win.shape[0] != count:
        raise ValueError(f"window must have length of {count}")
    x, step = _added(x * win.sum() * win, count - noverlap), count - noverlap
    norm = _added(jnp.broadcast_to(win * win, (z.shape[-2], count)), step).real
    if boundary:
        x, norm = (each[..., count // 2 : -(count // 2)] for each in (x, norm))
    x = x / jnp.where(norm > 1e-10, norm, 1).astype(x.dtype)
    if x.ndim > 1 and last != z.ndim - 1:
        x = jnp.moveaxis(x, -1, last - (before < last))
    return jnp.arange(x.shape[0], dtype=real_dtype_of(x.dtype)) / fs, x
