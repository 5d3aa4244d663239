"""Mutants of passes: faults that once were there, or nearly, each as a pass with it.

`SEEDS` has for each of them a program of `tests.pass_programs` that shows it.
"""

from contextlib import nullcontext
from unittest.mock import patch

from minijax import clear_caches, lax
from minijax.passes import simplification as common_subexpressions
from minijax.passes import simplification as identities
from minijax.passes.pipeline import EXACT_REDUCTIONS
from minijax.passes.rewriting import INNER_JAXPR_RULES, insert_eqn, rewrite_pass
from minijax.passes.simplification import (
    CSE_RULES,
    IDENTITY_RULES,
    Identity,
    identity_rules,
)


def _join_without_empty(sweep, eqn):
    """Operands are dropped that are empty along any axis, and rows are lost."""
    parts = []
    for x in eqn.invars:
        inner = sweep.definition(x, eqn.primitive)
        inside = inner is not None and inner.params == eqn.params
        parts += inner.invars if inside else [x] if x.aval.size else []
    if not parts or parts == eqn.invars:
        return None
    return insert_eqn(sweep, eqn.primitive, *parts, **eqn.params)


def _reduce_one(sweep, eqn):
    """The maximum of one complex number is that number, whatever it begins with."""
    [x], axes = eqn.invars, eqn.params["axes"]
    if any(x.aval.shape[axis] != 1 for axis in axes):
        return None
    return insert_eqn(sweep, lax.reshape_p, x, new_sizes=eqn.outvars[0].aval.shape)


def _match_some(sweep, terms, atoms, names):
    """Operands that a term has no place for are forgotten."""
    matches = identities.matches
    return all(matches(sweep, *pair, names) for pair in zip(terms, atoms))


def _value_of(atom):
    """0.0 is -0.0, as Python says."""
    literal = isinstance(atom, common_subexpressions.Literal)
    return (atom.aval.dtype, atom.val) if literal else atom


_ZERO = Identity(("add", "x", 0), "x", "biuhfc")
_NAN = Identity(("sub", "x", "x"), 0, "biuhfc")

# From names to a pass, and what is patched while it runs.
MUTANTS = {
    "empty operands": (
        rewrite_pass(INNER_JAXPR_RULES, ({lax.concatenate_p}, _join_without_empty)),
        (),
    ),
    "complex maximum": (
        rewrite_pass(INNER_JAXPR_RULES, (EXACT_REDUCTIONS, _reduce_one)),
        (),
    ),
    "more operands": (
        rewrite_pass(INNER_JAXPR_RULES, IDENTITY_RULES),
        (identities, "all_match", _match_some),
    ),
    "two zeros": (
        rewrite_pass(INNER_JAXPR_RULES, CSE_RULES),
        (common_subexpressions, "atom_key", _value_of),
    ),
    "x + 0 = x": (rewrite_pass(INNER_JAXPR_RULES, identity_rules([_ZERO])), ()),
    "x - x = 0": (rewrite_pass(INNER_JAXPR_RULES, identity_rules([_NAN])), ()),
}
SEEDS = {
    "empty operands": 108,
    "complex maximum": 3977,
    "more operands": 27,
    "two zeros": 553,
    "x + 0 = x": 1178,
    "x - x = 0": 35,
}


def brought_back(name):
    """A dictionary with the pass that has the fault, and a context to run it in."""
    run, patched = MUTANTS[name]
    clear_caches()
    return {name: run}, patch.object(*patched) if patched else nullcontext()
