"""Bits, and what is one step from them: floats between two ends.

Reference: ``jax.random``.
"""

# Made from chapters/32_random.md by `make chapter`;
# edit the chapter, not this file.

from functools import partial
from typing import Any

import numpy as np

from minijax import lax
from minijax.arrays.checks import refuse_sharding
from minijax.arrays.dtypes import canonicalize_dtype
from minijax.core import Array
from minijax.jitting.api import jit
from minijax.numpy.scalar_types import finfo
from minijax.randomness.keys import random_bits_p
from minijax.randomness.making_keys import (
    check_one_key,
    float_dtype,
    sampled_dtype,
    shape_asked,
)
from minijax.typing import ArrayLike


@partial(jit, inline=True, static_argnums=(1, 2))
def bits_of_key(key, bit_width, shape):
    """Return unsigned integers, each bit of which is random."""
    return random_bits_p.bind(key, bit_width=bit_width, shape=shape)[0]


def unit_floats(key, shape, dtype):
    """Return floats in [0, 1): those in [1, 2) with a random mantissa, less 1."""
    width, mantissa = dtype.itemsize * 8, finfo(dtype).nmant
    random = bits_of_key(key, 8 if mantissa < 8 else width, shape)
    random = lax.convert_element_type(random, f"uint{width}")
    places = (8 if mantissa < 8 else width) - mantissa
    one = np.ones((), dtype).view(random.dtype)
    random = lax.shift_right_logical(random, random.dtype.type(places)) | one
    return lax.bitcast_convert_type(random, dtype) - dtype.type(1)


def bits(
    key: ArrayLike, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None
) -> Array:
    """Return unsigned integers of equal chance.

    Reference: ``jax.random.bits``.
    """
    refuse_sharding("bits", out_sharding)
    key, _ = check_one_key("bits", key)
    words, default = "an unsigned int dtype", canonicalize_dtype(np.uint64)
    dtype = sampled_dtype("bits", dtype, default, np.unsignedinteger, words)
    return bits_of_key(key, dtype.itemsize * 8, shape_asked(shape))


def uniform(
    key: ArrayLike,
    shape: Any = (),
    dtype: Any = None,
    minval: ArrayLike = 0.0,
    maxval: ArrayLike = 1.0,
    *,
    out_sharding: Any = None,
) -> Array:
    """Return floats of equal chance, from `minval` up to, and without, `maxval`.

    Reference: ``jax.random.uniform``.
    """
    refuse_sharding("uniform", out_sharding)
    key, _ = check_one_key("uniform", key)
    dtype = float_dtype("uniform", dtype)
    return _uniform(key, minval, maxval, shape_asked(shape), dtype)


@partial(jit, static_argnums=(3, 4))
def _uniform(key, minval, maxval, shape, dtype):
    minval, maxval = (_as_rank(x, dtype, len(shape)) for x in (minval, maxval))
    floats = unit_floats(key, shape, dtype)
    return lax.max(minval, lax.reshape(floats * (maxval - minval) + minval, shape))


def _as_rank(x, dtype, ndim):
    return lax.broadcast_to_rank(lax.convert_element_type(x, dtype), ndim)
