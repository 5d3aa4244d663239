"""Bodies of shard_map and pmap: traced, checked and bound; those of pmap are kept.

Reference: ``jax.shard_map``.
"""

# Made from chapters/36_replicas_ground.md by `make chapter`;
# edit the chapter, not this file.

from typing import NamedTuple

from minijax.arrays.avals import typeof
from minijax.arrays.sharding_types import NO_MANUAL_AXES
from minijax.core import Tracer, current_trace, set_current_trace
from minijax.forgetting.remembering import Once, cache_by_object, once_of, trace_context
from minijax.jaxprs.jaxpr import ClosedJaxpr
from minijax.jaxprs.origins import Origin
from minijax.jaxprs.staging import trace_to_jaxpr
from minijax.jaxprs.staging_api import abstractify
from minijax.jitting.primitive import jit_p
from minijax.mesh_maps.manual_axes import mesh_axes, vary, varying
from minijax.mesh_maps.map_rules import block_aval, body_trace, shard_map_p
from minijax.pytrees.api_util import FlatCall
from minijax.pytrees.treedefs import PyTreeDef, tree_flatten
from minijax.replicas.map_arguments import (
    check_divisible,
    check_spec,
    flat_specs,
    refuse_divergence,
)
from minijax.replicas.meshes import AbstractMesh, Mesh, get_mesh
from minijax.replicas.partition_specs import PartitionSpec, names_in


class Body(NamedTuple):
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


_bodies = cache_by_object()


def body_of(call, avals, params, key, run):
    """Return the `Body` of a call; it is made once for each kind of arguments.

    Args:
      call: a `FlatCall`.
      avals: the types of the blocks that the leaves of the arguments become.
      params: `mesh`, `check_vma` and `newly_manual_axes`.
      key: what else the body depends on.
      run: from the blocks to the list of results, and the list of their specs.
    """
    try:
        once = once_of(_bodies, call.fun)
    except TypeError:  # it has no hash, or no weak references
        once = Once()
    full = call.in_tree, tuple(avals), *params.values(), key, *trace_context()
    if (body := once.values.get(full)) is not None:
        return body
    with once.turn(full):
        if (body := once.values.get(full)) is None:
            body = written_body(call, avals, params, run)
            once.offer(full, body, not any(isinstance(x, Tracer) for x in body.consts))
    return body


def written_body(call, avals, params, run):
    """Trace the body of a call; see `body_of`."""
    specs, origin = [], Origin(call.name, call.fun_name, call.names)

    def flat(*blocks):
        outs, found = run(*blocks)
        specs.extend(found)
        return outs

    with set_current_trace(body_trace(params)):
        jaxpr, consts = trace_to_jaxpr(flat, avals, origin)
    jaxpr = jaxpr.replace(constvars=[], invars=jaxpr.constvars + jaxpr.invars)
    refuse_divergence(jaxpr)
    return Body(ClosedJaxpr(jaxpr, []), consts, call.out_tree, tuple(specs))


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
    names = names_in(spec) if params["check_vma"] else ()
    return NO_MANUAL_AXES.update(varying=names)


def _blocks(call, specs, params):
    """Return the types of the blocks of the arguments."""
    mesh = params["mesh"]
    for i, (aval, spec) in enumerate(zip(call.avals, specs)):
        check_spec(f"{call.name_of(i)} of shard_map", "in_specs", aval, spec, params)
        check_divisible(call.name_of(i), aval, spec, mesh)
    return [
        block_aval(aval, mesh, spec).update(
            manual_axis_type=_varies_along(spec, params)
        )
        for aval, spec in zip(call.avals, specs)
    ]


def _checked_results(call, specs, params, outs):
    """Return the results of a body that may be put together as specs say."""
    for i, (out, spec) in enumerate(zip(outs, specs)):
        what = f"result {i} of {call.fun_name}"
        check_spec(what, "out_specs", typeof(out), spec, params)
        extra = varying(out).difference(names_in(spec))
        if extra:
            raise ValueError(
                f"shard_map out_specs {spec} says that {what} is the same along "
                f"{sorted(extra)}, but it may vary there: it is {typeof(out)}. Sum it "
                "(minijax.lax.psum), name the axes in the spec, or, if you know that "
                "the values are the same, pass check_vma=False."
            )
    if not params["check_vma"]:
        return outs
    return [vary(out, names_in(spec)) for out, spec in zip(outs, specs)]


def _concrete(mesh):
    """Return a mesh that has devices, the one given or that of the context."""
    if not isinstance(mesh, Mesh | AbstractMesh | None):
        raise TypeError(
            f"shard_map requires a minijax.sharding.Mesh, but got {mesh!r} of type "
            f"{type(mesh)}."
        )
    if isinstance(mesh, Mesh):
        return mesh
    context = get_mesh()
    if context.empty or mesh not in (None, context.abstract_mesh):
        raise ValueError(
            "The context mesh cannot be empty. Pass `mesh` to shard_map, or use "
            "`minijax.set_mesh(mesh)` to enter into a mesh context; it has the devices."
        )
    return context


def given_mesh(mesh):
    """Return the mesh of a call: the one given, or that of the context."""
    mesh = _concrete(mesh)
    if any(axis.name in mesh.shape for axis in mesh_axes(current_trace())):
        raise ValueError(
            f"The context mesh should match the mesh passed to shard_map {mesh}: this "
            "call is inside a program on each device of a mesh whose axes have the "
            "same names. Use one shard_map or pmap over all axes."
        )
    return mesh


def _params(mesh, axis_names, check_vma):
    """Return the parameters of the primitive that do not depend on the arguments."""
    mesh = given_mesh(mesh)
    names = frozenset(axis_names or mesh.axis_names)
    if unknown := names.difference(mesh.axis_names):
        raise ValueError(f"shard_map axis_names {sorted(unknown)} are none of {mesh}")
    return {"mesh": mesh, "check_vma": check_vma, "newly_manual_axes": names}


def run_mapped(f, args, out_specs, in_specs, mesh, axis_names, check_vma):
    """Call a function by `shard_map`, with these options."""
    call = FlatCall("shard_map", f, args, {}, typeof=abstractify)
    params = _params(mesh, axis_names, check_vma)
    given = tuple(in_specs) if type(in_specs) is list else in_specs
    given = flat_specs("in_specs", given, args)
    blocks = _blocks(call, given, params)

    def run(*xs):
        outs = call(*xs)
        specs = flat_specs("out_specs", out_specs, call.out_tree)
        return _checked_results(call, specs, params, outs), specs

    body = written_body(call, blocks, params, run)
    return bind_body(body, call.leaves, given, params)
