"""SPMD partitioning: from a program for all devices to the program of one.

References: GSPMD, https://arxiv.org/abs/2105.04663; Shardy, GSPMD,
https://arxiv.org/abs/2105.04663, section 3, ``jax.lax.with_sharding_constraint``.
"""

# Made from chapters/36_replicas_upper.md by `make chapter`;
# edit the chapter, not this file.
# Amended in chapters/36_replicas_rest.md: partition_jaxpr (28772813).

import math
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np

from minijax import lax
from minijax.arrays.array import shape_rules, typeof
from minijax.batching.vmap import ELEMENTWISE, primitives_named
from minijax.core import Primitive, RuleTable
from minijax.custom_derivatives.custom_jvp_vjp import callee_rules, stop_gradient_p
from minijax.jaxprs.jaxpr import Literal, make_jaxpr
from minijax.jaxprs.types import ShapeDtypeStruct
from minijax.jitting.primitive import program_sharding_hook
from minijax.rematerialization.jaxpr_transforms import optimization_barrier_p
from minijax.rematerialization.policies import name_p
from minijax.sharding.named_sharding import NamedSharding, entry_axes, get_mesh
from minijax.spmd.lockstep_executor import (
    collect_notes,
    note_all_gather,
    set_current_eqn,
)


class ShardedValue(NamedTuple):
    """What one device has of a value.

    Attributes:
      value: an array or tracer, the part.
      spec: for each axis the tuple of mesh axes along which the whole is cut.
      requested: the sharding on another mesh that a constraint asks for, or None.
    """

    value: Any
    spec: tuple
    requested: Any = None


def join_shardings(candidates):
    """Return for each axis of an operation the mesh axes along which all cut it.

    Of two cuts the finer one is taken if it refines the other, and else none. A mesh
    axis serves the first axis that asks for it.

    Args:
      candidates: for each axis a list of tuples of mesh axes.
    """
    found, used = [], set()
    for cuts in candidates:
        best = max(cuts, key=len, default=())
        fits = all(best[: len(cut)] == cut for cut in cuts) and not used & {*best}
        found.append(best if fits else ())
        used |= {*found[-1]}
    return tuple(found)


def reshard_value(shard, wanted):
    """Return the value of a shard that is cut in another way.

    What is cut too fine is gathered, the innermost mesh axis first; what is cut too
    little, each device cuts by itself.
    """
    value, kept = shard.value, []
    note_all_gather(shard.spec, wanted)
    for axis, (have, want) in enumerate(zip(shard.spec, wanted)):
        kept.append(_common(have, want))
        for name in reversed(have[kept[-1] :]):
            value = lax.all_gather(value, name, axis=axis, tiled=True)
    for axis, (count, want) in enumerate(zip(kept, wanted)):
        for name in want[count:]:
            value = _own_slice(value, axis, name)
    return value


def _common(have, want):
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(have, want)))


def _own_slice(value, axis, name):
    """Return the slice along an axis whose number is this device's place on `name`."""
    shape = list(typeof(value).shape)
    shape[axis] //= lax.axis_size(name)
    starts = [np.int32(0)] * len(shape)
    starts[axis] = lax.axis_index(name) * shape[axis]
    return lax.dynamic_slice_p.bind(value, *starts, slice_sizes=tuple(shape))


def replicate_fallback(primitive, *shards, **params):
    """Compute with whole operands, on each device the same: always right."""
    whole = [reshard_value(shard, ((),) * len(shard.spec)) for shard in shards]
    return [uncut(y) for y in primitive.bind_all(*whole, **params)]


def uncut(value):
    """Return the `ShardedValue` of a value of which each device has all."""
    return ShardedValue(value, ((),) * typeof(value).ndim)


# Rules ``rule(primitive, *shards, **params)`` return `ShardedValue`s of the results.
sharding_rules = RuleTable("sharding", default=replicate_fallback)


def elementwise_sharding_rule(primitive, *shards, **params):
    """Cut all operands alike; axes of size 1, and numbers without axes, are whole."""
    shapes = list(map(global_shape, shards))
    ndim = max(map(len, shapes))
    pairs = [pair for pair in zip(shards, shapes) if pair[1]]
    cuts = [[p.spec[i] for p, shape in pairs if shape[i] > 1] for i in range(ndim)]
    spec = join_shardings(cuts)
    operands = [
        reshard_value(
            shard, [cut if size > 1 else () for cut, size in zip(spec, shape)]
        )
        for shard, shape in zip(shards, shapes)
    ]
    return [ShardedValue(y, spec) for y in primitive.bind_all(*operands, **params)]


def global_shape(shard):
    """Return the shape of the whole of which a device has a shard."""
    pairs = zip(typeof(shard.value).shape, shard.spec)
    return tuple([size * math.prod(map(lax.axis_size, cut)) for size, cut in pairs])


# Sharding rules: which cuts an operation keeps, and where devices exchange numbers.

_alike = [*primitives_named(ELEMENTWISE), lax.select_n_p, lax.clamp_p]
sharding_rules.update(dict.fromkeys(_alike, elementwise_sharding_rule))
del sharding_rules[lax.bitcast_convert_type_p]  # it may change the number of axes


def drop_sharding(spec, axes):
    """Return a specification in which some axes are whole."""
    return tuple([() if i in axes else cut for i, cut in enumerate(spec)])


_COLLECTIVES = {
    lax.reduce_sum_p: lax.psum, lax.reduce_max_p: lax.pmax, lax.reduce_min_p: lax.pmin,
}  # fmt: skip


def reduce_shard(primitive, shard, axes, **params):
    """Reduce the own part, then with the others along the mesh axes that were cut."""
    rest = tuple([cut for i, cut in enumerate(shard.spec) if i not in axes])
    names = tuple([name for i in axes for name in shard.spec[i]])
    collective = _COLLECTIVES.get(primitive)
    value = (
        shard.value
        if collective
        else reshard_value(shard, drop_sharding(shard.spec, axes))
    )
    result = primitive.bind(value, axes=axes, **params)
    return [
        ShardedValue(
            collective(result, names) if collective and names else result, rest
        )
    ]


_folds = primitives_named("""
    reduce_sum reduce_max reduce_min reduce_prod reduce_and reduce_or reduce_xor argmax
    argmin
""")
sharding_rules.update(dict.fromkeys(_folds, reduce_shard))


def multiply_shards(primitive, left, right, dimension_numbers, **params):
    """Multiply matrices; if what is summed is cut, each device has part of a sum."""
    (sums_l, sums_r), (batch_l, batch_r) = dimension_numbers
    free_l = [i for i in range(len(left.spec)) if i not in (*sums_l, *batch_l)]
    free_r = [i for i in range(len(right.spec)) if i not in (*sums_r, *batch_r)]
    batch = [[left.spec[i], right.spec[j]] for i, j in zip(batch_l, batch_r)]
    sums = [[left.spec[i], right.spec[j]] for i, j in zip(sums_l, sums_r)]
    own_l, own_r = [[left.spec[i]] for i in free_l], [[right.spec[j]] for j in free_r]
    cuts = join_shardings(batch + own_l + sums + own_r)
    places_l = dict(zip((*batch_l, *free_l, *sums_l), cuts))
    late = cuts[len(batch_l) + len(free_l) :]
    places_r = dict(zip((*batch_r, *sums_r, *free_r), (*cuts[: len(batch_r)], *late)))
    operands = [
        reshard_value(shard, tuple([places[i] for i in range(len(shard.spec))]))
        for shard, places in ((left, places_l), (right, places_r))
    ]
    y = primitive.bind(*operands, dimension_numbers=dimension_numbers, **params)
    names = tuple([name for cut in late[: len(sums_l)] for name in cut])
    spec = cuts[: len(batch_l) + len(free_l)] + late[len(sums_l) :]
    return [ShardedValue(lax.psum(y, names) if names else y, spec)]


sharding_rules[lax.dot_general_p] = multiply_shards


def _sizes(names):
    return math.prod(lax.axis_size(name) for name in names)


def _transpose(primitive, shard, permutation):
    y = primitive.bind(shard.value, permutation=permutation)
    return [ShardedValue(y, tuple([shard.spec[i] for i in permutation]))]


def _broadcast(primitive, shard, shape, broadcast_dimensions):
    spec, local = [()] * len(shape), list(shape)
    for i, axis in enumerate(broadcast_dimensions):
        if typeof(shard.value).shape[i] * _sizes(shard.spec[i]) == shape[axis]:
            spec[axis] = shard.spec[i]
            local[axis] //= _sizes(shard.spec[i])
    wanted = tuple([spec[axis] for axis in broadcast_dimensions])
    value = reshard_value(shard, wanted)
    y = primitive.bind(
        value, shape=tuple(local), broadcast_dimensions=broadcast_dimensions
    )
    return [ShardedValue(y, tuple(spec))]


def _squeeze(primitive, shard, dimensions):
    value = reshard_value(shard, drop_sharding(shard.spec, dimensions))
    kept = [cut for i, cut in enumerate(shard.spec) if i not in dimensions]
    return [
        ShardedValue(y, tuple(kept))
        for y in primitive.bind_all(value, dimensions=dimensions)
    ]


def _slice(primitive, shard, start_indices, limit_indices, strides, **params):
    shape = typeof(shard.value).shape
    steps, limits, partly = strides or (1,) * len(shape), list(limit_indices), []
    for i, (size, cut) in enumerate(zip(shape, shard.spec)):
        if (start_indices[i], limits[i], steps[i]) != (0, size * _sizes(cut), 1):
            partly.append(i)
        else:
            limits[i] = size
    params |= {"start_indices": start_indices, "strides": strides}
    spec = drop_sharding(shard.spec, partly)
    y = primitive.bind(
        reshard_value(shard, spec), limit_indices=tuple(limits), **params
    )
    return [ShardedValue(y, spec)]


sharding_rules.update({
    lax.transpose_p: _transpose, lax.broadcast_in_dim_p: _broadcast,
    lax.squeeze_p: _squeeze, lax.slice_p: _slice,
})  # fmt: skip


def replicate_dims_rule(axes_of):
    """Return the rule of what needs some axes whole, and cuts its results again."""

    def rule(primitive, *shards, **params):
        spec = join_shardings(
            list(zip(*[shard.spec for shard in shards if shard.spec]))
        )
        whole = drop_sharding(spec, axes_of(**params))
        operands = [reshard_value(shard, whole[: len(shard.spec)]) for shard in shards]
        results = primitive.bind_all(*operands, **params)
        return [_reshard_to(ShardedValue(y, whole), spec) for y in results]

    return rule


def _reshard_to(shard, spec):
    shape, used = typeof(shard.value).shape, set().union(*shard.spec)
    fits = tuple([
        have or (cut if size % _sizes(cut) == 0 and not used & {*cut} else ())
        for have, cut, size in zip(shard.spec, spec, shape)
    ])  # fmt: skip
    return ShardedValue(reshard_value(shard, fits), fits)


_running = primitives_named("cumsum cumprod cummax cummin cumlogsumexp")
_along_axis = replicate_dims_rule(lambda axis, **params: [axis])
sharding_rules.update(dict.fromkeys(_running, _along_axis))
sharding_rules[lax.sort_p] = replicate_dims_rule(
    lambda dimension, **params: [dimension]
)
sharding_rules[lax.concatenate_p] = replicate_dims_rule(lambda dimension: [dimension])
sharding_rules[lax.rev_p] = replicate_dims_rule(lambda dimensions: dimensions)
sharding_rules[lax.pad_p] = replicate_dims_rule(
    lambda padding_config: [i for i, c in enumerate(padding_config) if any(c)]
)


def _same(primitive, *shards, **params):
    return list(shards)


_names = optimization_barrier_p, name_p, stop_gradient_p
sharding_rules.update(dict.fromkeys(_names, _same))


def _groups(before, after):
    """Yield the axes that become each other: pairs of lists, of equal products."""
    mine, theirs, rows, columns = [], [], 1, 1
    left = [i for i, size in enumerate(before) if size != 1]
    right = [j for j, size in enumerate(after) if size != 1]
    while left or right:
        if rows <= columns and left:
            rows *= before[left[0]]
            mine.append(left.pop(0))
        else:
            columns *= after[right[0]]
            theirs.append(right.pop(0))
        if rows == columns:
            yield mine, theirs
            mine, theirs, rows, columns = [], [], 1, 1


def _leading(axes, shape, spec):
    """Return the mesh axes that cut what some axes are together into runs."""
    names: list[str] = []
    for axis in axes:
        names += spec[axis]
        if _sizes(spec[axis]) != shape[axis]:
            break
    return names


def _dealt(axes, shape, names):
    """Return how many of the mesh axes some axes can take, and which takes which."""
    dealt, names = {}, list(names)
    for axis in axes:
        room, taken = shape[axis], []
        while names and room % lax.axis_size(names[0]) == 0:
            room //= lax.axis_size(names[0])
            taken.append(names.pop(0))
        dealt[axis] = tuple(taken)
        if room != 1:
            break
    return dealt


def _reshape(primitive, shard, new_sizes):
    """Keep the cuts of leading axes: their parts are runs of elements."""
    pairs = zip(typeof(shard.value).shape, shard.spec)
    shape = [size * _sizes(cut) for size, cut in pairs]
    if 0 in shape:
        return replicate_fallback(primitive, shard, new_sizes=new_sizes)
    before, after = {}, {}
    for mine, theirs in _groups(shape, new_sizes):
        dealt = _dealt(theirs, new_sizes, _leading(mine, shape, shard.spec))
        after |= dealt
        before |= _dealt(mine, shape, [name for cut in dealt.values() for name in cut])
    wanted = tuple([before.get(i, ()) for i in range(len(shape))])
    spec = tuple([after.get(j, ()) for j in range(len(new_sizes))])
    local = tuple([size // _sizes(cut) for size, cut in zip(new_sizes, spec)])
    y = primitive.bind(reshard_value(shard, wanted), new_sizes=local)
    return [ShardedValue(y, spec)]


sharding_rules[lax.reshape_p] = _reshape


def partition_jaxpr(jaxpr, consts, shards):
    """Run a program on shards, by the sharding rules; return those of its results."""
    known = dict(zip(jaxpr.constvars, map(uncut, consts)))
    known.update(zip(jaxpr.invars, shards))

    def read(atom):
        return uncut(atom.val) if isinstance(atom, Literal) else known[atom]

    for eqn in jaxpr.eqns:
        set_current_eqn(eqn)
        operands = [read(x) for x in eqn.invars]
        callee = callee_rules[eqn.primitive](eqn)
        if callee is not None:
            callee = program_sharding_hook.value(callee, eqn.params)
            results = partition_jaxpr(callee.jaxpr, callee.consts, operands)
        else:
            rule = sharding_rules[eqn.primitive]
            results = rule(eqn.primitive, *operands, **eqn.params)
        known.update(zip(eqn.outvars, results))
    return [read(x) for x in jaxpr.outvars]


def per_device_program(closed, mesh, specs):
    """Return the program of one device, and how its results are cut.

    Args:
      closed: a `ClosedJaxpr`, for whole arrays.
      mesh: a `Mesh`.
      specs: how each input is cut, as `ShardedValue` says it.
    """
    out_specs = []

    def local(*parts):
        shards = [ShardedValue(part, spec) for part, spec in zip(parts, specs)]
        outs = partition_jaxpr(closed.jaxpr, closed.consts, shards)
        out_specs.extend(shard.spec for shard in outs)
        notes.asked = [shard.requested for shard in outs]
        return [shard.value for shard in outs]

    parts = [_part(*pair, mesh) for pair in zip(closed.in_avals, specs)]
    with collect_notes(mesh) as notes:
        return make_jaxpr(local, axis_env=mesh.shape_tuple)(*parts), out_specs


def _part(aval, spec, mesh):
    counts = [math.prod(mesh.shape[name] for name in cut) for cut in spec]
    shape = tuple([size // count for size, count in zip(aval.shape, counts)])
    return ShapeDtypeStruct(shape, aval.dtype, weak_type=aval.weak_type)


# The primitive of a sharding that a program asks for, and how it cuts a value.

sharding_constraint_p = Primitive("sharding_constraint")


def bind_sharding_constraint(x, sharding):
    """Bind the constraint that a value lies in a sharding."""
    return sharding_constraint_p.bind(
        x, sharding=sharding, layout=None, context_mesh=get_mesh(),
        unconstrained_dims=frozenset(),
    )  # fmt: skip


def _constrained_shape(x, sharding, **params):
    if isinstance(sharding, NamedSharding):
        sharding.divisions(x.ndim)  # which refuses a specification for more axes
    return [x]


shape_rules[sharding_constraint_p] = _constrained_shape


def constrain_sharded_value(primitive, shard, sharding, **params):
    """Cut a value as it is asked for, where that gives equal parts."""
    cuts = list(map(entry_axes, getattr(sharding, "spec", ())))
    cuts += [()] * (len(shard.spec) - len(cuts))
    sizes = [math.prod(map(lax.axis_size, cut)) for cut in cuts]
    pairs = zip(cuts, global_shape(shard), sizes)
    wanted = tuple([cut if size % count == 0 else () for cut, size, count in pairs])
    return [ShardedValue(reshard_value(shard, wanted), wanted)]


sharding_rules[sharding_constraint_p] = constrain_sharded_value
