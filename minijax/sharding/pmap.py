"""pmap and shard_map as users call them: arguments, bodies, rules.

References: ``jax.shard_map``, ``jax.pmap``, the keys of JAX's compilation cache.
"""

# Made from chapters/36_replicas_ground.md by `make chapter`;
# edit the chapter, not this file.

import itertools
from collections.abc import Callable, Iterable, Sequence, Set
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np

from minijax import lax
from minijax._lazy import wraps
from minijax.arrays.array import ArrayImpl, shape_rules, typeof
from minijax.arrays.devices import NO_MANUAL_AXES
from minijax.arrays.transfer import local_devices
from minijax.batching.axes import check_axes_are_ints
from minijax.batching.collectives import axis_index_p, psum_p
from minijax.batching.vmap import (
    broadcast_batch_dim,
    higher_order_primitives,
    vmap_rules,
)
from minijax.control_flow.conditionals import cond_p
from minijax.control_flow.while_loops import while_p
from minijax.core import Array, Primitive, Tracer, current_trace, set_current_trace
from minijax.diagnostics.tracebacks import raise_if_leaked, traces_begun
from minijax.jaxprs.jaxpr import (
    ClosedJaxpr,
    Jaxpr,
    JaxprTrace,
    Literal,
    abstractify,
    jaxpr_as_fun,
    trace_to_jaxpr,
)
from minijax.jaxprs.pretty_printer import jaxprs_in_params
from minijax.jaxprs.types import Hook, TraceProvenance
from minijax.jitting.api import jit
from minijax.jitting.arguments import static_key_of
from minijax.jitting.primitive import check_jaxpr_operands, jit_p
from minijax.jitting.stages import cost_analysis, cost_rules
from minijax.linearization.linearize import partial_eval_rules
from minijax.python_backend.codegen_rules import COLLECTIVES
from minijax.pytrees.api_util import FlatCall
from minijax.pytrees.argument_checks import check_callable, resolve_argnums
from minijax.pytrees.tree_operations import flatten_axes
from minijax.pytrees.tree_util import PyTreeDef, tree_flatten, tree_leaves
from minijax.rematerialization.caching import (
    KeyedCache,
    cache_for_object,
    cache_key_of_value,
    trace_context,
    weakref_cache,
)
from minijax.rematerialization.jaxpr_transforms import (
    batch_jaxpr,
    convert_constvars_closed,
    dce_closed_jaxpr,
    dce_rules,
    partition_list,
    prune_inputs,
    scatter_by_mask,
    select_where,
    trace_flat_fun,
    transpose_jaxpr,
)
from minijax.rematerialization.partial_eval import partial_eval_jaxpr
from minijax.reverse_mode.backward_pass import UndefinedPrimal, transpose_rules
from minijax.sharding.manual_axes import (
    get_vma,
    insert_pvary,
    manual_axes,
    manual_axes_trace,
)
from minijax.sharding.named_sharding import (
    AbstractMesh,
    IndivisibleError,
    Mesh,
    NamedSharding,
    PartitionSpec,
    get_mesh,
    spec_axes,
    spec_dims,
)

# What pmap and shard_map are given: read, and refused where it does not fit.


def check_spec(what, option, aval, spec, params):
    """Raise unless a spec fits an array, and names axes of the mesh, each once."""
    names, known = spec_axes(spec), params["newly_manual_axes"]
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
    for i, (size, names) in enumerate(zip(aval.shape, spec_dims(spec, aval.ndim))):
        parts = prod(mesh.shape[name] for name in names)
        if size % parts:
            raise ValueError(
                f"shard_map deals out {what} of type {aval} by {spec}: axis {i} has "
                f"size {size}, which is not divisible by the {parts} devices along "
                f"{', '.join(map(repr, names))} of {mesh}. Pad the array, or name "
                "other axes."
            )


def flatten_specs(option, specs, tree):
    """Return a spec for each leaf; None stands for P()."""
    found = flatten_axes(f"shard_map {option}", specs, tree)
    for spec in found:
        if not isinstance(spec, PartitionSpec | None):
            raise TypeError(
                f"shard_map {option} is a tree of PartitionSpec, got {spec!r} in it."
            )
    return [PartitionSpec() if spec is None else spec for spec in found]


def spec_key(specs):
    """Return what specifications are found by in a dictionary."""
    leaves, tree = tree_flatten(specs, lambda x: x is None)
    return tuple(leaves), tree


def result_axis(call, out, axis, i):
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
    try:
        axes = flatten_axes("pmap in_axes", in_axes, args)
    except ValueError as error:
        raise ValueError(
            f"{error}\nThese are the arguments passed by position; each argument "
            "passed by keyword is mapped along its axis 0."
        ) from None
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


def pmap_devices(call, dims, axis_size, devices, backend):
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
        numbers = (numbers,) if isinstance(numbers, int) else tuple(numbers)
        raise ValueError(
            f"pmapped function has static_broadcasted_argnums={numbers} but was called "
            f"with only {count} positional argument{'s' * (count > 1)}. All static "
            "broadcasted arguments must be passed positionally."
        ) from error


def prepare_pmap(fun, args, kwargs, numbers, in_axes):
    """Return the `FlatCall` of a pmap, mapped axes of leaves, and static arguments."""
    static = _static_positions(numbers, len(args))
    varying = tuple([i for i in range(len(args)) if i not in static])
    call = FlatCall("pmap", fun, args, kwargs, argnums=varying, typeof=abstractify)
    axes = tuple(in_axes) if isinstance(in_axes, list) else in_axes
    if isinstance(axes, tuple) and len(axes) == len(args):
        axes = tuple([axes[i] for i in varying])
    dims = mapped_dims(call, axes, tuple([args[i] for i in varying]))
    return call, dims, tuple([static_key_of(f"{i}", args[i]).value for i in static])


def donate_arguments(args, numbers, result):
    """Delete the arrays in arguments that are not needed any more; return a result."""
    for position in resolve_argnums("pmap", numbers, len(args)):
        for x in tree_leaves(args[position]):
            if isinstance(x, ArrayImpl):
                x.delete()
    return result


def check_collective_divergence(jaxpr):
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
            check_collective_divergence(program)


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


# Rules of shard_map: its types, batching, dead code, cost, transpose and split.

shard_map_p: Primitive = Primitive("shard_map")
shard_map_p.multiple_results = True
higher_order_primitives.add(shard_map_p)


def shard_aval(aval, mesh, spec):
    """Return the type of one device's block of an array."""
    parts = [prod(mesh.shape[n] for n in names) for names in spec_dims(spec, aval.ndim)]
    return aval.update(shape=[size // part for size, part in zip(aval.shape, parts)])


def unshard_aval(aval, mesh, spec):
    """Return the type of the array of which each device has such a block."""
    parts = [prod(mesh.shape[n] for n in names) for names in spec_dims(spec, aval.ndim)]
    shape = [size * part for size, part in zip(aval.shape, parts)]
    return aval.update(shape=shape, manual_axis_type=NO_MANUAL_AXES)


def _shape(*avals, jaxpr, mesh, in_specs, out_specs, **params):
    blocks = [shard_aval(*pair) for pair in zip(avals, [mesh] * len(avals), in_specs)]
    check_jaxpr_operands("The body of this shard_map", jaxpr.in_avals, blocks)
    pairs = zip(jaxpr.out_avals, out_specs)
    return [unshard_aval(aval, mesh, spec) for aval, spec in pairs]


shape_rules[shard_map_p] = _shape


def body_trace(params):
    """Return the trace around the body of a shard_map: its axes have names."""
    names, checked = params["newly_manual_axes"], params["check_vma"]
    return manual_axes_trace(params["mesh"].shape, names, checked)


def bind_shard_map(args, program, in_specs, out_specs, params):
    """Bind shard_map to a body, with specifications for operands and results."""
    specs = {"in_specs": tuple(in_specs), "out_specs": tuple(out_specs)}
    return shard_map_p.bind(*args, **params | specs | {"jaxpr": program})


def _vmap(axis, args, dims, jaxpr, in_specs, out_specs, **params):
    with set_current_trace(body_trace(params)):
        program, places = batch_jaxpr(jaxpr, axis, tuple(dims))
    ins = map(_with_axis, in_specs, dims)
    outs = map(_with_axis, out_specs, places)
    return bind_shard_map(args, program, ins, outs, params), list(places)


def _with_axis(spec, dim):
    """Return the spec of an array with one more axis, which is not divided."""
    if dim is None:
        return spec
    entries = [*spec] + [None] * (dim - len(spec))
    return PartitionSpec(*entries[:dim], None, *entries[dim:])


vmap_rules[shard_map_p] = _vmap


def _dce(eqn, used):
    program, needed = dce_closed_jaxpr(eqn.params["jaxpr"], used)
    specs = {
        "in_specs": tuple(select_where(needed, eqn.params["in_specs"])),
        "out_specs": tuple(select_where(used, eqn.params["out_specs"])),
    }
    return eqn.replace(
        invars=select_where(needed, eqn.invars),
        outvars=select_where(used, eqn.outvars),
        params=eqn.params | specs | {"jaxpr": prune_inputs(program, needed)},
    )


def _cost(eqn):
    once, size = cost_analysis(eqn.params["jaxpr"].jaxpr), eqn.params["mesh"].size
    return {kind: size * amount for kind, amount in once.items()}


dce_rules[shard_map_p], cost_rules[shard_map_p] = _dce, _cost


def _transpose(cts, *operands, jaxpr, in_specs, out_specs, **params):
    linear = tuple([isinstance(x, UndefinedPrimal) for x in operands])
    given = [ct is not None for ct in cts]
    out_specs, cts = select_where(given, out_specs), select_where(given, cts)
    avals = scatter_by_mask(given, select_where(given, jaxpr.out_avals))
    with set_current_trace(body_trace(params)):
        back, arrives = transpose_jaxpr(jaxpr, linear, tuple(avals))
        known_specs, specs = partition_list(linear, in_specs)
        specs = select_where(arrives, specs)
        if not params["check_vma"]:
            back = _shared(back, specs, params)
    if not params["check_vma"]:
        cts = [_divided(ct, spec, params) for ct, spec in zip(cts, out_specs)]
    values, _ = partition_list(linear, operands)
    arrived = bind_shard_map(
        [*values, *cts], back, known_specs + out_specs, specs, params
    )
    return scatter_by_mask(linear, scatter_by_mask(arrives, arrived))


def _unmentioned(spec, params):
    """Return the names of the axes along which a block is the same, in mesh order."""
    names = params["newly_manual_axes"].difference(spec_axes(spec))
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
        return [psum_p.bind(x, axis_name=n) if n else x for x, n in pairs]

    return trace_flat_fun(program, back.in_avals)


transpose_rules[shard_map_p] = _transpose


def _partial_eval_shard_map(trace, primitive, args, in_unknown, params):
    jaxpr = params["jaxpr"]
    with set_current_trace(body_trace(params)):
        parts = partial_eval_jaxpr(jaxpr, tuple(in_unknown))
        count = parts.out_unknown.count(False)
        first, second, kept = _carried(parts, count, params)
    in_specs, unknown_specs = partition_list(in_unknown, params["in_specs"])
    out_specs, unknown_outs = partition_list(parts.out_unknown, params["out_specs"])
    known, unknown_args = partition_list(in_unknown, args)
    with set_current_trace(trace.parent):
        outs = bind_shard_map(known, first, in_specs, out_specs + kept, params)
    residuals = outs[count:]
    with set_current_trace(trace.tape):
        consts = [PartitionSpec()] * len(second.consts)
        operands = [*second.consts, *residuals, *unknown_args]
        program, ins = convert_constvars_closed(second), consts + kept + unknown_specs
        found = bind_shard_map(operands, program, ins, unknown_outs, params)
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
        return [*outs[:count], *[broadcast_batch_dim(x, 0, 1) for x in residuals]]

    def second(*flat):
        residuals = [lax.squeeze(x, (0,)) for x in flat[:number]]
        return jaxpr_as_fun(unknown)(*residuals, *flat[number:])

    carried = [aval.update(shape=(1, *aval.shape)) for aval in avals]
    specs = [PartitionSpec(_axes_of(aval, params) or None) for aval in avals]
    halves = (
        trace_flat_fun(first, known.in_avals),
        trace_flat_fun(second, carried + unknown.in_avals[number:]),
    )
    return *halves, specs


def _axes_of(aval, params):
    """Return the mesh axes along which a value inside the body may differ."""
    varying = aval.manual_axis_type.varying
    checked, manual = params["check_vma"], params["newly_manual_axes"]
    names = varying if checked else manual
    return tuple([name for name in params["mesh"].shape if name in names])


partial_eval_rules[shard_map_p] = _partial_eval_shard_map


# Programs that were traced apart and are the same: a key for them (hash consing).

MAX_CACHED_PROGRAMS = 64  # programs of a mesh that are found by what they are


def jaxpr_key(program):
    """Return a key that two programs share if they are equal, and on the same lines.

    It holds identities of objects, so it is good for as long as the program lives.

    Args:
      program: a `ClosedJaxpr` or `Jaxpr`.
    """
    numbers: dict = {}

    def named(atom):
        if type(atom) is Literal:
            return atom.aval, _of_param(atom.val)
        return numbers.setdefault(atom, len(numbers))

    def defined(variables):
        kinds = [(x.aval, x.aval.manual_axis_type) for x in variables]
        return tuple(map(named, variables)), tuple(kinds)

    inner = getattr(program, "jaxpr", program)
    head = tuple(map(id, getattr(program, "consts", ())))
    head += defined(inner.constvars), defined(inner.invars)
    eqns = [
        (
            (eqn.primitive, *map(named, eqn.invars)), defined(eqn.outvars),
            tuple([(name, _of_param(x)) for name, x in eqn.params.items()]),
            eqn.source and (id(eqn.source.code), eqn.source.instruction),
        )
        for eqn in inner.eqns
    ]  # fmt: skip
    return *head, tuple(eqns), tuple(map(named, inner.outvars))


def _of_param(x):
    if isinstance(x, ClosedJaxpr | Jaxpr):
        return jaxpr_key(x)
    if isinstance(x, tuple):
        return type(x), *map(_of_param, x)
    return cache_key_of_value(x)  # zeros have signs, and NaN bits


def cached_by_equal_jaxpr(once, program, key, make):
    """Return what was made of a program that is the same, or make it of this one.

    Args:
      once: a `KeyedCache`.
      program: a `ClosedJaxpr`.
      key: what else it depends on.
      make: function without arguments.
    """
    once.limit, full = MAX_CACHED_PROGRAMS, (jaxpr_key(program), key)
    try:
        hash(full)
    except TypeError:  # of a parameter
        return make()
    return once.get(full, lambda: (make(), program))[0]  # its objects keep their ids


# Bodies of shard_map and pmap: traced, checked and bound; those of pmap are kept.


class TracedBody(NamedTuple):
    """The body of a shard_map or pmap, written down.

    Attributes:
      program: a `ClosedJaxpr`, whose first inputs are those of `consts`.
      consts: the arrays and tracers that the function has picked up.
      out_tree: the structure of its result.
      out_specs: a `PartitionSpec` for each leaf of the result.
    """

    program: ClosedJaxpr
    consts: list
    out_tree: PyTreeDef
    out_specs: tuple


_bodies = weakref_cache()


def trace_body(call, avals, params, key, run):
    """Return the `TracedBody` of a call; it is made once for each kind of arguments.

    Args:
      call: a `FlatCall`.
      avals: the types of the blocks that the leaves of the arguments become.
      params: `mesh`, `check_vma` and `newly_manual_axes`.
      key: what else the body depends on.
      run: from the blocks to the list of results, and the list of their specs.
    """
    try:
        once = cache_for_object(_bodies, call.fun)
    except TypeError:  # it has no hash, or no weak references
        once = KeyedCache()
    full = call.in_tree, tuple(avals), *params.values(), key, *trace_context()
    if (body := once.values.get(full)) is not None:
        return body
    with once.lock_for(full):
        if (body := once.values.get(full)) is None:
            body = written_body(call, avals, params, run)
            once.insert(full, body, not any(isinstance(x, Tracer) for x in body.consts))
    return body


def written_body(call, avals, params, run):
    """Trace the body of a call; see `trace_body`."""
    specs, origin = [], TraceProvenance(call.name, call.fun_name, call.names)

    def flat(*blocks):
        outs, found = run(*blocks)
        specs.extend(found)
        return outs

    with set_current_trace(body_trace(params)):
        jaxpr, consts = trace_to_jaxpr(flat, avals, origin)
    if traces_begun:
        raise_if_leaked()
    jaxpr = jaxpr.replace(constvars=[], invars=jaxpr.constvars + jaxpr.invars)
    check_collective_divergence(jaxpr)
    return TracedBody(ClosedJaxpr(jaxpr, []), consts, call.out_tree, tuple(specs))


def bind_body(body, leaves, in_specs, params):
    """Bind a body to the arguments; return the result, a tree."""
    specs = (PartitionSpec(),) * len(body.consts) + tuple(in_specs)
    how = {"in_specs": specs, "out_specs": body.out_specs, **params}
    outs = shard_map_p.bind(*body.consts, *leaves, jaxpr=body.program, **how)
    return body.out_tree.unflatten(outs)


def bind_in_jit(body, call, in_specs, params):
    """Bind a body to the arguments of a call, inside of a `jit`; return the result."""

    def bound(*leaves):
        return tree_flatten(bind_body(body, leaves, in_specs, params))[0]

    jaxpr, consts = trace_to_jaxpr(bound, call.avals)
    jaxpr = jaxpr.replace(constvars=[], invars=jaxpr.constvars + jaxpr.invars)
    program = ClosedJaxpr(jaxpr, [])
    outs = jit_p.bind(*consts, *call.leaves, jaxpr=program, name="_fun")
    return body.out_tree.unflatten(outs)


def _varies_along(spec, params):
    """Return the manual axis type of a block: it varies where its array is divided."""
    names = spec_axes(spec) if params["check_vma"] else ()
    return NO_MANUAL_AXES.update(varying=names)


def _blocks(call, specs, params):
    """Return the types of the blocks of the arguments."""
    mesh = params["mesh"]
    for i, (aval, spec) in enumerate(zip(call.avals, specs)):
        check_spec(f"{call.name_of(i)} of shard_map", "in_specs", aval, spec, params)
        check_divisible(call.name_of(i), aval, spec, mesh)
    return [
        shard_aval(aval, mesh, spec).update(
            manual_axis_type=_varies_along(spec, params)
        )
        for aval, spec in zip(call.avals, specs)
    ]


def _checked_results(call, specs, params, outs):
    """Return the results of a body that may be put together as specs say."""
    for i, (out, spec) in enumerate(zip(outs, specs)):
        what = f"result {i} of {call.fun_name}"
        check_spec(what, "out_specs", typeof(out), spec, params)
        extra = get_vma(out).difference(spec_axes(spec))
        if extra:
            raise ValueError(
                f"shard_map out_specs is {spec} which implies that the corresponding "
                "output value is only varying across mesh axes "
                f"{_listed_axes(spec_axes(spec))} and not {_listed_axes(extra)}, but "
                "it was inferred to be possibly varying over "
                f"{_listed_axes(get_vma(out))}: {what} is {typeof(out)}. Sum it "
                "(minijax.lax.psum), name the axes in the spec, or, if you know that "
                "the values are the same, pass check_vma=False."
            )
    if not params["check_vma"]:
        return outs
    return [insert_pvary(out, spec_axes(spec)) for out, spec in zip(outs, specs)]


def _listed_axes(names):
    return f"{{{','.join(map(str, sorted(names, key=str)))}}}"


def _mesh_of_arrays(mesh, args):
    """Return the mesh, like an abstract one, on whose devices arrays lie.

    Raises:
      ValueError: if an array is on a mesh of other axes, or none is on a mesh.
    """
    shardings = [getattr(x, "sharding", None) for x in tree_leaves(args)]
    found = [s.mesh for s in shardings if isinstance(s, NamedSharding)]
    for theirs in found:
        if theirs.shape_tuple != mesh.shape_tuple:
            raise ValueError(
                f"Mesh shape of the input {theirs.shape_tuple} does not match the mesh "
                f"shape passed to shard_map {mesh.shape_tuple}."
            )
    if not found:
        raise ValueError(
            "Please pass `jax.Array`s with a `NamedSharding` as input to `shard_map` "
            "when passing `AbstractMesh` to the mesh argument. Or use "
            "`minijax.set_mesh(mesh)`; a mesh of the context has the devices."
        )
    return found[0]


def _concrete(mesh, args):
    """Return a mesh with devices: the one given, of the context, or of arguments."""
    if not isinstance(mesh, Mesh | AbstractMesh | None):
        raise TypeError(
            f"shard_map requires a minijax.sharding.Mesh, but got {mesh!r} of type "
            f"{type(mesh)}."
        )
    if isinstance(mesh, Mesh):
        return mesh
    context = get_mesh()
    if mesh is not None and mesh != context.abstract_mesh:
        return _mesh_of_arrays(mesh, args)
    if context.empty:
        raise ValueError(
            "shard_map requires a non-empty mesh, and the context mesh cannot be "
            "empty. Pass `mesh` to shard_map, or use `minijax.set_mesh(mesh)` to enter "
            "into a mesh context."
        )
    return context


def resolve_mesh(mesh, args=()):
    """Return the mesh of a call: the one given, of the context, or of arguments."""
    mesh = _concrete(mesh, args)
    if any(axis.name in mesh.shape for axis in manual_axes(current_trace())):
        raise ValueError(
            f"The context mesh should match the mesh passed to shard_map {mesh}: this "
            "call is inside a program on each device of a mesh whose axes have the "
            "same names. Use one shard_map or pmap over all axes."
        )
    return mesh


def _params(mesh, args, axis_names, check_vma):
    """Return the parameters of the primitive, with a mesh that has devices."""
    mesh = resolve_mesh(mesh, args)
    names = frozenset(axis_names or mesh.axis_names)
    if unknown := names.difference(mesh.axis_names):
        raise ValueError(f"shard_map axis_names {sorted(unknown)} are none of {mesh}")
    return {"mesh": mesh, "check_vma": check_vma, "newly_manual_axes": names}


def run_mapped(f, args, out_specs, in_specs, mesh, axis_names, check_vma):
    """Call a function by `shard_map`, with these options."""
    call = FlatCall("shard_map", f, args, {}, typeof=abstractify)
    params = _params(mesh, args, axis_names, check_vma)
    given = tuple(in_specs) if type(in_specs) is list else in_specs
    given = flatten_specs("in_specs", given, args)
    blocks = _blocks(call, given, params)

    def run(*xs):
        outs = call(*xs)
        specs = flatten_specs("out_specs", out_specs, call.out_tree)
        return _checked_results(call, specs, params, outs), specs

    body = written_body(call, blocks, params, run)
    return bind_body(body, call.leaves, given, params)


# shard_map as a function: it reads meshes and specifications around the primitive.


def shard_map(
    f: Callable[..., Any] | None = None,
    /,
    *,
    out_specs: Any,
    in_specs: Any = None,
    mesh: Any = None,
    axis_names: Set[Any] = frozenset(),
    check_vma: bool = True,
) -> Any:
    """Return a function that runs `f` once on each device of a mesh, on its blocks.

    Args:
      f: a function of trees of arrays, the blocks of one device. Without it, the
        result is a decorator.
      out_specs: how results are put together from the blocks that the devices return:
        a tree prefix of the result, of `PartitionSpec`.
      in_specs: how arguments are dealt out: a tree prefix of the tuple of arguments.
        What has None there goes to all devices: an array is whole, and anything else
        is handed to `f` as it is.
      mesh: a `Mesh`; by default that of the context.
      axis_names: the axes of the mesh that collectives in `f` may name; all of them
        by default. Along the others, the devices do the same.
      check_vma: whether types say along which axes values may vary, so that results
        which are to be the same are, and gradients of what is the same are summed.

    Raises:
      TypeError: if `f` is not callable, or the specs are none.
      ValueError: if there is no mesh, or specs do not fit the arrays or the mesh.

    Reference: ``jax.shard_map``.
    """
    how = {"out_specs": out_specs, "in_specs": in_specs, "mesh": mesh}
    how |= {"axis_names": axis_names, "check_vma": check_vma}
    if f is None:
        return lambda f: shard_map(f, **how)
    check_callable(f)

    @wraps(f)
    def wrapped(*args):
        moving, specs, run = _without_static(f, args, in_specs)
        return run_mapped(run, moving, **how | {"in_specs": specs})

    return wrapped


def _without_static(f, args, in_specs):
    """Take out of the arguments what is no array and has None as its specification.

    Returns:
      The other arguments, their specifications, and a function of them.
    """
    if in_specs is None or None not in tree_leaves(in_specs, _is_none):
        return args, in_specs, f
    specs = (*in_specs,) if isinstance(in_specs, list) else in_specs
    specs = flatten_axes("shard_map in_specs", specs, args)
    leaves, tree = tree_flatten(args)
    moves = [
        spec is not None or isinstance(x, Array | np.ndarray)
        for x, spec in zip(leaves, specs)
    ]

    @wraps(f)
    def run(*moving):
        rest = iter(moving)
        return f(*tree.unflatten(next(rest) if m else x for x, m in zip(leaves, moves)))

    pairs = [pair for pair, moved in zip(zip(leaves, specs), moves) if moved]
    return tuple([x for x, _ in pairs]), tuple([spec for _, spec in pairs]), run


def _is_none(x):
    return x is None


# pmap: vmap whose examples are computed by devices.

NAMELESS = "_internal_pmap_axis_name"

# What lets processes share a pmap: a function of its `FlatCall`, mapped axes and mesh
# that returns the mesh of all, and what becomes of the result.
multiprocess_map: Hook = Hook(lambda call, dims, mesh: (mesh, lambda result: result))
# What gives a function of many devices its fast path.
fast_call_wrapper: Hook = Hook(lambda function: function)


def pmap_spec(name, axis):
    """Return the spec of an array whose `axis` is dealt out; None: it is shared."""
    return PartitionSpec() if axis is None else PartitionSpec(*[None] * axis, name)


def _body(call, dims, out_axes, name):
    """Return the body of a pmap: the user's function of one example, and the axis."""

    def run(*blocks):
        pairs = zip(blocks, dims)
        xs = [x if dim is None else lax.squeeze(x, (dim,)) for x, dim in pairs]
        outs = call(*xs)
        places = flatten_axes("pmap out_axes", out_axes, call.out_tree)
        numbers = itertools.count()
        places = list(map(partial(result_axis, call), outs, places, numbers))
        pairs = zip(outs, places)
        outs = [
            x if dim is None else broadcast_batch_dim(x, dim, 1) for x, dim in pairs
        ]
        return outs, [pmap_spec(name, place) for place in places]

    return run


def _mapped(call, dims, mesh, static, out_axes):
    """Trace the body of a pmap, or find it, and run it on a mesh."""
    mesh, ours = multiprocess_map.value(call, dims, mesh)
    [name] = mesh.axis_names
    params = {"check_vma": False, "mesh": resolve_mesh(mesh)}
    params["newly_manual_axes"] = frozenset([name])
    specs = [pmap_spec(name, dim) for dim in dims]
    blocks = [shard_aval(aval, mesh, spec) for aval, spec in zip(call.avals, specs)]
    key = cache_key_of_value(static), *dims, spec_key(out_axes)
    run = _body(call, dims, out_axes, name)
    body = trace_body(call, blocks, params, key, run)
    if isinstance(current_trace(), JaxprTrace):
        return bind_in_jit(body, call, specs, params)
    return ours(bind_body(body, call.leaves, specs, params))


def _finished(mapped, static, donated):
    """Return a function of a pmap: quick where it can be, and with ``lower``."""
    plain = (static, donated) == ((), ())  # 0 is the first argument
    found = fast_call_wrapper.value(mapped) if plain else mapped
    found.lower = jit(mapped, static_argnums=static, donate_argnums=donated).lower
    return found


def pmap(
    fun: Callable[..., Any],
    axis_name: Any = None,
    *,
    in_axes: Any = 0,
    out_axes: Any = 0,
    static_broadcasted_argnums: int | Iterable[int] = (),
    devices: Sequence[Any] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Iterable[int] = (),
) -> Any:
    """Return a function that runs `fun` on many devices at once, one example on each.

    Args:
      fun: a function of trees of arrays.
      axis_name: by which collectives in `fun` refer to the axis of the replicas.
      in_axes: which axis of the arguments counts the examples; a tree prefix of the
        tuple of arguments, with None for what all replicas share. Keyword arguments
        are mapped over axis 0.
      out_axes: where results get that axis; None for the first replica's result.
      static_broadcasted_argnums: positions of arguments that are no arrays.
      devices: those to use; by default the first ones of the platform.
      backend: the name of a platform.
      axis_size: the number of examples, which the arguments tell as well.
      donate_argnums: positions of arguments that are not needed any more.

    The result's ``lower`` is that of ``jit``: it returns the program, to be looked at.

    Raises:
      IndivisibleError: if there are more examples than devices, or sizes differ.
      ValueError: if no argument is mapped, axes do not fit, `devices` is empty, or a
        static argument is not given by position.

    Reference: ``jax.pmap``.
    """
    check_callable(fun)
    check_axes_are_ints("in_axes", in_axes)
    check_axes_are_ints("out_axes", out_axes)
    numbers = static_broadcasted_argnums
    names = (NAMELESS if axis_name is None else axis_name,)
    if devices is not None and not len(devices):
        raise ValueError("pmap needs at least one device in devices, or None.")

    @wraps(fun)
    def mapped(*args, **kwargs):
        call, dims, static = prepare_pmap(fun, args, kwargs, numbers, in_axes)
        found = pmap_devices(call, dims, axis_size, devices, backend)
        result = _mapped(call, dims, Mesh(found, names), static, out_axes)
        return donate_arguments(args, donate_argnums, result)

    return _finished(mapped, numbers, donate_argnums)
