# Made from chapters/36_replicas_upper.md by `make chapter`;
# edit the chapter, not this file.
"""Shardings of the operands and results of a jitted function.

Reference: ``in_shardings`` and ``out_shardings`` of ``jax.jit``.
"""

from minijax.arrays.avals import typeof
from minijax.arrays.interchange import Record
from minijax.forgetting.remembering import remembered
from minijax.jaxprs.jaxpr import eval_jaxpr
from minijax.jaxprs.shape_structs import struct_of
from minijax.jaxprs.staging_api import make_jaxpr
from minijax.jitting.shardings import completions, program_placed
from minijax.replicas.meshes import AbstractMesh
from minijax.replicas.named_shardings import NamedSharding
from minijax.replicas.partition_specs import PartitionSpec
from minijax.spmd.constraints import _constrain, completed


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
    return _constrain(x, sharding)


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


# A property of the class: abstract values are read more often than anything else.
Record.sharding = property(_unsharded)
