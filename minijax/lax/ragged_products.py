"""Products of arrays whose axis is cut into groups of different sizes.

Reference: ``jax.lax.ragged_dot_general``.
"""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.arrays.array import typeof
from minijax.arrays.numerics import (
    canonicalize_int_tuple,
    dim_size_along,
    lhs_free_axes,
    sizes_of_axes,
)
from minijax.arrays.out_sharding import with_out_sharding
from minijax.core import Array
from minijax.lax.reductions import DotAlgorithm, DotAlgorithmPreset, Precision
from minijax.typing import ArrayLike

PrecisionLike = (
    None | str | Precision | tuple[str, str] | tuple[Precision, Precision]
    | DotAlgorithm | DotAlgorithmPreset
)  # fmt: skip
_Pair = tuple[Sequence[int], Sequence[int]]
DotDimensionNumbers = tuple[_Pair, _Pair]


@dataclasses.dataclass(frozen=True)
class RaggedDotDimensionNumbers:
    """Which axes of a product are summed over, shared, ragged, and count groups.

    Args:
      dot_dimension_numbers: those of `dot_general`.
      lhs_ragged_dimensions: the one axis of `lhs` that is cut into groups.
      rhs_group_dimensions: the axis of `rhs` that counts groups, or none.

    Reference: ``jax.lax.RaggedDotDimensionNumbers``.
    """

    dot_dimension_numbers: DotDimensionNumbers
    lhs_ragged_dimensions: Sequence[int]
    rhs_group_dimensions: Sequence[int]

    def __post_init__(self):
        pairs = [
            tuple(map(canonicalize_int_tuple, pair))
            for pair in self.dot_dimension_numbers
        ]
        object.__setattr__(self, "dot_dimension_numbers", tuple(pairs))
        for name in ("lhs_ragged_dimensions", "rhs_group_dimensions"):
            object.__setattr__(self, name, canonicalize_int_tuple(getattr(self, name)))


@with_out_sharding
def ragged_dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    group_sizes: ArrayLike,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: PrecisionLike = None,
    preferred_element_type: Any = None,
    group_offset: Array | None = None,
    out_sharding: Any = None,
) -> Array:
    """Multiply as `dot_general`, where an axis of `lhs` is cut into groups.

    Args:
      lhs, rhs: arrays.
      group_sizes: how many places of the ragged axis each group has: integers, of
        shape ``[g]``, or with the batch axes of `lhs` in front, and those axes of the
        kind of the ragged one that come before it.
      ragged_dot_dimension_numbers: a `RaggedDotDimensionNumbers`.
      precision, preferred_element_type: as in `dot_general`.
      group_offset, out_sharding: where the result lies on a mesh.

    Returns:
      If the ragged axis is neither shared nor summed over, the product of each group
      with its part of `rhs`; if it is summed over, a product for each group, along a
      new first axis; if it is shared, that of `dot_general`.

    Raises:
      TypeError: if axes or sizes do not fit.
      NotImplementedError: if there is a `group_offset`.

    Reference: ``jax.lax.ragged_dot_general``.
    """
    if group_offset is not None:
        raise NotImplementedError("ragged_dot_general: group_offset has to be None.")
    axes, counts = ragged_dot_dimension_numbers, jnp.asarray(group_sizes)
    if not isinstance(axes, RaggedDotDimensionNumbers):
        raise TypeError(
            f"ragged_dot_dimension_numbers are RaggedDotDimensionNumbers, not {axes!r}."
        )
    lhs, rhs = jnp.asarray(lhs), jnp.asarray(rhs)
    ragged = _ragged_axis(lhs, axes.lhs_ragged_dimensions)
    contract, batch = axes.dot_dimension_numbers
    prefix = _axes_before(ragged, lhs.ndim, contract[0], batch[0])
    _check_groups(lhs, rhs, counts, axes, ragged, prefix)
    (lc, rc), (lb, rb) = contract, batch
    if ragged in lb:
        numbers = axes.dot_dimension_numbers
    elif ragged in lc:
        along = rc[lc.index(ragged)]
        others = _axes_before(along, rhs.ndim, rc, rb)
        lhs = _in_groups(lhs, ragged, prefix, counts)
        rhs = _in_groups(rhs, along, others, counts)
        numbers = (_moved(lc), _moved(rc)), ((0, *_moved(lb)), (0, *_moved(rb)))
    else:
        lhs = _in_groups(lhs, ragged, prefix, counts)
        group = axes.rhs_group_dimensions
        numbers = ((0, *_moved(lc)), (*group, *rc)), (_moved(lb), rb)
    return lax.dot_general(lhs, rhs, numbers, precision, preferred_element_type)


def _moved(axes):
    """Return where axes are behind a new first one."""
    return tuple([axis + 1 for axis in axes])


def _in_groups(x, axis, prefix, counts):
    """Return `x` once for each group, with zeros at the places of other groups.

    Args:
      x: an array.
      axis: its ragged axis.
      prefix: the axes of `x` along which `counts` may differ.
      counts: sizes of groups, ``[g]`` or with the sizes of `prefix` in front.

    Returns:
      An array of shape ``[g, *x.shape]``.
    """
    shape = *sizes_of_axes(x.shape, prefix), counts.shape[-1]
    ends = jnp.cumsum(jnp.broadcast_to(counts, shape), -1)[..., None]
    place = jnp.arange(x.shape[axis], dtype=ends.dtype)
    inside = (place >= ends - counts[..., None]) & (place < ends)
    targets = [*_moved(prefix), 0, axis + 1]
    inside = lax.transpose(inside, tuple(np.argsort(targets).tolist()))
    rest = [each for each in range(x.ndim + 1) if each not in targets]
    return jnp.where(lax.expand_dims(inside, rest), x, 0)


def _axes_before(ragged, ndim, contracting, batch):
    """Return the axes along which sizes of groups may differ."""
    if ragged in batch:
        return batch[: batch.index(ragged)]
    free = (
        contracting
        if ragged in contracting
        else lhs_free_axes(ndim, contracting, batch)
    )
    return (*batch, *free[: free.index(ragged)])


def _ragged_axis(lhs, axes):
    if len(axes) != 1:
        raise TypeError(
            f"ragged_dot_general expects exactly one lhs ragged dimension, got {axes}."
        )
    if not 0 <= axes[0] < lhs.ndim:
        raise TypeError(
            "ragged_dot_general requires lhs ragged dimension numbers to be "
            "nonnegative and less than the number of axes of the lhs value, got "
            f"{axes[0]} for lhs of rank {lhs.ndim}."
        )
    return axes[0]


def _check_groups(lhs, rhs, counts, axes, ragged, prefix):
    if counts.ndim == 0:
        raise TypeError("ragged_dot_general: expected rank of group_sizes to be >=1.")
    wanted = *sizes_of_axes(lhs.shape, prefix), counts.shape[-1]
    if counts.ndim != 1 and counts.shape != wanted:
        raise TypeError(
            f"ragged_dot_general: expected group_sizes to have shape {wanted}, got "
            f"{counts.shape}."
        )
    (lc, rc), (lb, rb) = axes.dot_dimension_numbers
    group = axes.rhs_group_dimensions
    is_free = ragged not in (*lc, *lb)
    if len(group) != is_free:
        raise TypeError(
            f"ragged_dot_general requires {'one' if is_free else 'zero'} group "
            f"dimensions in the rhs when the lhs ragged dimension is "
            f"{'noncontracting' if is_free else 'contracting or batch'}, got {group}."
        )
    if is_free and (group[0] in (*rc, *rb) or not 0 <= group[0] < rhs.ndim):
        raise TypeError(
            f"ragged_dot_general: the rhs group dimension {group[0]} has to be an axis "
            f"of rhs {typeof(rhs)}, other than contracting and batch dimensions."
        )
    if is_free and rhs.shape[group[0]] != counts.shape[-1]:
        raise TypeError(
            "ragged_dot_general: expected rhs group dimension size to be "
            f"{counts.shape[-1]}, got {rhs.shape[group[0]]}."
        )


def index_take(src: ArrayLike, idxs: Sequence[ArrayLike], axes: Sequence[int]) -> Array:
    """Take elements or slices at places that are numbered around each axis.

    Args:
      src: an array.
      idxs: for each of the axes, a vector of integers; a place beyond the end of its
        axis is counted on from the beginning.
      axes: axes of `src`, in rising order.

    Returns:
      An array whose first axis counts places, followed by the other axes of `src`.

    Reference: ``jax.lax.index_take``.
    """
    src, along = jnp.asarray(src), canonicalize_int_tuple(axes, "Axes")
    count = np.array([dim_size_along(src, axis) for axis in along])
    columns = [lax.expand_dims(jnp.asarray(each), (1,)) for each in idxs]
    places = lax.concatenate(columns, 1)
    places = places % jnp.asarray(count[None], places.dtype)
    window = tuple([1 if i in along else size for i, size in enumerate(src.shape)])
    numbers = lax.GatherDimensionNumbers(
        offset_dims=tuple(range(1, src.ndim - len(along) + 1)),
        collapsed_slice_dims=along,
        start_index_map=along,
    )
    return lax.gather(src, places, numbers, window)
