"""What is still wrong with a reader's package, in words.

The cells of a page run on the reader's package and on ours; where both do the same, the
reader's agrees. The first difference is told: the program, what was expected and what
came, and which of the reader's definitions ran there for the first time.
"""

import hashlib
import json
import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from book.course import run
from book.course.run import Place, Result, agrees, read
from book.course.stage import Files, Stage, names_in, spines
from book.course.stage import stage as stage_at
from book.course.stubs import TO_WRITE, labels
from book.tools import files
from book.tools.source import (
    PACKAGE,
    ROOT,
    Cell,
    Chapter,
    Floor,
    find_chapter,
    read_chapter,
)

KEPT = ROOT / "_build" / "course"
MOST = 5  # definitions that are named
LINES = 14  # of a text that is shown
LONG = 400  # letters of a line that are shown
AROUND = 6  # lines that agree, above the first that does not
UNKNOWN = re.compile(r"(?:NameError: name|AttributeError: .*attribute) '(\w+)'")


class Runner:
    """A process that runs pages, each in a child of its own."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "book.course.run"]
        pipe = subprocess.PIPE
        options = {"stdin": pipe, "stdout": pipe, "text": True, "cwd": ROOT}
        self.process = subprocess.Popen(command, **options)

    def run(
        self,
        folder: Path,
        page: Floor,
        expected: Path | None = None,
        noted: bool = False,
        answers: dict[str, str] | None = None,
    ) -> list[Result]:
        """The results of the cells of a page on the package in a folder.

        Args:
          expected: a file of results, at the first difference from which it stops.
          noted: whether to note which functions ran.
          answers: the reader's solutions of exercises, by the numbers of ours.
        """
        assert self.process.stdin and self.process.stdout
        with tempfile.NamedTemporaryFile() as out:
            job = {
                "folder": str(folder.resolve()),
                "page": str(page),
                "out": out.name,
                "expected": str(expected or ""),
                "noted": noted,
                "answers": answers or {},
            }
            self.process.stdin.write(json.dumps(job) + "\n")
            self.process.stdin.flush()
            self.process.stdout.readline()
            return read(Path(out.name))

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


@contextmanager
def runner() -> Iterator[Runner]:
    """A process that runs pages, for the time of a block."""
    found = Runner()
    try:
        yield found
    finally:
        found.close()


@dataclass
class Failure:
    """The first cell that does something else than on our package.

    Attributes:
      program: the text of the cell, and `section` and `place` where it stands.
      expected, got: what it prints on our package and on the reader's.
      suspects: the reader's definitions that the error came through, or that ran.
      missing: the name that is to be written next, or empty.
      page: the page whose cell it is, where the name is of a later page, or empty.
    """

    program: str
    section: str
    place: str
    expected: str
    got: str
    suspects: list[str] = field(default_factory=list)
    missing: str = ""
    page: str = ""


@dataclass
class Verdict:
    """What is wrong with a reader's package at a page.

    Attributes:
      page: the page.
      agreed, judged: how many cells agree, of how many.
      unwritten: what is still a stub.
      failure: the first difference, or None.
      absent: names that later pages import, and which the reader's modules lack.
      exercises: what there is to say of the reader's solutions, with their numbers.
      skipped: how many cells are not judged, since they fail on our package too.
    """

    page: str
    agreed: int
    judged: int
    unwritten: list[str]
    failure: Failure | None
    absent: list[str] = field(default_factory=list)
    exercises: list[str] = field(default_factory=list)
    skipped: int = 0

    @property
    def passed(self) -> bool:
        """Whether everything is there and agrees; exercises are asked for elsewhere."""
        return not (self.failure or self.unwritten or self.absent)

    def __str__(self) -> str:
        lines = [f"Chapter {self.page}: {self.agreed} of {self.judged} cells agree."]
        if self.skipped:
            lines[0] += f" Not judged, as they fail on ours too: {self.skipped}."
        if self.failure:
            lines += _told(self.failure)
        if self.unwritten:
            lines += ["", f"Still to write: {len(self.unwritten)}."]
            lines += [f"    {name}" for name in self.unwritten[:MOST]]
            lines += ["    …"] * (len(self.unwritten) > MOST)
        elif self.absent:
            lines += ["", "Later pages import what is not there:"]
            lines += [f"    {name}" for name in self.absent]
        lines += [""] * bool(self.exercises) + self.exercises
        return "\n".join(lines)


def check(
    stage: Stage,
    folder: Path,
    runner: Runner,
    page: Floor | None = None,
    answers: dict[str, str] | None = None,
) -> Verdict:
    """Compare a reader's package with ours, by the cells of a page.

    Args:
      stage: the page at which the reader is.
      folder: what holds the reader's `minijax/`.
      runner: what runs the cells.
      page: another page below, whose cells are run; by default, that of the stage.
      answers: the reader's solutions of exercises, by the numbers of ours.
    """
    chapter = read_chapter(find_chapter(page or stage.page))
    expected_file = expected_results(stage, chapter, runner)
    expected = read(expected_file)
    found = runner.run(folder, chapter.floor, expected_file, answers=answers)
    judged = [r for r in expected if not r.error]
    skipped = len(expected) - len(judged)
    pairs = list(zip(found, expected))
    agreed = sum(agrees(*pair) for pair in pairs if not pair[1].error)
    failure, names, absent = None, [], []
    if chapter.floor == stage.page:
        texts = files_in(folder, stage)
        names, absent = stage.unwritten(texts), stage.absent(texts)
    if len(found) < len(expected) or not all(agrees(*pair) for pair in pairs):
        failure = _failure(stage, chapter, folder, found, expected_file, runner)
    solved = [f"Exercise {n}: {r.verdict}" for n, r in _exercises(stage, found)]
    name, count = str(chapter.floor), len(judged)
    return Verdict(name, agreed, count, names, failure, absent, solved, skipped)


def _exercises(stage: Stage, found: list[Result]) -> list[tuple[int, Result]]:
    """The exercises that the reader has solved, with their numbers."""
    numbers = {cell.index: n for n, cell in stage.solutions.items()}
    return [(numbers[r.index], r) for r in found if r.verdict]


def files_in(folder: Path, stage: Stage) -> Files:
    """The reader's texts of the modules that the page is about."""
    paths = [*stage.paths, *(f"{cell.module}.py" for cell in stage.foreign)]
    found = {path: folder / PACKAGE / path for path in paths}
    return {p: f.read_text("utf-8") if f.exists() else "" for p, f in found.items()}


def expected_results(stage: Stage, chapter: Chapter, runner: Runner) -> Path:
    """The file with what the cells of a page do on our package; they are run once."""
    key = hashlib.sha256(repr(sorted(stage.reference.items())).encode())
    for text in (find_chapter(chapter.floor), Path(run.__file__)):
        key.update(text.read_bytes())
    folder = KEPT / stage.name
    results = folder / f"{chapter.name}-{key.hexdigest()[:16]}.jsonl"
    if not results.exists():
        for path, text in stage.reference.items():
            files.write(folder / PACKAGE / path, text)
        for old in folder.glob(f"{chapter.name}-*.jsonl"):
            old.unlink()
        lines = [json.dumps(result) for result in runner.run(folder, chapter.floor)]
        files.write(results, "\n".join(lines) + "\n")
    return results


def _failure(
    stage: Stage,
    chapter: Chapter,
    folder: Path,
    found: list[Result],
    expected_file: Path,
    runner: Runner,
) -> Failure:
    """Describe the first difference."""
    expected = read(expected_file)
    disagree = [r for r, e in zip(found, expected) if not agrees(r, e)]
    at = disagree[0].index if disagree else len(found) + 1
    cell, wanted = chapter.cells[at - 1], expected[at - 1]
    got = disagree[0] if disagree else None
    failure = Failure(
        program=cell.code.strip("\n"),
        section=cell.heading,
        place=cell.place,
        expected=wanted.printed or "no error",
        got=(got.error or got.printed or "nothing") if got else "the end of Python",
    )
    failure.missing = _missing(failure.got, stage)
    failure.page = str(chapter.floor) if chapter.floor != stage.page else ""
    if not failure.missing and chapter is stage.chapter:
        failure.missing = stage.next_to_write(files_in(folder, stage), at)
    if not failure.missing:
        noted = runner.run(folder, chapter.floor, expected_file, noted=True)
        again = [r for r in noted if r.index == at]
        trail = again[0].trail if again else got.trail if got else []
        about = stage_at(_spine_of(chapter.floor))
        texts = files_in(folder, stage) | files_in(folder, about)
        texts |= _lower(folder, about, trail)
        failure.suspects = _suspects(about, texts, trail, noted, at)
    return failure


def _spine_of(page: Floor) -> Floor:
    """The page of the course that a page belongs to: itself, or its floor's spine."""
    pages = spines()
    own = [p for p in pages if p == page or p.number == page.number]
    return page if page in pages else (own or pages)[0]


def _lower(folder: Path, stage: Stage, trail: list[Place]) -> Files:
    """The reader's texts of modules of lower pages that an error came through.

    What is ours there is left out: the fault is not in it.
    """
    pages = [page for page in spines() if page < stage.page]
    written = {path for page in pages for path in stage_at(page).paths}
    paths = {path for path, _ in trail} & written
    texts = {path: (folder / PACKAGE / path).read_text("utf-8") for path in paths}
    return {p: text for p, text in texts.items() if text != stage.reference[p]}


def _missing(got: str, stage: Stage) -> str:
    """What is to be written next, if an error says so."""
    if TO_WRITE in got.partition("\n")[0]:
        return got.partition(TO_WRITE)[2]
    name = UNKNOWN.match(got)
    if name and name[1] in stage.work.where:
        return f"{name[1]}, {stage.work.where[name[1]]}"
    return ""


def _suspects(
    stage: Stage, texts: Files, trail: list[Place], noted: list[Result], at: int
) -> list[str]:
    """The reader's definitions that an error came through, then those that ran first.

    Of these the definitions of the latest cell come first. Those that had run already,
    in cells that agree, come last, and of them what the page is about comes before
    modules of lower pages, the latest first. So with what the error came through, where
    it was not raised there.
    """
    made = _cells_of_names(stage.chapter.cells[: at - 1])
    first = {tuple(p): r.index for r in reversed(noted) for p in r.ran if r.index < at}
    here = [tuple(p) for r in noted if r.index == at for p in r.ran]

    def late(place: Place) -> tuple:
        name = _label(place, texts) or ""
        cell = made.get(name) or made.get(name.partition(".")[0], 0)
        own = place[0] in stage.paths
        return place in first, not own, -first.get(place, at), -cell

    here.sort(key=late)
    through = [tuple(p) for p in reversed(trail) if p[0] in texts]
    through[1:] = sorted(through[1:], key=lambda p: p[0] not in stage.paths)
    ordered = [*through, *here]
    described = (_described(place, texts, stage) for place in ordered)
    return list(dict.fromkeys(text for text in described if text))


def _cells_of_names(cells: list[Cell]) -> dict[str, int]:
    """The numbers of the last cells that define or amend names."""
    exported = [cell for cell in cells if cell.module]
    return {n: c.index for c in exported for n in c.amends or names_in(c)}


def _label(place: Place, texts: Files) -> str | None:
    """The definition that a line is in, or empty; None if it is no Python."""
    path, line = place
    try:
        parts = labels(texts.get(path, ""))
    except SyntaxError:
        return None
    return next((name for a, b, name in parts if a <= line <= b), "")


def _described(place: Place, texts: Files, stage: Stage) -> str:
    """A definition of the reader's by a line in it: file, name, section, what it is."""
    path, line = place
    if path not in texts:
        return ""
    name = _label(place, texts)
    if line <= 1 and name is not None:  # of the module as a whole, which was imported
        return ""
    owner = name.partition(".")[0]
    where = stage.work.where
    section = where.get(name) or where.get(owner, "an earlier chapter")
    return f"{path}: {name} ({section})" if name else f"{path}:{line}"


def _told(failure: Failure) -> list[str]:
    """The lines about a difference."""
    if failure.missing:
        if failure.page:
            then = f"Chapter {failure.page} can be checked again when this is written:"
            return ["", f"{then} {failure.missing}.", f"{failure.place} needs it."]
        return ["", f"Next to write: {failure.missing}.", f"{failure.place} needs it."]
    lines = ["", f'In the section "{failure.section}", {failure.place}:', ""]
    lines += _block(failure.program)
    expected, got = failure.expected.split("\n"), failure.got.split("\n")
    pairs = enumerate(zip(expected, got, strict=False))
    at = next((n for n, (a, b) in pairs if a != b), min(len(expected), len(got)))
    lines += ["", "expected:", *_block(failure.expected, at)]
    lines += ["got:", *_block(failure.got, at)]
    if failure.suspects:
        lines += ["", "What of yours ran there, the likeliest first:"]
        lines += [f"    {text}" for text in failure.suspects[:MOST]]
    return lines


def _block(text: str, at: int = 0) -> list[str]:
    """A text, indented; of a long one the lines around number `at`."""
    lines = text.rstrip("\n").split("\n")
    start = max(0, min(at - AROUND, len(lines) - LINES + 1)) if at >= LINES - 1 else 0
    kept = lines[start : start + LINES - (start > 0)]
    if start:
        kept = ["…", *kept]
    if len(lines) > start + len(kept) - (start > 0):
        kept[-1] = "…"
    kept = [x if len(x) <= LONG else f"{x[:LONG]}…" for x in kept]
    return textwrap.indent("\n".join(kept), "    ").split("\n")
