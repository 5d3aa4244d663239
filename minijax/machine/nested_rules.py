# Made from chapters/21_machine.md by `make chapter`;
# edit the chapter, not this file.
"""Kernel rules of loops: steps with programs in them."""

from minijax.kernels.program_steps import LoweredProgram, fills_a_buffer, kernel_rules
from minijax.kernels.views import Buffer
from minijax.machine.nested import Repeat
from minijax.scans.primitive import row_aval, scan_p
from minijax.scans.steps import groups


def nested(lowering, inputs, avals, write):
    """Return the `LoweredProgram` of the steps that a function adds.

    Args:
      lowering: the `Lowering`.
      inputs: views of buffers whose memory will be handed in.
      avals: of the results.
      write: a function that adds steps, and returns the views of their results.
    """
    around, lowering.steps = lowering.steps, []
    outputs = []
    for view, aval in zip(write(), avals):
        written = {buffer for step in lowering.steps for buffer in step.writes}
        if view.source not in written.difference(outputs) or not fills_a_buffer(view):
            view = lowering.copy(view, aval)
        outputs.append(view.source)
    steps, lowering.steps = lowering.steps, around
    return LoweredProgram(sources(inputs), outputs, [], steps)


def _of_scan(jaxpr, length, num_consts, num_carry, **params):
    return jaxpr, length, (num_consts, num_carry)


def carried(lowering, carry, avals):
    """Return views of the first states, in buffers of the loop's own, and of states."""
    return list(map(lowering.copy, carry, avals)), new_buffers(lowering, avals)


def in_its_buffer(lowering, view, aval):
    """Return the view of an array that has a buffer to itself."""
    return view if fills_a_buffer(view) else lowering.copy(view, aval)


def rows_of(lowering, xs, avals):
    """Return the views of rows; and from those that move to the buffers of the xs."""
    rows, moving = [], {}
    for x, aval in zip(xs, avals):
        if isinstance(x.source, Buffer) and x.strides[0]:
            rows.append(lowering.allocate(row_aval(aval)))
            moving[rows[-1]] = in_its_buffer(lowering, x, aval).source
        else:
            rows.append(x.replace(x.shape[1:], x.strides[1:]))
    return rows, moving


def sources(views):
    """Return the buffers of views that fill them."""
    return [view.source for view in views]


def new_buffers(lowering, avals):
    """Return new views, each with a buffer to itself."""
    return [lowering.allocate(aval) for aval in avals]


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
    outs = new_buffers(lowering, [var.aval for var in eqn.outvars])
    results, ys = groups(sources(outs), len(carry))
    ends = sources(starts), results, [*moving.values()], ys
    lowering.steps.append(Repeat(length, eqn.params["reverse"], body, *ends))
    return outs


kernel_rules[scan_p] = lower_scan
