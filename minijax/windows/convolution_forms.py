"""Convolutions with other arguments: transposed ones, patches, local windows.

Reference: ``jax.lax``.
"""

# Made from chapters/30_windows_rest.md by `make chapter`;
# edit the chapter, not this file.

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import lax
from minijax.arrays.avals import typeof
from minijax.arrays.checks import check_rank, integers, sizes
from minijax.arrays.dtypes import canonicalize_dtype
from minijax.core import Array
from minijax.typing import ArrayLike
from minijax.windows.convolution import conv_general_dilated
from minijax.windows.convolution_shapes import (
    conv_dimension_numbers,
    conv_transpose_padding,
    exchanged,
)
from minijax.windows.geometry import dilated, integers_or


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
    window = sizes(typeof(rhs).shape, numbers.rhs_spec[2:])
    gaps = integers_or(rhs_dilation, (1,) * (ndim - 2))
    widths = [*map(dilated, window, gaps)]
    if isinstance(padding, str):
        pairs = zip(widths, strides)
        padding = [conv_transpose_padding(*pair, padding) for pair in pairs]
    elif use_consistent_padding:
        pads = [(n - 1 - low, n - 1 - high) for n, (low, high) in zip(widths, padding)]
        padding = pads
    if transpose_kernel:
        rhs = lax.rev(rhs, numbers.rhs_spec[2:])
        order = np.arange(ndim)
        order[[*numbers.rhs_spec[:2]]] = exchanged(numbers.rhs_spec)[:2]
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
    filter_shape, aval = integers(filter_shape, "Shapes"), typeof(lhs)
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
