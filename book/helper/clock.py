"""How long a call takes, measured in the same way on every page.

A machine that does something else in between spoils long measurements and leaves most
short ones alone. So calls are timed in batches of at most a fifth of a millisecond, at
least two hundred of them, and the shortest batch counts. Where nobody reads the times,
as in a check of all pages, `MINIJAX_PATIENCE=0` in the environment makes it three.
"""

import linecache
import os
import platform
import sys
import time
from datetime import date
from pathlib import Path

BATCH, BATCHES = 200_000, 200  # ns, batches
PATIENCE = 1e9 * float(os.environ.get("MINIJAX_PATIENCE", "2"))  # ns


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


OTHERWISE = "Here and now the clock says otherwise"


def expect(claim, *about):
    """Say so if what a page claims about time is not true here and now.

    Args:
      claim: a comparison of times, or whatever is true or false.
      *about: what is printed with it, say the name of the row.

    It does not raise: a machine that does something else in between would then make a
    page fail where nothing is wrong. But no page is stored with the sentence that this
    prints (`tests/laws/test_clocks.py`).
    """
    if not claim:
        caller = sys._getframe(1)
        line = linecache.getline(caller.f_code.co_filename, caller.f_lineno).strip()
        print(f"{OTHERWISE}:", *about, line)


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
