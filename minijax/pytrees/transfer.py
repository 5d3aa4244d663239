# Made from chapters/05_pytrees_rest.md by `make chapter`;
# edit the chapter, not this file.
"""Moving all arrays of a tree between devices and the host.

Reference: ``jax.device_put``, ``jax.device_get``, ``jax.block_until_ready``.
"""

from typing import Any

from minijax.arrays import transfer
from minijax.arrays.array import ArrayImpl
from minijax.errors import present, presents
from minijax.pytrees.functions import tree_map
from minijax.pytrees.operations import flatten_axes
from minijax.pytrees.treedefs import tree_flatten, tree_leaves


def device_put(
    x: Any,
    device: Any = None,
    *,
    src: Any = None,
    donate: Any = False,
    may_alias: Any = None,
) -> Any:
    """Return a tree of arrays on a device.

    Args:
      x: a tree of arrays and scalars.
      device: a `Device`, a `Sharding`, or a tree of them that is a prefix of `x`; by
        default, or for None, each array stays where it is.
      src: where the arrays are now; they know it themselves.
      donate: whether the arrays of `x` may be given up, or a prefix of `x`. Those that
        move to another device are deleted.
      may_alias: False gives each result numbers of its own, or a prefix of `x`.

    Raises:
      TypeError: if a leaf is no array or scalar.
      ValueError: if `device` is no device, or no prefix of `x`, or if an array is to be
        given up and shared.

    Reference: ``jax.device_put``.
    """
    leaves, treedef = tree_flatten(x)
    given = {"device": device, "donate": donate, "may_alias": may_alias}
    devices, *wishes = (
        tuple(flatten_axes(f"device_put {name}", given[name], x)) for name in given
    )
    how = tuple(map(_semantics, *wishes))
    params = {"devices": devices, "srcs": (None,) * len(leaves), "copy_semantics": how}
    results = transfer.device_put_p.bind(*leaves, **params) if leaves else leaves
    return treedef.unflatten(results)


def _semantics(donate, may_alias):
    """Return what becomes of the buffers of an array that is put somewhere."""
    if donate and may_alias:
        raise ValueError("may_alias and donate cannot be True at the same time.")
    if donate:
        return transfer.ArrayCopySemantics.DONATE_INPUT
    copy = may_alias is not None and not may_alias
    semantics = transfer.ArrayCopySemantics
    return semantics.ALWAYS_COPY if copy else semantics.REUSE_INPUT


def copy_to_host_async(x: Any) -> Any:
    """Begin to copy all arrays of a tree to the host, and return the tree.

    Reference: ``jax.copy_to_host_async``.
    """
    for leaf in tree_leaves(x):
        if isinstance(leaf, ArrayImpl):
            leaf.copy_to_host_async()
    return x


def device_get(x: Any) -> Any:
    """Return a tree with each array as a read-only NumPy array.

    Reference: ``jax.device_get``.
    """
    return tree_map(transfer.device_get, x)


@presents
def block_until_ready(x: Any) -> Any:
    """Return a tree when the numbers of all its arrays are there.

    Reference: ``jax.block_until_ready``.
    """
    try:
        if type(x) is ArrayImpl:
            x.placement.device.wait(x._buffer)
            return x
        for leaf in tree_leaves(x):
            if isinstance(leaf, ArrayImpl):
                leaf.placement.device.wait(leaf._buffer)
        return x
    except Exception as error:
        present(error)
        raise
