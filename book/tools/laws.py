"""Hold chapters to the laws: one definition, lower floors, no circles, one folder."""

import ast
from collections.abc import Iterable

from book.tools import syntax
from book.tools.modules import Module, Package, needed
from book.tools.source import DOORS, PACKAGE, BookError, Cell, Chapter


def check(package: Package, chapter: Chapter) -> None:
    """Hold one chapter to the laws about its own cells and imports.

    Raises:
      BookError: a redefinition, an import of the same or of a higher floor, modules
        which import each other.
    """
    if chapter.looks_ahead:
        _check_exports_nothing(chapter)
        return
    _check_redefinitions(chapter)
    _check_amendments(package, chapter)
    _check_cycles(package, chapter)
    for cell in chapter.cells:
        try:
            nodes = syntax.all_imports(syntax.without_magics(cell.code))
        except SyntaxError as error:
            if {"raises-exception", "skip-execution"} & {*cell.tags}:
                continue
            if cell.text.startswith("%%"):
                continue
            raise BookError(f"{cell.place}: {error}") from None
        for node in nodes:
            _check_import(package, chapter, cell, node)


def _check_cycles(package: Package, chapter: Chapter) -> None:
    """Refuse modules of one chapter which import each other in a circle."""
    names = {m.dotted: m for m in package.of(chapter)}
    edges = {
        m.dotted: {line.split()[1] for line in needed(package, m)} & names.keys()
        for m in names.values()
    }
    done: set[str] = set()

    def visit(name: str, path: list[str]) -> None:
        if name in path:
            circle = " -> ".join([*path[path.index(name) :], name])
            raise BookError(f"chapters/{chapter.name}.md: import cycle {circle}")
        if name not in done:
            for other in sorted(edges[name]):
                visit(other, [*path, name])
            done.add(name)

    for name in sorted(edges):
        visit(name, [])


def check_house(package: Package) -> None:
    """Hold the names of modules and folders to the laws.

    Raises:
      BookError: a module called like a public name, a folder that is missing or
        shared.
    """
    check_names(package)
    _check_folders(package)
    _check_packages(package)


def _check_folders(package: Package) -> None:
    """Refuse a floor without a folder, and two floors with the same one."""
    owners: dict[str, Chapter] = {}
    homes: dict[int, Chapter] = {}
    for chapter in package.chapters:
        exporting = next((cell for cell in chapter.cells if cell.module), None)
        number = chapter.floor.number
        if exporting and not chapter.folder and number > 1:
            raise BookError(
                f"chapters/{chapter.name}.md: cell {exporting.index} exports a module, "
                "and the floor has no folder; write `floor: NAME` in the front matter"
            )
        home = homes.setdefault(number, chapter)
        if home.folder != chapter.folder and (exporting or chapter.folder):
            raise BookError(
                f"chapters/{chapter.name}.md: a page of floor {number} whose folder is "
                f"{home.folder}; write `floor: {home.folder}` as in {home.name}.md"
            )
        owner = owners.setdefault(chapter.folder, chapter)
        if chapter.folder and owner.floor.number != number:
            raise BookError(
                f"chapters/{chapter.name}.md: the folder {chapter.folder} belongs to "
                f"{owner.name}; give this floor another in its front matter"
            )


def _check_packages(package: Package) -> None:
    """Refuse a folder with the name of a public name."""
    folders: dict[str, list[Module]] = {}
    for module in package.modules.values():
        if module.path not in DOORS:
            folders.setdefault(module.path.rpartition("/")[0], []).append(module)
    for folder, modules in folders.items():
        dotted = ".".join([PACKAGE, *filter(None, folder.split("/"))])
        space, _, name = dotted.rpartition(".")
        if name in package.public.get(space, {}):
            raise BookError(
                f"{modules[0].cells[0].place}: the folder {dotted} would hide the "
                f"public name {name}; give the floor another folder"
            )


def check_names(package: Package) -> None:
    """Refuse a module with the name of a public name, and one that is its namespace.

    Importing the first would put it in the place of the name. The second would give
    its names without waking the modules that register.
    """
    for module in package.modules.values():
        if module.dotted in package.public:
            own = [c for c in module.cells if module.dotted in c.namespaces]
            if own:
                raise BookError(
                    f"{own[0].place}: {module.dotted} is a lazy namespace: export its "
                    "names from a module of another name, and to this one a cell with "
                    "`__getattr__, __dir__ = namespace(__name__)`"
                )
        space, _, name = module.dotted.rpartition(".")
        if name in package.public.get(space, {}):
            definer = package.public[space][name]
            raise BookError(
                f"{module.cells[0].place}: the module {module.dotted} would hide the "
                f"public name {name} of {definer}; give the module another name"
            )


def _check_exports_nothing(chapter: Chapter) -> None:
    for cell in chapter.cells:
        if cell.module:
            raise BookError(f"{cell.place}: the prologue exports nothing")


def _check_amendments(package: Package, chapter: Chapter) -> None:
    """Refuse an amendment that no later cell of its page can use, or that is unclear.

    In a notebook the name has one meaning: what the page has made, or the package.
    """
    for cell in (cell for cell in chapter.cells if cell.amends):
        later = chapter.cells[cell.index :]
        if not any(not other.module for other in later):
            raise BookError(f"{cell.place}: no cell below uses {cell.amends[0]}")
        module = package.modules[str(cell.module)]
        _ = module.changes
        first = cell.amends[0].partition(".")[0]
        own = [c for c in chapter.cells[: cell.index] if not c.amends]
        if module.chapter is not chapter and any(first in _made(c) for c in own):
            raise BookError(
                f"{cell.place}: the page has a {first} of its own, and amends that of "
                f"{module.path}; give its own another name"
            )


def _made(cell: Cell) -> set[str]:
    """The names that a cell defines at its top level; none if it cannot be read."""
    try:
        return syntax.defined(syntax.without_magics(cell.code))
    except SyntaxError:
        return set()


def _check_redefinitions(chapter: Chapter) -> None:
    owners: dict[str, Cell] = {}
    for cell in (cell for cell in chapter.cells if not cell.amends):
        for name in sorted(_bound(cell)):
            first = owners.get(name)
            hook = name.startswith("__") and first and first.module != cell.module
            if first and not hook:
                raise BookError(
                    f"{cell.place}: {name} is exported by cell {first.index}"
                )
            if cell.module and name in syntax.defined(cell.code):
                owners[name] = cell


def _bound(cell: Cell) -> set[str]:
    code = syntax.without_magics(cell.code)
    try:
        names = syntax.defined(code)
        nodes: Iterable[ast.Import | ast.ImportFrom] = syntax.imports(code)
    except SyntaxError:
        return set()
    return names | {name for node in nodes for name, _ in syntax.import_lines(node)}


def _check_import(
    package: Package, chapter: Chapter, cell: Cell, node: ast.Import | ast.ImportFrom
) -> None:
    if isinstance(node, ast.ImportFrom):
        if node.level:
            raise BookError(f"{cell.place}: relative imports do not run in a notebook")
        pairs = [(node.module or "", alias.name) for alias in node.names]
    else:
        pairs = [(a.name, "") for a in node.names if a.name != PACKAGE]
    if cell.amends:  # its code runs in a module of a lower page
        chapter = package.modules[str(cell.module)].chapter
    for source, name in pairs:
        inside = source.split(".")[0] == PACKAGE and source != f"{PACKAGE}._public"
        if not inside or (source, name) == (PACKAGE, "_public"):
            continue
        owner = package.owner(source, name)
        spelt = f"{source}.{name}".rstrip(".")
        if owner is None:
            where = _homes(package, name or source.rpartition(".")[2])
            raise BookError(f"{cell.place}: no chapter exports {spelt}{where}")
        if name and owner.dotted == source and not owner.may_have(name):
            where = _homes(package, name)
            raise BookError(f"{cell.place}: {source} does not define {name}{where}")
        inside = bool(cell.amends) and owner.chapter is chapter
        if owner.chapter.floor >= chapter.floor and not inside:
            raise BookError(f"{cell.place}: {_upwards(spelt, owner.chapter, chapter)}")


def _homes(package: Package, name: str) -> str:
    """Say which modules define a name, as the end of a sentence."""
    found = [m.dotted for m in package.modules.values() if name in m.defined]
    return f"; {' and '.join(found[:3])} does" if found else ""


def _upwards(spelt: str, owner: Chapter, chapter: Chapter) -> str:
    """Why a page may not import this name of another, and what to do."""
    here, there = chapter.floor, owner.floor
    if here == there:
        return (
            f"{spelt} is of {owner.name}, not of a lower floor; the cell has it already"
        )
    if here.number != there.number:
        return (
            f"{spelt} is of {owner.name}, not of a lower floor; register with a table "
            "of a lower floor instead"
        )
    page = {-1: "a ground", 0: "a spine", 1: "an upper spine"}[here.room]
    above = {0: "spine", 1: "upper spine", 2: "rest"}[there.room]
    return (
        f"{spelt} is of {owner.name}, and {page} does not import its {above}; move "
        "what it needs down to its own page"
    )
