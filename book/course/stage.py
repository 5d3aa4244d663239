"""The package at a page of the course: whole, and as a reader gets it there.

A stage is a spine. Below it all is there; its own modules are stubs. What the page
amends in modules of lower pages is not amended yet: a line there says so.
"""

import ast
import re
from dataclasses import dataclass, replace
from functools import cache, cached_property

from book.course.stubs import (
    SIGN,
    Piece,
    Work,
    filled,
    labels,
    name_of,
    pieces,
    stubbed,
)
from book.helper import amending
from book.helper.amending import span
from book.tools import amendments, export, folds, modules, syntax
from book.tools.in_page import is_solution
from book.tools.modules import Module, Package
from book.tools.source import (
    BookError,
    Cell,
    Chapter,
    Floor,
    chapter_paths,
    exercises,
    find_chapter,
    floor_of,
    read_chapter,
    read_chapters,
)

LAST = 16  # the last chapter of the course; what is above is ours
AMEND = f"{SIGN}amend "
Files = dict[str, str]


def spines() -> list[Floor]:
    """The pages of the course, in their order."""
    floors = map(floor_of, chapter_paths())
    return [f for f in floors if f.is_spine and 0 < f.number <= LAST]


def after(page: Floor) -> Floor | None:
    """The next page of the course, or None."""
    left = [floor for floor in spines() if floor > page]
    return left[0] if left else None


@cache
def stage(page: Floor) -> "Stage":
    """The stage of a spine.

    Raises:
      BookError: the page is none of the course.
    """
    if page not in spines():
        known = ", ".join(map(str, spines()))
        raise BookError(f"{page} is no page of the course; its pages are {known}")
    return Stage(page)


@dataclass(frozen=True)
class Stage:
    """A page of the course, with the package up to it."""

    page: Floor

    @cached_property
    def chapter(self) -> Chapter:
        """The text of the page."""
        return read_chapter(find_chapter(self.page))

    @cached_property
    def whole(self) -> Package:
        """All pages up to this one."""
        return Package(_chapters(self.page))

    @cached_property
    def package(self) -> Package:
        """The same, without what this page amends in modules of lower pages."""
        if not self.foreign:
            return self.whole
        cells = [c for c in self.chapter.cells if not self._is_foreign(c)]
        return Package([*_chapters(self.page)[:-1], replace(self.chapter, cells=cells)])

    @cached_property
    def reference(self) -> Files:
        """The files of the package with this page finished, as ours are."""
        return export.written(self.whole)

    @cached_property
    def given(self) -> Files:
        """The files of the package at this page, with its modules as ours are."""
        if not self.foreign:
            return self.reference
        return export.written(self.package)

    @cached_property
    def own(self) -> Files:
        """The modules that a reader writes here, as ours are."""
        return {path: self._render(path) for path in self.paths}

    def _render(self, path: str) -> str:
        return export.render(self.package, self.package.modules[path[:-3]])

    @cached_property
    def started(self) -> Files:
        """The files that a reader gets who begins at this page."""
        made = dict(self.given)
        for path in self.paths:
            made[path] = stubbed(made[path], self.work)
        for cell in self.foreign:
            path = f"{cell.module}.py"
            made[path] = self.with_marks(made[path], cell)
        return made

    @cached_property
    def paths(self) -> list[str]:
        """The files that a reader writes here."""
        own = [m for m in self.package.modules.values() if m.chapter.name == self.name]
        return [f"{module.path}.py" for module in own]

    @property
    def name(self) -> str:
        """The name of the page."""
        return self.chapter.name

    @cached_property
    def foreign(self) -> list[Cell]:
        """The cells that amend modules of lower pages."""
        return [cell for cell in self.chapter.cells if self._is_foreign(cell)]

    def _is_foreign(self, cell: Cell) -> bool:
        own = {c.module for c in self.chapter.cells if c.module and not c.amends}
        return bool(cell.amends) and cell.module not in own

    @cached_property
    def work(self) -> Work:
        """What the reader writes here."""
        codes = [*self.own.values()]
        where: dict[str, str] = {}
        notes: dict[str, str] = {}
        folded: set[str] = set()
        for cell in (c for c in self.chapter.cells if c.module):
            names = cell.amends or [*names_in(cell)]
            for name in names:
                before = where.get(name, f"chapter {self.page}")
                more = f", {plain(cell.heading)}"
                where[name] = before.removesuffix(more) + more
            if not names:
                continue
            if folds.is_folded(cell):
                folded |= {*names}
            elif said := self.sentence(cell):
                key = names[0].partition(".")[0] if cell.amends else names[0]
                before = f"{notes[key]} Then, " if key in notes else ""
                notes[key] = f"{before}{plain(cell.heading)}: {said}"
        return Work.of(codes, where, notes, folded)

    def section(self, cell: Cell) -> str:
        """Where on the page a cell stands, in words."""
        return f"chapter {self.page}, {plain(cell.heading)}"

    def sentence(self, cell: Cell) -> str:
        """The paragraph that stands before a cell; empty if another cell does."""
        earlier = [c.line + c.text.count("\n") for c in self.chapter.cells]
        start = max((n for n in earlier if n < cell.line), default=0)
        lines = [(n, t) for n, t in self.chapter.prose if start < n < cell.line]
        paragraphs = "\n".join(text for _, text in lines).strip().split("\n\n")
        last = paragraphs[-1]
        return "" if last.startswith(("#", "-", ">", "|")) else plain(last)

    def with_marks(self, text: str, cell: Cell) -> str:
        """A text of a module, with a line above each definition that a cell amends.

        What is new beside the definitions is given, and so are imports.
        """
        for name in cell.amends:
            text = _inserted(text, name, [self.mark(cell, name)])
        for piece in amending.pieces(cell.code, cell.amends):
            if piece.name is None:
                owner = cell.amends[0].partition(".")[0]
                text = _inserted(text, owner, [*piece.text.split("\n"), "", ""])
        module = self.whole.modules[str(cell.module)]
        return with_imports(text, self.whole, module, cell.code)

    def mark(self, cell: Cell, name: str) -> str:
        """The line that says that a definition is to be amended."""
        new = "" if name in self._below[str(cell.module)] else "new here; "
        return f"{AMEND}{name} ({new}{self.section(cell)}), and take this line away"

    @cached_property
    def _below(self) -> dict[str, set[str]]:
        """The definitions of the modules that the page amends, before it does."""
        modules = {str(cell.module) for cell in self.foreign}
        texts = {module: self._render(f"{module}.py") for module in modules}
        return {m: {name for *_, name in labels(text)} for m, text in texts.items()}

    def pieces(self) -> list[tuple[str, Piece]]:
        """What the reader writes here: the files, and the parts of them."""
        own = self.own.items()
        return [(path, x) for path, text in own for x in pieces(text, self.work)]

    def unwritten(self, files: Files) -> list[str]:
        """What of a reader's files is still to write, in the order of the page."""
        found = []
        for path, piece in self.pieces():
            if piece.is_left(files.get(path, "")):
                found.append(f"{path}: {piece.name}")
        for cell in self.foreign:
            text = files.get(f"{cell.module}.py", "")
            left = [name for name in cell.amends if self.mark(cell, name) in text]
            found += [f"{cell.module}.py: {name}, amended" for name in left]
        return found

    def next_to_write(self, files: Files, index: int) -> str:
        """The first piece above a cell that is still to write, or empty.

        Args:
          index: the number of the cell on the page.
        """
        left = [text.partition(": ")[2] for text in self.unwritten(files)]
        left = [text.removesuffix(", amended") for text in left]
        for cell in self.chapter.cells[: index - 1]:
            names = (cell.amends or names_in(cell)) if cell.module else ()
            for name in names:
                if any(f"{piece}.".startswith(f"{name}.") for piece in left):
                    return f"{name}, {self.work.where[name]}"
        return ""

    def absent(self, files: Files) -> list[str]:
        """Names that later pages import from the reader's modules, and do not find."""
        found = []
        for path in self.paths:
            module = self.package.modules[path.removesuffix(".py")]
            text = files.get(path, "")
            wanted = importers(module.dotted, self.page)
            try:
                there = syntax.defined(text)
            except SyntaxError:
                continue
            lost = sorted(wanted.keys() & module.defined - there)
            found += [f"{path}: {name}, for {wanted[name]}" for name in lost]
        return found

    @cached_property
    def solutions(self) -> dict[int, Cell]:
        """Our solutions of exercises, by their numbers, where they can be checked."""
        lines = exercises(self.chapter)
        found = {}
        for cell in (c for c in self.chapter.cells if is_solution(self.chapter, c)):
            number = sum(line < cell.line for line, _ in lines)
            found.setdefault(number, cell)
        return found

    def filled(self, files: Files) -> Files:
        """A reader's files, with our definitions where there are none yet."""
        made = {}
        for path in self.paths:
            made[path] = filled(files[path], self.given[path], self.work)
        for cell in self.foreign:
            path = f"{cell.module}.py"
            text = made.get(path, files[path])
            marks = [self.mark(cell, name) for name in cell.amends]
            if any(mark in text for mark in marks):
                text = "\n".join(x for x in text.split("\n") if x.strip() not in marks)
                for piece in amending.pieces(cell.code, cell.amends):
                    if piece.name is None:  # it would be there twice
                        text = text.replace(piece.text + "\n", "", 1)
                made[path] = amended(text, cell, self.whole)
        return made


def names_in(cell: Cell) -> list[str]:
    """The names of what a cell defines and of its statements, top level only."""
    nodes = syntax.parse(cell.code).body
    kept = (n for n in nodes if not isinstance(n, ast.Import | ast.ImportFrom))
    return [name_of(n) for n in kept if not _is_text(n)]


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def amended(text: str, cell: Cell, package: Package) -> str:
    """A reader's text of a module, with what a cell of ours amends.

    Raises:
      BookError: the reader's module has no such definition.
    """
    [text], _ = amendments.amended([text], [cell])
    return with_imports(text, package, package.modules[str(cell.module)])


def _inserted(text: str, name: str, more: list[str]) -> str:
    """The text with lines above a definition, or in its class if it is new there."""
    lines = text.split("\n")
    places = {label: first for first, _, label in reversed(labels(text))}
    owner, _, entry = name.rpartition(".")
    at = places.get(name) or (_head(text, owner) if owner else None)
    if at is None:
        return text
    pad = "    " if owner else ""
    lines[at - 1 : at - 1] = [pad + line if line else "" for line in more]
    return "\n".join(lines)


def _head(text: str, owner: str) -> int | None:
    """The line of a class above which a new attribute or method can be named."""
    for node in syntax.parse(text).body:
        if isinstance(node, ast.ClassDef) and node.name == owner:
            kinds, lines = ast.Expr | ast.Assign | ast.AnnAssign, text.split("\n")
            last = [e.end_lineno or e.lineno for e in node.body if isinstance(e, kinds)]
            at = max(last, default=span(node.body[0], lines)[0]) + 1
            while at <= len(lines) and lines[at - 1].lstrip().startswith(AMEND):
                at += 1
            return at
    return None


def with_imports(text: str, package: Package, module: Module, new: str = "") -> str:
    """A reader's text of a module, with the imports that ours has and it does not.

    Args:
      new: code that the reader is to write into it.
    """
    nodes = syntax.imports(text)
    there = {name for node in nodes for name, _ in syntax.import_lines(node)}
    needed = syntax.imports("\n".join(modules.needed(package, module)))
    pairs = [pair for node in needed for pair in syntax.import_lines(node)]
    used = {name for code in (text, new) for name in syntax.used(code)}
    used |= syntax.annotated(text)
    missing = [line for name, line in pairs if name not in there and name in used]
    if not missing:
        return text
    lines = text.split("\n")
    at = max((node.end_lineno or 0 for node in nodes), default=0)
    lines[at:at] = [syntax.sorted_imports(missing)]
    return "\n".join(lines)


def plain(markdown: str) -> str:
    """A sentence without the marks of Markdown."""
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", markdown)
    code = re.split(r"(`[^`]*`)", text)
    parts = [x.strip("`") if n % 2 else x.replace("*", "") for n, x in enumerate(code)]
    return " ".join("".join(parts).split())


@cache
def importers(dotted: str, page: Floor) -> dict[str, str]:
    """What later pages import from a module, and which of them is the first."""
    line = re.compile(rf"from {re.escape(dotted)} import (\w+)")
    found: dict[str, str] = {}
    for chapter in (c for c in read_chapters() if c.floor > page):
        texts = "\n".join(c.code for c in chapter.cells if c.module)
        for node in syntax.all_imports(texts):
            for _, spelt in syntax.import_lines(node):
                if match := line.match(spelt):
                    found.setdefault(match[1], chapter.name)
    return found


@cache
def _chapters(page: Floor) -> list[Chapter]:
    return [read_chapter(path) for path in chapter_paths() if floor_of(path) <= page]
