"""Programs of one device, run on all devices of a mesh in step.

Reference: the SPMD executables of XLA.
"""

# Made from chapters/36_replicas_ground.md by `make chapter`;
# edit the chapter, not this file.

import math

import numpy as np

from minijax.arrays.array import ArrayImpl, as_array_impl
from minijax.arrays.devices import host_device
from minijax.arrays.transfer import copy_to_placement, device_put_leaf
from minijax.batching.collectives import (
    all_gather_p,
    axis_index_p,
    pmax_p,
    pmin_p,
    psum_p,
)
from minijax.context_values import (
    DerivedContextValue,
    context_variable,
    current_context_value,
)
from minijax.jaxprs.jaxpr import ClosedJaxpr, Jaxpr, Literal, make_jaxpr
from minijax.jaxprs.pretty_printer import jaxprs_in_params
from minijax.jaxprs.types import Hook, struct_of
from minijax.jitting.compilation import _at, compile_cached
from minijax.python_backend.codegen_rules import COLLECTIVES
from minijax.rematerialization.caching import KeyedCache, cache_key_of_params
from minijax.sharding.named_sharding import (
    NamedSharding,
    PartitionSpec,
    entry_axes,
    shard_arrays,
    strip_trailing_none,
)


def groups_of(mesh, names):
    """Return the groups along some axes of a mesh: lists of places, in their order."""
    places = np.arange(mesh.size).reshape(mesh.axis_sizes)
    axes = [mesh.axis_names.index(name) for name in names]
    last = np.moveaxis(places, axes, range(-len(names), 0))
    return last.reshape(-1, math.prod(mesh.shape[name] for name in names)).tolist()


def _fold(combine):
    def folded(numbers, **params):
        total = numbers[0]
        for more in numbers[1:]:
            total = combine(total, more)
        return [total] * len(numbers)

    return folded


def _gather(numbers, all_gather_dimension, **params):
    return [np.concatenate(numbers, all_gather_dimension)] * len(numbers)


# What a group of devices does together: from the numbers of each to those of each.
exchanges = {
    psum_p: _fold(np.add), pmax_p: _fold(np.maximum), pmin_p: _fold(np.minimum),
    all_gather_p: _gather,
}  # fmt: skip


def exchange(eqn, mesh, values):
    """Let the devices talk: return the results of a collective, one for each device.

    Args:
      eqn: its equation.
      mesh: a `Mesh`.
      values: the operand on each device; of ``axis_index``, None.
    """
    results: list = [None] * mesh.size
    for group in groups_of(mesh, eqn.params["axis_name"]):
        numbers = list(map(np.int32, range(len(group))))
        if eqn.primitive is not axis_index_p:
            numbers = _exchanged(eqn, mesh, group, [values[place] for place in group])
        for place, x in zip(group, numbers):
            device = mesh._flat[place]
            buffer = device.put(x, x.dtype) if device.is_local else None
            results[place] = ArrayImpl(buffer, eqn.outvars[0].aval, device.committed)
    return results


# What does a collective among devices of several processes: a function of its equation,
# a mesh, the places of a group and their operands that returns the results' numbers.
cross_process_collective: Hook = Hook(None)
# Is told, with the mesh, what has to be the same in all processes.
agreement: Hook = Hook(lambda mesh, program: None)


def _exchanged(eqn, mesh, group, values):
    """Return the numbers of a group's results, None for those of other processes."""
    here = [place for place in group if mesh._flat[place].is_local]
    if len(here) == len(group):
        found = [value._numbers() for value in values]
        return exchanges[eqn.primitive](found, **eqn.params)
    if not here:
        return [None] * len(group)
    return cross_process_collective.value(eqn, mesh, group, values)


def stretches(jaxpr):
    """Return the parts of a program in order: programs without talk, and collectives.

    Returns:
      A list of `ClosedJaxpr`, which have no constants, and `JaxprEqn`.
    """
    parts: list = [[]]
    for eqn in jaxpr.eqns:
        talks = eqn.primitive is axis_index_p or eqn.primitive in exchanges
        if talks:
            parts += [eqn, []]
        else:
            parts[-1].append(eqn)
    needed, found = _variables(jaxpr.outvars), []
    for part in reversed([part for part in parts if part]):
        if isinstance(part, list):
            part = _program(part, needed)
        needed |= _variables(part.invars)
        found.append(part)
    return found[::-1]


def _variables(atoms):
    return {x: None for x in atoms if not isinstance(x, Literal)}


def _program(eqns, needed):
    made = _variables([x for eqn in eqns for x in eqn.outvars])
    used = _variables([x for eqn in eqns for x in eqn.invars])
    ins = [x for x in used if x not in made]
    return ClosedJaxpr(Jaxpr([], ins, [x for x in made if x in needed], eqns), [])


def run_in_step(parts, mesh, known, name="program"):
    """Run a program on all devices: each computes up to the next collective.

    Args:
      parts: what `stretches` returns.
      mesh: a `Mesh`.
      known: from variables to lists with the array of each device; grows.
      name: what the program is called.
    """
    for part in parts:
        operands = [per_device_values(x, known, mesh) for x in part.invars]
        if isinstance(part, ClosedJaxpr):
            rows = zip(*operands) if operands else [()] * mesh.size
            results = [_run(part, *pair, name) for pair in zip(mesh._flat, rows)]
            known.update(zip(part.jaxpr.outvars, map(list, zip(*results))))
        else:
            known[part.outvars[0]] = exchange(part, mesh, *operands or [None])


def per_device_values(x, known, mesh):
    """Return what each device has for a variable or literal, a list."""
    if isinstance(x, Literal):
        whole = ArrayImpl(mesh._flat[0].put(x.val, x.aval.dtype), x.aval)
        return [copy_to_placement(whole, device.committed) for device in mesh._flat]
    return known[x]


def _run(closed, device, operands, name):
    """Run a program on a device; one machine code serves all devices of the CPU."""
    home = device.committed
    if not device.is_local:
        return [ArrayImpl(None, aval, home) for aval in closed.out_avals]
    if device.platform == "cpu":
        made = compile_cached(closed, name=name, placement=host_device().committed)
        return _at(made, home)(*operands)
    return compile_cached(closed, name=name, placement=home)(*operands)


def assemble(aval, sharding, parts):
    """Return the array of which parts lie on the devices of a sharding.

    Args:
      aval: the `ShapedArray` of the whole.
      sharding: a `NamedSharding`.
      parts: an array on each device, in the order of the mesh.
    """
    return ArrayImpl(tuple([part._buffer for part in parts]), aval, sharding.placement)


class LockstepExecutor:
    """A program of one device, which all devices of a mesh run in step.

    Args:
      local: a `ClosedJaxpr`.
      mesh: a `Mesh`.
      in_specs, out_specs: how inputs and results are cut, a `PartitionSpec` for each.
    """

    def __init__(self, local, mesh, in_specs, out_specs):
        self.local, self.mesh, self.parts = local, mesh, stretches(local.jaxpr)
        self.in_specs = [NamedSharding(mesh, spec) for spec in in_specs]
        self.outs = [NamedSharding(mesh, spec) for spec in out_specs]
        homes, consts = mesh._flat, map(as_array_impl, local.consts)
        self.consts = [
            [copy_to_placement(x, home.committed) for home in homes] for x in consts
        ]

    @property
    def text(self):
        """How inputs and results are cut, and the program."""
        return f"{[x.spec for x in self.in_specs + self.outs]}\n{self.local}"

    def __call__(self, arrays):
        """Return the results for arrays, which are cut anew where they have to be."""
        agreement.value(self.mesh, self)
        jaxpr = self.local.jaxpr
        rows = [*self.consts, *map(shard_arrays, arrays, self.in_specs)]
        known = dict(zip([*jaxpr.constvars, *jaxpr.invars], rows))
        run_in_step(self.parts, self.mesh, known)
        outs = [per_device_values(x, known, self.mesh) for x in jaxpr.outvars]
        avals = [self._whole(*pair) for pair in zip(jaxpr.out_avals, self.outs)]
        return list(map(assemble, avals, self.outs, outs))

    def _whole(self, aval, sharding):
        counts = sharding.divisions(aval.ndim)
        return aval.update(shape=[size * n for size, n in zip(aval.shape, counts)])


def on_other_meshes(run, shardings):
    """Return a function that runs a program and brings results to other meshes.

    Args:
      run: from a list of arrays to the list of results.
      shardings: for each result the `NamedSharding` that is asked for, or None.
    """

    def brought(arrays):
        pairs = zip(run(arrays), shardings)
        return [y if to is None else device_put_leaf(y, to) for y, to in pairs]

    return brought


def is_replica_runnable(jaxpr, mesh):
    """Return whether replicas can run a program, each for a device of a mesh.

    They are threads, which serve devices of the CPU, and cannot start replicas
    themselves.
    """
    starts = any(eqn.primitive.name == "shard_map" for eqn in _all_eqns(jaxpr))
    return mesh._flat[0].platform == "cpu" and not starts


def is_lockstep_runnable(jaxpr):
    """Return whether devices can run a program in step.

    They do no collective inside of a loop or branch, and `exchanges` knows each one. A
    shard_map in it has collectives of its own.
    """
    inside = [
        each
        for eqn in jaxpr.eqns
        if eqn.primitive.name != "shard_map"
        for inner in jaxprs_in_params(eqn.params)
        for each in _all_eqns(inner)
    ]
    talk = [eqn for eqn in jaxpr.eqns if eqn.primitive in COLLECTIVES]
    nested = any(eqn.primitive in COLLECTIVES for eqn in inside)
    return not nested and all(map(_is_exchanged, talk))


def _is_exchanged(eqn):
    """Return whether devices in step do this collective."""
    parts, tiled = eqn.params.get("axis_index_groups"), eqn.params.get("tiled", True)
    known = eqn.primitive in exchanges or eqn.primitive is axis_index_p
    return known and not parts and tiled


def _all_eqns(jaxpr):
    """Yield the equations of a program, and of those inside it."""
    for eqn in jaxpr.eqns:
        yield eqn
        for inner in jaxprs_in_params(eqn.params):
            yield from _all_eqns(inner)


def computation_mesh(shardings, default):
    """Return the mesh on which to compute: the first along which something is cut."""
    named = [x for x in shardings if isinstance(x, NamedSharding)]
    return next((x.mesh for x in named if not x.is_fully_replicated), default)


def dim_shardings(sharding, mesh, ndim):
    """Return for each axis the mesh axes along which an array is cut; of another mesh,
    none: it is gathered."""
    ours = isinstance(sharding, NamedSharding) and sharding.mesh == mesh
    cuts = list(map(entry_axes, sharding.spec)) if ours else []
    return (*cuts, *[()] * (ndim - len(cuts)))


def partition_spec_of(cuts):
    """Return the `PartitionSpec` of an array that is cut along these mesh axes."""
    return strip_trailing_none(PartitionSpec(*cuts))


def on_first_device(name, closed, mesh, in_specs, out_specs):
    """Return a function that runs a program on the first device of a mesh.

    Args:
      name: what the program is called.
      closed: a `ClosedJaxpr`, for whole arrays.
      mesh: a `Mesh`.
      in_specs: not needed, since operands are brought to the device as they come.
      out_specs: how results are cut then, a `PartitionSpec` for each.
    """
    home = NamedSharding(mesh, PartitionSpec())._device.home.committed
    places = [NamedSharding(mesh, spec).placement for spec in out_specs]

    def run(arrays):
        executable = compile_cached(closed, name=name, placement=home)
        outs = executable(*[copy_to_placement(x, home) for x in arrays])
        return list(map(copy_to_placement, outs, places))

    return run


_operations = KeyedCache()


def run_partitioned(primitive, args, params, avals, placement):
    """Compute one operation as a program of its own, as the impl rule of any."""
    arrays = list(map(as_array_impl, args))
    given = [struct_of(x.aval) for x in arrays]

    def write():
        return make_jaxpr(lambda *xs: primitive.bind_all(*xs, **params))(*given)

    try:
        kinds = tuple([x.aval for x in arrays])
        key = primitive, kinds, cache_key_of_params(params)
        closed = _operations.get(key, write)
    except TypeError:  # parameters without a hash
        closed = write()
    return compile_cached(closed, "spmd", str(primitive), placement=placement)(*arrays)


# What is noted while the program of one device is written: gatherings, and why.


class PartitionerNotes:
    """Notes on a program that is being written.

    Attributes:
      mesh: its `Mesh`.
      eqn: the equation that is being looked at.
      lines: one for each gathering.
      asked: for each result the sharding on another mesh that it is to have, or None.
    """

    def __init__(self, mesh):
        self.mesh, self.eqn, self.lines, self.asked = mesh, None, [], []


_notes = context_variable("notes", None)


def current_notes():
    """Return the `PartitionerNotes` of the program that this thread writes, or None."""
    return current_context_value(_notes).value


def collect_notes(mesh):
    """Keep notes, for a ``with`` block; inside of another one, those of that one."""
    return DerivedContextValue(_notes, lambda before: before or PartitionerNotes(mesh))


def set_current_eqn(eqn):
    """Note which equation is being looked at."""
    if (notes := current_notes()) is not None:
        notes.eqn = eqn


def note_all_gather(have, want):
    """Note that a value is cut in another way, if that takes a gathering.

    Args:
      have, want: for each axis the mesh axes that cut it.
    """
    kept = [new[: len(old)] == old for old, new in zip(have, want)]
    if (notes := current_notes()) is not None and not all(kept):
        what = notes.eqn.primitive if notes.eqn else "a result"
        where = f" ({notes.eqn.source})" if notes.eqn and notes.eqn.source else ""
        shown = [f"({', '.join(map('|'.join, spec))})" for spec in (have, want)]
        notes.lines.append(f"gathered for {what}{where}: {' -> '.join(shown)}")
