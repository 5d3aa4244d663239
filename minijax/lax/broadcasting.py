"""Broadcasting: the primitive that stretches arrays.

Reference: ``jax.lax.broadcast_in_dim``.
"""

# Made from chapters/02_arrays.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Sequence
from typing import Any

from minijax.arrays.array import asarray_impl, primitive_rules
from minijax.arrays.avals import typeof
from minijax.arrays.checks import (
    broadcast_shapes,
    check_placed,
    integers,
    refuse_sharding,
)
from minijax.core import Array, Primitive
from minijax.typing import ArrayLike

broadcast_in_dim_p = Primitive("broadcast_in_dim")


def _broadcast_shape(x, shape, broadcast_dimensions):
    check_placed(x.shape, shape, broadcast_dimensions)
    return [x.update(shape=shape)]


def _broadcast(xp, x, shape, broadcast_dimensions):
    sizes = [1] * len(shape)
    for place, size in zip(broadcast_dimensions, x.shape):
        sizes[place] = size
    return xp.broadcast_to(x.reshape(sizes), shape)


primitive_rules(broadcast_in_dim_p, _broadcast_shape, _broadcast)


def broadcast_in_dim(
    operand: ArrayLike,
    shape: Sequence[int],
    broadcast_dimensions: Sequence[int],
    *,
    out_sharding: Any = None,
) -> Array:
    """Stretch `operand` to `shape`.

    Args:
      operand: an array; axis i becomes axis ``broadcast_dimensions[i]`` of the result.
      shape: the result's shape; an axis of size 1 stretches, other axes are new.
      broadcast_dimensions: increasing, one for each axis of `operand`.

    Reference: ``jax.lax.broadcast_in_dim``.
    """
    refuse_sharding("broadcast_in_dim", out_sharding)
    if isinstance(operand, Array) and operand.ndim == len(shape) == 0:
        return operand
    places = integers(broadcast_dimensions)
    [result] = broadcast_in_dim_p.bind(
        operand, shape=integers(shape, "Shapes"), broadcast_dimensions=places
    )
    return result


def broadcast_to_rank(x: ArrayLike, rank: int) -> Array:
    """Put axes of size 1 in front, until there are `rank` axes.

    Reference: ``jax.lax.broadcast_to_rank``.
    """
    shape = typeof(x).shape
    new = rank - len(shape)
    if new > 0:
        return broadcast_in_dim(x, (1,) * new + shape, range(new, rank))
    return x if isinstance(x, Array) else asarray_impl(x)


def promote_shapes(*args):
    """Give `args` one rank, by new leading axes of size 1; scalars stay scalars."""
    shapes = [typeof(arg).shape for arg in args]
    if len({len(shape) for shape in shapes if shape}) < 2:
        return [*args]
    rank = len(broadcast_shapes(*shapes))
    return [
        broadcast_to_rank(arg, rank) if 0 < len(shape) < rank else arg
        for arg, shape in zip(args, shapes)
    ]
