"""Generators as objects, and primitives of random numbers, under JAX's paths.

References: ``jax.extend.core.primitives``, ``jax.extend.random``.
"""

# Made from chapters/32_random_rest.md by `make chapter`;
# edit the chapter, not this file.

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from minijax import lax
from minijax._registry import Registry
from minijax.arrays.array import eval_rules
from minijax.arrays.config import ensure_compile_time_eval, threefry_partitionable
from minijax.arrays.dtypes import EXTENDED_DTYPES, ExtendedDType
from minijax.batching.vmap import vmap
from minijax.core import Array
from minijax.jitting.api import jit
from minijax.kernels.builder import carriers
from minijax.kernels.lowering import kernel_rules
from minijax.lax.shapes import constant_makers
from minijax.numpy.array_creation import asarray
from minijax.numpy.joining import concatenate
from minijax.prng.keys import (
    KEY,
    constant_key,
    key_dtype_of,
    key_dtypes,
    mark_of_dtype,
    random_bits,
    random_seed_impl,
    random_split_impl,
    random_unwrap_p,
    random_wrap_p,
    threefry2x32,
    unwrapped,
    wrapped,
)
from minijax.prng.keys import prng_key as prng_key
from minijax.prng.keys import random_bits_p as random_bits_p
from minijax.prng.keys import random_fold_in_p as random_fold_in_p
from minijax.prng.keys import random_seed_p as random_seed_p
from minijax.prng.keys import random_split_p as random_split_p
from minijax.typing import ArrayLike
from minijax.windows.reduce_window import lower_function

# Primitives of random numbers.


# The generator behind keys, as an object, and its cipher as a function of arrays.


class PRNGImpl(NamedTuple):
    """A generator: functions of words, with its name and its mark in types of keys.

    Attributes:
      key_shape: the shape of the words of a key.
      seed, split, random_bits, fold_in: from an integer to words; from words and a
        shape to words; from words, a width and a shape to bits; from words and a
        number to words.
      name, tag: such as ``threefry2x32``, ``fry``.
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


@dataclass(frozen=True, repr=False)
class PRNGSpec:
    """The name of a generator that a program has defined, see `define_prng_impl`.

    Attributes:
      mark: how programs write it: its tag, with a number if another one has that.
    """

    _impl: PRNGImpl
    mark: str

    def __str__(self):
        return self.mark

    def __repr__(self):
        return f"PRNGSpec({self._impl.name!r})"


def _keys(words):
    return random_wrap_p.bind(words, impl="fry")


def _words(keys):
    return random_unwrap_p.bind(keys)


# From the dtypes of keys of other generators than Threefry to the generators.
generators: dict = Registry()


def register_generator(generator):
    """Let keys of a generator be made, by its name.

    Args:
      generator: a `PRNGImpl`; the words of a key are an array of its `key_shape`.
    """
    _make_key_dtype(generator, generator.tag, generator.name)


def _make_key_dtype(generator, mark, name):
    size = math.prod(generator.key_shape)
    fields = [(mark, np.uint32, generator.key_shape)]
    dtype = ExtendedDType(f"key<{mark}>", np.dtype((prng_key, fields)))
    EXTENDED_DTYPES[dtype.dtype], generators[dtype] = dtype, of_flat_words(generator)
    key_dtypes.update(dict.fromkeys((mark, name), dtype))
    if size in _CARRIERS:
        carriers[dtype] = np.dtype(_CARRIERS[size])
    constant_makers[dtype] = partial(constant_key, dtype)


_CARRIERS = {1: np.uint32, 2: np.uint64, 4: np.complex128}  # by the words of a key


def of_flat_words(generator):
    """Return the same generator, for which the words of a key are one axis."""
    if len(generator.key_shape) == 1:
        return generator
    shape, size = generator.key_shape, math.prod(generator.key_shape)

    def flat(words):
        outer = np.shape(words)[: np.ndim(words) - len(shape)]
        return lax.reshape(words, (*outer, size))

    def on_words(f, finish):
        return lambda words, *args: finish(f(lax.reshape(words, shape), *args))

    return generator._replace(
        key_shape=(size,),
        seed=lambda seed: flat(generator.seed(seed)),
        split=on_words(generator.split, flat),
        random_bits=on_words(generator.random_bits, asarray),
        fold_in=on_words(generator.fold_in, flat),
    )


def _mapped(f, ndim):
    """Return a function of one array that is mapped over its first axes."""
    for _ in range(ndim):
        f = vmap(f)
    return f


def _seed_words(generator, seeds, impl):
    return _mapped(generator.seed, seeds.ndim)(seeds)


def _split_words(generator, words, shape, partitionable=True):
    with threefry_partitionable(partitionable):
        split = _mapped(lambda key: generator.split(key, shape), words.ndim - 1)
        return split(words)


def _bits_of_words(generator, words, bit_width, shape, partitionable=True):
    def draw(key):
        return generator.random_bits(key, bit_width, shape)

    with threefry_partitionable(partitionable):
        return _mapped(draw, words.ndim - 1)(words)


def _fold_in_words(generator, words, data):
    ndim, f = max(words.ndim - 1, data.ndim), generator.fold_in
    keys, numbers = ((1,) * (ndim - len(shape)) + shape
                     for shape in (words.shape[:-1], data.shape))
    spread = [(n == 1 != m, m == 1 != n) for n, m in zip(keys, numbers)]
    for of_keys, of_data in reversed(spread):
        f = vmap(f, in_axes=(None if of_keys else 0, None if of_data else 0))
    keys = [n for n, (of_keys, _) in zip(keys, spread) if not of_keys]
    numbers = [n for n, (_, of_data) in zip(numbers, spread) if not of_data]
    return f(words.reshape(*keys, words.shape[-1]), data.reshape(numbers))


@partial(jit, static_argnums=(0, 1, 2))
def _call_compiled(call, generator, params, *operands):
    return call(generator, *operands, **dict(params))


def _by_generator(primitive, call, makes_keys=True):
    """Let a primitive be a function of words, for keys of other generators.

    Args:
      primitive: one of keys; random_seed_p has its generator as a parameter.
      call: called as ``call(generator, *operands, **params)``, with words for keys.
      makes_keys: whether the words that it returns are those of keys.
    """
    evaluate_fry, lower_fry = eval_rules[primitive], kernel_rules[primitive]

    def dtype_of(x, impl=None, **_):
        return x.dtype if impl is None else key_dtypes[impl]

    def evaluate(xp, x, *others, **params):
        if (dtype := dtype_of(x, **params)) == KEY:
            return evaluate_fry(xp, x, *others, **params)
        first = x if "impl" in params else unwrapped(x)
        with ensure_compile_time_eval():
            static = call, generators[dtype], tuple(params.items())
            words = xp.asarray(_call_compiled(*static, first, *others))
        return wrapped(words, dtype) if makes_keys else words

    def lower(lowering, eqn, x, *others):
        params = eqn.params
        if (dtype := dtype_of(x, **params)) == KEY:
            return lower_fry(lowering, eqn, x, *others)

        def composed(x, *others):
            first = x if "impl" in params else _words(x)
            words = call(generators[dtype], first, *others, **params)
            if not makes_keys:
                return [words]
            return [random_wrap_p.bind(words, impl=mark_of_dtype(dtype))]

        return lower_function(lowering, composed, eqn, [x, *others])

    eval_rules.supersede(primitive, evaluate_fry, evaluate)
    kernel_rules.supersede(primitive, lower_fry, lower)


_by_generator(random_seed_p, _seed_words)
_by_generator(random_split_p, _split_words)
_by_generator(random_fold_in_p, _fold_in_words)
_by_generator(random_bits_p, _bits_of_words, makes_keys=False)


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


def define_prng_impl(
    *,
    key_shape: tuple[int, ...],
    seed: Callable[[Array], Array],
    split: Callable[[Array, tuple[int, ...]], Array],
    random_bits: Callable[[Array, int, tuple[int, ...]], Array],
    fold_in: Callable[[Array, Array], Array],
    name: str = "<unnamed>",
    tag: str = "?",
) -> Any:
    """Return a generator, made of functions of words: what `minijax.random.key` takes.

    Args:
      key_shape: the shape of the words of a key, of dtype uint32.
      seed: from an integer to the words of a key.
      split: from words and a shape to words of shape ``(*shape, *key_shape)``.
      random_bits: from words, a width in bits, and a shape to unsigned integers.
      fold_in: from words and a number to words.
      name, tag: how `minijax.random.key_impl` and the dtype of the keys print it.

    Returns:
      An object that is given as `impl`. The same arguments give an equal one.

    Reference: ``jax.extend.random.define_prng_impl``.
    """
    impl = PRNGImpl(tuple(key_shape), seed, split, random_bits, fold_in, name, tag)
    if impl not in _defined:
        others = sum(made._impl.tag == tag for made in _defined.values())
        taken = others or tag in key_dtypes
        spec = PRNGSpec(impl, f"{tag}{others + 1}" if taken else tag)
        _make_key_dtype(impl, spec.mark, spec)
        _defined[impl] = spec
    return _defined[impl]


_defined: dict = {}  # from the generators that programs have defined to their names


def random_seed(seeds: int | ArrayLike, impl: Any) -> Array:
    """Return a key for each seed.

    Args:
      seeds: integers.
      impl: the generator, as an object or by name.

    Reference: ``jax.extend.random.random_seed``.
    """
    seeds = np.int64(seeds) if isinstance(seeds, int) else asarray(seeds)
    return random_seed_impl(seeds, mark_of_dtype(key_dtype_of(impl)))


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
