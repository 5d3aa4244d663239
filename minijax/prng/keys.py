"""Random keys: threefry, the dtype of keys, their primitives, uniform and normal.

Source: Salmon, Moraes, Dror and Shaw, *Parallel random numbers: as easy as 1, 2, 3*
(SC 2011).

A key is two words of 32 bits. In memory an array of keys is an array of pairs.

References: ``jax._src.random.prng``, ``jax.random``, ``jax.random.normal``.
"""

# Made from chapters/32_random.md by `make chapter`;
# edit the chapter, not this file.
# Amended in chapters/32_random_rest.md: key_dtype_of (56a54c1d).
# Amended in chapters/32_random_rest.md: PRNGKey (de322607).
# Amended in chapters/32_random_rest.md: _key_data, wrap_key_data, wrapped, unwrapped
#   (df5edbfc).
# Amended in chapters/32_random_rest.md: _split_shape, _new_keys, random_split_impl,
#   _bits_shape, _random_bits, random_bits (8ae610bf).
# Amended in chapters/32_random_rest.md: lower_bits, lower_split (1b8ba479).

import math
import os
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from minijax import lax
from minijax.arrays.array import ShapedArray, def_shape_and_impl, typeof
from minijax.arrays.devices import ignore_float_errors
from minijax.arrays.dtypes import (
    EXTENDED_DTYPES,
    ExtendedDType,
    _on_or_off,
    canonicalize_dtype,
    check_dtype,
    config,
    dtype_kind,
    extended,
    issubdtype,
)
from minijax.arrays.numerics import broadcast_shapes_same_rank
from minijax.arrays.out_sharding import with_out_sharding
from minijax.batching.vmap import (
    check_unbatched_shapes,
    move_one_axis,
    vectorized_rule,
    vmap_rules,
)
from minijax.core import Array, Primitive, Registry
from minijax.forward_mode.jvp import defjvp_zero, jvp_rules
from minijax.jitting.api import jit
from minijax.kernels.builder import (
    Buffer,
    KernelBuilder,
    UnsupportedKernel,
    carriers,
    reshape_view,
)
from minijax.kernels.ir import scalar_ops
from minijax.kernels.lowering import Launch, kernel_rules
from minijax.lax.shapes import constant_makers
from minijax.numpy.array_creation import asarray
from minijax.numpy.scalar_types import finfo
from minijax.numpy.shapes import canonicalize_shape
from minijax.python_backend.codegen import python_rules
from minijax.python_backend.source import write_evaluation
from minijax.rematerialization.caching import trace_context_switches
from minijax.reverse_mode.backward_pass import transpose_rules
from minijax.typing import ArrayLike

# Threefry-2x32: a block cipher of two words, used as a counter-based generator.

ROTATIONS = (13, 15, 26, 6), (17, 29, 16, 24)
PARITY = 0x1BD11BDA  # so that a key of zeros does not stay one


def rotated(apply, x, places):
    """Return 32 bits moved up; those that fall off come back at the other end."""
    low = apply("shift_right", x, 32 - places)
    return apply("or", apply("shift_left", x, places), low)


def threefry2x32(apply, key, counter):
    """Encipher two words.

    Args:
      apply: a function ``apply(op, *operands)`` that does a scalar operation.
      key: two words of 32 bits.
      counter: two words of 32 bits.

    Returns:
      Two words.
    """
    subkeys = [*key, apply("xor", apply("xor", *key), PARITY)]
    x, y = map(apply, ("add", "add"), counter, key)
    for block in range(1, 6):
        for places in ROTATIONS[(block + 1) % 2]:
            x = apply("add", x, y)
            y = apply("xor", rotated(apply, y, places), x)
        x = apply("add", x, subkeys[block % 3])
        y = apply("add", y, apply("add", subkeys[(block + 1) % 3], block))
    return x, y


@ignore_float_errors
def numpy_word_op(op, *operands):
    """Do a scalar operation to arrays of words."""
    return scalar_ops[op].numpy(*operands)


def counter_words(size):
    """Return the numbers below `size` as words: the high ones, the low ones."""
    numbers = np.arange(size, dtype=np.uint64)
    return [(numbers >> np.uint64(n)).astype(np.uint32) for n in (32, 0)]


# Keys: arrays of an extended dtype, and the primitives that make and use them.


class prng_key(extended):  # type: ignore[misc]  # as np.record is one
    """The kind of dtypes of keys: ``jnp.issubdtype(x.dtype, prng_key)``.

    Reference: ``jax.dtypes.prng_key``.
    """


KEY = ExtendedDType("key<fry>", np.dtype((prng_key, [("fry", np.uint32, 2)])))
EXTENDED_DTYPES[KEY.dtype] = KEY


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


def aval_of_keys(shape, dtype=KEY):
    """Return the abstract value of an array of keys."""
    return ShapedArray(shape, dtype)


def check_keys(name, keys):
    """Raise a TypeError unless an operand is an array of keys."""
    if keys.dtype.type is not prng_key:
        raise TypeError(f"{name} takes keys, made by minijax.random.key, not {keys}.")


_layout = "jax_threefry_partitionable"


config.define(_layout, os.environ.get(_layout.upper(), "1"), _on_or_off)


trace_context_switches.append(_layout)


def counter_layout():
    """Return the parameters by which an equation says how counters are laid out."""
    return {} if config.jax_threefry_partitionable else {"partitionable": False}


def word_row(keys, count):
    """Return `count` words for each key, along a last axis: the older layout."""
    half = -(-count // 2)
    numbers = np.arange(2 * half, dtype=np.uint32)
    numbers[count:] = 0
    key = [word[..., None] for word in words_of(keys)]
    pairs = threefry2x32(numpy_word_op, key, (numbers[:half], numbers[half:]))
    return np.concatenate(pairs, -1)[..., :count]


def bits_of_row(keys, bit_width, shape):
    """Return unsigned integers, made of the words of a row."""
    size = math.prod(shape)
    words = word_row(keys, -(-bit_width * size // 32))
    if bit_width == 64:
        high, low = words[..., :size].astype(np.uint64), words[..., size:]
        numbers = high << np.uint64(32) | low
    else:
        parts = words[..., None] >> np.arange(0, 32, bit_width, dtype=np.uint32)
        numbers = parts.reshape(*keys.shape, -1)[..., :size]
    return numbers.reshape(*keys.shape, *shape).astype(f"uint{bit_width}")


def _split_shape(keys, shape, partitionable=True):
    check_keys("random_split", keys)
    return [aval_of_keys((*keys.shape, *shape), keys.dtype)]


def _new_keys(xp, keys, shape, partitionable=True):
    if partitionable:
        return keys_of(*enciphered(keys, shape))
    words = word_row(keys, 2 * math.prod(shape)).reshape(*keys.shape, *shape, 2)
    return keys_of(words[..., 0], words[..., 1])


def enciphered(keys, shape):
    """Return two words for each place in an array of this shape, and for each key."""
    counter = [half.reshape(shape) for half in counter_words(math.prod(shape))]
    spread = (..., *[None] * len(shape))
    return threefry2x32(
        numpy_word_op, [word[spread] for word in words_of(keys)], counter
    )


def_shape_and_impl(random_split_p, _split_shape, _new_keys)


def _bits_shape(keys, bit_width, shape, partitionable=True):
    check_keys("random_bits", keys)
    return [ShapedArray((*keys.shape, *shape), f"uint{bit_width}")]


def _random_bits(xp, keys, bit_width, shape, partitionable=True):
    if not partitionable:
        return bits_of_row(keys, bit_width, shape)
    first, second = enciphered(keys, shape)
    if bit_width == 64:
        return first.astype(np.uint64) << np.uint64(32) | second
    return (first ^ second).astype(f"uint{bit_width}")


def_shape_and_impl(random_bits_p, _bits_shape, _random_bits)


# The dtype of keys, by the mark of their generator and by its name.
key_dtypes: dict = Registry(fry=KEY, threefry2x32=KEY)


def mark_of_dtype(dtype):
    """Return the mark of the generator that keys of a dtype are of: ``"fry"``."""
    return np.dtype(dtype).names[0]


def generator_names():
    """Return the name of each generator, by the dtype of its keys."""
    return {dtype: name for name, dtype in key_dtypes.items()}


def words_in(dtype):
    """Return how many words a key of a dtype has."""
    return dtype.itemsize // 4


def _seed_shape(seeds, impl):
    if dtype_kind(seeds.dtype) not in "iu":
        raise TypeError(f"PRNG key seed must be an integer; got {seeds}.")
    return [aval_of_keys(seeds.shape, key_dtypes[impl])]


def _seeded(xp, seeds, impl):
    wide = np.asarray(seeds).astype(np.uint64)
    high = wide >> np.uint64(32) if seeds.dtype.itemsize == 8 else 0 * wide
    return keys_of(high.astype(np.uint32), wide.astype(np.uint32))


def _fold_in_shape(keys, data):
    check_keys("random_fold_in", keys)
    shape = broadcast_shapes_same_rank("fold_in", [keys.shape, data.shape])
    return [aval_of_keys(shape, keys.dtype)]


def _folded(xp, keys, data):
    counter = np.zeros_like(data), data
    return keys_of(*threefry2x32(numpy_word_op, words_of(keys), counter))


def_shape_and_impl(random_seed_p, _seed_shape, _seeded)
def_shape_and_impl(random_fold_in_p, _fold_in_shape, _folded)


def _wrap_shape(words, impl):
    dtype = key_dtypes[impl]
    if words.dtype != np.uint32 or words.shape[-1:] != (words_in(dtype),):
        raise TypeError(
            "invalid PRNG key data: expected key_data.shape to end with "
            f"({words_in(dtype)},) and its dtype to be uint32; got "
            f"shape={words.shape}, dtype={words.dtype}"
        )
    return [aval_of_keys(words.shape[:-1], dtype)]


def wrapped(words, dtype):
    """Return a buffer of keys, made of a buffer of their words."""
    keys = np.empty(words.shape[:-1], dtype)
    mark = mark_of_dtype(dtype)
    keys[mark] = words.reshape(keys[mark].shape)
    return keys


def unwrapped(keys):
    """Return the words of a buffer of keys."""
    return keys[mark_of_dtype(keys.dtype)].reshape(*keys.shape, words_in(keys.dtype))


def _unwrap_shape(keys):
    check_keys("random_unwrap", keys)
    return [ShapedArray((*keys.shape, words_in(keys.dtype)), np.uint32)]


def _clone_shape(keys):
    check_keys("random_clone", keys)
    return [keys]


def_shape_and_impl(
    random_wrap_p, _wrap_shape, lambda xp, x, impl: wrapped(x, key_dtypes[impl])
)
def_shape_and_impl(random_unwrap_p, _unwrap_shape, lambda xp, keys: unwrapped(keys))
def_shape_and_impl(random_clone_p, _clone_shape, lambda xp, keys: keys)


# Keys as users make them, and what samplers ask of their arguments.

OTHER_GENERATORS = "philox2x32", "philox4x32", "threefry4x32"


def key_dtype_of(impl):
    """Return the dtype of the keys of a generator.

    Args:
      impl: its name or mark, an object that is written so, the dtype, or None for the
        one that the switch ``jax_default_prng_impl`` names.

    Raises:
      NotImplementedError: if only JAX has it.
      ValueError: if there is none.
    """
    if impl is None:
        impl = config.jax_default_prng_impl
    known = [dtype for dtype in key_dtypes.values() if impl == dtype]
    if known or str(impl) in key_dtypes:
        return known[0] if known else key_dtypes[str(impl)]
    names = ", ".join(map(repr, generator_names().values()))
    if impl in OTHER_GENERATORS:
        raise NotImplementedError(
            f"The generator {impl!r} is not here: its bits come from a cipher of its "
            f"own. minijax.random has {names}."
        )
    raise ValueError(
        f'unrecognized PRNG implementation "{impl}". Did you mean one of {names}?'
    )


def _generator_name(name):
    if name in OTHER_GENERATORS:
        key_dtype_of(name)  # which says that it is not here
    return name


_default_impl = "jax_default_prng_impl"


_initial_impl = os.environ.get(_default_impl.upper(), "threefry2x32")


config.define(_default_impl, _initial_impl, _generator_name)


trace_context_switches.append(_default_impl)


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
    if isinstance(keys, Array) and keys.aval.dtype.type is prng_key:
        return keys, False
    if not hasattr(keys, "dtype") or not hasattr(keys, "shape"):
        raise TypeError(
            "invalid PRNG key data: expected key_data to have ndim, shape, and dtype "
            f"attributes. Got {keys}"
        )
    impl = mark_of_dtype(key_dtype_of(None))
    return random_wrap_p.bind(asarray(keys), impl=impl), True


def key_shape_of(dtype):
    """Return the shape of the words of a key, a tuple."""
    return np.dtype(dtype)[0].shape


def _key_data(keys):
    words, shape = random_unwrap_p.bind(keys), key_shape_of(keys.dtype)
    return words if len(shape) == 1 else lax.reshape(words, (*keys.shape, *shape))


def _made(name, seed, impl):
    aval = typeof(seed) if not isinstance(seed, int) else None
    if aval is not None and aval.dtype.type is prng_key:
        raise TypeError(f"{name} accepts a scalar seed, but was given a PRNG key.")
    if aval is not None and aval.ndim:
        raise TypeError(
            f"{name} accepts a scalar seed, but was given an array of shape "
            f"{aval.shape} != (). Use minijax.vmap for batching"
        )
    seed = asarray(np.int64(seed)) if aval is None else seed
    return random_seed_impl(seed, mark_of_dtype(key_dtype_of(impl)))


def sample_dtype(name, dtype, default, kind, words):
    """Return the dtype that a sampler was asked for.

    Raises:
      ValueError: if it is not of the kind that the sampler makes.
    """
    dtype = check_dtype(default if dtype is None else dtype, name)
    if not issubdtype(dtype, kind):
        raise ValueError(f"dtype argument to `{name}` must be {words}, got {dtype}")
    return dtype


def canonicalize_sample_shape(shape):
    """Return the shape that a sampler was asked for, as a tuple.

    Raises:
      TypeError: if a size is no integer, or negative.
    """
    sizes = canonicalize_shape(shape)
    if any(size < 0 for size in sizes):
        raise TypeError(
            "Only non-negative indices are allowed when broadcasting static shapes, "
            f"but got shape {sizes}."
        )
    return sizes


def float_dtype(name, dtype):
    """Return the dtype of a sampler of floats."""
    return sample_dtype(name, dtype, float, np.floating, "a float dtype")


def _like(keys, raw):
    return _key_data(keys) if raw else keys


@partial(jit, inline=True, static_argnums=1)
def random_seed_impl(seed, impl="fry"):
    """Return the key of a seed."""
    return random_seed_p.bind(seed, impl=impl)


@partial(jit, inline=True)
def fold_key(keys, data):
    """Return keys with a number stirred into each."""
    return random_fold_in_p.bind(keys, data)


@partial(jit, inline=True, static_argnums=1)
def random_split_impl(keys, shape):
    """Return, for each key, an array of new ones."""
    return random_split_p.bind(keys, shape=shape, **counter_layout())


def split(key: ArrayLike, num: int | Sequence[int] = 2) -> Array:
    """Return new keys, made of one.

    Args:
      key: a key, not to be used again.
      num: how many, or the shape of the array of new keys.

    Reference: ``jax.random.split``.
    """
    key, raw = check_one_key("split", key)
    shape = canonicalize_sample_shape(tuple(num) if isinstance(num, Sequence) else num)
    return _like(random_split_impl(key, shape), raw)


def key(seed: int | ArrayLike, *, impl: str | None = None, dtype: Any = None) -> Array:
    """Return a key, made of a seed.

    Args:
      seed: an integer; equal seeds make equal keys.
      impl, dtype: the name of the generator, or its dtype: ``"threefry2x32"``,
        ``"rbg"``, ``"unsafe_rbg"``.

    Raises:
      TypeError: if the seed is not one integer.
      ValueError: if there is no such generator.

    Reference: ``jax.random.key``.
    """
    if impl is not None and dtype is not None:
        raise ValueError("Cannot specify both `impl` and `dtype` arguments to key")
    return _made("key", seed, dtype if impl is None else impl)


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


_typed = "jax_enable_custom_prng"


config.define(_typed, os.environ.get(_typed.upper(), "0"), _on_or_off)


trace_context_switches.append(_typed)


def PRNGKey(seed: int | ArrayLike, *, impl: str | None = None) -> Array:
    """Return a key as an array of two words; see `key`.

    While the switch ``jax_enable_custom_prng`` is on, it is a typed key.

    Reference: ``jax.random.PRNGKey``.
    """
    key = _made("PRNGKey", seed, impl)
    return key if config.jax_enable_custom_prng else _key_data(key)


def clone(key: ArrayLike) -> Array:
    """Return the same key, to be used once more on purpose.

    Reference: ``jax.random.clone``.
    """
    keys, raw = as_keys(key)
    return _like(random_clone_p.bind(keys), raw)


def key_data(keys: ArrayLike) -> Array:
    """Return the words of keys: uint32, with one axis more, of size 2 or 4.

    Reference: ``jax.random.key_data``.
    """
    return _key_data(as_keys(keys)[0])


def wrap_key_data(
    key_bits_array: ArrayLike, *, impl: Any = None, dtype: Any = None
) -> Array:
    """Return keys, made of words as `key_data` returns them.

    Raises:
      TypeError: if the last axes are not those of a key, or the dtype is not uint32.
      ValueError: if both the generator and the dtype of keys are given.

    Reference: ``jax.random.wrap_key_data``.
    """
    if impl is not None and dtype is not None:
        raise ValueError(f"Give impl or dtype, not both: {impl!r} and {dtype}.")
    dtype = key_dtype_of(dtype if impl is None else impl)
    words, shape = asarray(key_bits_array), key_shape_of(dtype)
    if len(shape) != 1:
        outer = words.shape[: max(words.ndim - len(shape), 0)]
        if words.shape != (*outer, *shape):
            raise TypeError(
                "invalid PRNG key data: expected key_data.shape to end with "
                f"{shape} and its dtype to be uint32; got shape={words.shape}, "
                f"dtype={words.dtype}"
            )
        words = lax.reshape(words, (*outer, math.prod(shape)))
    return random_wrap_p.bind(words, impl=mark_of_dtype(dtype))


def key_impl(keys: ArrayLike) -> str:
    """Return the name of the generator that keys belong to.

    Reference: ``jax.random.key_impl``.
    """
    return generator_names()[typeof(as_keys(keys)[0]).dtype]


# The columns of the primitives of keys: derivatives, batches, kernels.

KEY_WORD = np.dtype(np.uint32)
carriers[KEY] = np.dtype(np.uint64)


def key_word_views(keys):
    """Return a view for each word of keys: the first ones, the second ones."""
    if not isinstance(keys.source, Buffer):
        raise UnsupportedKernel("a key that is part of the text")
    count = words_in(keys.dtype)
    strides = [count * stride for stride in keys.strides]
    words = keys._replace(dtype=KEY_WORD, strides=tuple(strides))
    return [words._replace(offset=count * keys.offset + n) for n in range(count)]


def enciphering(k, lowering, keys, size):
    """Write the nodes of two words for each key and each number below `size`."""
    key = [k.load(half) for half in key_word_views(keys)]
    number = k.index(len(keys.shape))
    low, high = k.convert(number, KEY_WORD), k.number(0, key[0])
    if size > 2**32:
        high = k.convert(k.shift_right(number, 32), KEY_WORD)
    return threefry2x32(k.apply, key, (high, low))


def word_of_row(k, key, number, count):
    """Write the node of a word of the older layout, from its number in the row."""
    half = -(-count // 2)
    behind = k.ge(number, k.number(half, number))
    low = k.select(behind, k.sub(number, k.number(half, number)), number)
    high = k.add(low, k.number(half, number))
    if count % 2:
        zero = k.number(0, number)
        high = k.select(k.lt(high, k.number(count, number)), high, zero)
    counter = [k.convert(x, KEY_WORD) for x in (low, high)]
    first, second = threefry2x32(k.apply, key, counter)
    return k.select(behind, second, first)


def bits_in_row(k, keys, size, dtype):
    """Write the node of an unsigned integer that is made of the words of a row."""
    key = [k.load(half) for half in key_word_views(keys)]
    number, width = k.index(len(keys.shape)), 8 * dtype.itemsize
    if width == 64:
        far = k.add(number, k.number(size, number))
        counter = [k.convert(x, KEY_WORD) for x in (number, far)]
        first, second = threefry2x32(k.apply, key, counter)
        return join_words(k, first, second, dtype)
    each = 32 // width  # of a word; a power of two
    at = k.shift_right(number, each.bit_length() - 1)
    word = word_of_row(k, key, at, -(-width * size // 32))
    part = k.convert(k.apply("and", number, k.number(each - 1, number)), KEY_WORD)
    return k.convert(k.shift_right(word, k.mul(part, k.number(width, part))), dtype)


def lower_bits(lowering, eqn, keys):
    """Add one kernel for random numbers, which others can be fused into."""
    out = lowering.allocate(eqn.outvars[0].aval)
    flat = reshape_view(out, (*keys.shape, size := math.prod(eqn.params["shape"])))
    k = KernelBuilder("random_bits", flat.shape)
    if eqn.params.get("partitionable", True):
        first, second = enciphering(k, lowering, keys, size)
        lowering.run(k, (flat, join_words(k, first, second, out.dtype)))
    else:
        lowering.run(k, (flat, bits_in_row(k, keys, size, out.dtype)))
    return [out]


def constant_key(dtype, number):
    """Return a key whose words are all one number."""
    words = lax.full((words_in(dtype),), number, np.uint32)
    return random_wrap_p.bind(words, impl=mark_of_dtype(dtype))


constant_makers[KEY] = partial(constant_key, KEY)


def join_words(k, first, second, dtype):
    """Write the node of a random number of some width, made of two words."""
    if dtype.itemsize < 8:
        return k.convert(k.xor(first, second), dtype)
    high = k.shift_left(k.convert(first, dtype), 32)
    return k.apply("or", high, k.convert(second, dtype))


def lower_split(lowering, eqn, keys):
    """Add one kernel that stores the two words of each new key."""
    out = lowering.allocate(eqn.outvars[0].aval)
    flat = reshape_view(out, (*keys.shape, size := math.prod(eqn.params["shape"])))
    k = KernelBuilder("random_split", flat.shape)
    if eqn.params.get("partitionable", True):
        words = enciphering(k, lowering, keys, size)
    else:
        key = [k.load(half) for half in key_word_views(keys)]
        first = k.shift_left(k.index(len(keys.shape)), 1)
        places = first, k.add(first, k.number(1, first))
        words = [word_of_row(k, key, place, 2 * size) for place in places]
    return store_keys(lowering, k, words, out, flat)


def store_keys(lowering, k, words, out, flat):
    """Add the kernel that stores the two words of each key; return the keys."""
    for half, word in zip(key_word_views(flat), words):
        k.store(half, word)
    lowering.steps.append(Launch(*k.kernel()))
    return [out]


def lower_fold_in(lowering, eqn, keys, data):
    """Add the kernel that enciphers one number under each key."""
    k = KernelBuilder("random_fold_in", eqn.outvars[0].aval.shape)
    key, low = [k.load(half) for half in key_word_views(keys)], k.load(data)
    words = threefry2x32(k.apply, key, (k.number(0, low), low))
    out = lowering.allocate(eqn.outvars[0].aval)
    return store_keys(lowering, k, words, out, out)


def lower_seed(lowering, eqn, seeds):
    """Add the kernel that cuts seeds into words."""
    k = KernelBuilder("random_seed", seeds.shape)
    seed = k.load(seeds)
    high = k.shift_right(seed, 32) if seeds.dtype.itemsize == 8 else k.number(0, seed)
    words = [k.convert(word, KEY_WORD) for word in (high, seed)]
    out = lowering.allocate(eqn.outvars[0].aval)
    return store_keys(lowering, k, words, out, out)


def lower_unwrap(lowering, eqn, keys):
    """Return the view of keys as words: one axis more."""
    first, *others = key_word_views(keys)
    return [first.replace((*keys.shape, 1 + len(others)), (*first.strides, 1))]


def lower_wrap(lowering, eqn, words):
    """Return the view of words as keys, if those of a key lie side by side."""
    if not _side_by_side(words):
        words = lowering.copy(words)
    [var], count = eqn.outvars, words.shape[-1]
    strides = tuple(stride // count for stride in words.strides[:-1])
    taken = {"dtype": var.aval.dtype, "shape": var.aval.shape, "strides": strides}
    offset = words.offset // count
    return [words._replace(offset=offset, **taken)]


def _side_by_side(words):
    *outer, last = words.strides
    whole = not any(place % words.shape[-1] for place in (words.offset, *outer))
    return isinstance(words.source, Buffer) and last == 1 and whole


PRIMITIVES = (
    random_seed_p, random_wrap_p, random_unwrap_p, random_split_p, random_fold_in_p,
    random_bits_p, random_clone_p,
)  # fmt: skip
jvp_rules.update({p: defjvp_zero(p) for p in PRIMITIVES})
python_rules.update(dict.fromkeys(PRIMITIVES, write_evaluation))
transpose_rules.reasons.update(
    dict.fromkeys(PRIMITIVES, "Keys and bits have no cotangents, for they do not vary.")
)


def _wrap_batch(axis, args, dims, **params):
    check_unbatched_shapes(random_wrap_p, args, dims, **params)
    words = move_one_axis(args[0], dims[0], 0)  # the words of a key are its last axis
    return random_wrap_p.bind_all(words, **params), [0]


vmap_rules.update({p: vectorized_rule(p) for p in PRIMITIVES if p is not random_wrap_p})
vmap_rules[random_wrap_p] = _wrap_batch
kernel_rules.update({
    random_seed_p: lower_seed, random_wrap_p: lower_wrap, random_unwrap_p: lower_unwrap,
    random_split_p: lower_split, random_fold_in_p: lower_fold_in,
    random_bits_p: lower_bits, random_clone_p: lambda lowering, eqn, keys: [keys],
})  # fmt: skip


# Bits, and what is one step from them: floats between two ends.


@partial(jit, inline=True, static_argnums=(1, 2))
def random_bits(key, bit_width, shape):
    """Return unsigned integers, each bit of which is random."""
    params = {"bit_width": bit_width, "shape": shape, **counter_layout()}
    return random_bits_p.bind(key, **params)


def unit_floats(key, shape, dtype):
    """Return floats in [0, 1): those in [1, 2) with a random mantissa, less 1."""
    width, mantissa = dtype.itemsize * 8, finfo(dtype).nmant
    random = random_bits(key, 8 if mantissa < 8 else width, shape)
    random = lax.convert_element_type(random, f"uint{width}")
    places = (8 if mantissa < 8 else width) - mantissa
    one = np.ones((), dtype).view(random.dtype)
    random = lax.shift_right_logical(random, random.dtype.type(places)) | one
    return lax.bitcast_convert_type(random, dtype) - dtype.type(1)


@with_out_sharding
def bits(
    key: ArrayLike, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None
) -> Array:
    """Return unsigned integers of equal chance.

    Reference: ``jax.random.bits``.
    """
    key, _ = check_one_key("bits", key)
    words, default = "an unsigned int dtype", canonicalize_dtype(np.uint64)
    dtype = sample_dtype("bits", dtype, default, np.unsignedinteger, words)
    return random_bits(key, dtype.itemsize * 8, canonicalize_sample_shape(shape))


@with_out_sharding
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
    key, _ = check_one_key("uniform", key)
    dtype = float_dtype("uniform", dtype)
    return _uniform(key, minval, maxval, canonicalize_sample_shape(shape), dtype)


@partial(jit, static_argnums=(3, 4))
def _uniform(key, minval, maxval, shape, dtype):
    minval, maxval = (_as_rank(x, dtype, len(shape)) for x in (minval, maxval))
    floats = unit_floats(key, shape, dtype)
    return lax.max(minval, lax.reshape(floats * (maxval - minval) + minval, shape))


def _as_rank(x, dtype, ndim):
    return lax.broadcast_to_rank(lax.convert_element_type(x, dtype), ndim)


# Normal floats: uniform ones, sent through the inverse of the error function.


@with_out_sharding
def normal(
    key: ArrayLike, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None
) -> Array:
    """Return floats or complex numbers of mean 0 and variance 1.

    Reference: ``jax.random.normal``.
    """
    key, _ = check_one_key("normal", key)
    words = "a float or complex dtype"
    dtype = sample_dtype("normal", dtype, float, np.inexact, words)
    return _normal(key, canonicalize_sample_shape(shape), dtype)


@partial(jit, static_argnums=(1, 2))
def _normal(key, shape, dtype):
    if dtype.kind != "c":
        return _normal_real(key, shape, dtype)
    real, imag = random_split_impl(key, (2,))
    part = dtype.type().real.dtype
    real, imag = (_normal_real(k, shape, part).astype(dtype) for k in (real, imag))
    return (real + 1j * imag) / dtype.type(np.sqrt(2))


@partial(jit, static_argnums=(1, 2))
def _normal_real(key, shape, dtype):
    above = np.nextafter(dtype.type(-1), dtype.type(0))
    u = uniform(key, shape, dtype, above, dtype.type(1))
    return lax.mul(dtype.type(np.sqrt(2)), lax.erf_inv(u))
