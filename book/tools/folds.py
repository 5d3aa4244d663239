"""The titles of folded cells: as written in the chapter, or from what is in them.

A cell tagged `hide-cell`, `hide-input` or `hide-output` is folded on the page. It may
say `:title: 52 more elementwise primitives` among its options; where it says nothing,
the title is taken from the cell: names that it defines, an exercise that it solves, a
picture that it draws.
"""

import ast
import re
from collections.abc import Iterator

from book.tools import syntax
from book.tools.source import (
    FOLDED,
    PACKAGE,
    BookError,
    Cell,
    Chapter,
    exercises,
)

PICTURE = "The code of this picture"
TABLE = "The code of this table"
SOLUTION = "Solution"
LENGTH = 60  # of a title that is made of names
NAMES = 3  # so many at most
_FIGURE = re.compile(r"\b(figures|charts|plt|axes?)\.(\w+)\(|\bHTML\(")


def title(chapter: Chapter, cell: Cell) -> str:
    """The title of a fold.

    Args:
      chapter: the chapter.
      cell: a folded cell of it.
    Raises:
      BookError: none is written, and the cell does not show what it is.
    """
    found = cell.title or _of_export(cell) or _of_example(chapter, cell)
    if not found:
        raise BookError(
            f"{cell.place}: a fold without a title; write `:title: WHAT IS IN IT` "
            "below its tags"
        )
    return found


def is_folded(cell: Cell) -> bool:
    """Whether the page shows a title in place of the cell, or of a part of it."""
    return bool(FOLDED & {*cell.tags})


def untitled(chapter: Chapter) -> list[BookError]:
    """The complaints about folds of a chapter."""
    found = []
    for cell in chapter.cells:
        try:
            if is_folded(cell):
                title(chapter, cell)
        except BookError as error:
            found.append(error)
    return found


def names(code: str) -> list[str]:
    """The names which the code defines, in its order, a function for its primitive."""
    plain = syntax.without_magics(code)
    try:
        found = syntax.defined(plain)
    except SyntaxError:
        return []
    bound = sorted(_bindings(ast.parse(plain)), reverse=True)
    places = {name: place for place, name in bound}  # the first place is the last here
    kept = [n for n in found if not (n.endswith("_p") and n[:-2] in found)]
    ordered = sorted(kept, key=lambda name: (places.get(name, (0, 0)), name))
    return [name for name in ordered if not name.startswith("__")]


def _bindings(tree: ast.Module) -> Iterator[tuple[tuple[int, int], str]]:
    """`((line, column), name)` for what is bound anywhere."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield (node.lineno, node.col_offset), node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield (node.lineno, node.col_offset), node.id


def listed(found: list[str]) -> str:
    """`a, b and 3 more`, public names first; empty for no names."""
    ordered = sorted(found, key=lambda name: name.startswith("_"))
    few = ordered if len(ordered) <= NAMES + 1 else ordered[:NAMES]
    while len(few) > 1 and len(", ".join(few)) > LENGTH:
        few = few[:-1]
    more = len(ordered) - len(few)
    if more:
        return f"{', '.join(few)} and {more} more"
    return " and ".join(filter(None, [", ".join(few[:-1]), *few[-1:]]))


def _of_export(cell: Cell) -> str:
    if not cell.module:
        return ""
    found = names(cell.code)
    if any(not name.startswith("_") for name in found):
        return listed(found)
    helpers = f"Helpers of {cell.module}: {listed(found)}" if found else ""
    return _of_namespace(cell) or helpers or _of_statements(cell)


def _of_namespace(cell: Cell) -> str:
    """The name of the package, or module, whose names are elsewhere."""
    if "__getattr__" not in syntax.defined(cell.code):
        return ""
    path = f"{PACKAGE}/{cell.module}".removesuffix("/__init__")
    return "The namespace " + path.replace("/", ".")


def _of_statements(cell: Cell) -> str:
    """What an exported cell does that defines nothing."""
    tables = _tables(cell.code)
    if tables:
        return f"Entries of {listed(tables)}"
    return f"Imports of {cell.module}" if not _works(cell.code) else ""


def _tables(code: str) -> list[str]:
    """The tables in which the code writes at top level, by `table[key] = ...`."""
    walked = [node for top in ast.parse(code).body for node in ast.walk(top)]
    targets = [
        target
        for node in walked
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Subscript)
    ]
    return list(dict.fromkeys(ast.unparse(target.value) for target in targets))


def _works(code: str) -> bool:
    """Whether the code has a statement that is neither docstring nor import."""
    quiet = (ast.Import, ast.ImportFrom)
    return any(
        not isinstance(node, quiet)
        and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        for node in ast.parse(code).body
    )


def _of_example(chapter: Chapter, cell: Cell) -> str:
    drawn = _FIGURE.search(cell.text)
    if drawn and "hide-cell" not in cell.tags:
        return TABLE if drawn[2] == "table" else PICTURE
    return _of_solution(chapter, cell) or listed(names(cell.code))


def _of_solution(chapter: Chapter, cell: Cell) -> str:
    """`Solution` below an exercise; a further fold of the same one is numbered."""
    above = [line for line, _ in exercises(chapter) if line < cell.line]
    if not above or cell.heading != "Exercises":
        return ""
    folds = [c for c in chapter.cells if is_folded(c) and c.line > above[-1]]
    part = folds.index(cell) + 1
    return SOLUTION if part == 1 else f"{SOLUTION}, part {part}"
