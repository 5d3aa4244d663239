"""Keys as users make them, and what samplers ask of their arguments.

Reference: ``jax.random``.
"""

# Made from chapters/32_random.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from minijax.arrays.avals import typeof
from minijax.arrays.dtypes import check_dtype, issubdtype
from minijax.core import Array
from minijax.jitting.api import jit
from minijax.numpy.creation import asarray
from minijax.numpy.shapes import as_shape
from minijax.randomness.keys import (
    KEY,
    random_clone_p,
    random_fold_in_p,
    random_seed_p,
    random_split_p,
    random_unwrap_p,
    random_wrap_p,
)
from minijax.typing import ArrayLike

IMPLEMENTATIONS = "threefry2x32", "fry"
ELSEWHERE = "rbg", "unsafe_rbg", "philox2x32", "philox4x32", "threefry4x32"


def check_implementation(impl):
    """Raise unless a user has asked for the one generator that there is."""
    if impl is None or str(impl) in IMPLEMENTATIONS or impl == KEY:
        return
    if impl in ELSEWHERE:
        raise NotImplementedError(
            f"The generator {impl!r} is not here: its bits come from the compiler of "
            "JAX or a cipher of its own. minijax.random has 'threefry2x32'."
        )
    raise ValueError(
        f'unrecognized PRNG implementation "{impl}". Did you mean "threefry2x32"?'
    )


def check_one_key(name, key):
    """Return a key of any form as an array of keys without axes, and if it was raw."""
    keys, raw = as_keys(key)
    if typeof(keys).ndim:
        raise ValueError(
            f"{name} accepts a single key, but was given a key array of shape "
            f"{typeof(key).shape} != (). Use minijax.vmap for batching."
        )
    return keys, raw


def as_keys(keys):
    """Return an array of keys; and whether it was given as an array of words."""
    if isinstance(keys, Array) and keys.aval.dtype == KEY:
        return keys, False
    if not hasattr(keys, "dtype") or not hasattr(keys, "shape"):
        raise TypeError(
            "invalid PRNG key data: expected key_data to have ndim, shape, and dtype "
            f"attributes. Got {keys}"
        )
    return random_wrap_p.bind(asarray(keys), impl="fry")[0], True


def _key_data(keys):
    return random_unwrap_p.bind(keys)[0]


def _made(name, seed):
    aval = typeof(seed) if not isinstance(seed, int) else None
    if aval is not None and aval.dtype == KEY:
        raise TypeError(f"{name} accepts a scalar seed, but was given a PRNG key.")
    if aval is not None and aval.ndim:
        raise TypeError(
            f"{name} accepts a scalar seed, but was given an array of shape "
            f"{aval.shape} != (). Use minijax.vmap for batching"
        )
    return seed_key(asarray(np.int64(seed)) if aval is None else seed)


def sampled_dtype(name, dtype, default, kind, words):
    """Return the dtype that a sampler was asked for.

    Raises:
      ValueError: if it is not of the kind that the sampler makes.
    """
    dtype = check_dtype(default if dtype is None else dtype, name)
    if not issubdtype(dtype, kind):
        raise ValueError(f"dtype argument to `{name}` must be {words}, got {dtype}")
    return dtype


def shape_asked(shape):
    """Return the shape that a sampler was asked for, as a tuple.

    Raises:
      TypeError: if a size is no integer, or negative.
    """
    sizes = as_shape(shape)
    if any(size < 0 for size in sizes):
        raise TypeError(
            "Only non-negative indices are allowed when broadcasting static shapes, "
            f"but got shape {sizes}."
        )
    return sizes


def float_dtype(name, dtype):
    """Return the dtype of a sampler of floats."""
    return sampled_dtype(name, dtype, float, np.floating, "a float dtype")


def _like(keys, raw):
    return _key_data(keys) if raw else keys


@partial(jit, inline=True)
def seed_key(seed):
    """Return the key of a seed."""
    return random_seed_p.bind(seed, impl="fry")[0]


@partial(jit, inline=True)
def fold_key(keys, data):
    """Return keys with a number stirred into each."""
    return random_fold_in_p.bind(keys, data)[0]


@partial(jit, inline=True, static_argnums=1)
def split_keys(keys, shape):
    """Return, for each key, an array of new ones."""
    return random_split_p.bind(keys, shape=shape)[0]


def split(key: ArrayLike, num: int | Sequence[int] = 2) -> Array:
    """Return new keys, made of one.

    Args:
      key: a key, not to be used again.
      num: how many, or the shape of the array of new keys.

    Reference: ``jax.random.split``.
    """
    key, raw = check_one_key("split", key)
    shape = shape_asked(tuple(num) if isinstance(num, Sequence) else num)
    return _like(split_keys(key, shape), raw)


def key(seed: int | ArrayLike, *, impl: str | None = None, dtype: Any = None) -> Array:
    """Return a key, made of a seed.

    Args:
      seed: an integer; equal seeds make equal keys.
      impl, dtype: the name of the generator, or its dtype: ``"threefry2x32"``.

    Raises:
      TypeError: if the seed is not one integer.
      ValueError: if there is no such generator.

    Reference: ``jax.random.key``.
    """
    if impl is not None and dtype is not None:
        raise ValueError("Cannot specify both `impl` and `dtype` arguments to key")
    check_implementation(dtype if impl is None else impl)
    return _made("key", seed)


def fold_in(key: ArrayLike, data: ArrayLike) -> Array:
    """Return a new key, made of a key and a number.

    Args:
      key: a key.
      data: an integer, such as the number of a step, taken modulo 2**32.

    Reference: ``jax.random.fold_in``.
    """
    key, raw = check_one_key("fold_in", key)
    if np.ndim(data):
        raise TypeError(
            "fold_in accepts a scalar, but was given an array of shape "
            f"{np.shape(data)} != (). Use minijax.vmap for batching."
        )
    return _like(fold_key(key, asarray(data, np.uint32)), raw)


def PRNGKey(seed: int | ArrayLike, *, impl: str | None = None) -> Array:
    """Return a key as an array of two words; see `key`.

    Reference: ``jax.random.PRNGKey``.
    """
    check_implementation(impl)
    return _key_data(_made("PRNGKey", seed))


def clone(key: ArrayLike) -> Array:
    """Return the same key, to be used once more on purpose.

    Reference: ``jax.random.clone``.
    """
    keys, raw = as_keys(key)
    return _like(random_clone_p.bind(keys)[0], raw)


def key_data(keys: ArrayLike) -> Array:
    """Return the words of keys: uint32, with one axis more, of size 2.

    Reference: ``jax.random.key_data``.
    """
    return _key_data(as_keys(keys)[0])


def wrap_key_data(
    key_bits_array: ArrayLike, *, impl: str | None = None, dtype: Any = None
) -> Array:
    """Return keys, made of words as `key_data` returns them.

    Reference: ``jax.random.wrap_key_data``.
    """
    if impl is not None and dtype is not None:
        raise ValueError(f"Give impl or dtype, not both: {impl!r} and {dtype}.")
    check_implementation(dtype if impl is None else impl)
    return random_wrap_p.bind(asarray(key_bits_array), impl="fry")[0]


def key_impl(keys: ArrayLike) -> str:
    """Return the name of the generator that keys belong to.

    Reference: ``jax.random.key_impl``.
    """
    as_keys(keys)
    return "threefry2x32"
