"""Powers, roots and lengths."""

# Made from chapters/23_functions_rest.md by `make chapter`;
# edit the chapter, not this file.

import numpy as np

from minijax.functions.angles import chosen
from minijax.functions.hyperbolics import ENDS_OF_EXP2, exp2_of_sum
from minijax.functions.logarithms import parts_of
from minijax.functions.range_reduction import bits_of, format_of, nearest, power_of_two
from minijax.functions.scalar_functions import not_above, not_below, polynomial

# y**(-2/3) for y between the roots of 1/2 and 2.
CBRT = {
    "float32": (
        3.9934547, -9.515066, 14.611571, -13.786623, 7.8277965, -2.4606922, 0.32956108,
    ),
    "float64": (
        3.993454743075004, -9.51506597450358, 14.611571247716283, -13.786622596899027,
        7.827796592604097, -2.460692087804826, 0.329561092172837,
    ),
}  # fmt: skip


def cbrt(k, x):
    """Write the cube root, by a polynomial and one or two steps of Newton's."""
    size = k.abs(x)
    f, n = parts_of(k, size)
    third, bits = nearest(k, n, 1 / 3)
    rest = k.fma(third, -3, n)
    up, down = k.gt(rest, 0), k.lt(rest, 0)
    m = k.add(f, 1)
    w = polynomial(k, m, CBRT[x.dtype.name])
    m = k.mul(m, chosen(k, m, (up, down), (2.0, 0.5, 1.0)))
    w = k.mul(w, chosen(k, m, (up, down), (2 ** (-2 / 3), 2 ** (2 / 3), 1.0)))
    if x.dtype == np.float64:
        cube = k.mul(k.mul(k.mul(w, w), k.mul(w, m)), m)
        w = k.fma(k.sub(1, cube), k.mul(w, 1 / 3), w)
    root = k.mul(m, w)
    gap = k.fma(k.mul(root, root), k.neg(root), m)
    root = k.fma(gap, k.mul(w, 1 / 3), root)
    y = k.mul(root, power_of_two(k, bits, x.dtype))
    usual = k.apply("and", k.gt(size, 0), k.lt(size, np.inf))
    return k.copysign(k.select(usual, y, size), x)


def hypot(k, x, y):
    """Write the length of the hypotenuse, without overflow on the way."""
    x, y = k.abs(x), k.abs(y)
    longer = k.select(k.gt(x, y), x, y)
    ends = k.gt(longer, 2.0**60), k.lt(longer, 2.0**-60)
    if x.dtype == np.float64:
        ends = k.gt(longer, 2.0**500), k.lt(longer, 2.0**-500)
    far = 100 if x.dtype == np.float32 else 600
    scale = chosen(k, x, ends, (2.0**-far, 2.0 ** (far - 10), 1.0))
    back = chosen(k, x, ends, (2.0**far, 2.0 ** (10 - far), 1.0))
    x_scaled, y_scaled = k.mul(x, scale), k.mul(y, scale)
    square = k.fma(x_scaled, x_scaled, k.mul(y_scaled, y_scaled))
    length = k.mul(k.sqrt(square), back)
    infinite = k.apply("or", k.eq(x, np.inf), k.eq(y, np.inf))
    return k.select(infinite, np.inf, length)


# For log((1 + s) / (1 - s)) = 2/3 s (3 + z + z**2 p(z)), where z = s**2: p.
POW = {
    "float32": (0.6000023, 0.42820752, 0.35126632),
    "float64": (
        0.6000000000000338, 0.428571428551519, 0.33333333779480145, 0.27272676581809624,
        0.23080134715149417, 0.19885253906665218, 0.19794256413810982,
    ),
}  # fmt: skip

# 2 / (3 log 2) in two parts, of which the first has half of the digits.
LOG_2_UNIT = {
    "float32": (0.9616699, 0.00012677205),
    "float64": (0.9617966860532761, 7.872699542894897e-09),
}


def coarse(k, x):
    """Write x with the first half of its digits; products of such are exact."""
    form = format_of(x)
    mask = -(2 ** (form.digits // 2 + 1))
    return k.bitcast(k.apply("and", bits_of(k, x), mask), x.dtype)


def log2_in_two_parts(k, x):
    """Write the logarithm to base 2, as a coarse number and a small one; x > 0."""
    f, n = parts_of(k, x)
    d = k.add(f, 2)
    d_high = coarse(k, d)
    d_low = k.sub(f, k.sub(d_high, 2))
    s = k.div(f, d)
    s_high = coarse(k, s)
    left = k.sub(k.sub(f, k.mul(s_high, d_high)), k.mul(s_high, d_low))
    s_low = k.div(left, d)
    square = k.mul(s_high, s_high)
    z = k.mul(s, s)
    rest = k.mul(s_low, k.add(s_high, s))
    rest = k.fma(k.mul(z, z), polynomial(k, z, POW[x.dtype.name]), rest)
    t_high = coarse(k, k.add(k.add(square, 3), rest))
    t_low = k.sub(rest, k.sub(k.sub(t_high, 3), square))
    product = k.mul(s_high, t_high)
    rest = k.fma(s_low, t_high, k.mul(s, t_low))
    p_high = coarse(k, k.add(product, rest))
    p_low = k.sub(rest, k.sub(p_high, product))
    high, low = LOG_2_UNIT[x.dtype.name]
    first = k.mul(p_high, high)
    second = k.fma(p_high, low, k.mul(p_low, high + low))
    total = coarse(k, k.add(k.add(first, second), n))
    return total, k.sub(second, k.sub(k.sub(total, n), first))


def pow_of_sizes(k, x, y):
    """Write x to the y, for 0 < x < inf."""
    limit = 2.0**36 if x.dtype == np.float32 else 2.0**66
    y = not_above(k, not_below(k, y, -limit), limit)
    high, low = log2_in_two_parts(k, x)
    y_high = coarse(k, y)
    product = k.mul(y_high, high)
    rest = k.fma(k.sub(y, y_high), high, k.mul(y, low))
    total = k.add(product, rest)
    low = k.sub(rest, k.sub(total, product))
    finite = k.lt(k.abs(total), ENDS_OF_EXP2["float64"][1])
    return exp2_of_sum(k, total, k.select(finite, low, 0))


def power(k, x, y):
    """Write x to the y, with the conventions of C: pow(1, nan) = pow(nan, 0) = 1."""
    size = k.abs(x)
    whole = k.eq(k.rint(y), y)
    half = k.mul(y, 0.5)
    odd = k.apply("and", whole, k.ne(k.rint(half), half))
    infinite = k.eq(size, np.inf)
    end = k.apply("or", infinite, k.eq(size, 0))
    at_end = k.select(k.xor(infinite, k.lt(y, 0)), k.number(np.inf, x), 0)
    result = k.select(end, at_end, pow_of_sizes(k, size, y))
    result = k.select(odd, k.copysign(result, x), result)
    defined = k.apply("or", k.apply("or", whole, end), k.ge(x, 0))
    known = k.apply("and", k.eq(x, x), k.eq(y, y))
    result = k.select(k.apply("and", defined, known), result, np.nan)
    one = k.apply("or", k.eq(y, 0), k.eq(x, 1))
    return k.select(one, 1, result)
