"""Running products and their kin, as programs of simpler primitives: prefix sums.

Their derivatives are the derivatives of these programs.

Reference: G. Blelloch, "Prefix sums and their applications" (1990);
``jax.lax.associative_scan``.
"""

# Made from chapters/04_forward_rest.md by `make chapter`;
# edit the chapter, not this file.

import numpy as np

from minijax import lax
from minijax.arrays.avals import typeof
from minijax.forward.programs import cut, program_rule
from minijax.forward.rules import jvp_rules


def running(combine):
    """Return a function that combines along an axis and keeps each partial result.

    Args:
      combine: an associative elementwise function of two arrays.
    """

    def program(x, axis, reverse):
        if reverse:
            return lax.rev(program(lax.rev(x, (axis,)), axis, False), (axis,))
        return scan_pairs(combine, x, axis)

    return program


def scan_pairs(combine, x, axis):
    """Combine along `axis` in about log2(size) rounds.

    Neighbours are combined first. The running results of these pairs are every second
    answer; one more element to each gives the others.
    """
    size = typeof(x).shape[axis]
    if size < 2:
        return x
    pairs = combine(cut(x, axis, 0, size - 1, 2), cut(x, axis, 1, size, 2))
    odd, first = scan_pairs(combine, pairs, axis), cut(x, axis, 0, 1)
    if size == 2:
        return lax.concatenate([first, odd], axis)
    before = cut(odd, axis, 0, (size - 1) // 2)
    even = lax.concatenate([first, combine(before, cut(x, axis, 2, size, 2))], axis)
    return lax.add(spread(even, axis, 0, size), spread(odd, axis, 1, size))


def spread(x, axis, start, size):
    """Put the elements of `x` at every second place from `start`, zeros elsewhere."""
    ndim, used = typeof(x).ndim, start + 2 * typeof(x).shape[axis] - 1
    here = (start, size - used, 1)
    return lax.pad(x, 0.0, [here if i == axis else (0, 0, 0) for i in range(ndim)])


def log_add_exp(x, y):
    """Return log(exp(x) + exp(y)) without overflow."""
    real = lax.real if typeof(x).dtype.kind == "c" else lambda x: x
    y_wins = lax.lt(real(x), real(y))
    above = lax.select(y_wins, y, x)
    gap = lax.select(y_wins, lax.sub(x, y), lax.sub(y, x))
    endless = lax.bitwise_and(lax.eq(x, y), lax.ne(gap, gap))  # two equal infinities
    gap = lax.select(endless, lax.full_like(gap, 0), gap)
    total = without_turns(lax.add(above, lax.log1p(lax.exp(gap))))
    return lax.select(endless, lax.add(x, y), total)


def without_turns(x):
    """Take whole turns from the angle of a complex number, as logarithms do."""
    if typeof(x).dtype.kind != "c":
        return x
    angle, turn = lax.imag(x), 2 * np.pi
    turns = lax.round(lax.div(angle, turn), lax.RoundingMethod.TO_NEAREST_EVEN)
    return lax.complex(lax.real(x), lax.sub(angle, lax.mul(turns, turn)))


running_totals = {
    lax.cumprod_p: running(lax.mul),
    lax.cummax_p: running(lax.max),
    lax.cummin_p: running(lax.min),
    lax.cumlogsumexp_p: running(log_add_exp),
}
jvp_rules.update({p: program_rule(program) for p, program in running_totals.items()})
