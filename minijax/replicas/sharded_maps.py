# Made from chapters/36_replicas.md by `make chapter`;
# edit the chapter, not this file.
"""shard_map: one program for each device of a mesh, as a primitive.

Reference: ``jax.shard_map``.
"""

from functools import partial
from math import prod

import numpy as np

from minijax import lax
from minijax.arrays.array import (
    ArrayImpl,
    asarray_impl,
    asbuffer,
    computations,
    shape_rules,
)
from minijax.arrays.avals import typeof
from minijax.arrays.sharding_types import NO_MANUAL_AXES
from minijax.batching.collectives import psum_p
from minijax.batching.rules import insert_axis, vmap_rules
from minijax.batching.trace import program_primitives
from minijax.core import Primitive, impl_rules, set_current_trace
from minijax.emitted.emission import python_rules
from minijax.emitted.evaluations import write_evaluation
from minijax.forgetting.programs import (
    dce_program,
    dce_rules,
    jvp_program,
    keep_inputs,
    only,
    partition,
    spread,
    stage,
    transpose_program,
    vmap_program,
    without_consts,
)
from minijax.forgetting.remembering import cache_by_object, once_of
from minijax.forgetting.splitting import split_program
from minijax.forward.rules import jvp_rules
from minijax.jaxprs.jaxpr import jaxpr_as_fun
from minijax.jaxprs.latest import Latest
from minijax.jitting.compilation import compile_context, compiled
from minijax.jitting.costs import cost_analysis, cost_rules
from minijax.jitting.primitive import check_operands
from minijax.kernels.program_steps import kernel_rules
from minijax.linear.linearization import split_rules
from minijax.replicas.named_shardings import NamedSharding, all_numbers, parts_of
from minijax.replicas.partition_specs import PartitionSpec, dims_of, names_in
from minijax.replicas.rendezvous import Run, run_replicas
from minijax.replicas.varying import inside_mesh
from minijax.reverse.transposition import Linear, transpose_rules

shard_map_p = Primitive("shard_map")
program_primitives.add(shard_map_p)


def block_aval(aval, mesh, spec):
    """Return the type of one device's block of an array."""
    parts = [prod(mesh.shape[n] for n in names) for names in dims_of(spec, aval.ndim)]
    return aval.update(shape=[size // part for size, part in zip(aval.shape, parts)])


def whole_aval(aval, mesh, spec):
    """Return the type of the array of which each device has such a block."""
    parts = [prod(mesh.shape[n] for n in names) for names in dims_of(spec, aval.ndim)]
    shape = [size * part for size, part in zip(aval.shape, parts)]
    return aval.update(shape=shape, manual_axis_type=NO_MANUAL_AXES)


def _shape(*avals, jaxpr, mesh, in_specs, out_specs, **params):
    blocks = [block_aval(*pair) for pair in zip(avals, [mesh] * len(avals), in_specs)]
    check_operands("The body of this shard_map", jaxpr.in_avals, blocks)
    pairs = zip(jaxpr.out_avals, out_specs)
    return [whole_aval(aval, mesh, spec) for aval, spec in pairs]


shape_rules[shard_map_p] = _shape


def body_trace(params):
    """Return the trace around the body of a shard_map: its axes have names."""
    names, checked = params["newly_manual_axes"], params["check_vma"]
    return inside_mesh(params["mesh"].shape, names, checked)


def _bind(args, program, in_specs, out_specs, params):
    specs = {"in_specs": tuple(in_specs), "out_specs": tuple(out_specs)}
    return shard_map_p.bind(*args, **params | specs | {"jaxpr": program})


def _vmap(axis, args, dims, jaxpr, in_specs, out_specs, **params):
    with set_current_trace(body_trace(params)):
        program, places = vmap_program(jaxpr, axis, tuple(dims))
    ins = map(_with_axis, in_specs, dims)
    outs = map(_with_axis, out_specs, places)
    return _bind(args, program, ins, outs, params), list(places)


def _with_axis(spec, dim):
    """Return the spec of an array with one more axis, which is not divided."""
    if dim is None:
        return spec
    entries = [*spec] + [None] * (dim - len(spec))
    return PartitionSpec(*entries[:dim], None, *entries[dim:])


vmap_rules[shard_map_p] = _vmap


def _dce(eqn, used):
    program, needed = dce_program(eqn.params["jaxpr"], used)
    specs = {
        "in_specs": tuple(only(needed, eqn.params["in_specs"])),
        "out_specs": tuple(only(used, eqn.params["out_specs"])),
    }
    return eqn.replace(
        invars=only(needed, eqn.invars),
        outvars=only(used, eqn.outvars),
        params=eqn.params | specs | {"jaxpr": keep_inputs(program, needed)},
    )


def _cost(eqn):
    once, size = cost_analysis(eqn.params["jaxpr"].jaxpr), eqn.params["mesh"].size
    return {kind: size * amount for kind, amount in once.items()}


dce_rules[shard_map_p], cost_rules[shard_map_p] = _dce, _cost


# What returns the `Run` of a program on a mesh: a function of the mesh, and of what the
# program is, its jaxpr and specifications.
run_over: Latest = Latest(lambda mesh, program: Run(mesh.shape))

computations[shard_map_p] = lambda xp, *xs, **params: [
    all_numbers(out) for out in run_on_mesh(*xs, **params)
]
python_rules[shard_map_p] = write_evaluation
kernel_rules.reasons[shard_map_p] = "It starts replicas, which Python does."


def _transpose(cts, *operands, jaxpr, in_specs, out_specs, **params):
    linear = tuple([isinstance(x, Linear) for x in operands])
    given = [ct is not None for ct in cts]
    out_specs, cts = only(given, out_specs), only(given, cts)
    avals = spread(given, only(given, jaxpr.out_avals))
    with set_current_trace(body_trace(params)):
        back, arrives = transpose_program(jaxpr, linear, tuple(avals))
        known_specs, specs = partition(linear, in_specs)
        specs = only(arrives, specs)
        if not params["check_vma"]:
            back = _shared(back, specs, params)
    if not params["check_vma"]:
        cts = [_divided(ct, spec, params) for ct, spec in zip(cts, out_specs)]
    values, _ = partition(linear, operands)
    arrived = _bind([*values, *cts], back, known_specs + out_specs, specs, params)
    return spread(linear, spread(arrives, arrived))


def _unmentioned(spec, params):
    """Return the names of the axes along which a block is the same, in mesh order."""
    names = params["newly_manual_axes"].difference(names_in(spec))
    return tuple([name for name in params["mesh"].shape if name in names])


def _divided(ct, spec, params):
    """Return the share of a cotangent that belongs to each of several equal results."""
    copies = prod(params["mesh"].shape[name] for name in _unmentioned(spec, params))
    return lax.div(ct, np.asarray(copies, typeof(ct).dtype)) if copies > 1 else ct


def _shared(back, specs, params):
    """Return a program whose results are summed over the devices that share them."""

    def program(*flat):
        outs = jaxpr_as_fun(back)(*flat)
        names = [_unmentioned(spec, params) for spec in specs]
        pairs = zip(outs, names)
        return [psum_p.bind(x, axis_name=n)[0] if n else x for x, n in pairs]

    return stage(program, back.in_avals)


transpose_rules[shard_map_p] = _transpose


def _split_map(split, primitive, args, on_tape, params):
    jaxpr = params["jaxpr"]
    with set_current_trace(body_trace(params)):
        parts = split_program(jaxpr, tuple(on_tape))
        count = parts.out_on_tape.count(False)
        first, second, kept = _carried(parts, count, params)
    in_specs, tape_specs = partition(on_tape, params["in_specs"])
    out_specs, tape_outs = partition(parts.out_on_tape, params["out_specs"])
    known, tape_args = partition(on_tape, args)
    with set_current_trace(split.parent):
        outs = _bind(known, first, in_specs, out_specs + kept, params)
    residuals = outs[count:]
    with set_current_trace(split.tape):
        consts = [PartitionSpec()] * len(second.consts)
        operands = [*second.consts, *residuals, *tape_args]
        program, ins = without_consts(second), consts + kept + tape_specs
        found = _bind(operands, program, ins, tape_outs, params)
    return parts.results(outs[:count], found)


def _carried(parts, count, params):
    """Return both halves of a body; each residual has one axis more between them.

    It counts the devices, along all mesh axes along which the residual may differ.
    """
    known, unknown = parts.known, parts.unknown
    number = len(parts.sources)
    avals = unknown.in_avals[:number]

    def first(*flat):
        outs = jaxpr_as_fun(known)(*flat)
        residuals = parts.residuals(list(flat), outs)
        return [*outs[:count], *[insert_axis(x, 0, 1) for x in residuals]]

    def second(*flat):
        residuals = [lax.squeeze(x, (0,)) for x in flat[:number]]
        return jaxpr_as_fun(unknown)(*residuals, *flat[number:])

    carried = [aval.update(shape=(1, *aval.shape)) for aval in avals]
    specs = [PartitionSpec(_axes_of(aval, params) or None) for aval in avals]
    halves = stage(first, known.in_avals), stage(
        second, carried + unknown.in_avals[number:]
    )
    return *halves, specs


def _axes_of(aval, params):
    """Return the mesh axes along which a value inside the body may differ."""
    varying = aval.manual_axis_type.varying
    checked, manual = params["check_vma"], params["newly_manual_axes"]
    names = varying if checked else manual
    return tuple([name for name in params["mesh"].shape if name in names])


split_rules[shard_map_p] = _split_map


class MeshProgram:
    """A program that runs once on each device of a mesh; it is compiled once.

    Args:
      jaxpr, mesh, in_specs, out_specs: parameters of a ``shard_map``.

    Attributes:
      executable: of the body.
      in_shardings, in_placements, out_placements, out_avals: of the whole arrays.
      in_avals, block_avals, seat: types of blocks; what `running` keeps of it.
      text_parts: what processes compare before they run it.
    """

    def __init__(self, jaxpr, mesh, in_specs, out_specs):
        shardings = partial(NamedSharding, mesh)
        place = shardings(PartitionSpec())._device.home.uncommitted
        self.executable = compiled(jaxpr, name="shard_map", placement=place)
        self.mesh, self.size = mesh, mesh.size
        self.seat = False if mesh.is_multi_process else None
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
            if type(x) is ArrayImpl and x.placement is self.in_placements[i]
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


# How a `MeshProgram` runs; what makes functions quick; who is told of each run.
running: Latest = Latest(lambda program, shares: in_python(program, shares))
quickly: Latest = Latest(lambda function: function)
noted: Latest = Latest(lambda program, args, results: results)
_programs = cache_by_object()


def in_python(program, shares):
    """Return for each result of a `MeshProgram` the blocks of all replicas."""
    avals, executable = program.in_avals, program.executable

    def replica(rank):
        blocks = [ArrayImpl(share[rank], a) for share, a in zip(shares, avals)]
        return list(map(asbuffer, executable(*blocks)))

    run = run_over.value(program.mesh, program.text_parts)
    elsewhere = [None] * len(program.out_avals)
    found = [elsewhere if x is None else x for x in run_replicas(run, replica)]
    return list(zip(*found))


def mesh_program(jaxpr, mesh, in_specs, out_specs, **params):
    """Return the `MeshProgram` for the parameters of a ``shard_map``."""
    key = mesh, in_specs, out_specs, compile_context()
    make = partial(MeshProgram, jaxpr, mesh, in_specs, out_specs)
    return once_of(_programs, jaxpr).get(key, make)


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
    found = _bind(operands, program, ins, out_specs + outs, params)
    return found[: len(moves)], spread(moves, found[len(moves) :])


jvp_rules[shard_map_p] = _jvp
