"""Kernel rules of functions of complex numbers: pairs of functions of real numbers.

What they are of infinities, NaN and zeros of either sign is what annex G of the C
standard says. Errors are a few ulp of the size of the result, and what is finite does
not overflow on the way.

Reference: W. Kahan, *Branch cuts for complex elementary functions* (1987).
"""

# Made from chapters/23_functions_rest.md by `make chapter`;
# edit the chapter, not this file.

import numpy as np

from minijax.functions.angles import chosen
from minijax.kernels.building import Pair, complex_rules

# Up to here exp(x) is finite, and from here on tanh(x) is 1.
EXP_IS_FINITE = {"float32": 88.0, "float64": 709.0}
TANH_IS_ONE = {"float32": 10.0, "float64": 20.0}


def is_infinite(k, x):
    """Write whether a number is infinite."""
    return k.eq(k.abs(x), np.inf)


def unless_nan(k, x, condition, instead):
    """Write x, or another number if x is NaN and a condition is true."""
    return k.select(k.apply("and", condition, k.ne(x, x)), instead, x)


def in_reach(k, x):
    """Write a number and a factor: x and 1, or for x too large x - c and exp(c)."""
    end = EXP_IS_FINITE[x.dtype.name]
    far = k.gt(x, end)
    factor = k.select(far, k.number(np.exp(end), x), 1)
    return k.select(far, k.sub(x, end), x), factor


def complex_exp(k, z):
    """Write e to the z."""
    near, factor = in_reach(k, z.real)
    size = k.exp(near)
    cos = unless_nan(k, k.cos(z.imag), is_infinite(k, z.real), 1)
    zero = k.copysign(0, z.imag)
    sin = unless_nan(k, k.sin(z.imag), k.eq(z.real, -np.inf), zero)
    imag = k.mul(k.mul(size, sin), factor)
    real = k.mul(k.mul(size, cos), factor)
    return Pair(real, k.select(k.eq(z.imag, 0), z.imag, imag))


def complex_expm1(k, z):
    """Write e to the z, less 1; real if z is."""
    near, factor = in_reach(k, z.real)
    far, less, half = k.gt(factor, 1), k.expm1(near), k.sin(k.mul(z.imag, 0.5))
    more = k.add(less, 1)
    size = k.select(far, more, less)
    fall = k.select(far, 0, k.mul(k.mul(half, half), 2))
    real = k.mul(k.sub(k.mul(size, k.cos(z.imag)), fall), factor)
    imag = k.mul(k.mul(more, k.sin(z.imag)), factor)
    flat = k.eq(z.imag, 0)
    zero = k.apply("and", flat, k.eq(z.real, 0))
    return Pair(k.select(zero, 0, real), k.select(flat, 0, imag))


def hyperbolic_parts(k, x):
    """Write sinh(x) and cosh(x), each without a factor, and this factor."""
    near, factor = in_reach(k, k.abs(x))
    less = k.expm1(near)
    more = k.add(less, 1)
    inverse = k.div(1, more)
    far = k.gt(factor, 1)
    sinh = k.select(far, more, k.fma(less, inverse, less))
    cosh = k.select(far, more, k.add(more, inverse))
    return k.copysign(k.mul(sinh, 0.5), x), k.mul(cosh, 0.5), factor


def complex_sinh(k, z):
    """Write the hyperbolic sine."""
    sinh, cosh, factor = hyperbolic_parts(k, z.real)
    cos = unless_nan(k, k.cos(z.imag), is_infinite(k, z.real), k.copysign(1, z.real))
    real = k.mul(k.mul(sinh, cos), factor)
    imag = k.mul(k.mul(cosh, k.sin(z.imag)), factor)
    turned = k.copysign(1, k.select(k.ne(cos, cos), 1, cos))
    zeros = k.mul(z.real, turned), z.imag
    parts = zip(z, zeros, (real, imag))
    return Pair(*[k.select(k.eq(old, 0), zero, new) for old, zero, new in parts])


def complex_cosh(k, z):
    """Write the hyperbolic cosine."""
    sinh, cosh, factor = hyperbolic_parts(k, z.real)
    cos = unless_nan(k, k.cos(z.imag), is_infinite(k, z.real), 1)
    sin = k.sin(z.imag)
    real = k.mul(k.mul(cosh, cos), factor)
    imag = k.mul(k.mul(sinh, sin), factor)
    zero = k.apply("or", k.eq(sinh, 0), k.eq(sin, 0))
    return Pair(real, k.select(zero, signed_zero(k, z.real, sin), imag))


def signed_zero(k, x, y):
    """Write 0 with the sign of x y; if y is NaN without one, if x is with that of y."""
    known = [k.select(k.eq(part, part), part, 1) for part in (x, y)]
    zero = k.mul(k.copysign(0, known[0]), k.copysign(1, known[1]))
    return k.select(k.eq(y, y), zero, 0)


def complex_sin(k, z):
    """Write the sine: the hyperbolic one, with the parts in the other order."""
    mirrored = complex_sinh(k, Pair(z.imag, z.real))
    return Pair(mirrored.imag, mirrored.real)


def complex_cos(k, z):
    """Write the cosine: the hyperbolic one, turned."""
    return complex_cosh(k, Pair(k.neg(z.imag), z.real))


def complex_tanh(k, z):
    """Write the hyperbolic tangent, as Kahan does."""
    x, y = z
    infinite, tan, sinh = is_infinite(k, x), k.tan(y), k.sinh(x)
    square, beta = k.mul(sinh, sinh), k.fma(tan, tan, 1)
    inverse = k.div(1, k.fma(beta, square, 1))
    real = k.mul(k.mul(k.mul(beta, k.sqrt(k.add(square, 1))), sinh), inverse)
    defined = k.apply("or", infinite, k.eq(tan, tan))
    far = k.gt(k.abs(x), TANH_IS_ONE[x.dtype.name])
    real = k.select(k.apply("and", far, defined), k.copysign(1, x), real)
    end = k.copysign(0, unless_nan(k, tan, infinite, y))
    imag = k.select(infinite, end, k.mul(tan, inverse))
    return Pair(k.select(k.eq(x, 0), x, real), k.select(k.eq(y, 0), y, imag))


def complex_tan(k, z):
    """Write the tangent: the hyperbolic one, with the parts in the other order."""
    mirrored = complex_tanh(k, Pair(z.imag, z.real))
    return Pair(mirrored.imag, mirrored.real)


# What is larger or smaller than one of two numbers is multiplied by one of two others
# before it is squared, and its square root by one of the last two.
SCALES = {
    "float32": (2.0**60, 2.0**-50, 2.0**-66, 2.0**100, 2.0**33, 2.0**-50),
    "float64": (2.0**500, 2.0**-400, 2.0**-600, 2.0**600, 2.0**300, 2.0**-300),
}


def complex_sqrt(k, z):
    """Write the square root whose real part is not negative."""
    x, y = z
    root, other = parts_of_root(k, k.abs(x), k.abs(y))
    right, endless = k.ge(x, 0), is_infinite(k, y)
    real = k.select(endless, np.inf, k.select(right, root, other))
    imag = k.select(endless, np.inf, k.select(right, other, root))
    return Pair(real, k.copysign(imag, y))


def parts_of_root(k, x, y):
    """Write the parts of the square root of x + iy, neither of them negative."""
    most, least, *scales = SCALES[x.dtype.name]
    large = k.select(k.gt(x, y), x, y)
    ends = k.gt(large, most), k.lt(large, least)
    scale = chosen(k, x, ends, (*scales[:2], 1.0))
    back = chosen(k, x, ends, (*scales[2:], 1.0))
    zero, x, y = k.eq(k.add(x, y), 0), k.mul(x, scale), k.mul(y, scale)
    size = k.sqrt(k.fma(x, x, k.mul(y, y)))
    root = k.sqrt(k.mul(k.add(x, size), 0.5))
    root = k.select(k.eq(x, np.inf), x, root)
    other = k.mul(k.div(y, k.add(root, root)), back)
    return k.mul(root, back), k.select(zero, 0, other)


def log_of_size(k, x, y, less=None):
    """Write log |x + iy|.

    Near 1 it is computed from |x + iy|**2 - 1, of floats in 64 bits.

    Args:
      less: the node of x - 1, if it is known better than x.
    """
    first, second = k.abs(x), k.abs(y)
    longer = k.gt(first, second)
    large, small = k.select(longer, first, second), k.select(longer, second, first)
    near = k.apply("and", k.gt(large, 0.5), k.lt(large, 2))
    above = k.sub(large, 1)
    if less is not None:
        above = k.select(k.apply("and", longer, k.gt(x, 0)), less, above)
    gap = square_less_one(k, above, small)
    ratio = k.select(k.eq(k.add(large, small), 0), 0, k.div(small, large))
    rest = k.log1p(k.select(near, gap, k.mul(ratio, ratio)))
    size = k.fma(rest, 0.5, k.log(k.select(near, 1, large)))
    infinite = k.apply("or", is_infinite(k, first), is_infinite(k, second))
    return k.select(infinite, np.inf, size)


def square_less_one(k, above, y):
    """Write (1 + above)**2 + y**2 - 1."""
    dtype, wide = y.dtype, np.dtype(np.float64)
    above, y = k.convert(above, wide), k.convert(y, wide)
    gap = k.fma(above, k.add(above, 2), k.mul(y, y))
    return k.convert(gap, dtype)


def complex_log(k, z):
    """Write the natural logarithm with an imaginary part from -pi to pi."""
    return Pair(log_of_size(k, *z), k.atan2(z.imag, z.real))


def complex_log1p(k, z):
    """Write the natural logarithm of 1 + z."""
    moved = k.add(z.real, 1)
    size = log_of_size(k, moved, z.imag, z.real)
    return Pair(size, k.atan2(z.imag, moved))


def complex_mul(k, x, y):
    """Write the product as NumPy computes it: each part with one rounding less."""
    real = k.fma(x.real, y.real, k.neg(k.mul(x.imag, y.imag)))
    return Pair(real, k.fma(x.real, y.imag, k.mul(x.imag, y.real)))


complex_rules.update(
    exp=complex_exp, expm1=complex_expm1, sinh=complex_sinh, cosh=complex_cosh,
    tanh=complex_tanh, sin=complex_sin, cos=complex_cos, tan=complex_tan,
    sqrt=complex_sqrt, log=complex_log, log1p=complex_log1p, mul=complex_mul,
)  # fmt: skip
