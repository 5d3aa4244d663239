"""Definitions that grow: the texts of a module's cells, with what later pages amend.

A cell `#| amend forward_mode/jvp JVPTrace.pack` gives a new version of a definition
that a lower page made. It stands in the first one's place; what else the cell defines,
and is new, stands beside it.
"""

import ast
import difflib
import textwrap
from collections.abc import Callable
from dataclasses import dataclass

from book.helper.amending import Piece, bound, pieces, span, version
from book.tools import syntax
from book.tools.source import BookError, Cell

AROUND = 3  # unchanged lines that are shown before and after a change
LEFT_OUT = "", "# …"


@dataclass(frozen=True)
class Change:
    """What a cell does to a definition: its text before and after."""

    cell: Cell
    name: str
    before: str
    after: str


def amended(texts: list[str], cells: list[Cell]) -> tuple[list[str], list[Change]]:
    """The texts of a module's cells after all amendments, and what these changed.

    Args:
      texts: the code of the cells that export to the module.
      cells: those that amend it, of the lowest page first.

    Raises:
      BookError: what a cell amends is not there, or cannot be amended.
    """
    texts, changes = [*texts], []
    for cell in cells:
        try:
            parts = pieces(cell.code, cell.amends)
        except ValueError as error:
            raise BookError(f"{cell.place}: {error}") from None
        beside: list[Piece] = []
        for part in parts:
            if part.name is None:
                beside.append(part)
                continue
            new = [p.text for p in beside]
            changes.append(_amend(texts, cell, part, new))
            beside = []
        if beside:
            _put_after(texts, parts[-len(beside) - 1], [p.text for p in beside])
    return texts, changes


def _amend(texts: list[str], cell: Cell, part: Piece, before: list[str]) -> Change:
    """Put one definition in the place of its last version, new ones before it."""
    name = str(part.name)
    owner = name.rpartition(".")[0]
    at, node = _find(texts, owner or name, cell)
    lines = texts[at].split("\n")
    if owner:
        old, body = _in_class(lines, node, part, cell)
    else:
        if isinstance(node, ast.ClassDef) or isinstance(part.node, ast.ClassDef):
            raise BookError(
                f"{cell.place}: {name} is a class; amend its methods and attributes, "
                f"`{name}.method`"
            )
        first, end = span(node, lines)
        old, body = "\n".join(lines[first:end]), part.text.split("\n")
        body = [*lines[:first], *body, *lines[end:]]
    start = span(node, lines)[0]
    new = [line for text in before for line in (*text.split("\n"), "", "")]
    texts[at] = "\n".join([*body[:start], *new, *body[start:]])
    return Change(cell, name, old, part.text)


def _find(texts: list[str], name: str, cell: Cell) -> tuple[int, ast.stmt]:
    """The text that has a definition at its top level, and the definition."""
    found = [
        (at, node)
        for at, text in enumerate(texts)
        if name in text
        for node in syntax.parse(text).body
        if bound(node) == name
    ]
    if len(found) != 1:
        times = f"defines {name} {len(found)} times" if found else f"has no {name}"
        raise BookError(f"{cell.place}: minijax/{cell.module}.py {times}")
    return found[0]


def _in_class(
    lines: list[str], node: ast.stmt, part: Piece, cell: Cell
) -> tuple[str, list[str]]:
    """The last version of a class's entry, and the lines with the new one."""
    name = str(part.name)
    if not isinstance(node, ast.ClassDef):
        raise BookError(f"{cell.place}: {name.rpartition('.')[0]} is not a class")
    entry = name.rpartition(".")[2]
    if entry == "__slots__":
        raise BookError(f"{cell.place}: a class that is made keeps its __slots__")
    inside = ["    " + line if line else "" for line in part.text.split("\n")]
    for old in node.body:
        if bound(old) == entry:
            first, end = span(old, lines)
            text = "\n".join(line[4:] for line in lines[first:end])
            return text, [*lines[:first], *inside, *lines[end:]]
    is_def = isinstance(part.node, ast.FunctionDef)
    last = node.body[-1] if is_def else _last_of_attributes(node)
    end = last.end_lineno or last.lineno
    gap = [""] if is_def or isinstance(last, ast.Expr | ast.FunctionDef) else []
    return "", [*lines[:end], *gap, *inside, *lines[end:]]


def _last_of_attributes(node: ast.ClassDef) -> ast.stmt:
    """The docstring or the attribute below which a new attribute stands."""
    plain = (ast.Expr, ast.Assign, ast.AnnAssign)
    above = [entry for entry in node.body if isinstance(entry, plain)]
    return above[-1] if above else node.body[-1]


def _put_after(texts: list[str], part: Piece, new: list[str]) -> None:
    """Put new definitions after one that has been amended."""
    name = str(part.name).partition(".")[0]
    for at, text in enumerate(texts):
        for node in syntax.parse(text).body:
            if bound(node) == name:
                lines, end = text.split("\n"), node.end_lineno or 0
                more = [line for one in new for line in ("", "", *one.split("\n"))]
                texts[at] = "\n".join([*lines[:end], *more, *lines[end:]])


def stamp(cell: Cell) -> str:
    """What the made module says of a cell that amends it."""
    names = ", ".join(cell.amends)
    text = f"Amended in chapters/{cell.chapter}.md: {names} ({version(cell.code)})."
    lines = textwrap.wrap(text, 88, initial_indent="# ", subsequent_indent="#   ")
    return "\n".join(lines)


def marked(
    changes: list[Change], cell: Cell, shown: Callable[[str], str] = str
) -> list[tuple[str, str]]:
    """The lines of a cell, with those that it takes away: `(mark, line)`.

    A mark is `-` for a line that goes, `+` for one that comes, and blank for others; of
    many lines that stay, those around a change are left. `shown` says what a page shows
    of a text.
    """
    before = "\n\n\n".join(c.before for c in changes if c.cell is cell and c.before)
    before, after = shown(before), shown(without_imports(cell))
    found = []
    for line in difflib.ndiff(before.split("\n"), after.split("\n")):
        if line[0] in " +-" and (before or line[0] != "-"):
            found.append((line[0].strip(), line[2:]))
    return _shortened(found)


def without_imports(cell: Cell) -> str:
    """The code of a cell without its imports."""
    return syntax.without_lines(cell.code, list(syntax.imports(cell.code)))


def _shortened(lines: list[tuple[str, str]]) -> list[tuple[str, str]]:
    changed = [at for at, (mark, _) in enumerate(lines) if mark]
    near = {at + n for at in changed for n in range(-AROUND, AROUND + 1)}
    near |= {0}  # what it is
    found: list[tuple[str, str]] = []
    for at, (mark, line) in enumerate(lines):
        if at in near or {at - 1, at + 1} <= near:
            found.append((mark, line))
        elif found[-1] != LEFT_OUT:
            found.append(LEFT_OUT)
    return found
