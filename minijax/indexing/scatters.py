"""Scatters that subtract, multiply, keep the extreme, or apply a function.

Reference: ``jax.lax.scatter_sub``, ``jax.lax.scatter_mul``, ``jax.lax.scatter_min``.
"""

# Made from chapters/28_indexing_rest.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Callable
from typing import Any

from minijax import lax
from minijax.arrays.array import primitive_rules
from minijax.arrays.avals import ShapedArray, typeof
from minijax.core import Array, Primitive
from minijax.indexing.dimension_numbers import (
    GatherScatterMode,
    Promises,
    ScatterDimensionNumbers,
    bind_scatter,
    scatter_by,
    scatter_shape,
)
from minijax.indexing.primitives import entering, scatter_p, scattered
from minijax.jaxprs.staging import trace_to_jaxpr
from minijax.typing import ArrayLike

scatter_sub_p: Primitive = Primitive("scatter-sub")
scatter_mul_p: Primitive = Primitive("scatter-mul")
scatter_min_p: Primitive = Primitive("scatter-min")
scatter_max_p: Primitive = Primitive("scatter-max")
primitive_rules(scatter_sub_p, scatter_shape, scattered(entering("subtract")))
primitive_rules(scatter_mul_p, scatter_shape, scattered(entering("multiply")))
primitive_rules(scatter_min_p, scatter_shape, scattered(entering("minimum")))
primitive_rules(scatter_max_p, scatter_shape, scattered(entering("maximum")))


def scatter_sub(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """Subtract from windows of an array, at places that the program computes.

    Reference: ``jax.lax.scatter_sub``.
    """
    how = Promises(indices_are_sorted, unique_indices, mode)
    args = operand, scatter_indices, updates, dimension_numbers
    return scatter_by(scatter_sub_p, lax.sub, *args, how)


def scatter_mul(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """Multiply windows of an array, at places that the program computes.

    Reference: ``jax.lax.scatter_mul``.
    """
    how = Promises(indices_are_sorted, unique_indices, mode)
    args = operand, scatter_indices, updates, dimension_numbers
    return scatter_by(scatter_mul_p, lax.mul, *args, how)


def scatter_min(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """Put the smaller of two into windows at places that the program computes.

    Reference: ``jax.lax.scatter_min``.
    """
    how = Promises(indices_are_sorted, unique_indices, mode)
    args = operand, scatter_indices, updates, dimension_numbers
    return scatter_by(scatter_min_p, lax.min, *args, how)


def scatter_max(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """Put the larger of two into windows at places that the program computes.

    Reference: ``jax.lax.scatter_max``.
    """
    how = Promises(indices_are_sorted, unique_indices, mode)
    args = operand, scatter_indices, updates, dimension_numbers
    return scatter_by(scatter_max_p, lax.max, *args, how)


def scatter_apply(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    func: Callable[[Array], Array],
    dimension_numbers: ScatterDimensionNumbers,
    *,
    update_shape: Any = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """Apply a function of one number to windows at places that the program computes.

    Args:
      func: from a scalar to a scalar. An element that is named twice goes through it
        twice.
      update_shape: the shape that updates would have.

    The other arguments are those of `scatter`.

    Reference: ``jax.lax.scatter_apply``.
    """
    how = Promises(indices_are_sorted, unique_indices, mode)
    dtype = typeof(operand).dtype
    scalar = ShapedArray((), dtype)
    jaxpr, consts = trace_to_jaxpr(lambda x, _: [func(x)], [scalar, scalar])
    unused = lax.full(update_shape, 0, dtype)
    args = operand, scatter_indices, unused, dimension_numbers
    return bind_scatter(scatter_p, *args, how, jaxpr, tuple(consts))
