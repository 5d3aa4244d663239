"""scan as a primitive: its jvp, batching, partial evaluation and transpose rules.

A scan runs the program of one step again and again. Its operands fall into three
groups: *constants*, which all steps see; the *carry*, which each step hands to the
next; and *xs*, arrays whose rows are handed out, one per step. A step returns the new
carry, and a row for each of the *ys*, the arrays in which these rows are stacked.

References: ``jax.lax.scan``, ``jax.lax.scan``, its transpose.
"""

# Made from chapters/16_scan.md by `make chapter`;
# edit the chapter, not this file.
# Amended in chapters/36_replicas_upper.md: scan_impl (0ff9faa7).

from minijax.arrays.array import ArrayImpl, as_array_impl, asbuffer, shape_rules, typeof
from minijax.arrays.transfer import transfer_operands
from minijax.batching.vmap import (
    batch_dim_to_front,
    higher_order_primitives,
    move_one_axis,
    vmap_rules,
)
from minijax.control_flow.common import zeros_of_aval
from minijax.core import Primitive, impl_rules, set_current_trace
from minijax.forward_mode.jvp import jvp_rules, zeros_like_tangent_aval
from minijax.jaxprs.types import Hook
from minijax.jitting.compilation import compile_cached, loop_placement
from minijax.jitting.primitive import check_jaxpr_operands
from minijax.linearization.linearize import partial_eval_rules
from minijax.rematerialization.caching import weakref_memoize
from minijax.rematerialization.jaxpr_transforms import (
    merge_lists,
    partition_list,
    scatter_by_mask,
    trace_flat_fun,
)
from minijax.reverse_mode.backward_pass import (
    UndefinedPrimal,
    backward_pass,
    transpose_rules,
)
from minijax.scans.step import (
    accumulate_in_carry,
    batch_scan_body,
    dce_scan_body,
    jvp_scan_body,
    partial_eval_scan_body,
    split_list_by_sizes,
)

# scan: a loop with a known number of steps, as a primitive.

scan_p = Primitive("scan")
scan_p.multiple_results = True


def run_steps(step, consts, carry, xs, num_ys, order):
    """Run a step for each row, in this order; return the carry and the rows of ys."""
    ys = [[None] * len(order) for _ in range(num_ys)]
    for i in order:
        outs = step(*consts, *carry, *[_row(x, i) for x in xs])
        carry, rows = split_list_by_sizes(outs, len(carry))
        for y, row in zip(ys, rows):
            y[i] = row
    return carry, ys


def unstacked_aval(aval):
    """Return the abstract value of one row of an array."""
    return aval.update(shape=aval.shape[1:])


def stack_aval(aval, length):
    """Return the abstract value of the array in which `length` rows are stacked."""
    return aval.update(shape=(length, *aval.shape))


def _shape(*avals, jaxpr, length, num_consts, num_carry, **params):
    consts, carry, xs = split_list_by_sizes(avals, num_consts, num_carry)
    if any(x.shape[:1] != (length,) for x in xs):
        raise TypeError(f"A scan of {length} steps takes {length} rows of each: {xs}.")
    given = [*consts, *carry, *(unstacked_aval(x) for x in xs)]
    check_jaxpr_operands("A step of this scan", jaxpr.in_avals, given)
    carry_out, rows = split_list_by_sizes(jaxpr.out_avals, num_carry)
    check_jaxpr_operands("A step of this scan", carry, carry_out)
    return carry_out + [stack_aval(row, length) for row in rows]


shape_rules[scan_p] = _shape


def scan_impl(*args, jaxpr, length, reverse, num_consts, num_carry, unroll):
    """Evaluate a scan: run the program of its step as often as it says."""
    placement = loop_placement(args, scan_p, jaxpr)
    if placement.device.together:  # a group of devices
        params = {"jaxpr": jaxpr, "length": length, "reverse": reverse}
        params |= {"num_consts": num_consts, "num_carry": num_carry, "unroll": unroll}
        avals = jaxpr.out_avals
        return placement.device.together(scan_p, args, params, avals, placement)
    step = compile_cached(jaxpr, placement=placement)
    args = transfer_operands(map(as_array_impl, args), placement.device)
    consts, carry, xs = split_list_by_sizes(args, num_consts, num_carry)
    carry_avals, row_avals = split_list_by_sizes(jaxpr.out_avals, num_carry)
    order = scan_indices(length, reverse)
    carry, ys = run_steps(step, consts, carry, xs, len(row_avals), order)
    buffers = [asbuffer(x, placement.device) for x in carry]
    carry = [ArrayImpl(*pair, placement) for pair in zip(buffers, carry_avals)]
    return carry + [_stacked(*pair, length, placement) for pair in zip(ys, row_avals)]


def scan_indices(length, reverse):
    """Return the numbers of the rows in the order in which a scan takes them."""
    return range(length)[::-1] if reverse else range(length)


def _evaluated(compute, buffers, aval, placement, **params):
    results = placement.device.evaluate(scan_p, compute, buffers, params, [aval])
    return ArrayImpl(results[0], aval, placement)


def _row(x, i):
    aval, buffers = unstacked_aval(x.aval), [asbuffer(x)]
    return _evaluated(lambda xp, x, i: x[i, ...], buffers, aval, x.placement, i=i)


def _stacked(rows, aval, length, placement):
    aval, rows = stack_aval(aval, length), [asbuffer(row) for row in rows]
    return _evaluated(_stack, rows, aval, placement, empty=(aval.shape, aval.dtype))


def _stack(xp, *rows, empty):
    return xp.stack(rows) if rows else xp.empty(*empty)


impl_rules[scan_p] = scan_impl
higher_order_primitives.add(scan_p)


def bind_scan(step, consts, carry, xs, **how):
    """Bind a scan.

    Args:
      step: the `ClosedJaxpr` of one step.
      consts, carry, xs: lists of its operands.
      **how: `length`, `reverse` and `unroll`.

    Returns:
      The list of the last carry, and the list of the ys.
    """
    sizes = {"num_consts": len(consts), "num_carry": len(carry)}
    outs = scan_p.bind(*consts, *carry, *xs, jaxpr=step, **sizes, **how)
    return split_list_by_sizes(outs, len(carry))


# What a scan means to jvp and split.


def _jvp(primals, tangents, jaxpr, num_consts, num_carry, **how):
    sizes = num_consts, num_carry
    moving = tuple([t is not None for t in tangents])
    step, moving, moves = jvp_scan_body(jaxpr, moving, *sizes)
    triples = list(zip(primals, tangents, moving))
    consts, carry, xs = map(_with_tangents, split_list_by_sizes(triples, *sizes))
    carry, ys = bind_scan(step, consts, carry, xs, **how)
    carry, carry_dot = split_list_by_sizes(carry, num_carry)
    ys, ys_dot = split_list_by_sizes(ys, len(jaxpr.outvars) - num_carry)
    return carry + ys, scatter_by_mask(moves, carry_dot + ys_dot)


def _with_tangents(triples):
    """Return the values of a group, followed by the tangents of those that move."""
    pairs = [(x, t) for x, t, moves in triples if moves]
    return [
        *(x for x, _, _ in triples),
        *(zeros_like_tangent_aval(x) if t is None else t for x, t in pairs),
    ]


jvp_rules[scan_p] = _jvp


def partial_eval_scan(trace, args, in_unknown, jaxpr, num_consts, num_carry, **how):
    """Run what is known of a scan, and leave the rest to the tape.

    Args:
      trace: a `PartialEvalTrace`.
      args: the operands; `in_unknown` says which of them are unknown.
      jaxpr, num_consts, num_carry, **how: the parameters of the scan.
    """
    parts = partial_eval_scan_body(jaxpr, tuple(in_unknown), num_consts, num_carry)
    outs = []
    (consts, carry, xs), later = parts.operands(args)
    with set_current_trace(trace.parent):
        decided, in_loop = parts.decide(consts)
        if parts.known:
            last, ys = bind_scan(parts.known, in_loop, carry, xs, **how)
            outs = last + ys
        known, fixed, rows = parts.results([*consts, *carry, *xs], decided, outs)
    consts, carry, xs = later
    with set_current_trace(trace.tape):
        last, ys = bind_scan(parts.unknown, fixed + consts, carry, xs + rows, **how)
    return merge_lists(parts.out_unknown, known, last + ys)


partial_eval_rules[scan_p] = lambda trace, _, args, in_unknown, params: (
    partial_eval_scan(trace, args, in_unknown, **params)
)


# A scan backwards: the last step first, and cotangents as its carry.


@weakref_memoize
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
    known, unknown = partition_list(linear, avals)
    consts, rows = split_list_by_sizes(known, linear[:num_consts].count(False))

    def back(*operands):
        consts_now, cts, rows_now = split_list_by_sizes(
            operands, len(consts), len(ct_avals)
        )
        operands = merge_lists(
            linear, consts_now + rows_now, [UndefinedPrimal(a) for a in unknown]
        )
        arrived = backward_pass(step.jaxpr, step.consts, operands, cts)
        _, arrived = partition_list(linear, arrived)
        return [
            zeros_of_aval(a) if ct is None else ct for a, ct in zip(unknown, arrived)
        ]

    return trace_flat_fun(back, [*consts, *ct_avals, *rows])


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
    known, _ = partition_list(linear, operands)
    num_sums = sum(linear[:num_consts])
    consts, rows = split_list_by_sizes(known, num_consts - num_sums)
    ct_carry, ct_ys = split_list_by_sizes(cts, num_carry)
    ct_avals = *map(typeof, ct_carry), *[unstacked_aval(typeof(ct)) for ct in ct_ys]
    back = transposed_step(step, linear, ct_avals, num_consts, num_carry)
    xs = ct_ys + rows
    totals, ct_carry, ct_xs = with_sums(back, consts, ct_carry, xs, num_sums, **how)
    return scatter_by_mask(linear, totals + ct_carry + ct_xs)


def sum_in_carry(step, consts, carry, xs, num_sums, **how):
    """Run a loop whose step returns the terms of sums, and then what steps return.

    Returns:
      The list of the totals, the list of the last carry, and the list of the ys.
    """
    sums = list(map(zeros_of_aval, step.out_avals[:num_sums]))
    ys = []
    if step.outvars:
        step = accumulate_in_carry(step, len(consts), num_sums)
        carry, ys = bind_scan(step, consts, sums + carry, xs, **how)
    return *split_list_by_sizes(carry, num_sums), ys


# What runs the loop of a transposed scan: its sums may leave the carry.
accumulation_loop_hook = Hook(sum_in_carry)


def _transpose(cts, *operands, jaxpr, num_consts, num_carry, reverse, **how):
    used = tuple([ct is not None for ct in cts])
    step, kept, used = dce_scan_body(jaxpr, used, num_consts, num_carry)
    sizes = [
        sum(group) for group in split_list_by_sizes(kept, num_consts, num_carry)[:2]
    ]
    _, cts = partition_list(used, cts)  # of the results that are used
    _, needed = partition_list(kept, operands)  # those that the step still reads
    cts = [zeros_of_aval(a) if ct is None else ct for ct, a in zip(cts, step.out_avals)]
    linear = [isinstance(x, UndefinedPrimal) for x in needed]
    linear[sizes[0] : sum(sizes)] = [True] * sizes[1]  # zeros, if they are known
    how = {"with_sums": accumulation_loop_hook.value, "reverse": not reverse, **how}
    arrived = run_backwards(cts, needed, tuple(linear), step, *sizes, **how)
    cts = scatter_by_mask(kept, arrived)
    return [
        ct if isinstance(x, UndefinedPrimal) else None for x, ct in zip(operands, cts)
    ]


transpose_rules[scan_p] = _transpose


# A batch of scans is a scan of batches.


def _rows_of_batches(x, dim):
    """Return one of the xs, with its mapped axis behind that of the steps."""
    return x if dim is None else move_one_axis(x, dim, 1)


def _vmap(axis, args, dims, jaxpr, num_consts, num_carry, **how):
    given = tuple([dim is not None for dim in dims])
    step, mapped, outs = batch_scan_body(jaxpr, axis, given, num_consts, num_carry)

    fixed, rows = split_list_by_sizes(
        list(zip(args, dims, mapped)), num_consts + num_carry
    )
    batches = [
        batch_dim_to_front(x, dim, axis.size) if flag else x for x, dim, flag in fixed
    ]
    consts, carry = split_list_by_sizes(batches, num_consts)
    xs = [_rows_of_batches(x, dim) for x, dim, _ in rows]

    carry, ys = bind_scan(step, consts, carry, xs, **how)
    places = [0] * len(carry) + [1] * len(ys)
    return carry + ys, [place if out else None for place, out in zip(places, outs)]


vmap_rules[scan_p] = _vmap
