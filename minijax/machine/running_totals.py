"""The kernel rule of a running total that is no fold: a loop with a state."""

# Made from chapters/21_machine_rest.md by `make chapter`;
# edit the chapter, not this file.

from functools import partial

import numpy as np

from minijax import lax
from minijax.arrays.numerics import longer, wide
from minijax.kernels.building import NoKernel
from minijax.kernels.program_steps import kernel_rules
from minijax.scans.loops import scan


def lower_running_total(lowering, eqn, operand):
    """Lower `cumlogsumexp` as the program of a loop."""
    aval = eqn.outvars[0].aval
    if wide(aval.dtype) != aval.dtype or aval.dtype.kind == "c" or not aval.size:
        raise NoKernel("totals of another dtype")
    return lowering.function(partial(running_total, **eqn.params), [operand])


def running_total(x, axis, reverse):
    """Return the list of the running total: rows along an axis, one in each turn."""
    order = [axis, *(k for k in range(x.ndim) if k != axis)]
    rows = lax.transpose(x, order)
    start = lax.full(rows.shape[1:], -np.inf, longer(x.dtype))
    _, totals = scan(next_total, start, rows, reverse=reverse)
    return [lax.transpose(totals, [order.index(k) for k in range(x.ndim)])]


def next_total(total, x):
    """Return log(exp(total) + exp(x)), in the bits of either.

    What `x` adds to the total is computed in as many bits as `x` has; the difference of
    two infinities is 0 here.
    """
    long = lax.convert_element_type(x, total.dtype)
    larger, smaller = lax.max(total, long), lax.min(total, long)
    gap = lax.sub(smaller, larger)
    gap = lax.select(lax.eq(total, long), lax.full_like(gap, 0), gap)
    more = lax.log1p(lax.exp(lax.convert_element_type(gap, x.dtype)))
    total = lax.add(larger, lax.convert_element_type(more, total.dtype))
    return total, lax.convert_element_type(total, x.dtype)


kernel_rules[lax.cumlogsumexp_p] = lower_running_total
