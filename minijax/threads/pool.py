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
from minijax.dispatch.interrupts import defer_interrupts
from minijax.dispatch.word_language import (
    LowLevelLibrary,
    call_pointer,
    function_pointer,
    i64,
    llvm_text,
)
from minijax.llvm.targets import host_target
from minijax.matmul.gemm import packed_panel_bytes
from minijax.rematerialization.caching import KeyedCache
from minijax.threads.atomics import (
    CACHE_LINE,
    MAX_CORES,
    PoolState,
    WorkerState,
    atomic_exchange,
    atomic_load,
    available_cores,
    ceil_div,
    compare_exchange,
    fetch_add,
    pause_text,
    politely,
    spin_until_changed,
    wait_for_parts,
)

# What the threads of the pool do, in the language of `words`.


def drain(pool, space):
    """Do parts of the task as long as there are some; return how many."""
    count = 0
    left = fetch_add(pool + PoolState.left, -1)
    while left > 0:
        start = (i64[pool + PoolState.count] - left) * i64[pool + PoolState.step]
        end = start + i64[pool + PoolState.step]
        if end > i64[pool + PoolState.size]:
            end = i64[pool + PoolState.size]
        call_pointer(
            i64[pool + PoolState.task], i64[pool + PoolState.args], start, end, space
        )
        fetch_add(pool + PoolState.done, 1)
        count += 1
        left = fetch_add(pool + PoolState.left, -1)
    return count


def offer(pool, task, args, size, step):
    """Put a task there, in parts of some iterations."""
    i64[pool + PoolState.task] = task
    i64[pool + PoolState.args] = args
    i64[pool + PoolState.size] = size
    i64[pool + PoolState.step] = step
    i64[pool + PoolState.count] = ceil_div(size, step)
    atomic_exchange(pool + PoolState.done, 0)
    return atomic_exchange(pool + PoolState.left, i64[pool + PoolState.count])


def park(asleep, watched, known, acquire):
    """Sleep until a word is not the known one any more, or until woken."""
    atomic_exchange(asleep, 1)
    if atomic_load(watched) != known and compare_exchange(asleep, 1, 0) != 0:
        return 0
    return call_pointer(acquire, i64[asleep + 8], 1)


def unpark(pool, most):
    """Wake some of those who sleep."""
    fetch_add(pool + PoolState.generation, 1)
    me = pool + PoolState.workers
    end = me + i64[pool + PoolState.helpers] * CACHE_LINE
    while me < end and most > 0:
        if (
            atomic_load(me + WorkerState.asleep) != 0
            and compare_exchange(me + WorkerState.asleep, 1, 0) != 0
        ):
            lock = i64[me + WorkerState.parking_lock]
            call_pointer(i64[pool + PoolState.release], lock)
            most -= 1
        me += CACHE_LINE
    return 0


def worker_loop(pool, me):
    """Help with tasks until the pool stops; who comes too late sleeps at once."""
    known = 0
    done = 0
    while atomic_load(pool + PoolState.stop) == 0:
        patience = 0
        if done > 0:
            patience = i64[pool + PoolState.spins]
        now = spin_until_changed(pool + PoolState.generation, known, patience)
        if now == known:
            acquire = i64[pool + PoolState.acquire]
            park(me + WorkerState.asleep, pool + PoolState.generation, known, acquire)
            now = atomic_load(pool + PoolState.generation)
        known = now
        done = drain(pool, i64[me + WorkerState.space])
    return 0


def parallel_for(pool, task, args, size, unit, space, each, most):
    """Do a task with the help of the others, if they are free."""
    helpers = i64[pool + PoolState.helpers]
    if helpers == 0 or most < 2 or compare_exchange(pool + PoolState.busy, 0, 1) == 0:
        return call_pointer(task, args, 0, size, space)
    parts = each * (helpers + 1)
    if parts > most:
        parts = most
    offer(pool, task, args, size, ceil_div(ceil_div(size, unit), parts) * unit)
    unpark(pool, i64[pool + PoolState.count] - 1)
    drain(pool, space)
    wait_for_parts(pool)
    return atomic_exchange(pool + PoolState.busy, 0)


# The pool: threads of Python that stay inside of one function of machine code.

TABLE_WORDS = PoolState.workers // 8 + 8 * MAX_CORES  # of the table, in words
SPACE_BYTES = packed_panel_bytes((1, 2**20, 2**20, 2**20), np.dtype("float64"))
PARAMETERS = ", ".join(
    f"i64 %{name}" for name in "abcdefg"
)  # of `parallel_for`, but the pool

# The table is in the memory of the code, so that the text of no program needs to know
# where it is.
TABLE = f"""
@table = internal global [{TABLE_WORDS} x i64] zeroinitializer, align 64
define i64 @table_address() {{
  ret i64 ptrtoint ([{TABLE_WORDS} x i64]* @table to i64)
}}
define i64 @minijax_share({PARAMETERS}) nounwind {{
  %pool = ptrtoint [{TABLE_WORDS} x i64]* @table to i64
  %x = call i64 @parallel_for(i64 %pool, {PARAMETERS})
  ret i64 %x
}}
"""


def pool_text(triple):
    """Return the text of the pool's functions."""
    return pause_text(triple) + llvm_text(unpark, worker_loop, parallel_for) + TABLE


class ThreadPool:
    """Threads that help those who run programs.

    Args:
      threads: how many there are besides the one that runs a program.
    """

    def __init__(self, threads):
        self.library = LowLevelLibrary(pool_text(host_target().triple))
        self.address = self.function("table_address", 0)()
        self.owner, self.workers, self.workspaces, self.parking_locks = (
            os.getpid(),
            [],
            [],
            [],
        )
        self._fill()
        with suppress(RuntimeError):  # there may be no more threads to have
            for number in range(min(threads, MAX_CORES)):
                self._hire(number)
        i64[self.address + PoolState.helpers] = len(self.workers)

    def _fill(self):
        names = "acquire_lock", "release_lock", "acquire_lock_timed"
        places = PoolState.acquire, PoolState.release, PoolState.acquire_timed
        for place, name in zip(places, names):
            function = getattr(ctypes.pythonapi, f"PyThread_{name}")
            i64[self.address + place] = function_pointer(function)
        i64[self.address + PoolState.never] = self._parking_lock()
        i64[self.address + PoolState.spins] = 500
        i64[self.address + PoolState.patience] = 2000

    def _parking_lock(self):
        """Return a lock that is locked."""
        allocate = ctypes.pythonapi.PyThread_allocate_lock
        allocate.restype = ctypes.c_void_p
        self.parking_locks.append(ctypes.c_void_p(allocate()))
        ctypes.pythonapi.PyThread_acquire_lock(self.parking_locks[-1], 1)
        return self.parking_locks[-1].value

    def _hire(self, number):
        me = self.address + PoolState.workers + number * CACHE_LINE
        self.workspaces.append(np.empty(SPACE_BYTES + 64, np.uint8))
        i64[me + WorkerState.parking_lock] = self._parking_lock()
        i64[me + WorkerState.space] = -(-self.workspaces[-1].ctypes.data // 64) * 64
        function, name = self.function("worker_loop", 2), f"minijax-{number}"
        function.library = self.library  # stays as long as a thread is inside
        helper = threading.Thread(
            target=politely, args=(function, self.address, me), name=name, daemon=True
        )
        helper.start()
        self.workers.append(helper)

    def function(self, name, arity):
        """Return a function of words; it gives Python's lock away while it runs."""
        kind = ctypes.CFUNCTYPE(*[ctypes.c_int64] * (1 + arity))
        return kind(self.library.place(name))

    def forget(self):
        """Go on alone: in a new process, the helpers are not there."""
        i64[self.address + PoolState.helpers] = 0

    def stop(self):
        """Have the helpers leave, and wait until they have left."""
        if os.getpid() != self.owner:
            return
        i64[self.address + PoolState.stop] = 1
        self.function("unpark", 2)(self.address, MAX_CORES)
        self.forget()
        for helper in self.workers:
            helper.join()


def parallel_for_address():
    """Return the address of ``minijax_share``, or None if there can be no pool.

    That is where the text of its functions is not there, or Python's locks are not.
    """
    with suppress(OSError, AttributeError):
        return thread_pool().library.place("minijax_share")
    return None


_made, _process = KeyedCache(), os.getpid()


def thread_pool():
    """Return the pool of the process; it is made when it is first needed.

    A process that comes from a fork is alone.
    """
    return _made.get("pool", _new_pool)


def _new_pool():
    threads = config.minijax_num_threads or available_cores()
    with defer_interrupts():
        made = ThreadPool(threads - 1 if os.getpid() == _process else 0)
        atexit.register(made.stop)
    return made


def _go_on_alone():
    _made.unlock()
    for made in _made.values.values():
        made.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_go_on_alone)
