# Made from chapters/21_machine.md by `make chapter`;
# edit the chapter, not this file.
"""Kernel rules of loops: steps with schedules in them."""

from minijax.kernels.layouts import Slot
from minijax.kernels.program_steps import LoweredProgram, fills_a_slot, kernel_rules
from minijax.machine.nested import Repeat
from minijax.scans.primitive import row_aval, scan_p
from minijax.scans.steps import groups


def in_its_slot(lowering, layout, aval):
    """Return the layout of an array that has a slot to itself."""
    return layout if fills_a_slot(layout) else lowering.copy(layout, aval)


def nested(lowering, inputs, avals, write):
    """Return the `LoweredProgram` of the steps that a function adds.

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
        if layout.source not in written.difference(outputs) or not fills_a_slot(layout):
            layout = lowering.copy(layout, aval)
        outputs.append(layout.source)
    steps, lowering.steps = lowering.steps, around
    return LoweredProgram(sources(inputs), outputs, [], steps)


def lower_scan(lowering, eqn, *operands):
    """Lower a loop with a known number of steps."""
    program, length, sizes = _of_scan(**eqn.params)
    consts, carry, xs = groups(operands, *sizes)
    starts, states = carried(lowering, carry, groups(program.in_avals, *sizes)[1])
    stacks = [atom.aval for atom in eqn.invars[sum(sizes) :]]
    rows, moving = rows_of(lowering, xs, stacks)
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


kernel_rules[scan_p] = lower_scan


def _of_scan(jaxpr, length, num_consts, num_carry, **params):
    return jaxpr, length, (num_consts, num_carry)


def carried(lowering, carry, avals):
    """Return layouts of the first states, in slots of the loop's own, and of states."""
    return list(map(lowering.copy, carry, avals)), slots_for(lowering, avals)


def rows_of(lowering, xs, avals):
    """Return the layouts of rows; and from those that move to the slots of the xs."""
    rows, moving = [], {}
    for x, aval in zip(xs, avals):
        if isinstance(x.source, Slot) and x.strides[0]:
            rows.append(lowering.slot(row_aval(aval)))
            moving[rows[-1]] = in_its_slot(lowering, x, aval).source
        else:
            rows.append(x.replace(x.shape[1:], x.strides[1:]))
    return rows, moving


def sources(layouts):
    """Return the slots of layouts that fill them."""
    return [layout.source for layout in layouts]


def slots_for(lowering, avals):
    """Return new layouts, each with a slot to itself."""
    return [lowering.slot(aval) for aval in avals]
