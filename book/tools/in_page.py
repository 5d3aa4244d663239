"""Let the pages of Parts I to III run in a reader's browser, with no install.

python -m book.tools.in_page    add to _build/html what runs them

Python for browsers, Pyodide, comes from the npm registry when the book is built, and is
served with the book. So are minijax, as far as those parts make it, and what the pages
draw with. NumPy for browsers is not in that registry: a page fetches it from `PACKAGES`
when its reader presses the button, and not before. Where npm has nothing to give, the
pages have no button, and the build says why.
"""

import ast
import io
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from book.tools.export import write_lower_floors
from book.tools.folds import SOLUTION, is_folded, title
from book.tools.source import (
    PARTS,
    ROOT,
    Cell,
    Chapter,
    Floor,
    chapter_paths,
    floor_of,
    read_chapter,
)
from book.tools.syntax import without_magics

VERSION = "314.0.7"
PACKAGES = f"https://cdn.jsdelivr.net/pyodide/v{VERSION}/full/"
FILES = (
    "pyodide.mjs pyodide.asm.mjs pyodide.asm.wasm python_stdlib.zip pyodide-lock.json"
).split()
LAST = PARTS[2][0]  # the last floor of Part III
HTML = ROOT / "_build" / "html"
KEPT = ROOT / "_build" / "npm"  # what npm has given, for the next build
WEB = ROOT / "book" / "web" / "run"
SECONDS = 120


class NotHere(RuntimeError):
    """Why pages cannot run in a browser."""


def archive() -> Path:
    """The archive of Pyodide, from npm unless it is here already."""
    found = KEPT / f"pyodide-{VERSION}.tgz"
    if found.exists():
        return found
    npm = shutil.which("npm")
    if npm is None:
        raise NotHere("npm is not installed")
    KEPT.mkdir(parents=True, exist_ok=True)
    command = [npm, "pack", "--silent", f"pyodide@{VERSION}", "--pack-destination"]
    try:
        subprocess.run(
            [*command, str(KEPT)], check=True, capture_output=True, timeout=SECONDS
        )
    except (subprocess.SubprocessError, OSError) as error:
        raise NotHere(f"npm gives no pyodide@{VERSION} ({error})") from None
    if not found.exists():
        raise NotHere(f"npm has not made {found.name}")
    return found


def unpack(source: Path, folder: Path) -> int:
    """Write the files that a browser needs; return how many bytes they have."""
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(source) as tar:
        for name in FILES:
            member = tar.extractfile(f"package/{name}")
            if member is None:
                raise NotHere(f"{source.name} has no {name}")
            (folder / name).write_bytes(member.read())
    return sum((folder / name).stat().st_size for name in FILES)


def package() -> bytes:
    """An archive of the package as Part III leaves it, and of what pages draw with."""
    made = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        write_lower_floors(Floor(LAST + 1, -1), Path(folder))
        with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as file:
            for path in sorted(Path(folder).rglob("*.py")):
                file.write(path, path.relative_to(folder))
            for path in sorted((ROOT / "book" / "helper").rglob("*")):
                if path.suffix in (".py", ".json") and "emulator" not in path.parts:
                    below = path.relative_to(ROOT / "book" / "helper")
                    file.write(path, Path("minijax_book") / below)
    return made.getvalue()


def cells(chapter: Chapter) -> list[dict]:
    """The cells of a chapter, whole, as the page's script takes them."""
    return [
        {
            "number": cell.index,
            "source": cell.text,
            "solution": is_solution(chapter, cell),
        }
        for cell in chapter.cells
    ]


def is_solution(chapter: Chapter, cell: Cell) -> bool:
    """Whether a cell solves an exercise by a function or class of its own."""
    if not is_folded(cell) or not title(chapter, cell).startswith(SOLUTION):
        return False
    body = ast.parse(without_magics(cell.text)).body
    return any(isinstance(node, ast.FunctionDef | ast.ClassDef) for node in body)


def chapters() -> list[Chapter]:
    """The chapters whose pages can run."""
    paths = [p for p in chapter_paths() if 0 < floor_of(p).number <= LAST]
    return [read_chapter(path) for path in paths]


def add_script(page: Path, name: str) -> None:
    """Let a built page load the script that makes its button."""
    text = page.read_text(encoding="utf-8")
    script = (
        f'<script type="module" src="../_static/run/run_here.js" data-page="{name}">'
        "</script>\n</body>"
    )
    if "run_here.js" not in text:
        page.write_text(script.join(text.rsplit("</body>", 1)), encoding="utf-8")


def main() -> None:
    """Add to the built book what runs its pages; say so, or why not."""
    folder = HTML / "_static" / "run"
    try:
        size = unpack(archive(), folder / "pyodide")
    except NotHere as error:
        print(f"pages cannot be run in a browser: {error}")
        return
    made = package()
    (folder / "package.zip").write_bytes(made)
    about = {"megabytes": round((size + len(made)) / 1e6), "packages": PACKAGES}
    (folder / "run.json").write_text(json.dumps(about), encoding="utf-8")
    for name in ("run_here.js", "cells.py"):
        shutil.copy(WEB / name, folder / name)
    (folder / "pages").mkdir(exist_ok=True)
    found = chapters()
    for chapter in found:
        text = json.dumps(cells(chapter), ensure_ascii=False)
        (folder / "pages" / f"{chapter.name}.json").write_text(text, encoding="utf-8")
        add_script(HTML / "chapters" / f"{chapter.name}.html", chapter.name)
    print(f"{len(found)} pages can be run in a browser ({about['megabytes']} MB)")


if __name__ == "__main__":
    sys.exit(main())
