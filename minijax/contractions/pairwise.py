"""Einstein summation, as products of two arrays at a time.

Reference: ``jax.numpy.einsum``.
"""

# Made from chapters/03_numpy_rest.md by `make chapter`;
# edit the chapter, not this file.

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from minijax import lax
from minijax.arrays.checks import refuse_sharding
from minijax.arrays.dtypes import check_dtype
from minijax.arrays.interchange import promised
from minijax.contractions.paths import PathInfo, contractions, find_path
from minijax.contractions.subscripts import read_subscripts, shapes_of, split_arguments
from minijax.core import Array
from minijax.lax.conversion import astype as as_type
from minijax.lax.promotion import check_arraylike, common_type, promote_dtypes
from minijax.numpy.creation import full_like
from minijax.operators.operands import as_array


def _summed(x, axes, dtype):
    """Sum over axes, in the dtype of the result; of bools, whether any is true."""
    x = as_type(x, common_type(x, np.zeros((), dtype))[0])
    return (lax.reduce_or if x.dtype == bool else lax.reduce_sum)(x, tuple(axes))


def _sum_alone(x, letters, alone, dtype):
    """Sum over letters that no other operand and no result has."""
    if alone:
        x = _summed(x, map(letters.index, alone), dtype)
    return x, "".join([each for each in letters if each not in alone])


def _on_diagonal(shape, axes):
    """Return whether indices along some axes are equal, at each place of an array."""
    sizes = tuple([shape[axis] for axis in axes])
    counters = [
        lax.broadcasted_iota(np.uint32, sizes, axis) for axis in range(len(sizes))
    ]
    equal = [lax.eq(*pair) for pair in zip(counters, counters[1:])]
    mask = equal[0]
    for other in equal[1:]:
        mask = lax.bitwise_and(mask, other)
    return mask if sizes == shape else lax.broadcast_in_dim(mask, shape, tuple(axes))


def _sum_repeats(x, letters, counts, kept, dtype):
    """Take the diagonal of axes with one letter, and sum over it unless it is kept."""
    for each, count in counts.items():
        if count < 2:
            continue
        axes = [axis for axis, other in enumerate(letters) if other == each]
        x = lax.select(_on_diagonal(x.shape, axes), x, full_like(x, 0))
        gone = axes[:-1] if each in kept else axes
        x = _summed(x, gone, dtype)
        letters = "".join([one for i, one in enumerate(letters) if i not in gone])
    return x, letters


def _drop_thin(x, letters, other, other_letters):
    """Drop axes of size 1 that the other operand stretches."""
    places = map(other_letters.find, letters)
    thin = [
        axis
        for axis, place in enumerate(places)
        if x.shape[axis] == 1 and place >= 0 and other.shape[place] != 1
    ]
    kept = [each for axis, each in enumerate(letters) if axis not in thin]
    return (lax.squeeze(x, thin) if thin else x), "".join(kept)


def _reduced(x, step, dtype):
    """Return an operand that is alone, summed over letters; and what is left."""
    [letters] = step.inputs
    counts = Counter(letters)
    alone = [each for each in sorted(step.removed) if counts[each] == 1]
    x, letters = _sum_alone(x, letters, alone, dtype)
    return _sum_repeats(x, letters, counts, step.output, dtype)


def _simple(lhs, rhs, step, dtype):
    """Return two operands, none with a letter twice or one to be summed alone."""
    one, other = step.inputs
    lhs, one = _drop_thin(lhs, one, rhs, other)
    rhs, other = _drop_thin(rhs, other, lhs, one)
    counts, others = Counter(one), Counter(other)
    removed = sorted(step.removed)
    alone = [each for each in removed if counts[each] == 1 and not others[each]]
    lhs, one = _sum_alone(lhs, one, alone, dtype)
    alone = [each for each in removed if others[each] == 1 and not counts[each]]
    rhs, other = _sum_alone(rhs, other, alone, dtype)
    lhs, one = _sum_repeats(lhs, one, counts, step.output + other, dtype)
    rhs, other = _sum_repeats(rhs, other, others, step.output + one, dtype)
    return lhs, one, rhs, other


def _multiplied(lhs, rhs, step, dtype, multiply):
    """Return the product of two operands, and its letters."""
    lhs, one, rhs, other = _simple(lhs, rhs, step, dtype)
    if lhs.dtype != rhs.dtype:
        lhs, rhs = promote_dtypes(lhs, rhs)
    summed = [each for each in sorted(step.removed) if each in one and each in other]
    shared = [each for each in step.output if each in one and each in other]
    left, right = (
        "".join([each for each in term if each not in (*summed, *shared)])
        for term in (one, other)
    )
    batch = "".join(shared)
    # With the operands the other way round, perhaps no transposition is left to do.
    if batch + right + left == step.output:
        lhs, one, left, rhs, other, right = rhs, other, right, lhs, one, left
    contracting, batches = (
        tuple([tuple(map(term.index, letters)) for term in (one, other)])
        for letters in (summed, shared)
    )
    return multiply(lhs, rhs, (contracting, batches)), batch + left + right


def _performed(arrays, step, dtype, multiply):
    """Return the result of one step, its axes in order."""
    if len(arrays) > 2:
        raise NotImplementedError(
            "jax.numpy.einsum does not support simultaneous contraction of 3 or more "
            "operands. Typically this means you've passed an unsupported path to the "
            "einsum optimize parameter."
        )
    if len(arrays) == 1:
        result, letters = _reduced(arrays[0], step, dtype)
    else:
        lhs, rhs = arrays
        result, letters = _multiplied(lhs, rhs, step, dtype, multiply)
    order = tuple(map(letters.index, step.output))
    return result if letters == step.output else lax.transpose(result, order)


def _read(name, args):
    """Return the `Subscripts` and the operands that the arguments of a call say."""
    text, operands = split_arguments([promised(arg) for arg in args])
    check_arraylike(name, *operands)
    return read_subscripts(text, shapes_of(operands)), operands


def einsum(
    subscripts: Any,
    /,
    *operands: Any,
    out: None = None,
    optimize: Any = "auto",
    precision: Any = None,
    preferred_element_type: Any = None,
    _dot_general: Callable[..., Array] = lax.dot_general,
    out_sharding: Any = None,
) -> Array:
    """Sum products over axes that are named: Einstein summation.

    Args:
      subscripts, *operands: a text such as ``"ij,jk->ik"`` and the arrays, with
        ``...`` for axes without a name; or each array followed by the list of its
        axes, and then perhaps the list of those of the result.
      optimize: the order of the products: ``"auto"``, True for the best one, False
        for that in which they are written, the name of a search, or a path.
      precision: as in ``minijax.lax.dot_general``.
      preferred_element_type: dtype of the result, and of sums on the way.
      _dot_general: called in place of ``minijax.lax.dot_general``.

    Raises:
      ValueError: if subscripts and shapes contradict each other.
      NotImplementedError: if a step of a path takes more than two operands.

    Reference: ``jax.numpy.einsum``.
    """
    if out is not None:
        raise NotImplementedError("The 'out' argument to jnp.einsum is not supported.")
    refuse_sharding("einsum", out_sharding)
    found, given = _read("einsum", (subscripts, *operands))
    arrays = [as_array(x) for x in given]
    dtype, weak_type = common_type(*arrays)
    if preferred_element_type is not None:
        dtype, weak_type = check_dtype(preferred_element_type, "einsum"), False

    def multiply(lhs, rhs, axes):
        return _dot_general(lhs, rhs, axes, precision, preferred_element_type=dtype)

    for step in contractions(found, find_path(found, optimize)):
        chosen = [arrays.pop(position) for position in step.positions]
        arrays.append(_performed(chosen, step, dtype, multiply))
    return as_type(arrays[0], dtype, weak_type)


def einsum_path(
    subscripts: Any, /, *operands: Any, optimize: Any = "auto"
) -> tuple[list[tuple[int, ...]], Any]:
    """Find the order in which `einsum` multiplies, without multiplying.

    Args:
      subscripts, *operands, optimize: as of `einsum`.

    Returns:
      A path for `einsum`, and an object that prints what it costs.

    Reference: ``jax.numpy.einsum_path``.
    """
    found, _ = _read("einsum_path", (subscripts, *operands))
    path = find_path(found, optimize)
    return path, PathInfo(found, path)
