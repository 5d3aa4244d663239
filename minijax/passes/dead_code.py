"""Dead-code elimination: equations whose results are not used, taken away."""

# Made from chapters/22_passes.md by `make chapter`;
# edit the chapter, not this file.

from minijax.forgetting.programs import acts, dce_rules, with_consts
from minijax.passes.sweeping import INSIDE, Rules, Settling, swept


def without_dead_code(closed):
    """Return a program without what its results and effects do not need, or None."""
    needed, eqns = set(closed.outvars), []
    for eqn in reversed(closed.eqns):
        used = [var in needed for var in eqn.outvars]
        if any(used) or acts(eqn):
            eqns.append(eqn if all(used) else trimmed(eqn, tuple(used)))
            needed.update(eqns[-1].invars)
    constvars = [var for var in closed.constvars if var in needed]
    eqns.reverse()
    if eqns == closed.eqns and constvars == closed.constvars:
        return None
    return with_consts(closed.jaxpr.replace(eqns=eqns, constvars=constvars), closed)


def trimmed(eqn, used):
    """Return an equation without results that are not used, if they can be spared."""
    less = dce_rules[eqn.primitive](eqn, used)
    sizes = [(len(e.invars), len(e.outvars)) for e in (eqn, less)]
    return eqn if sizes[0] == sizes[1] else less


def _everywhere(closed, inside):
    inner = swept(closed, Rules(INSIDE), inside)
    return without_dead_code(inner or closed) or inner


remove_dead_code = Settling(_everywhere)
