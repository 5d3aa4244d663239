# Made from chapters/17b_functions.md by `make chapter`;
# edit the chapter, not this file.
"""Sine, cosine and tangent."""

import numpy as np

from minijax.huge_angles import far
from minijax.scalar_functions import (
    bits_of,
    format_of,
    nearest,
    polynomial,
    without_multiple,
)

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
