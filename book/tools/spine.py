"""How long is the walk? Words, lines of code and folds of each page, and their budget.

python -m book.tools.spine         print the table
python -m book.tools.spine --bad   print what breaks the budget; exit 1 if anything does

Lines of a cell are those that a reader sees: not blank, no import, of a docstring the
first line.
"""

import argparse
import sys
from dataclasses import dataclass

from book.tools import folds, links, page
from book.tools.source import Cell, Chapter, read_chapters

WORDS = range(1800, 5201)
EXPORTED, CODE, CELL, FOLDS = 250, 500, 25, 4  # at most
UNUSED = {"25_matmul": 1, "37_machines": 4}  # to be mended; it shrinks
HIDDEN = {"hide-cell", "hide-input", "remove-cell", "remove-input"}


@dataclass(frozen=True)
class Row:
    """The numbers of a page; `cell` is the length of the longest that is shown."""

    words: int
    exported: int
    folded: int
    code: int
    cell: int
    folds: int
    untitled: int


def measure(chapter: Chapter) -> Row:
    """The numbers of one page."""
    seen = [cell for cell in chapter.cells if not HIDDEN & {*cell.tags}]
    exported = [cell for cell in chapter.cells if cell.module]
    hidden = [cell for cell in exported if cell not in seen]
    return Row(
        words=sum(len(line.split()) for _, line in chapter.prose),
        exported=sum(height(cell) for cell in exported if cell in seen),
        folded=sum(map(height, hidden)),
        code=sum(map(height, seen)),
        cell=max(map(height, seen), default=0),
        folds=sum(folds.is_folded(cell) for cell in hidden),
        untitled=len(folds_without_title(chapter)),
    )


def height(cell: Cell) -> int:
    """How many lines of a cell a reader sees; of an amendment, those that come."""
    if not cell.amends:
        return sum(bool(line.strip()) for line in page.shown(cell).split("\n"))
    changes = links.index().package.modules[str(cell.module)].changes
    lines = page.marked(cell, changes)
    return sum(mark == "+" and bool(line.strip()) for mark, line in lines)


def is_judged(chapter: Chapter) -> bool:
    """Whether the budget is for this page: spines only, not the prologue."""
    return chapter.floor.number > 0 and chapter.floor.is_spine


def faults(chapter: Chapter) -> list[str]:
    """What breaks the budget: the place, the number, and how to mend it."""
    row = measure(chapter)
    found = folds_without_title(chapter)
    if is_judged(chapter):
        found += _of_size(chapter, row) + _of_cells(chapter) + _of_use(chapter)
    return found


def folds_without_title(chapter: Chapter) -> list[str]:
    """The folds of a page that do not say what is in them."""
    return [str(error) for error in folds.untitled(chapter)]


def _of_size(chapter: Chapter, row: Row) -> list[str]:
    here, rest = f"chapters/{chapter.name}.md", f"{chapter.name}_rest.md"
    limits = [
        (row.exported, EXPORTED, "exported lines shown", f"move modules to {rest}"),
        (row.code, CODE, "lines of code shown", f"move sections to {rest}"),
        (row.folds, FOLDS, "folds of exported code", f"move modules to {rest}"),
    ]
    found = [
        f"{here}: {number} {what}, at most {limit}; {mend}"
        for number, limit, what, mend in limits
        if number > limit
    ]
    if row.words not in WORDS:
        long = row.words > WORDS[0]
        mend = f"move sections to {rest}" if long else "the page explains too little"
        between = f"{WORDS[0]} to {WORDS[-1]}"
        found.append(f"{here}: {row.words} words, not {between}; {mend}")
    return found


def _of_cells(chapter: Chapter) -> list[str]:
    seen = [cell for cell in chapter.cells if not HIDDEN & {*cell.tags}]
    return [
        f"{cell.place}: a cell of {height(cell)} lines, at most {CELL}; cut it in two"
        for cell in seen
        if height(cell) > CELL
    ]


def _of_use(chapter: Chapter) -> list[str]:
    """Exported cells with no cell that runs between them and the next section."""
    ends = [number for number, line in chapter.prose if line.startswith("## ")]
    running = [cell.line for cell in chapter.cells if not cell.module]
    found = []
    for cell in chapter.cells:
        if not cell.module or HIDDEN & {*cell.tags}:
            continue
        end = min((line for line in ends if line > cell.line), default=sys.maxsize)
        if not any(cell.line < line < end for line in running):
            found.append(f"{cell.place}: no cell uses this one; add one below it")
    return found if len(found) > UNUSED.get(chapter.name, 0) else []


def table(chapters: list[Chapter]) -> str:
    """The numbers of all pages."""
    names = list(Row.__dataclass_fields__)
    lines = ["page".ljust(24) + "".join(name.rjust(9) for name in names)]
    for chapter in chapters:
        row = measure(chapter)
        numbers = (str(getattr(row, name)).rjust(9) for name in names)
        lines.append(chapter.name.ljust(24) + "".join(numbers))
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--bad", action="store_true")
    chapters = read_chapters()
    if not parser.parse_args(arguments).bad:
        print(table(chapters))
        return 0
    found = [fault for chapter in chapters for fault in faults(chapter)]
    print("\n".join(found) or f"{len(chapters)} pages within their budget")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
