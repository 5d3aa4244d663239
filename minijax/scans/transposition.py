# Made from chapters/16_scan.md by `make chapter`;
# edit the chapter, not this file.
"""A scan backwards: the last step first, and cotangents as its carry.

Reference: ``jax.lax.scan``, its transpose.
"""

from minijax.arrays.avals import typeof
from minijax.branches.rewiring import zeros
from minijax.forgetting.programs import merge, partition, spread, stage
from minijax.forgetting.remembering import remembered
from minijax.jaxprs.jaxpr import jaxpr_as_fun
from minijax.jaxprs.latest import Latest
from minijax.lax.elementwise import add_any
from minijax.reverse.backwards import backward_pass
from minijax.reverse.transposition import Linear, transpose_rules
from minijax.scans.primitive import bind_scan, row_aval, scan_p
from minijax.scans.steps import groups, needed_step


@remembered
def transposed_step(step, linear, ct_avals, num_consts, num_carry):
    """Return the step that runs a linear step backwards.

    Args:
      step: a `ClosedJaxpr`.
      linear: for each of its inputs whether it is linear in it; in all the carry it is.
      ct_avals: for each of its results the type of its cotangent.
      num_consts, num_carry: how many inputs are constants, and carry.

    Returns:
      A `ClosedJaxpr` from the known constants, the cotangents of the carry and of ys,
      and the known rows, to the terms of the cotangents of linear constants, the
      cotangents of the carry before the step, and those of linear rows.
    """
    avals = [*step.in_avals]
    avals[num_consts : num_consts + num_carry] = ct_avals[:num_carry]
    known, places = partition(linear, avals)
    consts, rows = groups(known, linear[:num_consts].count(False))

    def program(*flat):
        known_consts, cts, known_rows = groups(flat, len(consts), len(ct_avals))
        known = known_consts + known_rows
        operands = merge(linear, known, [Linear(aval) for aval in places])
        arrived = backward_pass(step.jaxpr, step.consts, operands, cts)
        _, arrived = partition(linear, arrived)
        return [zeros(a) if ct is None else ct for a, ct in zip(places, arrived)]

    return stage(program, [*consts, *ct_avals, *rows])


@remembered
def adding_step(step, num_consts, num_sums):
    """Let the step of a loop add to sums what it returned as their terms.

    Args:
      step: a `ClosedJaxpr` from constants, carry and rows to the terms of sums, carry
        and rows of results.
      num_consts: how many of its inputs are constants.
      num_sums: how many of its results are terms of sums.

    Returns:
      A `ClosedJaxpr` in whose carry the sums come first.
    """
    consts, others = groups(step.in_avals, num_consts)
    sums = step.out_avals[:num_sums]

    def program(*flat):
        consts, sums, others = groups(flat, num_consts, num_sums)
        terms, outs = groups(jaxpr_as_fun(step)(*consts, *others), num_sums)
        return [add_any(total, term) for total, term in zip(sums, terms)] + outs

    return stage(program, [*consts, *sums, *others])


def sum_in_carry(step, consts, carry, xs, num_sums, **how):
    """Run a loop whose step returns the terms of sums, and then what steps return.

    Returns:
      The list of the totals, the list of the last carry, and the list of the ys.
    """
    sums = list(map(zeros, step.out_avals[:num_sums]))
    ys = []
    if step.outvars:
        step = adding_step(step, len(consts), num_sums)
        carry, ys = bind_scan(step, consts, sums + carry, xs, **how)
    return *groups(carry, num_sums), ys


loop_with_sums = Latest(sum_in_carry)


def run_backwards(cts, operands, step, num_consts, num_carry, **how):
    """Run a scan backwards; all of its ys have cotangents.

    Returns:
      For each operand its cotangent, or None if the scan is not linear in it.
    """
    cts = [zeros(a) if ct is None else ct for ct, a in zip(cts, step.out_avals)]
    ct_carry, ct_ys = groups(cts, num_carry)
    ct_avals = [typeof(ct) for ct in ct_carry]
    ct_avals += [row_aval(typeof(ct)) for ct in ct_ys]
    linear = [isinstance(x, Linear) for x in operands]
    linear[num_consts : num_consts + num_carry] = [True] * num_carry  # zeros, if known
    num_sums = sum(linear[:num_consts])
    known, _ = partition(linear, operands)
    consts, rows = groups(known, num_consts - num_sums)

    back = transposed_step(step, tuple(linear), tuple(ct_avals), num_consts, num_carry)
    run, xs = loop_with_sums.value, ct_ys + rows
    totals, ct_carry, ct_rows = run(back, consts, ct_carry, xs, num_sums, **how)
    return spread(linear, totals + ct_carry + ct_rows)


def _transpose(cts, *operands, jaxpr, num_consts, num_carry, reverse, **how):
    used = tuple([ct is not None for ct in cts])
    step, kept, used = needed_step(jaxpr, used, num_consts, num_carry)
    consts, carry, _ = groups(kept, num_consts, num_carry)
    _, cts = partition(used, cts)  # of the results that are used
    _, needed = partition(kept, operands)  # those that the step still reads
    how = {"reverse": not reverse, **how}
    arrived = run_backwards(cts, needed, step, sum(consts), sum(carry), **how)
    cts = spread(kept, arrived)
    return [ct if isinstance(x, Linear) else None for x, ct in zip(operands, cts)]


transpose_rules[scan_p] = _transpose
