"""Shuffled arrays, and draws from arrays.

Reference: ``jax.random``.
"""

# Made from chapters/32_random_rest.md by `make chapter`;
# edit the chapter, not this file.

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.arrays.checks import as_integer, canonicalize_axis, refuse_sharding
from minijax.arrays.dtypes import issubdtype
from minijax.core import Array
from minijax.distributions.choices import randint
from minijax.distributions.inversion import gumbel
from minijax.jitting.api import jit
from minijax.lax.promotion import promote_dtypes_inexact
from minijax.numpy.shapes import arraylike, as_shape
from minijax.randomness.making_keys import check_one_key, split_keys
from minijax.randomness.uniform import bits_of_key, uniform
from minijax.sorting.largest import largest_first
from minijax.sorting.sorted_arrays import rearranged
from minijax.typing import ArrayLike


def _rounds(size):
    return int(np.ceil(3 * np.log(max(1, size)) / np.log(np.iinfo(np.uint32).max)))


@partial(jit, static_argnums=2)
def _shuffle(key, x, axis):
    for _ in range(_rounds(x.size)):
        key, subkey = split_keys(key, (2,))
        _, x = lax.sort_key_val(bits_of_key(subkey, 32, x.shape), x, axis)
    return x


@partial(jit, static_argnums=2)
def _shuffled_rows(key, x, axis):
    places = _shuffle(key, jnp.arange(x.shape[axis]), 0)
    return rearranged(places, x, axis)


def permutation(
    key: ArrayLike,
    x: int | ArrayLike,
    axis: int = 0,
    independent: bool = False,
    *,
    out_sharding: Any = None,
) -> Array:
    """Return the numbers below an integer, or an array, shuffled along an axis.

    Args:
      key: a key.
      x: an integer that is known while tracing, or an array.
      axis: along which.
      independent: whether each row along the axis is shuffled by itself.

    Reference: ``jax.random.permutation``.
    """
    refuse_sharding("permutation", out_sharding)
    key, _ = check_one_key("permutation", key)
    whole, x = x, arraylike("permutation", x)
    axis = canonicalize_axis(axis, x.ndim or 1)
    if not x.ndim:
        if not issubdtype(x.dtype, np.integer):
            raise TypeError("x must be an integer or at least 1-dimensional")
        return _shuffle(key, jnp.arange(as_integer(whole, "a length")), axis)
    shuffle = _shuffle if independent or x.ndim == 1 else _shuffled_rows
    return shuffle(key, x, axis)


def choice(
    key: ArrayLike,
    a: int | ArrayLike,
    shape: Any = (),
    replace: bool = True,
    p: ArrayLike | None = None,
    axis: int = 0,
    mode: str | None = None,
) -> Array:
    """Return numbers below an integer, or elements of an array, that are drawn.

    Args:
      key: a key.
      a: an integer that is known while tracing, or an array.
      shape: how many.
      replace: whether one can be drawn again.
      p: chances; by default they are equal.
      axis: along which elements of an array are drawn.
      mode: as in `gumbel`.

    Raises:
      ValueError: if more are drawn than there are.

    Reference: ``jax.random.choice``.
    """
    key, _ = check_one_key("choice", key)
    if not isinstance(shape, Sequence):
        raise TypeError(
            f"shape argument of jax.random.choice must be a sequence, got {shape}"
        )
    shape, array = as_shape(shape), arraylike("choice", a)
    axis = canonicalize_axis(axis, array.ndim) if array.ndim else 0
    whole = array.shape[axis] if array.ndim else as_integer(a, "a length")
    size, count = whole, math.prod(shape)
    if not count:
        return jnp.zeros(shape, array.dtype)
    _check_draws(size, count, replace)
    places = array if array.ndim else size
    if replace:
        draws = _drawn(key, size, shape, p)
        return jnp.take(array, draws, axis=axis) if array.ndim else draws
    if p is not None:
        result = _weighted(key, places, size, shape, p, axis, mode)
    else:
        result = permutation(key, places, axis)
        result = lax.slice_in_dim(result, 0, count, axis=axis)
    rest = array.shape[:axis], array.shape[axis + 1 :]
    return jnp.reshape(result, (*rest[0], *shape, *rest[1]))


def _check_draws(size, count, replace):
    if size <= 0:
        raise ValueError("a must be greater than 0 unless no samples are taken")
    if not replace and count > size:
        raise ValueError(
            f"Cannot take a larger sample (size {count}) than population (size {size}) "
            "when 'replace=False'"
        )


def _drawn(key, size, shape, p):
    """Draw places that may repeat: each alike, or by the running total of chances."""
    if p is None:
        return randint(key, shape, 0, size)
    total = jnp.cumsum(_chances(p, size))
    draws = total[-1] * (1 - uniform(key, shape, dtype=total.dtype))
    return jnp.searchsorted(total, draws).astype(int)


def _chances(p, size):
    """Return chances as floats, one for each of so many."""
    [p] = promote_dtypes_inexact(arraylike("choice", p))
    if p.shape != (size,):
        raise ValueError(
            "p must be None or a 1D vector with the same size as a.shape[axis]. p has "
            f"shape {p.shape} and a.shape[axis] is {size}."
        )
    return p


def _weighted(key, places, size, shape, p, axis, mode):
    """Draw without repetition, with chances: by Gumbel numbers."""
    p = _chances(p, size)
    sums = gumbel(key, (size,), p.dtype, mode) + jnp.log(p)
    x = jnp.arange(size) if isinstance(places, int) else places
    words = lax.broadcast_in_dim(largest_first(sums), x.shape, [axis])
    _, x = lax.sort((words, x), dimension=axis)
    return lax.slice_in_dim(x, 0, math.prod(shape), axis=axis)
