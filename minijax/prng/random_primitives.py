"""Generators as objects, and primitives of random numbers, under JAX's paths.

References: ``jax.extend.core.primitives``, ``jax.extend.random``.
"""

# Made from chapters/32_random_rest.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from minijax import lax
from minijax.core import Array
from minijax.numpy.array_creation import asarray
from minijax.numpy.joining import concatenate
from minijax.prng.keys import (
    check_implementation,
    random_bits,
    random_seed_impl,
    random_split_impl,
    random_unwrap_p,
    random_wrap_p,
    threefry2x32,
)
from minijax.prng.keys import prng_key as prng_key
from minijax.prng.keys import random_bits_p as random_bits_p
from minijax.prng.keys import random_fold_in_p as random_fold_in_p
from minijax.prng.keys import random_seed_p as random_seed_p
from minijax.prng.keys import random_split_p as random_split_p
from minijax.typing import ArrayLike

# Primitives of random numbers.


# The generator behind keys, as an object, and its cipher as a function of arrays.


class PRNGImpl(NamedTuple):
    """A generator: functions of words, with its name and its mark in types of keys.

    Attributes:
      key_shape: the shape of the words of a key.
      seed, split, random_bits, fold_in: from an integer to words; from words and a
        shape to words; from words, a width and a shape to bits; from words and a
        number to words.
      name, tag: ``threefry2x32``, ``fry``.
    """

    key_shape: tuple
    seed: Callable
    split: Callable
    random_bits: Callable
    fold_in: Callable
    name: str
    tag: str

    def __hash__(self):
        return hash(self.tag)

    def __str__(self):
        return self.tag


def _keys(words):
    return random_wrap_p.bind(words, impl="fry")


def _words(keys):
    return random_unwrap_p.bind(keys)


threefry_prng_impl = PRNGImpl(
    key_shape=(2,),
    seed=lambda seed: _words(random_seed_impl(seed)),
    split=lambda key, shape: _words(random_split_impl(_keys(key), shape)),
    random_bits=lambda key, bit_width, shape: random_bits(_keys(key), bit_width, shape),
    fold_in=lambda key, data: _words(
        random_fold_in_p.bind(_keys(key), asarray(data, np.uint32))
    ),
    name="threefry2x32",
    tag="fry",
)


def random_seed(seeds: int | ArrayLike, impl: Any) -> Array:
    """Return a key for each seed.

    Args:
      seeds: integers.
      impl: the generator, as an object or by name.

    Reference: ``jax.extend.random.random_seed``.
    """
    check_implementation(impl)
    return random_seed_impl(
        np.int64(seeds) if isinstance(seeds, int) else asarray(seeds)
    )


def seed_with_impl(impl: Any, seed: int | ArrayLike) -> Array:
    """Return a key, made of a seed; see `random_seed`.

    Reference: ``jax.extend.random.seed_with_impl``.
    """
    return random_seed(seed, impl)


_ON_ARRAYS = {
    "add": lax.add,
    "or": lax.bitwise_or,
    "shift_left": lax.shift_left,
    "shift_right": lax.shift_right_logical,
    "xor": lax.bitwise_xor,
}


def _by_lax(op, *operands):
    return _ON_ARRAYS[op](*[asarray(x, np.uint32) for x in operands])


def threefry_2x32(keypair: Any, count: Any) -> Array:
    """Encipher words: the first half of them together with the second half.

    Args:
      keypair: two words, of dtype uint32.
      count: array of words.

    Returns:
      An array of words of the shape of `count`.

    Raises:
      TypeError: for another dtype.

    Reference: ``jax.extend.random.threefry_2x32``.
    """
    words = [asarray(x) for x in (*keypair, count)]
    if {x.dtype for x in words} != {np.dtype("uint32")}:
        dtypes = [x.dtype for x in words]
        raise TypeError(f"threefry_2x32 requires uint32 arguments, got {dtypes}")
    flat = lax.reshape(words[2], (words[2].size,))
    odd = flat.size % 2
    flat = concatenate([flat, np.zeros(odd, np.uint32)]) if odd else flat
    half = flat.size // 2
    counter = [lax.slice(flat, (0,), (half,)), lax.slice(flat, (half,), (2 * half,))]
    key = [lax.broadcast(word, (half,)) for word in words[:2]]
    found = concatenate(threefry2x32(_by_lax, key, counter))
    return lax.reshape(lax.slice(found, (0,), (2 * half - odd,)), words[2].shape)
