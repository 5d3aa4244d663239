"""A choice in emitted Python: an if statement; and what it costs.

Reference: ``jax.lax.cond``.
"""

# Made from chapters/15_branches.md by `make chapter`;
# edit the chapter, not this file.

from functools import reduce
from operator import or_

import numpy as np

from minijax.branches.conditionals import cond_p
from minijax.branches.rewiring import empty_p
from minijax.emitted.emission import python_rules
from minijax.emitted.in_place import write_into
from minijax.jaxprs.jaxpr import Literal
from minijax.jitting.costs import cost_analysis, cost_rules
from minijax.own_rules.stopped_gradients import stop_gradient_p


def write_cond(writer, eqn, operands, results):
    """Write a choice as an if statement, of which one branch runs.

    Args:
      writer: the `PythonWriter` of the function.
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
            write_into(writer, branch, operands, results)


python_rules[cond_p] = write_cond


def most_expensive(eqn):
    """Return, of each cost, that of the branch in which it is largest."""
    return reduce(or_, map(cost_analysis, eqn.params["branches"]))


cost_rules[cond_p] = most_expensive
python_rules[empty_p] = lambda writer, eqn, operands, results: writer.assign(
    results, [writer.scalar(Literal(np.zeros((), eqn.params["dtype"])[()]))]
)
python_rules[stop_gradient_p] = lambda writer, eqn, operands, results: writer.assign(
    results, operands
)
