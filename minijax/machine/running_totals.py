# Made from chapters/24_machine_rest.md by `make chapter`;
# edit the chapter, not this file.
"""Kernel rules of running totals: loops whose state is the total so far."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from minijax import lax
from minijax.arrays.numerics import wide
from minijax.kernels.building import KernelBuilder, NoKernel
from minijax.kernels.layouts import everywhere, permuted
from minijax.kernels.program_steps import kernel_rules
from minijax.kernels.scalar_ops import foldings
from minijax.machine.nested import Repeat
from minijax.machine.nested_rules import (
    carried,
    in_its_slot,
    nested,
    slots_for,
    sources,
)
from minijax.scans.primitive import row_aval


class Total(NamedTuple):
    """A kind of running total.

    Attributes:
      name: of the kernel that does a turn.
      start: from dtypes to the total of nothing.
      add: a function of a `KernelBuilder` and the nodes of a total and of a number.
    """

    name: str
    start: Callable
    add: Callable


def lower_running_total(how, lowering, eqn, operand):
    """Lower a running total: a loop along an axis, which becomes the first one."""
    aval, axis = eqn.outvars[0].aval, eqn.params["axis"]
    if wide(aval.dtype) != aval.dtype or aval.dtype.kind == "c" or not aval.size:
        raise NoKernel("totals of another dtype")
    order = [axis, *(k for k in range(aval.ndim) if k != axis)]
    moved = aval.update(shape=tuple([aval.shape[k] for k in order]))
    x = in_its_slot(lowering, permuted(operand, order), moved)
    out, row = lowering.slot(moved), row_aval(moved)
    zero = everywhere(how.start(aval.dtype), row.shape)
    starts, states = carried(lowering, [zero], [row])
    handed, result = slots_for(lowering, [row, row])
    add = partial(_next_total, how, lowering, states[0], handed, row)
    body = nested(lowering, [*states, handed], [row, row], add)
    ends = map(sources, (starts, [result], [x], [out]))
    count, reverse = moved.shape[0], eqn.params["reverse"]
    lowering.steps.append(Repeat(count, reverse, body, *ends))
    return [permuted(out, [order.index(k) for k in range(aval.ndim)])]


def _next_total(how, lowering, total, x, aval):
    k = KernelBuilder(how.name, aval.shape)
    following = lowering.launch(k, how.add(k, k.load(total), k.load(x)), aval)
    return [following, following]


def folded(op):
    """Return the `Total` of a folding, by its name."""
    return Total(op, foldings[op].start, lambda k, *nodes: k.apply(op, *nodes))


def log_add_exp(k, x, y):
    """Write log(exp(x) + exp(y)); the difference of two infinities is 0 here."""
    larger, smaller = k.max(x, y), k.min(x, y)
    gap = k.select(k.eq(x, y), 0, k.sub(smaller, larger))
    return k.add(larger, k.log1p(k.exp(gap)))


for _how, _total_p in {
    folded("add"): lax.cumsum_p, folded("mul"): lax.cumprod_p,
    folded("max"): lax.cummax_p, folded("min"): lax.cummin_p,
    Total("log_add_exp", lambda dtype: dtype.type(-np.inf), log_add_exp):
        lax.cumlogsumexp_p,
}.items():  # fmt: skip
    kernel_rules[_total_p] = partial(lower_running_total, _how)
