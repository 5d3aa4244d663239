"""The thread pool: threads that stay inside of one function of machine code.

They do not hold Python's lock there, and sleep when there is nothing to do.
"""

# Made from chapters/27_threads.md by `make chapter`;
# edit the chapter, not this file.

import atexit
import ctypes
import os
import threading
from contextlib import suppress

import numpy as np

from minijax.arrays.dtypes import config
from minijax.dispatch.interrupts import uninterrupted
from minijax.dispatch.lowlevel import (
    WordsLibrary,
    address_of_function,
    call,
    llvm_text,
    word,
)
from minijax.llvm.targets import host_target
from minijax.matmul.gemm import workspace
from minijax.rematerialization.caching import Once
from minijax.threads.atomics import (
    LINE,
    MOST,
    Helper,
    Shared,
    added,
    available,
    finish,
    pause_text,
    politely,
    put,
    quotient,
    seen,
    swapped,
    watch,
)

# What the threads of the pool do, in the language of `words`.


def drain(pool, space):
    """Do parts of the task as long as there are some; return how many."""
    count = 0
    left = added(pool + Shared.left, -1)
    while left > 0:
        start = (word[pool + Shared.count] - left) * word[pool + Shared.step]
        end = start + word[pool + Shared.step]
        if end > word[pool + Shared.size]:
            end = word[pool + Shared.size]
        call(word[pool + Shared.task], word[pool + Shared.args], start, end, space)
        added(pool + Shared.done, 1)
        count += 1
        left = added(pool + Shared.left, -1)
    return count


def offer(pool, task, args, size, step):
    """Put a task there, in parts of some turns."""
    word[pool + Shared.task] = task
    word[pool + Shared.args] = args
    word[pool + Shared.size] = size
    word[pool + Shared.step] = step
    word[pool + Shared.count] = quotient(size, step)
    put(pool + Shared.done, 0)
    return put(pool + Shared.left, word[pool + Shared.count])


def rest(asleep, watched, known, acquire):
    """Sleep until a word is not the known one any more, or until woken."""
    put(asleep, 1)
    if seen(watched) != known and swapped(asleep, 1, 0) != 0:
        return 0
    return call(acquire, word[asleep + 8], 1)


def wake(pool, most):
    """Wake some of those who sleep."""
    added(pool + Shared.generation, 1)
    me = pool + Shared.workers
    end = me + word[pool + Shared.helpers] * LINE
    while me < end and most > 0:
        if seen(me + Helper.asleep) != 0 and swapped(me + Helper.asleep, 1, 0) != 0:
            call(word[pool + Shared.release], word[me + Helper.bed])
            most -= 1
        me += LINE
    return 0


def work(pool, me):
    """Help with tasks until the pool stops; who comes too late sleeps at once."""
    known = 0
    done = 0
    while seen(pool + Shared.stop) == 0:
        patience = 0
        if done > 0:
            patience = word[pool + Shared.spins]
        now = watch(pool + Shared.generation, known, patience)
        if now == known:
            acquire = word[pool + Shared.acquire]
            rest(me + Helper.asleep, pool + Shared.generation, known, acquire)
            now = seen(pool + Shared.generation)
        known = now
        done = drain(pool, word[me + Helper.space])
    return 0


def share(pool, task, args, size, unit, space, each, most):
    """Do a task with the help of the others, if they are free."""
    helpers = word[pool + Shared.helpers]
    if helpers == 0 or most < 2 or swapped(pool + Shared.busy, 0, 1) == 0:
        return call(task, args, 0, size, space)
    parts = each * (helpers + 1)
    if parts > most:
        parts = most
    offer(pool, task, args, size, quotient(quotient(size, unit), parts) * unit)
    wake(pool, word[pool + Shared.count] - 1)
    drain(pool, space)
    finish(pool)
    return put(pool + Shared.busy, 0)


# The pool: threads of Python that stay inside of one function of machine code.

TABLE_WORDS = Shared.workers // 8 + 8 * MOST  # of the table, in words
SPACE_BYTES = workspace((1, 2**20, 2**20, 2**20), np.dtype("float64"))
PARAMETERS = ", ".join(f"i64 %{name}" for name in "abcdefg")  # of `share`, but the pool

# The table is in the memory of the code, so that the text of no program needs to know
# where it is.
TABLE = f"""
@table = internal global [{TABLE_WORDS} x i64] zeroinitializer, align 64
define i64 @table_address() {{
  ret i64 ptrtoint ([{TABLE_WORDS} x i64]* @table to i64)
}}
define i64 @minijax_share({PARAMETERS}) nounwind {{
  %pool = ptrtoint [{TABLE_WORDS} x i64]* @table to i64
  %x = call i64 @share(i64 %pool, {PARAMETERS})
  ret i64 %x
}}
"""


def pool_text(triple):
    """Return the text of the pool's functions."""
    return pause_text(triple) + llvm_text(wake, work, share) + TABLE


class Pool:
    """Threads that help those who run programs.

    Args:
      threads: how many there are besides the one that runs a program.
    """

    def __init__(self, threads):
        self.library = WordsLibrary(pool_text(host_target().triple))
        self.address = self.function("table_address", 0)()
        self.owner, self.helpers, self.spaces, self.beds = os.getpid(), [], [], []
        self._fill()
        with suppress(RuntimeError):  # there may be no more threads to have
            for number in range(min(threads, MOST)):
                self._hire(number)
        word[self.address + Shared.helpers] = len(self.helpers)

    def _fill(self):
        names = "acquire_lock", "release_lock", "acquire_lock_timed"
        places = Shared.acquire, Shared.release, Shared.acquire_timed
        for place, name in zip(places, names):
            function = getattr(ctypes.pythonapi, f"PyThread_{name}")
            word[self.address + place] = address_of_function(function)
        word[self.address + Shared.never] = self._bed()
        word[self.address + Shared.spins] = 500
        word[self.address + Shared.patience] = 2000

    def _bed(self):
        """Return a lock that is locked."""
        allocate = ctypes.pythonapi.PyThread_allocate_lock
        allocate.restype = ctypes.c_void_p
        self.beds.append(ctypes.c_void_p(allocate()))
        ctypes.pythonapi.PyThread_acquire_lock(self.beds[-1], 1)
        return self.beds[-1].value

    def _hire(self, number):
        me = self.address + Shared.workers + number * LINE
        self.spaces.append(np.empty(SPACE_BYTES + 64, np.uint8))
        word[me + Helper.bed] = self._bed()
        word[me + Helper.space] = -(-self.spaces[-1].ctypes.data // 64) * 64
        function, name = self.function("work", 2), f"minijax-{number}"
        function.library = self.library  # stays as long as a thread is inside
        helper = threading.Thread(
            target=politely, args=(function, self.address, me), name=name, daemon=True
        )
        helper.start()
        self.helpers.append(helper)

    def function(self, name, arity):
        """Return a function of words; it gives Python's lock away while it runs."""
        kind = ctypes.CFUNCTYPE(*[ctypes.c_int64] * (1 + arity))
        return kind(self.library.place(name))

    def forget(self):
        """Go on alone: in a new process, the helpers are not there."""
        word[self.address + Shared.helpers] = 0

    def stop(self):
        """Have the helpers leave, and wait until they have left."""
        if os.getpid() != self.owner:
            return
        word[self.address + Shared.stop] = 1
        self.function("wake", 2)(self.address, MOST)
        self.forget()
        for helper in self.helpers:
            helper.join()


def place_of_share():
    """Return the address of ``minijax_share``, or None if there can be no pool.

    That is where the text of its functions is not there, or Python's locks are not.
    """
    with suppress(OSError, AttributeError):
        return pool().library.place("minijax_share")
    return None


_made, _process = Once(), os.getpid()


def pool():
    """Return the pool of the process; it is made when it is first needed.

    A process that comes from a fork is alone.
    """
    return _made.get("pool", _new_pool)


def _new_pool():
    threads = config.minijax_num_threads or available()
    with uninterrupted():
        made = Pool(threads - 1 if os.getpid() == _process else 0)
        atexit.register(made.stop)
    return made


def _go_on_alone():
    _made.unlock()
    for made in _made.values.values():
        made.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_go_on_alone)
