"""The shape of a chapter, and what its stored outputs may hold."""

import re

import nbformat
import pytest

from book.tools import owner
from book.tools.source import (
    CHAPTERS,
    chapter_paths,
    exercises,
    floor_of,
    read_chapter,
)

PATHS = chapter_paths()
NAMES = [path.stem for path in PATHS]
each = pytest.mark.parametrize("chapter", PATHS, ids=NAMES, indirect=True)
SPINES = [p for p in PATHS if floor_of(p).number > 0 and floor_of(p).is_spine]
each_spine = pytest.mark.parametrize(
    "chapter", SPINES, ids=[path.stem for path in SPINES], indirect=True
)
FLOORS = [path for path in PATHS if floor_of(path).number > 0]  # not the prologue
each_floor = pytest.mark.parametrize(
    "chapter", FLOORS, ids=[path.stem for path in FLOORS], indirect=True
)

SECTIONS = [
    "Where we are",
    "Does it compose?",
    "What does it cost?",
    "In JAX",
    "Checkpoint",
    "Exercises",
    "Further reading",
]
FIRST_CELL = """\
try:
    import minijax
    import minijax_book
except ModuleNotFoundError:
    address = "git+https://github.com/%s/minijax@%s"
    if "/OWNER/" in address:
        raise RuntimeError("Replace OWNER by this book's GitHub account.") from None
    %%pip install -q "minijax-book @ {address}"
    %%pip install -q "minijax-figures @ {address}#subdirectory=book/helper"
    import minijax
    import minijax_book"""
EXERCISE = re.compile(r"\*\*\d+ ★{1,3} \(\d+ minutes\)\.\*\*")
FOLDED = {"hide-cell", "hide-input", "hide-output"}

MACHINE = re.compile(r"(?<![\w.:/])/(home|root|work|tmp|Users|mnt|opt|usr)/\w")
ADDRESS = re.compile(r"(?<![<\"])\b0x[0-9a-fA-F]{6,}")  # in <0x…> are bits of numbers
TIMING = re.compile(r"\d\s?(ms|µs|μs|us|ns)\b|\d\.\d+ s(econds)?\b")


@pytest.fixture
def chapter(request):
    """The chapter in this file, read when a test asks for it."""
    return read_chapter(request.param)


@each_spine
def test_sections_are_there_and_in_order(chapter):
    titles = [text for level, text in chapter.headings if level == 2]
    assert [title for title in titles if title in SECTIONS] == SECTIONS


@each_floor
def test_title_has_the_number(chapter):
    letter = "b?" if chapter.floor.room == 1 else ""  # of a floor's second spine
    assert re.match(rf"{chapter.floor.number}{letter} · ", chapter.title)
    assert chapter.title.endswith(": the rest") == (chapter.floor.room == 2)
    assert sum(level == 1 for level, _ in chapter.headings) == 1


@each
def test_first_cell_installs_on_colab(chapter):
    assert chapter.cells[0].text == FIRST_CELL % (owner.current(), owner.reference())


@each_spine
def test_exercises_have_folded_executed_solutions(chapter):
    starts = [line for line, _ in exercises(chapter)]
    ends = [*starts[1:], chapter.prose[-1][0] + 1]
    assert len(starts) >= 3
    for (line, text), end in zip(exercises(chapter), ends, strict=True):
        assert EXERCISE.match(text), f"line {line}: **N ★ (M minutes).** ..."
        solutions = [c for c in chapter.cells if line < c.line < end]
        assert any(FOLDED & {*c.tags} for c in solutions), f"line {line}: no solution"
        assert not any("skip-execution" in c.tags for c in solutions)


def outputs(chapter):
    """`(tags, cell's number, output)` for each stored output of a chapter."""
    book = nbformat.read(CHAPTERS / f"{chapter.name}.ipynb", as_version=4)
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    for number, cell in enumerate(code, start=1):
        for output in cell.outputs:
            yield cell.metadata.get("tags", []), number, output


def text_of(output):
    """All text of an output: stream, data and traceback."""
    data = output.get("data", {})
    texts = [text for kind, text in data.items() if not kind.startswith("image/png")]
    texts += [output.get("text", ""), output.get("evalue", "")]
    return "\n".join(map(str, [*texts, *output.get("traceback", [])]))


@each
def test_outputs(chapter):
    """They hold no place of a machine, time or warning; only announced cells fail."""
    for tags, number, output in outputs(chapter):
        text = text_of(output)
        found = MACHINE.search(text) or ADDRESS.search(text)
        assert not found, f"cell {number}: {found[0]}"
        found = "nbval-ignore-output" not in tags and TIMING.search(text)
        assert not found, f"cell {number}: {found[0]}"
        assert output.get("name") != "stderr", f"cell {number}: {text}"
        error = output.output_type == "error"
        assert not error or "raises-exception" in tags, f"cell {number}"
