"""Write the package yourself, page by page.

python -m book.course start FOLDER          begin, at chapter 1 or --at another
python -m book.course check [PAGE]          what is still wrong, in words
python -m book.course next [--ours]         the next page; ours for what is not written
python -m book.course show NAME             one definition of ours, with its page
python -m book.course pages                 how much each page asks for
python -m book.course notebook PAGE --out F an assignment; `check PAGE --notebook F`

The folder is the one that was started last, or that of `--folder`. There,
`PYTHONPATH=FOLDER python` imports your package as `minijax`.
"""

import argparse
import re
import sys
import tempfile
from pathlib import Path

import nbformat

from book.course import assignments, folder
from book.course.checks import KEPT, check, runner
from book.course.stage import Stage, spines, stage
from book.course.stubs import is_put_back, labels
from book.tools import files
from book.tools.source import PACKAGE, BookError, exercises, floor

MINUTES = re.compile(r"\((\d+) minutes\)")
LAST = KEPT / "folder"


def main(arguments: list[str] | None = None) -> int:
    """Run from the command line."""
    options = _parser().parse_args(arguments)
    command = {"start": _start, "check": _check, "next": _next}
    command |= {"show": _show, "notebook": _notebook, "pages": _pages}
    return command[options.command](options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m book.course",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    begin = commands.add_parser("start", help="begin in a new folder")
    begin.add_argument("folder", type=Path)
    begin.add_argument("--at", type=floor, default=spines()[0], metavar="PAGE")
    looks = commands.add_parser("check", help="say what is still wrong")
    looks.add_argument("page", type=floor, nargs="?")
    looks.add_argument("--notebook", type=Path, help="an assignment to check")
    moves = commands.add_parser("next", help="go on to the next page")
    moves.add_argument("--ours", action="store_true", help="ours for what is missing")
    shows = commands.add_parser("show", help="show a definition of the book's")
    shows.add_argument("name")
    makes = commands.add_parser("notebook", help="write an assignment")
    makes.add_argument("page", type=floor)
    makes.add_argument("--out", type=Path)
    commands.add_parser("pages", help="say how much each page asks for")
    for command in (looks, moves, shows):
        command.add_argument("--folder", type=Path)
    return parser


def _folder(options: argparse.Namespace) -> Path:
    if options.folder:
        return options.folder
    if not LAST.exists():
        raise BookError("no course was started here; `start FOLDER` begins one")
    return Path(LAST.read_text("utf-8"))


def _start(options: argparse.Namespace) -> int:
    place = options.folder.resolve()
    print("\n".join(folder.start(place, options.at)))
    files.write(LAST, str(place))
    return 0


def _check(options: argparse.Namespace) -> int:
    if options.notebook:
        return _check_notebook(options)
    place = _folder(options)
    at = folder.stage_of(place)
    if options.page and options.page > at.page:
        raise BookError(f"you are at chapter {at.page}; `next` goes on from there")
    verdict = folder.look(place, at, options.page)
    print(verdict)
    if verdict.passed and options.page in (None, at.page):
        print("`next` goes on.")
    return not verdict.passed


def _check_notebook(options: argparse.Namespace) -> int:
    if not options.page:
        raise BookError("which page? `check PAGE --notebook FILE`")
    at = stage(options.page)
    made, answers = assignments.files_of(at, options.notebook)
    with tempfile.TemporaryDirectory() as place, runner() as found:
        for path, text in made.items():
            files.write(Path(place) / PACKAGE / path, text)
        verdict = check(at, Path(place), found, answers)
    print(verdict)
    return not verdict.passed


def _next(options: argparse.Namespace) -> int:
    place = _folder(options)
    at = folder.stage_of(place)
    if options.ours:
        print("\n".join(folder.fill(place, at)))
    else:
        verdict = folder.look(place, at)
        if not verdict.passed:
            print(verdict)
            print("\nNot yet; `next --ours` goes on with ours for what is missing.")
            return 1
    print("\n".join(folder.move_on(place, at)))
    return 0


def _show(options: argparse.Namespace) -> int:
    at = folder.stage_of(_folder(options))
    found = list(_definitions(at, options.name))
    if not found:
        raise BookError(f"chapter {at.page} and those below define no {options.name}")
    print("\n\n".join(found))
    return 0


def _definitions(at: Stage, name: str):
    """Our definitions under a name, the pages of which the reader has reached."""
    for path, module in at.whole.modules.items():
        text = at.reference[f"{path}.py"]
        lines = text.split("\n")
        for first, last, label in labels(text):
            dotted = f"{path.replace('/', '.')}.{label}"
            if name in (label, dotted, label.rpartition(".")[2]):
                pages = [module.chapter.name, *(c.chapter for c in module.amending)]
                head = f"# {path}.py: {label}, of chapters/{pages[0]}.md"
                later = [c for c in module.amending if label in c.amends]
                head += "".join(f", amended in chapters/{c.chapter}.md" for c in later)
                yield "\n".join([head, *lines[first - 1 : last]])


def _pages(_: argparse.Namespace) -> int:
    print("page       pieces  put back   lines  exercises  minutes")
    for page in spines():
        at = stage(page)
        lines = sum(piece.end - piece.start for _, piece in at.pieces())
        texts = [text for _, text in exercises(at.chapter)]
        minutes = sum(int(n) for text in texts for n in MINUTES.findall(text))
        parts = [piece for _, piece in at.pieces()]
        back = sum(is_put_back(piece) for piece in parts)
        count = len(parts) - back + sum(len(cell.amends) for cell in at.foreign)
        row = f"{count:6} {back:9} {lines:7} {len(texts):10} {minutes:8}"
        print(f"{page!s:10} {row}")
    return 0


def _notebook(options: argparse.Namespace) -> int:
    at = stage(options.page)
    path = options.out or Path(f"{at.name}.ipynb")
    nbformat.write(assignments.notebook(at), path)
    print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BookError as error:
        sys.exit(f"course: {error}")
