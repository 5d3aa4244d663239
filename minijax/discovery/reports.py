"""Reports of what was found, how it ran, and which guards missed."""

# Made from chapters/41_discovery_ground.md by `make chapter`;
# edit the chapter, not this file.

import os
from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple
from weakref import WeakValueDictionary

from minijax.arrays.avals import ShapedArray
from minijax.jaxprs.staging import source_finder

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


def place_of(path):
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
class Report:
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


class Notes:
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
