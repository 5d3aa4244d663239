"""Threefry-2x32: a block cipher of two words, used as a counter-based generator.

Source: Salmon, Moraes, Dror and Shaw, *Parallel random numbers: as easy as 1, 2, 3*
(SC 2011).
"""

# Made from chapters/32_random.md by `make chapter`;
# edit the chapter, not this file.

import numpy as np

from minijax.kernels.scalar_ops import scalar_ops

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


def by_numpy(op, *operands):
    """Do a scalar operation to arrays of words."""
    with np.errstate(over="ignore"):
        return scalar_ops[op].numpy(*operands)


def numbered(size):
    """Return the numbers below `size` as words: the high ones, the low ones."""
    numbers = np.arange(size, dtype=np.uint64)
    return [(numbers >> np.uint64(n)).astype(np.uint32) for n in (32, 0)]
