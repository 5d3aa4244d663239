# Made from chapters/17b_functions.md by `make chapter`;
# edit the chapter, not this file.
"""Logarithms, and the functions made of them."""

import numpy as np

from minijax.scalar_functions import FORMATS, bits_of, format_of, polynomial

# (log(1 + f) - f + f**2 / 2) / f**3, and (log((1 + s) / (1 - s)) - 2 s) / s**3 as a
# function of s**2, where s = f / (2 + f), for 1 + f between the roots of 1/2 and 2.
LOG = {
    "float32": (
        0.3333333, -0.2500082, 0.20001219, -0.1662337, 0.1420194, -0.13160264,
        0.1276036, -0.07632755,
    ),
    "float64": (
        0.6666666666666734, 0.39999999999414815, 0.2857142874234997,
        0.22222198577618846, 0.18183564071146718, 0.15314057602564132,
        0.14795874722826163,
    ),
}  # fmt: skip

# log(2), in two parts.
LOG_2 = {
    "float32": (0.69314575, 1.4286068e-06),
    "float64": (0.6931471805598903, 5.497923018708371e-14),
}


def parts_of(k, x):
    """Write f and n, for which x = (1 + f) 2**n, and 1 + f is near 1; x > 0."""
    form, dtype = format_of(x), x.dtype
    small = k.lt(x, form.tiny)
    bits = bits_of(k, k.select(small, k.mul(x, 2.0 ** (form.digits + 2)), x))
    one, root = (int(dtype.type(v).view(form.integer)) for v in (1.0, 0.5**0.5))
    moved = k.add(bits, one - root)
    zero = 2.0**form.digits  # its last bits count ones
    n = k.apply("or", k.shift_right(moved, form.digits), bits_as_int(dtype, zero))
    away = zero + form.bias
    n = k.sub(k.bitcast(n, dtype), k.select(small, k.number(away + form.digits + 2, x), away))
    fraction = k.apply("and", moved, 2**form.digits - 1)
    return k.sub(k.bitcast(k.add(fraction, root), dtype), 1), n


def bits_as_int(dtype, value):
    """Return the bits of a float, as an integer."""
    return int(dtype.type(value).view(FORMATS[dtype].integer))


def log(k, x):
    """Write the natural logarithm: that of 1 + f, and n log 2."""
    f, n = parts_of(k, x)
    high, low = LOG_2[x.dtype.name]
    half = k.mul(k.mul(f, 0.5), f)
    if x.dtype == np.float32:
        cube = k.mul(k.mul(f, f), f)
        rest = k.mul(cube, polynomial(k, f, LOG["float32"]))
        tail = k.sub(k.fma(n, low, rest), half)
        y = k.fma(n, high, k.add(f, tail))
    else:
        s = k.div(f, k.add(f, 2))
        z = k.mul(s, s)
        rest = k.fma(k.mul(z, polynomial(k, z, LOG["float64"])), 1, half)
        tail = k.fma(s, rest, k.mul(n, low))
        y = k.fma(n, high, k.sub(f, k.sub(half, tail)))
    return at_ends(k, x, y)


def at_ends(k, x, y):
    """Write a logarithm of any x, given what it is for positive numbers."""
    y = k.select(k.lt(x, np.inf), y, x)
    low = k.select(k.eq(x, 0), k.number(-np.inf, x), np.nan)
    return k.select(k.gt(x, 0), y, low)
