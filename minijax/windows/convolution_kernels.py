# Made from chapters/30_windows.md by `make chapter`;
# edit the chapter, not this file.
"""The kernel rule of a convolution: folds over windows, or tiles of products.

Reference: ``jax._src.lax.convolution``.
"""

import numpy as np

from minijax.arrays.avals import ShapedArray
from minijax.arrays.numerics import wide
from minijax.kernels.building import KernelBuilder
from minijax.kernels.program_steps import kernel_rules
from minijax.kernels.views import everywhere, permuted, reshaped, stretched
from minijax.matmul.lowering import in_memory
from minijax.windows.convolution import conv_general_dilated_p
from minijax.windows.convolution_shapes import convolution_sliding
from minijax.windows.geometry import phases_of
from minijax.windows.tap_lowering import multiply_taps, suits_tiles
from minijax.windows.window_views import (
    groups_first,
    is_empty,
    load_windows,
    taps_in,
    windows_in,
)


def fold_windows(lowering, phases, x, w, out, dtype):
    """Add a kernel that computes the windows of some phases.

    Args:
      phases: a `Phase` for each axis of space.
      x, w, out: views with groups in front: of the array, with examples, features and
        space; of the window, with features of the result, features and taps; of the
        result, with examples, features and space.
      dtype: to multiply and add in.
    """
    y, w = windows_in(out, phases, 3), taps_in(w, phases, 3)
    rank, terms = len(y.shape), len(y.shape) + len(phases)
    k = KernelBuilder("conv_general_dilated", (*y.shape, *w.shape[3:], w.shape[2]))
    space, taps = range(3, rank), range(rank, terms)
    if is_empty(phases) or not w.shape[2]:
        total = k.constant(0, dtype)
    else:
        elements = load_windows(k, x, phases, (0, 1, terms), space, taps)
        numbers = k.load(stretched(w, k.sizes, (0, 2, terms, *taps)))
        pair = [k.convert(node, dtype) for node in (elements, numbers)]
        how = ("or", "and") if dtype.kind == "b" else ("add", "mul")
        total = k.fold(how[0], (*taps, terms), k.apply(how[1], *pair))
    lowering.launch_into(y, k, k.convert(total, out.dtype))


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


def in_order(lowering, found, spec, aval):
    """Return the view of a result without groups, with its axes where they belong."""
    groups, batch, features, *space = range(len(found.shape))
    order = (batch, groups, features, *space)
    found = permuted(found, order)
    if found.shape[1] > 1:
        found = lowering.copy(found, ShapedArray(found.shape, found.dtype))
    shape = (found.shape[0], found.shape[1] * found.shape[2], *found.shape[3:])
    found = permuted(reshaped(found, shape), np.argsort(spec))
    return in_memory(lowering, found, aval.dtype)
