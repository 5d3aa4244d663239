"""Runs on a mesh of processes without copies; pmap across processes; NCCL.

References: ``jax.pmap``, ``cupy.cuda.nccl``; NCCL's collective operations.
"""

# Made from chapters/37_machines_rest.md by `make chapter`;
# edit the chapter, not this file.

import ctypes
import threading
from collections import deque
from time import sleep
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from minijax.arrays.devices import devices
from minijax.arrays.transfer import local_devices, process_count
from minijax.collectives.all_reduce import (
    NUMPY_COMBINERS,
    BucketedAllReduce,
    Collective,
)
from minijax.collectives.executors import pooled_array
from minijax.collectives.native_collectives import (
    EXCHANGE_FUNCTION,
    KIND_MASK,
    ROW_BYTES,
    ROW_RESULT,
    labelled_steps,
)
from minijax.core import Tracer
from minijax.cpu_backend.program_codegen import (
    context_factory,
    data_pointer,
    pointer_table,
)
from minijax.dispatch.word_language import i64
from minijax.distributed.latency_hiding import AllReduceDone, AllReduceStart
from minijax.distributed.processes import (
    CrossProcessRendezvous,
    CrossProcessRun,
    allgather,
    alltoall,
    check_same_program,
    current_world,
    machine_code,
    mesh_program_text,
    mpi_buffer,
    mpi_op,
    permute_ranks,
    reduce_scatter,
)
from minijax.memory.allocator import as_aligned, scratch_bytes
from minijax.pytrees.tree_util import tree_map
from minijax.sharding.manual_axes import current_replica, replica_group
from minijax.sharding.named_sharding import Mesh, NamedSharding
from minijax.sharding.pmap import multiprocess_map, pmap_spec
from minijax.sharding.shard_map import mesh_executor, run_mesh_in_python
from minijax.sharding.sharded_arrays import (
    make_array_from_process_local_data,
    make_array_from_single_device_arrays,
)

# pmap across processes: each brings the examples of its own devices.


def local_shard(x):
    """Return the part of an array that lies on the devices of this process."""
    sharding = x.sharding
    mesh = getattr(sharding, "mesh", None)
    if mesh is None or not mesh.is_multi_process:
        return x
    counts, whole = sharding.divisions(x.ndim), x.shape
    ours = NamedSharding(mesh.local_mesh, sharding.spec)
    pairs = zip(whole, counts, ours.divisions(x.ndim))
    shape = [size // count * here for size, count, here in pairs]
    parts = [shard.data for shard in x.addressable_shards]
    return make_array_from_single_device_arrays(shape, ours, parts)


def _shared(call, dims, mesh):
    """Return the mesh of all processes, and what becomes of the result of a pmap."""
    traced = any(isinstance(x, Tracer) for x in call.leaves)
    if process_count() == 1 or traced or [*mesh._flat] != local_devices():
        return mesh, lambda result: result
    everyone = Mesh(devices(), mesh.axis_names)
    for i, dim in enumerate(dims):
        if dim is not None:
            rows = NamedSharding(everyone, pmap_spec(everyone.axis_names[0], dim))
            call.leaves[i] = make_array_from_process_local_data(rows, call.leaves[i])
            call.avals[i] = call.leaves[i].aval
    return everyone, lambda result: tree_map(local_shard, result)


multiprocess_map.value = _shared


# Runs of a program on a mesh of processes, without threads and without copies.


def array_at_address(address, dtype, size):
    """Return the array at an address."""
    memory = (ctypes.c_char * (size * dtype.itemsize)).from_address(address)
    return np.frombuffer(memory, dtype, size)


def _fold_into(engine, step, x, y):
    ufunc = NUMPY_COMBINERS[step.combine_op.kernel.name]
    operation = mpi_op(engine, ufunc, x.dtype)
    if operation is None:
        y[...] = ufunc.reduce(allgather(engine, x), 0)
    else:
        engine.comm.Allreduce(x, y, operation)


def _by_source(engine, step, x, y):
    pairs = [(source, i) for i, source in enumerate(step.sources) if source >= 0]
    y[...] = permute_ranks(engine, x, pairs)


def _rows(engine, x):
    return x.reshape(engine.comm.size, -1)


BY_KIND = {
    "fold": _fold_into,
    "all": lambda engine, step, x, y: y.__setitem__(..., allgather(engine, x).ravel()),
    "parts": lambda engine, step, x, y: y.__setitem__(
        ..., alltoall(engine, _rows(engine, x)).ravel()
    ),
    "scatter": lambda engine, step, x, y: y.__setitem__(
        ..., reduce_scatter(engine, _rows(engine, x))
    ),
    "one": _by_source,
}


def exchange_into(engine, step, source, result, begun):
    """Exchange what lies at one address, and write what comes to another one."""
    x = array_at_address(source, step.x.dtype, step.x.size)
    BY_KIND[step.how](
        engine, step, x, array_at_address(result, step.out.dtype, step.out.size)
    )


class Bucket:
    """Arrays that are folded as one.

    Args:
      parts: the `Collective` of each, all of one dtype and fold.
      rows: the addresses of two words for each, where it is and where its fold goes.

    Attributes:
      x, y: the array of all, and one for its fold; a single array's are its own.
    """

    def __init__(self, parts, rows):
        pairs = [*zip(parts, rows)]
        self.part, self.dtype = parts[0], parts[0].x.dtype
        xs = [
            array_at_address(i64[row], self.dtype, part.x.size) for part, row in pairs
        ]
        ends = [(i64[row + ROW_RESULT], self.dtype, part.x.size) for part, row in pairs]
        self.outs = [array_at_address(*end) for end in ends]
        self.x = xs[0] if len(xs) == 1 else np.concatenate(xs)
        self.y = self.outs[0] if len(xs) == 1 else np.empty_like(self.x)

    def fold(self, engine):
        """Fold the arrays of all processes."""
        _fold_into(engine, self.part, self.x, self.y)
        self.scatter_back()

    def begin(self, engine):
        """Begin to fold them; return the request of MPI."""
        ufunc, comm = NUMPY_COMBINERS[self.part.combine_op.kernel.name], engine.comm
        operation = mpi_op(engine, ufunc, self.dtype)
        if operation is not None:
            self.ufunc = None
            return comm.Iallreduce(self.x, self.y, operation)
        self.ufunc, self.all = ufunc, np.empty((comm.size, self.x.size), self.dtype)
        return comm.Iallgather(mpi_buffer(self.x), mpi_buffer(self.all))

    def end(self, request):
        """Wait until they are folded."""
        request.Wait()
        if self.ufunc is not None:
            self.y[...] = self.ufunc.reduce(self.all, 0)
        self.scatter_back()

    def scatter_back(self):
        """Put each fold where it goes."""
        start = 0
        for out in self.outs if len(self.outs) > 1 else ():
            out[...] = self.y[start : start + out.size]
            start += out.size


def exchange_jointly(engine, step, start, count, begun):
    """Exchange several arrays, all of one dtype and fold together.

    Args:
      start: the address of a table with a row for each.
      count: of rows.
    """
    kinds: dict = {}
    for i, part in enumerate(step.parts):
        kind = part.combine_op.kernel.name, part.x.dtype
        kinds.setdefault(kind, []).append((part, start + ROW_BYTES * i))
    for members in kinds.values():
        Bucket(*zip(*members)).fold(engine)


def begin_jointly(engine, step, start, count, begun):
    """Begin to exchange several arrays, of one dtype and fold."""
    bucket = Bucket(step.parts, [start + ROW_BYTES * i for i in range(count)])
    begun.append((bucket, bucket.begin(engine)))
    progress.note(1)


def end_first(engine, step, source, result, begun):
    """Wait for what was begun first."""
    bucket, request = begun.popleft()
    bucket.end(request)
    progress.note(-1)


DOING = {
    Collective: exchange_into, BucketedAllReduce: exchange_jointly,
    AllReduceStart: begin_jointly, AllReduceDone: end_first,
}  # fmt: skip


class ProgressThread:
    """A thread that calls MPI now and then, as long as something is begun.

    MPI moves a message on only while it is called.

    Args:
      nap: seconds between two calls.
    """

    def __init__(self, nap=1e-3):
        self.sleep_seconds, self.count, self.some = nap, 0, threading.Event()
        self.thread: threading.Thread | None = None

    def note(self, change):
        """Note that something was begun, or has ended."""
        self.count += change
        if self.count == 0:
            self.some.clear()
        elif change > 0 and (notes := current_world().watchdog.notes) is not None:
            self.some.set()
            if self.thread is None:
                self.thread = threading.Thread(
                    target=self.run, args=(notes.comm,), daemon=True
                )
                self.thread.start()

    def run(self, comm):
        """Call MPI for ever."""
        while self.some.wait():
            comm.Iprobe()
            sleep(self.sleep_seconds)


progress, left = ProgressThread(), []


class CrossProcessEntry:
    """Where machine code finds those of several processes whom it meets.

    Args:
      crossing: a `CrossProcessRendezvous`.
      number: of this process among them.

    Attributes:
      error: what an exchange has raised, or None.
      begun: what was begun and has not ended, in order.
    """

    def __init__(self, crossing, number):
        self.crossing, self.error, self.begun = crossing, None, deque()
        self.memory = np.array([-1, number, 0])
        self.address = self.memory.ctypes.data
        i64[self.address + EXCHANGE_FUNCTION] = _answer_address
        _entries[self.address] = self

    def do(self, source, result, label):
        """Do an exchange; return 1 if it has failed."""
        step = labelled_steps[label & KIND_MASK]
        try:
            processes = self.crossing.processes
            args = DOING[type(step)], step, source, result, self.begun
            current_world().communicator_of(step.label, processes, *args)
        except BaseException as error:
            self.error = error
            return 1
        return 0


_entries: WeakValueDictionary = WeakValueDictionary()
ANSWER = ctypes.CFUNCTYPE(*[ctypes.c_int64] * 5)
_answer = ANSWER(lambda entry, *args: _entries[entry].do(*args))
_answer_address = ctypes.cast(_answer, ctypes.c_void_p).value


def cross_process_entry(run, rank, names):
    """Return the `CrossProcessEntry` of a replica for its row along some axes."""
    members = replica_group(run.shape, rank, names)
    processes = tuple([run.processes[i] for i in members])
    return CrossProcessEntry(
        CrossProcessRendezvous(members, processes), members.index(rank)
    )


class DirectRun:
    """A program of a mesh, with what is the same in each run by this process.

    Args:
      program: the `MeshProgram`.
    """

    def __init__(self, program):
        run, executable = CrossProcessRun(program.mesh), program.executable
        [self.rank], self.processes = run.ranks, tuple(run.processes)
        self.entries = [
            cross_process_entry(run, self.rank, names) for names in executable.asked
        ]
        addresses = [entry.address for entry in self.entries]
        self.context = pointer_table([*executable.context, *addresses])
        self.function, self.arena = executable.function, executable.plan.arena
        self.text = mesh_program_text(program.text_parts, program.mesh)
        elsewhere = (None,) * run.size
        self.before, self.after = elsewhere[: self.rank], elsewhere[self.rank + 1 :]

    def __call__(self, shares, avals):
        """Return for each result the blocks of all replicas, those that are here."""
        check_same_program(current_world(), self.processes, self.text)
        arrays = [as_aligned(share[self.rank]) for share in shares]
        results = [pooled_array(aval.shape, aval.dtype) for aval in avals]
        arrays += results
        memory = pointer_table(map(data_pointer, arrays))
        arena = scratch_bytes(self.arena)
        if self.function(memory, data_pointer(arena), self.context):
            self.abandon(arrays, arena)
        return list(map(self.placed, results))

    def placed(self, result):
        """Return the blocks of one result, of which one is here."""
        result.flags.writeable = False
        return (*self.before, result, *self.after)

    def abandon(self, *memory):
        """Raise what an exchange has raised; keep memory MPI may write to."""
        errors = [entry.error for entry in self.entries if entry.error is not None]
        for entry in self.entries:
            if entry.begun:
                left.append((entry.begun, memory))
            entry.error, entry.begun = None, deque()
        raise errors[0] if errors else KeyboardInterrupt


_before, _contexts_before = mesh_executor.value, context_factory.value


def direct(program, shares):
    """Return for each result of a `MeshProgram` the blocks of all replicas."""
    if not program.mesh.is_multi_process:
        return _before(program, shares)
    if program.executor_slot is False:
        program.executor_slot = (
            DirectRun(program) if _is_direct(program.executable) else None
        )
    if program.executor_slot is None:
        return run_mesh_in_python(program, shares)
    return program.executor_slot(shares, program.block_avals)


def _is_direct(executable):
    """Return whether a program needs no step of Python."""
    return getattr(executable, "asked", None) is not None and not executable.host.steps


def _contexts(program):
    """Return the context of one call by a replica of several processes."""
    replica = current_replica(program.asked[0][0])
    if type(replica.run) is not CrossProcessRun:
        return _contexts_before(program)
    made = [
        cross_process_entry(replica.run, replica.rank, names) for names in program.asked
    ]
    replica.run.entries = made  # they are needed as long as it runs
    return pointer_table([*program.context, *[entry.address for entry in made]])


mesh_executor.value, context_factory.value, machine_code.value = direct, _contexts, True


# The five exchanges among cards, by NCCL through CuPy.

# NCCL's numbers of dtypes and reductions.
NCCL_DTYPES = {
    "int8": 0, "uint8": 1, "int32": 2, "uint32": 3, "int64": 4, "uint64": 5,
    "float16": 6, "float32": 7, "float64": 8, "bfloat16": 9,
}  # fmt: skip
SUM, MAX, MIN = 0, 2, 3
FOLDS = {np.add: SUM, np.maximum: MAX, np.minimum: MIN}
BYTES_ACCESSED = NCCL_DTYPES["uint8"]


class NcclCommunicator(NamedTuple):
    """What exchanges arrays among cards.

    Attributes:
      comm: a communicator with the methods of ``cupy.cuda.nccl.NcclCommunicator``.
      group: a pair of functions around sends and receives that belong together.
      stream: the address of a stream.
    """

    comm: Any
    group: tuple
    stream: int = 0


def _address(x):
    return x.data.ptr if hasattr(x.data, "ptr") else x.ctypes.data


def card_allreduce(engine, x, y, fold):
    """Fold the arrays `x` of all cards into `y`."""
    kind = NCCL_DTYPES[x.dtype.name]
    places = _address(x), _address(y), x.size
    engine.comm.allReduce(*places, kind, FOLDS[fold], engine.stream)


def card_allgather(engine, x, y):
    """Put the arrays `x` of all cards into `y`, one after the other."""
    engine.comm.allGather(
        _address(x), _address(y), x.nbytes, BYTES_ACCESSED, engine.stream
    )


def card_reduce_scatter(engine, x, y):
    """Put the sum over all cards of ``x[rank]`` into `y`."""
    kind = NCCL_DTYPES[x.dtype.name]
    engine.comm.reduceScatter(
        _address(x), _address(y), y.size, kind, SUM, engine.stream
    )


def card_alltoall(engine, x, y):
    """Send ``x[i]`` to card `i`; put what all have sent here into `y`."""
    size, part = engine.comm.size(), x.nbytes // engine.comm.size()
    engine.group[0]()
    for i in range(size):
        here, there = _address(x) + i * part, _address(y) + i * part
        engine.comm.send(here, part, BYTES_ACCESSED, i, engine.stream)
        engine.comm.recv(there, part, BYTES_ACCESSED, i, engine.stream)
    engine.group[1]()


def card_permute(engine, x, y, perm):
    """Put the array of the card that `perm` sends here into `y`, or leave zeros."""
    rank = engine.comm.rank_id()
    engine.group[0]()
    for source, target in perm:
        if source == rank:
            engine.comm.send(
                _address(x), x.nbytes, BYTES_ACCESSED, target, engine.stream
            )
        if target == rank:
            engine.comm.recv(
                _address(y), y.nbytes, BYTES_ACCESSED, source, engine.stream
            )
    engine.group[1]()
