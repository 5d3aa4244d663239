# Made from chapters/23_functions_rest.md by `make chapter`;
# edit the chapter, not this file.
"""From sines, cosines and tangents back to angles."""

import numpy as np

from minijax.functions.scalar_functions import not_above, polynomial

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

# pi / 2 in two parts.
RIGHT_ANGLE = {
    "float32": (1.5707963, 7.54979e-08),
    "float64": (1.5707963267948966, 6.123233995736766e-17),
}


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
