# Made from chapters/41_discovery.md by `make chapter`;
# edit the chapter, not this file.
"""Just-in-time compilation of regions that are found while a program runs."""

from collections import Counter
from contextlib import nullcontext
from contextvars import ContextVar
from functools import wraps
from itertools import count
from weakref import WeakValueDictionary

from minijax.arrays.avals import ShapedArray
from minijax.arrays.placement import default_placement
from minijax.arrays.settings import config
from minijax.core import EvalTrace, current_trace, set_current_trace
from minijax.discovery.operations import switches
from minijax.discovery.recording import RecordTrace
from minijax.discovery.reports import RegionReport, Report, place_of
from minijax.discovery.tiers import Region
from minijax.discovery.trace_tree import Step
from minijax.forgetting.remembering import trace_context
from minijax.jaxprs.latest import source_finder
from minijax.jitting.compilation import compile_context

_blocks: ContextVar = ContextVar("blocks", default=())


class Block:
    """A ``with`` block in which operations wait; blocks may be nested."""

    def __enter__(self):
        trace, around = None, current_trace()
        if type(around) is RecordTrace and around.tree is not self:
            around = around.parent
        if type(around) is EvalTrace:
            trace = RecordTrace(self, around)
        block = nullcontext() if trace is None else set_current_trace(trace)
        block.__enter__()
        _blocks.set((*_blocks.get(), (trace, block)))
        return self

    def __exit__(self, *exception):
        *others, (trace, block) = _blocks.get()
        _blocks.set(tuple(others))
        block.__exit__(*exception)
        if trace is not None:
            trace.close()

    def __call__(self, fun):
        """Return a function whose calls are such blocks."""

        @wraps(fun)
        def watched(*args, **kwargs):
            with self:
                return fun(*args, **kwargs)

        watched.autojit = self
        return watched


MOST_STEPS = 50_000


class Notes(Block):
    """What a tree of traces notes for its report, and about its own size."""

    def note_miss(self, step, key):
        """Note that an operation has not followed a step before, and why."""
        if step.next:
            line = source_finder.value()
            where = "a line unknown" if line is None else line.place
            self.misses[where, difference(key, [*step.next])] += 1
        self.steps += 1
        if self.steps > MOST_STEPS:  # of programs that never repeat themselves
            self.steps = 0
            self.roots.clear()
            self.known = None, None, None

    def note_change(self, step):
        """Note that a scalar is not the same in all turns."""
        where = "a line unknown" if step.source is None else step.source.place
        self.misses[where, "a number has changed"] += 1

    def fit_length(self, step):
        """Let as many operations wait as are a number of whole turns of a loop."""
        if (turn := turn_of(step)) is not None:
            self.length = self.longest // turn * turn

    def report(self):
        """Return a `Report` on what was found."""
        rows = []
        for region in self.found.values():
            path, runs = region.step.path(), dict(region.runs)
            counts = len(path), len(region.kept), len(region.changing)
            seconds = dict(region.seconds)
            row = place_of(path), *counts, runs, seconds, region.refused
            rows.append(RegionReport(*row))
        return Report(rows, dict(self.misses))


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


class Autojit(Notes):
    """What was found in a program so far: a tree of traces, and its regions.

    Args:
      patience: compile a region when that would have saved so many seconds by now.
      longest: how many operations wait at most.
    """

    def __init__(self, patience=0.2, longest=256):
        self.patience, self.longest, self.length = patience, longest, longest
        self.known, self.steps = (None, None, None), 0
        self.numbers, self.roots = count(), {}
        self.misses, self.found = Counter(), WeakValueDictionary()

    def beginning(self):
        """Return the root for the switches of now, the default placement, the switches."""
        values, overrides = config.state
        if self.known[0] is not values or self.known[1] is not overrides:
            place = default_placement()
            key = trace_context(), compile_context(), place
            now = self.roots.setdefault(key, Step()), place, switches()
            self.known = values, overrides, now
        return self.known[2]

    def region(self, recording, kept):
        """Return the region that a recording has come to."""
        step = recording.step
        key = kept, tuple([i for i in recording.changing if i < step.sizes[2]])
        if (region := step.regions.get(key)) is None:
            region = Region(recording, kept, self.patience)
            region = step.regions.setdefault(key, region)
            self.found[next(self.numbers)] = region
        return region


def autojit(fun=None, /, *, patience=0.2, longest=256):
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
