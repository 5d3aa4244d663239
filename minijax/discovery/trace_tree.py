"""A tree of traces: a beginning that several traces have in common is kept once."""

# Made from chapters/41_discovery_ground.md by `make chapter`;
# edit the chapter, not this file.

from typing import Any

from minijax.arrays.avals import typeof
from minijax.discovery.operations import bytes_of, may_wait, places_of
from minijax.jaxprs.result_types import types_of_results
from minijax.jaxprs.staging import source_finder


class Step:
    """A recorded operation, after those that lead to it from the root.

    Attributes:
      before: the step before; None at the root.
      primitive, params: the operation; the primitive is None if it may not wait.
      operands: for each a number: results count from 0 upwards, arrays from outside
        from -1 downwards; or ``(i,)``, where a scalar stands in `Recording.numbers`.
      arrived: types of the arrays from outside that it is the first to use.
      avals: types of its results.
      sizes: the counts of results, arrays from outside and scalars up to here.
      constants: the bytes of its scalars, None for one that has changed.
      source: the user's line.
      next: the steps that have followed, by their keys.
      regions: the regions that end here, by what is kept and which scalars change.
    """

    before: Any = None
    primitive = source = None
    operands = avals = arrived = ()
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


def grow(before, key, args, params, recording):
    """Return a new step below another; its shape rule finds, or refuses, its types."""
    primitive, named = key[:2]
    step, (results, arrays, scalars) = Step(), before.sizes
    step.before, step.source = before, source_finder.value()
    if may_wait(primitive, params):
        step.avals = types_of_results(primitive, list(map(typeof, args)), params)
        step.primitive, step.params = primitive, params
    step.arrived = [x.aval for x in recording.inputs[arrays:]]
    step.constants = [bytes_of(x) for x in recording.numbers[scalars:]]
    step.operands = places_of(named, arrays, scalars)
    counts = len(recording.inputs), len(recording.numbers)
    step.sizes = results + len(step.avals), *counts
    if len(before.next) >= MOST_FOLLOWERS:  # of shapes that never come back
        before.next.pop(next(iter(before.next)), None)
    return before.next.setdefault(key, step)
