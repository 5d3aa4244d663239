"""Normal floats: uniform ones, sent through the inverse of the error function.

Reference: ``jax.random.normal``.
"""

# Made from chapters/32_random.md by `make chapter`;
# edit the chapter, not this file.

from functools import partial
from typing import Any

import numpy as np

from minijax import lax
from minijax.arrays.checks import refuse_sharding
from minijax.core import Array
from minijax.jitting.api import jit
from minijax.randomness.making_keys import (
    check_one_key,
    sampled_dtype,
    shape_asked,
    split_keys,
)
from minijax.randomness.uniform import uniform
from minijax.typing import ArrayLike


def normal(
    key: ArrayLike, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None
) -> Array:
    """Return floats or complex numbers of mean 0 and variance 1.

    Reference: ``jax.random.normal``.
    """
    refuse_sharding("normal", out_sharding)
    key, _ = check_one_key("normal", key)
    words = "a float or complex dtype"
    dtype = sampled_dtype("normal", dtype, float, np.inexact, words)
    return _normal(key, shape_asked(shape), dtype)


@partial(jit, static_argnums=(1, 2))
def _normal(key, shape, dtype):
    if dtype.kind != "c":
        return _normal_real(key, shape, dtype)
    real, imag = split_keys(key, (2,))
    part = dtype.type().real.dtype
    real, imag = (_normal_real(k, shape, part).astype(dtype) for k in (real, imag))
    return (real + 1j * imag) / dtype.type(np.sqrt(2))


@partial(jit, static_argnums=(1, 2))
def _normal_real(key, shape, dtype):
    above = np.nextafter(dtype.type(-1), dtype.type(0))
    u = uniform(key, shape, dtype, above, dtype.type(1))
    return lax.mul(dtype.type(np.sqrt(2)), lax.erf_inv(u))
