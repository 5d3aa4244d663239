"""Sharding constraints: their rules, and those at the ends of a jitted function.

Reference: ``in_shardings`` and ``out_shardings`` of ``jax.jit``.
"""

# Made from chapters/36_replicas_rest.md by `make chapter`;
# edit the chapter, not this file.

from operator import mod

from minijax.arrays.avals import typeof
from minijax.arrays.sharding_types import completions
from minijax.arrays.transfer import device_put, device_put_p
from minijax.batching.rules import vmap_rules
from minijax.core import impl_rules
from minijax.emitted.emission import python_rules
from minijax.forgetting.remembering import remembered
from minijax.forward.rules import jvp_rules, linear_rule
from minijax.jaxprs.jaxpr import eval_jaxpr
from minijax.jaxprs.shape_structs import struct_of
from minijax.jaxprs.staging_api import make_jaxpr
from minijax.jitting.shardings import device_askers, program_placed
from minijax.kernels.program_steps import kernel_rules
from minijax.mesh_maps.mesh_around import sharding_of_type
from minijax.replicas.meshes import AbstractMesh
from minijax.replicas.named_shardings import NamedSharding
from minijax.replicas.partition_specs import PartitionSpec
from minijax.reverse.transposition import transposes
from minijax.spmd.constraints import constrain, constrain_piece, sharding_constraint_p
from minijax.spmd.exchanging import spec_of
from minijax.spmd.notes import notes_here
from minijax.spmd.public_constraints import completed
from minijax.spmd.sharding_pictures import inspect_sharding_p
from minijax.spmd.spreading import sharding_rules, whole_shape


def constrain_anywhere(primitive, piece, sharding, **params):
    """Cut a value as it is asked for; on another mesh, note what is asked."""
    if isinstance(sharding, NamedSharding) and sharding.mesh != notes_here().mesh:
        counts = sharding.divisions(len(piece.spec))
        fits = not any(map(mod, whole_shape(piece), counts))
        return [piece._replace(asked=sharding) if fits else piece]
    return constrain_piece(primitive, piece, sharding, **params)


sharding_rules.supersede(sharding_constraint_p, constrain_piece, constrain_anywhere)


def _put_pieces(primitive, *pieces, devices, **params):
    pairs = zip(pieces, devices)
    return [
        constrain_anywhere(primitive, piece, wanted)[0]
        if isinstance(wanted, NamedSharding) else piece
        for piece, wanted in pairs
    ]  # fmt: skip


sharding_rules[device_put_p] = _put_pieces


def _inspect_piece(primitive, piece, callback):
    callback(NamedSharding(notes_here().mesh, spec_of(piece.spec)))
    return []


sharding_rules[inspect_sharding_p] = _inspect_piece


def _batched(axis, args, dims, sharding, **params):
    [x], [dim] = args, dims
    if isinstance(sharding, NamedSharding) and dim is not None:
        parts = list(sharding.spec)
        if dim < len(parts):
            parts.insert(dim, None)
        sharding = sharding.update(spec=sharding.spec.update(partitions=parts))
    return sharding_constraint_p.bind(x, sharding=sharding, **params), dims


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
device_askers[device_put_p] = lambda params: [
    each._device for each in params["devices"] if isinstance(each, NamedSharding)
]


@remembered
def _placed(closed, ins, outs):
    """Return a program with constraints at its ends, where shardings are named."""

    def program(*args):
        given = map(_at_end, args, ins)
        return list(map(_at_end, eval_jaxpr(closed.jaxpr, closed.consts, *given), outs))

    return make_jaxpr(program)(*map(struct_of, closed.in_avals))


def _at_end(x, sharding):
    if not isinstance(sharding, NamedSharding):
        return x
    sharding.shard_shape(typeof(x).shape)
    return constrain(x, sharding)


def placed_program(closed, params):
    """Return a program that brings operands and results where its call says it."""
    ins = params.get("in_shardings", (None,) * len(closed.in_avals))
    outs = params.get("out_shardings", (None,) * len(closed.out_avals))
    named = any(isinstance(x, NamedSharding) for x in (*ins, *outs))
    return _placed(closed, ins, outs) if named else closed


completions[PartitionSpec] = completed
program_placed.value = placed_program


def _unsharded(aval):
    """Return the sharding of a type that no mesh cuts, by a mesh without axes."""
    spec = PartitionSpec(*[None] * aval.ndim)
    return NamedSharding(AbstractMesh((), ()), spec)


sharding_of_type.value = _unsharded
