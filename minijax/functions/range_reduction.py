"""Range reduction: floats as bits, rounding to whole numbers, powers of two."""

# Made from chapters/23_functions.md by `make chapter`;
# edit the chapter, not this file.

from typing import NamedTuple

import numpy as np


class Format(NamedTuple):
    """How a float is written down.

    Attributes:
      integer: the dtype of as many bits, as an integer.
      digits: how many bits there are behind the leading one.
      bias: what is added to the exponent.
      tiny: the least number with all digits.
    """

    integer: np.dtype
    digits: int
    bias: int
    tiny: float

    @property
    def magic(self):
        """The number whose last bit counts ones: what is added to it is rounded."""
        return 1.5 * 2.0**self.digits


FORMATS = {
    np.dtype(np.float32): Format(np.dtype(np.int32), 23, 127, 2.0**-126),
    np.dtype(np.float64): Format(np.dtype(np.int64), 52, 1023, 2.0**-1022),
}


def format_of(x):
    """Return the `Format` of a node."""
    return FORMATS[x.dtype]


def bits_of(k, x):
    """Write the bits of a float, as an integer."""
    return k.bitcast(x, format_of(x).integer)


def bits_as_int(dtype, value):
    """Return the bits of a float, as an integer."""
    return int(dtype.type(value).view(FORMATS[dtype].integer))


def nearest(k, x, factor):
    """Write the whole number next to a multiple; return it, and bits that end with it.

    It has to be less than 2**21 in 32 bits, and less than 2**50 in 64.
    """
    magic = format_of(x).magic
    shifted = k.fma(x, factor, magic)
    return k.sub(shifted, magic), bits_of(k, shifted)


def without_multiple(k, x, n, parts):
    """Write ``x - n * sum(parts)``, part by part, so that little is lost."""
    for part in parts:
        x = k.fma(n, -part, x)
    return x


def power_of_two(k, bits, dtype):
    """Write 2 to the number with which some bits end."""
    form = FORMATS[dtype]
    one = form.bias << form.digits
    return k.bitcast(k.add(k.shift_left(bits, form.digits), one), dtype)
