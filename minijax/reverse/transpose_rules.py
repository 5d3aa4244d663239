# Made from chapters/10_reverse.md by `make chapter`;
# edit the chapter, not this file.
"""Transpose rules: how each linear primitive hands a cotangent back to its operands.

Reference: ``jax.lax``, and the rules that ``jax.linear_transpose`` applies.
"""

from itertools import accumulate

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


def zero(x, may_be_weak=True):
    """Return a scalar zero of the dtype of `x`, weak if `x` is and it may be."""
    aval = typeof(x)
    return astype(0.0, aval.dtype, may_be_weak and aval.weak_type)


elementwise_transposes(lax.neg_p, lambda ct, x: lax.neg(ct))
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


transposes(
    lax.cumsum_p,
    lambda ct, x, axis, reverse: lax.cumsum(ct, axis=axis, reverse=not reverse),
)


def dot_transpose(ct, linear, other, contract, batch, ct_free, preferred):
    """Transpose a matrix product in one factor: multiply the cotangent by the other.

    Args:
      ct: array with the axes (batch, free of lhs, free of rhs).
      linear, other: the two factors, the first of them `Linear`.
      contract, batch: for each of the two, in this order, the axes of either kind.
      ct_free: the axes of `ct` that come from `other`.
      preferred: dtype to compute in.

    Returns:
      The cotangent of `linear`. Summing `ct` and `other` over the free axes of the
      latter leaves (batch, free, contracted) axes, which are put in order.
    """
    free = free_axes(linear.aval.ndim, contract[0], batch[0])
    other_free = free_axes(typeof(other).ndim, contract[1], batch[1])
    numbers = (ct_free, other_free), (range(len(batch[0])), batch[1])
    other = with_dtype(other, typeof(ct).dtype)
    product = lax.dot_general(ct, other, numbers, None, preferred)
    contracted = [contract[0][i] for i in inverse(contract[1])]
    order = inverse([*batch[0], *free, *contracted])
    return with_dtype(lax.transpose(product, order), linear.aval.dtype)


def inverse(permutation):
    """Return the permutation that undoes `permutation`."""
    return sorted(range(len(permutation)), key=permutation.__getitem__)


def with_dtype(x, dtype):
    """Return `x` in another dtype, or as it is if it has that dtype."""
    return x if typeof(x).dtype == dtype else lax.convert_element_type(x, dtype)


def dot_lhs(ct, lhs, rhs, dimension_numbers, preferred_element_type):
    """Transpose a matrix product in its left factor."""
    contract, batch = dimension_numbers
    free = range(lhs.aval.ndim - len(contract[0]), typeof(ct).ndim)
    return dot_transpose(ct, lhs, rhs, contract, batch, free, preferred_element_type)


def dot_rhs(ct, lhs, rhs, dimension_numbers, preferred_element_type):
    """Transpose a matrix product in its right factor."""
    contract, batch = (pair[::-1] for pair in dimension_numbers)
    free = range(len(batch[0]), typeof(lhs).ndim - len(contract[1]))
    return dot_transpose(ct, rhs, lhs, contract, batch, free, preferred_element_type)


transposes(lax.dot_general_p, dot_lhs, dot_rhs, bilinear=True)


def unslice(ct, x, start_indices, limit_indices, strides):
    """Transpose a slice: put the cotangent back between zeros."""
    config = []
    for axis, size in enumerate(x.aval.shape):
        start, count = start_indices[axis], typeof(ct).shape[axis]
        step = strides[axis] if strides else 1
        span = (count - 1) * step + 1 if count else 0
        config.append((start, size - start - span, step - 1))
    return lax.pad(ct, zero(ct), config)


def unpad(ct, x, value, padding_config):
    """Transpose padding: cut out what was padded."""
    cut = lax.pad(ct, zero(ct), [(-low, -high, 0) for low, high, _ in padding_config])
    steps = [interior + 1 for _, _, interior in padding_config]
    if set(steps) <= {1}:
        return cut
    return lax.slice(cut, [0] * len(steps), typeof(cut).shape, steps)


def sum_all(x):
    """Return the sum of all elements."""
    return lax.reduce_sum(x, range(typeof(x).ndim))


def pad_value(ct, x, value, padding_config):
    """Transpose padding in the value that it pads with: sum what is not the operand."""
    return lax.sub(sum_all(ct), sum_all(unpad(ct, x, value, padding_config)))


transposes(lax.slice_p, unslice)
transposes(lax.pad_p, unpad, pad_value)
transposes(lax.reshape_p, lambda ct, x, new_sizes: lax.reshape(ct, x.aval.shape))
transposes(lax.squeeze_p, lambda ct, x, dimensions: lax.expand_dims(ct, dimensions))
transposes(
    lax.transpose_p, lambda ct, x, permutation: lax.transpose(ct, inverse(permutation))
)
transposes(lax.rev_p, lambda ct, x, dimensions: lax.rev(ct, dimensions))
transposes(lax.copy_p, lambda ct, x: ct)
transposes(
    lax.reduce_precision_p,
    lambda ct, x, **bits: lax.reduce_precision_p.bind(ct, **bits)[0],
)


def unconvert(ct, x, new_dtype, weak_type):
    """Transpose a conversion: convert back, by way of the real part if need be."""
    old = x.aval
    if new_dtype.kind == "c" and old.dtype.kind != "c":
        ct = lax.real(ct)
    return astype(ct, old.dtype, old.weak_type)


transposes(lax.convert_element_type_p, unconvert)


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


def concatenate_transpose(cotangents, *operands, dimension):
    """Transpose a concatenation: each operand gets its stretch of the cotangent."""
    [ct] = cotangents
    sizes = [typeof(operand).shape[dimension] for operand in operands]
    ends = list(accumulate(sizes))

    def stretch(size, end):
        return lax.slice_in_dim(ct, end - size, end, axis=dimension)

    return [
        stretch(size, end) if isinstance(operand, Linear) else None
        for operand, size, end in zip(operands, sizes, ends)
    ]


transpose_rules[lax.concatenate_p] = concatenate_transpose


elementwise_transposes(lax.conj_p, lambda ct, z: lax.conj(ct))
elementwise_transposes(lax.real_p, lambda ct, z: lax.complex(ct, zero(ct, False)))
elementwise_transposes(
    lax.imag_p, lambda ct, z: lax.complex(zero(ct, False), lax.neg(ct))
)
elementwise_transposes(
    lax.complex_p, lambda ct, x, y: lax.real(ct), lambda ct, x, y: lax.imag(lax.neg(ct))
)


def unpermute(ct, x, axis_name, perm):
    """Transpose an exchange: send everything back to where it came from."""
    back = tuple((destination, source) for source, destination in perm)
    return lax.ppermute_p.bind(ct, axis_name=axis_name, perm=back)[0]


def ungather(ct, x, all_gather_dimension, **params):
    """Transpose a gathering: sum what all examples have for this one."""
    place = all_gather_dimension
    return lax.reduce_scatter_p.bind(ct, scatter_dimension=place, **params)[0]


def unscatter(ct, x, scatter_dimension, **params):
    """Transpose a scattered sum: every example gets the cotangents of all parts."""
    place = scatter_dimension
    return lax.all_gather_p.bind(ct, all_gather_dimension=place, **params)[0]


def unexchange(ct, x, split_axis, concat_axis, **params):
    """Transpose an exchange of parts: split where they were joined, and back."""
    places = {"split_axis": concat_axis, "concat_axis": split_axis}
    return lax.all_to_all_p.bind(ct, **places, **params)[0]


transposes(lax.psum_p, lambda ct, x, **params: lax.psum_p.bind(ct, **params)[0])
transposes(lax.ppermute_p, unpermute)
transposes(lax.all_gather_p, ungather)
transposes(lax.reduce_scatter_p, unscatter)
transposes(lax.all_to_all_p, unexchange)


NONLINEAR = (
    "It is not linear: differentiation writes its tangent with other primitives, and "
    "those are transposed."
)
DISCRETE = "Its results are integers or booleans, which have no cotangents."
UNDERIVED = "It is not linear, and it has no derivative that could be transposed."
NO_OPERANDS = "It has no operands that a cotangent could go to."


def refuse(reason, names):
    """Write down why the primitives with these names have no rule."""
    for name in names.split():
        transpose_rules.reasons[getattr(lax, f"{name}_p")] = reason


refuse(
    NONLINEAR,
    "sign abs floor ceil round exp exp2 log log1p expm1 sin cos tan asin acos atan "
    "sinh cosh tanh asinh acosh atanh logistic sqrt rsqrt cbrt square integer_pow erf "
    "erfc erf_inv lgamma rem pow max min atan2 clamp reduce_prod "
    "reduce_max reduce_min cumprod cummax cummin cumlogsumexp",
)
refuse(UNDERIVED, "digamma nextafter bitcast_convert_type pmax pmin")
refuse(
    DISCRETE,
    "is_finite not population_count clz and or xor shift_left shift_right_logical "
    "shift_right_arithmetic eq ne lt le gt ge reduce_and reduce_or reduce_xor argmax "
    "argmin",
)
refuse(NO_OPERANDS, "iota axis_index")
