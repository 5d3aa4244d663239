"""Words in the order of numbers: unsigned integers that compare as the numbers do.

Reference: ``_canonicalize_float_for_sort`` in ``jax._src.lax.lax``.
"""

# Made from chapters/29_sorting.md by `make chapter`;
# edit the chapter, not this file.

import numpy as np

from minijax import lax
from minijax.arrays.avals import typeof
from minijax.arrays.dtypes import kind_of


def in_total_order(x):
    """Return unsigned words in the order of bools, integers, or the bits of floats."""
    dtype = typeof(x).dtype
    if dtype.kind == "b":
        return lax.convert_element_type(x, np.uint8)
    if dtype.kind == "u":
        return x
    word = np.dtype(f"uint{8 * dtype.itemsize}")
    [bits] = lax.bitcast_convert_type_p.bind(x, new_dtype=word)
    top = lax.full_like(bits, 1 << (8 * dtype.itemsize - 1))
    if dtype.kind == "i":
        return lax.bitwise_xor(bits, top)
    negative = lax.ge(bits, top)
    return lax.select(negative, lax.bitwise_not(bits), lax.bitwise_or(bits, top))


def one_of_equals(x):
    """Return floats with one zero and one NaN in place of all of them."""
    if kind_of(typeof(x).dtype) not in "hf":
        return x
    x = lax.select(lax.eq(x, lax.full_like(x, 0)), lax.full_like(x, 0), x)
    return lax.select(lax.ne(x, x), lax.full_like(x, np.nan), x)


def words_of_key(x):
    """Return the words of a key of a sort: one array, or two for complex numbers."""
    complex_ = typeof(x).dtype.kind == "c"
    parts = [lax.real(x), lax.imag(x)] if complex_ else [x]
    return [in_total_order(one_of_equals(part)) for part in parts]
