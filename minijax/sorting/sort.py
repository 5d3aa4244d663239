"""Sorting along an axis: the primitive, its columns, and its kernel rule.

References: ``jax.lax.sort``, ``jax._src.lax.lax``, ``_canonicalize_float_for_sort``
in ``jax._src.lax.lax``.
"""

# Made from chapters/29_sorting.md by `make chapter`;
# edit the chapter, not this file.

import math
from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from minijax import lax
from minijax.arrays.array import def_shape_and_impl, typeof
from minijax.arrays.dtypes import WIDE_DTYPES, dtype_kind
from minijax.arrays.numerics import (
    ANY_KINDS,
    canonicalize_axis,
    check_axes,
    check_kind,
    concrete_bool,
    operator_index,
    sum_accumulator_dtype,
)
from minijax.batching.vmap import broadcast_batch_dim, move_one_axis, vmap_rules
from minijax.core import Array, Primitive, set_current_trace
from minijax.forward_mode.jvp import jvp_rules
from minijax.jitting.stages import FLOPS, _moved, cost_rules
from minijax.kernels.lowering import kernel_rules
from minijax.linearization.linearize import default_partial_eval, partial_eval_rules
from minijax.python_backend.codegen import python_rules
from minijax.python_backend.source import write_evaluation
from minijax.rematerialization.jaxpr_transforms import (
    dce_rules,
    merge_lists,
    partition_list,
    select_where,
)
from minijax.reverse_mode.backward_pass import UndefinedPrimal, transpose_rules
from minijax.sorting.radix_sort import add_sort
from minijax.typing import ArrayLike

# Sorting along an axis: the primitive, and functions to bind it.


def _sort_shape(*operands, dimension, is_stable, num_keys):
    if len({x.shape for x in operands}) > 1:
        shapes = " ".join(str(x.shape) for x in operands)
        raise TypeError(f"Arguments to sort must have equal shapes, got: {shapes}")
    check_axes("sort", operands[0], (dimension,))
    check_kind("sort", ANY_KINDS, operands[:num_keys])
    return list(operands)


def _keys_of(x):
    if x.dtype.kind == "c":
        return [x.real, x.imag]
    return [x.astype(sum_accumulator_dtype(x.dtype), copy=False)]


def _sorted(xp, *operands, dimension, is_stable, num_keys):
    keys = [key for x in operands[:num_keys] for key in _keys_of(x)]
    places = xp.lexsort(keys[::-1], axis=dimension)
    return [xp.take_along_axis(x, places, dimension) for x in operands]


sort_p = Primitive("sort")
sort_p.multiple_results = True
def_shape_and_impl(sort_p, _sort_shape, _sorted)


@overload
def sort(operand: ArrayLike, dimension: int = ..., is_stable: bool = ...) -> Array: ...
@overload
def sort(
    operand: Sequence[ArrayLike],
    dimension: int = ...,
    is_stable: bool = ...,
    num_keys: int = ...,
) -> tuple[Array, ...]: ...
def sort(
    operand: Any, dimension: int = -1, is_stable: bool = True, num_keys: int = 1
) -> Any:
    """Sort an array, or several in the order of the first ones, along an axis.

    Of floats, -0.0 and 0.0 are equal, and NaN comes last. Complex numbers are in the
    order of their real parts, and among equals of their imaginary parts.

    Args:
      operand: an array, or a sequence of arrays of one shape.
      dimension: the axis.
      is_stable: whether equals keep their order. Here they always do.
      num_keys: how many of the arrays decide; the others are rearranged alike.

    Raises:
      TypeError: if `is_stable` is no bool.

    Reference: ``jax.lax.sort``.
    """
    several = isinstance(operand, Sequence)
    operands = operand if several else [operand]
    _check_keys(len(operands), num_keys, several)
    axis = canonicalize_axis(dimension, typeof(operands[0]).ndim)
    keys = operator_index(num_keys, "num_keys of sort")
    how = {"dimension": axis, "is_stable": concrete_bool(is_stable, "is_stable")}
    results = sort_p.bind(*operands, **how, num_keys=keys)
    return tuple(results) if several else results[0]


def _check_keys(count, num_keys, several):
    if not count:
        raise TypeError("Sort requires at least one operand")
    if several and not 1 <= num_keys <= count:
        raise ValueError(
            f"{num_keys=} must be between 1 and the number of operands, {count}"
        )
    if not several and num_keys != 1:
        raise ValueError(f"{num_keys=} must equal 1 for a single operand.")


def sort_key_val(
    keys: ArrayLike, values: ArrayLike, dimension: int = -1, is_stable: bool = True
) -> tuple[Array, Array]:
    """Sort `keys` along an axis, and rearrange `values` alike.

    Reference: ``jax.lax.sort_key_val``.
    """
    keys, values = sort((keys, values), dimension, is_stable)
    return keys, values


# The columns of the primitive sort: derivatives, batches, what it costs.


def sort_jvp(primals, tangents, **how):
    """Sort the operands, and rearrange the tangents with them."""
    moving = [t for t in tangents if t is not None]
    results = sort_p.bind(*primals, *moving, **how)
    moved = iter(results[len(primals) :])
    moves = [None if t is None else next(moved) for t in tangents]
    return results[: len(primals)], moves


jvp_rules[sort_p] = sort_jvp


def partial_eval_sort(trace, primitive, args, in_unknown, params):
    """Sort what is known now; the tape sorts the rest by the same keys."""
    count = params["num_keys"]
    if any(in_unknown[:count]):
        return default_partial_eval(trace, primitive, args, in_unknown, params)
    known, later = partition_list(in_unknown, args)
    with set_current_trace(trace.parent):
        known = primitive.bind_all(*known, **params)
    with set_current_trace(trace.tape):
        later = primitive.bind_all(*args[:count], *later, **params)
    return merge_lists(in_unknown, known, later[count:])


partial_eval_rules[sort_p] = partial_eval_sort


def sort_transpose(cotangents, *operands, dimension, is_stable, num_keys):
    """Send each cotangent back to the place from which its number came."""
    if any(isinstance(x, UndefinedPrimal) for x in operands[:num_keys]):
        raise NotImplementedError(
            "Transpose rule (for reverse-mode differentiation) for 'sort' not "
            "implemented for its keys: their order does not depend on them linearly."
        )
    how = {"dimension": dimension, "is_stable": is_stable}
    keys, shape = operands[:num_keys], typeof(operands[0]).shape
    places = lax.broadcasted_iota("uint32", shape, dimension)
    *_, places = sort_p.bind(*keys, places, num_keys=num_keys, **how)
    given = [ct is not None for ct in cotangents]
    given = [g and isinstance(x, UndefinedPrimal) for g, x in zip(given, operands)]
    _, moving = partition_list(given, cotangents)
    _, *home = sort_p.bind(places, *moving, num_keys=1, **how)
    return merge_lists(given, [None] * given.count(False), home)


transpose_rules[sort_p] = sort_transpose


def sort_batch(axis, args, dims, dimension, **params):
    """Sort all examples at once, along the axis beside theirs."""
    place = next(dim for dim in dims if dim is not None)
    args = [
        broadcast_batch_dim(x, place, axis.size)
        if dim is None
        else move_one_axis(x, dim, place)
        for x, dim in zip(args, dims)
    ]
    dimension += place <= dimension
    results = sort_p.bind(*args, dimension=dimension, **params)
    return results, [place] * len(results)


def sort_dce(eqn, used):
    """Leave out the operands that are no keys and whose results nothing reads."""
    count = eqn.params["num_keys"]
    kept = [i < count or needed for i, needed in enumerate(used)]
    invars, outvars = (select_where(kept, atoms) for atoms in (eqn.invars, eqn.outvars))
    return eqn.replace(invars=invars, outvars=outvars)


def sort_cost(eqn):
    """Count the comparisons of a merge sort, and the bytes."""
    aval = eqn.invars[0].aval
    rounds = math.ceil(math.log2(max(aval.shape[eqn.params["dimension"]], 1)))
    return {FLOPS: aval.size * rounds} | _moved(eqn)


vmap_rules[sort_p], dce_rules[sort_p] = sort_batch, sort_dce
cost_rules[sort_p], python_rules[sort_p] = sort_cost, write_evaluation


# Words in the order of numbers: unsigned integers that compare as the numbers do.


def total_order_bits(x):
    """Return unsigned words in the order of bools, integers, or the bits of floats."""
    dtype = typeof(x).dtype
    dtype = WIDE_DTYPES.get(dtype, dtype)
    if dtype.kind == "b":
        return lax.convert_element_type(x, np.uint8)
    x = lax.convert_element_type(x, dtype)
    if dtype.kind == "u":
        return x
    word = np.dtype(f"uint{8 * dtype.itemsize}")
    bits = lax.bitcast_convert_type_p.bind(x, new_dtype=word)
    top = lax.full_like(bits, 1 << (8 * dtype.itemsize - 1))
    if dtype.kind == "i":
        return lax.bitwise_xor(bits, top)
    negative = lax.ge(bits, top)
    return lax.select(negative, lax.bitwise_not(bits), lax.bitwise_or(bits, top))


def canonicalize_zeros_and_nans(x):
    """Return floats with one zero and one NaN in place of all of them."""
    if dtype_kind(typeof(x).dtype) not in "hf":
        return x
    x = lax.select(lax.eq(x, lax.full_like(x, 0)), lax.full_like(x, 0), x)
    return lax.select(lax.ne(x, x), lax.full_like(x, np.nan), x)


def sort_key_words(x):
    """Return the words of a key of a sort: one array, or two for complex numbers."""
    complex_ = typeof(x).dtype.kind == "c"
    parts = [lax.real(x), lax.imag(x)] if complex_ else [x]
    return [total_order_bits(canonicalize_zeros_and_nans(part)) for part in parts]


# The kernel rule of sort: words of the keys, made by kernels, and a step.


def lower_sort(lowering, eqn, *operands):
    """Add the kernels of the words, and the step that sorts by them."""
    count, words = eqn.params["num_keys"], []
    for view in operands[:count]:
        words += lowering.function(sort_key_words, [view])
    return add_sort(lowering, eqn.params["dimension"], words, operands)


kernel_rules[sort_p] = lower_sort
