"""Make the page of test-suites that are run over minijax under the name jax.

python -m book.tools.suites      write book/suites.md, from what is recorded
"""

import json
from math import exp, log

from book.tools.source import ROOT
from tests.conformance.suites import ABSENT, SUITES

RECORDED = ROOT / "tests" / "conformance" / "recorded.json"
PAGE = ROOT / "book" / "suites.md"
HEAD = """# Test-suites of other people

The tests of packages that were written for JAX, run over minijax without a change, by
`python -m minijax.as_jax -m pytest` ([chapter 42](../chapters/42_as_jax.ipynb)). What
real JAX {jax} passes is the denominator; a test that fails over both counts for
neither. Seconds are of the processor, on one core, with an empty cache, for the files
that were run over both. `make conformance SUITES="{first}"` repeats a row, and
`python -m tests.conformance {first} --real` what is recorded of JAX.

| package | version | passed | of | seconds over JAX | over minijax | ratio |
|---|---|---|---|---|---|---|
"""


def rows(entries):
    """Return a line for each suite that was run over both."""
    for name, entry in sorted(entries.items()):
        if not (ours := entry.get("ours")):
            continue
        theirs, here = ours["seconds of JAX"], ours["seconds"]
        times = f"{theirs:.0f} | {here:.0f} | {here / theirs:.2f}" if theirs else "| | "
        counts = f"{ours['passed']:,} | {ours['of']:,}"
        yield f"| {name} | {entry['version']} | {counts} | {times} |"


def ratios(entries):
    """Return the ratios of times that are recorded."""
    pairs = [entry.get("ours", {}) for entry in entries.values()]
    timed = [pair for pair in pairs if pair.get("seconds of JAX")]
    return [pair["seconds"] / pair["seconds of JAX"] for pair in timed]


def page():
    """Return the page."""
    entries = json.loads(RECORDED.read_text(encoding="utf-8"))
    there = [*rows(entries)]
    found = ratios(entries)
    mean = exp(sum(map(log, found)) / len(found)) if found else 1.0
    said = f"\nThe geometric mean of the ratios is {mean:.2f}.\n" if found else ""
    first = there[0].split()[1] if there else "mctx"
    text = HEAD.format(jax="0.10.2", first=first) + "\n".join(there) + "\n" + said
    reasons = [
        f"- {name}: {reason} ({len(tests)} tests or groups of them)"
        for name, suite in sorted(SUITES.items())
        for reason, tests in suite.skips.items()
    ]
    absent = [f"- {name} {reason}." for name, reason in ABSENT.items()]
    text += "\n## Tests that cannot pass, and why\n\n" + "\n".join(reasons) + "\n"
    return text + "\n## Packages without a row\n\n" + "\n".join(absent) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
