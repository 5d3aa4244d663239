"""Arrays cut in another way.

Reference: ``jax.sharding.reshard``.
"""

# Made from chapters/36_replicas_rest.md by `make chapter`;
# edit the chapter, not this file.

from typing import Any

from minijax.arrays.avals import typeof
from minijax.pytrees.operations import flatten_axes
from minijax.pytrees.treedefs import tree_flatten
from minijax.replicas.meshes import get_mesh
from minijax.replicas.named_shardings import NamedSharding
from minijax.replicas.partition_specs import PartitionSpec
from minijax.spmd.public_constraints import with_sharding_constraint


def reshard(xs: Any, out_shardings: Any) -> Any:
    """Return arrays cut in another way, in a program or outside of one.

    Args:
      xs: a tree of arrays.
      out_shardings: a `NamedSharding`, a `PartitionSpec` for the mesh of the context,
        or a tree of them that is a prefix of `xs`.

    Raises:
      ValueError: if there is no mesh, no sharding, or the parts would not be equal.
      TypeError: for a sharding without a mesh.

    Reference: ``jax.sharding.reshard``.
    """
    leaves, tree = tree_flatten(xs)
    wanted = flatten_axes("reshard out_shardings", out_shardings, xs)
    return tree.unflatten(map(_resharded, leaves, wanted))


def _resharded(x, wanted):
    shape, sharding = typeof(x).shape, _on_mesh(wanted)
    sharding.shard_shape(shape)  # which refuses unequal parts
    parts = [*sharding.spec, *[None] * (len(shape) - len(sharding.spec))]
    spec = sharding.spec.update(partitions=parts)
    return with_sharding_constraint(x, sharding.update(spec=spec))


def _on_mesh(wanted):
    if wanted is None:
        raise ValueError("reshard needs out_shardings with a mesh. Got sharding None.")
    if isinstance(wanted, PartitionSpec):
        if get_mesh().empty:
            raise ValueError(
                "Using PartitionSpec when you are not under a mesh context is not "
                "allowed. Please pass a NamedSharding instance or enter into a mesh "
                "context via `minijax.set_mesh`."
            )
        return NamedSharding(get_mesh(), wanted)
    if not isinstance(wanted, NamedSharding):
        raise TypeError(
            "`out_shardings` of reshard are a NamedSharding or a PartitionSpec. Got "
            f"{wanted!r}: device_put moves arrays to other places."
        )
    return wanted
