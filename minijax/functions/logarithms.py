"""The natural logarithm, and the parts that other logarithms are made of."""

# Made from chapters/23_functions_rest.md by `make chapter`;
# edit the chapter, not this file.

import numpy as np

from minijax.functions.range_reduction import bits_as_int, bits_of, format_of
from minijax.functions.scalar_functions import plus_rest, polynomial

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


def parts_of(k, x, small=True):
    """Write f and n, for which x = (1 + f) 2**n, and 1 + f is near 1; x > 0.

    Args:
      small: whether x may be so small that not all of its digits are there.
    """
    form, dtype = format_of(x), x.dtype
    one, root = (bits_as_int(dtype, value) for value in (1.0, 0.5**0.5))
    away = 2.0**form.digits + form.bias  # the bits of 2.0**digits end with ones
    if small:
        few, more = k.lt(x, form.tiny), form.digits + 2
        x = k.select(few, k.mul(x, 2.0**more), x)
        away = k.select(few, k.number(away + more, x), away)
    moved = k.add(bits_of(k, x), one - root)
    count = k.shift_right(moved, form.digits)
    count = k.apply("or", count, bits_as_int(dtype, 2.0**form.digits))
    fraction = k.apply("and", moved, 2**form.digits - 1)
    f = k.sub(k.bitcast(k.add(fraction, root), dtype), 1)
    return f, k.sub(k.bitcast(count, dtype), away)


def log_of_parts(k, f, n):
    """Write the logarithm of (1 + f) 2**n."""
    if f.dtype == np.float32:
        y = plus_rest(k, f, f, LOG["float32"])
    else:
        s = k.div(f, k.add(f, 2))
        z = k.mul(s, s)
        rest = k.fma(z, polynomial(k, z, LOG["float64"]), k.neg(f))
        y = k.fma(s, rest, f)
    return k.fma(n, np.log(2), y)


def at_ends(k, x, y):
    """Write a logarithm of any x, given what it is for positive numbers."""
    y = k.select(k.lt(x, np.inf), y, x)
    low = k.select(k.eq(x, 0), k.number(-np.inf, x), np.nan)
    return k.select(k.gt(x, 0), y, low)


def log(k, x):
    """Write the natural logarithm; numbers that are no usual ones are rare."""
    form = format_of(x)
    tiny, most = (bits_as_int(x.dtype, value) for value in (form.tiny, np.inf))
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    place = k.sub(k.bitcast(x, unsigned), tiny)

    def write():
        return at_ends(k, x, log_of_parts(k, *parts_of(k, x)))

    usual = log_of_parts(k, *parts_of(k, x, small=False))
    return k.rarely(k.ge(place, most - tiny), write, usual)
