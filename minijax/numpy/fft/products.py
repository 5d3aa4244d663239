# Made from chapters/30_windows_ground.md by `make chapter`;
# edit the chapter, not this file.
"""Fourier transforms as products with small matrices, for machine code.

Reference: M. Frigo and S. Johnson, *The design and implementation of FFTW3* (2005);
C. Van Loan, *Computational frameworks for the fast Fourier transform* (1992), 1.4.
"""

import math
from functools import partial

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.kernels.building import NoKernel

STAGE, PRIME = 10, 31
TOGETHER, LARGEST = 2**13, 2**14  # how many numbers a cache keeps at hand


def stages(n):
    """Return factors of a length: as large as `STAGE` allows, or larger primes."""
    found = []
    while n > 1:
        sizes = [r for r in range(2, STAGE + 1) if n % r == 0]
        larger = [r for r in range(STAGE + 1, n + 1) if n % r == 0]
        found.append(max(sizes) if sizes else larger[0])
        n //= found[-1]
    return found


def circle(n, count):
    """Return cosines and sines of multiples of the n-th part of a turn."""
    angles = 2 * np.pi * (np.arange(count, dtype=np.longdouble) / n)
    parts = np.cos(angles), np.sin(angles)
    return [np.where(np.abs(x) < 1e-17, 0, x) for x in parts]


def stage_matrix(r, sign, parts, kept):
    """Return the matrix of a transform of length r, on parts of complex numbers.

    Args:
      r: the length.
      sign: -1 forwards, 1 backwards.
      parts, kept: 2 for complex numbers that come and go; 1 where only the real part
        is given, or wanted.
    """
    cosines, sines = (x[np.outer(range(r), range(r)) % r] for x in circle(r, r))
    whole = np.block([[cosines, -sign * sines], [sign * sines, cosines]])
    return whole[: kept * r, : parts * r]


def along(x, sign, kept):
    """Return the transform of the second axis of an array of parts."""
    parts, n, *rest = x.shape
    columns, done = math.prod(rest), 1
    sizes = stages(n)
    for number, r in enumerate(sizes):
        last = number == len(sizes) - 1
        m = n // (done * r)
        matrix = stage_matrix(r, sign, len(x), kept if last else 2)
        matrix = jnp.asarray(matrix.astype(x.dtype))
        y = matrix @ x.reshape(len(x) * r, m * done * columns)
        y = y.reshape(-1, r, m, done * columns)
        x = y if last else _twiddled(y, sign).transpose(0, 2, 1, 3)
        x, done = x.reshape(len(x), n, *rest), done * r
    return x if sizes else _with_parts(x, kept)


def _twiddled(y, sign):
    _, r, m, _ = y.shape
    places = np.outer(range(r), range(m))
    cosines, sines = (x[places] for x in circle(r * m, r * m))
    cosines, sines = (x.astype(y.dtype)[..., None] for x in (cosines, sign * sines))
    real, imaginary = y
    turned = real * cosines - imaginary * sines, real * sines + imaginary * cosines
    return jnp.stack(turned)


def _with_parts(x, kept):
    zeros = jnp.zeros_like(x[:1], shape=(max(kept - len(x), 0), *x.shape[1:]))
    return jnp.concatenate([x[:kept], zeros])


def transform_by_products(x, fft_type, fft_lengths):
    """Return ``[y]``, the transform of the last axes of an array.

    Reference: ``jax.lax.fft``.
    """
    if x.ndim > len(fft_lengths) and x.size > TOGETHER:
        how = {"fft_type": fft_type, "fft_lengths": fft_lengths}
        return [lax.map(lambda row: transform_by_products(row, **how)[0], x)]
    sign = -1 if fft_type.name in ("FFT", "RFFT") else 1
    axes = [*range(1 - len(fft_lengths), 1)]
    if fft_type.name == "RFFT":
        axes.reverse()
    parts = jnp.stack([x.real, x.imag]) if x.dtype.kind == "c" else x[None]
    for number, axis in enumerate(axes):
        place, n = parts.ndim - 1 + axis, fft_lengths[axis - 1]
        real = fft_type.name == "IRFFT" and axis == 0
        y = jnp.moveaxis(parts, place, 1)
        y = along(_completed(y, n) if real else y, sign, 1 if real else 2)
        if fft_type.name == "RFFT" and number == 0:
            y = y[:, : n // 2 + 1]
        parts = jnp.moveaxis(y, 1, place)
    if sign > 0:
        parts = parts * np.asarray(1 / math.prod(fft_lengths), parts.dtype)
    return [parts[0] if len(parts) == 1 else lax.complex(*parts)]


def _completed(half, n):
    mirrored = half[:, 1 : (n + 1) // 2][:, ::-1]
    signs = np.array([1, -1], half.dtype).reshape(2, *[1] * (half.ndim - 1))
    return jnp.concatenate([half, mirrored * signs], 1)


def fft_on_cpu(lowering, eqn, x):
    """Add the products of a transform, if its lengths have small factors."""
    lengths = eqn.params["fft_lengths"]
    if not 0 < math.prod(lengths) <= LARGEST or 0 in x.shape:
        raise NoKernel("NumPy does it, or there is nothing to do")
    if any(max(stages(n), default=1) > PRIME for n in lengths):
        raise NoKernel("a length has a large prime factor")
    return lowering.function(partial(transform_by_products, **eqn.params), [x])
