"""A page as an assignment: a notebook with stubs, and the package that it makes."""

from dataclasses import replace
from pathlib import Path

import nbformat

from book.course.stage import Files, Stage
from book.course.stubs import Work, stubbed
from book.helper import amending
from book.tools import export, folds
from book.tools.modules import Package
from book.tools.notebook import convert
from book.tools.source import BookError, Cell, find_chapter

EXERCISE = "exercise"
YOURS = "# Your solution of exercise {}"


def notebook(at: Stage) -> nbformat.NotebookNode:
    """The notebook of a page with its exports as stubs, and no solutions."""
    book = convert(find_chapter(at.page))
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    numbers = {cell.index: number for number, cell in at.solutions.items()}
    for made, cell in zip(code, at.chapter.cells, strict=True):
        head, _, _ = made.source.partition("\n")
        if cell.module and not folds.is_folded(cell):
            made.source = f"{head}\n{stubbed(cell.code, _work(at, cell))}"
        elif cell.heading == "Exercises" and folds.is_folded(cell):
            number = numbers.get(cell.index, "")
            made.source = YOURS.format(number)
            made.metadata[EXERCISE] = cell.index
    return book


def _work(at: Stage, cell: Cell) -> Work:
    """What of a cell is the reader's; the prose around it says what to do."""
    where = {n.rpartition(".")[2]: text for n, text in at.work.where.items()}
    return replace(at.work, where=at.work.where | where, notes={})


def files_of(at: Stage, path: Path) -> tuple[Files, dict[str, str]]:
    """The package that a notebook makes of a page, and its solutions of exercises.

    Raises:
      BookError: an exported cell is missing, or cannot be read.
    """
    book = nbformat.read(path, as_version=4)
    cells = [cell for cell in book.cells if cell.cell_type == "code"]
    found = [c.source for c in cells if c.source.startswith(("#| export", "%%amend"))]
    ours = [cell for cell in at.chapter.cells if cell.module]
    if len(found) != len(ours):
        raise BookError(
            f"{path} has {len(found)} cells that begin with `#| export` or `%%amend`, "
            f"and the page has {len(ours)}; keep each, and its first line"
        )
    texts = {cell.index: text for cell, text in zip(ours, found)}
    for cell in (cell for cell in ours if cell.amends):
        try:
            amending.pieces(texts[cell.index].partition("\n")[2], cell.amends)
        except (ValueError, SyntaxError) as error:
            raise BookError(
                f"in the section {cell.heading!r}, what amends "
                f"{', '.join(cell.amends)} is still to write: {error}"
            ) from None
    new = [replace(c, text=texts.get(c.index, c.text)) for c in at.chapter.cells]
    chapters = [*at.whole.chapters[:-1], replace(at.chapter, cells=new)]
    answers = {str(c.metadata[EXERCISE]): c.source for c in cells if _is_solved(c)}
    return export.written(Package(chapters)), answers


def _is_solved(cell: nbformat.NotebookNode) -> bool:
    lines = cell.source.split("\n")
    written = any(line.strip() and not line.startswith("#") for line in lines)
    return EXERCISE in cell.metadata and written
