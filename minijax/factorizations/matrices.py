"""Matrices in the last two axes of arrays: adjoints, triangles, diagonals.

Reference: ``jax._src.lax.linalg``.
"""

# Made from chapters/31_linear_algebra.md by `make chapter`;
# edit the chapter, not this file.

import math

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.arrays.avals import typeof
from minijax.arrays.checks import INEXACT, check_kind, check_same_dtype
from minijax.arrays.dtypes import canonicalize_dtype
from minijax.batching.rules import at_front, vmap_rules
from minijax.emitted.emission import python_rules
from minijax.emitted.evaluations import write_evaluation
from minijax.jitting.costs import FLOPS, _moved, cost_rules
from minijax.kernels.program_steps import kernel_rules
from minijax.reverse.transposition import transpose_rules


def transposed(x):
    """Return matrices with rows and columns exchanged."""
    ndim = typeof(x).ndim
    return lax.transpose(x, (*range(ndim - 2), ndim - 1, ndim - 2))


def adjoint(x):
    """Return the conjugate transposes of matrices."""
    return transposed(x).conj()


def symmetrized(x):
    """Return the mean of matrices and their adjoints."""
    return (x + adjoint(x)) / 2


def lower_triangle(x, k=0):
    """Return matrices with zeros above the diagonal number `k`."""
    return lax.select(_on_or_below(x, k), x, lax.full_like(x, 0))


def upper_triangle(x, k=0):
    """Return matrices with zeros below the diagonal number `k`."""
    return lax.select(_on_or_below(x, k - 1), lax.full_like(x, 0), x)


def _on_or_below(x, k):
    *batch, m, n = typeof(x).shape
    integer = canonicalize_dtype(int)
    row = lax.broadcasted_iota(integer, (m, n), 0)
    row = lax.add(row, np.asarray(k, integer)[()])
    mask = lax.ge(row, lax.broadcasted_iota(integer, (m, n), 1))
    return lax.broadcast(mask, batch) if batch else mask


def identity_like(x):
    """Return identities of the shape and dtype of square matrices."""
    shape, dtype = typeof(x).shape, typeof(x).dtype
    return jnp.broadcast_to(jnp.eye(shape[-1], dtype=dtype), shape)


def check_matrices(name, *avals):
    """Raise unless all operands are batches of matrices of one inexact dtype.

    Raises:
      TypeError: for other dtypes, or fewer than two axes.
      ValueError: for batches of different shapes.
    """
    check_kind(name, INEXACT, avals)
    check_same_dtype(name, avals)
    for position, aval in enumerate(avals):
        if aval.ndim < 2:
            raise TypeError(
                f"Input {position} to {name} must have rank at least 2, but got "
                f"shape={aval.shape}"
            )
    check_batches(name, [aval.shape[:-2] for aval in avals])


def check_batches(name, batches):
    """Raise unless the axes in front of all matrices have the same sizes."""
    counts = [len(batch) for batch in batches]
    if len({*counts}) > 1:
        raise TypeError(
            f"All inputs to {name} must have the same number of batch dimensions, but "
            f"got {counts} batch dimensions for the inputs."
        )
    if len({*batches}) > 1:
        raise ValueError(
            f"All inputs to {name} must have the same batch dimensions, but got "
            f"{' and '.join(map(str, batches))}."
        )


def sizes_of_square(aval, complaint):
    """Return the batch and the size of square matrices; others are a ValueError."""
    *batch, m, n = aval.shape
    if m != n:
        raise ValueError(complaint)
    return tuple(batch), n


def common_columns(primitive, flops):
    """Give a factorization its rules for batches and costs, and what stands for others.

    Args:
      primitive: its first operand is an array of matrices.
      flops: function of the rows and columns of a matrix; the counts are those of Golub
        and Van Loan, *Matrix Computations*.
    """

    def batched(axis, args, dims, **params):
        fronted = [at_front(x, dim, axis.size) for x, dim in zip(args, dims)]
        results = primitive.bind(*fronted, **params)
        return results, [0] * len(results)

    def cost(eqn):
        shape = eqn.invars[0].aval.shape
        count = math.prod(shape[:-2]) * round(flops(*shape[-2:]))
        return {FLOPS: count} | _moved(eqn)

    vmap_rules[primitive], cost_rules[primitive] = batched, cost
    python_rules[primitive] = write_evaluation
    kernel_rules.reasons[primitive] = "LAPACK does it: a step that calls NumPy."
    transpose_rules.reasons[primitive] = "It is not linear; its derivative is."
