"""Count what the book holds: words, lines, cells, figures, exercises, rules.

python -m book.tools.counts
"""

import importlib
import json
from collections import Counter

from book.tools import pages
from book.tools.source import CHAPTERS, Chapter, exercises, read_chapters

COLUMNS = ["words", "lines", "cells", "figures", "exercises"]


def count(chapter: Chapter) -> list[int]:
    """The numbers of one chapter, in the order of `COLUMNS`."""
    exported = [cell for cell in chapter.cells if cell.module]
    lines = [line for cell in exported for line in cell.code.split("\n")]
    return [
        sum(len(line.split()) for _, line in chapter.prose),
        sum(bool(line.strip()) for line in lines),
        len(chapter.cells),
        count_figures(chapter),
        len(exercises(chapter)),
    ]


def count_figures(chapter: Chapter) -> int:
    """The drawings among the stored outputs of a chapter."""
    path = CHAPTERS / f"{chapter.name}.ipynb"
    if not path.exists():
        return 0
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    return sum(_is_figure(output.get("data", {})) for output in outputs)


def count_rules() -> dict[str, int]:
    """Primitives, tables, and what fills the places of the rule grid."""
    tables = pages.rule_tables()
    rows = pages.primitives(tables)
    places = Counter(pages.state(table, p) for table in tables for p in rows)
    kinds = ("rules", "defaults", "reasons", "holes")
    return {
        "primitives": len(rows),
        "tables": len(tables),
        **{kind: places[kind] for kind in kinds},
    }


def count_tests() -> dict[str, int]:
    """What the corpus of small functions says about itself, if there is one."""
    try:
        corpus = importlib.import_module("tests.corpus")
    except ModuleNotFoundError:
        return {}
    return corpus.count()


def _is_figure(data: dict) -> bool:
    """Whether an output is a drawing, a plot, or a page with a drawing in it."""
    drawn = bool({"image/svg+xml", "image/png"} & data.keys())
    return drawn or "<svg" in "".join(data.get("text/html", ""))


def main() -> None:
    """Print the tables."""
    width = 24
    print("chapter".ljust(width) + "".join(name.rjust(11) for name in COLUMNS))
    total = [0] * len(COLUMNS)
    for chapter in read_chapters():
        row = count(chapter)
        total = [a + b for a, b in zip(total, row, strict=True)]
        print(chapter.name.ljust(width) + "".join(str(n).rjust(11) for n in row))
    print("total".ljust(width) + "".join(str(n).rjust(11) for n in total))
    for name, number in {**count_rules(), **count_tests()}.items():
        print(f"{name.ljust(width)}{number:>11}")


if __name__ == "__main__":
    main()
