# Made from chapters/36_replicas.md by `make chapter`;
# edit the chapter, not this file.
"""shard_map as a function: meshes, specs and checks around the primitive.

Reference: ``jax.shard_map``.
"""

from collections.abc import Callable, Set
from functools import wraps
from typing import Any, NamedTuple

from minijax.arrays.avals import typeof
from minijax.arrays.sharding_types import NO_MANUAL_AXES
from minijax.core import Tracer, current_trace, set_current_trace
from minijax.forgetting.remembering import Once, cache_by_object, once_of, trace_context
from minijax.jaxprs.jaxpr import ClosedJaxpr
from minijax.jaxprs.origins import Origin
from minijax.jaxprs.staging import trace_to_jaxpr
from minijax.jaxprs.staging_api import abstractify
from minijax.pytrees.api_util import FlatCall
from minijax.pytrees.call_checks import check_callable
from minijax.pytrees.treedefs import PyTreeDef
from minijax.replicas.map_arguments import (
    check_divisible,
    check_spec,
    flat_specs,
    key_of,
    refuse_divergence,
)
from minijax.replicas.meshes import AbstractMesh, Mesh, get_mesh
from minijax.replicas.partition_specs import PartitionSpec, names_in
from minijax.replicas.sharded_maps import block_aval, body_trace, quickly, shard_map_p
from minijax.replicas.varying import mesh_axes, varying


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
    with once.turn(full) as body:
        if body is None:
            body = _written(call, avals, params, run)
            once.offer(full, body, not any(isinstance(x, Tracer) for x in body.consts))
    return body


def _written(call, avals, params, run):
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
    return outs


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


def _mesh_of(mesh):
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
    mesh = _mesh_of(mesh)
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

    body = body_of(call, blocks, params, (tuple(given), key_of(out_specs)), run)
    return bind_body(body, call.leaves, given, params)


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
        return run_mapped(f, args, **how)

    return quickly.value(wrapped)
