"""Other exponentials: of base 2, less 1, the hyperbolic functions, their inverses."""

# Made from chapters/23_functions_rest.md by `make chapter`;
# edit the chapter, not this file.

import numpy as np

from minijax.functions.exponentials import ENDS, LOG2_E, scaled_exp
from minijax.functions.logarithms import at_ends, log_of_parts, parts_of
from minijax.functions.range_reduction import (
    FORMATS,
    bits_as_int,
    bits_of,
    format_of,
    nearest,
    power_of_two,
    without_multiple,
)
from minijax.functions.scalar_functions import (
    not_above,
    not_below,
    plus_rest,
    polynomial,
)

# (exp(r) - 1 - r) / r**2 for |r| < log(2) / 2.
EXPM1 = {
    "float32": (0.49999997, 0.16666543, 0.04166719, 0.008366503, 0.0013883201),
    "float64": (
        0.5, 0.16666666666666677, 0.04166666666666652, 0.008333333333321712,
        0.0013888888888959052, 0.0001984126988590844, 2.4801587178904283e-05,
        2.7557244436499013e-06, 2.7557397406217597e-07, 2.510895595285698e-08,
        2.0876885825585752e-09,
    ),
}  # fmt: skip

# log 2, in two parts.
LOG_2 = {
    "float32": (0.69314575, 1.4286068e-06),
    "float64": (0.6931471805598903, 5.497923018708371e-14),
}

# Below, exp(x) - 1 is -1.
MINUS_ONE_TO = {"float32": -18.0, "float64": -38.0}


def part_of_expm1(k, x, part):
    """Write (exp(x) - 1) times a power of two, which may keep it finite."""
    name = x.dtype.name
    n, bits = nearest(k, x, LOG2_E)
    r = without_multiple(k, x, n, LOG_2[name])
    tail = plus_rest(k, r, r, EXPM1[name])
    scale = k.mul(power_of_two(k, k.sub(bits, 2), x.dtype), 4 * part)
    return k.fma(scale, tail, k.sub(scale, part))


def expm1(k, x):
    """Write exp(x) - 1."""
    low, high = MINUS_ONE_TO[x.dtype.name], ENDS[x.dtype.name][1]
    inside = not_above(k, not_below(k, x, low), high)
    y = k.mul(part_of_expm1(k, inside, 0.5), 2)
    return k.select(k.lt(k.abs(x), 2.0**-60), x, y)


def sinh(k, x):
    """Write the hyperbolic sine: (e + e / (e + 1)) / 2 for e = exp(|x|) - 1."""
    size = k.abs(x)
    e = part_of_expm1(k, not_above(k, size, ENDS[x.dtype.name][1] + 0.5), 0.25)
    y = k.mul(k.add(e, k.div(e, k.fma(e, 4, 1))), 2)
    return k.copysign(k.select(k.lt(size, 2.0**-30), size, y), x)


def cosh(k, x):
    """Write the hyperbolic cosine: (e + 1 / e) / 2 for e = exp(|x|)."""
    size = not_above(k, k.abs(x), ENDS[x.dtype.name][1] + 1)
    e = scaled_exp(k, size, None, 0.25)
    return k.mul(k.add(e, k.div(1 / 16, e)), 2)


# (2**r - 1) / r for |r| < 1/2.
EXP2 = {
    "float32": (
        0.6931472, 0.24022648, 0.055503324, 0.009618427, 0.0013398855, 0.000153564,
    ),
    "float64": (
        0.6931471805599453, 0.2402265069591013, 0.05550410866482011,
        0.009618129107594138, 0.001333355814676682, 0.0001540353045708023,
        1.5252733500672153e-05, 1.3215435301680805e-06, 1.017819645981982e-07,
        7.073779515601491e-09, 4.435232016185144e-10,
    ),
}  # fmt: skip

# Where 2**x is 0, and where it is infinite.
ENDS_OF_EXP2 = {"float32": (-151.0, 129.0), "float64": (-1076.0, 1025.0)}


def exp2_of_sum(k, high, low):
    """Write 2 to the sum of a number and a small one, None for 0."""
    dtype = high.dtype
    least, most = ENDS_OF_EXP2[dtype.name]
    high = not_above(k, not_below(k, high, least), most)
    n, bits = nearest(k, high, 1)
    r = k.sub(high, n)
    r = r if low is None else k.add(r, low)
    y = k.fma(r, polynomial(k, r, EXP2[dtype.name]), 1)
    count = k.sub(bits, bits_as_int(dtype, FORMATS[dtype].magic))
    half = k.shift_right(count, 1)
    y = k.mul(y, power_of_two(k, half, dtype))
    return k.mul(y, power_of_two(k, k.sub(count, half), dtype))


def exp2(k, x):
    """Write 2 to the x."""
    return exp2_of_sum(k, x, None)


def log1p(k, x):
    """Write the logarithm of 1 + x: what the sum loses is put back into f."""
    total = k.add(x, 1)
    lost = k.sub(x, k.sub(total, 1))
    f, n = parts_of(k, total, small=False)
    bits = bits_of(k, k.sub(format_of(x).magic + 1, n))
    shrunk = k.mul(power_of_two(k, bits, x.dtype), 0.5)  # 2**-n, also for the largest n
    f = k.fma(lost, shrunk, f)
    return k.copysign(at_ends(k, total, log_of_parts(k, f, n)), x)


def asinh(k, x):
    """Write the inverse of the hyperbolic sine."""
    size = k.abs(x)
    big = k.gt(size, 2.0**60)
    square = k.mul(size, size)
    rest = k.div(square, k.add(k.sqrt(k.add(square, 1)), 1))
    y = log1p(k, k.select(big, size, k.add(size, rest)))
    return k.copysign(with_log_2(k, big, y), x)


def acosh(k, x):
    """Write the inverse of the hyperbolic cosine."""
    big = k.gt(x, 2.0**60)
    t = k.sub(x, 1)
    root = k.sqrt(k.fma(t, t, k.add(t, t)))
    y = with_log_2(k, big, log1p(k, k.select(big, x, k.add(t, root))))
    return k.select(k.lt(x, 1), np.nan, y)


def with_log_2(k, condition, y):
    """Write y, or y + log(2) where a condition is true."""
    return k.add(y, k.select(condition, k.number(np.log(2), y), 0))


def atanh(k, x):
    """Write the inverse of the hyperbolic tangent."""
    size = k.abs(x)
    y = k.mul(log1p(k, k.div(k.add(size, size), k.sub(1, size))), 0.5)
    return k.copysign(y, x)
