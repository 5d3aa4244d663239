"""Cost analysis: the operations and bytes of a program, counted in its text.

Reference: ``jax.stages.Compiled.cost_analysis``, ``memory_analysis``; the conventions
are those of XLA's ``HloCostAnalysis``.
"""

# Made from chapters/12_jit_rest.md by `make chapter`;
# edit the chapter, not this file.

import math
from collections import Counter
from dataclasses import dataclass

from minijax import lax
from minijax.core import RuleTable
from minijax.jaxprs.printing import jaxprs_in_params

FLOPS, TRANSCENDENTALS, BYTES = "flops", "transcendentals", "bytes accessed"

# Elementwise functions that a processor computes by a series.
_transcendental = {
    lax.exp_p, lax.exp2_p, lax.expm1_p, lax.log_p, lax.log1p_p, lax.sin_p, lax.cos_p,
    lax.tan_p, lax.asin_p, lax.acos_p, lax.atan_p, lax.atan2_p, lax.sinh_p, lax.cosh_p,
    lax.tanh_p, lax.asinh_p, lax.acosh_p, lax.atanh_p, lax.sqrt_p, lax.rsqrt_p,
    lax.cbrt_p, lax.logistic_p, lax.erf_p, lax.erfc_p, lax.erf_inv_p, lax.lgamma_p,
    lax.digamma_p, lax.pow_p,
}  # fmt: skip

# Operations that move numbers and compute none.
_moves = {
    lax.broadcast_in_dim_p, lax.reshape_p, lax.transpose_p, lax.squeeze_p, lax.rev_p,
    lax.copy_p, lax.iota_p, lax.pad_p, lax.concatenate_p, lax.real_p,
    lax.imag_p, lax.complex_p,
}  # fmt: skip


def nbytes(aval):
    """Return the size of the arrays of an abstract value in bytes."""
    return aval.size * aval.dtype.itemsize


def _moved(eqn):
    atoms = [*eqn.invars, *eqn.outvars]
    return {BYTES: sum(nbytes(atom.aval) for atom in atoms)}


def _results(eqn):
    return sum(var.aval.size for var in eqn.outvars)


def _ordinary(eqn):
    """What the programs in it cost, or else one operation for each result."""
    inner = jaxprs_in_params(eqn.params)
    if inner:
        return sum(map(cost_analysis, inner), Counter())
    return {FLOPS: _results(eqn)} | _moved(eqn)


# Rules ``rule(eqn)`` return the costs of an equation, a dictionary.
cost_rules = RuleTable("cost", default=_ordinary)
cost_rules.update(dict.fromkeys(_moves, _moved))

cost_rules.update(
    dict.fromkeys(
        _transcendental, lambda eqn: {TRANSCENDENTALS: _results(eqn)} | _moved(eqn)
    )
)


def _contraction(eqn):
    lhs = eqn.invars[0].aval
    (contracted, _), _ = eqn.params["dimension_numbers"]
    width = math.prod(lhs.shape[axis] for axis in contracted)
    return {FLOPS: 2 * width * _results(eqn)} | _moved(eqn)


def _reduction(eqn):
    return {FLOPS: eqn.invars[0].aval.size - _results(eqn)} | _moved(eqn)


def _sliced(eqn):
    return {BYTES: 2 * nbytes(eqn.outvars[0].aval)}


def _power(eqn):
    steps = abs(eqn.params["y"])
    return {FLOPS: _results(eqn) * max(steps - 1, 1)} | _moved(eqn)


cost_rules[lax.dot_general_p] = _contraction
cost_rules[lax.slice_p] = _sliced
cost_rules[lax.integer_pow_p] = _power

cost_rules.update(
    (getattr(lax, f"reduce_{name}_p"), _reduction)
    for name in "sum prod max min and or xor".split()
)


def cost_of(eqn):
    """Return the costs of an equation, a dictionary."""
    return cost_rules[eqn.primitive](eqn)


def cost_analysis(jaxpr):
    """Return what a jaxpr costs, a `Counter`.

    Its keys are ``"flops"`` (arithmetic operations), ``"transcendentals"`` (elementary
    functions) and ``"bytes accessed"`` (operands read and results written, by each
    equation on its own).
    """
    total = Counter()
    for eqn in jaxpr.eqns:
        total.update(cost_of(eqn))
    return total


def peak_of_temporaries(jaxpr):
    """Return how many bytes of intermediate results are alive at once, at most.

    Arguments, constants and results of the program are not counted.
    """
    last = {atom: n for n, eqn in enumerate(jaxpr.eqns) for atom in eqn.invars}
    alive, peak, dying = 0, 0, Counter()
    for number, eqn in enumerate(jaxpr.eqns):
        for var in eqn.outvars:
            if var not in jaxpr.outvars:
                alive += nbytes(var.aval)
                dying[last.get(var, number)] += nbytes(var.aval)
        inner = map(peak_of_temporaries, jaxprs_in_params(eqn.params))
        peak = max(peak, alive + max(inner, default=0))
        alive -= dying[number]
    return peak


@dataclass(frozen=True)
class CompiledMemoryStats:
    """How many bytes a program needs, and what for.

    Reference: ``jax.stages.Compiled.memory_analysis``.
    """

    generated_code_size_in_bytes: int
    argument_size_in_bytes: int
    output_size_in_bytes: int
    alias_size_in_bytes: int
    temp_size_in_bytes: int

    @property
    def peak_memory_in_bytes(self):
        """All of it, what arguments share with results counted once."""
        return (
            self.argument_size_in_bytes
            + self.output_size_in_bytes
            - self.alias_size_in_bytes
            + self.temp_size_in_bytes
        )


def memory_analysis(jaxpr, aliased, text):
    """Return the `CompiledMemoryStats` of a program.

    Args:
      jaxpr: a `Jaxpr`.
      aliased: for each input whether a result has its memory.
      text: the code that was generated.
    """
    sizes = list(map(nbytes, jaxpr.in_avals))
    return CompiledMemoryStats(
        generated_code_size_in_bytes=len(text.encode()),
        argument_size_in_bytes=sum(sizes),
        output_size_in_bytes=sum(map(nbytes, jaxpr.out_avals)),
        alias_size_in_bytes=sum(n for n, shared in zip(sizes, aliased) if shared),
        temp_size_in_bytes=peak_of_temporaries(jaxpr),
    )
