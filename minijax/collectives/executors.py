"""Communicators, and executors of programs whose replicas are threads.

A team's threads have entered one function of machine code for good. A call of a program
is an address that each of them finds in its line, so no Python runs on their side.

Reference: the supersteps of Valiant, *A bridging model for parallel computation*
(1990).
"""

# Made from chapters/36_replicas_rest.md by `make chapter`;
# edit the chapter, not this file.

import atexit
import ctypes
import math
import os
import threading
import time
import warnings
import weakref
from contextlib import suppress
from functools import update_wrapper
from types import MethodType
from typing import Any, NamedTuple

import numpy as np

from minijax.arrays.array import ArrayImpl
from minijax.arrays.dtypes import config
from minijax.collectives.all_reduce import COLLECTIVE_STEPS, collectives_library
from minijax.collectives.native_collectives import (
    ABORT_FLAG,
    ACQUIRE,
    ACQUIRE_TIMED,
    ARENA,
    ARRIVALS,
    CACHED,
    COMMUNICATOR,
    COMMUNICATOR_OFFSET,
    CONTEXT,
    CONTEXTS,
    CONTEXTS_END,
    COPY,
    FILL,
    FIRST_OFFSET,
    GROUP_SIZE,
    KERNELS,
    KIND_MASK,
    LABEL,
    MAX_INLINE_BYTES,
    MEMORY_TABLE,
    NONTEMPORAL,
    PARKING_LOCK,
    PARTS_END,
    PARTS_OFFSET,
    PROGRAM_POINTER,
    PUBLISH,
    RELEASE,
    ROW_BYTES,
    SIZE_OF_CONTEXT,
    SIZE_OF_ROW,
    SIZE_OF_SPACE,
    SLEEPS,
    SLOT,
    SLOTS,
    SPINS,
    STOP,
    TEAM_COMMUNICATOR,
    TURNS,
    WATCHDOG_CALLBACK,
    WORKER_BYTES,
    WORKER_SPINS,
    WORKERS,
    YIELD,
    YIELDS,
    label_texts,
)
from minijax.context_values import ContextValue, context_variable, current_context_value
from minijax.core import EvalTrace, bind_listeners, current_trace
from minijax.cpu_backend.program_codegen import (
    EntryPoint,
    ShardLayout,
    context_factory,
    estimate_nanoseconds,
    pointer_table,
    split_at_collectives,
    walk_steps,
)
from minijax.cpu_backend.program_codegen import data_pointer as start_of
from minijax.dispatch.fastpath_functions import (
    SignatureCache,
    enable_fastpath,
    fastpath_supported,
    register_fastpath,
    signature_of_wrapped,
)
from minijax.dispatch.fastpath_tables import signature_table
from minijax.dispatch.interrupts import defer_interrupts
from minijax.dispatch.word_language import function_pointer, i64
from minijax.jitting.stages import nbytes
from minijax.kernels.lowering import Launch, LoweredProgram
from minijax.llvm.targets import current_target
from minijax.memory.allocator import as_aligned, pooled_empty, scratch_bytes
from minijax.pytrees.tree_util import tree_flatten, tree_structure
from minijax.rematerialization.caching import cache_for_object, memoize, weakref_cache
from minijax.sharding.manual_axes import (
    ReplicaAborted,
    current_replica,
    mismatch_message,
    missing_replicas_error,
    replica_group,
    thread_state,
)
from minijax.sharding.named_sharding import same_shards
from minijax.sharding.pmap import fast_call_wrapper
from minijax.sharding.shard_map import (
    mesh_executor,
    native_entries,
    result_observer,
    run_mesh_in_python,
)
from minijax.threads.atomics import atomic_exchange, available_cores
from minijax.threads.parallel_loops import estimate_kernel_time
from minijax.threads.pool import thread_pool

# Teams: threads that are replicas, and communicators, where replicas meet.

MAX_TEAM = 64  # replicas of a team
WARN_AFTER_SECONDS = 20.0  # seconds after which a warning says who is missing
WATCHDOG_SIGNATURE = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 3)


def lines(count):
    """Return words that begin at a line of the processor's cache, and their address."""
    memory = np.zeros(count + 8, np.int64)
    return memory, -(-memory.ctypes.data // 64) * 64


def locked():
    """Return the address of a lock of Python that is locked."""
    allocate = ctypes.pythonapi.PyThread_allocate_lock
    allocate.restype = ctypes.c_void_p
    lock = allocate()
    ctypes.pythonapi.PyThread_acquire_lock(ctypes.c_void_p(lock), 1)
    return lock


def release_parking_locks(locks):
    """Free locks that no thread waits for."""
    for lock in locks:
        ctypes.pythonapi.PyThread_free_lock(ctypes.c_void_p(lock))


def yielding():
    """Return the address of what lets other threads have the core."""
    with suppress(OSError, AttributeError, TypeError):
        return function_pointer(ctypes.CDLL(None).sched_yield)
    return function_pointer(ctypes.pythonapi.PyThread_get_thread_ident)


class CommunicatorState:
    """Where replicas meet: what their groups share, and Python's watchdog.

    Attributes:
      address: of its words.
      error: the first error of the run, or None.
      timeout: how many seconds a replica waits for another one.
      groups: from the addresses of groups to the ranks of their members.
    """

    def __init__(self, noted=lambda error: None):
        self.memory, self.address = lines(24)
        self.recorded_mismatches, self.lock = noted, threading.Lock()
        self.watchdog = WATCHDOG_SIGNATURE(watchdog_callback(weakref.ref(self)))
        self.parking_locks: list = []
        weakref.finalize(self, release_parking_locks, self.parking_locks).atexit = False
        words = {YIELD: yielding()}
        words[COPY] = function_pointer(ctypes.memmove)
        words[FILL] = function_pointer(ctypes.memset)
        words[WATCHDOG_CALLBACK] = function_pointer(self.watchdog)
        words[NONTEMPORAL] = collectives_library().place("copy_past_caches")
        words[CACHED] = current_target().caches[-1]
        names = "acquire_lock", "acquire_lock_timed", "release_lock"
        for place, name in zip((ACQUIRE, ACQUIRE_TIMED, RELEASE), names):
            function = getattr(ctypes.pythonapi, f"PyThread_{name}")
            words[place] = function_pointer(function)
        for place, value in words.items():
            i64[self.address + place] = value
        self.size = None
        self.clear()

    def clear(self):
        """Forget a run that has failed, and the groups that it has left in disorder."""
        self.error, self.timeout, self.waiting_since = None, None, {}
        self.entries, self.groups, self.kept = {}, {}, []
        self.has_warned = False
        i64[self.address + ABORT_FLAG] = 0

    def begin_run(self, size):
        """Be ready for so many replicas: more than there are cores do not spin.

        A thread that lets others have its core gives up its share of time in newer
        versions of Linux, so that it does so a few times at most.
        """
        self.timeout = config.minijax_collective_timeout
        if size != self.size:
            self.size, spins = size, 10 if size <= available_cores() else 0
            spins = 1000 if 2 * size <= available_cores() else spins
            i64[self.address + SPINS] = spins
            i64[self.address + YIELDS], i64[self.address + WORKER_SPINS] = 3, spins + 3

    def entry(self, shape, rank, names):
        """Return the address of a replica's entry for a group."""
        key = tuple(shape.items()), names
        with self.lock:
            if key not in self.entries:
                self.entries[key] = self._groups(shape, names)
            return self.entries[key][rank]

    def _groups(self, shape, names):
        """Make the groups along some axes; return entries by rank."""
        found = {}
        for rank in range(int(np.prod([*shape.values()]))):
            members = replica_group(shape, rank, names)
            if members[0] in found and rank in found:
                continue
            memory, group = lines((SLOTS + len(members) * SLOT) // 8)
            entries, first = lines(2 * len(members))
            i64[group + GROUP_SIZE], i64[group + COMMUNICATOR] = (
                len(members),
                self.address,
            )
            for number, member in enumerate(members):
                found[member] = first + 16 * number
                i64[found[member]], i64[found[member] + 8] = group, number
                self.parking_locks.append(locked())
                i64[group + SLOTS + number * SLOT + SLEEPS + 8] = self.parking_locks[-1]
            self.groups[group] = members
            self.kept += memory, entries
        return found

    def fail(self, error):
        """Keep the first error, and release all who wait."""
        with self.lock:
            self.error = self.error or error
        self.recorded_mismatches(error)
        atomic_exchange(self.address + ABORT_FLAG, 1)

    def on_timeout(self, entry, mismatched):
        """Raise if it is time to give up; called by a replica that waits."""
        if entry == 0:  # it waits for the end
            return
        group, number = i64[entry], i64[entry + 8]
        members = self.groups[group]
        slots = [group + SLOTS + i * SLOT for i in range(len(members))]
        arrivals = [i64[slot + ARRIVALS] for slot in slots]
        mine = arrivals[number]
        labels = [i64[slot + LABEL + 8 * (mine & 1)] for slot in slots]
        if mismatched:
            names = [label_texts[label & KIND_MASK] for label in labels]
            raise RuntimeError(mismatch_message(dict(zip(members, names))))
        now = time.monotonic()
        before = self.waiting_since.get(entry, (None, now))
        if before[0] != mine:
            self.waiting_since[entry] = mine, now
            return
        arrived = [m for m, arrival in zip(members, arrivals) if arrival >= mine]
        label, thread_state.line = (
            label_texts[labels[number] & KIND_MASK],
            label_texts[labels[number] >> 32],
        )
        if now - before[1] >= self.timeout:
            raise missing_replicas_error(members, arrived, label, self.timeout)
        if now - before[1] >= WARN_AFTER_SECONDS and not self.has_warned:
            self.has_warned = True
            missing = [str(m) for m in members if m not in arrived]
            warnings.warn(
                f"{label} has waited {WARN_AFTER_SECONDS:g} s for replica "
                f"{', '.join(missing)}; it gives up after {self.timeout:g} s.",
                stacklevel=2,
            )


def watchdog_callback(comm):
    """Return the function that machine code calls now and then while it waits."""

    def answer(entry, why, place):
        try:
            if comm().error is None:
                comm().on_timeout(entry, why)
            i64[place] = int(comm().error is not None)
        except BaseException as error:
            comm().fail(error)

    return answer


def _contexts(program):
    """Return the context of one call by a replica that is a thread of Python."""
    replica = current_replica(program.asked[0][0])
    run = replica.run
    with run.lock:
        if run.comm is None:
            run.comm = CommunicatorState(run.note)
            run.comm.begin_run(run.size)
    if run.error is not None:
        raise ReplicaAborted
    entries = [run.comm.entry(run.shape, replica.rank, x) for x in program.asked]
    return pointer_table([*program.context, *entries])


context_factory.value = _contexts


class ReplicaTeam:
    """Threads that are replicas of one program after the other.

    Attributes:
      comm: where they meet.
      threads: the list of them; the one that calls is a replica, too.
      bound_program: the `BoundProgram` whose addresses are in their lines.
    """

    def __init__(self):
        self.library = collectives_library()
        self.memory, self.address = lines((WORKERS + WORKER_BYTES * MAX_TEAM) // 8)
        self.comm, self.threads, self.owner = CommunicatorState(), [], os.getpid()
        self.bound_program = None
        i64[self.address + TEAM_COMMUNICATOR] = self.comm.address
        i64[self.address + WORKERS + PARKING_LOCK] = locked()
        i64[self.comm.address + KERNELS] = thread_pool().address
        self.launch = self._function("launch_team", 2)

    def _function(self, name, arity):
        kind = ctypes.CFUNCTYPE(*[ctypes.c_int64] * (1 + arity))
        function = kind(self.library.place(name))
        function.library = self.library  # the code stays as long as it can be called
        return function

    def grow(self, size):
        """Have threads for so many replicas."""
        while len(self.threads) + 1 < size:
            me = self.address + WORKERS + WORKER_BYTES * (len(self.threads) + 1)
            i64[me + PARKING_LOCK] = locked()
            worker_loop = self._function("team_worker_loop", 2)
            name = f"replica-{len(self.threads)}"
            thread = threading.Thread(
                target=worker_loop, args=(self.address, me), name=name, daemon=True
            )
            thread.start()
            self.threads.append(thread)

    def stop(self):
        """Have the threads leave, and wait until they have left."""
        if os.getpid() == self.owner:
            i64[self.address + STOP] = 1
            self._function("notify_workers", 2)(self.address, len(self.threads))
            for thread in self.threads:
                thread.join()


_teams: list = []  # those that have nothing to do
_all: list = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_teams.clear)


def acquire_team():
    """Return a `ReplicaTeam` that has nothing to do."""
    try:
        return _teams.pop()
    except IndexError:
        pass
    with defer_interrupts():
        _all.append(ReplicaTeam())
        atexit.register(_all[-1].stop)
    return _all[-1]


def release_team(team):
    """Let a team be hired again."""
    _teams.append(team)


# Programs in parts, from one meeting of the replicas to the next.

MIN_PARALLEL_GAIN_NS = 60_000  # nanoseconds that several threads would save at most


def meets(step):
    """Return whether replicas meet in a step."""
    return isinstance(step, COLLECTIVE_STEPS) and getattr(step, "how", None) != "index"


def parted_at_meetings(steps):
    """Return steps in parts that end with a meeting, and each meeting once more.

    There are none if a branch or a loop holds a meeting, or if the table of many arrays
    that meet is too long to stay.
    """
    parts: list = [[]]
    for step in steps:
        parts[-1].append(step)
        if meets(step) and type(step) in COLLECTIVE_STEPS:
            parts += [[step], []]
        elif any(map(meets, walk_steps([step]))):
            return []
        if len(getattr(step, "parts", ())) * ROW_BYTES > 2 * MAX_INLINE_BYTES:
            return []
    return [part for part in parts if part]


def time_of_step(step, target):
    """Return about how many nanoseconds one thread takes for a step."""
    if type(step) is Launch:
        return estimate_kernel_time(step.kernel, target)
    if type(step) in COLLECTIVE_STEPS:
        return sum(map(nbytes, [*step.reads, *step.writes])) / target.bandwidth
    return estimate_nanoseconds(LoweredProgram([], [], [], [step]))


def estimate_serial_time(program):
    """Return about how many nanoseconds one thread takes for all replicas."""
    executable = program.executable
    steps, target = executable.lowered.steps, executable.target
    return program.size * sum(time_of_step(step, target) for step in steps)


def runs_serially(program):
    """Return whether one thread runs all replicas, as more would save too little."""
    size, time = program.size, estimate_serial_time(program)
    save = time - time / min(size, available_cores())
    return size == 1 or bool(program.executable.parts) and save <= MIN_PARALLEL_GAIN_NS


split_at_collectives.value = parted_at_meetings


# Programs of a mesh on teams: addresses in, one call, addresses out.

SMALL_RESULT_BYTES = 4096  # bytes


class BoundProgram:
    """A program of a mesh in memory: the addresses that its replicas are given.

    Args:
      program: the `MeshProgram`.
      comm: the `CommunicatorState` where they meet.

    Attributes:
      memory: the tables of addresses of all replicas, one after the other.
      groups: the communicator's, when the contexts were made.
      block: how many bytes of the arena each replica has.
    """

    def __init__(self, program, comm):
        self.comm, self.executable = comm, program.executable
        self.size, self.shape = program.size, program.mesh.shape
        self.width = len(program.in_shardings) + len(program.block_avals)
        self.memory = (ctypes.c_int64 * (self.size * self.width))()
        self.groups, self.block = None, -(-self.executable.plan.arena // 64) * 64

    def make_contexts(self):
        """Make the context of each replica, for the groups that there are now."""
        asked, given = self.executable.asked, [*self.executable.context]
        rows = [
            [*given, *[self.comm.entry(self.shape, rank, names) for names in asked]]
            for rank in range(self.size)
        ]
        self.contexts = np.array([[x or 0 for x in row] for row in rows], np.int64)
        self.groups = self.comm.entries

    def run(self, shares, avals):
        """Return for each result the blocks of all replicas."""
        memory, width, size, held = self.memory, self.width, self.size, []
        for i, share in enumerate(shares):
            share = list(map(as_aligned, share))
            memory[i::width] = list(map(start_of, share))
            held.append(share)
        wholes = [pooled_array((size, *aval.shape), aval.dtype) for aval in avals]
        for i, array in enumerate(wholes, len(shares)):
            first, step = start_of(array), array.nbytes // size
            memory[i::width] = [first + step * rank for rank in range(size)]
        space = scratch_bytes(size * self.block)
        self.execute(start_of(space))
        for array in wholes:
            array.flags.writeable = False
        return [tuple(parts_in(array)) for array in wholes]


class SerialExecutor(BoundProgram):
    """A program whose replicas are run in turn, by the thread that calls.

    Args:
      program: the `MeshProgram`.
      way: 1, or -1 if the addresses of each replica lie before those of the last one.

    Attributes:
      table: what `run_serially` is given.
      nanoseconds: about how long all of them take.
    """

    def __init__(self, program, way=1):
        super().__init__(program, CommunicatorState())
        self.make_contexts()
        parts = ["program"] if self.size == 1 else self.executable.parts
        place = self.executable.library.engine.get_function_address
        self.parts = np.array(list(map(place, parts)), np.int64)
        self.nanoseconds = int(estimate_serial_time(program))
        words = {
            COMMUNICATOR_OFFSET: self.comm.address,
            FIRST_OFFSET: PUBLISH if len(parts) > 1 else 0,
            PARTS_OFFSET: start_of(self.parts), CONTEXTS: start_of(self.contexts),
            PARTS_END: start_of(self.parts) + self.parts.nbytes,
            CONTEXTS_END: start_of(self.contexts) + self.contexts.nbytes,
            SIZE_OF_CONTEXT: self.contexts.strides[0],
            SIZE_OF_ROW: way * 8 * self.width, SIZE_OF_SPACE: self.block,
        }  # fmt: skip
        self.table = (ctypes.c_int64 * (TURNS // 8))()
        for place, value in words.items():
            self.table[place // 8] = value

    def execute(self, arena):
        """Run all replicas."""
        memory, table = map(ctypes.addressof, (self.memory, self.table))
        turn_taker(self.nanoseconds > 20_000)(memory, arena, table)


@memoize
def turn_taker(long):
    """Return the function that runs replicas in turn; a long one lets Python go on."""
    kind = ctypes.CFUNCTYPE if long else ctypes.PYFUNCTYPE
    return kind(*[ctypes.c_int64] * 4)(collectives_library().place("run_serially"))


class TeamBoundProgram(BoundProgram):
    """A program in the memory of a team.

    Args:
      team: the `ReplicaTeam`.
      program: the `MeshProgram`.
    """

    def __init__(self, team, program):
        super().__init__(program, team.comm)
        self.team, self.arena = team, 0

    def bind(self):
        """Put addresses into the lines of the team."""
        if self.groups is not self.comm.entries:
            self.make_contexts()
        i64[self.team.address + PROGRAM_POINTER] = self.executable.address
        memory, contexts = ctypes.addressof(self.memory), start_of(self.contexts)
        for rank in range(self.size):
            me = self.team.address + WORKERS + rank * WORKER_BYTES
            i64[me + MEMORY_TABLE] = memory + 8 * self.width * rank
            i64[me + CONTEXT] = contexts + self.contexts.strides[0] * rank
        self.team.bound_program, self.arena = self, 0

    def execute(self, arena):
        """Have the team run all replicas."""
        if self.team.bound_program is not self or self.groups is not self.comm.entries:
            self.bind()
        if arena != self.arena:
            self.arena = arena
            for rank in range(self.size):
                me = self.team.address + WORKERS + rank * WORKER_BYTES
                i64[me + ARENA] = arena + rank * self.block
        self.comm.begin_run(self.size)
        if self.team.launch(self.team.address, self.size - 1):
            self.abandon()

    def abandon(self):
        """Raise the first error of the run."""
        error = self.comm.error
        self.comm.clear()
        raise error or KeyboardInterrupt


def pooled_array(shape, dtype):
    """Return an array with arbitrary numbers; large ones are used again."""
    few = math.prod(shape) * dtype.itemsize <= SMALL_RESULT_BYTES
    return np.empty(shape, dtype) if few else pooled_empty(shape, dtype)


def parts_in(whole):
    """Return the parts of an array along its first axis, as arrays."""
    if whole.ndim > 1:
        return list(whole)
    return [whole[i, ...] for i in range(len(whole))]


class SerialRunner(list):
    """How a program runs whose replicas take turns: `SerialExecutor`s that are free."""

    def __call__(self, program, shares):
        """Return for each result the blocks of all replicas."""
        try:
            executor = self.pop()
        except IndexError:
            executor = SerialExecutor(program)
        try:
            return executor.run(shares, program.block_avals)
        finally:
            self.append(executor)


class TeamRunner:
    """How a program is run by teams.

    Attributes:
      last: its `TeamBoundProgram` in the team that ran it last.
    """

    last: Any = None

    def __call__(self, program, shares):
        """Return for each result the blocks of all replicas."""
        team, bound = acquire_team(), self.last
        try:
            if bound is None or bound.team is not team:
                team.grow(program.size)
                self.last = bound = TeamBoundProgram(team, program)
            return bound.run(shares, program.block_avals)
        finally:
            release_team(team)


def executor_for(program):
    """Return how a `MeshProgram` is run, or False if Python runs it."""
    executable = program.executable
    if getattr(executable, "asked", None) is None or executable.host.steps:
        return False
    if program.size > MAX_TEAM or not collectives_library():
        return False
    return SerialRunner() if runs_serially(program) else TeamRunner()


def run_natively(program, shares):
    """Return for each result of a `MeshProgram` the blocks of all replicas."""
    if program.executor_slot is None:
        program.executor_slot = executor_for(program)
    if program.executor_slot is False:
        return run_mesh_in_python(program, shares)
    return program.executor_slot(program, shares)


def serial_entry(program):
    """Return the `EntryPoint` of a `MeshProgram` whose replicas take turns, or None."""
    avals = [*program.in_avals, *program.block_avals]
    if not isinstance(program.executor_slot, SerialRunner) or not all(
        x.dtype.itemsize for x in avals
    ):
        return None
    executor = SerialExecutor(program, -1)
    outs = (program.out_avals, program.out_placements)
    ends = program.in_avals, program.block_avals, *outs, executor
    return EntryPoint(
        collectives_library().place("run_serially"), program.size * executor.block,
        ctypes.addressof(executor.table), executor.nanoseconds,
        (None,) * len(program.out_avals), ShardLayout(program.size, *ends),
    )  # fmt: skip


mesh_executor.value, native_entries.value = run_natively, serial_entry


# Calls like the one before: they go straight to the program of their mesh.

_recent = weakref_cache()
_calls = context_variable("calls", None)  # what ran on a mesh during a call
LEAF = tree_flatten(0)[1]


def _note(program, args, results):
    """Note that a program has run on a mesh; return its results."""
    if (calls := current_context_value(_calls).value) is not None:
        calls.append((program, args, results))
    return results


class CachedCall(NamedTuple):
    """A call that was made: what it depended on, its program, and its result's tree.

    A tree is None for arrays alone, and for one array.
    """

    around: tuple
    tree: object
    avals: list
    placements: list
    program: Any
    consts: list
    out_tree: Any

    def leaves(self, args):
        """Return the leaves of arguments like those of the call, or None."""
        (values, overrides), (leaves, tree) = config.state, _flat(args)
        around, avals = self.around, self.avals
        if bind_listeners or values is not around[0] or overrides is not around[1]:
            return None
        if current_trace() is not around[2] or len(leaves) != len(avals):
            return None
        if tree != self.tree:
            return None
        for x, aval, placement in zip(leaves, avals, self.placements):
            if type(x) is not ArrayImpl or x.placement is not placement:
                return None
            if x.aval is not aval and x.aval != aval:
                return None
        return leaves

    def run(self, leaves):
        """Return the result of a call like this one."""
        found = self.program([*self.consts, *leaves] if self.consts else leaves)
        return found[0] if self.out_tree is None else self.out_tree.unflatten(found)


class LastCallCache:
    """A function that keeps its last call, if all that took was arrays.

    Args:
      function: it does no more than to run a program on a mesh.
    """

    def __init__(self, function):
        self.function, self._kept = function, cache_for_object(_recent, self)

    known = property(lambda self: self._kept.values.get("call"))

    def first(self, args, kwargs):
        """Return the result of a call, and keep the call if it can be made again."""
        with ContextValue(_calls, []) as calls:
            result = self.function(*args, **kwargs)
        if len(calls) == 1 and not kwargs and type(current_trace()) is EvalTrace:
            self.store(args, result, *calls[0])
        return result

    def store(self, args, result, program, operands, results):
        """Keep a call whose arguments and results are those of a program."""
        (leaves, tree), (found, out_tree) = _flat(args), tree_flatten(result)
        count = len(operands) - len(leaves)
        if count < 0 or not _same(operands[count:], leaves):
            return
        if _same(found, results) and all(type(x) is ArrayImpl for x in leaves):
            avals, placements = [x.aval for x in leaves], [x.placement for x in leaves]
            around = *config.state, current_trace()
            out_tree = None if out_tree == LEAF else out_tree
            ends = program, list(operands[:count]), out_tree
            self._kept.put("call", CachedCall(around, tree, avals, placements, *ends))


def _same(some, others):
    """Return whether lists hold the same objects."""
    return len(some) == len(others) and all(x is y for x, y in zip(some, others))


def _flat(args):
    """Return the leaves of arguments and their tree; it is None for arrays alone."""
    for x in args:
        if type(x) is not ArrayImpl:
            return tree_flatten(args)
    return args, None


class FastPathMap(LastCallCache):
    """A function whose calls go straight to a program, by the fast path if they can."""

    __slots__ = ("_fast_path",)
    __signature__ = signature_of_wrapped

    def __init__(self, function):
        update_wrapper(self, function)  # first, as it copies attributes
        super().__init__(function)
        self._ready = SignatureCache(self)
        self._fast_path = self._ready.head

    def __call__(self, /, *args, **kwargs):
        known, leaves = self.known, None
        if known is not None and not kwargs:
            leaves = known.leaves(args)
        if leaves is None:
            return self.first(args, kwargs)
        result = known.run(leaves)
        self._ready.insert(known.program, leaves, self._record, known, args)
        return result

    def _record(self, program, known, args):
        avals, places = known.avals, known.placements
        alike = map(same_shards, places, program.in_placements, [x.ndim for x in avals])
        if known.consts or not all(alike):
            return None
        entry = native_entries.value(program)
        if not fastpath_supported(entry, places[0]):
            return None
        trees, out_tree = list(map(tree_structure, args)), known.out_tree or LEAF
        ends = entry.cuts.out_avals, entry, program, places
        around = enable_fastpath(FastPathMap)
        return signature_table(around, trees, {}, avals, out_tree, *ends)

    def __get__(self, instance, owner=None):
        return self if instance is None else MethodType(self, instance)

    def __repr__(self):
        return f"<QuickFunction of {self.function!r}>"

    def __reduce__(self):
        return self.__qualname__  # as a function, by its name


register_fastpath(FastPathMap)
result_observer.value, fast_call_wrapper.value = _note, FastPathMap
