# Made from chapters/17_passes.md by `make chapter`;
# edit the chapter, not this file.
"""All passes, one by one and together."""

import os

from minijax.algebra import ALGEBRA, do_algebra
from minijax.batching import program_primitives
from minijax.branch_choices import BRANCHES, choose_branches
from minijax.checking import check_jaxpr
from minijax.common_subexpressions import SHARING, share_subexpressions
from minijax.constant_folding import FOLDING, fold
from minijax.contractions import CONTRACTIONS, turn_products
from minijax.dead_code import remove_dead_code, without_dead_code
from minijax.inlining import INLINING, inline_calls
from minijax.printing import jaxprs_in_params
from minijax.rearranging import MOVES, rearrange
from minijax.scan_passes import SCANS
from minijax.settings import _on_or_off, config
from minijax.sweeping import INSIDE, Rules, Settling, swept
from minijax.while_passes import WHILES, lighten_loops

config.define("jax_enable_checks", os.environ.get("JAX_ENABLE_CHECKS", "0"), _on_or_off)

# From names to functions of a `ClosedJaxpr` that return one which means the same.
passes = {
    "inlining": inline_calls,
    "algebra": do_algebra,
    "rearranging": rearrange,
    "contractions": turn_products,
    "branches": choose_branches,
    "loops": lighten_loops,
    "constant folding": fold,
    "common subexpressions": share_subexpressions,
    "dead code": remove_dead_code,
}
_rules = Rules(
    *(INLINING, INSIDE, *BRANCHES, *SCANS, *WHILES),
    *(FOLDING, *ALGEBRA, *MOVES, CONTRACTIONS, SHARING),
)


def _all_at_once(closed, inside):
    program, again = without_dead_code(closed) or closed, True
    while again:
        program = checked(swept(program, _rules, inside)) or program
        less = checked(without_dead_code(program))
        again = less is not None and not programs_in(less) <= programs_in(program)
        program = less or program
    return None if program is closed else program


def programs_in(closed):
    """Return the set of the jaxprs in the equations of a program."""
    eqns = [eqn for eqn in closed.eqns if eqn.primitive in program_primitives]
    return {sub for eqn in eqns for sub in jaxprs_in_params(eqn.params)}


def checked(closed):
    """Return a program, or None; check it if the switch ``jax_enable_checks`` is on."""
    if closed is not None and config.jax_enable_checks:
        check_jaxpr(closed)
    return closed


simplify = Settling(_all_at_once)
