"""The page that lists all exercises, with links to their solutions."""

import re

from book.tools.source import Chapter, exercises, slug

_EXERCISE = re.compile(r"\*\*(\d+) (★+) \((\d+) minutes\)\.\*\* *(.*)")
_END = re.compile(r"[.?!:](?= |$)")
SHORT = 25  # characters of a first sentence that says too little


def solutions_page(chapters: list[Chapter]) -> str:
    """The index: each exercise with its stars, its minutes, and what it asks."""
    lines = ["# Exercises and solutions", "", _TEXT]
    for chapter in chapters:
        rows = [_row(text, chapter.name) for _, text in exercises(chapter)]
        if rows:
            place = f"../chapters/{chapter.name}.ipynb#{_section(chapter)}"
            lines += ["", f"## [{chapter.title}]({place})", ""]
            lines += ["| | | minutes | |", "|---|---|---:|---|", *rows]
    return "\n".join(lines) + "\n"


def _section(chapter: Chapter) -> str:
    """The anchor of the section in which the first exercise of a chapter stands."""
    first = exercises(chapter)[0][0]
    above = [text for n, text in chapter.prose if n < first and text.startswith("## ")]
    return slug(above[-1].removeprefix("## "))


def _row(text: str, page: str) -> str:
    match = _EXERCISE.match(text)
    assert match, text  # held by tests/laws/test_chapters.py
    number, stars, minutes, asks = match.groups()
    asks = first_sentence(asks).replace("|", "\\|")
    asks = asks.replace("](#", f"](../chapters/{page}.ipynb#")
    return f"| {number} | {stars} | {minutes} | {asks} |"


def first_sentence(text: str) -> str:
    """The beginning of a text that says something, up to the end of a sentence."""
    for end in _END.finditer(text):
        found = text[: end.end()]
        if len(found) > SHORT and _is_closed(found):
            return found
    return text


def _is_closed(text: str) -> bool:
    """Whether no code, formula, emphasis or link is cut in two."""
    pairs = all(text.count(mark) % 2 == 0 for mark in "`$*")
    return pairs and text.count("[") == text.count("](")


_TEXT = (
    "All exercises of the book, with their stars, the minutes that they take, and how "
    "they begin. A heading leads to the exercises of its page, where the solution is "
    "folded below each of them. The tests run all solutions."
)
