"""Sums over the steps of a loop that are worked out after the loop.

Reference: J. Appleyard, T. Kočiský and P. Blunsom, *Optimizing Performance of
Recurrent Neural Networks on GPUs* (2016), for the gradients of a recurrent network.
"""

# Made from chapters/22_passes_rest.md by `make chapter`;
# edit the chapter, not this file.

from collections import Counter, defaultdict

import numpy as np

from minijax import lax
from minijax.arrays.dtypes import is_inexact
from minijax.batching.vmap import primitives_named
from minijax.control_flow.common import zeros_of_aval
from minijax.diagnostics.tracebacks import source_line_readers
from minijax.jaxprs.jaxpr import JaxprEqn, Literal, Var, eval_jaxpr
from minijax.jitting.primitive import jit_p
from minijax.jitting.stages import nbytes
from minijax.lax.arithmetic import astype
from minijax.numpy.scalar_types import finfo
from minijax.passes.rewriting import rewrite_pass
from minijax.passes.simplification import inline_call
from minijax.rematerialization.caching import weakref_memoize
from minijax.rematerialization.jaxpr_transforms import (
    close_jaxpr,
    dce_jaxpr,
    has_effects,
)
from minijax.scans.scan import accumulation_loop_hook, bind_scan
from minijax.scans.step import split_list_by_sizes

# The step of a loop, and which sums over its steps can wait until the loop is over.

# What is linear in all of its operands together, and what is so in one at a time.
ADDITIVE = frozenset(
    primitives_named("""
    neg add sub add_any reduce_sum cumsum broadcast_in_dim reshape squeeze transpose
    rev copy slice pad concatenate real imag complex conj
""")
)
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


class ScanBody:
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

    def is_invariant(self, atom):
        """Return whether a variable, or a literal, is the same in each step."""
        return isinstance(atom, Literal) or atom in self.fixed

    def moving(self, eqn):
        """Return the positions of those operands that are not fixed."""
        return [i for i, x in enumerate(eqn.invars) if not self.is_invariant(x)]

    def variant_operands(self, eqn):
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
      step: a `ScanBody`.
      stacked: variables that are stacked anyway.

    Returns:
      A dictionary from variables to the equations that define them, in order.
    """
    kept, prices, delayed = {}, dict.fromkeys(stacked, 0), {}
    for eqn in step.jaxpr.eqns:
        operands = step.variant_operands(eqn)
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
      step: a `ScanBody`.
      terms: the variables, and literals, whose sums over all steps are wanted.
      stacked: variables that are stacked anyway.

    Returns:
      The list of equations; a dictionary whose keys are the factors of products among
      them; and another with the variables whose sums the equations start from.
    """
    eqns, factors = [], {}
    starts = dict.fromkeys(x for x in terms if not step.is_invariant(x))
    for out, eqn in reversed(delayed_eqns(step, stacked).items()):
        if out in starts:
            del starts[out]
            eqns.append(eqn)
            more = factors if step.is_product(eqn) else starts
            more.update(step.variant_operands(eqn))
    return eqns[::-1], factors, starts


def sunk_cost(step, terms, stacked):
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


# Sums over the steps of a loop that are worked out after the loop.


def contract_steps(eqn, lhs, rhs):
    """Return the sum over the steps of a matrix product.

    Args:
      eqn: the equation of the product in one step.
      lhs, rhs: the factors of all steps, stacked along a new axis 0.
    """
    contracting, batch = (
        tuple(tuple(axis + 1 for axis in axes) for axes in pair)
        for pair in eqn.params["dimension_numbers"]
    )
    numbers = tuple((0, *axes) for axes in contracting), batch
    params = eqn.params | {"dimension_numbers": numbers}
    return lax.dot_general_p.bind(lhs, rhs, **params)


class AfterLoop:
    """What is known after a loop: values that never changed, stacks, and sums.

    Args:
      step: the `ScanBody`.
      length: the number of steps.
      values: dictionary from fixed variables to their values.
      stacks: dictionary from variables to their values in all steps, along axis 0.
      sums: dictionary from variables to the sums of their values.
    """

    def __init__(self, step, length, values, stacks, sums):
        self.step, self.length = step, length
        self.values, self.stacks, self.sums = values, stacks, sums

    def value(self, atom):
        """Return the value, the same in each step, of an atom that is fixed."""
        return atom.value if isinstance(atom, Literal) else self.values[atom]

    def total(self, atom):
        """Return the sum of an atom's values over all steps."""
        if atom not in self.sums and atom in self.stacks:
            self.sums[atom] = lax.reduce_sum(self.stacks[atom], [0])
        if atom in self.sums:
            return self.sums[atom]
        times = np.asarray(self.length).astype(atom.aval.dtype)
        return lax.mul(self.value(atom), times)

    def operand(self, eqn, atom):
        """Return what takes the place of an operand: a sum, or what never changed."""
        one_at_a_time = eqn.primitive in BILINEAR or eqn.primitive is lax.div_p
        if one_at_a_time and self.step.is_invariant(atom):
            return self.value(atom)
        return self.total(atom)

    def do(self, eqn):
        """Work out the sum of an equation's results."""
        [out] = eqn.outvars
        if self.step.is_product(eqn):
            lhs, rhs = (self.stacks[x] for x in eqn.invars)
            self.sums[out] = contract_steps(eqn, lhs, rhs)
        else:
            operands = [self.operand(eqn, x) for x in eqn.invars]
            [self.sums[out]] = eqn.primitive.bind_all(*operands, **eqn.params)


source_line_readers.add(AfterLoop.do)  # what it binds belongs to the user's line


def first_addition(x, additions, uses):
    """Return the equation that adds the first two terms of `x`; None if it has one."""
    eqn = None
    while x in additions and uses[x] == 1:
        eqn = additions[x]
        x = eqn.invars[0]
    return eqn


def add_to_sums(jaxpr, terms):
    """Let a step add to sums, as soon as there is something to add.

    Args:
      jaxpr: the step, a `Jaxpr`.
      terms: list of variables and literals, one for each sum.

    Returns:
      The list of the equations, with the additions; the variables of the sums before
      the step; and those of the sums after it.
    """
    before, after = [Var(x.aval) for x in terms], []
    added, changed = defaultdict(list), {}
    additions = {e.outvars[0]: e for e in jaxpr.eqns if e.primitive is lax.add_any_p}
    uses = Counter([*(x for eqn in jaxpr.eqns for x in eqn.invars), *jaxpr.outvars])
    for total, x in zip(before, terms):
        addition, grown = first_addition(x, additions, uses), Var(x.aval)
        first = addition.invars[0] if addition else x
        added[first].append(JaxprEqn([total, first], [grown], lax.add_any_p, {}))
        if addition:
            changed[addition] = addition.replace(invars=[grown, addition.invars[1]])
        after.append(x if addition else grown)
    return _placed(jaxpr.eqns, added, changed), before, after


def _placed(eqns, added, changed):
    made = {out for eqn in eqns for out in eqn.outvars}
    placed = [new for x in added if x not in made for new in added[x]]
    for eqn in eqns:
        placed.append(changed.get(eqn, eqn))
        placed.extend(new for out in eqn.outvars for new in added[out])
    return placed


class SunkSums:
    """A step of a loop that has less to do, and what is done after the loop instead.

    Attributes:
      body: a `ClosedJaxpr` from constants, sums, carry and rows to sums, carry, rows of
        results, and further rows, the stacks.
      sum_avals: the types of the sums, which start at zero.
    """

    def __init__(self, body, num_consts, num_carry, num_sums, length, delay):
        self.step, self.length = ScanBody(body.jaxpr, num_consts), length
        self.terms, results = body.outvars[:num_sums], body.outvars[num_sums:]
        xs, ys = body.invars[num_consts + num_carry :], results[num_carry:]
        self.eqns, self.kept, stacks = self._decide(xs, ys, delay)
        self.stacked = [*xs, *ys, *stacks]
        self.sum_avals = [x.aval for x in self.kept]
        self.body = self._body(body, [*results, *stacks])
        self.fixed = self._fixed_program(body)

    def _decide(self, xs, ys, delay):
        if not delay:
            return [], list(dict.fromkeys(self.terms)), []
        free = [x for x in (*xs, *ys) if not self.step.is_invariant(x)]
        eqns, factors, starts, stacked = sunk_cost(self.step, self.terms, free)
        kept = [x for x in starts if x not in stacked]
        needed = dict.fromkeys([*factors, *(x for x in starts if x in stacked)])
        return eqns, kept, [x for x in needed if x not in free]

    def _body(self, body, results):
        step = _swept(body, body.invars, [*self.kept, *results], body.eqns)
        eqns, before, after = add_to_sums(step.jaxpr, self.kept)
        consts, others = split_list_by_sizes(body.invars, self.step.num_consts)
        invars, outvars = [*consts, *before, *others], [*after, *results]
        return _swept(body, invars, outvars, eqns)

    def _fixed_program(self, body):
        fixed, consts = self.step.fixed, body.invars[: self.step.num_consts]
        atoms = [*self.terms, *(x for eqn in self.eqns for x in eqn.invars)]
        eqns = [eqn for eqn in body.eqns if fixed.issuperset(eqn.outvars)]
        needed = [x for x in dict.fromkeys(atoms) if x in fixed]
        return _swept(body, consts, needed, eqns)

    def totals(self, consts, xs, ys, stacks, sums):
        """Return the sums of all terms.

        Args:
          consts: the loop's constants.
          xs, ys, stacks: lists of the rows, the rows of results, and the further rows
            of all steps, along axis 0.
          sums: list of the sums that the loop has kept.
        """
        if self.length == 0:
            return [with_type_of(x, lax.full(x.aval.shape, 0)) for x in self.terms]
        values = eval_jaxpr(self.fixed.jaxpr, self.fixed.consts, *consts)
        values = dict(zip(self.fixed.outvars, values))
        stacks = dict(zip(self.stacked, [*xs, *ys, *stacks]))
        sums = dict(zip(self.kept, sums))
        loop = AfterLoop(self.step, self.length, values, stacks, sums)
        for eqn in self.eqns:
            loop.do(eqn)
        return [with_type_of(x, loop.total(x)) for x in self.terms]


def _swept(body, invars, outvars, eqns):
    jaxpr = body.jaxpr.replace(invars=invars, outvars=outvars, eqns=eqns)
    return close_jaxpr(dce_jaxpr(jaxpr, (True,) * len(outvars)), body)


def with_type_of(atom, x):
    """Return `x` in the dtype, and as weak, as a variable's."""
    return astype(x, atom.aval.dtype, atom.aval.weak_type)


without_calls = rewrite_pass(({jit_p}, inline_call))


@weakref_memoize
def sink_sums(body, num_consts, num_carry, num_sums, length, delay=True):
    """Take out of a loop what it does for sums over its steps, where that is cheaper.

    Args:
      body: the step, a `ClosedJaxpr` from constants, carry and rows to the terms of
        sums, carry and rows of results.
      num_consts, num_carry: how many of its inputs are of either kind.
      num_sums: how many of its results are terms of sums.
      length: the number of steps.
      delay: whether sums may be delayed; if not, all are kept in the carry.

    Returns:
      The `SunkSums`.
    """
    sizes = num_consts, num_carry, num_sums, length
    if delay and any(eqn.primitive is jit_p for eqn in body.eqns):
        opened = SunkSums(without_calls(body), *sizes, delay)
        if opened.eqns:
            return opened
    return SunkSums(body, *sizes, delay)


def run_planned(plan, consts, carry, xs, num_ys, **how):
    """Run the loop of a plan.

    Args:
      plan: the `SunkSums`.
      consts, carry, xs: lists of the loop's operands, without the sums.
      num_ys: how many arrays of rows are results.
      **how: `length`, `reverse` and `unroll`.

    Returns:
      The list of the totals, the list of the last carry, and the list of the ys.
    """
    carry, ys = [*map(zeros_of_aval, plan.sum_avals), *carry], []
    if plan.body.outvars:
        carry, ys = bind_scan(plan.body, consts, carry, xs, **how)
    sums, carry = split_list_by_sizes(carry, len(plan.sum_avals))
    ys, stacks = split_list_by_sizes(ys, num_ys)
    return plan.totals(consts, xs, ys, stacks, sums), carry, ys


def run_with_sunk_sums(step, consts, carry, xs, num_sums, **how):
    """Run a loop whose step returns the terms of sums; let those wait that can."""
    plan = sink_sums(step, len(consts), len(carry), num_sums, how["length"])
    num_ys = len(step.outvars) - num_sums - len(carry)
    return run_planned(plan, consts, carry, xs, num_ys, **how)


accumulation_loop_hook.value = run_with_sunk_sums
