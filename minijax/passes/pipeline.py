"""The pass pipeline: all rewriting rules in their order."""

# Made from chapters/22_passes_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax import lax
from minijax.branches.conditionals import cond_p
from minijax.branches.while_loops import while_p
from minijax.forgetting.remembering import remembered
from minijax.jaxprs.printing import jaxprs_in_params
from minijax.jitting.compilation import canonical
from minijax.kernels.program_steps import jaxpr_passes
from minijax.lax.conversion import convert_element_type_p
from minijax.passes.algebra import ALGEBRA, choose_by_truths
from minijax.passes.combining import together
from minijax.passes.common_subexpressions import SHARING, share_subexpressions
from minijax.passes.constant_folding import FOLDING
from minijax.passes.control_flow import (
    carry_less,
    carry_less_round,
    choose_branch,
    few_steps,
    narrow_branches,
    narrow_loop,
    no_rounds,
    stack_less,
)
from minijax.passes.dead_code import remove_dead_code
from minijax.passes.inlining import INLINING, inline_calls
from minijax.passes.loop_invariants import move_before_loop, multiply_before_scan
from minijax.passes.rearranging import CONTRACTIONS, MOVES
from minijax.passes.sweeping import INSIDE, sweeping
from minijax.scans.primitive import scan_p

BRANCHES = [({cond_p}, choose_branch), ({cond_p}, narrow_branches)]
SCANS = [
    ({scan_p}, rule)
    for rule in (
        few_steps, narrow_loop, carry_less, stack_less, move_before_loop,
        multiply_before_scan,
    )
]  # fmt: skip
WHILES = [
    ({while_p}, rule)
    for rule in (no_rounds, narrow_loop, carry_less_round, move_before_loop)
]

# From names to functions of a `ClosedJaxpr` that return one which means the same.
passes = {
    "inlining": inline_calls,
    "algebra": sweeping(INSIDE, *ALGEBRA),
    "rearranging": sweeping(INSIDE, *MOVES),
    "contractions": sweeping(INSIDE, CONTRACTIONS),
    "branches": sweeping(INSIDE, *BRANCHES),
    "loops": sweeping(INSIDE, *SCANS, *WHILES),
    "constant folding": sweeping(INSIDE, FOLDING),
    "common subexpressions": share_subexpressions,
    "dead code": remove_dead_code,
}
simplify = together(
    *(INLINING, INSIDE, *BRANCHES, *SCANS, *WHILES),
    *(FOLDING, *ALGEBRA, *MOVES, CONTRACTIONS, SHARING),
)
jaxpr_passes.value = simplify


choices = sweeping(INSIDE, ({lax.mul_p}, choose_by_truths))


@remembered
def converts_truths(closed):
    """Return whether a program, or one in it, makes floats of bools."""
    return any(
        (eqn.primitive is convert_element_type_p and eqn.invars[0].aval.dtype == bool)
        or any(map(converts_truths, jaxprs_in_params(eqn.params)))
        for eqn in closed.eqns
    )


canonical.value = lambda closed: choices(closed) if converts_truths(closed) else closed
