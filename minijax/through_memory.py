# Made from chapters/18_fusion.md by `make chapter`;
# edit the chapter, not this file.
"""What a number becomes when it is stored and loaded."""

import numpy as np

from minijax.dtypes import short_name
from minijax.scalar_ops import in_registers


def same_bits(made, read):
    """Return whether what is stored as one dtype can be read as another."""
    if made == read:
        return True
    plain = all(in_registers(d) == d and d.kind != "b" for d in (made, read))
    return plain and made.itemsize == read.itemsize


def through_memory(k, x, made, read):
    """Return what a number becomes when it is stored in one buffer, read as another."""
    if made.dtype != in_registers(made.dtype):
        return _roundings[short_name(made.dtype)](k, x)
    return x if made.dtype == read.dtype else k.bitcast(x, read.dtype)


def _chopped(k, x, bits):
    """Return a float with so many bits less, rounded to even."""
    pattern = k.bitcast(x, np.dtype(np.uint32))
    odd = k.apply("and", k.shift_right(pattern, bits), 1)
    above = k.add(k.add(pattern, odd), 2 ** (bits - 1) - 1)
    return k.bitcast(k.apply("and", above, 2**32 - 2**bits), x.dtype)


def _as_bfloat16(k, x):
    return k.select(k.ne(x, x), x, _chopped(k, x, 16))


def _as_float16(k, x):
    usual, size = _chopped(k, x, 13), k.abs(x)
    large = k.select(k.ge(size, 65520), np.inf, k.abs(usual))
    small = k.sub(k.add(size, 0.5), 0.5)  # the last bit of 0.5 is that of all of these
    size = k.select(k.lt(size, 2**-14), small, large)
    return k.select(k.ne(x, x), x, k.copysign(size, x))


_roundings = {"bf16": _as_bfloat16, "f16": _as_float16}
