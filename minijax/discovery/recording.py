"""Lazy evaluation: operations are noted, and computed together when one is needed."""

# Made from chapters/41_discovery_ground.md by `make chapter`;
# edit the chapter, not this file.

from contextlib import nullcontext
from threading import get_ident
from weakref import ref

from minijax.arrays.array import ArrayImpl
from minijax.arrays.settings import config
from minijax.core import Trace, set_current_trace, watchers
from minijax.discovery.lazy_arrays import LazyArray, buffer_of, promise, settle
from minijax.discovery.operands import SCALARS, CannotWait, Operands
from minijax.discovery.operations import as_recorded, bytes_of, callee_of, loosen_rules
from minijax.discovery.trace_tree import grow
from minijax.forgetting.remembering import key_of_params
from minijax.jitting.arguments import check_given_once, give_up, memory_given
from minijax.own_rules.flat_functions import as_fun


class Names(Operands):
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
            return self.arrive(x) if place is None else place
        if kind in SCALARS:
            self.numbers.append(x)
            return kind
        return self.foreign(x)


class Recording(Names):
    """The operations that wait."""

    def record(self, primitive, args, params):
        """Note an operation, and return the arrays that it is going to make."""
        results, arrays, scalars = map(len, (self.results, self.inputs, self.numbers))
        try:
            key = primitive, tuple([self.operand(x) for x in args])
            key = (*key, key_of_params(params)) if params else key
            given = [bytes_of(x) for x in self.numbers[scalars:]]
            step = self.step.next.get(key)
            if step is None:
                self.tree.note_miss(self.step, key)
                step = grow(self.step, key, args, params, self)
            if step.primitive is None:
                raise CannotWait
        except BaseException:
            self.forget(arrays, scalars)
            raise
        if given:
            compare(self, step, scalars, given)
        self.step, self.count = step, self.count + 1
        outs = [promise(self, n, aval) for n, aval in enumerate(step.avals, results)]
        self.results.extend(map(ref, outs))
        return outs


def compare(recording, step, first, given):
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
            settle(x, out._buffer)


def run_as_recorded(recording, region):
    """Run a region on what was recorded, under the switches of that time."""
    before, place = recording.switches, recording.placement
    inputs = [
        x if type(x) is ArrayImpl else ArrayImpl(buffer, x.aval, place)  # was deleted
        for x, buffer in zip(recording.inputs, recording.buffers)
    ]
    evaluating = set_current_trace(recording.trace.parent)
    unchanged = recording.state == config.state
    with evaluating, nullcontext() if unchanged else as_recorded(before, place):
        return region.run(inputs[: region.step.sizes[1]], recording.numbers)


class Evaluating(Trace):
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

    def at_once(self, primitive, args, params):
        """Return the results of an operation, which is evaluated now."""
        with set_current_trace(self.parent):
            return primitive.bind(*args, **params)

    def instead(self, primitive, args, params):
        """Return the results of an operation that could not be recorded."""
        callee = callee_of(primitive, params)
        if callee is not None:
            return as_fun(callee)(*args)  # its operations are recorded
        if not any(params.get("donated_invars", ())):
            return self.at_once(primitive, args, params)
        if self.recording is not None:
            self.recording.compute("an array is given up")
        keep_unused = "keep_unused" in params
        given = memory_given(params["jaxpr"], params["donated_invars"], keep_unused)
        check_given_once(given, args)
        return give_up(given, args, self.at_once(primitive, args, params))


class RecordTrace(Evaluating):
    """Lets operations wait."""

    def process_primitive(self, primitive, args, params):
        """Note an operation, and return lazy arrays for its results."""
        if watchers or get_ident() != self.thread:
            return self.at_once(primitive, args, params)
        recording = self.recording
        if recording is None or recording.state != config.state:
            recording = self.begin()
        operation = primitive, args, params
        try:
            if primitive in loosen_rules:
                operation = loosen_rules[primitive](*args, **params) or operation
            outs = recording.record(*operation)
        except Exception:  # what is wrong with it is said where it is computed
            return self.instead(primitive, args, params)
        if recording.count >= self.tree.length or recording.holds_too_much():
            recording.compute("many operations wait")
            self.tree.fit_length(recording.step)
        return outs
