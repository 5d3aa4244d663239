"""A program in two: what can be done now, and what only the tape will know.

Reference: ``partial_eval_jaxpr_nounits`` in ``jax._src.interpreters.partial_eval``.
"""

# Made from chapters/11_own_rules_ground.md by `make chapter`;
# edit the chapter, not this file.

from typing import NamedTuple

from minijax.core import current_trace, lifetime, set_current_trace
from minijax.forgetting.programs import (
    dce_jaxpr,
    flags_of,
    merge,
    partition,
    with_consts,
)
from minijax.forgetting.remembering import remembered
from minijax.jaxprs.jaxpr import ClosedJaxpr, eval_jaxpr
from minijax.jaxprs.staging import JaxprTrace, JaxprTracer
from minijax.linear.linearization import SplitTrace


@remembered
def split_program(closed, on_tape, instantiate=False):
    """Split a program into what is known now and what is not.

    Args:
      closed: a `ClosedJaxpr`.
      on_tape: for each input whether only the tape will know it.
      instantiate: whether results go to the tape even if they are known: one flag, or
        one for each result.

    Returns:
      A `Split`.
    """
    wanted = flags_of(instantiate, len(closed.outvars))
    now = JaxprTrace(current_trace())
    with lifetime(now), lifetime(JaxprTrace(now)) as tape:
        args = [
            (tape if later else now).new_input(aval)
            for later, aval in zip(on_tape, closed.in_avals)
        ]
        split = SplitTrace(now, tape)
        with set_current_trace(split):
            outs = eval_jaxpr(closed.jaxpr, closed.consts, *args)
        out_on_tape = tuple(map(split.on_tape, outs))
        out_on_tape = tuple(a or b for a, b in zip(out_on_tape, wanted))
        known_outs, tape_outs = partition(out_on_tape, outs)
        jaxpr, consts = tape.to_jaxpr(tape_outs)
        unknown, residuals = _unknown_program(jaxpr, consts, now)
        known, sources = _known_program(now, known_outs, residuals)
    return Split(known, unknown, out_on_tape, sources)


class Split(NamedTuple):
    """A program that was split.

    Attributes:
      known: a `ClosedJaxpr` from the known inputs to the known results, followed by
        residuals.
      unknown: a `ClosedJaxpr` from the residuals, followed by the inputs on the tape,
        to the results on the tape.
      out_on_tape: for each result of the program whether it is on the tape.
      sources: for each residual where it is found: its place among the known inputs,
        followed by the outputs of `known`.
    """

    known: ClosedJaxpr
    unknown: ClosedJaxpr
    out_on_tape: tuple
    sources: tuple

    def residuals(self, known_args, known_outs):
        """Return the values of the residuals."""
        found = [*known_args, *known_outs]
        return [found[source] for source in self.sources]

    def results(self, known_outs, tape_outs):
        """Return the results of the whole program in order."""
        count = self.out_on_tape.count(False)
        return merge(self.out_on_tape, known_outs[:count], tape_outs)


def _unknown_program(jaxpr, consts, now):
    """Prune the tape, and turn those constants into inputs that `now` computes."""
    values = dict(zip(jaxpr.constvars, consts))
    jaxpr = dce_jaxpr(jaxpr, (True,) * len(jaxpr.outvars))
    is_residual = [_is_of(now, values[var]) for var in jaxpr.constvars]
    constvars, residual_vars = partition(is_residual, jaxpr.constvars)
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
    return with_consts(pruned, known), tuple(sources)
