"""Arrays that a formula gives: ranges of numbers, and windows of signals.

Reference: ``jax.numpy``.
"""

# Made from chapters/03_numpy_rest.md by `make chapter`;
# edit the chapter, not this file.

import math
from typing import Any

import numpy as np

from minijax import lax
from minijax.arrays.array import typeof
from minijax.arrays.dtypes import canonicalize_dtype, check_dtype, dtype_kind
from minijax.arrays.interchange import promised
from minijax.arrays.numerics import operator_index
from minijax.arrays.transfer import put_result_on_device
from minijax.core import Array
from minijax.errors import ConcretizationTypeError
from minijax.lax.arithmetic import astype as as_type
from minijax.lax.reductions import (
    check_arraylike,
    common_dtype_and_weak_type,
    promote_dtypes_inexact,
)
from minijax.numpy.array_creation import astype, ones
from minijax.numpy.operands import as_array, broadcast_to_shape
from minijax.numpy.shapes import broadcast_shapes, moveaxis, reshape
from minijax.numpy.ufuncs import absolute, cos
from minijax.typing import ArrayLike


def arange(
    start: ArrayLike,
    stop: ArrayLike | None = None,
    step: ArrayLike | None = None,
    dtype: Any = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Count from `start` (by default 0) up to, not including, `stop`.

    Args:
      start, stop, step: numbers with known values; without a `stop`, the first is it.
      dtype: dtype of the result; by default the one that the numbers promote to.

    Returns:
      A vector of ``ceil((stop - start) / step)`` elements.

    Reference: ``jax.numpy.arange``.
    """
    given = [each for each in (start, stop, step) if each is not None]
    ends = (0, start) if stop is None else (start, stop)
    start, stop = map(_static_number, ends)
    distance = 1 if step is None else _static_number(step)
    dtype = (
        common_dtype_and_weak_type(*given)[0]
        if dtype is None
        else check_dtype(dtype, "arange")
    )
    result = lax.iota(dtype, _count(start, stop, distance))
    if step is not None:
        result = lax.mul(np.asarray(distance).astype(dtype), result)
    if step is not None or start:
        result = lax.add(np.asarray(start).astype(dtype), result)
    return put_result_on_device("arange", result, device, out_sharding)


def _static_number(x):
    x = promised(x)
    check_arraylike("arange", x)
    if typeof(x).shape or dtype_kind(typeof(x).dtype) == "c":
        raise ValueError(f"arange needs real scalars, got {typeof(x)}.")
    value = x.concrete() if hasattr(x, "concrete") else x
    if value is None:
        raise ConcretizationTypeError(
            "Abstract tracer value encountered where concrete value is expected: the "
            f"arguments of jnp.arange decide the shape of its result; got {x!r}. "
            f"{getattr(x, 'provenance', str)()}"
        )
    return np.asarray(value).item()


def _count(start, stop, step):
    size = math.ceil((stop - start) / step)
    return size if size > 0 else 0


def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    """Return `num` numbers with equal distances from `start` to `stop`.

    Args:
      start, stop: numbers, or arrays for several ranges at once.
      num: how many.
      endpoint: whether `stop` is the last of them.
      retstep: whether to return the distance too.
      dtype: dtype of the result; for integers the numbers are rounded down.
      axis: where the new axis stands in the result.

    Reference: ``jax.numpy.linspace``.
    """
    num = operator_index(num, "the number of samples")
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.")
    check_arraylike("linspace", start, stop)
    ends = promote_dtypes_inexact(start, stop)
    shape = broadcast_shapes(*(typeof(end).shape for end in ends))
    start, stop = (
        broadcast_to_shape(as_type(end, typeof(end).dtype), (1, *shape)) for end in ends
    )
    steps = num - 1 if endpoint else num
    samples = moveaxis(_samples(start, stop, num, steps), 0, axis)
    if dtype is not None and canonicalize_dtype(dtype).kind in "iu":
        samples = lax.floor(samples)
    samples = samples if dtype is None else astype(samples, dtype)
    samples = put_result_on_device("linspace", samples, device)
    return (samples, _distance(start, stop, steps)) if retstep else samples


def _samples(start, stop, num, steps):
    if steps < 1:
        return lax.slice_in_dim(start, 0, num)
    place = as_type(lax.iota(start.dtype, steps), start.dtype)
    place = lax.div(place, as_type(steps, start.dtype))
    place = reshape(place, (steps,) + (1,) * (start.ndim - 1))
    rest = lax.sub(as_type(1, start.dtype), place)
    samples = lax.add(lax.mul(start, rest), lax.mul(stop, place))
    return samples if steps == num else lax.concatenate([samples, stop], 0)


def _distance(start, stop, steps):
    if steps < 1:
        return as_array(np.asarray(np.nan, start.dtype))
    steps = as_type(steps, start.dtype)
    return lax.squeeze(lax.div(lax.sub(stop, start), steps), (0,))


def _window(M, weights):
    """Return ``weights(n, M - 1)`` for n = 0, ..., M - 1; a single weight is 1."""
    M = int(M) if isinstance(M, float | str) else M
    M = operator_index(M, "the length of a window")
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
