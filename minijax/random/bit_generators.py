"""Counter-based generators with XLA's layouts: Threefry-2x32 and Philox-4x32-10.

Reference: ``jax.lax.rng_bit_generator``, ``jax.lax.rng_uniform``.
Source: Salmon, Moraes, Dror and Shaw, *Parallel random numbers: as easy as 1, 2, 3*
(SC 2011).
"""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

import enum
import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.arrays.array import typeof
from minijax.arrays.dtypes import canonicalize_dtype
from minijax.arrays.numerics import FLOAT_KINDS, INT_KINDS, check_kind
from minijax.arrays.out_sharding import place_result
from minijax.callbacks.callback import io_callback
from minijax.core import Array
from minijax.custom_derivatives.custom_vmap import custom_vmap
from minijax.jaxprs.types import ShapeDtypeStruct
from minijax.jitting.api import jit
from minijax.lax.composites import mulhi
from minijax.numpy.shapes import canonicalize_shape
from minijax.prng.keys import threefry2x32
from minijax.prng.random_primitives import (
    PRNGImpl,
    register_generator,
    threefry_prng_impl,
)
from minijax.typing import ArrayLike

_WORD = np.uint32
_MULTIPLIERS = _WORD(0xD2511F53), _WORD(0xCD9E8D57)
_WEYL = _WORD(0x9E3779B9), _WORD(0xBB67AE85)  # what is added to the key in each round


class RandomAlgorithm(enum.IntEnum):
    """Which cipher makes the bits; the default is Philox, as on XLA's CPU.

    Reference: ``jax.lax.RandomAlgorithm``.
    """

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2

    def __str__(self):
        return self.name


def rng_bit_generator(
    key: ArrayLike,
    shape: Sequence[int],
    dtype: Any = np.uint32,
    algorithm: RandomAlgorithm = RandomAlgorithm.RNG_DEFAULT,
    *,
    out_sharding: Any = None,
) -> tuple[Array, Array]:
    """Return the key for the next call, and unsigned integers of equal chance.

    Args:
      key: four words of uint32, or two of uint64: a key and a counter.
      shape: of the integers.
      dtype: of the integers; those of 8 and 16 bits are the lowest bits of words.
      algorithm: a `RandomAlgorithm`.
      out_sharding: where the result lies on a mesh.

    Raises:
      TypeError: for a key of another type, or another dtype.

    Reference: ``jax.lax.rng_bit_generator``.
    """
    dtype, shape = canonicalize_dtype(dtype), canonicalize_shape(shape)
    if dtype.kind != "u":
        raise TypeError(f"rng_bit_generator: unsupported dtype {dtype}")
    key = jnp.asarray(key)
    if (key.shape, key.dtype.name) not in (((4,), "uint32"), ((2,), "uint64")):
        raise TypeError(
            "rng_bit_generator takes a key of type uint32[4] or uint64[2], got "
            f"{typeof(key)}."
        )
    after, bits = _bits(key, shape, dtype, RandomAlgorithm(algorithm))
    return after, place_result("rng_bit_generator", bits, out_sharding)


@partial(jit, static_argnums=(1, 2, 3))
def _bits(key, shape, dtype, algorithm):
    @custom_vmap
    def draw(key):
        return _drawn_bits(key, shape, dtype, algorithm)

    @draw.def_vmap
    def draw_for_all(size, mapped, keys):
        if not size:
            return (keys, jnp.zeros((0, *shape), dtype)), (True, True)
        after, bits = _bits(keys[0], (size, *shape), dtype, algorithm)
        return (keys.at[0].set(after), bits), (True, True)

    return draw(key)


def _drawn_bits(key, shape, dtype, algorithm):
    words = lax.bitcast_convert_type(key, _WORD).reshape(4)
    blocks = (
        _threefry_blocks
        if algorithm is RandomAlgorithm.RNG_THREE_FRY
        else _philox_blocks
    )
    count, bits = blocks(words, shape, dtype.itemsize == 8)
    counter = jnp.stack(_plus(words[2:], _WORD(count)))
    after = jnp.concatenate([words[:2], counter])
    if key.dtype != _WORD:
        after = lax.bitcast_convert_type(after.reshape(2, 2), key.dtype)
    return after, bits.astype(dtype)


def _plus(words, number):
    """Return an integer of several words, the lowest first, plus one of 32 bits."""
    carried = []
    for word in words:
        total = word + number
        carried.append(total)
        number = (total < word).astype(_WORD)
    return carried


def _wide(low, high):
    """Return integers of 64 bits, from their halves."""
    return low.astype(np.uint64) | high.astype(np.uint64) << np.uint64(32)


_BY_LAX = {
    "add": lax.add, "xor": lax.bitwise_xor, "or": lax.bitwise_or,
    "shift_left": lax.shift_left, "shift_right": lax.shift_right_logical,
}  # fmt: skip


def _threefry_blocks(words, shape, wide):
    """Return how many counters are used up, and integers of a shape.

    The two words of a block stand next to each other along the first axis of even
    size, or along the longest one if there is none; in 64 bits they are one number.
    """
    axis, half = _axis_of_pairs(shape), list(shape)
    if shape and not wide:
        half[axis] = -(-shape[axis] // 2)
    count = math.prod(half)
    counter = _plus(words[2:], jnp.arange(count, dtype=_WORD).reshape(half))
    pair = threefry2x32(lambda op, *xs: _BY_LAX[op](*xs), list(words[:2]), counter)
    if wide:
        return count, _wide(*pair)
    if not shape:
        return count, pair[0]
    both = jnp.stack(pair, axis + 1)
    double = (*half[:axis], 2 * half[axis], *half[axis + 1 :])
    return count, lax.slice_in_dim(both.reshape(double), 0, shape[axis], axis=axis)


def _axis_of_pairs(shape):
    even = [axis for axis, size in enumerate(shape) if size % 2 == 0]
    return even[0] if even else max(range(len(shape)), key=shape.__getitem__, default=0)


def _philox_blocks(words, shape, wide):
    """Return how many counters are used up, and integers of a shape.

    The counter of 64 bits is the lower half of one of 128; the key is the upper half.
    The four words of a block follow each other; in 64 bits they are two numbers.
    """
    size = math.prod(shape)
    count = -(-size * (1 + wide) // 4)
    counter = [*words[2:], *words[:2]]
    block = _plus(counter, jnp.arange(count, dtype=_WORD))
    block = _philox(list(words[:2]), [jnp.broadcast_to(x, (count,)) for x in block])
    if wide:
        block = [_wide(*block[:2]), _wide(*block[2:])]
    return count, jnp.stack(block, 1).reshape(-1)[:size].reshape(shape)


def _philox(key, block):
    """Encipher four words under two, in ten rounds."""
    for _ in range(10):
        low = [x * factor for x, factor in zip(block[::2], _MULTIPLIERS)]
        high = [mulhi(x, factor) for x, factor in zip(block[::2], _MULTIPLIERS)]
        first, third = high[1] ^ block[1] ^ key[0], high[0] ^ block[3] ^ key[1]
        block = first, low[1], third, low[0]
        key = [word + step for word, step in zip(key, _WEYL)]
    return block


def rng_uniform(a: ArrayLike, b: ArrayLike, shape: Sequence[int]) -> Array:
    """Return numbers of equal chance from `a` up to, and without, `b`, and no key.

    Args:
      a, b: real numbers of one dtype.
      shape: of the result.

    Raises:
      ValueError: if they differ in dtype, or have axes.
      TypeError: if they are not real.

    Reference: ``jax.lax.rng_uniform``.
    """
    low, high = typeof(a), typeof(b)
    if low.dtype != high.dtype:
        raise ValueError(
            "Arguments to rng_uniform must have identical dtypes, got "
            f"{low.dtype} and {high.dtype}."
        )
    if low.shape or high.shape:
        raise ValueError(
            "Arguments to rng_uniform must be scalars; got shapes "
            f"{low.shape} and {high.shape}."
        )
    check_kind("rng_uniform", INT_KINDS + FLOAT_KINDS, [low, high])
    like = ShapeDtypeStruct(canonicalize_shape(shape), low.dtype)
    return io_callback(partial(_drawn, like.shape), like, a, b)


_generator = np.random.default_rng()


def _drawn(shape, a, b):
    """Draw numbers on the host, where the generator has its state."""
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype.kind in "iu":
        return _generator.integers(a, b, shape, dtype=a.dtype)
    x = (a + (b - a) * _generator.random(shape)).astype(a.dtype)
    return np.minimum(x, np.nextafter(b, a))


def _rbg_seed(seed):
    return jnp.tile(threefry_prng_impl.seed(seed), 2)


def _rbg_split(key, shape):
    halves = [threefry_prng_impl.split(half, shape) for half in key.reshape(2, 2)]
    return jnp.concatenate(halves, -1)


def _rbg_fold_in(key, data):
    halves = [threefry_prng_impl.fold_in(half, data) for half in key.reshape(2, 2)]
    return jnp.concatenate(halves)


def _rbg_bits(key, bit_width, shape):
    return rng_bit_generator(key, shape, f"uint{bit_width}")[1]


def _unsafe_split(key, shape):
    """Return the last keys of chains of ten draws, which stand for a hash."""
    _, words = rng_bit_generator(key, (10 * math.prod(shape), 4))
    return words[::10].reshape(*shape, 4)


def _unsafe_fold_in(key, data):
    _, words = rng_bit_generator(_rbg_seed(data), (10, 4))
    return key ^ words[-1]


rbg_prng_impl = PRNGImpl(
    (4,), _rbg_seed, _rbg_split, _rbg_bits, _rbg_fold_in, "rbg", "rbg"
)
unsafe_rbg_prng_impl = PRNGImpl(
    (4,), _rbg_seed, _unsafe_split, _rbg_bits, _unsafe_fold_in, "unsafe_rbg", "urbg"
)
register_generator(rbg_prng_impl)
register_generator(unsafe_rbg_prng_impl)
