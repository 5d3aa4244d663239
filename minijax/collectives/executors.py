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
from minijax.collectives.all_reduce import MEETS, exchange_library
from minijax.collectives.lowlevel import (
    ACQUIRE,
    ACQUIRE_TIMED,
    ALERT,
    ARENA,
    ARRIVALS,
    BED,
    BRING,
    CACHED,
    CONTEXT,
    CONTEXTS,
    CONTEXTS_END,
    COPY,
    FILL,
    FIRST,
    HALL,
    IN_HALL,
    KERNELS,
    KIND,
    LABEL,
    LINE,
    MEMORY,
    NAPS,
    PARTS,
    PARTS_END,
    PAST,
    PATIENCE,
    POISON,
    PROGRAM,
    RELEASE,
    ROW,
    SIZE,
    SIZE_OF_CONTEXT,
    SIZE_OF_ROW,
    SIZE_OF_SPACE,
    SLOT,
    SLOTS,
    SMALL,
    SPINS,
    STOP,
    THEIRS,
    TURNS,
    WORKERS,
    YIELD,
    YIELDS,
    told,
)
from minijax.core import EvalTrace, current_trace, watchers
from minijax.cpu_backend.program_codegen import (
    Cuts,
    Entry,
    contexts,
    cut_at_meetings,
    nanoseconds_of,
    table,
    walk,
)
from minijax.cpu_backend.program_codegen import address_of as start_of
from minijax.dispatch.fastpath import record_table
from minijax.dispatch.fastpath_functions import (
    Records,
    is_plain,
    open_gate,
    send_through_gate,
    signature_of_wrapped,
)
from minijax.dispatch.interrupts import uninterrupted
from minijax.dispatch.lowlevel import address_of_function, word
from minijax.extents import Extent, dynamic_variable, in_force
from minijax.jitting.stages import nbytes
from minijax.kernels.lowering import Launch, LoweredProgram
from minijax.llvm.targets import current_target
from minijax.memory.allocator import empty, scratch, settled
from minijax.pytrees.tree_util import tree_flatten, tree_structure
from minijax.rematerialization.caching import cache_by_object, made_once
from minijax.sharding.manual_axes import (
    Released,
    here,
    replica_here,
    replicas_missing,
    row_of,
    strangers_met,
)
from minijax.sharding.named_sharding import lies_like
from minijax.sharding.pmap import quickly
from minijax.sharding.shard_map import entries, in_python, noted, running
from minijax.threads.atomics import available, put
from minijax.threads.parallel_loops import time_of_kernel
from minijax.threads.pool import pool

# Teams: threads that are replicas, and halls, where those meet who are.

MOST = 64  # replicas of a team
WARNING = 20.0  # seconds after which a warning says who is missing
PATIENT = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 3)


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


def give_back(locks):
    """Free locks that no thread waits for."""
    for lock in locks:
        ctypes.pythonapi.PyThread_free_lock(ctypes.c_void_p(lock))


def yielding():
    """Return the address of what lets other threads have the core."""
    with suppress(OSError, AttributeError, TypeError):
        return address_of_function(ctypes.CDLL(None).sched_yield)
    return address_of_function(ctypes.pythonapi.PyThread_get_thread_ident)


class Hall:
    """Where replicas meet: what their groups share, and the patience of Python.

    Attributes:
      address: of its words.
      error: the first error of the run, or None.
      timeout: how many seconds a replica waits for another one.
      groups: from the addresses of groups to the ranks of their members.
    """

    def __init__(self, noted=lambda error: None):
        self.memory, self.address = lines(24)
        self.noted, self.lock = noted, threading.Lock()
        self.patience = PATIENT(patient(weakref.ref(self)))
        self.beds: list = []
        weakref.finalize(self, give_back, self.beds).atexit = False
        words = {YIELD: yielding()}
        words[COPY] = address_of_function(ctypes.memmove)
        words[FILL] = address_of_function(ctypes.memset)
        words[PATIENCE] = address_of_function(self.patience)
        words[PAST] = exchange_library().place("copy_past_caches")
        words[CACHED] = current_target().caches[-1]
        names = "acquire_lock", "acquire_lock_timed", "release_lock"
        for place, name in zip((ACQUIRE, ACQUIRE_TIMED, RELEASE), names):
            function = getattr(ctypes.pythonapi, f"PyThread_{name}")
            words[place] = address_of_function(function)
        for place, value in words.items():
            word[self.address + place] = value
        self.size = None
        self.clear()

    def clear(self):
        """Forget a run that has failed, and the groups that it has left in disorder."""
        self.error, self.timeout, self.since = None, None, {}
        self.entries, self.groups, self.kept = {}, {}, []
        self.warned = False
        word[self.address + POISON] = 0

    def expect(self, size):
        """Be ready for so many replicas: more than there are cores do not spin.

        A thread that lets others have its core gives up its share of time in newer
        versions of Linux, so that it does so a few times at most.
        """
        self.timeout = config.minijax_collective_timeout
        if size != self.size:
            self.size, spins = size, 10 if size <= available() else 0
            spins = 1000 if 2 * size <= available() else spins
            word[self.address + SPINS] = spins
            word[self.address + YIELDS], word[self.address + ALERT] = 3, spins + 3

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
            members = row_of(shape, rank, names)
            if members[0] in found and rank in found:
                continue
            memory, group = lines((SLOTS + len(members) * SLOT) // 8)
            entries, first = lines(2 * len(members))
            word[group + SIZE], word[group + HALL] = len(members), self.address
            for number, member in enumerate(members):
                found[member] = first + 16 * number
                word[found[member]], word[found[member] + 8] = group, number
                self.beds.append(locked())
                word[group + SLOTS + number * SLOT + NAPS + 8] = self.beds[-1]
            self.groups[group] = members
            self.kept += memory, entries
        return found

    def fail(self, error):
        """Keep the first error, and release all who wait."""
        with self.lock:
            self.error = self.error or error
        self.noted(error)
        put(self.address + POISON, 1)

    def judge(self, entry, strangers):
        """Raise if it is time to give up; called by a replica that waits."""
        if entry == 0:  # it waits for the end
            return
        group, number = word[entry], word[entry + 8]
        members = self.groups[group]
        slots = [group + SLOTS + i * SLOT for i in range(len(members))]
        turns = [word[slot + ARRIVALS] for slot in slots]
        mine = turns[number]
        labels = [word[slot + LABEL + 8 * (mine & 1)] for slot in slots]
        if strangers:
            names = [told[label & KIND] for label in labels]
            raise RuntimeError(strangers_met(dict(zip(members, names))))
        now = time.monotonic()
        before = self.since.get(entry, (None, now))
        if before[0] != mine:
            self.since[entry] = mine, now
            return
        arrived = [m for m, turn in zip(members, turns) if turn >= mine]
        label, here.line = told[labels[number] & KIND], told[labels[number] >> 32]
        if now - before[1] >= self.timeout:
            raise replicas_missing(members, arrived, label, self.timeout)
        if now - before[1] >= WARNING and not self.warned:
            self.warned = True
            missing = [str(m) for m in members if m not in arrived]
            warnings.warn(
                f"{label} has waited {WARNING:g} s for replica {', '.join(missing)}; "
                f"it gives up after {self.timeout:g} s.",
                stacklevel=2,
            )


def patient(hall):
    """Return the function that machine code calls now and then while it waits."""

    def answer(entry, why, place):
        try:
            if hall().error is None:
                hall().judge(entry, why)
            word[place] = int(hall().error is not None)
        except BaseException as error:
            hall().fail(error)

    return answer


def _contexts(program):
    """Return the context of one call by a replica that is a thread of Python."""
    replica = replica_here(program.asked[0][0])
    run = replica.run
    with run.lock:
        if run.hall is None:
            run.hall = Hall(run.note)
            run.hall.expect(run.size)
    if run.error is not None:
        raise Released
    entries = [run.hall.entry(run.shape, replica.rank, x) for x in program.asked]
    return table([*program.context, *entries])


contexts.value = _contexts


class Team:
    """Threads that are replicas of one program after the other.

    Attributes:
      hall: where they meet.
      threads: the list of them; the one that calls is a replica, too.
      seated: the `Sitting` whose addresses are in their lines.
    """

    def __init__(self):
        self.library = exchange_library()
        self.memory, self.address = lines((WORKERS + LINE * MOST) // 8)
        self.hall, self.threads, self.owner = Hall(), [], os.getpid()
        self.seated = None
        word[self.address + THEIRS] = self.hall.address
        word[self.address + WORKERS + BED] = locked()
        word[self.hall.address + KERNELS] = pool().address
        self.conduct = self._function("conduct", 2)

    def _function(self, name, arity):
        kind = ctypes.CFUNCTYPE(*[ctypes.c_int64] * (1 + arity))
        function = kind(self.library.place(name))
        function.library = self.library  # the code stays as long as it can be called
        return function

    def grow(self, size):
        """Have threads for so many replicas."""
        while len(self.threads) + 1 < size:
            me = self.address + WORKERS + LINE * (len(self.threads) + 1)
            word[me + BED] = locked()
            attend, name = self._function("attend", 2), f"replica-{len(self.threads)}"
            thread = threading.Thread(
                target=attend, args=(self.address, me), name=name, daemon=True
            )
            thread.start()
            self.threads.append(thread)

    def stop(self):
        """Have the threads leave, and wait until they have left."""
        if os.getpid() == self.owner:
            word[self.address + STOP] = 1
            self._function("rouse", 2)(self.address, len(self.threads))
            for thread in self.threads:
                thread.join()


_teams: list = []  # those that have nothing to do
_all: list = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_teams.clear)


def hired():
    """Return a `Team` that has nothing to do."""
    try:
        return _teams.pop()
    except IndexError:
        pass
    with uninterrupted():
        _all.append(Team())
        atexit.register(_all[-1].stop)
    return _all[-1]


def dismissed(team):
    """Let a team be hired again."""
    _teams.append(team)


# Programs in parts, from one meeting of the replicas to the next.

SHORT = 60_000  # nanoseconds that several threads would save at most


def meets(step):
    """Return whether replicas meet in a step."""
    return isinstance(step, MEETS) and getattr(step, "how", None) != "index"


def parted_at_meetings(steps):
    """Return steps in parts that end with a meeting, and each meeting once more.

    There are none if a branch or a loop holds a meeting, or if the table of many arrays
    that meet is too long to stay.
    """
    parts: list = [[]]
    for step in steps:
        parts[-1].append(step)
        if meets(step) and type(step) in MEETS:
            parts += [[step], []]
        elif any(map(meets, walk([step]))):
            return []
        if len(getattr(step, "parts", ())) * ROW > 2 * SMALL:
            return []
    return [part for part in parts if part]


def time_of_step(step, target):
    """Return about how many nanoseconds one thread takes for a step."""
    if type(step) is Launch:
        return time_of_kernel(step.kernel, target)
    if type(step) in MEETS:
        return sum(map(nbytes, [*step.reads, *step.writes])) / target.bandwidth
    return nanoseconds_of(LoweredProgram([], [], [], [step]))


def time_in_turn(program):
    """Return about how many nanoseconds one thread takes for all replicas."""
    executable = program.executable
    steps, target = executable.lowered.steps, executable.target
    return program.size * sum(time_of_step(step, target) for step in steps)


def takes_turns(program):
    """Return whether one thread runs all replicas, as more would save too little."""
    size, time = program.size, time_in_turn(program)
    save = time - time / min(size, available())
    return size == 1 or bool(program.executable.parts) and save <= SHORT


cut_at_meetings.value = parted_at_meetings


# Programs of a mesh on teams: addresses in, one call, addresses out.

FEW = 4096  # bytes


class Sitting:
    """A program of a mesh in memory: the addresses that its replicas are given.

    Args:
      program: the `MeshProgram`.
      hall: the `Hall` where they meet.

    Attributes:
      memory: the tables of addresses of all replicas, one after the other.
      groups: the hall's, when the contexts were made.
      block: how many bytes of the arena each replica has.
    """

    def __init__(self, program, hall):
        self.hall, self.executable = hall, program.executable
        self.size, self.shape = program.size, program.mesh.shape
        self.width = len(program.in_shardings) + len(program.block_avals)
        self.memory = (ctypes.c_int64 * (self.size * self.width))()
        self.groups, self.block = None, -(-self.executable.plan.arena // 64) * 64

    def make_contexts(self):
        """Make the context of each replica, for the groups that the hall has now."""
        asked, given = self.executable.asked, [*self.executable.context]
        rows = [
            [*given, *[self.hall.entry(self.shape, rank, names) for names in asked]]
            for rank in range(self.size)
        ]
        self.contexts = np.array([[x or 0 for x in row] for row in rows], np.int64)
        self.groups = self.hall.entries

    def run(self, shares, avals):
        """Return for each result the blocks of all replicas."""
        memory, width, size, held = self.memory, self.width, self.size, []
        for i, share in enumerate(shares):
            share = list(map(settled, share))
            memory[i::width] = list(map(start_of, share))
            held.append(share)
        wholes = [room_for((size, *aval.shape), aval.dtype) for aval in avals]
        for i, array in enumerate(wholes, len(shares)):
            first, step = start_of(array), array.nbytes // size
            memory[i::width] = [first + step * rank for rank in range(size)]
        space = scratch(size * self.block)
        self.carry_out(start_of(space))
        for array in wholes:
            array.flags.writeable = False
        return [tuple(parts_in(array)) for array in wholes]


class Turns(Sitting):
    """A program whose replicas are run in turn, by the thread that calls.

    Args:
      program: the `MeshProgram`.
      way: 1, or -1 if the addresses of each replica lie before those of the last one.

    Attributes:
      table: what `take_turns` is given.
      nanoseconds: about how long all of them take.
    """

    def __init__(self, program, way=1):
        super().__init__(program, Hall())
        self.make_contexts()
        parts = ["program"] if self.size == 1 else self.executable.parts
        place = self.executable.library.engine.get_function_address
        self.parts = np.array(list(map(place, parts)), np.int64)
        self.nanoseconds = int(time_in_turn(program))
        words = {
            IN_HALL: self.hall.address, FIRST: BRING if len(parts) > 1 else 0,
            PARTS: start_of(self.parts), CONTEXTS: start_of(self.contexts),
            PARTS_END: start_of(self.parts) + self.parts.nbytes,
            CONTEXTS_END: start_of(self.contexts) + self.contexts.nbytes,
            SIZE_OF_CONTEXT: self.contexts.strides[0],
            SIZE_OF_ROW: way * 8 * self.width, SIZE_OF_SPACE: self.block,
        }  # fmt: skip
        self.table = (ctypes.c_int64 * (TURNS // 8))()
        for place, value in words.items():
            self.table[place // 8] = value

    def carry_out(self, arena):
        """Run all replicas."""
        memory, table = map(ctypes.addressof, (self.memory, self.table))
        turn_taker(self.nanoseconds > 20_000)(memory, arena, table)


@made_once
def turn_taker(long):
    """Return the function that runs replicas in turn; a long one lets Python go on."""
    kind = ctypes.CFUNCTYPE if long else ctypes.PYFUNCTYPE
    return kind(*[ctypes.c_int64] * 4)(exchange_library().place("take_turns"))


class TeamSitting(Sitting):
    """A program in the memory of a team.

    Args:
      team: the `Team`.
      program: the `MeshProgram`.
    """

    def __init__(self, team, program):
        super().__init__(program, team.hall)
        self.team, self.arena = team, 0

    def sit_down(self):
        """Put addresses into the lines of the team."""
        if self.groups is not self.hall.entries:
            self.make_contexts()
        word[self.team.address + PROGRAM] = self.executable.address
        memory, contexts = ctypes.addressof(self.memory), start_of(self.contexts)
        for rank in range(self.size):
            me = self.team.address + WORKERS + rank * LINE
            word[me + MEMORY] = memory + 8 * self.width * rank
            word[me + CONTEXT] = contexts + self.contexts.strides[0] * rank
        self.team.seated, self.arena = self, 0

    def carry_out(self, arena):
        """Have the team run all replicas."""
        if self.team.seated is not self or self.groups is not self.hall.entries:
            self.sit_down()
        if arena != self.arena:
            self.arena = arena
            for rank in range(self.size):
                me = self.team.address + WORKERS + rank * LINE
                word[me + ARENA] = arena + rank * self.block
        self.hall.expect(self.size)
        if self.team.conduct(self.team.address, self.size - 1):
            self.give_up()

    def give_up(self):
        """Raise the first error of the run."""
        error = self.hall.error
        self.hall.clear()
        raise error or KeyboardInterrupt


def room_for(shape, dtype):
    """Return an array with arbitrary numbers; large ones are used again."""
    few = math.prod(shape) * dtype.itemsize <= FEW
    return np.empty(shape, dtype) if few else empty(shape, dtype)


def parts_in(whole):
    """Return the parts of an array along its first axis, as arrays."""
    if whole.ndim > 1:
        return list(whole)
    return [whole[i, ...] for i in range(len(whole))]


class InTurn(list):
    """How a program is run whose replicas take turns: the `Turns` that are free."""

    def __call__(self, program, shares):
        """Return for each result the blocks of all replicas."""
        try:
            turns = self.pop()
        except IndexError:
            turns = Turns(program)
        try:
            return turns.run(shares, program.block_avals)
        finally:
            self.append(turns)


class ByTeams:
    """How a program is run by teams.

    Attributes:
      last: its `TeamSitting` in the team that ran it last.
    """

    last: Any = None

    def __call__(self, program, shares):
        """Return for each result the blocks of all replicas."""
        team, sitting = hired(), self.last
        try:
            if sitting is None or sitting.team is not team:
                team.grow(program.size)
                self.last = sitting = TeamSitting(team, program)
            return sitting.run(shares, program.block_avals)
        finally:
            dismissed(team)


def seat_of(program):
    """Return how a `MeshProgram` is run, or False if Python runs it."""
    executable = program.executable
    if getattr(executable, "asked", None) is None or executable.host.steps:
        return False
    if program.size > MOST or not exchange_library():
        return False
    return InTurn() if takes_turns(program) else ByTeams()


def run_natively(program, shares):
    """Return for each result of a `MeshProgram` the blocks of all replicas."""
    if program.seat is None:
        program.seat = seat_of(program)
    if program.seat is False:
        return in_python(program, shares)
    return program.seat(program, shares)


def entry_of(program):
    """Return the `Entry` of a `MeshProgram` whose replicas take turns, or None."""
    avals = [*program.in_avals, *program.block_avals]
    if not isinstance(program.seat, InTurn) or not all(x.dtype.itemsize for x in avals):
        return None
    turns, outs = Turns(program, -1), (program.out_avals, program.out_placements)
    ends = program.in_avals, program.block_avals, *outs, turns
    return Entry(
        exchange_library().place("take_turns"), program.size * turns.block,
        ctypes.addressof(turns.table), turns.nanoseconds,
        (None,) * len(program.out_avals), Cuts(program.size, *ends),
    )  # fmt: skip


running.value, entries.value = run_natively, entry_of


# Calls like the one before: they go straight to the program of their mesh.

_recent = cache_by_object()
_calls = dynamic_variable("calls", None)  # what ran on a mesh during a call
LEAF = tree_flatten(0)[1]


def _note(program, args, results):
    """Note that a program has run on a mesh; return its results."""
    if (calls := in_force(_calls).value) is not None:
        calls.append((program, args, results))
    return results


class Known(NamedTuple):
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
        if watchers or values is not around[0] or overrides is not around[1]:
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


class Recent:
    """A function that keeps its last call, if all that took was arrays.

    Args:
      function: it does no more than to run a program on a mesh.
    """

    def __init__(self, function):
        self.function, self.known = function, None
        _recent[self] = self  # `clear_caches` clears it

    def clear(self):
        """Forget the call."""
        self.known = None

    def unlock(self):
        """Do nothing after a fork: there is no lock."""

    def first(self, args, kwargs):
        """Return the result of a call, and keep the call if it can be made again."""
        with Extent(_calls, []) as calls:
            result = self.function(*args, **kwargs)
        if len(calls) == 1 and not kwargs and type(current_trace()) is EvalTrace:
            self.keep(args, result, *calls[0])
        return result

    def keep(self, args, result, program, operands, results):
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
            self.known = Known(around, tree, avals, placements, *ends)


def _same(some, others):
    """Return whether lists hold the same objects."""
    return len(some) == len(others) and all(x is y for x, y in zip(some, others))


def _flat(args):
    """Return the leaves of arguments and their tree; it is None for arrays alone."""
    for x in args:
        if type(x) is not ArrayImpl:
            return tree_flatten(args)
    return args, None


class QuickFunction(Recent):
    """A function whose calls go straight to a program, through the gate if they can."""

    __slots__ = ("_gate",)
    __signature__ = signature_of_wrapped

    def __init__(self, function):
        update_wrapper(self, function)  # first, as it copies attributes
        super().__init__(function)
        self._ready = Records(self)
        self._gate = self._ready.head

    def __call__(self, /, *args, **kwargs):
        known, leaves = self.known, None
        if known is not None and not kwargs:
            leaves = known.leaves(args)
        if leaves is None:
            return self.first(args, kwargs)
        result = known.run(leaves)
        self._ready.offer(known.program, leaves, self._record, known, args)
        return result

    def _record(self, program, known, args):
        avals, places = known.avals, known.placements
        alike = map(lies_like, places, program.in_placements, [x.ndim for x in avals])
        if known.consts or not all(alike):
            return None
        entry = entries.value(program)
        if not is_plain(entry, places[0]):
            return None
        trees, out_tree = list(map(tree_structure, args)), known.out_tree or LEAF
        ends = entry.cuts.out_avals, entry, program, places
        around = open_gate(QuickFunction)
        return record_table(around, trees, {}, avals, out_tree, *ends)

    def __get__(self, instance, owner=None):
        return self if instance is None else MethodType(self, instance)

    def __repr__(self):
        return f"<QuickFunction of {self.function!r}>"

    def __reduce__(self):
        return self.__qualname__  # as a function, by its name


send_through_gate(QuickFunction)
noted.value, quickly.value = _note, QuickFunction
