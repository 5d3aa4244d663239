# Made from chapters/16_scan.md by `make chapter`;
# edit the chapter, not this file.
"""A scan backwards: the last step first, and cotangents as its carry.

Reference: ``jax.lax.scan``, its transpose.
"""

from minijax.arrays.avals import typeof
from minijax.branches.rewiring import zeros
from minijax.forgetting.programs import partition, spread
from minijax.jaxprs.latest import Latest
from minijax.reverse.transposition import Linear, transpose_rules
from minijax.scans.primitive import bind_scan, row_aval, scan_p
from minijax.scans.steps import adding_step, groups, needed_step, transposed_step


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


def run_backwards(cts, operands, step, num_consts, num_carry, loop=sum_in_carry, **how):
    """Run a scan backwards, by a loop with sums; all of its ys have cotangents.

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
    xs = ct_ys + rows
    totals, ct_carry, ct_rows = loop(back, consts, ct_carry, xs, num_sums, **how)
    return spread(linear, totals + ct_carry + ct_rows)


loop_with_sums = Latest(sum_in_carry)


def _transpose(cts, *operands, jaxpr, num_consts, num_carry, reverse, **how):
    used = tuple([ct is not None for ct in cts])
    step, kept, used = needed_step(jaxpr, used, num_consts, num_carry)
    consts, carry, _ = groups(kept, num_consts, num_carry)
    _, cts = partition(used, cts)  # of the results that are used
    _, needed = partition(kept, operands)  # those that the step still reads
    how = {"loop": loop_with_sums.value, "reverse": not reverse, **how}
    arrived = run_backwards(cts, needed, step, sum(consts), sum(carry), **how)
    cts = spread(kept, arrived)
    return [ct if isinstance(x, Linear) else None for x, ct in zip(operands, cts)]


transpose_rules[scan_p] = _transpose
