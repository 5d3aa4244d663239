"""The backends whose programs run where the tests have their arrays.

That is one CPU, or the emulated card of `make gpu-check`. Backends that a file of tests
makes for itself, such as those without an annotation, are run by that file alone.
"""

import os

from minijax.jitting.compilation import backends
from tests.commands import LONG

PLATFORM = "gpu" if os.environ.get("MINIJAX_TEST_DEVICE") == "card" else "cpu"
HERE = [
    name
    for name, backend in backends.items()
    if PLATFORM in getattr(backend, "platforms", (PLATFORM,))
    and backend.__module__.startswith("minijax.")
]
# What `jit` compiles with, and the others.
MAIN = "cpu" if "cpu" in HERE else HERE[-1]
OTHERS = [name for name in HERE if name != MAIN]


def in_turn(number, count):
    """The main backend and some others, others for the next number; `LONG=1`: all."""
    if LONG:
        return HERE
    start = number % max(len(OTHERS), 1)
    return [MAIN, *(OTHERS[start:] + OTHERS[:start])[:count]]
