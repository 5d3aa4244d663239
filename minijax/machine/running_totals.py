# Made from chapters/21_machine_rest.md by `make chapter`;
# edit the chapter, not this file.
"""The kernel rule of a running total that is no fold: a loop with a state."""

from functools import partial

import numpy as np

from minijax import lax
from minijax.arrays.numerics import longer, wide
from minijax.kernels.building import KernelBuilder, NoKernel
from minijax.kernels.program_steps import kernel_rules
from minijax.kernels.views import everywhere, permuted
from minijax.machine.nested import Repeat
from minijax.machine.nested_rules import carried, nested, new_buffers, sources
from minijax.scans.primitive import row_aval


def lower_running_total(lowering, eqn, operand):
    """Lower `cumlogsumexp`: a loop along an axis, which becomes the first one."""
    aval, axis = eqn.outvars[0].aval, eqn.params["axis"]
    if wide(aval.dtype) != aval.dtype or aval.dtype.kind == "c" or not aval.size:
        raise NoKernel("totals of another dtype")
    order = [axis, *(k for k in range(aval.ndim) if k != axis)]
    moved = aval.update(shape=tuple([aval.shape[k] for k in order]))
    x = lowering.in_its_buffer(permuted(operand, order))
    out, row = lowering.allocate(moved), row_aval(moved)
    total = row.update(dtype=longer(row.dtype))
    zero = everywhere(total.dtype.type(-np.inf), row.shape)
    starts, states = carried(lowering, [zero], [total])
    handed, result = new_buffers(lowering, [row, total])
    add = partial(_next_total, lowering, states[0], handed, total, row)
    body = nested(lowering, [*states, handed], add)
    ends = map(sources, (starts, [result], [x], [out]))
    count, reverse = moved.shape[0], eqn.params["reverse"]
    lowering.steps.append(Repeat(count, reverse, body, *ends))
    return [permuted(out, [order.index(k) for k in range(aval.ndim)])]


def _next_total(lowering, total, x, long, aval):
    k = KernelBuilder("log_add_exp", aval.shape)
    following = lowering.launch(k, log_add_exp(k, k.load(total), k.load(x)), long)
    k = KernelBuilder("convert", aval.shape)
    row = lowering.launch(k, k.convert(k.load(following), aval.dtype), aval)
    return [following, row]


def log_add_exp(k, total, x):
    """Write log(exp(total) + exp(x)); the difference of two infinities is 0 here.

    What `x` adds to the total is computed in as many bits as `x` has.
    """
    short, long = x.dtype, total.dtype
    x = k.convert(x, long)
    larger, smaller = k.max(total, x), k.min(total, x)
    gap = k.select(k.eq(total, x), 0, k.sub(smaller, larger))
    more = k.log1p(k.exp(k.convert(gap, short)))
    return k.add(larger, k.convert(more, long))


kernel_rules[lax.cumlogsumexp_p] = lower_running_total
