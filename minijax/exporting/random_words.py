"""StableHLO of keys: each is a number of 64 bits, its two words together."""

# Made from chapters/40_export_rest.md by `make chapter`;
# edit the chapter, not this file.

import math

import numpy as np

from minijax import lax
from minijax.arrays.avals import ShapedArray
from minijax.exporting.programs import called, stablehlo_rules
from minijax.randomness.keys import (
    random_bits_p,
    random_clone_p,
    random_fold_in_p,
    random_seed_p,
    random_split_p,
    random_unwrap_p,
    random_wrap_p,
)
from minijax.randomness.threefry import threefry2x32

WORD = ShapedArray((), np.dtype(np.uint32))
BY_LAX = {
    "add": lax.add, "xor": lax.bitwise_xor, "or": lax.bitwise_or,
    "shift_left": lax.shift_left, "shift_right": lax.shift_right_logical,
}  # fmt: skip


def by_lax(op, *operands):
    """Do a scalar operation to arrays of words; numbers become arrays like them."""
    like = next(x for x in operands if not isinstance(x, int))
    return BY_LAX[op](
        *[lax.full_like(like, x) if isinstance(x, int) else x for x in operands]
    )


def words_of(keys):
    """Return the two words of each key, arrays of 32 bits."""
    return [lax.index_in_dim(keys, i, keys.ndim - 1, keepdims=False) for i in (0, 1)]


def keys_of(first, second):
    """Return keys as arrays of words, from their first and their second ones."""
    return lax.concatenate(
        [lax.expand_dims(x, [x.ndim]) for x in (first, second)], first.ndim
    )


def enciphered(keys, shape):
    """Return two words for each place in an array of this shape, and for each key."""
    size, rank = math.prod(shape), keys.ndim - 1
    whole = (*keys.shape[:-1], *shape)
    low = lax.reshape(lax.iota(np.uint32, size), shape)
    counter = [
        lax.full(whole, 0, np.uint32),
        lax.broadcast_in_dim(low, whole, range(rank, len(whole))),
    ]
    key = [lax.broadcast_in_dim(word, whole, range(rank)) for word in words_of(keys)]
    return threefry2x32(by_lax, key, counter)


def _bits(keys, bit_width, shape):
    first, second = enciphered(keys, shape)
    if bit_width == 64:
        wide = [lax.convert_element_type(x, np.uint64) for x in (first, second)]
        return lax.bitwise_or(
            lax.shift_left(wide[0], lax.full_like(wide[0], 32)), wide[1]
        )
    return lax.convert_element_type(lax.bitwise_xor(first, second), f"uint{bit_width}")


def _fold_in(keys, data):
    shape = np.broadcast_shapes(keys.shape[:-1], data.shape)
    key = [
        lax.broadcast_in_dim(x, shape, range(len(shape) - x.ndim, len(shape)))
        for x in words_of(keys)
    ]
    low = lax.broadcast_in_dim(data, shape, range(len(shape) - data.ndim, len(shape)))
    return keys_of(*threefry2x32(by_lax, key, [lax.full_like(low, 0), low]))


def _seed(seeds, impl):
    low = lax.convert_element_type(seeds, np.uint32)
    high = lax.full_like(low, 0)
    if seeds.dtype.itemsize == 8:
        high = lax.convert_element_type(
            lax.shift_right_logical(seeds, lax.full_like(seeds, 32)), np.uint32
        )
    return keys_of(high, low)


def opened(block, keys):
    """Return keys as words, with an axis of two more."""
    aval = keys.aval.update(shape=(*keys.aval.shape, 2), dtype=np.dtype(np.uint32))
    return block.op("bitcast_convert", [keys], aval)


def closed(block, words, aval):
    """Return words as keys."""
    return block.op("bitcast_convert", [words], aval)


def of_keys(f, makes_keys=True):
    """Return the rule of a primitive whose first operand is an array of keys."""

    def rule(block, eqn, keys, *operands):
        [result] = called(
            block, lambda *xs: f(*xs, **eqn.params), opened(block, keys), *operands
        )
        return closed(block, result, eqn.outvars[0].aval) if makes_keys else result

    return rule


def _seeded(block, eqn, seeds):
    [words] = called(block, lambda x: _seed(x, **eqn.params), seeds)
    return closed(block, words, eqn.outvars[0].aval)


stablehlo_rules[random_bits_p] = of_keys(_bits, makes_keys=False)
stablehlo_rules[random_split_p] = of_keys(
    lambda keys, shape: keys_of(*enciphered(keys, shape))
)
stablehlo_rules[random_fold_in_p] = of_keys(_fold_in)
stablehlo_rules[random_seed_p] = _seeded
stablehlo_rules[random_unwrap_p] = lambda block, eqn, keys: opened(block, keys)
stablehlo_rules[random_wrap_p] = lambda block, eqn, words: closed(
    block, words, eqn.outvars[0].aval
)
stablehlo_rules[random_clone_p] = lambda block, eqn, keys: keys
