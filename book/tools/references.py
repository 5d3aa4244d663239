"""Find what leads nowhere: chapters, links, names and "the next chapter" in the text.

python -m book.tools.references   print each with its place; exit 1 if there is any
"""

import importlib
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from book.tools.pages import MADE
from book.tools.public import read
from book.tools.quoted import strange_names
from book.tools.source import CHAPTERS, PACKAGE, ROOT, Chapter, read_chapters, slug
from minijax_book.towers import FLOORS

_CHAPTER = re.compile(r"\b[Cc]hapters?\s+(\d+(?:(?:, | and | to |–)\d+)*)")
_LINK = re.compile(r"\[([^]]*)\]\(([^)\s]+)\)")
_QUOTED = re.compile(r"`+([^`]+)`+")
_NAME = re.compile(
    rf"(?<![\w./])(jnp|lax|{PACKAGE})\.([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)"
)
_NEXT = re.compile(r"\bnext (?:chapter|floor)\b")
_SPACES = {"jnp": f"{PACKAGE}.numpy", "lax": f"{PACKAGE}.lax", PACKAGE: PACKAGE}
Line = tuple[int, str]


def complaints(chapters: list[Chapter]) -> list[str]:
    """All that leads nowhere, in chapters and in the pages of `book/`."""
    after = {c.name: d for c, d in _neighbours(chapters)}
    found = []
    for chapter in chapters:
        path = CHAPTERS / f"{chapter.name}.md"
        found += in_text(path, chapter.prose, chapters)
        found += in_code(chapter)
        found += strange_names(chapter)
        found += next_page(chapter, after.get(chapter.name))
    found += unlinked_rooms(chapters)
    for path in sorted((ROOT / "book").glob("*.md")):
        if path.stem not in MADE:
            lines = path.read_text(encoding="utf-8").split("\n")
            found += in_text(path, [*enumerate(lines, start=1)], chapters)
    return found


def in_text(path: Path, lines: list[Line], chapters: list[Chapter]) -> list[str]:
    """Chapters, links and names of these lines that are not there."""
    place = f"{path.parent.name}/{path.name}"
    found = []
    for number, line in lines:
        for trouble in [*_chapters(line), *_links(path, line, chapters), *_names(line)]:
            found.append(f"{place}:{number}: {trouble}")
    return found


def in_code(chapter: Chapter) -> list[str]:
    """Chapters that comments and messages name and that are not planned."""
    return [
        f"{cell.place}: {trouble}"
        for cell in chapter.cells
        for trouble in _chapters(cell.text)
    ]


def next_page(chapter: Chapter, after: Chapter | None) -> list[str]:
    """Whether "the next chapter" of the checkpoint is the page that comes next."""
    wanted = f"{after.name}.ipynb" if after else "nothing: this is the last page"
    found = []
    for number, line in _section(chapter, "Checkpoint"):
        linked = [link for link in _LINK.finditer(line) if _NEXT.search(link[1])]
        wrong = [link[2] for link in linked if link[2].partition("#")[0] != wanted]
        if wrong or len(_NEXT.findall(line)) > len(linked):
            said = f"leads to {wrong[0]}" if wrong else "is no link"
            found.append(
                f"chapters/{chapter.name}.md:{number}: 'the next chapter' {said}; what "
                f"comes next is {wanted}: link to it, or name the chapter by its number"
            )
    return found


def unlinked_rooms(chapters: list[Chapter]) -> list[str]:
    """Back rooms that no spine of their floor links to."""
    found = []
    for room in (c for c in chapters if not c.floor.is_spine):
        spines = [
            c
            for c in chapters
            if c.floor.is_spine and c.floor.number == room.floor.number
        ]
        text = "\n".join(line for spine in spines for _, line in spine.prose)
        if f"({room.name}.ipynb" not in text:
            names = [f"{spine.name}.md" for spine in spines]
            here = " or ".join(names) or "a page that is not there"
            found.append(
                f"chapters/{room.name}.md: a back room without a door; link to "
                f"{room.name}.ipynb from the place in {here} where it is left out"
            )
    return found


def _chapters(text: str) -> Iterator[str]:
    for match in _CHAPTER.finditer(text):
        for number in re.findall(r"\d+", match[1]):
            if int(number) > len(FLOORS):
                yield (
                    f"there is no chapter {number}, and none is planned; the last is "
                    f"{len(FLOORS)} (book/helper/towers.py)"
                )


def _links(path: Path, line: str, chapters: list[Chapter]) -> Iterator[str]:
    anchors = {chapter.name: chapter for chapter in chapters}
    for _, target in _LINK.findall(line):
        name, _, anchor = target.partition("#")
        if not name.endswith((".ipynb", ".md")) or "://" in target:
            continue
        there = (_home(path) / name).resolve()
        chapter = anchors.get(there.stem) if there.parent == CHAPTERS else None
        made = there.parent == ROOT / "book" and there.stem in MADE
        if not (chapter or made or there.exists()):
            yield f"{target} leads nowhere: there is no such page"
        elif chapter and anchor and anchor not in _anchors(chapter):
            near = ", ".join(sorted(_anchors(chapter)))
            yield f"{target} leads nowhere: the headings there are {near}"


def _home(path: Path) -> Path:
    """Where a page is read: the landing page becomes `index.md`, at the top."""
    return ROOT if path == ROOT / "book" / "landing.md" else path.parent


def _anchors(chapter: Chapter) -> set[str]:
    return {slug(text) for level, text in chapter.headings if level <= 3}


def _names(line: str) -> Iterator[str]:
    for quoted in _QUOTED.findall(line):
        for space, name in _NAME.findall(quoted):
            if not is_known(f"{_SPACES[space]}.{name}"):
                later = f"none that is to come ({PACKAGE}/_missing_names.py)"
                yield f"`{space}.{name}` is no name of the package, and {later}"


@cache
def is_known(path: str) -> bool:
    """Whether a dotted name is public, a module, or will come with a later chapter."""
    parts = path.split(".")
    splits = [(".".join(parts[:n]), parts[n]) for n in range(1, len(parts))]
    if any(name in _public().get(space, ()) for space, name in splits):
        return True
    for n in range(len(parts), 0, -1):
        try:
            module = importlib.import_module(".".join(parts[:n]))
        except ModuleNotFoundError:
            continue
        return n == len(parts) or parts[n] in vars(module)
    return False


@cache
def _public() -> dict[str, set[str]]:
    """The names of each namespace, those to come among them."""
    found = {space: set(names) for space, names in read(ROOT / PACKAGE)[0].items()}
    later = importlib.import_module(f"{PACKAGE}._missing_names").LATER
    for space, names in later.items():
        found.setdefault(space, set()).update(names.split())
    return found


def _neighbours(chapters: list[Chapter]) -> list[tuple[Chapter, Chapter]]:
    """Each page that a reader walks, with the one that comes next."""
    spine = [chapter for chapter in chapters if chapter.floor.is_spine]
    return list(zip(spine, spine[1:], strict=False))


def _section(chapter: Chapter, title: str) -> Iterator[Line]:
    inside = False
    for number, line in chapter.prose:
        if line.startswith("## "):
            inside = line == f"## {title}"
        if inside:
            yield number, line


def main() -> int:
    """Run from the command line."""
    found = complaints(read_chapters())
    print("\n".join(found) or "all references lead somewhere")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
