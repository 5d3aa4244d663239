"""Partial evaluation of programs: what is known now, and what is left for later.

Reference: ``partial_eval_jaxpr_nounits`` in ``jax._src.interpreters.partial_eval``.
"""

# Made from chapters/11_own_rules_ground.md by `make chapter`;
# edit the chapter, not this file.
# Amended in chapters/11_own_rules_rest.md: partial_eval_jaxpr (8655880c).

from typing import NamedTuple

from minijax.core import current_trace, set_current_trace, trace_scope
from minijax.jaxprs.jaxpr import ClosedJaxpr, JaxprTrace, JaxprTracer, eval_jaxpr
from minijax.linearization.linearize import PartialEvalTrace
from minijax.rematerialization.caching import weakref_memoize
from minijax.rematerialization.jaxpr_transforms import (
    broadcast_flag,
    close_jaxpr,
    dce_jaxpr,
    merge_lists,
    partition_list,
)


class PartialEvalResult(NamedTuple):
    """A program that was split.

    Attributes:
      known: a `ClosedJaxpr` from the known inputs to the known results, followed by
        residuals.
      unknown: a `ClosedJaxpr` from the residuals, followed by the unknown inputs,
        to the unknown results.
      out_unknown: for each result of the program whether it is unknown.
      sources: for each residual where it is found: its place among the known inputs,
        followed by the outputs of `known`.
    """

    known: ClosedJaxpr
    unknown: ClosedJaxpr
    out_unknown: tuple
    sources: tuple

    def residuals(self, known_args, known_outs):
        """Return the values of the residuals."""
        found = [*known_args, *known_outs]
        return [found[source] for source in self.sources]

    def results(self, known_outs, unknown_outs):
        """Return the results of the whole program in order."""
        count = self.out_unknown.count(False)
        return merge_lists(self.out_unknown, known_outs[:count], unknown_outs)


@weakref_memoize
def partial_eval_jaxpr(closed, in_unknown, instantiate=False):
    """Evaluate in part: split a program into what is known now and what is not.

    Args:
      closed: a `ClosedJaxpr`.
      in_unknown: for each input whether it is unknown.
      instantiate: whether results count as unknown even if they are known: one flag, or
        one for each result.

    Returns:
      A `PartialEvalResult`.
    """
    wanted = broadcast_flag(instantiate, len(closed.outvars))
    now = JaxprTrace(current_trace())
    with trace_scope(now), trace_scope(JaxprTrace(now)) as tape:
        args = [
            (tape if later else now).new_input(aval)
            for later, aval in zip(in_unknown, closed.in_avals)
        ]
        trace = PartialEvalTrace(now, tape)
        with set_current_trace(trace):
            outs = eval_jaxpr(closed.jaxpr, closed.consts, *args)
        out_unknown = tuple(map(trace.is_unknown, outs))
        out_unknown = tuple(a or b for a, b in zip(out_unknown, wanted))
        known_outs, unknown_outs = partition_list(out_unknown, outs)
        jaxpr, consts = tape.to_jaxpr(unknown_outs)
        unknown, residuals = _unknown_program(jaxpr, consts, now)
        known, sources = _known_program(now, known_outs, residuals)
    return PartialEvalResult(known, unknown, out_unknown, sources)


def _unknown_program(jaxpr, consts, now):
    """Prune the tape, and turn those constants into inputs that `now` computes."""
    values = dict(zip(jaxpr.constvars, consts))
    jaxpr = dce_jaxpr(jaxpr, (True,) * len(jaxpr.outvars))
    is_residual = [_is_of(now, values[var]) for var in jaxpr.constvars]
    constvars, residual_vars = partition_list(is_residual, jaxpr.constvars)
    jaxpr = jaxpr.replace(constvars=constvars, invars=residual_vars + jaxpr.invars)
    unknown = ClosedJaxpr(jaxpr, [values[var] for var in constvars])
    return unknown, [values[var] for var in residual_vars]


def _is_of(trace, x):
    return isinstance(x, JaxprTracer) and x._trace is trace


def _known_program(now, outs, residuals):
    """Return the program of what is known, and where its residuals are found."""
    atoms = [*now.invars, *map(now.atom, outs)]
    new, sources = [], []
    for residual in residuals:
        if residual.variable not in atoms:
            new.append(residual)
            atoms.append(residual.variable)
        sources.append(atoms.index(residual.variable))
    jaxpr, consts = now.to_jaxpr(outs + new)
    known = ClosedJaxpr(jaxpr, consts)
    pruned = dce_jaxpr(jaxpr, (True,) * len(jaxpr.outvars))
    return close_jaxpr(pruned, known), tuple(sources)
