"""shard_map: one program for each device of a mesh, as a primitive.

Reference: ``jax.shard_map``.
"""

# Made from chapters/36_replicas.md by `make chapter`;
# edit the chapter, not this file.

from functools import partial
from typing import Any

from minijax.arrays.array import ArrayImpl, as_array_impl, asbuffer, eval_rules
from minijax.core import impl_rules, set_current_trace
from minijax.forward_mode.jvp import jvp_rules
from minijax.jaxprs.jaxpr import ClosedJaxpr
from minijax.jaxprs.types import Hook
from minijax.jitting.compilation import compile_cached, compile_context
from minijax.kernels.lowering import kernel_rules
from minijax.python_backend.codegen import python_rules
from minijax.python_backend.source import write_evaluation
from minijax.rematerialization.caching import cache_for_object, weakref_cache
from minijax.rematerialization.jaxpr_transforms import (
    jvp_jaxpr,
    scatter_by_mask,
    select_where,
)
from minijax.sharding.manual_axes import run_replicas
from minijax.sharding.named_sharding import (
    NamedSharding,
    PartitionSpec,
    fetch_global_value,
    same_shards,
    shard_arrays,
)
from minijax.sharding.pmap import (
    bind_shard_map,
    body_trace,
    cached_by_equal_jaxpr,
    shard_map_p,
    unshard_aval,
)
from minijax.sharding.replicas import ReplicaRun

# What returns the `ReplicaRun` of a program on a mesh: a function of the mesh, and of
# what the program is, its jaxpr and specifications.
replica_run_factory: Hook = Hook(lambda mesh, program: ReplicaRun(mesh.shape))

eval_rules[shard_map_p] = lambda xp, *xs, **params: [
    fetch_global_value(out) for out in run_on_mesh(*xs, **params)
]
python_rules[shard_map_p] = write_evaluation
kernel_rules.reasons[shard_map_p] = "It starts replicas, which Python does."


class MeshProgram:
    """A program that runs once on each device of a mesh; it is compiled once.

    Args:
      jaxpr, mesh, in_specs, out_specs: parameters of a ``shard_map``.

    Attributes:
      executable, place: of the body; where it finds and leaves blocks.
      in_shardings, in_placements, out_placements, out_avals: of the whole arrays.
      in_avals, block_avals: types of arrays, and of their blocks.
      executor_slot: what `mesh_executor` keeps of it.
      text_parts: what processes compare before they run it.
    """

    def __init__(self, jaxpr, mesh, in_specs, out_specs):
        shardings = partial(NamedSharding, mesh)
        self.place = shardings(PartitionSpec())._device.home.uncommitted
        self.executable = compile_cached(jaxpr, name="shard_map", placement=self.place)
        self.mesh, self.size = mesh, mesh.size
        self.executor_slot: Any = False if mesh.is_multi_process else None
        # A copy: `_programs` forgets a jaxpr that no program of its own holds.
        self.text_parts = ClosedJaxpr(jaxpr.jaxpr, jaxpr.consts), in_specs, out_specs
        self.in_shardings = list(map(shardings, in_specs))
        self.in_placements = [each.placement for each in self.in_shardings]
        self.out_placements = [shardings(spec).placement for spec in out_specs]
        self.in_avals, self.block_avals = jaxpr.in_avals, jaxpr.out_avals
        pairs = zip(jaxpr.out_avals, out_specs)
        self.out_avals = [unshard_aval(aval, mesh, spec) for aval, spec in pairs]

    def __call__(self, args):
        """Return the list of results."""
        shares = [
            x._buffer
            if type(x) is ArrayImpl
            and same_shards(x.placement, self.in_placements[i], x.aval.ndim)
            else shard_buffers(x, self.in_shardings[i])
            for i, x in enumerate(args)
        ]
        ends = mesh_executor.value(self, shares), self.out_avals, self.out_placements
        return list(map(sealed, *ends))


def sealed(buffer, aval, placement):
    """Return an array whose buffer is sealed already."""
    x = ArrayImpl.__new__(ArrayImpl)
    x._buffer, x.aval, x.placement = buffer, aval, placement
    return x


def shard_buffers(x, sharding):
    """Return the buffers of an array's parts in a sharding."""
    return list(map(asbuffer, shard_arrays(as_array_impl(x), sharding)))


# What runs a `MeshProgram`: a function of it and of the shares of its operands.
mesh_executor: Hook = Hook(lambda program, shares: run_mesh_in_python(program, shares))
# What is told of each run, and returns its results.
result_observer: Hook = Hook(lambda program, args, results: results)
# What returns the `Entry` of a program for callers that are machine code, or None.
native_entries: Hook = Hook(lambda program: None)
_programs, _alike = weakref_cache(), weakref_cache()


def mesh_program(jaxpr, mesh, in_specs, out_specs, **params):
    """Return the `MeshProgram` for the parameters of a ``shard_map``.

    A body that is traced anew, and has become the same, is not compiled anew.
    """
    key = mesh, in_specs, out_specs, compile_context()
    make = partial(MeshProgram, jaxpr, mesh, in_specs, out_specs)
    find = partial(
        cached_by_equal_jaxpr, cache_for_object(_alike, mesh), jaxpr, key, make
    )
    return cache_for_object(_programs, jaxpr).get(key, find)


def run_mesh_in_python(program, shares):
    """Return for each result of a `MeshProgram` the blocks of all replicas."""
    avals, executable = program.in_avals, program.executable
    place = program.place

    def replica(rank):
        blocks = [ArrayImpl(share[rank], a, place) for share, a in zip(shares, avals)]
        return list(map(asbuffer, executable(*blocks)))

    run = replica_run_factory.value(program.mesh, program.text_parts)
    elsewhere = [None] * len(program.out_avals)
    found = [elsewhere if x is None else x for x in run_replicas(run, replica)]
    return list(zip(*found))


def run_on_mesh(*args, **params):
    """Run a program once on each device of a mesh."""
    program = mesh_program(**params)
    return result_observer.value(program, args, program(args))


impl_rules[shard_map_p] = run_on_mesh


def _jvp(primals, tangents, jaxpr, in_specs, out_specs, **params):
    moving = tuple([tangent is not None for tangent in tangents])
    with set_current_trace(body_trace(params)):
        program, moves = jvp_jaxpr(jaxpr, moving)
    ins = in_specs + (*select_where(moving, in_specs),)
    outs = (*select_where(moves, out_specs),)
    operands = *primals, *select_where(moving, tangents)
    found = bind_shard_map(operands, program, ins, out_specs + outs, params)
    return found[: len(moves)], scatter_by_mask(moves, found[len(moves) :])


jvp_rules[shard_map_p] = _jvp
