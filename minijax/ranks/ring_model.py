"""The alpha-beta model: how long collectives take, before anything runs.

Reference: R. Hockney, "The communication challenge for MPP" (Parallel Computing, 1994).
"""

# Made from chapters/37_machines.md by `make chapter`;
# edit the chapter, not this file.

from typing import NamedTuple

from minijax import lax
from minijax.jaxprs.printing import jaxprs_in_params


class Line(NamedTuple):
    """What connects two ranks: a message of S bytes takes ``alpha + beta * S``.

    Attributes:
      alpha: seconds of an empty message.
      beta: seconds of each further byte.
    """

    alpha: float
    beta: float


# Of each collective among `p` ranks: how many rounds a ring makes, and what share of
# the operand's bytes each rank sends in a round.
ROUNDS = {
    lax.psum_p: lambda p: (2 * (p - 1), 1 / p),
    lax.pmax_p: lambda p: (2 * (p - 1), 1 / p),
    lax.pmin_p: lambda p: (2 * (p - 1), 1 / p),
    lax.all_gather_p: lambda p: (p - 1, 1.0),
    lax.reduce_scatter_p: lambda p: (p - 1, 1 / p),
    lax.all_to_all_p: lambda p: (p - 1, 1 / p),
    lax.ppermute_p: lambda p: (1, 1.0),
}


def collectives_of(jaxpr, times=1):
    """Yield each collective of a program, its bytes, and how often it is done."""
    for eqn in jaxpr.eqns:
        if eqn.primitive in ROUNDS:
            aval = eqn.invars[0].aval
            yield eqn.primitive, aval.size * aval.dtype.itemsize, times
        for inner in jaxprs_in_params(eqn.params):
            inner = getattr(inner, "jaxpr", inner)
            yield from collectives_of(inner, times * eqn.params.get("length", 1))


def predict(jaxpr, p, line, compute=0.0):
    """Return the seconds of a step on `p` ranks, whose computing takes `compute`."""
    for primitive, size, times in collectives_of(jaxpr):
        rounds, share = ROUNDS[primitive](p)
        compute += times * rounds * (line.alpha + size * share * line.beta)
    return compute
