"""pmap: vmap whose examples are computed by devices.

Reference: ``jax.pmap``.
"""

# Made from chapters/36_replicas_ground.md by `make chapter`;
# edit the chapter, not this file.

import itertools
from collections.abc import Callable, Iterable, Sequence
from functools import partial, wraps
from typing import Any

from minijax import lax
from minijax.batching.axes import check_axes
from minijax.batching.rules import insert_axis
from minijax.core import current_trace
from minijax.forgetting.remembering import key_of_value
from minijax.jaxprs.latest import Latest
from minijax.jaxprs.staging import JaxprTrace
from minijax.jitting.api import jit
from minijax.mesh_maps.bodies import bind_body, bind_in_jit, body_of, given_mesh
from minijax.mesh_maps.map_rules import block_aval
from minijax.pytrees.call_checks import check_callable
from minijax.pytrees.operations import flatten_axes
from minijax.replicas.map_arguments import (
    devices_of_call,
    give_away,
    key_of,
    mapped_call,
    place_of_result,
)
from minijax.replicas.meshes import Mesh
from minijax.replicas.partition_specs import PartitionSpec

NAMELESS = "_internal_pmap_axis_name"

# What lets processes share a pmap: a function of its `FlatCall`, mapped axes and mesh
# that returns the mesh of all, and what becomes of the result.
shared_map: Latest = Latest(lambda call, dims, mesh: (mesh, lambda result: result))
quickly: Latest = Latest(lambda function: function)  # what makes functions quick


def spec_at(name, axis):
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
        places = list(map(partial(place_of_result, call), outs, places, numbers))
        pairs = zip(outs, places)
        outs = [x if dim is None else insert_axis(x, dim, 1) for x, dim in pairs]
        return outs, [spec_at(name, place) for place in places]

    return run


def _mapped(call, dims, mesh, static, out_axes):
    """Trace the body of a pmap, or find it, and run it on a mesh."""
    mesh, ours = shared_map.value(call, dims, mesh)
    [name] = mesh.axis_names
    params = {"check_vma": False, "mesh": given_mesh(mesh)}
    params["newly_manual_axes"] = frozenset([name])
    specs = [spec_at(name, dim) for dim in dims]
    blocks = [block_aval(aval, mesh, spec) for aval, spec in zip(call.avals, specs)]
    key = key_of_value(static), *dims, key_of(out_axes)
    run = _body(call, dims, out_axes, name)
    body = body_of(call, blocks, params, key, run)
    if isinstance(current_trace(), JaxprTrace):
        return bind_in_jit(body, call, specs, params)
    return ours(bind_body(body, call.leaves, specs, params))


def _finished(mapped, static, donated):
    """Return a function of a pmap: quick where it can be, and with ``lower``."""
    plain = (static, donated) == ((), ())  # 0 is the first argument
    found = quickly.value(mapped) if plain else mapped
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
    check_axes("in_axes", in_axes)
    check_axes("out_axes", out_axes)
    numbers = static_broadcasted_argnums
    names = (NAMELESS if axis_name is None else axis_name,)
    if devices is not None and not len(devices):
        raise ValueError("pmap needs at least one device in devices, or None.")

    @wraps(fun)
    def mapped(*args, **kwargs):
        call, dims, static = mapped_call(fun, args, kwargs, numbers, in_axes)
        found = devices_of_call(call, dims, axis_size, devices, backend)
        result = _mapped(call, dims, Mesh(found, names), static, out_axes)
        return give_away(args, donate_argnums, result)

    return _finished(mapped, numbers, donate_argnums)
