# Made from chapters/21_machine_ground.md by `make chapter`;
# edit the chapter, not this file.
"""Kernel rules of loops: steps with programs in them."""

from functools import partial
from typing import NamedTuple

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


class ScanViews(NamedTuple):
    """The arrays of a scan, as views.

    Attributes:
      consts: what each turn reads as it is.
      starts: the states before the first turn.
      states: the states in a turn.
      rows: the rows in a turn, one for each of the xs.
      moving: from the rows that are other ones in each turn to the buffers of their xs.
    """

    consts: list
    starts: list
    states: list
    rows: list
    moving: dict


def views_of_scan(lowering, eqn, operands):
    """Return the `ScanViews` of an equation; its carry has been copied."""
    consts, carry, xs = by_use(operands, **eqn.params)
    _, state_avals, row_avals = by_use(eqn.params["jaxpr"].in_avals, **eqn.params)
    starts, states = carried(lowering, carry, state_avals)
    pairs = list(map(partial(row_of, lowering), xs, row_avals))
    moving = {row: buffer for row, buffer in pairs if buffer is not None}
    return ScanViews(consts, starts, states, [row for row, _ in pairs], moving)


def by_use(values, num_consts, num_carry, **params):
    """Return values, one for each operand of a scan: of consts, of carry and of xs."""
    return groups(values, num_consts, num_carry)


def lower_scan(lowering, eqn, *operands):
    """Lower a loop with a known number of turns."""
    views, params = views_of_scan(lowering, eqn, operands), eqn.params
    body = body_of_scan(lowering, params["jaxpr"], views)
    outs = new_buffers(lowering, [var.aval for var in eqn.outvars])
    starts, xs = sources(views.starts), [*views.moving.values()]
    results, ys = groups(sources(outs), len(starts))
    turns = params["length"], params["reverse"]
    lowering.steps.append(Repeat(*turns, body, starts, results, xs, ys))
    return outs


def body_of_scan(lowering, program, views):
    """Return the steps of one turn, whose inputs are the states and moving rows."""
    operands = [*views.consts, *views.states, *views.rows]
    inputs = [*views.states, *views.moving]
    return nested(lowering, inputs, lambda: lowering.program(program, operands))


kernel_rules[scan_p] = lower_scan
