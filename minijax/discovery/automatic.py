"""Just-in-time compilation of regions that are found while a program runs."""

# Made from chapters/41_discovery_ground.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Callable
from functools import wraps
from itertools import count
from typing import Any

from minijax.arrays.placement import default_placement
from minijax.arrays.settings import config
from minijax.core import EvalTrace, _current_trace, current_trace, set_current_trace
from minijax.discovery.operations import switches
from minijax.discovery.recording import RecordTrace
from minijax.discovery.reports import Notes
from minijax.discovery.tiers import Region
from minijax.discovery.trace_tree import Step
from minijax.extents import Ending, Enterable
from minijax.forgetting.remembering import trace_context
from minijax.jitting.compilation import compile_context


class _Waiting(Ending):
    """A block in which operations wait; at its end, they are computed."""

    __slots__ = ()

    def end(self):
        """Compute what waits."""
        self.value.close()


class Block(Enterable):
    """A ``with`` block in which operations wait; blocks may be nested."""

    def extent(self):
        """Return the extent of a trace that notes operations, if any are evaluated."""
        around = current_trace()
        if type(around) is RecordTrace and around.tree is not self:
            around = around.parent
        if type(around) is not EvalTrace:
            return set_current_trace(around)
        return _Waiting(_current_trace, RecordTrace(self, around))


class Autojit(Block, Notes):
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
            now = self.roots.setdefault(key, Step()), place, switches()
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
