"""The residuals of a function: what its derivative keeps, and where it was made.

Reference: ``jax.ad_checkpoint.print_saved_residuals``.
"""

# Made from chapters/11_own_rules_rest.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Callable
from typing import Any

from minijax.jaxprs.jaxpr import Literal
from minijax.jaxprs.staging import trace_to_jaxpr
from minijax.linear.linearization import linearize_flat
from minijax.pytrees.api_util import FlatCall


def print_saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Print what the derivative of a function keeps, a line for each array.

    Args:
      f: a function of trees of arrays.
      *args, **kwargs: its arguments.

    Reference: ``jax.ad_checkpoint.print_saved_residuals``.
    """
    call = FlatCall("saved_residuals", f, args, kwargs)
    for aval, source in _saved_residuals(call):
        print(aval.str_short(), source)


def _saved_residuals(call):
    """Return pairs of an abstract value and a text."""

    def residuals(*flat):
        outs, _, consts = linearize_flat(call, flat)
        return consts

    jaxpr, _ = trace_to_jaxpr(residuals, call.avals)
    kept = {*[atom for atom in jaxpr.outvars if not isinstance(atom, Literal)]}
    literals = [atom for atom in jaxpr.outvars if isinstance(atom, Literal)]
    found = [(atom.aval, "from a literal") for atom in literals]
    found += [(v.aval, "from a constant") for v in jaxpr.constvars if v in kept]
    found += [
        (var.aval, f"from the argument {name}")
        for var, name in zip(jaxpr.invars, call.names())
        if var in kept
    ]
    made = [(eqn, var) for eqn in jaxpr.eqns for var in eqn.outvars if var in kept]
    return found + [(var.aval, _maker(eqn)) for eqn, var in made]


def _maker(eqn):
    """Return what an equation is called, and where it was written."""
    name, where = eqn.params.get("name"), f" from {eqn.source}" if eqn.source else ""
    if eqn.primitive.name == "name":
        return f"named {name!r}{where}"
    if eqn.primitive.name == "jit":
        return f"output of jitted function {name!r}{where}"
    return f"output of {eqn.primitive.name}{where}"
