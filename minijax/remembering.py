# Made from chapters/11_jit.md by `make chapter`;
# edit the chapter, not this file.
"""Things made once: for one key at a time, and for as long as a program lives."""

from functools import wraps
from threading import Lock, RLock
from weakref import WeakKeyDictionary

from minijax.core import current_trace
from minijax.settings import config

# The switches that change what tracing writes down.
traced_switches = ["jax_enable_x64"]


def trace_context():
    """Return what tracing depends on, beside the function and its arguments.

    It is the pair of the values of `traced_switches` and of the named axes around.
    """
    switches = tuple([getattr(config, name) for name in traced_switches])
    axes, trace = [], current_trace()
    while trace is not None:
        axis = getattr(trace, "axis", None)
        if axis is not None and axis.name is not None:
            axes.append(axis)
        trace = trace.parent
    return switches, tuple(axes)


class Once:
    """A dictionary whose values are made when they are first asked for, each once.

    Threads that ask for one key at the same time wait for the first of them.
    """

    def __init__(self):
        self.values, self._making, self._lock = {}, {}, Lock()

    def get(self, key, make, keep=lambda value: True):
        """Return the value of `key`, which ``make()`` makes if it is not there.

        Args:
          key: anything hashable.
          make: function without arguments.
          keep: from the value to whether it may be used again.
        """
        if key in self.values:
            return self.values[key]
        with self._lock:
            making = self._making.setdefault(key, RLock())
        with making:
            if key in self.values:
                return self.values[key]
            value = make()
            if keep(value):
                self.values[key] = value
        self._making.pop(key, None)
        return value


# Caches by program, which `minijax.clear_caches` empties.
caches = []


def cache_by_object():
    """Return a dictionary that forgets an object when nobody else holds it."""
    caches.append(WeakKeyDictionary())
    return caches[-1]


def remembered(make):
    """Keep what ``make(closed, *key)`` returns for as long as the program lives."""
    kept = cache_by_object()

    @wraps(make)
    def made(closed, *key):
        once = kept.get(closed) or kept.setdefault(closed, Once())
        return once.get((key, trace_context()), lambda: make(closed, *key))

    return made
