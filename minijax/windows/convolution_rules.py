"""The columns of a convolution: derivatives, batches, costs.

Reference: ``jax._src.lax.convolution``.
"""

# Made from chapters/30_windows.md by `make chapter`;
# edit the chapter, not this file.

from minijax import lax
from minijax.arrays.array import shape_rules
from minijax.arrays.avals import typeof
from minijax.arrays.checks import sizes, without
from minijax.batching.rules import vmap_rules
from minijax.emitted.emission import python_rules
from minijax.emitted.evaluations import write_evaluation
from minijax.forward.rules import jvp_rules, partials_rule
from minijax.jitting.costs import FLOPS, _moved, cost_rules
from minijax.lax.conversion import astype
from minijax.reverse.transposition import transposes
from minijax.windows.convolution import conv_general_dilated_p
from minijax.windows.convolution_shapes import (
    ConvDimensionNumbers,
    convolution_sliding,
    exchanged,
    merge_axis,
    merge_inside,
    move_groups,
    split_axis,
)
from minijax.windows.geometry import lengths


def _by_lhs(x_dot, z, lhs, rhs, **params):
    return conv_general_dilated_p.bind(x_dot, rhs, **params)[0]


def _by_rhs(w_dot, z, lhs, rhs, **params):
    return conv_general_dilated_p.bind(lhs, w_dot, **params)[0]


jvp_rules[conv_general_dilated_p] = partials_rule(
    conv_general_dilated_p, _by_lhs, _by_rhs
)


def transpose_lhs(ct, lhs, rhs, **params):
    """Return the cotangent of the array: that of the result, by reversed windows."""
    lhs_spec, rhs_spec, out_spec = params["dimension_numbers"]
    groups = params["feature_group_count"] * params["batch_group_count"]
    sliding = convolution_sliding(lhs.aval, typeof(rhs), params)
    space = lengths(sliding, sizes(lhs.aval.shape, lhs_spec[2:]))
    padding = [(w - low - 1, n + low - out) for n, w, out, (low, _) in space]
    back = lax.rev(move_groups(rhs, groups, *rhs_spec[:2]), rhs_spec[2:])
    numbers = ConvDimensionNumbers(out_spec, exchanged(rhs_spec), lhs_spec)
    changed = {"window_strides": sliding.base_dilation, "lhs_dilation": sliding.strides}
    changed |= {"padding": tuple(padding), "dimension_numbers": numbers}
    changed |= {"feature_group_count": groups, "batch_group_count": 1}
    found = bind_like(params, ct, back, **changed)
    if params["batch_group_count"] > 1:
        found = move_groups(found, groups, lhs_spec[1], lhs_spec[0])
    return astype(found, lhs.aval.dtype)


def transpose_rhs(ct, lhs, rhs, **params):
    """Return the cotangent of the window: the array, by windows as large as `ct`."""
    if 0 in typeof(ct).shape:
        return lax.full(rhs.aval.shape, 0, rhs.aval.dtype)
    lhs_spec, rhs_spec, out_spec = map(exchanged, params["dimension_numbers"])
    sliding = convolution_sliding(typeof(lhs), rhs.aval, params)
    space = lengths(sliding, sizes(typeof(lhs).shape, lhs_spec[2:]))
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
    return conv_general_dilated_p.bind(lhs, rhs, **{**params, **changed})[0]


transposes(conv_general_dilated_p, transpose_lhs, transpose_rhs, bilinear=True)


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
        lhs = merge_inside(lhs, lhs_dim, lhs_spec[0], groups)
    elif lhs_dim is None:
        groups = params[grouped[0]] if grouped else 1
        rhs, place = merge_inside(rhs, rhs_dim, rhs_spec[0], groups), out_spec[1]
    else:
        kind = grouped[0] if grouped else kinds[0]
        lhs = merge_axis(lhs, lhs_dim, lhs_spec[kind == kinds[0]])
        rhs, place = merge_axis(rhs, rhs_dim, rhs_spec[0]), out_spec[1]
        params, groups = {**params, kind: params[kind] * axis.size}, 1
    [out] = conv_general_dilated_p.bind(lhs, rhs, **params)
    if rhs_dim is None or groups == 1:
        return [split_axis(out, place, axis.size)], [place]
    out = split_axis(split_axis(out, place, groups), place + 1, axis.size)
    return [merge_axis(out, place, place + 1)], [place]


def _no_results(args, dims, params):
    """Return the results for a batch of no examples: there is nothing to convolve."""
    avals = [typeof(x) for x in args]
    each = [
        aval if dim is None else aval.update(shape=without(aval.shape, (dim,)))
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
