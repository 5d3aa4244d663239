"""Jitted functions whose warmed calls go by the fast path.

Reference: the C++ fast path of ``jax.jit``.
"""

# Made from chapters/26_calls_rest.md by `make chapter`;
# edit the chapter, not this file.

import os
from inspect import signature
from threading import Lock

import numpy as np

from minijax.arrays.array import ArrayImpl, ShapedArray
from minijax.arrays.devices import host_device
from minijax.arrays.dtypes import _on_or_off, config, float0
from minijax.arrays.interchange import placement_or_none
from minijax.context_values import has_global_value
from minijax.core import _current_trace
from minijax.cpu_backend.program_codegen import EntryPoint
from minijax.dispatch.fastpath import FastPath
from minijax.dispatch.fastpath_tables import (
    MAX_SPARE_RESULTS,
    CallSignature,
    globals_table,
    signature_table,
)
from minijax.dispatch.word_language import (
    ObjectOffsets,
    UnknownLayout,
    check_layout,
    i64,
    require_layout,
    slot_offset,
)
from minijax.errors import JaxRuntimeError
from minijax.jitting.api import JitFunction, JitOptions, jit_function_class
from minijax.jitting.arguments import StaticKey
from minijax.jitting.stages import Compiled, StageInfo, compiled_class
from minijax.pytrees.tree_util import tree_leaves, tree_structure
from minijax.rematerialization.caching import weakref_cache

config.define("minijax_fast_path", os.environ.get("MINIJAX_FAST_PATH", "1"), _on_or_off)


_records = weakref_cache()


class SignatureCache:
    """What the fast path has ready for a function: a chain of tables, the last first.

    Args:
      function: whose records they are; if it is turned on now, they are found.

    Attributes:
      kind: the class of the function.
      head: two words, the addresses of the first table and of the surroundings.
      warm: calls after which a function is worth the time that it takes to turn the
        fast path on, if its arguments are few arrays.
      refused: what is ready for calls that the fast path cannot take apart.
      arounds: the addresses of surroundings by class, once the fast path is on.
    """

    limit, arounds, warm = 40, {}, 98

    def __init__(self, function):
        self.head, self.chain, self.seen = np.zeros(2, np.int64), [], {}
        self.refused, self.switches = set(), config.state[0]
        self.unlock()
        self.kind, _records[function] = type(function), self
        if self.arounds:
            self.head[1] = self.arounds[self.kind]

    def add(self, record):
        """Put a record in front of the others, and forget the oldest if need be."""
        with self._lock:
            if len(self.chain) == self.limit:
                self.chain[-2][CallSignature.next] = 0
                self.chain.pop()
            record[CallSignature.next] = int(self.head[0])
            self.chain.insert(0, record)
            self.head[0] = record.address

    def remove(self, record):
        """Take a record out of the chain, if it is there."""
        with self._lock:
            at = next((i for i, each in enumerate(self.chain) if each is record), None)
            if at is None:
                return
            del self.chain[at]
            following = self.chain[at].address if at < len(self.chain) else 0
            if at:
                self.chain[at - 1][CallSignature.next] = following
            else:
                self.head[0] = following
            record[CallSignature.next] = 0  # the fast path may be in the middle of it

    def clear(self):
        """Forget all records, and how often they were wanted."""
        self.forget()
        self.seen.clear()
        self.refused.clear()

    def forget(self):
        """Forget all records; one that is in use lives until the call is done."""
        with self._lock:
            self.head[0], self.switches = 0, config.state[0]
            for record in self.chain:  # the fast path may be in the middle of one
                record[CallSignature.next] = 0
            self.chain.clear()

    def unlock(self):
        """Forget who is changing the records: after a fork, no thread is."""
        self._lock = Lock()

    def should_record(self, ready, leaves=0):
        """Return whether something ready should get a record; not at the first call.

        As long as the fast path is off, not before the calls have taken long: there
        have been many, or fewer with many leaves, which all take their time in Python.
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
        long = count * (1 + leaves // 8) >= self.warm
        often = often and (self.arounds or long)
        return bool(often) and not any(thing is ready for thing in held)

    def insert(self, ready, leaves, make, *call):
        """Add a record of what Python has just run, if it should get one.

        Args:
          ready: what has run.
          leaves: of its arguments.
          make: a function of `ready` and `call` that returns the record; or None, if
            the fast path could not do what Python does.
        """
        if self.chain:  # why was this call not answered? Often for such arrays:
            put_in_order(leaves)
        if not self.should_record(ready, len(leaves)):
            return
        try:
            record = make(ready, *call)
            if record is not None:
                self.add(record)
        except UnknownLayout:  # Python calls the program, as it always has
            self.refused.add(ready)
        except (JaxRuntimeError, MemoryError):
            pass  # the next time there may be memory


# What `inspect.signature` asks first; of a function in machine code it finds none.
signature_of_wrapped = property(lambda self: signature(self.__wrapped__))


class FastPathFunction(JitFunction):
    """A jitted function that is called by the fast path, once that is on."""

    __slots__ = ("_fast_path",)
    __signature__ = signature_of_wrapped

    def __init__(self, fun, options):
        super().__init__(fun, options)
        self._ready = SignatureCache(self)
        self._fast_path = self._ready.head

    def clear_cache(self):
        """Forget the programs of this function."""
        super().clear_cache()
        self._ready.clear()

    def _run(self, ready, leaves, args, kwargs):
        result = ready.run(leaves)
        self._ready.insert(ready, leaves, self._record, args, kwargs)
        return result

    def _record(self, ready, args, kwargs):
        program, entry = ready.program, fastpath_entry(ready)
        special = program.captured or ready.empty
        if special or not fastpath_supported(entry, ready.placement):
            return None
        fixed = self._options.static.positions(len(args))
        trees = [structure(arg, i in fixed) for i, arg in enumerate(args)]
        fixed = self._options.static.names
        named = {k: structure(kwargs[k], k in fixed) for k in sorted(kwargs)}
        record = signature_table(
            enable_fastpath(), trees, named, program.closed.in_avals,
            program.out_tree, program.closed.out_avals, entry, ready.executable,
            ready.places, ready.placement, ready.given,
        )  # fmt: skip
        record.held.append(ready)
        return record


def fastpath_supported(entry, placement):
    """Return whether the fast path could do what Python does for a call.

    Args:
      entry: the `EntryPoint` of what the call runs, or None.
      placement: where it runs; None as long as that is not known.
    """
    here = placement is not None and placement.device.platform in ("cpu", "mesh")
    evaluating = has_global_value(_current_trace) and not config.state[1]
    return config.minijax_fast_path and here and entry is not None and evaluating


def fastpath_entry(ready):
    """Return the `EntryPoint` by which the fast path can run what is ready, or None.

    No array is moved there; but beside arrays in parts one may be whole, if none is
    given up.
    """
    find = getattr(ready.executable, "entry_at", None)
    entry = find and find(ready.places)
    refused = entry and ready.moves and (ready.donates or not entry.cuts)
    return None if refused else entry


def structure(arg, fixed):
    """Return the structure of an argument, or a `StaticKey` if it is fixed."""
    return StaticKey(arg) if fixed else tree_structure(arg)


def is_in_order(x):
    """Return whether the numbers of an array lie in order, or on another device."""
    return x.placement.device.platform != "cpu" or x._buffer.flags.c_contiguous


def put_in_order(leaves):
    """Give arrays whose numbers lie in another order, or nowhere, a buffer in order.

    They keep it: nothing else about them changes.
    """
    for x in leaves:
        if type(x) is ArrayImpl and not is_in_order(x):
            buffer = np.ascontiguousarray(x._buffer).reshape(x.shape)
            buffer.flags.writeable = False
            x._buffer = buffer


class FastPathCompiled(Compiled):
    """A compiled program that is called by the fast path, once that is on."""

    __slots__ = ("_fast_path",)

    def __new__(cls, *args, **kwargs):
        """Return one whose attributes are not there yet."""
        self = super().__new__(cls)
        object.__setattr__(self, "_ready", SignatureCache(self))
        object.__setattr__(self, "_fast_path", self._ready.head)
        return self

    def __call__(self, /, *args, **kwargs):
        """Run the program; see `Compiled`."""
        result = super().__call__(*args, **kwargs)
        leaves = tree_leaves((args, kwargs))
        self._ready.insert(self._executable(), leaves, self._record, leaves)
        return result

    def _record(self, executable, leaves):
        entry, avals = getattr(executable, "entry", None), self.program.out_avals
        if not avals or not fastpath_supported(entry, self.placement):
            return None
        places = list(map(placement_or_none, leaves))
        away = {place.device for place in places if place} - {self.placement.device}
        if away or any(aval.dtype == float0 for aval in avals):
            return None
        positional, named = self.in_tree.children()
        return signature_table(
            enable_fastpath(FastPathCompiled), positional.children(),
            dict(zip(named.aux, named.children())), self.program.in_avals,
            self.out_tree, avals, entry, executable, places,
            self.placement, self._shared, self._pruned[1],
        )  # fmt: skip

    def __reduce__(self):
        return type(self), tuple(
            getattr(self, name) for name in StageInfo.__annotations__
        )


def try_out(door):
    """Raise `UnknownLayout` unless a fast path does for a trial what it should."""
    evaluating = has_global_value(_current_trace) and not config.state[1]
    require_layout(evaluating, "what is in force")
    leaf, aval = tree_structure(0), ShapedArray((), np.int32)
    around = globals_table(lambda self, *args: args)
    entry, avals = EntryPoint(door.self_test, 0, 0, 0, (None,)), [aval]
    here = host_device().uncommitted  # the default may be a card
    function = FastPathFunction(abs, JitOptions())
    x = ArrayImpl(np.array(6, np.int32), aval, here)
    counts = [i64[id(obj) + ObjectOffsets.refs] for obj in (x, aval, x._buffer)]
    function._fast_path[1] = around.address
    ends = avals, leaf, avals, entry, None, [here], here
    record = signature_table(around, [leaf], {}, *ends)
    function._ready.add(record)
    found = [door.call(function, (x,), None) for _ in range(3 * MAX_SPARE_RESULTS)]
    require_layout(
        [int(y._buffer) for y in found] == [7] * 3 * MAX_SPARE_RESULTS, "results"
    )
    require_layout(door.call(function, (x, x), None) == (x, x), "calls in Python")
    del found, function, record
    now = [i64[id(obj) + ObjectOffsets.refs] for obj in (x, aval, x._buffer)]
    require_layout(now == counts, "references")


_lock, _opened = Lock(), []


def _unlock():
    global _lock
    _lock = Lock()


if hasattr(os, "register_at_fork"):  # a child has no thread that turns it on
    os.register_at_fork(after_in_child=_unlock)


def enable_fastpath(kind=FastPathFunction):
    """Have machine code answer the calls of programs from now on.

    Args:
      kind: the class whose calls it is about, one of `fast_path_kinds`.

    Returns:
      The `NativeTable` of the surroundings of its calls.

    Raises:
      UnknownLayout: if this Python is none that the fast path knows.
    """
    with _lock:
        if not _opened:
            _opened.append(_proved())
            if not isinstance(_opened[0], Exception):
                _install(*_opened[0])
    if isinstance(_opened[0], Exception):
        raise UnknownLayout(str(_opened[0]))
    return _opened[0][0][kind]


# Classes whose calls the fast path takes.
fast_path_kinds = [FastPathFunction, FastPathCompiled]


def register_fastpath(kind):
    """Have calls of one more class go by the fast path, once it is on.

    Args:
      kind: a class with the one slot `_gate`, behind a class without slots.
    """
    with _lock:
        fast_path_kinds.append(kind)
        if _opened and not isinstance(_opened[0], Exception):
            arounds, door = _opened[0]
            arounds[kind] = globals_table(kind.__call__)
            _install(arounds, door)


def _proved():
    """Return each class's `NativeTable` of surroundings and `FastPath`, or an error."""
    try:
        check_layout()
        for kind in fast_path_kinds:
            require_layout(
                slot_offset(kind, "_fast_path") == ObjectOffsets.fast_path,
                f"the fast paths of {kind.__name__}",
            )
        arounds = {kind: globals_table(kind.__call__) for kind in fast_path_kinds}
        door = FastPath()
        try_out(door)
    except (UnknownLayout, ImportError, OSError) as error:
        return error.with_traceback(None)
    return arounds, door


def _install(arounds, door):
    """Have calls go through the door; whatever happens, `_opened` holds both."""
    SignatureCache.arounds = {kind: table.address for kind, table in arounds.items()}
    for records in _records.data.copy().values():
        records.head[1] = SignatureCache.arounds[records.kind]
    for kind in fast_path_kinds:
        i64[id(kind) + ObjectOffsets.call] = door.address


jit_function_class.value, compiled_class.value = FastPathFunction, FastPathCompiled
