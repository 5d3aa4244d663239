"""Discrete Fourier transforms with their derivatives, and convolutions of signals.

References: ``jax.lax.fft``; J. Cooley and J. Tukey, *An algorithm for the machine
calculation of complex Fourier series* (1965), ``jax.scipy.signal``,
``jax.numpy.convolve``.
"""

# Made from chapters/30_windows_upper.md by `make chapter`;
# edit the chapter, not this file.

import enum
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import lax
from minijax.arrays.array import ShapedArray, def_shape_and_impl, typeof
from minijax.arrays.dtypes import canonicalize_dtype
from minijax.arrays.numerics import canonicalize_int_tuple
from minijax.batching.vmap import move_one_axis, vmap_rules
from minijax.core import Array, Primitive
from minijax.forward_mode.jvp import jvp_rules, linear_jvp
from minijax.jitting.stages import FLOPS, _moved, cost_rules
from minijax.kernels.lowering import kernel_rules
from minijax.lax.reductions import promote_dtypes, promote_dtypes_inexact
from minijax.python_backend.codegen import python_rules
from minijax.python_backend.source import write_evaluation
from minijax.reverse_mode.backward_pass import deftranspose
from minijax.typing import ArrayLike
from minijax.windows.convolution import conv_general_dilated

# Discrete Fourier transforms along the last axes of arrays, with their derivatives.


class FftType(enum.IntEnum):
    """The kinds of Fourier transforms: forwards and back, of complex or real numbers.

    Reference: ``jax.lax.FftType``.
    """

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


def half_spectrum_lengths(lengths):
    """Return the shape of the half of a spectrum that tells the other half."""
    return (*lengths[:-1], *[n // 2 + 1 for n in lengths[-1:]])


def _fft_shape(x, fft_type, fft_lengths):
    kept, old = x.shape[: x.ndim - len(fft_lengths)], x.shape[-len(fft_lengths) :]
    inputs, outputs, dtype = fft_lengths, fft_lengths, complex_of(x.dtype)
    if fft_type is FftType.RFFT:
        outputs = half_spectrum_lengths(fft_lengths)
    if fft_type is FftType.IRFFT:
        inputs = half_spectrum_lengths(fft_lengths)
        dtype = np.zeros(0, x.dtype).real.dtype
    if old != inputs:
        raise ValueError(
            f"{fft_type.name} input shape {x.shape} minor dimensions must be equal to "
            f"fft_lengths {fft_lengths}: expected {inputs}, got {old}."
        )
    return [ShapedArray((*kept, *outputs), dtype)]


def complex_of(dtype):
    """Return the complex dtype of numbers as wide as those of an inexact dtype."""
    wide = np.dtype(dtype) in (np.dtype("float64"), np.dtype("complex128"))
    return np.dtype("complex128" if wide else "complex64")


FFT_FUNCTIONS = dict(zip(FftType, ("fftn", "ifftn", "rfftn", "irfftn")))


def _transformed(xp, x, fft_type, fft_lengths):
    [result] = _fft_shape(x, fft_type, fft_lengths)
    if not x.size or not result.size:
        return xp.zeros(result.shape, result.dtype)
    axes = range(x.ndim - len(fft_lengths), x.ndim)
    function = getattr(xp.fft, FFT_FUNCTIONS[fft_type])
    return function(x, fft_lengths, axes).astype(result.dtype, copy=False)


fft_p = Primitive("fft")
def_shape_and_impl(fft_p, _fft_shape, _transformed)


def fft(x: ArrayLike, fft_type: FftType | str, fft_lengths: Sequence[int]) -> Array:
    """Return the discrete Fourier transform of the last axes of an array.

    Args:
      x: array. Real numbers become complex ones, but for `RFFT`.
      fft_type: an `FftType`, or its name. `RFFT` leaves out the second half of the last
        axis of the spectrum, and `IRFFT` expects that it is left out.
      fft_lengths: the sizes of the last axes, none to all of them; of the real numbers
        for `RFFT` and `IRFFT`. Without any, nothing is transformed.

    Returns:
      An array of complex numbers, for `IRFFT` of real ones. Inverse transforms are
      divided by the product of the lengths.

    Raises:
      TypeError: for an `fft_type` that is neither.
      ValueError: for sizes that differ from `fft_lengths`, and for `RFFT` of numbers
        that are not float32 or float64.

    Reference: ``jax.lax.fft``.
    """
    kind, [values] = _kind(fft_type), promote_dtypes_inexact(x)
    lengths = canonicalize_int_tuple(fft_lengths, "fft_lengths")
    _check_fft(typeof(values), kind, lengths)
    if kind is not FftType.RFFT:
        values = lax.convert_element_type(values, complex_of(typeof(values).dtype))
    if not lengths:
        return values
    return fft_p.bind(values, fft_type=kind, fft_lengths=lengths)


def _kind(fft_type):
    if isinstance(fft_type, FftType):
        return fft_type
    if not isinstance(fft_type, str):
        raise TypeError(f"Unknown FFT type value {fft_type!r}")
    if fft_type.upper() not in FftType.__members__:
        raise ValueError(f"Unknown FFT type {fft_type!r}")
    return FftType[fft_type.upper()]


def _check_fft(x, kind, lengths):
    if len(lengths) > x.ndim:
        raise ValueError(
            f"{kind.name} input shape {x.shape} must have at least as many input "
            f"dimensions as fft_lengths {lengths}."
        )
    if kind is FftType.RFFT and x.dtype.kind == "c":
        raise ValueError(f"only real valued inputs supported for rfft, got {x.dtype}")
    if kind is FftType.RFFT and x.dtype not in (np.dtype("f4"), np.dtype("f8")):
        raise ValueError(f"RFFT input must be float32 or float64, got {x.dtype}")


jvp_rules[fft_p] = linear_jvp(fft_p)


def _fft_batched(axis, args, dims, **params):
    return fft_p.bind_all(move_one_axis(args[0], dims[0], 0), **params), [0]


vmap_rules[fft_p] = _fft_batched


def mirrored(x, length):
    """Return how many numbers of a whole spectrum each number of a half stands for."""
    shape, dtype = typeof(x).shape, canonicalize_dtype(int)
    place = lax.broadcasted_iota(dtype, shape, len(shape) - 1)
    first = lax.eq(place, lax.full_like(place, 0))
    alone = first | lax.eq(place * 2, lax.full_like(place, length))
    count = lax.convert_element_type(alone, typeof(x).dtype)
    return lax.sub(lax.full_like(count, 2), count)


def _fft_transpose(ct, x, fft_type, fft_lengths):
    size = math.prod(fft_lengths) or 1  # of no numbers: the cotangent is zeros
    if fft_type is FftType.RFFT:
        once = lax.conj(ct) / mirrored(ct, fft_lengths[-1])
        return size * fft(once, "IRFFT", fft_lengths)
    if fft_type is FftType.IRFFT:
        half = fft(ct, "RFFT", fft_lengths)
        return lax.conj(half * mirrored(half, fft_lengths[-1]) / max(size, 1))
    return fft(ct, fft_type, fft_lengths)


deftranspose(fft_p, _fft_transpose)


def _fft_cost(eqn):
    kind, lengths = eqn.params["fft_type"], eqn.params["fft_lengths"]
    longer = eqn.outvars[0] if kind is FftType.IRFFT else eqn.invars[0]
    levels = math.log2(max(math.prod(lengths), 1))
    each = 2.5 if kind in (FftType.RFFT, FftType.IRFFT) else 5
    return {FLOPS: round(each * longer.aval.size * levels)} | _moved(eqn)


cost_rules[fft_p] = _fft_cost
python_rules[fft_p] = write_evaluation
kernel_rules.reasons[fft_p] = "PocketFFT does it: a step that calls NumPy."


# Convolutions and correlations of signals.

_MODES = "full", "same", "valid"


def _check_mode(mode):
    """Raise a ValueError unless a mode is a known one."""
    if mode not in _MODES:
        raise ValueError(f"mode must be one of {list(_MODES)}, got {mode!r}.")


def _pads_of(mode, size, longer, window):
    """Return the padding of a row for a mode.

    Args:
      size: how many results there are if the mode is "same".
      longer, window: lengths of the row, and of what slides over it.
    """
    if mode == "full":
        return window - 1, window - 1
    if mode == "valid":
        return 0, 0
    low = window - 1 - (longer + window - size - 1) // 2
    return low, size + window - 1 - longer - low


def _slid(x, window, padding, precision, preferred_element_type=None):
    """Multiply the windows of an array of any rank by numbers, and sum."""
    axes = 0, 1
    found = conv_general_dilated(
        lax.expand_dims(x, axes),
        lax.expand_dims(window, axes),
        (1,) * typeof(x).ndim,
        padding,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )
    return lax.squeeze(found, axes)


def convolve(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "full",
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """Convolve two rows of numbers: slide one, reversed, over the other.

    Args:
      mode: ``"full"``, wherever they overlap; ``"same"``, as many as the longer one
        has; ``"valid"``, where the shorter one is inside.
      preferred_element_type: the dtype of the result; integers stay integers then.

    Raises:
      ValueError: if one is no row, or is empty.

    Reference: ``jax.numpy.convolve``.
    """
    a, v = _rows("convolve", a, v, mode, preferred_element_type)
    if a.shape[0] < v.shape[0]:
        a, v = v, a
    pads = [_pads_of(mode, a.shape[0], a.shape[0], v.shape[0])]
    return _slid(
        a, lax.rev(v, (0,)), pads, precision, _preferred(preferred_element_type)
    )


def correlate(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "valid",
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """Correlate two rows of numbers: slide the conjugate of one over the other.

    Args:
      mode: as for `convolve`.

    Raises:
      ValueError: if one is no row, or is empty.

    Reference: ``jax.numpy.correlate``.
    """
    a, v = _rows("correlate", a, v, mode, preferred_element_type)
    v, turned = _conjugated(v), a.shape[0] < v.shape[0]
    if turned:
        a, v = v, a
    pads = [_pads_of(mode, a.shape[0], a.shape[0], v.shape[0])]
    found = _slid(a, v, pads, precision, _preferred(preferred_element_type))
    return lax.rev(found, (0,)) if turned else found


def _preferred(dtype):
    return None if dtype is None else canonicalize_dtype(dtype)


def _conjugated(x):
    """Return the conjugates of complex numbers, and real ones as they are."""
    return lax.conj(x) if typeof(x).dtype.kind == "c" else x


def _rows(name, a, v, mode, preferred):
    _check_mode(mode)
    if typeof(a).ndim != 1 or typeof(v).ndim != 1:
        raise ValueError(
            f"{name}() only supports 1-dimensional inputs, got shapes "
            f"{typeof(a).shape} and {typeof(v).shape}."
        )
    if not typeof(a).size or not typeof(v).size:
        raise ValueError(
            f"{name}: inputs cannot be empty, got shapes {typeof(a).shape} and "
            f"{typeof(v).shape}."
        )
    return (promote_dtypes_inexact if preferred is None else promote_dtypes)(a, v)
