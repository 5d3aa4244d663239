"""Convolution: windows of an array, each multiplied by the same numbers and summed.

Reference: ``jax.lax.conv_general_dilated``.
"""

# Made from chapters/30_windows.md by `make chapter`;
# edit the chapter, not this file.

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.arrays.array import primitive_rules
from minijax.arrays.avals import typeof
from minijax.arrays.checks import as_integer, integers, refuse_sharding, sizes
from minijax.arrays.dtypes import canonicalize_dtype
from minijax.arrays.numerics import wide
from minijax.core import Array, Primitive
from minijax.lax.contraction import Precision
from minijax.typing import ArrayLike
from minijax.windows.convolution_shapes import (
    ConvDimensionNumbers,
    conv_dimension_numbers,
    convolution_shape,
    convolution_sliding,
    in_groups,
)
from minijax.windows.geometry import dilated, integers_or, padtype_to_pads, spread


def windows_of(xp, x, sliding, fill=0):
    """Return a view of all windows: the axes that count them, then those within."""
    shape, x = (*sliding.counts(x.shape), *sliding.sizes), spread(xp, x, sliding, fill)
    between = [a * b for a, b in zip(x.strides, sliding.strides)]
    inside = [a * b for a, b in zip(x.strides, sliding.window_dilation)]
    return xp.lib.stride_tricks.as_strided(x, shape, (*between, *inside))


def _convolved(xp, lhs, rhs, **params):
    lhs_spec, rhs_spec, out_spec = params["dimension_numbers"]
    groups = params["feature_group_count"] * params["batch_group_count"]
    sliding = convolution_sliding(lhs, rhs, params)
    dtype = wide(params["preferred_element_type"] or lhs.dtype)
    split = int(params["feature_group_count"] > 1)
    x = in_groups(lhs.astype(dtype, copy=False).transpose(lhs_spec), split, groups)
    w = in_groups(rhs.astype(dtype, copy=False).transpose(rhs_spec), 0, groups)
    sums = _products(xp, windows_of(xp, x, sliding.behind(3)), w)
    order = (1, 0, sums.ndim - 1, *range(2, sums.ndim - 1))
    batch, _, width, *space = sizes(sums.shape, order)
    result = sums.transpose(order).reshape((batch, groups * width, *space))
    return result.transpose(np.argsort(out_spec))


def _products(xp, windows, w):
    """Multiply windows by numbers, group by group: a product of matrices for each."""
    groups, batch, features, *space = windows.shape[: w.ndim]
    terms, space_axes = math.prod(w.shape[2:]), range(3, w.ndim)
    order = (0, 1, *space_axes, 2, *range(w.ndim, windows.ndim))
    rows = windows.transpose(order).reshape((groups, batch * math.prod(space), terms))
    columns = w.reshape((groups, w.shape[1], terms)).swapaxes(1, 2)
    return xp.matmul(rows, columns).reshape((groups, batch, *space, w.shape[1]))


conv_general_dilated_p = Primitive("conv_general_dilated")
primitive_rules(conv_general_dilated_p, convolution_shape, _convolved)


def conv_general_dilated(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Multiply each window of `lhs` by `rhs`, and sum.

    Args:
      lhs: an array with an axis of examples, one of features, and axes of space.
      rhs: an array of the same dtype: features of the result, features that are summed
        over (those of one group), and the axes of the window.
      window_strides: by how much the window moves along each axis of space.
      padding: ``"SAME"``, ``"VALID"``, ``"SAME_LOWER"``, or for each axis of space how
        many zeros are put in front of it and behind it.
      lhs_dilation, rhs_dilation: distances of neighbours in the array, and in the
        window; with zeros between them.
      dimension_numbers: which axis is which, see `conv_dimension_numbers`.
      feature_group_count: in how many groups features are, each with its own window.
      batch_group_count: in how many groups examples are, each with its own window.
      precision: a `Precision`, its name, or a pair; it changes nothing.
      preferred_element_type: the dtype of the result; by default that of `lhs`.
      out_sharding: None.

    Returns:
      An array of the axes that `dimension_numbers` say.

    Raises:
      TypeError, ValueError: if ranks, dtypes, features or groups do not fit.

    Reference: ``jax.lax.conv_general_dilated``.
    """
    refuse_sharding("conv_general_dilated", out_sharding)
    avals, ones = (typeof(lhs), typeof(rhs)), (1,) * (typeof(rhs).ndim - 2)
    numbers = conv_dimension_numbers(avals[0].shape, avals[1].shape, dimension_numbers)
    numbers = ConvDimensionNumbers(*map(integers, numbers))
    dilations = [integers_or(x, ones) for x in (lhs_dilation, rhs_dilation)]
    strides = integers(window_strides)
    padding = _pads(avals, numbers, strides, padding, dilations)
    if preferred_element_type is not None:
        preferred_element_type = canonicalize_dtype(preferred_element_type)
    [result] = conv_general_dilated_p.bind(
        lhs,
        rhs,
        window_strides=strides,
        padding=padding,
        lhs_dilation=dilations[0],
        rhs_dilation=dilations[1],
        dimension_numbers=numbers,
        feature_group_count=as_integer(feature_group_count, "feature_group_count"),
        batch_group_count=as_integer(batch_group_count, "batch_group_count"),
        precision=_precisions(precision),
        preferred_element_type=preferred_element_type,
        out_sharding=None,
    )
    return result


def _pads(avals, numbers, strides, padding, dilations):
    (lhs, rhs), (lhs_spec, rhs_spec, _) = avals, numbers
    space, window = sizes(lhs.shape, lhs_spec[2:]), sizes(rhs.shape, rhs_spec[2:])
    if not isinstance(padding, str):
        return _pairs(padding)
    if max(dilations[0], default=1) > 1:
        raise ValueError(
            "conv_general_dilated takes no padding by name together with lhs_dilation: "
            f"got {padding!r}. Give pairs of numbers, or use conv_transpose."
        )
    if len(strides) != len(window):
        raise ValueError(
            "conv_general_dilated: window and window_strides must have the same number "
            f"of dimensions, but got {len(window)} and {len(strides)}."
        )
    wide_window = [*map(dilated, window, dilations[1])]
    return tuple(padtype_to_pads(space, wide_window, strides, padding))


def _pairs(padding):
    try:
        return tuple(integers((low, high)) for low, high in padding)
    except (TypeError, ValueError):
        raise ValueError(
            "padding argument to conv_general_dilated should be a string or a sequence "
            f"of (low, high) pairs, got {padding!r}."
        ) from None


def _precisions(precision):
    if precision is None:
        return None
    pair = precision if isinstance(precision, tuple | list) else (precision,) * 2
    return tuple(
        x if x is None else Precision(x.lower() if isinstance(x, str) else x)
        for x in pair
    )
