"""Values that vary over axes of a mesh, rows of a mesh, workers, the mesh in force.

Inside a checked `shard_map` each type says so. Where an operand varies less than
another, the equation `pvary` says that it varies, too; its transpose is a sum.

References: the thread pool of XLA's CPU client, ``check_vma`` of ``jax.shard_map``.
"""

# Made from chapters/36_replicas_ground.md by `make chapter`;
# edit the chapter, not this file.

import os
import threading
from contextvars import copy_context
from functools import cache, partial, reduce
from math import prod
from queue import SimpleQueue
from typing import NamedTuple

import numpy as np

from minijax._lazy import run_registrations
from minijax.arrays.array import ShapedArray, shape_rules, typeof
from minijax.arrays.devices import NO_MANUAL_AXES
from minijax.arrays.dtypes import config
from minijax.arrays.interchange import AbstractValue
from minijax.batching.collectives import (
    all_gather_p,
    all_to_all_p,
    axis_index_p,
    axis_index_shape_rule,
    pmax_p,
    pmin_p,
    psum_p,
    reduce_scatter_p,
    unbound_axis_error,
)
from minijax.batching.vmap import vmap_rules
from minijax.context_values import ContextValue, context_variable, current_context_value
from minijax.control_flow.while_loops import while_p, while_shape_rule
from minijax.core import Primitive, current_trace, impl_rules, set_current_trace
from minijax.forward_mode.jvp import jvp_rules, linear_jvp, tangent_canonicalizers
from minijax.jaxprs.jaxpr import AxisEnvTrace, jaxpr_as_fun
from minijax.jaxprs.pretty_printer import pp_eqn_default, pp_eqn_rules
from minijax.jaxprs.types import Hook, manual_axes_primitives, weak_type_converter
from minijax.kernels.lowering import kernel_rules
from minijax.lax.shapes import like_hooks
from minijax.python_backend.codegen import python_rules
from minijax.python_backend.source import write_evaluation
from minijax.rematerialization.caching import trace_context_switches, weakref_memoize
from minijax.rematerialization.jaxpr_transforms import trace_flat_fun

# The switch for the mesh that specifications without a mesh mean.


def _mesh_or_none(value):
    if value is not None and not hasattr(value, "axis_types"):
        raise ValueError(f"Expected a Mesh or None, got {value!r}.")
    return value


config.define("minijax_mesh", None, _mesh_or_none)
trace_context_switches.append("minijax_mesh")


# What returns the sharding of an abstract value; shardings are of meshes.
sharding_of_type: Hook = Hook(None)


def _sharding(aval):
    if sharding_of_type.value is None:
        run_registrations()
    return sharding_of_type.value(aval)


# A property of the class: abstract values are read more often than anything else.
AbstractValue.sharding = property(_sharding)


def mesh_context(mesh):
    """Return a context manager inside which a mesh is the one around."""
    return config.override("minijax_mesh", mesh)


# Rows of a mesh: who meets in a collective over some of its axes, and gets what.


def replica_coordinates(shape, rank):
    """Return the index of a replica along each axis; the last counts fastest."""
    found = {}
    for name, size in reversed(shape.items()):
        rank, found[name] = divmod(rank, size)
    return found


@cache
def _row(shape, rank, names):
    shape = dict(shape)
    mine, fixed = replica_coordinates(shape, rank), set(shape).difference(names)
    ranks = range(prod(shape.values()))
    row = [
        r
        for r in ranks
        if all(replica_coordinates(shape, r)[x] == mine[x] for x in fixed)
    ]
    return tuple(
        sorted(row, key=lambda r: [replica_coordinates(shape, r)[x] for x in names])
    )


class Groups(tuple):
    """Behind names of axes: which of those who differ along them meet each other."""


def collective_group(axis_name, axis_index_groups=None, **params):
    """Return who meets in a collective with these parameters, for `replica_group`."""
    return (*axis_name, Groups(axis_index_groups)) if axis_index_groups else axis_name


def replica_group(shape, rank, names):
    """Return the ranks of the replicas that differ from one along `names` alone.

    Args:
      shape: dictionary from the names of the axes to their sizes.
      rank: of a replica.
      names: a tuple of them, with `Groups` behind them if not all of these meet.

    Raises:
      NameError: if there is no axis of such a name.
    """
    names, groups = [x for x in names if type(x) is not Groups], names[-1]
    for name in names:
        if name not in shape:
            raise unbound_axis_error(name)
    row = _row(tuple(shape.items()), rank, tuple(names))
    if type(groups) is not Groups:
        return row
    mine = row.index(rank)
    return next(tuple([row[i] for i in group]) for group in groups if mine in group)


def all_reduce_blocks(function):
    """Return how a reduction combines: all replicas get the same array."""
    return lambda xs: [reduce(function, xs)] * len(xs)


def all_gather_blocks(xs, axis_size, all_gather_dimension, tiled):
    """Return all arrays as one, for each replica."""
    join = np.concatenate if tiled else np.stack
    return [join(xs, all_gather_dimension)] * len(xs)


def _parts(x, size, axis, tiled):
    """Return the parts of an array along an axis, one for each replica."""
    parts = np.split(x, size, axis)
    return parts if tiled else [part.squeeze(axis) for part in parts]


def reduce_scatter_blocks(xs, axis_size, scatter_dimension, tiled):
    """Return for each replica its part of the sum."""
    return _parts(reduce(np.add, xs), len(xs), scatter_dimension, tiled)


def all_to_all_blocks(xs, axis_size, split_axis, concat_axis, tiled):
    """Return for each replica the parts that all others have for it."""
    join = np.concatenate if tiled else np.stack
    sent = [_parts(x, len(xs), split_axis, tiled) for x in xs]
    return [join(parts, concat_axis) for parts in zip(*sent)]


def collective_permute_blocks(xs, perm):
    """Return for each replica the array of its source, or zeros."""
    source = {destination: source for source, destination in perm}
    zeros = np.zeros_like(xs[0])
    return [xs[source[i]] if i in source else zeros for i in range(len(xs))]


# Worker threads, and which replica of a program each of them is.


def _seconds(value):
    seconds = float(value)
    if not seconds > 0:
        raise ValueError(f"a number of seconds above 0, not {value!r}.")
    return seconds


config.define(
    "minijax_collective_timeout",
    os.environ.get("MINIJAX_COLLECTIVE_TIMEOUT", 300),
    _seconds,
)


class ReplicaAborted(Exception):
    """What a waiting replica gets when the run has failed elsewhere."""


def mismatch_message(labels):
    """Return what is said when labels differ: which replica wants what."""
    lines = [f"replica {rank}: {label}" for rank, label in labels.items()]
    return (
        "Replicas of one program have met in different collectives:\n  "
        + "\n  ".join(lines)
        + "\nA branch or a loop that differs between replicas holds one of them."
    )


def _line():
    line = getattr(thread_state, "line", None)
    return f" ({line})" if line else ""


def missing_replicas_error(members, arrived, label, seconds):
    """Return the error of a meeting at which some replicas have not arrived."""
    missing = [str(rank) for rank in members if rank not in arrived]
    which = "replica" if len(missing) == 1 else "replicas"
    return TimeoutError(
        f"{label} waited {seconds:g} s{_line()}; "
        f"{len(arrived)} of {len(members)} replicas arrived; "
        f"{which} {', '.join(missing)} missing. A replica that takes longer needs "
        "MINIJAX_COLLECTIVE_TIMEOUT; one that never comes has taken another branch, or "
        "a longer loop."
    )


class Replica:
    """What a thread is while it runs a program for a device.

    Args:
      run: the `Run`.
      rank: its number.
    """

    def __init__(self, run, rank):
        self.run, self.rank = run, rank


_replica = context_variable("replica", None)


class _Here(threading.local):
    """What a thread is: its `replica`, or None, and the `line` of its collective."""

    replica = property(lambda self: current_context_value(_replica).value)


thread_state = _Here()


def current_replica(name):
    """Return the `Replica` of this thread.

    Raises:
      NameError: if there is none, so that no axis is called `name`.
    """
    replica = thread_state.replica
    if replica is None:
        raise unbound_axis_error(name)
    return replica


def as_replica(replica):
    """Be a replica, or None, for a ``with`` block."""
    return ContextValue(_replica, replica)


class ReplicaThread:
    """A thread that does one task after the other, and stays."""

    def __init__(self):
        self.tasks = SimpleQueue()
        threading.Thread(target=self._work, daemon=True).start()

    def _work(self):
        while True:
            self.tasks.get()()


_idle: list = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.clear)


def acquire_replica_thread():
    """Return a `ReplicaThread` that has nothing to do."""
    try:
        return _idle.pop()
    except IndexError:
        return ReplicaThread()


def dismiss(worker):
    """Let a `ReplicaThread` wait for its next task."""
    _idle.append(worker)


def run_replicas(run, function):
    """Call a function once for each replica at the same time; the first one is here.

    Args:
      run: a `Run`.
      function: called with the rank.

    Returns:
      The list of what the calls returned; None for replicas of other processes.

    Raises:
      Whatever the first replica to fail has raised; the others are released.
    """
    results, ends = [None] * run.size, SimpleQueue()

    def task(rank):
        try:
            with as_replica(Replica(run, rank)):
                results[rank] = function(rank)
        except BaseException as error:
            run.fail(error)

    def errand(rank, worker, context):
        context.run(task, rank)
        dismiss(worker)
        ends.put(rank)

    mine, *others = run.ranks
    for rank in others:
        worker = acquire_replica_thread()
        worker.tasks.put(partial(errand, rank, worker, copy_context()))
    task(mine)
    for _ in others:
        ends.get()
    if run.error is not None:
        raise run.error
    return results


# Values that vary: along which axes of a mesh the devices have different values.

pvary_p: Primitive = Primitive("pvary")


class ManualAxis(NamedTuple):
    """An axis of a mesh, inside of a program that runs on each of its devices.

    Args:
      name: of the axis.
      size: the number of devices along it.
      checked: whether types say which values vary along it.
    """

    name: object
    size: int
    checked: bool


def manual_axes_trace(shape, names, checked):
    """Return a trace in which the axes of a mesh have names.

    Args:
      shape: dictionary from names to sizes.
      names: which of them are known inside.
      checked: whether types say which values vary.
    """
    trace = current_trace()
    for name, size in shape.items():
        if name in names:
            trace = AxisEnvTrace(trace, ManualAxis(name, size, checked))
    return trace


def manual_axes(trace):
    """Return the `ManualAxis` records along a chain of traces, the innermost last."""
    axes = []
    while trace is not None:
        axis = getattr(trace, "axis", None)
        axes += [axis] if type(axis) is ManualAxis else []
        trace = trace.parent
    return axes[::-1]


def checked_axis_names(trace):
    """Return the names of the axes for which types say what varies, in mesh order."""
    return [axis.name for axis in manual_axes(trace) if axis.checked]


def get_vma(x):
    """Return the set of axes along which a value varies."""
    return typeof(x).manual_axis_type.varying


def checked_collective_axes(
    primitive, args, axis_name, axis_index_groups=None, **params
):
    """Return the checked axes of a collective, or raise if an operand half varies."""
    names = {*axis_name}.intersection(checked_axis_names(current_trace()))
    if names and axis_index_groups and primitive is psum_p:
        raise NotImplementedError(
            "psum with axis_index_groups varies from group to group, which the types "
            "of a checked shard_map do not say: give the groups an axis of the mesh "
            "of their own, or pass check_vma=False."
        )
    for x in args:
        some = names & get_vma(x)
        if primitive is psum_p and some and some != names:
            raise ValueError(
                f"{primitive} over the axes {axis_name} was given {typeof(x)}, which "
                f"varies along {sorted(some)} and not along {sorted(names - some)}. "
                f"Use minijax.lax.pcast(x, {tuple(sorted(names - some))}, "
                "to='varying') first, or name fewer axes."
            )
    return names


def insert_pvary(x, names):
    """Return a value as one that varies along some more axes of a checked mesh."""
    more = set(names) - get_vma(x)
    if not more:
        return x
    ordered = [name for name in checked_axis_names(current_trace()) if name in more]
    return pvary_p.bind(x, axes=tuple(ordered)) if ordered else x


def _pvary_shape(x, axes):
    kind = x.manual_axis_type
    return [x.update(manual_axis_type=kind.update(varying=kind.varying | {*axes}))]


shape_rules[pvary_p] = _pvary_shape
manual_axes_primitives.add(pvary_p)
impl_rules[pvary_p] = lambda x, axes: [x]
jvp_rules[pvary_p] = linear_jvp(pvary_p)
vmap_rules[pvary_p] = lambda axis, args, dims, axes: (
    pvary_p.bind_all(*args, axes=axes),
    list(dims),
)
python_rules[pvary_p] = write_evaluation
kernel_rules[pvary_p] = lambda lowering, eqn, x: [x]


def pvary_like_inputs(args, params):
    """Let operands of programs vary as the programs' inputs do."""
    expected = [set(get_vma(x)) for x in args]
    for offset, variables in _inputs(params, len(args)):
        for names, var in zip(expected[offset:], variables):
            names |= var.aval.manual_axis_type.varying
    return [insert_pvary(x, names) for x, names in zip(args, expected)]


def _inputs(params, count):
    """Yield the inputs of programs in parameters, and where their operands begin."""
    before = params.get("cond_nconsts", 0)
    for key, value in params.items():
        for program in value if isinstance(value, tuple) else [value]:
            variables = getattr(program, "invars", [])
            if key == "cond_jaxpr":
                yield 0, variables[:before]
                yield before + params["body_nconsts"], variables[before:]
            else:
                yield count - len(variables), variables


def _index_shape(axis_name):
    checked = checked_axis_names(current_trace())
    axes = NO_MANUAL_AXES.update(varying={x for x in axis_name if x in checked})
    return [ShapedArray((), np.int32, manual_axis_type=axes)]


shape_rules.supersede(axis_index_p, axis_index_shape_rule, _index_shape)
manual_axes_primitives.add(axis_index_p)


def _write_fold(eqn, writing):
    """Write a reduction with JAX's parameters; a checked psum has another name."""
    names, [x] = eqn.params["axis_name"], eqn.invars
    checked = eqn.primitive is psum_p and x.aval.manual_axis_type.varying
    groups = {"axis_index_groups": eqn.params.get("axis_index_groups")}
    shown = {"axes": names} | ({} if checked else groups)
    document = pp_eqn_default(eqn, writing, shown)
    name = "psum_invariant" if checked else eqn.primitive.name
    return (*document[:2], name, *document[3:])


def _write_exchange(eqn, writing):
    """Write an exchange with JAX's parameters."""
    params, one = eqn.params, eqn.primitive in (all_to_all_p, axis_index_p)
    names = params["axis_name"][0] if one and len(params["axis_name"]) == 1 else None
    params = params if names is None else params | {"axis_name": names}
    if eqn.primitive is all_to_all_p:
        params = {key: params[key] for key in params if key != "axis_size"}
    if eqn.primitive is not axis_index_p:
        params = {"axis_index_groups": None} | params
    return pp_eqn_default(eqn, writing, dict(sorted(params.items())))


pp_eqn_rules.update(dict.fromkeys((psum_p, pmax_p, pmin_p), _write_fold))
for _moving in (all_gather_p, all_to_all_p, reduce_scatter_p, axis_index_p):
    pp_eqn_rules[_moving] = _write_exchange


def _decided(shape, deciding):
    """Return a shape rule: results also vary along the axes of what decides."""

    def rule(*avals, **params):
        outs, names = shape(*avals, **params), deciding(avals, params)
        if not names:
            return outs
        kinds = [x.manual_axis_type for x in outs]
        kinds = [kind.update(varying=kind.varying | names) for kind in kinds]
        return [x.update(manual_axis_type=kind) for x, kind in zip(outs, kinds)]

    return rule


def _of_condition(avals, params):
    [keep_going] = params["cond_jaxpr"].out_avals
    return keep_going.manual_axis_type.varying


shape_rules.supersede(
    while_p, while_shape_rule, _decided(while_shape_rule, _of_condition)
)


def pvary_branches(branches, names):
    """Return branches whose operands and results vary along the axes of the choice.

    Else the transpose of a branch would hold a sum over devices that take another one.
    """
    return tuple([_varied_branch(branch, names) for branch in branches])


@weakref_memoize
def _varied_branch(branch, names):
    kinds = [aval.manual_axis_type for aval in branch.in_avals]
    kinds = [kind.update(varying=kind.varying | names) for kind in kinds]
    pairs = zip(branch.in_avals, kinds)

    def program(*flat):
        return [insert_pvary(out, names) for out in jaxpr_as_fun(branch)(*flat)]

    return trace_flat_fun(
        program, [x.update(manual_axis_type=kind) for x, kind in pairs]
    )


def _fitted(x, like):
    """Return a value that varies along the axes of a type: more, or summed over some.

    A cotangent is one number for each device where its variable is one for all: then
    the variable's cotangent is their sum.
    """
    kind, mine = (
        getattr(getattr(y, "aval", y), "manual_axis_type", NO_MANUAL_AXES)
        for y in (like, x)
    )
    if mine is kind:
        return x
    if extra := mine.varying - kind.varying:
        order = [n for n in checked_axis_names(current_trace()) if n in extra]
        x = psum_p.bind(x, axis_name=tuple(order)) if order else x
    return insert_pvary(x, kind.varying)


weak_type_converter.value = _fitted

like_hooks.append(lambda x, aval: insert_pvary(x, aval.manual_axis_type.varying))


def _vary_as_primal(trace, primal, tangent):
    """Return a tangent that varies as its primal: the transpose sums where it begins.

    Of `u + v`, where only `v` moves and only `u` varies, the tangent is that of `v`.
    """
    kind = getattr(primal, "aval", primal)
    names = getattr(kind, "manual_axis_type", NO_MANUAL_AXES).varying
    if not names or names <= get_vma(tangent):
        return tangent
    with set_current_trace(trace.parent):
        return insert_pvary(tangent, names)


tangent_canonicalizers.append(_vary_as_primal)
