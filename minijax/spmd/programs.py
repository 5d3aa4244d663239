"""A backend for arrays in parts; sharding constraints, and resharding.

References: the SPMD executables of XLA, ``in_shardings``, ``out_shardings`` of
``jax.jit``, ``jax.lax.with_sharding_constraint``, ``jax.sharding.reshard``.
"""

# Made from chapters/36_replicas_rest.md by `make chapter`;
# edit the chapter, not this file.

from functools import partial
from operator import mod
from typing import Any

from minijax.arrays.array import as_array_impl, typeof
from minijax.arrays.devices import Sharding, default_placement, sharding_converters
from minijax.arrays.out_sharding import result_placers
from minijax.arrays.transfer import device_put_leaf, device_put_p
from minijax.batching.vmap import vmap_rules
from minijax.core import Array, Tracer, impl_rules
from minijax.forward_mode.jvp import jvp_rules, linear_jvp
from minijax.jaxprs.jaxpr import eval_jaxpr, make_jaxpr
from minijax.jaxprs.types import struct_of
from minijax.jitting.compilation import (
    backends,
    default_backends,
    device_constraint_rules,
)
from minijax.jitting.primitive import program_sharding_hook
from minijax.kernels.lowering import kernel_rules
from minijax.python_backend.codegen import python_rules
from minijax.pytrees.tree_operations import flatten_axes
from minijax.pytrees.tree_util import tree_flatten
from minijax.rematerialization.caching import KeyedCache, weakref_memoize
from minijax.rematerialization.jaxpr_transforms import has_effects
from minijax.reverse_mode.backward_pass import deftranspose
from minijax.sharding.manual_axes import sharding_of_type
from minijax.sharding.named_sharding import (
    AbstractMesh,
    PartitionSpec,
    get_mesh,
    operations_together,
    same_shards,
)
from minijax.sharding.named_sharding import NamedSharding as NamedSharding
from minijax.sharding.named_sharding import set_mesh as set_mesh
from minijax.sharding.shard_map import MeshProgram, mesh_program, native_entries
from minijax.sharding.visualization import inspect_sharding_p
from minijax.spmd.lockstep_executor import (
    LockstepExecutor,
    collect_notes,
    computation_mesh,
    current_notes,
    dim_shardings,
    is_lockstep_runnable,
    is_replica_runnable,
    on_first_device,
    on_other_meshes,
    partition_spec_of,
    run_partitioned,
)
from minijax.spmd.partitioner import (
    bind_sharding_constraint,
    constrain_sharded_value,
    global_shape,
    per_device_program,
    sharding_constraint_p,
    sharding_rules,
)

# A backend for arrays in parts: programs are written anew for the ways they are cut.


class PartitionPlan:
    """A program of one device, for inputs that are cut in one way.

    Args:
      closed, mesh, specs: see `per_device_program`.
      name: what the program is called.
    """

    def __init__(self, closed, mesh, specs, name):
        with collect_notes(mesh) as notes:
            local, outs = per_device_program(closed, mesh, specs)
        self.mesh, self.name, self.all_gathers = mesh, name, notes.lines
        self.in_specs, self.outs = (
            tuple(map(partition_spec_of, cuts)) for cuts in (specs, outs)
        )
        make = (
            mesh_program if is_replica_runnable(local.jaxpr, mesh) else LockstepExecutor
        )
        in_step = make is not LockstepExecutor or is_lockstep_runnable(local.jaxpr)
        if has_effects(local.jaxpr) or not in_step:
            make, local, self.all_gathers = partial(on_first_device, name), closed, []
        self.local, run = local, make(local, mesh, self.in_specs, self.outs)
        self.run = on_other_meshes(run, notes.asked) if any(notes.asked) else run

    @property
    def text(self):
        """How inputs and results are cut, what was gathered, the program of one."""
        head = f"{self.name} on {self.mesh}: {[*self.in_specs]} -> {[*self.outs]}"
        return "\n".join([head, *self.all_gathers, str(self.local)])


class PartitionedProgram:
    """Runs a program on all devices of a mesh, written anew for each way to cut inputs.

    Args:
      closed: a `ClosedJaxpr`, for whole arrays.
      name: what the program is called.
    """

    platforms, placement = ("mesh",), None

    def __init__(self, closed, name="program"):
        self.closed, self.name, self._plans = closed, name, KeyedCache()
        self._last: tuple = [], None

    @property
    def text(self):
        """The programs of one device that were written so far, or that of all."""
        plans = self._plans.values.values()
        return "\n\n".join(x.text for x in plans) or str(self.closed.jaxpr)

    def __call__(self, *args):
        arrays = list(map(as_array_impl, args))
        last, places = self._last, [self.placement, *[x.placement for x in arrays]]
        if places != last[0]:
            last = self._last = places, self._plan(arrays)
        return last[1].run(arrays)

    def entry_at(self, places):
        """Return the `EntryPoint` for arrays at placements that came last, or None."""
        (known, plan), default = self._last, default_placement()
        program = plan and plan.run
        came = {None: default, default: self.placement}  # it was brought here
        found = [self.placement, *[came.get(place, place) for place in places]]
        if known != found or type(program) is not MeshProgram:
            return None
        rows = zip(places, program.in_placements, self.closed.in_avals)
        alike = all(
            to.sharding.is_fully_replicated if place in came
            else same_shards(place, to, aval.ndim) for place, to, aval in rows
        )  # fmt: skip
        return native_entries.value(program) if alike else None

    def _plan(self, arrays):
        mesh = computation_mesh(
            [x.sharding for x in arrays], self.placement.sharding.mesh
        )
        specs = tuple([dim_shardings(x.sharding, mesh, x.ndim) for x in arrays])
        key = self.closed, mesh, specs, self.name
        return self._plans.get(key, lambda: PartitionPlan(*key))


backends["spmd"] = PartitionedProgram
default_backends["mesh"] = "spmd"
operations_together.value = run_partitioned


# Sharding constraints: their rules, and those at the ends of a jitted function.


def constrain_anywhere(primitive, shard, sharding, **params):
    """Cut a value as it is asked for; on another mesh, note what is asked."""
    if isinstance(sharding, NamedSharding) and sharding.mesh != current_notes().mesh:
        counts = sharding.divisions(len(shard.spec))
        fits = not any(map(mod, global_shape(shard), counts))
        return [shard._replace(requested=sharding) if fits else shard]
    return constrain_sharded_value(primitive, shard, sharding, **params)


sharding_rules.supersede(
    sharding_constraint_p, constrain_sharded_value, constrain_anywhere
)


def _put_shards(primitive, *shards, devices, **params):
    pairs = zip(shards, devices)
    return [
        constrain_anywhere(primitive, shard, wanted)[0]
        if isinstance(wanted, NamedSharding) else shard
        for shard, wanted in pairs
    ]  # fmt: skip


sharding_rules[device_put_p] = _put_shards


def _inspect_shard(primitive, shard, callback):
    callback(NamedSharding(current_notes().mesh, partition_spec_of(shard.spec)))
    return []


sharding_rules[inspect_sharding_p] = _inspect_shard


def _batched(axis, args, dims, sharding, **params):
    [x], [dim] = args, dims
    if isinstance(sharding, NamedSharding) and dim is not None:
        parts = list(sharding.spec)
        if dim < len(parts):
            parts.insert(dim, None)
        sharding = sharding.update(spec=sharding.spec.update(partitions=parts))
    return sharding_constraint_p.bind_all(x, sharding=sharding, **params), dims


impl_rules[sharding_constraint_p] = lambda x, sharding, **params: [
    device_put_leaf(x, sharding)
]
jvp_rules[sharding_constraint_p] = linear_jvp(sharding_constraint_p)
deftranspose(
    sharding_constraint_p,
    lambda ct, x, **params: sharding_constraint_p.bind(ct, **params),
)
vmap_rules[sharding_constraint_p] = _batched
python_rules[sharding_constraint_p] = lambda emitter, eqn, operands, results: (
    emitter.assign(results, operands)
)
kernel_rules[sharding_constraint_p] = lambda lowering, eqn, x: [x]
device_constraint_rules[sharding_constraint_p] = lambda params: [
    params["sharding"]._device
]
device_constraint_rules[device_put_p] = lambda params: [
    each._device for each in params["devices"] if isinstance(each, NamedSharding)
]


# with_sharding_constraint, and names of meshes at the top of the package.


def complete_sharding(name, spec):
    """Return the sharding of a specification, on the mesh of the context.

    Raises:
      RuntimeError: if there is none.
    """
    mesh = get_mesh()
    if mesh.empty:
        raise RuntimeError(
            f"{name} requires a non-empty mesh in context if you are passing "
            "`PartitionSpec`s. You can define a context mesh via "
            "`minijax.set_mesh(mesh)`, or provide a NamedSharding."
        )
    return NamedSharding(mesh, spec)


def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """Return `x`, cut as it is asked for; a compiled program computes it so.

    Args:
      x: a tree of arrays.
      shardings: a `Sharding`, a `PartitionSpec` for the mesh of the context, or a tree
        of them that is a prefix of `x`; None leaves it open.

    Raises:
      RuntimeError: if there is no mesh in the context and one is needed.
      TypeError: if a sharding is of an abstract mesh, and an array lies on none.
      ValueError: if a specification has more axes than an array, or an abstract mesh
        other axes than that of an array.

    Reference: ``jax.lax.with_sharding_constraint``.
    """
    name, (leaves, tree) = "with_sharding_constraint", tree_flatten(x)
    wanted = flatten_axes(name, shardings, x)
    return tree.unflatten(map(_constrain_leaf, leaves, wanted))


def _constrain_leaf(x, wanted):
    if wanted is None:
        return x
    if isinstance(wanted, PartitionSpec):
        wanted = complete_sharding("with_sharding_constraint", wanted)
    if not isinstance(wanted, Sharding):
        raise TypeError(f"A sharding or a PartitionSpec is expected, got {wanted!r}.")
    if isinstance(getattr(wanted, "mesh", None), AbstractMesh):
        wanted = _on_devices_of(x, wanted)
    return bind_sharding_constraint(x, wanted)


def _on_devices_of(x, wanted):
    """Return a sharding of an abstract mesh for the devices of an array.

    Raises:
      TypeError: if the array lies on no mesh.
      ValueError: if it is no array, or its mesh has other axes.
    """
    if isinstance(x, Tracer):
        return wanted
    told = f"{type(x).__name__} of shape {typeof(x).str_short()}"
    if not isinstance(x, Array):
        raise ValueError(
            "Target sharding contains a `jax.sharding.AbstractMesh` which requires the "
            f"input passed should be a `jax.Array`. Got {told}"
        )
    if not isinstance(x.sharding, NamedSharding):
        raise TypeError(
            "The sharding on the input must be a `NamedSharding` since the target "
            f"sharding has an `AbstractMesh` in it. Got {x.sharding} for {told}"
        )
    if x.sharding.mesh.shape_tuple != wanted.mesh.shape_tuple:
        raise ValueError(
            f"Mesh shape of the input {x.sharding.mesh.shape_tuple} does not match the "
            f"mesh shape of the target sharding {wanted.mesh.shape_tuple} for {told}"
        )
    return NamedSharding(x.sharding.mesh, wanted.spec)


@weakref_memoize
def _placed(closed, ins, outs):
    """Return a program with constraints at its ends, where shardings are named."""

    def program(*args):
        given = map(_at_end, args, ins)
        return list(map(_at_end, eval_jaxpr(closed.jaxpr, closed.consts, *given), outs))

    return make_jaxpr(program)(*map(struct_of, closed.in_avals))


def _at_end(x, sharding):
    if not isinstance(sharding, NamedSharding):
        return x
    sharding.shard_shape(typeof(x).shape)
    return bind_sharding_constraint(x, sharding)


def placed_program(closed, params):
    """Return a program that brings operands and results where its call says it."""
    ins = params.get("in_shardings", (None,) * len(closed.in_avals))
    outs = params.get("out_shardings", (None,) * len(closed.out_avals))
    named = any(isinstance(x, NamedSharding) for x in (*ins, *outs))
    return _placed(closed, ins, outs) if named else closed


sharding_converters[PartitionSpec] = complete_sharding


def _unsharded(aval):
    """Return the sharding of a type that no mesh cuts, by a mesh without axes."""
    spec = PartitionSpec(*[None] * aval.ndim)
    return NamedSharding(AbstractMesh((), ()), spec)


sharding_of_type.value = _unsharded


program_sharding_hook.value = placed_program


# Arrays cut in another way.


def reshard(xs: Any, out_shardings: Any) -> Any:
    """Return arrays cut in another way, in a program or outside of one.

    Args:
      xs: a tree of arrays.
      out_shardings: a `NamedSharding`, a `PartitionSpec` for the mesh of the context,
        or a tree of them that is a prefix of `xs`.

    Raises:
      ValueError: if there is no mesh, no sharding, or the parts would not be equal.
      TypeError: for a sharding without a mesh.

    Reference: ``jax.sharding.reshard``.
    """
    leaves, tree = tree_flatten(xs)
    wanted = flatten_axes("reshard out_shardings", out_shardings, xs)
    return tree.unflatten(map(_resharded, leaves, wanted))


def _resharded(x, wanted):
    shape, sharding = typeof(x).shape, _on_mesh(wanted)
    sharding.shard_shape(shape)  # which refuses unequal parts
    parts = [*sharding.spec, *[None] * (len(shape) - len(sharding.spec))]
    spec = sharding.spec.update(partitions=parts)
    return with_sharding_constraint(x, sharding.update(spec=spec))


def _on_mesh(wanted):
    if wanted is None:
        raise ValueError("reshard needs out_shardings with a mesh. Got sharding None.")
    if isinstance(wanted, PartitionSpec):
        if get_mesh().empty:
            raise ValueError(
                "Using PartitionSpec when you are not under a mesh context is not "
                "allowed. Please pass a NamedSharding instance or enter into a mesh "
                "context via `minijax.set_mesh`."
            )
        return NamedSharding(get_mesh(), wanted)
    if not isinstance(wanted, NamedSharding):
        raise TypeError(
            "`out_shardings` of reshard are a NamedSharding or a PartitionSpec. Got "
            f"{wanted!r}: device_put moves arrays to other places."
        )
    return wanted


def _place_result(name, x, wanted):
    return _resharded(x, wanted)


result_placers[PartitionSpec] = result_placers[NamedSharding] = _place_result
