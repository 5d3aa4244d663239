# Made from chapters/18_passes.md by `make chapter`;
# edit the chapter, not this file.
"""Loop-invariant code motion: what is the same in every step is computed once."""

from minijax.branches.while_loops import while_p
from minijax.callbacks.primitives import pure_callback_p
from minijax.forgetting.programs import acts
from minijax.jaxprs.jaxpr import Literal
from minijax.jaxprs.printing import jaxprs_in_params
from minijax.jitting.costs import FLOPS, TRANSCENDENTALS, cost_of, nbytes
from minijax.passes.dead_code import without_dead_code
from minijax.passes.inlining import inline
from minijax.passes.narrowing import variables_read, with_places


def fixed_eqns(closed, num_consts):
    """Return the equations that give the same in each step of a loop, in order.

    Args:
      closed: the step, whose first inputs are the constants.
      num_consts: how many of its inputs are constants.
    """
    fixed, eqns = {*closed.constvars, *closed.invars[:num_consts]}, []
    for eqn in closed.eqns:
        known = all(x in fixed or isinstance(x, Literal) for x in eqn.invars)
        if known and not acts(eqn):
            fixed.update(eqn.outvars)
            eqns.append(eqn)
    return eqns


# What an operation counts in bytes that are read from memory.
WEIGHTS = {FLOPS: 4, TRANSCENDENTALS: 80}


def worth_moving(eqns):
    """Return those equations that cost more to repeat than their results to read.

    Args:
      eqns: list of equations that give the same in each step of a loop.
    """
    again, moved = {}, []
    for eqn in eqns:
        costs = cost_of(eqn)
        price = sum(weight * costs.get(kind, 0) for kind, weight in WEIGHTS.items())
        price += sum(again.get(x, nbytes(x.aval)) for x in variables_of(eqn))
        size = sum(nbytes(var.aval) for var in eqn.outvars)
        if size < price:
            moved.append(eqn)
        again.update(dict.fromkeys(eqn.outvars, min(size, price)))
    return moved


def variables_of(eqn):
    """Return the operands of an equation that are no literals, each once."""
    return dict.fromkeys(x for x in eqn.invars if not isinstance(x, Literal))


def needed_for(moved, eqns):
    """Return those of some equations that others, among them, depend on; in order."""
    wanted, found = {var for eqn in moved for var in eqn.outvars}, []
    for eqn in reversed(eqns):
        if not wanted.isdisjoint(eqn.outvars):
            wanted.update(eqn.invars)
            found.append(eqn)
    return found[::-1]


def may_not_end(eqn):
    """Return whether an equation should not be moved to where it may run in vain."""
    inside = [sub.eqns for sub in jaxprs_in_params(eqn.params)]
    special = eqn.primitive in (while_p, pure_callback_p)
    return special or any(may_not_end(sub) for eqns in inside for sub in eqns)


def moved_before(sweep, closed, num_consts, operands, in_vain=False):
    """Add what a step computes in vain each time, before its loop.

    Args:
      sweep: a `Sweep`.
      closed: the step, a `ClosedJaxpr`.
      num_consts: how many of its inputs are constants.
      operands: what stands for these.
      in_vain: whether there may be no step at all.

    Returns:
      None, or a pair: the step with further inputs, which come first, and what stands
      for them.
    """
    eqns = fixed_eqns(closed, num_consts)
    if in_vain:
        eqns = needed_for([eqn for eqn in eqns if not may_not_end(eqn)], eqns)
    moved = worth_moving(eqns)
    if not moved:
        return None
    gone = {*moved}
    left = [eqn for eqn in closed.eqns if eqn not in gone]
    read = variables_read(with_places(closed, [], eqns=left))
    front = [var for eqn in moved for var in eqn.outvars if var in read]
    before = with_places(
        closed, closed.invars[:num_consts], front, needed_for(moved, eqns)
    )
    results = inline(sweep, before, operands)
    step = with_places(closed, [*front, *closed.invars], eqns=left)
    return sweep.inside.settled(without_dead_code(step) or step), results
