"""What a page shows of a chapter's cells: notebook and module stay whole.

Of a docstring the first line is shown. Imports at the top level, and the cell that
installs the package, are out of sight; so is a cell in which nothing else is left. The
line `#| export jaxpr` becomes a caption that says where the code goes. A cell that
amends a definition shows the lines that go and the lines that come.
"""

import ast
import re
from collections.abc import Callable
from functools import cache

from book.tools import amendments, syntax
from book.tools.amendments import Change
from book.tools.source import PACKAGE, Cell, Chapter

Changes = Callable[[], dict[str, list[Change]]]
_OPENING = re.compile(r"""(\s*\w?(\"{3}|'{3}))\\?(.*)""")
_INSTALLS = re.compile(r"^\s*%pip install", re.MULTILINE)
_ENDS = (".", "!", "?", ":")
EXPORTED_TO = "exported_to"  # metadata of a cell on the page: the path of its module
NUMBER = "number"  # and its place among the cells of the chapter
MARKS = "marks"  # of an amendment, line by line: goes (-), comes (+), stays


def shown(cell: Cell) -> str:
    """The lines of a cell that a reader of the page sees."""
    return _shown(cell.code)


@cache
def _shown(code: str) -> str:
    try:
        body = ast.parse(syntax.without_magics(code)).body
    except SyntaxError:  # a cell that is meant to fail, or begins with %%
        return code
    lines: list[str | None] = [*code.split("\n")]
    module = ast.Module(body, [])
    for node in (module, *syntax.statements(module)):
        _shorten_docstring(lines, node)
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            lines[node.lineno - 1 : node.end_lineno] = [None] * _height(node)
    text = "\n".join(line for line in lines if line is not None)
    return re.sub(r"\n{4,}", "\n\n\n", text).strip("\n")


def marked(cell: Cell, changes: list[Change]) -> list[tuple[str, str]]:
    """The lines that a page shows of an amendment, each with what becomes of it."""
    return amendments.marked(changes, cell, _shown)


def is_seen(chapter: Chapter, cell: Cell) -> bool:
    """Whether anything of the cell's code is on the page."""
    if cell is chapter.cells[0] and _INSTALLS.search(cell.text):
        return False
    return _says_something(shown(cell))


@cache
def _says_something(text: str) -> bool:
    """Whether lines have more than docstrings."""
    try:
        body = ast.parse(text).body
    except SyntaxError:
        return bool(text)
    comments = any(line.startswith("#") for line in text.split("\n"))
    return comments or any(not _is_text(node) for node in body)


def edit(cells: list[dict], chapter: Chapter, changes: Changes = dict) -> None:
    """Bring the cells of a notebook, as JSON has them, to what the page shows.

    Args:
      cells: cells of the notebook made from the chapter; they are changed.
      changes: returns what the amendments of all pages change, by module.
    """
    made = [cell for cell in cells if cell["cell_type"] == "code"]
    for entry, cell in zip(made, chapter.cells, strict=True):
        entry["metadata"][NUMBER] = cell.index
        if cell.module:
            entry["metadata"][EXPORTED_TO] = f"{PACKAGE}/{cell.module}.py"
        if not is_seen(chapter, cell):
            tag = "remove-input" if entry["outputs"] else "remove-cell"
            entry["metadata"].setdefault("tags", []).append(tag)
        elif cell.amends:
            lines = marked(cell, changes()[str(cell.module)])
            entry["source"] = "\n".join(line for _, line in lines)
            entry["metadata"][MARKS] = [mark for mark, _ in lines]
        elif not chapter.looks_ahead:  # the prologue is for people who type along
            entry["source"] = shown(cell)


def _shorten_docstring(lines: list[str | None], node: ast.AST) -> None:
    """Leave of the docstring of a module, class or function its first line."""
    if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
        return
    text = node.body[0] if node.body else None
    if not text or not _is_text(text) or _height(text) == 1:
        return
    opening = _OPENING.match(lines[text.lineno - 1] or "")
    if opening:
        first = opening[3].strip() or (lines[text.lineno] or "").strip()
        end = "" if first.endswith(_ENDS) else " …"
        short = [f"{opening[1]}{first}{end}{opening[2]}"]
        lines[text.lineno - 1 : text.end_lineno] = [
            *short,
            *[None] * (_height(text) - 1),
        ]


def _is_text(node: ast.AST) -> bool:
    value = node.value if isinstance(node, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def _height(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1
