"""Frequencies of the numbers of a spectrum, and their order.

Reference: ``jax.numpy.fft``.
"""

# Made from chapters/30_windows_rest.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import numpy as jnp
from minijax.arrays.checks import as_integer, size_along
from minijax.arrays.dtypes import canonicalize_dtype
from minijax.core import Array
from minijax.lax.promotion import to_inexact_dtype
from minijax.numpy.shapes import arraylike
from minijax.typing import ArrayLike, DTypeLike


def _frequencies(name, first, stop, n, d, dtype, device):
    if isinstance(d, (tuple, list)):
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
    n = as_integer(int(n) if isinstance(n, float) else n, "n of fftfreq")
    half, dtype = n // 2, canonicalize_dtype(float if dtype is None else dtype)
    computed = to_inexact_dtype(dtype)
    whole = _frequencies("fftfreq", -half, n - half, n, d, computed, device)
    return jnp.roll(whole, -half).astype(dtype)


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
    n = as_integer(int(n) if isinstance(n, float) else n, "n of rfftfreq")
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
    x = arraylike(f"fft.{name}", x)
    axes = range(x.ndim) if axes is None else axes
    if not (isinstance(axes, (tuple, list, range)) or np.ndim(axes)):
        axes = [axes]
    axes = [as_integer(axis, "an axis") for axis in axes]
    return jnp.roll(x, [amount(size_along(x, axis)) for axis in axes], axes)
