"""Tensor contraction: dot_general, the primitive behind every matrix product.

Reference: ``jax.lax.dot_general``.
"""

# Made from chapters/02_arrays_rest.md by `make chapter`;
# edit the chapter, not this file.

import enum
from typing import Any

import numpy as np

from minijax.arrays.array import primitive_rules
from minijax.arrays.avals import ShapedArray, typeof
from minijax.arrays.checks import all_weak, free_axes, integers, refuse_sharding, sizes
from minijax.arrays.dtypes import canonicalize_dtype, from_node, lattice_node
from minijax.arrays.lattice import join
from minijax.arrays.numerics import contracted
from minijax.core import Array, Primitive
from minijax.lax.creation import convert_element_type
from minijax.lax.elementwise import real
from minijax.typing import ArrayLike

dot_general_p = Primitive("dot_general")


def _check_axes(side, x, contracting, batch):
    axes = (*contracting, *batch)
    if len({*axes}) < len(axes) or not {*axes} <= {*range(x.ndim)}:
        raise TypeError(
            f"dot_general: contracting axes {contracting} and batch axes {batch} of "
            f"{side} must be different axes of its shape {x.shape}."
        )


def _check_sizes(kind, lhs, rhs, lhs_axes, rhs_axes):
    lhs_sizes, rhs_sizes = sizes(lhs.shape, lhs_axes), sizes(rhs.shape, rhs_axes)
    if lhs_sizes != rhs_sizes:
        raise TypeError(
            f"dot_general requires {kind} dimensions to have the same shape, got "
            f"{lhs_sizes} and {rhs_sizes}: axes {lhs_axes} of lhs {lhs} and axes "
            f"{rhs_axes} of rhs {rhs}."
        )


def _common_dtype(lhs, rhs):
    if lhs.dtype == rhs.dtype and not lhs.dtype.names:
        return lhs.dtype
    return from_node(join(lattice_node(lhs.dtype), lattice_node(rhs.dtype)))[0]


def _dot_shape(lhs, rhs, dimension_numbers, preferred_element_type):
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    _check_axes("lhs", lhs, lhs_contract, lhs_batch)
    _check_axes("rhs", rhs, rhs_contract, rhs_batch)
    _check_sizes("batch", lhs, rhs, lhs_batch, rhs_batch)
    _check_sizes("contracting", lhs, rhs, lhs_contract, rhs_contract)
    shape = (
        *sizes(lhs.shape, lhs_batch),
        *sizes(lhs.shape, free_axes(lhs.ndim, lhs_contract, lhs_batch)),
        *sizes(rhs.shape, free_axes(rhs.ndim, rhs_contract, rhs_batch)),
    )
    dtype = preferred_element_type or _common_dtype(lhs, rhs)
    _check_width(dtype, _common_dtype(lhs, rhs))
    return [ShapedArray(shape, dtype, all_weak([lhs, rhs]))]


def _width(dtype):
    """Return how many bytes a number has, or each of its two parts; a bool has none."""
    return 0 if dtype.kind == "b" else dtype.itemsize // (2 if dtype.kind == "c" else 1)


def _check_width(dtype, operands):
    if operands.kind in "iuc" and _width(dtype) < _width(operands):
        raise TypeError(
            "`preferred_element_type` must not be narrower than the original type, got "
            f"preferred_element_type of {dtype} for result type of {operands}."
        )


primitive_rules(dot_general_p, _dot_shape, contracted)


class Precision(enum.Enum):
    """How exact a matrix product is asked to be; here, all products are exact.

    Reference: ``jax.lax.Precision``.
    """

    DEFAULT = "default"
    HIGH = "high"
    HIGHEST = "highest"

    @classmethod
    def _missing_(cls, value):
        if value not in _OTHER_NAMES:
            names = [one.value for one in cls] + [*_OTHER_NAMES]
            raise ValueError(
                f"Precision argument must be one of: None, a string in {names}, a "
                f"lax.Precision, or a tuple of two of these; got {value!r}."
            )
        return cls[_OTHER_NAMES[value]]


# What JAX calls them besides, after the numbers that a TPU multiplies.
_OTHER_NAMES = {
    "float32": "HIGHEST",
    "bfloat16_3x": "HIGH", "tensorfloat32": "HIGH",
    "bfloat16": "DEFAULT", "fastest": "DEFAULT",
}  # fmt: skip


def _converted_last(dtype, operands):
    """Return whether numbers would lose a part, or their fractions, before a product.

    The imaginary parts of two numbers make a real part, and two halves a quarter.
    """
    if operands.kind == "c":
        return dtype.kind != "c"
    return operands.kind not in "biu" and dtype.kind in "biu"


def _check_precision(precision):
    for one in precision if isinstance(precision, tuple) else (precision,):
        if one is not None:
            Precision(one.lower() if isinstance(one, str) else one)


def dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: Any,
    precision: Any = None,
    preferred_element_type: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Multiply, and sum over contracting axes, for each index of the batch axes.

    Args:
      lhs, rhs: arrays.
      dimension_numbers: ``((lhs_contracting, rhs_contracting), (lhs_batch,
        rhs_batch))``: pairs of axes that are summed over, and pairs that are shared.
      precision: a `Precision` or its name; it changes nothing.
      preferred_element_type: the dtype of the result; by default, what the operands'
        dtypes promote to. Where it is real and they are complex, or an integer and they
        are floats, the sum of the products is converted.

    Returns:
      An array with the batch axes, then the other axes of `lhs`, then those of `rhs`.

    Reference: ``jax.lax.dot_general``.
    """
    _check_precision(precision)
    refuse_sharding("dot_general", out_sharding)
    contracting, batch = dimension_numbers
    own, dtype = _common_dtype(typeof(lhs), typeof(rhs)), None
    last: np.dtype | None = None
    if preferred_element_type is not None:
        asked = preferred_element_type
        stays = isinstance(asked, np.dtype) and asked == own  # 64 bits, whatever x64
        dtype = own if stays else canonicalize_dtype(asked)
        if _converted_last(dtype, own):
            _check_width(dtype, own)
            dtype, last = None, dtype
    kinds = {typeof(x).dtype.kind for x in (lhs, rhs)}
    if dtype is None and len(kinds) == 2 and "V" in kinds:
        dtype = own  # NumPy does not know what bfloat16 and an integer make
    [result] = dot_general_p.bind(
        lhs,
        rhs,
        dimension_numbers=(
            tuple(map(integers, contracting)),
            tuple(map(integers, batch)),
        ),
        preferred_element_type=dtype,
    )
    if last is None:
        return result
    return convert_element_type(real(result) if own.kind == "c" else result, last)


def dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    *,
    dimension_numbers: Any = None,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Multiply matrices and vectors, or whatever `dimension_numbers` say.

    Reference: ``jax.lax.dot``.
    """
    refuse_sharding("dot", out_sharding)
    if dimension_numbers is not None:
        how = dimension_numbers, precision, preferred_element_type
        return dot_general(lhs, rhs, *how)
    lhs_ndim, rhs_ndim = typeof(lhs).ndim, typeof(rhs).ndim
    if not {lhs_ndim, rhs_ndim} <= {1, 2} or sizes(
        typeof(lhs).shape, [lhs_ndim - 1]
    ) != sizes(typeof(rhs).shape, [0]):
        raise ValueError(
            "lax.dot multiplies vectors and matrices whose sizes agree, got "
            f"{typeof(lhs)} and {typeof(rhs)}; see also lax.dot_general."
        )
    numbers = (((lhs_ndim - 1,), (0,)), ((), ()))
    return dot_general(lhs, rhs, numbers, precision, preferred_element_type)


def batch_matmul(lhs: ArrayLike, rhs: ArrayLike, precision: Any = None) -> Array:
    """Multiply stacks of matrices: arrays of equal rank, 2 or more.

    Reference: ``jax.lax.batch_matmul``.
    """
    ndim = typeof(lhs).ndim
    if ndim < 2 or ndim != typeof(rhs).ndim:
        raise ValueError(
            "batch_matmul needs arguments of equal rank, 2 or more, got "
            f"{typeof(lhs)} and {typeof(rhs)}."
        )
    batch = tuple(range(ndim - 2))
    numbers = (((ndim - 1,), (ndim - 2,)), (batch, batch))
    return dot_general(lhs, rhs, numbers, precision)
