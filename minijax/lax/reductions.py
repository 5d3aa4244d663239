"""Reductions: primitives that fold an axis, and running totals (prefix sums).

Reference: ``jax.lax``.
"""

# Made from chapters/02_arrays_rest.md by `make chapter`;
# edit the chapter, not this file.

import numpy as np

from minijax.arrays.array import primitive_rules
from minijax.arrays.avals import ShapedArray
from minijax.arrays.checks import (
    ANY,
    BITS,
    INEXACT,
    NUMBER,
    ORDERED,
    as_integer,
    check_axes,
    check_kind,
    without,
)
from minijax.arrays.dtypes import canonicalize_dtype
from minijax.arrays.numerics import longer, running_log_sum_exp, wide
from minijax.core import Primitive
from minijax.lax.factories import reduction


def lowest(dtype):
    """Return the number that no number of `dtype` is below."""
    if dtype.kind in "iu":
        return np.iinfo(dtype).min
    return dtype.type(False if dtype.kind == "b" else -np.inf)


def highest(dtype):
    """Return the number that no number of `dtype` is above."""
    if dtype.kind in "iu":
        return np.iinfo(dtype).max
    return dtype.type(True if dtype.kind == "b" else np.inf)


def countable(size, index_dtype):
    """Return whether an integer dtype can number the places of an axis."""
    return size - 1 <= np.iinfo(index_dtype).max


def check_places(name, size, index_dtype):
    """Raise an OverflowError unless `index_dtype` can number the places of an axis."""
    if not countable(size, index_dtype):
        raise OverflowError(
            f"{name} along an axis of {size} elements: {index_dtype} counts to "
            f"{np.iinfo(index_dtype).max}. Call it along one axis of several, or have "
            'an index of 64 bits: config.update("jax_enable_x64", True).'
        )


def arg_reduction(name):
    """Make a primitive that finds extremes; return it, and the function to bind it."""
    primitive = Primitive(name)

    def shape(x, axes, index_dtype):
        check_kind(name, ORDERED, [x])
        check_axes(name, x, axes)
        if len(axes) != 1 or x.shape[axes[0]] == 0:
            raise ValueError(f"{name} needs one non-empty axis, got {axes} of {x}.")
        if index_dtype.kind not in "iu":
            raise TypeError(f"index_dtype must be an integer type, got {index_dtype}.")
        return [ShapedArray(without(x.shape, axes), index_dtype)]

    def compute(xp, x, axes, index_dtype):
        check_places(name, x.shape[axes[0]], index_dtype)
        return getattr(xp, name)(x.astype(wide(x.dtype), copy=False), axes[0])

    def function(operand, axis, index_dtype):
        dtype = canonicalize_dtype(index_dtype)
        axes = (as_integer(axis, "an axis"),)
        [result] = primitive.bind(operand, axes=axes, index_dtype=dtype)
        return result

    primitive_rules(primitive, shape, compute)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"Return the first place of the {name[3:]}imum along `axis`; NaN counts as one."
        f"\n\nReference: ``jax.lax.{name}``."
    )
    return primitive, function


def cumulative(name, accumulate, accepts=NUMBER):
    """Make a primitive of running totals; return it, and the function to bind it."""
    primitive = Primitive(name)

    def shape(x, axis, reverse):
        check_axes(name, x, (axis,))
        check_kind(name, accepts, [x])
        return [x]

    def compute(xp, x, axis, reverse):
        x = x.astype(wide(x.dtype), copy=False)
        if not reverse:
            return accumulate(xp, x, axis)
        return xp.flip(accumulate(xp, xp.flip(x, axis), axis), axis)

    def function(operand, axis=0, reverse=False):
        axis = as_integer(axis, "an axis")
        [result] = primitive.bind(operand, axis=axis, reverse=bool(reverse))
        return result

    primitive_rules(primitive, shape, compute)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"Running {name[3:]} along `axis`, from its end if `reverse`.\n\n"
        f"Reference: ``jax.lax.{name}``."
    )
    return primitive, function


reduce_prod_p, reduce_prod = reduction(
    "reduce_prod", NUMBER, lambda xp, x, axes: xp.prod(x, axes, wide(x.dtype))
)
reduce_max_p, reduce_max = reduction(
    "reduce_max", ANY, lambda xp, x, axes: xp.max(x, axes, initial=lowest(x.dtype))
)
reduce_min_p, reduce_min = reduction(
    "reduce_min", ANY, lambda xp, x, axes: xp.min(x, axes, initial=highest(x.dtype))
)
reduce_and_p, reduce_and = reduction(
    "reduce_and", BITS, lambda xp, x, axes: xp.bitwise_and.reduce(x, axes)
)
reduce_or_p, reduce_or = reduction(
    "reduce_or", BITS, lambda xp, x, axes: xp.bitwise_or.reduce(x, axes)
)
reduce_xor_p, reduce_xor = reduction(
    "reduce_xor", BITS, lambda xp, x, axes: xp.bitwise_xor.reduce(x, axes)
)
argmax_p, argmax = arg_reduction("argmax")
argmin_p, argmin = arg_reduction("argmin")
cumsum_p, cumsum = cumulative(
    "cumsum", lambda xp, x, axis: xp.cumsum(x, axis, longer(x.dtype))
)
cumprod_p, cumprod = cumulative(
    "cumprod", lambda xp, x, axis: xp.cumprod(x, axis, longer(x.dtype))
)
cummax_p, cummax = cumulative(
    "cummax", lambda xp, x, axis: xp.maximum.accumulate(x, axis)
)
cummin_p, cummin = cumulative(
    "cummin", lambda xp, x, axis: xp.minimum.accumulate(x, axis)
)
cumlogsumexp_p, cumlogsumexp = cumulative("cumlogsumexp", running_log_sum_exp, INEXACT)
