# Made from chapters/15_branches.md by `make chapter`;
# edit the chapter, not this file.
"""cond and while in emitted Python: an if, and a loop; and what they cost.

Reference: ``jax.lax.cond``, ``jax.lax.while_loop``.
"""

from functools import reduce
from operator import or_

import numpy as np

from minijax.branches.conditional_rules import empty_p, stop_gradient_p
from minijax.branches.conditionals import cond_p
from minijax.branches.while_loops import parts_of_while, while_p
from minijax.emitted.emission import python_rules
from minijax.jaxprs.jaxpr import Literal
from minijax.jitting.costs import cost_analysis, cost_rules


def write_cond(writer, eqn, operands, results):
    """Write a choice as an if statement, of which one branch runs.

    Args:
      writer: the `Writer` of the function.
      eqn: the equation.
      operands: expressions of its operands.
      results: the names of its results.
    """
    index, *operands = operands
    branches = eqn.params["branches"]
    tests = [f"elif {index} == {number}:" for number in range(len(branches))]
    tests[0] = f"if {index} == 0:"
    if len(branches) == 2:  # the one that is chosen by "true" comes first
        branches, tests[0] = branches[::-1], f"if {index}:"
    for test, branch in zip([*tests[:-1], "else:"], branches):
        with writer.block(test):
            writer.inline(branch, operands, results)


python_rules[cond_p] = write_cond


def write_while(writer, eqn, operands, results):
    """Write a loop; where examples stop at different steps, each keeps its carry."""
    counts = eqn.params["cond_nconsts"], eqn.params["body_nconsts"]
    test_consts, consts, carry = parts_of_while(operands, *counts)
    state = [writer.name("carry") if name == "_" else name for name in results]
    writer.assign(state, carry)
    [pred] = eqn.params["cond_jaxpr"].out_avals
    with writer.block("while True:"):
        [going] = writer.inline(eqn.params["cond_jaxpr"], test_consts + state)
        writer.line(f"if not {going}{'.any()' if pred.ndim else ''}:")
        writer.line("    break")
        stepped = writer.inline(eqn.params["body_jaxpr"], consts + state)
        if pred.ndim:
            ranks = [var.aval.ndim - pred.ndim for var in eqn.outvars]
            stepped = [
                f"np.where({_with_axes(going, rank)}, {new}, {old})"
                for new, old, rank in zip(stepped, state, ranks)
            ]
        writer.assign(state, stepped)


def _with_axes(going, count):
    return f"{going}[..., {', '.join(['None'] * count)}]" if count else going


python_rules[while_p] = write_while


def _write_empty(writer, eqn, operands, results):
    zero = Literal(np.zeros((), eqn.params["dtype"])[()])
    writer.assign(results, [writer.scalar(zero)])


def _write_same(writer, eqn, operands, results):
    writer.assign(results, operands)


python_rules[empty_p] = _write_empty
python_rules[stop_gradient_p] = _write_same


def dearest(eqn):
    """Return, of each cost, that of the branch in which it is largest."""
    return reduce(or_, map(cost_analysis, eqn.params["branches"]))


cost_rules[cond_p] = dearest
