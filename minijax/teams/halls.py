"""Teams: threads that are replicas, and halls, where those meet who are.

A team's threads have entered one function of machine code for good. A call of a program
is an address that each of them finds in its line, so no Python runs on their side.
"""

# Made from chapters/36_replicas_rest.md by `make chapter`;
# edit the chapter, not this file.

import atexit
import ctypes
import os
import threading
import time
import warnings
import weakref
from contextlib import suppress

import numpy as np

from minijax.arrays.settings import config
from minijax.calls.interruptions import uninterrupted
from minijax.calls.words import address_of_function, word
from minijax.llvm.targets import current_target
from minijax.machine.executables import contexts, table
from minijax.mesh_maps.workers import (
    Released,
    here,
    replica_here,
    replicas_missing,
    strangers_met,
)
from minijax.replicas.rows import row_of
from minijax.teams.exchange_steps import exchange_library
from minijax.teams.labels import told
from minijax.teams.meeting_code import (
    ACQUIRE,
    ACQUIRE_TIMED,
    ALERT,
    ARRIVALS,
    BED,
    CACHED,
    COPY,
    FILL,
    HALL,
    KERNELS,
    KIND,
    LABEL,
    LINE,
    NAPS,
    PAST,
    PATIENCE,
    POISON,
    RELEASE,
    SIZE,
    SLOT,
    SLOTS,
    SPINS,
    STOP,
    THEIRS,
    WORKERS,
    YIELD,
    YIELDS,
)
from minijax.threads.atomics import put
from minijax.threads.cores import available
from minijax.threads.pool import pool

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
