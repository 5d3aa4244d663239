# Made from chapters/03_numpy_rest.md by `make chapter`;
# edit the chapter, not this file.
"""Windows: weights that fade towards both ends of a signal.

Reference: ``jax.numpy.hanning`` and its kin.
"""

import math

from minijax import lax
from minijax.arrays.checks import as_integer
from minijax.arrays.dtypes import canonicalize_dtype
from minijax.core import Array
from minijax.numpy.creation import ones
from minijax.numpy.elementwise import absolute, cos


def _window(M, weights):
    """Return ``weights(n, M - 1)`` for n = 0, ..., M - 1; a single weight is 1."""
    M = int(M) if isinstance(M, float | str) else M
    M = as_integer(M, "the length of a window")
    dtype = canonicalize_dtype(float)
    return ones(M, dtype) if M <= 1 else weights(lax.iota(dtype, M), M - 1)


def _cosines(constant, *weights):
    """Return a window: a constant, and cosines of one period, of two, and so on."""

    def weigh(n, last):
        found = constant
        for periods, weight in enumerate(weights, 1):
            found = found + weight * cos(2 * math.pi * periods * n / last)
        return found

    return weigh


def bartlett(M: int) -> Array:
    """Return `M` weights that rise to 1 and fall again, in two straight lines.

    Reference: ``jax.numpy.bartlett``.
    """
    return _window(M, lambda n, last: 1 - absolute(2 * n - last) / last)


def hanning(M: int) -> Array:
    """Return `M` weights: one period of a cosine, upside down, from 0 to 1.

    Reference: ``jax.numpy.hanning``.
    """
    return _window(M, _cosines(0.5, -0.5))


def hamming(M: int) -> Array:
    """Return `M` weights, those of `hanning` on a foot of 0.08.

    Reference: ``jax.numpy.hamming``.
    """
    return _window(M, _cosines(0.54, -0.46))


def blackman(M: int) -> Array:
    """Return `M` weights, made of two cosines.

    Reference: ``jax.numpy.blackman``.
    """
    return _window(M, _cosines(0.42, -0.5, 0.08))
