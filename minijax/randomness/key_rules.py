"""The columns of the primitives of keys: derivatives, batches, kernels."""

# Made from chapters/32_random.md by `make chapter`;
# edit the chapter, not this file.

import math

import numpy as np

from minijax import lax
from minijax.batching.rules import (
    check_example,
    elementwise_rule,
    move_axis,
    vmap_rules,
)
from minijax.emitted.emission import python_rules
from minijax.emitted.evaluations import write_evaluation
from minijax.forward.rules import constant_rule, jvp_rules
from minijax.kernels.building import KernelBuilder, NoKernel, carriers
from minijax.kernels.program_steps import Launch, kernel_rules
from minijax.kernels.views import Buffer, reshaped
from minijax.lax.creation import fillers
from minijax.randomness.keys import (
    KEY,
    random_bits_p,
    random_clone_p,
    random_fold_in_p,
    random_seed_p,
    random_split_p,
    random_unwrap_p,
    random_wrap_p,
)
from minijax.randomness.threefry import threefry2x32
from minijax.reverse.transposition import transpose_rules

WORD = np.dtype(np.uint32)
carriers[KEY] = np.dtype(np.uint64)


def halves(keys):
    """Return the views of the first and of the second words of keys."""
    if not isinstance(keys.source, Buffer):
        raise NoKernel("a key that is part of the text")
    strides = [2 * stride for stride in keys.strides]
    words = keys._replace(dtype=WORD, strides=tuple(strides))
    return [words._replace(offset=2 * keys.offset + n) for n in (0, 1)]


def enciphering(k, lowering, keys, size):
    """Write the nodes of two words for each key and each number below `size`."""
    key = [k.load(half) for half in halves(keys)]
    number = k.index(len(keys.shape))
    low, high = k.convert(number, WORD), k.number(0, key[0])
    if size > 2**32:
        high = k.convert(k.shift_right(number, 32), WORD)
    return threefry2x32(k.apply, key, (high, low))


def lower_bits(lowering, eqn, keys):
    """Add one kernel for random numbers, which others can be fused into."""
    out = lowering.allocate(eqn.outvars[0].aval)
    flat = reshaped(out, (*keys.shape, size := math.prod(eqn.params["shape"])))
    k = KernelBuilder("random_bits", flat.shape)
    first, second = enciphering(k, lowering, keys, size)
    lowering.run(k, (flat, joined(k, first, second, out.dtype)))
    return [out]


def _key_of(number):
    words = lax.full((2,), number, np.uint32)
    return random_wrap_p.bind(words, impl="fry")[0]


fillers[KEY] = _key_of


def joined(k, first, second, dtype):
    """Write the node of a random number of some width, made of two words."""
    if dtype.itemsize < 8:
        return k.convert(k.xor(first, second), dtype)
    high = k.shift_left(k.convert(first, dtype), 32)
    return k.apply("or", high, k.convert(second, dtype))


def lower_split(lowering, eqn, keys):
    """Add one kernel that stores the two words of each new key."""
    out = lowering.allocate(eqn.outvars[0].aval)
    flat = reshaped(out, (*keys.shape, size := math.prod(eqn.params["shape"])))
    k = KernelBuilder("random_split", flat.shape)
    words = enciphering(k, lowering, keys, size)
    return store_keys(lowering, k, words, out, flat)


def store_keys(lowering, k, words, out, flat):
    """Add the kernel that stores the two words of each key; return the keys."""
    for half, word in zip(halves(flat), words):
        k.store(half, word)
    lowering.steps.append(Launch(*k.kernel()))
    return [out]


def lower_fold_in(lowering, eqn, keys, data):
    """Add the kernel that enciphers one number under each key."""
    k = KernelBuilder("random_fold_in", eqn.outvars[0].aval.shape)
    key, low = [k.load(half) for half in halves(keys)], k.load(data)
    words = threefry2x32(k.apply, key, (k.number(0, low), low))
    out = lowering.allocate(eqn.outvars[0].aval)
    return store_keys(lowering, k, words, out, out)


def lower_seed(lowering, eqn, seeds):
    """Add the kernel that cuts seeds into words."""
    k = KernelBuilder("random_seed", seeds.shape)
    seed = k.load(seeds)
    high = k.shift_right(seed, 32) if seeds.dtype.itemsize == 8 else k.number(0, seed)
    words = [k.convert(word, WORD) for word in (high, seed)]
    out = lowering.allocate(eqn.outvars[0].aval)
    return store_keys(lowering, k, words, out, out)


def lower_unwrap(lowering, eqn, keys):
    """Return the view of keys as words: one axis more."""
    first, _ = halves(keys)
    return [first.replace((*keys.shape, 2), (*first.strides, 1))]


def lower_wrap(lowering, eqn, words):
    """Return the view of words as keys, if pairs of them lie side by side."""
    if not _in_pairs(words):
        words = lowering.copy(words)
    strides = tuple(stride // 2 for stride in words.strides[:-1])
    shape, offset = words.shape[:-1], words.offset // 2
    return [words._replace(dtype=KEY, shape=shape, strides=strides, offset=offset)]


def _in_pairs(words):
    *outer, last = words.strides
    even = not any(place % 2 for place in (words.offset, *outer))
    return isinstance(words.source, Buffer) and last == 1 and even


PRIMITIVES = (
    random_seed_p, random_wrap_p, random_unwrap_p, random_split_p, random_fold_in_p,
    random_bits_p, random_clone_p,
)  # fmt: skip
jvp_rules.update({p: constant_rule(p) for p in PRIMITIVES})
python_rules.update(dict.fromkeys(PRIMITIVES, write_evaluation))
transpose_rules.reasons.update(
    dict.fromkeys(PRIMITIVES, "Keys and bits have no cotangents, for they do not vary.")
)


def _in_front(primitive):
    """Return the vmap rule of a primitive that keeps the axes of its operand first."""

    def rule(axis, args, dims, **params):
        check_example(primitive, args, dims, **params)
        x = move_axis(args[0], dims[0], 0)
        return primitive.bind(x, **params), [0]

    return rule


vmap_rules.update({p: elementwise_rule(p) for p in (random_seed_p, random_fold_in_p)})
vmap_rules.update({p: _in_front(p) for p in PRIMITIVES if p not in vmap_rules})
kernel_rules.update({
    random_seed_p: lower_seed, random_wrap_p: lower_wrap, random_unwrap_p: lower_unwrap,
    random_split_p: lower_split, random_fold_in_p: lower_fold_in,
    random_bits_p: lower_bits, random_clone_p: lambda lowering, eqn, keys: [keys],
})  # fmt: skip
