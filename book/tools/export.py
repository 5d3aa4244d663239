"""Make the package from the exported cells of the chapters.

python -m book.tools.export                      write minijax/
python -m book.tools.export --only 3             write the modules of chapter 3
python -m book.tools.export --check              exit 1 if minijax/ differs
python -m book.tools.export --upto 2 --out DIR   chapters 1 and 2 into DIR/minijax/
"""

import argparse
import difflib
import os
import re
import sys
from pathlib import Path

from book.tools import files, laws, public
from book.tools.modules import Module, Package
from book.tools.public import Tables
from book.tools.render import front, render
from book.tools.source import (
    PACKAGE,
    PROLOGUE,
    ROOT,
    BookError,
    Chapter,
    Floor,
    chapter_paths,
    find_chapter,
    floor,
    floor_of,
    read_chapter,
    read_chapters,
)

EMPTY = '"""The package before the first chapter: nothing yet."""\n'
MADE = re.compile(r"^# Made from chapters/(\w+)\.md", re.MULTILINE)
AMENDED = re.compile(r"^# Amended in chapters/(\w+)\.md", re.MULTILINE)
Files = dict[str, str]


def make(chapters: list[Chapter]) -> Files:
    """All files of the package, by their path inside it."""
    package = Package(chapters)
    laws.check_house(package)
    for chapter in chapters:
        laws.check(package, chapter)
    return written(package)


def written(package: Package) -> Files:
    """The files of a package, by their path inside it; the laws are not asked."""
    made = {f"{p}.py": render(package, m) for p, m in package.modules.items()}
    if not package.modules:
        made["__init__.py"] = EMPTY
    made |= {marker: front(chapter) for marker, chapter in _markers(package).items()}
    _check_packages(made)
    return made | _shared(public.tables(package), made)


def make_one(wanted: Floor, chapters: list[Chapter], folder: Path) -> Files:
    """The files of one chapter; the names of the others stay as they are there."""
    package = Package(chapters)
    chapter = next(c for c in chapters if c.floor == wanted)
    laws.check_house(package)
    laws.check(package, chapter)
    own = [*package.of(chapter), *_amended_by(chapter, package, folder)]
    made = {f"{m.path}.py": render(package, m) for m in own}
    markers = _markers(package).items()
    made |= {marker: front(chapter) for marker, maker in markers if maker is chapter}
    gone = {dotted(path) for path in left_over(wanted, made, folder)}
    tables = public.merge(public.read(folder), package, chapter, gone)
    there = _present(folder) - {*left_over(wanted, made, folder)}
    texts = {path: (folder / path).read_text(encoding="utf-8") for path in there}
    return made | _shared(tables, texts | made)


def _amended_by(chapter: Chapter, package: Package, folder: Path) -> list[Module]:
    """The modules of other chapters which this one amends, or did when it was made."""
    found = []
    for module in package.modules.values():
        path = folder / f"{module.path}.py"
        before = AMENDED.findall(path.read_text("utf-8")) if path.exists() else []
        now = [cell.chapter for cell in module.amending]
        if chapter.name in (*before, *now):
            found.append(module)
    return found


def made_by(path: Path) -> Floor | None:
    """The floor of the chapter that made this file, or None."""
    return _maker(path.read_text(encoding="utf-8"))


def _maker(text: str) -> Floor | None:
    made = MADE.search(text)
    return floor(made[1]) if made else None


def amenders(text: str) -> list[Floor]:
    """The floors of the chapters that amend a module with this text."""
    return [floor(name) for name in AMENDED.findall(text)]


def dotted(path: str) -> str:
    """The name under which a file of the package is imported."""
    name = f"{PACKAGE}/{path}".removesuffix(".py").removesuffix("/__init__")
    return name.replace("/", ".")


def left_over(wanted: Floor, made: Files, folder: Path) -> list[str]:
    """Modules in the folder which this chapter made once and makes no more."""
    paths = sorted(_present(folder) - made.keys())
    return [path for path in paths if made_by(folder / path) == wanted]


def below(wanted: Floor, folder: Path) -> Files:
    """The part of the package in the folder which the lower floors have made."""
    texts = {path: (folder / path).read_text("utf-8") for path in _present(folder)}
    made = {p: t for p, t in texts.items() if (maker := _maker(t)) and maker < wanted}
    grown = {p: t for p, t in made.items() if any(a >= wanted for a in amenders(t))}
    made |= _before(wanted, grown, texts)
    tables = public.only(public.read(folder), {dotted(path) for path in made})
    return {"__init__.py": EMPTY} | made | _shared(tables, made)


def _before(wanted: Floor, grown: Files, texts: Files) -> Files:
    """Modules as the lower floors left them, which have grown above.

    Args:
      grown: their texts, as they are now.
      texts: the texts of all modules.
    """
    pages = {_maker(text) for text in grown.values()}
    pages |= {page for text in grown.values() for page in amenders(text)}
    left = [page for page in pages if page and page < wanted]
    chapters: dict[Floor, Chapter] = {}
    while left:
        if (page := left.pop()) not in chapters:
            chapters[page] = read_chapter(find_chapter(page))
            amended = {c.module for c in chapters[page].cells if c.amends}
            makers = (_maker(texts[f"{path}.py"]) for path in amended)
            left += [maker for maker in makers if maker]  # they are read as well
    package = Package([chapters[page] for page in sorted(chapters)])
    paths = [path.removesuffix(".py") for path in grown]
    return {f"{path}.py": render(package, package.modules[path]) for path in paths}


def write_lower_floors(wanted: Floor, folder: Path) -> None:
    """Write the package that a chapter runs on: what lower floors have exported last.

    The prologue looks ahead: it runs on the whole house.
    """
    with files.alone():
        above = Floor(99) if wanted == PROLOGUE else wanted
        lower = below(above, ROOT / PACKAGE)
    for path, text in lower.items():
        files.write(folder / PACKAGE / path, text)
        files.keep_compiled(ROOT / PACKAGE / path, folder / PACKAGE / path)


def differences(made: Files, folder: Path) -> str:
    """What would change in the folder, as a diff; empty if nothing."""
    found = []
    for path in sorted({*made, *_present(folder)}):
        there = folder / path
        old = there.read_text(encoding="utf-8") if there.exists() else ""
        new = made.get(path, "")
        if old != new or there.exists() != (path in made):
            found.append(f"{PACKAGE}/{path}: differs from its chapter\n")
            lines = old.splitlines(True), new.splitlines(True)
            found += difflib.unified_diff(*lines, "is", "should be")
    return "".join(found)


def write(made: Files, folder: Path) -> None:
    """Write what differs."""
    for path, text in made.items():
        if files.write(folder / path, text):
            print(f"wrote {PACKAGE}/{path}")


def remove(paths: list[str], folder: Path) -> None:
    """Remove modules that no chapter exports."""
    for path in paths:
        (folder / path).unlink()
        print(f"removed {PACKAGE}/{path}, which no chapter exports")


def list_packages(root: Path = ROOT) -> None:
    """Bring the list of packages in `pyproject.toml` up to date."""
    path, folders = root / "pyproject.toml", (root / PACKAGE).rglob("__init__.py")
    names = sorted(".".join(f.parent.relative_to(root).parts) for f in folders)
    listed = ", ".join(f'"{name}"' for name in names)
    old, then = path.read_text(encoding="utf-8"), path.stat()
    new = re.sub(r"^packages = \[[^]]*\]$", f"packages = [{listed}]", old, flags=re.M)
    if files.write(path, new):
        # What is installed points to this folder: for make, nothing has changed.
        os.utime(path, ns=(then.st_atime_ns, then.st_mtime_ns))
        print(f"wrote pyproject.toml: packages {', '.join(names)}")


def main(arguments: list[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--only", type=floor)
    parser.add_argument("--upto", type=floor)
    parser.add_argument("--out", type=Path, default=ROOT)
    with files.alone():
        return _run(parser.parse_args(arguments))


def _run(options: argparse.Namespace) -> int:
    folder = options.out / PACKAGE
    if options.only:
        made = make_one(options.only, _readable(options.only), folder)
        stale = left_over(options.only, made, folder)
    else:
        below = options.upto or Floor(99)
        made = make([c for c in read_chapters() if c.floor <= below])
        stale = sorted(_present(folder) - made.keys())
    if options.check:
        difference = differences(made, folder)
        sys.stdout.write(difference)
        return bool(difference)
    write(made, folder)
    remove(stale, folder)
    if options.out == ROOT:
        list_packages()
    return 0


def _markers(package: Package) -> dict[str, Chapter]:
    """What makes packages of the folders of floors, where no cell does; with the page.

    Back rooms share the folder of their floor, and its lowest page makes it.
    """
    makers: dict[str, Chapter] = {}
    for module in package.modules.values():
        folder = module.path.rpartition("/")[0]
        first = makers.setdefault(folder, module.chapter)
        makers[folder] = min(first, module.chapter, key=_height)
    own = package.modules.keys() | {"__init__"}
    markers = {f"{folder}/__init__".lstrip("/"): by for folder, by in makers.items()}
    return {f"{path}.py": markers[path] for path in sorted(markers.keys() - own)}


def _height(chapter: Chapter) -> Floor:
    return chapter.floor


def _shared(tables: Tables, texts: Files) -> Files:
    made = {"_public.py": public.render(*tables), "py.typed": ""}
    return made | public.stubs(tables[0], texts)


def _present(folder: Path) -> set[str]:
    found = (p.relative_to(folder) for p in folder.rglob("*") if p.is_file())
    return {str(p) for p in found if "__pycache__" not in p.parts}


def _check_packages(made: Files) -> None:
    if "__init__.py" not in made:
        raise BookError(f"{PACKAGE}/ needs a cell with `#| export __init__`")


def _readable(wanted: Floor) -> list[Chapter]:
    """All chapters which can be read; another's mistake only draws a warning."""
    try:
        chapters = [read_chapter(path) for path in chapter_paths()]
        laws.check_house(Package(chapters))
    except BookError:
        _blame(wanted)
        chapters = _without_mistakes(wanted)
    if not any(chapter.floor == wanted for chapter in chapters):
        raise BookError(f"no chapter {wanted} in chapters/")
    return chapters


def _blame(wanted: Floor) -> None:
    """Raise the mistake of the wanted chapter, if all others stand together."""
    pairs = {floor_of(path): path for path in chapter_paths()}
    own = pairs.pop(wanted, None)
    try:
        others = [read_chapter(path) for path in pairs.values()]
        laws.check_house(Package(others))
    except BookError:
        return
    if own:
        laws.check_house(Package([*others, read_chapter(own)]))


def _without_mistakes(wanted: Floor) -> list[Chapter]:
    """The chapters that stand together, the wanted one first of all."""
    chapters: list[Chapter] = []
    for path in sorted(chapter_paths(), key=lambda p: (floor_of(p) != wanted, p)):
        try:
            more = [*chapters, read_chapter(path)]
            laws.check_house(Package(more))
            chapters = more
        except BookError as error:
            if floor_of(path) == wanted:
                raise
            print(f"left out: {error}", file=sys.stderr)
    return sorted(chapters, key=lambda chapter: chapter.floor)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BookError as error:
        sys.exit(f"export: {error}")
