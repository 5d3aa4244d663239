# Made from chapters/18_passes.md by `make chapter`;
# edit the chapter, not this file.
"""Programs inside of equations that are given less."""

from minijax.forgetting.programs import partition
from minijax.jaxprs.jaxpr import ClosedJaxpr, Jaxpr, Literal


def with_places(closed, invars, outvars=None, eqns=None, names=()):
    """Return a program with other inputs, results or equations.

    Args:
      closed: a `ClosedJaxpr`.
      invars, outvars, eqns: lists; None for those that it has.
      names: dictionary from variables to what is read instead of them.
    """
    eqns = closed.eqns if eqns is None else eqns
    outvars = closed.outvars if outvars is None else outvars
    if names:
        eqns = [e.replace(invars=[names.get(x, x) for x in e.invars]) for e in eqns]
        outvars = [names.get(x, x) for x in outvars]
    return ClosedJaxpr(Jaxpr(closed.constvars, invars, outvars, eqns), closed.consts)


def variables_read(closed):
    """Return the set of the variables that a program reads or returns."""
    return {x for eqn in closed.eqns for x in eqn.invars}.union(closed.outvars)


def narrowed(closed, operands, first, last):
    """Return a program with fewer inputs, and for each old one whether it is kept.

    An input goes if nobody reads it, if it is a literal, or the same as another one.

    Args:
      closed: a `ClosedJaxpr`.
      operands: what it is given.
      first, last: the places from where, and before which, inputs may go.
    """
    read, names, seen = variables_read(closed), {}, {}
    for var, x in [*zip(closed.invars, operands)][first:last]:
        if isinstance(x, Literal):
            names[var] = Literal(x.val, var.aval)
        elif var in read and seen.setdefault(x, var) is not var:
            names[var] = seen[x]
    read.difference_update(names)
    kept = [
        not first <= place < last or var in read
        for place, var in enumerate(closed.invars)
    ]
    if all(kept):
        return closed, kept
    return with_places(closed, partition(kept, closed.invars)[1], names=names), kept
