# Made from chapters/24_machine.md by `make chapter`;
# edit the chapter, not this file.
"""Kernel rules of loops and choices: steps with schedules in them."""

import math
from functools import partial

import numpy as np

from minijax.arrays.avals import ShapedArray
from minijax.branches.conditionals import cond_p
from minijax.branches.while_loops import parts_of_while, while_p
from minijax.kernels.building import KernelBuilder
from minijax.kernels.layouts import Slot, stretched, whole
from minijax.kernels.program_steps import Schedule, kernel_rules
from minijax.machine.nested import Branch, Repeat, While
from minijax.scans.primitive import row_aval, scan_p
from minijax.scans.steps import groups


def fills(layout):
    """Return whether a layout is all of a slot, row by row."""
    slot = layout.source
    if not isinstance(slot, Slot) or slot.size != math.prod(layout.shape):
        return False
    return layout == whole(slot, slot.dtype, layout.shape)


def in_its_slot(lowering, layout, aval):
    """Return the layout of an array that has a slot to itself."""
    return layout if fills(layout) else lowering.copy(layout, aval)


def nested(lowering, inputs, avals, write):
    """Return the `Schedule` of the steps that a function adds.

    Args:
      lowering: the `Lowering`.
      inputs: layouts of slots whose memory will be handed in.
      avals: of the results.
      write: a function that adds steps, and returns the layouts of their results.
    """
    around, lowering.steps = lowering.steps, []
    outputs = []
    for layout, aval in zip(write(), avals):
        written = {slot for step in lowering.steps for slot in step.writes}
        if layout.source not in written.difference(outputs) or not fills(layout):
            layout = lowering.copy(layout, aval)
        outputs.append(layout.source)
    steps, lowering.steps = lowering.steps, around
    return Schedule(sources(inputs), outputs, [], steps)


def sources(layouts):
    """Return the slots of layouts that fill them."""
    return [layout.source for layout in layouts]


def slots_for(lowering, avals):
    """Return new layouts, each with a slot to itself."""
    return [lowering.slot(aval) for aval in avals]


def lower_cond(lowering, eqn, index, *operands):
    """Lower a choice; one that is made already is its branch."""
    branches = eqn.params["branches"]
    if not isinstance(index.source, Slot):
        return lowering.program(branches[int(index.source)], operands)
    avals = branches[0].out_avals
    writers = [partial(lowering.program, branch, operands) for branch in branches]
    schedules = [nested(lowering, [], avals, write) for write in writers]
    results = slots_for(lowering, avals)
    index = in_its_slot(lowering, index, eqn.invars[0].aval)
    lowering.steps.append(Branch(index.source, schedules, sources(results)))
    return results


kernel_rules[cond_p] = lower_cond


def lower_scan(lowering, eqn, *operands):
    """Lower a loop with a known number of steps."""
    program, length, sizes = _of_scan(**eqn.params)
    consts, carry, xs = groups(operands, *sizes)
    starts, states = carried(lowering, carry, groups(program.in_avals, *sizes)[1])
    stacks = [atom.aval for atom in eqn.invars[sum(sizes) :]]
    rows, moving = _rows(lowering, xs, stacks)
    body = nested(
        lowering,
        [*states, *moving],
        program.out_avals,
        lambda: lowering.program(program, [*consts, *states, *rows]),
    )
    outs = slots_for(lowering, [var.aval for var in eqn.outvars])
    results, ys = groups(sources(outs), len(carry))
    ends = sources(starts), results, [*moving.values()], ys
    lowering.steps.append(Repeat(length, eqn.params["reverse"], body, *ends))
    return outs


def _of_scan(jaxpr, length, num_consts, num_carry, **params):
    return jaxpr, length, (num_consts, num_carry)


def carried(lowering, carry, avals):
    """Return layouts of the first states, in slots of the loop's own, and of states."""
    return list(map(lowering.copy, carry, avals)), slots_for(lowering, avals)


def _rows(lowering, xs, avals):
    """Return the layouts of rows; and from those that move to the slots of the xs."""
    rows, moving = [], {}
    for x, aval in zip(xs, avals):
        if isinstance(x.source, Slot) and x.strides[0]:
            rows.append(lowering.slot(row_aval(aval)))
            moving[rows[-1]] = in_its_slot(lowering, x, aval).source
        else:
            rows.append(x.replace(x.shape[1:], x.strides[1:]))
    return rows, moving


kernel_rules[scan_p] = lower_scan


def lower_while(lowering, eqn, *operands):
    """Lower a loop that runs as long as a condition holds."""
    [pred], params = eqn.params["cond_jaxpr"].out_avals, eqn.params
    counts = params["cond_nconsts"], params["body_nconsts"]
    test_consts, body_consts, carry = parts_of_while(operands, *counts)

    def test(state):
        return lowering.program(params["cond_jaxpr"], [*test_consts, *state])

    def advance(state):
        return lowering.program(params["body_jaxpr"], [*body_consts, *state])

    avals = params["body_jaxpr"].out_avals
    if not pred.ndim:
        return _lower_while(lowering, carry, avals, test, advance)

    def advance_some(state):
        going, *olds = state
        pairs = zip(advance(olds), olds, avals)
        news = [_chosen(lowering, going, *each) for each in pairs]
        return [*test(news), *news]

    def test_any(state):
        return [_any(lowering, state[0])]

    first = [*test(carry), *carry]
    return _lower_while(lowering, first, [pred, *avals], test_any, advance_some)[1:]


def _lower_while(lowering, carry, avals, test, advance):
    starts, states = carried(lowering, carry, avals)
    going = nested(lowering, states, [_scalar_bool], lambda: test(states))
    body = nested(lowering, states, avals, lambda: advance(states))
    results = slots_for(lowering, avals)
    lowering.steps.append(While(going, body, sources(starts), sources(results)))
    return results


_scalar_bool = ShapedArray((), np.dtype(bool))


def _any(lowering, going):
    """Add a step that computes whether one of some bools is true."""
    k = KernelBuilder("any", going.shape)
    found = k.fold("or", range(len(going.shape)), k.load(going))
    return lowering.launch(k, found, _scalar_bool)


def _chosen(lowering, going, new, old, aval):
    """Add a step that takes the new state of examples that go on, and else the old."""
    k = KernelBuilder("go_on", aval.shape)
    which = stretched(going, aval.shape, range(len(going.shape)))
    x = k.select(*map(k.load, (which, new, old)))
    return lowering.launch(k, x, aval)


kernel_rules[while_p] = lower_while
