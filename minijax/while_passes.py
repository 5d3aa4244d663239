# Made from chapters/17_passes.md by `make chapter`;
# edit the chapter, not this file.
"""Loops that end when a condition fails, with less to do in each round."""

from minijax.dead_code import acts
from minijax.invariants import moved_before
from minijax.jaxpr import Literal
from minijax.narrowing import narrowed, with_places
from minijax.programs import merge, partition
from minijax.scan_passes import SCANS
from minijax.sweeping import INSIDE, sweeping
from minijax.while_loops import parts_of_while, while_p


def while_parts(eqn, values):
    """Return what belongs to the condition's constants, the body's, and the carry."""
    counts = eqn.params["cond_nconsts"], eqn.params["body_nconsts"]
    return [[*part] for part in parts_of_while(values, *counts)]


def loop_again(sweep, eqn, test, body, operands, outvars):
    """Add a loop in the place of another; return the list of its results.

    Args:
      sweep, eqn: the `Sweep`, and the equation.
      test, body: the programs.
      operands: three lists, the constants of the two and the initial carry.
      outvars: list of variables for the results.
    """
    params = {
        "cond_nconsts": len(operands[0]),
        "cond_jaxpr": test,
        "body_nconsts": len(operands[1]),
        "body_jaxpr": body,
    }
    new = eqn.replace(invars=sum(operands, []), outvars=outvars, params=params)
    return sweep.add(new)


def no_rounds(sweep, eqn):
    """A rule for while: the initial carry, if the condition never holds."""
    [going] = eqn.params["cond_jaxpr"].outvars
    stops = isinstance(going, Literal) and not going.val
    return while_parts(eqn, eqn.invars)[2] if stops else None


def narrow_loop(sweep, eqn):
    """A rule for while: without constants that need not be handed over."""
    test, body = eqn.params["cond_jaxpr"], eqn.params["body_jaxpr"]
    first, second, carry = while_parts(eqn, eqn.invars)
    less_test, kept = narrowed(test, [*first, *carry], 0, len(first))
    first = partition(kept[: len(first)], first)[1]
    less_body, kept = narrowed(body, [*second, *carry], 0, len(second))
    second = partition(kept[: len(second)], second)[1]
    if less_test is test and less_body is body:
        return None
    operands = first, second, carry
    return loop_again(sweep, eqn, less_test, less_body, operands, eqn.outvars)


def carry_less_round(sweep, eqn):
    """A rule for while: what each round hands on as it is, is a constant."""
    test, body = eqn.params["cond_jaxpr"], eqn.params["body_jaxpr"]
    first, second, carry = while_parts(eqn, eqn.invars)
    inside = body.invars[len(second) :]
    changes = [a is not b for a, b in zip(inside, body.outvars)]
    if all(changes):
        return None
    fixed, moving = partition(changes, carry)
    outvars = partition(changes, body.outvars)[1]
    body = with_places(body, _fixed_first(body, len(second), changes), outvars)
    test = with_places(test, _fixed_first(test, len(first), changes))
    body, test = map(sweep.inside.settled, (body, test))
    operands = [*fixed, *first], [*fixed, *second], moving
    outvars = partition(changes, eqn.outvars)[1]
    if not outvars and not acts(eqn):
        return carry
    results = loop_again(sweep, eqn, test, body, operands, outvars)
    return merge(changes, fixed, results)


def _fixed_first(closed, num_consts, changes):
    fixed, moving = partition(changes, closed.invars[num_consts:])
    return [*fixed, *closed.invars[:num_consts], *moving]


def move_before_loop(sweep, eqn):
    """A rule for while: what is the same in each round is computed before the first."""
    test, body = eqn.params["cond_jaxpr"], eqn.params["body_jaxpr"]
    first, second, carry = while_parts(eqn, eqn.invars)
    found = [
        moved_before(sweep, program, len(consts), consts, in_vain=True)
        for program, consts in ((test, first), (body, second))
    ]
    if found == [None, None]:
        return None
    if found[0]:
        test, first = found[0][0], [*found[0][1], *first]
    if found[1]:
        body, second = found[1][0], [*found[1][1], *second]
    return loop_again(sweep, eqn, test, body, (first, second, carry), eqn.outvars)


WHILES = [
    ({while_p}, rule)
    for rule in (no_rounds, narrow_loop, carry_less_round, move_before_loop)
]
lighten_loops = sweeping(INSIDE, *SCANS, *WHILES)
