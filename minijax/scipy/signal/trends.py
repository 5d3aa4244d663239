"""Trends of signals taken away, and convolutions by Fourier transforms.

Reference: ``jax.scipy.signal``.
"""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.arrays.checks import canonicalize_axis, size_along
from minijax.core import Array
from minijax.lax.promotion import check_arraylike, promote_dtypes_inexact
from minijax.typing import ArrayLike


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
    size = size_along(x, axis)
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
