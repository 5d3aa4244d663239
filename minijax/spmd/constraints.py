# Made from chapters/36_replicas_upper.md by `make chapter`;
# edit the chapter, not this file.
"""Shardings that a program asks for, inside and at its ends.

Reference: ``jax.lax.with_sharding_constraint``; ``in_shardings`` of ``jax.jit``.
"""

import math
from typing import Any

from minijax import lax
from minijax.arrays.array import shape_rules
from minijax.arrays.sharding_types import Sharding
from minijax.arrays.transfer import device_put, device_put_p
from minijax.batching.rules import vmap_rules
from minijax.core import Primitive, impl_rules
from minijax.emitted.emission import python_rules
from minijax.forward.rules import jvp_rules, linear_rule
from minijax.jitting.shardings import device_askers
from minijax.kernels.program_steps import kernel_rules
from minijax.pytrees.operations import flatten_axes
from minijax.pytrees.treedefs import tree_flatten
from minijax.replicas.meshes import get_mesh
from minijax.replicas.named_shardings import NamedSharding
from minijax.replicas.partition_specs import PartitionSpec, names_of_entry
from minijax.reverse.transposition import transposes
from minijax.spmd.spreading import Piece, recut, sharding_rules, whole_shape

sharding_constraint_p = Primitive("sharding_constraint")


def _constrain(x, sharding):
    """Bind the constraint that a value lies in a sharding."""
    return sharding_constraint_p.bind(
        x, sharding=sharding, layout=None, context_mesh=get_mesh(),
        unconstrained_dims=frozenset(),
    )[0]  # fmt: skip


def _constrained_shape(x, sharding, **params):
    if isinstance(sharding, NamedSharding):
        sharding.divisions(x.ndim)  # which refuses a specification for more axes
    return [x]


def constrain_piece(primitive, piece, sharding, **params):
    """Cut a value as it is asked for, where that gives equal parts."""
    cuts = list(map(names_of_entry, getattr(sharding, "spec", ())))
    cuts += [()] * (len(piece.spec) - len(cuts))
    sizes = [math.prod(map(lax.axis_size, cut)) for cut in cuts]
    pairs = zip(cuts, whole_shape(piece), sizes)
    wanted = tuple([cut if size % count == 0 else () for cut, size, count in pairs])
    return [Piece(recut(piece, wanted), wanted)]


def _put_pieces(primitive, *pieces, devices, **params):
    pairs = zip(pieces, devices)
    return [
        constrain_piece(primitive, piece, wanted)[0]
        if isinstance(wanted, NamedSharding) else piece
        for piece, wanted in pairs
    ]  # fmt: skip


sharding_rules[sharding_constraint_p] = constrain_piece
sharding_rules[device_put_p] = _put_pieces


def _batched(axis, args, dims, sharding, **params):
    [x], [dim] = args, dims
    if isinstance(sharding, NamedSharding) and dim is not None:
        parts = list(sharding.spec)
        if dim < len(parts):
            parts.insert(dim, None)
        sharding = sharding.update(spec=sharding.spec.update(partitions=parts))
    return sharding_constraint_p.bind(x, sharding=sharding, **params), dims


shape_rules[sharding_constraint_p] = _constrained_shape
impl_rules[sharding_constraint_p] = lambda x, sharding, **params: [
    device_put(x, sharding)
]
jvp_rules[sharding_constraint_p] = linear_rule(sharding_constraint_p)
transposes(
    sharding_constraint_p,
    lambda ct, x, **params: sharding_constraint_p.bind(ct, **params)[0],
)
vmap_rules[sharding_constraint_p] = _batched
python_rules[sharding_constraint_p] = lambda writer, eqn, operands, results: (
    writer.assign(results, operands)
)
kernel_rules[sharding_constraint_p] = lambda lowering, eqn, x: [x]
device_askers[sharding_constraint_p] = lambda params: [params["sharding"]._device]


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
    return _constrain(x, wanted)
