"""Triangular systems of equations: the primitive and all its columns.

Reference: ``jax.lax.linalg.triangular_solve``.
"""

# Made from chapters/31_linear_algebra.md by `make chapter`;
# edit the chapter, not this file.

from minijax import lax
from minijax.arrays.array import primitive_rules
from minijax.arrays.avals import typeof
from minijax.arrays.checks import all_weak
from minijax.batching.rules import at_front, move_axis, vmap_rules
from minijax.core import Array, Primitive
from minijax.emitted.emission import python_rules
from minijax.emitted.evaluations import write_evaluation
from minijax.factorizations.lapack import solved_triangle
from minijax.factorizations.matrices import (
    check_matrices,
    lower_triangle,
    sizes_of_square,
    transposed,
    upper_triangle,
)
from minijax.forward.rules import add_tangents, jvp_rules
from minijax.jitting.costs import FLOPS, _moved, cost_rules
from minijax.kernels.program_steps import cpu_rules, kernel_rules
from minijax.lax.linalg.on_cpu import triangular_on_cpu
from minijax.reverse.transposition import transposes
from minijax.typing import ArrayLike


def _triangular_shape(a, b, *, left_side, **how):
    check_matrices("triangular_solve", a, b)
    _, n = sizes_of_square(
        a,
        "The first input to triangular_solve must be a square matrix. Got shape "
        f"{a.shape[-2:]}.",
    )
    if b.shape[-2 if left_side else -1] != n:
        raise ValueError(
            "Incompatible shapes for arguments to triangular_solve: "
            f"{a.shape[-2:]} and {b.shape[-2:]}."
        )
    return [b.update(weak_type=all_weak([a, b]))]


triangular_solve_p = Primitive("triangular_solve")
primitive_rules(
    triangular_solve_p,
    _triangular_shape,
    lambda xp, *ab, **how: solved_triangle(*ab, **how),
)


def triangular_solve(
    a: ArrayLike,
    b: ArrayLike,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Array:
    """Solve a triangular system, ``op(a) @ x = b`` or ``x @ op(a) = b``.

    Args:
      a: triangular matrices, of shape ``[..., m, m]``; the other triangle is not read.
      b: right-hand sides, ``[..., m, n]`` if `left_side`, else ``[..., n, m]``; or
        single ones, with one axis less.
      left_side: whether `a` stands on the left.
      lower: which triangle of `a` counts.
      transpose_a, conjugate_a: what ``op`` does to `a`.
      unit_diagonal: whether the diagonal is ones, and not read.

    Returns:
      An array like `b`. A zero on the diagonal makes infinities and NaN.

    Reference: ``jax.lax.linalg.triangular_solve``.
    """
    single = typeof(b).ndim == typeof(a).ndim - 1
    b = lax.expand_dims(b, (-1 if left_side else -2,)) if single else b
    how = {"lower": lower, "transpose_a": transpose_a, "unit_diagonal": unit_diagonal}
    how["conjugate_a"] = conjugate_a and typeof(a).dtype.kind == "c"
    [x] = triangular_solve_p.bind(a, b, left_side=left_side, **how)
    return lax.squeeze(x, (x.ndim - (1 if left_side else 2),)) if single else x


def triangular_jvp(primals, tangents, **how):
    """Solve the same system for the tangents: op(a) x' = b' - op(a') x."""
    (a, _), (a_dot, b_dot) = primals, tangents
    [x] = triangular_solve_p.bind(*primals, **how)
    if a_dot is not None:
        read = lower_triangle if how["lower"] else upper_triangle
        k = -1 if how["lower"] else 1
        a_dot = read(a_dot, k if how["unit_diagonal"] else 0)
        a_dot = transposed(a_dot) if how["transpose_a"] else a_dot
        a_dot = a_dot.conj() if how["conjugate_a"] else a_dot
        b_dot = add_tangents(b_dot, -(a_dot @ x if how["left_side"] else x @ a_dot))
    return [x], triangular_solve_p.bind(a, b_dot, **how)


def triangular_transpose(ct, a, b, *, transpose_a, **how):
    """Solve the transposed system for the cotangents."""
    [back] = triangular_solve_p.bind(a, ct, transpose_a=not transpose_a, **how)
    return back


jvp_rules[triangular_solve_p] = triangular_jvp
transposes(triangular_solve_p, None, triangular_transpose)


def triangular_batch(axis, args, dims, **how):
    """Solve all examples at once: as more columns, if they share their matrix."""
    (a, b), (a_dim, b_dim) = args, dims
    if a_dim is not None:
        fronted = [at_front(x, dim, axis.size) for x, dim in zip(args, dims)]
        return triangular_solve_p.bind(*fronted, **how), [0]
    left, last = how["left_side"], typeof(b).ndim - 1
    b = move_axis(b, b_dim, last if left else last - 1)
    *batch, m, n, k = typeof(b).shape
    flat = lax.reshape(b, (*batch, m, n * k) if left else (*batch, m * n, k))
    [x] = triangular_solve_p.bind(a, flat, **how)
    return [lax.reshape(x, typeof(b).shape)], [last if left else last - 1]


def triangular_cost(eqn):
    """Count a multiplication and a subtraction for each number of the triangle."""
    return {FLOPS: eqn.invars[0].aval.shape[-1] * eqn.invars[1].aval.size} | _moved(eqn)


vmap_rules[triangular_solve_p] = triangular_batch
cost_rules[triangular_solve_p] = triangular_cost
python_rules[triangular_solve_p] = write_evaluation
kernel_rules.reasons[triangular_solve_p] = "NumPy substitutes, by blocks, in a step."
cpu_rules[triangular_solve_p] = triangular_on_cpu
