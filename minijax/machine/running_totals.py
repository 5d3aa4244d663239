# Made from chapters/21_machine_rest.md by `make chapter`;
# edit the chapter, not this file.
"""The kernel rule of a running total that is no fold: a loop with a state."""

from functools import partial

import numpy as np

from minijax import lax
from minijax.arrays.numerics import wide
from minijax.kernels.building import KernelBuilder, NoKernel
from minijax.kernels.program_steps import kernel_rules
from minijax.kernels.views import everywhere, permuted
from minijax.machine.nested import Repeat
from minijax.machine.nested_rules import (
    carried,
    in_its_buffer,
    nested,
    new_buffers,
    sources,
)
from minijax.scans.primitive import row_aval


def lower_running_total(lowering, eqn, operand):
    """Lower `cumlogsumexp`: a loop along an axis, which becomes the first one."""
    aval, axis = eqn.outvars[0].aval, eqn.params["axis"]
    if wide(aval.dtype) != aval.dtype or aval.dtype.kind == "c" or not aval.size:
        raise NoKernel("totals of another dtype")
    order = [axis, *(k for k in range(aval.ndim) if k != axis)]
    moved = aval.update(shape=tuple([aval.shape[k] for k in order]))
    x = in_its_buffer(lowering, permuted(operand, order), moved)
    out, row = lowering.allocate(moved), row_aval(moved)
    zero = everywhere(aval.dtype.type(-np.inf), row.shape)
    starts, states = carried(lowering, [zero], [row])
    handed, result = new_buffers(lowering, [row, row])
    add = partial(_next_total, lowering, states[0], handed, row)
    body = nested(lowering, [*states, handed], [row, row], add)
    ends = map(sources, (starts, [result], [x], [out]))
    count, reverse = moved.shape[0], eqn.params["reverse"]
    lowering.steps.append(Repeat(count, reverse, body, *ends))
    return [permuted(out, [order.index(k) for k in range(aval.ndim)])]


def _next_total(lowering, total, x, aval):
    k = KernelBuilder("log_add_exp", aval.shape)
    following = lowering.launch(k, log_add_exp(k, k.load(total), k.load(x)), aval)
    return [following, following]


def log_add_exp(k, x, y):
    """Write log(exp(x) + exp(y)); the difference of two infinities is 0 here."""
    larger, smaller = k.max(x, y), k.min(x, y)
    gap = k.select(k.eq(x, y), 0, k.sub(smaller, larger))
    return k.add(larger, k.log1p(k.exp(gap)))


kernel_rules[lax.cumlogsumexp_p] = lower_running_total
