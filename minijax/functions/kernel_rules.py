"""Kernel rules of functions for which libraries have no name."""

# Made from chapters/23_functions_rest.md by `make chapter`;
# edit the chapter, not this file.

import numpy as np

from minijax import lax
from minijax.arrays.numerics import PSI_FAR, PSI_NEAR, PSI_ZERO
from minijax.functions.range_reduction import bits_of, format_of
from minijax.functions.scalar_functions import polynomial
from minijax.kernels.building import NoKernel
from minijax.kernels.program_steps import elementwise, kernel_rules
from minijax.kernels.scalar_ops import in_registers

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
    middle = polynomial(k, k.sub(w, 2.5), ERF_INV_MIDDLE[name])
    ends = polynomial(k, k.sub(k.sqrt(w), 3), ERF_INV_ENDS[name])
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
    top, bottom = (polynomial(k, k.sub(x, 1.5), part) for part in PSI_NEAR)
    left = k.sub(k.sub(x, PSI_ZERO[0]), PSI_ZERO[1])
    return k.add(above, k.mul(left, k.div(top, bottom)))


def psi_far(k, x):
    """Write digamma above 8: its asymptotic series."""
    rest = polynomial(k, k.div(1, k.mul(x, x)), PSI_FAR)
    return k.sub(k.sub(k.log(x), k.div(0.5, x)), rest)


def psi_reflected(k, x):
    """Write π cot(π x), to the last digit near its zeros."""
    turns = k.sub(x, k.rint(x))
    size = k.abs(turns)
    steep = k.lt(size, 0.25)
    tangent = k.tan(k.mul(k.select(steep, size, k.sub(0.5, size)), np.pi))
    cotangent = k.select(steep, k.div(1, tangent), tangent)
    return k.mul(k.copysign(cotangent, turns), np.pi)


def nextafter(k, x, y):
    """Write the neighbour of x in the direction of y."""
    bits, one = bits_of(k, x), k.number(1, bits_of(k, x))
    away = k.eq(k.lt(x, y), k.gt(x, 0))
    moved = k.add(bits, k.select(away, one, -1))
    tiny = k.copysign(k.bitcast(one, x.dtype), y)
    moved = k.select(k.eq(x, 0), tiny, k.bitcast(moved, x.dtype))
    known = k.apply("and", k.eq(x, x), k.eq(y, y))
    return k.select(known, k.select(k.eq(x, y), y, moved), np.nan)


def reduce_precision(k, x, exponent_bits, mantissa_bits):
    """Write what a float of fewer bits would keep of x; halves round to even."""
    form, size = format_of(x), k.abs(x)
    most = 2 ** (min(exponent_bits, 12) - 1)
    cut = form.digits - mantissa_bits
    y = with_digits_cut(k, size, cut) if cut > 0 else size
    if most <= form.bias:  # a narrower exponent; one as wide keeps what is subnormal
        y = k.select(k.ge(y, 2.0**most), np.inf, y)
        y = k.select(k.lt(y, 2.0 ** (2 - most)), 0, y)
    return k.select(k.lt(k.abs(x), np.inf), k.copysign(y, x), x)


def with_digits_cut(k, x, cut):
    """Write a positive float without its last digits."""
    bits = bits_of(k, x)
    odd = k.apply("and", k.shift_right(bits, cut), 1)
    half = k.add(bits, k.add(odd, 2 ** (cut - 1) - 1))
    return k.bitcast(k.apply("and", half, -(2**cut)), x.dtype)


def in_own_bits(body):
    """Return the kernel rule of what depends on the bits in which floats lie."""
    add_kernel = elementwise(body)

    def rule(lowering, eqn, x, *others):
        if x.dtype != in_registers(x.dtype):
            raise NoKernel("The bits of halves are others than in 32 bits.")
        return add_kernel(lowering, eqn, x, *others)

    return rule


kernel_rules[lax.erf_inv_p] = elementwise(erf_inv)
kernel_rules[lax.digamma_p] = elementwise(digamma)
kernel_rules[lax.nextafter_p] = in_own_bits(nextafter)
kernel_rules[lax.reduce_precision_p] = in_own_bits(reduce_precision)
