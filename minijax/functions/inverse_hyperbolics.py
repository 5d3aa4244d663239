# Made from chapters/23_functions_rest.md by `make chapter`;
# edit the chapter, not this file.
"""The logarithm of 1 + x, and the inverse hyperbolic functions."""

import numpy as np

from minijax.functions.logarithms import at_ends, log_of_parts, parts_of
from minijax.functions.scalar_functions import bits_of, format_of, power_of_two


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
