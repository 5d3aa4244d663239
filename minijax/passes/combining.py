"""All rewriting rules in one walk down, and dead code in one walk up."""

# Made from chapters/22_passes.md by `make chapter`;
# edit the chapter, not this file.

import os

from minijax.arrays.settings import _on_or_off, config
from minijax.jaxprs.checking import check_jaxpr
from minijax.jaxprs.printing import jaxprs_in_params
from minijax.passes.dead_code import without_dead_code
from minijax.passes.sweeping import Rules, Settling, swept

config.define("jax_enable_checks", os.environ.get("JAX_ENABLE_CHECKS", "0"), _on_or_off)


def together(*ordered):
    """Return a pass that does what all of some rules and dead-code elimination do.

    Args:
      *ordered: the pairs for `Rules`.
    """
    rules = Rules(*ordered)

    def change(closed, inside):
        program, again = without_dead_code(closed) or closed, True
        while again:
            program = checked(swept(program, rules, inside)) or program
            less = checked(without_dead_code(program))
            again = less is not None and not programs_in(less) <= programs_in(program)
            program = less or program
        return None if program is closed else program

    return Settling(change)


def programs_in(closed):
    """Return the set of the jaxprs in the equations of a program."""
    return {sub for eqn in closed.eqns for sub in jaxprs_in_params(eqn.params)}


def checked(closed):
    """Return a program, or None; check it if the switch ``jax_enable_checks`` is on."""
    if closed is not None and config.jax_enable_checks:
        check_jaxpr(closed)
    return closed
