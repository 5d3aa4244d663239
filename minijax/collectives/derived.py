"""Collectives made of others, and primitives of meshes under JAX's path.

References: ``jax.lax.pcast``, ``pshuffle``, ``pswapaxes``, ``pbroadcast``,
``ragged_all_to_all``, ``jax.extend.core.primitives``.
"""

# Made from chapters/36_replicas_rest.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Sequence
from typing import Any

import numpy as np

from minijax.arrays.array import typeof
from minijax.batching.collectives import (
    all_gather,
    all_to_all,
    axis_group_size,
    axis_index,
    axis_names,
    axis_size,
    names_and_groups,
    ppermute,
    psum,
)
from minijax.control_flow.common import empty_p
from minijax.core import current_trace
from minijax.numpy import (
    arange,
    argmax,
    asarray,
    astype,
    clip,
    equal,
    where,
    zeros_like,
)
from minijax.sharding.manual_axes import checked_axis_names, get_vma, insert_pvary
from minijax.spmd.partitioner import sharding_constraint_p as sharding_constraint_p
from minijax.tree_util import tree_map

# Collectives made of others, and the change from one value for all to many.


def pcast(x: Any, axis_name: Any, *, to: str) -> Any:
    """Let a value that is the same on all devices along an axis count as different.

    Args:
      x: a pytree of arrays.
      axis_name: the name of an axis of the mesh, or a tuple of names.
      to: ``"get_vma"``.

    Raises:
      NameError: if no axis of that name is there.
      TypeError: if `axis_name` is neither a string nor a tuple.
      ValueError: if `x` varies along it already, or `to` is another word.

    Reference: ``jax.lax.pcast``.
    """
    if to != "varying":
        raise ValueError(
            f"Got unexpected `to` value {to!r}; pcast knows 'varying' (JAX's "
            "'reduced' and 'unreduced' belong to Explicit axes)."
        )
    if not isinstance(axis_name, str | tuple):
        raise TypeError(
            f"axis_name passed to pcast must be a tuple or a str, got {axis_name!r}."
        )
    names = axis_names(axis_name)
    checked = [name for name in names if name in checked_axis_names(current_trace())]

    def cast(leaf):
        if already := get_vma(leaf).intersection(checked):
            raise ValueError(
                f"Unsupported pcast from=varying, to='varying': {leaf!r} varies along "
                f"{sorted(already)}."
            )
        return insert_pvary(leaf, checked)

    return tree_map(cast, x)


def pshuffle(x: Any, axis_name: Any, perm: Sequence[int]) -> Any:
    """Reorder the values along a named axis: example `i` gets that of ``perm[i]``.

    Args:
      x: a pytree of arrays.
      axis_name: the name of the axis.
      perm: each index of the axis, once.

    Raises:
      NameError: if no axis of that name is there.
      ValueError: if `perm` is no permutation of the axis.

    Reference: ``jax.lax.pshuffle``.
    """
    if sorted(perm) != list(range(axis_size(axis_name))):
        raise ValueError(
            f"pshuffle: `perm` does not represent a permutation of the axis "
            f"{axis_name!r} of size {axis_size(axis_name)}: {perm}"
        )
    return ppermute(x, axis_name, [(source, i) for i, source in enumerate(perm)])


def pswapaxes(
    x: Any, axis_name: Any, axis: int, *, axis_index_groups: Any = None
) -> Any:
    """Swap a named axis with an axis of `x`, which has the same size.

    Reference: ``jax.lax.pswapaxes``; the arguments are those of `all_to_all`.
    """
    groups = axis_index_groups
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=groups)


def pbroadcast(x: Any, axis_name: Any, source: int) -> Any:
    """Return to all examples along a named axis the value that one of them has.

    Args:
      x: a pytree of arrays.
      axis_name: the name of the axis.
      source: the index of that one.

    Raises:
      NameError: if no axis of that name is there.
      ValueError: if `source` is no index of the axis.

    Reference: ``jax.lax.pbroadcast``.
    """
    if not 0 <= source < axis_size(axis_name):
        raise ValueError(
            f"pbroadcast: source {source} is no index of the axis {axis_name!r} of "
            f"size {axis_size(axis_name)}."
        )
    mine = equal(axis_index(axis_name), source)
    chosen = tree_map(lambda leaf: where(mine, leaf, zeros_like(leaf)), x)
    return psum(chosen, axis_name)


def ragged_all_to_all(
    operand: Any,
    output: Any,
    input_offsets: Any,
    send_sizes: Any,
    output_offsets: Any,
    recv_sizes: Any,
    *,
    axis_name: Any,
    axis_index_groups: Any = None,
) -> Any:
    """Exchange slices of rows, of a size of its own each, along a named axis.

    The slice number `i` goes to the example ``i // (count // size)``, of `count`
    slices and `size` examples.

    Args:
      operand: array of shape (n, ...), of which slices of rows are sent.
      output: array of shape (m, ...) and of the same dtype; what is received replaces
        its rows, and the others stay. Of two slices at one row the later one counts.
      input_offsets: for each slice its first row in `operand`; integers of shape
        (count,), as the three that follow.
      send_sizes: for each slice how many rows it has. The receivers' `recv_sizes` say
        the same, and are what counts.
      output_offsets: for each slice its first row in the receiver's `output`.
      recv_sizes: how many rows are received in each slice, those of the first example
        first.
      axis_name: the name of the axis, or a tuple of names.
      axis_index_groups: groups of equal size, see `psum`; devices know them, and
        ``vmap`` does not.

    Returns:
      An array of the shape and dtype of `output`.

    Raises:
      NameError: if no axis of that name is there.
      ValueError: if offsets or sizes are no integers of one rank-1 shape, their number
        is not divisible by the size of the axis, or the types of rows differ.

    Reference: ``jax.lax.ragged_all_to_all``.
    """
    names, groups = names_and_groups("ragged_all_to_all", axis_name, axis_index_groups)
    numbers = {
        "input_offsets": input_offsets,
        "send_sizes": send_sizes,
        "output_offsets": output_offsets,
        "recv_sizes": recv_sizes,
    }
    parts = _check_ragged(operand, output, numbers, axis_group_size(names, **groups))
    if not np.shape(operand)[0]:
        return output
    how = {"axis_index_groups": axis_index_groups}
    begin, source = [
        all_to_all(astype(x, int), names, 0, 0, tiled=True, **how)
        for x in (output_offsets, input_offsets)
    ]
    count = np.shape(output)[0]
    chosen, sender, row = _received(begin, source, recv_sizes, count, parts)
    row = clip(row, 0, np.shape(operand)[0] - 1)
    rows = asarray(all_gather(operand, names, **how))[sender, row]
    return where(chosen.reshape(-1, *[1] * (np.ndim(output) - 1)), rows, output)


def _received(begin, source, sizes, count, parts):
    """Return which of `count` rows are received, from whom, and which row it is."""
    place = arange(count)
    inside = (place[:, None] >= begin) & (place[:, None] < begin + sizes)
    last = begin.shape[0] - 1 - argmax(inside[:, ::-1], 1)
    return inside.any(1), last // parts, place - begin[last] + source[last]


def _check_ragged(operand, output, numbers, size):
    """Return how many slices each example gets."""
    name, avals = "ragged_all_to_all", {key: typeof(x) for key, x in numbers.items()}
    for key, aval in avals.items():
        if aval.dtype.kind not in "iu":
            raise ValueError(f"{name} {key} must be integer type, got {aval}.")
        if aval.ndim != 1 or not aval.shape[0]:
            raise ValueError(
                f"{name} {key} must be rank 1 with positive dimension size, but got "
                f"shape {aval.shape}"
            )
    counts = {key: aval.shape[0] for key, aval in avals.items()}
    count = counts["input_offsets"]
    if len({*counts.values()}) > 1 or count % size:
        raise ValueError(
            f"{name} takes one offset and size for each slice, and as many slices for "
            f"each example of the axis, of size {size}; got {counts}."
        )
    sent, kept = typeof(operand), typeof(output)
    if not sent.ndim or sent.shape[1:] != kept.shape[1:] or sent.dtype != kept.dtype:
        raise ValueError(
            f"{name} puts rows of operand into output, so that all but the first axis, "
            f"and the dtype, have to be the same; got {sent} and {kept}."
        )
    return count // size


# Primitives of branches and of meshes, under JAX's path.

empty2_p = empty_p
