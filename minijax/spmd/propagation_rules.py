"""Sharding rules of convolutions, gathers, scatters, loops and branches.

References: GSPMD, https://arxiv.org/abs/2105.04663, section 3, GSPMD,
https://arxiv.org/abs/2105.04663, section 3.5.
"""

# Made from chapters/36_replicas_rest.md by `make chapter`;
# edit the chapter, not this file.

import math
from itertools import takewhile

from minijax import lax
from minijax.arrays.array import typeof
from minijax.arrays.devices import NO_MANUAL_AXES
from minijax.batching.vmap import primitives_named
from minijax.control_flow.conditionals import cond_p
from minijax.control_flow.while_loops import split_while_args, while_p
from minijax.indexing.dimension_numbers import WindowDims
from minijax.jaxprs.jaxpr import Literal
from minijax.jitting.compilation import device_constraint_rules
from minijax.passes.rewriting import map_inner_jaxprs
from minijax.rematerialization.jaxpr_transforms import trace_flat_fun
from minijax.scans.scan import scan_p
from minijax.scans.step import split_list_by_sizes
from minijax.sharding.manual_axes import pvary_p
from minijax.sharding.named_sharding import (
    Mesh,
    NamedSharding,
    PartitionSpec,
    spec_dims,
)
from minijax.sharding.pmap import shard_map_p
from minijax.spmd.lockstep_executor import current_notes
from minijax.spmd.partitioner import (
    ShardedValue,
    _reshard_to,
    drop_sharding,
    global_shape,
    join_shardings,
    partition_jaxpr,
    replicate_dims_rule,
    replicate_fallback,
    reshard_value,
    sharding_rules,
)

# Sharding rules of convolutions, and of folds of windows.


def convolve_shards(primitive, left, right, dimension_numbers, **params):
    """Convolve parts of a batch; if features are cut, each device has part of a sum."""
    if params["feature_group_count"] != 1 or params["batch_group_count"] != 1:
        whole = params | {"dimension_numbers": dimension_numbers}
        return replicate_fallback(primitive, left, right, **whole)
    (batch, feature, *_), (out, into, *_), (rows, columns, *_) = dimension_numbers
    cuts = join_shardings(
        [[left.spec[batch]], [left.spec[feature], right.spec[into]], [right.spec[out]]]
    )
    operands = [
        reshard_value(shard, tuple([places.get(i, ()) for i in range(len(shard.spec))]))
        for shard, places in (
            (left, {batch: cuts[0], feature: cuts[1]}),
            (right, {into: cuts[1], out: cuts[2]}),
        )
    ]
    y = primitive.bind(*operands, dimension_numbers=dimension_numbers, **params)
    places = {rows: cuts[0], columns: cuts[2]}
    spec = tuple([places.get(i, ()) for i in range(len(left.spec))])
    return [ShardedValue(lax.psum(y, cuts[1]) if cuts[1] else y, spec)]


def slid_axes(window_dimensions, window_strides, padding, **params):
    """Return the axes along which windows are more than single elements."""
    sliding = zip(window_dimensions, window_strides, padding)
    ones = params.get("base_dilation", (1,) * len(padding))
    return [
        i
        for i, (size, step, pads) in enumerate(sliding)
        if (size, step, ones[i], *pads) != (1, 1, 1, 0, 0)
    ]


sharding_rules[lax.conv_general_dilated_p] = convolve_shards
sharding_rules.update(dict.fromkeys(
    (
        lax.reduce_window_sum_p, lax.reduce_window_max_p, lax.reduce_window_min_p,
        lax.select_and_scatter_add_p, lax.select_and_gather_add_p,
    ),
    replicate_dims_rule(slid_axes),
))  # fmt: skip


# Sharding rules of gathers, scatters, and slices at computed places.


def _own_sizes(sizes, spec):
    """Return what each device has of some sizes."""
    return tuple([
        size // math.prod(map(lax.axis_size, cut)) for size, cut in zip(sizes, spec)
    ])  # fmt: skip


def _at(places, ndim):
    return tuple([places.get(axis, ()) for axis in range(ndim)])


def _whole_windows(windows, ndim, sizes, shape):
    """Return axes of the operand that windows have whole, and where results do."""
    pairs = zip(windows.kept(ndim), windows.offset_dims)
    return {
        axis: place
        for axis, place in pairs
        if sizes[axis] == shape[axis] and axis not in windows.start_index_map
    }


def _counters(windows, ndim, counting):
    """Return axes of the operand that are walked with indices, and where in results."""
    places = [counting[place] for place in windows.start_indices_batching_dims]
    return dict(zip(windows.operand_batching_dims, places))


def gather_shards(
    primitive, operand, indices, dimension_numbers, slice_sizes, **params
):  # fmt: skip
    """Take windows of parts, where they have an axis whole; of own indices each."""
    windows, shape = WindowDims(*dimension_numbers), global_shape(operand)
    ndim, rank = len(shape), len(windows.offset_dims) + len(indices.spec) - 1
    wide = _whole_windows(windows, ndim, slice_sizes, shape)
    counting = windows.batch_dims(rank)
    shared = _counters(windows, ndim, counting)
    wishes = [[] for _ in range(rank)]
    for axis, place in (wide | shared).items():
        wishes[place].append(operand.spec[axis])
    for place, cut in zip(counting, indices.spec):
        wishes[place].append(cut)
    cuts = join_shardings(wishes)
    mine = _at({axis: cuts[place] for axis, place in (wide | shared).items()}, ndim)
    theirs = *[cuts[place] for place in counting], ()
    params |= {"slice_sizes": _window(slice_sizes, mine, wide)}
    operands = reshard_value(operand, mine), reshard_value(indices, theirs)
    y = primitive.bind(*operands, dimension_numbers=dimension_numbers, **params)
    return [ShardedValue(y, cuts)]


def _window(sizes, spec, wide):
    own = _own_sizes(sizes, spec)
    return tuple([own[i] if i in wide else size for i, size in enumerate(sizes)])


def scatter_shards(primitive, operand, indices, updates, dimension_numbers, **params):
    """Change parts of an array, where each update has an axis whole."""
    windows, shape = WindowDims(*dimension_numbers), global_shape(operand)
    ndim, rank = len(shape), len(updates.spec)
    sizes = windows.sizes(ndim, global_shape(updates))
    counting = windows.batch_dims(rank)
    wide = _whole_windows(windows, ndim, sizes, shape)
    shared = _counters(windows, ndim, counting)
    places = wide | shared
    cuts = _as_operand(
        operand.spec, {axis: updates.spec[place] for axis, place in places.items()}
    )
    entering = _at({place: cuts[axis] for axis, place in places.items()}, rank)
    theirs = *[entering[place] for place in counting], ()
    parts = (
        reshard_value(operand, cuts),
        reshard_value(indices, theirs),
        reshard_value(updates, entering),
    )
    y = primitive.bind(*parts, dimension_numbers=dimension_numbers, **params)
    return [_reshard_to(ShardedValue(y, cuts), operand.spec)]


def _as_operand(spec, theirs):
    """Return how an operand is cut while updates enter; other axes are whole.

    Args:
      spec: how it is cut, and its result will be again. An update that is cut along
        these mesh axes elsewhere is gathered.
      theirs: for axes that each update has whole, how updates are cut there.
    """
    used = set().union(*spec)
    return join_shardings([
        [own, () if (used - {*own}) & {*theirs[axis]} else theirs[axis]]
        if axis in theirs else []
        for axis, own in enumerate(spec)
    ])  # fmt: skip


def slice_shards(primitive, operand, *starts, slice_sizes):
    """Cut out of parts, along axes that the slice has whole."""
    pairs = zip(operand.spec, slice_sizes, global_shape(operand))
    spec = tuple([cut if size == whole else () for cut, size, whole in pairs])
    own = _own_sizes(slice_sizes, spec)
    values = [reshard_value(operand, spec), *[reshard_value(x, ()) for x in starts]]
    y = primitive.bind(*values, slice_sizes=own)
    return [_reshard_to(ShardedValue(y, spec), operand.spec)]


def update_shards(primitive, operand, update, *starts):
    """Put a slice into parts, along axes that it has whole."""
    rows = zip(update.spec, global_shape(operand), global_shape(update))
    theirs = {i: cut for i, (cut, whole, size) in enumerate(rows) if size == whole}
    spec = _as_operand(operand.spec, theirs)
    values = [reshard_value(x, spec) for x in (operand, update)]
    y = primitive.bind(*values, *[reshard_value(x, ()) for x in starts])
    return [_reshard_to(ShardedValue(y, spec), operand.spec)]


sharding_rules[lax.gather_p] = gather_shards
sharding_rules[lax.dynamic_slice_p] = slice_shards
sharding_rules[lax.dynamic_update_slice_p] = update_shards
_scatters = "scatter scatter_add scatter_mul scatter_min scatter_max"
sharding_rules.update(dict.fromkeys(primitives_named(_scatters), scatter_shards))


# Sharding rules of loops, choices and maps: propagation to a fixed point.


def _part(aval, spec):
    """Return the type of what a device has of a value."""
    pairs = zip(aval.shape, spec)
    shape = [size // math.prod(map(lax.axis_size, cut)) for size, cut in pairs]
    return aval.update(shape=shape, manual_axis_type=NO_MANUAL_AXES)


def partition_body(closed, specs, wanted=None):
    """Return a program for parts, and how its results are cut.

    Args:
      closed: a `ClosedJaxpr`, for whole values.
      specs: how inputs are cut.
      wanted: how results are to be cut; by default, as they come.
    """
    notes, found = current_notes(), []
    before = list(notes.lines) if notes else []

    def program(*parts):
        shards = [ShardedValue(*pair) for pair in zip(parts, specs)]
        outs = partition_jaxpr(closed.jaxpr, closed.consts, shards)
        found[:] = [out.spec for out in outs] if wanted is None else wanted
        return [reshard_value(out, spec) for out, spec in zip(outs, found)]

    made = trace_flat_fun(
        program, [_part(*pair) for pair in zip(closed.in_avals, specs)]
    )
    if wanted is None and notes:
        notes.lines[:] = before  # this was a trial
    return made, found


def either(some, others):
    """Return for each of two lists of cuts the one that refines the other, or none."""
    return [
        join_shardings([[*pair] for pair in zip(a, b)]) for a, b in zip(some, others)
    ]


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
    outs = partition_body(step, [*before, *carry, *after])[1]
    pairs = zip(either(carry, outs), outs)
    carry, last = [out if not any(both) else both for both, out in pairs], None
    while carry != last:
        outs = partition_body(step, [*before, *carry, *after])[1]
        carry, last = common(carry, outs), carry
    return carry


def scan_shards(primitive, *shards, jaxpr, num_consts, num_carry, **params):
    """Run a loop on parts: rows are whole along the axis that counts them."""
    consts, carry, xs = split_list_by_sizes(
        [x.spec for x in shards], num_consts, num_carry
    )
    rows = [spec[1:] for spec in xs]
    carry = settled_carry(jaxpr, consts, carry, rows)
    outs = partition_body(jaxpr, [*consts, *carry, *rows])[1]
    wanted = [*carry, *outs[num_carry:]]
    step, _ = partition_body(jaxpr, [*consts, *carry, *rows], wanted)
    specs = [*consts, *carry, *[((), *spec) for spec in rows]]
    operands = [reshard_value(*pair) for pair in zip(shards, specs)]
    sizes = {"num_consts": num_consts, "num_carry": num_carry}
    found = primitive.bind_all(*operands, jaxpr=step, **sizes, **params)
    ends = [*carry, *[((), *spec) for spec in wanted[num_carry:]]]
    return [ShardedValue(*pair) for pair in zip(found, ends)]


def while_shards(
    primitive, *shards, cond_nconsts, cond_jaxpr, body_nconsts, body_jaxpr
):  # fmt: skip
    """Run a loop on parts; the condition is the same on all devices."""
    specs = [x.spec for x in shards]
    tests, consts, carry = split_while_args(specs, cond_nconsts, body_nconsts)
    settled = settled_carry(body_jaxpr, consts, carry, [])
    whole = [((),) * aval.ndim for aval in cond_jaxpr.out_avals]
    # A condition of several examples chooses among rows: those of the carry are whole.
    carry = [drop_sharding(spec, range(len(whole[0]))) for spec in settled]
    params = {
        "cond_jaxpr": partition_body(cond_jaxpr, [*tests, *carry], whole)[0],
        "body_jaxpr": partition_body(body_jaxpr, [*consts, *carry], carry)[0],
        "cond_nconsts": cond_nconsts, "body_nconsts": body_nconsts,
    }  # fmt: skip
    pairs = zip(shards, [*tests, *consts, *carry])
    found = primitive.bind_all(*[reshard_value(*pair) for pair in pairs], **params)
    ends = zip(map(ShardedValue, found, carry), settled)
    return [_reshard_to(*pair) for pair in ends]


def cond_shards(primitive, index, *operands, branches):
    """Choose on parts; all devices take the same branch."""
    specs = [x.spec for x in operands]
    outs = [partition_body(branch, specs)[1] for branch in branches]
    wanted = outs[0]
    for others in outs[1:]:
        wanted = either(wanted, others)
    chosen = tuple([partition_body(branch, specs, wanted)[0] for branch in branches])
    values = [x.value for x in operands]
    found = primitive.bind_all(reshard_value(index, ()), *values, branches=chosen)
    return [ShardedValue(*pair) for pair in zip(found, wanted)]


def unchecked(closed):
    """Return a program whose types do not say which values vary."""
    kinds = [aval.update(manual_axis_type=NO_MANUAL_AXES) for aval in closed.in_avals]
    return trace_flat_fun(lambda *xs: evaluate_global(closed, xs), kinds)


def evaluate_global(closed, args):
    """Return the results of a checked program, on values whose types say less."""
    known = dict(zip(closed.constvars, closed.consts)) | dict(zip(closed.invars, args))

    def read(atom):
        return atom.value if isinstance(atom, Literal) else known[atom]

    for eqn in closed.eqns:
        xs = [read(x) for x in eqn.invars]
        params = {x: map_inner_jaxprs(y, unchecked) for x, y in eqn.params.items()}
        ys = xs if eqn.primitive is pvary_p else eqn.primitive.bind_all(*xs, **params)
        known.update(zip(eqn.outvars, ys))
    return [read(x) for x in closed.outvars]


def map_shards(primitive, *shards, jaxpr, mesh, in_specs, out_specs, **params):
    """Write the body of a shard_map into the program of one device."""
    notes = current_notes()
    if notes is None or notes.mesh != mesh:
        how = {"in_specs": in_specs, "out_specs": out_specs, "jaxpr": jaxpr}
        return replicate_fallback(primitive, *shards, mesh=mesh, **how, **params)
    ins = [tuple(spec_dims(spec, len(x.spec))) for spec, x in zip(in_specs, shards)]
    outs = evaluate_global(jaxpr, [reshard_value(*pair) for pair in zip(shards, ins)])
    pairs = zip(outs, out_specs)
    return [
        ShardedValue(y, tuple(spec_dims(spec, typeof(y).ndim))) for y, spec in pairs
    ]


def mesh_of_map(params):
    """Return the devices that a shard_map asks for, those of its mesh, as one."""
    mesh = params["mesh"]
    whole = isinstance(mesh, Mesh)
    return [NamedSharding(mesh, PartitionSpec())._device] if whole else []


device_constraint_rules[shard_map_p] = mesh_of_map
sharding_rules.update({
    scan_p: scan_shards, while_p: while_shards, cond_p: cond_shards,
    shard_map_p: map_shards,
})  # fmt: skip
