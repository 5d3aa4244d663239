# Made from chapters/17_passes.md by `make chapter`;
# edit the chapter, not this file.
"""What is known of branches before the program runs."""

from minijax.common_subexpressions import key_of
from minijax.conditionals import cond_p
from minijax.dead_code import acts
from minijax.inlining import inline
from minijax.jaxpr import Literal
from minijax.narrowing import variables_read, with_places
from minijax.programs import partition
from minijax.sweeping import INSIDE, sweeping


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
