# Made from chapters/31_linear_algebra.md by `make chapter`;
# edit the chapter, not this file.
"""The columns that all factorizations have in common.

Flops are those of Golub and Van Loan, *Matrix Computations*.
"""

import math

from minijax.batching.rules import move_axis, vmap_rules
from minijax.emitted.emission import python_rules
from minijax.emitted.evaluations import write_evaluation
from minijax.jitting.costs import FLOPS, _moved, cost_rules
from minijax.kernels.program_steps import kernel_rules
from minijax.reverse.transposition import transpose_rules


def common_columns(primitive, flops):
    """Give a factorization its rules for batches and costs, and what stands for others.

    Args:
      primitive: its one operand is an array of matrices.
      flops: function of the rows and columns of a matrix.
    """

    def batched(axis, args, dims, **params):
        results = primitive.bind(move_axis(args[0], dims[0], 0), **params)
        return results, [0] * len(results)

    def cost(eqn):
        *batch, m, n = eqn.invars[0].aval.shape
        return {FLOPS: math.prod(batch) * round(flops(m, n))} | _moved(eqn)

    vmap_rules[primitive], cost_rules[primitive] = batched, cost
    python_rules[primitive] = write_evaluation
    kernel_rules.reasons[primitive] = "LAPACK does it: a step that calls NumPy."
    transpose_rules.reasons[primitive] = "It is not linear; its derivative is."
