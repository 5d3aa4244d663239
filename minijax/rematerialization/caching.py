"""Memoisation: things made once for a key, and for as long as a program lives.

Reference: the caches of ``jax.jit``, ``jax.clear_caches``.
"""

# Made from chapters/11_own_rules_ground.md by `make chapter`;
# edit the chapter, not this file.

import os
from contextlib import AbstractContextManager
from dataclasses import fields
from functools import cache, partial, wraps
from itertools import count
from threading import Lock, RLock
from typing import Any
from weakref import WeakKeyDictionary, ref

import numpy as np

from minijax.arrays.dtypes import _on_or_off, config
from minijax.core import current_trace
from minijax.diagnostics.tracebacks import source_line_readers, user_line
from minijax.jaxprs.jaxpr import source_info_hook

SWITCHES = """
    jax_disable_jit jax_explain_cache_misses jax_log_compiles jax_no_tracing
""".split()
for _switch in SWITCHES:
    config.define(_switch, os.environ.get(_switch.upper(), "0"), _on_or_off)


class KeyedCache:
    """A dictionary whose values are made when they are first asked for, each once.

    Threads that ask for one key at the same time wait for the first of them.

    Attributes:
      values: the values by key, the oldest first.
      limit: the number of values that are kept.
      cleared, refused: whether values were thrown away, or not kept, by now.
    """

    limit = 4096

    def __init__(self):
        self.values, self.cleared, self.refused = {}, False, False
        self._making, self._lock = {}, Lock()

    def get(self, key, make, keep=lambda value: True):
        """Return the value of `key`, which ``make()`` makes if it is not there.

        Args:
          key: anything hashable.
          make: function without arguments.
          keep: from the value to whether it may be used again.
        """
        if (value := self.values.get(key)) is not None:
            return value
        with self.lock_for(key):
            if (value := self.values.get(key)) is None:
                value = make()
                self.insert(key, value, keep(value))
        return value

    def lock_for(self, key):
        """Return the lock of a key, which lives as long as somebody wants it.

        Who holds it, in a ``with`` block, is alone in making the value. Programs are
        made within programs: a block takes no call of ours on Python's stack, of which
        there are a thousand, and the lock of an interrupted block is released.
        """
        with self._lock:
            making = {k: lock for k, lock in self._making.items() if lock() is not None}
            lock = (making[key]() if key in making else None) or RLock()
            making[key] = ref(lock)
            self._making = making
        return lock

    def insert(self, key, value, may_keep=True):
        """Keep a value if it may be used again."""
        if may_keep:
            self.put(key, value)
        else:
            self.refused = True

    def put(self, key, value):
        """Keep a value, in place of the oldest if there are too many."""
        with self._lock:
            if len(self.values) >= self.limit:
                del self.values[next(iter(self.values))]
            self.values[key] = value

    def clear(self):
        """Forget all values."""
        with self._lock:
            self.cleared = self.cleared or bool(self.values)
            self.values.clear()

    def unlock(self):
        """Forget who is making what: after a fork, no other thread is there."""
        self._making, self._lock = {}, Lock()


# What `clear_caches` empties: dictionaries from an object to its `KeyedCache`.
all_caches = []


def weakref_cache():
    """Return a dictionary that forgets an object that is held nowhere else."""
    all_caches.append(WeakKeyDictionary())
    return all_caches[-1]


def cache_for_object(cache, key):
    """Return the `KeyedCache` that a `weakref_cache` has for an object."""
    return cache.get(key) or cache.setdefault(key, KeyedCache())


def memoize(make):
    """Return a function whose results are made once for its arguments, and stay.

    Threads that ask at the same time get the same object: others may hold its address,
    or compare it by identity.
    """
    kept = weakref_cache()

    @cache
    @wraps(make)
    def made(*key):
        return cache_for_object(kept, make).get(key, lambda: (make(*key),))[0]

    return made


# The switches that change what tracing writes down.
trace_context_switches: list[str] = """
    jax_enable_x64 jax_disable_jit jax_numpy_dtype_promotion jax_numpy_rank_promotion
    jax_default_matmul_precision
""".split()


def trace_context():
    """Return what tracing depends on, besides the function and its arguments.

    It is the pair of the values of `trace_context_switches` and of the named axes
    around.
    """
    switches = tuple([getattr(config, name) for name in trace_context_switches])
    axes, trace = [], current_trace()
    while trace is not None:
        axis = getattr(trace, "axis", None)
        if axis is not None and axis.name is not None:
            axes.append(axis)
        trace = trace.parent
    return switches, tuple(axes)


_numbers = count(1)


class _UserContext:
    """A value that differs in blocks of a thread, and on which programs depend.

    Args:
      default_value: the value outside of all blocks; it has a hash.
    """

    def __init__(self, default_value):
        self._name = f"user_context_{next(_numbers)}"
        config.define(self._name, default_value, _with_hash)
        trace_context_switches.append(self._name)

    value = property(lambda self: getattr(config, self._name))

    def __call__(self, new_value: Any) -> AbstractContextManager[None]:
        """Return a block, or decorator, in which the value is another."""
        return config.override(self._name, new_value)


def _with_hash(value):
    hash(value)
    return value


def make_user_context(default_value: Any = None) -> _UserContext:
    """Return a value of the user's own that functions may read while they are traced.

    ``context.value`` is the value, and ``with context(other):`` sets another one for a
    block of this thread. A jitted function is traced anew for each value.

    Args:
      default_value: the value outside of all blocks. Values have a hash.

    Raises:
      TypeError: if it has none.

    Reference: ``jax.make_user_context``.
    """
    return _UserContext(default_value)


def weakref_memoize(make):
    """Keep what ``make(closed, *key)`` returns for as long as the program lives."""
    kept = weakref_cache()

    @wraps(make)
    def made(closed, *key):
        once = cache_for_object(kept, closed)
        full_key = key, trace_context()
        if (value := once.values.get(full_key)) is not None:
            return value
        with once.lock_for(full_key):
            if (value := once.values.get(full_key)) is None:
                value = make(closed, *key)
                once.insert(full_key, value)
        return value

    source_line_readers.add(made, keeps=True)
    return made


# An equation has the line that asked for it, unless callers share its program.
source_info_hook.value = partial(user_line, to_keep=True)


_FLOATS, _INTEGERS = (float, complex), frozenset([int])


def cache_key_of_value(x):
    """Return a part of a key; two are equal if types and values are, bit by bit.

    0.0, -0.0, 0 and False have four keys, and NaN has one for each pattern of bits.
    Parts of tuples and frozen sets are told apart in the same way, and the fields that
    a dataclass compares, where these have a hash. Other values are asked by ``==``.

    Args:
      x: anything with a hash; tuples may hold others.
    """
    return type(x), _exactly(x)


def cache_key_of_params(params):
    """Return a part of a key for parameters of a primitive: `cache_key_of_value`."""
    return tuple([(name, type(x), _exactly(x)) for name, x in params.items()])


def _exactly(x):
    """Return what says which one of its type a value is."""
    if isinstance(x, tuple) and not _INTEGERS.issuperset(map(type, x)):
        return tuple([(type(part), _exactly(part)) for part in x])
    if isinstance(x, np.generic):
        return x.dtype, x.tobytes()  # a date's unit is in its dtype
    if isinstance(x, _FLOATS):
        return np.asarray(x).tobytes()
    if type(x) is frozenset:
        return frozenset(map(cache_key_of_value, x))
    return _with_fields(x) if hasattr(type(x), "__dataclass_fields__") else x


def _with_fields(x):
    """Return a dataclass, and the exact values of the fields that it compares."""
    if not type(x).__dataclass_params__.eq:
        return x
    chosen = [field for field in fields(x) if field.compare and hasattr(x, field.name)]
    values = tuple([cache_key_of_value(getattr(x, field.name)) for field in chosen])
    try:
        hash(values)
    except TypeError:  # its own hash leaves such a field out
        return x
    return x, values
