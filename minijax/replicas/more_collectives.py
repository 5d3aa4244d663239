# Made from chapters/36_replicas_rest.md by `make chapter`;
# edit the chapter, not this file.
"""Collectives made of others, and the change from one value for all to many.

Reference: ``jax.lax.pcast``, ``pshuffle``, ``pswapaxes``, ``pbroadcast``.
"""

from collections.abc import Sequence
from typing import Any

from minijax.batching.collectives import ppermute, psum
from minijax.batching.exchanges import all_to_all
from minijax.batching.named_axes import axis_index, axis_names, axis_size
from minijax.core import current_trace
from minijax.mesh_maps.manual_axes import checked_names, vary, varying
from minijax.numpy import equal, where, zeros_like
from minijax.tree_util import tree_map


def pcast(x: Any, axis_name: Any, *, to: str) -> Any:
    """Let a value that is the same on all devices along an axis count as different.

    Args:
      x: a pytree of arrays.
      axis_name: the name of an axis of the mesh, or a tuple of names.
      to: ``"varying"``.

    Raises:
      NameError: if no axis of that name is there.
      ValueError: if `x` varies along it already, or `to` is another word.

    Reference: ``jax.lax.pcast``.
    """
    if to != "varying":
        raise ValueError(
            f"Got unexpected `to` value {to!r}; pcast knows 'varying' (JAX's "
            "'reduced' and 'unreduced' belong to Explicit axes)."
        )
    names = axis_names(axis_name)
    checked = [name for name in names if name in checked_names(current_trace())]

    def cast(leaf):
        if already := varying(leaf).intersection(checked):
            raise ValueError(
                f"Unsupported pcast from=varying, to='varying': {leaf!r} varies along "
                f"{sorted(already)}."
            )
        return vary(leaf, checked)

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
