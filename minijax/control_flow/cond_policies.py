"""Checkpoint policies inside of conditionals: residuals merged by their types.

Reference: ``_cond_remat`` in ``jax._src.lax.control_flow.conditionals``.
"""

# Made from chapters/15_branches_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax.control_flow.common import (
    closed_jaxpr_with_io,
    read_residual_slots,
    residual_slots,
    write_residual_slots,
)
from minijax.control_flow.conditionals import cond_p
from minijax.jaxprs.jaxpr import Var
from minijax.rematerialization.jaxpr_transforms import dce_rules
from minijax.rematerialization.remat import (
    RematSplit,
    policy_allows_saving,
    remat_partial_eval,
    remat_partial_eval_rules,
    save_outputs,
)


def _keep(eqn, policy):
    branches = eqn.params["branches"]
    parts = [remat_partial_eval(branch, policy) for branch in branches]
    if policy_allows_saving(policy, eqn) or not any(part.residuals for part in parts):
        return save_outputs(eqn, policy)
    avals = [[var.aval for var in part.residuals] for part in parts]
    slots, places = residual_slots(avals)
    now = [_returning(part, slots, own) for part, own in zip(parts, places)]
    again = [_reading(part, slots, own) for part, own in zip(parts, places)]
    kept, (index, *operands) = [Var(aval) for aval in slots], eqn.invars
    now = eqn.replace(
        outvars=[*eqn.outvars, *kept], params=eqn.params | {"branches": tuple(now)}
    )
    again = eqn.replace(
        invars=[index, *kept, *operands], params=eqn.params | {"branches": tuple(again)}
    )
    again = dce_rules[cond_p](again, (True,) * len(again.outvars))
    return RematSplit(now, again, kept)


def _returning(part, slots, places):
    """Return a branch that fills the slots with what is kept, after its results."""
    count = len(part.known.outvars) - len(part.residuals)
    first = len(part.known.invars) + count
    sources = tuple(range(first, first + len(part.residuals)))
    return write_residual_slots(part.known, count, sources, slots, places)


def _reading(part, slots, places):
    """Return a branch that is given the slots first, and computes the rest again."""
    count = len(part.staged.invars) - len(part.residuals)
    places_now = [*range(count, len(part.staged.invars)), *range(count)]
    return read_residual_slots(
        closed_jaxpr_with_io(part.staged, places_now), slots, places
    )


remat_partial_eval_rules[cond_p] = _keep
