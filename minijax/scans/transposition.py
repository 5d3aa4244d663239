"""A scan backwards: the last step first, and cotangents as its carry.

Reference: ``jax.lax.scan``, its transpose.
"""

# Made from chapters/16_scan.md by `make chapter`;
# edit the chapter, not this file.

from minijax.arrays.avals import typeof
from minijax.branches.rewiring import zeros
from minijax.forgetting.programs import merge, partition, spread, stage
from minijax.forgetting.remembering import remembered
from minijax.jaxprs.latest import Latest
from minijax.reverse.backwards import backward_pass
from minijax.reverse.transposition import Linear, transpose_rules
from minijax.scans.primitive import bind_scan, row_aval, scan_p
from minijax.scans.steps import adding_step, groups, needed_step


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
    # A carry of cotangents: what this step returns, the next one takes.
    avals[num_consts : num_consts + num_carry] = ct_avals[:num_carry]
    known, unknown = partition(linear, avals)
    consts, rows = groups(known, linear[:num_consts].count(False))

    def back(*operands):
        consts_now, cts, rows_now = groups(operands, len(consts), len(ct_avals))
        operands = merge(linear, consts_now + rows_now, [Linear(a) for a in unknown])
        arrived = backward_pass(step.jaxpr, step.consts, operands, cts)
        _, arrived = partition(linear, arrived)
        return [zeros(a) if ct is None else ct for a, ct in zip(unknown, arrived)]

    return stage(back, [*consts, *ct_avals, *rows])


def run_backwards(cts, operands, linear, step, num_consts, num_carry, with_sums, **how):
    """Run a scan backwards.

    Args:
      cts: a cotangent for each result.
      operands, linear: of the scan, and for each whether the scan is linear in it; in
        all the carry it is.
      step, num_consts, num_carry, **how: its other parameters.
      with_sums: `sum_in_carry`, or a function that does the same.

    Returns:
      For each operand its cotangent, or None if the scan is not linear in it.
    """
    known, _ = partition(linear, operands)
    num_sums = sum(linear[:num_consts])
    consts, rows = groups(known, num_consts - num_sums)
    ct_carry, ct_ys = groups(cts, num_carry)
    ct_avals = *map(typeof, ct_carry), *[row_aval(typeof(ct)) for ct in ct_ys]
    back = transposed_step(step, linear, ct_avals, num_consts, num_carry)
    xs = ct_ys + rows
    totals, ct_carry, ct_xs = with_sums(back, consts, ct_carry, xs, num_sums, **how)
    return spread(linear, totals + ct_carry + ct_xs)


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


def _transpose(cts, *operands, jaxpr, num_consts, num_carry, reverse, **how):
    used = tuple([ct is not None for ct in cts])
    step, kept, used = needed_step(jaxpr, used, num_consts, num_carry)
    sizes = [sum(group) for group in groups(kept, num_consts, num_carry)[:2]]
    _, cts = partition(used, cts)  # of the results that are used
    _, needed = partition(kept, operands)  # those that the step still reads
    cts = [zeros(a) if ct is None else ct for ct, a in zip(cts, step.out_avals)]
    linear = [isinstance(x, Linear) for x in needed]
    linear[sizes[0] : sum(sizes)] = [True] * sizes[1]  # zeros, if they are known
    how = {"with_sums": loop_with_sums.value, "reverse": not reverse, **how}
    arrived = run_backwards(cts, needed, tuple(linear), step, *sizes, **how)
    cts = spread(kept, arrived)
    return [ct if isinstance(x, Linear) else None for x, ct in zip(operands, cts)]


transpose_rules[scan_p] = _transpose
