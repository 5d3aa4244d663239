"""Tiered compilation: a region is run one by one, then as Python, then compiled."""

# Made from chapters/41_discovery_ground.md by `make chapter`;
# edit the chapter, not this file.

from collections import Counter
from time import perf_counter
from typing import Any

from minijax.discovery.operations import firm, same_bits_in_python
from minijax.discovery.reports import AS_PYTHON, COMPILED, ONE_BY_ONE
from minijax.jaxprs.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var
from minijax.jaxprs.staging import as_literal
from minijax.jitting.compilation import compiled
from minijax.jitting.costs import BYTES, FLOPS, TRANSCENDENTALS, cost_analysis

EQUATION, CALL = 1.2e-6, 8e-6  # seconds: an operation in Python, a compiled call
FLOP, TRANSCENDENTAL, BYTE = 0.5e-9, 3e-9, 0.125e-9  # seconds of NumPy for each
SPEEDUP = 4  # of compiled code


def seconds_saved(closed):
    """Estimate how much longer a program takes as Python than compiled, in seconds."""
    costs = cost_analysis(closed)
    work = FLOP * costs[FLOPS] + TRANSCENDENTAL * costs[TRANSCENDENTALS]
    before = EQUATION * len(closed.eqns) + work + BYTE * costs[BYTES]
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
            outs = one_by_one(self, inputs, numbers)
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
        make(region, COMPILED, None)
    elif region.way == ONE_BY_ONE and same_bits_in_python(
        region.closed, region.placement
    ):
        make(region, AS_PYTHON, "python")


def make(region, way, backend):
    """Make what runs from now on; if that fails, all goes on as it was."""
    try:
        place = region.placement
        region.program = compiled(region.closed, backend, "region", placement=place)
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
        inputs += map(Var, step.arrived)
        operands, outs = list(map(atom, step.operands)), list(map(Var, step.avals))
        eqn = JaxprEqn(operands, outs, step.primitive, step.params, step.source)
        eqns.append(firm(eqn))
        results += outs
    invars = [*inputs, *map(arguments.get, region.changing)]
    outvars = [results[number] for number in region.kept]
    return ClosedJaxpr(Jaxpr([], invars, outvars, eqns), [])


def one_by_one(region, inputs, numbers):
    """Return what a region keeps; each operation is evaluated on its own."""
    path, results = region.step.path(), {}
    last = {place: step for step in path for place in step.operands}
    last.update(dict.fromkeys(region.kept))

    def value(place):
        if type(place) is tuple:
            return numbers[place[0]]
        return inputs[-1 - place] if place < 0 else results[place]

    for step in path:
        outs = step.primitive.bind(*map(value, step.operands), **step.params)
        results.update(enumerate(outs, step.sizes[0] - len(outs)))
        for place in {*step.operands}:
            if last[place] is step:
                results.pop(place, None)
    return [results[number] for number in region.kept]
