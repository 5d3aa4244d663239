"""Logarithms, hyperbolic and trigonometric functions, powers, error functions.

It works with numbers of any kind that has arithmetic. To find digits for 64-bit
floats, these have to have more than 64 bits, as those of mpmath.

`scalar_function` returns one by the name of its scalar operation; `expand_functions`
puts them into a kernel.

Reference: C. Lawson, Contributions to the theory of linear least maximum
approximation (1961); H. Loeb, On rational fraction approximations at discrete points
(1957).
"""

# Made from chapters/23_functions_rest.md by `make chapter`;
# edit the chapter, not this file.

import functools
import math

import numpy as np

from minijax.arrays.numerics import polyval_horner
from minijax.elementary_functions.exponentials import (
    EXP_RANGE,
    FLOAT_FORMATS,
    LOG2_E,
    cody_waite,
    emit_exp,
    emit_exp2_int,
    emit_float_bits,
    emit_nearest_multiple,
    emit_scaled_exp,
    emit_tanh,
    float_bits,
    float_format,
)
from minijax.elementary_functions.scalar_functions import (
    build_function,
    emit_estrin_step,
    emit_lower_clamp,
    emit_polynomial,
    emit_polynomial_tail,
    emit_upper_clamp,
    expand_calls,
)
from minijax.kernels.ir import scalar_ops

# Polynomials and their quotients that come as close to a function as can be.


def chebyshev_points(low, high, count):
    """Return points between two numbers, closer to each other near the ends."""
    shares = [(1 - math.cos(math.pi * (k + 0.5) / count)) / 2 for k in range(count)]
    return [low + (high - low) * share for share in shares]


def solve_linear_system(matrix, right):
    """Return the solution of a system of linear equations, by elimination."""
    rows = [[*row, value] for row, value in zip(matrix, right)]
    for place in range(len(rows)):
        pivot = max(range(place, len(rows)), key=lambda k: abs(rows[k][place]))
        rows[place], rows[pivot] = rows[pivot], rows[place]
        head = rows[place] = [value / rows[place][place] for value in rows[place]]
        for k, row in enumerate(rows):
            if k != place:
                rest = [a - row[place] * b for a, b in zip(row[place:], head[place:])]
                rows[k] = row[:place] + rest
    return [row[-1] for row in rows]


def least_squares(columns, right, weights):
    """Return the factors of columns whose sum differs least from the right side."""
    weighted = [[w * x for w, x in zip(weights, column)] for column in columns]

    def product(i, vector):
        return sum(x * y for x, y in zip(weighted[i], vector))

    every = range(len(columns))
    below = [[product(i, column) for column in columns[: i + 1]] for i in every]
    matrix = [[below[max(i, j)][min(i, j)] for j in every] for i in every]
    return solve_linear_system(matrix, [product(i, right) for i in every])


def minimax_fit(f, ends, top, bottom=0, weight=lambda x: 1, rounds=12):
    """Return polynomials whose quotient has the least largest error.

    Args:
      f: the function, of a number.
      ends: of the interval, two numbers.
      top, bottom: the degrees of the polynomials above and below.
      weight: from a number to the factor of an error there.
      rounds: how often the weights of points are improved.

    Returns:
      The coefficients above, those below, of which the first is 1, and the error.
    """
    low, high = ends
    points = chebyshev_points(low, high, 5 * (top + bottom + 2))
    values, scales = [f(x) for x in points], [weight(x) for x in points]
    columns = [[x**n for x in points] for n in range(top + 1)]
    for n in range(1, bottom + 1):
        columns.append([-y * x**n for x, y in zip(points, values)])
    shares, below = [1] * len(points), [1]
    for turn in range(rounds):
        scaled = [w / polyval_horner(below, x) for w, x in zip(scales, points)]
        weights = [share * w * w for share, w in zip(shares, scaled)]
        found = least_squares(columns, values, weights)
        above, below = found[: top + 1], [1, *found[top + 1 :]]
        quotients = [
            polyval_horner(above, x) / polyval_horner(below, x) for x in points
        ]
        errors = [abs(w * (a - b)) for w, a, b in zip(scales, quotients, values)]
        worst = max(errors)
        if turn > 2 or not bottom:  # a quotient has to settle first
            shares = [share * error / worst for share, error in zip(shares, errors)]
    return above, below, worst


# The natural logarithm, and the parts that other logarithms are made of.

# (log(1 + f) - f) / f**2, and (log((1 + s) / (1 - s)) - 2 s) / s**3 as a function of
# s**2, where s = f / (2 + f), for 1 + f between the roots of 1/2 and 2.
LOG = {
    "float32": (
        -0.49999988, 0.33333325, -0.25001583, 0.20001933, -0.16609085, 0.14182624,
        -0.13243777, 0.1289963, -0.07613964,
    ),
    "float64": (
        0.6666666666666734, 0.39999999999415964, 0.28571428742114297,
        0.22222198599911475, 0.18183562999459507, 0.15314083076562207,
        0.147956368345856,
    ),
}  # fmt: skip


def emit_frexp(k, x, small=True):
    """Write f and n, for which x = (1 + f) 2**n, and 1 + f is near 1; x > 0.

    Args:
      small: whether x may be so small that not all of its digits are there.
    """
    form, dtype = float_format(x), x.dtype
    one, root = (float_bits(dtype, value) for value in (1.0, 0.5**0.5))
    away = 2.0**form.mantissa_bits + form.bias  # the bits of 2.0**digits end with ones
    if small:
        few, more = k.lt(x, form.tiny), form.mantissa_bits + 2
        x = k.select(few, k.mul(x, 2.0**more), x)
        away = k.select(few, k.number(away + more, x), away)
    moved = k.add(emit_float_bits(k, x), one - root)
    count = k.shift_right(moved, form.mantissa_bits)
    count = k.apply("or", count, float_bits(dtype, 2.0**form.mantissa_bits))
    fraction = k.apply("and", moved, 2**form.mantissa_bits - 1)
    f = k.sub(k.bitcast(k.add(fraction, root), dtype), 1)
    return f, k.sub(k.bitcast(count, dtype), away)


def emit_log_of_frexp(k, f, n):
    """Write the logarithm of (1 + f) 2**n."""
    if f.dtype == np.float32:
        y = emit_polynomial_tail(k, f, f, LOG["float32"])
    else:
        s = k.div(f, k.add(f, 2))
        z = k.mul(s, s)
        rest = k.fma(z, emit_polynomial(k, z, LOG["float64"]), k.neg(f))
        y = k.fma(s, rest, f)
    return k.fma(n, np.log(2), y)


def emit_log_edge_cases(k, x, y):
    """Write a logarithm of any x, given what it is for positive numbers."""
    y = k.select(k.lt(x, np.inf), y, x)
    low = k.select(k.eq(x, 0), k.number(-np.inf, x), np.nan)
    return k.select(k.gt(x, 0), y, low)


def emit_log(k, x):
    """Write the natural logarithm; numbers that are no usual ones are rare."""
    form = float_format(x)
    tiny, most = (float_bits(x.dtype, value) for value in (form.tiny, np.inf))
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    place = k.sub(k.bitcast(x, unsigned), tiny)

    def write():
        return emit_log_edge_cases(k, x, emit_log_of_frexp(k, *emit_frexp(k, x)))

    usual = emit_log_of_frexp(k, *emit_frexp(k, x, small=False))
    return k.rarely(k.ge(place, most - tiny), write, usual)


# Other exponentials: of base 2, less 1, the hyperbolic functions, their inverses.

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
    n, bits = emit_nearest_multiple(k, x, LOG2_E)
    r = cody_waite(k, x, n, LOG_2[name])
    tail = emit_polynomial_tail(k, r, r, EXPM1[name])
    scale = k.mul(emit_exp2_int(k, k.sub(bits, 2), x.dtype), 4 * part)
    return k.fma(scale, tail, k.sub(scale, part))


def emit_expm1(k, x):
    """Write exp(x) - 1."""
    low, high = MINUS_ONE_TO[x.dtype.name], EXP_RANGE[x.dtype.name][1]
    inside = emit_upper_clamp(k, emit_lower_clamp(k, x, low), high)
    y = k.mul(part_of_expm1(k, inside, 0.5), 2)
    return k.select(k.lt(k.abs(x), 2.0**-60), x, y)


def emit_sinh(k, x):
    """Write the hyperbolic sine: (e + e / (e + 1)) / 2 for e = exp(|x|) - 1."""
    size = k.abs(x)
    e = part_of_expm1(
        k, emit_upper_clamp(k, size, EXP_RANGE[x.dtype.name][1] + 0.5), 0.25
    )
    y = k.mul(k.add(e, k.div(e, k.fma(e, 4, 1))), 2)
    return k.copysign(k.select(k.lt(size, 2.0**-30), size, y), x)


def emit_cosh(k, x):
    """Write the hyperbolic cosine: (e + 1 / e) / 2 for e = exp(|x|)."""
    size = emit_upper_clamp(k, k.abs(x), EXP_RANGE[x.dtype.name][1] + 1)
    e = emit_scaled_exp(k, size, None, 0.25)
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
EXP2_RANGE = {"float32": (-151.0, 129.0), "float64": (-1076.0, 1025.0)}


def emit_exp2_of_sum(k, high, low):
    """Write 2 to the sum of a number and a small one, None for 0."""
    dtype = high.dtype
    least, most = EXP2_RANGE[dtype.name]
    high = emit_upper_clamp(k, emit_lower_clamp(k, high, least), most)
    n, bits = emit_nearest_multiple(k, high, 1)
    r = k.sub(high, n)
    r = r if low is None else k.add(r, low)
    y = k.fma(r, emit_polynomial(k, r, EXP2[dtype.name]), 1)
    count = k.sub(bits, float_bits(dtype, FLOAT_FORMATS[dtype].round_magic))
    half = k.shift_right(count, 1)
    y = k.mul(y, emit_exp2_int(k, half, dtype))
    return k.mul(y, emit_exp2_int(k, k.sub(count, half), dtype))


def emit_exp2(k, x):
    """Write 2 to the x."""
    return emit_exp2_of_sum(k, x, None)


def emit_log1p(k, x):
    """Write the logarithm of 1 + x: what the sum loses is put back into f."""
    total = k.add(x, 1)
    lost = k.sub(x, k.sub(total, 1))
    f, n = emit_frexp(k, total, small=False)
    bits = emit_float_bits(k, k.sub(float_format(x).round_magic + 1, n))
    shrunk = k.mul(
        emit_exp2_int(k, bits, x.dtype), 0.5
    )  # 2**-n, also for the largest n
    f = k.fma(lost, shrunk, f)
    return k.copysign(emit_log_edge_cases(k, total, emit_log_of_frexp(k, f, n)), x)


def emit_asinh(k, x):
    """Write the inverse of the hyperbolic sine."""
    size = k.abs(x)
    big = k.gt(size, 2.0**60)
    square = k.mul(size, size)
    rest = k.div(square, k.add(k.sqrt(k.add(square, 1)), 1))
    y = emit_log1p(k, k.select(big, size, k.add(size, rest)))
    return k.copysign(with_log_2(k, big, y), x)


def emit_acosh(k, x):
    """Write the inverse of the hyperbolic cosine."""
    big = k.gt(x, 2.0**60)
    t = k.sub(x, 1)
    root = k.sqrt(k.fma(t, t, k.add(t, t)))
    y = with_log_2(k, big, emit_log1p(k, k.select(big, x, k.add(t, root))))
    return k.select(k.lt(x, 1), np.nan, y)


def with_log_2(k, condition, y):
    """Write y, or y + log(2) where a condition is true."""
    return k.add(y, k.select(condition, k.number(np.log(2), y), 0))


def emit_atanh(k, x):
    """Write the inverse of the hyperbolic tangent."""
    size = k.abs(x)
    y = k.mul(emit_log1p(k, k.div(k.add(size, size), k.sub(1, size))), 0.5)
    return k.copysign(y, x)


# Sine, cosine and tangent, with the range reduction of large angles; inverses.

TWO_OVER_PI = 0.6366197723675814

# pi / 2, in parts; a whole number below the limit times a part is exact, but the last.
HALF_PI = {
    "float32": (1.5703125, 0.0004837513, 7.5495336e-08, 2.563344e-12),
    "float64": (1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21),
}
CODY_WAITE_LIMIT = {"float32": 12800.0, "float64": 1.6e6}

# (sin(r) - r) / r**3 and (cos(r) - 1) / r**2, as functions of r**2, for |r| < pi/4.
SIN = {
    "float32": (-0.16666667, 0.008333329, -0.00019839336, 2.7183223e-06),
    "float64": (
        -0.16666666666666666, 0.008333333333333323, -0.00019841269841255156,
        2.755731921423602e-06, -2.5052104923460656e-08, 1.605836814297264e-10,
        -7.578773259138022e-13,
    ),
}  # fmt: skip
COS = {
    "float32": (-0.5, 0.041666623, -0.0013886765, 2.4390569e-05),
    "float64": (
        -0.5, 0.04166666666666649, -0.0013888888888863944, 2.4801587285026117e-05,
        -2.755731334312297e-07, 2.0875609086345087e-09, -1.135454059534279e-11,
    ),
}  # fmt: skip


def sin_of(k, r, bits):
    """Write the sine of r plus as many quarter turns as some bits end with."""
    z, name = k.mul(r, r), r.dtype.name
    odd = k.ne(k.apply("and", bits, 1), 0)
    first = k.select(odd, 1, r)
    pairs = zip(COS[name], SIN[name])
    coefficients = [k.select(odd, k.number(c, r), s) for c, s in pairs]
    size = k.fma(k.mul(first, z), emit_polynomial(k, z, coefficients), first)
    turned = k.shift_left(k.apply("and", bits, 2), r.dtype.itemsize * 8 - 2)
    return k.bitcast(k.xor(emit_float_bits(k, size), turned), r.dtype)


def sign_bit(k, x):
    """Write the sign of a float as the first bit of an integer."""
    least = -(2 ** (x.dtype.itemsize * 8 - 1))
    return k.apply("and", emit_float_bits(k, x), least)


def near(k, x):
    """Write what is left of x without quarter turns, and bits that end with these."""
    n, bits = emit_nearest_multiple(k, x, TWO_OVER_PI)
    return cody_waite(k, x, n, HALF_PI[x.dtype.name]), bits


UINT64 = np.dtype(np.uint64)
FLOAT64 = np.dtype(np.float64)

# Nothing, and then the bits of 2 / pi behind the point, 64 by 64.
TWO_OVER_PI_WORDS = (
    0, 0xA2F9836E4E441529, 0xFC2757D1F534DDC0, 0xDB6295993C439041,
    0xFE5163ABDEBBC561, 0xB7246E3A424DD2E0, 0x06492EEA09D1921C, 0xFE1DEB1CB129A73E,
    0xE88235F52EBB4484, 0xE99C7026B45F7E41, 0x3991D639835339F4, 0x9C845F8BBDF9283B,
    0x1FF897FFDE05980F, 0xEF2F118B5A0A6D1F, 0x6D367ECF27CB09B7, 0x4F463F669E5FEA2D,
    0x7527BAC7EBE5F17B, 0x3D0739F78A5292EA, 0x6BFB5FB11F8D5D08, 0x56033046FC7B6BAB,
)  # fmt: skip

# pi / 2 in two parts.
RIGHT_ANGLE = {
    "float32": (1.5707963, 7.54979e-08),
    "float64": (1.5707963267948966, 6.123233995736766e-17),
}


def window(k, start, count):
    """Write three words of the bits of `TWO_OVER_PI_WORDS`, from a certain one on.

    Args:
      start: the node of the number of the first bit.
      count: how many words there are to choose from.
    """
    words = [k.constant(word, UINT64) for word in TWO_OVER_PI_WORDS[:count]]
    place = k.shift_right(start, 6)
    for step in [step for step in (16, 8, 4, 2, 1) if step + 3 < count]:
        moved = k.ne(k.apply("and", place, step), 0)
        late = [k.select(moved, *pair) for pair in zip(words[step:], words)]
        words = [*late, *words[len(late) :]][: step + 3]
    shift = k.apply("and", start, 63)
    rest = k.xor(shift, 63)
    tops = [k.shift_left(word, shift) for word in words[:3]]
    ends = [k.shift_right(k.shift_right(word, 1), rest) for word in words[1:]]
    return [k.apply("or", top, end) for top, end in zip(tops, ends)]


# pi / 2 in parts of 22 bits, but the last: for whole numbers below 2**31.
HALF_PI_FOR_FLOAT32 = (1.570796012878418, 3.139164164167596e-07, 6.223372171896613e-14)

# The largest float32 is below 2**128; the window of its bits is in the first words.
WORDS_FOR = {"float32": 6, "float64": len(TWO_OVER_PI_WORDS)}


def upper_half(k, x, y):
    """Write the first 64 bits of the 128 of a product."""
    (a, b), (c, d) = ((k.shift_right(n, 32), low_half(k, n)) for n in (x, y))
    first = k.add(k.mul(a, d), k.shift_right(k.mul(b, d), 32))
    second = k.add(k.mul(b, c), low_half(k, first))
    carried = k.add(k.shift_right(first, 32), k.shift_right(second, 32))
    return k.add(k.mul(a, c), carried)


def low_half(k, x):
    """Write the last 32 of 64 bits."""
    return k.apply("and", x, 2**32 - 1)


def payne_hanek(k, x, count):
    """Write what is left of x without quarter turns, and bits that end with these.

    Args:
      x: a node, float64, for a number above 2**20.
      count: how many words of 2 / pi such numbers need.
    """
    bits = k.bitcast(x, UINT64)
    digits = k.apply("or", k.apply("and", bits, 2**52 - 1), 2**52)
    start = k.sub(k.shift_right(bits, 52), 1013)
    high, middle, low = window(k, start, count)
    second = k.mul(middle, digits)
    tail = k.add(second, upper_half(k, low, digits))
    carry = k.select(k.lt(tail, second), k.number(1, tail), 0)
    head = k.add(k.mul(high, digits), k.add(upper_half(k, middle, digits), carry))
    turns = k.shift_right(k.add(head, 2**61), 62)
    part = k.bitcast(k.sub(head, k.shift_left(turns, 62)), np.dtype(np.int64))
    return k.add(emit_quarter_turn_angle(k, part, tail), k.sub(x, x)), turns


def emit_quarter_turn_angle(k, part, tail):
    """Write the angle of (part + tail / 2**64) / 2**62 quarter turns."""
    first = k.convert(part, FLOAT64)
    rest = k.convert(k.sub(part, k.convert(first, part.dtype)), FLOAT64)
    rest = k.fma(k.convert(tail, FLOAT64), 2.0**-64, rest)
    total = k.add(first, rest)
    lost = k.sub(rest, k.sub(total, first))
    high, low = (half * 2.0**-62 for half in RIGHT_ANGLE["float64"])
    return k.fma(total, high, k.fma(total, low, k.mul(lost, high)))


def by_turns(k, x, write):
    """Write what comes of an angle once its quarter turns are known.

    Args:
      x: a node, not negative.
      write: a function that writes it, of the rest of x and of bits that end with the
        number of quarter turns.
    """
    name, integer = x.dtype.name, float_format(x).integer

    def huge():
        r, turns = payne_hanek(k, k.convert(x, FLOAT64), WORDS_FOR[name])
        return write(k.convert(r, x.dtype), k.convert(turns, integer))

    def large():
        wide = k.convert(x, FLOAT64)
        n, turns = emit_nearest_multiple(k, wide, TWO_OVER_PI)
        r = cody_waite(k, wide, n, HALF_PI_FOR_FLOAT32)
        usual = write(k.convert(r, x.dtype), k.convert(turns, integer))
        return k.rarely(k.gt(x, 2.0**31), huge, usual)

    slow = large if name == "float32" else huge
    return k.rarely(k.gt(x, CODY_WAITE_LIMIT[name]), slow, write(*near(k, x)))


def emit_sin(k, x):
    """Write the sine."""
    sign = sign_bit(k, x)

    def write(r, bits):
        size = sin_of(k, r, bits)
        return k.bitcast(k.xor(emit_float_bits(k, size), sign), x.dtype)

    return by_turns(k, k.abs(x), write)


def emit_cos(k, x):
    """Write the cosine: the sine, one quarter turn ahead."""
    return by_turns(k, k.abs(x), lambda r, bits: sin_of(k, r, k.add(bits, 1)))


# tan(r) / r as a quotient of polynomials in r**2, for |r| < pi/4; both begin with 1.
TAN_TOP = {
    "float32": (-0.11136435, 0.0010753557),
    "float64": (-0.13338387113181452, 0.003424932858623396, -1.7862462437901668e-05),
}  # fmt: skip
TAN_BOTTOM = {
    "float32": (-0.44469768, 0.01597456),
    "float64": (
        -0.46671720446514786, 0.025664001013672756, -0.00031182283989735486,
        4.982305884041271e-07,
    ),
}  # fmt: skip


def emit_tan(k, x):
    """Write the tangent."""
    sign, name = sign_bit(k, x), x.dtype.name

    def write(r, bits):
        z = k.mul(r, r)
        top = k.fma(k.mul(r, z), emit_polynomial(k, z, TAN_TOP[name]), r)
        bottom = k.fma(z, emit_polynomial(k, z, TAN_BOTTOM[name]), 1)
        odd = k.apply("and", bits, 1)
        turned = k.ne(odd, 0)
        size = k.div(k.select(turned, bottom, top), k.select(turned, top, bottom))
        signs = k.xor(k.shift_left(odd, x.dtype.itemsize * 8 - 1), sign)
        return k.bitcast(k.xor(emit_float_bits(k, size), signs), x.dtype)

    return by_turns(k, k.abs(x), write)


# (atan(t) - t) / t**3 for t up to tan(pi/8), and (asin(s) - s) / s**3 up to 1/2, as
# functions of the square.
ATAN = {
    "float32": (-0.33332956, 0.1997793, -0.13879927, 0.08060601),
    "float64": (
        -0.3333333333333022, 0.19999999999104326, -0.14285714196509164,
        0.11111106703080782, -0.09090783521096604, 0.07690083283914693,
        -0.06641245859527871, 0.05693163688555232, -0.043608242536442444,
        0.021280148641545066,
    ),
}  # fmt: skip
ASIN = {
    "float32": (0.16666754, 0.07495261, 0.04547482, 0.024158219, 0.042201374),
    "float64": (
        0.16666666666665395, 0.07500000000340755, 0.04464285682526026,
        0.03038195926137934, 0.022371755134538467, 0.017359747599798803,
        0.01388482402181081, 0.012171836522418517, 0.006516946193546194,
        0.01955759611409706, -0.01626900229127527, 0.03194211131081409,
    ),
}  # fmt: skip


def part_of_right_angle(k, like, share, *conditions):
    """Write pi / 2 in two parts, times the share of the first condition that holds."""
    return [
        emit_piecewise(k, like, conditions, [part * s for s in share])
        for part in RIGHT_ANGLE[like.dtype.name]
    ]


def emit_piecewise(k, like, conditions, values):
    """Write the value of the first condition that is true, and else the last value."""
    result = k.number(values[-1], like)
    for condition, value in zip(reversed(conditions), reversed(values[:-1])):
        result = k.select(condition, value, result)
    return result


def angle_of(k, y, x):
    """Write the angle of (x, y), neither of them negative, at most pi/2."""
    steep = k.gt(y, k.mul(x, 1 + 2**0.5))
    middle = k.gt(y, k.mul(x, 2**0.5 - 1))
    top = k.select(steep, k.neg(x), k.select(middle, k.sub(y, x), y))
    bottom = k.select(steep, y, k.select(middle, k.add(y, x), x))
    t = k.div(top, k.select(k.eq(bottom, 0), 1, bottom))
    z = k.mul(t, t)
    rest = k.mul(k.mul(t, z), emit_polynomial(k, z, ATAN[x.dtype.name]))
    high, low = part_of_right_angle(k, x, (1.0, 0.5, 0.0), steep, middle)
    return k.add(high, k.add(t, k.add(rest, low)))


def emit_atan(k, x):
    """Write the inverse of the tangent."""
    size = emit_upper_clamp(k, k.abs(x), 2.0**100)
    return k.copysign(angle_of(k, size, k.number(1, x)), x)


def emit_atan2(k, y, x):
    """Write the angle of the point (x, y), between -pi and pi."""
    height, width = k.abs(y), k.abs(x)
    both = k.apply("and", k.eq(height, np.inf), k.eq(width, np.inf))
    large = k.gt(k.select(k.gt(height, width), height, width), 2.0**100)
    scale = k.select(large, k.number(0.25, x), 1)
    height, width = (
        k.select(both, 1, k.mul(length, scale)) for length in (height, width)
    )
    angle = angle_of(k, height, width)
    high, low = (2 * part for part in RIGHT_ANGLE[x.dtype.name])
    left = k.lt(k.copysign(1, x), 0)
    back = k.add(k.sub(high, angle), low)
    return k.copysign(k.select(left, back, angle), y)


def asin_series(k, s, z):
    """Write asin(s), where z is the square of s, below 1/4."""
    return k.fma(k.mul(s, z), emit_polynomial(k, z, ASIN[s.dtype.name]), s)


def reduced_sine(k, x):
    """Write whether |x| > 1/2, and s and z for the series of asin or of acos."""
    size = k.abs(x)
    large = k.gt(size, 0.5)
    z = k.select(large, k.fma(size, -0.5, 0.5), k.mul(x, x))
    return large, k.select(large, k.sqrt(z), size), z


def emit_asin(k, x):
    """Write the inverse of the sine; above 1/2 by asin(x) = pi/2 - 2 asin(s)."""
    large, s, z = reduced_sine(k, x)
    angle = asin_series(k, s, z)
    high, low = RIGHT_ANGLE[x.dtype.name]
    rest = k.sub(high, k.sub(k.add(angle, angle), low))
    return k.copysign(k.select(large, rest, angle), x)


def emit_acos(k, x):
    """Write the inverse of the cosine."""
    large, s, z = reduced_sine(k, x)
    angle = asin_series(k, s, z)
    negative = k.lt(x, 0)
    double = k.add(angle, angle)
    high, low = RIGHT_ANGLE[x.dtype.name]
    far = k.add(k.sub(2 * high, double), 2 * low)
    near = k.sub(high, k.sub(k.copysign(angle, x), low))
    return k.select(large, k.select(negative, far, double), near)


# Powers, roots and lengths.

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


def emit_cbrt(k, x):
    """Write the cube root, by a polynomial and one or two steps of Newton's."""
    size = k.abs(x)
    f, n = emit_frexp(k, size)
    third, bits = emit_nearest_multiple(k, n, 1 / 3)
    rest = k.fma(third, -3, n)
    up, down = k.gt(rest, 0), k.lt(rest, 0)
    m = k.add(f, 1)
    w = emit_polynomial(k, m, CBRT[x.dtype.name])
    m = k.mul(m, emit_piecewise(k, m, (up, down), (2.0, 0.5, 1.0)))
    w = k.mul(w, emit_piecewise(k, m, (up, down), (2 ** (-2 / 3), 2 ** (2 / 3), 1.0)))
    if x.dtype == np.float64:
        cube = k.mul(k.mul(k.mul(w, w), k.mul(w, m)), m)
        w = k.fma(k.sub(1, cube), k.mul(w, 1 / 3), w)
    root = k.mul(m, w)
    gap = k.fma(k.mul(root, root), k.neg(root), m)
    root = k.fma(gap, k.mul(w, 1 / 3), root)
    y = k.mul(root, emit_exp2_int(k, bits, x.dtype))
    usual = k.apply("and", k.gt(size, 0), k.lt(size, np.inf))
    return k.copysign(k.select(usual, y, size), x)


def emit_hypot(k, x, y):
    """Write the length of the hypotenuse, without overflow on the way."""
    x, y = k.abs(x), k.abs(y)
    longer = k.select(k.gt(x, y), x, y)
    ends = k.gt(longer, 2.0**60), k.lt(longer, 2.0**-60)
    if x.dtype == np.float64:
        ends = k.gt(longer, 2.0**500), k.lt(longer, 2.0**-500)
    far = 100 if x.dtype == np.float32 else 600
    scale = emit_piecewise(k, x, ends, (2.0**-far, 2.0 ** (far - 10), 1.0))
    back = emit_piecewise(k, x, ends, (2.0**far, 2.0 ** (10 - far), 1.0))
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


def emit_high_half(k, x):
    """Write x with the first half of its digits; products of such are exact."""
    form = float_format(x)
    mask = -(2 ** (form.mantissa_bits // 2 + 1))
    return k.bitcast(k.apply("and", emit_float_bits(k, x), mask), x.dtype)


def log2_in_two_parts(k, x):
    """Write the logarithm to base 2, as a coarse number and a small one; x > 0."""
    f, n = emit_frexp(k, x)
    d = k.add(f, 2)
    d_high = emit_high_half(k, d)
    d_low = k.sub(f, k.sub(d_high, 2))
    s = k.div(f, d)
    s_high = emit_high_half(k, s)
    left = k.sub(k.sub(f, k.mul(s_high, d_high)), k.mul(s_high, d_low))
    s_low = k.div(left, d)
    square = k.mul(s_high, s_high)
    z = k.mul(s, s)
    rest = k.mul(s_low, k.add(s_high, s))
    rest = k.fma(k.mul(z, z), emit_polynomial(k, z, POW[x.dtype.name]), rest)
    t_high = emit_high_half(k, k.add(k.add(square, 3), rest))
    t_low = k.sub(rest, k.sub(k.sub(t_high, 3), square))
    product = k.mul(s_high, t_high)
    rest = k.fma(s_low, t_high, k.mul(s, t_low))
    p_high = emit_high_half(k, k.add(product, rest))
    p_low = k.sub(rest, k.sub(p_high, product))
    high, low = LOG_2_UNIT[x.dtype.name]
    first = k.mul(p_high, high)
    second = k.fma(p_high, low, k.mul(p_low, high + low))
    total = emit_high_half(k, k.add(k.add(first, second), n))
    return total, k.sub(second, k.sub(k.sub(total, n), first))


def pow_of_sizes(k, x, y):
    """Write x to the y, for 0 < x < inf."""
    limit = 2.0**36 if x.dtype == np.float32 else 2.0**66
    y = emit_upper_clamp(k, emit_lower_clamp(k, y, -limit), limit)
    high, low = log2_in_two_parts(k, x)
    y_high = emit_high_half(k, y)
    product = k.mul(y_high, high)
    rest = k.fma(k.sub(y, y_high), high, k.mul(y, low))
    total = k.add(product, rest)
    low = k.sub(rest, k.sub(total, product))
    finite = k.lt(k.abs(total), EXP2_RANGE["float64"][1])
    return emit_exp2_of_sum(k, total, k.select(finite, low, 0))


def emit_pow(k, x, y):
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


# The error function and its complement.

# erf(x) / x - 1 as a function of x**2, for x below 1.
ERF = {
    "float32": (
        0.12837912, -0.37612325, 0.112801746, -0.026711179, 0.0049174177, -0.0005630953,
    ),
    "float64": (
        0.12837916709551256, -0.3761263890318352, 0.11283791670944184,
        -0.026866170643111177, 0.005223977606116217, -0.0008548325929211555,
        0.00012055293573963432, -1.4924712248038285e-05, 1.6447130932724605e-06,
        -1.6206309058284763e-07, 1.371096081558774e-08, -7.77943321109427e-10,
    ),
}  # fmt: skip

# 8 (1 - (1 - erf(x))**(1/8)) / x - 1, up to 4, or 6.
ROOT_OF_ERFC = {
    "float32": (
        0.12837917, 0.55704296, 0.016712362, -0.052714173, -0.0014919178, 0.004102675,
        -0.00071097485, 3.840276e-05,
    ),
    "float64": (
        0.12837916709551256, 0.5570423008216411, 0.016720440616506838,
        -0.05275390561964069, -0.0013885001802980087, 0.003933323176379707,
        -0.0005191859325640758, -0.00011506382632586517, 8.271697025901118e-05,
        -2.5322970148734106e-05, 2.5534207253984396e-07, 3.684684714645559e-06,
        -1.7110628440887529e-06, 2.2210632098784827e-07, 1.7388698144540323e-07,
        -1.3888030716499255e-07, 5.814700788132566e-08, -1.717583217054571e-08,
        3.824466201725497e-09, -6.511744905339716e-10, 8.395882250924347e-11,
        -7.957411759664115e-12, 5.235890013506278e-13, -2.137350990226366e-14,
        4.0762469768595843e-16,
    ),
}  # fmt: skip
ERF_IS_ONE = {"float32": 4.0, "float64": 6.0}


def erf_near_zero(k, x):
    """Write the error function of a number between -1 and 1."""
    return k.fma(x, emit_polynomial(k, k.mul(x, x), ERF[x.dtype.name]), x)


def emit_erf(k, x):
    """Write the error function: 1 less the eighth power of a root."""
    name = x.dtype.name
    size = emit_upper_clamp(k, k.abs(x), ERF_IS_ONE[name])
    d = k.fma(size, emit_estrin_step(k, size, ROOT_OF_ERFC[name]), size)
    y = k.mul(d, k.fma(d, -1 / 64, 1 / 4))
    for _ in range(2):
        y = k.fma(k.neg(y), y, k.add(y, y))
    return k.copysign(y, x)


# (1 + 2 x) exp(x**2) erfc(x) as a function of (x - 4) / (x + 4).
ERFC = {
    "float32": (
        1.2329952, -0.13962102, 0.01537733, 0.068091415, -0.10099295, 0.09383993,
        -0.066593215, 0.03638713, -0.016061269, 0.0068609132, 0.00083331834,
    ),
    "float64": (
        1.2329951186255526, -0.13962111684056286, 0.015379652102620036,
        0.06809705425473449, -0.10103906603631746, 0.0937328349968869,
        -0.06633036581218242, 0.03716751556105356, -0.016197734052984566,
        0.005031969768401542, -0.0007577733735248911, -0.00019925557328505944,
        0.0001506223412353637, -2.44029536558244e-05, -1.12249529005375e-05,
        5.717446721822582e-06, 3.0147024463736333e-07, -8.346222361520174e-07,
        6.274175801006323e-08, 1.1499167041127664e-07, -7.821458945466092e-09,
        -1.3574477784407819e-08, -1.7767906879690193e-09,
    ),
}  # fmt: skip
ERFC_IS_ZERO = {"float32": 10.5, "float64": 27.5}


def emit_erfc(k, x):
    """Write 1 - erf(x), exactly also where it is small."""
    name = x.dtype.name
    size = emit_upper_clamp(k, k.abs(x), ERFC_IS_ZERO[name])
    t = k.div(k.sub(size, 4), k.add(size, 4))
    share = k.div(emit_polynomial(k, t, ERFC[name]), k.fma(size, 2, 1))
    high = emit_high_half(k, size)
    low = k.mul(k.sub(high, size), k.add(high, size))
    y = emit_scaled_exp(k, k.neg(k.mul(high, high)), low, share)
    y = k.select(k.lt(x, 0), k.sub(2, y), y)
    return k.select(k.lt(size, 0.5), k.sub(1, erf_near_zero(k, x)), y)


# Elementary functions of floats, made of scalar operations.

function_bodies = {
    "exp": emit_exp, "exp2": emit_exp2, "expm1": emit_expm1, "sinh": emit_sinh,
    "cosh": emit_cosh, "tanh": emit_tanh, "log": emit_log, "log1p": emit_log1p,
    "asinh": emit_asinh, "acosh": emit_acosh, "atanh": emit_atanh,
    "sin": emit_sin, "cos": emit_cos, "tan": emit_tan,
    "asin": emit_asin, "acos": emit_acos, "atan": emit_atan, "atan2": emit_atan2,
    "pow": emit_pow, "cbrt": emit_cbrt, "hypot": emit_hypot,
    "erf": emit_erf, "erfc": emit_erfc,
}  # fmt: skip


def scalar_function(op, dtype):
    """Return the `ScalarFunction` of a scalar operation on floats, or None.

    Args:
      op: its name in `scalar_ops`.
      dtype: of the operands, as they are in registers.
    """
    if op not in function_bodies or dtype not in FLOAT_FORMATS:
        return None
    return written_function(
        f"{op}_{dtype.name}", function_bodies[op], dtype, scalar_ops[op].arity
    )


@functools.cache
def written_function(name, body, dtype, arity):
    """Return the `ScalarFunction` of a body, made once; another body has another."""
    return build_function(name, body, [dtype] * arity)


def expand_functions(kernel):
    """Return a kernel in which elementary functions are written out."""
    return expand_calls(kernel, scalar_function)
