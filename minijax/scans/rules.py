"""What a scan means to jvp, split and vmap.

Reference: ``jax.lax.scan``.
"""

# Made from chapters/16_scan.md by `make chapter`;
# edit the chapter, not this file.

from minijax.batching.rules import at_front, move_axis, vmap_rules
from minijax.core import set_current_trace
from minijax.forgetting.programs import merge, spread
from minijax.forward.rules import jvp_rules, zeros_like_tangent
from minijax.linear.linearization import split_rules
from minijax.scans.primitive import bind_scan, scan_p
from minijax.scans.steps import groups, jvp_step, split_step, vmap_step


def _jvp(primals, tangents, jaxpr, num_consts, num_carry, **how):
    sizes = num_consts, num_carry
    moving = tuple([t is not None for t in tangents])
    step, moving, moves = jvp_step(jaxpr, moving, *sizes)
    # Of consts, carry and xs, one after the other: values, tangents and flags.
    by_group = zip(*[groups(each, *sizes) for each in (primals, tangents, moving)])
    consts, carry, xs = [_with_tangents(*group) for group in by_group]
    carry, ys = bind_scan(step, consts, carry, xs, **how)
    carry, carry_dot = groups(carry, num_carry)
    ys, ys_dot = groups(ys, len(jaxpr.outvars) - num_carry)
    return carry + ys, spread(moves, carry_dot + ys_dot)


def _with_tangents(primals, tangents, moving):
    """Return the values of a group, followed by the tangents of those that move."""
    pairs = [(x, t) for x, t, moves in zip(primals, tangents, moving) if moves]
    return [*primals, *(zeros_like_tangent(x) if t is None else t for x, t in pairs)]


jvp_rules[scan_p] = _jvp


def split_scan(split, args, on_tape, jaxpr, num_consts, num_carry, **how):
    """Run what is known of a scan, and leave the rest to the tape.

    Args:
      split: a `SplitTrace`.
      args: the operands; `on_tape` says which of them only the tape will know.
      jaxpr, num_consts, num_carry, **how: the parameters of the scan.
    """
    halves, outs = split_step(jaxpr, tuple(on_tape), num_consts, num_carry), []
    (consts, carry, xs), later = halves.operands(args)
    with set_current_trace(split.parent):
        decided, in_loop = halves.decide(consts)
        if halves.first:
            last, ys = bind_scan(halves.first, in_loop, carry, xs, **how)
            outs = last + ys
        known, fixed, rows = halves.results([*consts, *carry, *xs], decided, outs)
    consts, carry, xs = later
    with set_current_trace(split.tape):
        last, ys = bind_scan(halves.second, fixed + consts, carry, xs + rows, **how)
    return merge(halves.out_on_tape, known, last + ys)


split_rules[scan_p] = lambda split, _, args, on_tape, params: split_scan(
    split, args, on_tape, **params
)


def _rows_of_batches(x, dim):
    """Return one of the xs, with its mapped axis behind that of the steps."""
    return x if dim is None else move_axis(x, dim, 1)


def _vmap(axis, args, dims, jaxpr, num_consts, num_carry, **how):
    given = tuple([dim is not None for dim in dims])
    step, mapped, outs = vmap_step(jaxpr, axis, given, num_consts, num_carry)

    fixed, rows = groups(list(zip(args, dims, mapped)), num_consts + num_carry)
    batches = [at_front(x, dim, axis.size) if flag else x for x, dim, flag in fixed]
    consts, carry = groups(batches, num_consts)
    xs = [_rows_of_batches(x, dim) for x, dim, _ in rows]

    carry, ys = bind_scan(step, consts, carry, xs, **how)
    places = [0] * len(carry) + [1] * len(ys)
    return carry + ys, [place if out else None for place, out in zip(places, outs)]


vmap_rules[scan_p] = _vmap
