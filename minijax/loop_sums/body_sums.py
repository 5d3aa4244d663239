"""The step of a loop, and which sums over its steps can wait until the loop is over.

Reference: J. Appleyard, T. Kočiský and P. Blunsom, *Optimizing Performance of Recurrent
Neural Networks on GPUs* (2016), for the gradients of a recurrent network.
"""

# Made from chapters/22_passes_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax import lax
from minijax.arrays.dtypes import is_inexact
from minijax.batching.rules import primitives
from minijax.forgetting.programs import has_effects
from minijax.jaxprs.jaxpr import Literal
from minijax.jitting.costs import nbytes
from minijax.numpy.scalar_types import finfo

# What is linear in all of its operands together, and what is so in one at a time.
ADDITIVE = frozenset(primitives("""
    neg add sub add_any reduce_sum cumsum broadcast_in_dim reshape squeeze transpose
    rev copy slice pad concatenate real imag complex conj
"""))
BILINEAR = frozenset({lax.mul_p, lax.dot_general_p})


def commutes_with_sums(eqn, moving):
    """Return whether an operation on sums gives the sum of its results.

    Args:
      eqn: a `JaxprEqn`.
      moving: positions of the operands that are not the same in each step.
    """
    if eqn.primitive is lax.convert_element_type_p:
        return keeps_digits(eqn.invars[0].aval.dtype, eqn.params["new_dtype"])
    if eqn.primitive is lax.div_p:
        return moving == [0] and is_inexact(eqn.outvars[0].aval.dtype)
    alone = eqn.primitive in BILINEAR and len(moving) == 1
    return alone or eqn.primitive in ADDITIVE


def keeps_digits(dtype, new_dtype):
    """Return whether sums in `dtype` are as exact as sums in `new_dtype`."""
    inexact = is_inexact(dtype) and is_inexact(new_dtype)
    return inexact and finfo(dtype).eps <= finfo(new_dtype).eps


class Step:
    """One step of a loop, and which of its variables are the same in each step.

    Args:
      jaxpr: from constants, carry and rows, a `Jaxpr`.
      num_consts: how many of its inputs are constants.

    Attributes:
      fixed: set of the variables that depend on constants only.
    """

    def __init__(self, jaxpr, num_consts):
        self.jaxpr, self.num_consts = jaxpr, num_consts
        self.fixed = {*jaxpr.constvars, *jaxpr.invars[:num_consts]}
        for eqn in jaxpr.eqns:
            if not self.moving(eqn) and not has_effects(jaxpr.replace(eqns=[eqn])):
                self.fixed.update(eqn.outvars)

    def is_fixed(self, atom):
        """Return whether a variable, or a literal, is the same in each step."""
        return isinstance(atom, Literal) or atom in self.fixed

    def moving(self, eqn):
        """Return the positions of those operands that are not fixed."""
        return [i for i, x in enumerate(eqn.invars) if not self.is_fixed(x)]

    def moving_operands(self, eqn):
        """Return a dictionary whose keys are the operands that are not fixed."""
        return dict.fromkeys(eqn.invars[i] for i in self.moving(eqn))

    def is_product(self, eqn):
        """Return whether an equation is a matrix product of two moving factors."""
        return eqn.primitive is lax.dot_general_p and len(self.moving(eqn)) == 2


def delayed_eqns(step, stacked):
    """Find the sums that are cheaper to work out after the loop.

    The price of a sum is what a step writes for its sake, in bytes: the whole of it for
    each of its terms, if it is kept in the carry; the factors of a product, if they are
    stacked; nothing, for what is stacked anyway.

    Args:
      step: a `Step`.
      stacked: variables that are stacked anyway.

    Returns:
      A dictionary from variables to the equations that define them, in order.
    """
    kept, prices, delayed = {}, dict.fromkeys(stacked, 0), {}
    for eqn in step.jaxpr.eqns:
        operands = step.moving_operands(eqn)
        if step.is_product(eqn):
            price = sum(nbytes(x.aval) for x in operands if x not in stacked)
        elif operands and commutes_with_sums(eqn, step.moving(eqn)):
            price = sum(prices.get(x, nbytes(x.aval)) for x in operands)
        else:
            continue
        [out] = eqn.outvars
        terms = operands if eqn.primitive is lax.add_any_p else [out]
        kept[out] = sum(kept.get(x, nbytes(x.aval)) for x in terms)
        if price < prices.setdefault(out, kept[out]):
            prices[out], delayed[out] = price, eqn
    return delayed


def work_after(step, terms, stacked):
    """Decide which equations are done after the loop, on sums.

    Args:
      step: a `Step`.
      terms: the variables, and literals, whose sums over all steps are wanted.
      stacked: variables that are stacked anyway.

    Returns:
      The list of equations; a dictionary whose keys are the factors of products among
      them; and another with the variables whose sums the equations start from.
    """
    eqns, factors = [], {}
    starts = dict.fromkeys(x for x in terms if not step.is_fixed(x))
    for out, eqn in reversed(delayed_eqns(step, stacked).items()):
        if out in starts:
            del starts[out]
            eqns.append(eqn)
            more = factors if step.is_product(eqn) else starts
            more.update(step.moving_operands(eqn))
    return eqns[::-1], factors, starts


def work_after_all(step, terms, stacked):
    """Decide like `work_after`, but count as stacked what is stacked for other sums.

    Returns:
      What `work_after` returns, and a dictionary whose keys are all that is stacked.
    """
    stacked = dict.fromkeys(stacked)
    while True:
        eqns, factors, starts = work_after(step, terms, stacked)
        if factors.keys() <= stacked.keys():
            return eqns, factors, starts, stacked
        stacked.update(factors)
