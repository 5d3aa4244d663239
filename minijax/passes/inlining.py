"""Inlining: calls of programs, replaced by what is called."""

# Made from chapters/22_passes.md by `make chapter`;
# edit the chapter, not this file.

from minijax.jitting.primitive import jit_p
from minijax.own_rules.calls import CALLS
from minijax.own_rules.function_calls import callee_rules
from minijax.passes.sweeping import INSIDE, constants_in, rewrite, sweeping


def inline(sweep, closed, args):
    """Add the equations of a program; return what stands for its results.

    Args:
      sweep: a `Sweep`.
      closed: a `ClosedJaxpr`.
      args: what stands for its inputs.
    """
    names = constants_in(sweep, closed) | dict(zip(closed.invars, args))
    rewrite(sweep, closed.eqns, names, renew=True)
    return [names.get(x, x) for x in closed.outvars]


def inline_call(sweep, eqn):
    """A rule: in place of a call, the equations of what is called."""
    if eqn.params.get("backend"):
        return None
    return inline(sweep, callee_rules[eqn.primitive](eqn), eqn.invars)


INLINING = {jit_p, *CALLS}, inline_call
inline_calls = sweeping(INLINING, INSIDE)
