"""Sine, cosine and tangent, with the range reduction of large angles; inverses."""

# Made from chapters/23_functions_rest.md by `make chapter`;
# edit the chapter, not this file.

import numpy as np

from minijax.functions.range_reduction import (
    bits_of,
    format_of,
    nearest,
    without_multiple,
)
from minijax.functions.scalar_functions import not_above, polynomial

TWO_OVER_PI = 0.6366197723675814

# pi / 2, in parts; a whole number below the limit times a part is exact, but the last.
HALF_PI = {
    "float32": (1.5703125, 0.0004837513, 7.5495336e-08, 2.563344e-12),
    "float64": (1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21),
}
NEAR = {"float32": 12800.0, "float64": 1.6e6}

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
    size = k.fma(k.mul(first, z), polynomial(k, z, coefficients), first)
    turned = k.shift_left(k.apply("and", bits, 2), r.dtype.itemsize * 8 - 2)
    return k.bitcast(k.xor(bits_of(k, size), turned), r.dtype)


def sign_bit(k, x):
    """Write the sign of a float as the first bit of an integer."""
    least = -(2 ** (x.dtype.itemsize * 8 - 1))
    return k.apply("and", bits_of(k, x), least)


def near(k, x):
    """Write what is left of x without quarter turns, and bits that end with these."""
    n, bits = nearest(k, x, TWO_OVER_PI)
    return without_multiple(k, x, n, HALF_PI[x.dtype.name]), bits


UNSIGNED = np.dtype(np.uint64)
FLOAT = np.dtype(np.float64)

# Nothing, and then the bits of 2 / pi behind the point, 64 by 64.
WORDS = (
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


def window(k, start):
    """Write three words of the bits of `WORDS`, from a certain one on."""
    words = [k.constant(word, UNSIGNED) for word in WORDS]
    place = k.shift_right(start, 6)
    for step in (16, 8, 4, 2, 1):
        moved = k.ne(k.apply("and", place, step), 0)
        late = [k.select(moved, *pair) for pair in zip(words[step:], words)]
        words = [*late, *words[len(late) :]][: step + 3]
    shift = k.apply("and", start, 63)
    rest = k.xor(shift, 63)
    tops = [k.shift_left(word, shift) for word in words[:3]]
    ends = [k.shift_right(k.shift_right(word, 1), rest) for word in words[1:]]
    return [k.apply("or", top, end) for top, end in zip(tops, ends)]


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


def far(k, x):
    """Write what is left of x without quarter turns, and bits that end with these.

    Args:
      x: a node, float64, for a number above 2**20.
    """
    bits = k.bitcast(x, UNSIGNED)
    digits = k.apply("or", k.apply("and", bits, 2**52 - 1), 2**52)
    start = k.sub(k.shift_right(bits, 52), 1013)
    high, middle, low = window(k, start)
    second = k.mul(middle, digits)
    tail = k.add(second, upper_half(k, low, digits))
    carry = k.select(k.lt(tail, second), k.number(1, tail), 0)
    head = k.add(k.mul(high, digits), k.add(upper_half(k, middle, digits), carry))
    turns = k.shift_right(k.add(head, 2**61), 62)
    part = k.bitcast(k.sub(head, k.shift_left(turns, 62)), np.dtype(np.int64))
    return k.add(quarter_turns(k, part, tail), k.sub(x, x)), turns


def quarter_turns(k, part, tail):
    """Write the angle of (part + tail / 2**64) / 2**62 quarter turns."""
    first = k.convert(part, FLOAT)
    rest = k.convert(k.sub(part, k.convert(first, part.dtype)), FLOAT)
    rest = k.fma(k.convert(tail, FLOAT), 2.0**-64, rest)
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
    wide, form = np.dtype(np.float64), format_of(x)

    def huge():
        r, turns = far(k, k.convert(x, wide))
        return write(k.convert(r, x.dtype), k.convert(turns, form.integer))

    return k.rarely(k.gt(x, NEAR[x.dtype.name]), huge, write(*near(k, x)))


def sin(k, x):
    """Write the sine."""
    sign = sign_bit(k, x)

    def write(r, bits):
        size = sin_of(k, r, bits)
        return k.bitcast(k.xor(bits_of(k, size), sign), x.dtype)

    return by_turns(k, k.abs(x), write)


def cos(k, x):
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


def tan(k, x):
    """Write the tangent."""
    sign, name = sign_bit(k, x), x.dtype.name

    def write(r, bits):
        z = k.mul(r, r)
        top = k.fma(k.mul(r, z), polynomial(k, z, TAN_TOP[name]), r)
        bottom = k.fma(z, polynomial(k, z, TAN_BOTTOM[name]), 1)
        odd = k.apply("and", bits, 1)
        turned = k.ne(odd, 0)
        size = k.div(k.select(turned, bottom, top), k.select(turned, top, bottom))
        signs = k.xor(k.shift_left(odd, x.dtype.itemsize * 8 - 1), sign)
        return k.bitcast(k.xor(bits_of(k, size), signs), x.dtype)

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
        chosen(k, like, conditions, [part * s for s in share])
        for part in RIGHT_ANGLE[like.dtype.name]
    ]


def chosen(k, like, conditions, values):
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
    rest = k.mul(k.mul(t, z), polynomial(k, z, ATAN[x.dtype.name]))
    high, low = part_of_right_angle(k, x, (1.0, 0.5, 0.0), steep, middle)
    return k.add(high, k.add(t, k.add(rest, low)))


def atan(k, x):
    """Write the inverse of the tangent."""
    size = not_above(k, k.abs(x), 2.0**100)
    return k.copysign(angle_of(k, size, k.number(1, x)), x)


def atan2(k, y, x):
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
    return k.fma(k.mul(s, z), polynomial(k, z, ASIN[s.dtype.name]), s)


def reduced_sine(k, x):
    """Write whether |x| > 1/2, and s and z for the series of asin or of acos."""
    size = k.abs(x)
    large = k.gt(size, 0.5)
    z = k.select(large, k.fma(size, -0.5, 0.5), k.mul(x, x))
    return large, k.select(large, k.sqrt(z), size), z


def asin(k, x):
    """Write the inverse of the sine; above 1/2 by asin(x) = pi/2 - 2 asin(s)."""
    large, s, z = reduced_sine(k, x)
    angle = asin_series(k, s, z)
    high, low = RIGHT_ANGLE[x.dtype.name]
    rest = k.sub(high, k.sub(k.add(angle, angle), low))
    return k.copysign(k.select(large, rest, angle), x)


def acos(k, x):
    """Write the inverse of the cosine."""
    large, s, z = reduced_sine(k, x)
    angle = asin_series(k, s, z)
    negative = k.lt(x, 0)
    double = k.add(angle, angle)
    high, low = RIGHT_ANGLE[x.dtype.name]
    far = k.add(k.sub(2 * high, double), 2 * low)
    near = k.sub(high, k.sub(k.copysign(angle, x), low))
    return k.select(large, k.select(negative, far, double), near)
