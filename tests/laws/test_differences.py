"""The page of differences: ten lines first, then topics, and no sentence twice."""

import re
from collections import Counter

from book.tools.source import ROOT

TEXT = (ROOT / "book" / "differences.md").read_text(encoding="utf-8")
SECTIONS = {
    section.partition("\n")[0]: re.findall("^- (.*)$", section, re.MULTILINE)
    for section in TEXT.split("\n## ")[1:]
}


def test_ten_lines_come_first():
    assert len(next(iter(SECTIONS.values()))) == 10
    assert len(SECTIONS) > 9 and all(SECTIONS.values())


def test_nothing_is_said_twice():
    said = [line for lines in SECTIONS.values() for line in lines]
    sentences = Counter(
        s for line in said for s in re.split(r"(?<=\.) (?=[A-Z`])", line)
    )
    assert len(said) > 150
    assert not [s for s, count in sentences.items() if count > 1 and len(s) > 40]


def test_each_line_has_a_reason():
    """A line is more than one fact: what is different, and why."""
    said = [line for name, lines in SECTIONS.items() for line in lines]
    parts = (re.split(r"(?<=[.:;,]) ", line) for line in said)
    assert not [line for line, found in zip(said, parts) if len(found) < 2]
