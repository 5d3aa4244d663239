"""Discrete Fourier transforms along the last axes of arrays, with their derivatives.

Reference: ``jax.lax.fft``; J. Cooley and J. Tukey, *An algorithm for the machine
calculation of complex Fourier series* (1965).
"""

# Made from chapters/30_windows_upper.md by `make chapter`;
# edit the chapter, not this file.

import enum
import math
from collections.abc import Sequence

import numpy as np

from minijax import lax
from minijax.arrays.array import primitive_rules
from minijax.arrays.avals import ShapedArray, typeof
from minijax.arrays.checks import integers
from minijax.arrays.dtypes import canonicalize_dtype
from minijax.batching.rules import move_axis, vmap_rules
from minijax.core import Array, Primitive
from minijax.emitted.emission import python_rules
from minijax.emitted.evaluations import write_evaluation
from minijax.forward.rules import jvp_rules, linear_rule
from minijax.jitting.costs import FLOPS, _moved, cost_rules
from minijax.kernels.program_steps import kernel_rules
from minijax.lax.promotion import promote_dtypes_inexact
from minijax.reverse.transposition import transposes
from minijax.typing import ArrayLike


class FftType(enum.IntEnum):
    """The kinds of Fourier transforms: forwards and back, of complex or real numbers.

    Reference: ``jax.lax.FftType``.
    """

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


def halved(lengths):
    """Return the shape of the half of a spectrum that tells the other half."""
    return (*lengths[:-1], *[n // 2 + 1 for n in lengths[-1:]])


def _fft_shape(x, fft_type, fft_lengths):
    kept, old = x.shape[: x.ndim - len(fft_lengths)], x.shape[-len(fft_lengths) :]
    inputs, outputs, dtype = fft_lengths, fft_lengths, complex_of(x.dtype)
    if fft_type is FftType.RFFT:
        outputs = halved(fft_lengths)
    if fft_type is FftType.IRFFT:
        inputs, dtype = halved(fft_lengths), np.zeros(0, x.dtype).real.dtype
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


FUNCTIONS = dict(zip(FftType, ("fftn", "ifftn", "rfftn", "irfftn")))


def _transformed(xp, x, fft_type, fft_lengths):
    [result] = _fft_shape(x, fft_type, fft_lengths)
    if not x.size or not result.size:
        return xp.zeros(result.shape, result.dtype)
    axes = range(x.ndim - len(fft_lengths), x.ndim)
    function = getattr(xp.fft, FUNCTIONS[fft_type])
    return function(x, fft_lengths, axes).astype(result.dtype, copy=False)


fft_p = Primitive("fft")
primitive_rules(fft_p, _fft_shape, _transformed)


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
    kind, [x] = _kind(fft_type), promote_dtypes_inexact(x)
    lengths = integers(fft_lengths, "fft_lengths")
    _check_fft(typeof(x), kind, lengths)
    if kind is not FftType.RFFT:
        x = lax.convert_element_type(x, complex_of(typeof(x).dtype))
    return fft_p.bind(x, fft_type=kind, fft_lengths=lengths)[0] if lengths else x


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


jvp_rules[fft_p] = linear_rule(fft_p)


def _fft_batched(axis, args, dims, **params):
    return fft_p.bind(move_axis(args[0], dims[0], 0), **params), [0]


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


transposes(fft_p, _fft_transpose)


def _fft_cost(eqn):
    kind, lengths = eqn.params["fft_type"], eqn.params["fft_lengths"]
    longer = eqn.outvars[0] if kind is FftType.IRFFT else eqn.invars[0]
    levels = math.log2(max(math.prod(lengths), 1))
    each = 2.5 if kind in (FftType.RFFT, FftType.IRFFT) else 5
    return {FLOPS: round(each * longer.aval.size * levels)} | _moved(eqn)


cost_rules[fft_p] = _fft_cost
python_rules[fft_p] = write_evaluation
kernel_rules.reasons[fft_p] = "PocketFFT does it: a step that calls NumPy."
