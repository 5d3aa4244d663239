"""What shape rules check, and numbers that NumPy counts differently from XLA.

Each function takes the array module and the buffers, as evaluation rules do.

A quotient is said in operations on real numbers, which `k` holds by their names: it
does them to arrays, or writes them into a kernel.
"""

# Made from chapters/02_arrays_ground.md by `make chapter`;
# edit the chapter, not this file.

import builtins
import math
import operator
from collections.abc import Sequence
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from minijax.arrays.accuracy import check_accuracy
from minijax.arrays.devices import NO_MANUAL_AXES, ignore_float_errors
from minijax.arrays.dtypes import (
    WIDE_DTYPES,
    dtype_kind,
    dtype_name,
    ml_dtypes,
    warn_user,
)
from minijax.arrays.interchange import raise_if_promise
from minijax.core import Tracer
from minijax.errors import StaticIntegerError

# What shape rules share: kinds of dtypes, axes, and refusals that name both.

# Kinds of dtypes, by letter: "h" is a half-precision float, "f" a wider one, and "x"
# is what is no number but can be the same as another.
FLOAT_KINDS = "hf"
INEXACT_KINDS = "hfc"
INT_KINDS = "iu"
REAL_DTYPE_KINDS = "iuhf"
NUMBER_DTYPE_KINDS = "iuhfc"
BITWISE_KINDS = "biu"
ORDERED_KINDS = "biuhf"
ANY_KINDS = "biuhfc"
COMPARABLE_KINDS = "biuhfcx"
KIND_NAMES = {
    "b": "bool", "i": "integer", "u": "unsigned integer", "h": "half-precision float",
    "f": "floating", "c": "complex", "x": "extended",
}  # fmt: skip


def comma_separated(items):
    """Return `items` in a row, for messages."""
    return ", ".join(map(str, items))


def lookup_by_type(rules, x):
    """Return the entry of a table for the class of `x`, or the nearest base class.

    Raises:
      TypeError: if there is none, so that `x` is no operand.
      ValueError: if `x` only promises an array.
    """
    for kind in type(x).__mro__:
        if kind in rules:
            return rules[kind]
    raise_if_promise(x)
    raise TypeError(
        f"{x!r} of type {type(x)} is not a valid JAX type: "
        "an array, a NumPy array or a number is expected."
    )


def check_same_dtype(name, avals):
    """Raise a TypeError unless all dtypes are the same."""
    first = avals[0].dtype
    if [aval for aval in avals if aval.dtype is not first and aval.dtype != first]:
        raise TypeError(
            f"lax.{name} requires arguments to have the same dtypes, got "
            f"{comma_separated(dtype_name(aval.dtype) for aval in avals)}. Functions "
            "of minijax.numpy convert them."
        )


def check_kind(name: str, accepts: str, avals: Sequence[Any]) -> None:
    """Raise a TypeError unless all dtypes are of the kinds that `name` accepts."""
    for position, aval in enumerate(avals):
        if dtype_kind(aval.dtype) not in accepts:
            kinds = comma_separated(KIND_NAMES[kind] for kind in accepts)
            raise TypeError(
                f"{name} does not accept dtype {dtype_name(aval.dtype)} at position "
                f"{position}. Accepted kinds of dtypes: {kinds}."
            )


def same_type_aval(avals):
    """Return the plain aval that one or two operands have together, or None.

    They are of one shape and dtype, or a scalar of the dtype stands beside an array.
    """
    first, last = avals[0], avals[-1]
    if first is not last:
        if not first.shape:
            first, last = last, first
        weaker = first.weak_type and not last.weak_type
        other = last.shape and last.shape != first.shape
        if other or last.dtype is not first.dtype or weaker:
            return None
    plain = first.manual_axis_type is NO_MANUAL_AXES is last.manual_axis_type
    return first if plain and len(avals) < 3 else None


def all_weak(avals):
    """Return whether every dtype among `avals` is weak."""
    return not [aval for aval in avals if not aval.weak_type]


def bool_dtype_of(dtype):
    """Return the dtype of comparisons."""
    return np.dtype(bool)


def real_dtype_of(dtype: np.dtype) -> np.dtype:
    """Return the dtype of the parts of a complex number, or a real `dtype` itself."""
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


def complex_dtype_of(dtype: np.dtype) -> np.dtype:
    """Return the dtype of complex numbers with parts of `dtype`."""
    return np.dtype(f"c{dtype.itemsize * 2}")


def broadcast_shapes_same_rank(name, shapes):
    """Return the shape that operands of equal rank have together.

    Raises:
      TypeError: if ranks differ (a scalar goes with any), or sizes do and none is 1.
    """
    ranked = [shape for shape in shapes if shape]
    if len({*ranked}) <= 1:
        return ranked[0] if ranked else ()
    if len({*map(len, ranked)}) > 1:
        raise TypeError(
            f"{name}: arrays must have the same number of dimensions, got shapes "
            f"{comma_separated(shapes)}. Functions of minijax.numpy line them up."
        )
    sizes = [{*column} - {1} or {1} for column in zip(*ranked)]
    if builtins.max(map(len, sizes)) > 1:
        raise TypeError(
            f"{name} got incompatible shapes for broadcasting: "
            f"{comma_separated(shapes)}."
        )
    return tuple(size for [size] in sizes)


# Functions of one operand; some of them take the accuracy that is asked for.
ACCURATE = frozenset(
    "cbrt cos exp exp2 expm1 log log1p logistic rsqrt sin sqrt tan tanh".split()
)


def bind_unary(primitive):
    """Return the function that binds a primitive of one operand and one result.

    It takes the argument `accuracy` where JAX's function of this name does.
    """
    return (_accurate if primitive.name in ACCURATE else _plain)(primitive)


def _plain(primitive):
    def function(x):
        return primitive.bind(x)

    return function


def _accurate(primitive):
    def function(x, *, accuracy=None):
        if accuracy is not None:
            check_accuracy(accuracy)
        return primitive.bind(x)

    return function


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """Return the shape that `shapes` broadcast to, by NumPy's rules.

    Raises:
      ValueError: if two sizes differ and neither is 1.

    Reference: ``jax.lax.broadcast_shapes``.
    """
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        message = f"Incompatible shapes for broadcasting: shapes={[*shapes]}"
        raise ValueError(message) from None


def concrete_bool(x, what):
    """Return a bool; a TypeError says which argument `what` is none."""
    if not isinstance(x, bool | np.bool_):
        kind = type(x).__name__
        raise TypeError(f"{what} must be True or False, not {x!r} of type {kind}.")
    return bool(x)


def operator_index(x: Any, what: str, way_out: str | None = None) -> int:
    """Return a static integer, such as an axis, a size or a count, as an ``int``.

    It decides what the program is, so its value has to be known while tracing.

    Args:
      x: an integer of Python or NumPy, an integer array without axes, or a ``bool``,
        which is an integer of Python.
      what: what it is for, with an article or the name of the argument, for messages.
      way_out: what to do about a tracer; by default, what JAX says of ``jit``.

    Raises:
      TypeError: for what is no integer, such as a float or an array with axes.
      StaticIntegerError: for a tracer that has no number yet.

    Reference: ``operator.index``, ``jax.core.concrete_or_error``.
    """
    try:
        return operator.index(x)
    except TypeError:
        raise _no_integer(x, what, way_out or JIT_STATICALLY) from None


def _no_integer(x, what, way_out):
    is_tracer = isinstance(x, Tracer)
    if not is_tracer or getattr(x, "concrete", _nothing)() is not None:
        return TypeError(f"Expected an integer as {what}, got {x!r} of type {type(x)}.")
    return StaticIntegerError(
        f"{CONCRETE} as {what}, which is part of the program: {x!r} has no number "
        f"while it is traced. {way_out} {getattr(x, 'provenance', str)()}".rstrip()
    )


def _nothing():
    return None


CONCRETE = "Abstract tracer value encountered where concrete value is expected"


def canonicalize_axis(axis: Any, ndim: int) -> int:
    """Return `axis` counted from the front.

    Raises:
      ValueError: if there is no such axis among `ndim`.
      TypeError, StaticIntegerError: as `operator_index`.
    """
    axis = operator_index(axis, "an axis")
    if not -ndim <= axis < ndim:
        raise ValueError(f"axis {axis} is out of bounds for array of dimension {ndim}")
    return axis % ndim


def dim_size_along(x: Any, axis: Any) -> int:
    """Return the size of an axis of an array; raise as `canonicalize_axis`."""
    return x.shape[canonicalize_axis(axis, len(x.shape))]


def check_rank(name: str, least: int, *arrays: Any) -> None:
    """Raise a ValueError unless all arrays have so many axes."""
    axes = "axis" if least == 1 else "axes"
    for x in arrays:
        if len(x.shape) < least:
            raise ValueError(
                f"{name} takes an array of at least {least} {axes}, and got one of "
                f"shape {x.shape}."
            )


def canonicalize_int_tuple(numbers: Any, what: str = "Parameters") -> tuple:
    """Return a parameter: a tuple of Python ints.

    Args:
      what: the parameters are, in the plural and for messages, such as "Shapes".

    Raises:
      TypeError: for what is no integer.
      StaticIntegerError: for a tracer that has no number yet.
    """
    try:
        return tuple(map(operator.index, numbers))
    except TypeError:
        raise _refused(non_integer_message(what, numbers)) from None


def _refused(message):
    if JIT_STATICALLY not in message:
        return TypeError(message)
    return StaticIntegerError(f"{CONCRETE}. {message}")


def non_integer_message(what, numbers):
    """Return the message for parameters that are not all known integers."""
    parts = numbers if isinstance(numbers, Sequence) else (numbers,)
    told = {n.provenance(): None for n in parts if hasattr(n, "provenance")}
    first = (
        f"{what} must be 1D sequences of concrete values of integer type, got "
        f"{numbers!r}."
    )
    return "\n".join([first, *([JIT_STATICALLY, *told] if told else [])])


# JAX says it in these words, of parameters that are tracers.
JIT_STATICALLY = (
    "If using `jit`, try using `static_argnums` or applying `jit` to smaller "
    "subfunctions."
)


def remove_axes(items, axes):
    """Return `items` as a tuple that lacks the places `axes`."""
    return tuple([item for place, item in enumerate(items) if place not in axes])


def check_axes(name, x, axes):
    """Raise a ValueError unless `axes` are different axes of `x`, counted from 0."""
    if len({*axes}) != len(axes):
        raise ValueError(f"duplicate value in 'axes' of {name}: {axes}")
    if not {*axes} <= {*range(x.ndim)}:
        raise ValueError(f"{name} axes {axes} contain out-of-bounds indices for {x}.")


def check_broadcast_dimensions(shape, new_shape, places):
    """Raise a TypeError unless a shape fits into a new one, each axis at its place."""
    pairs = [*zip(places, shape)]
    wrong = {
        "must have length equal to operand ndim": len(places) != len(shape),
        "must be a subset of output dimensions": not {*places}
        <= {*range(len(new_shape))},
        "must not contain duplicates": len({*places}) != len(places),
        "must rise": sorted(places) != [*places],
    }
    why = [f"broadcast_dimensions {each}" for each in wrong if wrong[each]]
    if not why and any(size not in (1, new_shape[place]) for place, size in pairs):
        why = [
            "operand dimension sizes must either be 1, or be equal to their "
            "corresponding dimensions in the target broadcast shape"
        ]
    if why or builtins.min(new_shape, default=0) < 0:
        raise TypeError(
            f"broadcast_in_dim {(why or ['has no negative sizes'])[0]}; got operand "
            f"shape {shape}, shape {new_shape} and broadcast_dimensions {places}."
        )


def sizes_of_axes(shape, axes):
    """Return the sizes of some axes."""
    return tuple([shape[axis] for axis in axes])


def lhs_free_axes(ndim, contracting, batch):
    """Return the axes that are neither summed over nor shared."""
    return remove_axes(range(ndim), (*contracting, *batch))


# Numbers that NumPy counts differently from XLA, or not at all.


def reads_bits(compute):
    """Say of an evaluation that it takes numbers of few bits as they are."""
    compute.reads_bits = True
    return compute


def bit_width(dtype):
    """Return how many bits a number of a dtype has, which may be few."""
    if dtype not in WIDE_DTYPES:
        return 8 * dtype.itemsize
    limits = ml_dtypes.finfo if dtype_kind(dtype) == "h" else ml_dtypes.iinfo
    return limits(dtype).bits


def integer_limits(dtype):
    """Return the least and the greatest number of an integer dtype."""
    limits = (ml_dtypes.iinfo if dtype in WIDE_DTYPES else np.iinfo)(dtype)
    return int(limits.min), int(limits.max)


def bit_pattern(x):
    """Return numbers of a byte and less as unsigned bytes, without what lies above."""
    return x.view(np.uint8) & np.uint8(2 ** bit_width(x.dtype) - 1)


@reads_bits
def convert_impl(xp, x, new_dtype, weak_type=False):
    """Convert a buffer; floats beyond an integer type become its nearest end."""
    x = x.astype(WIDE_DTYPES.get(x.dtype, x.dtype), copy=False)
    x = x.real if x.dtype.kind == "c" and new_dtype.kind != "c" else x
    if x.dtype.char == "d" and dtype_kind(new_dtype) == "h":
        x = x.astype(np.float32)  # XLA rounds twice
    if dtype_kind(x.dtype) not in "hf" or dtype_kind(new_dtype) not in "iu":
        return x.astype(new_dtype)
    (least, most), wide = integer_limits(new_dtype), x.astype(np.float64)
    if xp is np and x.size and least <= float(x.min()) and float(x.max()) < most:
        return x.astype(new_dtype)  # as most arrays have no number beyond
    whole = xp.where((wide > least) & (wide < most), wide, 0).astype(new_dtype)
    whole = xp.where(wide >= most, new_dtype.type(most), whole)
    return xp.where(wide <= least, new_dtype.type(least), whole)


def check_convertible(dtype, new_dtype, name="convert_element_type"):
    """Return `new_dtype`; raise a ValueError if just one is a type of numbers."""
    if {dtype_kind(dtype), dtype_kind(new_dtype)} & {"x", "0"} and dtype != new_dtype:
        raise ValueError(
            f"Cannot {name} from {dtype_name(dtype)} to {dtype_name(new_dtype)}: only "
            "one of them is a type of numbers. Keys are read by "
            "minijax.random.key_data, and made by minijax.random.key."
        )
    return new_dtype


def warn_complex_to_real(dtype, new_dtype):
    """Warn if a conversion drops imaginary parts."""
    if dtype_kind(dtype) == "c" and dtype_kind(new_dtype) != "c":
        message = "Casting complex values to real discards the imaginary part"
        warn_user(message, np.exceptions.ComplexWarning, stacklevel=4)


def literal_in_dtype(number, own, dtype, weak_type):
    """Return a Python number of dtype `own` in another; a weak one as a number."""
    if own == dtype and type(number) is float and 1e-30 < abs(number) < 1e30:
        literal = np.asarray(number, own)  # nothing can overflow
    else:
        literal = _converted_number(number, own, dtype)
    return literal.item() if weak_type else literal


@ignore_float_errors
def _converted_number(number, own, dtype):
    literal = np.asarray(number_in_dtype(number, dtype), own)
    return literal if own == dtype else convert_impl(np, literal, dtype)


def number_in_dtype(number, dtype):
    """Return a Python number as one that a dtype can hold: bools of complex ones."""
    if not isinstance(number, complex) or dtype.kind == "c":
        return number
    if dtype.kind == "b":
        return bool(number)
    raise TypeError(f"The complex number {number} is no {dtype}; take its real part.")


def sum_accumulator_dtype(dtype):
    """Return the dtype to add up in: half-precision floats need more bits."""
    return np.dtype(np.float32) if dtype_kind(dtype) == "h" else dtype


WIDEST_DTYPES = {"h": np.float64, "f": np.float64, "c": np.complex128}


def cumulative_accumulator_dtype(dtype):
    """Return the dtype of running totals: each is rounded, and enters the next one."""
    return np.dtype(WIDEST_DTYPES.get(dtype_kind(dtype), dtype))


MIN_BLOCKED_ROWS = 128  # rows


def blocked_sum(xp, x, axes):
    """Return sums over axes, of many rows by way of sums of blocks."""
    dtype = sum_accumulator_dtype(x.dtype)
    for axis in axes:
        if x.shape[axis] > MIN_BLOCKED_ROWS and lie_apart(x, axis, axes):
            x = in_blocks(xp, x, axis, dtype)
    return xp.sum(x, axes, dtype)


def lie_apart(x, axis, axes):
    """Return whether others lie between the numbers that are added along an axis."""
    order = [(stride**2, -k) for k, stride in enumerate(x.strides)]  # of both signs
    others = [k for k in range(x.ndim) if k not in axes and x.shape[k] > 1]
    return any(order[k] < order[axis] for k in others)


def in_blocks(xp, x, axis, dtype):
    """Return the sums of blocks along an axis; each has one row of every so many."""
    rows = xp.moveaxis(x, axis, 0)
    count = math.isqrt(len(rows))
    length = len(rows) // count
    whole, rest = rows[: length * count], rows[length * count :]
    sums = xp.sum(whole.reshape(length, count, *rows.shape[1:]), 0, dtype)
    sums[: len(rest)] += rest
    return xp.moveaxis(sums, 0, axis)


@lru_cache(1024)
def matmul_layout(lhs_shape, rhs_shape, dimension_numbers):
    """Return what makes a product of arrays one of stacks of matrices.

    These are the order of axes and the shape of each operand, and the result's shape.
    """
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    lhs_free = lhs_free_axes(len(lhs_shape), lhs_contract, lhs_batch)
    rhs_free = lhs_free_axes(len(rhs_shape), rhs_contract, rhs_batch)
    batch = sizes_of_axes(lhs_shape, lhs_batch)
    summed = math.prod(sizes_of_axes(lhs_shape, lhs_contract))
    rows = sizes_of_axes(lhs_shape, lhs_free)
    columns = sizes_of_axes(rhs_shape, rhs_free)
    lhs = (*lhs_batch, *lhs_free, *lhs_contract), (*batch, math.prod(rows), summed)
    rhs = (*rhs_batch, *rhs_contract, *rhs_free), (*batch, summed, math.prod(columns))
    return lhs, rhs, (*batch, *rows, *columns)


def dot_general_impl(
    xp, lhs, rhs, dimension_numbers, preferred_element_type, precision=None
):
    """Multiply, and sum over the contracting axes, by one product of matrices."""
    *layouts, shape = matmul_layout(lhs.shape, rhs.shape, dimension_numbers)
    dtype = sum_accumulator_dtype(preferred_element_type or xp.result_type(lhs, rhs))
    pairs = zip((lhs, rhs), layouts)
    a, b = [x.transpose(order).reshape(sizes) for x, (order, sizes) in pairs]
    sizes = a.shape[-2:-1], b.shape[-1:], a.shape[-1:]
    if choose_in_contraction(a.dtype, b.dtype, *sizes):
        return sum_of_choices(xp, a, b, dtype).reshape(shape)
    a, b = a.astype(dtype, copy=False), b.astype(dtype, copy=False)
    return matmul_impl(xp, a, b).reshape(shape)


def choose_in_contraction(one, other, rows, columns, summed):
    """Return whether bools choose in a contraction, which is no product of matrices.

    A product of matrices sums, and has a row or a column for more than one sum. (Rows
    and columns are axes of one operand of the two; both have those that are summed.)
    """
    kinds = dtype_kind(one), dtype_kind(other)
    sums = math.prod(rows) * math.prod(columns)
    return (
        "b" in kinds
        and not {"h", "f", "c"}.isdisjoint(kinds)
        and (sums == 1 or math.prod(summed) == 1)
    )


def sum_of_choices(xp, a, b, dtype):
    """Return a product of rows and columns: sums of the float where the bool holds."""
    a, b = a[..., None, :], xp.swapaxes(b, -1, -2)[..., None, :, :]
    truths, other = (a, b) if a.dtype == bool else (b, a)
    other = other.astype(dtype, copy=False)
    return xp.sum(xp.where(truths, other, dtype.type(0)), -1, dtype)


BLOCKED_SUM_SIZES, LONGEST_SUM = 2**12, 2**16  # terms of a sum


def matmul_impl(xp, a, b):
    """Multiply matrices; long sums are not made by adding one number to another."""
    terms, sums = a.shape[-1], a.shape[-2] * b.shape[-1]
    if terms < BLOCKED_SUM_SIZES:
        return xp.matmul(a, b)
    apart = not (in_lines(a) and in_lines(b))
    if sums <= math.isqrt(terms) and (apart or terms >= LONGEST_SUM):
        return product_of_blocks(xp, a, b)
    return xp.matmul(*[x if in_lines(x) else x.copy() for x in (a, b)])


def in_lines(x):
    """Return whether the rows or columns of matrices are lines in memory."""
    steps = x.strides[-2:]
    return x.itemsize in steps and min(steps) > 0


def product_of_blocks(xp, a, b):
    """Return the sum of products of parts, as many as a part has terms."""
    terms = a.shape[-1]
    length = math.isqrt(terms)
    count = terms // length
    whole = count * length
    x = a[..., :whole].reshape((*a.shape[:-1], count, length))
    y = b[..., :whole, :].reshape((*b.shape[:-2], count, length, b.shape[-1]))
    parts = xp.matmul(xp.moveaxis(x, -2, 0), xp.moveaxis(y, -3, 0))
    rest = xp.matmul(a[..., whole:], b[..., whole:, :])
    return xp.add.reduce(parts, 0, dtype=parts.dtype) + rest


def eq_impl(xp, x, y):
    """Return where elements are the same: numbers, or those of an extended dtype."""
    return x == y if x.dtype.names else xp.equal(x, y)


def ne_impl(xp, x, y):
    """Return where elements differ: numbers, or those of an extended dtype."""
    return x != y if x.dtype.names else xp.not_equal(x, y)


def div_impl(xp, x, y):
    """Divide; integers round towards zero, and dividing by 0 gives all bits set."""
    if x.dtype.kind not in "iu":
        return true_divide_impl(xp, x, y)
    zero = y == 0
    safe = xp.where(zero, xp.ones_like(y), y)
    quotient = x // safe
    quotient += (x % safe != 0) & ((x < 0) != (safe < 0))  # // rounds down
    return xp.where(zero, ~xp.zeros_like(x), quotient)


def rem_impl(xp, x, y):
    """Return what division leaves, with the sign of `x`; `x` itself where y is 0."""
    if x.dtype.kind not in "iu":
        return xp.fmod(x, y)
    zero = y == 0
    return xp.where(zero, x, xp.fmod(x, xp.where(zero, xp.ones_like(y), y)))


def _shift(xp, x, y, shift, beyond):
    inside = (y >= 0) & (y < x.dtype.itemsize * 8)
    return xp.where(inside, shift(x, xp.where(inside, y, xp.zeros_like(y))), beyond)


def shift_left_impl(xp, x, y):
    """Shift bits up; by the width or more, nothing is left."""
    return _shift(xp, x, y, xp.left_shift, xp.zeros_like(x))


@reads_bits
def shift_right_arithmetic_impl(xp, x, y):
    """Shift bits down; copies of the highest bit fill the gap."""
    if x.dtype in WIDE_DTYPES:  # move them to the top of a byte, and back
        gap = np.uint8(8 - bit_width(x.dtype))
        high = (bit_pattern(x) << gap).view(np.int8)
        moved = shift_right_arithmetic_impl(xp, high, bit_pattern(y).view(np.int8))
        return (moved.view(np.uint8) >> gap).view(x.dtype)
    bits = np.dtype(f"i{x.dtype.itemsize}")
    sign = xp.where(x.view(bits) < 0, bits.type(-1), bits.type(0))
    shifted = _shift(xp, x.view(bits), y.view(bits), xp.right_shift, sign)
    return xp.asarray(shifted, bits).view(x.dtype)


@reads_bits
def shift_right_logical_impl(xp, x, y):
    """Shift bits down; zeros fill the gap."""
    bits = np.dtype(f"u{x.dtype.itemsize}")
    shifted = _shift(xp, x.view(bits), y.view(bits), xp.right_shift, bits.type(0))
    return xp.asarray(shifted, bits).view(x.dtype)


@reads_bits
def clz_impl(xp, x):
    """Return how many bits stand above the highest one."""
    bits = bit_width(x.dtype)
    x = x.view(np.dtype(f"u{x.dtype.itemsize}")).astype("uint64")
    for shift in (1, 2, 4, 8, 16, 32):
        x = x | (x >> np.uint64(shift))
    return bits - xp.bitwise_count(x)


@reads_bits
def population_count_impl(xp, x):
    """Return how many bits are set."""
    return xp.bitwise_count(x.view(np.dtype(f"u{x.dtype.itemsize}")))


def round_impl(xp, x, rounding_method):
    """Round halves away from zero (0), or to the even neighbour (1)."""
    if rounding_method == 1:
        return xp.rint(x)
    whole = xp.trunc(x)
    return xp.copysign(whole + (xp.abs(x - whole) >= 0.5) * xp.sign(x), x)


def sign_impl(xp, x):
    """Return -1, 0 or 1, or a complex number of size 1; zeros keep their sign."""
    if x.dtype.kind == "c":
        return xp.where(x == 0, x, complex_sign(xp, x))
    return xp.where(x == 0, x, xp.sign(x))


def pow_impl(xp, x, y):
    """Raise `x` to the power `y`, an array of the same dtype or of integers."""
    y = y.astype(x.dtype) if y.dtype.kind in "iu" else y
    root = y == 0.5
    if x.dtype.kind != "c" and xp.any(root):  # where NumPy takes the square root of -∞
        x = xp.where(root & ((x == 0) | (x == -np.inf)), xp.abs(x), x)
    return xp.power(x, y)


def integer_power_impl(xp, x, y):
    """Raise `x` to a fixed integer power."""
    if y < 0:
        below = integer_power_impl(xp, x, -y)
        return true_divide_impl(xp, xp.ones_like(x), below)
    if y > 127 or (y and x.dtype.kind == "c"):  # not every dtype holds 128
        return power_by_squaring(xp.multiply, x, y)
    return xp.power(x, np.asarray(y, x.dtype)) if y else xp.ones_like(x)


def power_by_squaring(multiply, x, y):
    """Return a power of `x`, for a positive integer `y`, by a product for each bit."""
    result = None
    while y:
        if y % 2:
            result = x if result is None else multiply(result, x)
        y //= 2
        x = multiply(x, x) if y else x
    return result


@reads_bits
def nextafter_impl(xp, x, y):
    """Return the next number on the way to `y`: `y` itself from a zero to the other."""
    return xp.where(x == y, y, xp.nextafter(x, y))


def rsqrt_impl(xp, x):
    """Return 1 / sqrt(x); of half-precision numbers it is rounded once."""
    many = x.astype(sum_accumulator_dtype(x.dtype), copy=False)
    root = true_divide_impl(xp, many.dtype.type(1), xp.sqrt(many))
    return root.astype(x.dtype, copy=False)


def logistic_impl(xp, x):
    """Return 1 / (1 + exp(-x)); of half-precision numbers it is rounded once."""
    many = x.astype(sum_accumulator_dtype(x.dtype), copy=False)
    part = true_divide_impl(xp, many.dtype.type(1), 1 + xp.exp(-many))
    return part.astype(x.dtype, copy=False)


def reduce_precision_impl(xp, x, exponent_bits, mantissa_bits):
    """Round to a float of fewer bits; what is too large or small becomes inf or 0."""
    many, own = x.astype(np.float64), 2 ** (_EXPONENT_BITS[x.dtype.name] - 1)
    place = xp.maximum(xp.frexp(many)[1], 3 - own)  # subnormal numbers have one place
    place = place - (min(mantissa_bits, 52) + 1)
    rounded = xp.ldexp(xp.rint(xp.ldexp(many, -place)), place)
    largest = 2 ** (min(exponent_bits, 12) - 1)  # 11 bits are those of doubles
    if largest < own:  # a narrower exponent; one as wide keeps what is subnormal
        beyond = xp.abs(rounded) >= xp.ldexp(1.0, largest)
        rounded = xp.where(beyond, xp.copysign(np.inf, x), rounded)
        tiny = xp.abs(rounded) < xp.ldexp(1.0, 2 - largest)
        rounded = xp.where(tiny, 0.0, rounded)
    return xp.where(xp.isfinite(x), xp.copysign(rounded, many), x)


_EXPONENT_BITS = {"float16": 5, "bfloat16": 8, "float32": 8, "float64": 11}


def cumlogsumexp_impl(xp, x, axis):
    """Return the logarithms of running sums of exponentials."""
    if x.dtype.kind != "c":
        return xp.logaddexp.accumulate(x, axis, cumulative_accumulator_dtype(x.dtype))
    return complex_cumlogsumexp(xp, x, axis)


def elementwise_impl_of_scalar_function(function):
    """Return an evaluation that calls `function` on each element as a Python float."""
    vectorized = np.vectorize(function, otypes=[np.float64])
    return lambda xp, x: vectorized(x.astype(np.float64))


def lgamma_scalar(x):
    """Return log |Γ(x)|; infinite at the poles 0, -1, -2, …"""
    if math.isinf(x) or (x <= 0 and x == math.floor(x)):
        return math.inf
    try:
        return math.lgamma(x)
    except OverflowError:
        return math.inf


# Where psi is 0, in two parts; psi(x) / (x - that) from 1 to 2, a quotient of
# polynomials in x - 1.5; and log(x) - 1 / (2 x) - psi(x), a series in 1 / x**2.
DIGAMMA_ROOT = 1.4616321449683622, 9.549995429965697e-17
DIGAMMA_RATIONAL = (
    (
        0.9510558760318328, 1.08025905637985, 0.4202601310988512, 0.06598757301306346,
        0.0035803014256273946, 1.9644097005295103e-05, -2.2098623048346206e-07,
    ),
    (
        1.0, 1.5812808853419813, 0.8933140649758372, 0.22339339119693766,
        0.0242015506303538, 0.0008695255114440703,
    ),
)  # fmt: skip
DIGAMMA_ASYMPTOTIC = (
    0.0, 1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12,
    -3617 / 8160, 43867 / 14364,
)  # fmt: skip


def digamma_scalar(x):
    """Return Γ'(x) / Γ(x): reflected, moved to where one of two formulas holds.

    Source: NIST Digital Library of Mathematical Functions, 5.5.2, 5.5.4, 5.11.2.
    """
    if not x > -math.inf or (x <= 0 and math.fmod(x, 1) == 0):
        return math.nan
    if x < 0:
        return digamma_scalar(1 - x) - math.pi * cotangent(math.remainder(x, 1))
    if x < 1:
        return digamma_scalar(1 + x) - 1 / x if 1 / x < math.inf else -math.inf
    if x >= 8:
        return math.log(x) - 0.5 / x - polyval_horner(DIGAMMA_ASYMPTOTIC, 1 / (x * x))
    above = 0.0
    while x > 2:
        above, x = above + 1 / (x - 1), x - 1
    ratio = polyval_horner(DIGAMMA_RATIONAL[0], x - 1.5) / polyval_horner(
        DIGAMMA_RATIONAL[1], x - 1.5
    )
    return above + (x - DIGAMMA_ROOT[0] - DIGAMMA_ROOT[1]) * ratio


def polyval_horner(coefficients, x):
    """Return the value of a polynomial; the coefficient of 1 comes first."""
    result = 0.0
    for coefficient in reversed(coefficients):
        result = result * x + coefficient
    return result


def cotangent(turns):
    """Return cot(π turns), of at most half a turn; to the last digit near its zeros."""
    if abs(turns) < 0.25:
        return 1 / math.tan(math.pi * turns)
    return math.copysign(math.tan(math.pi * (0.5 - abs(turns))), turns)


def erf_inv_scalar(y):
    """Return the x with erf(x) = y: a closed form nearby, then Halley's method.

    Source of the closed form: Sergei Winitzki, "A handy approximation for the error
    function and its inverse" (2008).
    """
    if not -1 < y < 1:
        return math.copysign(math.inf, y) if math.fabs(y) == 1 else math.nan
    log = math.log1p(-y * y)
    half = 2 / (math.pi * 0.147) + log / 2
    x = math.sqrt(math.sqrt(half * half - log / 0.147) - half)
    size = abs(y)
    for _ in range(3):
        # Near 1, erf(x) has lost the digits by which x differs; erfc(x) has them.
        miss = math.erf(x) - size if size < 0.5 else (1 - size) - math.erfc(x)
        step = miss * math.sqrt(math.pi) / 2 * math.exp(x * x)
        x -= step / (1 + x * step)
    return math.copysign(x, y)


# Complex numbers by their parts, where NumPy and XLA differ.


def complex_divide_parts(k, a, b, c, d):
    """Return the parts of (a + ib) / (c + id), without squares that could overflow.

    Reference: R. L. Smith, *Algorithm 116: Complex division* (CACM 5, 1962).
    """
    flip = k.lt(k.abs(c), k.abs(d))
    large, small = k.select(flip, d, c), k.select(flip, c, d)
    ratio = k.div(small, large)
    scale = k.add(large, k.mul(small, ratio))
    x, y = k.select(flip, b, a), k.select(flip, a, b)
    turned = k.mul(x, ratio)
    imag = k.select(flip, k.sub(turned, y), k.sub(y, turned))
    parts = k.div(k.add(x, k.mul(y, ratio)), scale), k.div(imag, scale)
    lost = _both(k, *[k.ne(part, part) for part in parts])
    ends = _quotient_at_ends(k, a, b, c, d)
    return [k.select(lost, end, part) for end, part in zip(ends, parts)]


def complex_square_parts(k, x, y):
    """Return the parts of (x + iy)²; x² - y² as a product, which keeps the digits."""
    real, product = k.mul(k.sub(x, y), k.add(x, y)), k.mul(x, y)
    sizes = k.abs(x), k.abs(y)  # if they are equal, their sum may overflow
    return k.select(k.eq(*sizes), k.sub(*sizes), real), k.add(product, product)


def _quotient_at_ends(k, a, b, c, d):
    """Return the quotient of or by infinities, or by 0; of other numbers, NaN.

    Reference: annex G of the C standard, in XLA's reading.
    """
    infinity, zero = k.number(np.inf, a), k.eq(k.add(k.abs(c), k.abs(d)), 0)
    by_zero = [k.mul(k.copysign(infinity, c), part) for part in (a, b)]
    vast = getattr(k, "or")(_is_infinite(k, c), _is_infinite(k, d))
    p, q = [_direction(k, k.select(vast, *parts)) for parts in ((c, a), (d, b))]
    r, s = [k.select(vast, *parts) for parts in ((a, c), (b, d))]
    x, y = k.mul(q, r), k.mul(p, s)
    imag = k.sub(k.select(vast, y, x), k.select(vast, x, y))
    size = k.select(vast, k.number(0, infinity), infinity)
    ends = [k.mul(size, part) for part in (k.add(k.mul(p, r), k.mul(q, s)), imag)]
    return [k.select(zero, *parts) for parts in zip(by_zero, ends)]


def _both(k, x, y):
    return getattr(k, "and")(x, y)


def _is_infinite(k, x):
    return k.eq(k.abs(x), k.number(np.inf, x))


def _direction(k, x):
    """Return 1 for infinity and 0 for other numbers, with the sign of `x`."""
    return k.copysign(k.select(_is_infinite(k, x), k.number(1, x), k.number(0, x)), x)


def on_arrays(xp):
    """Return the operations on real numbers, as an array module does them."""
    names = {
        "div": "divide", "sub": "subtract", "mul": "multiply", "select": "where",
        "lt": "less", "eq": "equal", "ne": "not_equal", "and": "logical_and",
        "or": "logical_or", "abs": "abs", "add": "add", "copysign": "copysign",
    }  # fmt: skip
    operations = {name: getattr(xp, other) for name, other in names.items()}
    return SimpleNamespace(number=lambda x, like: like.dtype.type(x), **operations)


def make_complex(xp, x, y):
    """Return x + iy, exactly, infinities and zeros of either sign included."""
    shape = xp.broadcast_shapes(x.shape, y.shape)
    result = xp.empty(shape, "complex64" if x.dtype.itemsize == 4 else "complex128")
    result.real, result.imag = x, y
    return result


def complex_sign(xp, x):
    """Return complex numbers over their size; those of few bits are scaled first."""
    size = xp.abs(x)
    few = (size < np.finfo(size.dtype).tiny) & (size > 0)
    if xp.any(few):
        x = xp.array(x)
        factor = xp.where(few, size.dtype.type(2.0**64), size.dtype.type(1))
        x.real *= factor
        x.imag *= factor
        size = xp.abs(x)
    return x / size


def true_divide_impl(xp, x, y):
    """Divide floats or complex numbers; NumPy loses what infinities and 0 leave."""
    result = xp.divide(x, y)
    if x.dtype.kind != "c" or xp.isfinite(xp.sum(result)):
        return result
    parts = complex_divide_parts(on_arrays(xp), x.real, x.imag, y.real, y.imag)
    return xp.where(xp.isfinite(result), result, make_complex(xp, *parts))


def square_impl(xp, x):
    """Return the square of numbers."""
    if x.dtype.kind != "c":
        return x * x
    return make_complex(xp, *complex_square_parts(on_arrays(xp), x.real, x.imag))


def arg_of_point(xp, y, x):
    """Return the angle of the point (x, y), continued to complex coordinates."""
    if x.dtype.kind != "c":
        return xp.arctan2(y, x)
    return -1j * xp.log((x + 1j * y) / xp.sqrt(x * x + y * y))


def expm1_impl(xp, x):
    """Return exp(x) - 1; of a complex number that is real, without imaginary part."""
    result = xp.expm1(x)
    if x.dtype.kind != "c":
        return result
    power = xp.exp(x)  # may be finite where the power of the real part is not
    far = (x.real > 80) & (x.real < np.inf)
    real = xp.where(far, power.real - 1, result.real)
    imag = xp.where(far, power.imag, result.imag)
    imag = xp.where(x.imag == 0, 0, imag)
    return xp.where(x == 0, 0, make_complex(xp, real, imag))


def log1p_impl(xp, x):
    """Return log(1 + x); of complex numbers near 0 without loss of digits.

    NumPy's takes the logarithm of |1 + x|, rounded. Near 1 it is computed from
    |1 + x|**2 - 1, of floats in 64 bits.
    """
    if x.dtype.kind != "c":
        return xp.log1p(x)
    result = xp.log(make_complex(xp, x.real + 1, x.imag))
    real, imag = x.real.astype(np.float64), x.imag.astype(np.float64)
    half = 0.5 * xp.log1p(real * (real + 2) + imag * imag)
    near = xp.where(xp.abs(result.real) < 0.5, half, result.real)
    return make_complex(xp, near, result.imag)


def complex_cumlogsumexp(xp, x, axis):
    """Return the logarithms of running sums of exponentials of complex numbers."""
    totals, reach = xp.moveaxis(x, axis, 0).astype(np.complex128), 1
    while reach < len(totals):
        totals[reach:] = complex_logaddexp(xp, totals[:-reach], totals[reach:])
        reach *= 2
    return xp.moveaxis(totals, 0, axis)


def complex_logaddexp(xp, x, y):
    """Return log(exp(x) + exp(y)) of complex numbers."""
    peak = xp.maximum(x.real, y.real)
    peak = xp.where(xp.isfinite(peak), peak, 0)
    return xp.log(xp.exp(x - peak) + xp.exp(y - peak)) + peak
