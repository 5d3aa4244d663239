# Made from chapters/17b_functions.md by `make chapter`;
# edit the chapter, not this file.
"""What is left of large angles without their quarter turns.

Reference: M. Payne and R. Hanek, Radian reduction for trigonometric functions (1983).
"""

import numpy as np

UNSIGNED = np.dtype(np.uint64)
FLOAT = np.dtype(np.float64)

# Nothing, and then the bits of 2 / pi behind the point, 64 by 64.
WORDS = (
    0, 0xA2F9836E4E441529, 0xFC2757D1F534DDC0, 0xDB6295993C439041,
    0xFE5163ABDEBBC561, 0xB7246E3A424DD2E0, 0x06492EEA09D1921C, 0xFE1DEB1CB129A73E,
    0xE88235F52EBB4484, 0xE99C7026B45F7E41, 0x3991D639835339F4, 0x9C845F8BBDF9283B,
    0x1FF897FFDE05980F, 0xEF2F118B5A0A6D1F, 0x6D367ECF27CB09B7, 0x4F463F669E5FEA2D,
    0x7527BAC7EBE5F17B, 0x3D0739F78A5292EA, 0x6BFB5FB11F8D5D08, 0x56033046FC7B6BAB,
)  # fmt: skip

# pi / 2 in two parts.
HALF_PI_PARTS = 1.5707963267948966, 6.123233995736766e-17


def window(k, start):
    """Write three words of the bits of `WORDS`, from a certain one on."""
    words = [k.constant(word, UNSIGNED) for word in WORDS]
    place = k.shift_right(start, 6)
    for step in (16, 8, 4, 2, 1):
        moved = k.ne(k.apply("and", place, step), 0)
        late = [k.select(moved, *pair) for pair in zip(words[step:], words)]
        words = [*late, *words[len(late) :]][: step + 3]
    shift = k.apply("and", start, 63)
    rest = k.xor(shift, 63)
    tops = [k.shift_left(word, shift) for word in words[:3]]
    ends = [k.shift_right(k.shift_right(word, 1), rest) for word in words[1:]]
    return [k.apply("or", top, end) for top, end in zip(tops, ends)]


def upper_half(k, x, y):
    """Write the first 64 bits of the 128 of a product."""
    (a, b), (c, d) = ((k.shift_right(n, 32), low_half(k, n)) for n in (x, y))
    first = k.add(k.mul(a, d), k.shift_right(k.mul(b, d), 32))
    second = k.add(k.mul(b, c), low_half(k, first))
    carried = k.add(k.shift_right(first, 32), k.shift_right(second, 32))
    return k.add(k.mul(a, c), carried)


def low_half(k, x):
    """Write the last 32 of 64 bits."""
    return k.apply("and", x, 2**32 - 1)


def far(k, x):
    """Write what is left of x without quarter turns, and bits that end with these.

    Args:
      x: a node, float64, for a number above 2**20.
    """
    bits = k.bitcast(x, UNSIGNED)
    digits = k.apply("or", k.apply("and", bits, 2**52 - 1), 2**52)
    start = k.sub(k.shift_right(bits, 52), 1013)
    high, middle, low = window(k, start)
    second = k.mul(middle, digits)
    tail = k.add(second, upper_half(k, low, digits))
    carry = k.select(k.lt(tail, second), k.number(1, tail), 0)
    head = k.add(k.mul(high, digits), k.add(upper_half(k, middle, digits), carry))
    turns = k.shift_right(k.add(head, 2**61), 62)
    part = k.bitcast(k.sub(head, k.shift_left(turns, 62)), np.dtype(np.int64))
    return k.add(quarter_turns(k, part, tail), k.sub(x, x)), turns


def quarter_turns(k, part, tail):
    """Write the angle of (part + tail / 2**64) / 2**62 quarter turns."""
    first = k.convert(part, FLOAT)
    rest = k.convert(k.sub(part, k.convert(first, part.dtype)), FLOAT)
    rest = k.fma(k.convert(tail, FLOAT), 2.0**-64, rest)
    total = k.add(first, rest)
    lost = k.sub(rest, k.sub(total, first))
    high, low = (half * 2.0**-62 for half in HALF_PI_PARTS)
    return k.fma(total, high, k.fma(total, low, k.mul(lost, high)))
