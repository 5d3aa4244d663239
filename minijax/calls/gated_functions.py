# Made from chapters/26_calls_rest.md by `make chapter`;
# edit the chapter, not this file.
"""Jitted functions whose warmed calls go through the gate.

Reference: the C++ fast path of ``jax.jit``.
"""

import os
from contextlib import suppress
from threading import Lock
from types import SimpleNamespace

import numpy as np

from minijax.arrays.array import ArrayImpl
from minijax.arrays.avals import ShapedArray
from minijax.arrays.settings import _on_or_off, config
from minijax.calls.gate import Door
from minijax.calls.gate_tables import (
    FAILURE,
    KEPT,
    NEXT,
    record_table,
    surroundings_table,
)
from minijax.calls.object_layout import (
    REFS,
    TP_CALL,
    UnknownLayout,
    check_layout,
    require,
)
from minijax.calls.words import word
from minijax.core import EvalTrace, current_trace
from minijax.errors import JaxRuntimeError
from minijax.forgetting.remembering import cache_by_object
from minijax.jitting.arguments import Static
from minijax.jitting.functions import JitFunction, Options, jit_kind
from minijax.pytrees.treedefs import tree_structure

config.define("minijax_gate", os.environ.get("MINIJAX_GATE", "1"), _on_or_off)


class Records:
    """What the gate has ready for a function: a chain of tables, the last one first.

    Attributes:
      head: two words, the addresses of the first table and of the surroundings.
      warm: calls after which a function is worth the time that opening the gate takes.
      refused: what is ready for calls that the gate cannot take apart.
    """

    limit, around, warm = 40, 0, 98

    def __init__(self):
        self.head, self.chain, self.seen = np.zeros(2, np.int64), [], {}
        self.refused, self.switches = set(), config.state[0]
        self.unlock()

    def add(self, record):
        """Put a record in front of the others, and forget the oldest if need be."""
        with self._lock:
            if len(self.chain) == self.limit:
                self.chain[-2][NEXT] = 0
                self.chain.pop()
            record[NEXT] = int(self.head[0])
            self.chain.insert(0, record)
            self.head[0] = record.address

    def clear(self):
        """Forget all records, and how often they were wanted."""
        self.forget()
        self.seen.clear()
        self.refused.clear()

    def forget(self):
        """Forget all records; one that is in use lives until the call is done."""
        with self._lock:
            self.head[0], self.switches = 0, config.state[0]
            self.chain.clear()

    def unlock(self):
        """Forget who is changing the records: after a fork, no thread is."""
        self._lock = Lock()

    def wants(self, ready):
        """Return whether something ready should get a record; not at the first call.

        As long as the gate is closed, not before there have been many calls.
        """
        count = self.seen.get(ready, 0) + 1
        if len(self.seen) > 256:
            self.seen.clear()
            self.refused.clear()
        self.seen[ready] = count
        outdated = self.switches is not config.state[0]
        if outdated:  # by a switch; no record of before is ever used again
            self.forget()
        if ready in self.refused:
            return False
        held = [thing for record in self.chain for thing in record.held]
        often = count > 2 if outdated else count % 8 == 2
        often = often and (self.around or count >= self.warm)
        return bool(often) and not any(thing is ready for thing in held)


_records = cache_by_object()


class GatedFunction(JitFunction):
    """A jitted function that is called through the gate, once that is open."""

    __slots__ = ("_gate",)

    def __init__(self, fun, options):
        super().__init__(fun, options)
        _records[self] = self._ready = Records()
        self._gate = self._ready.head
        if Records.around:  # whichever thread opens the gate finds them
            self._gate[1] = Records.around

    def clear_cache(self):
        """Forget the programs of this function."""
        super().clear_cache()
        self._ready.clear()

    def _run(self, ready, leaves, args, kwargs):
        result = ready.run(leaves)
        if self._ready.chain:  # why was this call not answered? Often for such arrays:
            put_in_order(leaves)
        if self._ready.wants(ready) and self._is_plain(ready):
            try:
                trees, named = self._structures(args, kwargs)
                self._ready.add(record_of(ready, trees, named, open_gate()))
            except UnknownLayout:  # Python calls the program, as it always has
                self._ready.refused.add(ready)
            except (JaxRuntimeError, MemoryError):
                pass  # the next time there may be memory
        return result

    def _is_plain(self, ready):
        """Return whether the gate could do what Python does for this call."""
        where = ready.placement  # None as long as the program was not evaluated
        elsewhere = where is None or where.device.platform != "cpu"
        takes = ready.moves, ready.gives, ready.program.captured
        special = elsewhere, *takes, ready.empty
        entry = getattr(ready.executable, "entry", None)
        evaluating = isinstance(current_trace(), EvalTrace) and not config.state[1]
        return (
            config.minijax_gate and entry is not None and evaluating
            and not any(special)
        )  # fmt: skip

    def _structures(self, args, kwargs):
        """Return the structures of the arguments, or `Static` values."""
        fixed = self._options.static.positions(len(args))
        found = [structure(arg, i in fixed) for i, arg in enumerate(args)]
        fixed = self._options.static.names
        named = {k: structure(kwargs[k], k in fixed) for k in sorted(kwargs)}
        return found, named


def structure(arg, fixed):
    """Return the structure of an argument, or a `Static` if it is fixed."""
    return Static(arg) if fixed else tree_structure(arg)


def put_in_order(leaves):
    """Give arrays whose numbers lie in another order, or nowhere, a buffer in order.

    They keep it: nothing else about them changes.
    """
    for x in leaves:
        ours = type(x) is ArrayImpl and x.placement.device.platform == "cpu"
        if ours and not x._buffer.flags.c_contiguous:
            buffer = np.ascontiguousarray(x._buffer).reshape(x.shape)
            buffer.flags.writeable = False
            x._buffer = buffer


def record_of(ready, trees, named, around):
    """Return the record of a call that is ready.

    Args:
      ready: a `PreparedCall` that has run.
      trees, named: structures of arguments, by position and by name.
      around: the `Table` of the surroundings.

    Raises:
      UnknownLayout: if there are containers that the gate cannot take apart.
    """
    program, executable = ready.program, ready.executable
    record = record_table(
        around, trees, named, program.closed.in_avals,
        program.out_tree, program.closed.out_avals, executable.entry,
        ready.places, ready.placement,
    )  # fmt: skip
    record[FAILURE] = getattr(executable, "raise_failure", None)
    record.held += [ready, executable]
    return record


def try_out(door):
    """Raise `UnknownLayout` unless a gate does for a trial what it should."""
    leaf, aval = tree_structure(0), ShapedArray((), np.int32)
    around = surroundings_table(lambda self, *args: args)
    entry = SimpleNamespace(address=door.trial, arena_bytes=0, context=0)
    entry.nanoseconds = 0
    function, x = GatedFunction(abs, Options()), ArrayImpl(np.array(6, np.int32), aval)
    counts = [word[id(obj) + REFS] for obj in (x, aval, x._buffer)]
    function._gate[1] = around.address
    function._ready.add(record_table(around, [leaf], {}, [aval], leaf, [aval], entry))
    found = [door.call(function, (x,), None) for _ in range(3 * KEPT)]
    require([int(y._buffer) for y in found] == [7] * 3 * KEPT, "results")
    require(door.call(function, (x, x), None) == (x, x), "calls in Python")
    del found, function
    now = [word[id(obj) + REFS] for obj in (x, aval, x._buffer)]
    require(now == counts, "references")


_lock, _opened = Lock(), []


def _unlock():
    global _lock
    _lock = Lock()


if hasattr(os, "register_at_fork"):  # a new process has no thread that opens the gate
    os.register_at_fork(after_in_child=_unlock)


def open_gate():
    """Have machine code answer the calls of jitted functions from now on.

    Returns:
      The `Table` of the surroundings.

    Raises:
      UnknownLayout: if this Python is none that the gate knows.
    """
    with _lock:
        if not _opened:
            _opened.append(_proved())
            if _opened[0] is not None:
                _install(*_opened[0])
    if _opened[0] is None:
        raise UnknownLayout("the gate is closed")
    return _opened[0][0]


def _proved():
    """Return the `Table` of the surroundings and the `Door`, or None if one fails."""
    with suppress(UnknownLayout, ImportError, OSError):
        check_layout()
        around, door = surroundings_table(GatedFunction.__call__), Door()
        try_out(door)
        return around, door
    return None


def _install(around, door):
    """Have calls go through the door; whatever happens, `_opened` holds both."""
    Records.around = around.address
    for records in _records.data.copy().values():
        records.head[1] = around.address
    word[id(GatedFunction) + TP_CALL] = door.address


jit_kind.value = GatedFunction
