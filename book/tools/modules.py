"""Gather the exported cells of the chapters into modules."""

import ast
from dataclasses import dataclass, field
from functools import cache, cached_property

from book.tools import amendments, syntax
from book.tools.amendments import Change
from book.tools.source import DOORS, PACKAGE, BookError, Cell, Chapter


@dataclass(eq=False)
class Module:
    """A module in the making: its path without `.py`, its chapter and its cells.

    `amending` are the cells of later pages that give definitions their next version.
    """

    path: str
    chapter: Chapter
    cells: list[Cell] = field(default_factory=list)
    amending: list[Cell] = field(default_factory=list)

    @property
    def dotted(self) -> str:
        """The name under which it is imported."""
        parts = [PACKAGE, *self.path.split("/")]
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @cached_property
    def _grown(self) -> tuple[list[str], list[Change]]:
        return amendments.amended([cell.code for cell in self.cells], self.amending)

    @property
    def texts(self) -> list[str]:
        """The cells as they stand in the chapter, with what later pages amend."""
        return self._grown[0]

    @property
    def changes(self) -> list[Change]:
        """What later pages amend, the lowest first."""
        return self._grown[1]

    @cached_property
    def code(self) -> str:
        """The cells one after the other."""
        return "\n\n\n".join(text.strip("\n") for text in self.texts)

    @cached_property
    def defined(self) -> set[str]:
        """What the module itself defines at top level."""
        return syntax.defined(self.code)

    def may_have(self, name: str) -> bool:
        """Whether it defines or uses a name, or makes names while it runs."""
        bound = {bound for bound, _ in self.imports}
        known = self.defined | bound | syntax.used(self.code)
        return name in known or bool(known & {"__getattr__", "*"})

    @property
    def registers(self) -> bool:
        """Whether a cell is exported to `*`: it fills tables, and wakes early."""
        return any(cell.namespace == "*" for cell in self.cells)

    @property
    def awaited(self) -> str | None:
        """The dotted name of the module with which it registers, or None."""
        found = {cell.awaited for cell in self.cells} - {None}
        if len(found) > 1:
            place = self.cells[0].place
            raise BookError(f"{place}: {self.path} waits for two: {sorted(found)}")
        return f"{PACKAGE}.{found.pop()}".replace("/", ".") if found else None

    @cached_property
    def imports(self) -> list[tuple[str, str]]:
        """`(name, statement)` for all that its cells import at top level."""
        texts = [self.code, *(cell.code for cell in self.amending)]
        nodes = [node for text in texts for node in syntax.imports(text)]
        found = [pair for node in nodes for pair in syntax.import_lines(node)]
        if not self.amending:
            return found
        before = "\n\n\n".join(cell.code for cell in self.cells)
        gone = _names_in(before) - _names_in(self.code)
        kept = _names_in(self.code) | ({name for name, _ in found} - gone)
        return [(name, line) for name, line in found if name in kept]


class Package:
    """All modules of some chapters, with lookups by path and by dotted name."""

    def __init__(self, chapters: list[Chapter]):
        self.chapters = chapters
        self.modules: dict[str, Module] = {}
        for chapter in chapters:
            for cell in chapter.cells:
                if cell.module and not cell.amends:
                    self._add(chapter, cell)
        for chapter in sorted(chapters, key=lambda chapter: chapter.floor):
            for cell in chapter.cells:
                if cell.amends:
                    self._amend(chapter, cell)
        self.by_name = {module.dotted: module for module in self.modules.values()}

    def _add(self, chapter: Chapter, cell: Cell) -> None:
        path = str(cell.module)
        module = self.modules.setdefault(path, Module(path, chapter))
        if module.chapter is not chapter:
            owner = module.chapter.name
            raise BookError(
                f"{cell.place}: {path} belongs to {owner} already, and a module lies "
                "on one page; move the cell there, or give it a module of its own"
            )
        _check_syntax(cell)
        module.cells.append(cell)

    def _amend(self, chapter: Chapter, cell: Cell) -> None:
        module = self.modules.get(str(cell.module))
        if module is None:
            raise BookError(f"{cell.place}: no chapter exports {cell.module}")
        if module.chapter.floor > chapter.floor:
            raise BookError(
                f"{cell.place}: {cell.module} is of {module.chapter.name}, and a page "
                "amends what it made itself, or a lower page"
            )
        if module.chapter is chapter and module.cells[0].index > cell.index:
            raise BookError(f"{cell.place}: {cell.module} is exported further down")
        _check_syntax(cell)
        module.amending.append(cell)

    def of(self, chapter: Chapter) -> list[Module]:
        """The modules which this chapter owns."""
        return [m for m in self.modules.values() if m.chapter is chapter]

    @cached_property
    def public(self) -> dict[str, dict[str, str]]:
        """For each module for users its public names, and the modules which have them.

        A module that writes its names down itself has none here.
        """
        table: dict[str, dict[str, str]] = {name: {} for name in self.doors}
        for module in self.modules.values():
            for cell in module.cells:
                for namespace in cell.namespaces:
                    _publish(table.setdefault(namespace, {}), cell, module)
        return {key: dict(sorted(table[key].items())) for key in sorted(table)}

    @cached_property
    def doors(self) -> list[str]:
        """The package itself, and those of its modules that users import."""
        names = {f"{PACKAGE}.{path}".replace("/", ".") for path in DOORS} | {PACKAGE}
        return [name for name in self.by_name if name in names]

    @cached_property
    def registers(self) -> list[str]:
        """Modules which fill tables of lower floors, lowest floor first."""
        found = [m for m in self.modules.values() if m.registers]
        return [m.dotted for m in sorted(found, key=lambda m: m.chapter.floor)]

    @cached_property
    def waiting(self) -> dict[str, str]:
        """From modules which register late to the modules that they wait for.

        Raises:
          BookError: no chapter makes the module that one waits for.
        """
        found = {m.dotted: m.awaited for m in self.modules.values() if m.registers}
        for name, awaited in found.items():
            if awaited and awaited not in self.by_name:
                raise BookError(f"{name} waits for {awaited}, which no chapter makes")
        return {name: found[name] for name in self.registers if found[name]}

    def owner(self, source: str, name: str) -> Module | None:
        """The module which `from source import name` reaches."""
        for dotted in (f"{source}.{name}", self.public.get(source, {}).get(name)):
            if dotted in self.by_name:
                return self.by_name[dotted]
        return self.by_name.get(source)


@cache
def needed(package: Package, module: Module) -> frozenset[str]:
    """The imports of a module: its own, and those for names of its chapter.

    Raises:
      BookError: a name which nothing that is exported so far defines.
    """
    lines = {line for _, line in module.imports}
    known = module.defined | {name for name, _ in module.imports}
    names = syntax.used(module.code)
    starred = any(line.endswith("import *") for line in lines)
    siblings = [m for m in package.of(module.chapter) if m is not module]
    for name in sorted((names | syntax.annotated(module.code)) - known):
        line = _from_sibling(siblings, name)
        if line:
            lines.add(line)
        elif name in names and not starred and not name.startswith("__"):
            where = f"chapters/{module.chapter.name}.md"
            raise BookError(f"{where}: {module.path} uses {name}, exported by no cell")
    return frozenset(lines)


def definitions(chapters: list[Chapter]) -> dict[tuple[str, str], Cell]:
    """For each public `(namespace, name)` the cell which defines it."""
    return {
        (namespace, name): cell
        for chapter in chapters
        for cell in chapter.cells
        for namespace in cell.namespaces
        for name in sorted(syntax.defined(cell.code))
        if not name.startswith("_")
    }


def _names_in(code: str) -> set[str]:
    return syntax.used(code) | syntax.annotated(code)


def _check_syntax(cell: Cell) -> None:
    try:
        ast.parse(cell.code)
    except SyntaxError as error:
        if syntax.without_magics(cell.code) != cell.code:
            raise BookError(f"{cell.place}: an exported cell with a magic") from None
        raise BookError(f"{cell.place}: {error}") from None


def _publish(table: dict[str, str], cell: Cell, module: Module) -> None:
    names = syntax.defined(cell.code) | syntax.handed_on(cell.code)
    for name in (n for n in names if not n.startswith("_")):
        if table.setdefault(name, module.dotted) != module.dotted:
            raise BookError(
                f"{cell.place}: {name} is public in {table[name]} already; give it "
                "another name, or make one of the two private"
            )


def _from_sibling(siblings: list[Module], name: str) -> str | None:
    for module in siblings:
        if name in module.defined:
            return f"from {module.dotted} import {name}"
    for module in siblings:
        for bound, line in module.imports:
            if bound == name:
                return line
    return None
