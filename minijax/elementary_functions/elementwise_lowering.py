"""Kernel rules of real functions without a library's name, and of complex ones.

What they are of infinities, NaN and zeros of either sign is what annex G of the C
standard says. Errors are a few ulp of the size of the result, and what is finite does
not overflow on the way.

Reference: W. Kahan, *Branch cuts for complex elementary functions* (1987).
"""

# Made from chapters/23_functions_rest.md by `make chapter`;
# edit the chapter, not this file.

import numpy as np

from minijax import lax
from minijax.arrays.numerics import DIGAMMA_ASYMPTOTIC, DIGAMMA_RATIONAL, DIGAMMA_ROOT
from minijax.elementary_functions.exponentials import emit_float_bits, float_format
from minijax.elementary_functions.real_functions import FLOAT64, emit_piecewise
from minijax.elementary_functions.scalar_functions import emit_polynomial
from minijax.kernels.builder import ComplexNode, UnsupportedKernel, complex_rules
from minijax.kernels.ir import compute_dtype
from minijax.kernels.lowering import elementwise_kernel_rule, kernel_rules

# Kernel rules of functions for which libraries have no name.

# The x with erf(x) = y, divided by y, as a function of w = -log(1 - y**2): of w - 2.5
# below 5, and of the root of w, less 3, above.
ERF_INV_MIDDLE = {
    "float32": (
        1.5014094, 0.24664028, -0.004177387, -0.0012527418, 0.00021834446,
        -4.963409e-06, -3.4627085e-06, 4.6618314e-07, 2.32329e-08, -8.791924e-09,
    ),
    "float64": (
        1.5014091799039924, 0.24664141321421043, -0.004176257383843027,
        -0.001254621645537387, 0.0002173351049015626, -4.097407591254261e-06,
        -3.185767527033296e-06, 3.1593143453240617e-07,
    ),
}  # fmt: skip
ERF_INV_ENDS = {
    "float32": (
        2.8329768, 1.0016749, 0.009445009, -0.007636388, 0.0056893956, -0.003601647,
        0.0014786778, -4.8678703e-05, -0.00030438535, 0.000110110464,
    ),
    "float64": (
        2.832976266839425, 1.001689523029971, 0.009460152971702829,
        -0.007771667144178643, 0.005696306243258241, -0.0032500987543061686,
        0.0012263558081801592, -0.00027532158837565617, 3.2059319212072986e-05,
        -1.386744058309666e-06,
    ),
}  # fmt: skip


def erf_inv(k, y):
    """Write the inverse of the error function; in 64 bits one step makes it exact."""
    name, size = y.dtype.name, k.abs(y)
    gap = k.sub(1, size)
    w = k.neg(k.log(k.mul(gap, k.add(size, 1))))
    middle = emit_polynomial(k, k.sub(w, 2.5), ERF_INV_MIDDLE[name])
    ends = emit_polynomial(k, k.sub(k.sqrt(w), 3), ERF_INV_ENDS[name])
    x = k.mul(size, k.select(k.lt(w, 5), middle, ends))
    x = halley_step(k, x, size, gap) if y.dtype == np.float64 else x
    return k.copysign(k.select(k.eq(size, 1), np.inf, x), y)


def halley_step(k, x, y, gap):
    """Write a better x with erf(x) = y, given one and 1 - y (E. Halley, 1694)."""
    error = k.select(k.lt(y, 0.5), k.sub(k.erf(x), y), k.sub(gap, k.erfc(x)))
    step = k.mul(k.mul(error, 0.5 * np.pi**0.5), k.exp(k.mul(x, x)))
    return k.sub(x, k.div(step, k.fma(x, step, 1)))


def digamma(k, x):
    """Write the logarithmic derivative of the gamma function, in 64 bits.

    Source: NIST Digital Library of Mathematical Functions, 5.5.2, 5.5.4, 5.11.2.
    """
    dtype, x = x.dtype, k.convert(x, np.dtype(np.float64))
    negative, small = k.lt(x, 0), k.lt(x, 1)
    size = k.select(negative, k.sub(1, x), k.select(small, k.add(x, 1), x))
    y = k.select(k.lt(size, 8), psi_near(k, size), psi_far(k, size))
    other = k.select(negative, psi_reflected(k, x), k.div(1, x))
    y = k.select(small, k.sub(y, other), y)
    pole = k.apply("and", k.le(x, 0), k.eq(k.rint(x), x))
    return k.convert(k.select(pole, np.nan, y), dtype)


def psi_near(k, x):
    """Write digamma between 1 and 8: steps down to 2, then a quotient."""
    above = k.number(0, x)
    for _ in range(6):
        down = k.gt(x, 2)
        x = k.select(down, k.sub(x, 1), x)
        above = k.select(down, k.add(above, k.div(1, x)), above)
    top, bottom = (emit_polynomial(k, k.sub(x, 1.5), part) for part in DIGAMMA_RATIONAL)
    left = k.sub(k.sub(x, DIGAMMA_ROOT[0]), DIGAMMA_ROOT[1])
    return k.add(above, k.mul(left, k.div(top, bottom)))


def psi_far(k, x):
    """Write digamma above 8: its asymptotic series."""
    rest = emit_polynomial(k, k.div(1, k.mul(x, x)), DIGAMMA_ASYMPTOTIC)
    return k.sub(k.sub(k.log(x), k.div(0.5, x)), rest)


def psi_reflected(k, x):
    """Write π cot(π x), to the last digit near its zeros."""
    turns = k.sub(x, k.rint(x))
    size = k.abs(turns)
    steep = k.lt(size, 0.25)
    tangent = k.tan(k.mul(k.select(steep, size, k.sub(0.5, size)), np.pi))
    cotangent = k.select(steep, k.div(1, tangent), tangent)
    return k.mul(k.copysign(cotangent, turns), np.pi)


def emit_nextafter(k, x, y):
    """Write the neighbour of x in the direction of y."""
    bits, one = emit_float_bits(k, x), k.number(1, emit_float_bits(k, x))
    away = k.eq(k.lt(x, y), k.gt(x, 0))
    moved = k.add(bits, k.select(away, one, -1))
    tiny = k.copysign(k.bitcast(one, x.dtype), y)
    moved = k.select(k.eq(x, 0), tiny, k.bitcast(moved, x.dtype))
    known = k.apply("and", k.eq(x, x), k.eq(y, y))
    return k.select(known, k.select(k.eq(x, y), y, moved), np.nan)


def emit_reduce_precision(k, x, exponent_bits, mantissa_bits):
    """Write what a float of fewer bits would keep of x; halves round to even."""
    form, size = float_format(x), k.abs(x)
    most = 2 ** (min(exponent_bits, 12) - 1)
    cut = form.mantissa_bits - mantissa_bits
    y = with_digits_cut(k, size, cut) if cut > 0 else size
    if most <= form.bias:  # a narrower exponent; one as wide keeps what is subnormal
        y = k.select(k.ge(y, 2.0**most), np.inf, y)
        y = k.select(k.lt(y, 2.0 ** (2 - most)), 0, y)
    return k.select(k.lt(k.abs(x), np.inf), k.copysign(y, x), x)


def with_digits_cut(k, x, cut):
    """Write a positive float without its last digits."""
    bits = emit_float_bits(k, x)
    odd = k.apply("and", k.shift_right(bits, cut), 1)
    half = k.add(bits, k.add(odd, 2 ** (cut - 1) - 1))
    return k.bitcast(k.apply("and", half, -(2**cut)), x.dtype)


def in_own_bits(body):
    """Return the kernel rule of what depends on the bits in which floats lie."""
    add_kernel = elementwise_kernel_rule(body)

    def rule(lowering, eqn, x, *others):
        if x.dtype != compute_dtype(x.dtype):
            raise UnsupportedKernel("The bits of halves are others than in 32 bits.")
        return add_kernel(lowering, eqn, x, *others)

    return rule


kernel_rules[lax.erf_inv_p] = elementwise_kernel_rule(erf_inv)
kernel_rules[lax.digamma_p] = elementwise_kernel_rule(digamma)
kernel_rules[lax.nextafter_p] = in_own_bits(emit_nextafter)
kernel_rules[lax.reduce_precision_p] = in_own_bits(emit_reduce_precision)


# Kernel rules of functions of complex numbers: pairs of functions of real numbers.

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
    return ComplexNode(real, k.select(k.eq(z.imag, 0), z.imag, imag))


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
    return ComplexNode(k.select(zero, 0, real), k.select(flat, 0, imag))


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
    return ComplexNode(*[k.select(k.eq(old, 0), zero, new) for old, zero, new in parts])


def complex_cosh(k, z):
    """Write the hyperbolic cosine."""
    sinh, cosh, factor = hyperbolic_parts(k, z.real)
    cos = unless_nan(k, k.cos(z.imag), is_infinite(k, z.real), 1)
    sin = k.sin(z.imag)
    real = k.mul(k.mul(cosh, cos), factor)
    imag = k.mul(k.mul(sinh, sin), factor)
    zero = k.apply("or", k.eq(sinh, 0), k.eq(sin, 0))
    return ComplexNode(real, k.select(zero, signed_zero(k, z.real, sin), imag))


def signed_zero(k, x, y):
    """Write 0 with the sign of x y; if y is NaN without one, if x is with that of y."""
    known = [k.select(k.eq(part, part), part, 1) for part in (x, y)]
    zero = k.mul(k.copysign(0, known[0]), k.copysign(1, known[1]))
    return k.select(k.eq(y, y), zero, 0)


def complex_sin(k, z):
    """Write the sine: the hyperbolic one, with the parts in the other order."""
    mirrored = complex_sinh(k, ComplexNode(z.imag, z.real))
    return ComplexNode(mirrored.imag, mirrored.real)


def complex_cos(k, z):
    """Write the cosine: the hyperbolic one, turned."""
    return complex_cosh(k, ComplexNode(k.neg(z.imag), z.real))


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
    return ComplexNode(k.select(k.eq(x, 0), x, real), k.select(k.eq(y, 0), y, imag))


def complex_tan(k, z):
    """Write the tangent: the hyperbolic one, with the parts in the other order."""
    mirrored = complex_tanh(k, ComplexNode(z.imag, z.real))
    return ComplexNode(mirrored.imag, mirrored.real)


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
    return ComplexNode(real, k.copysign(imag, y))


def parts_of_root(k, x, y):
    """Write the parts of the square root of x + iy, neither of them negative."""
    most, least, *scales = SCALES[x.dtype.name]
    large = k.select(k.gt(x, y), x, y)
    ends = k.gt(large, most), k.lt(large, least)
    scale = emit_piecewise(k, x, ends, (*scales[:2], 1.0))
    back = emit_piecewise(k, x, ends, (*scales[2:], 1.0))
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
    return ComplexNode(log_of_size(k, *z), k.atan2(z.imag, z.real))


def complex_log1p(k, z):
    """Write the natural logarithm of 1 + z."""
    moved = k.add(z.real, 1)
    size = log_of_size(k, moved, z.imag, z.real)
    return ComplexNode(size, k.atan2(z.imag, moved))


def complex_mul(k, x, y):
    """Write the product as NumPy computes it: each part with one rounding less."""
    real = k.fma(x.real, y.real, k.neg(k.mul(x.imag, y.imag)))
    return ComplexNode(real, k.fma(x.real, y.imag, k.mul(x.imag, y.real)))


def complex_pow(k, z, w):
    """Write z to the w, in 64 bits: what the logarithm is off by, w makes larger."""
    if not isinstance(z, ComplexNode) or not isinstance(w, ComplexNode):
        raise UnsupportedKernel("powers of a complex and a real number")
    base, power = (ComplexNode(*[k.convert(x, FLOAT64) for x in c]) for c in (z, w))
    found = complex_exp(k, complex_mul(k, power, complex_log(k, base)))
    nothing, one = (
        k.apply("and", k.eq(c.real, 0), k.eq(c.imag, 0)) for c in (base, power)
    )
    end = k.select(k.gt(power.real, 0), k.number(0, power.real), np.nan)
    parts = [k.select(nothing, end, part) for part in found]
    real, imag = (k.select(one, n, part) for n, part in zip((1, 0), parts))
    return ComplexNode(*[k.convert(x, z.real.dtype) for x in (real, imag)])


complex_rules.update(
    exp=complex_exp, expm1=complex_expm1, sinh=complex_sinh, cosh=complex_cosh,
    tanh=complex_tanh, sin=complex_sin, cos=complex_cos, tan=complex_tan,
    sqrt=complex_sqrt, log=complex_log, log1p=complex_log1p, mul=complex_mul,
    pow=complex_pow,
)  # fmt: skip
