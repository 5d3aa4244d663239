"""Collectives among processes by MPI: joining, agreeing, crossing, and their cost.

References: the MPI standard, https://www.mpi-forum.org; ``mpi4py``,
``jax.distributed``, R. Hockney, "The communication challenge for MPP" (Parallel
Computing, 1994).
"""

# Made from chapters/37_machines.md by `make chapter`;
# edit the chapter, not this file.

import atexit
import os
import re
from collections.abc import Callable
from functools import partial, reduce
from time import monotonic, sleep
from typing import Any, NamedTuple

import numpy as np

from minijax import lax
from minijax.arrays.devices import Device, devices, platforms
from minijax.arrays.dtypes import config
from minijax.batching.collectives import (
    all_gather_p,
    all_to_all_p,
    pmax_p,
    pmin_p,
    ppermute_p,
    psum_p,
    reduce_scatter_p,
)
from minijax.distributed.launchers import (
    Watchdog,
    WatchdogMessages,
    abort_on_error,
    detect_launcher,
    load_mpi,
)
from minijax.jaxprs.pretty_printer import jaxprs_in_params
from minijax.jaxprs.types import Hook
from minijax.kernels.ir import sha256
from minijax.rematerialization.caching import cache_for_object, weakref_cache
from minijax.sharding.manual_axes import replica_group
from minijax.sharding.named_sharding import gather_global
from minijax.sharding.replicas import ReplicaRun, collective_kinds
from minijax.sharding.shard_map import replica_run_factory
from minijax.spmd.lockstep import agreement, cross_process_collective

# Collectives among processes: five exchanges, by MPI.


class Communicator(NamedTuple):
    """What exchanges arrays among some processes.

    Attributes:
      comm: a communicator with the methods of mpi4py.
      operations: from ufuncs of NumPy to operations of MPI that do the same.
    """

    comm: Any
    operations: dict


def mpi_buffer(x):
    """Return the memory of a contiguous array as bytes: MPI need not know its dtype."""
    return x.reshape(-1).view(np.uint8)


def allgather(engine, x):
    """Return the arrays `x` of all ranks, with an axis in front that counts them."""
    y = np.empty((engine.comm.size, *x.shape), x.dtype)
    engine.comm.Allgather(mpi_buffer(x), mpi_buffer(y))
    return y


def alltoall(engine, x):
    """Send ``x[i]`` to rank `i`; return what all ranks have sent here, in order."""
    y = np.empty_like(x)
    engine.comm.Alltoall(mpi_buffer(x), mpi_buffer(y))
    return y


def allreduce(engine, x, fold):
    """Return the fold of the arrays `x` of all ranks, on all of them."""
    operation = mpi_op(engine, fold, x.dtype)
    if operation is None:
        return np.asarray(reduce(fold, allgather(engine, x)), x.dtype)
    y = np.empty_like(x)
    engine.comm.Allreduce(x, y, operation)
    return y


def mpi_op(engine, fold, dtype):
    """Return MPI's operation that folds arrays of a dtype as NumPy does, or None."""
    known = "bBhHiIlLqQ" + ("fdFD" if fold is np.add else "")
    return engine.operations.get(fold) if dtype.char in known else None


def reduce_scatter(engine, x):
    """Return the sum over all ranks of ``x[rank]``."""
    operation = mpi_op(engine, np.add, x.dtype)
    if operation is None:
        return np.asarray(reduce(np.add, alltoall(engine, x)), x.dtype)
    y = np.empty(x.shape[1:], x.dtype)
    engine.comm.Reduce_scatter_block(x, y, operation)
    return y


def permute_ranks(engine, x, perm):
    """Return the array of the rank that `perm` sends here; without one, zeros."""
    y, comm = np.zeros_like(x), engine.comm
    given = [comm.Irecv(mpi_buffer(y), i) for i, j in perm if j == comm.rank]
    given += [comm.Isend(mpi_buffer(x), j) for i, j in perm if i == comm.rank]
    for request in given:
        request.Wait()
    return y


def _parts(x, engine, axis, tiled):
    """Return the parts of an array along an axis, one for each rank, in one array."""
    parts = np.split(x, engine.comm.size, axis)
    return np.stack(parts if tiled else [part.squeeze(axis) for part in parts])


def _joined(parts, axis, tiled):
    return np.ascontiguousarray((np.concatenate if tiled else np.stack)(parts, axis))


def _gather(engine, x, axis_size, all_gather_dimension, tiled):
    return _joined(list(allgather(engine, x)), all_gather_dimension, tiled)


def _scatter(engine, x, axis_size, scatter_dimension, tiled):
    return reduce_scatter(engine, _parts(x, engine, scatter_dimension, tiled))


def _exchange(engine, x, axis_size, split_axis, concat_axis, tiled):
    sent = alltoall(engine, _parts(x, engine, split_axis, tiled))
    return _joined(list(sent), concat_axis, tiled)


# What each collective is among processes: a function of an engine, an array and the
# parameters, without the names of the axes.
MPI_COLLECTIVES: dict[Any, Callable] = {
    psum_p: lambda engine, x: allreduce(engine, x, np.add),
    pmax_p: lambda engine, x: allreduce(engine, x, np.maximum),
    pmin_p: lambda engine, x: allreduce(engine, x, np.minimum),
    all_gather_p: _gather, reduce_scatter_p: _scatter, all_to_all_p: _exchange,
    ppermute_p: permute_ranks,
}  # fmt: skip


# Processes that run one program: their devices, and who talks with whom.


class RemoteDevice(Device):
    """A device of another process, where that process puts its buffers.

    Args:
      platform: its name.
      process: the rank of its process.
    """

    is_local = False

    def __init__(self, platform, process):
        super().__init__(platform, process, np)
        self.process_index = process

    def put(self, x, dtype=None):
        """Return None, which stands for a buffer of another process."""

    def seal(self, buffer):
        """Do nothing: the buffer is sealed where it is."""

    def fetch(self, buffer):
        """Refuse: the numbers are not here."""
        where = f"process {self.process_index}"
        raise RuntimeError(f"The numbers on {self} are in {where}.")


class World:
    """The processes that run one program.

    Args:
      comm: the communicator of all of them.
      operations: see `Communicator`.
      watch: the `Watchdog` of this one.

    Attributes:
      latest: from sets of processes to the text of the program they have run last.
    """

    def __init__(self, comm, operations, watch):
        self.comm, self.operations, self.watchdog = comm, operations, watch
        self._engines, self.latest = {}, {}

    def engine(self, processes, use="exchanges"):
        """Return the `Communicator` of some processes, in their order; all have to ask.

        Each use has a communicator of its own, so what is sent for one of them never
        arrives in another.
        """
        if (processes, use) not in self._engines:
            group = self.comm.Get_group().Incl(processes)
            comm = self.comm.Create_group(group)
            self._engines[processes, use] = Communicator(comm, self.operations)
        return self._engines[processes, use]

    def communicator_of(self, label, processes, exchange, *args):
        """Return what an exchange among some processes returns, under the watch."""
        return self.watchdog(label, lambda: exchange(self.engine(processes), *args))


world: Hook = Hook(None)
machine_code: Hook = Hook(False)  # whether it exchanges with other processes, too


def current_world() -> Any:
    """Return the `World`.

    Raises:
      RuntimeError: if this process has not joined one, or has left it.
    """
    if world.value is None or world.value.comm is None:
        raise RuntimeError(
            "This array spans several processes, and this one does not talk to them: "
            "minijax.distributed.initialize() was not called, or shutdown() was."
        )
    return world.value


# Runs of a program on a mesh whose devices belong to several processes.


class CrossProcessRendezvous:
    """Where replicas of several processes exchange values.

    Args:
      members: their ranks in the run.
      processes: their processes.
    """

    def __init__(self, members, processes):
        self.members, self.processes = members, processes

    def exchange(self, rank, label, value, combine):
        """Return this replica's result of a collective, like `Rendezvous.exchange`."""
        return self.collect(
            label, value, collective_kinds[combine.func], combine.keywords
        )

    def collect(self, label, value, primitive, params):
        """Return the result here of a collective, for one operand here."""
        x = np.ascontiguousarray(value).reshape(np.shape(value))  # none, if no axes
        exchange = partial(MPI_COLLECTIVES[primitive], **params)
        return current_world().communicator_of(label, self.processes, exchange, x)


class CrossProcessRun(ReplicaRun):
    """One run of a program on a mesh, of which this process has some places.

    Args:
      mesh: a `Mesh`.
    """

    def __init__(self, mesh):
        super().__init__(mesh.shape)
        self.processes = [device.process_index for device in mesh._flat]
        local = [device.is_local for device in mesh._flat]
        self.ranks = [rank for rank in range(self.size) if local[rank]]

    def meeting(self, rank, names):
        """Return where a replica meets its row along some axes."""
        members = replica_group(self.shape, rank, names)
        processes = tuple([self.processes[i] for i in members])
        alone = len(members) == 1
        return (
            super().meeting(rank, names)
            if alone
            else CrossProcessRendezvous(members, processes)
        )


def _collective_across(eqn, mesh, group, values):
    """Do a collective among processes; return the result here, None for others."""
    processes = tuple([mesh._flat[place].process_index for place in group])
    [here] = [i for i, place in enumerate(group) if mesh._flat[place].is_local]
    rest = {key: x for key, x in eqn.params.items() if key != "axis_name"}
    call = CrossProcessRendezvous(tuple(group), processes).collect
    label = f"{eqn.primitive} over {eqn.params['axis_name']}"
    results: list = [None] * len(group)
    results[here] = call(label, values[here]._numbers(), eqn.primitive, rest)
    return results


def _gathered(group, buffer):
    """Return the numbers of all parts of an array that lies on a group of devices."""
    processes = tuple([device.process_index for device in group.devices])
    own = group.home.fetch(buffer[group.devices.index(group.home)])
    own = np.ascontiguousarray(own)
    here = current_world()
    return list(here.communicator_of("a gathering", processes, allgather, own))


cross_process_collective.value, gather_global.value = _collective_across, _gathered


# Whether all processes run the same program: digests of its text.


def digest(text):
    """Return a number of 62 bits that tells a text from others."""
    return int.from_bytes(sha256(text.encode()).digest()[:8]) >> 2


def check_ranks_agree(engine, text):
    """Raise unless all ranks of an engine bring the same text.

    Raises:
      ValueError: on all of them, with the different texts.
    """
    own = digest(text)
    high, low = allreduce(engine, np.array([own, -own]), np.maximum)
    if high != -low:
        raise ValueError(_apart(engine.comm.allgather(text)))


def _apart(texts):
    """Return a message with each text, and the ranks that have it."""
    ranks: dict[str, list] = {}
    for rank, text in enumerate(texts):
        ranks.setdefault(text, []).append(str(rank))
    shown = [f"rank {', '.join(which)}:\n{text}" for text, which in ranks.items()]
    return (
        "The processes of one mesh have to run the same programs in the same order, "
        "and these differ:\n" + "\n".join(shown) + "\nLook for what depends on "
        "process_index(), on the order of a set, or on data that only one has read."
    )


_texts = weakref_cache()


def mesh_program_text(program, mesh):
    """Return the text of a program on a mesh, without addresses in memory.

    Args:
      program: a `ClosedJaxpr` with its specifications, or what has a `text`.
      mesh: a `Mesh`.
    """
    key, *specs = program if isinstance(program, tuple) else [program]

    def write():
        text = getattr(key, "text", None) or f"{key} {specs}"
        places = [str(device) for device in mesh._flat]
        return re.sub(r"0x[0-9a-f]+", "0x", f"{text}\non {mesh}, {places}")

    return cache_for_object(_texts, key).get((str(specs), mesh), write)


def spans(mesh):
    """Return the processes of a mesh in its order, or None if all of it is here."""
    here = all(device.is_local for device in mesh._flat)
    return None if here else tuple([device.process_index for device in mesh._flat])


def same_program(mesh, program):
    """Raise a `ValueError` unless all processes of a mesh run this program."""
    if (processes := spans(mesh)) is not None:
        check_same_program(current_world(), processes, mesh_program_text(program, mesh))


def check_same_program(world, processes, text):
    """Raise a `ValueError` unless all processes begin this program, or repeat it."""
    if world.latest.get(processes) != text:
        engine = world.engine(processes, "programs")
        world.watchdog("a comparison of programs", check_ranks_agree, engine, text)
        world.latest[processes] = text


def _run_over(mesh, program):
    same_program(mesh, program)
    return ReplicaRun(mesh.shape) if spans(mesh) is None else CrossProcessRun(mesh)


agreement.value, replica_run_factory.value = same_program, _run_over


# Joining the other processes of a job, and leaving them.


def initialize(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    local_device_ids: Any = None,
    cluster_detection_method: str | None = None,
    initialization_timeout: int = 300,
    heartbeat_timeout_seconds: int = 100,
    shutdown_timeout_seconds: int = 300,
    coordinator_bind_address: str | None = None,
    slice_index: int | None = None,
    partition_index: int | None = None,
) -> None:
    """Join the other processes of this job, which a launcher has started.

    ``mpiexec -n 4 python train.py`` starts four; this call has them know each other. In
    a process that no launcher has started, it is alone.

    Args:
      num_processes, process_id: what the launcher has to agree with, if given.
      shutdown_timeout_seconds: how long a process that ends waits for the others.
      coordinator_address, local_device_ids, cluster_detection_method,
        initialization_timeout, heartbeat_timeout_seconds, coordinator_bind_address,
        slice_index, partition_index: taken for JAX's sake; the launcher knows it all.

    Raises:
      RuntimeError: if it was called before, or if MPI is not there.
      ValueError: if the launcher says something else, or there are several devices.

    Reference: ``jax.distributed.initialize``.
    """
    if world.value is not None:
        raise RuntimeError("distributed.initialize should only be called once.")
    launcher = detect_launcher(os.environ)
    if launcher is None:
        _check_asked(num_processes, process_id, 1, 0)
        world.value = World(None, {}, None)
        return
    MPI = load_mpi(launcher)
    comm = MPI.COMM_WORLD.Dup()
    _check_asked(num_processes, process_id, comm.size, comm.rank)
    _join(comm.rank, comm.size)
    operations = {np.add: MPI.SUM, np.maximum: MPI.MAX, np.minimum: MPI.MIN}
    many = MPI.Query_thread() == MPI.THREAD_MULTIPLE
    notes = WatchdogMessages(MPI.COMM_WORLD.Dup()) if many else None
    limit = partial(getattr, config, "minijax_collective_timeout")
    watch = Watchdog(comm.rank, comm.size, limit, lambda: _end(comm), notes).start()
    abort_on_error(lambda: _end(comm))
    world.value = World(comm, operations, watch)
    config.update("minijax_exchange", machine_code.value and config.minijax_exchange)
    atexit.register(_leave, shutdown_timeout_seconds)


def _join(rank, size):
    """Be process `rank` of `size`: number the device here, and list the others.

    Raises:
      ValueError: if there is more than one device here.
    """
    here = devices("cpu")
    if len(here) > 1:
        raise ValueError(
            f"There are {size} processes, with one device each, but this one was asked "
            f"for {len(here)} (jax_num_cpu_devices). Start more processes instead."
        )
    [home] = here
    home.id = home.process_index = rank
    listed = [home if i == rank else RemoteDevice("cpu", i) for i in range(size)]
    platforms["cpu"][:] = listed


def _check_asked(number, index, size, rank):
    """Raise unless what a caller says agrees with what the launcher has started."""
    if number not in (None, size) or index not in (None, rank):
        raise ValueError(
            f"distributed.initialize was given num_processes={number} and process_id="
            f"{index}, but this is process {rank} of {size}. A launcher starts "
            "processes, as in: mpiexec -n 4 python train.py"
        )


def _end(comm):
    """End all processes, this one too."""
    try:
        comm.Abort(1)
    finally:
        os._exit(1)


def shutdown() -> None:
    """Leave the other processes; wait until they do, too.

    Raises:
      RuntimeError: if `initialize` was not called.

    Reference: ``jax.distributed.shutdown``.
    """
    if world.value is None:
        raise RuntimeError("distributed.shutdown: initialize was not called.")
    _leave(300)


def _leave(seconds):
    """Wait for all processes to end; end them if some do not come."""
    here, world.value = world.value, None
    if here is None or here.comm is None:
        return
    request, end = here.comm.Ibarrier(), monotonic() + seconds
    while not request.Test():
        if monotonic() > end:
            here.watchdog._say(f"has ended, and others have not after {seconds:g} s.")
            _end(here.comm)
        sleep(0.002)
    here.watchdog.stop()


def is_initialized() -> bool:
    """Return whether `initialize` was called, and `shutdown` was not.

    Reference: ``jax.distributed.is_initialized``.
    """
    return world.value is not None


# The alpha-beta model: how long collectives take, before anything runs.


class LinkModel(NamedTuple):
    """What connects two ranks: a message of S bytes takes ``alpha + beta * S``.

    Attributes:
      alpha: seconds of an empty message.
      beta: seconds of each further byte.
    """

    alpha: float
    beta: float


# Of each collective among `p` ranks: how many rounds a ring makes, and what share of
# the operand's bytes each rank sends in a round.
ROUNDS = {
    lax.psum_p: lambda p: (2 * (p - 1), 1 / p),
    lax.pmax_p: lambda p: (2 * (p - 1), 1 / p),
    lax.pmin_p: lambda p: (2 * (p - 1), 1 / p),
    lax.all_gather_p: lambda p: (p - 1, 1.0),
    lax.reduce_scatter_p: lambda p: (p - 1, 1 / p),
    lax.all_to_all_p: lambda p: (p - 1, 1 / p),
    lax.ppermute_p: lambda p: (1, 1.0),
}


def collectives_of(jaxpr, times=1):
    """Yield each collective of a program, its bytes, and how often it is done."""
    for eqn in jaxpr.eqns:
        if eqn.primitive in ROUNDS:
            aval = eqn.invars[0].aval
            yield eqn.primitive, aval.size * aval.dtype.itemsize, times
        for inner in jaxprs_in_params(eqn.params):
            inner = getattr(inner, "jaxpr", inner)
            yield from collectives_of(inner, times * eqn.params.get("length", 1))


def predict(jaxpr, p, line, compute=0.0):
    """Return the seconds of a step on `p` ranks, whose computing takes `compute`."""
    for primitive, size, times in collectives_of(jaxpr):
        rounds, share = ROUNDS[primitive](p)
        compute += times * rounds * (line.alpha + size * share * line.beta)
    return compute
