"""What pmap and shard_map are given: read, and refused where it does not fit.

Reference: ``jax.shard_map``, ``jax.pmap``.
"""

# Made from chapters/36_replicas_ground.md by `make chapter`;
# edit the chapter, not this file.

from math import prod

from minijax.arrays.array import ArrayImpl
from minijax.arrays.avals import typeof
from minijax.arrays.transfer import local_devices
from minijax.batching.named_axes import axis_index_p
from minijax.branches.conditionals import cond_p
from minijax.branches.while_loops import while_p
from minijax.emitted.arrays import COLLECTIVES
from minijax.jaxprs.printing import jaxprs_in_params
from minijax.jaxprs.staging_api import abstractify
from minijax.jitting.arguments import static_value
from minijax.pytrees.api_util import FlatCall
from minijax.pytrees.call_checks import resolve_argnums
from minijax.pytrees.operations import flatten_axes
from minijax.pytrees.treedefs import tree_flatten, tree_leaves
from minijax.replicas.named_shardings import IndivisibleError
from minijax.replicas.partition_specs import PartitionSpec, dims_of, names_in


def check_spec(what, option, aval, spec, params):
    """Raise unless a spec fits an array, and names axes of the mesh, each once."""
    names, known = names_in(spec), params["newly_manual_axes"]
    if not set(names) <= known:
        unknown = sorted(set(names) - known)
        raise ValueError(
            f"shard_map {option} {spec} names {unknown}; the axes here are "
            f"{sorted(known)}, of {params['mesh']}."
        )
    if len(set(names)) < len(names):
        raise ValueError(f"shard_map {option} {spec} names a mesh axis twice.")
    if len(spec) > aval.ndim:
        raise ValueError(
            f"shard_map {option} {spec} has {len(spec)} entries, but {what} is {aval}, "
            f"with {aval.ndim} axes. Make the spec shorter, or give the array axes."
        )


def check_divisible(what, aval, spec, mesh):
    """Raise unless mesh axes divide the axes of an array evenly."""
    for i, (size, names) in enumerate(zip(aval.shape, dims_of(spec, aval.ndim))):
        parts = prod(mesh.shape[name] for name in names)
        if size % parts:
            raise ValueError(
                f"shard_map deals out {what} of type {aval} by {spec}: axis {i} has "
                f"size {size}, which is not divisible by the {parts} devices along "
                f"{', '.join(map(repr, names))} of {mesh}. Pad the array, or name "
                "other axes."
            )


def flat_specs(option, specs, tree):
    """Return a spec for each leaf; None stands for P()."""
    found = flatten_axes(f"shard_map {option}", specs, tree)
    for spec in found:
        if not isinstance(spec, PartitionSpec | None):
            raise TypeError(
                f"shard_map {option} is a tree of PartitionSpec, got {spec!r} in it."
            )
    return [PartitionSpec() if spec is None else spec for spec in found]


def key_of(specs):
    """Return what specifications are found by in a dictionary."""
    leaves, tree = tree_flatten(specs, lambda x: x is None)
    return tuple(leaves), tree


def place_of_result(call, out, axis, i):
    """Return the axis of a result that counts the replicas, from the front."""
    ndim = typeof(out).ndim + 1
    if axis is None or -ndim <= axis < ndim:
        return axis if axis is None else axis % ndim
    raise ValueError(
        f"pmap out_axes: axis {axis} is out of bounds for result {i} of "
        f"{call.fun_name}, which has {ndim} axes with that of the replicas."
    )


def mapped_dims(call, in_axes, args):
    """Return the mapped axis of each leaf of the arguments, or None."""
    axes = flatten_axes("pmap in_axes", in_axes, args)
    axes += [0] * (len(call.leaves) - len(axes))  # keyword arguments
    return [_dim(call, i, axis) for i, axis in enumerate(axes)]


def _dim(call, i, axis):
    ndim = call.avals[i].ndim
    if axis is None or -ndim <= axis < ndim:
        return axis if axis is None else axis % ndim
    raise ValueError(
        f"pmap was requested to map {call.name_of(i)} of type {call.avals[i]} along "
        f"axis {axis}, which it does not have. What all replicas share needs "
        "in_axes=None."
    )


def _size(call, dims, axis_size):
    """Return the number of replicas: the size that all mapped axes have."""
    mapped = [i for i, dim in enumerate(dims) if dim is not None]
    if not mapped:
        raise ValueError(
            "pmap requires at least one argument with a mapped axis: "
            f"{call.fun_name} got {len(dims)} arrays or scalars with in_axes None."
        )
    sizes = [call.avals[i].shape[dims[i]] for i in mapped]
    if axis_size not in (None, sizes[0]):
        raise ValueError(
            f"Specified axis_size {axis_size} doesn't match received axis_size "
            f"{sizes[0]}: axis {dims[mapped[0]]} of {call.name_of(mapped[0])}."
        )
    for i, size in zip(mapped, sizes):
        if size != sizes[0]:
            raise IndivisibleError(
                f"pmap got mapped axes of different sizes: {sizes[0]} for "
                f"{call.name_of(mapped[0])}, {size} for {call.name_of(i)} of type "
                f"{call.avals[i]}. What all replicas share needs in_axes=None."
            )
    return sizes[0]


def devices_of_call(call, dims, axis_size, devices, backend):
    """Return the devices of the replicas: those named, or the first ones."""
    size = _size(call, dims, axis_size)
    found = list(local_devices(backend=backend) if devices is None else devices)
    if size > len(found):
        raise IndivisibleError(
            f"pmap has {size} examples for {call.fun_name}, but there are "
            f"{len(found)} devices: {', '.join(map(str, found))}. More devices of the "
            "CPU are made by minijax.config.update('jax_num_cpu_devices', "
            f"{size}) before the first array, or by the environment variable "
            f"JAX_NUM_CPU_DEVICES={size}."
        )
    return found[:size] if devices is None else found


def _static_positions(numbers, count):
    try:
        return resolve_argnums("pmap", numbers, count, IndexError)
    except IndexError as error:
        raise ValueError(
            f"pmap was given static_broadcasted_argnums={numbers}, and the function "
            f"was called with {count} positional arguments. Give static arguments by "
            "position, not by keyword."
        ) from error


def mapped_call(fun, args, kwargs, numbers, in_axes):
    """Return the `FlatCall` of a pmap, mapped axes of leaves, and static arguments."""
    static = _static_positions(numbers, len(args))
    varying = tuple([i for i in range(len(args)) if i not in static])
    call = FlatCall("pmap", fun, args, kwargs, argnums=varying, typeof=abstractify)
    axes = tuple(in_axes) if isinstance(in_axes, list) else in_axes
    if isinstance(axes, tuple) and len(axes) == len(args):
        axes = tuple([axes[i] for i in varying])
    dims = mapped_dims(call, axes, tuple([args[i] for i in varying]))
    return call, dims, tuple([static_value(f"{i}", args[i]).value for i in static])


def give_away(args, numbers, result):
    """Delete the arrays in arguments that are not needed any more; return a result."""
    for position in resolve_argnums("pmap", numbers, len(args)):
        for x in tree_leaves(args[position]):
            if isinstance(x, ArrayImpl):
                x.delete()
    return result


def refuse_divergence(jaxpr):
    """Raise if some devices of a mesh may enter a collective that others do not.

    Args:
      jaxpr: the body of a checked shard_map.

    Raises:
      ValueError: if a branch or a loop depends on a value that varies along an axis,
        and holds a collective over that axis.
    """
    for eqn in jaxpr.eqns:
        inner = jaxprs_in_params(eqn.params)
        names = _deciding(eqn)
        held = [[c for x in _collectives(j) if (c := x & names)] for j in inner]
        alike = eqn.primitive is cond_p and all(h == held[0] for h in held)
        if any(held) and not alike:
            where = f" ({eqn.source})" if eqn.source else ""
            raise ValueError(
                f"A '{eqn.primitive}' inside of shard_map depends on a value that "
                f"varies along {sorted(names)}, and holds a collective over it: some "
                f"devices would wait for others that never come{where}. Move the "
                "collective out, or make the condition the same on all devices, for "
                "example by lax.pmax."
            )
        for program in inner:
            refuse_divergence(program)


def _deciding(eqn):
    """Return the axes along which devices may take different ways in an equation."""
    if eqn.primitive is cond_p:
        return eqn.invars[0].aval.manual_axis_type.varying
    if eqn.primitive is while_p:
        [keep_going] = eqn.params["cond_jaxpr"].out_avals
        return keep_going.manual_axis_type.varying
    return frozenset()


def _collectives(jaxpr):
    """Yield the set of axes of each collective in a jaxpr, in order."""
    for eqn in jaxpr.eqns:
        if eqn.primitive in COLLECTIVES and eqn.primitive is not axis_index_p:
            yield {*eqn.params["axis_name"]}
        for inner in jaxprs_in_params(eqn.params):
            yield from _collectives(inner)
