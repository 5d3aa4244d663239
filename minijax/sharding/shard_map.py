"""shard_map: one program for each device of a mesh, as a primitive.

Reference: ``jax.shard_map``.
"""

# Made from chapters/36_replicas.md by `make chapter`;
# edit the chapter, not this file.

from functools import partial
from typing import Any

from minijax.arrays.array import ArrayImpl, asarray_impl, asbuffer, computations
from minijax.core import impl_rules, set_current_trace
from minijax.forward_mode.jvp import jvp_rules
from minijax.jaxprs.types import Latest
from minijax.jitting.compilation import compile_context, compiled
from minijax.kernels.lowering import kernel_rules
from minijax.python_backend.codegen import python_rules
from minijax.python_backend.source import write_evaluation
from minijax.rematerialization.caching import cache_by_object, once_of
from minijax.rematerialization.jaxpr_transforms import jvp_program, only, spread
from minijax.sharding.manual_axes import run_replicas
from minijax.sharding.named_sharding import (
    NamedSharding,
    PartitionSpec,
    all_numbers,
    lies_like,
    parts_of,
)
from minijax.sharding.pmap import bind_map, body_trace, of_twin, shard_map_p, whole_aval
from minijax.sharding.replicas import Run

# What returns the `Run` of a program on a mesh: a function of the mesh, and of what the
# program is, its jaxpr and specifications.
run_over: Latest = Latest(lambda mesh, program: Run(mesh.shape))

computations[shard_map_p] = lambda xp, *xs, **params: [
    all_numbers(out) for out in run_on_mesh(*xs, **params)
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
      in_avals, block_avals, seat: types of blocks; what `running` keeps of it.
      text_parts: what processes compare before they run it.
    """

    def __init__(self, jaxpr, mesh, in_specs, out_specs):
        shardings = partial(NamedSharding, mesh)
        self.place = shardings(PartitionSpec())._device.home.uncommitted
        self.executable = compiled(jaxpr, name="shard_map", placement=self.place)
        self.mesh, self.size = mesh, mesh.size
        self.seat: Any = False if mesh.is_multi_process else None
        self.text_parts = jaxpr, in_specs, out_specs
        self.in_shardings = list(map(shardings, in_specs))
        self.in_placements = [each.placement for each in self.in_shardings]
        self.out_placements = [shardings(spec).placement for spec in out_specs]
        self.in_avals, self.block_avals = jaxpr.in_avals, jaxpr.out_avals
        pairs = zip(jaxpr.out_avals, out_specs)
        self.out_avals = [whole_aval(aval, mesh, spec) for aval, spec in pairs]

    def __call__(self, args):
        """Return the list of results."""
        shares = [
            x._buffer
            if type(x) is ArrayImpl
            and lies_like(x.placement, self.in_placements[i], x.aval.ndim)
            else blocks_of(x, self.in_shardings[i])
            for i, x in enumerate(args)
        ]
        ends = running.value(self, shares), self.out_avals, self.out_placements
        return list(map(sealed, *ends))


def sealed(buffer, aval, placement):
    """Return an array whose buffer is sealed already."""
    x = ArrayImpl.__new__(ArrayImpl)
    x._buffer, x.aval, x.placement = buffer, aval, placement
    return x


def blocks_of(x, sharding):
    """Return the buffers of an array's parts in a sharding."""
    return list(map(asbuffer, parts_of(asarray_impl(x), sharding)))


# How a `MeshProgram` runs, and who is told of each run.
running: Latest = Latest(lambda program, shares: in_python(program, shares))
noted: Latest = Latest(lambda program, args, results: results)
entries: Latest = Latest(lambda program: None)  # the `Entry` for other callers, or None
_programs, _alike = cache_by_object(), cache_by_object()


def mesh_program(jaxpr, mesh, in_specs, out_specs, **params):
    """Return the `MeshProgram` for the parameters of a ``shard_map``.

    A body that is traced anew, and has become the same, is not compiled anew.
    """
    key = mesh, in_specs, out_specs, compile_context()
    make = partial(MeshProgram, jaxpr, mesh, in_specs, out_specs)
    find = partial(of_twin, once_of(_alike, mesh), jaxpr, key, make)
    return once_of(_programs, jaxpr).get(key, find)


def in_python(program, shares):
    """Return for each result of a `MeshProgram` the blocks of all replicas."""
    avals, executable = program.in_avals, program.executable
    place = program.place

    def replica(rank):
        blocks = [ArrayImpl(share[rank], a, place) for share, a in zip(shares, avals)]
        return list(map(asbuffer, executable(*blocks)))

    run = run_over.value(program.mesh, program.text_parts)
    elsewhere = [None] * len(program.out_avals)
    found = [elsewhere if x is None else x for x in run_replicas(run, replica)]
    return list(zip(*found))


def run_on_mesh(*args, **params):
    """Run a program once on each device of a mesh."""
    program = mesh_program(**params)
    return noted.value(program, args, program(args))


impl_rules[shard_map_p] = run_on_mesh


def _jvp(primals, tangents, jaxpr, in_specs, out_specs, **params):
    moving = tuple([tangent is not None for tangent in tangents])
    with set_current_trace(body_trace(params)):
        program, moves = jvp_program(jaxpr, moving)
    ins, outs = in_specs + (*only(moving, in_specs),), (*only(moves, out_specs),)
    operands = *primals, *only(moving, tangents)
    found = bind_map(operands, program, ins, out_specs + outs, params)
    return found[: len(moves)], spread(moves, found[len(moves) :])


jvp_rules[shard_map_p] = _jvp
