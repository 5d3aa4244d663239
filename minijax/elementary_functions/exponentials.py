"""exp and tanh, and range reduction: floats as bits, rounding, powers of two."""

# Made from chapters/23_functions.md by `make chapter`;
# edit the chapter, not this file.

from typing import NamedTuple

import numpy as np

from minijax.elementary_functions.scalar_functions import (
    emit_lower_clamp,
    emit_polynomial_tail,
    emit_upper_clamp,
)

# exp and tanh, and the parts that other exponentials are made of.

# From formats to numbers: where exp is 0 and where it is infinite.
EXP_RANGE = {"float32": (-104.0, 89.0), "float64": (-746.0, 710.0)}
LOG2_E = 1.4426950408889634

# 2 log 2, in two parts, of which the first can be multiplied without rounding.
TWO_LOG_2 = {
    "float32": (1.3862915, 2.8572135e-06),
    "float64": (1.3862943611197807, 1.0995846037416742e-13),
}

# (exp(r) - 1 - r) / r**2 for |r| < log 2.
EXP = {
    "float32": (
        0.50000036, 0.16666614, 0.041661292, 0.008336137, 0.0014104017, 0.00019606671,
    ),
    "float64": (
        0.4999999999999993, 0.16666666666666938, 0.04166666666670193,
        0.008333333333269837, 0.0013888888883595196, 0.00019841269892964801,
        2.48015908210802e-05, 2.7557300541691666e-06, 2.755615994923817e-07,
        2.5055058617417278e-08, 2.106218231669094e-09, 1.5933554419074434e-10,
    ),
}  # fmt: skip


# Range reduction: floats as bits, rounding to whole numbers, powers of two.


class FloatFormat(NamedTuple):
    """How a float is written down.

    Attributes:
      integer: the dtype of as many bits, as an integer.
      digits: how many bits there are behind the leading one.
      bias: what is added to the exponent.
      tiny: the least number with all digits.
    """

    integer: np.dtype
    mantissa_bits: int
    bias: int
    tiny: float

    @property
    def round_magic(self):
        """The number whose last bit counts ones: what is added to it is rounded."""
        return 1.5 * 2.0**self.mantissa_bits


FLOAT_FORMATS = {
    np.dtype(np.float32): FloatFormat(np.dtype(np.int32), 23, 127, 2.0**-126),
    np.dtype(np.float64): FloatFormat(np.dtype(np.int64), 52, 1023, 2.0**-1022),
}


def float_format(x):
    """Return the `FloatFormat` of a node."""
    return FLOAT_FORMATS[x.dtype]


def emit_float_bits(k, x):
    """Write the bits of a float, as an integer."""
    return k.bitcast(x, float_format(x).integer)


def float_bits(dtype, value):
    """Return the bits of a float, as an integer."""
    return int(dtype.type(value).view(FLOAT_FORMATS[dtype].integer))


def emit_nearest_multiple(k, x, factor):
    """Write the whole number next to a multiple; return it, and bits that end with it.

    It has to be less than 2**21 in 32 bits, and less than 2**50 in 64.
    """
    magic = float_format(x).round_magic
    shifted = k.fma(x, factor, magic)
    return k.sub(shifted, magic), emit_float_bits(k, shifted)


def cody_waite(k, x, n, parts):
    """Write ``x - n * sum(parts)``, part by part, so that little is lost."""
    for part in parts:
        x = k.fma(n, -part, x)
    return x


def emit_exp2_int(k, bits, dtype):
    """Write 2 to the number with which some bits end."""
    form = FLOAT_FORMATS[dtype]
    one = form.bias << form.mantissa_bits
    return k.bitcast(k.add(k.shift_left(bits, form.mantissa_bits), one), dtype)


def emit_scaled_exp(k, x, low=None, factor=None):
    """Write exp(x + low) times a factor, for x at which exp(x) / 4 is finite."""
    name = x.dtype.name
    n, bits = emit_nearest_multiple(k, x, LOG2_E / 2)
    r = cody_waite(k, x, n, TWO_LOG_2[name])
    r = r if low is None else k.add(r, low)
    y = k.add(emit_polynomial_tail(k, r, r, EXP[name]), 1)
    y = y if factor is None else k.mul(y, factor)
    scale = emit_exp2_int(k, bits, x.dtype)
    return k.mul(k.mul(y, scale), scale)


def emit_exp(k, x):
    """Write e to the x."""
    low, high = EXP_RANGE[x.dtype.name]
    return emit_scaled_exp(k, emit_upper_clamp(k, emit_lower_clamp(k, x, low), high))


HALF_LOG_2 = 0.34657359027997264

# (exp(2 r) - 1 - 2 r) / r**2 for |r| < log(2) / 4.
EXPM1_OF_DOUBLE = {
    "float32": (2.0, 1.3333334, 0.6666616, 0.2666672, 0.089224756, 0.025415463),
    "float64": (
        2.0000000000000018, 1.3333333333333477, 0.6666666666651859, 0.26666666666449684,
        0.08888888917529263, 0.025396825502789017, 0.006349184607554317,
        0.0014109320679739547, 0.0002829027293729732, 5.137984079285192e-05,
    ),
}  # fmt: skip

# Beyond, tanh is 1.
ONE_FROM = {"float32": 9.1, "float64": 19.1}


def expm1_of_double(k, x):
    """Write exp(2 x) - 1, for small x; of large ones not all digits are right."""
    name = x.dtype.name
    n, bits = emit_nearest_multiple(k, x, 2 * LOG2_E)
    r = k.fma(n, -HALF_LOG_2, x)
    tail = emit_polynomial_tail(k, k.add(r, r), r, EXPM1_OF_DOUBLE[name])
    scale = emit_exp2_int(k, bits, x.dtype)
    return k.fma(scale, tail, k.sub(scale, 1))


def emit_tanh(k, x):
    """Write the hyperbolic tangent: e / (e + 2) for e = exp(2 |x|) - 1."""
    size = emit_upper_clamp(k, k.abs(x), ONE_FROM[x.dtype.name])
    e = expm1_of_double(k, size)
    return k.copysign(k.div(e, k.add(e, 2)), x)
