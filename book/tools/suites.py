"""Make the page of test-suites that are run over minijax under the name jax.

python -m book.tools.suites            write book/suites.md, from what is recorded
python -m book.tools.suites --table    print its rows
"""

import json
import sys
from math import exp, log
from typing import NamedTuple

from book.tools.source import ROOT
from tests.conformance.suites import ABSENT, SUITES

RECORDED = ROOT / "tests" / "conformance" / "recorded.json"
PAGE = ROOT / "book" / "suites.md"
HEAD = """# Test-suites of other people

The tests of packages that were written for JAX, run over minijax without a change, by
`python -m minijax.as_jax -m pytest` ([chapter 42](../chapters/42_as_jax.ipynb)). What
real JAX {jax} passes is the denominator; a test that fails over both counts for
neither. Seconds are of the processor, for one run of the suite in one process, on one
core, with an empty cache. `make conformance SUITES="{first}"` repeats a row, and
`python -m tests.conformance {first} --real` what is recorded of JAX.

| package | version | passed | of | seconds over JAX | over minijax | ratio |
|---|---|---|---|---|---|---|
"""


class Row(NamedTuple):
    """A suite that was run over both.

    Attributes:
      name: of the package.
      version: of the package.
      passed: how many tests pass here of those that pass over real JAX.
      of: how many those are.
      theirs: seconds over real JAX.
      ours: seconds over minijax.
    """

    name: str
    version: str
    passed: int
    of: int
    theirs: float
    ours: float


def rows():
    """Return what is recorded of the suites that were run over both."""
    entries = json.loads(RECORDED.read_text(encoding="utf-8"))
    both = [(n, e, e["ours"]) for n, e in sorted(entries.items()) if "ours" in e]
    return [
        Row(n, e["version"], here["passed"], here["of"], e["seconds"], here["seconds"])
        for n, e, here in both
    ]


def mean_ratio(found):
    """Return the geometric mean of the ratios of times."""
    return exp(sum(log(row.ours / row.theirs) for row in found) / len(found))


def said_of_all(found):
    """Return the sentence below the table."""
    passed, of = sum(row.passed for row in found), sum(row.of for row in found)
    theirs, ours = sum(row.theirs for row in found), sum(row.ours for row in found)
    return (
        f"Together {passed:,} of {of:,} pass ({100 * passed / of:.1f} %), in "
        f"{ours / 60:.1f} minutes where JAX takes {theirs / 60:.1f}. The geometric "
        f"mean of the ratios is {mean_ratio(found):.2f}."
    )


def table():
    """Return the rows as plain text, for a terminal."""
    lines = [
        f"{'test-suites of packages':26}{'passed':>8}{'of':>8}{'s JAX':>9}{'s':>8}"
    ]
    for row in rows():
        name, ratio = f"{row.name} {row.version}", row.ours / row.theirs
        counts = f"{row.passed:8,}{row.of:8,}"
        lines.append(f"{name:26}{counts}{row.theirs:9.0f}{row.ours:8.0f}{ratio:7.2f}")
    return "\n".join([*lines, said_of_all(rows())])


def _of_table(row):
    counts, seconds = (
        f"{row.passed:,} | {row.of:,}",
        f"{row.theirs:.0f} | {row.ours:.0f}",
    )
    ratio = f"{row.ours / row.theirs:.2f}"
    return f"| {row.name} | {row.version} | {counts} | {seconds} | {ratio} |"


def _choices():
    """Return a line for each suite of which not all tests are run."""
    for name, suite in sorted(SUITES.items()):
        if suite.one_of > 1:
            yield (
                f"- {name}: one test of {suite.one_of}, by a sum of its name, the same "
                "over both: all of them take JAX too long."
            )
        for reason, files in suite.left_out.items():
            yield f"- {name}: without `{'`, `'.join(files)}`. {reason}"


def page():
    """Return the page."""
    reasons = [
        f"- {name}: {reason} ({len(tests)} tests or groups of them)"
        for name, suite in sorted(SUITES.items())
        for reason, tests in suite.skips.items()
    ]
    absent = [f"- {name} {reason}." for name, reason in ABSENT.items()]
    found = rows()
    head = HEAD.format(jax="0.10.2", first=found[0].name)
    lines = [*map(_of_table, found), "", said_of_all(found)]
    lines += ["", "## What is a part", "", *_choices()]
    lines += ["", "## Tests that cannot pass, and why", "", *reasons]
    lines += ["", "## Packages without a row", "", *absent]
    return head + "\n".join(lines) + "\n"


if __name__ == "__main__":
    if "--table" in sys.argv:
        print(table())
    else:
        PAGE.write_text(page(), encoding="utf-8")
