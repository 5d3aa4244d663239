# Made from chapters/41_discovery_ground.md by `make chapter`;
# edit the chapter, not this file.
"""Reports of what was found, how it ran, and which guards missed."""

import os
from typing import NamedTuple

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


class Report(NamedTuple):
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

    def __str__(self):
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

    __repr__ = __str__

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
