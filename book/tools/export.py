"""Make the package from the exported cells of the chapters.

python -m book.tools.export                      write minijax/
python -m book.tools.export --only 3             write the modules of chapter 3
python -m book.tools.export --check              exit 1 if minijax/ differs
python -m book.tools.export --upto 2 --out DIR   chapters 1 and 2 into DIR/minijax/
"""

import argparse
import ast
import difflib
import re
import sys
from pathlib import Path

from book.tools import laws
from book.tools.modules import Package
from book.tools.render import render, render_public
from book.tools.source import (
    PACKAGE,
    ROOT,
    BookError,
    Chapter,
    chapter_paths,
    read_chapter,
    read_chapters,
)

EMPTY = '"""The package before the first chapter: nothing yet."""\n'


def make(chapters: list[Chapter]) -> dict[str, str]:
    """All files of the package, by their path inside it."""
    package = Package(chapters)
    for chapter in chapters:
        laws.check(package, chapter)
        laws.check_cycles(package, chapter)
    files = {f"{p}.py": render(package, m) for p, m in package.modules.items()}
    if not chapters:
        files["__init__.py"] = EMPTY
    _check_packages(files)
    return files | {"_public.py": render_public(package.public), "py.typed": ""}


def make_one(number: int, chapters: list[Chapter], old: dict) -> dict[str, str]:
    """The files of one chapter; `old` is the table of public names so far."""
    package = Package(chapters)
    chapter = next(c for c in chapters if c.number == number)
    laws.check(package, chapter)
    laws.check_cycles(package, chapter)
    own = package.of(chapter)
    mine = {module.dotted for module in own}
    public = {
        space: {n: m for n, m in names.items() if m not in mine}
        for space, names in old.items()
    }
    for space, names in package.public.items():
        new = {n: m for n, m in names.items() if m in mine}
        public[space] = public.get(space, {}) | new
    files = {f"{module.path}.py": render(package, module) for module in own}
    public = {space: names for space, names in public.items() if names}
    return files | {"_public.py": render_public(public), "py.typed": ""}


def differences(files: dict[str, str], folder: Path) -> str:
    """What would change in the folder, as a diff; empty if nothing."""
    found = []
    for path in sorted({*files, *_present(folder)}):
        there = folder / path
        old = there.read_text(encoding="utf-8") if there.exists() else ""
        new = files.get(path, "")
        if old != new or there.exists() != (path in files):
            found.append(f"{PACKAGE}/{path}: differs from its chapter\n")
            lines = old.splitlines(True), new.splitlines(True)
            found += difflib.unified_diff(*lines, "is", "should be")
    return "".join(found)


def write(files: dict[str, str], folder: Path, prune: bool = True) -> None:
    """Write what differs; with `prune`, remove what no chapter exports."""
    for path, text in files.items():
        there = folder / path
        if not there.exists() or there.read_text(encoding="utf-8") != text:
            there.parent.mkdir(parents=True, exist_ok=True)
            there.write_text(text, encoding="utf-8")
            print(f"wrote {PACKAGE}/{path}")
    for path in sorted(_present(folder) - files.keys()) if prune else []:
        (folder / path).unlink()
        print(f"removed {PACKAGE}/{path}, which no chapter exports")


def list_packages(root: Path = ROOT) -> None:
    """Bring the list of packages in `pyproject.toml` up to date."""
    path, folders = root / "pyproject.toml", (root / PACKAGE).rglob("__init__.py")
    names = sorted(".".join(f.parent.relative_to(root).parts) for f in folders)
    listed = ", ".join(f'"{name}"' for name in [*names, "minijax_book"])
    old = path.read_text(encoding="utf-8")
    new = re.sub(r"^packages = \[[^]]*\]$", f"packages = [{listed}]", old, flags=re.M)
    if new != old:
        path.write_text(new, encoding="utf-8")
        print(f"wrote pyproject.toml: packages {', '.join(names)}")


def read_public(folder: Path) -> dict[str, dict[str, str]]:
    """The table in the `_public.py` of a package folder."""
    path = folder / "_public.py"
    if not path.exists():
        return {}
    last = ast.parse(path.read_text(encoding="utf-8")).body[-1]
    return ast.literal_eval(last.value) if isinstance(last, ast.AnnAssign) else {}


def main(arguments: list[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--only", type=int)
    parser.add_argument("--upto", type=int)
    parser.add_argument("--out", type=Path, default=ROOT)
    options = parser.parse_args(arguments)
    folder = options.out / PACKAGE
    if options.only is not None:
        chapters = _readable(options.only)
        write(make_one(options.only, chapters, read_public(folder)), folder, False)
    else:
        limit = 99 if options.upto is None else options.upto
        files = make([c for c in read_chapters() if c.number <= limit])
        if options.check:
            difference = differences(files, folder)
            sys.stdout.write(difference)
            return bool(difference)
        write(files, folder)
    if options.out == ROOT:
        list_packages()
    return 0


def _present(folder: Path) -> set[str]:
    found = (p.relative_to(folder) for p in folder.rglob("*") if p.is_file())
    return {str(p) for p in found if "__pycache__" not in p.parts}


def _check_packages(files: dict[str, str]) -> None:
    for folder in sorted({str(Path(path).parent) for path in files} | {"."}):
        inside = "" if folder == "." else f"{folder}/"
        if f"{inside}__init__.py" not in files:
            marker = f"`#| export {inside}__init__`"
            raise BookError(f"{PACKAGE}/{inside} needs a cell with {marker}")


def _readable(wanted: int) -> list[Chapter]:
    """All chapters which can be read; another's mistake only draws a warning."""
    chapters = []
    for path in chapter_paths():
        try:
            chapter = read_chapter(path)
            Package([chapter])
            chapters.append(chapter)
        except BookError as error:
            if int(path.stem[:2]) == wanted:
                raise
            print(f"left out: {error}", file=sys.stderr)
    if not any(chapter.number == wanted for chapter in chapters):
        raise BookError(f"no chapter {wanted:02d} in chapters/")
    return chapters


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BookError as error:
        sys.exit(f"export: {error}")
