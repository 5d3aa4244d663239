"""Just-in-time compilation of regions that are found while a program runs."""

# Made from chapters/41_discovery_ground.md by `make chapter`;
# edit the chapter, not this file.

import os
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import count
from sys import getrefcount
from threading import get_ident
from time import perf_counter
from typing import Any, NamedTuple
from weakref import WeakValueDictionary, ref

import numpy as np

from minijax import lax
from minijax._lazy import wraps
from minijax.arrays.array import ArrayImpl, ShapedArray, as_array_impl, typeof
from minijax.arrays.devices import default_placement
from minijax.arrays.dtypes import config
from minijax.arrays.numerics import MIN_BLOCKED_ROWS
from minijax.arrays.transfer import device_put_p
from minijax.callbacks.callback import pure_callback_p
from minijax.compat import primitives as extension
from minijax.context_values import CallbackContext, ReentrantContext
from minijax.core import (
    Array,
    EvalTrace,
    RuleTable,
    Trace,
    _current_trace,
    bind_listeners,
    current_trace,
    impl_rules,
    set_current_trace,
)
from minijax.custom_derivatives.custom_jvp_vjp import callee_rules
from minijax.custom_derivatives.flat_functions import callee_as_fun
from minijax.indexing.dynamic_slices import dynamic_slice_p
from minijax.jaxprs.jaxpr import (
    ClosedJaxpr,
    Jaxpr,
    JaxprEqn,
    Literal,
    Var,
    as_literal,
    source_info_hook,
)
from minijax.jaxprs.pretty_printer import jaxprs_in_params
from minijax.jaxprs.types import infer_out_avals
from minijax.jitting.arguments import (
    aliasable_inputs,
    check_donated_once,
    donate_operands,
)
from minijax.jitting.compilation import compile_cached, compile_context
from minijax.jitting.primitive import jit_p
from minijax.jitting.stages import BYTES_ACCESSED, FLOPS, TRANSCENDENTALS, cost_analysis
from minijax.rematerialization.caching import (
    cache_key_of_params,
    trace_context,
    trace_context_switches,
)
from minijax.rematerialization.jaxpr_transforms import eqn_has_effects
from minijax.sharding.pmap import shard_map_p
from minijax.spmd.partitioner import sharding_constraint_p

# Deferred operations: which of them may wait, and when two of them are the same.


def _pure(eqn):
    """Whether neither an equation nor a program inside it must happen at once."""
    if eqn_has_effects(eqn) or holds_arrays(eqn) or is_of_a_user(eqn.primitive):
        return False
    inner = [each for jaxpr in jaxprs_in_params(eqn.params) for each in jaxpr.eqns]
    return all(wait_rules[each.primitive](each) for each in inner)


def is_of_a_user(primitive):
    """Return whether the evaluation of a primitive is Python code of a user's."""
    module = getattr(impl_rules.get(primitive), "__module__", None) or "minijax."
    return module == extension.__name__ or not module.startswith("minijax.")


def holds_arrays(eqn):
    """Return whether a program inside an equation has picked up arrays itself.

    They are no operands, so a recording would not know of one that waits in it, nor
    keep the numbers of one that is deleted before the operation is computed.
    """
    consts = [c for x in eqn.params.values() for c in getattr(x, "consts", ())]
    return any(isinstance(each, Array) for each in consts)


# Rules ``rule(eqn)`` say whether an operation may be put off.
wait_rules = RuleTable("wait", default=_pure)
_at_once = pure_callback_p, device_put_p, shard_map_p, sharding_constraint_p
wait_rules.update(dict.fromkeys(_at_once, lambda eqn: False))

# What a call says besides its program: where it runs, and whose memory it takes.
JIT_OPTIONS = "donated_invars", "in_shardings", "out_shardings", "backend", "device"


def _plain_call(eqn):
    return _pure(eqn) and not any(name in eqn.params for name in JIT_OPTIONS)


wait_rules[jit_p] = _plain_call


def is_deferrable(primitive, params):
    """Return whether an operation may be put off."""
    return wait_rules[primitive](JaxprEqn([], [], primitive, params))


def called_jaxpr(primitive, params):
    """Return what a call with rules of its own calls; None for a jitted function.

    Such a call is no operation to wait for: it is run, and its operations wait.
    """
    if primitive is jit_p or primitive not in callee_rules:
        return None
    return callee_rules[primitive](JaxprEqn([], [], primitive, params))


def operand_bytes(number):
    """Return the bytes that a number has as an operand.

    Raises:
      OverflowError: if it is a Python integer that does not fit.
    """
    return np.asarray(number, typeof(number).dtype).tobytes()


def operand_positions(named, arrays, scalars):
    """Return where the operands of a step are found in a recording.

    Args:
      named: what stands for each in the key of the step.
      arrays, scalars: how many there were before it.
    """
    places: list = []
    for name in named:
        if type(name) is int:
            places.append(name)
        elif isinstance(name, ShapedArray):
            arrays += 1
            places.append(-arrays)
        else:
            places.append((scalars,))
            scalars += 1
    return places


def same_bits_in_python(closed, placement):
    """Return whether emitted Python does what operations do that are evaluated.

    Jitted functions and loops run as machine code there, and on other platforms all;
    sums of many rows are made in blocks.
    """
    if placement.device.platform != "cpu" or config.minijax_backend:
        return False
    inside = [eqn for eqn in closed.eqns if jaxprs_in_params(eqn.params)]
    return not inside and not any(map(sums_rows, closed.eqns))


def sums_rows(eqn):
    """Return whether an equation sums so many rows that it is done in blocks."""
    if eqn.primitive is not lax.reduce_sum_p:
        return False
    x = eqn.invars[0].aval
    return x.ndim > 1 and any(
        x.shape[axis] > MIN_BLOCKED_ROWS for axis in eqn.params["axes"]
    )


def _as_dynamic(x, start_indices, limit_indices, strides):
    """Return a slice as an operation whose start is an operand; None if it cannot."""
    cuts = list(zip(start_indices, limit_indices))
    if strides is not None or len(cuts) != x.ndim:
        return None
    if not all(0 <= a <= b <= size for (a, b), size in zip(cuts, x.shape)):
        return None  # the slice refuses these, with a message of its own
    sizes = tuple([b - a for a, b in cuts])
    operands = x, *map(np.int32, start_indices)
    return dynamic_slice_p, operands, {"slice_sizes": sizes}


# Rules ``rule(*args, **params)`` return an operation that does the same, of which more
# is operands and less is parameters: its primitive, operands and parameters; or None.
relax_rules: RuleTable = RuleTable("loosen", default=lambda *args, **params: None)
relax_rules[lax.slice_p] = _as_dynamic


def static_slice_eqn(eqn):
    """Return an equation with as much in its parameters as there can be."""
    x, *starts = eqn.invars or [None]
    fixed = all(isinstance(start, Literal) for start in starts)
    if eqn.primitive is not dynamic_slice_p or not fixed:
        return eqn
    sizes = eqn.params["slice_sizes"]
    lasts = [size - part for size, part in zip(x.aval.shape, sizes)]
    begins = [min(max(int(s.val), 0), last) for s, last in zip(starts, lasts)]
    limits = [begin + part for begin, part in zip(begins, sizes)]
    params = {"start_indices": tuple(begins), "limit_indices": tuple(limits)}
    params["strides"] = None
    return eqn.replace(invars=[x], primitive=lax.slice_p, params=params)


def current_switches():
    """Return the switches on which results depend, a dictionary."""
    # The list is read here: modules that are imported later add to it.
    names = *trace_context_switches, "minijax_backend"
    return {name: getattr(config, name) for name in names}


def restored_switches(before, placement):
    """Return a context manager for switches of before.

    Args:
      before: what `current_switches` returned then.
      placement: where arrays that named no device were, then.
    """
    now = current_switches()
    changes = {name: before[name] for name in before if now[name] != before[name]}
    if placement.device is not default_placement().device:
        changes["jax_default_device"] = placement.device
    return config.override_all(changes)


# Operands of deferred operations, and how much memory they keep alive.

SCALAR_TYPES = frozenset([bool, int, float, complex])
IDLE_BYTES = 2**28


class NotDeferrable(Exception):
    """An operation has to be computed at once."""


class Operands:
    """What the operations of a recording were given.

    Args:
      tree: the `Autojit` that knows what was recorded before.
      trace: the `RecordTrace` that records.

    Attributes:
      step: the last one; the path to it in the tree is what was recorded.
      inputs, buffers: arrays from outside, and their buffers at that time.
      places: the numbers of these arrays, by identity.
      numbers: scalars.
      changing: the places of those scalars that are not the same in all iterations.
      results: weak references to the arrays that were promised.
      count: how many operations wait.
      bytes: how many bytes arrays from outside have.
    """

    def __init__(self, tree, trace):
        self.tree, self.trace, self.state = tree, trace, config.state
        self.step, self.placement, self.switches = tree.beginning()
        self.places, self.inputs, self.buffers = {}, [], []
        self.numbers, self.changing, self.results = [], [], []
        self.count, self.bytes, self.budget = 0, 0, IDLE_BYTES

    def compute(self, why):
        """End the recording, and compute those of its results that are wanted."""
        self.trace.compute(self, why)

    def advance(self, x):
        """Take up an array from outside; return its type."""
        if x.placement is not self.placement:
            raise NotDeferrable
        self.buffers.append(x._buffer)
        self.inputs.append(x)
        self.places[id(x)] = -len(self.inputs)
        self.bytes += x.nbytes
        return x.aval

    def external_operand(self, x):
        """Take up what NumPy has made; it may be written to later, so it is copied."""
        if not isinstance(x, np.ndarray | np.generic):
            raise NotDeferrable
        if x.ndim:
            return self.advance(as_array_impl(x))
        self.numbers.append(x.copy())
        return x.dtype

    def forget(self, arrays, scalars):
        """Drop what an operation has brought that is not recorded."""
        for x in self.inputs[arrays:]:
            del self.places[id(x)]
        del self.inputs[arrays:], self.buffers[arrays:], self.numbers[scalars:]

    def holds_too_much(self):
        """Return whether much memory is alive because operations wait for it."""
        if self.bytes <= self.budget:
            return False
        idle = [x.nbytes for x in self.inputs if getrefcount(x) == _ALONE]
        self.budget += self.bytes
        return sum(idle) > IDLE_BYTES


def _holders():
    return [getrefcount(x) for x in [object()]][0]


_ALONE = _holders()  # what Python counts if a list and a loop hold an object


# Reports of what was found, how it ran, and which guards missed.

ONE_BY_ONE, AS_PYTHON, COMPILED = WAYS = "one by one", "as Python", "compiled"


class RegionReport(NamedTuple):
    """What is known of a region.

    Attributes:
      place: its lines in the user's program.
      operations, kept, changing: how many operations it has, how many results were
        kept, and how many scalars are arguments.
      runs, seconds: how often it has run in each of the `WAYS`, and how long.
      refused: why it was not compiled, or None.
    """

    place: str
    operations: int
    kept: int
    changing: int
    runs: dict
    seconds: dict
    refused: str | None

    def mean(self, way):
        """Return the seconds of a run in one of the `WAYS`; None if there was none."""
        return self.seconds[way] / self.runs[way] if self.runs.get(way) else None


def line_range(path):
    """Return the first and the last line of some steps, and their file."""
    lines = [step.source for step in path if step.source is not None]
    if not lines:
        return "outside of any file"
    files = [os.path.basename(line.file) for line in lines]
    numbers = [line.position[0] for line in lines if line.file == lines[0].file]
    low, high = min(numbers), max(numbers)
    lines_there = f"{low}" if low == high else f"{low}-{high}"
    return f"{files[0]}:{lines_there}"


@dataclass(repr=False)
class AutojitReport:
    """What was found in a program while it ran.

    Attributes:
      regions: a `RegionReport` for each, in the order in which they were met.
      misses: how often a known beginning went on otherwise, by line and reason.
    """

    regions: list
    misses: dict

    def seconds_won(self):
        """Return about how much longer the runs that were compiled had taken before."""
        won = 0.0
        for region in self.regions:
            before = region.mean(AS_PYTHON) or region.mean(ONE_BY_ONE)
            if before and (after := region.mean(COMPILED)):
                won += (before - after) * region.runs[COMPILED]
        return won

    def __repr__(self):
        header = ["region", "operations", "kept", "changing", *WAYS]
        rows = [header, *map(_cells, self.regions)]
        wide = [max(map(len, column)) for column in zip(*rows)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, wide)).rstrip()
            for row in rows
        ]
        lines += [f"{x.place}: not compiled: {x.refused}" for x in self.refusals()]
        lines += ["", "guards that missed:"] if self.misses else []
        lines += [f"  {n} at {where}: {why}" for (where, why), n in self.misses.items()]
        return "\n".join(lines)

    def refusals(self):
        """Return the regions that could not be compiled."""
        return [region for region in self.regions if region.refused]


def _cells(region):
    counts = map(str, (region.operations, region.kept, region.changing))
    ways = [
        f"{region.runs[way]} x {1e6 * region.mean(way):.0f} µs"
        if region.runs.get(way)
        else "-"
        for way in WAYS
    ]
    return [region.place, *counts, *ways]


MOST_STEPS = 50_000


class TraceTreeStats:
    """What a tree of traces notes for its report, and about its own size.

    Attributes:
      steps: how many were made.
      roots, known: the beginnings of traces, and the last one asked for.
      longest, length: how many operations wait at most, and how many at present.
      misses: how often a known beginning went on otherwise, by line and reason.
      found: the regions.
    """

    def __init__(self, longest):
        self.longest, self.length, self.steps = longest, longest, 0
        self.known, self.roots = (None, None, None), {}
        self.misses, self.found = Counter(), WeakValueDictionary()

    def note_miss(self, step, key):
        """Note that an operation has not followed a step before, and why."""
        if step.next:
            line = source_info_hook.value()
            where = "a line unknown" if line is None else line.place
            self.misses[where, difference(key, [*step.next])] += 1
        self.steps += 1
        if self.steps > MOST_STEPS:  # of programs that never repeat themselves
            self.steps = 0
            self.roots.clear()
            self.known = None, None, None

    def note_change(self, step):
        """Note that a scalar is not the same in all iterations."""
        where = "a line unknown" if step.source is None else step.source.place
        self.misses[where, "a number has changed"] += 1

    def fit_length(self, step):
        """Let as many operations wait as are a number of whole iterations of a loop."""
        if (turn := turn_of(step)) is not None:
            self.length = self.longest // turn * turn

    def report(self):
        """Return an `AutojitReport` on what was found."""
        rows = []
        for region in self.found.values():
            path, runs = region.step.path(), dict(region.runs)
            counts = len(path), len(region.kept), len(region.changing)
            seconds = dict(region.seconds)
            row = line_range(path), *counts, runs, seconds, region.refused
            rows.append(RegionReport(*row))
        return AutojitReport(rows, dict(self.misses))


def difference(key, known):
    """Return in what a key differs from those that were known."""
    alike = [other for other in known if other[0] is key[0]]
    if not alike:
        return "another operation"
    if any(other[2:] == key[2:] for other in alike):
        types = [isinstance(name, ShapedArray) for name in key[1]]
        return "other types" if any(types) else "other operands"
    return "other parameters"


def turn_of(step):
    """Return how many operations at the end of a path repeat those before, or None."""
    lines = [(x.primitive, x.source) for x in step.path()]
    marks = [(p, line and (line.code, line.instruction)) for p, line in lines]
    count, half = len(marks), len(marks) // 2
    for turn in range(1, half + 1):
        if marks[half:] == marks[half - turn : count - turn]:
            return turn
    return None


# Futures: arrays whose numbers are computed when they are looked at.

buffer_of = vars(ArrayImpl)["_buffer"]  # the slot in which arrays keep their buffers


class LazyArray(ArrayImpl):
    """An array that was asked for: its type is known, its numbers are not there yet.

    In the place of its buffer it has a pair: the `Recording` in which it is a result,
    and its number there. With its buffer it becomes an ordinary array.
    """

    __slots__ = ()

    def _look(self):
        held = buffer_of.__get__(self)
        if type(held) is tuple:
            held[0].compute("a value was looked at")
            held = buffer_of.__get__(self)
        return held

    _buffer = property(_look, buffer_of.__set__)

    def settled(self):
        """Return the same array with its numbers, no longer lazy."""
        fulfill(self, self._buffer)
        return self

    def __copy__(self):
        return self.settled().__copy__()

    def __reduce__(self):
        return self.settled().__reduce__()


def promise(recording, number, aval):
    """Return the array that a result of a recording is going to be."""
    x = LazyArray.__new__(LazyArray)
    buffer_of.__set__(x, (recording, number))
    x.aval, x.placement = aval, recording.placement
    return x


def fulfill(x, buffer):
    """Give an array its numbers, unless it has them, or was deleted."""
    if type(x) is LazyArray:
        buffer_of.__set__(x, buffer)
        x.__class__ = ArrayImpl


# A tree of traces: a beginning that several traces have in common is kept once.


class TraceNode:
    """A recorded operation, after those that lead to it from the root.

    Attributes:
      before: the step before; None at the root.
      primitive, params: the operation; the primitive is None if it may not wait.
      operands: for each a number: results count from 0 upwards, arrays from outside
        from -1 downwards; or ``(i,)``, where a scalar stands in `Recording.numbers`.
      visits: types of the arrays from outside that it is the first to use.
      avals: types of its results.
      sizes: the counts of results, arrays from outside and scalars up to here.
      constants: the bytes of its scalars, None for one that has changed.
      source: the user's line.
      next: the steps that have followed, by their keys.
      regions: the regions that end here, by what is kept and which scalars change.
    """

    before: Any = None
    primitive = source = None
    operands = avals = visits = ()
    sizes = 0, 0, 0

    def __init__(self):
        self.next, self.regions, self.constants, self.params = {}, {}, [], {}

    def path(self):
        """Return the steps from the root to this one."""
        steps, step = [], self
        while step.before is not None:
            steps.append(step)
            step = step.before
        return steps[::-1]


MOST_FOLLOWERS = 64


def add_child(before, key, args, params, recording):
    """Return a new step below another; its shape rule finds, or refuses, its types."""
    primitive, named = key[:2]
    step, (results, arrays, scalars) = TraceNode(), before.sizes
    step.before, step.source = before, source_info_hook.value()
    if is_deferrable(primitive, params):
        step.avals = infer_out_avals(primitive, list(map(typeof, args)), params)
        step.primitive, step.params = primitive, params
    step.visits = [x.aval for x in recording.inputs[arrays:]]
    step.constants = [operand_bytes(x) for x in recording.numbers[scalars:]]
    step.operands = operand_positions(named, arrays, scalars)
    counts = len(recording.inputs), len(recording.numbers)
    step.sizes = results + len(step.avals), *counts
    if len(before.next) >= MOST_FOLLOWERS:  # of shapes that never come back
        before.next.pop(next(iter(before.next)), None)
    return before.next.setdefault(key, step)


# Lazy evaluation: operations are noted, and computed together when one is needed.


class OperandNames(Operands):
    """How the operands of an operation are named in a key."""

    def operand(self, x):
        """Return the name of an operand: its place, or the type of what is new."""
        kind = type(x)
        if kind is LazyArray:
            held = buffer_of.__get__(x)
            if type(held) is tuple and held[0] is self:
                return held[1]
            x, kind = x.settled(), ArrayImpl
        if kind is ArrayImpl:
            place = self.places.get(id(x))
            return self.advance(x) if place is None else place
        if kind in SCALAR_TYPES:
            self.numbers.append(x)
            return kind
        return self.external_operand(x)


class Recording(OperandNames):
    """The operations that wait."""

    def record(self, primitive, args, params):
        """Note an operation, and return the arrays that it is going to make."""
        results, arrays, scalars = map(len, (self.results, self.inputs, self.numbers))
        try:
            key = primitive, tuple([self.operand(x) for x in args])
            key = (*key, cache_key_of_params(params)) if params else key
            given = [operand_bytes(x) for x in self.numbers[scalars:]]
            step = self.step.next.get(key)
            if step is None:
                self.tree.note_miss(self.step, key)
                step = add_child(self.step, key, args, params, self)
            if step.primitive is None:
                raise NotDeferrable
        except BaseException:
            self.forget(arrays, scalars)
            raise
        if given:
            find_changing_scalars(self, step, scalars, given)
        self.step, self.count = step, self.count + 1
        outs = [promise(self, n, aval) for n, aval in enumerate(step.avals, results)]
        self.results.extend(map(ref, outs))
        return outs


def find_changing_scalars(recording, step, first, given):
    """Find out which scalars of a step are not what they have been so far.

    Args:
      recording: what the step is recorded in.
      first: the place of its first scalar among the numbers of the recording.
      given: the bytes of its scalars.
    """
    for i, (known, now) in enumerate(zip(step.constants, given)):
        if known is not None and known != now:
            recording.tree.note_change(step)
            step.constants[i] = known = None
        if known is None:
            recording.changing.append(first + i)


def compute_wanted(recording, why):
    """Compute those results of a recording that are still held."""
    promised = list(enumerate(recording.results))
    wanted = [(n, x) for n, known in promised if type(x := known()) is LazyArray]
    if wanted:
        region = recording.tree.region(recording, tuple([n for n, _ in wanted]))
        region.reasons[why] += 1
        for (_, x), out in zip(wanted, run_as_recorded(recording, region)):
            fulfill(x, out._buffer)


def run_as_recorded(recording, region):
    """Run a region on what was recorded, under the switches of that time."""
    before, place = recording.switches, recording.placement
    inputs = [
        x if type(x) is ArrayImpl else ArrayImpl(buffer, x.aval, place)  # was deleted
        for x, buffer in zip(recording.inputs, recording.buffers)
    ]
    evaluating = set_current_trace(recording.trace.parent)
    unchanged = recording.state == config.state
    with evaluating, nullcontext() if unchanged else restored_switches(before, place):
        return region.run(inputs[: region.step.sizes[1]], recording.numbers)


class EagerTrace(Trace):
    """Does at once what cannot wait.

    Args:
      tree: an `Autojit`.
      parent: the `EvalTrace` that was current before.
    """

    def __init__(self, tree, parent):
        self.tree, self.parent = tree, parent
        self.thread, self.recording = get_ident(), None

    def begin(self):
        """Begin a recording, after one that a look or a switch has ended; or None."""
        if self.recording is not None:
            self.recording.compute("a switch has changed")
        if config.jax_disable_jit:
            return None
        self.recording = Recording(self.tree, self)
        return self.recording

    def compute(self, recording, why):
        """Compute what is wanted; in its own thread, a recording ends with that."""
        if self.recording is recording and get_ident() == self.thread:
            self.recording = None
        compute_wanted(recording, why)

    def close(self):
        """Compute what is wanted, and record nothing more."""
        if self.recording is not None:
            self.recording.compute("the block was left")
        self.thread = None

    def run_now(self, primitive, args, params):
        """Return the results of an operation, which is evaluated now."""
        with set_current_trace(self.parent):
            return primitive.bind_all(*args, **params)

    def run_instead(self, primitive, args, params):
        """Return the results of an operation that could not be recorded."""
        callee = called_jaxpr(primitive, params)
        if callee is not None:
            return callee_as_fun(callee)(*args)  # its operations are recorded
        if not any(params.get("donated_invars", ())):
            return self.run_now(primitive, args, params)
        if self.recording is not None:
            self.recording.compute("an array is given up")
        keep_unused = "keep_unused" in params
        given = aliasable_inputs(params["jaxpr"], params["donated_invars"], keep_unused)
        check_donated_once(given, args)
        return donate_operands(given, args, self.run_now(primitive, args, params))


class RecordTrace(EagerTrace):
    """Lets operations wait."""

    def process_primitive(self, primitive, args, params):
        """Note an operation, and return lazy arrays for its results."""
        if bind_listeners or get_ident() != self.thread:
            return self.run_now(primitive, args, params)
        recording = self.recording
        if recording is None or recording.state != config.state:
            recording = self.begin()
        operation = primitive, args, params
        try:
            if primitive in relax_rules:
                operation = relax_rules[primitive](*args, **params) or operation
            outs = recording.record(*operation)
        except Exception:  # what is wrong with it is said where it is computed
            return self.run_instead(primitive, args, params)
        if recording.count >= self.tree.length or recording.holds_too_much():
            recording.compute("many operations wait")
            self.tree.fit_length(recording.step)
        return outs


# Tiered compilation: a region is run one by one, then as Python, then compiled.

EQUATION, CALL = 1.2e-6, 8e-6  # seconds: an operation in Python, a compiled call
FLOP, TRANSCENDENTAL, BYTE = 0.5e-9, 3e-9, 0.125e-9  # seconds of NumPy for each
SPEEDUP = 4  # of compiled code


def seconds_saved(closed):
    """Estimate how much longer a program takes as Python than compiled, in seconds."""
    costs = cost_analysis(closed)
    work = FLOP * costs[FLOPS] + TRANSCENDENTAL * costs[TRANSCENDENTALS]
    before = EQUATION * len(closed.eqns) + work + BYTE * costs[BYTES_ACCESSED]
    return max(before - (CALL + before / SPEEDUP), 0.0)


class Region:
    """Operations up to a look, and the best way so far to run them.

    Attributes:
      step, kept: the last operation, and the numbers of the results that are kept.
      changing: the places of scalars that are arguments; the others are constants.
      runs, seconds: how often and how long it has run, by way.
      reasons: what has ended the recording, and how often.
      refused: why it cannot be compiled, or None.
    """

    closed: Any = None
    program: Any = None
    way, saved, refused = ONE_BY_ONE, 0.0, None

    def __init__(self, recording, kept, patience):
        self.step, self.kept, self.patience = recording.step, kept, patience
        count = self.step.sizes[2]
        self.numbers = recording.numbers[:count]
        self.changing = tuple([i for i in recording.changing if i < count])
        self.placement = recording.placement
        self.runs, self.seconds, self.reasons = Counter(), Counter(), Counter()

    def run(self, inputs, numbers):
        """Return the list of results that are kept."""
        if self.runs and not self.refused and self.way != COMPILED:
            rise(self)
        start = perf_counter()
        if self.program is None:
            outs = interpreted_region(self, inputs, numbers)
        else:
            outs = self.program(*inputs, *[numbers[i] for i in self.changing])
        self.runs[self.way] += 1
        self.seconds[self.way] += perf_counter() - start
        return outs


def rise(region):
    """Find a better way to run, if the runs until now were worth it."""
    if region.closed is None:
        region.closed = closed_of(region)
        region.saved = seconds_saved(region.closed)
    if region.runs.total() * region.saved >= region.patience:
        compile_region(region, COMPILED, None)
    elif region.way == ONE_BY_ONE and same_bits_in_python(
        region.closed, region.placement
    ):
        compile_region(region, AS_PYTHON, "python")


def compile_region(region, way, backend):
    """Make what runs from now on; if that fails, all goes on as it was."""
    try:
        place = region.placement
        region.program = compile_cached(
            region.closed, backend, "region", placement=place
        )
        region.way = way
    except Exception as error:
        region.refused = f"{type(error).__name__}: {error}"


def closed_of(region):
    """Return the program of a region, a `ClosedJaxpr`."""
    path, arguments = region.step.path(), {}
    inputs, results, eqns = [], [], []

    def atom(place):
        if type(place) is not tuple:
            return inputs[-1 - place] if place < 0 else results[place]
        literal = as_literal(region.numbers[place[0]])
        if place[0] not in region.changing:
            return literal
        return arguments.setdefault(place[0], Var(literal.aval))

    for step in path:
        inputs += map(Var, step.visits)
        operands, outs = list(map(atom, step.operands)), list(map(Var, step.avals))
        eqn = JaxprEqn(operands, outs, step.primitive, step.params, step.source)
        eqns.append(static_slice_eqn(eqn))
        results += outs
    invars = [*inputs, *map(arguments.get, region.changing)]
    outvars = [results[number] for number in region.kept]
    return ClosedJaxpr(Jaxpr([], invars, outvars, eqns), [])


def interpreted_region(region, inputs, numbers):
    """Return what a region keeps; each operation is evaluated on its own."""
    path, results = region.step.path(), {}
    last = {place: step for step in path for place in step.operands}
    last.update(dict.fromkeys(region.kept))

    def value(place):
        if type(place) is tuple:
            return numbers[place[0]]
        return inputs[-1 - place] if place < 0 else results[place]

    for step in path:
        outs = step.primitive.bind_all(*map(value, step.operands), **step.params)
        results.update(enumerate(outs, step.sizes[0] - len(outs)))
        for place in {*step.operands}:
            if last[place] is step:
                results.pop(place, None)
    return [results[number] for number in region.kept]


# Just-in-time compilation of regions that are found while a program runs.


class _Waiting(CallbackContext):
    """A block in which operations wait; at its end, they are computed."""

    __slots__ = ()

    def end(self):
        """Compute what waits."""
        self.value.close()


class DeferredBlock(ReentrantContext):
    """A ``with`` block in which operations wait; blocks may be nested."""

    def extent(self):
        """Return the extent of a trace that notes operations, if any are evaluated."""
        around = current_trace()
        if type(around) is RecordTrace and around.tree is not self:
            around = around.parent
        if type(around) is not EvalTrace:
            return set_current_trace(around)
        return _Waiting(_current_trace, RecordTrace(self, around))


class Autojit(DeferredBlock, TraceTreeStats):
    """What was found in a program so far: a tree of traces, and its regions.

    Args:
      patience: compile a region when that would have saved so many seconds by now.
      longest: how many operations wait at most.
    """

    def __init__(self, patience=0.2, longest=256):
        super().__init__(longest)
        self.patience, self.numbers = patience, count()

    def beginning(self):
        """Return a root, the default placement, and the switches of now."""
        values, overrides = config.state
        if self.known[0] is not values or self.known[1] is not overrides:
            place = default_placement()
            key = trace_context(), compile_context(), place
            now = self.roots.setdefault(key, TraceNode()), place, current_switches()
            self.known = values, overrides, now
        return self.known[2]

    def __call__(self, fun):
        """Return a function whose calls are such blocks."""

        @wraps(fun)
        def watched(*args, **kwargs):
            with self:
                return fun(*args, **kwargs)

        watched.autojit = self
        return watched

    def region(self, recording, kept):
        """Return the region that a recording has come to."""
        step = recording.step
        key = kept, tuple([i for i in recording.changing if i < step.sizes[2]])
        if (region := step.regions.get(key)) is None:
            region = Region(recording, kept, self.patience)
            region = step.regions.setdefault(key, region)
            self.found[next(self.numbers)] = region
        return region


def autojit(
    fun: Callable | None = None, /, *, patience: float = 0.2, longest: int = 256
) -> Any:
    """Find what repeats in a program while it runs, and compile it.

    Operations of arrays wait until a number is looked at, and are computed together
    then. A group that was seen before is run as emitted Python; one that is worth it
    is compiled. Python runs as always, and sees the same values; sums and products
    that are compiled may round differently in their last bits, as under `jit`.

    Args:
      fun: a function that need not be pure. Without it, what is returned is a context
        manager, and a decorator.
      patience: compile a group of operations when that would have saved so many
        seconds by now. With 0, in its second run.
      longest: how many operations wait at most.

    Returns:
      The function, whose attribute `autojit` is the `Autojit` of its calls; or an
      `Autojit`. The method `report` of that tells what was found.
    """
    found = Autojit(patience, longest)
    return found if fun is None else found(fun)
