"""Sharding rules of loops, choices and maps: propagation to a fixed point.

Reference: GSPMD, https://arxiv.org/abs/2105.04663, section 3.5.
"""

# Made from chapters/36_replicas_rest.md by `make chapter`;
# edit the chapter, not this file.

import math
from itertools import takewhile

from minijax import lax
from minijax.arrays.avals import typeof
from minijax.arrays.sharding_types import NO_MANUAL_AXES
from minijax.branches.conditionals import cond_p
from minijax.branches.while_loops import parts_of_while, while_p
from minijax.forgetting.programs import stage
from minijax.jaxprs.jaxpr import Literal
from minijax.jitting.shardings import device_askers
from minijax.mesh_maps.manual_axes import pvary_p
from minijax.mesh_maps.map_rules import shard_map_p
from minijax.passes.sweeping import changed_inside
from minijax.replicas.meshes import Mesh
from minijax.replicas.named_shardings import NamedSharding
from minijax.replicas.partition_specs import PartitionSpec, dims_of
from minijax.scans.primitive import scan_p
from minijax.scans.steps import groups
from minijax.spmd.notes import notes_here
from minijax.spmd.spreading import (
    Piece,
    agreed,
    gathered,
    recut,
    sharding_rules,
    spread_out,
)
from minijax.spmd.spreading_rules import _cut_again, without


def _part(aval, spec):
    """Return the type of what a device has of a value."""
    pairs = zip(aval.shape, spec)
    shape = [size // math.prod(map(lax.axis_size, cut)) for size, cut in pairs]
    return aval.update(shape=shape, manual_axis_type=NO_MANUAL_AXES)


def written(closed, specs, wanted=None):
    """Return a program for parts, and how its results are cut.

    Args:
      closed: a `ClosedJaxpr`, for whole values.
      specs: how inputs are cut.
      wanted: how results are to be cut; by default, as they come.
    """
    notes, found = notes_here(), []
    before = list(notes.lines) if notes else []

    def program(*parts):
        pieces = [Piece(*pair) for pair in zip(parts, specs)]
        outs = spread_out(closed.jaxpr, closed.consts, pieces)
        found[:] = [out.spec for out in outs] if wanted is None else wanted
        return [recut(out, spec) for out, spec in zip(outs, found)]

    made = stage(program, [_part(*pair) for pair in zip(closed.in_avals, specs)])
    if wanted is None and notes:
        notes.lines[:] = before  # this was a trial
    return made, found


def either(some, others):
    """Return for each of two lists of cuts the one that refines the other, or none."""
    return [agreed([[*pair] for pair in zip(a, b)]) for a, b in zip(some, others)]


def common(some, others):
    """Return what two lists of cuts have in common."""
    return [
        tuple([_beginning(*pair) for pair in zip(a, b)]) for a, b in zip(some, others)
    ]


def _beginning(one, other):
    same = takewhile(lambda pair: pair[0] == pair[1], zip(one, other))
    return tuple([name for name, _ in same])


def settled_carry(step, before, carry, after):
    """Return how a carry is cut in all steps of a loop.

    Args:
      step: a `ClosedJaxpr` whose first results are the carry.
      before, carry, after: how its inputs are cut.
    """
    outs = written(step, [*before, *carry, *after])[1]
    pairs = zip(either(carry, outs), outs)
    carry, last = [out if not any(both) else both for both, out in pairs], None
    while carry != last:
        outs = written(step, [*before, *carry, *after])[1]
        carry, last = common(carry, outs), carry
    return carry


def scan_pieces(primitive, *pieces, jaxpr, num_consts, num_carry, **params):
    """Run a loop on parts: rows are whole along the axis that counts them."""
    consts, carry, xs = groups([x.spec for x in pieces], num_consts, num_carry)
    rows = [spec[1:] for spec in xs]
    carry = settled_carry(jaxpr, consts, carry, rows)
    outs = written(jaxpr, [*consts, *carry, *rows])[1]
    wanted = [*carry, *outs[num_carry:]]
    step, _ = written(jaxpr, [*consts, *carry, *rows], wanted)
    specs = [*consts, *carry, *[((), *spec) for spec in rows]]
    operands = [recut(*pair) for pair in zip(pieces, specs)]
    sizes = {"num_consts": num_consts, "num_carry": num_carry}
    found = primitive.bind(*operands, jaxpr=step, **sizes, **params)
    ends = [*carry, *[((), *spec) for spec in wanted[num_carry:]]]
    return [Piece(*pair) for pair in zip(found, ends)]


def while_pieces(
    primitive, *pieces, cond_nconsts, cond_jaxpr, body_nconsts, body_jaxpr
):  # fmt: skip
    """Run a loop on parts; the condition is the same on all devices."""
    specs = [x.spec for x in pieces]
    tests, consts, carry = parts_of_while(specs, cond_nconsts, body_nconsts)
    settled = settled_carry(body_jaxpr, consts, carry, [])
    whole = [((),) * aval.ndim for aval in cond_jaxpr.out_avals]
    # A condition of several examples chooses among rows: those of the carry are whole.
    carry = [without(spec, range(len(whole[0]))) for spec in settled]
    params = {
        "cond_jaxpr": written(cond_jaxpr, [*tests, *carry], whole)[0],
        "body_jaxpr": written(body_jaxpr, [*consts, *carry], carry)[0],
        "cond_nconsts": cond_nconsts, "body_nconsts": body_nconsts,
    }  # fmt: skip
    pairs = zip(pieces, [*tests, *consts, *carry])
    found = primitive.bind(*[recut(*pair) for pair in pairs], **params)
    ends = zip(map(Piece, found, carry), settled)
    return [_cut_again(*pair) for pair in ends]


def cond_pieces(primitive, index, *operands, branches):
    """Choose on parts; all devices take the same branch."""
    specs = [x.spec for x in operands]
    outs = [written(branch, specs)[1] for branch in branches]
    wanted = outs[0]
    for others in outs[1:]:
        wanted = either(wanted, others)
    chosen = tuple([written(branch, specs, wanted)[0] for branch in branches])
    values = [x.value for x in operands]
    found = primitive.bind(recut(index, ()), *values, branches=chosen)
    return [Piece(*pair) for pair in zip(found, wanted)]


def unchecked(closed):
    """Return a program whose types do not say which values vary."""
    kinds = [aval.update(manual_axis_type=NO_MANUAL_AXES) for aval in closed.in_avals]
    return stage(lambda *xs: evaluated(closed, xs), kinds)


def evaluated(closed, args):
    """Return the results of a checked program, on values whose types say less."""
    known = dict(zip(closed.constvars, closed.consts)) | dict(zip(closed.invars, args))

    def read(atom):
        return atom.value if isinstance(atom, Literal) else known[atom]

    for eqn in closed.eqns:
        xs = [read(x) for x in eqn.invars]
        params = {x: changed_inside(y, unchecked) for x, y in eqn.params.items()}
        ys = xs if eqn.primitive is pvary_p else eqn.primitive.bind(*xs, **params)
        known.update(zip(eqn.outvars, ys))
    return [read(x) for x in closed.outvars]


def map_pieces(primitive, *pieces, jaxpr, mesh, in_specs, out_specs, **params):
    """Write the body of a shard_map into the program of one device."""
    notes = notes_here()
    if notes is None or notes.mesh != mesh:
        how = {"in_specs": in_specs, "out_specs": out_specs, "jaxpr": jaxpr}
        return gathered(primitive, *pieces, mesh=mesh, **how, **params)
    ins = [tuple(dims_of(spec, len(x.spec))) for spec, x in zip(in_specs, pieces)]
    outs = evaluated(jaxpr, [recut(*pair) for pair in zip(pieces, ins)])
    pairs = zip(outs, out_specs)
    return [Piece(y, tuple(dims_of(spec, typeof(y).ndim))) for y, spec in pairs]


def mesh_of_map(params):
    """Return the devices that a shard_map asks for, those of its mesh, as one."""
    mesh = params["mesh"]
    whole = isinstance(mesh, Mesh)
    return [NamedSharding(mesh, PartitionSpec())._device] if whole else []


device_askers[shard_map_p] = mesh_of_map
sharding_rules.update({
    scan_p: scan_pieces, while_p: while_pieces, cond_p: cond_pieces,
    shard_map_p: map_pieces,
})  # fmt: skip
