"""The folder in which a reader writes: begun, moved on by a page, filled with ours.

`minijax/` in it is the package, `exercises/` has a file for each exercise, and
`course.json` says at which page the reader is.
"""

import json
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

from book.course.checks import Verdict, check, runner
from book.course.stage import Files, Stage, after, amended, plain, stage
from book.course.stubs import WHOLE, WIDTH
from book.tools import files
from book.tools.source import PACKAGE, BookError, Cell, Floor, exercises, floor

STATE, KEPT, EXERCISES = "course.json", "kept", "exercises"
AS_COMMENT = {"initial_indent": "# ", "subsequent_indent": "# ", **WHOLE}
SIGNS = """\
Above a definition stands the sentence of the page that asks for it. A line that begins
with `#>` is a statement to put back: take the sign away, and write a function where `…`
stands. `#> amend` names a definition that the page changes. `exercises/` has a file for
each exercise. `check` says what is still wrong, and `next` goes on when all agrees."""
SOLVE = "# Write your solution below; `check` runs it in the place of the book's.\n"


def start(folder: Path, page: Floor) -> list[str]:
    """Write the package as a reader gets it who begins at a page.

    Returns:
      What there is to say.

    Raises:
      BookError: something is in the folder already.
    """
    if folder.exists() and any(folder.iterdir()):
        raise BookError(f"{folder} is not empty; name a new folder")
    at = stage(page)
    for path, text in at.started.items():
        files.write(folder / PACKAGE / path, text)
    return [*_arrived(folder, at), SIGNS]


def stage_of(folder: Path) -> Stage:
    """The page at which a reader is.

    Raises:
      BookError: the folder is none of the course.
    """
    path = folder / STATE
    if not path.exists():
        raise BookError(f"{folder} has no {STATE}; `start {folder}` begins there")
    return stage(floor(json.loads(path.read_text("utf-8"))["page"]))


def look(folder: Path, at: Stage, page: Floor | None = None) -> Verdict:
    """Check a package by the cells of its page, or of another one below.

    Exercises of its page that the reader has solved are checked too.
    """
    with runner() as found:
        if page and page != at.page:
            return check(at, folder, found, page)
        return check(at, folder, found, answers=answers(folder, at))


def answers(folder: Path, at: Stage) -> dict[str, str]:
    """The reader's solutions of exercises, by the numbers of the cells with ours."""
    found = {}
    for number, cell in at.solutions.items():
        path = _exercise(folder, at, number)
        text = path.read_text("utf-8") if path.exists() else ""
        if any(x.strip() and not x.startswith("#") for x in text.split("\n")):
            found[str(cell.index)] = text
    return found


def fill(folder: Path, at: Stage) -> list[str]:
    """Put our definitions where the reader has none; whole modules if that is wrong.

    Returns:
      What there is to say.
    """
    paths = _files(folder, at)
    for path, text in at.filled(paths).items():
        files.write(folder / PACKAGE / path, text)
    verdict = look(folder, at)
    if verdict.passed:
        return ["What was not written is ours now."]
    for path, text in paths.items():
        files.write(folder / KEPT / at.name / path, text)
        files.write(folder / PACKAGE / path, at.reference[path])
    listed = ", ".join(paths)
    return [
        str(verdict),
        "",
        f"So {listed} are ours now, whole. Yours are in {KEPT}/{at.name}/.",
    ]


def move_on(folder: Path, at: Stage) -> list[str]:
    """Add the next page of the course, and the back rooms before it.

    What back rooms amend is said, and whether the page that is left agrees as before.

    Returns:
      What there is to say.

    Raises:
      BookError: this was the last page.
    """
    page = after(at.page)
    if page is None:
        raise BookError("this was the last page; what is above is the book's")
    new, said = stage(page), []
    grown: Files = {}  # what the reader had in modules that are amended
    between = [c for c in new.whole.chapters if at.page < c.floor < page]
    cells = [c for chapter in between for c in chapter.cells if c.amends]
    for path, text in new.started.items():
        there = folder / PACKAGE / path
        own = there.read_text("utf-8") if there.exists() else None
        if own is not None and own not in (at.given.get(path), at.reference.get(path)):
            amending = [c for c in cells if f"{c.module}.py" == path]
            if path.endswith(".py") and (amending or not _is_given(path, at)):
                text, more = _grown(own, path, amending, new)
                said += more
                grown |= {path: own} if amending else {}
        files.write(there, text)
    rooms = [f"`check {c.floor}`" for c in between if c.floor.number == at.page.number]
    if rooms:
        listed = " and ".join(rooms)
        said.append(f"{listed}: a back room, run on what you wrote for its floor.")
    said += _whole(folder, grown, at, new)
    said += _again(folder, at, new) if grown else []
    return [*said, *_arrived(folder, new)]


def _whole(folder: Path, grown: Files, at: Stage, new: Stage) -> list[str]:
    """Put ours in the place of modules that, amended, cannot be imported any more."""
    said = []
    for path, own in grown.items():  # those of lower pages first
        if error := _import_error(folder, path):
            files.write(folder / KEPT / at.name / path, own)
            files.write(folder / PACKAGE / path, new.started[path])
            said.append(
                f"Amended so, {path} could not be imported ({error}), so it is ours "
                f"now, whole. Yours is in {KEPT}/{at.name}/."
            )
    return said


def _import_error(folder: Path, path: str) -> str:
    """What a module of the package raises when it is imported, or empty."""
    name = ".".join([PACKAGE, *Path(path).with_suffix("").parts])
    command = [sys.executable, "-c", f"import {name.removesuffix('.__init__')}"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    return done.stderr.strip().rpartition("\n")[2] if done.returncode else ""


def _again(folder: Path, at: Stage, new: Stage) -> list[str]:
    """What there is to say if a page that is left does not agree any more.

    Of the next page all is ours for that.
    """
    with tempfile.TemporaryDirectory() as place, runner() as found:
        shutil.copytree(folder / PACKAGE, Path(place) / PACKAGE)
        for path, text in new.filled(_files(folder, new)).items():
            files.write(Path(place) / PACKAGE / path, text)
        verdict = check(new, Path(place), found, at.page)
    if verdict.passed:
        return []
    say = (
        f"With what was amended, chapter {at.page} does not agree any more. "
        "`show NAME` prints ours; change yours until it does:"
    )
    return [say, textwrap.indent(str(verdict), "    "), ""]


def _is_given(path: str, at: Stage) -> bool:
    """Whether a file is none that a reader writes in: tables of names, packages."""
    module = at.package.modules.get(path.removesuffix(".py"))
    return module is None


def _grown(
    own: str, path: str, cells: list[Cell], new: Stage
) -> tuple[str, list[str]]:
    """The reader's text of a module with what back rooms amend, and the new marks."""
    said: list[str] = []
    done: dict[str, list[str]] = {}
    for cell in cells:
        try:
            own = amended(own, cell, new.package)
            done.setdefault(cell.chapter, []).extend(cell.amends)
        except (BookError, SyntaxError) as error:
            lost = f"{', '.join(cell.amends)} of {cell.chapter}"
            said.append(f"{path} could not be given {lost}: {error}")
    for chapter, names in done.items():
        said.append(f"{path}: {chapter} has amended {', '.join(names)}.")
    for cell in new.foreign:
        if f"{cell.module}.py" == path:
            own = new.with_marks(own, cell)
    return own, said


def _arrived(folder: Path, at: Stage) -> list[str]:
    """Write where the reader is, and the files of the exercises; say what is next."""
    files.write(folder / STATE, json.dumps({"page": str(at.page)}) + "\n")
    texts = [text for _, text in exercises(at.chapter)]
    for number in at.solutions:
        asked = textwrap.fill(plain(texts[number - 1]), WIDTH, **AS_COMMENT)
        files.write(_exercise(folder, at, number), f"{asked}\n{SOLVE}\n")
    listed = [f"{PACKAGE}/{path}" for path in at.paths]
    listed += [f"{PACKAGE}/{cell.module}.py" for cell in at.foreign]
    count = len(at.unwritten(_files(folder, at)))
    places = ", ".join(dict.fromkeys(listed))
    title = at.chapter.title.rpartition(" · ")[2]
    return [f"Chapter {at.page}, {title}: {count} pieces in {places}."]


def _exercise(folder: Path, at: Stage, number: int) -> Path:
    return folder / EXERCISES / f"{at.name}_{number}.py"


def _files(folder: Path, at: Stage) -> Files:
    """The reader's texts of the modules that the page is about."""
    paths = [*at.paths, *(f"{cell.module}.py" for cell in at.foreign)]
    return {path: (folder / PACKAGE / path).read_text("utf-8") for path in paths}
