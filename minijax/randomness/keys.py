"""Keys: arrays of an extended dtype, and the primitives that make and use them.

A key is two words of 32 bits. In memory an array of keys is an array of pairs.

Reference: ``jax._src.random.prng``.
"""

# Made from chapters/32_random.md by `make chapter`;
# edit the chapter, not this file.

import math

import numpy as np

from minijax.arrays.array import primitive_rules
from minijax.arrays.avals import ShapedArray
from minijax.arrays.checks import broadcast_strictly
from minijax.arrays.dtypes import EXTENDED, ExtendedDType, extended, kind_of
from minijax.core import Primitive
from minijax.randomness.threefry import by_numpy, numbered, threefry2x32


class prng_key(extended):  # type: ignore[misc]  # as np.record is one
    """The kind of dtypes of keys: ``jnp.issubdtype(x.dtype, prng_key)``.

    Reference: ``jax.dtypes.prng_key``.
    """


KEY = ExtendedDType("key<fry>", np.dtype((prng_key, [("fry", np.uint32, 2)])))
EXTENDED[KEY.dtype] = KEY


def words_of(keys):
    """Return the two words of each key of a buffer."""
    words = keys["fry"]
    return words[..., 0], words[..., 1]


def keys_of(first, second):
    """Return a buffer of keys, made of two words each."""
    keys = np.empty(np.shape(first), KEY)
    keys["fry"][..., 0], keys["fry"][..., 1] = first, second
    return keys


random_seed_p = Primitive("random_seed")
random_wrap_p = Primitive("random_wrap")
random_unwrap_p = Primitive("random_unwrap")
random_split_p = Primitive("random_split")
random_fold_in_p = Primitive("random_fold_in")
random_bits_p = Primitive("random_bits")
random_clone_p = Primitive("random_clone")


def aval_of_keys(shape):
    """Return the abstract value of an array of keys."""
    return ShapedArray(shape, KEY)


def check_keys(name, keys):
    """Raise a TypeError unless an operand is an array of keys."""
    if keys.dtype != KEY:
        raise TypeError(f"{name} takes keys, made by minijax.random.key, not {keys}.")


def _split_shape(keys, shape):
    check_keys("random_split", keys)
    return [aval_of_keys((*keys.shape, *shape))]


def _new_keys(xp, keys, shape):
    return keys_of(*enciphered(keys, shape))


def enciphered(keys, shape):
    """Return two words for each place in an array of this shape, and for each key."""
    counter = [half.reshape(shape) for half in numbered(math.prod(shape))]
    spread = (..., *[None] * len(shape))
    return threefry2x32(by_numpy, [word[spread] for word in words_of(keys)], counter)


primitive_rules(random_split_p, _split_shape, _new_keys)


def _bits_shape(keys, bit_width, shape):
    check_keys("random_bits", keys)
    return [ShapedArray((*keys.shape, *shape), f"uint{bit_width}")]


def _random_bits(xp, keys, bit_width, shape):
    first, second = enciphered(keys, shape)
    if bit_width == 64:
        return first.astype(np.uint64) << np.uint64(32) | second
    return (first ^ second).astype(f"uint{bit_width}")


primitive_rules(random_bits_p, _bits_shape, _random_bits)


def _seed_shape(seeds, impl):
    if kind_of(seeds.dtype) not in "iu":
        raise TypeError(f"PRNG key seed must be an integer; got {seeds}.")
    return [aval_of_keys(seeds.shape)]


def _seeded(xp, seeds, impl):
    wide = np.asarray(seeds).astype(np.uint64)
    high = wide >> np.uint64(32) if seeds.dtype.itemsize == 8 else 0 * wide
    return keys_of(high.astype(np.uint32), wide.astype(np.uint32))


def _fold_in_shape(keys, data):
    check_keys("random_fold_in", keys)
    return [aval_of_keys(broadcast_strictly("fold_in", [keys.shape, data.shape]))]


def _folded(xp, keys, data):
    counter = np.zeros_like(data), data
    return keys_of(*threefry2x32(by_numpy, words_of(keys), counter))


primitive_rules(random_seed_p, _seed_shape, _seeded)
primitive_rules(random_fold_in_p, _fold_in_shape, _folded)


def _wrap_shape(words, impl):
    if words.dtype != np.uint32 or words.shape[-1:] != (2,):
        raise TypeError(
            "invalid PRNG key data: expected key_data.shape to end with (2,) and its "
            f"dtype to be uint32; got shape={words.shape}, dtype={words.dtype}"
        )
    return [aval_of_keys(words.shape[:-1])]


def _unwrap_shape(keys):
    check_keys("random_unwrap", keys)
    return [ShapedArray((*keys.shape, 2), np.uint32)]


def _clone_shape(keys):
    check_keys("random_clone", keys)
    return [keys]


primitive_rules(
    random_wrap_p, _wrap_shape, lambda xp, x, impl: keys_of(x[..., 0], x[..., 1])
)
primitive_rules(random_unwrap_p, _unwrap_shape, lambda xp, keys: keys["fry"])
primitive_rules(random_clone_p, _clone_shape, lambda xp, keys: keys)
