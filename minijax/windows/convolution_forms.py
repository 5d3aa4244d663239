"""Transposed convolutions, patches, local windows, and convolutions of SciPy.

References: ``jax.lax``, ``jax.scipy.signal``.
"""

# Made from chapters/30_windows_rest.md by `make chapter`;
# edit the chapter, not this file.

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import lax
from minijax.arrays.array import typeof
from minijax.arrays.dtypes import canonicalize_dtype
from minijax.arrays.numerics import canonicalize_int_tuple, check_rank, sizes_of_axes
from minijax.core import Array
from minijax.lax.reductions import promote_dtypes_inexact
from minijax.numpy.fft.primitive import _check_mode, _conjugated, _pads_of, _slid
from minijax.numpy.operands import as_array
from minijax.typing import ArrayLike
from minijax.windows.convolution import conv_general_dilated
from minijax.windows.geometry import (
    conv_dimension_numbers,
    conv_transpose_padding,
    dilate_dim,
    int_tuple_or_default,
    swap_first_two,
)

# Convolutions with other arguments: transposed ones, patches, local windows.


def conv(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """Multiply each window of `lhs` by `rhs`, and sum.

    Reference: ``jax.lax.conv``.
    """
    how = {"precision": precision, "preferred_element_type": preferred_element_type}
    return conv_general_dilated(lhs, rhs, window_strides, padding, **how)


def conv_with_general_padding(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """Multiply each window of `lhs` by `rhs`, and sum, with gaps in both.

    Reference: ``jax.lax.conv_with_general_padding``.
    """
    how = {"precision": precision, "preferred_element_type": preferred_element_type}
    args = lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation
    return conv_general_dilated(*args, **how)


def conv_transpose(
    lhs: ArrayLike,
    rhs: ArrayLike,
    strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    transpose_kernel: bool = False,
    precision: Any = None,
    preferred_element_type: Any = None,
    use_consistent_padding: bool = False,
) -> Array:
    """Spread an array by `strides`, and convolve: the gradient of a convolution.

    Args:
      lhs, rhs: as for `conv_general_dilated`.
      strides: how far the elements of `lhs` are apart in the result.
      padding: ``"SAME"``, ``"VALID"``, or for each axis of space how much is padded
        around the spread array; with `use_consistent_padding`, what the convolution
        has padded whose gradient this is.
      rhs_dilation: distances of neighbours in the window.
      dimension_numbers: which axis is which; by default, features are last.
      transpose_kernel: whether the window is reversed and its features exchanged.

    Reference: ``jax.lax.conv_transpose``.
    """
    ndim = typeof(lhs).ndim
    if dimension_numbers is None and ndim - 2 in (1, 2, 3):
        space = {1: "H", 2: "HW", 3: "HWD"}[ndim - 2]
        dimension_numbers = f"N{space}C", f"{space}IO", f"N{space}C"
    elif dimension_numbers is None and ndim > 2:
        raise ValueError("No 4+ dimensional dimension_number defaults.")
    shapes = typeof(lhs).shape, typeof(rhs).shape
    numbers = conv_dimension_numbers(*shapes, dimension_numbers)
    window = sizes_of_axes(typeof(rhs).shape, numbers.rhs_spec[2:])
    gaps = int_tuple_or_default(rhs_dilation, (1,) * (ndim - 2))
    widths = [*map(dilate_dim, window, gaps)]
    if isinstance(padding, str):
        pairs = zip(widths, strides)
        padding = [conv_transpose_padding(*pair, padding) for pair in pairs]
    elif use_consistent_padding:
        pads = [(n - 1 - low, n - 1 - high) for n, (low, high) in zip(widths, padding)]
        padding = pads
    if transpose_kernel:
        rhs = lax.rev(rhs, numbers.rhs_spec[2:])
        order = np.arange(ndim)
        order[[*numbers.rhs_spec[:2]]] = swap_first_two(numbers.rhs_spec)[:2]
        rhs = lax.transpose(rhs, order.tolist())
    return conv_general_dilated(
        lhs,
        rhs,
        (1,) * (ndim - 2),
        padding,
        strides,
        rhs_dilation,
        numbers,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def conv_general_dilated_patches(
    lhs: ArrayLike,
    filter_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """Return the windows themselves: their elements become features of the result.

    Args:
      filter_shape: sizes of the window.

    The other arguments are those of `conv_general_dilated`. Features of the result
    are, for each feature of `lhs`, the elements of the window, row by row.

    Reference: ``jax.lax.conv_general_dilated_patches``.
    """
    filter_shape, aval = canonicalize_int_tuple(filter_shape, "Shapes"), typeof(lhs)
    dtype = canonicalize_dtype(preferred_element_type or aval.dtype)
    shape = (1, 1, *filter_shape)
    numbers = conv_dimension_numbers(aval.shape, shape, dimension_numbers)
    check_rank("conv_general_dilated_patches", 2, aval)
    features, taps = aval.shape[numbers.lhs_spec[1]], math.prod(filter_shape)
    rhs = lax.broadcast_in_dim(
        np.eye(taps, dtype=aval.dtype), (features, taps, taps), (1, 2)
    )
    rhs = lax.reshape(rhs, (features * taps, 1, *filter_shape))
    rhs = lax.transpose(rhs, np.argsort(numbers.rhs_spec).tolist())
    found = conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        numbers,
        features,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )
    return lax.convert_element_type(found, dtype)


def conv_general_dilated_local(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    filter_shape: Sequence[int],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    precision: Any = None,
) -> Array:
    """Multiply each window by numbers of its own, and sum.

    Args:
      rhs: features of the result; features of `lhs` times the elements of a window;
        and the axes of space of the result.
      filter_shape: sizes of the window.

    The other arguments are those of `conv_general_dilated`.

    Reference: ``jax.lax.conv_general_dilated_local``.
    """
    shapes = typeof(lhs).shape, typeof(rhs).shape
    numbers = conv_dimension_numbers(*shapes, dimension_numbers)
    patches = conv_general_dilated_patches(
        lhs,
        filter_shape,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        numbers,
        precision,
    )
    lhs_spec, rhs_spec, out_spec = numbers
    summed = ((out_spec[1],), (rhs_spec[1],))
    out = lax.dot_general(
        patches, rhs, (summed, (out_spec[2:], rhs_spec[2:])), precision
    )
    order = (ndim - 2, ndim - 1, *range(ndim - 2)) if (ndim := typeof(lhs).ndim) else ()
    return lax.transpose(out, [order[axis] for axis in np.argsort(out_spec)])


# Convolutions and correlations of arrays of any rank; trends taken away.


def _of_one_rank(name, in1, in2, mode, crossed=False):
    """Return two arrays of one dtype, and whether the first is the smaller one.

    With `crossed` each may be longer than the other along some axes.
    """
    _check_mode(mode)
    shape, other = typeof(in1).shape, typeof(in2).shape
    if len(shape) != len(other):
        raise ValueError(
            f"{name}: in1 and in2 must have the same number of dimensions, got shapes "
            f"{shape} and {other}."
        )
    if 0 in shape or 0 in other:
        raise ValueError(
            "zero-size arrays not supported in convolutions, got shapes "
            f"{shape} and {other}."
        )
    smaller = all(n <= m for n, m in zip(shape, other)) and shape != other
    larger = all(n >= m for n, m in zip(shape, other))
    if not smaller and not larger and (not crossed or mode == "valid"):
        raise ValueError(
            f"{name}: one input must be smaller than the other in every dimension, got "
            f"shapes {shape} and {other}."
        )
    return *promote_dtypes_inexact(in1, in2), smaller


def _check_method(method):
    if method not in ("auto", "direct", "fft"):
        raise ValueError(f"Got method={method!r}; expected 'auto', 'fft', or 'direct'.")


def _check_boundary(name, x, boundary, fillvalue):
    if boundary != "fill" or fillvalue != 0:
        raise NotImplementedError(
            f"{name}() only supports boundary='fill', fillvalue=0, got {boundary!r} "
            f"and {fillvalue!r}. jnp.pad makes other boundaries."
        )
    if typeof(x).ndim != 2:
        raise ValueError(
            f"{name}() only supports 2-dimensional inputs, got {typeof(x)}."
        )


def _turned(x):
    """Reverse an array along all axes."""
    return lax.rev(x, tuple(range(typeof(x).ndim)))


def _convolved_signals(x, w, smaller, mode, precision):
    """Convolve two arrays; as large as the first one if the mode is "same"."""
    x, w = as_array(x), as_array(w)
    shape, (x, w) = x.shape, ((w, x) if smaller else (x, w))
    pads = [_pads_of(mode, *sizes) for sizes in zip(shape, x.shape, w.shape)]
    return _slid(x, _turned(w), pads, precision)


def convolve(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    method: str = "auto",
    precision: Any = None,
) -> Array:
    """Convolve two arrays of one rank.

    Args:
      mode: ``"full"``, ``"same"`` (as large as `in1`) or ``"valid"``.
      method: ``"auto"``, ``"direct"`` or ``"fft"``; all are done directly.

    Raises:
      ValueError: if neither array is at least as large as the other along all axes,
        unless the method is ``"fft"`` and the mode not ``"valid"``.

    Reference: ``jax.scipy.signal.convolve``.
    """
    _check_method(method)
    x, w, smaller = _of_one_rank("convolve", in1, in2, mode, method == "fft")
    return _convolved_signals(x, w, smaller, mode, precision)


def correlate(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    method: str = "auto",
    precision: Any = None,
) -> Array:
    """Correlate two arrays of one rank: the second is conjugated, and not reversed.

    The arguments are those of `convolve`.

    Reference: ``jax.scipy.signal.correlate``.
    """
    _check_method(method)
    x, w, smaller = _of_one_rank("correlate", in1, in2, mode, method == "fft")
    return _convolved_signals(x, _turned(_conjugated(w)), smaller, mode, precision)


def convolve2d(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: float = 0,
    precision: Any = None,
) -> Array:
    """Convolve two matrices, with zeros around them.

    Raises:
      NotImplementedError: for another boundary.

    Reference: ``jax.scipy.signal.convolve2d``.
    """
    _check_boundary("convolve2d", in1, boundary, fillvalue)
    return convolve(in1, in2, mode, precision=precision)


def correlate2d(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: float = 0,
    precision: Any = None,
) -> Array:
    """Correlate two matrices, with zeros around them.

    Raises:
      NotImplementedError: for another boundary.

    Reference: ``jax.scipy.signal.correlate2d``.
    """
    _check_boundary("correlate2d", in1, boundary, fillvalue)
    x, w, smaller = _of_one_rank("correlate2d", in1, in2, mode)
    if smaller and mode == "valid":  # SciPy exchanges the two, and so conjugates x
        return _turned(correlate(w, x, mode, precision=precision))
    if mode == "same":  # SciPy centres windows of even sizes otherwise
        args = _turned(x), _conjugated(w), smaller, mode, precision
        return _turned(_convolved_signals(*args))
    return correlate(x, w, mode, precision=precision)
