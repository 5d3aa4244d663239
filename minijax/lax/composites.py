"""Cutting, stacking and folding with the names of lax; named parts of programs.

References: ``jax.lax``, ``jax.named_scope``, ``jax.named_call``, ``jax.fwd_and_bwd``.
"""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax._lazy import wraps
from minijax.arrays.array import typeof
from minijax.arrays.devices import default_backend
from minijax.arrays.numerics import (
    INT_KINDS,
    canonicalize_axis,
    canonicalize_int_tuple,
    check_kind,
    check_rank,
    check_same_dtype,
)
from minijax.arrays.out_sharding import with_out_sharding
from minijax.arrays.transfer import device_put_p as device_put_p
from minijax.core import Array
from minijax.jitting.api import jit
from minijax.lax.arithmetic import promote_python_scalars
from minijax.numpy.fft.primitive import fft_p as fft_p
from minijax.pytrees.tree_util import tree_flatten, tree_map
from minijax.reverse_mode.backward_pass import vjp
from minijax.scans.scan import scan_p as scan_p
from minijax.typing import ArrayLike

# Cutting, stacking, folding and choosing, with the names of `jax.lax`.


def stack(operands: Sequence[ArrayLike], axis: int = 0) -> Array:
    """Stack arrays of one shape and dtype along a new axis.

    Reference: ``jax.lax.stack``.
    """
    if not len(operands):
        raise ValueError("stack requires a non-empty sequence of arrays, got none.")
    kinds = {(typeof(x).shape, typeof(x).dtype) for x in operands}
    if len(kinds) > 1:
        raise TypeError(f"lax.stack takes arrays of one type, got {kinds}.")
    return jnp.stack(operands, axis)


def unstack(x: ArrayLike, axis: int = 0) -> tuple[Array, ...]:
    """Return the slices of an array along an axis, without that axis.

    Reference: ``jax.lax.unstack``.
    """
    return jnp.unstack(x, axis=axis)


def split(operand: ArrayLike, sizes: Sequence[int], axis: int = 0) -> list[Array]:
    """Cut an array into parts of given sizes along an axis.

    Raises:
      ValueError: if the sizes do not add up to that of the axis.

    Reference: ``jax.lax.split``.
    """
    ends, shape = np.cumsum([0, *canonicalize_int_tuple(sizes)]), typeof(operand).shape
    axis = canonicalize_axis(axis, len(shape))
    if ends[-1] != shape[axis]:
        raise ValueError(
            f"Sum of sizes {ends[-1]} must be equal to dimension {axis} of the operand "
            f"shape {shape}."
        )
    pairs = zip(ends, ends[1:])
    return [lax.slice_in_dim(operand, int(a), int(b), axis=axis) for a, b in pairs]


def tile(operand: ArrayLike, reps: Sequence[int]) -> Array:
    """Repeat an array along each of its axes.

    Raises:
      TypeError: if there is not one number for each axis.

    Reference: ``jax.lax.tile``.
    """
    if len(reps) != typeof(operand).ndim:
        raise TypeError(
            f"lax.tile takes a number for each axis of {typeof(operand)}, got {reps}."
        )
    return jnp.tile(operand, reps)


def mulhi(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Return the upper half of the bits of products of integers, elementwise.

    Both factors are cut into two halves, as in long multiplication: no product of
    halves has more bits than the dtype.

    Raises:
      TypeError: unless `x` and `y` are of one integer dtype.

    Reference: ``jax.lax.mulhi``; Warren, *Hacker's Delight*, 2nd ed., section 8-2.
    """
    x, y = promote_python_scalars(x, y)
    avals = [typeof(x), typeof(y)]
    check_same_dtype("mulhi", avals)
    check_kind("mulhi", INT_KINDS, avals)
    kind, bits = avals[0].dtype.type, 4 * avals[0].dtype.itemsize
    half, mask = kind(bits), kind((1 << bits) - 1)
    signed = avals[0].dtype.kind == "i"
    high = lax.shift_right_arithmetic if signed else lax.shift_right_logical
    x1, x0 = high(x, half), lax.bitwise_and(x, mask)
    y1, y0 = high(y, half), lax.bitwise_and(y, mask)
    middle = lax.mul(x1, y0) + lax.shift_right_logical(lax.mul(x0, y0), half)
    rest = lax.bitwise_and(middle, mask) + lax.mul(x0, y1)
    return lax.mul(x1, y1) + high(middle, half) + high(rest, half)


def create_token(_: Any = None) -> Array:
    """Return a token: an array without elements, which a program may pass along.

    Programs run their effects in the order in which they were written, so nothing
    here asks for tokens; programs that were written for JAX may make them.

    Reference: ``jax.lax.create_token``.
    """
    return lax.full((0,), False)


def after_all(*operands: Array) -> Array:
    """Return a token that is made when others have been made.

    Args:
      operands: tokens of `create_token`.

    Reference: ``jax.lax.after_all``.
    """
    return lax.optimization_barrier((*operands, create_token()))[-1]


def broadcast_like(arr: ArrayLike, like_arr: ArrayLike) -> Array:
    """Repeat an array along axes until it has the shape of another one.

    Raises:
      ValueError: if it cannot have that shape.

    Reference: ``jax.lax.broadcast_like``.
    """
    return jnp.broadcast_to(arr, typeof(like_arr).shape)


def shape_as_value(shape: Sequence[int]) -> ArrayLike:
    """Return a shape as a vector of integers.

    Reference: ``jax.lax.shape_as_value``.
    """
    sizes = canonicalize_int_tuple(shape)
    return np.asarray(sizes, "int64" if max(sizes, default=0) >= 2**31 else "int32")


def dtype(x: Any) -> np.dtype:
    """Return the dtype that an array, a number or a type of numbers has here.

    Args:
      x: an array, anything that has a dtype, a number, or what names a dtype.

    Raises:
      ValueError: for None.

    Reference: ``jax.lax.dtype``.
    """
    if x is None:
        raise ValueError("lax.dtype of None: an array or a dtype is expected.")
    return jnp.result_type(x)


def empty(shape: Sequence[int], dtype: Any, *, out_sharding: Any = None) -> Array:
    """Return an array of zeros.

    Reference: ``jax.lax.empty``.
    """
    return jnp.zeros(shape, dtype, out_sharding=out_sharding)


_FOLDS = {
    "add": "reduce_sum", "mul": "reduce_prod", "max": "reduce_max", "min": "reduce_min",
    "bitwise_and": "reduce_and", "bitwise_or": "reduce_or", "bitwise_xor": "reduce_xor",
}  # fmt: skip


@with_out_sharding
def reduce(
    operands: Any,
    init_values: Any,
    computation: Callable[[Any, Any], Any],
    dimensions: Sequence[int],
    out_sharding: Any = None,
) -> Any:
    """Fold arrays along axes by a function of two elements.

    Args:
      operands: a tree of arrays of one shape.
      init_values: a tree of scalars, from which the fold begins.
      computation: a function of two trees of scalars; it should be associative.
      dimensions: the axes.
      out_sharding: where the result lies on a mesh.

    Raises:
      ValueError: if there are no arrays, they differ in shape, or an initial value is
        no scalar.

    Reference: ``jax.lax.reduce``.
    """
    leaves, treedef = tree_flatten(operands)
    inits = [np.shape(x) for x in tree_flatten(init_values)[0]]
    if any(inits):
        raise ValueError(
            f"lax.reduce begins with scalars, but init_values have shapes {inits}: the "
            "fold of each element begins with the same one."
        )
    shapes = {typeof(x).shape for x in leaves}
    if len(shapes) != 1:
        raise ValueError(f"lax.reduce takes arrays of one shape, got {shapes}.")
    for name, named_fold in _FOLDS.items():
        if computation is getattr(lax, name) and operands is leaves[0]:
            folded = getattr(lax, named_fold)(operands, tuple(dimensions))
            return computation(jnp.asarray(init_values, folded.dtype), folded)
    rows = tree_map(lambda x: _rows(jnp.asarray(x), dimensions), operands)
    kept = typeof(tree_flatten(rows)[0][0]).shape[1:]
    start = tree_map(
        lambda init, x: lax.broadcast(jnp.asarray(init, x.dtype), kept),
        init_values,
        rows,
    )
    outlines = []

    def step(a, x):
        found, outline = tree_flatten(computation(a, x))
        outlines.append(outline)
        return found if len(found) != len(leaves) else treedef.unflatten(found), None

    folded, _ = lax.scan(step, start, rows)
    return outlines[-1].unflatten(tree_flatten(folded)[0])


def _rows(x, dimensions):
    """Return an array with the axes of a fold as the only first one."""
    folded = [canonicalize_axis(axis, x.ndim) for axis in dimensions]
    kept = [axis for axis in range(x.ndim) if axis not in folded]
    x = lax.transpose(x, (*folded, *kept))
    count = math.prod(x.shape[: len(folded)])
    return lax.reshape(x, (count, *x.shape[len(folded) :]))


@with_out_sharding
def ragged_dot(
    lhs: Array,
    rhs: Array,
    group_sizes: Array,
    precision: Any = None,
    preferred_element_type: Any = None,
    group_offset: Array | None = None,
    out_sharding: Any = None,
) -> Array:
    """Multiply the rows of a matrix by one matrix for each group of rows.

    Args:
      lhs: rows, of shape ``[m, k]``, those of the first group first.
      rhs: a matrix for each group, of shape ``[g, k, n]``.
      group_sizes: how many rows each group has, integers of shape ``[g]``.
      precision, preferred_element_type: as in `dot_general`.
      group_offset: None.
      out_sharding: where the result lies on a mesh.

    Returns:
      An array of shape ``[m, n]``; rows of no group are 0.

    Reference: ``jax.lax.ragged_dot``.
    """
    if group_offset is not None:
        raise NotImplementedError("lax.ragged_dot: group_offset has to be None.")
    lhs, rhs = jnp.asarray(lhs), jnp.asarray(rhs)
    check_rank("ragged_dot", 2, lhs)
    ends = jnp.cumsum(group_sizes)
    row, starts = jnp.arange(lhs.shape[0]), ends - group_sizes
    how = {"precision": precision, "preferred_element_type": preferred_element_type}

    def add(total, group):
        matrix, start, end = group
        ours = ((row >= start) & (row < end))[:, None]
        found = jnp.matmul(jnp.where(ours, lhs, 0), matrix, **how)
        return total + found, None

    like = jnp.matmul(lhs, rhs[0], **how)
    return lax.scan(add, jnp.zeros_like(like), (rhs, starts, ends))[0]


def platform_dependent(
    *args: Any,
    default: Callable[..., Any] | None = None,
    **per_platform: Callable[..., Any],
) -> Any:
    """Call the function for the platform on which programs run.

    Args:
      *args: its arguments.
      default: called where there is no function for the platform.
      **per_platform: functions by the name of a platform: `cpu`, `gpu`, ...

    Raises:
      NotImplementedError: if there is neither.

    Reference: ``jax.lax.platform_dependent``.
    """
    chosen = per_platform.get(default_backend(), default)
    if chosen is None:
        raise NotImplementedError(
            f"platform_dependent has no function for '{default_backend()}' among "
            f"{', '.join(per_platform)}, and no default."
        )
    return chosen(*args)


def composite(
    decomposition: Callable[..., Any], name: str, version: int = 0
) -> Callable[..., Any]:
    """Return a function that does what it is made of; the name is not written down.

    Args:
      decomposition: the function.
      name, version: what a compiler may know it by.

    Reference: ``jax.lax.composite``.
    """
    return wraps(decomposition)(
        lambda *args, **kwargs: decomposition(*args, **kwargs)
    )


# Names for parts of a program, and derivatives in two parts.


@contextmanager
def named_scope(name: str) -> Iterator[None]:
    """Name a block, or a function that it decorates; programs keep lines instead.

    Args:
      name: a string.

    Raises:
      TypeError: for a name that is no string.

    Reference: ``jax.named_scope``.
    """
    if not isinstance(name, str):
        raise TypeError("named_scope name argument must be a string.")
    yield


def named_call(fun: Callable[..., Any], *, name: str | None = None) -> Callable:
    """Return a function that does the same under a name, its own by default.

    Raises:
      TypeError: if it cannot be called.

    Reference: ``jax.named_call``.
    """
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun}")
    return wraps(fun)(lambda *args, **kwargs: fun(*args, **kwargs))


def fwd_and_bwd(
    fun: Callable[..., Any],
    argnums: int | Sequence[int],
    has_aux: bool = False,
    jitted: bool = True,
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the two halves of a gradient, as functions of their own.

    Args:
      fun: a function of trees of arrays.
      argnums: which positional arguments are differentiated.
      has_aux: whether it returns a pair, of a result and other data.
      jitted: whether both functions are jitted.

    Returns:
      A function with the arguments of `fun` that returns its result, residuals, and
      the other data, if there are any; and one from residuals and a cotangent to the
      cotangents of the arguments.

    Reference: ``jax.fwd_and_bwd``.
    """
    several = (argnums,) if isinstance(argnums, int) else tuple(argnums)

    def fwd(*args, **kwargs):
        def part(*chosen):
            new = list(args)
            for place, value in zip(several, chosen):
                new[place] = value
            return fun(*new, **kwargs)

        return vjp(part, *[args[place] for place in several], has_aux=has_aux)

    def bwd(residuals, cotangent):
        found = residuals(cotangent)
        return found[0] if isinstance(argnums, int) else found

    return (jit(fwd), jit(bwd)) if jitted else (fwd, bwd)
