"""StableHLO of calls, branches and loops."""

# Made from chapters/40_export.md by `make chapter`;
# edit the chapter, not this file.

import numpy as np

from minijax import lax
from minijax.arrays.avals import ShapedArray
from minijax.arrays.transfer import device_put_p
from minijax.branches.rewiring import empty_p
from minijax.distributions.gamma import random_gamma_p
from minijax.exporting.elementwise import converted
from minijax.exporting.programs import called, stablehlo_rules, write_program
from minijax.exporting.rearranging import filled, numbers, reshaped
from minijax.forgetting.barriers import optimization_barrier_p
from minijax.forgetting.policies import name_p
from minijax.jitting.primitive import jit_p
from minijax.own_rules.calls import CALLS
from minijax.own_rules.function_calls import callee_rules
from minijax.scans.primitive import scan_p

SAME = optimization_barrier_p, name_p, device_put_p, lax.copy_p, lax.stop_gradient_p
stablehlo_rules.update(dict.fromkeys(SAME, lambda block, eqn, *operands: operands))
stablehlo_rules[empty_p] = lambda block, eqn: filled(block, 0, eqn.outvars[0].aval)


def _inline(block, eqn, *operands):
    return write_program(block, callee_rules[eqn.primitive](eqn), operands)


def _jit(block, eqn, *operands):
    closed = eqn.params["jaxpr"]
    key = (closed.jaxpr, *map(id, closed.consts))
    name = block.program.function(
        key, eqn.params["name"], closed.in_avals,
        lambda inner, *xs: write_program(inner, closed, xs),
    )  # fmt: skip
    return block.call(name, operands, closed.out_avals)


stablehlo_rules.update(dict.fromkeys([*CALLS, random_gamma_p], _inline))
stablehlo_rules[jit_p] = _jit


INDEX = ShapedArray((), np.dtype(np.int32))


def _cond(block, eqn, index, *operands):
    regions = [
        block.region(
            [], lambda inner, branch=branch: write_program(inner, branch, operands)
        )
        for branch in eqn.params["branches"]
    ]
    index, avals = converted(block, index, np.int32), [var.aval for var in eqn.outvars]
    return block.generic("stablehlo.case", [index], avals, "", regions)


stablehlo_rules[lax.cond_p] = _cond


def loop(block, state, more, step):
    """Write a loop: while `more(block, *state)`, the state becomes `step(…)`."""
    avals = [x.aval for x in state]
    regions = [block.region(avals, more), block.region(avals, step)]
    return block.generic("stablehlo.while", state, avals, "", regions)


def any_of(block, going):
    """Return whether any example of a batch goes on."""
    axes = [*range(len(going.aval.shape))]
    return called(block, lambda x: lax.reduce_or(x, axes), going)[0] if axes else going


def unless_done(block, going, old, new):
    """Return a new value, but the old one for examples whose loop has ended."""
    axes, answer = range(len(going.aval.shape)), new.aval.update(dtype=np.dtype(bool))
    wide = block.op("broadcast_in_dim", [going], answer, numbers("dims", axes))
    return block.op("select", [wide, new, old], new.aval)


def _while(block, eqn, *operands):
    params, first = eqn.params, eqn.params["cond_nconsts"]
    second = first + params["body_nconsts"]
    asked, used, carry = operands[:first], operands[first:second], operands[second:]

    def going(inner, *state):
        return write_program(inner, params["cond_jaxpr"], [*asked, *state])[0]

    def step(inner, *state):
        after = write_program(inner, params["body_jaxpr"], [*used, *state])
        if not params["cond_jaxpr"].out_avals[0].shape:
            return after
        still = going(inner, *state)
        return [unless_done(inner, still, *pair) for pair in zip(state, after)]

    def more(inner, *state):
        return [any_of(inner, going(inner, *state))]

    return loop(block, carry, more, step)


stablehlo_rules[lax.while_p] = _while


def at(block, stack, place):
    """Return the element of a stack of arrays at a place that is computed."""
    one = stack.aval.update(shape=(1, *stack.aval.shape[1:]))
    zero = block.constant(np.int32(0), INDEX)
    places = [place] + [zero] * (len(one.shape) - 1)
    row = block.op("dynamic_slice", [stack, *places], one, numbers("sizes", one.shape))
    return reshaped(block, row, one.shape[1:])


def put(block, stack, place, row):
    """Return a stack of arrays with another element at a place."""
    zero = block.constant(np.int32(0), INDEX)
    places = [place] + [zero] * (len(stack.aval.shape) - 1)
    row = reshaped(block, row, (1, *row.aval.shape))
    return block.op("dynamic_update_slice", [stack, row, *places], stack.aval)


def counted(block, length, state, turn):
    """Write a loop of so many turns: the state becomes ``turn(block, i, *state)``."""
    if not length:  # a stack without rows has none that a body could take
        return state

    def more(inner, i, *state):
        end = inner.constant(np.int32(length), INDEX)
        return [inner.op("compare LT,", [i, end], INDEX.update(dtype=np.dtype(bool)))]

    def step(inner, i, *state):
        after = inner.op("add", [i, inner.constant(np.int32(1), INDEX)], INDEX)
        return [after, *turn(inner, i, *state)]

    start = block.constant(np.int32(0), INDEX)
    return loop(block, [start, *state], more, step)[1:]


def _scan(block, eqn, *operands):
    params, first = eqn.params, eqn.params["num_consts"]
    count, length = params["num_carry"], params["length"]
    consts, carry = operands[:first], operands[first : first + count]
    stacks = operands[first + count :]
    empty = [filled(block, 0, var.aval) for var in eqn.outvars[count:]]

    def turn(inner, i, *state):
        if params["reverse"]:
            last = inner.constant(np.int32(length - 1), INDEX)
            i = inner.op("subtract", [last, i], INDEX)
        rows = [at(inner, stack, i) for stack in stacks]
        results = write_program(
            inner, params["jaxpr"], [*consts, *state[:count], *rows]
        )
        pairs = zip(state[count:], results[count:])
        return [*results[:count], *(put(inner, ys, i, y) for ys, y in pairs)]

    return counted(block, length, [*carry, *empty], turn)


stablehlo_rules[scan_p] = _scan
