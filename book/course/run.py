"""Run the cells of pages on packages that readers are writing, each in its own process.

python -m book.course.run    read jobs, one JSON object a line, and run them in turn

An exported cell is not run: the names that it defines are taken from the package, where
the reader has written them. So the cells around it use the reader's definitions.
"""

import contextlib
import gc
import importlib
import json
import os
import re
import resource
import signal
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import CodeType, FrameType
from typing import NamedTuple

from book.tools import syntax
from book.tools.source import PACKAGE, Cell, find_chapter, floor, read_chapter

SECONDS = 30  # of computing, for one cell; a wrong definition may have no end
BYTES = 8 << 30
CLOCK = "nbval-ignore-output"
ADDRESS = re.compile(r"0x[0-9a-f]{6,}")
Place = tuple[str, int]  # a file of the package, and a line in it


class Result(NamedTuple):
    """What happened in a cell.

    Attributes:
      index: the number of the cell on its page.
      printed: what it printed and displayed, pictures apart; None if a clock said it.
      error: the type and the message of what it raised, or empty.
      trail: the places in the package that the error came through, the deepest last.
      ran: the functions of the package that ran, by the places of their first lines.
      verdict: of an exercise that the reader has solved, whether it is right.
    """

    index: int
    printed: str | None
    error: str
    trail: list[Place]
    ran: list[Place]
    verdict: str = ""


def agrees(found: Result, expected: Result) -> bool:
    """Whether a cell did on a reader's package what it does on ours.

    A cell that fails on ours is not judged: it is about a definition that a later cell
    of the page amends. Nor are times.
    """
    if expected.error:
        return True
    if expected.printed is None:  # of a clock, which may make an assertion fail as well
        return not found.error or found.error.startswith("AssertionError")
    return not found.error and found.printed == expected.printed


def run_page(
    folder: Path, page: str, noted: bool = False, answers: dict[str, str] | None = None
) -> Iterator[Result]:
    """Run the cells of a page on the package in a folder; this process is used up.

    Args:
      folder: what holds `minijax/`.
      page: the name of a floor, `4` or `4_rest`.
      noted: whether to note which functions of the package run; it takes longer.
      answers: the reader's solutions of exercises, by the numbers of ours.
    """
    chapter = read_chapter(find_chapter(floor(page)))
    os.chdir(find_chapter(floor(page)).parent)
    sys.path.insert(0, str(folder))
    if noted:  # which frames an error came through is asked as well
        os.environ["JAX_TRACEBACK_FILTERING"] = "off"
    sys.setrecursionlimit(1000)
    cells = importlib.import_module("book.web.run.cells")
    space, tables = cells.main.__dict__, Tables()
    for cell in chapter.cells:
        answer = (answers or {}).get(str(cell.index))
        verdict = cells.check(answer, cell.text) if answer else ""
        result = _run(cell, cells, space, tables, folder / PACKAGE, noted)
        yield result._replace(verdict=verdict)


class Tables:
    """The rule tables as the package fills them.

    A page may register a draft before the cell that registers what is exported.
    """

    def __init__(self):
        self.filled: dict[int, tuple[dict, dict]] = {}

    def keep(self) -> None:
        """Note what is in tables that have come into being."""
        kind = importlib.import_module(f"{PACKAGE}._registry").Registry
        found = (x for x in gc.get_objects() if isinstance(x, kind))
        self.filled |= {id(t): (t, {**t}) for t in found if id(t) not in self.filled}

    def fill_again(self) -> None:
        """Put what the package had registered in the place of drafts."""
        for table, entries in self.filled.values():
            for key, value in entries.items():
                if key not in table or table[key] is not value:
                    table[key] = value


def _run(
    cell: Cell, cells, space: dict, tables: Tables, package: Path, noted: bool
) -> Result:
    error, trail, clocked = "", [], CLOCK in cell.tags
    codes: set[CodeType] = set()
    watched = _noted(codes, package) if noted and not clocked else nullcontext()
    with cells.captured() as outputs, _limited(), watched:
        try:
            if cell.module:
                _take(cell, space)
                tables.keep()
                tables.fill_again()
            else:
                name = f"<ipython-input-{cell.index}-page>"
                text = cells.plain(cell.text)
                cells.linecache.cache[name] = len(text), None, text.splitlines(1), name
                cells.execute(syntax.parse(text).body, name, space)
        except BaseException as raised:
            error = f"{type(raised).__name__}: {raised}"
            trail = _trail(raised, package)
    texts = [text for kind, text in outputs if kind == "text/plain"]
    printed = None if clocked else ADDRESS.sub("0x…", "".join(texts))
    ran = [_place(code.co_filename, code.co_firstlineno, package) for code in codes]
    return Result(cell.index, printed, error, trail, sorted(ran))


def _take(cell: Cell, space: dict) -> None:
    """Bind what an exported cell imports and defines, as far as it is there."""
    for node in syntax.imports(cell.code):
        exec(syntax.ast.unparse(node), space)
    path = str(cell.module).removesuffix("/__init__").replace("/", ".")
    module = importlib.import_module(f"{PACKAGE}.{path}")
    for name in syntax.defined(cell.code):
        if not name.startswith("__") and hasattr(module, name):
            space[name] = getattr(module, name)


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    """Stop a cell that computes for too long, or waits for ever."""

    def stop(*_):
        raise TimeoutError(f"the cell computed for longer than {SECONDS} s, or waits")

    kinds = {signal.SIGPROF: signal.ITIMER_PROF, signal.SIGALRM: signal.ITIMER_REAL}
    before = {number: signal.signal(number, stop) for number in kinds}
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    signal.setitimer(signal.ITIMER_REAL, 10 * SECONDS)  # on a busy machine
    try:
        yield
    finally:
        for number, timer in kinds.items():
            signal.setitimer(timer, 0)
            signal.signal(number, before[number])


@contextlib.contextmanager
def _noted(codes: set[CodeType], package: Path) -> Iterator[None]:
    """Collect the functions of the package that run."""
    start = f"{package}{os.sep}"

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(start):
            codes.add(frame.f_code)

    def both(theirs) -> None:
        """What a cell gets in the place of `sys.setprofile`, if it watches as well."""

        def watch(frame: FrameType, event: str, value: object) -> None:
            note(frame, event, value)
            theirs(frame, event, value)

        set_profile(watch if theirs else note)

    set_profile, sys.setprofile = sys.setprofile, both
    set_profile(note)
    try:
        yield
    finally:
        sys.setprofile = set_profile
        sys.setprofile(None)


def _trail(error: BaseException, package: Path) -> list[Place]:
    """The places in the package that an error, or what caused it, came through."""
    found, frames = [], error.__traceback__
    while frames is not None:
        code = frames.tb_frame.f_code
        if code.co_filename.startswith(f"{package}{os.sep}"):
            found.append(_place(code.co_filename, frames.tb_lineno, package))
        frames = frames.tb_next
    if isinstance(error, SyntaxError) and str(error.filename).startswith(str(package)):
        found.append(_place(str(error.filename), error.lineno or 1, package))
    return found or (_trail(error.__cause__, package) if error.__cause__ else [])


def _place(file: str, line: int, package: Path) -> Place:
    return str(Path(file).relative_to(package)), line


def work(job: dict) -> None:
    """Run a job in a process of its own, and write its results, one a line.

    Args:
      job: `folder` and `page`; `out`, the file to write; `expected`, the file with
        results, at the first difference from which to stop, or empty; `noted` and
        `answers` as above.
    """
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    try:
        resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
        with open(job["out"], "w", encoding="utf-8") as file:
            expected = read(Path(job["expected"])) if job["expected"] else []
            rest = job["page"], job["noted"], job["answers"]
            for result in run_page(Path(job["folder"]), *rest):
                file.write(json.dumps(result) + "\n")
                file.flush()
                if expected and not agrees(result, expected[result.index - 1]):
                    break
    finally:
        os._exit(0)


def read(path: Path) -> list[Result]:
    """The results in a file."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [Result(*json.loads(line)) for line in lines]


def main() -> None:
    """Run the jobs that are written to the standard input; answer each by a line."""
    importlib.import_module("numpy")  # once for all of them
    answers = os.fdopen(os.dup(1), "w")
    with open(os.devnull, "w") as quiet:
        os.dup2(quiet.fileno(), 1)
    for line in sys.stdin:
        work(json.loads(line))
        print("done", file=answers, flush=True)


if __name__ == "__main__":
    main()
