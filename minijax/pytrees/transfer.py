# Made from chapters/05_pytrees_rest.md by `make chapter`;
# edit the chapter, not this file.
"""Moving all arrays of a tree between devices and the host.

Reference: ``jax.device_put``, ``jax.device_get``, ``jax.block_until_ready``.
"""

from typing import Any

from minijax.arrays import transfer
from minijax.arrays.array import ArrayImpl
from minijax.pytrees.functions import tree_map
from minijax.pytrees.operations import flatten_axes
from minijax.pytrees.treedefs import tree_flatten, tree_leaves


def device_put(x: Any, device: Any = None) -> Any:
    """Return a tree of arrays on a device.

    Args:
      x: a tree of arrays and scalars.
      device: a `Device`, or a tree of devices that is a prefix of `x`; by default,
        each array stays where it is.

    Raises:
      TypeError: if a leaf is no array or scalar.
      ValueError: if `device` is no device, or no prefix of `x`.

    Reference: ``jax.device_put``.
    """
    leaves, treedef = tree_flatten(x)
    devices = flatten_axes("device_put device", device, x)
    return treedef.unflatten(map(transfer.device_put, leaves, devices))


def device_get(x: Any) -> Any:
    """Return a tree with each array as a read-only NumPy array.

    Reference: ``jax.device_get``.
    """
    return tree_map(transfer.device_get, x)


def block_until_ready(x: Any) -> Any:
    """Return a tree when the numbers of all its arrays are there.

    Reference: ``jax.block_until_ready``.
    """
    if isinstance(x, ArrayImpl):
        return x.block_until_ready()
    for leaf in tree_leaves(x):
        transfer.block_until_ready(leaf)
    return x
