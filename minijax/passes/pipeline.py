# Made from chapters/18_passes.md by `make chapter`;
# edit the chapter, not this file.
"""The pass pipeline in its order, with the passes on branches and while loops."""

import os

from minijax import lax
from minijax.arrays.checks import free_axes
from minijax.arrays.settings import _on_or_off, config
from minijax.batching.trace import program_primitives
from minijax.branches.conditionals import cond_p
from minijax.branches.while_loops import parts_of_while, while_p
from minijax.forgetting.programs import acts, merge, partition
from minijax.jaxprs.checking import check_jaxpr
from minijax.jaxprs.jaxpr import Literal
from minijax.jaxprs.printing import jaxprs_in_params
from minijax.kernels.program_steps import jaxpr_passes
from minijax.passes.algebra import ALGEBRA, do_algebra
from minijax.passes.common_subexpressions import SHARING, key_of, share_subexpressions
from minijax.passes.constant_folding import FOLDING, fold
from minijax.passes.dead_code import remove_dead_code, without_dead_code
from minijax.passes.inlining import INLINING, inline, inline_calls
from minijax.passes.loop_invariants import moved_before
from minijax.passes.narrowing import narrowed, variables_read, with_places
from minijax.passes.rearranging import MOVES, rearrange
from minijax.passes.scan_passes import SCANS
from minijax.passes.sweeping import INSIDE, Rules, Settling, sweeping, swept


def turn_operands(sweep, eqn):
    """A rule: axes of what was transposed, in place of axes of the transpose."""
    contracting, batch = eqn.params["dimension_numbers"]
    sides = [
        untransposed(sweep, x, *axes)
        for x, *axes in zip(eqn.invars, contracting, batch)
    ]
    operands = [side[0] for side in sides]
    if operands == eqn.invars:
        return None
    numbers = tuple([tuple([side[i] for side in sides]) for i in (1, 2)])
    return sweep.put(
        lax.dot_general_p, *operands, **eqn.params | {"dimension_numbers": numbers}
    )


def untransposed(sweep, x, contracting, batch):
    """Return an operand of a product without its transpose, and its axes.

    The transpose stays if the free axes would come in another order.
    """
    inner = sweep.definition(x, lax.transpose_p)
    if inner is None:
        return x, contracting, batch
    order = inner.params["permutation"]
    free = [order[axis] for axis in free_axes(x.aval.ndim, contracting, batch)]
    if free != sorted(free):
        return x, contracting, batch
    axes = [tuple([order[axis] for axis in some]) for some in (contracting, batch)]
    return inner.invars[0], *axes


CONTRACTIONS = {lax.dot_general_p}, turn_operands
turn_products = sweeping(INSIDE, CONTRACTIONS)


def choose_branch(sweep, eqn):
    """A rule for cond: the branch itself, if there is nothing to choose."""
    index, *operands = eqn.invars
    branches = eqn.params["branches"]
    if isinstance(index, Literal):
        return inline(sweep, branches[int(index.val)], operands)
    return inline(sweep, branches[0], operands) if len({*branches}) == 1 else None


def narrow_branches(sweep, eqn):
    """A rule for cond: without what no branch reads, and what all of them hand on."""
    index, *operands = eqn.invars
    branches = eqn.params["branches"]
    handed = [*map(agreed, zip(*[handed_on(branch, operands) for branch in branches]))]
    computed = [x is None for x in handed]
    branches = [
        with_places(b, b.invars, partition(computed, b.outvars)[1]) for b in branches
    ]
    same = places_of_first(operands)
    read = {same[i] for branch in branches for i in places_read(branch)}
    kept = [place in read for place in range(len(operands))]
    if all(computed) and all(kept):
        return None
    branches = tuple([_with_fewer(b, operands, kept, same) for b in branches])
    invars = [index, *partition(kept, operands)[1]]
    outvars = partition(computed, eqn.outvars)[1]
    new = eqn.replace(invars=invars, outvars=outvars, params={"branches": branches})
    results = iter(sweep.add(new) if outvars or acts(new) else ())
    return [next(results) if x is None else x for x in handed]


def handed_on(closed, operands):
    """Return for each result what it is outside; None for one that is computed."""
    outside = dict(zip(closed.invars, operands))
    return [x if isinstance(x, Literal) else outside.get(x) for x in closed.outvars]


def agreed(atoms):
    """Return the one atom that all of these are, or None."""
    return atoms[0] if None not in atoms and len(set(map(key_of, atoms))) == 1 else None


def places_of_first(operands):
    """Return for each operand the first place where it stands; None for a literal."""
    places = {x: i for i, x in reversed([*enumerate(operands)])}
    return [None if isinstance(x, Literal) else places[x] for x in operands]


def places_read(closed):
    """Return the places of the inputs that a program reads or returns."""
    read = variables_read(closed)
    return [place for place, var in enumerate(closed.invars) if var in read]


def _with_fewer(branch, operands, kept, same):
    names = {}
    for var, x, keep, place in zip(branch.invars, operands, kept, same):
        if not keep and place is not None:
            names[var] = branch.invars[place]
        elif not keep:
            names[var] = Literal(x.val, var.aval)
    return with_places(branch, partition(kept, branch.invars)[1], names=names)


BRANCHES = [({cond_p}, choose_branch), ({cond_p}, narrow_branches)]
choose_branches = sweeping(INSIDE, *BRANCHES)


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
jaxpr_passes.value = simplify
