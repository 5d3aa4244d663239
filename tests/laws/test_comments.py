"""Comments about an output agree with it: their numbers stand in code or output."""

import re

import nbformat
import pytest

from book.tools.source import chapter_paths, floor_of, read_chapter
from tests.laws.test_chapters import text_of

LAST = 16  # the pages of Parts I to III
PATHS = [path for path in chapter_paths() if floor_of(path).number <= LAST]
NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?!\w)")
CHAPTER = re.compile(r"[Cc]hapters?\s+\d[\d, andto–]*")
# Reckoned from what stands there, and not printed: half of a last digit, 400 * 400.
ARGUED = {"01_interception": {"0.005"}, "03_numpy": {"160000"}}


def numbers(text):
    """The numbers of a text that have more than one digit, without commas."""
    found = [number.rstrip(",").replace(",", "") for number in NUMBER.findall(text)]
    return {number for number in found if len(number) > 1}


def unsaid(code, output):
    """Numbers in the comments of a cell that neither its code nor its output has."""
    lines = code.split("\n")
    comments = [line for line in lines if re.match(r"\s*# ", line)]
    rest = "\n".join([*(line for line in lines if line not in comments), output])
    known = {number.replace(",", "") for number in re.findall(r"\d[\d,.]*\d", rest)}
    return numbers(CHAPTER.sub("", "\n".join(comments))) - known


@pytest.mark.parametrize("path", PATHS, ids=[path.stem for path in PATHS])
def test_comments_say_what_was_printed(path):
    chapter, book = read_chapter(path), nbformat.read(path.with_suffix(".ipynb"), 4)
    stored = [cell for cell in book.cells if cell.cell_type == "code"]
    for cell, made in zip(chapter.cells, stored, strict=True):
        if not cell.module and made.outputs:
            found = unsaid(cell.text, "\n".join(map(text_of, made.outputs)))
            assert not found - ARGUED.get(path.stem, set()), cell.place


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("# It takes 132 bytes.", set()),
        ("# It takes 133 bytes.", {"133"}),
        ("# 8 floats, as in chapter 17", set()),
        ("# Of 1,000 numbers 0.25 are", {"0.25"}),
    ],
)
def test_a_wrong_number_is_seen(comment, expected):
    assert unsaid(f"size = 1_000\nprint(size)\n{comment}", "132 1,000") == expected
