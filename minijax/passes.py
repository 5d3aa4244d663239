# Made from chapters/17_passes.md by `make chapter`;
# edit the chapter, not this file.
"""All passes, one by one and together."""

import os

from minijax.algebra import ALGEBRA, do_algebra
from minijax.checking import check_jaxpr
from minijax.common_subexpressions import SHARING, share_subexpressions
from minijax.constant_folding import FOLDING, fold
from minijax.dead_code import remove_dead_code, without_dead_code
from minijax.inlining import INLINING, inline_calls
from minijax.settings import _on_or_off, config
from minijax.sweeping import INSIDE, Rules, settling, swept

config.define("jax_enable_checks", os.environ.get("JAX_ENABLE_CHECKS", "0"), _on_or_off)

# From names to functions of a `ClosedJaxpr` that return one which means the same.
passes = {
    "inlining": inline_calls,
    "algebra": do_algebra,
    "constant folding": fold,
    "common subexpressions": share_subexpressions,
    "dead code": remove_dead_code,
}

_rules = Rules(INLINING, INSIDE, FOLDING, *ALGEBRA, SHARING)


def _all_at_once(closed):
    changed = checked(swept(closed, _rules, simplify))
    return checked(without_dead_code(changed or closed)) or changed


def checked(closed):
    """Return a program, or None; check it if the switch ``jax_enable_checks`` is on."""
    if closed is not None and config.jax_enable_checks:
        check_jaxpr(closed)
    return closed


simplify = settling(_all_at_once)
