"""scan: a loop with a known number of steps, as a primitive.

A scan runs the program of one step again and again. Its operands fall into three
groups: *constants*, which all steps see; the *carry*, which each step hands to the
next; and *xs*, arrays whose rows are handed out, one per step. A step returns the new
carry, and a row for each of the *ys*, the arrays in which these rows are stacked.

Reference: ``jax.lax.scan``.
"""

# Made from chapters/16_scan.md by `make chapter`;
# edit the chapter, not this file.

from minijax.arrays.array import ArrayImpl, asarray_impl, asbuffer, shape_rules
from minijax.arrays.transfer import brought
from minijax.batching.trace import program_primitives
from minijax.core import Primitive, impl_rules
from minijax.jitting.compilation import compiled, place_to_run
from minijax.jitting.primitive import check_operands
from minijax.scans.steps import groups

scan_p = Primitive("scan")


def row_aval(aval):
    """Return the abstract value of one row of an array."""
    return aval.update(shape=aval.shape[1:])


def stacked_aval(aval, length):
    """Return the abstract value of the array in which `length` rows are stacked."""
    return aval.update(shape=(length, *aval.shape))


def _shape(*avals, jaxpr, length, num_consts, num_carry, **params):
    consts, carry, xs = groups(avals, num_consts, num_carry)
    if any(x.shape[:1] != (length,) for x in xs):
        raise TypeError(f"A scan of {length} steps takes {length} rows of each: {xs}.")
    given = [*consts, *carry, *(row_aval(x) for x in xs)]
    check_operands("A step of this scan", jaxpr.in_avals, given)
    carry_out, rows = groups(jaxpr.out_avals, num_carry)
    check_operands("A step of this scan", carry, carry_out)
    return carry_out + [stacked_aval(row, length) for row in rows]


shape_rules[scan_p] = _shape


def run_steps(step, consts, carry, xs, num_ys, order):
    """Run a step for each row, in this order; return the carry and the rows of ys."""
    ys = [[None] * len(order) for _ in range(num_ys)]
    for i in order:
        outs = step(*consts, *carry, *[_row(x, i) for x in xs])
        carry, rows = groups(outs, len(carry))
        for y, row in zip(ys, rows):
            y[i] = row
    return carry, ys


def step_by_step(*args, jaxpr, length, reverse, num_consts, num_carry, unroll):
    """Evaluate a scan: run the program of its step as often as it says."""
    placement = place_to_run(args, scan_p, jaxpr)
    if placement.device.together:  # a group of devices
        params = {"jaxpr": jaxpr, "length": length, "reverse": reverse}
        params |= {"num_consts": num_consts, "num_carry": num_carry, "unroll": unroll}
        avals = jaxpr.out_avals
        return placement.device.together(scan_p, args, params, avals, placement)
    step = compiled(jaxpr, placement=placement)
    args = brought(map(asarray_impl, args), placement.device)
    consts, carry, xs = groups(args, num_consts, num_carry)
    carry_avals, row_avals = groups(jaxpr.out_avals, num_carry)
    order = order_of_rows(length, reverse)
    carry, ys = run_steps(step, consts, carry, xs, len(row_avals), order)
    buffers = [asbuffer(x, placement.device) for x in carry]
    carry = [ArrayImpl(*pair, placement) for pair in zip(buffers, carry_avals)]
    return carry + [_stacked(*pair, length, placement) for pair in zip(ys, row_avals)]


def order_of_rows(length, reverse):
    """Return the numbers of the rows in the order in which a scan takes them."""
    return range(length)[::-1] if reverse else range(length)


def _evaluated(compute, buffers, aval, placement, **params):
    results = placement.device.evaluate(scan_p, compute, buffers, params, [aval])
    return ArrayImpl(results[0], aval, placement)


def _row(x, i):
    aval, buffers = row_aval(x.aval), [asbuffer(x)]
    return _evaluated(lambda xp, x, i: x[i, ...], buffers, aval, x.placement, i=i)


def _stacked(rows, aval, length, placement):
    aval, rows = stacked_aval(aval, length), [asbuffer(row) for row in rows]
    return _evaluated(_stack, rows, aval, placement, empty=(aval.shape, aval.dtype))


def _stack(xp, *rows, empty):
    return xp.stack(rows) if rows else xp.empty(*empty)


impl_rules[scan_p] = step_by_step
program_primitives.add(scan_p)


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
    return groups(outs, len(carry))
