"""StableHLO of sorts, with the order in which NaN is last and -0 equals 0."""

# Made from chapters/40_export_rest.md by `make chapter`;
# edit the chapter, not this file.

import numpy as np

from minijax import lax
from minijax.arrays.avals import ShapedArray
from minijax.exporting.programs import called, stablehlo_rules
from minijax.exporting.rearranging import filled
from minijax.sorting.largest import approx_top_k_p


def _alike(block, x):
    """Return a float whose bits are the same for all zeros, and for all NaNs."""
    answer, zero = x.aval.update(dtype=np.dtype(bool)), filled(block, 0, x.aval)
    is_zero = block.op("compare EQ,", [x, zero], answer)
    is_nan = block.op("compare NE,", [x, x], answer)
    x = block.op("select", [is_zero, zero, x], x.aval)
    return block.op("select", [is_nan, filled(block, np.nan, x.aval), x], x.aval)


def before(block, x, y):
    """Return whether a scalar stands before another, and whether it may."""
    answer, kind = x.aval.update(dtype=np.dtype(bool)), ""
    if x.aval.dtype.kind == "f" or x.aval.dtype.name == "bfloat16":
        x, y, kind = _alike(block, x), _alike(block, y), ", TOTALORDER"
    return [block.op(f"compare {op},", [x, y], answer, kind) for op in ("LT", "EQ")]


def keys_of_complex(block, x):
    """Return the two numbers by which a complex number is sorted."""
    if x.aval.dtype.kind != "c":
        return [x]
    part = x.aval.update(dtype=np.zeros(0, x.aval.dtype).real.dtype)
    return [block.op(name, [x], part) for name in ("real", "imag")]


def _sort(block, eqn, *operands):
    params = eqn.params
    scalars = [x.aval.update(shape=()) for x in operands for _ in range(2)]

    def compare(block, *xs):
        """Return whether the first of each pair of scalars comes first."""
        keys = [keys_of_complex(block, x) for x in xs[: 2 * params["num_keys"]]]
        keys = [pair for x, y in zip(keys[::2], keys[1::2]) for pair in zip(x, y)]
        answer, _ = before(block, *keys.pop())
        for x, y in reversed(keys):
            less, same = before(block, x, y)
            tied = block.op("and", [same, answer], less.aval)
            answer = block.op("or", [less, tied], less.aval)
        return [answer]

    stable = str(params["is_stable"]).lower()
    how = f"dimension = {params['dimension']} : i64, is_stable = {stable}"
    avals, region = [x.aval for x in operands], block.region(scalars, compare)
    return block.generic("stablehlo.sort", operands, avals, how, [region])


stablehlo_rules[lax.sort_p] = _sort


def with_places(x, axis):
    """Return an array and the place of each element along an axis."""
    return [x, lax.broadcasted_iota(np.int32, x.shape, axis)]


def _swapped(x, axis):
    """Return an array with one axis and the last one exchanged."""
    axes = [*range(x.ndim)]
    axes[axis], axes[-1] = axes[-1], axes[axis]
    return lax.transpose(x, axes)


def top_k(block, x, k, axis):
    """Return the largest elements along an axis, and their places."""
    last = len(x.aval.shape) - 1
    if axis != last:
        [x] = called(block, lambda x: _swapped(x, axis), x)
    shape = (*x.aval.shape[:-1], k)
    places = ShapedArray(shape, np.dtype(np.int32))
    avals = [x.aval.update(shape=shape), places]
    found = block.generic("chlo.top_k", [x], avals, f"k = {k} : i64")
    if axis == last:
        return found
    return called(block, lambda *xs: [_swapped(y, axis) for y in xs], *found)


def _top_k(block, eqn, x):
    return top_k(block, x, eqn.params["k"], eqn.params["axis"])


def _smallest(x, k, axis):
    places = lax.broadcasted_iota(np.int32, x.shape, axis)
    rising = lax.sort([x, places], dimension=axis, num_keys=1)
    return [lax.slice_in_dim(y, 0, k, axis=axis) for y in rising]


def _approx_top_k(block, eqn, x):
    """All are found, as by our own rule."""
    k = eqn.params["k"]
    axis = eqn.params["reduction_dimension"] % len(x.aval.shape)
    if eqn.params["is_max_k"]:
        return top_k(block, x, k, axis)
    return called(block, _smallest, x, k=k, axis=axis)


stablehlo_rules[lax.top_k_p] = _top_k
stablehlo_rules[approx_top_k_p] = _approx_top_k
