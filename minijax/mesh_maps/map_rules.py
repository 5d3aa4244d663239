"""Rules of shard_map: its types, batching, dead code, cost, transpose and split.

Reference: ``jax.shard_map``.
"""

# Made from chapters/36_replicas_ground.md by `make chapter`;
# edit the chapter, not this file.

from math import prod

import numpy as np

from minijax import lax
from minijax.arrays.array import shape_rules
from minijax.arrays.avals import typeof
from minijax.arrays.sharding_types import NO_MANUAL_AXES
from minijax.batching.collectives import psum_p
from minijax.batching.rules import insert_axis, vmap_rules
from minijax.batching.trace import program_primitives
from minijax.core import Primitive, set_current_trace
from minijax.forgetting.programs import (
    dce_program,
    dce_rules,
    keep_inputs,
    only,
    partition,
    spread,
    stage,
    transpose_program,
    vmap_program,
    without_consts,
)
from minijax.forgetting.splitting import split_program
from minijax.jaxprs.jaxpr import jaxpr_as_fun
from minijax.jitting.costs import cost_analysis, cost_rules
from minijax.jitting.primitive import check_operands
from minijax.linear.linearization import split_rules
from minijax.mesh_maps.manual_axes import inside_mesh
from minijax.replicas.partition_specs import PartitionSpec, dims_of, names_in
from minijax.reverse.transposition import Linear, transpose_rules

shard_map_p: Primitive = Primitive("shard_map")
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


def bind_map(args, program, in_specs, out_specs, params):
    """Bind shard_map to a body, with specifications for operands and results."""
    specs = {"in_specs": tuple(in_specs), "out_specs": tuple(out_specs)}
    return shard_map_p.bind(*args, **params | specs | {"jaxpr": program})


def _vmap(axis, args, dims, jaxpr, in_specs, out_specs, **params):
    with set_current_trace(body_trace(params)):
        program, places = vmap_program(jaxpr, axis, tuple(dims))
    ins = map(_with_axis, in_specs, dims)
    outs = map(_with_axis, out_specs, places)
    return bind_map(args, program, ins, outs, params), list(places)


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
    arrived = bind_map([*values, *cts], back, known_specs + out_specs, specs, params)
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
        outs = bind_map(known, first, in_specs, out_specs + kept, params)
    residuals = outs[count:]
    with set_current_trace(split.tape):
        consts = [PartitionSpec()] * len(second.consts)
        operands = [*second.consts, *residuals, *tape_args]
        program, ins = without_consts(second), consts + kept + tape_specs
        found = bind_map(operands, program, ins, tape_outs, params)
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
    halves = (
        stage(first, known.in_avals),
        stage(second, carried + unknown.in_avals[number:]),
    )
    return *halves, specs


def _axes_of(aval, params):
    """Return the mesh axes along which a value inside the body may differ."""
    varying = aval.manual_axis_type.varying
    checked, manual = params["check_vma"], params["newly_manual_axes"]
    names = varying if checked else manual
    return tuple([name for name in params["mesh"].shape if name in names])


split_rules[shard_map_p] = _split_map
