# Made from chapters/16_kernels.md by `make chapter`;
# edit the chapter, not this file.
"""Kernel rules of primitives that rearrange, join and fold arrays."""

from minijax import lax
from minijax.callbacks import io_callback_p, pure_callback_p
from minijax.conditional_rules import empty_p, stop_gradient_p
from minijax.conditionals import cond_p
from minijax.debugging import debug_callback_p, debug_print_p
from minijax.jit_primitive import jit_p
from minijax.kernel_building import KernelBuilder, NoKernel, parts
from minijax.kernel_steps import kernel_rules
from minijax.kernels import Affine, Guard
from minijax.lax.reductions import countable
from minijax.lax.shaping import without
from minijax.layouts import (
    Slot,
    everywhere,
    permuted,
    reshaped,
    reversed_along,
    sliced,
    stretched,
)
from minijax.python_arrays import COLLECTIVES, GONE
from minijax.scan_primitive import scan_p
from minijax.while_loops import while_p


def viewing(view):
    """Return the rule of a primitive whose result is a view of its operand.

    Args:
      view: a function of the result's shape, the operand's layout and the parameters.
    """

    def rule(lowering, eqn, operand):
        [var] = eqn.outvars
        return [view(var.aval.shape, operand, **eqn.params)]

    return rule


def _slice(shape, x, start_indices, limit_indices, strides):
    return sliced(x, start_indices, shape, strides or (1,) * len(shape))


def _squeeze(shape, x, dimensions):
    return permuted(x, without(range(len(x.shape)), dimensions))


def _broadcast(_, x, shape, broadcast_dimensions):
    return stretched(x, shape, broadcast_dimensions)


kernel_rules[lax.broadcast_in_dim_p] = viewing(_broadcast)
kernel_rules[lax.transpose_p] = viewing(
    lambda _, x, permutation: permuted(x, permutation)
)
kernel_rules[lax.rev_p] = viewing(
    lambda _, x, dimensions: reversed_along(x, dimensions)
)
kernel_rules[lax.slice_p] = viewing(_slice)
kernel_rules[lax.squeeze_p] = viewing(_squeeze)
kernel_rules[lax.real_p] = viewing(lambda _, x: parts(x)[0])
kernel_rules[lax.imag_p] = viewing(lambda _, x: parts(x)[1])


def _reshape(lowering, eqn, operand, **params):
    shape = eqn.outvars[0].aval.shape
    view = reshaped(operand, shape)
    if view is None:
        view = reshaped(lowering.copy(operand, eqn.invars[0].aval), shape)
    return [view]


def _bitcast(lowering, eqn, operand):
    dtype = eqn.params["new_dtype"]
    if dtype.itemsize != operand.dtype.itemsize:
        raise NoKernel("the width of the numbers changes")
    if isinstance(operand.source, Slot):
        return [operand._replace(dtype=dtype)]
    return [everywhere(operand.source.view(dtype), operand.shape)]


def _concatenate(lowering, eqn, *operands):
    out, start = lowering.slot(eqn.outvars[0].aval), 0
    for operand in operands:
        starts = [0] * len(operand.shape)
        starts[eqn.params["dimension"]] = start
        start += operand.shape[eqn.params["dimension"]]
        part = sliced(out, starts, operand.shape, [1] * len(starts))
        k = KernelBuilder("concatenate", operand.shape)
        lowering.launch_into(part, k, k.load(operand))
    return [out]


kernel_rules[lax.reshape_p] = _reshape
kernel_rules[lax.bitcast_convert_type_p] = _bitcast
kernel_rules[lax.concatenate_p] = _concatenate


def _pad(lowering, eqn, x, value):
    gaps = [gap for _, _, gap in eqn.params["padding_config"]]
    guarded = isinstance(x.source, Slot) and not isinstance(value.source, Slot)
    rule = _guarded_pad if guarded and not any(gaps) else _filled_pad
    return [rule(lowering, eqn, x, value)]


def _guarded_pad(lowering, eqn, x, value):
    """Load where there is an element, and the padding value elsewhere."""
    aval, lows = eqn.outvars[0].aval, [low for low, *_ in eqn.params["padding_config"]]
    shifted = sliced(x, [-low for low in lows], aval.shape, [1] * aval.ndim)
    guards = [
        Guard(Affine(-low, tuple(int(k == axis) for k in range(aval.ndim))), size)
        for axis, (low, size) in enumerate(zip(lows, x.shape))
        if low or size != aval.shape[axis]
    ]
    k = KernelBuilder("pad", aval.shape)
    return lowering.launch(k, k.load(shifted, guards, value.source), aval)


def _filled_pad(lowering, eqn, x, value):
    """Fill with the padding value, then store the elements in their places."""
    aval, config = eqn.outvars[0].aval, eqn.params["padding_config"]
    k = KernelBuilder("pad", aval.shape)
    out = lowering.launch(k, k.load(value), aval)
    steps = [gap + 1 for _, _, gap in config]
    first = [max(0, -(low // step)) for (low, *_), step in zip(config, steps)]
    ends = [
        min(size, -((low - length) // step))
        for size, length, (low, *_), step in zip(x.shape, aval.shape, config, steps)
    ]
    counts = [max(0, end - start) for start, end in zip(first, ends)]
    inner = sliced(x, first, counts, [1] * aval.ndim)
    starts = [low + n * step for n, (low, *_), step in zip(first, config, steps)]
    k = KernelBuilder("pad", counts)
    lowering.launch_into(sliced(out, starts, counts, steps), k, k.load(inner))
    return out


kernel_rules[lax.pad_p] = _pad


def folding(how):
    """Return the rule of a primitive that folds axes; they become the inner loops."""

    def rule(lowering, eqn, operand):
        [var], axes = eqn.outvars, eqn.params["axes"]
        kept = without(range(len(operand.shape)), axes)
        x = permuted(operand, (*kept, *axes))
        k = KernelBuilder(eqn.primitive.name, x.shape)
        found = k.fold(how, range(len(kept), len(x.shape)), k.load(x))
        dtype = eqn.params.get("index_dtype")
        if dtype and not countable(operand.shape[axes[0]], dtype):
            raise NoKernel("The evaluation refuses an axis that cannot be numbered.")
        found = found if dtype is None else k.convert(found, dtype)
        return [lowering.launch(k, found, var.aval)]

    return rule


for _how, _folds in {
    "add": lax.reduce_sum_p, "mul": lax.reduce_prod_p, "max": lax.reduce_max_p,
    "min": lax.reduce_min_p, "and": lax.reduce_and_p, "or": lax.reduce_or_p,
    "xor": lax.reduce_xor_p, "argmax": lax.argmax_p, "argmin": lax.argmin_p,
}.items():  # fmt: skip
    kernel_rules[_folds] = folding(_how)

kernel_rules[jit_p] = lambda lowering, eqn, *operands: lowering.program(
    eqn.params["jaxpr"], operands
)


def _empty(lowering, eqn):
    """Return an array that nobody reads: zeros that need no memory."""
    aval = eqn.outvars[0].aval
    return [everywhere(aval.dtype.type(0), aval.shape)]


kernel_rules[empty_p] = _empty
kernel_rules[stop_gradient_p] = viewing(lambda _, x: x)


_CALLS = {
    "It contains programs, and Python decides which of them runs.": [
        cond_p, while_p, scan_p,
    ],
    "It calls Python, on the other side of the border.": [
        pure_callback_p, io_callback_p, debug_callback_p, debug_print_p,
    ],
    "It is the work of a library, which NumPy calls.": [lax.dot_general_p],
    "Its elements are made one from the other; a kernel makes each by itself.": [
        lax.cumsum_p, lax.cumprod_p, lax.cummax_p, lax.cummin_p, lax.cumlogsumexp_p,
    ],
    GONE: COLLECTIVES,
}  # fmt: skip
for _why, _primitives in _CALLS.items():
    _unruled = [p for p in _primitives if p not in kernel_rules]
    kernel_rules.reasons.update(dict.fromkeys(_unruled, _why))
