# Made from chapters/16_scan.md by `make chapter`;
# edit the chapter, not this file.
"""A scan backwards: the last step first, and cotangents as its carry.

Reference: ``jax.lax.scan``, its transpose.
"""

import numpy as np

from minijax import lax
from minijax.arrays.avals import typeof
from minijax.jitting.programs import merge, partition, spread, stage
from minijax.jitting.remembering import remembered
from minijax.reverse.backwards import backward_pass
from minijax.reverse.transposition import Linear, transpose_rules
from minijax.scans.delayed_sums import delay_sums
from minijax.scans.primitive import bind_scan, groups, row_aval, scan_p
from minijax.scans.rules import needed_step


def zeros(aval):
    """Return the zeros of an abstract value; a scalar needs no operation."""
    zero = np.zeros((), aval.dtype)[()]
    zero = zero.item() if aval.weak_type else zero
    return lax.broadcast_in_dim(zero, aval.shape, ()) if aval.shape else zero


@remembered
def transposed_step(step, linear, ct_avals, num_consts, num_carry):
    """Return the step that runs a linear step backwards.

    Args:
      step: a `ClosedJaxpr`.
      linear: for each of its inputs whether it is linear in it; in all the carry it is.
      ct_avals: for each of its results the type of its cotangent, or None.
      num_consts, num_carry: how many inputs are constants, and carry.

    Returns:
      A `ClosedJaxpr` from the known constants, the cotangents of the carry and of ys,
      and the known rows, to the terms of the cotangents of linear constants, the
      cotangents of the carry before the step, and those of linear rows.
    """
    given = [aval is not None for aval in ct_avals]
    carry_avals, xs = ct_avals[:num_carry], num_consts + num_carry
    avals = (*step.in_avals[:num_consts], *carry_avals, *step.in_avals[xs:])
    consts, _ = partition(linear[:num_consts], avals[:num_consts])
    rows, _ = partition(linear[xs:], avals[xs:])
    _, places = partition(linear, avals)

    def program(*flat):
        known_consts, cts, known_rows = groups(flat, len(consts), sum(given))
        known = known_consts + known_rows
        operands = merge(linear, known, [Linear(aval) for aval in places])
        cts = spread(given, cts)
        arrived = backward_pass(step.jaxpr, step.consts, operands, cts)
        _, arrived = partition(linear, arrived)
        return [zeros(a) if ct is None else ct for a, ct in zip(places, arrived)]

    return stage(program, consts + partition(given, ct_avals)[1] + rows)


def _transpose(cts, *operands, jaxpr, num_consts, num_carry, reverse, **how):
    used = tuple([ct is not None for ct in cts])
    step, kept, used = needed_step(jaxpr, used, num_consts, num_carry)
    consts, carry, _ = groups(kept, num_consts, num_carry)
    cts, needed = partition(used, cts)[1], partition(kept, operands)[1]
    how = {"reverse": not reverse, **how}
    arrived = transpose_needed(cts, needed, step, sum(consts), sum(carry), **how)
    cts = spread(kept, arrived)
    return [ct if isinstance(x, Linear) else None for x, ct in zip(operands, cts)]


def transpose_needed(cts, operands, step, num_consts, num_carry, **how):
    """Run a scan backwards whose ys all have cotangents.

    Returns:
      For each operand its cotangent, or None if the scan is not linear in it.
    """
    cts = [zeros(a) if ct is None else ct for ct, a in zip(cts, step.out_avals)]
    linear = [isinstance(x, Linear) for x in operands]
    linear[num_consts : num_consts + num_carry] = [True] * num_carry  # zeros, if known
    ct_carry, ct_ys = groups(cts, num_carry)
    ct_avals = [typeof(ct) for ct in ct_carry]
    ct_avals += [row_aval(typeof(ct)) for ct in ct_ys]
    sizes = num_consts, num_carry
    back = transposed_step(step, tuple(linear), tuple(ct_avals), *sizes)
    flags, values = (groups(row, *sizes) for row in (linear, operands))
    consts, rows = (partition(flags[i], values[i])[0] for i in (0, 2))
    plan = delay_sums(back, len(consts), num_carry, sum(flags[0]), how["length"])
    carry, xs, ys = [*(zeros(a) for a in plan.sum_avals), *ct_carry], ct_ys + rows, []
    if plan.body.outvars:
        carry, ys = bind_scan(plan.body, consts, carry, xs, **how)
    sums, ct_carry = groups(carry, len(plan.sum_avals))
    ct_rows, stacks = groups(ys, sum(flags[2]))
    totals = plan.totals(consts, xs, ct_rows, stacks, sums)
    return spread(linear, totals + ct_carry + ct_rows)


transpose_rules[scan_p] = _transpose
