"""Kernel rules of loops: steps with programs in them."""

# Made from chapters/21_machine_ground.md by `make chapter`;
# edit the chapter, not this file.

from functools import partial

from minijax.kernels.program_steps import LoweredProgram, fills_a_buffer, kernel_rules
from minijax.kernels.views import Buffer
from minijax.machine.nested import Repeat
from minijax.scans.primitive import scan_p
from minijax.scans.steps import groups


def nested(lowering, inputs, write):
    """Return the `LoweredProgram` of the steps that a function adds.

    Args:
      lowering: the `Lowering`.
      inputs: views of buffers whose memory will be handed in.
      write: a function that adds steps, and returns the views of their results.
    """
    around, lowering.steps = lowering.steps, []
    outputs = []
    for view in write():
        written = {buffer for step in lowering.steps for buffer in step.writes}
        if view.source not in written.difference(outputs) or not fills_a_buffer(view):
            view = lowering.copy(view)
        outputs.append(view.source)
    steps, lowering.steps = lowering.steps, around
    return LoweredProgram(sources(inputs), outputs, [], steps)


def sources(views):
    """Return the buffers of views that fill them."""
    return [view.source for view in views]


def new_buffers(lowering, avals):
    """Return new views, each with a buffer to itself."""
    return [lowering.allocate(aval) for aval in avals]


def carried(lowering, carry, avals):
    """Return views of the first states, in buffers of the loop's own, and of states."""
    return list(map(lowering.copy, carry)), new_buffers(lowering, avals)


def row_of(lowering, array, aval):
    """Return the view of a row of an array, and the buffer of the array.

    Instead of the buffer it is None if all rows are one, which no turn has to look for.
    """
    if not isinstance(array.source, Buffer) or not array.strides[0]:
        return array.replace(array.shape[1:], array.strides[1:]), None
    row = lowering.allocate(aval)
    return row, lowering.in_its_buffer(array).source


def lower_scan(lowering, eqn, *operands):
    """Lower a loop with a known number of turns."""
    params, program = eqn.params, eqn.params["jaxpr"]
    sizes = params["num_consts"], params["num_carry"]
    consts, carry, xs = groups(operands, *sizes)
    _, state_avals, row_avals = groups(program.in_avals, *sizes)
    starts, states = carried(lowering, carry, state_avals)
    pairs = list(map(partial(row_of, lowering), xs, row_avals))
    moving = {row: buffer for row, buffer in pairs if buffer is not None}
    inside = [*consts, *states, *[row for row, _ in pairs]]
    write = partial(lowering.program, program, inside)
    body = nested(lowering, [*states, *moving], write)
    outs = new_buffers(lowering, [var.aval for var in eqn.outvars])
    results, ys = groups(sources(outs), len(starts))
    ends = sources(starts), results, [*moving.values()], ys
    lowering.steps.append(Repeat(params["length"], params["reverse"], body, *ends))
    return outs


kernel_rules[scan_p] = lower_scan
