"""What a reader starts from: a module with its signatures, and its insides taken out.

A function keeps its first line and its docstring. What runs while the module is
imported, and needs what the reader is to write, stands there as a comment, with `…` in
the place of functions. Either can be put back, piece by piece.
"""

import ast
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from book.helper.amending import bound, span
from book.tools import syntax

TO_WRITE = "to write: "  # begins the message of each stub
SIGN = "#> "  # in front of a statement that the reader is to write
WIDTH = 88
WHOLE = {"break_long_words": False, "break_on_hyphens": False}
LOOKUP = ast.Name | ast.Subscript
SETS = ast.Assign | ast.AnnAssign
FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef


class Piece(NamedTuple):
    """A part of a module that a reader writes, as dotted name and place in its text.

    Attributes:
      name: `f`, `Class.method`, or the left side of a statement.
      start, end: the lines that the stub takes out.
      stub: the lines in their place.
    """

    name: str
    start: int
    end: int
    stub: list[str]

    def is_left(self, text: str) -> bool:
        """Whether the stub still stands in a text."""
        return "\n".join(self.stub) + "\n" in text


def is_put_back(piece: Piece) -> bool:
    """Whether all of a piece stands in its stub, and only the sign is to go."""
    shown = all(line.lstrip().startswith(SIGN) for line in piece.stub)
    return shown and "…" not in "".join(piece.stub)


@dataclass
class Work:
    """What of a module is the reader's.

    Attributes:
      where: from names to the sections of the page, as `chapter 4, The bug`.
      notes: what stands above definitions and statements, by their names.
      folded: names that folded cells define: others of a family, which are given.
      defined: names of the functions and classes of the page.
      made: names of what statements make of them, while the module is imported.
    """

    where: dict[str, str]
    notes: dict[str, str]
    folded: set[str]
    defined: set[str] = field(default_factory=set)
    made: set[str] = field(default_factory=set)

    @classmethod
    def of(
        cls, codes: list[str], where: dict[str, str], notes: dict[str, str], folded: set
    ) -> "Work":
        """What is the reader's in all modules of a page, by their texts."""
        nodes = [node for code in codes for node in syntax.parse(code).body]
        definitions = {n.name for n in nodes if isinstance(n, FUNCTION | ast.ClassDef)}
        work = cls(where, notes, folded, definitions)
        while True:
            made = {name for n in nodes if work.has(n) for name in _bound(n)}
            if made == work.made:
                return work
            work.made = made

    def has(self, node: ast.stmt) -> bool:
        """Whether a statement is the reader's: it has a function in it, or uses theirs.

        Definitions have pieces of their own.
        """
        if isinstance(node, FUNCTION | ast.ClassDef | ast.Import | ast.ImportFrom):
            return False
        inside = [*ast.walk(node)]
        functions = any(isinstance(n, ast.Lambda) for n in inside)
        if functions and name_of(node) not in self.folded:
            return True
        used = {ast.unparse(n) for n in inside if isinstance(n, LOOKUP)} - _bound(node)
        calls = any(isinstance(n, ast.Call) for n in inside)
        return bool(used & self.made or (calls and used & self.defined))


def pieces(text: str, work: Work) -> list[Piece]:
    """The parts of a module that are taken out, from top to bottom."""
    lines = text.split("\n")
    found: list[Piece] = []
    for node in syntax.parse(text).body:
        if name_of(node) in work.folded and not work.has(node):
            continue
        if isinstance(node, FUNCTION):
            found += _of_function(node, "", lines, work)
        elif isinstance(node, ast.ClassDef):
            for entry in node.body:
                if isinstance(entry, FUNCTION):
                    found += _of_function(entry, f"{node.name}.", lines, work)
                elif work.has(entry):
                    found.append(_of_statement(entry, f"{node.name}.", lines, work))
        elif work.has(node):
            found.append(_of_statement(node, "", lines, work))
    return found


def stubbed(text: str, work: Work) -> str:
    """The module with its insides taken out, and what to do written above."""
    lines = text.split("\n")
    parts = [*pieces(text, work), *_notes(text, work)]  # a note goes above its piece
    for piece in sorted(parts, key=lambda piece: piece.start, reverse=True):
        lines[piece.start : piece.end] = piece.stub
    return "\n".join(lines)


def filled(text: str, ours: str, work: Work) -> str:
    """A reader's text of a module, with our pieces where it still has stubs."""
    lines = ours.split("\n")
    for piece in pieces(ours, work):
        if piece.is_left(text):
            own = "\n".join(lines[piece.start : piece.end]) + "\n"
            text = text.replace("\n".join(piece.stub) + "\n", own, 1)
    return text


def labels(text: str) -> list[tuple[int, int, str]]:
    """The definitions and statements of a module: `(first line, last line, name)`.

    Methods come before their classes.
    """
    found = []
    for node in syntax.parse(text).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            continue
        inner = node.body if isinstance(node, ast.ClassDef) else []
        owner = getattr(node, "name", "")
        for entry, prefix in [*((e, f"{owner}.") for e in inner), (node, "")]:
            first, last = span(entry, text.split("\n"))
            found.append((first + 1, last, prefix + name_of(entry)))
    return found


def name_of(node: ast.stmt) -> str:
    """The name of a definition; of another statement, its left side, or the call."""
    if found := bound(node):
        return found
    if isinstance(node, ast.Assign):
        return ", ".join(map(ast.unparse, node.targets))
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        call = node.value
        first = f"({ast.unparse(call.args[0])}, …)" if call.args else "()"
        return ast.unparse(call.func) + first
    return ast.unparse(node).partition("\n")[0]


def _of_function(
    node: ast.stmt, prefix: str, lines: list[str], work: Work
) -> Iterator[Piece]:
    assert isinstance(node, FUNCTION)
    body = node.body[ast.get_docstring(node) is not None :]
    if not body or body[0].lineno == node.lineno:
        return  # nothing to write: a docstring alone, or `...` in the same line
    name = prefix + node.name
    for one in node.decorator_list:
        names = {n.id for n in ast.walk(one) if isinstance(n, ast.Name)}
        if names & (work.defined | work.made):
            line = SIGN + lines[one.lineno - 1].strip()
            first, last = one.lineno - 1, one.end_lineno or one.lineno
            stub = [" " * node.col_offset + line]
            if last == first + 1:
                yield Piece(f"{name}, decorated", first, last, stub)
    start = node.body[0].end_lineno if len(body) < len(node.body) else None
    start = start or _header_end(node, lines)
    pad = " " * (node.col_offset + 4)
    where = work.where.get(name) or work.where.get(name.partition(".")[0], "")
    stub = [f"{pad}raise NotImplementedError("]
    stub += [f'{pad}    "{TO_WRITE}{name}, "', f'{pad}    "{where}"', f"{pad})"]
    yield Piece(name, start, node.end_lineno or start, stub)


def _header_end(node: FUNCTION, lines: list[str]) -> int:
    """The line below which the body of a function without docstring begins."""
    first = node.body[0].lineno - 1
    decorators = getattr(node.body[0], "decorator_list", [])
    first = min([first, *(d.lineno - 1 for d in decorators)])
    while lines[first - 1].lstrip().startswith("#"):
        first -= 1
    return first


def _of_statement(
    node: ast.stmt, prefix: str, lines: list[str], work: Work
) -> Piece:
    start, end = node.lineno - 1, node.end_lineno or node.lineno
    pad = " " * node.col_offset
    name = prefix + name_of(node)
    if name in work.folded:
        stub = [pad + SIGN + line[len(pad) :] for line in lines[start:end]]
        return Piece(name, start, end, stub)
    shown = ast.unparse(_Elided().visit(ast.parse(ast.unparse(node))))
    first, more = pad + SIGN, pad + SIGN + "    "
    stub = [
        line
        for part in shown.split("\n")
        for line in textwrap.wrap(part, WIDTH, initial_indent=first,
                                  subsequent_indent=more, **WHOLE)
    ]  # fmt: skip
    return Piece(name, start, end, stub)


class _Elided(ast.NodeTransformer):
    """Puts `…` in the place of functions without a name."""

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return ast.Name("…")


def _bound(node: ast.stmt) -> set[str]:
    """What a statement sets: names, and entries of tables."""
    targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
    parts = [t for target in targets if target for t in _parts(target)]
    return {ast.unparse(t) for t in parts} if isinstance(node, SETS) else set()


def _parts(target: ast.expr) -> list[ast.expr]:
    inside = getattr(target, "elts", None)
    return [t for x in inside for t in _parts(x)] if inside else [target]


def _notes(text: str, work: Work) -> Iterator[Piece]:
    """What is written above definitions and statements, each note once."""
    lines, left = text.split("\n"), dict(work.notes)
    for node in syntax.parse(text).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            continue
        if note := left.pop(name_of(node), ""):
            first, _ = span(node, lines)
            wrapped = textwrap.wrap(
                note, WIDTH, initial_indent="# ", subsequent_indent="# ", **WHOLE
            )
            yield Piece("", first, first, wrapped)
