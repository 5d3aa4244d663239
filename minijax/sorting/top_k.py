"""The largest elements along an axis.

Reference: ``jax.lax.top_k``, ``jax.lax.approx_max_k``.
"""

# Made from chapters/29_sorting_rest.md by `make chapter`;
# edit the chapter, not this file.

from functools import partial
from math import isqrt

import numpy as np

from minijax import lax
from minijax.arrays.array import as_array_impl, shape_rules, typeof
from minijax.arrays.dtypes import dtype_kind, enable_x64
from minijax.arrays.numerics import canonicalize_axis, concrete_bool, operator_index
from minijax.batching.vmap import vmap_rules
from minijax.core import Array, Primitive, impl_rules
from minijax.forward_mode.jvp import jvp_rules
from minijax.jitting.stages import cost_rules
from minijax.kernels.lowering import kernel_rules
from minijax.numpy.indexing import take_along_axis
from minijax.numpy.shapes import moveaxis
from minijax.python_backend.codegen import python_rules
from minijax.python_backend.source import write_evaluation
from minijax.reverse_mode.backward_pass import transpose_rules
from minijax.sorting.sort import (
    canonicalize_zeros_and_nans,
    sort_cost,
    sort_p,
    total_order_bits,
)
from minijax.typing import ArrayLike

PLACE = np.dtype(np.int32)
MIN_BLOCK_WORDS = 8  # in blocks of fewer words there is nothing to leave out


def first_by(words, k, axis, *operands):
    """Return the first `k` elements of operands, in the order of words."""
    how = {"dimension": axis, "is_stable": True, "num_keys": 1}
    _, *operands = sort_p.bind(words, *operands, **how)
    return [lax.slice_in_dim(x, 0, k, axis=axis) for x in operands]


def descending_words(x):
    """Return words in the order of numbers from the largest down."""
    return lax.bitwise_not(total_order_bits(x))


def places_along(x, axis):
    """Return the places of elements along an axis."""
    return lax.iota_p.bind(dtype=PLACE, shape=typeof(x).shape, dimension=axis)


def largest(x, k, axis):
    """Return the `k` largest elements, and their places."""
    words = descending_words(x)
    width = isqrt(typeof(x).shape[axis] // max(k, 1))
    if not typeof(x).size or width < MIN_BLOCK_WORDS:
        return first_by(words, k, axis, x, places_along(x, axis))
    places = moveaxis(selected(moveaxis(words, axis, -1), k, width), -1, axis)
    return [take_along_axis(x, places, axis), places]


def selected(words, k, width):
    """Return the places of the `k` smallest words of each row, in their order.

    They lie in the `k` blocks whose smallest words come first, so only those blocks
    are sorted. The blocks stay in order of place, and equals do.

    Args:
      words: unsigned integers, of shape ``[..., n]``.
      k: how many.
      width: the size of a block; at least `k` blocks have to fit into a row.
    """
    *rows, size = words.shape
    last, count = len(rows), -(-size // width)
    at_end = [(0, 0, 0)] * last + [(0, count * width - size, 0)]
    greatest = np.iinfo(words.dtype).max.__index__()
    words = lax.pad(words, np.array(greatest, words.dtype), at_end)
    blocks = lax.reshape(words, (*rows, count, width))
    firsts = lax.reduce_min(blocks, (last + 1,))
    [chosen] = first_by(firsts, k, last, places_along(firsts, last))
    how = {"dimension": last, "is_stable": True, "num_keys": 1}
    [chosen] = sort_p.bind(chosen, **how)
    chosen = lax.expand_dims(chosen, (last + 1,))
    words = take_along_axis(blocks, chosen, last)
    places = chosen * width + places_along(words, last + 1)
    words, places = (lax.reshape(y, (*rows, k * width)) for y in (words, places))
    return first_by(words, k, last, places)[0]


def _check_k(x, k, axis):
    if not x.ndim:
        raise TypeError(f"top_k operand must have >= 1 dimension, got {x.shape}")
    if x.shape[axis] < k:
        raise ValueError(
            "k argument to top_k must be no larger than size along axis; got "
            f"{k=} with shape={[*x.shape]} and {axis=}"
        )
    shape = [k if i == axis else size for i, size in enumerate(x.shape)]
    return [x.update(shape=tuple(shape)), x.update(shape=tuple(shape), dtype=PLACE)]


def _top_k_shape(x, k, axis):
    if dtype_kind(x.dtype) not in "biuhf":
        raise ValueError(f"top_k is not compatible with {x.dtype} inputs.")
    if k < 0:
        raise ValueError(f"k argument to top_k must be nonnegative, got {k}")
    return _check_k(x, k, axis)


top_k_p = Primitive("top_k")
top_k_p.multiple_results = True
shape_rules[top_k_p] = _top_k_shape


def top_k(operand: ArrayLike, k: int, *, axis: int = -1) -> list[Array]:
    """Return the `k` largest elements along an axis, and their places.

    Args:
      operand: an array of real numbers; among equals the earlier ones come first.
      k: how many.
      axis: along which.

    Returns:
      A list of the elements and their places.

    Reference: ``jax.lax.top_k``.
    """
    k = operator_index(k, "k of top_k")
    if k < 0:
        raise ValueError(f"k argument to top_k must be nonnegative, got {k}")
    axis = canonicalize_axis(axis, typeof(operand).ndim)
    return list(top_k_p.bind(operand, k=k, axis=axis))


def made_of(primitive, function):
    """Give a primitive its evaluation and its lowering: a function of lax."""

    def evaluate(x, **params):
        shape_rules[primitive](typeof(x), **params)
        x = x if isinstance(x, Array) else as_array_impl(x)
        with enable_x64():  # words are as wide as numbers, whatever the switch says
            return function(x, **params)

    def lower(lowering, eqn, operand):
        return lowering.function(partial(function, **eqn.params), [operand])

    impl_rules[primitive], kernel_rules[primitive] = evaluate, lower
    python_rules[primitive] = write_evaluation
    transpose_rules.reasons[primitive] = (
        "It is not linear: differentiation writes its tangent with a sort, and that is "
        "transposed."
    )


def _top_k_jvp(primals, tangents, k, axis):
    [x], [x_dot] = primals, tangents
    results = top_k_p.bind(x, k=k, axis=axis)
    with enable_x64():  # as in the evaluation: narrower words have another order
        words = descending_words(x)
    return results, [*first_by(words, k, axis, x_dot), None]


def _top_k_batch(_, args, dims, k, axis):
    [x], [dim] = args, dims
    return top_k_p.bind(x, k=k, axis=axis + (dim <= axis)), [dim, dim]


made_of(top_k_p, largest)
jvp_rules[top_k_p], vmap_rules[top_k_p] = _top_k_jvp, _top_k_batch


def _axis_of(x, reduction_dimension, **_):
    return canonicalize_axis(reduction_dimension, len(x.shape))


def _approximate_shape(x, k, aggregate_to_topk, **params):
    if k <= 0:
        raise ValueError(f"k must be positive, got {k}")
    if dtype_kind(x.dtype) not in "hf":
        raise ValueError("operand must be a floating type")
    if not aggregate_to_topk:
        raise NotImplementedError(
            "aggregate_to_topk=False leaves the size of the result to XLA; here it is "
            "always k."
        )
    return _check_k(x, k, _axis_of(x, **params) if x.ndim else 0)


def _best_first(x, is_max_k):
    words = total_order_bits(canonicalize_zeros_and_nans(x))
    return lax.bitwise_not(words) if is_max_k else words


def _approximate(x, k, is_max_k, **params):
    axis = _axis_of(x, **params)
    return first_by(_best_first(x, is_max_k), k, axis, x, places_along(x, axis))


def _approximate_jvp(primals, tangents, **params):
    [x], [x_dot] = primals, tangents
    words, axis = _best_first(x, params["is_max_k"]), _axis_of(x, **params)
    [moved] = first_by(words, params["k"], axis, x_dot)
    return approx_top_k_p.bind(x, **params), [moved, None]


def _approximate_batch(_, args, dims, reduction_dimension, **params):
    [x], [dim] = args, dims
    axes = [axis for axis in range(typeof(x).ndim) if axis != dim]
    axis = axes[reduction_dimension]
    return approx_top_k_p.bind(x, reduction_dimension=axis, **params), [dim, dim]


approx_top_k_p = Primitive("approx_top_k")
approx_top_k_p.multiple_results = True
shape_rules[approx_top_k_p] = _approximate_shape
made_of(approx_top_k_p, _approximate)
jvp_rules[approx_top_k_p] = _approximate_jvp
vmap_rules[approx_top_k_p] = _approximate_batch
cost_rules[approx_top_k_p] = cost_rules[top_k_p] = lambda eqn: sort_cost(
    eqn.replace(params={"dimension": -1})
)


def approx_max_k(
    operand: ArrayLike,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> list[Array]:
    """Return the `k` largest floats along an axis, and their places.

    Args:
      operand: an array of floats.
      k: how many.
      reduction_dimension: the axis.
      recall_target: which part of them has to be found; here all are.
      reduction_input_size_override: accepted, and without effect.
      aggregate_to_topk: False is refused.

    Reference: ``jax.lax.approx_max_k``.
    """
    found = approx_top_k_p.bind(
        operand,
        k=operator_index(k, "k"),
        reduction_dimension=operator_index(reduction_dimension, "an axis"),
        recall_target=recall_target,
        is_max_k=True,
        reduction_input_size_override=reduction_input_size_override,
        aggregate_to_topk=concrete_bool(aggregate_to_topk, "aggregate_to_topk"),
    )
    return list(found)


def approx_min_k(
    operand: ArrayLike,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> list[Array]:
    """Return the `k` smallest floats along an axis, and their places.

    The arguments are those of `approx_max_k`.

    Reference: ``jax.lax.approx_min_k``.
    """
    found = approx_top_k_p.bind(
        operand,
        k=operator_index(k, "k"),
        reduction_dimension=operator_index(reduction_dimension, "an axis"),
        recall_target=recall_target,
        is_max_k=False,
        reduction_input_size_override=reduction_input_size_override,
        aggregate_to_topk=concrete_bool(aggregate_to_topk, "aggregate_to_topk"),
    )
    return list(found)
