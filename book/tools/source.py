"""Read a chapter: its headings, its prose and its code cells, with line numbers."""

import hashlib
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

from book.helper.amending import MARK

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = ROOT / "chapters"
PACKAGE = "minijax"
DOORS = frozenset(
    """
    __main__
    ad_checkpoint api_util as_jax
    core custom_batching custom_derivatives debug dlpack dtypes
    errors experimental export extend extend/backend extend/core extend/core/primitives
    example_libraries example_libraries/optimizers example_libraries/stax
    extend/arguments extend/dtypes extend/promotion extend/rules
    extend/linear_util extend/random extend/source_info_util flatten_util distributed
    experimental/multihost_utils experimental/checkify experimental/ode
    experimental/jet experimental/mesh_utils experimental/pjit experimental/shard_map
    image interpreters interpreters/ad interpreters/batching interpreters/mlir
    interpreters/partial_eval interpreters/xla lax lax/linalg nn
    nn/initializers numpy numpy/fft numpy/linalg ops random scipy scipy/fft scipy/signal
    scipy/linalg scipy/special scipy/stats
    scipy/optimize scipy/integrate scipy/ndimage scipy/interpolate
    scipy/cluster scipy/cluster/vq scipy/sparse scipy/sparse/linalg
    scipy/spatial scipy/spatial/transform
    experimental/layout experimental/sparse ffi lib memory monitoring version
    profiler ref sharding stages test_util tree tree_util typing
    """.split()
)  # what users import, under the paths that JAX has: from the top of the package

PARTS = [  # the parts of the book: the last floor of each, and its caption
    (6, "I · Interpreters"),
    (11, "II · Programs as data"),
    (16, "III · Staging out"),
    (27, "IV · The machine"),
    (33, "V · The library"),
    (37, "VI · Many processors"),
    (99, "VII · Was it worth it?"),
]

FOLDED = frozenset({"hide-cell", "hide-input", "hide-output"})  # tags that fold

_FENCE = re.compile(r"^(`{3,})\s*(\{code-cell\})?")
_HEADING = re.compile(r"^(#{1,6})\s+(.*?)\s*#*$")
_TAGS = re.compile(r"^:?tags:\s*\[(.*)\]\s*$")
_TITLE = re.compile(r"^:?title:\s*(.*?)\s*$")
_PLAIN = re.compile(r'[\w(](?:(?!: | #)[^`"])*(?<!:)|"[^`"]+"')  # also in YAML
_EXPORT = re.compile(
    r"^#\| export (?P<module>[\w/]+)(?: -> (?P<namespace>[\w.]+(?:, [\w.]+)*|\*)"
    r"(?: with (?P<awaited>[\w/]+))?)?$"
)
_AMEND = re.compile(rf"^#\| amend {MARK.pattern}$")
_NAME = re.compile(r"\d\d_\w+\.md")
_FLOOR = re.compile(r"0*(\d+)(?:_\w+?)??(_ground|_upper|_rest)?")
_QUESTION = re.compile(r"\*.+\?\*")
_FOLDER = re.compile(r"floor: ([a-z]\w*)")
_EXERCISE = re.compile(r"\*\*\d+\S*\s*★")


class BookError(ValueError):
    """A mistake in a chapter, told with its place."""


class Floor(NamedTuple):
    """The place of a page in the house: 2 ground < 2 < 2 upper < 2 rest < 3.

    `room` is 0 for the page that a reader walks, and 1 for the second one of a floor
    that has two questions (`NN_name_upper.md`). Back rooms are -1 (what the spine
    stands on, `NN_name_ground.md`) and 2 (the rest of the floor, `NN_name_rest.md`).
    """

    number: int
    room: int = 0

    def __str__(self) -> str:
        return f"{self.number}{ROOMS[self.room]}"

    @property
    def is_spine(self) -> bool:
        """Whether a reader walks this page: it is no back room."""
        return self.room in SPINE


ROOMS = {-1: "_ground", 0: "", 1: "_upper", 2: "_rest"}
SPINE = (0, 1)  # the rooms that have the budget and the sections of a spine
PROLOGUE = Floor(0)


def floor(text: str) -> Floor:
    """Read `2`, `02`, `2_rest` or `02_arrays_rest`."""
    match = _FLOOR.fullmatch(text)
    if not match:
        raise BookError(
            f"{text!r} is not a floor; write 2, 2_upper, 2_rest or 2_ground"
        )
    room = next(room for room, name in ROOMS.items() if name == (match[2] or ""))
    return Floor(int(match[1]), room)


def floor_of(path: Path) -> Floor:
    """The floor of the chapter with this text or notebook."""
    return floor(path.stem)


@dataclass(frozen=True)
class Cell:
    """A code cell: its text, and where it stands in which chapter.

    `module` is the module which it is exported to, as a path without `.py`
    (`lax/elementwise`), or None; `namespace` is where its names become public, several
    with commas between, or `*` if the module fills tables of lower floors as it is
    imported: with the first name, or with the module `awaited`, if there is one.
    `amends` are the definitions of that module, which a lower page made, of which the
    cell gives the next version: `f`, or `Class.method`. `title` is what the page shows
    in place of a folded cell, where the chapter says it.
    """

    chapter: str
    index: int
    line: int
    text: str
    tags: tuple[str, ...] = ()
    heading: str = ""
    module: str | None = None
    namespace: str | None = None
    awaited: str | None = None
    amends: tuple[str, ...] = ()
    title: str = ""

    @property
    def namespaces(self) -> list[str]:
        """The modules for users in which its names are public."""
        return [] if self.namespace in (None, "*") else str(self.namespace).split(", ")

    @property
    def code(self) -> str:
        """The text without its `#|` line."""
        return self.text.partition("\n")[2] if self.module else self.text

    @property
    def place(self) -> str:
        """Where to look: file, line, and the number of the cell."""
        return f"chapters/{self.chapter}.md:{self.line} (cell {self.index})"


@dataclass
class Chapter:
    """A chapter in pieces: cells, headings `(level, text)`, prose `(line, text)`.

    `folder` is where its modules are, below the package: the name of its floor.
    """

    name: str
    folder: str = ""
    cells: list[Cell] = field(default_factory=list)
    headings: list[tuple[int, str]] = field(default_factory=list)
    prose: list[tuple[int, str]] = field(default_factory=list)

    @property
    def floor(self) -> Floor:
        """The digits in front of the name, and the room at its end."""
        return floor(self.name)

    @property
    def looks_ahead(self) -> bool:
        """Whether this is the prologue: it exports nothing and may use everything."""
        return self.floor == PROLOGUE

    @property
    def title(self) -> str:
        """The text of the first heading."""
        return next((text for level, text in self.headings if level == 1), self.name)

    @property
    def says(self) -> str:
        """What the floor is about: title and question, as plain text."""
        title = self.title.rpartition(" · ")[2]
        return f"{title}. {self.question}".replace("`", "").strip()

    @property
    def question(self) -> str:
        """The line in italics below the title."""
        lines = (text for _, text in self.prose if _QUESTION.fullmatch(text))
        return next(lines, "").replace("*", "")

    def path(self, module: str) -> str:
        """Where a module is that a cell names: `jaxpr` in the folder of the floor.

        The name of a door, or one with a slash, is a path from the top of the package.
        """
        inside = self.folder and "/" not in module and module not in DOORS
        return f"{self.folder}/{module}" if inside else module


def read_chapter(path: Path) -> Chapter:
    """Read one chapter from its Markdown text."""
    return _read(path, path.read_text(encoding="utf-8"))


@cache
def _read(path: Path, text: str) -> Chapter:
    lines = text.split("\n")
    at = after_front_matter(lines)
    chapter = Chapter(path.stem, _folder(lines[:at], path))
    while at < len(lines):
        fence = _FENCE.match(lines[at])
        if fence:
            end = _end_of_fence(lines, at, fence[1], path)
            if fence[2]:
                chapter.cells.append(_read_cell(chapter, lines, at, end))
            at = end + 1
        else:
            _read_prose(chapter, at + 1, lines[at])
            at += 1
    return chapter


def read_chapters(folder: Path = CHAPTERS) -> list[Chapter]:
    """Read all chapters of a folder, lowest floor first."""
    return [read_chapter(path) for path in chapter_paths(folder)]


def chapter_paths(folder: Path = CHAPTERS) -> list[Path]:
    """The texts of all chapters, lowest floor first."""
    found = [path for path in folder.glob("*.md") if _NAME.fullmatch(path.name)]
    return sorted(found, key=floor_of)


def find_chapter(wanted: Floor, folder: Path = CHAPTERS) -> Path:
    """The text of the chapter on this floor."""
    for path in chapter_paths(folder):
        if floor_of(path) == wanted:
            return path
    raise BookError(f"no chapter {wanted} in {folder.name}/")


def exercises(chapter: Chapter) -> list[tuple[int, str]]:
    """The lines which open an exercise: `**1 ★ (10 minutes).** ...`."""
    return [(n, text) for n, text in chapter.prose if _EXERCISE.match(text)]


def slug(heading: str) -> str:
    """The anchor which the book gives to a heading."""
    text = re.sub(r"[`*_]", "", heading).lower()
    return re.sub(r"[^\w\- ]", "", text).strip().replace(" ", "-")


def cell_ids(cells: list[tuple[str, str]]) -> list[str]:
    """The ids of the cells of a notebook, from their kinds and texts."""
    seen: Counter[str] = Counter()
    ids = []
    for kind, text in cells:
        key = hashlib.sha256(f"{kind}\n{text}".encode()).hexdigest()
        seen[key] += 1
        ids.append(key[:8] + (f"-{seen[key]}" if seen[key] > 1 else ""))
    return ids


def after_front_matter(lines: list[str]) -> int:
    """The number of the first line below the YAML block at the top."""
    if lines and lines[0] == "---" and "---" in lines[1:]:
        return lines.index("---", 1) + 1
    return 0


def _folder(front_matter: list[str], path: Path) -> str:
    for number, line in enumerate(front_matter, start=1):
        match = _FOLDER.fullmatch(line.rstrip())
        if match:
            return match[1]
        if line.startswith("floor:"):
            place = f"chapters/{path.name}:{number}"
            raise BookError(
                f"{place}: cannot read {line!r}; write `floor: FOLDER`, a name of "
                "small letters, digits and underscores"
            )
    return ""


def _end_of_fence(lines: list[str], start: int, ticks: str, path: Path) -> int:
    for at in range(start + 1, len(lines)):
        line = lines[at].rstrip()
        if len(line) >= len(ticks) and set(line) == {"`"}:
            return at
    raise BookError(f"chapters/{path.name}:{start + 1}: this fence is never closed")


def _read_prose(chapter: Chapter, number: int, line: str) -> None:
    heading = _HEADING.match(line)
    if heading:
        chapter.headings.append((len(heading[1]), heading[2]))
    chapter.prose.append((number, line))


def _read_cell(chapter: Chapter, lines: list[str], start: int, end: int) -> Cell:
    options, first = _read_options(lines, start + 1, end)
    tags = _tags(options)
    title = _title(options, f"chapters/{chapter.name}.md:{start + 2}")
    text = "\n".join(lines[first:end]).strip("\n")
    heading = next((t for n, t in reversed(chapter.headings) if n <= 3), "")
    number = len(chapter.cells) + 1
    cell = Cell(chapter.name, number, first + 1, text, tags, heading, title=title)
    head, _, rest = text.partition("\n")
    if re.search(r"^\s*#\|", rest, re.MULTILINE):
        raise BookError(f"{cell.place}: `#|` belongs on the first line of a cell")
    if title and not FOLDED & {*tags}:
        raise BookError(f"{cell.place}: a title is for a folded cell; tag it hide-cell")
    if not head.startswith("#|"):
        return cell
    if marker := _AMEND.match(head.rstrip()):
        names = tuple(marker["names"].split(", "))
        return replace(cell, module=marker["module"], amends=names)
    marker = _EXPORT.match(head.rstrip())
    if not marker:
        raise BookError(
            f"{cell.place}: cannot read {head!r}; write `#| export MODULE` or "
            "`#| amend MODULE NAME`"
        )
    module, namespace = chapter.path(marker["module"]), marker["namespace"]
    awaited = chapter.path(marker["awaited"]) if marker["awaited"] else None
    return replace(cell, module=module, namespace=namespace, awaited=awaited)


def _read_options(lines: list[str], at: int, end: int) -> tuple[list[str], int]:
    """The options of a cell: lines `:tags: [...]`, or a block between `---` lines."""
    stop = at
    if lines[at] == "---":
        stop = lines.index("---", at + 1, end) + 1
    else:
        while stop < end and re.match(r"^:\w[\w-]*:", lines[stop]):
            stop += 1
    return lines[at:stop], stop


def _tags(options: list[str]) -> tuple[str, ...]:
    found = [match[1] for line in options if (match := _TAGS.match(line))]
    names = [name.strip(" \"'") for text in found for name in text.split(",")]
    return tuple(name for name in names if name)


def _title(options: list[str], place: str) -> str:
    found = (match[1] for line in options if (match := _TITLE.match(line)))
    title = next(found, "")
    if title and not _PLAIN.fullmatch(title):
        raise BookError(
            f"{place}: cannot read the title {title}; write it without backticks, and "
            "with a colon or sharp sign in it, in double quotes"
        )
    return title.strip('"')
