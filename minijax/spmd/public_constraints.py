"""with_sharding_constraint, and names of meshes at the top of the package.

Reference: ``jax.lax.with_sharding_constraint``.
"""

# Made from chapters/36_replicas_rest.md by `make chapter`;
# edit the chapter, not this file.

from typing import Any

from minijax.arrays.sharding_types import Sharding
from minijax.pytrees.operations import flatten_axes
from minijax.pytrees.treedefs import tree_flatten
from minijax.replicas.meshes import get_mesh
from minijax.replicas.meshes import set_mesh as set_mesh
from minijax.replicas.named_shardings import NamedSharding as NamedSharding
from minijax.replicas.partition_specs import PartitionSpec
from minijax.spmd.constraints import constrain


def completed(name, spec):
    """Return the sharding of a specification, on the mesh of the context.

    Raises:
      RuntimeError: if there is none.
    """
    mesh = get_mesh()
    if mesh.empty:
        raise RuntimeError(
            f"{name} requires a non-empty mesh in context if you are passing "
            "`PartitionSpec`s. You can define a context mesh via "
            "`minijax.set_mesh(mesh)`, or provide a NamedSharding."
        )
    return NamedSharding(mesh, spec)


def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """Return `x`, cut as it is asked for; a compiled program computes it so.

    Args:
      x: a tree of arrays.
      shardings: a `Sharding`, a `PartitionSpec` for the mesh of the context, or a tree
        of them that is a prefix of `x`; None leaves it open.

    Raises:
      RuntimeError: if there is no mesh in the context and one is needed.
      ValueError: if a specification has more axes than an array.

    Reference: ``jax.lax.with_sharding_constraint``.
    """
    name, (leaves, tree) = "with_sharding_constraint", tree_flatten(x)
    wanted = flatten_axes(name, shardings, x)
    return tree.unflatten(map(_constrain_leaf, leaves, wanted))


def _constrain_leaf(x, wanted):
    if wanted is None:
        return x
    if isinstance(wanted, PartitionSpec):
        wanted = completed("with_sharding_constraint", wanted)
    if not isinstance(wanted, Sharding):
        raise TypeError(f"A sharding or a PartitionSpec is expected, got {wanted!r}.")
    return constrain(x, wanted)
