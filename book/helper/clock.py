"""How long a call takes, measured in the same way on every page.

A machine that does something else in between spoils long measurements and leaves most
short ones alone. So calls are timed in batches of at most a fifth of a millisecond, at
least two hundred of them, and the shortest batch counts.
"""

import platform
import time
from datetime import date
from pathlib import Path

BATCH, BATCHES, PATIENCE = 200_000, 200, 2_000_000_000  # ns, batches, ns


def microseconds(f, *args, **kwargs):
    """Return the time of one call in microseconds: the least of many short batches.

    Args:
      f: the function; it is called once before anything is measured.
      *args, **kwargs: its arguments.

    A call that takes longer than a batch is a batch by itself; of calls that take so
    long that two hundred of them would try a reader's patience, there are fewer, but
    never fewer than three.
    """
    f(*args, **kwargs)
    count, shortest, begin = 1, _batch(f, args, kwargs, 1), time.perf_counter_ns()
    while shortest * 2 * count < BATCH:
        count *= 2
        shortest = min(shortest, _batch(f, args, kwargs, count))
    for done in range(BATCHES):
        if done >= 3 and time.perf_counter_ns() - begin > PATIENCE:
            break
        shortest = min(shortest, _batch(f, args, kwargs, count))
    return shortest / 1000


def _batch(f, args, kwargs, count):
    """Nanoseconds of one call, from a batch of `count` calls."""
    begin = time.perf_counter_ns()
    for _ in range(count):
        f(*args, **kwargs)
    return (time.perf_counter_ns() - begin) / count


def place():
    """Return the processor and the date of a measurement, to be printed below it."""
    today = date.today()
    return f"({processor()}, {today.day} {today:%B %Y})"


def processor():
    """Return the name of this machine's processor, as its maker writes it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().split("\n")
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if "model name" in line]
    return names[0] if names else platform.processor() or platform.machine()
