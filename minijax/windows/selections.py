"""Elements that win in their windows: their tangents, and where they are.

Reference: ``jax._src.lax.windowed_reductions``.
"""

# Made from chapters/30_windows_rest.md by `make chapter`;
# edit the chapter, not this file.

import numpy as np

from minijax import lax
from minijax.arrays.array import shape_rules
from minijax.arrays.avals import ShapedArray, typeof
from minijax.arrays.checks import ORDERED, check_kind
from minijax.arrays.dtypes import canonicalize_dtype
from minijax.core import Primitive, impl_rules
from minijax.indexing.dimension_numbers import ScatterDimensionNumbers
from minijax.indexing.primitives import scatter_add
from minijax.lax.reductions import highest, lowest
from minijax.windows.pooling import check_sliding, combined, sliding_of

select_and_gather_add_p = Primitive("select_and_gather_add")
select_and_scatter_add_p = Primitive("select_and_scatter_add")


def select_in_windows(operand, others, sliding, select_prim, padded):
    """Return the numbers of some arrays where a comparison selects an element.

    Args:
      operand: array whose elements are compared.
      others: arrays of its shape.
      select_prim: a primitive, ``ge`` or ``le``.
      padded: for each of the others what it has where there is no element.

    Returns:
      A list of arrays with a number for each window.
    """
    dtype = typeof(operand).dtype
    worst = (lowest if select_prim is lax.ge_p else highest)(dtype)

    def winner(xs, ys):
        [stays] = select_prim.bind(xs[0], ys[0])
        return [lax.select(stays, x, y) for x, y in zip(xs, ys)]

    inits = [np.asarray(worst, dtype)[()], *padded]
    return combined(winner, [operand, *others], inits, sliding)[1:]


def _gather_add(tangents, operand, *, select_prim, **params):
    zero = typeof(tangents).dtype.type(0)
    how = sliding_of(**params), select_prim, [zero]
    return select_in_windows(operand, [tangents], *how)


PLACES = [np.dtype(np.int32), np.dtype(np.uint32)]  # if all elements can be counted


def _place_dtype(aval):
    """Return the dtype that numbers the elements of an array, and one more."""
    for dtype in (*PLACES, canonicalize_dtype(np.int64)):
        if aval.size <= np.iinfo(dtype).max:
            return dtype
    raise OverflowError(
        f"The gradient of an extreme in windows of {aval}: the places of its elements "
        "need 64 bits. Take windows of parts of the array, or have integers of 64 "
        'bits: config.update("jax_enable_x64", True).'
    )


def _scatter_add(source, operand, *, select_prim, **params):
    aval, dtype = typeof(operand), typeof(source).dtype
    counting = _place_dtype(aval)
    numbers = lax.reshape(lax.iota(counting, aval.size), aval.shape)
    nowhere = np.array(-1).astype(counting)[()]  # unsigned: the largest number
    how = sliding_of(**params), select_prim, [nowhere]
    [places] = select_in_windows(operand, [numbers], *how)
    places = lax.reshape(places, (typeof(places).size, 1))
    flat = lax.reshape(source, (typeof(source).size,))
    axes = ScatterDimensionNumbers((), (0,), (0,))
    zeros = lax.full((aval.size,), 0, dtype)
    return [
        lax.reshape(scatter_add(zeros, places, flat, axes, mode="drop"), aval.shape)
    ]


impl_rules[select_and_gather_add_p] = _gather_add
impl_rules[select_and_scatter_add_p] = _scatter_add


def _gather_add_shape(tangents, operand, *, select_prim, **params):
    if tangents.shape != operand.shape:
        raise TypeError(
            "select_and_gather_add needs tangents of the operand's shape, got "
            f"{tangents} and {operand}."
        )
    sliding = sliding_of(**params)
    check_kind("select_and_gather_add", ORDERED, [operand])
    check_sliding("select_and_gather_add", operand.shape, sliding)
    return [ShapedArray(sliding.counts(operand.shape), tangents.dtype)]


def _scatter_add_shape(source, operand, *, select_prim, **params):
    sliding = sliding_of(**params)
    check_kind("select_and_scatter_add", ORDERED, [operand])
    check_sliding("select_and_scatter_add", operand.shape, sliding)
    if source.shape != sliding.counts(operand.shape):
        raise TypeError(
            "select_and_scatter_add needs a number for each window, shape "
            f"{sliding.counts(operand.shape)}, got {source}."
        )
    return [ShapedArray(operand.shape, source.dtype)]


shape_rules[select_and_gather_add_p] = _gather_add_shape
shape_rules[select_and_scatter_add_p] = _scatter_add_shape
