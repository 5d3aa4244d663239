"""Sorting along an axis: the primitive, and functions to bind it.

Reference: ``jax.lax.sort``.
"""

# Made from chapters/29_sorting.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Sequence
from typing import Any, overload

from minijax.arrays.array import primitive_rules
from minijax.arrays.avals import typeof
from minijax.arrays.checks import (
    ANY,
    as_integer,
    as_truth,
    canonicalize_axis,
    check_axes,
    check_kind,
)
from minijax.arrays.numerics import wide
from minijax.core import Array, Primitive
from minijax.typing import ArrayLike


def _sort_shape(*operands, dimension, is_stable, num_keys):
    if len({x.shape for x in operands}) > 1:
        shapes = " ".join(str(x.shape) for x in operands)
        raise TypeError(f"Arguments to sort must have equal shapes, got: {shapes}")
    check_axes("sort", operands[0], (dimension,))
    check_kind("sort", ANY, operands[:num_keys])
    return list(operands)


def _keys_of(x):
    if x.dtype.kind == "c":
        return [x.real, x.imag]
    return [x.astype(wide(x.dtype), copy=False)]


def _sorted(xp, *operands, dimension, is_stable, num_keys):
    keys = [key for x in operands[:num_keys] for key in _keys_of(x)]
    places = xp.lexsort(keys[::-1], axis=dimension)
    return [xp.take_along_axis(x, places, dimension) for x in operands]


sort_p = Primitive("sort")
primitive_rules(sort_p, _sort_shape, _sorted)


@overload
def sort(
    operand: ArrayLike, dimension: int = ..., is_stable: bool = ...
) -> Array: ...
@overload
def sort(
    operand: Sequence[ArrayLike],
    dimension: int = ...,
    is_stable: bool = ...,
    num_keys: int = ...,
) -> tuple[Array, ...]: ...
def sort(
    operand: Any, dimension: int = -1, is_stable: bool = True, num_keys: int = 1
) -> Any:
    """Sort an array, or several in the order of the first ones, along an axis.

    Of floats, -0.0 and 0.0 are equal, and NaN comes last. Complex numbers are in the
    order of their real parts, and among equals of their imaginary parts.

    Args:
      operand: an array, or a sequence of arrays of one shape.
      dimension: the axis.
      is_stable: whether equals keep their order. Here they always do.
      num_keys: how many of the arrays decide; the others are rearranged alike.

    Raises:
      TypeError: if `is_stable` is no bool.

    Reference: ``jax.lax.sort``.
    """
    several = isinstance(operand, Sequence)
    operands = operand if several else [operand]
    _check_keys(len(operands), num_keys, several)
    axis = canonicalize_axis(dimension, typeof(operands[0]).ndim)
    keys = as_integer(num_keys, "num_keys of sort")
    how = {"dimension": axis, "is_stable": as_truth(is_stable, "is_stable")}
    results = sort_p.bind(*operands, **how, num_keys=keys)
    return tuple(results) if several else results[0]


def _check_keys(count, num_keys, several):
    if not count:
        raise TypeError("Sort requires at least one operand")
    if several and not 1 <= num_keys <= count:
        raise ValueError(
            f"{num_keys=} must be between 1 and the number of operands, {count}"
        )
    if not several and num_keys != 1:
        raise ValueError(f"{num_keys=} must equal 1 for a single operand.")


def sort_key_val(
    keys: ArrayLike, values: ArrayLike, dimension: int = -1, is_stable: bool = True
) -> tuple[Array, Array]:
    """Sort `keys` along an axis, and rearrange `values` alike.

    Reference: ``jax.lax.sort_key_val``.
    """
    keys, values = sort((keys, values), dimension, is_stable)
    return keys, values
