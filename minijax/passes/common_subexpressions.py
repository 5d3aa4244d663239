"""Common-subexpression elimination: what is computed twice, computed once."""

# Made from chapters/22_passes.md by `make chapter`;
# edit the chapter, not this file.

import functools
import math

import numpy as np

from minijax import lax
from minijax.forgetting.programs import acts
from minijax.forgetting.remembering import key_of_params
from minijax.jaxprs.jaxpr import Literal
from minijax.passes.sweeping import INSIDE, sweeping

COMMUTATIVE = frozenset(
    {lax.add_p, lax.add_any_p, lax.mul_p, lax.and_p, lax.or_p, lax.xor_p}
    | {lax.eq_p, lax.ne_p}
)


def use_twin(sweep, eqn):
    """A rule: results of an equation that was written before."""
    if acts(eqn):
        return None
    operands = [key_of(x) for x in eqn.invars]
    if eqn.primitive in COMMUTATIVE and eqn.invars[0].aval.dtype.kind != "c":
        operands = [frozenset(operands)]
    key = (eqn.primitive, *operands, key_of_params(eqn.params))
    twin = sweep.seen.setdefault(key, eqn)
    return None if twin is eqn else twin.outvars


SHARING = None, use_twin
share_subexpressions = sweeping(INSIDE, SHARING)


def key_of(atom):
    """Return what two atoms have in common if they are bit by bit the same."""
    if type(atom) is not Literal:
        return atom
    number, dtype = atom.val, atom.aval.dtype
    if type(number) is float:
        return dtype, bits_of(number, dtype, math.copysign(1.0, number))
    return dtype, np.asarray(number, dtype).tobytes()


@functools.lru_cache(4096)
def bits_of(number, dtype, sign):
    """Return the bytes of a number; its sign is given since 0.0 is equal to -0.0."""
    return np.asarray(number, dtype).tobytes()
