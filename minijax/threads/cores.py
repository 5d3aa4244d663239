"""How many cores a process may use, and how a helper behaves on a busy one."""

# Made from chapters/27_threads_ground.md by `make chapter`;
# edit the chapter, not this file.

import os
from contextlib import suppress
from pathlib import Path

from minijax.arrays.settings import config

MOST = 256  # threads at most
CPU_LIMIT = Path("/sys/fs/cgroup/cpu.max")


def available():
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
    return MOST


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
