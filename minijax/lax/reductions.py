"""Reductions, running totals and dot_general; operands that lax accepts.

``1 + x`` mixes dtypes and shapes; primitives do not. Here operands are given one dtype,
by the lattice of `minijax.arrays.array`, and one rank, by new axes of size 1.

References: ``jax.lax``, ``jax.lax.dot_general``, type promotion and broadcasting of
``jax.numpy``.
"""

# Made from chapters/02_arrays_rest.md by `make chapter`;
# edit the chapter, not this file.

import enum
import functools
import os
from typing import Any, NamedTuple

import numpy as np

from minijax.arrays.array import (
    PYTHON_SCALARS,
    ShapedArray,
    as_array_impl,
    def_shape_and_impl,
    dtype_lattice_join,
    typeof,
)
from minijax.arrays.array import (
    common_dtype_and_weak_type as common_dtype_and_weak_type,
)
from minijax.arrays.dtypes import (
    EXTENDED_DTYPES,
    PYTHON_TYPE_OF_NODE,
    PYTHON_TYPES,
    WIDE_DTYPES,
    X64_TO_X32,
    _one_of,
    canonicalize_dtype,
    config,
    dtype_kind,
    dtype_name,
    dtype_of_lattice_node,
    is_canonical_dtype,
    is_inexact,
    lattice_node,
    ml_dtypes,
)
from minijax.arrays.interchange import raise_if_promise
from minijax.arrays.numerics import (
    ANY_KINDS,
    BITWISE_KINDS,
    INEXACT_KINDS,
    NUMBER_DTYPE_KINDS,
    ORDERED_KINDS,
    all_weak,
    canonicalize_int_tuple,
    check_axes,
    check_kind,
    cumlogsumexp_impl,
    cumulative_accumulator_dtype,
    dot_general_impl,
    integer_limits,
    lhs_free_axes,
    operator_index,
    reads_bits,
    remove_axes,
    sizes_of_axes,
    sum_accumulator_dtype,
)
from minijax.arrays.out_sharding import with_out_sharding
from minijax.core import Array, Primitive
from minijax.lax.arithmetic import astype, def_reduction
from minijax.lax.arithmetic import promote_dtypes as promote_dtypes
from minijax.lax.arithmetic import promote_shapes as promote_shapes
from minijax.lax.elementwise import real
from minijax.lax.shapes import convert_element_type
from minijax.typing import ArrayLike

# Reductions: primitives that fold an axis, and running totals (prefix sums).


def min_of_dtype(dtype: np.dtype) -> Any:
    """Return the number that no number of `dtype` is below."""
    if dtype_kind(dtype) in "iu":
        return integer_limits(dtype)[0]
    return _bool_or_float(dtype, False, -np.inf)


def max_of_dtype(dtype: np.dtype) -> Any:
    """Return the number that no number of `dtype` is above."""
    if dtype_kind(dtype) in "iu":
        return integer_limits(dtype)[1]
    return _bool_or_float(dtype, True, np.inf)


def _bool_or_float(dtype, truth, infinity):
    if dtype in WIDE_DTYPES and not np.isinf(np.float32(dtype.type(infinity))):
        limits = ml_dtypes.finfo(dtype)  # a float that has no infinity
        return limits.max if infinity > 0 else limits.min
    return dtype.type(truth if dtype_kind(dtype) == "b" else infinity)


def fits_index_dtype(size, index_dtype):
    """Return whether an integer dtype can number the places of an axis."""
    return size - 1 <= integer_limits(index_dtype)[1]


def check_places(name, size, index_dtype):
    """Raise an OverflowError unless `index_dtype` can number the places of an axis."""
    if not fits_index_dtype(size, index_dtype):
        raise OverflowError(
            f"{name} along an axis of {size} elements: {index_dtype} counts to "
            f"{integer_limits(index_dtype)[1]}. Call it along one axis of several, or "
            'have an index of 64 bits: config.update("jax_enable_x64", True).'
        )


def arg_reduction(name):
    """Make a primitive that finds extremes; return it, and the function to bind it."""
    primitive = Primitive(name)

    def shape(x, axes, index_dtype):
        check_kind(name, ORDERED_KINDS, [x])
        check_axes(name, x, axes)
        if len(axes) != 1 or x.shape[axes[0]] == 0:
            raise ValueError(
                "argmin and argmax require non-empty reduced dimension, and one: got "
                f"axes={axes} of {x}."
            )
        if index_dtype.kind not in "iu":
            raise TypeError(f"index_dtype must be an integer type, got {index_dtype}.")
        return [ShapedArray(remove_axes(x.shape, axes), index_dtype)]

    def compute(xp, x, axes, index_dtype):
        check_places(name, x.shape[axes[0]], index_dtype)
        return getattr(xp, name)(
            x.astype(sum_accumulator_dtype(x.dtype), copy=False), axes[0]
        )

    def function(operand, axis, index_dtype):
        dtype = canonicalize_dtype(index_dtype)
        axes = (operator_index(axis, "an axis"),)
        return primitive.bind(operand, axes=axes, index_dtype=dtype)

    def_shape_and_impl(primitive, shape, compute)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"Return the first place of the {name[3:]}imum along `axis`; NaN counts as one."
        f"\n\nReference: ``jax.lax.{name}``."
    )
    return primitive, function


def cumulative(name, accumulate, accepts=NUMBER_DTYPE_KINDS):
    """Make a primitive of running totals; return it, and the function to bind it."""
    primitive = Primitive(name)

    def shape(x, axis, reverse):
        check_axes(name, x, (axis,))
        check_kind(name, accepts, [x])
        return [x]

    def compute(xp, x, axis, reverse):
        x = x.astype(sum_accumulator_dtype(x.dtype), copy=False)
        if not reverse:
            return accumulate(xp, x, axis)
        return xp.flip(accumulate(xp, xp.flip(x, axis), axis), axis)

    def function(operand, axis=0, reverse=False):
        axis = operator_index(axis, "an axis")
        return primitive.bind(operand, axis=axis, reverse=bool(reverse))

    def_shape_and_impl(primitive, shape, compute)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"Running {name[3:]} along `axis`, from its end if `reverse`.\n\n"
        f"Reference: ``jax.lax.{name}``."
    )
    return primitive, function


reduce_prod_p, reduce_prod = def_reduction(
    "reduce_prod",
    NUMBER_DTYPE_KINDS,
    lambda xp, x, axes: xp.prod(x, axes, sum_accumulator_dtype(x.dtype)),
)
reduce_max_p, reduce_max = def_reduction(
    "reduce_max",
    ANY_KINDS,
    reads_bits(
        lambda xp, x, axes: xp.max(x, axes, initial=x.dtype.type(min_of_dtype(x.dtype)))
    ),
)
reduce_min_p, reduce_min = def_reduction(
    "reduce_min",
    ANY_KINDS,
    reads_bits(
        lambda xp, x, axes: xp.min(x, axes, initial=x.dtype.type(max_of_dtype(x.dtype)))
    ),
)
reduce_and_p, reduce_and = def_reduction(
    "reduce_and", BITWISE_KINDS, lambda xp, x, axes: xp.bitwise_and.reduce(x, axes)
)
reduce_or_p, reduce_or = def_reduction(
    "reduce_or", BITWISE_KINDS, lambda xp, x, axes: xp.bitwise_or.reduce(x, axes)
)
reduce_xor_p, reduce_xor = def_reduction(
    "reduce_xor", BITWISE_KINDS, lambda xp, x, axes: xp.bitwise_xor.reduce(x, axes)
)
argmax_p, argmax = arg_reduction("argmax")
argmin_p, argmin = arg_reduction("argmin")
cumsum_p, cumsum = cumulative(
    "cumsum",
    lambda xp, x, axis: xp.cumsum(x, axis, cumulative_accumulator_dtype(x.dtype)),
)
cumprod_p, cumprod = cumulative(
    "cumprod",
    lambda xp, x, axis: xp.cumprod(x, axis, cumulative_accumulator_dtype(x.dtype)),
)
cummax_p, cummax = cumulative(
    "cummax", lambda xp, x, axis: xp.maximum.accumulate(x, axis)
)
cummin_p, cummin = cumulative(
    "cummin", lambda xp, x, axis: xp.minimum.accumulate(x, axis)
)
cumlogsumexp_p, cumlogsumexp = cumulative(
    "cumlogsumexp", cumlogsumexp_impl, INEXACT_KINDS
)


# Tensor contraction: dot_general, the primitive behind every matrix product.

dot_general_p = Primitive("dot_general")


def _check_axes(side, shape, contracting, batch):
    axes = (*contracting, *batch)
    if len({*axes}) < len(axes) or not {*axes} <= {*range(len(shape))}:
        raise TypeError(
            f"dot_general: contracting axes {contracting} and batch axes {batch} of "
            f"{side} must be different axes of its shape {shape}."
        )


def _check_sizes(kind, lhs, rhs, lhs_axes, rhs_axes):
    lhs_sizes = sizes_of_axes(lhs.shape, lhs_axes)
    rhs_sizes = sizes_of_axes(rhs.shape, rhs_axes)
    if lhs_sizes != rhs_sizes:
        raise TypeError(
            f"dot_general requires {kind} dimensions to have the same shape, got "
            f"{lhs_sizes} and {rhs_sizes}: axes {lhs_axes} of lhs {lhs} and axes "
            f"{rhs_axes} of rhs {rhs}."
        )


def _common_dtype(lhs, rhs):
    if lhs.dtype == rhs.dtype and dtype_kind(lhs.dtype) not in "x0":
        return lhs.dtype
    return dtype_of_lattice_node(
        dtype_lattice_join(lattice_node(lhs.dtype), lattice_node(rhs.dtype))
    )[0]


@functools.lru_cache(2**12)
def _product_shape(lhs, rhs, dimension_numbers):
    """Return the shape of a product by those of its factors; None if sizes differ."""
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    _check_axes("lhs", lhs, lhs_contract, lhs_batch)
    _check_axes("rhs", rhs, rhs_contract, rhs_batch)
    batch, summed = [sizes_of_axes(lhs, axes) for axes in (lhs_batch, lhs_contract)]
    if batch != sizes_of_axes(rhs, rhs_batch):
        return None
    if summed != sizes_of_axes(rhs, rhs_contract):
        return None
    return (
        *batch,
        *sizes_of_axes(lhs, lhs_free_axes(len(lhs), lhs_contract, lhs_batch)),
        *sizes_of_axes(rhs, lhs_free_axes(len(rhs), rhs_contract, rhs_batch)),
    )


def _dot_shape(lhs, rhs, dimension_numbers, preferred_element_type, precision=None):
    shape = _product_shape(lhs.shape, rhs.shape, dimension_numbers)
    if shape is None:
        (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
        _check_sizes("batch", lhs, rhs, lhs_batch, rhs_batch)
        _check_sizes("contracting", lhs, rhs, lhs_contract, rhs_contract)
    common = _common_dtype(lhs, rhs)
    dtype = preferred_element_type or common
    _check_width(dtype, common)
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


def_shape_and_impl(dot_general_p, _dot_shape, dot_general_impl)


class Precision(enum.Enum):
    """How exact a matrix product is asked to be; here, all products are exact.

    Reference: ``jax.lax.Precision``.
    """

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2

    @classmethod
    def _missing_(cls, value):
        return cls[PRECISION_NAMES[value]] if value in PRECISION_NAMES else None

    def __str__(self):
        return self.name

    def __repr__(self):
        return f"Precision.{self.name}"


class DotAlgorithm(NamedTuple):
    """An algorithm that a product is asked to use; here, all products are exact.

    Attributes:
      lhs_precision_type, rhs_precision_type: the dtypes that factors are rounded to.
      accumulation_type: the dtype of sums.
      lhs_component_count, rhs_component_count: how many numbers stand for a factor.
      num_primitive_operations: how many products of such numbers are made.
      allow_imprecise_accumulation: whether some sums may be less exact.

    Reference: ``jax.lax.DotAlgorithm``.
    """

    lhs_precision_type: Any
    rhs_precision_type: Any
    accumulation_type: Any
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False


class DotAlgorithmPreset(enum.Enum):
    """Algorithms by their names: the dtypes of both factors, and that of the sum.

    Reference: ``jax.lax.DotAlgorithmPreset``.
    """

    DEFAULT = enum.auto()
    ANY_F8_ANY_F8_F32 = enum.auto()
    ANY_F8_ANY_F8_F32_FAST_ACCUM = enum.auto()
    ANY_F8_ANY_F8_ANY = enum.auto()
    ANY_F8_ANY_F8_ANY_FAST_ACCUM = enum.auto()
    F16_F16_F16 = enum.auto()
    F16_F16_F32 = enum.auto()
    BF16_BF16_BF16 = enum.auto()
    BF16_BF16_F32 = enum.auto()
    BF16_BF16_F32_X3 = enum.auto()
    BF16_BF16_F32_X6 = enum.auto()
    BF16_BF16_F32_X9 = enum.auto()
    TF32_TF32_F32 = enum.auto()
    TF32_TF32_F32_X3 = enum.auto()
    F32_F32_F32 = enum.auto()
    F64_F64_F64 = enum.auto()

    def __str__(self):
        return self.name

    def __repr__(self):
        return f"DotAlgorithmPreset.{self.name}"


# What a precision is called, also after the numbers that a TPU multiplies.
PRECISION_NAMES = {
    "highest": "HIGHEST", "float32": "HIGHEST",
    "high": "HIGH", "bfloat16_3x": "HIGH", "tensorfloat32": "HIGH",
    "default": "DEFAULT", "bfloat16": "DEFAULT", "fastest": "DEFAULT",
    None: "DEFAULT",
}  # fmt: skip
PRECISION_CHOICES = (
    None, "default", "high", "highest", "bfloat16", "tensorfloat32", "float32",
    *(preset.name for preset in DotAlgorithmPreset if preset.name != "DEFAULT"),
)  # fmt: skip
_MATMUL_SWITCH = "jax_default_matmul_precision"
config.define(
    _MATMUL_SWITCH,
    os.environ.get(_MATMUL_SWITCH.upper()),
    functools.partial(_one_of, PRECISION_CHOICES),
)


def canonicalize_precision(precision):
    """Return what a product is asked for, or the switch: None, a pair, an algorithm."""
    if precision is None:
        precision = config.jax_default_matmul_precision
        return precision if precision is None else canonicalize_precision(precision)
    if isinstance(precision, DotAlgorithm | DotAlgorithmPreset):
        return precision
    if isinstance(precision, str) and precision in DotAlgorithmPreset.__members__:
        return DotAlgorithmPreset[precision]
    pair = precision if isinstance(precision, tuple | list) else (precision,) * 2
    same = any(all(isinstance(x, kind) for x in pair) for kind in (str, Precision))
    if len(pair) != 2 or not same or not {*pair} <= {*Precision, *PRECISION_NAMES}:
        raise ValueError(
            f"Precision argument must be one of: None, a string in "
            f"{[*PRECISION_NAMES]}, a lax.Precision, a tuple of two of these, a "
            "lax.DotAlgorithmPreset or its name, or a lax.DotAlgorithm; got "
            f"{precision!r}."
        )
    return Precision(pair[0]), Precision(pair[1])


def _converted_last(dtype, operands):
    """Return whether numbers would lose a part, or their fractions, before a product.

    The imaginary parts of two numbers make a real part, and two halves a quarter.
    """
    if operands.kind == "c":
        return dtype.kind != "c"
    return operands.kind not in "biu" and dtype.kind in "biu"


@with_out_sharding
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
      precision: a `Precision` or its name, a pair of them, or an algorithm; by default
        what the switch ``jax_default_matmul_precision`` says. It changes nothing.
      preferred_element_type: the dtype of the result; by default, what the operands'
        dtypes promote to. Where it is real and they are complex, or an integer and they
        are floats, the sum of the products is converted.

    Returns:
      An array with the batch axes, then the other axes of `lhs`, then those of `rhs`.

    Reference: ``jax.lax.dot_general``.
    """
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
    result = dot_general_p.bind(
        lhs,
        rhs,
        dimension_numbers=(
            tuple(map(canonicalize_int_tuple, contracting)),
            tuple(map(canonicalize_int_tuple, batch)),
        ),
        precision=canonicalize_precision(precision),
        preferred_element_type=dtype,
    )
    if last is None:
        return result
    return convert_element_type(real(result) if own.kind == "c" else result, last)


@with_out_sharding
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
    if dimension_numbers is not None:
        how = dimension_numbers, precision, preferred_element_type
        return dot_general(lhs, rhs, *how)
    lhs_ndim, rhs_ndim = typeof(lhs).ndim, typeof(rhs).ndim
    if not {lhs_ndim, rhs_ndim} <= {1, 2} or sizes_of_axes(
        typeof(lhs).shape, [lhs_ndim - 1]
    ) != sizes_of_axes(typeof(rhs).shape, [0]):
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


# From anything that a user writes to operands that ``minijax.lax`` accepts.

ARRAYLIKE = (Array, np.ndarray, np.generic, *PYTHON_SCALARS)


def is_arraylike(x: Any) -> bool:
    """Return whether `x` is an array, a tracer, a NumPy array or a number."""
    return isinstance(x, ARRAYLIKE)


def check_arraylike(name: str, *args: Any) -> None:
    """Raise a TypeError that names the function and the place of a non-array."""
    for position, arg in enumerate(args):
        if not isinstance(arg, ARRAYLIKE):
            raise_if_promise(arg)
            raise TypeError(
                f"{name} requires ndarray or scalar arguments, got {type(arg)} at "
                f"position {position}."
            )


def as_array_operand(x):
    """Return a number or NumPy array as an array; an array or tracer as it is."""
    return x if isinstance(x, Array) else as_array_impl(x)


def to_inexact_dtype(dtype: Any) -> np.dtype:
    """Return the float dtype in which functions of integers of a dtype are computed."""
    if is_inexact(dtype):
        return dtype
    if dtype in EXTENDED_DTYPES:
        raise TypeError(f"dtype {dtype_name(dtype)} is not a type of numbers")
    return np.dtype("float64" if dtype.itemsize == 8 else "float32")


def promote_dtypes_inexact(*args: Any) -> list:
    """Give `args` their common dtype, or the float dtype of these integers."""
    dtype, weak_type = common_dtype_and_weak_type(*args)
    return [astype(arg, to_inexact_dtype(dtype), weak_type) for arg in args]


def is_promoted(promote, x, y):
    """Return whether a promotion, and that of shapes, leaves two operands as they are.

    Args:
      promote: one of the functions of this module.
      x, y: operands of any kind.
    """
    if not (isinstance(x, Array) and isinstance(y, Array)):
        return False
    a, b = typeof(x), typeof(y)
    if a is not b:
        one_type = a.dtype is b.dtype and a.weak_type is b.weak_type
        if not one_type or (a.shape != b.shape and a.shape and b.shape):
            return False
    if promote is promote_dtypes:
        return not a.weak_type or dtype_kind(a.dtype) != "b"
    return promote is promote_dtypes_inexact and is_inexact(a.dtype)


def beside_number(promote, x, y):
    """Return an array of floats and a Python number as a promotion leaves them.

    The number gets the array's dtype. None for operands of other kinds.

    Args:
      promote: one of the functions of this module.
      x, y: operands of any kind, in either order.
    """
    array, number = (y, x) if type(x) in (int, float) else (x, y)
    if type(number) not in (int, float) or not isinstance(array, Array):
        return None
    dtype = array.aval.dtype
    if promote not in (promote_dtypes, promote_dtypes_inexact) or array.aval.weak_type:
        return None
    if not is_inexact(dtype) or not is_canonical_dtype(dtype):
        return None
    literal = astype(number, dtype)
    return (array, literal) if array is x else (literal, array)


def promote_dtypes_numeric(*args: Any) -> list:
    """Give `args` their common dtype, or ``int32`` if that is bool."""
    dtype, weak_type = common_dtype_and_weak_type(*args)
    dtype = np.dtype("int32") if dtype_kind(dtype) == "b" else dtype
    return [astype(arg, dtype, weak_type) for arg in args]


def promote_types(a: Any, b: Any) -> np.dtype:
    """Return the dtype in which values of types `a` and `b` meet.

    A type that is named is not narrowed, even if 64-bit types are off.

    Reference: ``jax.numpy.promote_types``.
    """
    nodes = lattice_node(a), lattice_node(b)
    node = dtype_lattice_join(*nodes)
    dtype, weak = dtype_of_lattice_node(node)
    if weak:
        return np.dtype(PYTHON_TYPES[PYTHON_TYPE_OF_NODE[node]])
    wide = any(node in map(str, X64_TO_X32) for node in nodes)
    return np.dtype(node) if wide else dtype
