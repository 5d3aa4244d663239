"""Transpose rules: how each linear primitive hands a cotangent back to its operands.

Reference: ``jax.lax``, and the rules that ``jax.linear_transpose`` applies.
"""

# Made from chapters/10_reverse.md by `make chapter`;
# edit the chapter, not this file.

from minijax import lax
from minijax.arrays.avals import typeof
from minijax.arrays.checks import free_axes
from minijax.lax.conversion import astype
from minijax.reverse.transposition import (
    Linear,
    elementwise_transposes,
    transpose_rules,
    transposes,
)


def transpose_eqn(eqn, cotangents, operands):
    """Transpose one equation of a linear program.

    Args:
      eqn: a `JaxprEqn`.
      cotangents: for each of its results an array, or None for zero.
      operands: for each of its operands the value, or a `Linear`.

    Returns:
      For each operand an array, or None: zero, or not linear.
    """
    return transpose_rules[eqn.primitive](cotangents, *operands, **eqn.params)


elementwise_transposes(lax.add_p, lambda ct, x, y: ct, lambda ct, x, y: ct)
elementwise_transposes(lax.add_any_p, lambda ct, x, y: ct, lambda ct, x, y: ct)
elementwise_transposes(lax.sub_p, lambda ct, x, y: ct, lambda ct, x, y: lax.neg(ct))
elementwise_transposes(lax.div_p, lambda ct, x, y: lax.div(ct, y), None)
elementwise_transposes(
    lax.mul_p,
    lambda ct, x, y: lax.mul(ct, y),
    lambda ct, x, y: lax.mul(x, ct),
    bilinear=True,
)


def unsum(ct, x, axes):
    """Transpose a sum: every element that went in gets the whole cotangent."""
    kept = [i for i in range(x.aval.ndim) if i not in axes]
    return lax.broadcast_in_dim(ct, x.aval.shape, kept)


transposes(lax.reduce_sum_p, unsum)


def unstretch(ct, x, shape, broadcast_dimensions):
    """Transpose a broadcast: sum over the axes that were made or stretched."""
    ones = [i for i, size in enumerate(x.aval.shape) if size == 1]
    kept = [d for i, d in enumerate(broadcast_dimensions) if i not in ones]
    made = [d for d in range(len(shape)) if d not in kept]
    return lax.expand_dims(lax.reduce_sum(ct, made) if made else ct, ones)


transposes(lax.broadcast_in_dim_p, unstretch)


transposes(lax.reshape_p, lambda ct, x, new_sizes: lax.reshape(ct, x.aval.shape))
transposes(lax.squeeze_p, lambda ct, x, dimensions: lax.expand_dims(ct, dimensions))
transposes(
    lax.transpose_p, lambda ct, x, permutation: lax.transpose(ct, inverse(permutation))
)
transposes(lax.rev_p, lambda ct, x, dimensions: lax.rev(ct, dimensions))


def inverse(permutation):
    """Return the permutation that undoes `permutation`."""
    return sorted(range(len(permutation)), key=permutation.__getitem__)


def unconvert(ct, x, new_dtype, weak_type):
    """Transpose a conversion: convert back, by way of the real part if need be."""
    old = x.aval
    if new_dtype.kind == "c" and old.dtype.kind != "c":
        ct = lax.real(ct)
    return astype(ct, old.dtype, old.weak_type)


transposes(lax.convert_element_type_p, unconvert)


def zero(x, may_be_weak=True):
    """Return a scalar zero of the dtype of `x`, weak if `x` is and it may be."""
    aval = typeof(x)
    return astype(0.0, aval.dtype, may_be_weak and aval.weak_type)


def select_n_transpose(cotangents, which, *cases):
    """Transpose a choice: each case gets the cotangent where it was chosen."""
    [ct] = cotangents
    shape, nothing = typeof(ct).shape, zero(ct)
    if shape:
        nothing = lax.full(shape, nothing)

    def where_chosen(i, case):
        if not isinstance(case, Linear):
            return None
        return lax.select_n(
            which, *(ct if i == j else nothing for j in range(len(cases)))
        )

    return [None, *(where_chosen(i, case) for i, case in enumerate(cases))]


transpose_rules[lax.select_n_p] = select_n_transpose


def dot_transpose(ct, linear, known, contract, batch, ct_contract, result_dtype):
    """Transpose a matrix product in one factor: multiply the cotangent by the other.

    Args:
      ct: array with the axes (batch, free of lhs, free of rhs).
      linear, known: the two factors, the first of them `Linear`.
      contract, batch: for each of the two, in this order, the axes of either kind.
      ct_contract: the axes of `ct` that came from the free axes of `known`.
      result_dtype: the `preferred_element_type` of the product.

    Returns:
      The cotangent of `linear`. Summing `ct` and `known` over the free axes of the
      latter leaves (batch, free, contracted) axes, which are put in order.
    """
    ct_batch = range(len(batch[0]))
    free = free_axes(linear.aval.ndim, contract[0], batch[0])
    known_free = free_axes(typeof(known).ndim, contract[1], batch[1])
    numbers = (ct_contract, known_free), (ct_batch, batch[1])
    known = with_dtype(known, typeof(ct).dtype)
    product = lax.dot_general(ct, known, numbers, None, result_dtype)
    # Its last axes are the contracted ones of `known`, in the order they have there.
    contracted = [contract[0][i] for i in inverse(contract[1])]
    order = inverse([*batch[0], *free, *contracted])
    return with_dtype(lax.transpose(product, order), linear.aval.dtype)


def with_dtype(x, dtype):
    """Return `x` in another dtype, or as it is if it has that dtype."""
    return x if typeof(x).dtype == dtype else lax.convert_element_type(x, dtype)


def dot_lhs(ct, lhs, rhs, dimension_numbers, preferred_element_type):
    """Transpose a matrix product in its left factor."""
    contract, batch = dimension_numbers
    of_rhs = range(lhs.aval.ndim - len(contract[0]), typeof(ct).ndim)
    return dot_transpose(ct, lhs, rhs, contract, batch, of_rhs, preferred_element_type)


def dot_rhs(ct, lhs, rhs, dimension_numbers, preferred_element_type):
    """Transpose a matrix product in its right factor."""
    contract, batch = (pair[::-1] for pair in dimension_numbers)
    of_lhs = range(len(batch[0]), typeof(lhs).ndim - len(contract[1]))
    return dot_transpose(ct, rhs, lhs, contract, batch, of_lhs, preferred_element_type)


transposes(lax.dot_general_p, dot_lhs, dot_rhs, bilinear=True)
