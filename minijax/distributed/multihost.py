"""Helpers for programs of several processes.

Reference: ``jax.experimental.multihost_utils``.
"""

# Made from chapters/37_machines_rest.md by `make chapter`;
# edit the chapter, not this file.

from typing import Any

import numpy as np

from minijax.arrays.array import ArrayImpl
from minijax.arrays.transfer import process_count, process_index
from minijax.distributed.direct_runs import local_shard
from minijax.distributed.processes import allgather, check_ranks_agree, current_world
from minijax.jitting.api import jit
from minijax.pytrees.tree_util import tree_flatten, tree_map
from minijax.sharding.named_sharding import NamedSharding, PartitionSpec
from minijax.sharding.sharded_arrays import make_array_from_process_local_data


def _among_all(label, exchange, *args):
    everyone = tuple(range(process_count()))
    return current_world().communicator_of(label, everyone, exchange, *args)


def _all_of(label, x):
    """Return what all processes have, a NumPy array with one more axis in front."""
    x = np.asarray(x)
    if process_count() == 1:
        return x[None]
    kind = f"{label} of {x.dtype.name}{list(x.shape)}"
    _among_all(kind, check_ranks_agree, kind)
    return _among_all(kind, allgather, np.ascontiguousarray(x).reshape(x.shape))


def process_allgather(in_tree: Any, tiled: bool = False) -> Any:
    """Return to all processes what each of them has.

    Args:
      in_tree: a tree of arrays, which have the same shapes in all processes; or of
        arrays that span them, with `tiled`.
      tiled: whether arrays are joined along axis 0, instead of along a new one.

    Returns:
      A tree of NumPy arrays.

    Raises:
      ValueError: if shapes differ, or an array that spans processes is not `tiled`.

    Reference: ``jax.experimental.multihost_utils.process_allgather``.
    """
    return tree_map(lambda x: _gathered_leaf(x, tiled), in_tree)


def _gathered_leaf(x, tiled):
    if isinstance(x, ArrayImpl) and not x.is_fully_addressable:
        if not tiled:
            raise ValueError(
                "Gathering global non-fully-addressable arrays only supports tiled=True"
            )
        whole = NamedSharding(x.sharding.mesh, PartitionSpec())
        return np.asarray(jit(lambda y: y, out_shardings=whole)(x))
    found = _all_of("process_allgather", x)
    if not tiled:
        return found
    return found.reshape(-1, *found.shape[2:]) if found.ndim > 1 else found


def broadcast_one_to_all(in_tree: Any, is_source: bool | None = None) -> Any:
    """Return to all processes what one of them has.

    Args:
      in_tree: a tree of arrays, which have the same shapes in all processes.
      is_source: whether this process has it; by default, process 0 has.

    Reference: ``jax.experimental.multihost_utils.broadcast_one_to_all``.
    """
    mine = process_index() == 0 if is_source is None else is_source
    givers = _all_of("broadcast_one_to_all", np.int32(mine)).tolist()
    if givers.count(1) != 1:
        raise ValueError(
            f"broadcast_one_to_all needs one source, got {givers.count(1)}: is_source "
            f"was {list(map(bool, givers))} in the processes in order."
        )
    source, label = givers.index(1), "broadcast_one_to_all"
    return tree_map(lambda x: _all_of(label, x)[source], in_tree)


def sync_global_devices(name: str) -> None:
    """Return when all processes have come to this call.

    Raises:
      ValueError: if they have come to calls of different names.

    Reference: ``jax.experimental.multihost_utils.sync_global_devices``.
    """
    if process_count() > 1:
        label = f"sync_global_devices({name!r})"
        _among_all(label, check_ranks_agree, label)


def assert_equal(in_tree: Any, fail_message: str = "") -> None:
    """Raise unless all processes have the same values.

    Raises:
      AssertionError: if they differ; the message shows what process 0 has.

    Reference: ``jax.experimental.multihost_utils.assert_equal``.
    """
    leaves, _ = tree_flatten(in_tree)
    for leaf in leaves:
        found = _all_of("assert_equal", leaf)
        if not all(np.array_equal(found[0], x) for x in found):
            raise AssertionError(
                f"{fail_message} Expected: {found[0]}; got: {np.asarray(leaf)}."
            )


def host_local_array_to_global_array(
    local_inputs: Any, global_mesh: Any, pspecs: Any
) -> Any:
    """Return arrays of which each process has brought the part that is here.

    Args:
      local_inputs: a tree of arrays.
      global_mesh: a `Mesh`.
      pspecs: a `PartitionSpec` for all of them.

    Reference: ``jax.experimental.multihost_utils.host_local_array_to_global_array``.
    """
    sharding = NamedSharding(global_mesh, pspecs)
    return tree_map(
        lambda x: make_array_from_process_local_data(sharding, x), local_inputs
    )


def global_array_to_host_local_array(
    global_inputs: Any, global_mesh: Any, pspecs: Any
) -> Any:
    """Return the parts of arrays that are on the devices of this process.

    The arguments are those of `host_local_array_to_global_array`.

    Reference: ``jax.experimental.multihost_utils.global_array_to_host_local_array``.
    """
    return tree_map(local_shard, global_inputs)
