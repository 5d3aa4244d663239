"""Replicas: threads that run one program, each for a device; varying values.

References: the in-process collectives of XLA's CPU client, ``check_vma`` of
``jax.shard_map``.
"""

# Made from chapters/36_replicas.md by `make chapter`;
# edit the chapter, not this file.

import threading
from functools import partial
from math import prod

import numpy as np

from minijax.arrays.array import ArrayImpl, asbuffer, shape_rules, typeof
from minijax.arrays.dtypes import config
from minijax.batching.collectives import (
    all_gather_p,
    all_to_all_p,
    axis_index_p,
    pmax_p,
    pmin_p,
    ppermute_p,
    psum_p,
    raise_unbound_axis,
    reduce_scatter_p,
)
from minijax.batching.vmap import higher_order_primitives
from minijax.control_flow.conditionals import cond_p
from minijax.core import impl_rules
from minijax.jaxprs.jaxpr import result_converter
from minijax.kernels.lowering import kernel_rules
from minijax.python_backend.codegen import python_rules
from minijax.python_backend.codegen_rules import COLLECTIVES
from minijax.python_backend.source import bind_impl
from minijax.reverse_mode.backward_pass import transpose_rules
from minijax.reverse_mode.transpose_rules import psum_transpose
from minijax.sharding.manual_axes import (
    ReplicaAborted,
    all_gather_blocks,
    all_reduce_blocks,
    all_to_all_blocks,
    checked_collective_axes,
    collective_group,
    collective_permute_blocks,
    current_replica,
    get_vma,
    insert_pvary,
    manual_axes,
    mismatch_message,
    missing_replicas_error,
    pvary_branches,
    pvary_like_inputs,
    pvary_p,
    reduce_scatter_blocks,
    replica_group,
    thread_state,
)


class Rendezvous:
    """Where some replicas exchange values: all wait until the last one is there.

    Args:
      run: the `ReplicaRun` that the replicas belong to.
      members: their ranks.
    """

    def __init__(self, run, members):
        self.run, self.members, self.calls = run, members, {}
        self.barrier = threading.Barrier(len(members), self._combine)

    def _combine(self):
        """Compute all results; the last replica to arrive does so, for all."""
        calls, self.calls = [self.calls[rank] for rank in self.members], {}
        labels, values, (combine, *_) = zip(*calls)
        try:
            if len(set(labels)) > 1:
                raise RuntimeError(mismatch_message(dict(zip(self.members, labels))))
            self.results = combine(list(values))
        except BaseException as error:
            self.run.note(error)
            raise

    def exchange(self, rank, label, value, combine):
        """Return this replica's result.

        Args:
          rank: of the replica.
          label: says what is exchanged; all replicas have to say the same.
          value: what this replica brings.
          combine: from the list of all values to the list of all results.

        Raises:
          TimeoutError: if a replica does not arrive.
          Released: if the run has failed.
        """
        self.calls[rank] = label, value, combine
        try:
            self.barrier.wait(config.minijax_collective_timeout)
        except threading.BrokenBarrierError:
            raise self.run.failure(self, label) from None
        return self.results[self.members.index(rank)]


class ReplicaRun:
    """One run of a program by replicas, one for each place of a mesh.

    Args:
      shape: dictionary from the names of the axes to their sizes.

    Attributes:
      ranks: of the replicas in this process.
      error: the first error of a replica, or None.
      comm: where replicas meet that are in machine code, or None.
    """

    def __init__(self, shape):
        self.shape, self.size, self.comm = shape, prod(shape.values()), None
        self.ranks = range(self.size)
        self.error, self.meetings, self.lock = None, {}, threading.Lock()

    def meeting(self, rank, names):
        """Return the `Rendezvous` of a replica with its row along some axes."""
        members = replica_group(self.shape, rank, names)
        with self.lock:
            if members not in self.meetings:
                self.meetings[members] = Rendezvous(self, members)
                if self.error is not None:
                    self.meetings[members].barrier.abort()
            return self.meetings[members]

    def note(self, error):
        """Keep the first error."""
        with self.lock:
            self.error = self.error or error

    def fail(self, error):
        """Note an error, and release all replicas that wait."""
        self.note(error)
        for meeting in list(self.meetings.values()):
            meeting.barrier.abort()
        if self.comm is not None:
            self.comm.fail(error)

    def failure(self, meeting, label):
        """Return what a replica raises whose meeting is off."""
        if self.error is not None:
            return ReplicaAborted()
        seconds = config.minijax_collective_timeout
        self.fail(
            missing_replicas_error(meeting.members, meeting.calls, label, seconds)
        )
        return self.error


def rendezvous_key(primitive, aval, names, perm=None):
    """Return what replicas have to agree in, as text."""
    where = " and ".join(map(repr, names))
    by = "" if perm is None else f" by {list(perm)}"
    return f"{primitive} of {aval.str_short()} over axis {where}{by}"


def _index(axis_name):
    replica = current_replica(axis_name[0])
    members = replica.run.meeting(replica.rank, axis_name).members
    [aval] = shape_rules[axis_index_p](axis_name=axis_name)
    index = np.asarray(members.index(replica.rank), np.int32)
    return [ArrayImpl(index, aval)]


impl_rules.supersede(axis_index_p, raise_unbound_axis, _index)

collective_kinds: dict = {}  # which collective each way to combine is for
NAMING = "axis_name", "axis_index_groups"

HOSTED = "Replicas wait for each other in Python, in a step of the host."


def write_collective(emitter, eqn, operands, results):
    """Write a call of the evaluation that notes the user's line, for messages."""
    avals = [tuple([x.aval for x in atoms]) for atoms in (eqn.invars, eqn.outvars)]
    evaluate, name = bind_impl(eqn.primitive, *avals), eqn.primitive.name

    def at_its_line(*buffers):
        thread_state.line = eqn.source
        return evaluate(*buffers, **eqn.params)

    function = emitter.constant(at_its_line, name, f"meets other replicas: {name}")
    emitter.line(f"{', '.join(results)} = {function}({', '.join(operands)})")


python_rules.update(dict.fromkeys(COLLECTIVES, write_collective))
kernel_rules.reasons.update(dict.fromkeys(COLLECTIVES, HOSTED))


def exchange_with_replicas(primitive, x, aval, combine, names, **params):
    """Exchange one array with the replicas along some axes, and return the result.

    Args:
      primitive, x: the collective, for messages, and the array.
      aval: of the result.
      combine: from the list of all buffers, and the parameters, to the results.
      names: who meets, as `replica_group` takes it.
    """
    replica, combine = current_replica(names[0]), partial(combine, **params)
    meeting = replica.run.meeting(replica.rank, names)
    label = rendezvous_key(primitive, typeof(x), names, params.get("perm"))
    buffer = meeting.exchange(replica.rank, label, asbuffer(x), combine)
    return ArrayImpl(np.asarray(buffer, aval.dtype), aval)


def exchanges(primitive, combine):
    """Give a collective its impl rule; `combine` makes the results of all replicas."""

    def rule(x, **params):
        [aval], names = (
            shape_rules[primitive](typeof(x), **params),
            collective_group(**params),
        )
        rest = {key: params[key] for key in params if key not in NAMING}
        return [exchange_with_replicas(primitive, x, aval, combine, names, **rest)]

    impl_rules.supersede(primitive, raise_unbound_axis, rule)
    collective_kinds[combine] = primitive


exchanges(psum_p, all_reduce_blocks(np.add))
exchanges(pmax_p, all_reduce_blocks(np.maximum))
exchanges(pmin_p, all_reduce_blocks(np.minimum))
exchanges(all_gather_p, all_gather_blocks)
exchanges(reduce_scatter_p, reduce_scatter_blocks)
exchanges(all_to_all_p, all_to_all_blocks)
exchanges(ppermute_p, collective_permute_blocks)


# Varying values, transposed: where a value for all devices has a summed cotangent.


def _unvary(cts, x, axes):
    more = tuple([name for name in axes if name not in x.aval.manual_axis_type.varying])
    return psum_p.bind_all(cts[0], axis_name=more) if more else [cts[0]]


def _unsum(cts, x, axis_name, **groups):
    """A sum that made a value the same on all devices: its cotangent varies again."""
    if x.aval.manual_axis_type.varying.issuperset(axis_name):
        return [insert_pvary(cts[0], axis_name)]
    return psum_p.bind_all(cts[0], axis_name=axis_name, **groups)


transpose_rules[pvary_p] = _unvary
transpose_rules.supersede(psum_p, psum_transpose, _unsum)


def match_vma(primitive, args, params):
    """Return operands that vary along the same axes, as equations want them."""
    if primitive is pvary_p:
        return args
    if primitive in COLLECTIVES:
        names = checked_collective_axes(primitive, args, **params)
        return [insert_pvary(x, names) for x in args]
    if primitive in higher_order_primitives:
        if primitive is cond_p and get_vma(args[0]):
            params["branches"] = pvary_branches(params["branches"], get_vma(args[0]))
        return pvary_like_inputs(args, params)
    together = set().union(*map(get_vma, args))
    return [insert_pvary(x, together) for x in args] if together else args


result_converter.value = lambda trace: (
    match_vma if any(a.checked for a in manual_axes(trace)) else None
)
