"""The index of exercises: all of them, each with the beginning of what it asks."""

import re

import pytest

from book.tools.solutions import first_sentence, solutions_page
from book.tools.source import exercises, read_chapters, slug


def test_each_exercise_has_a_row():
    chapters = read_chapters()
    page = solutions_page(chapters)
    rows = re.findall(r"^\| \d+ \| ★+ \| \d+ \| .+ \|$", page, re.MULTILINE)
    assert len(rows) == sum(len(exercises(chapter)) for chapter in chapters) > 200


@pytest.mark.parametrize(
    "text, first",
    [
        ("Write a rule for the sum of squares. Then test it.", 0),
        ("Short. But what follows is said as well. Then no more.", 1),
        ("A name like `jnp.where. Really` is not cut in two. Is it?", 1),
        ("There is no end in this one", 0),
    ],
)
def test_sentences_end_where_nothing_is_open(text, first):
    ends = [m.end() for m in re.finditer(r"[.?](?= |$)", text)]
    found = first_sentence(text)
    assert found == (text[: ends[first]] if ends else text)
    assert found.count("`") % 2 == 0


def test_links_lead_to_headings():
    chapters = read_chapters()
    headings = {
        f"{chapter.name}.ipynb#{slug(text.lstrip('# '))}"
        for chapter in chapters
        for _, text in chapter.prose
        if text.startswith("#")
    }
    page = solutions_page(chapters)
    links = re.findall(r"\]\((?:\.\./chapters/)?([^)]*#[^)]*)\)", page)
    assert len(links) > 50
    assert set(links) <= headings
