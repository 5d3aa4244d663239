"""Lowering rules: primitives as kernels, one element each, or folded and rearranged."""

# Made from chapters/17_kernels_rest.md by `make chapter`;
# edit the chapter, not this file.

import itertools
import math

import numpy as np

from minijax import lax
from minijax.arrays.checks import without
from minijax.arrays.numerics import by_squaring, longer, wide
from minijax.arrays.transfer import device_put_p
from minijax.branches.conditionals import cond_p
from minijax.branches.rewiring import empty_p
from minijax.branches.while_loops import while_p
from minijax.callbacks.debugging import debug_callback_p, debug_print_p
from minijax.callbacks.primitives import io_callback_p, pure_callback_p
from minijax.emitted.arrays import COLLECTIVES, GONE
from minijax.forgetting.barriers import optimization_barrier_p
from minijax.forgetting.policies import name_p
from minijax.jitting.primitive import jit_p
from minijax.kernels.building import KernelBuilder, NoKernel, Pair, parts
from minijax.kernels.parts import Affine, Guard
from minijax.kernels.program_steps import by_scalar_op, elementwise, kernel_rules
from minijax.kernels.views import (
    Buffer,
    everywhere,
    permuted,
    reversed_along,
    sliced,
    stretched,
)
from minijax.lax.reductions import countable
from minijax.own_rules.calls import CALLS
from minijax.own_rules.cotangent_rules import custom_lin_p
from minijax.own_rules.function_calls import callee_rules
from minijax.own_rules.stopped_gradients import stop_gradient_p
from minijax.scans.primitive import scan_p

for _op in """
    add sub mul neg exp log sin cos tanh eq lt max min abs floor ceil ne le gt ge
    exp2 expm1 log1p sqrt cbrt tan asin acos atan atan2 sinh cosh asinh acosh atanh
    erf erfc lgamma conj not and or xor population_count clz
""".split():
    kernel_rules[getattr(lax, f"{_op}_p")] = by_scalar_op(_op)


def _rule(name, body):
    kernel_rules[getattr(lax, f"{name}_p")] = elementwise(body)


_rule("copy", lambda k, x: x)
_rule("square", lambda k, x: k.square(x))
_rule("rsqrt", lambda k, x: k.div(1, k.sqrt(x)))
_rule("logistic", lambda k, x: k.div(1, k.add(1, k.exp(k.neg(x)))))
_rule("is_finite", lambda k, x: k.lt(k.abs(x), np.inf))
_rule("clamp", lambda k, low, x, high: k.min(k.max(x, low), high))
_rule("complex", lambda k, x, y: Pair(x, y))
_rule("pow", lambda k, x, y: k.pow(x, k.convert(y, x.dtype)))


def _add_any(k, x, y):
    return k.apply("or" if x.dtype.kind == "b" else "add", x, y)


def _iota(k, dtype, shape, dimension):
    return k.convert(k.index(dimension), dtype)


def _select_n(k, which, *cases):
    if which.dtype.kind == "b":
        return k.select(which, cases[-1], cases[0])
    result = cases[0]
    for place, case in enumerate(cases):
        result = k.select(k.ge(which, place), case, result)
    return result


def _integer_pow(k, x, y):
    if y < 0:
        return k.div(1, _integer_pow(k, x, -y))
    return by_squaring(k.mul, x, y) if y else k.number(1, x)


_rule("add_any", _add_any)
_rule("iota", _iota)
_rule("select_n", _select_n)
_rule("integer_pow", _integer_pow)
_rule("convert_element_type", lambda k, x, new_dtype, **_: k.convert(x, new_dtype))


def _div(k, x, y):
    """Divide; of integers, by 0 gives all bits set, and by -1 the negative."""
    if x.dtype.kind in "fc":
        return k.div(x, y)
    safe, zero, minus = _divisor(k, y)
    quotient = k.select(zero, k.number(~x.dtype.type(0), x), k.div(x, safe))
    return quotient if minus is None else k.select(minus, k.neg(x), quotient)


def _rem(k, x, y):
    """Return what division leaves; of integers by 0, `x` itself."""
    if x.dtype.kind == "f":
        return k.rem(x, y)
    safe, zero, _ = _divisor(k, y)
    return k.select(zero, x, k.rem(x, safe))


def _divisor(k, y):
    """Return a divisor that any processor can take, and where `y` is none."""
    zero = k.eq(y, 0)
    if y.dtype.kind == "u":
        return k.select(zero, 1, y), zero, None
    minus = k.eq(y, -1)
    return k.select(k.apply("or", zero, minus), 1, y), zero, minus


_rule("div", _div)
_rule("rem", _rem)


def _sign(k, x):
    if x.dtype.kind == "u":
        return k.min(x, 1)
    one = k.select(k.gt(x, 0), 1, k.select(k.lt(x, 0), -1, x))
    return k.select(k.eq(x, 0), x, one)


def _round(k, x, rounding_method):
    if rounding_method == 1:
        return k.rint(x)
    whole = k.trunc(x)
    beyond = k.ge(k.abs(k.sub(x, whole)), 0.5)
    return k.copysign(k.add(whole, k.select(beyond, k.copysign(1, x), 0)), x)


def _shift(k, op, x, y, beyond):
    """Shift bits; by more than there are, what `beyond` says."""
    bits = k.number(x.dtype.itemsize * 8, x)
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    inside = k.lt(k.bitcast(y, unsigned), k.bitcast(bits, unsigned))
    return k.select(inside, k.apply(op, x, k.select(inside, y, 0)), beyond)


def _shift_right(k, x, y, kind):
    dtype = np.dtype(f"{kind}{x.dtype.itemsize}")
    bits, places = k.bitcast(x, dtype), k.bitcast(y, dtype)
    zero = k.number(0, bits)
    beyond = zero if kind == "u" else k.select(k.lt(bits, 0), -1, zero)
    return k.bitcast(_shift(k, "shift_right", bits, places, beyond), x.dtype)


_rule("sign", _sign)
_rule("round", _round)
_rule("shift_left", lambda k, x, y: _shift(k, "shift_left", x, y, k.number(0, x)))
_rule("shift_right_logical", lambda k, x, y: _shift_right(k, x, y, "u"))
_rule("shift_right_arithmetic", lambda k, x, y: _shift_right(k, x, y, "i"))


kernel_rules.reasons.update(
    dict.fromkeys(
        [lax.nextafter_p, lax.erf_inv_p, lax.digamma_p, lax.reduce_precision_p],
        "No instruction and no function of a library does it; NumPy does.",
    )
)


def viewing(change):
    """Return the rule of a primitive whose result is a view of its operand.

    Args:
      change: a function of the result's shape, the operand's view and the parameters.
    """

    def rule(lowering, eqn, operand):
        [var] = eqn.outvars
        return [change(var.aval.shape, operand, **eqn.params)]

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
    return [lowering.reshaped(operand, eqn.outvars[0].aval.shape)]


def _bitcast(lowering, eqn, operand):
    dtype = eqn.params["new_dtype"]
    if dtype.itemsize != operand.dtype.itemsize:
        raise NoKernel("the width of the numbers changes")
    if isinstance(operand.source, Buffer):
        return [operand._replace(dtype=dtype)]
    return [everywhere(operand.source.view(dtype), operand.shape)]


def _concatenate(lowering, eqn, *operands):
    out, start = lowering.allocate(eqn.outvars[0].aval), 0
    for operand in operands:
        starts = [0] * len(operand.shape)
        starts[eqn.params["dimension"]] = start
        start += operand.shape[eqn.params["dimension"]]
        part = sliced(out, starts, operand.shape, [1] * len(starts))
        k = KernelBuilder("concatenate", operand.shape)
        lowering.run(k, (part, k.load(operand)))
    return [out]


kernel_rules[lax.reshape_p] = _reshape
kernel_rules[lax.bitcast_convert_type_p] = _bitcast
kernel_rules[lax.concatenate_p] = _concatenate


def _pad(lowering, eqn, x, value):
    gaps = [gap for _, _, gap in eqn.params["padding_config"]]
    guarded = isinstance(x.source, Buffer) and not isinstance(value.source, Buffer)
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
    lowering.run(k, (sliced(out, starts, counts, steps), k.load(inner)))
    return out


kernel_rules[lax.pad_p] = _pad


def folding(how):
    """Return the rule of a primitive that folds axes; they become the inner loops."""

    def fold(lowering, eqn, x, axes, aval):
        kept = without(range(len(x.shape)), axes)
        x = permuted(x, (*kept, *axes))
        k = KernelBuilder(eqn.primitive.name, x.shape)
        found = k.fold(how, range(len(kept), len(x.shape)), k.load(x))
        dtype = eqn.params.get("index_dtype")
        found = found if dtype is None else k.convert(found, dtype)
        return lowering.launch(k, found, aval)

    def rule(lowering, eqn, x):
        axes, aval = eqn.params["axes"], eqn.outvars[0].aval
        dtype = eqn.params.get("index_dtype")
        if dtype and not countable(x.shape[axes[0]], dtype):
            raise NoKernel("The evaluation refuses an axis that cannot be numbered.")
        rows = rows_of(x, axes) if wide(aval.dtype) == aval.dtype else ()
        if rows:
            kept = without(range(len(x.shape)), rows)
            shape = [x.shape[axis] for axis in kept]
            x = fold(lowering, eqn, x, rows, aval.update(shape=shape))
            axes = [kept.index(axis) for axis in axes if axis in kept]
        return [fold(lowering, eqn, x, axes, aval)]

    return rule


ROW, FAR = 16, 2**18  # numbers that make a row, and that no near cache holds


def rows_of(x, axes):
    """Return the axes of rows that are better folded first, alone; or none.

    They are the last of the axes in memory, and an axis that is kept lies between them
    and others that are folded. In one nest the loop over that axis would be outside,
    and each of its turns would visit every part of the memory for one row.
    """
    places = sorted([(abs(step), k) for k, step in enumerate(x.strides) if step])
    apart = 0 not in [step for step, n in zip(x.strides, x.shape) if n > 1]
    rows = [k for _, k in itertools.takewhile(lambda at: at[1] in axes, places)]
    left = [k for _, k in places[len(rows) :] if k in axes]
    long = math.prod([x.shape[k] for k in rows]) >= ROW
    return rows if apart and left and long and math.prod(x.shape) >= FAR else ()


for _how, _folds in {
    "add": lax.reduce_sum_p, "mul": lax.reduce_prod_p, "max": lax.reduce_max_p,
    "min": lax.reduce_min_p, "and": lax.reduce_and_p, "or": lax.reduce_or_p,
    "xor": lax.reduce_xor_p, "argmax": lax.argmax_p, "argmin": lax.argmin_p,
}.items():  # fmt: skip
    kernel_rules[_folds] = folding(_how)


def running_fold(how):
    """Return the rule of a cumulative fold; its axis becomes the inner loop.

    Sums and products run in numbers of 64 bits, on every target.
    """

    def rule(lowering, eqn, operand):
        aval, axis = eqn.outvars[0].aval, eqn.params["axis"]
        if wide(aval.dtype) != aval.dtype:
            raise NoKernel("NumPy adds these up in numbers with more digits.")
        order = (*without(range(aval.ndim), [axis]), axis)
        ends = [aval.ndim - 1] if eqn.params["reverse"] else []
        out = lowering.allocate(aval)
        x, y = [reversed_along(permuted(a, order), ends) for a in (operand, out)]
        dtype = longer(aval.dtype) if how in ("add", "mul") else aval.dtype
        k = KernelBuilder(eqn.primitive.name, x.shape)
        total = k.running(how, aval.ndim - 1, k.convert(k.load(x), dtype))
        lowering.run(k, (y, k.convert(total, aval.dtype)))
        return [out]

    return rule


for _how, _running in {
    "add": lax.cumsum_p, "mul": lax.cumprod_p, "max": lax.cummax_p,
    "min": lax.cummin_p,
}.items():  # fmt: skip
    kernel_rules[_running] = running_fold(_how)

for _calls in (jit_p, *CALLS):
    kernel_rules[_calls] = lambda lowering, eqn, *operands: lowering.program(
        callee_rules[eqn.primitive](eqn), operands
    )
kernel_rules.reasons[custom_lin_p] = "It is never run, only transposed."


def _empty(lowering, eqn):
    """Return an array that is never read: zeros that need no memory."""
    aval = eqn.outvars[0].aval
    return [everywhere(aval.dtype.type(0), aval.shape)]


kernel_rules[empty_p] = _empty
for _same in (stop_gradient_p, name_p, optimization_barrier_p, device_put_p):
    kernel_rules[_same] = lambda lowering, eqn, *operands: list(operands)


_CALLS = {
    "It contains programs, and Python decides which of them runs.": [
        cond_p, while_p, scan_p,
    ],
    "It calls Python, on the other side of the border.": [
        pure_callback_p, io_callback_p, debug_callback_p, debug_print_p,
    ],
    "It is the work of a library, which NumPy calls.": [lax.dot_general_p],
    "No fold runs with logarithms of sums; NumPy does it.": [lax.cumlogsumexp_p],
    GONE: COLLECTIVES,
}  # fmt: skip
for _why, _primitives in _CALLS.items():
    kernel_rules.reasons.update(dict.fromkeys(_primitives, _why))
