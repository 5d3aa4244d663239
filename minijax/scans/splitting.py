# Made from chapters/16_scan.md by `make chapter`;
# edit the chapter, not this file.
"""A scan in two: a loop that runs now, and one that only the tape will run.

Loop-invariant code motion: what the constants of a loop decide is done before it.

Reference: ``jax.linearize`` of a scan.
"""

from typing import NamedTuple

from minijax.branches.rewiring import rewired
from minijax.branches.settling import settle
from minijax.core import set_current_trace
from minijax.forgetting.programs import has_effects, merge, partition, stage
from minijax.forgetting.remembering import remembered
from minijax.forgetting.splitting import Split, split_program
from minijax.jaxprs.jaxpr import ClosedJaxpr, jaxpr_as_fun
from minijax.linear.linearization import split_rules
from minijax.scans.primitive import bind_scan, groups, scan_p


class SplitStep(NamedTuple):
    """A step that was split.

    Attributes:
      on_tape: for each operand of the scan whether only the tape will know it.
      out_on_tape: the same for each result.
      known: a `Split` of the known step: its `known` part, which the constants decide,
        is done before the loop, and its `unknown` part is the step of the loop that
        runs now. Its results are the known ones, and new residuals.
      unknown: the `ClosedJaxpr` of the step on the tape.
      sources: for each residual where it is found: its place among the known operands,
        followed by the new residuals.
      stacked: for each residual whether it has a row for each step.
    """

    on_tape: tuple
    out_on_tape: tuple
    known: Split
    unknown: ClosedJaxpr
    sources: tuple
    stacked: tuple


def _hoisted(step, varies, in_loop):
    """Split a step into what is done before the loop, and the rest; effects stay."""
    if not has_effects(step):
        return split_program(step, varies, in_loop)
    return Split(stage(lambda: [], []), step, (True,) * len(in_loop), ())


def _rows_last(unknown, stacked):
    """Return a program whose residuals with a row for each step come after the rest."""
    invariant, rows = partition(stacked, range(len(stacked)))
    rest = range(len(stacked), len(unknown.invars))
    return rewired(unknown, [*invariant, *rest, *rows])


def _count_known(on_tape):
    return on_tape.count(False)


def _known_step(parts, num_consts, num_carry, num_xs):
    """Return the `Split` of the known step, and where residuals come from, and how."""
    varies = (False,) * num_consts + (True,) * (num_carry + num_xs)
    carry = range(num_consts, num_consts + num_carry)
    new = [s for s in dict.fromkeys(parts.sources) if s in carry or s >= len(varies)]
    step, num_outs = parts.known, _count_known(parts.out_on_tape)
    atoms = step.invars + step.outvars
    outvars = step.outvars[:num_outs] + [atoms[source] for source in new]
    step = step.replace(jaxpr=step.jaxpr.replace(outvars=outvars))
    known = _hoisted(step, varies, (True,) * num_outs + (False,) * len(new))
    places = {source: len(varies) + i for i, source in enumerate(new)}
    sources = tuple([places.get(source, source) for source in parts.sources])
    varies += known.out_on_tape[num_outs:]
    return known, sources, tuple([varies[source] for source in sources])


@remembered
def split_step(step, on_tape, num_consts, num_carry):
    """Split the step of a scan.

    Args:
      step: a `ClosedJaxpr`.
      on_tape: for each operand of the scan whether only the tape will know it.
      num_consts, num_carry: how many operands are constants, and carry.

    Returns:
      A `SplitStep`. A carry that some step puts on the tape is there from the start.
    """
    consts, carry, xs = groups(on_tape, num_consts, num_carry)
    rows = (False,) * (len(step.outvars) - num_carry)

    def parts_for(carry):
        return split_program(step, consts + carry + xs, carry + rows)

    carry = settle(lambda carry: parts_for(carry).out_on_tape[:num_carry], carry)
    parts, on_tape = parts_for(carry), consts + carry + xs
    counts = [_count_known(group) for group in (consts, carry, xs)]
    known, sources, stacked = _known_step(parts, *counts)
    unknown = _rows_last(parts.unknown, stacked)
    return SplitStep(on_tape, parts.out_on_tape, known, unknown, sources, stacked)


def _run_known(parts, consts, carry, xs, **how):
    """Return the known results of a scan, and its residuals."""
    before, step = parts.known.known, parts.known.unknown
    decided_by, in_loop = groups(consts, len(before.invars))
    decided, outs = jaxpr_as_fun(before)(*decided_by), []
    in_loop = parts.known.residuals(decided_by, decided) + in_loop
    if step.outvars or has_effects(step):
        outs = sum(bind_scan(step, in_loop, carry, xs, **how), [])
    outs = parts.known.results(decided, outs)
    num_outs = _count_known(parts.out_on_tape)
    found = [*consts, *carry, *xs, *outs[num_outs:]]
    return outs[:num_outs], [found[source] for source in parts.sources]


def split_scan(split, args, on_tape, jaxpr, num_consts, num_carry, **how):
    """Run what is known of a scan, and leave the rest to the tape.

    Args:
      split: a `SplitTrace`.
      args: the operands; `on_tape` says which of them only the tape will know.
      jaxpr, num_consts, num_carry, **how: the parameters of the scan.
    """
    sizes = num_consts, num_carry
    parts = split_step(jaxpr, tuple(on_tape), *sizes)
    pairs = zip(groups(parts.on_tape, *sizes), groups(args, *sizes))
    known, later = zip(*[partition(flags, operands) for flags, operands in pairs])
    with set_current_trace(split.parent):
        known_outs, residuals = _run_known(parts, *known, **how)
    invariant, rows = partition(parts.stacked, residuals)
    consts, carry, xs = later
    with set_current_trace(split.tape):
        outs = bind_scan(parts.unknown, invariant + consts, carry, xs + rows, **how)
    return merge(parts.out_on_tape, known_outs, sum(outs, []))


split_rules[scan_p] = lambda split, _, args, on_tape, params: split_scan(
    split, args, on_tape, **params
)
