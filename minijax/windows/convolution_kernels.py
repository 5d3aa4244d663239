"""The kernel rule of a convolution: folds over windows, or tiles of products.

Reference: ``jax._src.lax.convolution``.
"""

# Made from chapters/30_windows.md by `make chapter`;
# edit the chapter, not this file.

from minijax.arrays.numerics import wide
from minijax.kernels.program_steps import kernel_rules
from minijax.kernels.views import everywhere, permuted
from minijax.matmul.lowering import in_memory
from minijax.windows.convolution import conv_general_dilated_p
from minijax.windows.convolution_shapes import convolution_sliding
from minijax.windows.geometry import phases_of
from minijax.windows.tap_lowering import multiply_taps, suits_tiles
from minijax.windows.window_views import fold_windows, groups_first, in_order


def lower_convolution(lowering, eqn, lhs, rhs):
    """Add the steps of a convolution; return the view of its result."""
    [var], params, numbers = eqn.outvars, eqn.params, eqn.params["dimension_numbers"]
    sliding, dtype = convolution_sliding(lhs, rhs, params), wide(var.aval.dtype)
    groups = params["feature_group_count"] * params["batch_group_count"]
    split = int(params["feature_group_count"] > 1)
    x = permuted(in_memory(lowering, lhs, lhs.dtype), numbers.lhs_spec)
    x = groups_first(x, split, groups)
    w = groups_first(permuted(rhs, numbers.rhs_spec), 0, groups)
    if suits_tiles(x, w, var.aval, dtype):
        found = multiply_taps(lowering, sliding, x, w, dtype)
        return [in_order(lowering, found, numbers.out_spec, var.aval)]
    if not var.aval.size:
        return [everywhere(var.aval.dtype.type(0), var.aval.shape)]
    out = lowering.allocate(var.aval)
    y = groups_first(permuted(out, numbers.out_spec), 1, groups)
    for phases in phases_of(sliding, x.shape[3:]):
        fold_windows(lowering, phases, x, w, y, dtype)
    return [out]


kernel_rules[conv_general_dilated_p] = lower_convolution
