"""Tridiagonal systems of equations: the primitive and all its columns.

Reference: ``jax.lax.linalg.tridiagonal_solve``; Golub and Van Loan, *Matrix
Computations*, section 4.3; LAPACK's ``gtsv``.
"""

# Made from chapters/31_linear_algebra_rest.md by `make chapter`;
# edit the chapter, not this file.

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.arrays.array import primitive_rules
from minijax.arrays.avals import typeof
from minijax.arrays.checks import all_weak
from minijax.batching.rules import at_front, move_axis, vmap_rules
from minijax.core import Array, Primitive
from minijax.emitted.emission import python_rules
from minijax.emitted.evaluations import write_evaluation
from minijax.factorizations.lapack import factored
from minijax.forward.rules import add_tangents, instantiate, jvp_rules
from minijax.jitting.costs import FLOPS, _moved, cost_rules
from minijax.kernels.program_steps import cpu_rules, kernel_rules
from minijax.lax.linalg.on_cpu import tridiagonal_on_cpu
from minijax.lax.linalg.reductions import batch_of
from minijax.lax.linalg.reflections import in_64_bits
from minijax.reverse.transposition import transposes
from minijax.typing import ArrayLike


def _diagonals_shape(dl, d, du, b, *, perturb_singular):
    if len({dl.shape, d.shape, du.shape}) > 1:
        raise TypeError(
            "tridiagonal_solve requires that all diagonal arguments have the same "
            f"shape, got {dl.shape}, {d.shape} and {du.shape}."
        )
    batch_of("tridiagonal_solve", (dl, d, du, b), (1, 1, 1, 2))
    if dl.shape != b.shape[:-1]:
        raise TypeError(
            "tridiagonal_solve requires that the leading ndim-1 dimensions of b equal "
            f"the dimensions of the diagonal arguments, got {b.shape} and {dl.shape}."
        )
    return [b.update(weak_type=all_weak([dl, d, du, b]))]


def _solved(dl, d, du, b, perturb_singular):
    """Eliminate with partial pivoting, and substitute, on arrays of NumPy."""
    dtype = b.dtype
    low, pivots, up, x = map(in_64_bits, (dl, d, du, b))
    n, above, up[..., -1:] = d.shape[-1], np.zeros_like(up), 0
    for i in range(n - 1):
        swap = np.abs(low[..., i + 1]) > np.abs(pivots[..., i])
        here = pivots[..., i], up[..., i], np.zeros_like(up[..., i])
        below = low[..., i + 1], pivots[..., i + 1], up[..., i + 1]
        chosen = [np.where(swap, q, p) for p, q in zip(here, below)]
        rest = [np.where(swap, p, q) for p, q in zip(here, below)]
        row = np.where(swap[..., None], x[..., i + 1, :], x[..., i, :])
        other = np.where(swap[..., None], x[..., i, :], x[..., i + 1, :])
        factor = rest[0] / np.where(chosen[0] == 0, 1, chosen[0])
        pivots[..., i], up[..., i], above[..., i] = chosen
        pivots[..., i + 1] = rest[1] - factor * chosen[1]
        up[..., i + 1] = rest[2] - factor * chosen[2]
        x[..., i, :], x[..., i + 1, :] = row, other - factor[..., None] * row
    if n:
        _mend(pivots, up, above, np.finfo(dtype), perturb_singular)
    for i in range(n - 1, -1, -1):
        for beside, by in (1, up), (2, above):
            if i + beside < n:
                x[..., i, :] -= by[..., i, None] * x[..., i + beside, :]
        x[..., i, :] /= pivots[..., i, None]
    return [x.astype(dtype)]


def _mend(pivots, up, above, numbers, perturb_singular):
    """Replace pivots that are zero, or too small to divide by, in place."""
    if not perturb_singular:
        singular = (pivots == 0).any(-1, keepdims=True)
        pivots[...] = np.where(singular, np.nan, pivots)
        return
    sizes = [np.abs(part).max(-1, keepdims=True) for part in (pivots, up, above)]
    least = np.maximum(numbers.eps * np.maximum.reduce(sizes), numbers.tiny)
    small = np.abs(pivots) < numbers.tiny
    pivots[...] = np.where(small, np.copysign(least, pivots.real), pivots)


tridiagonal_solve_p = Primitive("tridiagonal_solve")


primitive_rules(
    tridiagonal_solve_p,
    _diagonals_shape,
    lambda xp, dl, d, du, b, perturb_singular: factored(
        lambda b: _solved(dl, d, du, b, perturb_singular), b
    ),
)


def _times(dl, d, du, x):
    """Multiply tridiagonal matrices by others."""
    dl, du = dl[..., 1:, None], du[..., :-1, None]
    y = (d[..., None] * x).at[..., 1:, :].add(dl * x[..., :-1, :])
    return y.at[..., :-1, :].add(du * x[..., 1:, :])


def _tridiagonal_jvp(primals, tangents, **how):
    *diagonals, _ = primals
    *dots, b_dot = tangents
    [x] = tridiagonal_solve_p.bind(*primals, **how)
    if any(dot is not None for dot in dots):
        dl, d, du = instantiate(diagonals, dots)
        b_dot = add_tangents(b_dot, -_times(dl, d, du, x))
    return [x], tridiagonal_solve_p.bind(*diagonals, b_dot, **how)


def _tridiagonal_transpose(ct, dl, d, du, b, **how):
    zero = jnp.zeros_like(d[..., :1])
    low = jnp.concatenate([zero, du[..., :-1]], -1)
    up = jnp.concatenate([dl[..., 1:], zero], -1)
    [back] = tridiagonal_solve_p.bind(low, d, up, ct, **how)
    return back


def _tridiagonal_batch(axis, args, dims, **how):
    """Solve all examples at once: as more columns, if they share their matrix."""
    (*diagonals, b), (*axes, place) = args, dims
    if any(dim is not None for dim in axes):
        fronted = [at_front(x, dim, axis.size) for x, dim in zip(args, dims)]
        return tridiagonal_solve_p.bind(*fronted, **how), [0]
    b = move_axis(b, place, typeof(b).ndim - 1)
    *batch, m, n, k = typeof(b).shape
    [x] = tridiagonal_solve_p.bind(
        *diagonals, lax.reshape(b, (*batch, m, n * k)), **how
    )
    return [lax.reshape(x, typeof(b).shape)], [typeof(b).ndim - 1]


jvp_rules[tridiagonal_solve_p] = _tridiagonal_jvp
transposes(tridiagonal_solve_p, None, None, None, _tridiagonal_transpose)
vmap_rules[tridiagonal_solve_p] = _tridiagonal_batch
cost_rules[tridiagonal_solve_p] = lambda eqn: (
    {FLOPS: 4 * eqn.invars[1].aval.size + 5 * eqn.invars[3].aval.size} | _moved(eqn)
)
python_rules[tridiagonal_solve_p] = write_evaluation
kernel_rules.reasons[tridiagonal_solve_p] = "NumPy eliminates, row by row, in a step."
cpu_rules[tridiagonal_solve_p] = tridiagonal_on_cpu


def tridiagonal_solve(
    dl: ArrayLike,
    d: ArrayLike,
    du: ArrayLike,
    b: ArrayLike,
    *,
    perturb_singular: bool = False,
) -> Array:
    """Solve tridiagonal systems of equations.

    Args:
      dl: the diagonals below, of shape ``[..., n]``; the first numbers are not read.
      d: the diagonals, of shape ``[..., n]``.
      du: the diagonals above, of shape ``[..., n]``; the last numbers are not read.
      b: right-hand sides, of shape ``[..., n, k]``.
      perturb_singular: whether to replace pivots that are too small, instead of
        returning NaN or infinities.

    Returns:
      An array like `b`.

    Raises:
      TypeError: for other shapes.

    Reference: ``jax.lax.linalg.tridiagonal_solve``.
    """
    how = {"perturb_singular": perturb_singular}
    return tridiagonal_solve_p.bind(dl, d, du, b, **how)[0]
