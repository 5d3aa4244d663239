"""Convolution: the primitive, its columns, and its kernel rule.

References: ``jax.lax.conv_general_dilated``, ``jax._src.lax.convolution``.
"""

# Made from chapters/30_windows.md by `make chapter`;
# edit the chapter, not this file.

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import lax
from minijax.arrays.array import def_shape_and_impl, shape_rules, typeof
from minijax.arrays.dtypes import canonicalize_dtype
from minijax.arrays.numerics import (
    canonicalize_int_tuple,
    operator_index,
    remove_axes,
    sizes_of_axes,
    sum_accumulator_dtype,
)
from minijax.arrays.out_sharding import with_out_sharding
from minijax.batching.vmap import vmap_rules
from minijax.core import Array, Primitive
from minijax.forward_mode.jvp import jvp_rules, partial_derivatives_rule
from minijax.jitting.stages import FLOPS, _moved, cost_rules
from minijax.kernels.builder import broadcast_scalar_view, transpose_view
from minijax.kernels.lowering import kernel_rules
from minijax.lax.arithmetic import astype
from minijax.lax.reductions import canonicalize_precision
from minijax.matmul.lowering import materialize
from minijax.python_backend.codegen import python_rules
from minijax.python_backend.source import write_evaluation
from minijax.reverse_mode.backward_pass import deftranspose
from minijax.typing import ArrayLike
from minijax.windows.convolution_tiles import (
    fold_windows,
    groups_first,
    is_tiled_conv_profitable,
    lower_tiled_conv,
    permute_to_out_spec,
)
from minijax.windows.geometry import (
    ConvDimensionNumbers,
    conv_dimension_numbers,
    conv_shape_rule,
    conv_window,
    dilate_dim,
    dilated_lengths,
    int_tuple_or_default,
    merge_bdim_into_groups,
    move_feature_groups,
    pad_and_dilate,
    padtype_to_pads,
    phases_of,
    reshape_axis_into,
    reshape_axis_out_of,
    split_feature_groups,
    swap_first_two,
)

# Convolution: windows of an array, each multiplied by the same numbers and summed.


def sliding_window_view(xp, x, sliding, fill=0):
    """Return a view of all windows: the axes that count them, then those within."""
    shape = (*sliding.counts(x.shape), *sliding.sizes)
    x = pad_and_dilate(xp, x, sliding, fill)
    between = [a * b for a, b in zip(x.strides, sliding.strides)]
    inside = [a * b for a, b in zip(x.strides, sliding.window_dilation)]
    return xp.lib.stride_tricks.as_strided(x, shape, (*between, *inside))


def _convolved(xp, lhs, rhs, **params):
    lhs_spec, rhs_spec, out_spec = params["dimension_numbers"]
    groups = params["feature_group_count"] * params["batch_group_count"]
    sliding = conv_window(lhs, rhs, params)
    dtype = sum_accumulator_dtype(params["preferred_element_type"] or lhs.dtype)
    split = int(params["feature_group_count"] > 1)
    x = split_feature_groups(
        lhs.astype(dtype, copy=False).transpose(lhs_spec), split, groups
    )
    w = split_feature_groups(
        rhs.astype(dtype, copy=False).transpose(rhs_spec), 0, groups
    )
    sums = _products(xp, sliding_window_view(xp, x, sliding.behind(3)), w)
    order = (1, 0, sums.ndim - 1, *range(2, sums.ndim - 1))
    batch, _, width, *space = sizes_of_axes(sums.shape, order)
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
def_shape_and_impl(conv_general_dilated_p, conv_shape_rule, _convolved)


@with_out_sharding
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
      precision: as in `dot_general`; it changes nothing.
      preferred_element_type: the dtype of the result; by default that of `lhs`.
      out_sharding: where the result lies on a mesh.

    Returns:
      An array of the axes that `dimension_numbers` say.

    Raises:
      TypeError, ValueError: if ranks, dtypes, features or groups do not fit.

    Reference: ``jax.lax.conv_general_dilated``.
    """
    avals, ones = (typeof(lhs), typeof(rhs)), (1,) * (typeof(rhs).ndim - 2)
    numbers = conv_dimension_numbers(avals[0].shape, avals[1].shape, dimension_numbers)
    numbers = ConvDimensionNumbers(*map(canonicalize_int_tuple, numbers))
    dilations = [int_tuple_or_default(x, ones) for x in (lhs_dilation, rhs_dilation)]
    strides = canonicalize_int_tuple(window_strides)
    padding = _pads(avals, numbers, strides, padding, dilations)
    if preferred_element_type is not None:
        preferred_element_type = canonicalize_dtype(preferred_element_type)
    return conv_general_dilated_p.bind(
        lhs,
        rhs,
        window_strides=strides,
        padding=padding,
        lhs_dilation=dilations[0],
        rhs_dilation=dilations[1],
        dimension_numbers=numbers,
        feature_group_count=operator_index(feature_group_count, "feature_group_count"),
        batch_group_count=operator_index(batch_group_count, "batch_group_count"),
        precision=canonicalize_precision(precision),
        preferred_element_type=preferred_element_type,
        out_sharding=None,
    )


def _pads(avals, numbers, strides, padding, dilations):
    (lhs, rhs), (lhs_spec, rhs_spec, _) = avals, numbers
    space = sizes_of_axes(lhs.shape, lhs_spec[2:])
    window = sizes_of_axes(rhs.shape, rhs_spec[2:])
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
    wide_window = [*map(dilate_dim, window, dilations[1])]
    return tuple(padtype_to_pads(space, wide_window, strides, padding))


def _pairs(padding):
    try:
        return tuple(canonicalize_int_tuple((low, high)) for low, high in padding)
    except (TypeError, ValueError):
        raise ValueError(
            "padding argument to conv_general_dilated should be a string or a sequence "
            f"of (low, high) pairs, got {padding!r}."
        ) from None


# The columns of a convolution: derivatives, batches, costs.


def _by_lhs(x_dot, z, lhs, rhs, **params):
    return conv_general_dilated_p.bind(x_dot, rhs, **params)


def _by_rhs(w_dot, z, lhs, rhs, **params):
    return conv_general_dilated_p.bind(lhs, w_dot, **params)


jvp_rules[conv_general_dilated_p] = partial_derivatives_rule(
    conv_general_dilated_p, _by_lhs, _by_rhs
)


def transpose_lhs(ct, lhs, rhs, **params):
    """Return the cotangent of the array: that of the result, by reversed windows."""
    lhs_spec, rhs_spec, out_spec = params["dimension_numbers"]
    groups = params["feature_group_count"] * params["batch_group_count"]
    sliding = conv_window(lhs.aval, typeof(rhs), params)
    space = dilated_lengths(sliding, sizes_of_axes(lhs.aval.shape, lhs_spec[2:]))
    padding = [(w - low - 1, n + low - out) for n, w, out, (low, _) in space]
    back = lax.rev(move_feature_groups(rhs, groups, *rhs_spec[:2]), rhs_spec[2:])
    numbers = ConvDimensionNumbers(out_spec, swap_first_two(rhs_spec), lhs_spec)
    changed = {"window_strides": sliding.base_dilation, "lhs_dilation": sliding.strides}
    changed |= {"padding": tuple(padding), "dimension_numbers": numbers}
    changed |= {"feature_group_count": groups, "batch_group_count": 1}
    found = bind_like(params, ct, back, **changed)
    if params["batch_group_count"] > 1:
        found = move_feature_groups(found, groups, lhs_spec[1], lhs_spec[0])
    return astype(found, lhs.aval.dtype)


def transpose_rhs(ct, lhs, rhs, **params):
    """Return the cotangent of the window: the array, by windows as large as `ct`."""
    if 0 in typeof(ct).shape:
        return lax.full(rhs.aval.shape, 0, rhs.aval.dtype)
    lhs_spec, rhs_spec, out_spec = map(swap_first_two, params["dimension_numbers"])
    sliding = conv_window(typeof(lhs), rhs.aval, params)
    space = dilated_lengths(sliding, sizes_of_axes(typeof(lhs).shape, lhs_spec[2:]))
    padding = [(low, out - n + w - low - 1) for n, w, out, (low, _) in space]
    numbers = ConvDimensionNumbers(lhs_spec, out_spec, rhs_spec)
    changed = {"window_strides": sliding.window_dilation}
    changed |= {"rhs_dilation": sliding.strides, "padding": tuple(padding)}
    counts = {"feature_group_count": params["batch_group_count"]}
    counts |= {"batch_group_count": params["feature_group_count"]}
    found = bind_like(params, lhs, ct, dimension_numbers=numbers, **changed, **counts)
    return astype(found, rhs.aval.dtype)


def bind_like(params, lhs, rhs, **changed):
    """Bind a convolution with some parameters changed, on operands of one dtype."""
    if (dtype := params["preferred_element_type"]) is not None:
        lhs, rhs = astype(lhs, dtype), astype(rhs, dtype)
    return conv_general_dilated_p.bind(lhs, rhs, **{**params, **changed})


deftranspose(conv_general_dilated_p, transpose_lhs, transpose_rhs, bilinear=True)


def batch_convolution(axis, args, dims, **params):
    """Make one convolution of a batch: of more examples, features, or groups."""
    (lhs, rhs), (lhs_dim, rhs_dim) = args, dims
    if not axis.size:
        return [_no_results(args, dims, params)], [0]
    lhs_spec, rhs_spec, out_spec = params["dimension_numbers"]
    kinds = "feature_group_count", "batch_group_count"
    grouped = [kind for kind in kinds if params[kind] > 1]
    if rhs_dim is None:
        place = out_spec[0]
        groups = params["batch_group_count"]
        lhs = merge_bdim_into_groups(lhs, lhs_dim, lhs_spec[0], groups)
    elif lhs_dim is None:
        groups = params[grouped[0]] if grouped else 1
        rhs = merge_bdim_into_groups(rhs, rhs_dim, rhs_spec[0], groups)
        place = out_spec[1]
    else:
        kind = grouped[0] if grouped else kinds[0]
        lhs = reshape_axis_into(lhs, lhs_dim, lhs_spec[kind == kinds[0]])
        rhs, place = reshape_axis_into(rhs, rhs_dim, rhs_spec[0]), out_spec[1]
        params, groups = {**params, kind: params[kind] * axis.size}, 1
    out = conv_general_dilated_p.bind(lhs, rhs, **params)
    if rhs_dim is None or groups == 1:
        return [reshape_axis_out_of(out, place, axis.size)], [place]
    out = reshape_axis_out_of(
        reshape_axis_out_of(out, place, groups), place + 1, axis.size
    )
    return [reshape_axis_into(out, place, place + 1)], [place]


def _no_results(args, dims, params):
    """Return the results for a batch of no examples: there is nothing to convolve."""
    avals = [typeof(x) for x in args]
    each = [
        aval if dim is None else aval.update(shape=remove_axes(aval.shape, (dim,)))
        for aval, dim in zip(avals, dims)
    ]
    [out] = shape_rules[conv_general_dilated_p](*each, **params)
    return lax.full((0, *out.shape), 0, out.dtype)


vmap_rules[conv_general_dilated_p] = batch_convolution


def convolution_cost(eqn):
    """Count a product and a sum for each term."""
    rhs, spec = eqn.invars[1].aval, eqn.params["dimension_numbers"].rhs_spec
    terms = rhs.size // max(rhs.shape[spec[0]], 1)
    return {FLOPS: 2 * terms * eqn.outvars[0].aval.size} | _moved(eqn)


cost_rules[conv_general_dilated_p] = convolution_cost
python_rules[conv_general_dilated_p] = write_evaluation


# The kernel rule of a convolution: folds over windows, or tiles of products.


def lower_convolution(lowering, eqn, lhs, rhs):
    """Add the steps of a convolution; return the view of its result."""
    [var], params, numbers = eqn.outvars, eqn.params, eqn.params["dimension_numbers"]
    sliding = conv_window(lhs, rhs, params)
    dtype = sum_accumulator_dtype(var.aval.dtype)
    groups = params["feature_group_count"] * params["batch_group_count"]
    split = int(params["feature_group_count"] > 1)
    x = transpose_view(materialize(lowering, lhs, lhs.dtype), numbers.lhs_spec)
    x = groups_first(x, split, groups)
    w = groups_first(transpose_view(rhs, numbers.rhs_spec), 0, groups)
    if is_tiled_conv_profitable(x, w, var.aval, dtype):
        found = lower_tiled_conv(lowering, sliding, x, w, dtype)
        return [permute_to_out_spec(lowering, found, numbers.out_spec, var.aval)]
    if not var.aval.size:
        return [broadcast_scalar_view(var.aval.dtype.type(0), var.aval.shape)]
    out = lowering.allocate(var.aval)
    y = groups_first(transpose_view(out, numbers.out_spec), 1, groups)
    for phases in phases_of(sliding, x.shape[3:]):
        fold_windows(lowering, phases, x, w, y, dtype)
    return [out]


kernel_rules[conv_general_dilated_p] = lower_convolution
