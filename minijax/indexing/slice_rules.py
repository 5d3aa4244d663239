"""The columns of dynamic slices and their updates, and kernels with computed places.

Reference: ``jax._src.lax.slicing``.
"""

# Made from chapters/28_indexing_ground.md by `make chapter`;
# edit the chapter, not this file.

import numpy as np

from minijax import lax
from minijax.arrays.avals import typeof
from minijax.arrays.dtypes import kind_of
from minijax.emitted.emission import python_rules
from minijax.emitted.evaluations import write_evaluation
from minijax.forward.rules import instantiate, jvp_rules
from minijax.indexing.dimension_numbers import GatherScatterMode, Windows
from minijax.indexing.dynamic_slices import (
    INT64,
    dynamic_slice_p,
    dynamic_update_slice_p,
)
from minijax.jitting.costs import BYTES, cost_rules, nbytes
from minijax.kernels.building import KernelBuilder, NoKernel
from minijax.kernels.program_steps import kernel_rules
from minijax.kernels.views import Buffer, sliced, stretched
from minijax.lax.conversion import astype
from minijax.reverse.transposition import Linear, refuse_nonlinear, transpose_rules


def _slice_jvp(primals, tangents, **sizes):
    (x, *starts), x_dot = primals, tangents[0]
    results = dynamic_slice_p.bind(x, *starts, **sizes)
    if x_dot is None:
        return results, [None]
    return results, dynamic_slice_p.bind(x_dot, *starts, **sizes)


def _update_jvp(primals, tangents):
    x, update, *starts = primals
    results = dynamic_update_slice_p.bind(x, update, *starts)
    if tangents[0] is None and tangents[1] is None:
        return results, [None]
    moving = instantiate(primals[:2], tangents[:2])
    return results, dynamic_update_slice_p.bind(*moving, *starts)


jvp_rules[dynamic_slice_p] = _slice_jvp
jvp_rules[dynamic_update_slice_p] = _update_jvp


def _slice_transpose(cotangents, x, *starts, slice_sizes):
    [ct], still = cotangents, [None] * len(starts)
    linear = [isinstance(operand, Linear) for operand in (x, *starts)]
    refuse_nonlinear(dynamic_slice_p, [True, *still], linear, bilinear=False)
    zeros = lax.full(x.aval.shape, astype(0, typeof(ct).dtype))
    return [*dynamic_update_slice_p.bind(zeros, ct, *starts), *still]


def _update_transpose(cotangents, x, update, *starts):
    [ct], still = cotangents, [None] * len(starts)
    linear = [isinstance(operand, Linear) for operand in (x, update, *starts)]
    refuse_nonlinear(dynamic_update_slice_p, [True, True, *still], linear, False)
    aval, back = update.aval if linear[1] else typeof(update), [None, None]
    if linear[0]:
        zeros = lax.full(aval.shape, 0, typeof(ct).dtype)
        [back[0]] = dynamic_update_slice_p.bind(ct, zeros, *starts)
    if linear[1]:
        [back[1]] = dynamic_slice_p.bind(ct, *starts, slice_sizes=aval.shape)
    return [*back, *still]


transpose_rules[dynamic_slice_p] = _slice_transpose
transpose_rules[dynamic_update_slice_p] = _update_transpose


def clamped(k, number, most):
    """Add the nodes of an integer, moved between 0 and `most`, as int64."""
    info = np.iinfo(number.dtype)
    if most < info.max:
        number = k.min(number, most)
    return k.convert(number if info.min == 0 else k.max(number, 0), INT64)


def terms_of_box(k, starts, box, x):
    """Return the computed parts of the place of a box within an array `x`."""
    terms = []
    for start, size, whole, stride in zip(starts, box, x.shape, x.strides):
        if size < whole:
            place = clamped(k, k.load(start), whole - size)
            terms.append((place, stride, whole - size + 1))
    return terms


def in_memory(lowering, x):
    """Return an array that has memory: a copy, if it is one number everywhere."""
    return x if isinstance(x.source, Buffer) else lowering.copy(x)


def _lower_slice(lowering, eqn, x, *starts):
    [var] = eqn.outvars
    x, k = in_memory(lowering, x), KernelBuilder("dynamic_slice", var.aval.shape)
    terms = terms_of_box(k, starts, var.aval.shape, x)
    box = k.load(x.replace(var.aval.shape, x.strides), terms=terms)
    return [lowering.launch(k, box, var.aval)]


def _lower_update(lowering, eqn, x, update, *starts):
    [var] = eqn.outvars
    out = lowering.copy(x)
    k = KernelBuilder("dynamic_update_slice", update.shape)
    terms = terms_of_box(k, starts, update.shape, out)
    terms = terms or [(k.constant(0, INT64), 0, 1)]
    place = out.replace(update.shape, out.strides)
    k.update(place, k.load(update), "set", terms, distinct=True)
    lowering.run(k)
    return [out]


kernel_rules[dynamic_slice_p] = _lower_slice
kernel_rules[dynamic_update_slice_p] = _lower_update


def _cost_of_slice(eqn):
    return {BYTES: 2 * nbytes(eqn.outvars[0].aval)}


def _cost_of_update(eqn):
    return {BYTES: 2 * nbytes(eqn.invars[1].aval)}


cost_rules[dynamic_slice_p] = _cost_of_slice
cost_rules[dynamic_update_slice_p] = _cost_of_update
python_rules[dynamic_slice_p] = python_rules[dynamic_update_slice_p] = write_evaluation


def computed_places(k, x, indices, windows, shape, sizes, clip):
    """Return an array along the axes of a kernel, and computed parts of its places.

    Args:
      k: the `KernelBuilder`.
      x, indices: views of the operand and of the indices.
      windows: the `Windows`.
      shape: of the result or of the updates: the kernel's axes.
      sizes: of a window, along each axis of the operand.
      clip: whether a window is moved inside; if not, it counts only if it is inside.
    """
    counting, strides = windows.counting(len(shape)), [0] * len(shape)
    for axis, place in zip(windows.kept(len(x.shape)), windows.inside):
        strides[place] = x.strides[axis]
    for axis, place in zip(windows.shared, windows.index_shared):
        strides[counting[place]] = x.strides[axis]
    terms = []
    for number, axis in enumerate(windows.mapped):
        most = x.shape[axis] - sizes[axis]
        place = k.load(stretched(number_of(indices, number), shape, counting))
        place = clamped(k, place, most) if clip else k.convert(place, INT64)
        terms.append((place, x.strides[axis], most + 1))
    return x.replace(shape, strides), terms


def number_of(indices, number):
    """Return the view of one of the numbers that all indices have."""
    *shape, width = indices.shape
    starts = [0] * len(shape) + [number]
    column = sliced(indices, starts, (*shape, 1), [1] * (len(shape) + 1))
    return column.replace(shape, column.strides[:-1])


BOOLEAN = {"set": "set", "add": "or", "mul": "and", "min": "and", "max": "or"}


def lower_scatter(how, lowering, eqn, x, indices, updates):
    """Add the kernel of a scatter, which changes a copy of the operand."""
    params = eqn.params
    if 0 in updates.shape or (how == "set" and params["update_jaxpr"] is not None):
        raise NoKernel("there is nothing to scatter, or a function to apply")
    windows, out = Windows(*params["dimension_numbers"]), lowering.copy(x)
    k = KernelBuilder(eqn.primitive.name.replace("-", "_"), updates.shape)
    sizes = windows.sizes(len(x.shape), updates.shape)
    clip = params["mode"] is GatherScatterMode.CLIP
    args = windows, updates.shape, sizes, clip
    place, terms = computed_places(k, out, indices, *args)
    value = k.load(updates)
    if how == "sub":
        how, value = "add", k.neg(value)
    how = BOOLEAN[how] if kind_of(x.dtype) == "b" else how
    terms = terms or [(k.constant(0, INT64), 0, 1)]
    k.update(place, value, how, terms, distinct=params["unique_indices"])
    lowering.run(k)
    return [out]
