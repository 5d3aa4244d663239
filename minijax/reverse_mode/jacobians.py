"""Jacobians and Hessians: derivatives in all directions at once.

Reference: ``jax.jacfwd``, ``jax.jacrev``, ``jax.hessian``.
"""

# Made from chapters/10_reverse_rest.md by `make chapter`;
# edit the chapter, not this file.

import functools
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

from minijax import lax
from minijax import numpy as jnp
from minijax.arrays.array import typeof
from minijax.arrays.dtypes import canonicalize_dtype
from minijax.batching.vmap import (
    MappedAxis,
    batch_flat_fun,
    broadcast_batch_dim,
    move_one_axis,
)
from minijax.forward_mode.jvp import jvp_flat_fun
from minijax.lax.arithmetic import astype
from minijax.lax.reductions import promote_types
from minijax.pytrees.argument_checks import check_callable
from minijax.reverse_mode.argument_checks import (
    check_input_dtypes_grad,
    check_input_dtypes_jacfwd,
    check_output_dtypes_jacfwd,
    check_output_dtypes_revderiv,
    flatten_diff_args,
    is_float0,
    named_after,
    tree_per_argnum,
)
from minijax.reverse_mode.backward_pass import vjp_flat_fun
from minijax.typing import P


def standard_basis(avals):
    """Return the unit vectors of a list of arrays, laid end to end.

    Args:
      avals: the abstract values of the arrays, with n elements altogether.

    Returns:
      A list of arrays of shape ``(n, *aval.shape)``: the k-th entries of all of them
      are zero, but for a one at the k-th element.
    """
    if not avals:
        return []
    sizes = [aval.size for aval in avals]
    dtype = functools.reduce(promote_types, [aval.dtype for aval in avals])
    eye = jnp.eye(sum(sizes), dtype=canonicalize_dtype(dtype))

    def unit_vectors(part, aval):
        vectors = lax.reshape(part, (len(eye), *aval.shape))
        return astype(vectors, aval.dtype, aval.weak_type)

    return list(map(unit_vectors, split_by_argument(eye, sizes, 1), avals))


def split_by_argument(x, sizes, axis):
    """Cut an array into pieces of the given sizes along an axis."""
    if len(sizes) == 1:
        return [x]
    return [
        lax.slice_in_dim(x, end - size, end, axis=axis)
        for size, end in zip(sizes, accumulate(sizes))
    ]


def along_basis(f, avals):
    """Map a function of flat arguments over the unit vectors of `avals`.

    Returns:
      The list of its results, and the list of their mapped axes (None: it is constant).
    """
    axis = MappedAxis(None, sum(aval.size for aval in avals))
    return batch_flat_fun(f, standard_basis(avals), [0] * len(avals), axis)


def blocks(x, dim, place, avals, shapes, like):
    """Cut a result of `along_basis` into one block for each of `avals`.

    Args:
      x: the result; None, or of dtype ``float0``, where all derivatives are zero.
      dim: its mapped axis.
      place: where the mapped axis belongs.
      avals: the abstract values whose basis it was mapped over.
      shapes: the shapes of the blocks.
      like: the abstract value that has the dtype of the blocks, and is as weak.
    """
    if x is None or is_float0(x):
        zero = astype(0, like.dtype, like.weak_type)
        return [lax.full(shape, zero) for shape in shapes]
    sizes = [aval.size for aval in avals]
    x = (
        broadcast_batch_dim(x, place, sum(sizes))
        if dim is None
        else move_one_axis(x, dim, place)
    )
    x = astype(x, like.dtype, like.weak_type)
    pieces = split_by_argument(x, sizes, place)
    return [lax.reshape(piece, shape) for piece, shape in zip(pieces, shapes)]


def drop_tangent_axis(x, dim):
    """Return a result that all tangents share; rules may have mapped it with them."""
    return x if dim is None else lax.index_in_dim(x, 0, dim, keepdims=False)


def _shapes(outs, ins):
    """Return the shapes of the blocks of a Jacobian, one row after the other."""
    return [(*out.shape, *aval.shape) for out in outs for aval in ins]


def _arranged(call, argnums, rows):
    """Put blocks together: a tree like the result, of trees like the arguments."""
    return call.out_tree.unflatten(
        [tree_per_argnum(call, argnums, row) for row in rows]
    )


def jacfwd(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[P, Any]:
    """Return a function that computes the Jacobian of `fun` column by column.

    All columns are computed at once, by a `vmap` of the forward derivative. This is the
    way to choose when there are fewer inputs than outputs.

    Args:
      fun: a function of arrays, scalars and trees of them.
      argnums: the position of the argument to differentiate with respect to, or a
        tuple of positions.
      has_aux: whether `fun` returns a pair ``(result, aux)``.
      holomorphic: whether `fun` is a complex-differentiable function of complex
        arguments.

    Returns:
      A function of the arguments of `fun` that returns the Jacobian; with `has_aux` the
      pair ``(jacobian, aux)``. The Jacobian is a tree like the result of `fun`, with a
      tree like the argument (a tuple of them if `argnums` is one) in the place of each
      leaf; its leaves have the shape of the result's leaf, then the argument's.

    Raises:
      TypeError: from that function, if a leaf of the arguments is not real (or, if
        `holomorphic`, complex).

    Reference: ``jax.jacfwd``.
    """
    check_callable(fun)

    @named_after("Jacobian", fun, argnums)
    def jacfwd_f(*args, **kwargs):
        call = flatten_diff_args(
            "jacfwd", fun, args, kwargs, argnums, has_aux, ValueError
        )
        check_input_dtypes_jacfwd(call, holomorphic)

        def pushforward(*tangents):
            values, slopes = jvp_flat_fun(call, call.leaves, tangents)
            return values + slopes[: call.num_outs]

        flat, dims = along_basis(pushforward, call.avals)
        count = len(flat) - call.num_outs
        flat[:count] = map(drop_tangent_axis, flat[:count], dims)
        check_output_dtypes_jacfwd(call, flat, holomorphic)
        outs = list(map(typeof, flat[: call.num_outs]))
        rows = [
            blocks(slope, dim, out.ndim, call.avals, _shapes([out], call.avals), out)
            for out, slope, dim in zip(outs, flat[count:], dims[count:])
        ]
        jacobian = _arranged(call, argnums, rows)
        return (jacobian, call.aux(flat[:count])) if has_aux else jacobian

    return jacfwd_f


def jacrev(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, Any]:
    """Return a function that computes the Jacobian of `fun` row by row.

    All rows are computed at once, by a `vmap` of the backward derivative. This is the
    way to choose when there are fewer outputs than inputs.

    Args:
      fun, argnums, has_aux, holomorphic: as for `jacfwd`.
      allow_int: whether the arguments may hold integers and booleans.

    Returns:
      A function like that of `jacfwd`.

    Raises:
      TypeError: from that function, if a leaf of the arguments is an integer or if a
        result is not real (or, if `holomorphic`, complex).
      ValueError: from that function, if there is no argument at `argnums`.

    Reference: ``jax.jacrev``.
    """
    check_callable(fun)

    @named_after("Jacobian", fun, argnums)
    def jacrev_f(*args, **kwargs):
        call = flatten_diff_args(
            "jacrev", fun, args, kwargs, argnums, has_aux, ValueError
        )
        check_input_dtypes_grad(call, holomorphic, allow_int)
        flat, pullback = vjp_flat_fun(call, call.leaves, lambda: call.num_outs)
        check_output_dtypes_revderiv(call, flat, holomorphic)
        outs = list(map(typeof, flat[: call.num_outs]))
        cts, dims = along_basis(lambda *cts: pullback(cts), outs)
        columns = [
            blocks(ct, dim, 0, outs, _shapes(outs, [aval]), aval)
            for aval, ct, dim in zip(call.avals, cts, dims)
        ]
        rows = [[column[i] for column in columns] for i in range(len(outs))]
        jacobian = _arranged(call, argnums, rows)
        return (jacobian, call.aux(flat)) if has_aux else jacobian

    return jacrev_f


jacobian = jacrev


def hessian(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[P, Any]:
    """Return a function that computes the second derivatives of `fun`.

    Args:
      fun, argnums, has_aux, holomorphic: as for `jacfwd`.

    Returns:
      A function of the arguments of `fun` that returns the Jacobian of its Jacobian,
      computed forwards over backwards.

    Raises:
      TypeError: as for `jacfwd` and `jacrev`.

    Reference: ``jax.hessian``.
    """
    inner = jacrev(fun, argnums, has_aux, holomorphic)
    return jacfwd(inner, argnums, has_aux, holomorphic)
