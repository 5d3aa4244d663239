"""Numbers that NumPy counts differently from XLA, or not at all.

Each function takes the array module and the buffers, as evaluation rules do.
"""

# Made from chapters/02_arrays_ground.md by `make chapter`;
# edit the chapter, not this file.

import math
import warnings

import numpy as np

from minijax.arrays.checks import free_axes, sizes
from minijax.arrays.complex_numbers import divide_inexact, running_logarithms, unit
from minijax.arrays.dtypes import kind_of, name_of


def convert(xp, x, new_dtype, weak_type=False):
    """Convert a buffer; floats beyond an integer type become its nearest end."""
    x = x.real if x.dtype.kind == "c" and new_dtype.kind != "c" else x
    if x.dtype.char == "d" and kind_of(new_dtype) == "h":
        x = x.astype(np.float32)  # XLA rounds twice
    if kind_of(x.dtype) not in "hf" or kind_of(new_dtype) not in "iu":
        return x.astype(new_dtype)
    ends, wide = np.iinfo(new_dtype), x.astype(np.float64)
    if xp is np and x.size and ends.min <= float(x.min()) and float(x.max()) < ends.max:
        return x.astype(new_dtype)  # as most arrays have no number beyond
    whole = xp.where((wide > ends.min) & (wide < ends.max), wide, 0).astype(new_dtype)
    whole = xp.where(wide >= ends.max, new_dtype.type(ends.max), whole)
    return xp.where(wide <= ends.min, new_dtype.type(ends.min), whole)


def convertible(dtype, new_dtype, name="convert_element_type"):
    """Return `new_dtype`; raise a ValueError if just one is a type of numbers."""
    if (dtype.names or new_dtype.names) and dtype != new_dtype:
        raise ValueError(
            f"Cannot {name} from {name_of(dtype)} to {name_of(new_dtype)}: only one of "
            "them is a type of numbers. Keys are read by minijax.random.key_data, and "
            "made by minijax.random.key."
        )
    return new_dtype


def warn_of_lost_parts(dtype, new_dtype):
    """Warn if a conversion drops imaginary parts."""
    if dtype.kind == "c" and new_dtype.kind != "c":
        message = "Casting complex values to real discards the imaginary part"
        warnings.warn(message, np.exceptions.ComplexWarning, stacklevel=4)


def literal_of(number, own, dtype, weak_type):
    """Return a Python number of dtype `own` in another; a weak one as a number."""
    number = fitting(number, dtype)
    with np.errstate(all="ignore"):
        literal = np.asarray(number, own)
        literal = literal if own == dtype else convert(np, literal, dtype)
    return literal.item() if weak_type else literal


def fitting(number, dtype):
    """Return a Python number as one that a dtype can hold: bools of complex ones."""
    if not isinstance(number, complex) or dtype.kind == "c":
        return number
    if dtype.kind == "b":
        return bool(number)
    raise TypeError(f"The complex number {number} is no {dtype}; take its real part.")


def wide(dtype):
    """Return the dtype to add up in: half-precision floats need more bits."""
    return np.dtype(np.float32) if kind_of(dtype) == "h" else dtype


MOST = {"h": np.float64, "f": np.float64, "c": np.complex128}


def longer(dtype):
    """Return the dtype of running totals: each is rounded, and enters the next one."""
    return np.dtype(MOST.get(kind_of(dtype), dtype))


MANY = 128  # rows


def added(xp, x, axes):
    """Return sums over axes, of many rows by way of sums of blocks."""
    dtype = wide(x.dtype)
    for axis in axes:
        if x.shape[axis] > MANY and lie_apart(x, axis, axes):
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


def contracted(xp, lhs, rhs, dimension_numbers, preferred_element_type):
    """Multiply, and sum over the contracting axes, by one product of matrices."""
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    lhs_free = free_axes(lhs.ndim, lhs_contract, lhs_batch)
    rhs_free = free_axes(rhs.ndim, rhs_contract, rhs_batch)
    batch, summed = sizes(lhs.shape, lhs_batch), sizes(lhs.shape, lhs_contract)
    rows, columns = sizes(lhs.shape, lhs_free), sizes(rhs.shape, rhs_free)
    a = lhs.transpose((*lhs_batch, *lhs_free, *lhs_contract))
    b = rhs.transpose((*rhs_batch, *rhs_contract, *rhs_free))
    dtype = wide(preferred_element_type or xp.result_type(a, b))
    a, b = a.astype(dtype, copy=False), b.astype(dtype, copy=False)
    a = a.reshape((*batch, math.prod(rows), math.prod(summed)))
    b = b.reshape((*batch, math.prod(summed), math.prod(columns)))
    return product(xp, a, b).reshape((*batch, *rows, *columns))


LONG_SUM, LONGEST_SUM = 2**12, 2**16  # terms of a sum


def product(xp, a, b):
    """Multiply matrices; long sums are not made by adding one number to another."""
    terms, sums = a.shape[-1], a.shape[-2] * b.shape[-1]
    if terms < LONG_SUM:
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


def equal(xp, x, y):
    """Return where elements are the same: numbers, or those of an extended dtype."""
    return x == y if x.dtype.names else xp.equal(x, y)


def not_equal(xp, x, y):
    """Return where elements differ: numbers, or those of an extended dtype."""
    return x != y if x.dtype.names else xp.not_equal(x, y)


def divide(xp, x, y):
    """Divide; integers round towards zero, and dividing by 0 gives all bits set."""
    if x.dtype.kind not in "iu":
        return divide_inexact(xp, x, y)
    zero = y == 0
    safe = xp.where(zero, xp.ones_like(y), y)
    quotient = x // safe
    quotient += (x % safe != 0) & ((x < 0) != (safe < 0))  # // rounds down
    return xp.where(zero, ~xp.zeros_like(x), quotient)


def remainder(xp, x, y):
    """Return what division leaves, with the sign of `x`; `x` itself where y is 0."""
    if x.dtype.kind not in "iu":
        return xp.fmod(x, y)
    zero = y == 0
    return xp.where(zero, x, xp.fmod(x, xp.where(zero, xp.ones_like(y), y)))


def _shift(xp, x, y, shift, beyond):
    inside = (y >= 0) & (y < x.dtype.itemsize * 8)
    return xp.where(inside, shift(x, xp.where(inside, y, xp.zeros_like(y))), beyond)


def shift_up(xp, x, y):
    """Shift bits up; by the width or more, nothing is left."""
    return _shift(xp, x, y, xp.left_shift, xp.zeros_like(x))


def shift_down_arithmetic(xp, x, y):
    """Shift bits down; copies of the highest bit fill the gap."""
    bits = np.dtype(f"i{x.dtype.itemsize}")
    sign = xp.where(x.view(bits) < 0, bits.type(-1), bits.type(0))
    shifted = _shift(xp, x.view(bits), y.view(bits), xp.right_shift, sign)
    return xp.asarray(shifted, bits).view(x.dtype)


def shift_down_logical(xp, x, y):
    """Shift bits down; zeros fill the gap."""
    bits = np.dtype(f"u{x.dtype.itemsize}")
    shifted = _shift(xp, x.view(bits), y.view(bits), xp.right_shift, bits.type(0))
    return xp.asarray(shifted, bits).view(x.dtype)


def count_leading_zeros(xp, x):
    """Return how many bits stand above the highest one."""
    bits = x.dtype.itemsize * 8
    x = x.view(np.dtype(f"u{x.dtype.itemsize}")).astype("uint64")
    for shift in (1, 2, 4, 8, 16, 32):
        x = x | (x >> np.uint64(shift))
    return bits - xp.bitwise_count(x)


def count_ones(xp, x):
    """Return how many bits are set."""
    return xp.bitwise_count(x.view(np.dtype(f"u{x.dtype.itemsize}")))


def round_to_integer(xp, x, rounding_method):
    """Round halves away from zero (0), or to the even neighbour (1)."""
    if rounding_method == 1:
        return xp.rint(x)
    whole = xp.trunc(x)
    return xp.copysign(whole + (xp.abs(x - whole) >= 0.5) * xp.sign(x), x)


def direction(xp, x):
    """Return -1, 0 or 1, or a complex number of size 1; zeros keep their sign."""
    if x.dtype.kind == "c":
        return xp.where(x == 0, x, unit(xp, x))
    return xp.where(x == 0, x, xp.sign(x))


def power(xp, x, y):
    """Raise `x` to the power `y`, an array of the same dtype or of integers."""
    y = y.astype(x.dtype) if y.dtype.kind in "iu" else y
    root = y == 0.5
    if x.dtype.kind != "c" and xp.any(root):  # where NumPy takes the square root of -∞
        x = xp.where(root & ((x == 0) | (x == -np.inf)), xp.abs(x), x)
    return xp.power(x, y)


def integer_power(xp, x, y):
    """Raise `x` to a fixed integer power."""
    if y < 0:
        below = integer_power(xp, x, -y)
        return divide_inexact(xp, xp.ones_like(x), below)
    if y > 127 or (y and x.dtype.kind == "c"):  # not every dtype holds 128
        return by_squaring(xp.multiply, x, y)
    return xp.power(x, np.asarray(y, x.dtype)) if y else xp.ones_like(x)


def by_squaring(multiply, x, y):
    """Return a power of `x`, for a positive integer `y`, by a product for each bit."""
    result = None
    while y:
        if y % 2:
            result = x if result is None else multiply(result, x)
        y //= 2
        x = multiply(x, x) if y else x
    return result


def next_number(xp, x, y):
    """Return the next number on the way to `y`: `y` itself from a zero to the other."""
    return xp.where(x == y, y, xp.nextafter(x, y))


def inverse_root(xp, x):
    """Return 1 / sqrt(x); of half-precision numbers it is rounded once."""
    many = x.astype(wide(x.dtype), copy=False)
    root = divide_inexact(xp, many.dtype.type(1), xp.sqrt(many))
    return root.astype(x.dtype, copy=False)


def sigmoid(xp, x):
    """Return 1 / (1 + exp(-x)); of half-precision numbers it is rounded once."""
    many = x.astype(wide(x.dtype), copy=False)
    part = divide_inexact(xp, many.dtype.type(1), 1 + xp.exp(-many))
    return part.astype(x.dtype, copy=False)


def reduced(xp, x, exponent_bits, mantissa_bits):
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


def running_log_sum_exp(xp, x, axis):
    """Return the logarithms of running sums of exponentials."""
    if x.dtype.kind != "c":
        return xp.logaddexp.accumulate(x, axis, longer(x.dtype))
    return running_logarithms(xp, x, axis)


def by_number(function):
    """Return an evaluation that calls `function` on each element as a Python float."""
    vectorized = np.vectorize(function, otypes=[np.float64])
    return lambda xp, x: vectorized(x.astype(np.float64))


def log_gamma(x):
    """Return log |Γ(x)|; infinite at the poles 0, -1, -2, …"""
    if math.isinf(x) or (x <= 0 and x == math.floor(x)):
        return math.inf
    try:
        return math.lgamma(x)
    except OverflowError:
        return math.inf


# Where psi is 0, in two parts; psi(x) / (x - that) from 1 to 2, a quotient of
# polynomials in x - 1.5; and log(x) - 1 / (2 x) - psi(x), a series in 1 / x**2.
PSI_ZERO = 1.4616321449683622, 9.549995429965697e-17
PSI_NEAR = (
    (
        0.9510558760318328, 1.08025905637985, 0.4202601310988512, 0.06598757301306346,
        0.0035803014256273946, 1.9644097005295103e-05, -2.2098623048346206e-07,
    ),
    (
        1.0, 1.5812808853419813, 0.8933140649758372, 0.22339339119693766,
        0.0242015506303538, 0.0008695255114440703,
    ),
)  # fmt: skip
PSI_FAR = (
    0.0, 1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12,
    -3617 / 8160, 43867 / 14364,
)  # fmt: skip


def psi(x):
    """Return Γ'(x) / Γ(x): reflected, moved to where one of two formulas holds.

    Source: NIST Digital Library of Mathematical Functions, 5.5.2, 5.5.4, 5.11.2.
    """
    if not x > -math.inf or (x <= 0 and math.fmod(x, 1) == 0):
        return math.nan
    if x < 0:
        return psi(1 - x) - math.pi * cotangent(math.remainder(x, 1))
    if x < 1:
        return psi(1 + x) - 1 / x if 1 / x < math.inf else -math.inf
    if x >= 8:
        return math.log(x) - 0.5 / x - horner(PSI_FAR, 1 / (x * x))
    above = 0.0
    while x > 2:
        above, x = above + 1 / (x - 1), x - 1
    ratio = horner(PSI_NEAR[0], x - 1.5) / horner(PSI_NEAR[1], x - 1.5)
    return above + (x - PSI_ZERO[0] - PSI_ZERO[1]) * ratio


def horner(coefficients, x):
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


def inverse_erf(y):
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
