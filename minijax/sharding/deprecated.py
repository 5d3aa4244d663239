"""Device grids, and shard_map and pjit with the arguments that they had first.

References: ``jax.experimental.mesh_utils``, ``jax.experimental.shard_map``,
``jax.experimental.pjit``.
"""

# Made from chapters/36_replicas_rest.md by `make chapter`;
# edit the chapter, not this file.

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minijax.arrays.devices import devices as devices_of
from minijax.arrays.numerics import operator_index
from minijax.jitting.api import jit
from minijax.jitting.compilation import UNSPECIFIED
from minijax.sharding import pmap as specifications

# Devices in an array, of one process or in blocks of several.


def create_device_mesh(
    mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    contiguous_submeshes: bool = False,
    allow_split_physical_axes: bool = False,
) -> np.ndarray:
    """Return devices in an array of a shape, as `Mesh` takes them.

    Args:
      mesh_shape: the number of devices along each axis of the mesh.
      devices: those to take; by default, all.
      contiguous_submeshes, allow_split_physical_axes: without effect, since no device
        is nearer to some of the others.

    Raises:
      ValueError: if there are more or fewer devices than the shape has places.
      TypeError: if the shape is no sequence of integers.

    Reference: ``jax.experimental.mesh_utils.create_device_mesh``.
    """
    found = list(devices_of() if devices is None else devices)
    shape = tuple(operator_index(n, "a size in mesh_shape") for n in mesh_shape)
    if math.prod(shape) != len(found):
        raise ValueError(
            f"Number of devices {len(found)} must equal the product of mesh_shape "
            f"{shape}"
        )
    return np.array(found, object).reshape(shape)


def create_hybrid_device_mesh(
    mesh_shape: Sequence[int],
    dcn_mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    process_is_granule: bool = False,
    should_sort_granules_by_key: bool = True,
    allow_split_physical_axes: bool = False,
) -> np.ndarray:
    """Return devices in an array of blocks, one for each process.

    Args:
      mesh_shape: the shape of a block, the devices of one process.
      dcn_mesh_shape: how many blocks there are along each axis.
      devices: those to take; by default, all.
      process_is_granule: has to be True: devices here belong to processes, and to no
        slices of a larger machine.
      should_sort_granules_by_key: whether blocks are in the order of the processes, or
        in that in which their devices come.
      allow_split_physical_axes: without effect.

    Raises:
      ValueError: if a process has another number of devices than a block, there is
        another number of processes than of blocks, or `process_is_granule` is False.

    Reference: ``jax.experimental.mesh_utils.create_hybrid_device_mesh``.
    """
    found = list(devices_of() if devices is None else devices)
    if not process_is_granule:
        raise ValueError(
            f"Device {found[0]} does not have attribute slice_index. See "
            "`process_is_granule` option."
        )
    owners = list(dict.fromkeys(device.process_index for device in found))
    if should_sort_granules_by_key:
        owners.sort()
    if math.prod(dcn_mesh_shape) != len(owners):
        raise ValueError(
            f"Number of slices {len(owners)} must equal the product of dcn_mesh_shape "
            f"{dcn_mesh_shape}"
        )
    blocks = np.empty(len(owners), object)
    for number, owner in enumerate(owners):
        own = [device for device in found if device.process_index == owner]
        blocks[number] = create_device_mesh(mesh_shape, own)
    return np.block(blocks.reshape(dcn_mesh_shape).tolist())


# `shard_map` with the arguments that it had first.


def shard_map(
    f: Callable[..., Any],
    mesh: Any,
    in_specs: Any,
    out_specs: Any,
    check_rep: bool = True,
) -> Callable[..., Any]:
    """Return a function that runs `f` once on each device of a mesh. Deprecated.

    Args:
      f, mesh, in_specs, out_specs: as of `minijax.shard_map`.
      check_rep: what `check_vma` is there.

    Reference: ``jax.experimental.shard_map.shard_map``.
    """
    warnings.warn(
        "minijax.experimental.shard_map is deprecated. Use minijax.shard_map.",
        DeprecationWarning,
        stacklevel=2,
    )
    how = {"mesh": mesh, "in_specs": in_specs, "out_specs": out_specs}
    return specifications.shard_map(f, check_vma=check_rep, **how)


# `jit` under its name of before.


def pjit(
    fun: Callable[..., Any],
    in_shardings: Any = UNSPECIFIED,
    out_shardings: Any = UNSPECIFIED,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    keep_unused: bool = False,
    device: Any = None,
    backend: str | None = None,
    inline: bool = False,
) -> Any:
    """Return a function that runs `fun` as a program. Deprecated.

    The arguments are those of `minijax.jit`. Here they may be given by position.

    Reference: ``jax.experimental.pjit.pjit``.
    """
    choices = {name: value for name, value in locals().items() if name != "fun"}
    warnings.warn(
        "minijax.experimental.pjit.pjit has been deprecated. Please use minijax.jit.",
        DeprecationWarning,
        stacklevel=2,
    )
    return jit(fun, **choices)
