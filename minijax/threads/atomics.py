"""Operations on words that several threads see; spinning; cores of a process.

In machine code each of them is atomic, and all threads see them in one order; as
Python, they take turns.

What several threads write has lines of the cache of its own.

Reference: the LLVM Atomic Instructions and Concurrency Guide,
https://llvm.org/docs/Atomics.html.
"""

# Made from chapters/27_threads_ground.md by `make chapter`;
# edit the chapter, not this file.

import os
import threading
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

from minijax.arrays.dtypes import config
from minijax.dispatch.word_language import INTRINSICS, call_pointer, i64
from minijax.llvm.instructions import FunctionBuilder, declaration

# Operations on words that several threads see at once.

_one_at_a_time = threading.RLock()


def fetch_add(address, number):
    """Add a number to a word; return what was there before."""
    with _one_at_a_time:
        before = i64[address]
        i64[address] = before + number
        return before


def atomic_load(address):
    """Return a word, and with it all that was written before it was put there."""
    with _one_at_a_time:
        return i64[address]


def atomic_exchange(address, value):
    """Write a word, behind all that was written before; return what was there."""
    with _one_at_a_time:
        before, i64[address] = i64[address], value
        return before


def compare_exchange(address, old, new):
    """Write a word if an old one is there; return whether it was."""
    with _one_at_a_time:
        same = i64[address] == old
        i64[address] = new if same else i64[address]
        return int(same)


def ceil_div(x, y):
    """Return x / y, rounded up; `x` is not negative, and `y` is positive."""
    return -(-x // y)


def spin_pause():
    """Tell the processor that we wait."""
    return 0


POINTER = "p = inttoptr i64 {x} to i64*; "
CMPXCHG_TEXT = "cmpxchg i64* {p}, i64 {y}, i64 {z} seq_cst seq_cst"

# What they are in machine code.
INTRINSICS |= {
    fetch_add: POINTER + "atomicrmw add i64* {p}, i64 {y} seq_cst",
    atomic_load: POINTER + "load atomic i64, i64* {p} seq_cst, align 8",
    atomic_exchange: POINTER + "atomicrmw xchg i64* {p}, i64 {y} seq_cst",
    compare_exchange: f"{POINTER}pair = {CMPXCHG_TEXT}; "
    "same = extractvalue {{ i64, i1 }} {pair}, 1; zext i1 {same} to i64",
    spin_pause: "call i64 @pause()",
    ceil_div: "more = sub i64 {y}, 1; sum = add i64 {x}, {more}; udiv i64 {sum}, {y}",
}

# How a processor is told that we wait: a call, where LLVM has a function for it.
PAUSES = {
    ("x86_64", "amd64"): "void @llvm.x86.sse2.pause()",
    ("aarch64", "arm64"): "void @llvm.aarch64.hint(i32 1)",
}


def pause_text(triple):
    """Return the text of `spin_pause` for a system."""
    f = FunctionBuilder()
    for names, call_of_c in PAUSES.items():
        if triple.startswith(names):
            f.line(f"call {call_of_c}")
            f.declare(declaration(f"call {call_of_c}"))
    lines = "\n".join(["define internal i64 @pause() {", *f.lines, "  ret i64 0", "}"])
    return "\n".join([lines, *f.needed.values(), ""])


# The table of the pool: where its words are, in bytes from its start.

CACHE_LINE = 64  # of the cache, in bytes

# What all threads share, in front of the helpers, with a line for each of them.
PoolState = SimpleNamespace(
    left=0, done=64, generation=128,
    task=192, args=200, size=208, step=216, count=224,
    busy=256,
    helpers=320, stop=328, spins=336, patience=344,
    acquire=352, release=360, acquire_timed=368, never=376,
    workers=384,
)  # fmt: skip
WorkerState = SimpleNamespace(asleep=0, parking_lock=8, space=16)


# Spinning: to look at a word that another thread will change.


def spin_until_changed(address, known, patience):
    """Look some times until a word is not the known one any more; return it."""
    spins = 0
    now = atomic_load(address)
    while now == known and spins < patience:
        spin_pause()
        spins += 1
        now = atomic_load(address)
    return now


def wait_for_parts(pool):
    """Wait until all parts are done."""
    spins = 0
    while atomic_load(pool + PoolState.done) < i64[pool + PoolState.count]:
        if spins < i64[pool + PoolState.patience]:
            spin_pause()
            spins += 1
        else:
            call_pointer(
                i64[pool + PoolState.acquire_timed], i64[pool + PoolState.never], 50, 0
            )
    return 0


# How many cores a process may use, and how a helper behaves on a busy one.

MAX_CORES = 256  # threads at most
CPU_LIMIT = Path("/sys/fs/cgroup/cpu.max")


def available_cores():
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    else:
        count = os.cpu_count() or 1
    return max(1, min(count, limit_of_container()))


def limit_of_container():
    """Return how many cores' time a container may use, rounded up."""
    with suppress(OSError, ValueError):  # there is no limit, or no container
        time, period = map(int, CPU_LIMIT.read_text().split())
        return -(-time // period)
    return MAX_CORES


def _count(value):
    if not str(value or 0).isdecimal():
        raise ValueError(f"{value!r} is no number of threads.")
    return int(value or 0)


config.define("minijax_num_threads", os.environ.get("MINIJAX_NUM_THREADS", ""), _count)


def politely(function, *args):
    """Call a function, in a thread that does not drive others from their cores."""
    with suppress(AttributeError, OSError):  # not every system knows this
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    return function(*args)
